//! Settings that are left open, chosen by errors on held-out rows: the preprocessing, and how far to learn, if at all.
//!
//! Every plain similarity, that is, the dot product of preprocessed rows, is cheap to try. The base is the one that suits the
//! values, unless another makes clearly fewer errors: with few rows, the best of many would be the best by chance. A
//! similarity learned on top of the base is used only if it makes fewer errors; otherwise the base alone is the result.

use super::data::{Labeled, TrainData};
use super::ensemble::train_model;
use super::grid::parts_of;
use super::{RunSummary, Trained};
use crate::atoms::Path;
use crate::cancel::CancelToken;
use crate::checkpoint::Recorder;
use crate::data::{
    BlockStatistics, IndexBase, Labels, Preprocess, Preprocessor, Rows, RowsView, stratified_split,
};
use crate::error::{Error, Result};
use crate::knn::{PredictionRule, evaluate_similarity};
use crate::model::{Model, TrainConfig, Validation};
use crate::observer::{Event, Gap, Observer, Stop};
use crate::similarity::Dot;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Up to this many rows, settings are compared on folds, and otherwise on one part of the rows.
const FEW_ROWS: usize = 3_000;
/// The number of folds.
const FOLDS: usize = 3;
/// The part held out of many rows.
const HELD_OUT: f64 = 0.2;
/// The most rows to compare on: to learn from, and held out.
const SAMPLE: [usize; 2] = [10_000, 2_000];
/// The number of iterates of a run that are compared.
const ITERATES: usize = 10;
/// The last iterate that is compared. If it is the best, learning goes on for as many iterations as are allowed.
const MAX_ITER: usize = 1_000;

/// What was chosen from the data, with the errors that decided it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The preprocessing.
    pub preprocess: Preprocess,
    /// The number of iterations; 0 is the base similarity alone. `None` if that was not left open.
    pub iterations: Option<usize>,
    /// The number of held-out rows.
    pub n_held_out: usize,
    /// The error there of the base alone.
    pub base_error: f64,
    /// The lowest error there of a similarity learned on top of it, if one was learned.
    pub learned_error: Option<f64>,
    /// Seconds of the final training at most.
    pub time_limit: Option<f64>,
}

impl Choice {
    /// Whether the base alone was chosen.
    pub fn is_base_alone(&self) -> bool {
        self.iterations == Some(0)
    }

    /// The configuration with these choices made.
    pub(super) fn applied_to(&self, config: &TrainConfig) -> TrainConfig {
        TrainConfig {
            preprocess: self.preprocess,
            max_iter: self.iterations.unwrap_or(config.max_iter),
            time_limit: self.time_limit,
            ..config.clone()
        }
    }

    /// Compares a run with the base alone, if that is still open: both have an error on the same validation rows.
    pub(super) fn consider(&mut self, run: &RunSummary, config: &TrainConfig) {
        if let (true, None, Some(error)) = (
            learns_if_better(config),
            self.learned_error,
            run.valid_error,
        ) {
            self.accept((run.chosen.max(1), error));
        }
    }

    /// Accepts a learned similarity, given its iterations and its error, if it is better than the base alone.
    fn accept(&mut self, (iterations, error): (usize, f64)) {
        let is_better = error < self.base_error;
        self.learned_error = Some(error);
        self.iterations = Some(if is_better { iterations } else { 0 });
    }
}

/// Whether a similarity is learned only if it is better than the base alone.
fn learns_if_better(config: &TrainConfig) -> bool {
    config.lambda.is_empty() && !config.base.is_none()
}

/// Passes on nothing but cancellation, and what goes into a checkpoint.
struct Quietly<'a>(&'a mut dyn Observer);

impl Observer for Quietly<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match (event, self.0.cancel_token().is_cancelled()) {
            (_, true) => ControlFlow::Break(()),
            (Event::Note(_), false) => self.0.on_event(event),
            (_, false) => ControlFlow::Continue(()),
        }
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        self.0.cancel_token()
    }

    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.0.recorder()
    }
}

/// Rows to learn from and held-out rows, raw.
struct Fold {
    rows: Rows,
    labels: Labels,
    held_out: Rows,
    truth: Labels,
}

impl Fold {
    fn new(rows: RowsView<'_>, labels: &Labels, learn: &[u32], held_out: &[u32]) -> Self {
        Self {
            rows: rows.select(learn),
            labels: labels.select(learn),
            held_out: rows.select(held_out),
            truth: labels.select(held_out),
        }
    }

