use crate::strategies::*;
use hdsl::{Atom, BilinearModel, Dot, Rows, Similarity, SparseRow};
use proptest::prelude::*;

proptest! {
    #[test]
    fn score_is_dot_of_transform_is_dense_product(model in bilinear(), rows in rows(2)) {
        let (a, b) = (rows.row(0), rows.row(1));
        let (want, size) = dense_score(&dense(&model), a, b);
        let close = |x: f64| (x - want).abs() <= 1e-12 * size;
        prop_assert!(close(model.score(a, b)), "{} {want}", model.score(a, b));
        prop_assert_eq!(model.score(a, b), model.score(b, a));
        let mapped = model.transform_rows(&rows);
        prop_assert_eq!(mapped.n_features(), model.atoms().len());
        prop_assert!(close(mapped.row(0).dot(mapped.row(1))));
        for (c, (atom, weight)) in (0..).zip(model.iter()) {
            let projected = a.get(atom.i()) + atom.sign().value() * a.get(atom.j());
            let value = (model.scale() * weight).sqrt() * projected;
            prop_assert!((mapped.row(0).get(c) - value).abs() <= 1e-12 * value.abs());
        }
        prop_assert_eq!(model.score_many(&rows, &rows, &[(0, 1)]).unwrap(), vec![model.score(a, b)]);
        let why = model.explain_pair(a, b);
        prop_assert_eq!(why.score, model.score(a, b));
        prop_assert!(close(why.pairs.iter().map(|p| p.value).sum()));
        prop_assert!(close(why.atoms.iter().map(|p| p.value).sum()));
        prop_assert!(why.pairs.iter().all(|p| p.i <= p.j && p.value != 0.0));
        prop_assert!(why.pairs.windows(2).all(|w| w[0].value.abs() >= w[1].value.abs()));
    }

    #[test]
    fn matrix_is_the_dense_one_symmetric_psd_with_trace_twice_the_scale(model in bilinear(), x in rows(1)) {
        let m = dense(&model);
        let entries = model.matrix();
        prop_assert!(entries.windows(2).all(|w| (w[0].0, w[0].1) < (w[1].0, w[1].1)));
        let mut rebuilt = vec![vec![0.0; D as usize]; D as usize];
        for &(i, j, value) in &entries {
            prop_assert!(value != 0.0);
            rebuilt[i as usize][j as usize] = value;
        }
        let mut trace = 0.0;
        for p in 0..D as usize {
            trace += m[p][p];
            for q in 0..D as usize {
                prop_assert_eq!(rebuilt[p][q], rebuilt[q][p]);
                prop_assert!((rebuilt[p][q] - m[p][q]).abs() <= 1e-12 * model.scale());
            }
        }
        prop_assert!((trace - 2.0 * model.scale()).abs() < 1e-9 * model.scale());
        prop_assert!((model.trace() - trace).abs() < 1e-9 * model.scale());
        prop_assert!(model.score(x.row(0), x.row(0)) >= 0.0);
        let smallest = hdsl::eigen::symmetric_eigen(m.to_vec()).pop().expect("D pairs").0;
        prop_assert!(smallest > -1e-9 * model.scale());
    }

    #[test]
    fn explanations_list_the_matrix(model in bilinear()) {
        let entries = model.matrix();
        let features = model.features_by_weight();
        prop_assert_eq!(features.len(), model.n_features_used());
        for f in &features {
            prop_assert!(entries.contains(&(f.feature, f.feature, f.weight)));
            let row = entries.iter().filter(|e| e.0 == f.feature && e.1 != f.feature);
            prop_assert_eq!(row.count(), f.n_pairs);
        }
        let pairs = model.pairs_by_weight();
        prop_assert_eq!(pairs.len(), entries.iter().filter(|e| e.0 < e.1).count());
        for p in &pairs {
            prop_assert!(entries.contains(&(p.i, p.j, p.weight)));
        }
        let in_order = |p: &hdsl::similarity::PairWeight, q: &hdsl::similarity::PairWeight| {
            let (x, y) = (p.weight.abs(), q.weight.abs());
            x > y || (x == y && (p.i, p.j) < (q.i, q.j))
        };
        prop_assert!(pairs.windows(2).all(|w| in_order(&w[0], &w[1])));
    }
}

#[test]
fn features_near_the_limit_cost_nothing() {
    let last = u32::MAX - 1;
    let n = u32::MAX as usize;
    let model = BilinearModel::new(n, 1.0, vec![(Atom::minus(3, last).unwrap(), 1.0)]).unwrap();
    let rows = Rows::from_parts(n, vec![0, 2], vec![3, last], vec![2.0, 1.0]).unwrap();
    assert_eq!(model.score(rows.row(0), rows.row(0)), 1.0);
    assert_eq!(model.transform_rows(&rows).row(0).values(), [1.0]);
    assert_eq!(model.reduced(None).rank(), 1);
}

#[test]
fn values_near_the_limit_do_not_panic() {
    let rows = Rows::from_parts(3, vec![0, 3], vec![0, 1, 2], vec![f64::MAX; 3]).unwrap();
    let atoms = vec![
        (Atom::plus(0, 1).unwrap(), 0.5),
        (Atom::minus(1, 2).unwrap(), 0.5),
    ];
    let model = BilinearModel::new(3, 1e300, atoms).unwrap();
    assert_eq!(model.transform_rows(&rows).row(0).values(), [f64::MAX]);
    let reduced = model.reduced(None);
    assert_eq!(reduced.transform_rows(&rows).n_rows(), 1);
    model.explain_pair(rows.row(0), rows.row(0));
    for k in [1, 2] {
        let two = rows.select(&[0, 0]);
        let index = hdsl::KnnIndex::new(&reduced, &two);
        assert_eq!(index.neighbors(&two, k).unwrap()[1].len(), k);
    }
}

#[test]
fn empty_rows_score_zero() {
    let model = BilinearModel::new(3, 2.0, vec![(Atom::plus(0, 2).unwrap(), 1.0)]).unwrap();
    let (none, some) = (SparseRow::new(&[], &[]), SparseRow::new(&[0], &[1.0]));
    assert_eq!(model.score(none, some), 0.0);
    assert!(model.explain_pair(none, some).pairs.is_empty());
    assert_eq!(Dot.score(none, some), 0.0);
}

#[test]
fn what_cannot_be_a_similarity_is_refused() {
    let atom = Atom::plus(0, 2).unwrap();
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(BilinearModel::new(3, scale, vec![(atom, 1.0)]).is_err());
    }
    assert!(BilinearModel::new(2, 1.0, vec![(atom, 1.0)]).is_err()); // feature 2 of 2
    assert!(BilinearModel::new(3, 1.0, vec![(atom, 0.5)]).is_err());
    assert!(BilinearModel::new(3, 1.0, vec![(atom, 0.5), (atom, 0.5)]).is_err());
    assert!(BilinearModel::new(3, 1.0, vec![]).is_err());
}
