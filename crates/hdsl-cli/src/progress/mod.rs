//! Progress bars and lines under `-v`.

#[cfg(feature = "fetch")]
mod download;
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
use std::fmt::Write;
use std::time::Duration;

/// A progress bar on standard error, with lines printed above it under `-v`.
struct Bar<'a> {
    log: &'a Log,
    bar: ProgressBar,
}

impl<'a> Bar<'a> {
    /// A bar that counts steps.
    fn of_steps(log: &'a Log, n_steps: usize, prefix: &'static str) -> Self {
        let rate = |state: &ProgressState, out: &mut dyn Write| {
            // A rate that cannot be printed is no reason to stop.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        };
        let template = "{prefix} [{bar:25.cyan}] {pos}/{len}  {rate}, {eta} left  {msg}";
        let bar = Self::new(log, Some(n_steps as u64), template, |style| {
            style.with_key("rate", rate)
        });
        bar.bar.set_prefix(prefix);
        bar
    }

    fn new(
        log: &'a Log,
        len: Option<u64>,
        template: &str,
        change: impl FnOnce(ProgressStyle) -> ProgressStyle,
    ) -> Self {
        if !log.shows_progress() {
            let bar = ProgressBar::hidden();
            return Self { log, bar };
        }
        let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr_with_hz(10));
        // Templates are constants; should one be wrong, the default style is shown.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(change(style.progress_chars("=> ")));
        }
        Self { log, bar }
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

/// The current stage of work of unknown length: a line on a terminal, and one line per stage under `-v`.
pub(crate) struct Stages<'a>(Bar<'a>);

impl<'a> Stages<'a> {
    pub(crate) fn new(log: &'a Log) -> Self {
        let bar = Bar::new(log, None, "{spinner} {msg}, {elapsed}", |style| style);
        if log.shows_progress() {
            bar.bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// A stage begins.
    pub(crate) fn start(&mut self, stage: &str) {
        self.0.bar.set_message(stage.to_owned());
        self.0.detail(stage);
    }

    /// Removes the line.
    pub(crate) fn finish(self) {
        self.0.finish();
    }
}
