//! The mathematics of the solver, checked on tiny problems against dense arrays and brute force.

use super::engine::LocalEngine;
use super::gradient::SymmetrizedGradient;
use super::recomputed::MarginSource;
use super::*;
use crate::atoms::{Atom, Step};
use crate::objective::loss::{Loss, LossKind, with_loss};
use crate::objective::{COLUMNS, Scored};
use crate::observer::{Event, Stop};
use crate::similarity::BilinearModel;
use crate::{Rows, Sign, random};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::time::Duration;

/// A problem small enough to write M out.
#[derive(Clone, Debug)]
struct Tiny {
    dense: Vec<Vec<f64>>,
    triplets: Triplets,
    scale: f64,
    /// The weight of the base similarity.
    beta: f64,
    /// The base margins of the triplets, if they are not those of the base similarity.
    given_base: Option<Vec<f64>>,
}

impl Tiny {
    fn problem(&self, rows: &Rows, kind: LossKind) -> Problem<'_> {
        let base = match &self.given_base {
            None => Base::new(self.beta),
            Some(margins) => Base::Given(margins.clone()),
        };
        let problem = Problem::new(rows, &self.triplets, self.scale, kind).unwrap();
        problem.with_base(base)
    }

    /// b_t straight from the definition.
    fn base_margin(&self, t: usize) -> f64 {
        if let Some(margins) = &self.given_base {
            return margins[t];
        }
        let (a, n, f) = self.triplets.get(t);
        let [a, n, f] = [a, n, f].map(|row| &self.dense[row as usize]);
        let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        self.beta * (product(a, n) - product(a, f))
    }

    /// The same with the base similarity, whatever the base margins were.
    fn with_similarity(self) -> Self {
        Self {
            given_base: None,
            ..self
        }
    }

    fn rows(&self) -> Rows {
        let (mut starts, mut indices, mut values) = (vec![0], vec![], vec![]);
        for row in &self.dense {
            for (i, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                indices.push(i as u32);
                values.push(x);
            }
            starts.push(indices.len());
        }
        Rows::from_parts(self.dense[0].len(), starts, indices, values).unwrap()
    }

    /// All d(d-1) atoms, pairs no triplet joins and features no row holds included.
    fn atoms(&self) -> Vec<Atom> {
        let d = self.dense[0].len() as u32;
        let mut atoms = Vec::new();
        for i in 0..d {
            for j in i + 1..d {
                for sign in [Sign::Plus, Sign::Minus] {
                    atoms.push(Atom::new(i, j, sign).unwrap());
                }
            }
        }
        atoms
    }

    /// <A^t, B> straight from the definition.
    fn atom_margin(&self, t: usize, atom: Atom) -> f64 {
        self.scale * self.unscaled_margin(t, atom)
    }

    fn unscaled_margin(&self, t: usize, atom: Atom) -> f64 {
        let (a, n, f) = self.triplets.get(t);
        let z = |row: u32| {
            let x = &self.dense[row as usize];
            x[atom.i() as usize] + atom.sign().value() * x[atom.j() as usize]
        };
        z(a) * (z(n) - z(f))
    }

    /// The score of the best of all atoms at the given margins, by trying each.
    fn best_score(&self, margins: &[f64], kind: LossKind) -> f64 {
        let weight =
            |t: usize| -self.triplets.weight(t) * with_loss!(kind, loss => loss.slope(margins[t]));
        let score = |atom: Atom| -> f64 {
            (0..self.triplets.len())
                .map(|t| weight(t) * self.unscaled_margin(t, atom))
                .sum()
        };
        (self.atoms().into_iter())
            .map(score)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// The same with weight 1 for every triplet.
    fn unweighted(&self) -> Self {
        let mut triplets = Triplets::new();
        for t in 0..self.triplets.len() {
            let (a, n, f) = self.triplets.get(t);
            triplets.push(a, n, f);
        }
        Self {
            triplets,
            ..self.clone()
        }
    }

    /// f at a linear (not only convex) combination of atoms.
    fn objective(&self, weighted: &[(Atom, f64)], kind: LossKind) -> f64 {
        let total: f64 = (0..self.triplets.len())
            .map(|t| self.triplets.weight(t))
            .sum();
        let sum: f64 = (0..self.triplets.len())
            .map(|t| {
                let learned: f64 = weighted
                    .iter()
                    .map(|&(atom, w)| w * self.atom_margin(t, atom))
                    .sum();
                let m = self.base_margin(t) + learned;
                self.triplets.weight(t) * with_loss!(kind, loss => loss.value(m))
            })
            .sum();
        sum / total
    }

    /// The optimum by an algorithm of another kind: accelerated projected gradient over the weights of all atoms, until
    /// its own gap says that it is within `tolerance`.
    fn optimum_by_projected_gradient(&self, kind: LossKind, tolerance: f64) -> f64 {
        let atoms = self.atoms();
        let total: f64 = (0..self.triplets.len())
            .map(|t| self.triplets.weight(t))
            .sum();
        let table: Vec<Vec<f64>> = (0..self.triplets.len())
            .map(|t| {
                atoms
                    .iter()
                    .map(|&atom| self.atom_margin(t, atom))
                    .collect()
            })
            .collect();
        let value = |weights: &[f64]| {
            let weighted: Vec<_> = atoms.iter().copied().zip(weights.iter().copied()).collect();
            self.objective(&weighted, kind)
        };
        let gradient = |weights: &[f64]| {
            let mut gradient = vec![0.0; atoms.len()];
            for (t, row) in table.iter().enumerate() {
                let learned: f64 = row.iter().zip(weights).map(|(b, w)| b * w).sum();
                let m = self.base_margin(t) + learned;
                let slope =
                    self.triplets.weight(t) * with_loss!(kind, loss => loss.slope(m)) / total;
                gradient
                    .iter_mut()
                    .zip(row)
                    .for_each(|(g, b)| *g += slope * b);
            }
            gradient
        };
        let mut now = vec![1.0 / atoms.len() as f64; atoms.len()];
        let (mut ahead, mut momentum, mut rate, mut best) = (now.clone(), 1.0f64, 1.0, value(&now));
        for round in 0..200_000 {
            let (slope, there) = (gradient(&ahead), value(&ahead));
            let next = loop {
                let moved: Vec<f64> = ahead
                    .iter()
                    .zip(&slope)
                    .map(|(w, g)| w - rate * g)
                    .collect();
                let next = onto_simplex(&moved);
                let step: Vec<f64> = next.iter().zip(&ahead).map(|(n, a)| n - a).collect();
                let linear: f64 = step.iter().zip(&slope).map(|(d, g)| d * g).sum();
                let square: f64 = step.iter().map(|d| d * d).sum();
                if value(&next) <= there + linear + square / (2.0 * rate) + 1e-15 || rate < 1e-15 {
                    break next;
                }
                rate *= 0.5;
            };
            let reached = value(&next);
            let again = reached > best;
            let following = if again {
                1.0
            } else {
                0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt())
            };
            let pull = if again {
                0.0
            } else {
                (momentum - 1.0) / following
            };
            ahead = next
                .iter()
                .zip(&now)
                .map(|(n, o)| n + pull * (n - o))
                .collect();
            (now, momentum, best) = (next, following, best.min(reached));
            rate = (rate * 1.1).min(1e6);
            if round % 50 == 49 {
                let slope = gradient(&now);
                let here: f64 = slope.iter().zip(&now).map(|(g, w)| g * w).sum();
                let least = slope.iter().copied().fold(f64::INFINITY, f64::min);
                if here - least <= tolerance {
                    return best;
                }
            }
        }
        panic!("projected gradient did not converge");
    }
}

