//! `hdsl man`: one man page for the program and one for each command.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::files;
use crate::output::Log;
use clap::{Args, CommandFactory, ValueHint};
use std::path::PathBuf;

/// Write man pages to a folder
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl man man1 && man -l man1/hdsl-train.1")]
pub(crate) struct ManPages {
    /// The folder; created if missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

pub(crate) fn run(args: &ManPages, log: &Log) -> Result<(), Failure> {
    files::create_folder(&args.dir)?;
    let mut program = Cli::command();
    program.build();
    let mut pages = vec![("hdsl.1".to_owned(), program.clone())];
    for command in program.get_subcommands().filter(|c| c.get_name() != "help") {
        let name = format!("hdsl-{}", command.get_name());
        pages.push((format!("{name}.1"), command.clone().name(name)));
    }
    for (file, command) in pages {
        let mut page = Vec::new();
        let path = args.dir.join(file);
        clap_mangen::Man::new(command)
            .render(&mut page)
            .and_then(|()| std::fs::write(&path, &page))
            .map_err(|e| Failure::file(&path, format!("cannot write: {e}")))?;
        log.detail(format!("wrote {}", path.display()));
    }
    Ok(())
}
