//! Small random problems, and the dense arithmetic they are compared with.

use hdsl::atoms::Path;
use hdsl::atoms::Step;
use hdsl::data::{Preprocess, Preprocessor};
use hdsl::model::TracePoint;
use hdsl::{
    ActiveSet, Atom, BilinearModel, ModelParts, Normalization, PredictionRule, Rows, Sign,
    SparseRow, Vote,
};
use proptest::prelude::*;

pub(crate) const D: u32 = 9;

pub(crate) fn atom() -> impl Strategy<Value = Atom> {
    (0..D, 1..D, any::<bool>()).prop_map(|(i, shift, plus)| {
        let sign = if plus { Sign::Plus } else { Sign::Minus };
        Atom::new(i, (i + shift) % D, sign).unwrap()
    })
}

/// Distinct atoms whose weights sum to 1.
pub(crate) fn weighted_atoms() -> impl Strategy<Value = Vec<(Atom, f64)>> {
    prop::collection::vec((atom(), 0.01f64..1.0), 1..12).prop_map(|mut list| {
        list.sort_by_key(|w| w.0);
        list.dedup_by_key(|w| w.0);
        let total: f64 = list.iter().map(|w| w.1).sum();
        list.iter_mut().for_each(|w| w.1 /= total);
        list
    })
}

pub(crate) fn bilinear() -> impl Strategy<Value = BilinearModel> {
    (weighted_atoms(), -3i32..4).prop_map(|(atoms, power)| {
        BilinearModel::new(D as usize, 10f64.powi(power), atoms).unwrap()
    })
}

/// 0 as often as not.
pub(crate) fn base() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.01f64..50.0]
}

/// Similarities with a base above 0, some of them without atoms.
pub(crate) fn on_base() -> impl Strategy<Value = BilinearModel> {
    let only = |base| BilinearModel::base_only(D as usize, base).unwrap();
    let both = |(model, base): (BilinearModel, f64)| model.with_base(base).unwrap();
    prop_oneof![
        1 => (0.01f64..50.0).prop_map(only),
        3 => (bilinear(), 0.01f64..50.0).prop_map(both),
    ]
}

/// Rows with negative values, empty rows, and features beyond those of the model.
pub(crate) fn rows(n: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Rows> {
    let row = prop::collection::btree_map(0..D + 2, -3.0f64..3.0, 0..8);
    prop::collection::vec(row, n).prop_map(|list| {
        let mut rows = Rows::new(D as usize + 2);
        for row in list {
            let (indices, values): (Vec<u32>, Vec<f64>) = row.into_iter().unzip();
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    })
}

/// Rows of small whole numbers, among which equal scores, zero scores and exact cancellation are common.
pub(crate) fn whole_rows(n: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Rows> {
    let row = prop::collection::btree_map(0..D, -2i32..3, 0..4);
    prop::collection::vec(row, n).prop_map(|list| {
        let mut rows = Rows::new(D as usize);
        for row in list {
            let (indices, values): (Vec<u32>, Vec<f64>) =
                row.into_iter().map(|(f, v)| (f, f64::from(v))).unzip();
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    })
}

pub(crate) fn rule() -> impl Strategy<Value = PredictionRule> {
    let vote = prop::sample::select(Vote::ALL.to_vec());
    let normalization = prop::sample::select(Normalization::ALL.to_vec());
    (1usize..12, vote, normalization).prop_map(|(k, vote, normalization)| PredictionRule {
        k,
        vote,
        normalization,
    })
}

pub(crate) fn path() -> impl Strategy<Value = Path> {
    let attempt = (0..5u8, atom(), any::<prop::sample::Index>(), 0.001f64..1.0);
    (weighted_atoms(), prop::collection::vec(attempt, 0..40)).prop_map(|(start, attempts)| {
        let mut active = ActiveSet::from_weighted(&start).unwrap();
        let mut steps = Vec::new();
        for (kind, atom, index, share) in attempts {
            let held = active.atoms()[index.index(active.len())];
            let weight = active.weight(held);
            let step = match kind {
                0 => Step::Forward { atom, gamma: share },
                1 => Step::Away {
                    atom: held,
                    gamma: share * (weight / (1.0 - weight) * 0.99).min(4.0),
                },
                2 => Step::Drop { atom: held },
                3 => Step::Pairwise {
                    to: atom,
                    from: held,
                    gamma: share * weight * 0.99,
                },
                _ => Step::Swap {
                    to: atom,
                    from: held,
                },
            };
            if active.accepts(&step) {
                active.apply(&step);
                steps.push(step);
            }
        }
        Path::new(start, steps).unwrap()
    })
}

pub(crate) fn parts() -> impl Strategy<Value = ModelParts> {
    let kind = prop::sample::select(Preprocess::ALL.to_vec());
    let text = "[a-zµ\"\\\\ ]{0,6}";
    (
        path(),
        kind,
        rows(1..6),
        (
            0.001f64..1e6,
            base(),
            any::<bool>(),
            any::<prop::sample::Index>(),
        ),
        prop::collection::btree_map(0..D, text, 0..5),
        (any::<u64>(), rule()),
        prop::option::of(prop::collection::vec(text, 0..4)),
        prop::option::of(0.0f64..1.0),
        any::<bool>(),
    )
        .prop_map(
            |(
                path,
                kind,
                train,
                (scale, base, zero_based, at),
                names,
                (seed, rule),
                classes,
                gap,
                trace,
            )| {
                let n_features = train.n_features();
                let mut parts = ModelParts::new(n_features, scale, path);
                parts.preprocess = Preprocessor::fit(kind, &train);
                parts.base = base;
                parts.zero_based = zero_based;
                parts.chosen = at.index(parts.path.len() + 1);
                parts.names = names.into_iter().collect();
                parts.config.seed = seed;
                parts.config.rule = rule;
                parts.classes = classes;
                parts.gap_certified = gap;
                if trace {
                    let point = |n: usize| TracePoint {
                        objective: 1.0 / (n + 1) as f64,
                        gap: 0.3 / (n + 1) as f64,
                    };
                    parts.trace = (0..=parts.path.len()).map(point).collect();
                    parts.evaluations = (0..=parts.path.len() as u32)
                        .step_by(3)
                        .map(|n| (n, 0.25))
                        .collect();
                }
                parts
            },
        )
}

/// M from its definition.
pub(crate) fn dense(model: &BilinearModel) -> Vec<Vec<f64>> {
    let d = model.n_features();
    let mut m = vec![vec![0.0; d]; d];
    for (atom, weight) in model.atoms().iter().zip(model.weights()) {
        let mut u = vec![0.0; d];
        u[atom.i() as usize] = 1.0;
        u[atom.j() as usize] = atom.sign().value();
        for (p, row) in m.iter_mut().enumerate() {
            for (q, entry) in row.iter_mut().enumerate() {
                *entry += model.scale() * weight * u[p] * u[q];
            }
        }
    }
    m
}

/// xᵀ M x', and the sum of the absolute values of its terms, against which rounding is measured.
pub(crate) fn dense_score(m: &[Vec<f64>], a: SparseRow<'_>, b: SparseRow<'_>) -> (f64, f64) {
    let (mut sum, mut size) = (0.0, 0.0);
    for (p, row) in m.iter().enumerate() {
        for (q, entry) in row.iter().enumerate() {
            let term = a.get(p as u32) * entry * b.get(q as u32);
            sum += term;
            size += term.abs();
        }
    }
    (sum, size)
}

/// A pool of threads, to compare results of different numbers of them.
pub(crate) fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
}