/// The nearest point whose coordinates are at least 0 and sum to 1.
fn onto_simplex(point: &[f64]) -> Vec<f64> {
    let mut sorted = point.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (k, x) in sorted.iter().enumerate() {
        sum += x;
        let candidate = (sum - 1.0) / (k + 1) as f64;
        if x - candidate > 0.0 {
            shift = candidate;
        }
    }
    point.iter().map(|x| (x - shift).max(0.0)).collect()
}

/// Few rows and features.
fn tiny() -> impl Strategy<Value = Tiny> {
    of_size(3..8)
}

/// Few rows, and now and then so many features that they fill several blocks of columns.
fn tiny_or_wide() -> impl Strategy<Value = Tiny> {
    prop_oneof![2 => of_size(3..8), 1 => of_size(2 * COLUMNS..3 * COLUMNS)]
}

/// Values of both signs, many zeros, weights for some triplets, rows that pair with themselves.
fn of_size(n_features: std::ops::Range<usize>) -> impl Strategy<Value = Tiny> {
    (3usize..8, n_features).prop_flat_map(|(n, d)| {
        let value = prop_oneof![3 => Just(0.0), 2 => 0.1f64..2.0, 1 => -1.5f64..-0.1];
        let dense = prop::collection::vec(prop::collection::vec(value, d), n);
        let triplet = (
            0..n as u32,
            0..n as u32,
            0..n as u32,
            prop_oneof![Just(1.0), 0.2f64..3.0],
        );
        let triplets = prop::collection::vec(triplet, 1..25);
        let beta = prop_oneof![Just(0.0), 0.01f64..3.0];
        // Base margins beyond every breakpoint, and at each.
        let margin = prop_oneof![4 => -3.0f64..3.0, 1 => Just(0.0), 1 => Just(1.0)];
        let margins = prop::option::of(prop::collection::vec(margin, 25));
        (dense, triplets, 0.1f64..20.0, beta, margins).prop_filter_map(
            "two features and a triplet",
            |(dense, list, scale, beta, margins)| {
                let mut triplets = Triplets::new();
                for (a, n, f, w) in list {
                    if n != f {
                        triplets.push_weighted(a, n, f, w);
                    }
                }
                let tiny = Tiny {
                    dense,
                    given_base: margins.map(|margins| margins[..triplets.len()].to_vec()),
                    triplets,
                    scale,
                    beta,
                };
                let empty = tiny.dense.iter().flatten().all(|&x| x == 0.0);
                (!empty && !tiny.triplets.is_empty()).then_some(tiny)
            },
        )
    })
}

fn any_loss() -> impl Strategy<Value = LossKind> {
    prop::sample::select(LossKind::ALL.to_vec())
}

/// The losses that are updated incrementally.
fn hinges() -> Vec<LossKind> {
    let all = LossKind::ALL.into_iter();
    all.filter(|loss| loss.segments().is_some()).collect()
}

fn any_rule() -> impl Strategy<Value = StepRule> {
    prop::sample::select(StepRule::ALL.to_vec())
}

fn params(tiny: &Tiny) -> SolverParams {
    SolverParams {
        base: tiny.beta,
        ..SolverParams::new(tiny.scale)
    }
}

pub(super) fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// A few vectors with entries in [-1, 1], of which the first are mostly 0.
fn random_vectors(n_features: usize) -> Vec<Vec<f64>> {
    let mut rng = random::rng(1, 1);
    let mut entry = |one_in| match random::below(&mut rng, one_in) {
        0 => random::below(&mut rng, 2_001) as f64 / 1e3 - 1.0,
        _ => 0.0,
    };
    [n_features, 2, 1, 1]
        .map(|one_in| (0..n_features).map(|_| entry(one_in)).collect())
        .to_vec()
}

/// xᵀ M x from the entries of M.
fn quadratic_form(matrix: &[(u32, u32, f64)], x: &[f64]) -> f64 {
    let products = matrix
        .iter()
        .map(|&(i, j, m)| m * x[i as usize] * x[j as usize]);
    products.sum()
}

/// xᵀ M x in closed form: λ Σ α_B (x_i ± x_j)².
fn square_form(scale: f64, active: &ActiveSet, x: &[f64]) -> f64 {
    let square = |(atom, weight): (Atom, f64)| {
        let z = x[atom.i() as usize] + atom.sign().value() * x[atom.j() as usize];
        weight * z * z
    };
    scale * active.iter().map(square).sum::<f64>()
}

/// The features and values of a row, as the solver numbers features.
fn entries(problem: &Problem<'_>, row: u32) -> Vec<(u32, f64)> {
    let row = problem.rows.row(row as usize);
    let places = row.indices().iter().enumerate();
    places.map(|(k, &j)| (j, row.values().at(k))).collect()
}

/// The atom as the solver numbers features.
fn inside(problem: &Problem<'_>, atom: Atom) -> Option<Atom> {
    problem.features.internal(&[atom]).map(|found| found[0])
}

