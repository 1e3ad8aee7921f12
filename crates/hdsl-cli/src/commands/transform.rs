//! `hdsl transform`: rows where the learned similarity is a plain dot product.

use crate::args::Transform;
use crate::failure::Failure;
use crate::files::{self, Reader, RowsOutput};
use crate::report::{self, Talk, count};
use hdsl::IndexBase;
use serde_json::json;

pub(crate) fn run(args: &Transform, talk: &Talk) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = RowsOutput::create(&args.output, args.to, None)?;
    let model = files::read_model(&args.model, &args.path, talk)?;
    let mut reader = Reader::new(&args.read, talk);
    reader.beside_model(&model);
    let data = reader.data(&args.rows, args.labels.as_ref())?;
    files::note_unseen(talk, &args.rows, &data.rows, model.n_features());
    let mapped = match args.rank {
        None => model.transform_rows(&data.rows),
        Some(_) => model
            .similarity()
            .reduced(args.rank)
            .transform_rows(&model.prepare(&data.rows)),
    };
    let (labels, queries) = (data.labels.as_ref(), data.queries.as_deref());
    out.write(&mapped, labels, queries, IndexBase::One)?;
    if args.json {
        return report::json(&json!({
            "model": args.model.display().to_string(),
            "output": args.output.display().to_string(),
            "n_rows": mapped.n_rows(),
            "dim": mapped.n_features(),
            "nnz": mapped.nnz(),
        }));
    }
    if args.output.as_os_str() == "-" {
        return Ok(());
    }
    report::stdout(&format!(
        "{}: wrote {} of {}\n",
        args.output.display(),
        count(mapped.n_rows(), "row"),
        count(mapped.n_features(), "dimension")
    ))
}