    /// The number of errors of the dot product of preprocessed rows.
    fn errors_of(&self, preprocess: Preprocess, rule: &PredictionRule) -> Result<usize> {
        let preprocessor = Preprocessor::fit(preprocess, &self.rows);
        let (rows, held_out) = (
            preprocessor.apply(&self.rows),
            preprocessor.apply(&self.held_out),
        );
        let evaluation =
            evaluate_similarity(&Dot, &rows, &self.labels, &held_out, &self.truth, rule)?;
        Ok(evaluation.n_wrong)
    }

    /// The numbers of errors of a similarity learned on top of the base, after each of these numbers of iterations.
    fn errors_learned(
        &self,
        config: &TrainConfig,
        class_weights: Option<&[f64]>,
        after: &[usize],
        observer: &mut dyn Observer,
    ) -> Result<Vec<usize>> {
        let part = |rows, labels| Labeled {
            rows,
            labels: Some(labels),
            index_base: IndexBase::Zero,
        };
        let mut data = TrainData::new(part(self.rows.view(), &self.labels));
        data.valid = Some(part(self.held_out.view(), &self.truth));
        data.class_weights = class_weights;
        let trained = train_model(&data, config, &mut Quietly(observer))?;
        observer.cancel_token().check()?;
        let evaluations = &trained.model.parts().evaluations;
        let error = |&after: &usize| {
            // A run that ended earlier stays where it is.
            let reached = evaluations.partition_point(|e| e.0 as usize <= after);
            let error = evaluations[reached.saturating_sub(1)].1;
            (error * self.truth.len() as f64).round() as usize
        };
        Ok(after.iter().map(error).collect())
    }
}

/// The folds that settings are compared on: the validation rows if there are some, and otherwise parts of the training
/// rows. None if there are too few rows.
fn folds(data: &TrainData<'_>, labels: &Labels, seed: u64) -> Result<Vec<Fold>> {
    let rows = data.train.rows;
    if let Some(valid) = data.valid {
        let truth = valid.labels_for("validation", "to compute an error with")?;
        let held_out = valid
            .rows
            .select(&(0..truth.len() as u32).collect::<Vec<_>>());
        let all: Vec<u32> = (0..labels.len() as u32).collect();
        return Ok(vec![Fold {
            held_out,
            truth: truth.clone(),
            ..Fold::new(rows, labels, &all, &[])
        }]);
    }
    let parts = parts_to_compare(labels, seed)?;
    let fold = |(learn, held_out): &(Vec<u32>, Vec<u32>)| Fold::new(rows, labels, learn, held_out);
    Ok(parts.iter().map(fold).collect())
}

/// Rows to learn from and held-out rows of each fold.
fn parts_to_compare(labels: &Labels, seed: u64) -> Result<Vec<(Vec<u32>, Vec<u32>)>> {
    let n = labels.len();
    if n > FEW_ROWS {
        let sample = |share: f64, most: usize| share.min(most as f64 / n as f64);
        let held_out = sample(HELD_OUT, SAMPLE[1]);
        let learn = sample(1.0 - HELD_OUT, SAMPLE[0]);
        let rest = 1.0 - learn - held_out;
        let mut parts = stratified_split(labels, &[learn, held_out, rest.max(0.0)], seed)?;
        return Ok(vec![(
            std::mem::take(&mut parts[0]),
            std::mem::take(&mut parts[1]),
        )]);
    }
    let parts = stratified_split(labels, &[1.0 / FOLDS as f64; FOLDS], seed)?;
    let fold = |held_out: &Vec<u32>| {
        let others = parts.iter().filter(|&part| part != held_out);
        let mut learn: Vec<u32> = others.flatten().copied().collect();
        learn.sort_unstable();
        (learn, held_out.clone())
    };
    Ok(parts.iter().map(fold).collect())
}

/// The numbers of the rows that settings are compared on if there are no validation rows, increasing: all rows if they are
/// few, otherwise a random sample of 12,000.
pub fn rows_to_compare(labels: &Labels, seed: u64) -> Result<Vec<u32>> {
    let parts = parts_to_compare(labels, seed)?;
    let mut rows: Vec<u32> = parts
        .into_iter()
        .flat_map(|(a, b)| [a, b])
        .flatten()
        .collect();
    rows.sort_unstable();
    rows.dedup();
    Ok(rows)
}

/// A sample of training rows that are not in one place.
#[derive(Clone, Copy, Debug)]
pub struct RowSample<'a> {
    /// The raw rows of the sample.
    pub rows: RowsView<'a>,
    /// Their numbers among all rows, increasing.
    pub numbers: &'a [u32],
    /// The labels of all rows.
    pub labels: &'a Labels,
    /// The statistics of all rows.
    pub statistics: &'a BlockStatistics,
    /// Validation rows, or a sample of them.
    pub valid: Option<Labeled<'a>>,
}

