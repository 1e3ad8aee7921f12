//! The time to read a file.

use super::{Failure, times};
use hdsl::{ReadOptions, read_dataset};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Any file `hdsl` reads
    file: PathBuf,
    /// Number of repetitions
    #[arg(long, default_value_t = 3)]
    repeats: usize,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let options = ReadOptions::default();
    let (seconds, last) = times(args.repeats, || read_dataset(&args.file, &options));
    let rows = last.ok_or("nothing was asked for")??.rows;
    let facts = json!({
        "seconds": seconds,
        "rows": rows.n_rows(),
        "features": rows.n_features(),
        "values": rows.nnz(),
    });
    println!("{facts}");
    Ok(())
}
