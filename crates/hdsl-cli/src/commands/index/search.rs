//! `hdsl index search`.

use crate::args::{ColumnArgs, ReadArgs, positive};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, short};
use clap::{Args, ValueHint};
use hdsl::data::TableColumn;
use hdsl::index::IndexEntry;
use hdsl::similarity::Explanation;
use hdsl::{Index, Model, Rows, SparseRow};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Find the most similar rows of an index, with their texts, scores and reasons
///
/// Prints for each query the most similar rows, and below each of them the features that contribute most to its score.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl index search reviews.index \"a delicious soup\" -k 5
  hdsl index search m.index --rows new.svm -k 5
  hdsl index search m.index --rows new.svm --reasons 0 --json")]
pub(crate) struct Search {
    /// Index file
    #[arg(value_name = "INDEX", value_hint = ValueHint::FilePath)]
    index: PathBuf,
    /// Texts to search for, if the model was trained on texts
    #[arg(
        value_name = "TEXT",
        required_unless_present = "rows",
        conflicts_with = "rows"
    )]
    texts: Vec<String>,
    /// File of rows or records to search for
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rows: Option<PathBuf>,
    /// Number of rows to find for each query
    #[arg(short, value_name = "K", default_value_t = 10, value_parser = positive, allow_negative_numbers = true)]
    k: usize,
    /// Number of contributions to list for each row that is found
    #[arg(long, value_name = "N", default_value_t = 3)]
    reasons: usize,
    /// File to write the hits to: .csv, .tsv, .jsonl, .parquet, or lines [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    read: ReadArgs,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

/// A row that was found.
struct Hit {
    score: f64,
    entry: IndexEntry,
    /// Contributions to the score and what makes them.
    reasons: Vec<(f64, String)>,
}

impl Hit {
    fn json(&self) -> Value {
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|(value, why)| json!({ "value": value, "reason": why }));
        json!({
            "row": self.entry.row,
            "score": self.score,
            "id": self.entry.id,
            "class": self.entry.label,
            "text": self.entry.text,
            "reasons": reasons.collect::<Vec<Value>>(),
        })
    }

    /// Rank, score, id or number, class and text on one line, then the reasons.
    fn text(&self, rank: usize) -> String {
        let IndexEntry {
            row,
            id,
            label,
            text,
            ..
        } = &self.entry;
        let name = id.clone().unwrap_or_else(|| format!("row {row}"));
        let label = label
            .as_ref()
            .map_or(String::new(), |label| format!("  [{label}]"));
        // A text may have line breaks, but an entry is one line.
        let text = text.as_ref().map_or(String::new(), |text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            format!("  {}", words.join(" "))
        });
        let mut lines = format!("{rank:>3}. {}  {name}{label}{text}\n", short(self.score));
        for (value, why) in &self.reasons {
            lines += &format!("       {value:+.4}  {why}\n");
        }
        lines
    }
}

pub(crate) fn run(args: &Search, log: &Log) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_deref())?;
    let index = Index::open(&args.index)?;
    let (queries, names) = queries(args, &index, log)?;
    let found = index.search(&queries, args.k)?;
    let mut hits = Vec::with_capacity(found.len());
    for (query, near) in (0u32..).zip(&found) {
        let query = queries.select(&[query]);
        let hit = |n: &hdsl::Neighbor| hit(&index, &query, n, args.reasons);
        hits.push(
            near.iter()
                .map(hit)
                .collect::<Result<Vec<Hit>, Failure>>()?,
        );
    }
    if let Some(out) = out {
        files::write_results(
            out,
            || table(&names, &hits),
            |out| {
                for (query, (hits, name)) in hits.iter().zip(&names).enumerate() {
                    let gap = if query == 0 { "" } else { "\n" };
                    writeln!(out, "{gap}{name}")?;
                    for (rank, hit) in (1..).zip(hits) {
                        out.write_all(hit.text(rank).as_bytes())?;
                    }
                }
                Ok(())
            },
        )?;
    }
    if !args.json {
        return Ok(());
    }
    let list = names.iter().zip(&hits).map(|(query, hits)| {
        let hits: Vec<Value> = hits.iter().map(Hit::json).collect();
        json!({ "query": query, "hits": hits })
    });
    output::json(&json!({
        "index": args.index,
        "k": args.k,
        "normalization": index.normalization(),
        "output": args.output,
        "queries": list.collect::<Vec<Value>>(),
    }))
}

