//! β <x, x'> + xᵀ M x', compared with dense arithmetic.

use crate::strategies::*;
use hdsl::atoms::Path;
use hdsl::{
    Atom, BilinearModel, Dot, KnnIndex, Model, ModelParts, Normalization, Rows, Similarity,
    SparseRow,
};
use proptest::prelude::*;

/// β I + M.
fn dense_with_base(model: &BilinearModel) -> Vec<Vec<f64>> {
    let mut m = dense(model);
    for (i, row) in m.iter_mut().enumerate() {
        row[i] += model.base();
    }
    m
}

proptest! {
    #[test]
    fn score_is_dot_of_transform_is_dense_product(model in on_base(), rows in rows(2)) {
        let (a, b) = (rows.row(0), rows.row(1));
        let (want, size) = dense_score(&dense_with_base(&model), a, b);
        // β and M may cancel in a sum of parts, so rounding is measured against both.
        let size = size + model.base() * a.norm() * b.norm() + dense_score(&dense(&model), a, b).1;
        let close = |x: f64| (x - want).abs() <= 1e-12 * size;
        prop_assert!(close(model.score(a, b)), "{} {want}", model.score(a, b));
        prop_assert_eq!(model.score(a, b), model.score(b, a));
        prop_assert_eq!(model.base_score(a, b) + model.learned_score(a, b), model.score(a, b));
        prop_assert!(model.score(a, a) >= 0.0);
        let mapped = model.transform_rows(&rows);
        prop_assert_eq!(mapped.n_features(), D as usize + model.atoms().len());
        prop_assert!(close(mapped.row(0).dot(mapped.row(1))));
        for feature in 0..D {
            let value = model.base().sqrt() * a.get(feature);
            prop_assert_eq!(mapped.row(0).get(feature), value);
        }
        if !model.atoms().is_empty() {
            let learned = BilinearModel::new(D as usize, model.scale(), model.iter().collect()).unwrap();
            let coordinates = learned.transform_rows(&rows);
            for c in 0..model.atoms().len() as u32 {
                prop_assert_eq!(mapped.row(0).get(D + c), coordinates.row(0).get(c));
            }
            prop_assert_eq!(model.learned_score(a, b), learned.score(a, b));
            prop_assert_eq!(model.matrix(), learned.matrix());
            prop_assert_eq!(model.clone().with_base(0.0).unwrap(), learned);
        }
    }

    #[test]
    fn reduced_learned_part_keeps_the_base(model in on_base(), rows in rows(2), dim in 0usize..4) {
        let (a, b) = (rows.row(0), rows.row(1));
        let size = (model.base() + 2.0 * model.scale()) * a.norm() * b.norm();
        let full = model.reduced(None);
        prop_assert!((full.score(a, b) - model.score(a, b)).abs() <= 1e-12 * size);
        let cut = model.reduced(Some(dim));
        let mapped = cut.transform_rows(&rows);
        prop_assert_eq!(mapped.n_features(), D as usize + cut.dim());
        prop_assert!((mapped.row(0).dot(mapped.row(1)) - cut.score(a, b)).abs() <= 1e-12 * size);
        if dim == 0 {
            prop_assert_eq!(cut.score(a, b), model.base_score(a, b));
        }
    }

    #[test]
    fn explanations_add_up(model in on_base(), rows in rows(2)) {
        let (a, b) = (rows.row(0), rows.row(1));
        let why = model.explain_pair(a, b);
        prop_assert_eq!(why.score, model.score(a, b));
        let size = (model.base() + 2.0 * model.scale()) * a.norm() * b.norm();
        let close = |x: f64, y: f64| (x - y).abs() <= 1e-12 * size;
        let base: f64 = why.base.iter().map(|c| c.value).sum();
        let pairs: f64 = why.pairs.iter().map(|c| c.value).sum();
        let atoms: f64 = why.atoms.iter().map(|c| c.value).sum();
        prop_assert!(close(base, why.base_score) && close(pairs, why.learned_score));
        prop_assert!(close(atoms, why.learned_score) && close(base + pairs, why.score));
        for c in &why.base {
            prop_assert!(c.feature < D && c.value != 0.0);
            prop_assert!(close(c.value, model.base() * a.get(c.feature) * b.get(c.feature)));
        }
        prop_assert!(why.base.windows(2).all(|w| w[0].value.abs() >= w[1].value.abs()));

        let cosine = Normalization::Cosine.of(&model);
        let why = cosine.explain_pair(a, b);
        let length = (model.score(a, a) * model.score(b, b)).sqrt();
        if length > 1e-6 * size {
            let want = model.score(a, b) / length;
            let close = |x: f64| (x - want).abs() < 1e-12 * size / length;
            let base: f64 = why.base.iter().map(|c| c.value).sum();
            let pairs: f64 = why.pairs.iter().map(|c| c.value).sum();
            prop_assert!(close(why.score) && close(base + pairs));
            prop_assert!(close(why.base_score + why.learned_score));
            prop_assert!(close(cosine.score_many(&rows, &rows, &[(0, 1)]).unwrap()[0]));
            prop_assert!(close(cosine.score(a, b)));
        }
    }

    #[test]
    fn neighbors_are_those_of_brute_force(
        model in on_base(), train in rows(1..40), queries in rows(1..6), k in 1usize..8,
    ) {
        let k = k.min(train.n_rows());
        let found = KnnIndex::new(&model, &train).neighbors(&queries, k).unwrap();
        let (items, asked) = (model.items(&train), model.queries(&queries));
        for (q, found) in found.iter().enumerate() {
            let score = |row: usize| asked.row(q).dot(items.row(row));
            let mut all: Vec<(usize, f64)> = (0..train.n_rows()).map(|row| (row, score(row))).collect();
            all.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
            all.truncate(k);
            let found: Vec<_> = found.iter().map(|n| (n.row as usize, n.score)).collect();
            prop_assert_eq!(found, all);
        }
    }

    #[test]
    fn base_of_1_alone_is_the_dot_product(rows in rows(2)) {
        let model = BilinearModel::base_only(rows.n_features(), 1.0).unwrap();
        let (a, b) = (rows.row(0), rows.row(1));
        prop_assert_eq!(model.score(a, b), Dot.score(a, b));
        prop_assert_eq!(model.transform_rows(&rows), rows);
    }

    /// All iterates have the base, and their maxima and names are those of all features.
    #[test]
    fn models_keep_the_base(parts in parts(), raw in rows(2), at in any::<prop::sample::Index>()) {
        let model = Model::new(parts.clone()).unwrap();
        prop_assert_eq!(model.base(), parts.base);
        let model = model.at(at.index(model.path().len() + 1)).unwrap();
        prop_assert_eq!(model.similarity().base(), parts.base);
        if parts.base > 0.0 {
            prop_assert_eq!(&model.parts().names, &parts.names);
            prop_assert_eq!(model.preprocess(), &parts.preprocess);
        }
        let scaled = parts.preprocess.apply(&raw);
        let want = model.similarity().score(scaled.row(0), scaled.row(1));
        prop_assert_eq!(model.score(raw.row(0), raw.row(1)), want);
    }
}

