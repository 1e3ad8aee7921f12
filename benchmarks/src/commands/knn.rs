//! The time to index rows and classify others by them, and the time of the search alone. Reading and preprocessing are not
//! measured.

use super::{Failure, labeled, times};
use hdsl::knn::evaluate_similarity;
use hdsl::{Dot, KnnIndex, Model, PredictionRule, Preprocess, Preprocessor, Similarity};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A model, or `identity` for the dot product of preprocessed rows
    model: PathBuf,
    /// The rows that vote
    train: PathBuf,
    /// The rows to classify
    test: PathBuf,
    /// For the dot product, as of `hdsl train`
    #[arg(long, default_value = "max")]
    preprocess: Preprocess,
    /// Neighbors that vote
    #[arg(short, default_value_t = 3)]
    k: usize,
    /// Number of repetitions
    #[arg(long, default_value_t = 3)]
    repeats: usize,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (train, labels) = labeled(&args.train, None)?;
    let (test, truth) = labeled(&args.test, Some(&train))?;
    let model = match args.model.as_os_str() == "identity" {
        true => None,
        false => Some(Model::read(&args.model)?),
    };
    let preprocess = match &model {
        Some(model) => model.preprocess().clone(),
        None => Preprocessor::fit(args.preprocess, &train.rows),
    };
    let similarity: &dyn Similarity = match &model {
        Some(model) => model.similarity(),
        None => &Dot,
    };
    let (rows, asked) = (preprocess.apply(&train.rows), preprocess.apply(&test.rows));
    let (seconds, last) = times(args.repeats, || {
        evaluate_similarity(
            similarity,
            &rows,
            &labels,
            &asked,
            &truth,
            &PredictionRule::nearest(args.k),
        )
    });
    let error = last.ok_or("nothing was asked for")??.error;
    let index = KnnIndex::new(similarity, &rows);
    let (search_seconds, found) = times(args.repeats, || index.neighbors(&asked, args.k));
    found.ok_or("nothing was asked for")??;
    println!(
        "{}",
        json!({ "seconds": seconds, "search_seconds": search_seconds, "error": error })
    );
    Ok(())
}
