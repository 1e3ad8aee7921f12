//! `hdsl neighbors`: the most similar training rows of each row.

use crate::args::{Neighbors, NormalizationArg};
use crate::commands::evaluate::name;
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::report::{self, Talk, count};
use hdsl::KnnIndex;
use serde_json::{Value, json};
use std::io::Write;

pub(crate) fn run(args: &Neighbors, talk: &Talk) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_ref())?;
    let mut reader = Reader::new(&args.read, talk);
    let (ranker, train) = files::read_ranker(
        &args.model,
        args.preprocess,
        &args.path,
        &args.train,
        &mut reader,
    )?;
    let data = reader.data(&args.rows_file, None)?;
    let n_rows = data.rows.n_rows();
    let which: Vec<u32> = match &args.rows {
        None => (0..n_rows as u32).collect(),
        Some(list) => {
            if let Some(&(_, last)) = list.0.iter().find(|r| r.1 >= n_rows) {
                return Err(Failure::usage(format!(
                    "--rows names row {last}, but {} has {}, counted from 0",
                    args.rows_file.display(),
                    count(n_rows, "row")
                )));
            }
            let ranges = list.0.iter();
            ranges
                .flat_map(|&(first, last)| first as u32..=last as u32)
                .collect()
        }
    };
    let own = ranker.rule().normalization;
    let normalization = args
        .normalization
        .map_or(own, NormalizationArg::normalization);
    let similarity = normalization.of(ranker.similarity());
    let index = KnnIndex::new(
        &similarity,
        &ranker.prepare(talk, &args.train.train, &train),
    );
    let queries = ranker.prepare(talk, &args.rows_file, &data).select(&which);
    let found = index.neighbors(&queries, args.k)?;
    let labels = train.labels.as_ref();
    if let Some(out) = out {
        files::write(out, |out| {
            for (&row, neighbors) in which.iter().zip(found.iter()) {
                for (rank, n) in neighbors.iter().enumerate() {
                    write!(out, "{row}\t{}\t{}\t{}", rank + 1, n.row, n.score)?;
                    match labels {
                        Some(labels) => writeln!(out, "\t{}", labels.name(n.row as usize))?,
                        None => writeln!(out)?,
                    }
                }
            }
            Ok(())
        })?;
    }
    if args.json {
        let rows: Vec<Value> = which
            .iter()
            .zip(found.iter())
            .map(|(&row, neighbors)| {
                let list: Vec<Value> = neighbors
                    .iter()
                    .map(|n| {
                        json!({
                            "row": n.row,
                            "score": n.score,
                            "class": labels.map(|l| l.name(n.row as usize)),
                        })
                    })
                    .collect();
                json!({ "row": row, "neighbors": list })
            })
            .collect();
        return report::json(&json!({
            "model": name(&args.model),
            "k": args.k,
            "normalization": normalization.name(),
            "output": args.output.as_ref().map(|p| p.display().to_string()),
            "rows": rows,
        }));
    }
    Ok(())
}
