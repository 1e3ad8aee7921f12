//! `hdsl score`: the similarity of pairs of rows.

use crate::args::Score;
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::report::{self, Talk, count};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

pub(crate) fn run(args: &Score, talk: &Talk) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_ref())?;
    let model = files::read_model(&args.model, &args.path, talk)?;
    let mut reader = Reader::new(&args.read, talk);
    reader.beside_model(&model);
    let data = reader.data(&args.a, None)?;
    files::note_unseen(talk, &args.a, &data.rows, model.n_features());
    let a = model.prepare(&data.rows);
    let other = match &args.b {
        Some(path) => {
            let data = reader.data(path, None)?;
            files::note_unseen(talk, path, &data.rows, model.n_features());
            Some(model.prepare(&data.rows))
        }
        None => None,
    };
    let b = other.as_ref().unwrap_or(&a);
    let (n_a, n_b) = (a.n_rows(), b.n_rows());
    let pairs: Vec<(u32, u32)> = match &args.pairs {
        Some(path) => read_pairs(path, n_a, n_b)?,
        None if args.all => (0..n_a as u32)
            .flat_map(|i| (0..n_b as u32).map(move |j| (i, j)))
            .collect(),
        None if n_a == n_b => (0..n_a as u32).map(|i| (i, i)).collect(),
        None => {
            return Err(Failure::usage(format!(
                "A has {} and B {}: rows cannot be paired one by one; use --pairs FILE or --all",
                count(n_a, "row"),
                count(n_b, "row")
            )));
        }
    };
    let scores = model.similarity().score_many(&a, b, &pairs)?;
    if let Some(out) = out {
        files::write(out, |out| {
            let mut lines = pairs.iter().zip(&scores);
            lines.try_for_each(|((i, j), score)| writeln!(out, "{i}\t{j}\t{score}"))
        })?;
    }
    if args.json {
        let list: Vec<Value> = pairs
            .iter()
            .zip(&scores)
            .map(|((i, j), score)| json!({ "a": i, "b": j, "score": score }))
            .collect();
        return report::json(&json!({
            "model": args.model.display().to_string(),
            "output": args.output.as_ref().map(|p| p.display().to_string()),
            "n_pairs": pairs.len(),
            "scores": list,
        }));
    }
    Ok(())
}

/// Lines of two row numbers between blanks or commas.
fn read_pairs(path: &Path, n_a: usize, n_b: usize) -> Result<Vec<(u32, u32)>, Failure> {
    let cannot =
        |e: std::io::Error| Failure::usage(format!("{}: cannot read: {e}", path.display()));
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
        let fields: Vec<&str> = content
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|f| !f.is_empty())
            .collect();
        let (i, j) = match fields[..] {
            [i, j] => match (i.parse::<u32>(), j.parse::<u32>()) {
                (Ok(i), Ok(j)) => (i, j),
                _ => return Err(wrong(format!("`{content}`, expected two row numbers"))),
            },
            _ => return Err(wrong(format!("`{content}`, expected two row numbers"))),
        };
        for (row, n, side) in [(i, n_a, "A"), (j, n_b, "B")] {
            if row as usize >= n {
                return Err(wrong(format!(
                    "row {row} of {side} is missing, there are {n} rows, counted from 0"
                )));
            }
        }
        pairs.push((i, j));
    }
    if pairs.is_empty() {
        return Err(Failure::usage(format!(
            "{}: has no pairs, expected lines of two row numbers",
            path.display()
        )));
    }
    Ok(pairs)
}
