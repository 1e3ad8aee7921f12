//! The weight β of the base similarity, from the data.

use crate::data::Rows;
use crate::model::{BaseWeight, TrainConfig};
use crate::triplets::Triplets;

/// The number of triplets that β is estimated from.
const SAMPLE: usize = 10_000;

/// The mean size of base margins with `auto`. The loss has its breakpoints at margins 0 and 1, so base margins of this
/// size are neither ignored nor decisive.
const TYPICAL_MARGIN: f64 = 1.0;

/// The configuration with a number for β. `auto` is the β for which the base margins β |<x_a, x_n> - <x_a, x_f>| of these
/// triplets are 1 on average.
pub(super) fn with_base_weight(
    config: &TrainConfig,
    rows: &Rows,
    triplets: &Triplets,
) -> TrainConfig {
    if config.base != BaseWeight::Auto {
        return config.clone();
    }
    let every = triplets.len().div_ceil(SAMPLE).max(1);
    let sample = (0..triplets.len()).step_by(every);
    let n = sample.len();
    let margins = sample.map(|t| {
        let (anchor, near, far) = triplets.get(t);
        let [anchor, near, far] = [anchor, near, far].map(|row| rows.row(row as usize));
        (anchor.dot(near) - anchor.dot(far)).abs()
    });
    let mean = margins.sum::<f64>() / n.max(1) as f64;
    let beta = TYPICAL_MARGIN / mean;
    TrainConfig {
        // If all base margins are 0, any β is as good as 1.
        base: BaseWeight::Value(if beta.is_finite() { beta } else { 1.0 }),
        ..config.clone()
    }
}
