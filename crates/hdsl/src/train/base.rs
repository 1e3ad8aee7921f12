//! The weights of the base similarity and of the learned part, relative to the data.

use crate::data::{Columns, Preprocess, Rows};
use crate::model::{BaseWeight, TrainConfig};
use crate::triplets::Triplets;

/// The number of triplets that β is estimated from.
const SAMPLE: usize = 10_000;

/// The mean size of base margins for β `auto`. The breakpoints of the loss are at 0 and 1. Most triplets are then
/// satisfied or violated by the base, and learning corrects the violated ones.
const BASE_MARGIN: f64 = 3.0;

/// trace(M) relative to trace(β I) = β d, where d is the number of features that occur. trace(M) is 2λ.
const RELATIVE_TRACE: f64 = 0.03;

/// Without a base: λ times the mean square of the stored values.
const RELATIVE_LAMBDA: f64 = 100.0;

/// The configuration with numbers for β and λ where they are left open. `rows` are preprocessed.
pub(super) fn with_weights(
    config: &TrainConfig,
    preprocess: Preprocess,
    rows: &Rows,
    triplets: &Triplets,
) -> TrainConfig {
    let beta = || base_weight(rows, triplets, BASE_MARGIN);
    resolved(config, preprocess, beta, |base| match base > 0.0 {
        true => lambda_beside(rows, base, RELATIVE_TRACE),
        false => lambda_alone(rows, RELATIVE_LAMBDA),
    })
}

/// The same for rows that are on several machines, given sums over them.
pub(crate) fn with_weights_of(
    config: &TrainConfig,
    preprocess: Preprocess,
    sums: &WeightSums,
) -> TrainConfig {
    let beta = || finite_or_one(BASE_MARGIN / sums.base_margin);
    resolved(config, preprocess, beta, |base| match base > 0.0 {
        true => or_one(0.5 * RELATIVE_TRACE * base * sums.n_columns as f64),
        false => or_one(RELATIVE_LAMBDA * sums.nnz as f64 / sums.squares),
    })
}

/// Sums over preprocessed rows, which β and λ are chosen from.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct WeightSums {
    /// The mean of |<x_a, x_n> - <x_a, x_f>| over a sample of the triplets.
    pub base_margin: f64,
    /// The number of columns with a value.
    pub n_columns: usize,
    /// The number of values, and the sum of their squares.
    pub nnz: usize,
    /// The sum of the squares of all values.
    pub squares: f64,
}

impl WeightSums {
    /// All sums.
    pub fn new(base_margin: f64, n_columns: usize, nnz: usize, squares: f64) -> Self {
        Self {
            base_margin,
            n_columns,
            nnz,
            squares,
        }
    }
}

fn resolved(
    config: &TrainConfig,
    preprocess: Preprocess,
    beta: impl FnOnce() -> f64,
    lambda: impl FnOnce(f64) -> f64,
) -> TrainConfig {
    let base = match config.base {
        BaseWeight::Auto => beta(),
        BaseWeight::Value(beta) => beta,
    };
    let mut config = TrainConfig {
        base: BaseWeight::Value(base),
        preprocess,
        ..config.clone()
    };
    if config.lambda.is_empty() {
        config.lambda = vec![lambda(base)];
    }
    config
}

/// If all base margins are 0, any β is as good as 1.
fn finite_or_one(beta: f64) -> f64 {
    if beta.is_finite() { beta } else { 1.0 }
}

/// The β for which the base margins β |<x_a, x_n> - <x_a, x_f>| of these triplets have this mean.
pub(crate) fn base_weight(rows: &Rows, triplets: &Triplets, base_margin: f64) -> f64 {
    let every = triplets.len().div_ceil(SAMPLE).max(1);
    let sample = (0..triplets.len()).step_by(every);
    let n = sample.len();
    let margins = sample.map(|t| {
        let (anchor, near, far) = triplets.get(t);
        let [anchor, near, far] = [anchor, near, far].map(|row| rows.row(row as usize));
        (anchor.dot(near) - anchor.dot(far)).abs()
    });
    let mean = margins.sum::<f64>() / n.max(1) as f64;
    finite_or_one(base_margin / mean)
}

/// λ for which trace(M) = 2λ is this share of trace(β I).
pub(crate) fn lambda_beside(rows: &Rows, base: f64, relative_trace: f64) -> f64 {
    or_one(0.5 * relative_trace * base * Columns::of(rows).len() as f64)
}

/// λ that is this multiple of the mean square of the stored values, inverted: good values of it differ little between
/// data sets.
pub(crate) fn lambda_alone(rows: &Rows, relative: f64) -> f64 {
    let squares: f64 = rows.values().iter().map(|x| x * x).sum();
    or_one(relative * rows.nnz() as f64 / squares)
}

/// Rows without values are refused by the solver.
fn or_one(lambda: f64) -> f64 {
    match lambda.is_finite() && lambda > 0.0 {
        true => lambda,
        false => 1.0,
    }
}
