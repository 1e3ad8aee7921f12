//! Progress of a search over configurations.

use super::{Bar, ctrl_c, unless_stopped};
use crate::output::{Log, count, percent};
use hdsl::CancelToken;
use hdsl::observer::{Event, Observer};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Observes a search: a bar over the trials of each rung, a line for each under `-v`.
pub(crate) struct TuningProgress<'a> {
    bar: Bar<'a>,
    started: Instant,
    time: Duration,
    best_error: Option<f64>,
}

impl<'a> TuningProgress<'a> {
    pub(crate) fn new(log: &'a Log, time: Duration) -> Self {
        Self {
            bar: Bar::of_steps(log, 1, "reading"),
            started: Instant::now(),
            time,
            best_error: None,
        }
    }

    pub(crate) fn finish(self) {
        self.bar.finish();
    }

    fn message(&self) {
        let left = self.time.saturating_sub(self.started.elapsed()).as_secs();
        let best = self.best_error.map(percent);
        let best = best.map_or(String::new(), |best| format!("best error {best}, "));
        self.bar.bar.set_message(format!("{best}at most {left} s"));
    }

    fn search_started(&self, n_rows: usize, n_folds: usize, dot_error: f64, resumed: usize) {
        let (rows, error) = (count(n_rows, "validation row"), percent(dot_error));
        let folds = match n_folds {
            1 => String::new(),
            _ => format!(" in {n_folds} folds"),
        };
        self.bar.detail(format!(
            "{rows}{folds}; the dot product predicts {error} of them wrong"
        ));
        if resumed > 0 {
            let trials = count(resumed, "job");
            self.bar
                .note(format!("resuming a search that was killed: {trials} done"));
        }
    }
}

impl Observer for TuningProgress<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        ctrl_c()
    }

    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::SearchStarted {
                n_validation,
                n_folds,
                dot_error,
                resumed,
            } => self.search_started(n_validation, n_folds, dot_error, resumed),
            Event::RungStarted {
                rung,
                of,
                configurations,
                n_estimators,
                sampled,
            } => {
                let note = match (sampled, n_estimators) {
                    (true, _) => ", on a sample of rows".to_owned(),
                    (false, 1) => String::new(),
                    (false, several) => format!(", averages of {several} models"),
                };
                let (rung, trials) = (rung + 1, count(configurations, "trial"));
                self.bar.detail(format!("rung {rung}: {trials}{note}"));
                self.bar.bar.reset();
                self.bar.bar.set_length(configurations as u64);
                self.bar.bar.set_prefix(format!("rung {rung}/{of}"));
                self.message();
            }
            Event::TrialDone {
                configuration,
                error,
                done,
                ..
            } => {
                self.best_error = Some(self.best_error.map_or(error, |best| best.min(error)));
                self.bar.bar.set_position(done as u64);
                self.message();
                self.bar
                    .detail(format!("error {:<6} {configuration}", percent(error)));
            }
            Event::FinalTraining { n_rows } => {
                self.bar.bar.set_prefix("final training");
                let rows = count(n_rows, "row");
                self.bar
                    .detail(format!("training the best configuration on {rows}"));
            }
            _ => {}
        }
        unless_stopped()
    }
}
