//! `hdsl predict`: classes by the vote of the nearest training rows.

use crate::args::{RankingArgs, RuleArgs};
use crate::failure::Failure;
use crate::files::{self, Ranker, Reader};
use crate::output::{self, Log};
use clap::{Args, ValueHint};
use hdsl::data::TableColumn;
use hdsl::knn::classify;
use hdsl::{CancelToken, Index, KnnIndex, Labels, Model, PredictionRule, Rows};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

/// Predict the classes of rows by the vote of their nearest training rows
///
/// The predicted class of a row is the most frequent one among its k nearest training rows under the model; ties go to
/// the class of the nearest. If the model was trained with another --vote or --normalization, it predicts by that.
/// Prints one class per line, in the order of the rows.
///
/// A model of records contains its training rows and the way from records to rows, so that a file of records is all it needs.
/// So does an index, in place of MODEL, with its rows.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl predict reviews.hdsl new.csv --reasons 3
  hdsl predict reviews.hdsl new.csv -o predicted.csv
  hdsl predict m.hdsl --train train.svm.bz2 test.svm.bz2 -o predicted.txt
  hdsl predict m.index test.svm.bz2                    m.index made by `hdsl index build`")]
pub(crate) struct Predict {
    #[command(flatten)]
    ranking: RankingArgs,
    /// Rows or records to classify
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    rows: PathBuf,
    #[command(flatten)]
    rule: RuleArgs,
    /// Give the N largest reasons beside each class, after a tab
    ///
    /// Reasons are contributions to the similarity to the nearest training rows of the predicted class, on average: `a ~ b` is
    /// feature a of the row and feature b of the training row.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    reasons: usize,
    /// File to write the classes to: .csv, .tsv, .jsonl, .parquet, or lines [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Print one JSON object with the classes on standard output instead of lines
    #[arg(long)]
    json: bool,
}

/// Classes, with ids and reasons if there are any.
struct Predicted {
    classes: Vec<String>,
    ids: Option<Vec<String>>,
    reasons: Option<Vec<String>>,
    rule: PredictionRule,
}

pub(crate) fn run(args: &Predict, log: &Log) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_deref())?;
    let predicted = match files::ranking_index(&args.ranking, log)? {
        Some(index) => predict_by_index(args, &index, log)?,
        None => predict_by_rows(args, log)?,
    };
    let Predicted {
        classes,
        ids,
        reasons,
        rule,
    } = predicted;
    if let Some(out) = out {
        let table = || {
            let numbers = TableColumn::Integers((0..classes.len() as i64).collect());
            let mut table = vec![("row", numbers)];
            table.extend(
                ids.iter()
                    .map(|ids| ("id", TableColumn::texts(ids.clone()))),
            );
            table.push(("class", TableColumn::texts(classes.iter().cloned())));
            let reasons = reasons.iter();
            table.extend(reasons.map(|list| ("reasons", TableColumn::texts(list.clone()))));
            table
        };
        files::write_results(out, table, |out| {
            classes
                .iter()
                .enumerate()
                .try_for_each(|(row, class)| match &reasons {
                    None => writeln!(out, "{class}"),
                    Some(list) => writeln!(out, "{class}\t{}", list[row]),
                })
        })?;
    }
    match args.json {
        false => Ok(()),
        true => {
            let mut value = json!({
                "model": args.ranking.model.to_string(),
                "k": rule.k,
                "vote": rule.vote,
                "normalization": rule.normalization,
                "n_rows": classes.len(),
                "output": args.output,
                "classes": classes,
            });
            if let Some(ids) = &ids {
                value["ids"] = json!(ids);
            }
            if let Some(reasons) = &reasons {
                value["reasons"] = json!(reasons);
            }
            output::json(&value)
        }
    }
}

fn predict_by_rows(args: &Predict, log: &Log) -> Result<Predicted, Failure> {
    let mut ranker = Ranker::open(&args.ranking, log)?;
    if args.reasons > 0 && ranker.model.is_none() {
        return Err(Failure::usage(
            "--reasons needs a model: the dot product has learned none",
        ));
    }
    let labels = ranker.labels()?.clone();
    let (rows, ids) = ranker.named_queries(&args.rows)?;
    let rule = args.rule.over(ranker.rule());
    let train = ranker.train_rows()?;
    let predicted = classify(ranker.similarity(), &train, &labels, &rows, &rule)?;
    let classes: Vec<&str> = (0..rows.n_rows()).map(|row| predicted.name(row)).collect();
    let reasons = match &ranker.model {
        Some(model) if args.reasons > 0 => {
            let given = Given {
                model,
                train: &train,
                labels: &labels,
                rule,
            };
            Some(given.reasons(&rows, &classes, args.reasons)?)
        }
        _ => None,
    };
    Ok(Predicted {
        classes: classes.into_iter().map(str::to_owned).collect(),
        ids,
        reasons,
        rule,
    })
}