impl RowSample<'_> {
    fn folds(&self, seed: u64) -> Result<Vec<Fold>> {
        let labels = self.labels.select(self.numbers);
        if self.valid.is_some() {
            let train = Labeled {
                rows: self.rows,
                labels: Some(&labels),
                index_base: IndexBase::Zero,
            };
            let mut data = TrainData::new(train);
            data.valid = self.valid;
            return folds(&data, &labels, seed);
        }
        let parts = parts_to_compare(self.labels, seed)?;
        let places = |rows: &[u32]| -> Result<Vec<u32>> {
            let place = |row: &u32| self.numbers.binary_search(row).map(|at| at as u32);
            let found: std::result::Result<Vec<u32>, _> = rows.iter().map(place).collect();
            found.map_err(|_| Error::data("the sample lacks a row that settings are compared on"))
        };
        let fold = |(learn, held_out): &(Vec<u32>, Vec<u32>)| {
            let (learn, held_out) = (places(learn)?, places(held_out)?);
            Ok(Fold::new(self.rows, &labels, &learn, &held_out))
        };
        parts.iter().map(fold).collect()
    }
}

/// Chooses what the configuration leaves open by a sample of the training rows. Without validation rows, the sample has
/// [`rows_to_compare`], and the choice is that of [`train`](super::train).
pub fn choose_by_sample(
    sample: &RowSample<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Option<Choice>> {
    if !is_open(config) {
        return Ok(None);
    }
    let folds = sample.folds(config.seed)?;
    let statistics = sample.statistics;
    let suited = statistics.resolved(Preprocess::Auto);
    let kinds = || candidates(suited, |kind| statistics.check(kind).is_ok());
    compare(
        &folds,
        kinds,
        sample.valid.is_some(),
        None,
        config,
        observer,
    )
}

/// The preprocessings worth a try: first the one that suits the rows by their values.
fn candidates(first: Preprocess, is_possible: impl Fn(Preprocess) -> bool) -> Vec<Preprocess> {
    let mut kinds = vec![first];
    kinds.extend([Preprocess::Unit, Preprocess::MaxUnit, Preprocess::None]);
    if first != Preprocess::MaxUnit {
        // Sparse rows may be texts.
        kinds.extend([Preprocess::Tfidf, Preprocess::Bm25]);
    }
    let mut seen = HashSet::new();
    kinds.retain(|&kind| seen.insert(kind) && is_possible(kind));
    kinds
}

/// Whether so many errors are fewer than others by more than two standard deviations, if errors are independent.
fn clearly_fewer(errors: usize, than: usize) -> bool {
    than > errors && (than - errors) as f64 > 2.0 * ((than + errors) as f64).sqrt()
}

/// The number of errors of the plain similarity with each preprocessing.
fn plain_errors(
    folds: &[Fold],
    kinds: &[Preprocess],
    rule: &PredictionRule,
    cancel: CancelToken<'_>,
) -> Result<Vec<(Preprocess, usize)>> {
    let errors = kinds.iter().map(|&kind| {
        cancel.check()?;
        let errors = folds.iter().map(|fold| fold.errors_of(kind, rule));
        Ok((kind, errors.sum::<Result<usize>>()?))
    });
    errors.collect()
}

/// Chooses what the configuration leaves open, if there are labels to compute errors with and enough rows; otherwise
/// `None`.
pub(super) fn choose(
    data: &TrainData<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Option<Choice>> {
    let Some(labels) = data.train.labels else {
        return Ok(None);
    };
    if !is_open(config) || data.triplets.is_some() || data.start.is_some() {
        return Ok(None);
    }
    let folds = folds(data, labels, config.seed)?;
    let rows = data.train.rows;
    let kinds = || {
        let suited = Preprocess::Auto.resolved(rows);
        candidates(suited, |kind| kind.check(rows).is_ok())
    };
    compare(
        &folds,
        kinds,
        data.valid.is_some(),
        data.class_weights,
        config,
        observer,
    )
}

/// Whether something is left open that errors on held-out rows can decide.
fn is_open(config: &TrainConfig) -> bool {
    config.preprocess == Preprocess::Auto || learns_if_better(config)
}

/// Compares settings on folds. `kinds` are the preprocessings to try, if that is left open; `validated` says whether the
/// held-out rows are validation rows of the training.
fn compare(
    folds: &[Fold],
    kinds: impl FnOnce() -> Vec<Preprocess>,
    validated: bool,
    class_weights: Option<&[f64]>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Option<Choice>> {
    let fewest = folds.iter().map(|fold| fold.rows.n_rows()).min();
    if fewest.is_none_or(|n| n <= config.rule.k) {
        return Ok(None);
    }
    let kinds = match config.preprocess {
        Preprocess::Auto => kinds(),
        given => vec![given],
    };
    let plain = plain_errors(folds, &kinds, &config.rule, observer.cancel_token())?;
    let best = *plain
        .iter()
        .min_by_key(|plain| plain.1)
        .expect("there is at least one candidate");
    let (preprocess, base_errors) = match clearly_fewer(best.1, plain[0].1) {
        true => best,
        false => plain[0],
    };
    let n_held_out: usize = folds.iter().map(|fold| fold.truth.len()).sum();
    let error = |errors: usize| errors as f64 / n_held_out as f64;
    // A file of triplets names rows that folds do not have.
    let learns = learns_if_better(config) && !validated && config.triplets.is_mined();
    // The final training has as much time as the run on each fold.
    let n_runs = if learns { folds.len() + 1 } else { 1 };
    let config = &TrainConfig {
        time_limit: config.time_limit.map(|limit| limit / n_runs as f64),
        ..config.clone()
    };
    let mut choice = Choice {
        time_limit: config.time_limit,
        preprocess,
        iterations: None,
        n_held_out,
        base_error: error(base_errors),
        learned_error: None,
    };
    // With validation rows, the training itself shows whether its best iterate is better than the base.
    if learns
        && let Some((iterations, errors)) =
            best_iterate(folds, config, preprocess, class_weights, observer)?
    {
        choice.accept((iterations, error(errors)));
    }
    Ok(Some(choice))
}

/// The number of iterations with the fewest errors on all folds, and their number. `None` if one of the folds has no
/// triplets.
fn best_iterate(
    folds: &[Fold],
    config: &TrainConfig,
    preprocess: Preprocess,
    class_weights: Option<&[f64]>,
    observer: &mut dyn Observer,
) -> Result<Option<(usize, usize)>> {
    let last = config.max_iter.min(MAX_ITER);
    let every = last.div_ceil(ITERATES);
    let after: Vec<usize> = (1..=ITERATES).map(|k| (k * every).min(last)).collect();
    let fold_config = &TrainConfig {
        preprocess,
        max_iter: last,
        validation: Validation::Rows,
        patience: None,
        eval_every: every,
        n_estimators: 1,
        certify: false,
        ..config.clone()
    };
    let mut errors = vec![0; after.len()];
    for fold in folds {
        let of_fold = match fold.errors_learned(fold_config, class_weights, &after, observer) {
            Err(Error::Data(_)) => return Ok(None),
            found => found?,
        };
        errors
            .iter_mut()
            .zip(of_fold)
            .for_each(|(sum, n)| *sum += n);
    }
    let best = after.into_iter().zip(errors).min_by_key(|&(_, n)| n);
    let allowed = |(iterations, n)| match iterations == last {
        true => (config.max_iter, n),
        false => (iterations, n),
    };
    Ok(best.map(allowed))
}

/// The base similarity alone as a model: no atoms, and the configuration as it was given. β is 1 unless it is given.
pub(super) fn base_alone(
    data: &TrainData<'_>,
    config: &TrainConfig,
    preprocess: Preprocess,
) -> Result<Trained> {
    base_alone_with(data, config, Preprocessor::fit(preprocess, data.train.rows))
}

/// The same with a fitted preprocessing; the training rows are not looked at.
pub fn base_alone_with(
    data: &TrainData<'_>,
    config: &TrainConfig,
    preprocessor: Preprocessor,
) -> Result<Trained> {
    let base = config.base.value().unwrap_or(1.0);
    let path = Path::new(Vec::new(), Vec::new())?;
    let mut parts = parts_of(&data.described(), config, preprocessor, (1.0, base), path);
    parts.stop = Some(Stop::BaseAlone);
    let run = RunSummary {
        lambda: 0.0,
        stop: Stop::BaseAlone,
        iterations: 0,
        objective: f64::NAN,
        gap: Gap::Estimate(f64::NAN),
        chosen: 0,
        chosen_objective: f64::NAN,
        chosen_gap: Gap::Estimate(f64::NAN),
        valid_error: None,
        n_triplets: 0,
        train_seconds: 0.0,
    };
    Ok(Trained {
        model: Model::new(parts)?,
        grid: vec![run.clone()],
        run,
        round_ends: vec![0],
        choice: None,
    })
}
