//! `hdsl evaluate`: the prediction error of a model, or of the plain dot product, or how well they agree with triplets and
//! judgments.

mod supervision;

use crate::args::{RankingArgs, RuleArgs, heading::FILES};
use crate::failure::Failure;
use crate::files::Ranker;
use crate::output::{self, Log, count, percent, thousands};
use clap::{Args, ValueHint};
use hdsl::knn::{Evaluation, evaluate_similarity};
use hdsl::{Normalization, PredictionRule, TripletSource, Vote};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// The table of classes is printed for at most this many.
const CLASSES_SHOWN: usize = 20;

/// Measure a model, or the plain dot product, on labeled rows, triplets or judgments
///
/// On labeled rows, whose classes are predicted by their nearest training rows:
///
///   error              fraction of rows whose predicted class is wrong
///   balanced error     mean over the classes of the error of each class, whatever their sizes
///
/// With --triplets, on triplets or judgments of the rows of TEST:
///
///   triplet accuracy   fraction of triplets with S(x, y) > S(x, z); a tie counts one half
///   nDCG@10, MAP,      means over queries, of rankings of the documents judged for the query, and of
///   recall@10, @100,   rankings of all documents that the file names; a grade above 0 is relevant, and
///   MRR                so is every judged document if lower grades are better; ties in expectation
///
/// With `identity` instead of a model file, rows are ranked by the dot product, after the
/// preprocessing that `train` uses by default, so that both can be compared.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2 -k 15 --vote weighted --normalization cosine
  hdsl evaluate identity --train train.svm.bz2 test.svm.bz2 --json             the plain dot product
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2 --max-features 50    a sparser model
  hdsl evaluate m.hdsl rows.svm --triplets judgments:qrels.txt                 rankings by judgments",
    override_usage = "hdsl evaluate [OPTIONS] [--train <FILE>] <MODEL> <TEST>\n       \
                      hdsl evaluate [OPTIONS] --triplets <SOURCE> <MODEL> <TEST>"
)]
pub(crate) struct Evaluate {
    #[command(flatten)]
    ranking: RankingArgs,
    /// Labeled test rows, or the rows that --triplets names
    #[arg(value_name = "TEST", value_hint = ValueHint::FilePath)]
    test: PathBuf,
    /// Measure on triplets or judgments instead of labels: a FILE, clicks:FILE, judgments:FILE,
    /// judgments-low:FILE or pairs:FILE
    ///
    /// Lines are as for `train`, and name rows of TEST, counted from 0. --train is not needed: `identity` fits its
    /// preprocessing on TEST then.
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["labels", "k", "vote"])]
    triplets: Option<TripletSource>,
    #[command(flatten)]
    rule: RuleArgs,
    /// Labels of the TEST rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    labels: Option<PathBuf>,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Evaluate, log: &Log) -> Result<(), Failure> {
    match &args.triplets {
        Some(source) => supervision::run(args, source, log),
        None => on_labels(args, log),
    }
}

fn on_labels(args: &Evaluate, log: &Log) -> Result<(), Failure> {
    let started = Instant::now();
    let mut ranker = Ranker::open(&args.ranking, log)?;
    let labels = ranker.labels()?.clone();
    let (test, truth) = ranker.labeled_queries(&args.test, args.labels.as_ref(), "--labels")?;
    let rule = args.rule.over(ranker.rule());
    let train = ranker.train_rows()?;
    let similarity = ranker.similarity();
    let evaluation = evaluate_similarity(similarity, &train, &labels, &test, &truth, &rule)?;
    let seconds = started.elapsed().as_secs_f64();
    match args.json {
        true => output::json(&to_json(args, &ranker, &rule, &evaluation, seconds)),
        false => output::stdout(&to_text(args, &ranker, &rule, &evaluation)),
    }
}

