//! Prediction rules: how a class is predicted from labeled rows. A model carries its own.

use crate::error::{Error, Result};
use crate::named::named_enum;
use crate::similarity::Normalization;
use serde::{Deserialize, Serialize};
use std::fmt;

named_enum! {
/// How the class of a row is predicted: `majority`, `weighted`, `squared` or `class-mean`.
///
/// - `majority`: each of the k nearest rows has one vote. Classes that tie: the one whose nearest member is nearest.
/// - `weighted`: each of the k nearest rows votes with its similarity, or with 0 where that is below 0. Classes that tie:
///   as under `majority`, so that it is the majority's vote where no neighbor has any weight.
/// - `squared`: as `weighted`, with the square of the similarity. Near rows count for more, so that k may be larger.
/// - `class-mean`: the class whose rows have the highest mean similarity to the query. Every row counts, there is no k.
///   Classes that tie: the first. A class without rows is never chosen.
///
/// ```
/// use hdsl::Vote;
/// assert_eq!("class-mean".parse::<Vote>()?, Vote::ClassMean);
/// assert_eq!(Vote::default().to_string(), "majority");
/// # Ok::<(), hdsl::Error>(())
/// ```
pub enum Vote as "vote" = "majority" | "weighted" | "squared" | "class-mean", default Majority {
    /// One vote for each of the k nearest rows.
    Majority,
    /// The k nearest rows vote with their similarity.
    Weighted,
    /// The k nearest rows vote with the square of their similarity.
    Squared,
    /// The highest mean similarity to all rows of a class.
    ClassMean,
}
}

impl Vote {
    /// Whether k nearest rows vote, rather than all rows.
    pub fn has_k(self) -> bool {
        self != Vote::ClassMean
    }

    /// What a neighbor with this similarity counts in a vote of k rows, of which the nearest has the similarity `nearest`.
    pub(super) fn weight(self, score: f64, nearest: f64) -> f64 {
        match self {
            Vote::Weighted => score.max(0.0),
            // Relative to the nearest, because squares leave the range of numbers early.
            Vote::Squared if nearest > 0.0 => {
                (score.clamp(0.0, f64::MAX) / nearest.min(f64::MAX)).powi(2)
            }
            Vote::Squared => 0.0,
            Vote::Majority | Vote::ClassMean => 1.0,
        }
    }
}

/// How the class of a row is predicted from labeled rows, by [`knn::classify`](crate::knn::classify).
///
/// ```
/// use hdsl::{PredictionRule, Normalization, Vote};
/// assert_eq!(PredictionRule::default(), PredictionRule { k: 3, vote: Vote::Majority, normalization: Normalization::Dot });
/// assert_eq!(PredictionRule::nearest(15).to_string(), "majority of 15 neighbors, dot");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictionRule {
    /// How many nearest rows vote. `class-mean` does not use it.
    pub k: usize,
    /// How they vote.
    pub vote: Vote,
    /// How the similarity is normalized.
    pub normalization: Normalization,
}

impl Default for PredictionRule {
    /// The paper's: the majority of 3, under the similarity as it is.
    fn default() -> Self {
        Self::nearest(3)
    }
}

impl fmt::Display for PredictionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            k,
            vote,
            normalization,
        } = self;
        let s = if *k == 1 { "" } else { "s" };
        match vote {
            Vote::Majority => write!(f, "majority of {k} neighbor{s}, {normalization}"),
            Vote::Weighted => write!(f, "weighted vote of {k} neighbor{s}, {normalization}"),
            Vote::Squared => write!(f, "squared vote of {k} neighbor{s}, {normalization}"),
            Vote::ClassMean => write!(f, "class mean, {normalization}"),
        }
    }
}

impl PredictionRule {
    /// The majority of the `k` nearest, under the similarity as it is.
    pub fn nearest(k: usize) -> Self {
        Self {
            k,
            vote: Vote::Majority,
            normalization: Normalization::Dot,
        }
    }

    /// Whether so many labeled rows are enough to predict from.
    pub(crate) fn check(&self, n_rows: usize) -> Result<()> {
        if self.k == 0 {
            return Err(Error::param("k", self.k, "a whole number above 0"));
        }
        if n_rows == 0 {
            return Err(Error::data("there are no training rows to predict from"));
        }
        if self.vote.has_k() && self.k > n_rows {
            return Err(Error::Data(format!(
                "there are fewer rows than neighbors to find: {n_rows}, but k is {}",
                self.k
            )));
        }
        Ok(())
    }
}
