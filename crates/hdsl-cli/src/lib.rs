//! The `hdsl` command: learn sparse similarities, then classify, rank, project and explain with them.
//!
//! [`run`] is the whole program. The program `hdsl` calls it, and so does the command `hdsl` of the Python package.

mod args;
mod bug;
mod cli;
mod commands;
mod failure;
mod files;
mod output;
mod progress;
mod signals;

use clap::Parser;
use clap::error::ErrorKind;
use cli::Cli;
use failure::Failure;
use hdsl::data::limit_reading;
use hdsl::solver::available_memory;
use output::Log;
use std::ffi::OsString;
use std::sync::OnceLock;

/// The words after the program's name.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the program with the words after its name, and returns its exit status.
///
/// It prints on standard output and standard error, replaces the handling of Ctrl-C, and takes the global thread pool.
/// It can therefore run once per process; a second call fails with status 1. Nothing printed is left in a buffer.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    signals::handle();
    let words: Vec<OsString> = words.into_iter().collect();
    let name = OsString::from("hdsl");
    let parsed = Cli::try_parse_from(std::iter::once(&name).chain(&words));
    if WORDS.set(words).is_err() {
        let once = "the program can run once per process only";
        return exit(Err(Failure::Running(once.to_owned())));
    }
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let log = Log::new(&cli.global);
    // Commands with --memory set another limit.
    if let Some(bytes) = available_memory() {
        limit_reading(bytes);
    }
    let run = || use_threads(cli.global.threads).and_then(|()| cli.command.run(&log));
    match bug::caught(run) {
        Some(result) => exit(result),
        None => bug::STATUS,
    }
}

/// The words after the program's name.
pub(crate) fn words() -> &'static [OsString] {
    WORDS.get().map_or(&[], Vec::as_slice)
}

/// The exit status of a result. A failure is printed.
fn exit(result: Result<(), Failure>) -> u8 {
    // Inside another program, nothing flushes the buffer of standard output at the end.
    match result.and_then(|()| output::flush_stdout()) {
        Ok(()) | Err(Failure::ReaderGone) => signals::status_of_result(),
        Err(failure) => {
            output::error(&failure.to_string());
            failure.status()
        }
    }
}

fn use_threads(threads: Option<usize>) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0)) // 0: as many as the machine has
        // The main thread is one of them: what it works on stays in its cache.
        .use_current_thread()
        .build_global()
        .map_err(|e| {
            let wanted = threads.map_or("threads".to_owned(), |n| format!("{n} threads"));
            Failure::Usage(format!("cannot use {wanted}: {e}"))
        })
}

/// What clap reports: help on standard output with status 0, wrong usage on standard error with status 2.
fn usage(error: &clap::Error) -> u8 {
    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return exit(output::styled_stdout(&text.ansi().to_string()));
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::styled_stderr(&text.ansi().to_string());
        }
        _ => output::styled_stderr(&format!("hdsl: {}", text.ansi())),
    }
    2
}
