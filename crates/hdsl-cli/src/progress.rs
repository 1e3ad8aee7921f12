//! The progress bar, the lines under `-v`, and the wish to stop.

use crate::report::{Talk, count, percent, short};
use hdsl::observer::Event;
use hdsl::{CancelToken, Gap, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C asks for an orderly end, and the second one ends the program.
pub(crate) fn stop_on_ctrl_c() {
    // Where no handler can be set, Ctrl-C ends the program at once, as it does everywhere else.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        crate::report::styled_stderr(
            "\nhdsl: stopping; the best model so far, if there is one, is kept (Ctrl-C again to end at once)\n",
        );
    });
}

/// A bar on standard error; invisible unless that is a terminal.
fn bar(talk: &Talk, len: u64) -> ProgressBar {
    if !talk.shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr_with_hz(10));
    // The template is fixed, so one that cannot be parsed would be our own mistake; the plain bar will do then.
    if let Ok(style) = ProgressStyle::with_template(
        "{prefix} [{bar:25.cyan}] {pos}/{len}  {rate}, {eta} left  {msg}",
    ) {
        let rate = |state: &ProgressState, out: &mut dyn Write| {
            // A rate that cannot be shown is no reason to stop.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate).progress_chars("=> "));
    }
    bar.set_prefix("mining triplets");
    bar
}

/// Watches training: moves the bar, prints a line per evaluation under `-v`, and passes Ctrl-C on.
pub(crate) struct Watch<'a> {
    talk: &'a Talk,
    bar: ProgressBar,
    eval_every: usize,
    validated: bool,
    error: Option<f64>,
    mine_seconds: f64,
    /// Which of several models, if the mean of several is taken.
    model: String,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(talk: &'a Talk, max_iter: usize, eval_every: usize, validated: bool) -> Self {
        Self {
            talk,
            bar: bar(talk, max_iter as u64),
            eval_every,
            validated,
            error: None,
            mine_seconds: 0.0,
            model: String::new(),
        }
    }

    /// Takes the bar away, and says how long mining took.
    pub(crate) fn finish(self) -> f64 {
        self.bar.finish_and_clear();
        self.mine_seconds
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| self.talk.detail(text));
    }

    fn facts(iter: usize, objective: f64, gap: Gap, n_features: usize) -> String {
        let sure = if gap.is_certified() { "<=" } else { "~" };
        format!(
            "iteration {iter:>5}  objective {:<9}  gap {sure} {:<9}  {n_features} features",
            short(objective),
            short(gap.value())
        )
    }
}

impl Observer for Watch<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        cancel()
    }

    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::Triplets {
                count: n, seconds, ..
            } => {
                self.mine_seconds = seconds;
                self.line(&format!("{} in {seconds:.2} s", count(n, "triplet")));
            }
            Event::EstimatorStarted { index, of } => {
                self.model = format!("model {}/{of}", index + 1);
                self.line(&self.model);
            }
            Event::LambdaStarted { index, of, lambda } => {
                self.error = None;
                self.bar.reset();
                self.bar.set_prefix(match of {
                    1 if self.model.is_empty() => "training".to_owned(),
                    1 => self.model.clone(),
                    _ => format!("lambda {} ({}/{of})", short(lambda), index + 1),
                });
                if of > 1 {
                    self.line(&format!("lambda {}", short(lambda)));
                }
            }
            Event::Iteration(now, _) => {
                self.bar.set_position(now.iter as u64);
                // Without validation rows, the line an evaluation would have printed.
                if !self.validated
                    && self.talk.is_verbose()
                    && now.iter.is_multiple_of(self.eval_every)
                {
                    let n = now.n_active_features;
                    self.line(&Self::facts(now.iter, now.objective, now.gap, n));
                }
                if !self.bar.is_hidden() {
                    let mut text = format!(
                        "objective {}, {} features",
                        short(now.objective),
                        now.n_active_features
                    );
                    if let Some(error) = self.error {
                        text += &format!(", best error {}", percent(error));
                    }
                    self.bar.set_message(text);
                }
            }
            Event::Evaluated {
                iter,
                objective,
                gap,
                n_features,
                error,
                ..
            } => {
                self.error = Some(self.error.map_or(error, |best| best.min(error)));
                if self.talk.is_verbose() {
                    let facts = Self::facts(iter, objective, gap, n_features);
                    self.line(&format!("{facts}  error {}", percent(error)));
                }
            }
            Event::LambdaDone {
                lambda,
                iterations,
                stop,
                valid_error,
            } => {
                let error =
                    valid_error.map_or(String::new(), |e| format!(", error {}", percent(e)));
                self.line(&format!(
                    "lambda {} done: {}{error}, stop: {stop}",
                    short(lambda),
                    count(iterations, "iteration")
                ));
            }
            _ => {}
        }
        match STOP.load(Ordering::SeqCst) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Raised when Ctrl-C is pressed.
fn cancel() -> CancelToken<'static> {
    CancelToken::when(&STOP)
}

/// Watches a search: a bar over the configurations of each rung, a line for each under `-v`.
pub(crate) struct TuneWatch<'a> {
    talk: &'a Talk,
    bar: ProgressBar,
    started: Instant,
    time: Duration,
    best: Option<f64>,
}

