//! Progress bars and lines under `-v`.

#[cfg(feature = "fetch")]
mod download;
mod line;
mod ranking;
mod training;
mod tuning;

#[cfg(feature = "fetch")]
pub(crate) use download::Download;
pub(crate) use ranking::RankingProgress;
pub(crate) use training::TrainingProgress;
pub(crate) use tuning::TuningProgress;

use crate::output::Log;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use line::{Line, pace};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A progress bar on standard error, never wider than the terminal, with lines printed above it under `-v`.
struct Bar<'a> {
    log: &'a Log,
    bar: ProgressBar,
    words: Arc<Mutex<Words>>,
}

/// What a bar says besides its numbers.
#[derive(Default)]
struct Words {
    prefix: String,
    message: String,
}

impl<'a> Bar<'a> {
    /// A bar that counts steps.
    fn of_steps(log: &'a Log, n_steps: usize, prefix: &'static str) -> Self {
        let bar = Self::new(log, Some(n_steps as u64), |state, line| {
            let (done, of) = (state.pos(), state.len().unwrap_or(0));
            line.counts = format!("{done}/{of}");
            line.share = Some(done as f64 / of.max(1) as f64);
            (line.rate, line.left) = pace(done, of, state.per_sec());
        });
        bar.set_prefix(prefix);
        bar
    }

    /// A bar whose numbers are filled in by a function of its state.
    fn new(
        log: &'a Log,
        len: Option<u64>,
        numbers: impl Fn(&ProgressState, &mut Line) + Send + Sync + Clone + 'static,
    ) -> Self {
        let words = Arc::new(Mutex::new(Words::default()));
        let bar = match log.shows_progress() {
            true => ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr_with_hz(10)),
            false => ProgressBar::hidden(),
        };
        let shared = Arc::clone(&words);
        let draw = move |state: &ProgressState, out: &mut dyn Write| {
            let mut line = Line::default();
            {
                let words = shared.lock().unwrap_or_else(PoisonError::into_inner);
                line.prefix.clone_from(&words.prefix);
                line.message.clone_from(&words.message);
            }
            numbers(state, &mut line);
            let fitted = line.fit(columns());
            let colored = console::style(fitted.bar).for_stderr().cyan();
            // A line that cannot be printed is no reason to stop.
            let _ = write!(out, "{}{colored}{}", fitted.before, fitted.after);
        };
        // The template is a constant; should it be wrong, the default style is shown.
        if let Ok(style) = ProgressStyle::with_template("{line}") {
            bar.set_style(style.with_key("line", draw));
        }
        Self { log, bar, words }
    }

    fn set_prefix(&self, prefix: impl Into<String>) {
        self.words().prefix = prefix.into();
    }

    fn set_message(&self, message: impl Into<String>) {
        self.words().message = message.into();
    }

    fn words(&self) -> std::sync::MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line under `-v`, above the bar.
    fn detail(&self, text: impl AsRef<str>) {
        self.bar.suspend(|| self.log.detail(text.as_ref()));
    }

    /// Prints a line above the bar.
    fn note(&self, text: impl AsRef<str>) {
        self.bar.suspend(|| self.log.note(text.as_ref()));
    }

    /// Removes the bar.
    fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// The columns that a line may take: one less than the terminal has, since some begin a new line after the last one.
fn columns() -> usize {
    let (_, columns) = console::Term::stderr().size();
    usize::from(columns).saturating_sub(1)
}

/// The current stage of work of unknown length: a line on a terminal, and one line per stage under `-v`.
pub(crate) struct Stages<'a>(Bar<'a>);

impl<'a> Stages<'a> {
    pub(crate) fn new(log: &'a Log) -> Self {
        let bar = Bar::new(log, None, |state, line| {
            line.counts = line::clock(state.elapsed());
        });
        if log.shows_progress() {
            bar.bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// A stage begins.
    pub(crate) fn start(&mut self, stage: &str) {
        self.0.set_message(stage);
        self.0.bar.tick();
        self.0.detail(stage);
    }

    /// Removes the line.
    pub(crate) fn finish(self) {
        self.0.finish();
    }
}
