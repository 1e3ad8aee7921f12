//! Runs over shards against runs in one process.

use super::*;
use crate::atoms::Step;
use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::objective::{Base, LossKind, Problem};
use crate::observer::Stopwatch;
use crate::random;
use crate::solver::{Run, Search, SolverParams, StepRule};
use crate::{Rows, Triplets};
use std::cell::{Cell, RefCell};

/// Rows with a few features each, some of them frequent, and triplets that prefer a common one.
fn data(seed: u64, n_rows: usize, n_features: usize, weighted: bool) -> (Rows, Triplets) {
    let mut rng = random::rng(seed, 77);
    let (mut starts, mut indices, mut values) = (vec![0], vec![], vec![]);
    for _ in 0..n_rows {
        let mut row: Vec<u32> = (0..8)
            .map(|_| {
                let a = random::below(&mut rng, n_features);
                let b = random::below(&mut rng, n_features);
                a.min(b) as u32
            })
            .collect();
        row.sort_unstable();
        row.dedup();
        for feature in row {
            indices.push(feature);
            values.push(0.25 + random::below(&mut rng, 1000) as f64 / 700.0);
        }
        starts.push(indices.len());
    }
    let rows = Rows::from_parts(n_features, starts, indices, values).unwrap();
    let mut triplets = Triplets::new();
    while triplets.len() < 6 * n_rows {
        let [a, p, q] = [(); 3].map(|()| random::below(&mut rng, n_rows) as u32);
        if a == p || a == q || p == q {
            continue;
        }
        // Rows that share features 0 to 9 belong together, most of the time.
        let common = |x: u32| {
            let of = |row: u32| rows.row(row as usize);
            (0..10).map(|f| of(a).get(f) * of(x).get(f)).sum::<f64>()
        };
        let noisy = random::below(&mut rng, 5) == 0;
        let (near, far) = if (common(p) >= common(q)) != noisy {
            (p, q)
        } else {
            (q, p)
        };
        let weight = if weighted {
            1.0 + f64::from(a % 3)
        } else {
            1.0
        };
        triplets.push_weighted(a, near, far, weight);
    }
    (rows, triplets)
}

/// Shards in this process, which forget everything when one is lost.
struct Local<'p> {
    problems: &'p [Problem<'p>],
    engines: RefCell<Vec<Box<dyn ShardEngine<'p> + 'p>>>,
    /// Rounds so far; and those in which a shard is lost.
    rounds: Cell<usize>,
    lost: Vec<usize>,
}

fn engine<'p>(problem: &'p Problem<'p>) -> Box<dyn ShardEngine<'p> + 'p> {
    shard_engine(problem, CancelToken::NEVER).unwrap()
}

impl<'p> Local<'p> {
    fn new(problems: &'p [Problem<'p>], lost: &[usize]) -> Self {
        Self {
            problems,
            engines: RefCell::new(problems.iter().map(engine).collect()),
            rounds: Cell::new(0),
            lost: lost.to_vec(),
        }
    }
}

impl<'p> Shards for Local<'p> {
    fn ask(&self, requests: &[Request]) -> Result<Vec<Vec<Reply>>> {
        self.rounds.set(self.rounds.get() + 1);
        let is_lost = self.lost.contains(&self.rounds.get());
        let bytes = encode(&requests.to_vec());
        let mut all = Vec::new();
        for (shard, engine) in self.engines.borrow_mut().iter_mut().enumerate() {
            if is_lost && shard == 0 {
                return Err(Error::WorkerLost("shard 0".into()));
            }
            // As over a network.
            let requests = decode::<Vec<Request>>(&bytes)?;
            let replies = answer(&mut **engine, &self.problems[shard], &requests)?;
            all.push(decode(&encode(&replies))?);
        }
        Ok(all)
    }

    fn recover(&self, reason: &str) -> Result<()> {
        assert_eq!(reason, "shard 0");
        *self.engines.borrow_mut() = self.problems.iter().map(engine).collect();
        Ok(())
    }
}

/// The triplets of each range of anchors.
fn parts(triplets: &Triplets, n_rows: usize, n_shards: usize) -> Vec<Triplets> {
    let cuts = triplets.by_anchor(n_rows).cut(n_shards);
    let part = |range: std::ops::Range<usize>| {
        let mut part = Triplets::new();
        for (t, (a, near, far)) in triplets.iter().enumerate() {
            if range.contains(&(a as usize)) {
                part.push_weighted(a, near, far, triplets.weight(t));
            }
        }
        part
    };
    cuts.into_iter().map(part).collect()
}

