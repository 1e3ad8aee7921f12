//! Validation schemes: which rows are trained on, and which errors are computed on.

use super::journal::Losses;
use super::params::{TuneConfig, ValidationScheme};
use super::supervision::{Given, Held};
use crate::cancel::CancelToken;
use crate::data::{Labels, Preprocess, Preprocessor, Rows, RowsView, stratified_split};
use crate::error::{Error, Result};
use crate::knn::{BaseIndex, PredictionRule, Predictor};
use crate::model::TrainConfig;
use crate::similarity::{BilinearModel, Similarity};
use crate::train::hold_out;
use crate::train::subsample::{sampled_anchors, sampled_rows};
use crate::triplets::{TripletSource, Triplets};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Fewer labeled rows than this are cross-validated from the beginning.
pub(super) const FEW_ROWS: usize = 3000;

/// Fewer labeled rows than this are cross-validated at the end, for the best trials. With more, a fraction is held out.
pub(super) const MANY_ROWS: usize = 20_000;

/// Folds of a cross-validation.
pub(super) const N_FOLDS: usize = 5;

/// Folds are repeated, with other rows in each, until errors are computed on this many predictions.
const ENOUGH_PREDICTIONS: usize = 1500;

/// At most this many repetitions.
const MOST_REPEATS: usize = 3;

/// Errors are computed on at most this many validation rows of a fold: more would change the choice little, and take longer
/// than learning.
const MOST_VALIDATION_ROWS: usize = 5000;

/// Training rows and validation rows, with the same class codes.
#[derive(Clone)]
pub(super) struct Fold {
    pub(super) train: Arc<Rows>,
    pub(super) labels: Labels,
    validation: Rows,
    truth: Labels,
    /// The number of its first validation row among those of all folds.
    first: u32,
    /// What is learned from and validated with in place of labels, if that is given.
    given: Option<(Triplets, Held)>,
    /// By preprocessing. Trials share them.
    prepared: Arc<Mutex<HashMap<Preprocess, Arc<Prepared>>>>,
}

/// The rows of a fold by a preprocessing fitted on its training rows.
pub(super) struct Prepared {
    pub(super) train: Rows,
    validation: Rows,
    /// Triplets of neighbors, which take long to mine.
    neighbors: OnceLock<Triplets>,
    /// For evaluations of similarities with a base; none if the rows do not suit it.
    base_index: OnceLock<Option<BaseIndex>>,
}

impl Prepared {
    /// Takes triplets that another process has mined.
    pub(super) fn set_neighbors(&self, mined: &Triplets) {
        self.neighbors.get_or_init(|| mined.clone());
    }
}

/// The rows that one model learns from, with their labels.
pub(super) type Member<'a> = (Cow<'a, Rows>, Cow<'a, Labels>);

impl Fold {
    fn new(rows: RowsView<'_>, labels: &Labels, parts: [&[u32]; 2], first: usize) -> Self {
        let [train, validation] = parts;
        Self {
            train: Arc::new(rows.select(train)),
            labels: labels.select(train),
            validation: rows.select(validation),
            truth: labels.select(validation),
            first: first as u32,
            given: None,
            prepared: Arc::default(),
        }
    }

