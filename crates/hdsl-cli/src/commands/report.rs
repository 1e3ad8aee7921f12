//! `hdsl report`: an HTML page about a model.

use crate::args::{
    AddedRows, ModelFile,
    heading::{COLLECTION, FILES},
    positive,
};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, count};
use crate::progress::Stages;
use clap::{Args, ValueHint};
use hdsl::data::{RecordVectorizer, is_documents, read_documents, read_texts};
use hdsl::model::{CommandFiles, shell_word};
use hdsl::ranking::{Ids, Judgments};
use hdsl::triplets::{self, TripletFormat};
use hdsl::{CancelToken, Dataset, IndexBase, Model, Preprocessor, TripletSource, Triplets};
use hdsl_report::{Input, JudgedQueries, Part};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Write an HTML page about a model: errors, charts, features, neighbors
///
/// The page is one file that opens offline in any browser. It shows the errors under the learned similarity and without
/// learning (dot product, cosine, tf-idf cosine), the training run, the matrix, features and pairs in tables and as a graph,
/// the errors of smaller models, a map of the rows, the neighbors of test rows with the contributions to each score, and
/// the misclassified rows. With --queries and --judgments it shows nDCG@10, MAP, recall and MRR of rankings of the --train
/// rows. Only the model is required: sections that need more input are left out, and the page names the options that add
/// them. Large data are sampled, with a note.
#[derive(Args, Debug)]
#[command(
    mut_arg("add", |add| add.requires("train")),
    after_long_help = "\
Examples:
  hdsl report m.hdsl --train train.svm.bz2 --test test.svm.bz2 --names vocab.txt -o report.html
  hdsl report reviews.hdsl --train reviews.csv --test new.csv -o report.html
  hdsl report m.hdsl --train train.svm --test test.svm --text train.tsv test.tsv -o report.html
      shows the texts of rows and marks the words that contribute
  hdsl report m.hdsl --train docs.svm --queries queries.svm --judgments qrels.txt -o report.html
      measures rankings; judgments name rows, counted from 0
  hdsl report m.hdsl --train corpus.jsonl --queries queries.jsonl --judgments qrels.tsv \\
      --vocab vocab.txt -o report.html
      the texts that `hdsl rank` took, with the vocabulary of its --save-vocab
  hdsl train ... -o m.hdsl --json > run.json && hdsl report m.hdsl --run run.json -o report.html
      shows the training time too, which a model file does not contain"
)]
pub(crate) struct Report {
    #[command(flatten)]
    model: ModelFile,
    /// File to write the page to
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Rows among which neighbors are searched, usually the training rows of the model
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    train: Option<PathBuf>,
    /// Test rows, which the model was not trained on
    #[arg(long, value_name = "FILE", requires = "train", value_hint = ValueHint::FilePath)]
    test: Option<PathBuf>,
    /// Number of neighbors that vote [default: as in training]
    #[arg(short, value_name = "K", value_parser = positive, allow_negative_numbers = true)]
    k: Option<usize>,
    /// Feature names, one per line, or a vocabulary file of `vectorize` [default: those saved in the model]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    names: Option<PathBuf>,
    /// Texts of the --train and of the --test rows: the two files that `vectorize` made the rows from
    #[arg(long, value_names = ["TRAIN", "TEST"], num_args = 2, requires = "test", value_hint = ValueHint::FilePath)]
    text: Option<Vec<PathBuf>>,
    /// The triplets of the training, if they came from a file; others are mined again
    ///
    /// With judgments:FILE or judgments-low:FILE, the page has the quality of the rankings, too.
    #[arg(long, value_name = "SOURCE", requires = "train")]
    triplets: Option<TripletSource>,
    /// File with the output of `hdsl train --json`, for the training time
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    run: Option<PathBuf>,
    /// Queries, whose answers are among the --train rows; they take the place of --test rows
    #[arg(long, value_name = "FILE", requires_all = ["judgments", "train"], conflicts_with_all = ["test", "text"], value_hint = ValueHint::FilePath, help_heading = COLLECTION)]
    queries: Option<PathBuf>,
    /// Lines `query document grade` or, as TREC has them, `query 0 document grade`
    ///
    /// Queries and documents are named by the ids of texts or records, or by row numbers counted from 0.
    #[arg(long, value_name = "FILE", requires = "queries", value_hint = ValueHint::FilePath, help_heading = COLLECTION)]
    judgments: Option<PathBuf>,
    /// Grade 1 is better than grade 4: gains are the highest grade + 1 - grade
    #[arg(long, requires = "judgments", help_heading = COLLECTION)]
    lower_is_better: bool,
    /// Judgments name queries by position in their file, counted from 1, whatever their ids are
    #[arg(long, requires = "judgments", help_heading = COLLECTION)]
    number_queries: bool,
    /// Vocabulary that `hdsl rank --save-vocab` wrote: --train and --queries are texts
    #[arg(long, value_name = "FILE", requires = "judgments", conflicts_with_all = ["add", "train_labels"], value_hint = ValueHint::FilePath, help_heading = COLLECTION)]
    vocab: Option<PathBuf>,
    /// Labels of the --train rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", requires = "train", value_hint = ValueHint::FilePath, help_heading = FILES)]
    train_labels: Option<PathBuf>,
    #[command(flatten)]
    added: AddedRows,
    /// Labels of the --test rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", requires = "test", value_hint = ValueHint::FilePath, help_heading = FILES)]
    test_labels: Option<PathBuf>,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Report, log: &Log) -> Result<(), Failure> {
    let started = Instant::now();
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = files::create(&args.output)?;
    let model = files::read_model(&args.model.model, &args.model.point, log)?;
    let read_names = |path| files::read_names(path, model.n_features());
    let names = args.names.as_deref().map(read_names).transpose()?;
    let parts = Parts::read(args, &model, log)?;
    let triplets = given_triplets(args, parts.train.as_ref(), &model)?;
    let judged = Judged::read(args, &parts)?;
    let train_seconds = args.run.as_deref().map(read_seconds).transpose()?;

    let title = args.model.model.display().to_string();
    let command = command_line();
    let mut input = Input::new(&model, &title);
    input.names = names.as_deref();
    input.train = parts.train.as_ref().map(NamedRows::part);
    input.test = parts.test.as_ref().map(NamedRows::part);
    input.judged = judged.as_ref().and_then(|judged| judged.queries(&parts));
    input.files = command_files(args);
    input.rule.k = args.k.unwrap_or(input.rule.k);
    input.triplets = triplets.as_ref();
    input.train_seconds = train_seconds;
    input.command = Some(&command);
    let mut stages = Stages::new(log);
    let page = hdsl_report::page(&input, &mut |stage| stages.start(stage));
    stages.finish();
    let page = page?;
    files::write(out, |out| out.write_all(page.as_bytes()))?;
    let seconds = started.elapsed().as_secs_f64();
    let n_rows = |rows: &Option<NamedRows>| rows.as_ref().map(|rows| rows.data.rows.n_rows());
    let value = || {
        json!({
            "model": title,
            "output": args.output,
            "bytes": page.len(),
            "k": input.rule.k,
            "n_train": n_rows(&parts.train),
            "n_test": n_rows(&parts.test),
            "seconds": seconds,
        })
    };
    let text = || {
        let saved = output::saved(&args.output, page.len());
        format!("wrote {saved} in {seconds:.1} s: open it in a browser\n")
    };
    output::result(args.json, Some(&args.output), value, text)
}

