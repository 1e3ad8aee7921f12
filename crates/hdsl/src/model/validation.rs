//! What chooses the iterate to keep.

use super::config::TrainConfig;
use crate::named::named_enum;
use crate::triplets::{TripletFormat, TripletSource};
use serde::{Deserialize, Serialize};

/// What chose the iterate to keep (and λ, where several were tried).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Validation {
    /// Nothing: the last iterate is kept.
    #[default]
    None,
    /// Rows of their own.
    Rows,
    /// This fraction of the training rows, by class, drawn with the seed of the training.
    Holdout(f64),
    /// The triplets of this fraction of the anchors of given triplets, or this fraction of the queries of judgments, drawn
    /// with the seed of the training. No anchor has both triplets to learn from and held-out ones.
    HoldoutAnchors(f64),
}

named_enum! {
/// What a validation error is: `prediction-error`, `triplet-error` or `ndcg-loss`.
#[non_exhaustive]
pub enum ValidationMeasure as "measure" = "prediction-error" | "triplet-error" | "ndcg-loss" {
    /// The share of validation rows whose predicted class is wrong.
    PredictionError,
    /// 1 - triplet accuracy of the held-out triplets; a tie counts one half.
    TripletError,
    /// 1 - nDCG@10 of the held-out queries, whose judged documents are ranked; ties in expectation.
    NdcgLoss,
}
}

impl TrainConfig {
    /// What the validation errors of this training are; none without validation.
    pub fn validation_measure(&self) -> Option<ValidationMeasure> {
        match self.validation {
            Validation::None => None,
            Validation::Rows | Validation::Holdout(_) => Some(ValidationMeasure::PredictionError),
            Validation::HoldoutAnchors(_) => Some(match &self.triplets {
                TripletSource::File {
                    format: TripletFormat::Judgments | TripletFormat::JudgmentsLow,
                    ..
                } => ValidationMeasure::NdcgLoss,
                _ => ValidationMeasure::TripletError,
            }),
        }
    }
}
