//! Satisfied triplets: how many training triplets have a margin above 0, under the learned similarity and without learning.

use crate::input::Input;
use crate::ranking::dot_preprocessor;
use crate::references::{Purpose, Reference};
use hdsl::{CancelToken, Result, Rows, Triplets};
use serde::Serialize;

/// The number of triplets, and the shares of them with a margin above 0.
#[derive(Serialize)]
pub(crate) struct Satisfied {
    pub(crate) n: usize,
    pub(crate) dot: f64,
    pub(crate) learned: f64,
    /// The shares under other similarities without learning.
    pub(crate) references: Vec<(&'static str, f64)>,
}

/// Counts satisfied triplets among the given ones, or among those mined again as in training. `None` if neither is
/// possible.
pub(crate) fn satisfied(input: &Input<'_>) -> Result<Option<Satisfied>> {
    let Some(train) = input.train else {
        return Ok(None);
    };
    let rows = dot_preprocessor(input, train.rows).apply(train.rows);
    let triplets = match input.triplets {
        Some(triplets) => {
            triplets.check(rows.n_rows())?;
            Some(triplets.clone())
        }
        None => mined(input, &rows),
    };
    let Some(triplets) = triplets.filter(|triplets| !triplets.is_empty()) else {
        return Ok(None);
    };
    let transformed = input.model.transform_rows(train.rows);
    Ok(Some(Satisfied {
        n: triplets.len(),
        dot: satisfied_share(&triplets, &rows),
        learned: satisfied_share(&triplets, &transformed),
        references: references(input, train.rows, &triplets),
    }))
}

/// The triplets that training mined. `None` if it did not mine any, or if these rows do not allow it, for instance
/// because they have one class only.
fn mined(input: &Input<'_>, rows: &Rows) -> Option<Triplets> {
    let config = &input.model.parts().config;
    let labels = input.train?.labels?;
    if !config.triplets.is_mined() {
        return None;
    }
    let triplets = config
        .triplets
        .triplets(rows, Some(labels), config.seed, CancelToken::NEVER);
    triplets.ok()
}

fn references(input: &Input<'_>, train: &Rows, triplets: &Triplets) -> Vec<(&'static str, f64)> {
    Reference::all(input, train, train, Purpose::Errors)
        .into_iter()
        // Under the base alone the margins have the same signs as under the dot product.
        .filter(|reference| reference.name != "dot product")
        .map(|reference| {
            let rows = reference.preprocessor.apply(train);
            (reference.name, satisfied_share(triplets, &rows))
        })
        .collect()
}

/// The share of triplets whose anchor has a larger dot product with the near row than with the far row.
fn satisfied_share(triplets: &Triplets, rows: &Rows) -> f64 {
    let row = |r: u32| rows.row(r as usize);
    let satisfied = triplets
        .iter()
        .filter(|&(anchor, near, far)| row(anchor).dot(row(near)) > row(anchor).dot(row(far)));
    satisfied.count() as f64 / triplets.len() as f64
}