/// The files of the training, as far as the options name them.
fn command_files(args: &Report) -> CommandFiles {
    let mut files = CommandFiles::default();
    files.train = args.train.clone();
    files.labels = args.train_labels.clone();
    files.add = args.added.add.clone();
    files.add_labels = args.added.add_labels.clone();
    files.names = args.names.clone();
    if let Some(TripletSource::File { path, .. }) = &args.triplets {
        files.triplets = Some(path.clone());
    }
    let read = &args.model.read;
    if let Some(format) = read.format {
        files
            .reading
            .extend(["--format".to_owned(), format.to_string()]);
    }
    if let Some(base) = read.index_base() {
        let flag = match base {
            IndexBase::Zero => "--zero-based",
            IndexBase::One => "--one-based",
        };
        files.reading.push(flag.to_owned());
    }
    files
}

/// Rows with the name of their file, and their texts.
struct NamedRows {
    data: Dataset,
    ids: Option<Vec<String>>,
    texts: Option<Vec<String>>,
    source: String,
}

impl NamedRows {
    fn part(&self) -> Part<'_> {
        let mut part = Part::new(&self.data, &self.source);
        part.texts = self.texts.as_deref();
        part
    }

    /// Texts with ids, as rows of a vocabulary.
    fn of_documents(path: &Path, vectorizer: &RecordVectorizer) -> Result<Self, Failure> {
        let documents = read_documents(path)?;
        let texts: Vec<String> = documents.iter().map(|d| d.whole().into_owned()).collect();
        Ok(Self {
            data: Dataset {
                rows: vectorizer.transform_texts(&texts)?,
                labels: None,
                queries: None,
                index_base: IndexBase::One,
                notes: Vec::new(),
                records: None,
            },
            ids: Some(documents.into_iter().map(|document| document.id).collect()),
            texts: Some(texts),
            source: path.display().to_string(),
        })
    }

    /// How judgments name the rows.
    fn judged_by(&self) -> Ids {
        match &self.ids {
            Some(ids) => Ids::named(ids.iter().map(String::as_str)),
            None => Ids::Rows(self.data.rows.n_rows()),
        }
    }
}

