//! `hdsl completions`: a completion script for a shell.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output;
use clap::{Args, CommandFactory};

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl completions bash > ~/.local/share/bash-completion/completions/hdsl
  hdsl completions zsh > ~/.zfunc/_hdsl
  hdsl completions fish > ~/.config/fish/completions/hdsl.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hdsl", &mut script);
    output::stdout(&String::from_utf8_lossy(&script))
}
