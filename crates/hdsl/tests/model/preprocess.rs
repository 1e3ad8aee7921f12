use crate::strategies::*;
use hdsl::data::{Preprocess, Preprocessor};
use hdsl::{Rows, SparseRow};
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_kind_keeps_its_law(train in rows(0..8), later in rows(0..8)) {
        for kind in Preprocess::ALL {
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
            prop_assert_eq!(Preprocessor::from_parts(kind, preprocess.n_features(), again).unwrap(), preprocess);
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
        "`preprocess` is Max, expected none, max, unit or max+unit"
    );
    assert!(Preprocessor::from_parts(Preprocess::Max, 3, vec![(1, 0.0)]).is_err());
    assert!(Preprocessor::from_parts(Preprocess::Max, 3, vec![(3, 1.0)]).is_err());
    assert!(Preprocessor::from_parts(Preprocess::Max, 3, vec![(1, 1.0), (1, 1.0)]).is_err());
    assert!(Preprocessor::from_parts(Preprocess::Unit, 3, vec![(1, 1.0)]).is_err());
}
