//! The `hdsl` command: learn sparse similarities, then classify, rank, project and explain with them.

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
use std::process::ExitCode;

fn main() -> ExitCode {
    signals::handle();
    let cli = match Cli::try_parse() {
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
        None => ExitCode::from(bug::STATUS),
    }
}

/// The exit status of a result. A failure is printed.
fn exit(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::from(signals::status_of_result()),
        Err(failure) => {
            output::error(&failure.to_string());
            ExitCode::from(failure.status())
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
fn usage(error: &clap::Error) -> ExitCode {
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
    ExitCode::from(2)
}