/// One row for each hit; its reasons are in one cell.
fn table(names: &[String], hits: &[Vec<Hit>]) -> Vec<(&'static str, TableColumn)> {
    let ranked = names.iter().zip(hits).flat_map(|(name, hits)| {
        let ranked = (1..).zip(hits);
        ranked.map(move |(rank, hit)| (name.clone(), rank, hit))
    });
    let all: Vec<(String, i64, &Hit)> = ranked.collect();
    let texts = |of: fn(&IndexEntry) -> &Option<String>| {
        let texts = all.iter().map(|hit| of(&hit.2.entry).clone());
        TableColumn::Texts(texts.collect())
    };
    let reasons = |hit: &Hit| {
        let reasons = hit.reasons.iter();
        let reasons = reasons.map(|(value, why)| format!("{value:+.4} {why}"));
        reasons.collect::<Vec<String>>().join("; ")
    };
    vec![
        ("query", TableColumn::texts(all.iter().map(|hit| &hit.0))),
        (
            "rank",
            TableColumn::Integers(all.iter().map(|hit| hit.1).collect()),
        ),
        (
            "row",
            TableColumn::Integers(all.iter().map(|hit| i64::from(hit.2.entry.row)).collect()),
        ),
        ("id", texts(|entry| &entry.id)),
        (
            "score",
            TableColumn::Numbers(all.iter().map(|hit| hit.2.score).collect()),
        ),
        ("class", texts(|entry| &entry.label)),
        ("text", texts(|entry| &entry.text)),
        (
            "reasons",
            TableColumn::texts(all.iter().map(|hit| reasons(hit.2))),
        ),
    ]
}

/// The raw rows to search for, and what to call each.
fn queries(args: &Search, index: &Index, log: &Log) -> Result<(Rows, Vec<String>), Failure> {
    if let Some(path) = &args.rows {
        let reader = Reader::new(&args.read, log).with_columns(&args.columns);
        let data = files::read_queries(reader, index.model(), path, log)?;
        let ids = data.records.and_then(|records| records.ids);
        let numbers = || (0..data.rows.n_rows()).map(|row| format!("row {row}"));
        let names = ids.unwrap_or_else(|| numbers().collect());
        return Ok((data.rows, names));
    }
    let Some(vectorizer) = index.model().vectorizer() else {
        return Err(Failure::file(
            &args.index,
            "its model does not say how a text becomes a row; pass rows with --rows FILE",
        ));
    };
    let rows = vectorizer.transform_texts(&args.texts).map_err(|error| {
        Failure::file(
            &args.index,
            format!("{error}; pass records with --rows FILE"),
        )
    })?;
    Ok((rows, args.texts.clone()))
}

fn hit(
    index: &Index,
    query: &Rows,
    near: &hdsl::Neighbor,
    n_reasons: usize,
) -> Result<Hit, Failure> {
    let reasons = match n_reasons {
        0 => Vec::new(),
        n => {
            let explanation = index.explain(query, near.row)?;
            let item = index.row(near.row)?;
            reasons(index.model(), query.row(0), item.row(0), &explanation, n)
        }
    };
    Ok(Hit {
        score: near.score,
        entry: index.entry(near.row)?,
        reasons,
    })
}

/// The largest contributions to a score, of the base and of the learned part.
fn reasons(
    model: &Model,
    query: SparseRow<'_>,
    item: SparseRow<'_>,
    explanation: &Explanation,
    n: usize,
) -> Vec<(f64, String)> {
    let has = |row: SparseRow<'_>, feature| row.indices().binary_search(&feature).is_ok();
    let base = explanation.base.iter();
    let base = base.map(|c| (c.value, format!("both have {}", model.name(c.feature))));
    let pairs = explanation.pairs.iter().map(|p| {
        let (i, j) = (model.name(p.i), model.name(p.j));
        let one_way = has(query, p.i) && has(item, p.j);
        let other_way = has(query, p.j) && has(item, p.i);
        let words = match (one_way, other_way) {
            _ if p.i == p.j => format!("both have {i}"),
            (true, true) => format!("{i} in the query, {j} in the row, and vice versa"),
            (false, true) => format!("{j} in the query, {i} in the row"),
            _ => format!("{i} in the query, {j} in the row"),
        };
        (p.value, words)
    });
    // What the base and the learned part add for the same feature is one reason.
    let mut reasons: Vec<(f64, String)> = Vec::new();
    for (value, words) in base.chain(pairs) {
        match reasons.iter_mut().find(|reason| reason.1 == words) {
            Some(reason) => reason.0 += value,
            None => reasons.push((value, words)),
        }
    }
    reasons.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    reasons.truncate(n);
    reasons
}
