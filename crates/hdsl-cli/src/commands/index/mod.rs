//! `hdsl index`: rows to search, with all that a search needs, in one file.

mod build;
mod change;
mod info;
mod search;

use crate::failure::Failure;
use crate::output::Log;
use clap::{Args, Subcommand};

/// Build, change and search an index: rows, labels, ids, texts and the model in one file
///
/// An index is all that a search needs. `hdsl predict` and `hdsl neighbors` take it in place of a model and --train. Results
/// are exact: the same rows, scores and order as those of `hdsl neighbors`. Rows keep their numbers, counted from 0 in the
/// order in which they were added, when others are removed.
///
/// The file is read only where a search needs it. A change appends to it; if the program is killed, the index is as it was
/// before or after the change.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl index build reviews.hdsl reviews.csv -o reviews.index
  hdsl index search reviews.index \"a delicious soup\" -k 5
  hdsl index build m.hdsl train.svm.bz2 --ids ids.txt --texts texts.txt -o m.index
  hdsl index search m.index --rows new.svm -k 5
  hdsl index add m.index more.svm --ids more-ids.txt
  hdsl index remove m.index doc-17 doc-23
  hdsl predict m.index new.svm")]
pub(crate) struct Index {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Build(build::Build),
    Add(change::Add),
    Remove(change::Remove),
    Search(search::Search),
    Info(info::Info),
    Compact(info::Compact),
}

pub(crate) fn run(args: &Index, log: &Log) -> Result<(), Failure> {
    match &args.command {
        Command::Build(args) => build::run(args, log),
        Command::Add(args) => change::add(args, log),
        Command::Remove(args) => change::remove(args, log),
        Command::Search(args) => search::run(args, log),
        Command::Info(args) => info::run(args),
        Command::Compact(args) => info::compact(args, log),
    }
}
