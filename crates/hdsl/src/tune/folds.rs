//! Validation schemes: which rows are trained on, and which errors are computed on.

use super::params::ValidationScheme;
use crate::data::{Labels, Preprocess, Preprocessor, Rows, RowsView, stratified_split};
use crate::error::{Error, Result};
use crate::train::Labeled;

/// Fewer labeled rows than this are cross-validated rather than a fraction of them held out.
const FEW_ROWS: usize = 3000;

/// A class that no training row has.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Training rows and validation rows.
pub(super) struct Fold {
    train: Rows,
    pub(super) labels: Labels,
    validation: Rows,
    /// The class of each validation row, by its number among `labels`' names.
    pub(super) truth: Vec<u32>,
    /// The number of its first validation row among those of all folds.
    pub(super) first: u32,
}

impl Fold {
    fn new(
        (train, labels): (Rows, Labels),
        (validation, names): (Rows, &Labels),
        first: usize,
    ) -> Self {
        let code = |name: &str| labels.names().iter().position(|n| n == name);
        let codes: Vec<u32> = names
            .names()
            .iter()
            .map(|name| code(name).map_or(UNKNOWN, |code| code as u32))
            .collect();
        let truth = names.codes().iter().map(|&c| codes[c as usize]).collect();
        Self {
            train,
            labels,
            validation,
            truth,
            first: first as u32,
        }
    }

    /// Training rows and validation rows, by a preprocessing fitted on the training rows.
    pub(super) fn preprocessed(&self, kind: Preprocess) -> (Rows, Rows) {
        let fitted = Preprocessor::fit(kind, self.train.view());
        let apply = |rows: &Rows| fitted.apply(rows.view());
        (apply(&self.train), apply(&self.validation))
    }

    /// The validation rows that are predicted wrong, by their number among those of all folds.
    pub(super) fn wrong(&self, predicted: &[u32]) -> impl Iterator<Item = u32> {
        (self.first..)
            .zip(predicted.iter().zip(&self.truth))
            .filter(|(_, (predicted, truth))| predicted != truth)
            .map(|(row, _)| row)
    }

    pub(super) fn n_train(&self) -> usize {
        self.train.n_rows()
    }

    pub(super) fn train(&self) -> &Rows {
        &self.train
    }

    /// A smaller fold, classes in proportion.
    fn sampled(&self, most_train: usize, most_validation: usize, seed: u64) -> Result<Self> {
        let part = |labels: &Labels, most: usize| -> Result<Vec<u32>> {
            let share = most as f64 / labels.len().max(1) as f64;
            match share < 1.0 {
                true => Ok(stratified_split(labels, &[share, 1.0 - share], seed)?.swap_remove(0)),
                false => Ok((0..labels.len() as u32).collect()),
            }
        };
        let mut names = self.labels.names().to_vec();
        names.push(String::new());
        let unknown = names.len() as u32 - 1;
        let codes = self.truth.iter().map(|&c| c.min(unknown)).collect();
        let truth = Labels::from_codes(names, codes)?;
        let train = part(&self.labels, most_train)?;
        let validation = part(&truth, most_validation)?;
        Ok(Self {
            train: self.train.select(&train),
            labels: self.labels.select(&train),
            validation: self.validation.select(&validation),
            truth: validation.iter().map(|&v| self.truth[v as usize]).collect(),
            first: 0,
        })
    }
}

/// The folds of a search. One fold is a set of validation rows that is given or held out.
pub(super) struct Folds {
    pub(super) folds: Vec<Fold>,
    pub(super) n_validation: usize,
}

impl Folds {
    /// Those of a validation scheme, or validation rows that are given.
    pub(super) fn new(
        train: &Labeled<'_>,
        valid: Option<&Labeled<'_>>,
        scheme: ValidationScheme,
        seed: u64,
    ) -> Result<Self> {
        let rows = train.rows;
        let labels = train.labels_for("training", "to tune by")?;
        let held_out = |fraction: f64| {
            let parts = stratified_split(labels, &[1.0 - fraction, fraction], seed)?;
            Self::of_parts(rows, labels, &parts[1..])
        };
        match (valid, scheme) {
            (Some(valid), _) => {
                let truth = valid.labels_for("validation", "to tune by")?;
                if truth.is_empty() {
                    return Err(Error::data("there are no validation rows"));
                }
                let train = (rows.to_rows(), labels.clone());
                Ok(Self::single(Fold::new(
                    train,
                    (valid.rows.to_rows(), truth),
                    0,
                )))
            }
            (None, ValidationScheme::CrossValidation(count)) => {
                Self::crossed(rows, labels, count, seed)
            }
            (None, ValidationScheme::Holdout(fraction)) => held_out(fraction),
            (None, ValidationScheme::Auto) if labels.len() < FEW_ROWS => {
                Self::crossed(rows, labels, labels.len().min(5), seed)
            }
            (None, ValidationScheme::Auto) => held_out(0.2),
        }
    }

    fn single(fold: Fold) -> Self {
        Self {
            n_validation: fold.truth.len(),
            folds: vec![fold],
        }
    }

    /// Cross-validation.
    fn crossed(rows: RowsView<'_>, labels: &Labels, count: usize, seed: u64) -> Result<Self> {
        if count < 2 || count > labels.len() {
            let wanted = "at least 2 folds, and no more than there are rows";
            return Err(Error::param("cv", count, wanted));
        }
        let shares = vec![1.0 / count as f64; count];
        Self::of_parts(rows, labels, &stratified_split(labels, &shares, seed)?)
    }

    /// The first fold, made smaller.
    pub(super) fn sampled(
        &self,
        most_train: usize,
        most_validation: usize,
        seed: u64,
    ) -> Result<Self> {
        let fold = self.folds[0].sampled(most_train, most_validation, seed)?;
        Ok(Self::single(fold))
    }

    fn of_parts(rows: RowsView<'_>, labels: &Labels, parts: &[Vec<u32>]) -> Result<Self> {
        let mut folds = Vec::new();
        let mut first = 0;
        for validation in parts {
            let mut mine = validation.iter().peekable();
            let others: Vec<u32> = (0..labels.len() as u32)
                .filter(|row| mine.next_if(|&m| m == row).is_none())
                .collect();
            if validation.is_empty() || others.is_empty() {
                return Err(Error::Data(format!(
                    "there are {} rows, too few to train on some and validate with others",
                    labels.len()
                )));
            }
            folds.push(Fold::new(
                (rows.select(&others), labels.select(&others)),
                (rows.select(validation), &labels.select(validation)),
                first,
            ));
            first += validation.len();
        }
        Ok(Self {
            folds,
            n_validation: first,
        })
    }
}