/// Judgments, of queries of their own or of training rows.
enum Judged {
    OfQueries(Judgments, String),
    OfRows(triplets::Judgments, String),
}

impl Judged {
    fn read(args: &Report, parts: &Parts) -> Result<Option<Self>, Failure> {
        let Some(train) = &parts.train else {
            return Ok(None);
        };
        if let (Some(path), Some(queries)) = (&args.judgments, &parts.test) {
            let by_position = Ids::Positions(queries.data.rows.n_rows());
            let ids = match args.number_queries {
                true => by_position,
                false => queries.judged_by(),
            };
            let judgments = Judgments::read(path, &ids, &train.judged_by(), args.lower_is_better)?;
            return Ok(Some(Self::OfQueries(judgments, path.display().to_string())));
        }
        match &args.triplets {
            Some(TripletSource::File {
                format: format @ (TripletFormat::Judgments | TripletFormat::JudgmentsLow),
                path,
            }) => {
                let n_rows = train.data.rows.n_rows();
                let judgments = triplets::Judgments::read(path, *format, n_rows)?;
                Ok(Some(Self::OfRows(judgments, path.display().to_string())))
            }
            _ => Ok(None),
        }
    }

    fn queries<'a>(&'a self, parts: &'a Parts) -> Option<JudgedQueries<'a>> {
        match self {
            Self::OfQueries(judgments, source) => {
                let queries = parts.test.as_ref()?;
                let mut judged = JudgedQueries::new(&queries.data.rows, judgments, source);
                judged.names = queries.ids.as_deref();
                Some(judged)
            }
            Self::OfRows(judgments, source) => {
                let rows = &parts.train.as_ref()?.data.rows;
                Some(JudgedQueries::of_rows(rows, judgments, source))
            }
        }
    }
}

/// The training and the test rows, if they are given.
struct Parts {
    train: Option<NamedRows>,
    test: Option<NamedRows>,
}

impl Parts {
    fn read(args: &Report, model: &Model, log: &Log) -> Result<Self, Failure> {
        if let (Some(path), Some(train), Some(queries)) = (&args.vocab, &args.train, &args.queries)
        {
            return Self::read_documents(path, [train, queries], model);
        }
        if let (Some(train), Some(_), None) = (&args.train, &args.queries, model.vectorizer())
            && is_documents(train)
        {
            return Err(Failure::usage(format!(
                "{} has texts: pass --vocab with the vocabulary of `hdsl rank --save-vocab`",
                train.display()
            )));
        }
        let mut reader = Reader::new(&args.model.read, log).keep_texts();
        reader.number_as_model(model);
        let text = |which: usize| args.text.as_ref().map(|files| files[which].as_path());
        let mut read = |path: &Path,
                        labels: (&Option<PathBuf>, &str),
                        added: &AddedRows,
                        texts: Option<&Path>| {
            let mut data = reader.data(path, labels.0.as_ref())?;
            reader.append(&mut data, path, labels.1, added)?;
            files::check_values(model.preprocess().kind(), path, &data.rows)?;
            files::note_unseen(log, path, &data.rows, model.n_features());
            let more = added.add.as_ref();
            let more = more.map_or(String::new(), |more| format!(" and {}", more.display()));
            let texts = match texts {
                Some(path) => Some(texts_of(path, &data)?),
                // Records have their texts with them.
                None => data
                    .records
                    .as_mut()
                    .and_then(|records| records.texts.take()),
            };
            let texts = texts.filter(|texts| texts.len() == data.rows.n_rows());
            let records = data.records.as_mut();
            let ids = records.and_then(|records| records.ids.take());
            Ok::<_, Failure>(NamedRows {
                ids: ids.filter(|ids| ids.len() == data.rows.n_rows()),
                data,
                texts,
                source: format!("{}{more}", path.display()),
            })
        };
        let mut parts = Self {
            train: None,
            test: None,
        };
        if let Some(path) = &args.train {
            let labels = (&args.train_labels, "--train-labels");
            parts.train = Some(read(path, labels, &args.added, text(0))?);
        }
        if let Some(path) = &args.test {
            let labels = (&args.test_labels, "--test-labels");
            parts.test = Some(read(path, labels, &AddedRows::default(), text(1))?);
        }
        if let Some(path) = &args.queries {
            let labels = (&None, "");
            let mut queries = read(path, labels, &AddedRows::default(), None)?;
            // Documents and queries have ids where other rows have labels.
            queries.data.labels = None;
            if let (Some(documents), None) = (&mut parts.train, &args.train_labels) {
                documents.data.labels = None;
            }
            parts.test = Some(queries);
        }
        Ok(parts)
    }

