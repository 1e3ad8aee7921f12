//! Synthetic rows as an svmlight file.

use super::{Failure, write};
use hdsl_benchmarks::synthetic::Synthetic;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    data: Synthetic,
    /// Where to write
    #[arg(short, long)]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    write(&args.output, &args.data.make())
}
