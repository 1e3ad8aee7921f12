//! `hdsl predict`: classes by the vote of the nearest training rows.

use crate::args::{RankingArgs, RuleArgs};
use crate::failure::Failure;
use crate::files::{self, Ranker, Reader};
use crate::output::{self, Log};
use clap::{Args, ValueHint};
use hdsl::knn::classify;
use hdsl::{CancelToken, Index, PredictionRule};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Predict the classes of rows by the vote of their nearest training rows
///
/// The predicted class of a row is the most frequent one among its k nearest training rows under the model; ties go to
/// the class of the nearest. If the model was trained with another --vote or --normalization, it predicts by that.
/// Prints one class per line, in the order of the rows.
///
/// An index in place of MODEL contains the model and the rows, and --train is not needed.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl predict m.hdsl --train train.svm.bz2 test.svm.bz2 -o predicted.txt
  hdsl predict m.index test.svm.bz2                    m.index made by `hdsl index build`")]
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
    let (classes, rule) = match files::ranking_index(&args.ranking, log)? {
        Some(index) => predict_by_index(args, &index, log)?,
        None => predict_by_rows(args, log)?,
    };
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
            "n_rows": classes.len(),
            "output": args.output,
            "classes": classes,
        })),
    }
}

fn predict_by_rows(args: &Predict, log: &Log) -> Result<(Vec<String>, PredictionRule), Failure> {
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
    let classes = (0..rows.n_rows()).map(|row| predicted.name(row).to_owned());
    Ok((classes.collect(), rule))
}

fn predict_by_index(
    args: &Predict,
    index: &Index,
    log: &Log,
) -> Result<(Vec<String>, PredictionRule), Failure> {
    files::check_normalization(index, args.rule.normalization)?;
    let mut rule = args.rule.over(index.model().rule());
    rule.normalization = index.normalization();
    let mut reader = Reader::new(&args.ranking.read, log);
    let rows = files::read_queries(&mut reader, index.model(), &args.rows, log)?;
    let classes = index.predict(&rows, &rule, CancelToken::NEVER)?;
    Ok((classes, rule))
}
