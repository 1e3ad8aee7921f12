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
    /// Whether this is a reference: the dot product of preprocessed rows, with nothing learned.
    pub is_reference: bool,
    /// Validation error.
    pub error: f64,
    /// What it was ranked by: the error shrunk towards that of its neighborhood.
    pub score: f64,
    /// Features of the learned part; the most of all folds.
    pub features: usize,
    /// Atoms; the most of all folds.
    pub atoms: usize,
}

impl Candidate {
    /// What a reference is called, by its preprocessing.
    pub fn reference_name(&self) -> Option<String> {
        use crate::data::Preprocess::*;
        self.is_reference.then(|| match self.config.preprocess {
            None => "dot product".to_owned(),
            Unit => "cosine".to_owned(),
            Tfidf => "tf-idf cosine".to_owned(),
            Bm25 => "BM25-weighted cosine".to_owned(),
            MaxUnit => "cosine, scaled by maximum".to_owned(),
            Max => "dot product, scaled by maximum".to_owned(),
            other => format!("dot product, {other}"),
        })
    }
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
    /// Every trial at its best, references among them; the first is the winner.
    pub leaderboard: Vec<Candidate>,
    /// What would have been chosen without each part that was searched over and can be left out.
    pub ablations: Vec<AblationResult>,
    /// The error to expect on new rows: that of the choice, on rows that did not choose. With its standard deviation on a
    /// test set as large as a fold.
    pub expected_error: Option<(f64, f64)>,
    /// The same for the choice among the references alone.
    pub expected_reference_error: Option<(f64, f64)>,
    /// Rows that errors were computed on; of given triplets or judgments, anchors or queries.
    pub n_validation: usize,
    /// What the errors are, if they are not those of predicted classes: 1 - accuracy of triplets, or 1 - nDCG@10.
    pub measure: Option<&'static str>,
    /// Points that were compared.
    pub n_points: usize,
    /// Whether all that was planned was done.
    pub finished: bool,
}

impl Tuned {
    /// The best of the references.
    pub fn reference(&self) -> Option<&Candidate> {
        let references = self.leaderboard.iter().filter(|c| c.is_reference);
        references.min_by(|a, b| a.error.total_cmp(&b.error))
    }
}
