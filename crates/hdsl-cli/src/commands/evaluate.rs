//! `hdsl evaluate`: the k-NN error of a model, or of the plain dot product.

use crate::args::{Evaluate, ModelArg};
use crate::failure::Failure;
use crate::files::{self, Ranker, Reader};
use crate::report::{self, Talk, count, percent, thousands};
use hdsl::knn::{Evaluation, evaluate_similarity};
use hdsl::{Normalization, PredictionRule, Vote};
use serde_json::{Value, json};
use std::time::Instant;

/// A table of classes is shown for at most so many.
const CLASSES_SHOWN: usize = 20;

pub(crate) fn run(args: &Evaluate, talk: &Talk) -> Result<(), Failure> {
    let started = Instant::now();
    let mut reader = Reader::new(&args.read, talk);
    let (ranker, train) = files::read_ranker(
        &args.model,
        args.preprocess,
        &args.path,
        &args.train,
        &mut reader,
    )?;
    let labels = files::training_labels(&train, &args.train.train)?;
    let (test, truth) = reader.labeled(&args.test, args.labels.as_ref(), "--labels")?;
    let rule = args.decide.over(ranker.rule());
    let evaluation = evaluate_similarity(
        ranker.similarity(),
        &ranker.prepare(talk, &args.train.train, &train),
        &labels,
        &ranker.prepare(talk, &args.test, &test),
        &truth,
        &rule,
    )?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        return report::json(&to_json(
            args,
            &ranker,
            (&rule, train.rows.n_rows()),
            &evaluation,
            seconds,
        ));
    }
    report::stdout(&to_text(
        args,
        &ranker,
        (&rule, train.rows.n_rows()),
        &evaluation,
    ))
}

/// The model as it was named.
pub(crate) fn name(model: &ModelArg) -> String {
    match model {
        ModelArg::Identity => "identity".into(),
        ModelArg::File(path) => path.display().to_string(),
    }
}

/// Who decided, in words.
fn deciders(rule: &PredictionRule, n_train: usize) -> String {
    let rows = count(n_train, "row");
    let mut text = match rule.vote {
        Vote::Majority => format!("{} of {rows}", count(rule.k, "neighbor")),
        Vote::Weighted => format!("{} of {rows}, weighted", count(rule.k, "neighbor")),
        Vote::ClassMean => format!("the class means of {rows}"),
    };
    if rule.normalization == Normalization::Cosine {
        text += ", cosine";
    }
    text
}

fn to_text(
    args: &Evaluate,
    ranker: &Ranker,
    (rule, n_train): (&PredictionRule, usize),
    evaluation: &Evaluation,
) -> String {
    let uses = match (&ranker.model, ranker.learned()) {
        (Some(model), Some(learned)) => format!(
            "{} of {} in {}",
            thousands(learned.n_features_used()),
            count(model.n_features(), "feature"),
            count(learned.atoms().len(), "atom")
        ),
        _ => format!(
            "the plain dot product of {}",
            count(ranker.preprocess.n_features(), "feature")
        ),
    };
    let rows = [
        ("model", name(&args.model)),
        ("uses", uses),
        (
            "error",
            format!(
                "{}  ({} wrong of {}, by {})",
                percent(evaluation.error),
                thousands(evaluation.n_wrong),
                thousands(evaluation.n_test),
                deciders(rule, n_train)
            ),
        ),
        ("balanced error", percent(evaluation.balanced_error)),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(a, b)| vec![a.to_owned(), b])
        .collect();
    // Figures stand in a sentence here, so they are not lined up to the right.
    let mut text: String = rows
        .iter()
        .map(|r| format!("{:<14}  {}\n", r[0], r[1]))
        .collect();
    if evaluation.classes.len() <= CLASSES_SHOWN {
        let mut table = vec![vec![
            "class".to_owned(),
            "rows".to_owned(),
            "error".to_owned(),
            "mostly taken for".to_owned(),
        ]];
        for (code, class) in evaluation.classes.iter().enumerate() {
            let cells = evaluation.cells.iter().filter(|c| c.0 == code as u32);
            let total: usize = cells.clone().map(|c| c.2).sum();
            if total == 0 {
                continue;
            }
            let right = evaluation.count(code as u32, code as u32);
            let other = cells
                .filter(|c| c.1 != code as u32)
                .max_by_key(|c| (c.2, std::cmp::Reverse(c.1)));
            table.push(vec![
                class.clone(),
                thousands(total),
                percent(1.0 - right as f64 / total as f64),
                other.map_or(String::new(), |c| {
                    format!("{} ({})", evaluation.classes[c.1 as usize], c.2)
                }),
            ]);
        }
        text.push('\n');
        text += &report::table("  ", &table);
    }
    text
}

fn to_json(
    args: &Evaluate,
    ranker: &Ranker,
    (rule, n_train): (&PredictionRule, usize),
    evaluation: &Evaluation,
    seconds: f64,
) -> Value {
    let cells: Vec<Value> = evaluation
        .cells
        .iter()
        .map(|&(truth, predicted, n)| {
            json!({
                "class": evaluation.classes[truth as usize],
                "predicted": evaluation.classes[predicted as usize],
                "count": n,
            })
        })
        .collect();
    json!({
        "model": name(&args.model),
        "error": evaluation.error,
        "balanced_error": evaluation.balanced_error,
        "n_test": evaluation.n_test,
        "n_wrong": evaluation.n_wrong,
        "n_train": n_train,
        "k": rule.k,
        "vote": rule.vote.name(),
        "normalization": rule.normalization.name(),
        "preprocess": ranker.preprocess.kind().to_string(),
        "iteration": ranker.model.as_ref().map(|m| m.chosen()),
        "n_atoms": ranker.learned().map(|m| m.atoms().len()),
        "n_features": ranker.learned().map(|m| m.n_features_used()),
        "n_features_total": ranker.preprocess.n_features(),
        "classes": evaluation.classes,
        "confusion": cells,
        "seconds": seconds,
    })
}
