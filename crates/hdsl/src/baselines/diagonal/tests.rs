//! The mathematics of the diagonal learner, against definitions, differences and a solver of another kind.

use super::*;
use crate::data::SparseRow;
use crate::objective::loss::{Loss, with_loss};
use crate::observer::Event;
use crate::random;
use crate::similarity::Similarity;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Rows without their zeros.
pub(in crate::baselines) fn to_rows(dense: &[Vec<f64>]) -> Rows {
    let mut rows = Rows::new(dense[0].len());
    for row in dense {
        let stored = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
        let (indices, values): (Vec<u32>, Vec<f64>) = stored.map(|(i, x)| (i as u32, *x)).unzip();
        rows.push(SparseRow::new(&indices, &values));
    }
    rows
}

/// A problem small enough to write out.
#[derive(Clone, Debug)]
pub(super) struct Tiny {
    dense: Vec<Vec<f64>>,
    pub(super) triplets: Triplets,
}

impl Tiny {
    pub(super) fn rows(&self) -> Rows {
        to_rows(&self.dense)
    }

    /// The derivative of the margin of triplet t by the weight of feature i.
    pub(super) fn product(&self, t: usize, i: usize) -> f64 {
        let (anchor, near, far) = self.triplets.get(t);
        let x = |row: u32| self.dense[row as usize][i];
        x(anchor) * (x(near) - x(far))
    }

    pub(super) fn random(n_rows: usize, n_features: usize, n_triplets: usize, seed: u64) -> Self {
        let mut rng = random::rng(seed, 0);
        let dense = (0..n_rows)
            .map(|_| {
                (0..n_features)
                    .map(|_| (random::below(&mut rng, 7) as f64 - 3.0).max(0.0))
                    .collect()
            })
            .collect();
        let mut triplets = Triplets::new();
        while triplets.len() < n_triplets {
            let [a, n, f] = [(); 3].map(|()| random::below(&mut rng, n_rows) as u32);
            if n != f {
                triplets.push(a, n, f);
            }
        }
        Self { dense, triplets }
    }

    fn n_features(&self) -> usize {
        self.dense[0].len()
    }

    /// f, straight from the definition.
    fn loss(&self, kind: LossKind, weights: &[f64]) -> f64 {
        let n = self.triplets.len();
        let sum: f64 = (0..n)
            .map(|t| {
                let m = (0..weights.len())
                    .map(|i| weights[i] * self.product(t, i))
                    .sum();
                self.triplets.weight(t) * with_loss!(kind, loss => loss.value(m))
            })
            .sum();
        sum / self.triplets.total_weight()
    }

    fn objective(&self, params: &Diagonal, weights: &[f64]) -> f64 {
        let omega: f64 = match params.penalty {
            Penalty::L1 => weights.iter().map(|w| w.abs()).sum(),
            Penalty::L2 => weights.iter().map(|w| w * w).sum(),
        };
        self.loss(params.loss, weights) + params.strength * omega
    }

    /// ∂f/∂w_i by the definition.
    fn slope(&self, kind: LossKind, weights: &[f64], i: usize) -> f64 {
        let sum: f64 = (0..self.triplets.len())
            .map(|t| {
                let m = (0..weights.len())
                    .map(|i| weights[i] * self.product(t, i))
                    .sum();
                self.triplets.weight(t)
                    * with_loss!(kind, loss => loss.slope(m))
                    * self.product(t, i)
            })
            .sum();
        sum / self.triplets.total_weight()
    }

    /// The optimum by coordinate descent, each coordinate by bisection of its derivative.
    fn optimum_by_coordinates(&self, params: &Diagonal, rounds: usize) -> f64 {
        let mut weights = vec![0.0; self.n_features()];
        for _ in 0..rounds {
            for i in 0..weights.len() {
                // The derivative to the right of a point; convex, so it never falls.
                let mut right = |at: f64| {
                    weights[i] = at;
                    let own = match params.penalty {
                        Penalty::L1 if at >= 0.0 => params.strength,
                        Penalty::L1 => -params.strength,
                        Penalty::L2 => 2.0 * params.strength * at,
                    };
                    self.slope(params.loss, &weights, i) + own
                };
                let mut low = if params.non_negative { 0.0 } else { -1e3 };
                let mut high = 1e3;
                if right(low) < 0.0 {
                    for _ in 0..100 {
                        let middle = 0.5 * (low + high);
                        match right(middle) < 0.0 {
                            true => low = middle,
                            false => high = middle,
                        }
                    }
                } else {
                    high = low;
                }
                weights[i] = high;
            }
        }
        self.objective(params, &weights)
    }
}

