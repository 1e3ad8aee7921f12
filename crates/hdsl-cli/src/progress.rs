//! The progress bar, and the wish to stop.

use crate::report::{Talk, short};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};

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
            "\nhdsl: stopping; the best model so far is kept (Ctrl-C again to end at once)\n",
        );
    });
}

/// Whether Ctrl-C was pressed.
pub(crate) fn stop_asked() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// A bar on standard error; invisible unless that is a terminal.
pub(crate) fn bar(talk: &Talk, len: u64) -> ProgressBar {
    if !talk.shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr_with_hz(10));
    // The template is fixed, so a style that cannot be parsed would be our own mistake; the plain bar will do then.
    if let Ok(style) = ProgressStyle::with_template(
        "{prefix:>12} [{bar:30}] {pos}/{len}  {per_sec}, {eta} left  {msg}",
    ) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// What a bar says beside itself during training.
pub(crate) fn training_message(objective: f64, n_features: usize, error: Option<f64>) -> String {
    let mut text = format!("objective {}, {n_features} features", short(objective));
    if let Some(error) = error {
        text += &format!(", error {}", crate::report::percent(error));
    }
    text
}
