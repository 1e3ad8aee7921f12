use crate::strategies::*;
use hdsl::data::{Preprocess, Preprocessor, TermStatistics};
use hdsl::{Rows, SparseRow};
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_kind_keeps_its_law(train in rows(0..8), later in rows(0..8)) {
        for kind in [Preprocess::None, Preprocess::Max, Preprocess::Unit, Preprocess::MaxUnit] {
            let preprocess = Preprocessor::fit(kind, &train);
            let scaled = preprocess.apply(&later);
            prop_assert_eq!(scaled.n_rows(), later.n_rows());
            prop_assert_eq!(scaled.n_features(), train.n_features());
            let max = |feature: u32| train.iter().map(|r| r.get(feature).abs()).fold(0.0, f64::max);
            let has_maxima = matches!(kind, Preprocess::Max | Preprocess::MaxUnit);
            let known = later.indices().iter().filter(|&&feature| match has_maxima {
                true => max(feature) > 0.0,
                false => (feature as usize) < train.n_features(),
            });
            prop_assert_eq!(scaled.nnz(), known.count());
            for (before, after) in later.iter().zip(scaled.iter()) {
                let want: Vec<f64> = (0..train.n_features() as u32)
                    .map(|f| match kind {
                        Preprocess::None | Preprocess::Unit => before.get(f),
                        _ if max(f) == 0.0 => 0.0,
                        _ => (before.get(f) / max(f)).clamp(-1.0, 1.0),
                    })
                    .collect();
                let length = want.iter().map(|v| v * v).sum::<f64>().sqrt();
                let unit = matches!(kind, Preprocess::Unit | Preprocess::MaxUnit) && length > 0.0;
                for (f, value) in want.iter().enumerate() {
                    let value = if unit { value / length } else { *value };
                    prop_assert!((after.get(f as u32) - value).abs() < 1e-14);
                }
                prop_assert!(!unit || (after.norm() - 1.0).abs() < 1e-12);
                let (indices, values) = preprocess.apply_row(before);
                prop_assert_eq!(SparseRow::new(&indices, &values), after);
            }
            let again: Vec<_> = preprocess.maxima().collect();
            prop_assert_eq!(Preprocessor::from_parts(kind, preprocess.n_features(), again, None).unwrap(), preprocess);
        }
    }

    #[test]
    fn term_weights_follow_their_formulas(train in terms(1), later in terms(2), fractions in any::<bool>()) {
        let halved = |rows: &Rows| map_values(rows, |v| v / 2.0);
        let (train, later) = match fractions {
            true => (halved(&train), halved(&later)),
            false => (train, later),
        };
        for kind in [Preprocess::Tfidf, Preprocess::Bm25] {
            kind.check(&train).unwrap();
            let preprocess = Preprocessor::fit(kind, &train);
            let weighted = preprocess.apply(&later);
            prop_assert_eq!(weighted.n_features(), train.n_features());
            for (before, after) in later.iter().zip(weighted.iter()) {
                let want = naive_term_weights(kind, &train, before);
                for (feature, want) in want.iter().enumerate() {
                    let got = after.get(feature as u32);
                    prop_assert!((got - want).abs() < 1e-13, "{} {} {}", kind, got, want);
                }
                let (indices, values) = preprocess.apply_row(before);
                prop_assert_eq!(SparseRow::new(&indices, &values), after);
            }
            let again = preprocess.term_statistics();
            prop_assert_eq!(
                &Preprocessor::from_parts(kind, preprocess.n_features(), Vec::new(), again).unwrap(),
                &preprocess
            );
            prop_assert_eq!(&preprocess.restrict(&[1]), &preprocess);
        }
    }

    /// Unchecked negative and huge values give finite rows of unit length or 0.
    #[test]
    fn term_weights_of_any_values_are_finite(train in extreme_rows(), later in extreme_rows()) {
        for kind in [Preprocess::Tfidf, Preprocess::Bm25] {
            let weighted = Preprocessor::fit(kind, &train).apply(&later);
            for row in weighted.iter() {
                prop_assert!(row.norm() < 1e-12 || (row.norm() - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn restricting_forgets_the_others(train in rows(1..8)) {
        let full = Preprocessor::fit(Preprocess::Max, &train);
        let few = full.restrict(&[1, 3, 1000]);
        let want: Vec<_> = full.maxima().filter(|m| m.0 == 1 || m.0 == 3).collect();
        prop_assert_eq!(few.maxima().collect::<Vec<_>>(), want);
        let both = Preprocessor::fit(Preprocess::MaxUnit, &train);
        prop_assert_eq!(both.restrict(&[1]), both);
    }
}

fn map_values(rows: &Rows, map: impl Fn(f64) -> f64) -> Rows {
    let values = rows.values().iter().map(|&v| map(v)).collect();
    let (starts, indices) = (rows.starts().to_vec(), rows.indices().to_vec());
    Rows::from_parts(rows.n_features(), starts, indices, values).unwrap()
}

/// Counts with explicit zeros, empty rows and empty columns; `n` times as many features as the first call.
fn terms(n: u32) -> impl Strategy<Value = Rows> {
    let row = prop::collection::btree_map(0..8 * n, 0u32..6, 0..8);
    prop::collection::vec(row, 0..9).prop_map(move |list| {
        let mut rows = Rows::new(8 * n as usize);
        for row in list {
            let (indices, values): (Vec<u32>, Vec<f64>) =
                row.into_iter().map(|(f, v)| (f, f64::from(v))).unzip();
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    })
}

fn extreme_rows() -> impl Strategy<Value = Rows> {
    let value = prop::sample::select(vec![f64::MAX, -f64::MAX, 1e-300, -1.5, 0.0, 3.0, 1e200]);
    let row = prop::collection::btree_map(0..8u32, value, 0..8);
    prop::collection::vec(row, 0..5).prop_map(|list| {
        let mut rows = Rows::new(8);
        for row in list {
            let (indices, values): (Vec<u32>, Vec<f64>) = row.into_iter().unzip();
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    })
}

/// The formulas of `tfidf` and `bm25`, one dense row at a time.
fn naive_term_weights(kind: Preprocess, train: &Rows, row: SparseRow<'_>) -> Vec<f64> {
    let n_features = train.n_features() as u32;
    let n = train.n_rows() as f64;
    let sum = |row: SparseRow<'_>| (0..n_features).map(|f| row.get(f)).sum::<f64>();
    let mean_length = train.iter().map(sum).sum::<f64>() / n.max(1.0);
    let counts = train.values().iter().all(|v| v.fract() == 0.0);
    let weight = |feature: u32| {
        let tf = row.get(feature);
        let df = train.iter().filter(|r| r.get(feature) != 0.0).count() as f64;
        match kind {
            _ if tf == 0.0 => 0.0,
            Preprocess::Bm25 => {
                let relative = if mean_length > 0.0 {
                    sum(row) / mean_length
                } else {
                    1.0
                };
                let tf = tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * relative));
                tf * (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
            }
            _ => {
                let tf = if counts && tf >= 1.0 {
                    1.0 + tf.ln()
                } else {
                    tf
                };
                tf * (((1.0 + n) / (1.0 + df)).ln() + 1.0)
            }
        }
    };
    let weights: Vec<f64> = (0..n_features).map(weight).collect();
    let length = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
    let unit = |w: &f64| if length > 0.0 { w / length } else { 0.0 };
    weights.iter().map(unit).collect()
}

#[test]
fn negative_values_are_refused_for_term_weights() {
    let rows = Rows::from_parts(
        9,
        vec![0, 2, 2, 2, 4],
        vec![0, 1, 3, 7],
        vec![1.0, 0.0, 2.0, -0.5],
    )
    .unwrap();
    for kind in Preprocess::ALL {
        let refused = kind.check(&rows);
        let text = matches!(kind, Preprocess::Tfidf | Preprocess::Bm25);
        assert_eq!(refused.is_err(), text);
        if let Err(error) = refused {
            assert_eq!(
                error.to_string(),
                format!(
                    "row 3 has the value -0.5 for feature 7 (both counted from 0), expected values of at least 0, such \
                     as word counts, for the preprocessing `{kind}`"
                )
            );
        }
    }
}

#[test]
fn term_statistics_are_checked() {
    let statistics = |n_rows, mean_length, frequencies: &[(u32, u32)]| TermStatistics {
        n_rows,
        is_counts: true,
        mean_length,
        document_frequencies: frequencies.to_vec(),
    };
    let made = |kind, terms| Preprocessor::from_parts(kind, 3, Vec::new(), terms);
    let good = || Some(statistics(4, 2.0, &[(0, 1), (2, 4)]));
    assert!(made(Preprocess::Tfidf, good()).is_ok() && made(Preprocess::Bm25, good()).is_ok());
    assert!(made(Preprocess::Unit, good()).is_err() && made(Preprocess::Tfidf, None).is_err());
    assert!(Preprocessor::from_parts(Preprocess::Tfidf, 3, vec![(0, 1.0)], good()).is_err());
    for bad in [
        statistics(4, 2.0, &[(0, 0)]),
        statistics(4, 2.0, &[(0, 5)]),
        statistics(4, 2.0, &[(3, 1)]),
        statistics(4, 2.0, &[(1, 1), (1, 1)]),
        statistics(4, f64::NAN, &[]),
        statistics(4, -1.0, &[]),
        statistics(1 << 32, 2.0, &[]),
    ] {
        assert!(made(Preprocess::Bm25, Some(bad)).is_err());
    }
}

#[test]
fn same_bytes_for_one_and_two_threads() {
    let mut rows = Rows::new(50);
    for r in 0..500u32 {
        let indices: Vec<u32> = (0..50).filter(|f| (f * 7 + r) % 5 == 0).collect();
        let values: Vec<f64> = indices.iter().map(|&f| f64::from(f + r).sin()).collect();
        rows.push(SparseRow::new(&indices, &values));
    }
    for kind in Preprocess::ALL {
        let run = |threads| pool(threads).install(|| Preprocessor::fit(kind, &rows).apply(&rows));
        assert_eq!(run(1), run(2));
    }
}

#[test]
fn huge_tiny_and_zero_values_keep_their_length() {
    let rows = Rows::from_parts(
        2,
        vec![0, 2, 4, 5, 5],
        vec![0, 1, 0, 1, 0],
        vec![3e300, 4e300, 3e-300, 4e-300, 0.0],
    )
    .unwrap();
    let scaled = Preprocessor::fit(Preprocess::Unit, &rows).apply(&rows);
    for r in 0..2 {
        let values = scaled.row(r).values();
        assert!((values[0] - 0.6).abs() < 1e-15 && (values[1] - 0.8).abs() < 1e-15);
    }
    assert_eq!(scaled.row(2).norm(), 0.0);
    assert_eq!(scaled.row(3).nnz(), 0);
}

#[test]
fn words_round_trip_and_others_are_refused() {
    for kind in Preprocess::ALL {
        assert_eq!(kind.to_string().parse::<Preprocess>().unwrap(), kind);
    }
    let message = "Max".parse::<Preprocess>().unwrap_err().to_string();
    assert_eq!(
        message,
        "`preprocess` is Max, expected none, max, unit, max+unit, tfidf, bm25 or auto"
    );
    assert!(Preprocessor::from_parts(Preprocess::Max, 3, vec![(1, 0.0)], None).is_err());
    assert!(Preprocessor::from_parts(Preprocess::Max, 3, vec![(3, 1.0)], None).is_err());
    assert!(Preprocessor::from_parts(Preprocess::Max, 3, vec![(1, 1.0), (1, 1.0)], None).is_err());
    assert!(Preprocessor::from_parts(Preprocess::Unit, 3, vec![(1, 1.0)], None).is_err());
}
