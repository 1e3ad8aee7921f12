//! Section 2: the training run.

use crate::sample::{rounded, spaced};
use hdsl::Model;
use hdsl::atoms::Step;
use hdsl::model::ValidationMeasure;
use hdsl::solver::Search;
use serde::Serialize;

/// Longer runs are drawn with this number of points.
const MAX_POINTS: usize = 1200;

/// The run, one entry per drawn iterate.
#[derive(Serialize)]
pub(crate) struct RunSection {
    iteration: Vec<usize>,
    objective: Vec<f64>,
    gap: Vec<f64>,
    n_atoms: Vec<usize>,
    n_features: Vec<usize>,
    /// The kind of step to each iterate: s(tart), f(orward), a(way), d(rop), p(airwise), w (swap).
    step: String,
    /// The number of steps of each kind in the whole run.
    n_steps: Vec<(&'static str, usize)>,
    chosen: usize,
    length: usize,
    /// (iteration, validation error).
    evaluations: Vec<(u32, f64)>,
    /// What the validation errors are.
    validation: &'static str,
    gap_certified: Option<f64>,
    /// Whether every gap of the run is certified, that is, an upper bound.
    all_certified: bool,
    stop: Option<String>,
}

impl RunSection {
    pub(crate) fn of(model: &Model) -> Self {
        let parts = model.parts();
        let counts = parts.path.counts();
        let steps = parts.path.steps();
        let mut shown = spaced(counts.len(), MAX_POINTS);
        // The iterate in use and the last one are always drawn.
        for required in [model.chosen() as u32, counts.len() as u32 - 1] {
            if let Err(at) = shown.binary_search(&required) {
                shown.insert(at, required);
            }
        }
        let shown: Vec<usize> = shown.into_iter().map(|i| i as usize).collect();
        let traced = |of: fn(&hdsl::model::TracePoint) -> f64| -> Vec<f64> {
            match parts.trace.is_empty() {
                true => Vec::new(),
                false => shown
                    .iter()
                    .map(|&i| rounded(of(&parts.trace[i]), 6))
                    .collect(),
            }
        };
        let letter = |i: usize| match i {
            0 => 's',
            i => kind(&steps[i - 1]).0,
        };
        let n_steps = ["forward", "away", "drop", "pairwise", "swap"]
            .map(|name| (name, steps.iter().filter(|s| kind(s).1 == name).count()));
        let exact = parts.config.search == Search::Exact && parts.config.batch.is_none();
        Self {
            objective: traced(|p| p.objective),
            gap: traced(|p| p.gap),
            n_atoms: shown.iter().map(|&i| counts[i].0).collect(),
            n_features: shown.iter().map(|&i| counts[i].1).collect(),
            step: shown.iter().map(|&i| letter(i)).collect(),
            n_steps: n_steps.into_iter().filter(|s| s.1 > 0).collect(),
            iteration: shown,
            chosen: model.chosen(),
            length: steps.len(),
            evaluations: parts.evaluations.clone(),
            validation: validation(model),
            gap_certified: parts.gap_certified,
            all_certified: exact && parts.gap_certified.is_some(),
            stop: parts.stop.map(|stop| stop.to_string()),
        }
    }
}

/// The name of the validation errors.
fn validation(model: &Model) -> &'static str {
    match model.parts().config.validation_measure() {
        Some(ValidationMeasure::TripletError) => "held-out triplet error",
        Some(ValidationMeasure::NdcgLoss) => "held-out 1 \u{2212} nDCG@10",
        _ => "validation error",
    }
}

fn kind(step: &Step) -> (char, &'static str) {
    match step {
        Step::Forward { .. } => ('f', "forward"),
        Step::Away { .. } => ('a', "away"),
        Step::Drop { .. } => ('d', "drop"),
        Step::Pairwise { .. } => ('p', "pairwise"),
        Step::Swap { .. } => ('w', "swap"),
    }
}
