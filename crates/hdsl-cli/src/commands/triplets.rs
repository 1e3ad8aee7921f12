//! `hdsl triplets`: mine triplets and write them, or check a file of them.

use super::train::TripletArgs;
use crate::args::{DataArgs, named};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, count, percent, thousands};
use clap::{Args, ValueHint};
use hdsl::{CancelToken, Preprocess, Preprocessor, Rows, Triplets};
use serde_json::json;
use std::path::PathBuf;

/// Mine triplets and write them, or check a file of triplets
///
/// Prints how many triplets there are, and how many of them the plain dot product satisfies (margin above 0): training
/// can improve the others. With -o, writes lines `anchor near far [weight]`, which `train --triplets FILE` reads.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl triplets train.svm.bz2 --triplets knn:3:5 -o triplets.txt
  hdsl triplets rows.svm --triplets clicks:log.txt -o triplets.txt
  hdsl triplets rows.svm --triplets triplets.txt            only check a file")]
pub(crate) struct TripletsArgs {
    /// Rows that the triplets refer to
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    rows: PathBuf,
    #[command(flatten)]
    source: TripletArgs,
    /// File to write the triplets to
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Preprocessing of feature values, before neighbors are searched
    #[arg(long, value_name = "HOW", value_parser = named!(Preprocess), default_value_t)]
    preprocess: Preprocess,
    /// Seed of random triplets
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &TripletsArgs, log: &Log) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.data.json, args.output.as_deref())?;
    let out = args.output.as_deref().map(files::create).transpose()?;
    let data = Reader::new(&args.data.read, log)
        .with_columns(&args.data.columns)
        .data(&args.rows, args.data.labels.as_ref())?;
    files::check_values(args.preprocess, &args.rows, &data.rows)?;
    let rows = Preprocessor::fit(args.preprocess, &data.rows).apply(&data.rows);
    let source = &args.source.triplets;
    let triplets = source
        .triplets(&rows, data.labels.as_ref(), args.seed, CancelToken::NEVER)
        .map_err(|error| error.in_file(&args.rows))?;
    triplets.check(rows.n_rows())?;
    let facts = Facts::of(&triplets, &rows);
    if let Some(out) = out {
        files::write(out, |out| triplets.write(out))?;
    }
    let value = || {
        json!({
            "n_triplets": triplets.len(),
            "total_weight": facts.weight,
            "weighted": triplets.weights().is_some(),
            "n_anchors": facts.anchors,
            "n_rows": rows.n_rows(),
            "satisfied_by_dot_product": facts.satisfied,
            "output": args.output,
        })
    };
    let text = || {
        let mut text = format!(
            "{} with {} of {} rows as anchors",
            count(triplets.len(), "triplet"),
            thousands(facts.anchors),
            thousands(rows.n_rows())
        );
        if triplets.weights().is_some() {
            text += &format!(", total weight {}", facts.weight);
        }
        let satisfied = percent(facts.satisfied);
        text += &format!("\nthe plain dot product satisfies {satisfied} of them\n");
        if let Some(path) = &args.output {
            text += &format!("written to {}\n", path.display());
        }
        text
    };
    output::result(args.data.json, args.output.as_deref(), value, text)
}

struct Facts {
    anchors: usize,
    weight: f64,
    satisfied: f64,
}

impl Facts {
    fn of(triplets: &Triplets, rows: &Rows) -> Self {
        let mut is_anchor = vec![false; rows.n_rows()];
        let mut satisfied = 0usize;
        let row = |r: u32| rows.row(r as usize);
        for (anchor, near, far) in triplets.iter() {
            is_anchor[anchor as usize] = true;
            satisfied += usize::from(row(anchor).dot(row(near)) > row(anchor).dot(row(far)));
        }
        Self {
            anchors: is_anchor.iter().filter(|&&is| is).count(),
            weight: triplets.total_weight(),
            satisfied: satisfied as f64 / triplets.len().max(1) as f64,
        }
    }
}
