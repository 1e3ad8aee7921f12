//! What a training is given: rows, labels, and optional parts beside them.

use super::held_out::HeldOut;
use crate::atoms::ActiveSet;
use crate::data::{Dataset, IndexBase, Labels, Preprocessor, RowsView, stratified_split};
use crate::error::{Error, Result};
use crate::triplets::{LARGEST_WEIGHT, Triplets};

/// Rows with their labels, borrowed from a [`Dataset`] or from arrays of another language.
#[derive(Clone, Copy, Debug)]
pub struct Labeled<'a> {
    /// Raw rows.
    pub rows: RowsView<'a>,
    /// The class of each row, if known.
    pub labels: Option<&'a Labels>,
    /// The number of the first feature in files, for names such as `f17`.
    pub index_base: IndexBase,
}

impl<'a> From<&'a Dataset> for Labeled<'a> {
    fn from(data: &'a Dataset) -> Self {
        Self {
            rows: data.rows.view(),
            labels: data.labels.as_ref(),
            index_base: data.index_base,
        }
    }
}

impl<'a> Labeled<'a> {
    /// The labels, or an error that says what they are needed for.
    pub(crate) fn labels_for(&self, which: &str, purpose: &str) -> Result<&'a Labels> {
        let missing = || Error::data(format!("the {which} rows have no labels {purpose}"));
        self.labels.ok_or_else(missing)
    }
}

/// Everything [`train`](crate::train()) learns from. Only the training rows are required.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TrainData<'a> {
    /// The training rows.
    pub train: Labeled<'a>,
    /// The validation rows. [`Validation::HoldoutAnchors`](crate::model::Validation::HoldoutAnchors) needs none.
    pub valid: Option<Labeled<'a>>,
    /// Triplets of training rows, instead of those of [`TrainConfig::triplets`](crate::TrainConfig::triplets).
    pub triplets: Option<&'a Triplets>,
    /// The weight of each class, by its code in the labels of the training rows: mined triplets have that of their anchor's
    /// class. All classes weigh 1 if there is none.
    pub class_weights: Option<&'a [f64]>,
    /// Names of features, by number. The model contains those on its path.
    pub names: Option<&'a [String]>,
    /// A solution to start from, instead of the best single atom. Atoms of features that no training row has are left
    /// out; if none remains, the start is as usual.
    pub start: Option<&'a ActiveSet>,
    /// A fitted preprocessing, instead of one to be fitted on the training rows.
    pub preprocessor: Option<&'a Preprocessor>,
    /// Triplets or queries that were held out of the supervision.
    pub(crate) held_out: Option<&'a HeldOut>,
}

impl<'a> TrainData<'a> {
    /// Training rows alone.
    pub fn new(train: impl Into<Labeled<'a>>) -> Self {
        Self {
            train: train.into(),
            valid: None,
            triplets: None,
            class_weights: None,
            names: None,
            start: None,
            preprocessor: None,
            held_out: None,
        }
    }
}

/// Checks that every class has a weight of at least 0.
pub(super) fn check_class_weights(weights: &[f64], labels: &Labels) -> Result<()> {
    let (n, of) = (weights.len(), labels.names().len());
    if n != of {
        let message = format!("there are {n} class weights for {of} classes");
        return Err(Error::data(message));
    }
    let range = 0.0..=LARGEST_WEIGHT;
    match weights.iter().find(|w| !range.contains(*w)) {
        Some(&wrong) => Err(Error::param(
            "class_weights",
            wrong,
            "finite numbers from 0 to 1e30",
        )),
        None => Ok(()),
    }
}

/// Mined triplets with the weights of their anchors' classes.
pub(super) fn weighted_by_class(
    triplets: Triplets,
    labels: Option<&Labels>,
    class_weights: Option<&[f64]>,
) -> Triplets {
    match (labels, class_weights) {
        (Some(labels), Some(weights)) => {
            triplets.weighted_by_anchor(|anchor| weights[labels.codes()[anchor as usize] as usize])
        }
        _ => triplets,
    }
}

/// Training rows and validation rows as two parts of one data set, every class in proportion: the split of
/// [`Validation::Holdout`](crate::model::Validation::Holdout). Returns the row numbers of both.
pub fn hold_out(labels: &Labels, fraction: f64, seed: u64) -> Result<(Vec<u32>, Vec<u32>)> {
    let parts = stratified_split(labels, &[1.0 - fraction, fraction], seed)?;
    match <[Vec<u32>; 2]>::try_from(parts) {
        Ok([rest, held]) if !rest.is_empty() && !held.is_empty() => Ok((rest, held)),
        _ => {
            let n = labels.len();
            let wanted = "that leaves some to train on and some to validate with";
            let wanted = format!("a fraction of the {n} rows {wanted}");
            Err(Error::param("holdout", fraction, wanted))
        }
    }
}
