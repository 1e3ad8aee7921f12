//! `hdsl predict`: classes by the vote of the nearest training rows.

use crate::args::{RankingArgs, RuleArgs};
use crate::failure::Failure;
use crate::files::{self, Ranker};
use crate::output::{self, Log};
use clap::{Args, ValueHint};
use hdsl::data::TableColumn;
use hdsl::knn::classify;
use hdsl::{KnnIndex, Labels, Model, PredictionRule, Rows};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// Predict the classes of rows by the vote of their nearest training rows
///
/// The predicted class of a row is the most frequent one among its k nearest training rows under the model; ties go to
/// the class of the nearest. If the model was trained with another --vote or --normalization, it predicts by that.
/// Prints one class per line, in the order of the rows.
///
/// A model of records contains its training rows and the way from records to rows, so that a file of records is all it needs.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl predict reviews.hdsl new.csv --reasons 3
  hdsl predict reviews.hdsl new.csv -o predicted.csv
  hdsl predict m.hdsl --train train.svm.bz2 test.svm.bz2 -o predicted.txt")]
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

pub(crate) fn run(args: &Predict, log: &Log) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_deref())?;
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
    if let Some(out) = out {
        let table = || {
            let numbers = TableColumn::Integers((0..rows.n_rows() as i64).collect());
            let mut table = vec![("row", numbers)];
            table.extend(
                ids.iter()
                    .map(|ids| ("id", TableColumn::texts(ids.clone()))),
            );
            table.push(("class", TableColumn::texts(classes.iter().copied())));
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
                "n_rows": rows.n_rows(),
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
