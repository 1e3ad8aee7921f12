//! Progress of a search over configurations.

use super::Bar;
use super::line::clock;
use crate::output::{Log, count, percent};
use crate::signals::{cancel_token, unless_stopped};
use hdsl::CancelToken;
use hdsl::observer::{Event, Observer};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Observes a search: a bar over the time limit with the best error so far and that of the best reference, and a line for
/// each trial under `-v`.
pub(crate) struct TuningProgress<'a> {
    bar: Bar<'a>,
    /// The lowest error of a learned similarity.
    best_error: Option<f64>,
    /// The lowest error of a plain similarity.
    reference_error: Option<f64>,
    n_trials: usize,
    /// Rows that the trials of the current rung are trained on.
    n_rows: usize,
}

impl<'a> TuningProgress<'a> {
    pub(crate) fn new(log: &'a Log, time: Duration) -> Self {
        let started = Instant::now();
        // Elapsed time as a share of the limit: the bar moves by itself, and shows nothing that the limit contradicts.
        let bar = Bar::new(log, None, move |_, line| {
            let used = started.elapsed();
            line.share = Some(used.as_secs_f64() / time.as_secs_f64().max(1e-9));
            line.counts = format!("{} of {}", clock(used), clock(time));
            line.left = Some(time.saturating_sub(used));
        });
        if log.shows_progress() {
            bar.bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self {
            bar,
            best_error: None,
            reference_error: None,
            n_trials: 0,
            n_rows: 0,
        }
    }

    pub(crate) fn finish(self) {
        self.bar.finish();
    }

    fn message(&self) {
        let mut parts = vec![format!("{} trials", self.n_trials)];
        if let Some(error) = self.best_error {
            parts.push(format!("best {}", percent(error)));
        }
        if let Some(error) = self.reference_error {
            parts.push(format!("not learned {}", percent(error)));
        }
        self.bar.set_message(parts.join(", "));
    }

    fn search_started(&self, n_rows: usize, n_folds: usize, resumed: usize) {
        let folds = match n_folds {
            1 => String::new(),
            _ => format!(" in {n_folds} folds"),
        };
        let rows = count(n_rows, "validation row");
        self.bar.detail(format!("{rows}{folds}"));
        if resumed > 0 {
            let trials = count(resumed, "job");
            self.bar
                .note(format!("resuming a search that was killed: {trials} done"));
        }
    }

    fn trial_done(&mut self, configuration: &str, is_reference: bool, error: f64) {
        let best = match is_reference {
            true => &mut self.reference_error,
            false => &mut self.best_error,
        };
        *best = Some(best.map_or(error, |best| best.min(error)));
        self.n_trials += 1;
        self.message();
        self.bar
            .detail(format!("error {:<6} {configuration}", percent(error)));
    }
}

impl Observer for TuningProgress<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        cancel_token()
    }

    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::Note(note) => self.bar.note(note),
            Event::SearchStarted {
                n_validation,
                n_folds,
                resumed,
            } => self.search_started(n_validation, n_folds, resumed),
            Event::RungStarted {
                configurations,
                rows,
            } => {
                // Errors after training on a sample are not comparable with those on all rows.
                if rows > self.n_rows {
                    (self.best_error, self.reference_error) = (None, None);
                }
                self.n_rows = rows;
                let (trials, rows) = (count(configurations, "trial"), count(rows, "row"));
                self.bar.detail(format!("rung of {trials} on {rows}"));
                self.message();
            }
            Event::TrialDone {
                configuration,
                is_reference,
                error,
                ..
            } => self.trial_done(configuration, is_reference, error),
            Event::FinalTraining { n_rows } => {
                let rows = count(n_rows, "row");
                self.bar
                    .bar
                    .set_message(format!("final training on {rows}"));
                self.bar
                    .detail(format!("training the best configuration on {rows}"));
            }
            _ => {}
        }
        unless_stopped()
    }
}
