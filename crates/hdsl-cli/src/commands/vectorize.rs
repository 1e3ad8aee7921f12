//! `hdsl vectorize`: texts into rows.

use super::convert::RowsFormat;
use crate::args::named;
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use hdsl::data::{Frequency, Stem, StopWords, VectorizeOptions, Vectorizer, Weighting, read_texts};
use hdsl::{IndexBase, Labels};
use serde_json::json;
use std::path::PathBuf;
use std::str::FromStr;

/// Turn lines `label<TAB>text` into sparse rows
///
/// A word is a sequence of two or more letters, digits or underscores. Each distinct word that is neither too rare nor
/// too frequent becomes a feature. --save-vocab saves the vocabulary, and --vocab applies it to later files, so that
/// training and test rows have the same features; words that are not in the vocabulary are left out.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl vectorize train.tsv.bz2 --min-df 2 --save-vocab vocab.txt -o train.svm
  hdsl vectorize test.tsv.bz2 --vocab vocab.txt -o test.svm
  hdsl train train.svm --lambda 100 --holdout 0.3 --names vocab.txt -o m.hdsl && hdsl explain m.hdsl")]
pub(crate) struct Vectorize {
    /// Lines `label<TAB>text`
    #[arg(value_name = "TEXTS", value_hint = ValueHint::FilePath)]
    texts: PathBuf,
    /// File to write: .svm (svmlight) or .npz (scipy's sparse matrix)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Value of a word in a row [default: counts, or as the file of --vocab says]
    #[arg(long, value_name = "HOW", value_parser = named!(Weighting))]
    weighting: Option<Weighting>,
    /// Leave out words found in fewer documents: 5 is a number of documents, 0.01 a fraction
    #[arg(long, value_name = "DF", default_value = "1", value_parser = Frequency::from_str, conflicts_with = "vocab")]
    min_df: Frequency,
    /// Leave out words found in more documents: 500 is a number of documents, 0.5 a fraction
    #[arg(long, value_name = "DF", default_value = "1.0", value_parser = Frequency::from_str, conflicts_with = "vocab")]
    max_df: Frequency,
    /// Treat `Word` and `word` as different words
    #[arg(long, conflicts_with = "vocab")]
    keep_case: bool,
    /// Reduce words to their stems, so that `flows` and `flowing` are one feature; saved with the vocabulary
    #[arg(long, value_name = "LANGUAGE", value_parser = named!(Stem), default_value_t, conflicts_with = "vocab")]
    stem: Stem,
    /// Leave out these words: english (a list of 316 function words), or a file of words; saved with the vocabulary
    #[arg(long, value_name = "WORDS", conflicts_with = "vocab")]
    stop_words: Option<String>,
    /// Apply this vocabulary instead of building one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    vocab: Option<PathBuf>,
    /// Save the vocabulary that was built
    #[arg(long, value_name = "FILE", conflicts_with = "vocab", value_hint = ValueHint::FilePath)]
    save_vocab: Option<PathBuf>,
    #[command(flatten)]
    rows: RowsFormat,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Vectorize, log: &Log) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = args.rows.create(&args.output)?;
    let vocabulary_out = args.save_vocab.as_deref().map(files::create).transpose()?;
    let (labels, texts): (Vec<String>, Vec<String>) = read_texts(&args.texts)?.into_iter().unzip();
    let vectorizer = vectorizer(args, &texts)?;
    let rows = vectorizer.transform(&texts);
    let labels = Labels::from_names(&labels);
    if let Some(out) = vocabulary_out {
        files::write(out, |out| vectorizer.write(out))?;
    }
    let written = out.write(&rows, Some(&labels), None, IndexBase::One)?;
    let empty = rows.iter().filter(|row| row.nnz() == 0).count();
    if empty > 0 {
        log.detail(format!(
            "{}: {} without any word of the vocabulary",
            args.texts.display(),
            count(empty, "text")
        ));
    }
    let n_classes = labels.names().len();
    let value = || {
        json!({
            "output": written,
            "vocabulary": args.save_vocab,
            "n_rows": rows.n_rows(),
            "n_features": rows.n_features(),
            "nnz": rows.nnz(),
            "n_empty_rows": empty,
            "n_classes": n_classes,
        })
    };
    let text = || {
        format!(
            "{}: wrote {} of {}, {}\n",
            written.join(", "),
            count(rows.n_rows(), "row"),
            count(rows.n_features(), "feature"),
            count(n_classes, "class")
        )
    };
    output::result(args.json, Some(&args.output), value, text)
}

/// Reads a vocabulary or builds one.
fn vectorizer(args: &Vectorize, texts: &[String]) -> Result<Vectorizer, Failure> {
    let Some(path) = &args.vocab else {
        return Ok(Vectorizer::fit(
            texts,
            VectorizeOptions {
                weighting: args.weighting.unwrap_or_default(),
                min_df: args.min_df,
                max_df: args.max_df,
                lowercase: !args.keep_case,
                stem: args.stem,
                stop_words: stop_words(args.stop_words.as_deref())?,
            },
        )?);
    };
    let vectorizer = Vectorizer::read(path)?;
    Ok(match args.weighting {
        Some(weighting) => vectorizer.with_weighting(weighting)?,
        None => vectorizer,
    })
}

/// The words that `--stop-words` names: a language, or a file.
pub(crate) fn stop_words(named: Option<&str>) -> Result<StopWords, Failure> {
    Ok(match named {
        None => StopWords::None,
        Some("english") => StopWords::English,
        Some(path) => StopWords::read(path.as_ref())?,
    })
}
