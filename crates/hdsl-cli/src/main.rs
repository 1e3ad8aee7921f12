//! The `hdsl` command: learn sparse similarities, then classify, rank, project and explain with them.

mod args;
mod commands;
mod failure;
mod files;
mod progress;
mod report;

use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::Failure;
use report::Talk;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let talk = Talk::new(&cli.global);
    match run(cli, &talk) {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => {
            report::error(&failure.to_string());
            ExitCode::from(failure.status())
        }
    }
}

fn run(cli: Cli, talk: &Talk) -> Result<(), Failure> {
    let threads = cli.global.threads;
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0)) // 0: as many as the machine has
        // This thread is one of them: what it works on stays in its cache.
        .use_current_thread()
        .build_global()
        .map_err(|e| {
            let wanted = threads.map_or("threads".to_owned(), |n| format!("{n} threads"));
            Failure::Usage(format!("cannot use {wanted}: {e}"))
        })?;
    match cli.command {
        Command::Demo(args) => commands::demo::run(&args, talk),
        Command::Tune(args) => commands::tune::run(&args, talk),
        Command::Train(args) => commands::train::run(&args, talk),
        Command::Predict(args) => commands::predict::run(&args, talk),
        Command::Evaluate(args) => commands::evaluate::run(&args, talk),
        Command::Neighbors(args) => commands::neighbors::run(&args, talk),
        Command::Score(args) => commands::score::run(&args, talk),
        Command::Transform(args) => commands::transform::run(&args, talk),
        Command::Explain(args) => commands::explain::run(&args, talk),
        Command::Report(args) => commands::report::run(&args, talk),
        Command::Inspect(args) => commands::inspect::run(&args, talk),
        Command::Triplets(args) => commands::triplets::run(&args, talk),
        Command::Vectorize(args) => commands::vectorize::run(&args, talk),
        Command::Convert(args) => commands::convert::run(&args, talk),
        #[cfg(feature = "fetch")]
        Command::Fetch(args) => commands::fetch::run(&args, talk),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args, talk),
    }
}

/// What clap has to say: help on standard output with status 0, wrong use on standard error with status 2.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match report::styled_stdout(&text.ansi().to_string()) {
                Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
                Err(failure) => {
                    report::error(&failure.to_string());
                    ExitCode::from(failure.status())
                }
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            report::styled_stderr(&text.ansi().to_string());
            ExitCode::from(2)
        }
        _ => {
            report::styled_stderr(&format!("hdsl: {}", text.ansi()));
            ExitCode::from(2)
        }
    }
}
