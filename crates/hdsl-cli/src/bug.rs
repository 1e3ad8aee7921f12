//! A panic is a bug. It is reported in one sentence, with the command that led to it.

use crate::output;
use hdsl::data::remove_temporary_files;
use hdsl::model::shell_word;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// The exit status after a bug: EX_SOFTWARE of sysexits.h.
pub(crate) const STATUS: u8 = 70;

/// The result of some work, or `None` if it panicked, which is reported.
///
/// The program is built without unwinding: it ends where it panics. Inside the Python module, and in tests, panics unwind.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    static PLACE: Mutex<Option<String>> = Mutex::new(None);
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|at| format!(" at {}:{}", at.file(), at.line()))
            .unwrap_or_default();
        // The first panic is the cause of the others. While it is reported, other threads that panic wait for the end.
        let Ok(mut known) = PLACE.lock() else { return };
        if cfg!(panic = "abort") {
            report(info.payload(), &place);
            remove_temporary_files();
            std::process::exit(STATUS.into());
        }
        known.get_or_insert(place);
    }));
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(panic) => {
            let place = PLACE.lock().ok().and_then(|mut place| place.take());
            report(&*panic, &place.unwrap_or_default());
            None
        }
    }
}

fn report(panic: &(dyn Any + Send), place: &str) {
    let reason = panic.downcast_ref::<String>().map(String::as_str);
    let reason = reason.or_else(|| panic.downcast_ref::<&str>().copied());
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| without_password(&word.to_string_lossy()));
    let words = words.map(|word| shell_word(&word).into_owned());
    let command = words.collect::<Vec<_>>().join(" ");
    output::error(&format!(
        "a bug in hdsl {}: {}{place}; please report it with this command: hdsl {command}",
        env!("CARGO_PKG_VERSION"),
        reason.unwrap_or("no reason given"),
    ));
}

/// A word of the command without what is before the host of an address: a report may be public.
fn without_password(word: &str) -> String {
    match word.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        }
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_reported() {
        for (word, shown) in [
            ("https://me:secret@a.org/x", "https://a.org/x"),
            (
                "--base-url=https://me:s@cret@a.org",
                "--base-url=https://a.org",
            ),
            ("a@b.svm", "a@b.svm"),
        ] {
            assert_eq!(without_password(word), shown);
        }
    }
}
