//! The closed form of the step, and what many steps lead to.

use super::*;
use crate::baselines::diagonal::tests::to_rows;
use crate::random;
use crate::similarity::Similarity;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Rows sparse or dense, an arbitrary W, and an aggressiveness.
fn a_step() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<f64>, f64)> {
    (1usize..12).prop_flat_map(|dim| {
        let value = prop_oneof![2 => Just(0.0), 1 => -2.0..2.0];
        (
            prop::collection::vec(prop::collection::vec(value, dim), 3),
            prop::collection::vec(-1.0f64..1.0, dim * dim),
            prop_oneof![Just(1e6), 0.01..1.0],
        )
    })
}

fn margin(rows: &Rows, matrix: &[f64]) -> f64 {
    let model = OasisModel::from_matrix(rows.n_features(), matrix.to_vec()).unwrap();
    model.score(rows.row(0), rows.row(1)) - model.score(rows.row(0), rows.row(2))
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    squares.sqrt()
}

proptest! {
    #[test]
    fn a_step_is_the_passive_aggressive_one((dense, before, c) in a_step(), other in prop::collection::vec(-1.0f64..1.0, 144)) {
        let rows = to_rows(&dense);
        let dim = rows.n_features();
        let mut matrix = OasisModel::from_matrix(dim, before.clone()).unwrap();
        let taken = matrix.advance(&[a_move(&rows, (0, 1, 2))], c)[0];
        let after = matrix.matrix();
        let (was, is) = (margin(&rows, &before), margin(&rows, after));
        prop_assert!((taken.loss - (1.0 - was).max(0.0)).abs() < 1e-12);
        let v = |k: usize| dense[0][k / dim] * (dense[1][k % dim] - dense[2][k % dim]);
        let squares: f64 = (0..dim * dim).map(|k| v(k) * v(k)).sum();
        for (k, (b, a)) in before.iter().zip(after).enumerate() {
            prop_assert!((a - b - taken.tau * v(k)).abs() < 1e-12);
        }
        if squares == 0.0 || taken.loss == 0.0 {
            // Passive: nothing to do, or nothing that could help.
            prop_assert!(before == after);
        } else if taken.tau < c {
            prop_assert!((taken.tau - taken.loss / squares).abs() <= 1e-12 * taken.tau);
            prop_assert!((is - 1.0).abs() < 1e-9, "no loss is left, but {is}");
            // No W that satisfies the triplet is nearer: take any and move it just far enough.
            let other = &other[..dim * dim];
            let short = (1.0 - margin(&rows, other)).max(0.0) / squares;
            let satisfied: Vec<f64> = (0..dim * dim).map(|k| other[k] + short * v(k)).collect();
            prop_assert!(distance(&before, after) <= distance(&before, &satisfied) + 1e-9);
        } else {
            prop_assert_eq!(taken.tau, c);
            prop_assert!(is <= 1.0 + 1e-9 && is > was);
        }
    }

    #[test]
    fn steps_in_blocks_agree_with_steps_one_by_one(
        (dense, before, c) in a_step(), list in prop::collection::vec((0u32..3, 0u32..3, 0u32..3), 1..40)
    ) {
        let rows = to_rows(&dense);
        let moves: Vec<Move<'_>> = list.into_iter().map(|triplet| a_move(&rows, triplet)).collect();
        let mut at_once = OasisModel::from_matrix(rows.n_features(), before.clone()).unwrap();
        let mut one_by_one = at_once.clone();
        let taken = at_once.advance(&moves, c);
        for (step, taken) in moves.iter().zip(taken) {
            let single = one_by_one.advance(std::slice::from_ref(step), c)[0];
            prop_assert!((single.loss - taken.loss).abs() < 1e-8 * (1.0 + single.loss), "{single:?} {taken:?}");
        }
        let off = distance(at_once.matrix(), one_by_one.matrix());
        prop_assert!(off < 1e-7, "{off}");
    }

    #[test]
    fn the_maps_give_the_score((dense, matrix, _) in a_step(), cut in 1usize..12) {
        let rows = to_rows(&dense);
        let dim = rows.n_features();
        // A model of all features, and one that knows only the first few.
        for known in [dim, cut.min(dim)] {
            let part = (0..known * known).map(|k| matrix[k / known * dim + k % known]).collect();
            let model = OasisModel::from_matrix(known, part).unwrap();
            let (queries, items) = (model.queries(&rows), model.items(&rows));
            for p in 0..3 {
                for q in 0..3 {
                    let score = model.score(rows.row(p), rows.row(q));
                    let expected: f64 = (0..known * known)
                        .map(|k| dense[p][k / known] * model.matrix()[k] * dense[q][k % known])
                        .sum();
                    prop_assert!((score - expected).abs() < 1e-12);
                    prop_assert!((score - queries.row(p).dot(items.row(q))).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn finishing_gives_the_nearest_of_its_kind((_, values, _) in a_step(), x in prop::collection::vec(-1.0f64..1.0, 12)) {
        let dim = values.len().isqrt();
        let form = |matrix: &OasisModel| -> f64 {
            (0..dim * dim).map(|k| x[k / dim] * matrix.matrix()[k] * x[k % dim]).sum()
        };
        let learned = OasisModel::from_matrix(dim, values).unwrap();
        let (mut symmetric, mut positive) = (learned.clone(), learned.clone());
        symmetric.symmetrize();
        positive.make_semidefinite();
        for matrix in [&symmetric, &positive] {
            prop_assert!((0..dim * dim).all(|k| matrix.matrix()[k] == matrix.matrix()[k % dim * dim + k / dim]));
        }
        prop_assert!((form(&symmetric) - form(&learned)).abs() < 1e-12, "the same for a row with itself");
        prop_assert!(form(&positive) >= -1e-12);
        prop_assert!(form(&positive) >= form(&symmetric) - 1e-12, "only what was below 0 has gone");
        let mut again = positive.clone();
        again.make_semidefinite();
        prop_assert!(distance(again.matrix(), positive.matrix()) < 1e-12);
    }
}

/// Two classes that differ in their first two features, among noise that is larger.
fn planted(n_rows: usize, dim: usize) -> (Rows, Vec<usize>) {
    let mut rng = random::rng(9, 0);
    let mut noise = || random::below(&mut rng, 2001) as f64 / 1000.0 - 1.0;
    let classes: Vec<usize> = (0..n_rows).map(|row| row % 2).collect();
    let dense: Vec<Vec<f64>> = (classes.iter())
        .map(|&class| {
            let mut row: Vec<f64> = (0..dim).map(|_| noise()).collect();
            row[0] = 0.5 * (2.0 * class as f64 - 1.0) + 0.1 * row[0];
            row[1] = -row[0];
            row
        })
        .collect();
    (to_rows(&dense), classes)
}

fn triplets_of(classes: &[usize]) -> Triplets {
    let names = classes.iter().map(|class| class.to_string());
    let labels = crate::Labels::from_names(names.collect::<Vec<_>>());
    let empty = Rows::from_parts(1, vec![0; classes.len() + 1], vec![], vec![]).unwrap();
    Triplets::at_random(&empty, &labels, 20, 1).unwrap()
}

/// How many triplets have the wrong row nearer.
fn wrong(similarity: &impl Similarity, rows: &Rows, triplets: &Triplets) -> f64 {
    let row = |row: u32| rows.row(row as usize);
    let wrong = triplets
        .iter()
        .filter(|&(a, n, f)| similarity.score(row(a), row(n)) <= similarity.score(row(a), row(f)));
    wrong.count() as f64 / triplets.len() as f64
}

#[test]
fn a_planted_difference_is_learned() {
    let (rows, classes) = planted(200, 20);
    let triplets = triplets_of(&classes);
    let (fresh, fresh_classes) = planted(400, 20);
    let unseen = triplets_of(&fresh_classes);
    let before = wrong(&crate::Dot, &fresh, &unseen);
    for finish in [
        Finish::AsLearned,
        Finish::Symmetric,
        Finish::PositiveSemidefinite,
    ] {
        let oasis = Oasis {
            steps: Some(20_000),
            finish,
            ..Oasis::default()
        };
        let fit = oasis.fit(None, &rows, &triplets, &mut ()).unwrap();
        let after = wrong(&fit.model, &fresh, &unseen);
        assert!(
            after < 0.5 * before && after < 0.15,
            "{finish:?}: {before} to {after}"
        );
        let (first, last) = (&fit.trace[0], &fit.trace[fit.trace.len() - 1]);
        assert!(last.loss < 0.5 * first.loss, "{first:?} {last:?}");
        assert_eq!(
            (last.step, fit.trace.len(), fit.stop),
            (20_000, 100, Stop::MaxIter)
        );
    }
}

#[test]
fn same_matrix_for_any_number_of_threads() {
    // Large enough that threads are used.
    let (rows, classes) = planted(60, 150);
    let triplets = triplets_of(&classes);
    let fit = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let oasis = Oasis {
            steps: Some(500),
            seed,
            ..Oasis::default()
        };
        pool.install(|| oasis.fit(None, &rows, &triplets, &mut ()).unwrap().model)
    };
    assert_eq!(fit(1, 0), fit(3, 0));
    assert_ne!(fit(1, 0), fit(1, 1));
}

#[test]
fn the_observer_may_end_the_run() {
    let (rows, classes) = planted(20, 5);
    let mut observer = |event: &Event<'_>| match event {
        Event::OasisProgress(now) if now.step >= 30 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let fit = Oasis {
        steps: Some(1_000),
        ..Oasis::default()
    }
    .fit(None, &rows, &triplets_of(&classes), &mut observer)
    .unwrap();
    assert_eq!(fit.stop, Stop::ObserverAsked);
    assert_eq!(fit.trace.last().unwrap().step, 30);
}

#[test]
fn bad_settings_and_data_are_named() {
    let (rows, classes) = planted(20, 5);
    let triplets = triplets_of(&classes);
    let message = |oasis: Oasis, rows: &Rows| {
        let error = oasis.fit(None, rows, &triplets, &mut ()).unwrap_err();
        error.to_string()
    };
    let wide = Rows::from_parts(100_000, vec![0; 21], vec![], vec![]).unwrap();
    for (oasis, rows, text) in [
        (
            Oasis {
                aggressiveness: -1.0,
                ..Oasis::default()
            },
            &rows,
            "`aggressiveness` is -1, expected a finite number above 0",
        ),
        (
            Oasis {
                steps: Some(0),
                ..Oasis::default()
            },
            &rows,
            "`steps` is 0, expected a whole number above 0",
        ),
        (
            Oasis::default(),
            &wide,
            "OASIS on 100,000 features needs about 80 GB for its dense matrix, and the limit is 2.1 GB; reduce the rows \
             to 16,384 features or fewer, for example by PCA or random projections",
        ),
    ] {
        assert_eq!(message(oasis, rows), text);
    }
    let limited = |bytes| Oasis {
        steps: Some(1),
        finish: Finish::PositiveSemidefinite,
        memory_limit: Some(bytes),
        ..Oasis::default()
    };
    assert!(limited(800).fit(None, &rows, &triplets, &mut ()).is_ok());
    let error = message(limited(799), &rows);
    assert!(
        error.starts_with("OASIS on 5 features needs about 800 bytes"),
        "{error}"
    );
    assert_eq!(
        OasisModel::from_matrix(2, vec![0.0; 3])
            .unwrap_err()
            .to_string(),
        "a matrix of 2 rows has 3 values, expected 2 in each row"
    );
    assert_eq!(
        OasisModel::from_matrix(1, vec![f64::NAN])
            .unwrap_err()
            .to_string(),
        "the matrix has the value NaN in row 0, expected a finite number"
    );
}
