//! `hdsl transform`: rows in the space where the similarity of a model is a dot product.

use crate::args::{ModelFile, heading::FILES, named, positive};
use crate::failure::Failure;
use crate::files::{self, Reader, RowsOutput, WRITABLE};
use crate::output::{self, Log, count, thousands};
use clap::{Args, ValueHint};
use hdsl::{Format, IndexBase};
use serde_json::json;
use std::path::PathBuf;

/// Map rows into the space where the similarity of a model is a plain dot product
///
/// One coordinate per atom, sqrt(LAMBDA weight) (x_i +- x_j): the dot product of two mapped rows is their score under
/// the model. If the model has a base, the coordinates sqrt(BASE) x, one per feature, come before those of the atoms.
/// Cosine normalization does not change the coordinates: the cosine of two mapped rows is their normalized score. The mapped rows can be used by any tool that computes dot products: an index, a linear classifier, a plot.
/// With --rank R, the R eigenvectors of M with the largest eigenvalues: the best approximation of M of that rank. The
/// coordinates of a base are not reduced. Where atoms join more than 1,500 features to one group, at most 256 of its
/// eigenvectors are computed.
///
/// Vector databases must be set to inner product search; Euclidean distance gives a different ranking.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl transform m.hdsl test.svm.bz2 -o z.npz        in Python: scipy.sparse.load_npz(\"z.npz\")")]
pub(crate) struct Transform {
    #[command(flatten)]
    model: ModelFile,
    /// Rows to map
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    rows: PathBuf,
    /// File to write: .npz (scipy's sparse matrix) or .svm (svmlight, with the labels of ROWS)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Reduce the learned part to this many orthogonal dimensions [default: one dimension per atom]
    #[arg(long, value_name = "R", value_parser = positive, allow_negative_numbers = true)]
    rank: Option<usize>,
    /// Format to write [default: from the name of the file]
    #[arg(long, value_name = "FORMAT", value_parser = named!(Format, WRITABLE), help_heading = FILES)]
    to: Option<Format>,
    /// Labels of ROWS, one per line, for formats without labels
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    labels: Option<PathBuf>,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Transform, log: &Log) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = RowsOutput::create(&args.output, args.to)?;
    let model = files::read_model(&args.model.model, &args.model.point, log)?;
    let mut reader = Reader::new(&args.model.read, log);
    reader.number_as_model(&model);
    let mut data = reader.data(&args.rows, args.labels.as_ref())?;
    files::check_values(model.preprocess().kind(), &args.rows, &data.rows)?;
    files::note_unseen(log, &args.rows, &data.rows, model.n_features());
    data.rows = match args.rank {
        None => model.transform_rows(&data.rows),
        Some(wanted) => {
            let reduced = model.similarity().reduced(args.rank);
            let (dim, possible) = (reduced.dim(), wanted.min(reduced.rank()));
            if dim < possible {
                log.note(format!(
                    "--rank {wanted}: computed {dim} of {possible} dimensions, since more are not computed for features \
                     that atoms join to groups of thousands"
                ));
            }
            reduced.transform_rows(&model.prepare(&data.rows))
        }
    };
    out.write_data(&data, IndexBase::One)?;
    let n_base = if model.base() > 0.0 {
        model.n_features()
    } else {
        0
    };
    let value = || {
        let mut value = json!({
            "model": args.model.model,
            "output": args.output,
            "n_rows": data.rows.n_rows(),
            "dim": data.rows.n_features(),
            "nnz": data.rows.nnz(),
        });
        if n_base > 0 {
            value["base_dim"] = n_base.into();
        }
        value
    };
    let text = || {
        let parts = match n_base {
            0 => String::new(),
            n => {
                let learned = thousands(data.rows.n_features() - n);
                format!(": {} of the base, then {learned} learned", thousands(n))
            }
        };
        format!(
            "{}: wrote {} of {}{parts}\n",
            args.output.display(),
            count(data.rows.n_rows(), "row"),
            count(data.rows.n_features(), "dimension")
        )
    };
    output::result(args.json, Some(&args.output), value, text)
}
