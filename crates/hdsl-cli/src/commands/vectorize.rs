//! `hdsl vectorize`: texts into rows.

use crate::args::{Vectorize, WeightingArg};
use crate::failure::Failure;
use crate::files::{self, RowsOutput};
use crate::report::{self, Talk, count};
use hdsl::data::{VectorizeOptions, Vectorizer, Vocabulary, Weighting, read_texts};
use hdsl::{IndexBase, Labels};
use serde_json::json;

pub(crate) fn run(args: &Vectorize, talk: &Talk) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = RowsOutput::create(&args.output, args.to, Some(args.save_labels.as_ref()))?;
    let vocabulary_out = args.save_vocab.as_deref().map(files::create).transpose()?;
    let weighting = args.weighting.map(|w| match w {
        WeightingArg::Counts => Weighting::Counts,
        WeightingArg::Binary => Weighting::Binary,
        WeightingArg::Tfidf => Weighting::TfIdf,
    });
    let (labels, texts): (Vec<String>, Vec<String>) = read_texts(&args.texts)?.into_iter().unzip();
    let vectorizer = match &args.vocab {
        Some(path) => {
            let vectorizer = Vectorizer::new(Vocabulary::read(path)?)?;
            match weighting {
                Some(weighting) => vectorizer.with_weighting(weighting)?,
                None => vectorizer,
            }
        }
        None => Vectorizer::fit(
            &texts,
            VectorizeOptions {
                weighting: weighting.unwrap_or_default(),
                min_df: args.min_df,
                max_df: args.max_df,
                lowercase: !args.keep_case,
            },
        )?,
    };
    let rows = vectorizer.transform(&texts);
    let labels = Labels::from_names(&labels);
    if let Some(out) = vocabulary_out {
        files::write(out, |out| vectorizer.vocabulary().write(out))?;
    }
    let written = out.write(&rows, Some(&labels), None, IndexBase::One)?;
    let written: Vec<String> = written.iter().map(|p| p.display().to_string()).collect();
    let empty = rows.iter().filter(|r| r.nnz() == 0).count();
    if empty > 0 {
        talk.detail(format!(
            "{}: {} without any known word",
            args.texts.display(),
            count(empty, "text")
        ));
    }
    if args.json {
        return report::json(&json!({
            "output": written,
            "vocabulary": args.save_vocab.as_ref().map(|p| p.display().to_string()),
            "n_rows": rows.n_rows(),
            "n_features": rows.n_features(),
            "nnz": rows.nnz(),
            "n_empty_rows": empty,
            "n_classes": labels.names().len(),
        }));
    }
    if args.output.as_os_str() == "-" {
        return Ok(());
    }
    report::stdout(&format!(
        "{}: wrote {} of {}, {}\n",
        written.join(", "),
        count(rows.n_rows(), "row"),
        count(rows.n_features(), "feature"),
        count(labels.names().len(), "class")
    ))
}