/// A run over shards, and its rounds per iteration.
fn sharded(
    (rows, triplets): (&Rows, &Triplets),
    params: &SolverParams,
    n_shards: usize,
    lost: &[usize],
) -> (Run, f64) {
    let whole = Problem::new(rows, triplets, params.lambda, params.loss).unwrap();
    let parts = parts(triplets, rows.n_rows(), n_shards);
    let features = whole.features.external_indices();
    let problem = |part| {
        let (rows, features) = (rows.clone(), features.to_vec());
        let (lambda, loss) = (params.lambda, params.loss);
        Problem::in_order(rows, features, part, lambda, loss, CancelToken::NEVER)
            .unwrap()
            .with_base(Base::new(params.base))
    };
    let problems: Vec<Problem<'_>> = parts.iter().map(problem).collect();
    let shards = Local::new(&problems, lost);
    let solver = params.clone().build().unwrap();
    let run = solver
        .fit_sharded(
            &shards,
            &whole.features,
            whole.total_weight,
            None,
            Stopwatch::start(),
            &mut (),
        )
        .unwrap();
    let per_iteration = shards.rounds.get() as f64 / run.path.len().max(1) as f64;
    (run, per_iteration)
}

/// The atoms of a step, and its kind.
fn kind(step: &Step) -> (u8, Vec<crate::Atom>) {
    let mut step = *step;
    let kind = match step {
        Step::Forward { .. } => 0,
        Step::Away { .. } => 1,
        Step::Drop { .. } => 2,
        Step::Pairwise { .. } => 3,
        Step::Swap { .. } => 4,
    };
    (kind, step.atoms_mut().map(|atom| *atom).collect())
}

fn assert_same(local: &Run, other: &Run, what: &str) {
    assert_eq!(local.stop, other.stop, "{what}");
    assert_eq!(local.path.len(), other.path.len(), "{what}");
    for (k, (a, b)) in local
        .path
        .steps()
        .iter()
        .zip(other.path.steps())
        .enumerate()
    {
        assert_eq!(kind(a), kind(b), "{what}, step {k}");
    }
    assert_eq!(local.active.atoms(), other.active.atoms(), "{what}");
    for (a, b) in local.active.weights().zip(other.active.weights()) {
        assert!((a - b).abs() < 1e-9, "{what}: {a} {b}");
    }
    for (a, b) in local.trace.iter().zip(&other.trace) {
        assert!(
            (a.objective - b.objective).abs() < 1e-9 * a.objective.abs().max(1.0),
            "{what}"
        );
        assert!(
            (a.gap.value() - b.gap.value()).abs() < 1e-7 * a.gap.value().abs().max(1.0),
            "{what}"
        );
    }
}

fn params(lambda: f64, max_iter: usize) -> SolverParams {
    SolverParams {
        max_iter,
        ..SolverParams::new(lambda)
    }
}

#[test]
fn one_to_four_shards_take_the_same_path_as_one_process() {
    for seed in 0..4 {
        let (rows, triplets) = data(seed, 60, 150, seed % 2 == 1);
        for (base, loss) in [
            (0.0, LossKind::SmoothedHinge),
            (0.3, LossKind::SmoothedHinge),
            (0.0, LossKind::SquaredHinge),
            (0.2, LossKind::Logistic),
        ] {
            let params = SolverParams {
                base,
                loss,
                ..params(5.0, 80)
            };
            let local = params
                .clone()
                .build()
                .unwrap()
                .fit(&rows, &triplets, &mut ())
                .unwrap();
            assert!(local.path.len() >= 60, "{:?}", local.stop);
            for n_shards in 1..=4 {
                let (run, rounds) = sharded((&rows, &triplets), &params, n_shards, &[]);
                let what = format!("seed {seed}, base {base}, {loss}, {n_shards} shards");
                assert_same(&local, &run, &what);
                if loss.segments().is_some() {
                    assert!(rounds <= 8.0, "{what}: {rounds} rounds per iteration");
                }
                let (again, _) = sharded((&rows, &triplets), &params, n_shards, &[]);
                assert_eq!(again.path, run.path, "{what}");
            }
        }
    }
}

#[test]
fn step_rules_and_the_exact_oracle_are_the_same_over_shards() {
    let (rows, triplets) = data(9, 40, 60, false);
    // After a pairwise step its two atoms have equal scores, so that rounding errors choose the next away atom: pairwise
    // paths are not compared.
    for steps in [StepRule::Decrease, StepRule::Forward, StepRule::Away] {
        for search in [Search::Alternating, Search::Exact] {
            let params = SolverParams {
                steps,
                search,
                certify: true,
                ..params(5.0, 30)
            };
            let local = params
                .clone()
                .build()
                .unwrap()
                .fit(&rows, &triplets, &mut ())
                .unwrap();
            let (run, _) = sharded((&rows, &triplets), &params, 3, &[]);
            assert_same(&local, &run, &format!("{steps}, {search}"));
            assert!(run.gap().is_certified());
        }
    }
}

#[test]
fn a_run_that_loses_shards_goes_on_from_its_iterate() {
    let (rows, triplets) = data(5, 60, 150, false);
    let params = params(5.0, 60);
    let local = params
        .clone()
        .build()
        .unwrap()
        .fit(&rows, &triplets, &mut ())
        .unwrap();
    // A shard is lost in each of the first rounds, in single rounds later, and twice in a row.
    let lost: Vec<Vec<usize>> = (1..30)
        .map(|k| vec![k])
        .chain([vec![50, 51, 90, 140, 141, 142]])
        .collect();
    for lost in lost {
        let (run, _) = sharded((&rows, &triplets), &params, 3, &lost);
        assert_same(&local, &run, &format!("lost in rounds {lost:?}"));
    }
}