/// A convex combination of a few atoms of the problem, as the solver numbers features.
fn some_active(problem: &Problem<'_>, picks: &[usize]) -> ActiveSet {
    let n = problem.n_columns();
    let pick = |&pick: &usize| {
        let (i, by) = (pick % n, 1 + pick / n % (n - 1));
        let sign = if pick % 2 == 0 {
            Sign::Plus
        } else {
            Sign::Minus
        };
        Atom::new(i as u32, ((i + by) % n) as u32, sign).unwrap()
    };
    let mut chosen: Vec<Atom> = picks.iter().map(pick).collect();
    chosen.sort();
    chosen.dedup();
    let total: f64 = (1..=chosen.len()).map(|k| k as f64).sum();
    let weighted: Vec<_> = chosen
        .iter()
        .enumerate()
        .map(|(k, &a)| (a, (k + 1) as f64 / total))
        .collect();
    ActiveSet::from_weighted(&weighted).unwrap()
}

/// H = Xᵀ C X from every pair of rows and its coefficient in C.
fn dense_h(
    problem: &Problem<'_>,
    each_pair: impl FnOnce(&mut dyn FnMut(u32, u32, f64)),
) -> Vec<Vec<f64>> {
    let columns = problem.n_columns();
    let mut h = vec![vec![0.0; columns]; columns];
    each_pair(&mut |p, q, c| {
        for (i, x) in entries(problem, p) {
            for (j, y) in entries(problem, q) {
                h[i as usize][j as usize] += c * x * y;
                h[j as usize][i as usize] += c * x * y;
            }
        }
    });
    h
}

/// H at an iterate by its definition: a triplet has its gradient weight on {anchor, near}, and minus that on {anchor, far}.
pub(super) fn h_by_definition(problem: &Problem<'_>, active: &ActiveSet) -> Vec<Vec<f64>> {
    dense_h(problem, |visit| {
        for (t, margin) in problem.margins(active).into_iter().enumerate() {
            let (a, near, far) = problem.triplets.get(t);
            let slope = with_loss!(problem.loss, loss => loss.slope(margin));
            let weight = -problem.triplets.weight(t) * slope;
            visit(a, near, weight);
            visit(a, far, -weight);
        }
    })
}

/// That D, and the best partner of every feature, are those of this H.
fn assert_reads(gradient: &mut SymmetrizedGradient<'_>, h: &[Vec<f64>], what: &str) {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-8 * (1.0 + b.abs());
    let diagonal = gradient.diagonal();
    assert_eq!(diagonal.len(), h.len());
    for i in 0..h.len() {
        let d = 0.5 * h[i][i];
        assert!(
            near(diagonal[i], d),
            "{what}: D_{i} is {} instead of {d}",
            diagonal[i]
        );
        let score = |j: usize| d + 0.5 * h[j][j] + h[i][j].abs();
        let others = (0..h.len()).filter(|&j| j != i);
        let want = others.map(score).fold(f64::NEG_INFINITY, f64::max);
        let found = gradient.best_partner(i as u32, None);
        assert!(
            near(found.1, want),
            "{what}: best with {i}: {found:?} instead of {want}"
        );
        let again = gradient.best_partner(i as u32, Some(found));
        assert!(near(again.1, want), "{what}: above {found:?}: {again:?}");
    }
}

/// The gradient computed anew over all triplets.
fn recomputed<'p>(problem: &'p Problem<'p>) -> Recomputed<'p, AllMargins<'p>> {
    Recomputed::new(problem, None, CancelToken::NEVER).unwrap()
}

/// Mini-batches, with all margins updated incrementally.
fn batches<'p>(problem: &'p Problem<'p>, size: Option<usize>) -> Recomputed<'p, StoredMargins<'p>> {
    Recomputed::new(problem, size, CancelToken::NEVER).unwrap()
}

fn incremental<'p>(problem: &'p Problem<'p>) -> Incremental<'p> {
    Incremental::new(problem, CancelToken::NEVER).unwrap()
}

/// In shards, and in parallel however little there is to do.
pub(super) fn in_shards<'p>(problem: &'p Problem<'p>, n_shards: usize) -> Incremental<'p> {
    Incremental::in_shards(problem, n_shards, 0, CancelToken::NEVER).unwrap()
}

