//! Splits a file into parts, stratified by class, so that all programs learn from the same rows.

use super::{Failure, labeled, write};
use hdsl::Dataset;
use hdsl::data::stratified_split;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rows with labels
    rows: PathBuf,
    /// The fraction of each part; they sum to 1
    #[arg(long, value_delimiter = ',', required = true)]
    shares: Vec<f64>,
    /// Same seed, same parts
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// One file per part
    #[arg(short, long, num_args = 1.., required = true)]
    output: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (data, labels) = labeled(&args.rows, None)?;
    let parts = stratified_split(&labels, &args.shares, args.seed)?;
    if parts.len() != args.output.len() {
        return Err("expected a file for each share".into());
    }
    for (part, path) in parts.iter().zip(&args.output) {
        let part = Dataset {
            rows: data.rows.select(part),
            labels: Some(labels.select(part)),
            queries: None,
            index_base: data.index_base,
            notes: Vec::new(),
            records: None,
        };
        write(path, &part)?;
    }
    Ok(())
}