#[test]
fn a_model_may_be_its_base_alone() {
    let mut parts = ModelParts::new(3, 1.0, Path::new(vec![], vec![]).unwrap());
    assert!(Model::new(parts.clone()).is_err());
    parts.base = 2.0;
    let model = Model::new(parts).unwrap();
    let (a, b) = (
        SparseRow::new(&[0, 2], &[1.0, 2.0]),
        SparseRow::new(&[2], &[5.0]),
    );
    assert_eq!(model.score(a, b), 20.0);
    assert_eq!(model.path().counts(), [(0, 0)]);
    assert_eq!(model.similarity().reduced(None).rank(), 0);
    assert!(model.similarity().explain_pair(a, b).pairs.is_empty());
    let bytes = model.to_bytes();
    assert_eq!(Model::from_bytes("m", &bytes).unwrap(), model);
    let json: serde_json::Value = serde_json::from_str(&model.to_json()).unwrap();
    assert_eq!(
        (json["base"].as_f64(), json["n_atoms"].as_u64()),
        (Some(2.0), Some(0))
    );
}

#[test]
fn bad_bases_are_refused() {
    let model = BilinearModel::new(3, 1.0, vec![(Atom::plus(0, 2).unwrap(), 1.0)]).unwrap();
    for base in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(model.clone().with_base(base).is_err());
        assert!(BilinearModel::base_only(3, base).is_err());
    }
    assert!(BilinearModel::base_only(3, 0.0).is_err());
    assert!(
        BilinearModel::base_only(3, 1.0)
            .unwrap()
            .with_base(0.0)
            .is_err()
    );
    // The coordinates of features and atoms are numbered together.
    let n = u32::MAX as usize;
    let wide = BilinearModel::new(n, 1.0, vec![(Atom::plus(0, 2).unwrap(), 1.0)]).unwrap();
    assert!(wide.with_base(1.0).is_err());
    assert!(BilinearModel::base_only(n, 1.0).is_ok());
}

#[test]
fn values_near_the_limit_do_not_panic() {
    let rows = Rows::from_parts(3, vec![0, 3], vec![0, 1, 2], vec![f64::MAX; 3]).unwrap();
    let atoms = vec![(Atom::plus(0, 1).unwrap(), 1.0)];
    let model = BilinearModel::new(3, 1e300, atoms)
        .unwrap()
        .with_base(1e300)
        .unwrap();
    assert_eq!(model.transform_rows(&rows).row(0).values(), [f64::MAX; 4]);
    model.explain_pair(rows.row(0), rows.row(0));
}