/// That the exact search finds an atom with this score, whatever it starts from and however the work is cut up.
fn assert_finds<'p, E: LocalEngine<'p>>(engine: &mut E, active: &ActiveSet, best: f64) {
    engine.start_at(active.clone());
    engine.refresh_all();
    let gradient = engine.gradient();
    for start in [
        lmo::alternating(gradient, 0).unwrap(),
        gradient.best_partner(1, None),
    ] {
        for mut exact in [lmo::Exact::default(), lmo::Exact::in_small_pieces()] {
            let found = exact.best(gradient, start);
            assert!(
                close(found.1, best, 1e-9),
                "found {} of {best} from {}",
                found.1,
                start.1
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Eq. 2: gains of all atoms, by rows of H and as active atoms, against differences of f.
    #[test]
    fn gains_are_the_derivatives_of_the_objective(tiny in tiny(), kind in any_loss(), picks in prop::collection::vec(0usize..1000, 1..6)) {
        let rows = tiny.rows();
        let problem = tiny.problem(&rows, kind);
        let active = some_active(&problem, &picks);
        let outside: Vec<_> = active.iter().map(|(a, w)| (problem.features.external(a), w)).collect();
        let margins = problem.margins(&active);
        prop_assert!(close(problem.value(&margins), tiny.objective(&outside, kind), 1e-10));
        let mut engine = recomputed(&problem);
        engine.start_at(active.clone());
        engine.refresh_all();
        let gradient = engine.gradient();
        let (d, h) = (gradient.diagonal(), dense_h(&problem, |visit| gradient.each_pair(visit)));
        let score = |atom: Atom| {
            let (i, j) = (atom.i() as usize, atom.j() as usize);
            d[i] + d[j] + atom.sign().value() * h[i][j]
        };
        let base: f64 = outside.iter().map(|w| w.1).sum();
        prop_assert!((base - 1.0).abs() < 1e-12);
        for atom in tiny.atoms() {
            // Two features that are in no row stand for the others.
            let Some(inside) = inside(&problem, atom) else {
                continue;
            };
            let step = 1e-6 / (1.0 + tiny.scale * 10.0);
            let moved = |by: f64| {
                let mut all = outside.clone();
                all.push((atom, by));
                tiny.objective(&all, kind)
            };
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            let gain = gradient.gain(score(inside));
            // Kinks in ℓ' make the difference inexact there; scale and step keep it small.
            let rounding = 10.0 * f64::EPSILON * moved(0.0) / step;
            prop_assert!(
                (gain + slope).abs() <= 2e-4 * (1.0 + gain.abs()) + rounding,
                "{atom:?}: {gain} against {}", -slope
            );
        }
        let (scores, mut of_model) = (gradient.active_scores(), 0.0);
        prop_assert_eq!(scores.len(), active.len());
        for ((atom, weight), found) in active.iter().zip(scores) {
            prop_assert!(close(found, score(atom), 1e-9));
            of_model += weight * gradient.gain(score(atom));
        }
        prop_assert!(close(of_model, gradient.gain_of_model(), 1e-9));
    }

    /// Exact search is the maximum over all atoms.
    #[test]
    fn exact_search_agrees_with_brute_force(tiny in tiny_or_wide(), kind in any_loss(), picks in prop::collection::vec(0usize..1000, 1..6)) {
        let rows = tiny.rows();
        let problem = tiny.problem(&rows, kind);
        let active = some_active(&problem, &picks);
        let best = tiny.best_score(&problem.margins(&active), kind);
        assert_finds(&mut recomputed(&problem), &active, best);
        if kind.segments().is_some() {
            assert_finds(&mut incremental(&problem), &active, best);
            assert_finds(&mut in_shards(&problem, 3), &active, best);
        }
    }

    /// Of equal atoms the first in the caller's order, in sums of whole numbers, where ties are common and exact.
    #[test]
    fn exact_search_settles_ties_like_brute_force(tiny in tiny()) {
        let whole = Tiny {
            dense: tiny.dense.iter().map(|row| row.iter().map(|x| x.round()).collect()).collect(),
            beta: 0.0,
            ..tiny.unweighted().with_similarity()
        };
        if whole.dense.iter().flatten().all(|&x| x == 0.0) {
            return Ok(());
        }
        let rows = whole.rows();
        let problem = Problem::new(&rows, &whole.triplets, whole.scale, LossKind::SmoothedHinge).unwrap();
        // At M = 0 every gradient weight is 1. Of features that are in no row only two take part.
        let score = |atom: Atom| -> f64 { (0..whole.triplets.len()).map(|t| whole.unscaled_margin(t, atom)).sum() };
        let mut first: Option<(Atom, f64)> = None;
        for atom in whole.atoms().into_iter().filter(|&atom| inside(&problem, atom).is_some()) {
            if first.is_none_or(|first| score(atom) > first.1) {
                first = Some((atom, score(atom)));
            }
        }
        let first = first.unwrap();
        for mut exact in [lmo::Exact::default(), lmo::Exact::in_small_pieces()] {
            let start = (inside(&problem, *whole.atoms().last().unwrap()), f64::NEG_INFINITY);
            let start = (start.0.unwrap_or(Atom::plus(0, 1).unwrap()), start.1);
            let mut full = recomputed(&problem);
            full.refresh_all();
            let found = exact.best(full.gradient(), start);
            prop_assert_eq!((problem.features.external(found.0), found.1), first);
            let found = exact.best(incremental(&problem).gradient(), start);
            prop_assert_eq!((problem.features.external(found.0), found.1), first);
        }
    }

    /// Weights, trace, PSD, Lemma 1's counts and bound, decreasing objective, along whole runs of every kind.
    #[test]
    fn iterates_stay_in_the_domain(tiny in tiny_or_wide(), kind in any_loss(), rule in any_rule(), exact in any::<bool>(), steps in 1usize..40) {
        let tiny = tiny.with_similarity();
        let rows = tiny.rows();
        let search = if exact { Search::Exact } else { Search::Alternating };
        let solver = SolverParams { loss: kind, steps: rule, search, max_iter: steps, ..params(&tiny) }.build().unwrap();
        let mut last = f64::INFINITY;
        let mut problems = Vec::new();
        let run = solver.fit(&rows, &tiny.triplets, &mut |event: &Event<'_>| {
            let Event::Iteration(now, active) = event else { panic!("{event:?}") };
            let sum: f64 = active.weights().sum();
            if (sum - 1.0).abs() > 1e-9 || active.weights().any(|w| w <= 0.0) {
                problems.push(format!("weights {:?}", active.weights().collect::<Vec<_>>()));
            }
            if active.len() > now.iter + 1 || active.n_features() > 2 * (now.iter + 1) {
                problems.push(format!("{} atoms at iteration {}", active.len(), now.iter));
            }
            if now.objective > last * (1.0 + 1e-9) + 1e-12 {
                problems.push(format!("objective rose from {last} to {}", now.objective));
            }
            last = now.objective;
            ControlFlow::Continue(())
        }).unwrap();
        prop_assert!(problems.is_empty(), "{problems:?}");
        for point in &run.trace {
            prop_assert!(point.gap.value() >= -1e-9 * (1.0 + point.objective), "gap {:?}", point.gap);
            prop_assert_eq!(point.gap.is_certified(), exact || point.objective == 0.0);
        }
        prop_assert_eq!(run.trace.len(), run.path.len() + 1);
        for k in [0, run.path.len() / 2, run.path.len()] {
            let active = run.path.at(k).unwrap();
            let weighted: Vec<_> = active.iter().collect();
            prop_assert!(close(tiny.objective(&weighted, kind), run.trace[k].objective, 1e-9));
            let model = BilinearModel::from_active(rows.n_features(), tiny.scale, &active).unwrap();
            prop_assert!(close(model.trace(), 2.0 * tiny.scale, 1e-9));
            for vector in random_vectors(rows.n_features()) {
                let (form, closed) = (quadratic_form(&model.matrix(), &vector), square_form(tiny.scale, &active, &vector));
                prop_assert!(closed >= 0.0 && form >= -1e-9 * (1.0 + tiny.scale), "xᵀ M x = {form}");
                prop_assert!((form - closed).abs() <= 1e-9 * (1.0 + tiny.scale), "{form} against {closed}");
            }
            prop_assert!(model.matrix().len() <= 4 * (k + 1));
        }
        prop_assert_eq!(run.path.at(run.path.len()).unwrap(), run.active);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A certified gap bounds the distance to the optimum, which an algorithm of another kind finds too; Lemma 1.
    #[test]
    fn certified_gap_and_lemma_1_bound_the_suboptimality(tiny in tiny(), rule in any_rule()) {
        let tiny = tiny.with_similarity();
        let rows = tiny.rows();
        let solver = SolverParams { search: Search::Exact, steps: rule, max_iter: 60, ..params(&tiny) }.build().unwrap();
        let run = solver.fit(&rows, &tiny.triplets, &mut ()).unwrap();
        let long = SolverParams { search: Search::Exact, max_iter: 1500, tolerance: Some(1e-7), ..params(&tiny) }.build().unwrap();
        let optimum = long.fit(&rows, &tiny.triplets, &mut ()).unwrap();
        let other = tiny.optimum_by_projected_gradient(LossKind::SmoothedHinge, 1e-5);
        prop_assert!(optimum.objective() <= other + optimum.gap().value() + 1e-9, "{optimum:?} against {other}");
        prop_assert!(other - optimum.objective() <= 1e-4, "{} against {other}", optimum.objective());
        let best = optimum.objective().min(other);
        let lipschitz = {
            let total: f64 = (0..tiny.triplets.len()).map(|t| tiny.triplets.weight(t)).sum();
            let square = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>();
            (0..tiny.triplets.len()).map(|t| {
                let (a, n, f) = tiny.triplets.get(t);
                let diff: Vec<f64> = tiny.dense[n as usize].iter().zip(&tiny.dense[f as usize]).map(|(y, z)| y - z).collect();
                tiny.triplets.weight(t) * square(&tiny.dense[a as usize]) * square(&diff)
            }).sum::<f64>() / total
        };
        for (k, point) in run.trace.iter().enumerate() {
            prop_assert!(point.objective - best <= point.gap.value() + 1e-9, "iterate {k}: {point:?}, optimum {best}");
            if k >= 1 {
                prop_assert!(point.objective - best <= 16.0 * lipschitz * tiny.scale.powi(2) / (k + 2) as f64 + 1e-12);
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A batch that leaves out one triplet: the rates it estimates, by the definition, and the best partners it finds, by trying
    /// each under its own sums over pairs.
    #[test]
    fn batches_estimate_and_search_correctly(tiny in tiny_or_wide(), first in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let (rows, n, kind) = (tiny.rows(), tiny.triplets.len(), LossKind::SmoothedHinge);
        prop_assume!(n >= 2);
        let problem = tiny.problem(&rows, kind);
        let known: Vec<Atom> = tiny.atoms().into_iter().filter(|&atom| inside(&problem, atom).is_some()).collect();
        let first = known[first.index(known.len())];
        let mut engine = batches(&problem, Some(n - 1));
        engine.start_at(ActiveSet::single(inside(&problem, first).unwrap()));
        let mut rng = random::rng(seed, 0);

        let inside: Vec<Atom> = known.iter().map(|&atom| inside(&problem, atom).unwrap()).collect();
        let rates = engine.reestimated_rates(&inside, &mut rng).unwrap();
        let margin = |t: usize| tiny.atom_margin(t, first);
        let slope = |t: usize| with_loss!(kind, loss => loss.slope(tiny.base_margin(t) + margin(t)));
        let weight = |t: usize| -tiny.triplets.weight(t) * slope(t);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
        let left_out = |out: usize| {
            let over = |of: &dyn Fn(usize) -> f64| -> f64 { (0..n).filter(|&t| t != out).map(of).sum() };
            let total = over(&|t| tiny.triplets.weight(t));
            known.iter().zip(&rates).all(|(&atom, &rate)| {
                let rate_of = |t: usize| weight(t) * (tiny.atom_margin(t, atom) - margin(t));
                close(over(&rate_of) / total, rate)
            })
        };
        prop_assert_eq!(rates.len(), known.len());
        prop_assert!((0..n).any(left_out), "{:?}", rates);

        engine.refresh(&mut rng);
        let gradient = engine.gradient();
        let h = dense_h(&problem, |visit| gradient.each_pair(visit));
        assert_reads(gradient, &h, "batch");
        let scores = gradient.active_scores();
        let want = |atom: &Atom| {
            let (i, j) = (atom.i() as usize, atom.j() as usize);
            0.5 * (h[i][i] + h[j][j]) + atom.sign().value() * h[i][j]
        };
        let wanted = gradient.active().atoms().iter().map(want);
        prop_assert!(worst_difference(scores, wanted) < 1e-9);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The incremental state against the recomputed one after a few steps of any kind, and after warm starts.
    #[test]
    fn incremental_state_is_correct_after_any_steps(tiny in tiny_or_wide(), rule in any_rule(), exact in any::<bool>(), loss in prop::sample::select(hinges()), steps in 0usize..12) {
        let rows = tiny.rows();
        let search = if exact { Search::Exact } else { Search::Alternating };
        let params = SolverParams { steps: rule, search, ..params(&tiny) };
        let problem = tiny.problem(&rows, loss);
        let (mut engine, _) = walk(incremental(&problem), &params, steps);
        let reached = engine.gradient().active().clone();
        engine.start_at(reached);
        assert_state_is_correct(engine, "start");
        let (engine, _) = walk(incremental(&problem), &params, steps);
        assert_state_is_correct(engine, "run");
    }

    /// Batches: valid iterates, the same for the same seed, never a certified gap.
    #[test]
    fn batches_descend_and_repeat(tiny in tiny_or_wide(), size in 1usize..6, seed in any::<u64>(), exact in any::<bool>()) {
        let tiny = tiny.with_similarity();
        let rows = tiny.rows();
        let search = if exact { Search::Exact } else { Search::Alternating };
        let fit = || {
            let solver = SolverParams { batch: Some(size), seed, search, max_iter: 20, ..params(&tiny) }.build().unwrap();
            solver.fit(&rows, &tiny.triplets, &mut ()).unwrap()
        };
        let (one, two) = (fit(), fit());
        prop_assert_eq!(&one.path, &two.path);
        prop_assert!(one.trace.windows(2).all(|w| w[1].objective <= w[0].objective + 1e-12));
        if size < tiny.triplets.len() {
            prop_assert!(one.trace.iter().all(|p| !p.gap.is_certified() || p.objective == 0.0));
        }
    }
}

/// Text-like rows of two classes, large enough for thousands of steps of every kind.
pub(super) fn wordy(n: usize, d: usize, seed: u64) -> (Rows, Triplets) {
    let mut rng = random::rng(seed, 77);
    let mut rows = Rows::new(d);
    for r in 0..n {
        let mut row: Vec<u32> = (0..12)
            .map(|_| {
                let u = random::below(&mut rng, 1_000_000) as f64 / 1e6;
                ((d as f64).powf(u) - 1.0) as u32
            })
            .map(|i| (i + if r % 2 == 0 { 0 } else { (i % 3 == 0) as u32 }).min(d as u32 - 1))
            .collect();
        row.sort_unstable();
        row.dedup();
        let values: Vec<f64> = row
            .iter()
            .map(|_| (1 + random::below(&mut rng, 9)) as f64 / 9.0)
            .collect();
        rows.push(crate::SparseRow::new(&row, &values));
    }
    let mut triplets = Triplets::new();
    for a in 0..n as u32 {
        for _ in 0..10 {
            let near = 2 * random::below(&mut rng, n / 2) as u32 + a % 2;
            let far = 2 * random::below(&mut rng, n / 2) as u32 + 1 - a % 2;
            triplets.push(a, near, far);
        }
    }
    (rows, triplets)
}

/// Runs Alg. 1 on an engine.
fn run_on<'p>(
    engine: &mut impl LocalEngine<'p>,
    oracle: &mut Oracle,
    params: &SolverParams,
) -> Run {
    let clock = &mut Stopwatch::start();
    frank_wolfe(engine, oracle, None, None, params, clock, &mut ()).unwrap()
}

/// The engine after so many steps of Alg. 1, if it takes as many, and how many were away, drop and any steps.
fn walk<'p, E: LocalEngine<'p>>(
    mut engine: E,
    params: &SolverParams,
    n_steps: usize,
) -> (E, [usize; 3]) {
    let params = &SolverParams {
        max_iter: n_steps,
        ..params.clone()
    };
    let path = run_on(&mut engine, &mut Oracle::new(params), params).path;
    let count = |is: fn(&Step) -> bool| path.steps().iter().filter(|step| is(step)).count();
    let aways = count(|step| matches!(step, Step::Away { .. }));
    let drops = count(|step| matches!(step, Step::Drop { .. } | Step::Swap { .. }));
    (engine, [aways, drops, path.len()])
}

/// The largest relative difference; infinite if the lengths differ or a value is not a number.
fn worst_difference(a: impl IntoIterator<Item = f64>, b: impl IntoIterator<Item = f64>) -> f64 {
    let (a, b): (Vec<f64>, Vec<f64>) = (a.into_iter().collect(), b.into_iter().collect());
    if a.len() != b.len() || a.iter().chain(&b).any(|x| x.is_nan()) {
        return f64::INFINITY;
    }
    let differences = a
        .iter()
        .zip(&b)
        .map(|(a, b)| (a - b).abs() / (1.0 + a.abs()));
    differences.fold(0.0, f64::max)
}

/// The whole state of an engine, against margins and sums by their definition at the same iterate.
fn assert_state_is_correct<'p, E: LocalEngine<'p>>(mut engine: E, what: &str) {
    let objective = engine.objective();
    let gradient = engine.gradient();
    let (problem, active) = (gradient.problem(), gradient.active().clone());
    let h = h_by_definition(problem, &active);
    let value = problem.value(&problem.margins(&active));
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + value);
    assert!(near(objective, value), "{what}: objective");
    let score = |atom: Atom| {
        let (i, j) = (atom.i() as usize, atom.j() as usize);
        0.5 * (h[i][i] + h[j][j]) + atom.sign().value() * h[i][j]
    };
    let gain: f64 = active.iter().map(|(atom, w)| w * score(atom)).sum();
    let gain = problem.lambda * gain / problem.total_weight;
    let found = gradient.gain_of_model();
    assert!(near(found, gain), "{what}: gain of M {found} for {gain}");
    let mut fresh = recomputed(problem);
    fresh.start_at(active.clone());
    fresh.refresh_all();
    for gradient in [gradient, fresh.gradient()] {
        let scores = active.atoms().iter().map(|&atom| score(atom));
        let s = worst_difference(gradient.active_scores(), scores);
        assert!(s < 1e-8, "{what}: scores drifted by {s}");
        assert_reads(gradient, &h, what);
    }
    let sum: f64 = active.weights().sum();
    assert!((sum - 1.0).abs() < 1e-9, "{what}: weights sum to {sum}");
}

/// The margins in the order of anchors.
fn margins_of(engine: &Incremental<'_>) -> Vec<f64> {
    let shards = engine.gradient.margins.shards.iter();
    let margins = shards.map(|shard| &shard.margins);
    margins
        .flat_map(|margins| (0..margins.len()).map(|t| margins.get(t)))
        .collect()
}

/// The margins of so many triplets by number.
fn by_triplet<'p>(margins: &impl MarginSource<'p>, n: usize) -> Vec<f64> {
    let mut by_triplet = vec![f64::NAN; n];
    for (t, margin) in (0..n).map(|position| margins.at(position)) {
        by_triplet[t as usize] = margin.total;
    }
    by_triplet
}

#[test]
fn running_margins_match_recomputed_ones_after_thousands_of_steps() {
    let (rows, triplets) = wordy(200, 300, 5);
    let mut long = 0;
    for (scale, base) in [
        (50.0, 0.0),
        (200.0, 0.0),
        (1e6, 0.0),
        (50.0, 0.5),
        (200.0, 5.0),
        (1e6, 1.0),
    ] {
        for rule in StepRule::ALL {
            let params = SolverParams {
                steps: rule,
                ..SolverParams::new(scale)
            };
            let problem = |loss| {
                let problem = Problem::new(&rows, &triplets, scale, loss).unwrap();
                problem.with_base(Base::new(base))
            };
            let smoothed = problem(LossKind::SmoothedHinge);
            let (mut full, [aways, drops, taken]) = walk(recomputed(&smoothed), &params, 2200);
            if rule == StepRule::Away {
                long += usize::from(aways > 200 && drops > 20 && taken > 2000);
            }
            let drift = worst_difference(
                by_triplet(&full.margins, triplets.len()),
                smoothed.margins(full.gradient().active()),
            );
            assert!(
                drift < 1e-9,
                "recomputed state drifted by {drift} after {taken} {rule} steps at scale {scale}, base {base}"
            );
            for loss in hinges() {
                let problem = problem(loss);
                let (mut engine, [.., taken]) = walk(incremental(&problem), &params, 2200);
                // The triplets of `wordy` are sorted by anchor, which is the order the engine keeps them in.
                let drift = worst_difference(
                    margins_of(&engine),
                    problem.margins(engine.gradient().active()),
                );
                assert!(
                    drift < 1e-9,
                    "{loss} drifted by {drift} after {taken} {rule} steps at scale {scale}, base {base}"
                );
                assert_state_is_correct(
                    engine,
                    &format!("{loss}, {rule}, scale {scale}, base {base}, {taken} steps"),
                );
            }
        }
    }
    assert!(
        long > 0,
        "no run took thousands of steps, away and drop steps among them"
    );
}

pub(super) fn run<'p>(mut engine: impl LocalEngine<'p>, params: &SolverParams) -> Run {
    run_on(&mut engine, &mut Oracle::new(params), params)
}

#[test]
fn stored_margins_are_those_of_the_triplets_in_any_order_and_any_shards() {
    let (rows, sorted) = wordy(120, 300, 6);
    let mut order: Vec<u32> = (0..sorted.len() as u32).collect();
    random::shuffle(&mut random::rng(7, 7), &mut order);
    let mut triplets = Triplets::new();
    for &t in &order {
        let (anchor, near, far) = sorted.get(t as usize);
        triplets.push_weighted(anchor, near, far, 1.0 + f64::from(t % 3));
    }
    for (rule, n_shards, base) in [
        (StepRule::Decrease, 2, 0.0),
        (StepRule::Away, 1, 0.0),
        (StepRule::Away, 3, 0.5),
        (StepRule::Pairwise, 4, 2.0),
    ] {
        let params = SolverParams {
            steps: rule,
            ..SolverParams::new(100.0)
        };
        let problem = Problem::new(&rows, &triplets, 100.0, LossKind::SmoothedHinge).unwrap();
        let problem = problem.with_base(Base::new(base));
        let mut engine = batches(&problem, Some(500));
        engine.margins = StoredMargins::in_shards(&problem, n_shards);
        let (mut engine, [aways, ..]) = walk(engine, &params, 1500);
        assert!(aways > 20 || rule != StepRule::Away);
        let want = problem.margins(engine.gradient().active());
        let margins = by_triplet(&engine.margins, triplets.len());
        assert!(worst_difference(margins, want.iter().copied()) < 1e-9);
        assert!(close(engine.objective(), problem.value(&want), 1e-9));
        engine.refresh_all();
        assert_state_is_correct(engine, "batches");
    }
}

/// The same path, by sums in another order: same steps, γ to rounding.
pub(super) fn assert_same_path(one: &Run, other: &Run) {
    assert_eq!(one.path.start(), other.path.start());
    assert_eq!(one.path.len(), other.path.len());
    for (k, (a, b)) in one.path.steps().iter().zip(other.path.steps()).enumerate() {
        let same = match (*a, *b) {
            (Step::Forward { atom: a, gamma: g }, Step::Forward { atom: b, gamma: h })
            | (Step::Away { atom: a, gamma: g }, Step::Away { atom: b, gamma: h }) => {
                a == b && close(g, h, 1e-7)
            }
            (a, b) => a == b,
        };
        assert!(same, "step {k}: {a:?} against {b:?}");
    }
    assert!(close(one.objective(), other.objective(), 1e-9));
}

/// The faster engine for these settings takes the path of the recomputed one.
fn assert_takes_the_recomputed_path(
    rows: &Rows,
    triplets: &Triplets,
    params: &SolverParams,
    loss: LossKind,
) {
    let params = &SolverParams {
        loss,
        ..params.clone()
    };
    let problem = Problem::new(rows, triplets, params.lambda, loss).unwrap();
    let problem = problem.with_base(Base::new(params.base));
    let fast = match params.batch {
        None => run(incremental(&problem), params),
        batch => run(batches(&problem, batch), params),
    };
    let engine = Recomputed::<AllMargins>::new(&problem, params.batch, CancelToken::NEVER).unwrap();
    assert_same_path(&fast, &run(engine, params));
}

/// Distinct values keep atoms from tying, where the last bit of a sum would decide.
pub(super) fn without_ties(rows: &Rows) -> Rows {
    let mut rng = random::rng(4, 4);
    let values = rows.values().iter();
    let noisy = values.map(|x| x + random::below(&mut rng, 1_000_000) as f64 * 1e-7);
    Rows::from_parts(
        rows.n_features(),
        rows.starts().to_vec(),
        rows.indices().to_vec(),
        noisy.collect(),
    )
    .unwrap()
}

#[test]
fn takes_the_path_of_the_recomputed_state() {
    let (rows, triplets) = wordy(80, 400, 9);
    let rows = without_ties(&rows);
    let mut weighted = Triplets::new();
    for t in 0..triplets.len() {
        let (a, n, f) = triplets.get(t);
        weighted.push_weighted(a, n, f, 0.5 + (t % 7) as f64);
    }
    for loss in hinges() {
        for (scale, base) in [
            (5.0, 0.0),
            (100.0, 0.0),
            (1e4, 0.0),
            (5.0, 1.0),
            (100.0, 0.3),
            (1e4, 0.2),
        ] {
            // Not pairwise: its line search leaves the two atoms with equal gain, and the last bit picks the next. Nor more
            // iterations: the smallest problems are then solved to rounding, which decides on steps of γ = 1e-6.
            for rule in [StepRule::Decrease, StepRule::Away, StepRule::Forward] {
                let params = SolverParams {
                    base,
                    steps: rule,
                    max_iter: 120,
                    ..SolverParams::new(scale)
                };
                assert_takes_the_recomputed_path(&rows, &triplets, &params, loss);
                let batches = SolverParams {
                    batch: Some(triplets.len() / 3),
                    ..params.clone()
                };
                assert_takes_the_recomputed_path(&rows, &triplets, &batches, loss);
                assert_takes_the_recomputed_path(&rows, &weighted, &batches, loss);
                assert_takes_the_recomputed_path(
                    &rows,
                    &weighted,
                    &SolverParams {
                        search: Search::Exact,
                        max_iter: 40,
                        ..params
                    },
                    loss,
                );
            }
        }
    }
}

#[test]
fn shards_and_threads_change_nothing_but_time() {
    let (rows, triplets) = wordy(120, 2000, 3);
    let rows = without_ties(&rows);
    let params = SolverParams {
        max_iter: 300,
        ..SolverParams::new(200.0)
    };
    let problem = Problem::new(&rows, &triplets, params.lambda, LossKind::SmoothedHinge).unwrap();
    let engine = |n_shards, parallel_from| {
        Incremental::in_shards(&problem, n_shards, parallel_from, CancelToken::NEVER).unwrap()
    };
    let fit = |n_shards: usize, parallel_from: usize, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| run(engine(n_shards, parallel_from), &params))
    };
    let plain = fit(1, 0, 1);
    // In parallel: everything, lists of terms for most columns, and such lists for the columns of many rows.
    for (n_shards, parallel_from) in [(1, 0), (3, 0), (5, 0), (3, 2_000), (3, 40_000)] {
        let (one, two) = (
            fit(n_shards, parallel_from, 1),
            fit(n_shards, parallel_from, 2),
        );
        // Bit for bit, γ and objectives included.
        assert_eq!(one.path, two.path);
        let bits = |run: &Run| {
            run.trace
                .iter()
                .map(|p| p.objective.to_bits())
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&one), bits(&two));
        assert_same_path(&one, &plain);
        let (engine, _) = walk(engine(n_shards, parallel_from), &params, 500);
        assert_state_is_correct(engine, &format!("{n_shards} shards"));
    }
}

