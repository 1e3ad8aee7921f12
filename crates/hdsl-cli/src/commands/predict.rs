//! `hdsl predict`: classes by the vote of the nearest training rows.

use crate::args::Predict;
use crate::commands::evaluate::name;
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::report::{self, Talk};
use hdsl::knn::classify;
use serde_json::json;
use std::io::Write;

pub(crate) fn run(args: &Predict, talk: &Talk) -> Result<(), Failure> {
    let out = files::create_unless_json(args.json, args.output.as_ref())?;
    let mut reader = Reader::new(&args.read, talk);
    let (ranker, train) = files::read_ranker(
        &args.model,
        args.preprocess,
        &args.path,
        &args.train,
        &mut reader,
    )?;
    let labels = files::training_labels(&train, &args.train.train)?;
    let data = reader.data(&args.rows, None)?;
    let rule = args.decide.over(ranker.rule());
    let predicted = classify(
        ranker.similarity(),
        &ranker.prepare(talk, &args.train.train, &train),
        &labels,
        &ranker.prepare(talk, &args.rows, &data),
        &rule,
    )?;
    if let Some(out) = out {
        files::write(out, |out| {
            (0..predicted.len()).try_for_each(|row| writeln!(out, "{}", predicted.name(row)))
        })?;
    }
    if args.json {
        let classes: Vec<&str> = (0..predicted.len())
            .map(|row| predicted.name(row))
            .collect();
        return report::json(&json!({
            "model": name(&args.model),
            "k": rule.k,
            "vote": rule.vote.name(),
            "normalization": rule.normalization.name(),
            "n_rows": predicted.len(),
            "output": args.output.as_ref().map(|p| p.display().to_string()),
            "classes": classes,
        }));
    }
    Ok(())
}
