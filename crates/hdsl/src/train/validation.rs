//! Validation errors during a run: which iterate to keep, and when to stop early.

use super::data::{Labeled, TrainData};
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::data::{Labels, Preprocessor, Rows};
use crate::error::{Error, Result};
use crate::knn::{self, PredictionRule};
use crate::model::TrainConfig;
use crate::observer::{Event, Iteration, Observer, Stop};
use crate::similarity::BilinearModel;
use crate::solver::Run;
use std::ops::ControlFlow;

/// Preprocessed validation rows with the labels of both sides.
pub(super) struct ValidationRows<'a> {
    labels: &'a Labels,
    rows: Rows,
    truth: &'a Labels,
    rule: PredictionRule,
}

impl<'a> ValidationRows<'a> {
    /// Those of a training; none if it has none.
    pub(super) fn of(
        data: &TrainData<'a>,
        preprocessor: &Preprocessor,
        rule: PredictionRule,
    ) -> Result<Option<Self>> {
        let labels = |rows: &Labeled<'a>, which| rows.labels_for(which, "to compute an error with");
        let Some(valid) = data.valid else {
            return Ok(None);
        };
        let n_rows = data.train.rows.n_rows();
        if rule.vote.has_k() && rule.k > n_rows {
            let k = rule.k;
            return Err(Error::data(format!(
                "there are {n_rows} training rows, too few for {k} neighbors"
            )));
        }
        Ok(Some(Self {
            labels: labels(&data.train, "training")?,
            truth: labels(&valid, "validation")?,
            rows: preprocessor.apply(valid.rows),
            rule,
        }))
    }

    /// The error of an iterate, by preprocessed training rows.
    pub(super) fn error(&self, train: &Rows, lambda: f64, active: &ActiveSet) -> Result<f64> {
        let similarity = BilinearModel::from_active(train.n_features(), lambda, active)?;
        let (labels, truth) = (self.labels, self.truth);
        knn::evaluate_similarity(&similarity, train, labels, &self.rows, truth, &self.rule)
            .map(|evaluation| evaluation.error)
    }
}

/// Which iterate of a run to keep.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) iterate: usize,
    pub(super) error: Option<f64>,
    /// (iteration, error), by increasing iteration.
    pub(super) evaluations: Vec<(u32, f64)>,
}

/// Observes one run: passes iterations on, computes validation errors now and then, and stops early.
pub(super) struct RunObserver<'a> {
    observer: &'a mut dyn Observer,
    /// Validation rows, and the training rows that classify them.
    validation: Option<(&'a ValidationRows<'a>, &'a Rows)>,
    config: &'a TrainConfig,
    lambda: f64,
    kept: Kept,
    stop: Option<Stop>,
    failed: Option<Error>,
}

impl<'a> RunObserver<'a> {
    pub(super) fn new(
        observer: &'a mut dyn Observer,
        validation: Option<(&'a ValidationRows<'a>, &'a Rows)>,
        config: &'a TrainConfig,
        lambda: f64,
    ) -> Self {
        Self {
            observer,
            validation,
            config,
            lambda,
            kept: Kept::default(),
            stop: None,
            failed: None,
        }
    }

    /// The run ends after its first step, so that there is a model to keep.
    pub(super) fn stop_at_once(&mut self) {
        self.stop = Some(Stop::ObserverAsked);
    }

    fn evaluate(&mut self, iterate: usize, active: &ActiveSet) -> Result<Option<f64>> {
        let Some((validation, train)) = self.validation else {
            return Ok(None);
        };
        let error = validation.error(train, self.lambda, active)?;
        self.kept.evaluations.push((iterate as u32, error));
        if self.kept.error.is_none_or(|best| error < best) {
            (self.kept.iterate, self.kept.error) = (iterate, Some(error));
        }
        Ok(Some(error))
    }

    /// Evaluates the last iterate, unless that was done. Returns the iterate to keep, and why the run ended.
    pub(super) fn finish(mut self, run: &Run) -> Result<(Kept, Stop)> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let last = run.path.len();
        let evaluated = self.kept.evaluations.last();
        if evaluated.is_none_or(|&(at, _)| at as usize != last) {
            self.evaluate(last, &run.active)?;
        }
        if self.validation.is_none() {
            self.kept.iterate = last;
        }
        Ok((self.kept, self.stop.unwrap_or(run.stop)))
    }

    /// The validation error of this iteration if it is due. Returns whether the observer asked to stop.
    fn evaluate_if_due(&mut self, now: &Iteration, active: &ActiveSet) -> Result<bool> {
        if !now.iter.is_multiple_of(self.config.eval_every) {
            return Ok(false);
        }
        let Some(error) = self.evaluate(now.iter, active)? else {
            return Ok(false);
        };
        let stale = now.iter - self.kept.iterate;
        if self.config.patience.is_some_and(|most| stale >= most) {
            self.stop.get_or_insert(Stop::Patience);
        }
        let event = Event::Evaluated {
            iter: now.iter,
            objective: now.objective,
            gap: now.gap,
            n_atoms: now.n_atoms,
            n_features: now.n_active_features,
            error,
        };
        Ok(self.observer.on_event(&event).is_break())
    }
}

impl Observer for RunObserver<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        self.observer.cancel_token()
    }

    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let asked = self.observer.on_event(event).is_break();
        let Event::Iteration(now, active) = *event else {
            return ControlFlow::Continue(());
        };
        match self.evaluate_if_due(now, active) {
            Ok(asked_again) if asked || asked_again => self.stop = Some(Stop::ObserverAsked),
            Ok(_) => {}
            Err(error) => {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        match self.stop {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}