/// D and H_ij are updated for some thousand changes of pair coefficients at once. A rebuild changes more of them.
#[test]
fn rebuilds_with_many_pairs_are_correct_for_any_number_of_threads() {
    let (rows, own_pairs) = wordy(600, 60, 3);
    let mut shared_pairs = Triplets::new();
    let mut rng = random::rng(3, 78);
    for anchor in 0..150 {
        for _ in 0..200 {
            let [near, far] = [0, 1].map(|_| random::below(&mut rng, 150) as u32);
            shared_pairs.push(anchor, near, far);
        }
    }
    for triplets in [own_pairs, shared_pairs] {
        let params = SolverParams::new(20.0);
        let problem =
            Problem::new(&rows, &triplets, params.lambda, LossKind::SmoothedHinge).unwrap();
        let scores = [1, 2].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let engine = Incremental::new(&problem, CancelToken::NEVER).unwrap();
                let (mut engine, _) = walk(engine, &params, 40);
                let active = engine.gradient.active().clone();
                assert!(active.len() > 5);
                LocalEngine::start_at(&mut engine, active);
                let scores = engine.gradient.active_scores();
                let diagonal = engine.gradient.diagonal();
                assert_state_is_correct(engine, &format!("{threads} threads"));
                [scores, diagonal].concat()
            })
        });
        assert_eq!(scores[0], scores[1]);
    }
}

