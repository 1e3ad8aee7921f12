//! `hdsl inspect`: what a data file or a model contains.

use crate::args::{DataArgs, PathPoint};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, count, percent, short, thousands};
use clap::{Args, ValueHint};
use hdsl::data::ColumnGuess;
use hdsl::model::CommandFiles;
use hdsl::{Dataset, Labels, Model, Preprocessor};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Classes listed by name in the text.
const CLASSES_SHOWN: usize = 12;

/// How much of an example is shown.
const EXAMPLE: usize = 50;

/// Show what a data file or a model contains
///
/// For data: rows, features, non-zeros, classes, the range of values, the index base, and notes of the reader; for records,
/// also what each column is used as, given or guessed. For a model: lambda, base, atoms, features, preprocessing, and how it was trained. With --json, a model is printed completely:
/// every atom with its weight, the preprocessing, the names and the path.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl inspect train.svm.bz2
  hdsl inspect reviews.csv                    what the columns are guessed to be
  hdsl inspect reviews.csv --label stars --text title,body
  hdsl inspect m.hdsl --json > model.json")]
pub(crate) struct Inspect {
    /// Data file or model file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &Inspect, log: &Log) -> Result<(), Failure> {
    if files::is_model(&args.file) {
        let model = files::read_model(&args.file, &PathPoint::default(), log)?;
        return match args.data.json {
            true => output::stdout(&format!("{}\n", model.to_json())),
            false => output::stdout(&model_text(args, &model)),
        };
    }
    let data = Reader::new(&args.data.read, log)
        .with_columns(&args.data.columns)
        .data(&args.file, args.data.labels.as_ref())?;
    let facts = Facts::of(&data);
    match args.data.json {
        true => output::json(&data_json(args, &data, &facts)),
        false => output::stdout(&data_text(args, &data, &facts)),
    }
}

fn model_text(args: &Inspect, model: &Model) -> String {
    let parts = model.parts();
    let pairs = model.similarity().pairs_by_weight().len();
    let path = format!(
        "{}; the model after {} is in use",
        count(model.path().len(), "iteration"),
        thousands(model.chosen())
    );
    let uses = format!("{}, {}", output::usage_of(model), count(pairs, "pair"));
    let mut lines = vec![
        ("model", args.file.display().to_string()),
        ("lambda", short(parts.scale)),
    ];
    if model.base() > 0.0 {
        let base = short(model.base());
        let base =
            format!("{base}: scores are {base} <x, x'> + x^T M x', and M is the learned part");
        lines.push(("base", base));
    }
    lines.extend([
        ("uses", uses),
        ("preprocess", preprocess_text(&parts.preprocess)),
        ("path", path),
    ]);
    if let Some(point) = parts.trace.get(model.chosen()) {
        lines.push(("objective", short(point.objective)));
    }
    if let Some(gap) = parts.gap_certified {
        lines.push(("gap", format!("at most {} above the minimum", short(gap))));
    }
    let errors = parts.evaluations.iter().map(|e| e.1);
    if let Some(error) = errors.min_by(f64::total_cmp) {
        let evaluations = count(parts.evaluations.len(), "evaluation");
        let error = format!("error {}, lowest of {evaluations}", percent(error));
        lines.push(("validation", error));
    }
    if let Some(classes) = &parts.classes {
        lines.push((
            "classes",
            first_of(
                classes
                    .iter()
                    .map(|name| output::short_name(name).into_owned()),
            ),
        ));
    }
    if let Some(vectorizer) = model.vectorizer() {
        let columns = vectorizer
            .columns()
            .map(|(name, role)| format!("{name} ({role})"));
        lines.push(("columns", first_of(columns.collect::<Vec<_>>().into_iter())));
    }
    if let Some(training) = model.training_rows() {
        lines.push(("contains", count(training.rows.n_rows(), "training row")));
    }
    // Those of records are named by the vectorizer.
    if model.vectorizer().is_none() {
        lines.push(("names", count(parts.names.len(), "feature name")));
        let first = if parts.zero_based { 0 } else { 1 };
        lines.push(("features", format!("numbered from {first} in files")));
    }
    if let Some(stop) = parts.stop {
        lines.push(("stop", stop.to_string()));
    }
    if let Some(command) = model.command_line(&CommandFiles::default()) {
        lines.push(("trained by", command));
    }
    output::fields(&lines)
        + "\n--json prints all of it: atoms, weights, preprocessing, names, path.\n"
}

/// The kind of preprocessing, and what it learned about terms.
fn preprocess_text(preprocess: &Preprocessor) -> String {
    let kind = preprocess.kind();
    let Some(terms) = preprocess.term_statistics() else {
        return kind.to_string();
    };
    let values = match terms.is_counts {
        true => "counts",
        false => "values that are not counts",
    };
    format!(
        "{kind}, from {values} of {} in {}",
        count(terms.document_frequencies.len(), "feature"),
        count(terms.n_rows, "row")
    )
}

/// The first few of a list, and how many more there are.
fn first_of(list: impl ExactSizeIterator<Item = String>) -> String {
    let more = list.len().saturating_sub(CLASSES_SHOWN);
    let mut shown: Vec<String> = list.take(CLASSES_SHOWN).collect();
    if more > 0 {
        shown.push(format!("and {} more", thousands(more)));
    }
    shown.join(", ")
}