/// The prediction rule in words.
fn rule_in_words(rule: &PredictionRule, n_train: usize) -> String {
    let rows = count(n_train, "training row");
    let mut text = match rule.vote {
        Vote::Majority => format!("{}-NN over {rows}", rule.k),
        Vote::Weighted => format!("weighted {}-NN over {rows}", rule.k),
        Vote::Squared => format!("squared-weight {}-NN over {rows}", rule.k),
        Vote::ClassMean => format!("class means of {rows}"),
    };
    if rule.normalization == Normalization::Cosine {
        text += ", cosine";
    }
    text
}

/// What the similarity uses.
fn uses(ranker: &Ranker<'_>) -> String {
    match &ranker.model {
        Some(model) => output::usage_of(model),
        None => {
            let features = count(ranker.preprocess.n_features(), "feature");
            format!("the plain dot product of {features}")
        }
    }
}

fn to_text(
    args: &Evaluate,
    ranker: &Ranker<'_>,
    rule: &PredictionRule,
    evaluation: &Evaluation,
) -> String {
    let error = format!(
        "{}  ({} of {} wrong; {})",
        percent(evaluation.error),
        thousands(evaluation.n_wrong),
        thousands(evaluation.n_test),
        rule_in_words(rule, ranker.n_train())
    );
    let text = output::fields(&[
        ("model", args.ranking.model.to_string()),
        ("uses", uses(ranker)),
        ("error", error),
        ("balanced error", percent(evaluation.balanced_error)),
    ]);
    match evaluation.classes.len() <= CLASSES_SHOWN {
        true => text + "\n" + &output::table("  ", &class_table(evaluation)),
        false => text,
    }
}

/// The error of each class, and the class it is most often confused with.
fn class_table(evaluation: &Evaluation) -> Vec<Vec<String>> {
    let mut table = vec![output::head([
        "class",
        "rows",
        "error",
        "most confused with",
    ])];
    for (code, class) in (0..).zip(&evaluation.classes) {
        let cells = evaluation.cells.iter().filter(|cell| cell.0 == code);
        let total: usize = cells.clone().map(|cell| cell.2).sum();
        if total == 0 {
            continue;
        }
        let right = evaluation.count(code, code);
        let other = cells
            .filter(|cell| cell.1 != code)
            .max_by_key(|cell| (cell.2, std::cmp::Reverse(cell.1)));
        table.push(vec![
            class.clone(),
            thousands(total),
            percent(1.0 - right as f64 / total as f64),
            other.map_or(String::new(), |cell| {
                format!("{} ({})", evaluation.classes[cell.1 as usize], cell.2)
            }),
        ]);
    }
    table
}

fn to_json(
    args: &Evaluate,
    ranker: &Ranker<'_>,
    rule: &PredictionRule,
    evaluation: &Evaluation,
    seconds: f64,
) -> Value {
    let learned = ranker.model.as_ref().map(|model| model.similarity());
    let name = |code: u32| &evaluation.classes[code as usize];
    let cells = evaluation.cells.iter();
    let cells: Vec<Value> = cells
        .map(|&(truth, predicted, n)| {
            json!({ "class": name(truth), "predicted": name(predicted), "count": n })
        })
        .collect();
    json!({
        "model": args.ranking.model.to_string(),
        "error": evaluation.error,
        "balanced_error": evaluation.balanced_error,
        "n_test": evaluation.n_test,
        "n_wrong": evaluation.n_wrong,
        "n_train": ranker.n_train(),
        "k": rule.k,
        "vote": rule.vote,
        "normalization": rule.normalization,
        "preprocess": ranker.preprocess.kind(),
        "iteration": ranker.model.as_ref().map(|model| model.chosen()),
        "n_atoms": learned.map(|m| m.atoms().len()),
        "n_features": learned.map(|m| m.n_features_used()),
        "n_features_total": ranker.preprocess.n_features(),
        "classes": evaluation.classes,
        "confusion": cells,
        "seconds": seconds,
    })
}
