//! `hdsl index build`.

use crate::args::{ModelFile, named};
use crate::failure::Failure;
use crate::files::{self, IndexedArgs};
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use hdsl::{Index, Normalization};
use serde_json::json;
use std::path::PathBuf;

/// Build an index of rows under a model
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl index build reviews.hdsl reviews.csv -o reviews.index
  hdsl index build m.hdsl train.svm.bz2 --ids ids.txt --texts texts.txt -o m.index")]
pub(crate) struct Build {
    #[command(flatten)]
    model: ModelFile,
    #[command(flatten)]
    rows: IndexedArgs,
    /// Index file to write; checked to be writable before the work starts
    #[arg(short, long, value_name = "INDEX", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Normalization of the similarity [default: as in training]
    #[arg(long, value_name = "HOW", value_parser = named!(Normalization))]
    normalization: Option<Normalization>,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Build, log: &Log) -> Result<(), Failure> {
    let out = files::create(&args.output)?;
    let model = files::read_model(&args.model.model, &args.model.point, log)?;
    let rows = args.rows.read(&args.model.read, &model, log)?;
    let mut index = Index::new(model, args.normalization);
    index.add(&rows.new_rows(false))?;
    drop(rows);
    index.write(out)?;
    let (n_bytes, _) = index.file_size().unwrap_or_default();
    output::result(
        args.json,
        Some(&args.output),
        || {
            json!({
                "index": args.output,
                "model": args.model.model,
                "normalization": index.normalization(),
                "n_rows": index.n_rows(),
                "n_bytes": n_bytes,
            })
        },
        || {
            format!(
                "indexed {}, saved {}\n",
                count(index.n_rows(), "row"),
                output::saved(&args.output, n_bytes as usize)
            )
        },
    )
}