pub(super) fn tiny() -> impl Strategy<Value = Tiny> {
    (2usize..5, 3usize..6).prop_flat_map(|(n_features, n_rows)| {
        let value = prop_oneof![2 => Just(0.0), 2 => -2.0..2.0, 1 => Just(1.0)];
        let rows = prop::collection::vec(prop::collection::vec(value, n_features), n_rows);
        let row = 0..n_rows as u32;
        let triplet = (row.clone(), row.clone(), row, 0.5f64..3.0);
        (rows, prop::collection::vec(triplet, 1..12), any::<bool>()).prop_filter_map(
            "there is a value and a triplet",
            |(dense, list, weighted)| {
                let mut triplets = Triplets::new();
                for (a, n, f, weight) in list.into_iter().filter(|t| t.1 != t.2) {
                    triplets.push_weighted(a, n, f, if weighted { weight } else { 1.0 });
                }
                let some = dense.iter().flatten().any(|&x| x != 0.0);
                (some && !triplets.is_empty()).then_some(Tiny { dense, triplets })
            },
        )
    })
}

fn settings() -> impl Strategy<Value = Diagonal> {
    (
        prop::sample::select(Penalty::ALL.to_vec()),
        -3.0f64..0.5,
        prop::sample::select(LossKind::ALL.to_vec()),
        any::<bool>(),
    )
        .prop_map(|(penalty, exponent, loss, non_negative)| Diagonal {
            loss,
            non_negative,
            ..diagonal(penalty, 10f64.powf(exponent))
        })
}

fn diagonal(penalty: Penalty, strength: f64) -> Diagonal {
    Diagonal {
        penalty,
        strength,
        ..Diagonal::default()
    }
}

fn dense_weights(model: &DiagonalModel) -> Vec<f64> {
    (0..model.n_features() as u32)
        .map(|i| model.weight(i))
        .collect()
}