/// Statistics of rows.
struct Facts {
    empty: usize,
    least: usize,
    median: usize,
    most: usize,
    used: usize,
    low: f64,
    high: f64,
    whole: bool,
}

impl Facts {
    fn of(data: &Dataset) -> Self {
        let mut sizes: Vec<usize> = data.rows.iter().map(|r| r.nnz()).collect();
        sizes.sort_unstable();
        let mut columns = data.rows.indices().to_vec();
        columns.sort_unstable();
        columns.dedup();
        let values = data.rows.values().iter().copied();
        let (low, high) = values
            .clone()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        Self {
            empty: sizes.iter().filter(|&&n| n == 0).count(),
            least: sizes.first().copied().unwrap_or(0),
            median: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
            most: sizes.last().copied().unwrap_or(0),
            used: columns.len(),
            low: if low.is_finite() { low } else { 0.0 },
            high: if high.is_finite() { high } else { 0.0 },
            whole: values.into_iter().all(|v| v.fract() == 0.0),
        }
    }

    fn kind(&self) -> &'static str {
        match (self.low, self.high, self.whole) {
            (low, high, _) if low == 1.0 && high == 1.0 => "all 1",
            (_, _, true) => "whole numbers",
            _ => "numbers",
        }
    }
}

fn data_text(args: &Inspect, data: &Dataset, facts: &Facts) -> String {
    let rows = &data.rows;
    let empty = match facts.empty {
        0 => String::new(),
        n => format!(", {n} of them empty"),
    };
    let features = format!(
        "{}, of which {} occur; numbered from {}",
        thousands(rows.n_features()),
        thousands(facts.used),
        data.index_base.first()
    );
    let cells = (rows.n_rows() as f64 * rows.n_features() as f64).max(1.0);
    let nonzeros = format!(
        "{} ({:.3}% of all cells); {} to {} per row, median {}",
        thousands(rows.nnz()),
        100.0 * rows.nnz() as f64 / cells,
        facts.least,
        facts.most,
        facts.median
    );
    let (low, high) = (short(facts.low), short(facts.high));
    let mut lines = vec![
        ("data", args.file.display().to_string()),
        ("rows", thousands(rows.n_rows()) + &empty),
        ("features", features),
        ("non-zeros", nonzeros),
        ("values", format!("{low} to {high}, {}", facts.kind())),
        (
            "labels",
            data.labels.as_ref().map_or("none".into(), classes),
        ),
    ];
    if let Some(queries) = &data.queries {
        let mut distinct = queries.clone();
        distinct.sort_unstable();
        distinct.dedup();
        lines.push(("queries", thousands(distinct.len())));
    }
    lines.extend(data.notes.iter().map(|note| ("note", note.clone())));
    let mut text = output::fields(&lines);
    if let Some(records) = &data.records {
        text += "\nColumns:\n";
        text += &output::table("  ", &column_table(&records.columns));
    }
    text
}

/// What each column is used as, and an example of it.
fn column_table(columns: &[ColumnGuess]) -> Vec<Vec<String>> {
    let mut table = vec![output::head(["column", "used as", "", "example"])];
    for column in columns {
        let example: String = column.example.chars().take(EXAMPLE).collect();
        let more = match column.example.chars().nth(EXAMPLE) {
            Some(_) => "…",
            None => "",
        };
        let separator = column.separator.as_ref();
        let separator = separator.map_or(String::new(), |s| format!(" separated by `{s}`"));
        table.push(vec![
            column.name.clone(),
            format!("{}{separator}", column.role),
            if column.guessed { "guessed" } else { "given" }.to_owned(),
            format!("{}{more}", example.replace(['\n', '\r', '\t'], " ")),
        ]);
    }
    table
}

/// The classes and their sizes.
fn classes(labels: &Labels) -> String {
    let counts = labels.counts();
    let sizes = labels.names().iter().zip(&counts);
    let sizes = sizes.map(|(name, n)| format!("{} ({})", output::short_name(name), thousands(*n)));
    format!("{}: {}", count(counts.len(), "class"), first_of(sizes))
}

fn data_json(args: &Inspect, data: &Dataset, facts: &Facts) -> Value {
    let classes: Option<Vec<Value>> = data.labels.as_ref().map(|labels| {
        labels
            .names()
            .iter()
            .zip(labels.counts())
            .map(|(name, n)| json!({ "class": name, "rows": n }))
            .collect()
    });
    let mut value = json!({
        "file": args.file,
        "n_rows": data.rows.n_rows(),
        "n_empty_rows": facts.empty,
        "n_features": data.rows.n_features(),
        "n_features_occurring": facts.used,
        "first_feature": data.index_base.first(),
        "nnz": data.rows.nnz(),
        "nnz_per_row": { "least": facts.least, "median": facts.median, "most": facts.most },
        "values": { "least": facts.low, "most": facts.high, "whole": facts.whole },
        "classes": classes,
        "has_queries": data.queries.is_some(),
        "notes": data.notes,
    });
    if let Some(records) = &data.records {
        let column = |column: &ColumnGuess| {
            json!({
                "name": column.name,
                "role": column.role,
                "guessed": column.guessed,
                "separator": column.separator,
                "example": column.example,
            })
        };
        value["columns"] = records.columns.iter().map(column).collect();
        value["has_ids"] = records.ids.is_some().into();
    }
    value
}
