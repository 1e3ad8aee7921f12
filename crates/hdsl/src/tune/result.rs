//! What a search returns.

use super::params::Ablation;
use crate::model::TrainConfig;
use crate::train::Trained;

/// A line of the leaderboard: a trial at its best.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The configuration that trains it.
    pub config: TrainConfig,
    /// Validation error.
    pub error: f64,
    /// What it was ranked by: the error shrunk towards that of its neighborhood.
    pub score: f64,
    /// Features in use; the most of all folds.
    pub features: usize,
    /// Atoms; the most of all folds.
    pub atoms: usize,
}

/// What would have been chosen without a part of the search.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AblationResult {
    /// The part.
    pub part: Ablation,
    /// The same choice among all points that do not use the part.
    pub candidate: Candidate,
    /// The error to expect of it on new rows, as [`Tuned::expected_error`].
    pub expected_error: Option<(f64, f64)>,
}

/// What [`tune`](super::tune) returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuned {
    /// The final training; its model contains the configuration found.
    pub trained: Trained,
    /// Rows it learned from.
    pub n_rows: usize,
    /// Whether the validation rows are among them.
    pub refitted: bool,
    /// Every trial at its best; the first is the winner.
    pub leaderboard: Vec<Candidate>,
    /// What would have been chosen without each part that was searched over and can be left out.
    pub ablations: Vec<AblationResult>,
    /// The error to expect on new rows, with its standard deviation: that of the choice, on rows that did not choose.
    pub expected_error: Option<(f64, f64)>,
    /// 3-NN error of the dot product on the validation rows.
    pub dot_error: f64,
    /// Rows that errors were computed on.
    pub n_validation: usize,
    /// Points that were compared.
    pub n_points: usize,
    /// Whether all that was planned was done.
    pub finished: bool,
}
