//! Who judges: which rows are learned from and which are classified.

use crate::data::{Labels, Preprocess, Preprocessor, Rows, RowsView, stratified_split};
use crate::error::{Error, Result};

/// A class that no training row has.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Rows to learn from, and rows to judge by.
pub(super) struct Fold {
    train: Rows,
    pub(super) labels: Labels,
    judged: Rows,
    /// The class of each judged row, by its number among `labels`' names.
    pub(super) truth: Vec<u32>,
    /// The number of its first judged row among those of all folds.
    pub(super) first: u32,
}

impl Fold {
    fn new(
        (train, labels): (Rows, Labels),
        (judged, names): (Rows, &Labels),
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
            judged,
            truth,
            first: first as u32,
        }
    }

    /// Training rows and judged rows, scaled as the training rows say.
    pub(super) fn scaled(&self, kind: Preprocess) -> (Rows, Rows) {
        let preprocess = Preprocessor::fit(kind, self.train.view());
        (
            preprocess.apply(self.train.view()),
            preprocess.apply(self.judged.view()),
        )
    }

    pub(super) fn n_train(&self) -> usize {
        self.train.n_rows()
    }

    pub(super) fn train(&self) -> &Rows {
        &self.train
    }

    /// A smaller fold, classes in proportion, for a first impression.
    fn sampled(&self, most_train: usize, most_judged: usize, seed: u64) -> Result<Self> {
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
        let (train, judged) = (part(&self.labels, most_train)?, part(&truth, most_judged)?);
        Ok(Self {
            train: self.train.select(&train),
            labels: self.labels.select(&train),
            judged: self.judged.select(&judged),
            truth: judged.iter().map(|&j| self.truth[j as usize]).collect(),
            first: 0,
        })
    }
}

/// All rows judge, by a fold at a time.
pub(super) struct Folds {
    pub(super) folds: Vec<Fold>,
    pub(super) n_judged: usize,
}

impl Folds {
    /// Rows of their own to judge by.
    pub(super) fn apart(
        train: (RowsView<'_>, &Labels),
        valid: (RowsView<'_>, &Labels),
    ) -> Result<Self> {
        if valid.1.is_empty() {
            return Err(Error::data("there are no validation rows to judge by"));
        }
        let fold = Fold::new(
            (train.0.to_rows(), train.1.clone()),
            (valid.0.to_rows(), valid.1),
            0,
        );
        Ok(Self {
            n_judged: fold.truth.len(),
            folds: vec![fold],
        })
    }

    /// A share of the rows judges what is learned from the others.
    pub(super) fn held_out(
        (rows, labels): (RowsView<'_>, &Labels),
        share: f64,
        seed: u64,
    ) -> Result<Self> {
        let parts = stratified_split(labels, &[1.0 - share, share], seed)?;
        Self::of_parts((rows, labels), &parts[1..])
    }

    /// Each of `count` parts judges what is learned from the others.
    pub(super) fn crossed(
        (rows, labels): (RowsView<'_>, &Labels),
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        if count < 2 || count > labels.len() {
            return Err(Error::param(
                "cv",
                count,
                "at least 2 folds, and no more than there are rows",
            ));
        }
        let shares = vec![1.0 / count as f64; count];
        Self::of_parts((rows, labels), &stratified_split(labels, &shares, seed)?)
    }

    /// The first fold, made smaller.
    pub(super) fn sampled(&self, most_train: usize, most_judged: usize, seed: u64) -> Result<Self> {
        let fold = self.folds[0].sampled(most_train, most_judged, seed)?;
        Ok(Self {
            n_judged: fold.truth.len(),
            folds: vec![fold],
        })
    }

    fn of_parts((rows, labels): (RowsView<'_>, &Labels), parts: &[Vec<u32>]) -> Result<Self> {
        let mut folds = Vec::new();
        let mut first = 0;
        for judged in parts {
            let mut mine = judged.iter().peekable();
            let others: Vec<u32> = (0..labels.len() as u32)
                .filter(|row| mine.next_if(|&m| m == row).is_none())
                .collect();
            if judged.is_empty() || others.is_empty() {
                return Err(Error::Data(format!(
                    "there are {} rows, too few to learn from some and judge by others",
                    labels.len()
                )));
            }
            folds.push(Fold::new(
                (rows.select(&others), labels.select(&others)),
                (rows.select(judged), &labels.select(judged)),
                first,
            ));
            first += judged.len();
        }
        Ok(Self {
            folds,
            n_judged: first,
        })
    }
}
