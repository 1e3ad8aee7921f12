//! `hdsl convert`: rows from any format to svmlight or npz.

use crate::args::Convert;
use crate::failure::Failure;
use crate::files::{self, Reader, RowsOutput};
use crate::report::{self, Talk, count};
use hdsl::IndexBase;
use serde_json::json;

pub(crate) fn run(args: &Convert, talk: &Talk) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = RowsOutput::create(&args.output, args.to, Some(args.save_labels.as_ref()))?;
    let mut reader = Reader::new(&args.read, talk);
    let data = reader.data(&args.input, args.labels.as_ref())?;
    // What has no written numbers gets the usual ones.
    let base = match reader.is_numbered_by_position(&args.input) {
        true => IndexBase::One,
        false => data.index_base,
    };
    let (labels, queries) = (data.labels.as_ref(), data.queries.as_deref());
    let written = out.write(&data.rows, labels, queries, base)?;
    let written: Vec<String> = written.iter().map(|p| p.display().to_string()).collect();
    if args.json {
        return report::json(&json!({
            "output": written,
            "n_rows": data.rows.n_rows(),
            "n_features": data.rows.n_features(),
            "nnz": data.rows.nnz(),
            "has_labels": labels.is_some(),
        }));
    }
    if args.output.as_os_str() == "-" {
        return Ok(());
    }
    report::stdout(&format!(
        "{}: wrote {} of {}\n",
        written.join(", "),
        count(data.rows.n_rows(), "row"),
        count(data.rows.n_features(), "feature")
    ))
}
