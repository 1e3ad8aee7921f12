//! `hdsl convert`: rows from any format to svmlight or npz.

use crate::args::{DataArgs, named};
use crate::failure::Failure;
use crate::files::{self, Reader, RowsOutput, WRITABLE};
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use hdsl::{Format, IndexBase};
use serde_json::json;
use std::path::PathBuf;

/// Convert rows from any format to svmlight or npz
///
/// An npz file contains no labels: they are written beside it, one per line, to the same name ending in .labels.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl convert dorothea_valid.data.bz2 --labels dorothea_valid.labels -o valid.svm
  hdsl convert train.svm.bz2 -o train.npz")]
pub(crate) struct Convert {
    /// Rows in any format
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    input: PathBuf,
    /// File to write: .svm (svmlight) or .npz
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    rows: RowsFormat,
    #[command(flatten)]
    data: DataArgs,
}

/// How rows are written, where that is not clear from the name of the file.
#[derive(Args, Debug)]
pub(crate) struct RowsFormat {
    /// Format to write [default: from the name of the file]
    #[arg(long, value_name = "FORMAT", value_parser = named!(Format, WRITABLE))]
    to: Option<Format>,
    /// File for the labels with npz, which has none [default: the same name ending in .labels]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    save_labels: Option<PathBuf>,
}

impl RowsFormat {
    /// Opens the files.
    pub(crate) fn create(&self, path: &std::path::Path) -> Result<RowsOutput, Failure> {
        RowsOutput::create(path, self.to)?.with_labels(self.save_labels.as_ref())
    }
}

pub(crate) fn run(args: &Convert, log: &Log) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.data.json, Some(&args.output))?;
    let out = args.rows.create(&args.output)?;
    let mut reader = Reader::new(&args.data.read, log).with_columns(&args.data.columns);
    let data = reader.data(&args.input, args.data.labels.as_ref())?;
    // Features without written numbers are numbered from 1, as usual.
    let base = match reader.is_numbered_by_position(&args.input) {
        true => IndexBase::One,
        false => data.index_base,
    };
    let written = out.write_data(&data, base)?;
    let (n_rows, n_features) = (data.rows.n_rows(), data.rows.n_features());
    let value = || {
        json!({
            "output": written,
            "n_rows": n_rows,
            "n_features": n_features,
            "nnz": data.rows.nnz(),
            "has_labels": data.labels.is_some(),
        })
    };
    let text = || {
        let (rows, features) = (count(n_rows, "row"), count(n_features, "feature"));
        format!("{}: wrote {rows} of {features}\n", written.join(", "))
    };
    output::result(args.data.json, Some(&args.output), value, text)
}
