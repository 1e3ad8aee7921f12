//! `hdsl man`: a man page for the program and one for each command.

use crate::args::{Cli, Man};
use crate::failure::Failure;
use crate::report::Talk;
use clap::CommandFactory;
use std::path::Path;

pub(crate) fn run(args: &Man, talk: &Talk) -> Result<(), Failure> {
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("{}: cannot write: {error}", path.display()))
    };
    std::fs::create_dir_all(&args.dir).map_err(|e| cannot(&args.dir, e))?;
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
            .map_err(|e| cannot(&path, e))?;
        talk.detail(format!("wrote {}", path.display()));
    }
    Ok(())
}
