//! Rows and models to index.

use hdsl::atoms::Path;
use hdsl::{
    Atom, Model, ModelParts, Normalization, PredictionRule, Preprocess, Preprocessor, Rows,
    SparseRow,
};
use std::collections::BTreeMap;

/// Whole numbers below `n`, one after the other.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Rows like word counts: a few features are frequent, most are rare.
pub(crate) fn texts(n: usize, n_features: u32, seed: u64) -> Rows {
    let mut draws = Draws(seed);
    let mut rows = Rows::new(n_features as usize);
    for _ in 0..n {
        let mut row = BTreeMap::new();
        for _ in 0..draws.below(25) {
            let u = draws.below(1 << 20) as f64 / f64::from(1 << 20);
            *row.entry((f64::from(n_features) * u.powi(4)) as u32)
                .or_insert(0.0) += 1.0;
        }
        let (indices, values): (Vec<u32>, Vec<f64>) = row.into_iter().unzip();
        rows.push(SparseRow::new(&indices, &values));
    }
    rows
}

/// Small whole numbers of both signs in few features: many ties, zeros and cancellations, and dense columns.
pub(crate) fn signed(n: usize, seed: u64) -> Rows {
    let mut draws = Draws(seed);
    let mut rows = Rows::new(40);
    for _ in 0..n {
        let mut features: Vec<u32> = (0..draws.below(9))
            .map(|_| draws.below(40) as u32)
            .collect();
        features.sort_unstable();
        features.dedup();
        let values: Vec<f64> = features
            .iter()
            .map(|_| draws.below(7) as f64 - 3.0)
            .collect();
        rows.push(SparseRow::new(&features, &values));
    }
    rows
}

/// A model with plus and minus atoms on a base.
pub(crate) fn model(rows: &Rows, base: f64, preprocess: Preprocess, rule: PredictionRule) -> Model {
    let atoms = (0..12u32).map(|a| {
        let atom = match a % 3 {
            0 => Atom::plus(a, a + 7),
            _ => Atom::minus(a, 3 * a + 2),
        };
        (atom.unwrap(), 1.0 / 12.0)
    });
    let path = Path::new(atoms.collect(), vec![]).unwrap();
    let mut parts = ModelParts::new(rows.n_features(), 3.0, path);
    parts.base = base;
    parts.preprocess = Preprocessor::fit(preprocess, rows);
    parts.config.rule = rule;
    Model::new(parts).unwrap()
}

/// The default rule with a normalization.
pub(crate) fn rule(normalization: Normalization) -> PredictionRule {
    PredictionRule {
        normalization,
        ..PredictionRule::default()
    }
}
