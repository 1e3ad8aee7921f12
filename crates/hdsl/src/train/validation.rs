//! Validation errors during a run: which iterate to keep, and when to stop early.

use super::RunSummary;
use super::data::{Labeled, TrainData};
use super::held_out::HeldOut;
use super::rounds::MiningRun;
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::checkpoint::Recorder;
use crate::data::{Labels, Preprocessor, Rows};
use crate::error::{Error, Result};
use crate::knn::{self, PredictionRule};
use crate::model::TrainConfig;
use crate::observer::{Event, Iteration, Observer, Stop};
use crate::similarity::{BilinearModel, Normalization};
use std::ops::ControlFlow;

/// What validation errors are computed on.
pub(super) enum ValidationSet<'a> {
    /// Rows whose classes are predicted.
    Rows(ValidationRows<'a>),
    /// Triplets or judged queries of training rows.
    HeldOut(&'a HeldOut, Normalization),
}

impl<'a> ValidationSet<'a> {
    /// That of a training; none if it has none.
    pub(super) fn of(
        data: &TrainData<'a>,
        preprocessor: &Preprocessor,
        rule: PredictionRule,
    ) -> Result<Option<Self>> {
        match (data.held_out, data.valid) {
            (Some(held_out), _) => Ok(Some(Self::HeldOut(held_out, rule.normalization))),
            (None, Some(valid)) => {
                let rows = ValidationRows::new(data.train, valid, preprocessor, rule)?;
                Ok(Some(Self::Rows(rows)))
            }
            (None, None) => Ok(None),
        }
    }

    /// The error of an iterate, by preprocessed training rows.
    pub(super) fn error(
        &self,
        train: &Rows,
        (lambda, base): (f64, f64),
        active: &ActiveSet,
    ) -> Result<f64> {
        let similarity = BilinearModel::on_base(train.n_features(), lambda, active, base)?;
        match self {
            Self::Rows(rows) => rows.error(train, &similarity),
            Self::HeldOut(held_out, how) => Ok(held_out.error(train, &how.of(&similarity))),
        }
    }
}

/// Errors of iterates.
pub(crate) trait Evaluate {
    /// The error of an iterate, given λ and β.
    fn error(&self, weights: (f64, f64), active: &ActiveSet) -> Result<f64>;
}

/// A validation set and the preprocessed training rows.
impl Evaluate for (&ValidationSet<'_>, &Rows) {
    fn error(&self, weights: (f64, f64), active: &ActiveSet) -> Result<f64> {
        self.0.error(self.1, weights, active)
    }
}

/// Preprocessed validation rows with the labels of both sides.
pub(super) struct ValidationRows<'a> {
    labels: &'a Labels,
    rows: Rows,
    truth: &'a Labels,
    rule: PredictionRule,
}

impl<'a> ValidationRows<'a> {
    fn new(
        train: Labeled<'a>,
        valid: Labeled<'a>,
        preprocessor: &Preprocessor,
        rule: PredictionRule,
    ) -> Result<Self> {
        let labels = |rows: &Labeled<'a>, which| rows.labels_for(which, "to compute an error with");
        rule.check(train.rows.n_rows())?;
        Ok(Self {
            labels: labels(&train, "training")?,
            truth: labels(&valid, "validation")?,
            rows: preprocessor.apply(valid.rows),
            rule,
        })
    }

    fn error(&self, train: &Rows, similarity: &BilinearModel) -> Result<f64> {
        let (labels, truth) = (self.labels, self.truth);
        knn::evaluate_similarity(similarity, train, labels, &self.rows, truth, &self.rule)
            .map(|evaluation| evaluation.error)
    }
}

/// A finished run with the iterate to keep.
pub(crate) struct Candidate<'t> {
    pub(super) learned: MiningRun<'t>,
    pub(super) summary: RunSummary,
    /// (iteration, error), by increasing iteration.
    pub(super) evaluations: Vec<(u32, f64)>,
}

/// Observes one run: passes iterations on, computes validation errors now and then, and stops early.
pub(super) struct RunObserver<'a> {
    observer: &'a mut dyn Observer,
    validation: Option<&'a dyn Evaluate>,
    config: &'a TrainConfig,
    lambda: f64,
    /// β.
    base: f64,
    /// The number of the last iteration, and the seconds until then.
    last: (usize, f64),
    /// The same at the end of the mining round before.
    before: (usize, f64),
    /// The iterate with the lowest error.
    best: Option<(usize, f64)>,
    evaluations: Vec<(u32, f64)>,
    stop: Option<Stop>,
    failed: Option<Error>,
}

