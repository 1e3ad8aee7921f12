//! `hdsl predict`: classes by the vote of the nearest training rows.

use crate::args::{RankingArgs, RuleArgs};
use crate::failure::Failure;
use crate::files::{self, Ranker};
use crate::output::{self, Log};
use clap::{Args, ValueHint};
use hdsl::knn::classify;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Predict the classes of rows by the vote of their nearest training rows
///
/// The predicted class of a row is the most frequent one among its k nearest training rows under the model; ties go to
/// the class of the nearest. If the model was trained with another --vote or --normalization, it predicts by that.
/// Prints one class per line, in the order of the rows.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl predict m.hdsl --train train.svm.bz2 test.svm.bz2 -o predicted.txt")]
pub(crate) struct Predict {
    #[command(flatten)]
    ranking: RankingArgs,
    /// Rows to classify
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    rows: PathBuf,
    #[command(flatten)]
    rule: RuleArgs,
    /// File to write the classes to [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Print one JSON object with the classes on standard output instead of lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Predict, log: &Log) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_deref())?;
    let mut ranker = Ranker::open(&args.ranking, log)?;
    let labels = ranker.labels()?.clone();
    let rows = ranker.queries(&args.rows)?;
    let rule = args.rule.over(ranker.rule());
    let predicted = classify(
        ranker.similarity(),
        &ranker.train_rows()?,
        &labels,
        &rows,
        &rule,
    )?;
    let classes: Vec<&str> = (0..rows.n_rows()).map(|row| predicted.name(row)).collect();
    if let Some(out) = out {
        files::write(out, |out| {
            classes
                .iter()
                .try_for_each(|class| writeln!(out, "{class}"))
        })?;
    }
    match args.json {
        false => Ok(()),
        true => output::json(&json!({
            "model": args.ranking.model.to_string(),
            "k": rule.k,
            "vote": rule.vote,
            "normalization": rule.normalization,
            "n_rows": rows.n_rows(),
            "output": args.output,
            "classes": classes,
        })),
    }
}
