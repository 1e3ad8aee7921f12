//! `hdsl index add` and `hdsl index remove`.

use crate::args::ReadArgs;
use crate::failure::Failure;
use crate::files::{self, IndexedArgs};
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use serde_json::json;
use std::path::PathBuf;

/// Add rows to an index
///
/// Rows of an index with ids need ids, and rows of an index without have none.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl index add reviews.index more.csv
  hdsl index add m.index more.svm --ids more-ids.txt")]
pub(crate) struct Add {
    /// Index file to change
    #[arg(value_name = "INDEX", value_hint = ValueHint::FilePath)]
    index: PathBuf,
    #[command(flatten)]
    rows: IndexedArgs,
    /// Replace rows that have the same id as a new one; otherwise this is an error
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    read: ReadArgs,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn add(args: &Add, log: &Log) -> Result<(), Failure> {
    let (n_added, n_rows) = files::edit_index(&args.index, |index| {
        let rows = args.rows.read(&args.read, index.model(), log)?;
        let n_added = rows.n_rows();
        index.add(&rows.new_rows(args.replace))?;
        Ok((n_added, index.n_rows()))
    })?;
    let (added, all) = (count(n_added, "row"), count(n_rows, "row"));
    output::result(
        args.json,
        None,
        || json!({ "index": args.index, "n_added": n_added, "n_rows": n_rows }),
        || format!("added {added}, the index has {all}\n"),
    )
}

/// Remove rows from an index by id, or by number if the index has no ids
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl index remove m.index doc-17 doc-23
  hdsl index remove m.index --ids gone.txt")]
pub(crate) struct Remove {
    /// Index file to change
    #[arg(value_name = "INDEX", value_hint = ValueHint::FilePath)]
    index: PathBuf,
    /// Ids of rows, or row numbers if the index has no ids
    #[arg(value_name = "ID", required_unless_present = "ids")]
    id: Vec<String>,
    /// File of more ids, one per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ids: Option<PathBuf>,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn remove(args: &Remove, _log: &Log) -> Result<(), Failure> {
    let mut ids = args.id.clone();
    if let Some(path) = &args.ids {
        ids.extend(hdsl::data::read_lines(path)?);
    }
    let n_rows = files::edit_index(&args.index, |index| {
        let find = |id: &String| files::find_row(index, &args.index, id);
        let rows = ids
            .iter()
            .map(find)
            .collect::<Result<Vec<u32>, Failure>>()?;
        index.remove(&rows)?;
        Ok(index.n_rows())
    })?;
    let (removed, all) = (count(ids.len(), "row"), count(n_rows, "row"));
    output::result(
        args.json,
        None,
        || json!({ "index": args.index, "n_removed": ids.len(), "n_rows": n_rows }),
        || format!("removed {removed}, the index has {all}\n"),
    )
}
