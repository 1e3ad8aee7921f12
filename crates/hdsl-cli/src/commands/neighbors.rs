//! `hdsl neighbors`: the most similar training rows of each row.

use crate::args::{RankingArgs, RowList, named, positive};
use crate::failure::Failure;
use crate::files::{self, Ranker, Reader};
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use hdsl::data::TableColumn;
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
    /// File to write the list to: .csv, .tsv, .jsonl, .parquet, or lines [default: standard output]
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
        ids,
        near: found,
        known,
        normalization,
    } = found;
    let class = |n: &Neighbor| known.get(&n.row).and_then(|known| known.class.as_deref());
    let name = |n: &Neighbor| known.get(&n.row).and_then(|known| known.id.clone());
    if let Some(out) = out {
        let table = || {
            let pairs = || {
                let rows = which.iter().zip(found.iter());
                rows.flat_map(|(&row, near)| (1..).zip(near).map(move |(rank, n)| (row, rank, n)))
            };
            let mut table = vec![(
                "row",
                TableColumn::Integers(pairs().map(|p| p.0.into()).collect()),
            )];
            if let Some(ids) = &ids {
                let ids = pairs().map(|p| ids[p.0 as usize].clone());
                table.push(("id", TableColumn::texts(ids)));
            }
            table.push((
                "rank",
                TableColumn::Integers(pairs().map(|p| p.1).collect()),
            ));
            let neighbors = pairs().map(|p| p.2.row.into()).collect();
            table.push(("neighbor", TableColumn::Integers(neighbors)));
            if known.values().any(|known| known.id.is_some()) {
                let ids = pairs().map(|p| name(p.2)).collect();
                table.push(("neighbor_id", TableColumn::Texts(ids)));
            }
            let scores = pairs().map(|p| p.2.score).collect();
            table.push(("score", TableColumn::Numbers(scores)));
            if known.values().any(|known| known.class.is_some()) {
                let classes = pairs().map(|p| class(p.2).map(str::to_owned)).collect();
                table.push(("class", TableColumn::Texts(classes)));
            }
            table
        };
        files::write_results(out, table, |out| {
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
    /// The names of all rows.
    ids: Option<Vec<String>>,
    near: Vec<Vec<Neighbor>>,
    /// What is known about the neighbors.
    known: HashMap<u32, Known>,
    normalization: Normalization,
}

struct Known {
    id: Option<String>,
    class: Option<String>,
}

fn search_rows(args: &Neighbors, log: &Log) -> Result<Found, Failure> {
    let mut ranker = Ranker::open(&args.ranking, log)?;
    let (all, ids) = ranker.named_queries(&args.rows_file)?;
    let which = chosen_rows(args, all.n_rows())?;
    let own = ranker.rule().normalization;
    let normalization = args.normalization.unwrap_or(own);
    let similarity = normalization.of(ranker.similarity());
    let index = KnnIndex::new(&similarity, &ranker.train_rows()?);
    let near = index.neighbors(&all.select(&which), args.k)?;
    let known = |n: &Neighbor| {
        let row = n.row as usize;
        let known = Known {
            id: ranker.ids().map(|ids| ids[row].clone()),
            class: ranker
                .known_labels()
                .map(|labels| labels.name(row).to_owned()),
        };
        (n.row, known)
    };
    Ok(Found {
        known: near.iter().flatten().map(known).collect(),
        which,
        ids,
        near,
        normalization,
    })
}

fn search_index(args: &Neighbors, index: &Index, log: &Log) -> Result<Found, Failure> {
    files::check_normalization(index, args.normalization)?;
    let reader = Reader::new(&args.ranking.read, log).with_columns(&args.ranking.columns);
    let data = files::read_queries(reader, index.model(), &args.rows_file, log)?;
    let which = chosen_rows(args, data.rows.n_rows())?;
    let n_rows = index.n_rows();
    if args.k > n_rows {
        return Err(Failure::usage(format!(
            "there are fewer rows than neighbors to find: {n_rows}, but k is {}",
            args.k
        )));
    }
    let near = index.search(&data.rows.select(&which), args.k)?;
    let mut known = HashMap::new();
    for row in near.iter().flatten().map(|n| n.row) {
        if let Entry::Vacant(place) = known.entry(row) {
            let entry = index.entry(row)?;
            place.insert(Known {
                id: entry.id,
                class: entry.label,
            });
        }
    }
    Ok(Found {
        which,
        ids: data.records.and_then(|records| records.ids),
        near,
        known,
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