    /// The rows that one model of a configuration learns from, with their labels.
    pub(super) fn member<'a>(
        &'a self,
        prepared: &'a Prepared,
        config: &TrainConfig,
    ) -> Result<Member<'a>> {
        if config.subsample == 1.0 || self.is_given() {
            return Ok((Cow::Borrowed(&prepared.train), Cow::Borrowed(&self.labels)));
        }
        let rows = sampled_rows(&self.labels, config.subsample, config.seed)?;
        let (part, labels) = (prepared.train.select(&rows), self.labels.select(&rows));
        Ok((Cow::Owned(part), Cow::Owned(labels)))
    }

    /// The triplets that one model of a configuration learns from.
    pub(super) fn triplets(
        &self,
        prepared: &Prepared,
        config: &TrainConfig,
        (rows, labels): &Member<'_>,
        cancel: CancelToken<'_>,
    ) -> Result<Triplets> {
        let is_sample = config.subsample < 1.0;
        match &self.given {
            Some((learn, _)) if is_sample => {
                return sampled_anchors(learn, config.subsample, config.seed);
            }
            Some((learn, _)) => return Ok(learn.clone()),
            None => {}
        }
        let mine = || {
            let source = &config.triplets;
            source.triplets(rows, Some(labels), config.seed, cancel)
        };
        if is_sample || !matches!(config.triplets, TripletSource::Neighbors { .. }) {
            return mine();
        }
        if let Some(mined) = prepared.neighbors.get() {
            return Ok(mined.clone());
        }
        let mined = mine()?;
        Ok(prepared.neighbors.get_or_init(|| mined).clone())
    }

    /// Whether its triplets are given, so that there are no labels to mine others from.
    pub(super) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// What is learned from in place of labels.
    pub(super) fn hash_given(&self, hasher: &mut impl Hasher) {
        if let Some((learn, held)) = &self.given {
            (learn.iter().collect::<Vec<_>>(), held.len()).hash(hasher);
        }
    }

    /// Its rows by a preprocessing.
    pub(super) fn prepared(&self, kind: Preprocess) -> Arc<Prepared> {
        let known = || self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = known().get(&kind) {
            return prepared.clone();
        }
        // Not under the lock, which other trials need. Two may do the same work, with the same result.
        let fitted = Preprocessor::fit(kind, &*self.train);
        let prepared = Arc::new(Prepared {
            train: fitted.apply(&*self.train),
            validation: fitted.apply(&self.validation),
            neighbors: OnceLock::new(),
            base_index: OnceLock::new(),
        });
        known().entry(kind).or_insert(prepared).clone()
    }

    /// The losses of a similarity under each prediction rule: 1 for each validation row that is predicted wrong.
    pub(super) fn losses(
        &self,
        prepared: &Prepared,
        similarity: &dyn Similarity,
        rules: &[PredictionRule],
        cancel: CancelToken<'_>,
    ) -> Result<Vec<Losses>> {
        if let Some((_, held)) = &self.given {
            return Ok(held.losses(&prepared.train, similarity, rules, self.first));
        }
        let predictor = self.predictor(prepared, cancel)?;
        let predicted = predictor.predictions(similarity, rules)?;
        Ok(predicted.iter().map(|p| self.wrong(p)).collect())
    }

    /// [`Fold::losses`] of a learned similarity.
    pub(super) fn losses_of_model(
        &self,
        prepared: &Prepared,
        model: &BilinearModel,
        rules: &[PredictionRule],
        cancel: CancelToken<'_>,
    ) -> Result<Vec<Losses>> {
        let index = || match prepared.base_index.get() {
            Some(index) => index,
            // Not inside `get_or_init`: while a parallel loop waits, its thread may begin work that needs the same cell.
            None => {
                let made = BaseIndex::new(&prepared.train, &prepared.validation);
                prepared.base_index.get_or_init(|| made)
            }
        };
        let on_base = model.base() > 0.0 && !self.is_given();
        let Some(index) = on_base.then(index).and_then(Option::as_ref) else {
            return self.losses(prepared, model, rules, cancel);
        };
        let predictor = self.predictor(prepared, cancel)?;
        let predicted = predictor.predictions_on_base(index, model, rules)?;
        Ok(predicted.iter().map(|p| self.wrong(p)).collect())
    }

    fn predictor<'a>(
        &'a self,
        prepared: &'a Prepared,
        cancel: CancelToken<'a>,
    ) -> Result<Predictor<'a>> {
        let predictor = Predictor::new(&prepared.train, &self.labels, &prepared.validation)?;
        Ok(predictor.with_cancel(cancel))
    }

    /// The validation rows that are predicted wrong, by their number among those of all folds.
    fn wrong(&self, predicted: &[u32]) -> Losses {
        let rows = (self.first..).zip(predicted.iter().zip(self.truth.codes()));
        let wrong = rows.filter(|(_, (predicted, truth))| predicted != truth);
        Losses::wrong(wrong.map(|(row, _)| row).collect())
    }
}

/// The folds of a search. One fold is a set of validation rows that is given or held out.
pub(super) struct Folds {
    pub(super) folds: Vec<Fold>,
    /// The number of predictions: validation rows of all folds. If folds are repeated, each row is counted as often.
    pub(super) n_validation: usize,
    /// The different rows among them.
    pub(super) n_rows: usize,
    /// The validation row of each prediction, numbered from 0.
    pub(super) row_of: Vec<u32>,
    /// Whether these are a sample of the rows.
    pub(super) is_sample: bool,
}

