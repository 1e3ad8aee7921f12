//! Progress of a training.

use super::Bar;
use crate::output::{Log, count, percent, short};
use crate::signals::{cancel_token, unless_stopped};
use hdsl::atoms::ActiveSet;
use hdsl::observer::{Event, Iteration, Observer};
use hdsl::{CancelToken, TrainConfig};
use std::ops::ControlFlow;

/// Observes a training: moves the bar, prints one line per evaluation under `-v`, and passes signals on.
pub(crate) struct TrainingProgress<'a> {
    bar: Bar<'a>,
    is_verbose: bool,
    eval_every: usize,
    validated: bool,
    best_error: Option<f64>,
    mine_seconds: f64,
    /// Which model of an ensemble.
    model: String,
}

/// Iterations of a model at most: those of every mining round, and of the last one.
fn max_steps(config: &TrainConfig) -> usize {
    let last = config.last_round_iter.unwrap_or(config.max_iter);
    config
        .max_iter
        .saturating_mul(config.mining_rounds)
        .saturating_add(last)
}

impl<'a> TrainingProgress<'a> {
    pub(crate) fn new(log: &'a Log, config: &TrainConfig, validated: bool) -> Self {
        Self {
            bar: Bar::of_steps(log, max_steps(config), "mining triplets"),
            is_verbose: log.is_verbose(),
            eval_every: config.eval_every,
            validated,
            best_error: None,
            mine_seconds: 0.0,
            model: String::new(),
        }
    }

    /// Removes the bar, and returns how long mining took.
    pub(crate) fn finish(self) -> f64 {
        self.bar.finish();
        self.mine_seconds
    }

    /// One line about an iterate.
    fn iterate(iteration: &Iteration, active: &ActiveSet) -> String {
        let sign = match iteration.gap.is_certified() {
            true => "<=",
            false => "~",
        };
        format!(
            "iteration {:>5}  objective {:<9}  gap {sign} {:<9}  {} features",
            iteration.iter,
            short(iteration.objective),
            short(iteration.gap.value()),
            active.n_features()
        )
    }

    fn run_started(&mut self, index: usize, of: usize, lambda: f64) {
        self.best_error = None;
        self.bar.bar.reset();
        let lambda = short(lambda);
        self.bar.set_prefix(match of {
            1 if self.model.is_empty() => "training".to_owned(),
            1 => self.model.clone(),
            _ => format!("lambda {lambda} ({}/{of})", index + 1),
        });
        if of > 1 {
            self.bar.detail(format!("lambda {lambda}"));
        }
    }

    fn message(&self, objective: f64, n_features: usize) {
        if !self.bar.bar.is_hidden() {
            let error = self.best_error.map(percent);
            let error = error.map_or(String::new(), |e| format!(", best error {e}"));
            let objective = short(objective);
            let text = format!("objective {objective}, {n_features} features{error}");
            self.bar.set_message(text);
        }
    }
}

impl Observer for TrainingProgress<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        cancel_token()
    }

    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::Triplets {
                count: n, seconds, ..
            } => {
                self.mine_seconds = seconds;
                let triplets = count(n, "triplet");
                self.bar.detail(format!("{triplets} in {seconds:.2} s"));
            }
            Event::Note(note) => self.bar.note(note),
            Event::EstimatorStarted { index, of } => {
                self.model = format!("model {}/{of}", index + 1);
                self.bar.detail(&self.model);
            }
            Event::LambdaStarted {
                index, of, lambda, ..
            } => self.run_started(index, of, lambda),
            Event::Iteration(now, active) => {
                self.bar.bar.set_position(now.iter as u64);
                // Without validation rows, this line replaces that of an evaluation.
                let is_due = now.iter.is_multiple_of(self.eval_every);
                if !self.validated && self.is_verbose && is_due {
                    self.bar.detail(Self::iterate(now, active));
                }
                self.message(now.objective, active.n_features());
            }
            Event::Evaluated {
                iteration,
                active,
                error,
            } => {
                self.best_error = Some(self.best_error.map_or(error, |best| best.min(error)));
                let line = Self::iterate(iteration, active);
                self.bar.detail(format!("{line}  error {}", percent(error)));
            }
            Event::LambdaDone {
                lambda,
                iterations,
                stop,
                valid_error,
            } => {
                let error =
                    valid_error.map_or(String::new(), |e| format!(", error {}", percent(e)));
                let iterations = count(iterations, "iteration");
                let lambda = short(lambda);
                self.bar.detail(format!(
                    "lambda {lambda} done: {iterations}{error}, stop: {stop}"
                ));
            }
            _ => {}
        }
        unless_stopped()
    }
}