fn predict_by_index(args: &Predict, index: &Index, log: &Log) -> Result<Predicted, Failure> {
    files::check_normalization(index, args.rule.normalization)?;
    let mut rule = args.rule.over(index.model().rule());
    rule.normalization = index.normalization();
    let reader = Reader::new(&args.ranking.read, log).with_columns(&args.ranking.columns);
    let data = files::read_queries(reader, index.model(), &args.rows, log)?;
    let classes = index.predict(&data.rows, &rule, CancelToken::NEVER)?;
    let reasons = match args.reasons {
        0 => None,
        n => Some(index_reasons(index, &data.rows, &classes, rule, n)?),
    };
    Ok(Predicted {
        classes,
        ids: data.records.and_then(|records| records.ids),
        reasons,
        rule,
    })
}

/// The reasons of predictions from an index: those from its rows that are near some query.
fn index_reasons(
    index: &Index,
    raw: &Rows,
    classes: &[String],
    rule: PredictionRule,
    most: usize,
) -> Result<Vec<String>, Failure> {
    let near = index.search(raw, rule.k)?;
    let numbers: BTreeSet<u32> = near.iter().flatten().map(|n| n.row).collect();
    let mut train = Rows::new(index.model().n_features());
    let mut labels = Vec::with_capacity(numbers.len());
    for row in numbers {
        train.append(index.row(row)?.view());
        labels.push(index.entry(row)?.label.unwrap_or_default());
    }
    let given = Given {
        model: index.model(),
        train: &train,
        labels: &Labels::from_names(labels),
        rule,
    };
    let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
    given.reasons(&index.model().prepare(raw), &classes, most)
}

/// What predictions are made from.
struct Given<'a> {
    model: &'a Model,
    train: &'a Rows,
    labels: &'a Labels,
    rule: PredictionRule,
}

impl Given<'_> {
    /// The largest contributions to the similarity of each row to its nearest training rows of the predicted class.
    fn reasons(&self, rows: &Rows, classes: &[&str], most: usize) -> Result<Vec<String>, Failure> {
        let similarity = self.rule.normalization.of(self.model.similarity());
        let index = KnnIndex::new(&similarity, self.train);
        let near = index.neighbors(rows, self.rule.k)?;
        let mut all = Vec::with_capacity(rows.n_rows());
        for (row, neighbors) in near.iter().enumerate() {
            let same = |row: u32| self.labels.name(row as usize) == classes[all.len()];
            let mut chosen: Vec<u32> = neighbors.iter().map(|n| n.row).collect();
            if chosen.iter().any(|&near| same(near)) {
                chosen.retain(|&near| same(near));
            }
            let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
            for &near in &chosen {
                let explanation =
                    similarity.explain_pair(rows.row(row), self.train.row(near as usize));
                for part in &explanation.base {
                    *sums.entry((part.feature, part.feature)).or_default() += part.value;
                }
                for pair in &explanation.pairs {
                    // One way round or the other: as the row has it.
                    let (i, j) = (pair.i, pair.j);
                    let has = |feature: u32| rows.row(row).get(feature) != 0.0;
                    let key = if has(i) { (i, j) } else { (j, i) };
                    *sums.entry(key).or_default() += pair.value;
                }
            }
            let mut largest: Vec<((u32, u32), f64)> = sums.into_iter().collect();
            largest.retain(|(_, sum)| *sum > 0.0);
            largest.sort_by(|a, b| b.1.total_cmp(&a.1));
            let shown = largest.iter().take(most).map(|&((i, j), sum)| {
                let mean = sum / chosen.len() as f64;
                let (i, j, is_same) = (self.model.name(i), self.model.name(j), i == j);
                match is_same {
                    true => format!("{i} {mean:+.3}"),
                    false => format!("{i} ~ {j} {mean:+.3}"),
                }
            });
            all.push(shown.collect::<Vec<_>>().join("; "));
        }
        Ok(all)
    }
}
