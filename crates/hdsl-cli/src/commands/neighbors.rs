//! `hdsl neighbors`: the most similar training rows of each row.

use crate::args::{RankingArgs, RowList, named, positive};
use crate::failure::Failure;
use crate::files::{self, Ranker, Reader};
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use hdsl::{Index, KnnIndex, Neighbor, Normalization};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;
use std::path::PathBuf;

/// List the most similar training rows of each row
///
/// Prints one line per neighbor: row, rank, neighbor, score, and the class of the neighbor if it has one, separated by
/// tabs. Rows are counted from 0. Neighbors with equal scores are listed by row number.
///
/// An index in place of MODEL contains the model and the rows, and --train is not needed.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl neighbors m.hdsl --train train.svm.bz2 test.svm.bz2 -k 5 --rows 0,7-9")]
pub(crate) struct Neighbors {
    #[command(flatten)]
    ranking: RankingArgs,
    /// Rows whose neighbors are searched
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    rows_file: PathBuf,
    /// Number of neighbors per row
    #[arg(short, value_name = "K", default_value_t = 10, value_parser = positive, allow_negative_numbers = true)]
    k: usize,
    /// Normalization of the similarity [default: as in training; dot for `identity`]
    #[arg(long, value_name = "HOW", value_parser = named!(Normalization))]
    normalization: Option<Normalization>,
    /// Only these rows, counted from 0: numbers and ranges [default: all]
    #[arg(long, value_name = "LIST")]
    rows: Option<RowList>,
    /// File to write the list to [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Print one JSON object on standard output instead of lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Neighbors, log: &Log) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_deref())?;
    let found = match files::ranking_index(&args.ranking, log)? {
        Some(index) => search_index(args, &index, log)?,
        None => search_rows(args, log)?,
    };
    let Found {
        which,
        near: found,
        classes,
        normalization,
    } = found;
    let class = |n: &Neighbor| classes.get(&n.row).map(String::as_str);
    if let Some(out) = out {
        files::write(out, |out| {
            for (&row, neighbors) in which.iter().zip(found.iter()) {
                for (rank, n) in (1..).zip(neighbors) {
                    write!(out, "{row}\t{rank}\t{}\t{}", n.row, n.score)?;
                    match class(n) {
                        Some(class) => writeln!(out, "\t{class}")?,
                        None => writeln!(out)?,
                    }
                }
            }
            Ok(())
        })?;
    }
    if !args.json {
        return Ok(());
    }
    let neighbor = |n: &Neighbor| json!({ "row": n.row, "score": n.score, "class": class(n) });
    let rows = which.iter().zip(found.iter()).map(|(&row, neighbors)| {
        let list: Vec<Value> = neighbors.iter().map(neighbor).collect();
        json!({ "row": row, "neighbors": list })
    });
    output::json(&json!({
        "model": args.ranking.model.to_string(),
        "k": args.k,
        "normalization": normalization,
        "output": args.output,
        "rows": rows.collect::<Vec<Value>>(),
    }))
}

/// The neighbors of the chosen rows.
struct Found {
    which: Vec<u32>,
    near: Vec<Vec<Neighbor>>,
    /// The classes of the neighbors that have one.
    classes: HashMap<u32, String>,
    normalization: Normalization,
}

fn search_rows(args: &Neighbors, log: &Log) -> Result<Found, Failure> {
    let mut ranker = Ranker::open(&args.ranking, log)?;
    let all = ranker.queries(&args.rows_file)?;
    let which = chosen_rows(args, all.n_rows())?;
    let own = ranker.rule().normalization;
    let normalization = args.normalization.unwrap_or(own);
    let similarity = normalization.of(ranker.similarity());
    let index = KnnIndex::new(&similarity, &ranker.train_rows()?);
    let near = index.neighbors(&all.select(&which), args.k)?;
    let labels = ranker.train().labels.as_ref();
    let class = |n: &Neighbor| Some((n.row, labels?.name(n.row as usize).to_owned()));
    Ok(Found {
        classes: near.iter().flatten().filter_map(class).collect(),
        which,
        near,
        normalization,
    })
}

fn search_index(args: &Neighbors, index: &Index, log: &Log) -> Result<Found, Failure> {
    files::check_normalization(index, args.normalization)?;
    let mut reader = Reader::new(&args.ranking.read, log);
    let all = files::read_queries(&mut reader, index.model(), &args.rows_file, log)?;
    let which = chosen_rows(args, all.n_rows())?;
    let n_rows = index.n_rows();
    if args.k > n_rows {
        return Err(Failure::usage(format!(
            "there are fewer rows than neighbors to find: {n_rows}, but k is {}",
            args.k
        )));
    }
    let near = index.search(&all.select(&which), args.k)?;
    let mut classes = HashMap::new();
    for row in near.iter().flatten().map(|n| n.row) {
        if let Entry::Vacant(place) = classes.entry(row)
            && let Some(label) = index.entry(row)?.label
        {
            place.insert(label);
        }
    }
    Ok(Found {
        which,
        near,
        classes,
        normalization: index.normalization(),
    })
}

/// The rows of `--rows`, or all.
fn chosen_rows(args: &Neighbors, n_rows: usize) -> Result<Vec<u32>, Failure> {
    let Some(RowList(ranges)) = &args.rows else {
        return Ok((0..n_rows as u32).collect());
    };
    if let Some((_, last)) = ranges.iter().find(|range| range.1 >= n_rows) {
        return Err(Failure::usage(format!(
            "--rows names row {last}, but {} has {}, counted from 0",
            args.rows_file.display(),
            count(n_rows, "row")
        )));
    }
    let rows = ranges.iter();
    Ok(rows
        .flat_map(|&(first, last)| first as u32..=last as u32)
        .collect())
}
