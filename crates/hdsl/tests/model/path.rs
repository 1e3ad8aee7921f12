use crate::strategies::*;
use hdsl::atoms::{Path, Step};
use hdsl::{ActiveSet, Atom};
use proptest::prelude::*;

proptest! {
    #[test]
    fn replay_gives_every_iterate_bit_for_bit(path in path()) {
        let mut active = ActiveSet::from_weighted(path.start()).unwrap();
        let counts = path.counts();
        prop_assert_eq!(counts.len(), path.len() + 1);
        for (iteration, &count) in counts.iter().enumerate() {
            if iteration > 0 {
                active.apply(&path.steps()[iteration - 1]);
            }
            prop_assert_eq!(&path.at(iteration).unwrap(), &active);
            prop_assert_eq!(count, (active.len(), active.n_features()));
            prop_assert!((active.weights().sum::<f64>() - 1.0).abs() < 1e-9);
        }
        prop_assert!(path.at(path.len() + 1).is_err());
    }

    #[test]
    fn budgets_find_the_last_iterate_that_fits(
        path in path(), features in 1usize..10, atoms in 1usize..12, upto in 0usize..50,
    ) {
        let counts = path.counts();
        let found = path.last_within(Some(features), Some(atoms), upto);
        let fits = |n: usize| counts[n].0 <= atoms && counts[n].1 <= features;
        let want = (0..=upto.min(path.len())).rfind(|&n| fits(n));
        prop_assert_eq!(found, want);
    }
}

#[test]
fn steps_that_cannot_be_taken_are_refused() {
    let (a, b) = (Atom::plus(0, 1).unwrap(), Atom::minus(0, 1).unwrap());
    for step in [
        Step::Drop { atom: a },
        Step::Drop { atom: b },
        Step::Away {
            atom: a,
            gamma: 0.5,
        },
        Step::Forward {
            atom: b,
            gamma: f64::NAN,
        },
        Step::Forward {
            atom: b,
            gamma: 1.5,
        },
        Step::Pairwise {
            to: b,
            from: a,
            gamma: 1.0,
        },
        Step::Swap { to: a, from: b },
    ] {
        assert!(Path::new(vec![(a, 1.0)], vec![step]).is_err(), "{step:?}");
    }
}

#[test]
fn weights_cannot_be_driven_away_from_sum_one() {
    let (a, b) = (Atom::plus(0, 1).unwrap(), Atom::minus(0, 1).unwrap());
    // A lone atom just below 1, as rounding may leave it: any step away would pass a look at its weight alone.
    let lone = vec![(a, 1.0 - 1e-10)];
    let away = |gamma| vec![Step::Away { atom: a, gamma }];
    assert!(Path::new(lone, away(1e9)).is_err());
    // Each weight is fine, and the sum is within the tolerance of a start, but one step magnifies the difference.
    let skewed = vec![(a, 1.0 - 1e-15), (b, 5e-10)];
    assert!(Path::new(skewed.clone(), away(1e14)).is_err());
    assert!(Path::new(skewed, away(1e3)).is_ok());
}

/// A file of more than a megabyte, with as many steps as atoms. That the time to load it is linear in its length is tested by
/// the number of visited atoms, in `active_set.rs`.
#[test]
fn a_large_path_is_read() {
    use hdsl::{Model, ModelParts};
    let n = 40_000;
    let atom = |k: u32| Atom::plus(2 * k, 2 * k + 1).unwrap();
    let start = (0..n).map(|k| (atom(k), 1.0 / f64::from(n))).collect();
    let step = |k: u32| match k % 2 {
        0 => Step::Forward {
            atom: atom(n + k),
            gamma: 1e-6,
        },
        _ => Step::Drop { atom: atom(k) },
    };
    let path = Path::new(start, (0..n).map(step).collect()).unwrap();
    let model = Model::new(ModelParts::new(4 * n as usize, 1.0, path)).unwrap();
    let bytes = model.to_bytes();
    assert!(bytes.len() > 1_600_000, "{} bytes", bytes.len());
    let loaded = Model::from_bytes("large.hdsl", &bytes).unwrap();
    assert_eq!(loaded, model);
    assert_eq!(loaded.similarity().atoms().len(), n as usize);
}
