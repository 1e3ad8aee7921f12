//! Signals: Ctrl-C (SIGINT), SIGTERM and SIGHUP.
//!
//! A command that can end early with a result asks for that with [`stop_in_order`]. Any other one ends at once, without
//! leaving temporary files behind. The exit status is 128 plus the number of the signal, as a shell reports it.

use hdsl::CancelToken;
use hdsl::data::remove_temporary_files;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// SIGINT.
const CTRL_C: i32 = 2;

/// Whether the first signal asks for an orderly end.
static IN_ORDER: AtomicBool = AtomicBool::new(false);
/// Set by the first signal.
static STOP: AtomicBool = AtomicBool::new(false);
/// The number of the first signal; 0 before.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// From now on signals are handled. Where that is impossible, they end the program as they do by default.
pub(crate) fn handle() {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut numbers = vec![SIGINT, SIGTERM];
        // `nohup` has its effect by ignoring this signal.
        if !is_ignored(SIGHUP) {
            numbers.push(SIGHUP);
        }
        if let Ok(mut signals) = signal_hook::iterator::Signals::new(numbers) {
            std::thread::spawn(move || signals.forever().for_each(received));
        }
    }
    #[cfg(not(unix))]
    {
        let _ = ctrlc::set_handler(|| received(CTRL_C));
    }
}

/// Whether the process was started with this signal ignored.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn received(signal: i32) {
    let again = STOP.swap(true, Ordering::SeqCst);
    if again || !IN_ORDER.load(Ordering::SeqCst) {
        remove_temporary_files();
        std::process::exit(128 + signal);
    }
    SIGNAL.store(signal, Ordering::SeqCst);
    let how = match signal {
        CTRL_C => "Ctrl-C again",
        _ => "a second signal",
    };
    crate::output::styled_stderr(&format!(
        "\nhdsl: stopping; the best model so far, if there is one, is kept ({how} to end at once)\n"
    ));
}

/// From now on the first signal asks for an orderly end, and the second one ends the program.
pub(crate) fn stop_in_order() {
    IN_ORDER.store(true, Ordering::SeqCst);
}

/// What an observer returns: break after a signal.
pub(crate) fn unless_stopped() -> ControlFlow<()> {
    match STOP.load(Ordering::SeqCst) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// The token that a signal cancels.
pub(crate) fn cancel_token() -> CancelToken<'static> {
    CancelToken::when(&STOP)
}

/// The signal in words, for messages about an orderly end.
pub(crate) fn name() -> &'static str {
    match SIGNAL.load(Ordering::SeqCst) {
        1 => "SIGHUP",
        15 => "SIGTERM",
        _ => "Ctrl-C",
    }
}

/// The exit status of a command that was stopped before it had a result.
pub(crate) fn status() -> u8 {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => 128 + CTRL_C as u8,
        signal => 128 + signal as u8,
    }
}

/// The exit status of a command that has saved a result: 0 also after Ctrl-C, which is how one ends a training that has
/// gone on for long enough. After SIGTERM or SIGHUP, whoever sent it has to know that there was more to do.
pub(crate) fn status_of_result() -> u8 {
    match SIGNAL.load(Ordering::SeqCst) {
        0 | CTRL_C => 0,
        signal => 128 + signal as u8,
    }
}
