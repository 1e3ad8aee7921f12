//! `hdsl index info` and `hdsl index compact`.

use crate::failure::Failure;
use crate::files;
use crate::output::{self, Log, thousands, usage_of};
use clap::{Args, ValueHint};
use hdsl::Index;
use hdsl::format::bytes;
use serde_json::json;
use std::path::PathBuf;

/// Show what an index contains
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl index info m.index --check")]
pub(crate) struct Info {
    /// Index file
    #[arg(value_name = "INDEX", value_hint = ValueHint::FilePath)]
    index: PathBuf,
    /// Read the whole file and compare all checksums
    #[arg(long)]
    check: bool,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Info) -> Result<(), Failure> {
    let index = Index::open(&args.index)?;
    if args.check {
        index.check()?;
    }
    let (n_bytes, n_used) = index.file_size().unwrap_or_default();
    let (model, unused) = (index.model(), n_bytes - n_used.min(n_bytes));
    output::result(
        args.json,
        None,
        || {
            json!({
                "index": args.index,
                "n_rows": index.n_rows(),
                "n_segments": index.n_segments(),
                "has_ids": index.has_ids(),
                "normalization": index.normalization(),
                "n_features": model.n_features(),
                "n_bytes": n_bytes,
                "n_bytes_unused": unused,
                "checked": args.check,
            })
        },
        || {
            let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
            let mut lines = vec![
                ("rows", thousands(index.n_rows())),
                ("segments", thousands(index.n_segments())),
                ("ids", yes(index.has_ids())),
                ("model", usage_of(model)),
                ("rule", model.rule().to_string()),
                ("normalization", index.normalization().to_string()),
                (
                    "size",
                    format!("{}, of which {} are unused", bytes(n_bytes), bytes(unused)),
                ),
            ];
            if args.check {
                lines.push(("checksums", "right".into()));
            }
            output::fields(&lines)
        },
    )
}

/// Write an index anew, without what is no longer used
///
/// Rows that were removed or replaced, and segments that were merged, stay in the file until then. Rows keep their numbers.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl index compact m.index")]
pub(crate) struct Compact {
    /// Index file to change
    #[arg(value_name = "INDEX", value_hint = ValueHint::FilePath)]
    index: PathBuf,
}

pub(crate) fn compact(args: &Compact, log: &Log) -> Result<(), Failure> {
    let before = files::edit_index(&args.index, |index| {
        let before = index.file_size().unwrap_or_default().0;
        *index = index.compacted()?;
        Ok(before)
    })?;
    let after = Index::open(&args.index)?.file_size().unwrap_or_default().0;
    log.detail(format!("{} before", bytes(before)));
    output::stdout(&format!("{} became {}\n", bytes(before), bytes(after)))
}