    /// Documents and queries as texts.
    fn read_documents(
        vocabulary: &Path,
        [documents, queries]: [&Path; 2],
        model: &Model,
    ) -> Result<Self, Failure> {
        let vectorizer = RecordVectorizer::read(vocabulary)?;
        let read = |path: &Path| NamedRows::of_documents(path, &vectorizer);
        let (train, test) = (read(documents)?, read(queries)?);
        let (found, wanted) = (train.data.rows.n_features(), model.n_features());
        if found != wanted {
            let message = format!(
                "has {}, but the model has {}: this is not the vocabulary of the model",
                count(found, "feature"),
                count(wanted, "feature")
            );
            return Err(Failure::file(vocabulary, message));
        }
        Ok(Self {
            train: Some(train),
            test: Some(test),
        })
    }
}

/// The texts of rows, checked to be theirs: as many, and of the same classes.
fn texts_of(path: &Path, data: &Dataset) -> Result<Vec<String>, Failure> {
    let texts = read_texts(path)?;
    let n_rows = data.rows.n_rows();
    if texts.len() != n_rows {
        let (found, wanted) = (count(texts.len(), "text"), count(n_rows, "row"));
        let message = format!("has {found}, expected one for each of {wanted}");
        return Err(Failure::file(path, message));
    }
    if let Some(labels) = &data.labels
        && let Some(row) = (0..n_rows).find(|&row| labels.name(row) != texts[row].0)
    {
        let message = format!(
            "text {row} (counted from 0) is of class {}, but row {row} of the data is of class {}: these are texts of \
             other rows",
            texts[row].0,
            labels.name(row)
        );
        return Err(Failure::file(path, message));
    }
    Ok(texts.into_iter().map(|t| t.1).collect())
}

/// Triplets that cannot be mined again from labels.
fn given_triplets(
    args: &Report,
    train: Option<&NamedRows>,
    model: &Model,
) -> Result<Option<Triplets>, Failure> {
    let (Some(source), Some(train)) = (&args.triplets, train) else {
        return Ok(None);
    };
    let train = &train.data;
    let rows = Preprocessor::fit(model.preprocess().kind(), &train.rows).apply(&train.rows);
    let seed = model.parts().config.seed;
    let triplets = source.triplets(&rows, train.labels.as_ref(), seed, CancelToken::NEVER)?;
    triplets.check(rows.n_rows())?;
    Ok(Some(triplets))
}

/// The training time in the output of `hdsl train --json`.
fn read_seconds(path: &Path) -> Result<f64, Failure> {
    let bad = |reason: String| Failure::file(path, reason);
    let text = std::fs::read(path).map_err(|e| bad(format!("cannot read: {e}")))?;
    let want = "expected the output of `hdsl train --json`";
    let value: Value = serde_json::from_slice(&text).map_err(|e| bad(format!("{e}; {want}")))?;
    match value["train_seconds"].as_f64() {
        Some(seconds) if seconds >= 0.0 => Ok(seconds),
        _ => Err(bad(format!("has no number `train_seconds`, {want}"))),
    }
}

/// The command as it was typed, without the options that do not change the page.
fn command_line() -> String {
    let mut line = "hdsl".to_owned();
    let mut words = crate::words().iter();
    while let Some(word) = words.next() {
        match &*word.to_string_lossy() {
            // The bytes are the same for any number of threads.
            "--threads" => _ = words.next(),
            "-v" | "-q" | "--verbose" | "--quiet" => {}
            word if word.starts_with("--threads=") => {}
            word => line += &format!(" {}", shell_word(word)),
        }
    }
    line
}