impl<'a> RunObserver<'a> {
    /// A run that is `stopped` ends after its first step, so that there is a model to keep.
    pub(super) fn new(
        observer: &'a mut dyn Observer,
        validation: Option<&'a dyn Evaluate>,
        config: &'a TrainConfig,
        lambda: f64,
        stopped: bool,
    ) -> Self {
        Self {
            observer,
            validation,
            config,
            lambda,
            base: config.base.value().expect("`auto` has been replaced"),
            last: (0, 0.0),
            before: (0, 0.0),
            best: None,
            evaluations: Vec::new(),
            stop: stopped.then_some(Stop::ObserverAsked),
            failed: None,
        }
    }

    fn evaluate(&mut self, iterate: usize, active: &ActiveSet) -> Result<Option<f64>> {
        let Some(validation) = self.validation else {
            return Ok(None);
        };
        let known = self.observer.recorder();
        let known = known.and_then(|recorder| recorder.known_error(iterate as u32));
        let error = match known {
            Some(error) => error,
            None => validation.error((self.lambda, self.base), active)?,
        };
        if let Some(recorder) = self.observer.recorder() {
            recorder.evaluated(iterate as u32, error);
        }
        self.evaluations.push((iterate as u32, error));
        if self.best.is_none_or(|best| error < best.1) {
            self.best = Some((iterate, error));
        }
        Ok(Some(error))
    }

    /// Evaluates the last iterate, unless that was done.
    pub(super) fn finish(mut self, learned: MiningRun<'_>) -> Result<Candidate<'_>> {
        match self.failed.take() {
            None | Some(Error::DataLost(_)) => {}
            Some(error) => return Err(error),
        }
        let run = &learned.run;
        let last = run.path.len();
        let evaluated = self.evaluations.last();
        if evaluated.is_none_or(|&(at, _)| at as usize != last) {
            match self.evaluate(last, &run.active) {
                // The best iterate so far is still there.
                Err(Error::DataLost(_)) => {}
                evaluated => _ = evaluated?,
            }
        }
        let chosen = self.best.map_or(last, |best| best.0);
        let summary = RunSummary {
            lambda: self.lambda,
            stop: self.stop.unwrap_or(run.stop),
            iterations: last,
            objective: run.objective(),
            gap: run.gap(),
            chosen,
            chosen_objective: run.trace[chosen].objective,
            chosen_gap: run.trace[chosen].gap,
            valid_error: self.best.map(|best| best.1),
            n_triplets: learned.n_triplets,
            train_seconds: run.seconds,
        };
        Ok(Candidate {
            learned,
            summary,
            evaluations: self.evaluations,
        })
    }

    /// The validation error of this iteration if it is due. Returns whether the observer asked to stop.
    fn evaluate_if_due(&mut self, now: &Iteration, active: &ActiveSet) -> Result<bool> {
        if !now.iter.is_multiple_of(self.config.eval_every) {
            return Ok(false);
        }
        let Some(error) = self.evaluate(now.iter, active)? else {
            return Ok(false);
        };
        let stale = now.iter - self.best.map_or(0, |best| best.0);
        if self.config.patience.is_some_and(|most| stale >= most) {
            self.stop.get_or_insert(Stop::Patience);
        }
        let event = Event::Evaluated {
            iteration: now,
            active,
            error,
        };
        Ok(self.observer.on_event(&event).is_break())
    }
}

impl Observer for RunObserver<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        self.observer.cancel_token()
    }

    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.observer.recorder()
    }

    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let Event::Iteration(now, active) = *event else {
            return match event {
                Event::Note(_) => self.observer.on_event(event),
                _ => ControlFlow::Continue(()),
            };
        };
        // Every mining round counts from 1, and the whole run continues.
        if now.iter == 1 {
            self.before = self.last;
        }
        let mut now = now.clone();
        now.iter += self.before.0;
        now.seconds += self.before.1;
        self.last = (now.iter, now.seconds);
        let event = Event::Iteration(&now, active);
        let asked = self.observer.on_event(&event).is_break();
        match self.evaluate_if_due(&now, active) {
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
