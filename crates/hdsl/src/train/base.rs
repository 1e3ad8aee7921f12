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
    let base = match config.base {
        BaseWeight::Auto => base_weight(rows, triplets),
        BaseWeight::Value(beta) => beta,
    };
    let mut config = TrainConfig {
        base: BaseWeight::Value(base),
        preprocess,
        ..config.clone()
    };
    if config.lambda.is_empty() {
        config.lambda = vec![lambda(rows, base)];
    }
    config
}

/// The β for which the base margins β |<x_a, x_n> - <x_a, x_f>| of these triplets have the mean [`BASE_MARGIN`].
fn base_weight(rows: &Rows, triplets: &Triplets) -> f64 {
    let every = triplets.len().div_ceil(SAMPLE).max(1);
    let sample = (0..triplets.len()).step_by(every);
    let n = sample.len();
    let margins = sample.map(|t| {
        let (anchor, near, far) = triplets.get(t);
        let [anchor, near, far] = [anchor, near, far].map(|row| rows.row(row as usize));
        (anchor.dot(near) - anchor.dot(far)).abs()
    });
    let mean = margins.sum::<f64>() / n.max(1) as f64;
    let beta = BASE_MARGIN / mean;
    // If all base margins are 0, any β is as good as 1.
    if beta.is_finite() { beta } else { 1.0 }
}

/// λ for which M is small beside the base; without a base, one that suits the size of the values.
fn lambda(rows: &Rows, base: f64) -> f64 {
    let squares: f64 = rows.values().iter().map(|x| x * x).sum();
    let lambda = match base > 0.0 {
        true => 0.5 * RELATIVE_TRACE * base * Columns::of(rows).len() as f64,
        false => RELATIVE_LAMBDA * rows.nnz() as f64 / squares,
    };
    // Rows without values are refused by the solver.
    if lambda.is_finite() && lambda > 0.0 {
        lambda
    } else {
        1.0
    }
}
