//! Validation schemes: which rows are trained on, and which errors are computed on.

use super::params::ValidationScheme;
use crate::data::{Labels, Preprocess, Preprocessor, Rows, RowsView, stratified_split};
use crate::error::{Error, Result};
use crate::train::hold_out;

/// Fewer labeled rows than this are cross-validated rather than a fraction of them held out.
const FEW_ROWS: usize = 3000;

/// Training rows and validation rows, with the same class codes.
pub(super) struct Fold {
    pub(super) train: Rows,
    pub(super) labels: Labels,
    validation: Rows,
    pub(super) truth: Labels,
    /// The number of its first validation row among those of all folds.
    first: u32,
}

impl Fold {
    /// Training rows and validation rows, by a preprocessing fitted on the training rows.
    pub(super) fn preprocessed(&self, kind: Preprocess) -> (Rows, Rows) {
        let fitted = Preprocessor::fit(kind, &self.train);
        (fitted.apply(&self.train), fitted.apply(&self.validation))
    }

    /// The validation rows that are predicted wrong, by their number among those of all folds.
    pub(super) fn wrong(&self, predicted: &[u32]) -> Vec<u32> {
        let rows = (self.first..).zip(predicted.iter().zip(self.truth.codes()));
        let wrong = rows.filter(|(_, (predicted, truth))| predicted != truth);
        wrong.map(|(row, _)| row).collect()
    }
}

/// The folds of a search. One fold is a set of validation rows that is given or held out.
pub(super) struct Folds {
    pub(super) folds: Vec<Fold>,
    pub(super) n_validation: usize,
}

impl Folds {
    /// One fold for each list of validation rows, which increase; all other rows are trained on.
    pub(super) fn new(rows: RowsView<'_>, labels: &Labels, lists: &[Vec<u32>]) -> Result<Self> {
        let mut folds = Vec::new();
        let mut n_validation = 0;
        for validation in lists {
            let mut mine = validation.iter().peekable();
            let others: Vec<u32> = (0..labels.len() as u32)
                .filter(|row| mine.next_if(|&m| m == row).is_none())
                .collect();
            if validation.is_empty() || others.is_empty() {
                return Err(Error::data(format!(
                    "there are {} rows, too few to train on some and validate with others",
                    labels.len()
                )));
            }
            folds.push(Fold {
                train: rows.select(&others),
                labels: labels.select(&others),
                validation: rows.select(validation),
                truth: labels.select(validation),
                first: n_validation as u32,
            });
            n_validation += validation.len();
        }
        Ok(Self {
            folds,
            n_validation,
        })
    }

    /// The first fold, made smaller with classes in proportion.
    pub(super) fn sampled(&self, most: [usize; 2], seed: u64) -> Result<Self> {
        let part = |rows: &Rows, labels: &Labels, most: usize| {
            let share = (most as f64 / labels.len() as f64).min(1.0);
            let parts = stratified_split(labels, &[share, 1.0 - share], seed)?;
            Ok((rows.select(&parts[0]), labels.select(&parts[0])))
        };
        let fold = &self.folds[0];
        let (train, labels) = part(&fold.train, &fold.labels, most[0])?;
        let (validation, truth) = part(&fold.validation, &fold.truth, most[1])?;
        Ok(Self {
            n_validation: truth.len(),
            folds: vec![Fold {
                train,
                labels,
                validation,
                truth,
                first: 0,
            }],
        })
    }
}

/// The validation rows of each fold of a scheme.
pub(super) fn validation_rows(
    labels: &Labels,
    scheme: ValidationScheme,
    seed: u64,
) -> Result<Vec<Vec<u32>>> {
    let held_out = |fraction| Ok(vec![hold_out(labels, fraction, seed)?.1]);
    let n_folds = match scheme {
        ValidationScheme::Holdout(fraction) => return held_out(fraction),
        ValidationScheme::Auto if labels.len() >= FEW_ROWS => return held_out(0.2),
        ValidationScheme::Auto => labels.len().min(5),
        ValidationScheme::CrossValidation(count) => count,
    };
    if n_folds < 2 || n_folds > labels.len() {
        let wanted = "at least 2 folds, and no more than there are rows";
        return Err(Error::param("cv", n_folds, wanted));
    }
    stratified_split(labels, &vec![1.0 / n_folds as f64; n_folds], seed)
}