/// Rows of H tell the best atom of every feature, and so the best of all.
fn assert_exact(gradient: &mut SymmetrizedGradient<'_>, found: Scored) {
    let features = 0..gradient.problem().n_columns() as u32;
    let best = features
        .map(|feature| gradient.best_partner(feature, None).1)
        .fold(f64::NEG_INFINITY, f64::max);
    assert!(close(found.1, best, 1e-9), "{found:?} against {best}");
}

#[test]
fn exact_search_agrees_with_rows_of_h_along_a_run() {
    let (rows, triplets) = wordy(60, 900, 8);
    let signed: Vec<f64> = rows
        .values()
        .iter()
        .enumerate()
        .map(|(k, x)| if k % 3 == 0 { -x } else { *x })
        .collect();
    let signed = Rows::from_parts(
        rows.n_features(),
        rows.starts().to_vec(),
        rows.indices().to_vec(),
        signed,
    )
    .unwrap();
    for rows in [rows, signed] {
        let params = SolverParams {
            search: Search::Exact,
            ..SolverParams::new(100.0)
        };
        let problem = Problem::new(&rows, &triplets, 100.0, LossKind::SmoothedHinge).unwrap();
        for steps in [0, 1, 2, 5, 10, 20, 40, 80] {
            let (mut full, _) = walk(recomputed(&problem), &params, steps);
            let (mut fast, _) = walk(in_shards(&problem, 2), &params, steps);
            full.refresh_all();
            for mut exact in [lmo::Exact::default(), lmo::Exact::in_small_pieces()] {
                let start = lmo::alternating(full.gradient(), 3).unwrap();
                let found = exact.best(full.gradient(), start);
                assert_exact(full.gradient(), found);
                let found = exact.best(fast.gradient(), start);
                assert_exact(fast.gradient(), found);
            }
        }
    }
}