proptest! {
    #[test]
    fn the_optimum_agrees_with_coordinate_descent(tiny in tiny(), params in settings()) {
        let fit = Diagonal { tolerance: 1e-6, max_iter: 100_000, ..params.clone() }
            .fit(None, &tiny.rows(), &tiny.triplets, &mut ()).unwrap();
        prop_assert!(fit.stop == Stop::Tolerance, "{:?} {} of {}", fit.stop, fit.last.gap, fit.last.objective);
        let weights = dense_weights(&fit.model);
        let here = tiny.objective(&params, &weights);
        prop_assert!((fit.last.objective - here).abs() < 1e-9 * (1.0 + here), "{} {here}", fit.last.objective);
        let other = tiny.optimum_by_coordinates(&params, 300);
        // Never better than proved possible, and never better by more than the tolerance.
        prop_assert!(here - fit.last.gap <= other + 1e-9 && here <= other + 1e-6 * here, "{here} {other}");
    }

    #[test]
    fn every_gap_on_the_way_is_a_bound(tiny in tiny(), params in settings()) {
        let rows = tiny.rows();
        let best = Diagonal { tolerance: 1e-10, max_iter: 100_000, ..params.clone() }
            .fit(None, &rows, &tiny.triplets, &mut ()).unwrap().last.objective;
        let mut before = f64::INFINITY;
        let mut observer = |event: &Event<'_>| {
            let Event::DiagonalIteration(now) = event else { panic!("{event:?}") };
            assert!(now.objective <= before, "the objective rose");
            assert!(now.objective - now.gap <= best * (1.0 + 1e-12), "{now:?} {best}");
            before = now.objective;
            ControlFlow::Continue(())
        };
        Diagonal { tolerance: 1e-6, ..params }.fit(None, &rows, &tiny.triplets, &mut observer).unwrap();
    }

    /// Karush, Kuhn and Tucker, with derivatives by differences.
    #[test]
    fn optimality_conditions_hold(tiny in tiny(), params in settings()) {
        let fit = Diagonal { tolerance: 1e-12, max_iter: 100_000, ..params.clone() }
            .fit(None, &tiny.rows(), &tiny.triplets, &mut ()).unwrap();
        let weights = dense_weights(&fit.model);
        let shifted = |i: usize, by: f64| {
            let mut weights = weights.clone();
            weights[i] += by;
            tiny.loss(params.loss, &weights)
        };
        for (i, &w) in weights.iter().enumerate() {
            let g = (shifted(i, 1e-5) - shifted(i, -1e-5)) / 2e-5;
            prop_assert!(w >= 0.0 || !params.non_negative);
            let lambda = params.strength;
            // The interval of slopes of the penalty at w.
            let (low, high) = match (params.penalty, w) {
                (Penalty::L1, 0.0) => (-lambda, lambda),
                (Penalty::L1, w) => (lambda * w.signum(), lambda * w.signum()),
                (Penalty::L2, w) => (2.0 * lambda * w, 2.0 * lambda * w),
            };
            let low = if params.non_negative && w == 0.0 { f64::NEG_INFINITY } else { low };
            prop_assert!(-g >= low - 1e-4 && -g <= high + 1e-4, "weight {i} is {w}, slope {g}, {low} to {high}");
        }
    }

    #[test]
    fn the_proximal_map_is_the_least(
        params in settings(), v in -3.0f64..3.0, c in 0.01f64..100.0, u in -3.0f64..3.0
    ) {
        let cost = |u: f64| params.penalty_value(&[u]) + 0.5 * c * (u - v) * (u - v);
        let found = params.prox(v, c);
        let u = if params.non_negative { u.abs() } else { u };
        prop_assert!(found >= 0.0 || !params.non_negative);
        for other in [u, 0.0, found + 1e-3, (found - 1e-3).max(if params.non_negative { 0.0 } else { -9.0 })] {
            prop_assert!(cost(found) <= cost(other) + 1e-12, "{found} {other}");
        }
    }

    #[test]
    fn the_critical_strength_is_critical(tiny in tiny(), loss in prop::sample::select(LossKind::ALL.to_vec())) {
        let rows = tiny.rows();
        for non_negative in [false, true] {
            let params = |strength| Diagonal { loss, non_negative, ..diagonal(Penalty::L1, strength) };
            let most = params(1.0).critical_strength(&rows, &tiny.triplets).unwrap();
            // By the definition, from the other side.
            let slopes = (0..tiny.n_features()).map(|i| tiny.slope(loss, &vec![0.0; tiny.n_features()], i));
            let pull = slopes.map(|g| if non_negative { (-g).max(0.0) } else { g.abs() }).fold(0.0, f64::max);
            prop_assert!((most - pull).abs() < 1e-12);
            if most > 1e-6 {
                let used = |strength| {
                    let fit = Diagonal { tolerance: 1e-12, ..params(strength) }.fit(None, &rows, &tiny.triplets, &mut ()).unwrap();
                    fit.model.features().len()
                };
                prop_assert_eq!(used(most * (1.0 + 1e-12)), 0);
                prop_assert_eq!(used(1e3 * most), 0);
                prop_assert!(used(0.99 * most) > 0);
            }
        }
    }

    #[test]
    fn the_maps_give_the_score(tiny in tiny(), weights in prop::collection::vec((0u32..6, -2.0f64..2.0), 0..4)) {
        let mut weights = weights;
        weights.sort_by_key(|w| w.0);
        weights.dedup_by_key(|w| w.0);
        let model = DiagonalModel::new(6, weights).unwrap();
        let rows = tiny.rows();
        let (queries, items) = (model.queries(&rows), model.items(&rows));
        for p in 0..rows.n_rows() {
            for q in 0..rows.n_rows() {
                let score = model.score(rows.row(p), rows.row(q));
                prop_assert_eq!(score, queries.row(p).dot(items.row(q)));
                let expected: f64 = (0..tiny.n_features())
                    .map(|i| model.weight(i as u32) * tiny.dense[p][i] * tiny.dense[q][i])
                    .sum();
                prop_assert!((score - expected).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn same_weights_for_any_number_of_threads() {
    let tiny = Tiny::random(60, 30, 40_000, 5);
    let rows = tiny.rows();
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let params = diagonal(Penalty::L1, 1e-3);
        pool.install(|| params.fit(None, &rows, &tiny.triplets, &mut ()).unwrap())
    };
    let (one, three) = (fit(1), fit(3));
    assert!(one.stop == Stop::Tolerance);
    assert_eq!(one.model, three.model);
    assert_eq!(one.last.objective, three.last.objective);
}

#[test]
fn a_warm_start_ends_at_the_same_optimum_sooner() {
    let tiny = Tiny::random(40, 20, 500, 1);
    let rows = tiny.rows();
    let params = |strength| Diagonal {
        tolerance: 1e-9,
        ..diagonal(Penalty::L2, strength)
    };
    let near = params(0.011)
        .fit(None, &rows, &tiny.triplets, &mut ())
        .unwrap();
    let cold = params(0.01)
        .fit(None, &rows, &tiny.triplets, &mut ())
        .unwrap();
    let warm = (params(0.01).fit(Some(&near.model), &rows, &tiny.triplets, &mut ())).unwrap();
    assert!((cold.last.objective - warm.last.objective).abs() < 1e-8 * cold.last.objective);
    assert!(
        warm.last.iter < cold.last.iter,
        "{} {}",
        warm.last.iter,
        cold.last.iter
    );
}

#[test]
fn the_observer_may_end_the_run() {
    let tiny = Tiny::random(40, 20, 500, 1);
    let mut observer = |event: &Event<'_>| match event {
        Event::DiagonalIteration(now) if now.iter == 3 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let fit = diagonal(Penalty::L2, 1e-4)
        .fit(None, &tiny.rows(), &tiny.triplets, &mut observer)
        .unwrap();
    assert_eq!((fit.stop, fit.last.iter), (Stop::ObserverAsked, 3));
    assert!(fit.stop != Stop::Tolerance && fit.last.gap > 0.0);
}

#[test]
fn bad_settings_and_data_are_named() {
    let tiny = Tiny::random(5, 3, 4, 1);
    let rows = tiny.rows();
    let message = |params: Diagonal, rows: &Rows, triplets: &Triplets| {
        params
            .fit(None, rows, triplets, &mut ())
            .unwrap_err()
            .to_string()
    };
    let params = |strength| diagonal(Penalty::L1, strength);
    for (params, text) in [
        (
            params(0.0),
            "`strength` is 0, expected a finite number above 0",
        ),
        (
            params(f64::NAN),
            "`strength` is NaN, expected a finite number above 0",
        ),
        (
            Diagonal {
                tolerance: 0.0,
                ..params(1.0)
            },
            "`tolerance` is 0, expected a finite number above 0",
        ),
        (
            Diagonal {
                max_iter: 0,
                ..params(1.0)
            },
            "`max_iter` is 0, expected a whole number above 0",
        ),
    ] {
        assert_eq!(message(params, &rows, &tiny.triplets), text);
    }
    assert_eq!(
        message(params(1.0), &rows, &Triplets::new()),
        "there are no triplets to learn from"
    );
    let empty = Rows::from_parts(3, vec![0; 6], vec![], vec![]).unwrap();
    assert_eq!(
        message(params(1.0), &empty, &tiny.triplets),
        "all rows are empty, expected rows with values"
    );
    let huge = Rows::from_parts(1, vec![0, 1, 2, 2], vec![0, 0], vec![1e200, 1e200]).unwrap();
    let mut triplets = Triplets::new();
    triplets.push(0, 1, 2);
    assert_eq!(
        message(params(1.0), &huge, &triplets),
        "products of values are too large for numbers, expected scaled rows"
    );
    assert_eq!("l1".parse::<Penalty>().unwrap(), Penalty::L1);
    assert_eq!(
        "l3".parse::<Penalty>().unwrap_err().to_string(),
        "`penalty` is l3, expected l1 or l2"
    );
}

#[test]
fn no_memory_by_features_that_do_not_occur() {
    let rows = Rows::from_parts(
        4_000_000_000,
        vec![0, 2, 3, 4],
        vec![7, 3_999_999_999, 3_999_999_999, 7],
        vec![1.0; 4],
    )
    .unwrap();
    let mut triplets = Triplets::new();
    triplets.push(0, 1, 2);
    let fit = diagonal(Penalty::L1, 0.1)
        .fit(None, &rows, &triplets, &mut ())
        .unwrap();
    assert_eq!(fit.model.features().len(), 2);
    assert_eq!(fit.model.queries(&rows).n_features(), 2);
}
