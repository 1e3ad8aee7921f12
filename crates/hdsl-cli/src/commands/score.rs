//! `hdsl score`: the similarity of pairs of rows.

use crate::args::{ModelFile, named};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use hdsl::Normalization;
use hdsl::data::TableColumn;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Score pairs of rows: S(x, x') = BASE <x, x'> + x^T M x'
///
/// x are preprocessed rows; BASE is 0 unless the model was learned on top of the dot product. Under cosine normalization,
/// the score is S(x, x') / sqrt(S(x, x) S(x', x')).
///
/// By default, row 0 of A with row 0 of B, row 1 with row 1, and so on. With --pairs, the pairs that a file lists; with
/// --all, every row of A with every row of B. Prints lines `row of A, row of B, score`, separated by tabs.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl score m.hdsl queries.svm documents.svm --pairs pairs.txt -o scores.txt
  hdsl score m.hdsl test.svm.bz2 --all           all pairs of rows of one file")]
pub(crate) struct Score {
    #[command(flatten)]
    model: ModelFile,
    /// First rows of the pairs
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    a: PathBuf,
    /// Second rows of the pairs [default: A]
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    b: Option<PathBuf>,
    /// Score the pairs of this file: lines `row of A, row of B`, counted from 0, separated by blanks or a comma
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pairs: Option<PathBuf>,
    /// Score every row of A with every row of B
    #[arg(long, conflicts_with = "pairs")]
    all: bool,
    /// Normalization of the similarity [default: as in training]
    #[arg(long, value_name = "HOW", value_parser = named!(Normalization))]
    normalization: Option<Normalization>,
    /// File to write the scores to: .csv, .tsv, .jsonl, .parquet, or lines [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Print one JSON object on standard output instead of lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Score, log: &Log) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_deref())?;
    let model = files::read_model(&args.model.model, &args.model.point, log)?;
    let mut reader = Reader::new(&args.model.read, log);
    reader.number_as_model(&model);
    let mut read = |path: &Path| -> Result<hdsl::Rows, Failure> {
        let data = reader.data(path, None)?;
        files::check_values(model.preprocess().kind(), path, &data.rows)?;
        files::note_unseen(log, path, &data.rows, model.n_features());
        Ok(model.prepare(&data.rows))
    };
    let a = read(&args.a)?;
    let other = args.b.as_deref().map(read).transpose()?;
    let b = other.as_ref().unwrap_or(&a);
    let pairs = pairs(args, a.n_rows(), b.n_rows())?;
    let normalization = args.normalization.unwrap_or(model.rule().normalization);
    let similarity = normalization.of(model.similarity());
    let scores = similarity.score_many(&a, b, &pairs)?;
    let scored = pairs.iter().zip(&scores);
    if let Some(out) = out {
        let table = || {
            let column = |of: fn(&(u32, u32)) -> u32| {
                TableColumn::Integers(pairs.iter().map(|pair| of(pair).into()).collect())
            };
            vec![
                ("a", column(|pair| pair.0)),
                ("b", column(|pair| pair.1)),
                ("score", TableColumn::Numbers(scores.clone())),
            ]
        };
        files::write_results(out, table, |out| {
            let mut lines = scored.clone();
            lines.try_for_each(|((i, j), score)| writeln!(out, "{i}\t{j}\t{score}"))
        })?;
    }
    if !args.json {
        return Ok(());
    }
    let list = scored.map(|((i, j), score)| json!({ "a": i, "b": j, "score": score }));
    output::json(&json!({
        "model": args.model.model,
        "normalization": normalization,
        "output": args.output,
        "n_pairs": pairs.len(),
        "scores": list.collect::<Vec<Value>>(),
    }))
}

/// The pairs to score.
fn pairs(args: &Score, n_a: usize, n_b: usize) -> Result<Vec<(u32, u32)>, Failure> {
    let (rows_a, rows_b) = (0..n_a as u32, 0..n_b as u32);
    match &args.pairs {
        Some(path) => read_pairs(path, n_a, n_b),
        None if args.all => Ok(rows_a
            .flat_map(|i| rows_b.clone().map(move |j| (i, j)))
            .collect()),
        None if n_a == n_b => Ok(rows_a.zip(rows_b).collect()),
        None => Err(Failure::usage(format!(
            "A has {} and B has {}, so they cannot be paired one by one; use --pairs FILE or --all",
            count(n_a, "row"),
            count(n_b, "row")
        ))),
    }
}

/// Reads lines of two row numbers, separated by blanks or commas.
fn read_pairs(path: &Path, n_a: usize, n_b: usize) -> Result<Vec<(u32, u32)>, Failure> {
    let cannot = |e: std::io::Error| Failure::file(path, format!("cannot read: {e}"));
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(cannot)?;
        let content = line.split('#').next().unwrap_or("").trim();
        if content.is_empty() {
            continue;
        }
        let wrong =
            |reason: String| Failure::usage(format!("{}:{number}: {reason}", path.display()));
        let pair = pair_of(content)
            .ok_or_else(|| wrong(format!("`{content}`, expected two row numbers")))?;
        for (row, n, side) in [(pair.0, n_a, "A"), (pair.1, n_b, "B")] {
            if row as usize >= n {
                let rows = count(n, "row");
                return Err(wrong(format!(
                    "row {row} of {side} does not exist, there are {rows}, counted from 0"
                )));
            }
        }
        pairs.push(pair);
    }
    match pairs.is_empty() {
        true => Err(Failure::file(
            path,
            "has no pairs, expected lines of two row numbers",
        )),
        false => Ok(pairs),
    }
}

fn pair_of(line: &str) -> Option<(u32, u32)> {
    let mut fields = line
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|field| !field.is_empty())
        .map(str::parse);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(Ok(i)), Some(Ok(j)), None) => Some((i, j)),
        _ => None,
    }
}