impl<'a> TuneWatch<'a> {
    pub(crate) fn new(talk: &'a Talk, time: Duration) -> Self {
        let bar = bar(talk, 1);
        bar.set_prefix("reading");
        Self {
            talk,
            bar,
            started: Instant::now(),
            time,
            best: None,
        }
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| self.talk.detail(text));
    }

    fn message(&self) {
        let left = self.time.saturating_sub(self.started.elapsed());
        let best = self.best.map_or(String::new(), |best| {
            format!("best error {}, ", percent(best))
        });
        self.bar
            .set_message(format!("{best}at most {} s", left.as_secs()));
    }
}

impl Observer for TuneWatch<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::SearchStarted {
                n_validation,
                n_folds,
                dot_error,
                resumed,
            } => {
                let folds = match n_folds {
                    1 => String::new(),
                    _ => format!(" in {n_folds} folds"),
                };
                self.line(&format!(
                    "validated on {}{folds}; the dot product predicts {} of them wrong",
                    count(n_validation, "row"),
                    percent(dot_error)
                ));
                if resumed > 0 {
                    self.talk.note(format!(
                        "going on with a search that was cut short: {} done",
                        count(resumed, "round")
                    ));
                }
            }
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
                    (false, several) => format!(", the average of {several} models"),
                };
                self.line(&format!(
                    "rung {}: {}{note}",
                    rung + 1,
                    count(configurations, "configuration")
                ));
                self.bar.reset();
                self.bar.set_length(configurations as u64);
                self.bar.set_prefix(format!("rung {}/{of}", rung + 1));
                self.message();
            }
            Event::TrialDone {
                configuration,
                error,
                done,
                ..
            } => {
                self.best = Some(self.best.map_or(error, |best| best.min(error)));
                self.bar.set_position(done as u64);
                self.message();
                self.line(&format!("error {:<6} {configuration}", percent(error)));
            }
            Event::FinalTraining { n_rows } => {
                self.bar.set_prefix("training the best");
                self.line(&format!("training the best on {}", count(n_rows, "row")));
            }
            _ => {}
        }
        match cancel().is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        cancel()
    }
}

/// What is being done right now, for work whose length nobody knows: a line on a terminal, one each under `-v`.
pub(crate) struct Stages<'a> {
    talk: &'a Talk,
    bar: ProgressBar,
}

impl<'a> Stages<'a> {
    pub(crate) fn new(talk: &'a Talk) -> Self {
        let bar = match talk.shows_progress() {
            true => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10)),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
            bar.set_style(style);
        }
        if talk.shows_progress() {
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
        }
        Self { talk, bar }
    }

    pub(crate) fn say(&mut self, stage: &str) {
        self.bar.set_message(stage.to_owned());
        self.bar.suspend(|| self.talk.detail(stage));
    }

    /// Takes the line away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Watches a download: bytes, rate and time left on a terminal, a line per file under `-v`.
#[cfg(feature = "fetch")]
pub(crate) struct Download<'a> {
    talk: &'a Talk,
    name: &'static str,
    bar: ProgressBar,
}

#[cfg(feature = "fetch")]
impl<'a> Download<'a> {
    pub(crate) fn new(talk: &'a Talk, name: &'static str) -> Self {
        Self {
            talk,
            name,
            bar: ProgressBar::hidden(),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }

    /// Shows what happens. Ctrl-C ends the program; what came stays for the next call.
    pub(crate) fn event(&mut self, event: &hdsl_fetch::Event<'_>) -> ControlFlow<()> {
        use hdsl_fetch::Event;
        match *event {
            Event::Receiving { url, done, total } => {
                self.start(url, total);
                // Bytes that were there before say nothing about the rate.
                self.bar.set_position(done);
                self.bar.reset_eta();
                let from = match done {
                    0 => String::new(),
                    done => format!(", from byte {done} on"),
                };
                self.bar
                    .suspend(|| self.talk.detail(format!("downloading {url}{from}")));
            }
            Event::Received { done, .. } => self.bar.set_position(done),
            Event::TryingAgain { reason, pause } => self.bar.suspend(|| {
                let seconds = pause.as_secs_f64();
                self.talk
                    .note(format!("{reason}; trying again in {seconds:.0} s"));
            }),
            Event::Locked => self.talk.note(format!(
                "another process is fetching {}; waiting for it",
                self.name
            )),
            Event::Unpacking { file } => {
                self.bar
                    .suspend(|| self.talk.detail(format!("unpacking {file}")));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn start(&mut self, url: &str, total: Option<u64>) {
        self.bar.finish_and_clear();
        if !self.talk.shows_progress() {
            return;
        }
        let template = match total {
            Some(_) => {
                "{prefix} [{bar:25.cyan}] {bytes}/{total_bytes}  {bytes_per_sec}, {eta} left"
            }
            None => "{prefix} {bytes} (of unknown size)  {bytes_per_sec}",
        };
        let target = ProgressDrawTarget::stderr_with_hz(10);
        self.bar = ProgressBar::with_draw_target(total, target);
        // As above: a template that cannot be parsed would be our own mistake.
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        let file = url.rsplit('/').next().unwrap_or(url);
        self.bar.set_prefix(file.to_owned());
    }
}
