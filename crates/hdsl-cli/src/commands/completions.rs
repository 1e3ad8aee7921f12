//! `hdsl completions`: a completion script for a shell.

use crate::args::{Cli, Completions};
use crate::failure::Failure;
use crate::report;
use clap::CommandFactory;

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hdsl", &mut script);
    report::stdout(&String::from_utf8_lossy(&script))
}