impl Folds {
    /// One fold for each list of validation rows, which increase; all other rows are trained on.
    pub(super) fn new(
        rows: RowsView<'_>,
        labels: &Labels,
        lists: &[Vec<u32>],
        seed: u64,
    ) -> Result<Self> {
        let mut folds = Vec::new();
        let mut predicted: Vec<u32> = Vec::new();
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
            let kept = at_most(MOST_VALIDATION_ROWS, validation, labels, seed)?;
            folds.push(Fold::new(rows, labels, [&others, &kept], predicted.len()));
            predicted.extend(kept);
        }
        Ok(Self::of(folds, &predicted))
    }

    /// Folds of given supervision, over all rows.
    pub(super) fn of_given(rows: RowsView<'_>, given: &Given, params: &TuneConfig) -> Result<Self> {
        let enough = ENOUGH_PREDICTIONS.div_ceil(given.n_units().max(1));
        let repeats = enough.clamp(1, MOST_REPEATS);
        let mut folds = Vec::new();
        let mut predicted: Vec<u32> = Vec::new();
        // All folds have the same rows.
        let (train, prepared) = (Arc::new(rows.to_rows()), Arc::default());
        let none = Labels::from_names([""; 0]);
        for held in given.folds(params.validation, params.seed, repeats)? {
            folds.push(Fold {
                train: Arc::clone(&train),
                labels: none.clone(),
                validation: Rows::new(rows.n_features()),
                truth: none.clone(),
                first: predicted.len() as u32,
                given: Some(given.part(&held)?),
                prepared: Arc::clone(&prepared),
            });
            predicted.extend(held);
        }
        Ok(Self::of(folds, &predicted))
    }

    fn of(folds: Vec<Fold>, predicted: &[u32]) -> Self {
        let mut numbers = HashMap::new();
        let row_of = predicted.iter().map(|&row| {
            let next = numbers.len() as u32;
            *numbers.entry(row).or_insert(next)
        });
        let row_of: Vec<u32> = row_of.collect();
        Self {
            folds,
            n_validation: predicted.len(),
            n_rows: numbers.len(),
            row_of,
            is_sample: false,
        }
    }

    /// The folds that are enough to give up most trials: one if there are many rows, the first repetition otherwise. None if
    /// there are no others.
    pub(super) fn screening(&self) -> Option<Self> {
        let count = match self.n_rows >= FEW_ROWS {
            true => 1,
            false => N_FOLDS,
        };
        let next = self.folds.get(count)?;
        let predicted = &self.row_of[..next.first as usize];
        Some(Self::of(self.folds[..count].to_vec(), predicted))
    }

    /// The first fold, made smaller with classes in proportion.
    pub(super) fn sampled(&self, [train, validation]: [usize; 2], seed: u64) -> Result<Self> {
        let fold = &self.folds[0];
        let part = |labels: &Labels, most| {
            let all: Vec<u32> = (0..labels.len() as u32).collect();
            at_most(most, &all, labels, seed)
        };
        let (train, held) = (part(&fold.labels, train)?, part(&fold.truth, validation)?);
        let sampled = Fold {
            train: Arc::new(fold.train.select(&train)),
            labels: fold.labels.select(&train),
            validation: fold.validation.select(&held),
            truth: fold.truth.select(&held),
            first: 0,
            given: None,
            prepared: Arc::default(),
        };
        let all: Vec<u32> = (0..held.len() as u32).collect();
        Ok(Self {
            is_sample: true,
            ..Self::of(vec![sampled], &all)
        })
    }
}

/// At most so many of these rows, with classes in proportion.
fn at_most(most: usize, rows: &[u32], labels: &Labels, seed: u64) -> Result<Vec<u32>> {
    if rows.len() <= most {
        return Ok(rows.to_vec());
    }
    let share = most as f64 / rows.len() as f64;
    let parts = stratified_split(&labels.select(rows), &[share, 1.0 - share], seed)?;
    Ok(parts[0].iter().map(|&at| rows[at as usize]).collect())
}

/// The validation rows of each fold of a scheme.
pub(super) fn validation_rows(
    labels: &Labels,
    scheme: ValidationScheme,
    seed: u64,
) -> Result<Vec<Vec<u32>>> {
    let held_out = |fraction| Ok(vec![hold_out(labels, fraction, seed)?.1]);
    let (n_folds, repeats) = match scheme {
        ValidationScheme::Holdout(fraction) => return held_out(fraction),
        ValidationScheme::Auto if labels.len() >= MANY_ROWS => return held_out(0.2),
        ValidationScheme::Auto => {
            let enough = ENOUGH_PREDICTIONS.div_ceil(labels.len().max(1));
            (labels.len().min(N_FOLDS), enough.clamp(1, MOST_REPEATS))
        }
        ValidationScheme::CrossValidation(count) => (count, 1),
    };
    if n_folds < 2 || n_folds > labels.len() {
        let wanted = "at least 2 folds, and no more than there are rows";
        return Err(Error::param("cv", n_folds, wanted));
    }
    let mut lists = Vec::new();
    for repeat in 0..repeats as u64 {
        let shares = vec![1.0 / n_folds as f64; n_folds];
        lists.extend(stratified_split(
            labels,
            &shares,
            seed.wrapping_add(repeat),
        )?);
    }
    Ok(lists)
}

/// Validation rows that are given, the last ones, as the first fold; the rows before them in as many more as make
/// [`N_FOLDS`].
pub(super) fn given_first(given: Vec<u32>, labels: &Labels, seed: u64) -> Result<Vec<Vec<u32>>> {
    let others: Vec<u32> = (0..(labels.len() - given.len()) as u32).collect();
    let shares = [1.0 / (N_FOLDS - 1) as f64; N_FOLDS - 1];
    let mut lists = vec![given];
    lists.extend(stratified_split(&labels.select(&others), &shares, seed)?);
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_rows_are_the_first_fold_and_every_row_is_in_one() {
        let labels = Labels::from_names((0..50).map(|row| if row % 3 == 0 { "a" } else { "b" }));
        let lists = given_first((40..50).collect(), &labels, 1).unwrap();
        assert_eq!(lists.len(), N_FOLDS);
        assert_eq!(lists[0], (40..50).collect::<Vec<u32>>());
        let mut all = lists.concat();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<u32>>());
        // 14 of the first 40 rows are of class `a`.
        for list in &lists[1..] {
            assert!((3..=4).contains(&labels.select(list).counts()[0]));
        }
    }
}
