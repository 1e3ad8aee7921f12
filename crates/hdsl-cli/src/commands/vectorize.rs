//! `hdsl vectorize`: records into rows.

use super::convert::RowsFormat;
use crate::args::{ColumnArgs, ReadArgs, TextArgs};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, count};
use clap::{Args, ValueHint};
use hdsl::data::{RecordVectorizer, Vectorizer, detect_format, is_smart, read_texts};
use hdsl::{Format, IndexBase, Labels, Rows};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Turn records into sparse rows of words, categories and numbers
///
/// Other commands read records by themselves; `vectorize` writes the rows for other programs. A word is a sequence of two
/// or more letters, digits or underscores. Each distinct word that is neither too rare nor too frequent becomes a
/// feature. --save-vocab saves the vocabulary, and --vocab applies it to later files, so that training and test rows have
/// the same features; words that are not in the vocabulary are left out. Of documents in the SMART format, the ids are the
/// labels.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl vectorize train.csv --label stars --text body --min-df 2 --save-vocab vocab.json -o train.svm
  hdsl vectorize test.csv --vocab vocab.json -o test.svm
  hdsl train train.svm --vocab vocab.json --lambda 100 --holdout 0.3 -o m.hdsl
      the same model as `hdsl train train.csv --label stars --text body --min-df 2 ...`")]
pub(crate) struct Vectorize {
    /// Records: CSV, TSV, JSON lines, Parquet, Arrow or plain text, compressed or not
    #[arg(value_name = "RECORDS", value_hint = ValueHint::FilePath)]
    records: PathBuf,
    /// File to write: .svm (svmlight) or .npz (scipy's sparse matrix)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Save the vocabulary that was built
    #[arg(long, value_name = "FILE", conflicts_with = "vocab", value_hint = ValueHint::FilePath)]
    save_vocab: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    read: ReadArgs,
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
    let (vectorizer, rows, labels) = match is_collection(args) {
        true => documents(args)?,
        false => records(args, log)?,
    };
    let mut vocabulary_out = vocabulary_out;
    if let Some(out) = &mut vocabulary_out {
        out.fill(|out| {
            vectorizer.write(&mut *out)?;
            out.flush()
        })?;
    }
    let written = out.write_with(vocabulary_out, &rows, labels.as_ref(), None, IndexBase::One)?;
    let empty = rows.iter().filter(|row| row.nnz() == 0).count();
    let n_classes = labels.as_ref().map(|labels| labels.names().len());
    let value = || {
        json!({
            "output": written,
            "vocabulary": args.save_vocab,
            "n_rows": rows.n_rows(),
            "n_features": rows.n_features(),
            "nnz": rows.nnz(),
            "n_empty_rows": empty,
            "n_classes": n_classes.unwrap_or(0),
        })
    };
    let text = || {
        format!(
            "{}: wrote {} of {}, {}\n",
            written.join(", "),
            count(rows.n_rows(), "row"),
            count(rows.n_features(), "feature"),
            n_classes.map_or("no labels".to_owned(), |n| count(n, "class"))
        )
    };
    output::result(args.json, Some(&args.output), value, text)
}

/// What made the rows, the rows, and their labels.
type Vectorized = (Arc<RecordVectorizer>, Rows, Option<Labels>);

fn records(args: &Vectorize, log: &Log) -> Result<Vectorized, Failure> {
    let mut reader = Reader::new(&args.read, log)
        .with_columns(&args.columns)
        .with_text(&args.text)?;
    let data = match args.text.vocab {
        None => reader.training(&args.records, None, "--label", &Default::default())?,
        Some(_) => reader.data(&args.records, None)?,
    };
    match data.records {
        Some(records) => Ok((records.vectorizer, data.rows, data.labels)),
        None => Err(Failure::file(
            &args.records,
            "has rows of numbered features already, expected records; `hdsl convert` converts rows",
        )),
    }
}

/// Whether the input is a test collection: SMART, or JSON lines with a vocabulary that knows no columns.
fn is_collection(args: &Vectorize) -> bool {
    let (path, vocabulary) = (&args.records, args.text.vocab.as_deref());
    let is_free = |path: &Path| RecordVectorizer::read(path).is_ok_and(|v| !v.is_bound());
    let is_json = || matches!(detect_format(path), Ok(Format::JsonLines));
    let is_given = args.columns.roles().is_given() || args.read.format.is_some();
    !is_given
        && path != Path::new("-")
        && (is_smart(path) || (vocabulary.is_some_and(is_free) && is_json()))
}

/// Documents of a test collection, title and text as one. Their ids are the labels.
fn documents(args: &Vectorize) -> Result<Vectorized, Failure> {
    let (ids, texts): (Vec<String>, Vec<String>) = read_texts(&args.records)?.into_iter().unzip();
    let labels = Some(Labels::from_names(&ids));
    let (vectorizer, rows) = match &args.text.vocab {
        Some(path) => {
            let vectorizer = RecordVectorizer::read(path)?;
            let rows = vectorizer.transform_texts(&texts)?;
            (vectorizer, rows)
        }
        None => {
            let (vectorizer, rows) = Vectorizer::fit_transform(&texts, args.text.options()?)?;
            (RecordVectorizer::of_texts(vectorizer), rows)
        }
    };
    Ok((Arc::new(vectorizer), rows, labels))
}
