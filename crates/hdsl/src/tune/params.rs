//! What a search is asked to do.

use super::choice::Point;
use crate::data::Preprocess;
use crate::error::{Error, Result};
use crate::knn::{PredictionRule, Vote};
use crate::model::TrainConfig;
use crate::named::named_enum;
use crate::objective::LossKind;
use crate::similarity::Normalization;
use crate::triplets::TripletSource;
use std::path::PathBuf;
use std::time::Duration;

named_enum! {
/// What is searched over.
pub enum Preset as "preset" = "best" | "paper", default Best {
    /// Base, preprocessing, triplets, mining rounds, λ, losses, iterations, ensembles and prediction rules.
    Best,
    /// The paper's recipe: [0, 1] preprocessing, 3 x 5 static neighbors, λ from 1 to 10^9, the majority of 3.
    Paper,
}
}

named_enum! {
/// A part of the search that can be left out, to see what it contributes.
pub enum Ablation as "ablate" = "base" | "term-weights" | "mining-rounds" | "ensembles" | "votes" | "cosine" | "random"
    | "neighbors" | "unit" | "losses" {
    /// Similarities learned on top of a base.
    Base,
    /// Preprocessing by tf-idf or BM25.
    TermWeights,
    /// Triplets mined under the similarity learned so far.
    MiningRounds,
    /// Averages of several models.
    Ensembles,
    /// Prediction rules other than the majority of 3 neighbors.
    Votes,
    /// The cosine of the learned similarity.
    Cosine,
    /// Random triplets.
    Random,
    /// Triplets of neighbors under the dot product.
    Neighbors,
    /// Rows of unit length: without, values are scaled to [0, 1] by their maxima and no more.
    Unit,
    /// Losses other than the smoothed hinge.
    Losses,
}
}

impl Ablation {
    /// Whether a point depends on this part.
    pub(super) fn is_used_by(self, config: &TrainConfig, point: &Point) -> bool {
        let PredictionRule {
            k,
            vote,
            normalization,
        } = point.rule;
        match self {
            Self::Base => !config.base.is_none(),
            Self::TermWeights => {
                matches!(config.preprocess, Preprocess::Tfidf | Preprocess::Bm25)
            }
            Self::MiningRounds => point.round > 0,
            Self::Ensembles => config.n_estimators > 1,
            Self::Votes => k != 3 || vote != Vote::Majority,
            Self::Cosine => normalization == Normalization::Cosine,
            Self::Random => matches!(config.triplets, TripletSource::Random { .. }),
            Self::Neighbors => matches!(config.triplets, TripletSource::Neighbors { .. }),
            Self::Unit => config.preprocess != Preprocess::Max,
            Self::Losses => config.loss != LossKind::SmoothedHinge,
        }
    }
}

/// Which rows errors are computed on, where no validation rows are given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum ValidationScheme {
    /// For fewer than 3,000 rows, five-fold cross-validation (fewer folds for fewer rows than folds), repeated up to three
    /// times until there are 1,500 predictions, the repetitions for the best trials at the end. For fewer than 20,000 rows, the first of five folds, and all of them for
    /// the best trials at the end. A fifth of the rows held out otherwise.
    #[default]
    Auto,
    /// Cross-validation with this many folds.
    CrossValidation(usize),
    /// A fraction of the rows held out, by class, at random.
    Holdout(f64),
}

/// The parameters of [`tune`](super::tune).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TuneConfig {
    /// What is searched over.
    pub preset: Preset,
    /// A file of triplets, clicks or judgments to learn from and to validate with, in place of labels. Sources that mine
    /// triplets from labels are searched over.
    pub triplets: TripletSource,
    /// Which rows errors are computed on, without validation rows; of given triplets, which anchors.
    pub validation: ValidationScheme,
    /// Whether validation rows stay out of the final training.
    pub no_refit: bool,
    /// Time limit of the whole search, the final training included.
    pub time: Option<Duration>,
    /// Features a model may use at most.
    pub max_features: Option<usize>,
    /// Atoms a model may have at most.
    pub max_atoms: Option<usize>,
    /// Parts of the search that are left out.
    pub ablate: Vec<Ablation>,
    /// Iterations of the first rung; later rungs double them. 128 by default; for the paper's preset, they depend on the
    /// number of classes and of rows.
    pub round_iter: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
    /// Bytes a run may take at most; by default what is free.
    pub memory_limit: Option<u64>,
    /// The file that records finished jobs, so that a search that was killed can be resumed.
    pub journal: Option<PathBuf>,
}

impl Default for TuneConfig {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            triplets: TrainConfig::new(1.0).triplets,
            validation: ValidationScheme::default(),
            no_refit: false,
            time: None,
            max_features: None,
            max_atoms: None,
            ablate: Vec::new(),
            round_iter: None,
            seed: 0,
            memory_limit: None,
            journal: None,
        }
    }
}

impl TuneConfig {
    /// Whether a part is searched over.
    pub(super) fn uses(&self, part: Ablation) -> bool {
        self.preset == Preset::Best && !self.ablate.contains(&part)
    }

    pub(super) fn check(&self) -> Result<()> {
        let sources = [Ablation::Random, Ablation::Neighbors];
        match sources.iter().all(|part| self.ablate.contains(part)) {
            true => Err(Error::param(
                "ablate",
                "random and neighbors",
                "at most one of the two, because all triplets come from them",
            )),
            false => Ok(()),
        }
    }

    /// Whether the size of the model is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.max_features.is_some() || self.max_atoms.is_some()
    }

    /// Whether a point is within the limits of a model.
    pub(super) fn allows(&self, point: &Point) -> bool {
        self.max_features.is_none_or(|most| point.features <= most)
            && self.max_atoms.is_none_or(|most| point.atoms <= most)
    }
}