#[test]
fn pieces_and_threads_change_nothing_in_the_exact_search() {
    let (rows, triplets) = wordy(120, 2000, 3);
    let params = SolverParams {
        max_iter: 60,
        search: Search::Exact,
        ..SolverParams::new(200.0)
    };
    let problem = Problem::new(&rows, &triplets, params.lambda, LossKind::SmoothedHinge).unwrap();
    let fit = |threads: usize, exact: lmo::Exact| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let mut oracle = Oracle::with_exact(&params, exact);
        pool.install(|| run_on(&mut incremental(&problem), &mut oracle, &params))
    };
    let one = fit(1, lmo::Exact::default());
    for threads in [1, 2, 3] {
        let other = fit(threads, lmo::Exact::in_small_pieces());
        // Bit for bit, γ and gaps included.
        assert_eq!(one.path, other.path);
        assert_eq!(one.trace, other.trace);
    }
}

#[test]
fn runs_end_for_the_reason_asked_for() {
    let (rows, triplets) = wordy(40, 100, 1);
    let fit = |params: SolverParams| {
        params
            .build()
            .unwrap()
            .fit(&rows, &triplets, &mut ())
            .unwrap()
    };
    assert_eq!(
        fit(SolverParams {
            max_iter: 3,
            ..SolverParams::new(100.0)
        })
        .stop,
        Stop::MaxIter
    );
    let run = fit(SolverParams {
        max_iter: 100_000,
        tolerance: Some(0.02),
        ..SolverParams::new(100.0)
    });
    assert_eq!(run.stop, Stop::Tolerance);
    assert!(run.gap().is_certified() && run.gap().value() <= 0.02);
    let run = fit(SolverParams {
        max_features: Some(7),
        ..SolverParams::new(100.0)
    });
    assert_eq!(run.stop, Stop::FeatureBudget);
    assert!(run.active.n_features() <= 7);
    let run = fit(SolverParams {
        time_limit: Some(Duration::ZERO),
        ..SolverParams::new(100.0)
    });
    assert_eq!((run.stop, run.path.len()), (Stop::TimeLimit, 0));
    let mut left = 5;
    let run = SolverParams::new(100.0)
        .build()
        .unwrap()
        .fit(&rows, &triplets, &mut |_: &Event<'_>| {
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .unwrap();
    assert_eq!((run.stop, run.path.len()), (Stop::ObserverAsked, 5));
    let run = fit(SolverParams {
        max_iter: 30,
        certify: true,
        ..SolverParams::new(100.0)
    });
    assert!(run.gap().is_certified());
}

#[test]
fn going_on_from_a_solution_keeps_its_objective() {
    let (rows, triplets) = wordy(40, 100, 2);
    let solver = SolverParams {
        max_iter: 40,
        ..SolverParams::new(50.0)
    }
    .build()
    .unwrap();
    let first = solver.fit(&rows, &triplets, &mut ()).unwrap();
    let second = solver
        .fit_from(&rows, &triplets, Some(&first.active), &mut ())
        .unwrap();
    assert!((second.trace[0].objective - first.objective()).abs() < 1e-12);
    assert!(second.objective() < first.objective());
}
