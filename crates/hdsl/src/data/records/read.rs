//! From a file of records to rows.

use super::batch::{Batch, Place, cell_error, in_words};
use super::csv::{self, Csv};
use super::lines::Lines;
use super::roles::{self, ColumnGuess, ColumnRoles, Role};
use super::vectorizer::{Fitting, RecordVectorizer};
use super::{Dialect, Source};
use crate::data::counts;
use crate::data::input::{Input, quote};
use crate::data::interner::Interner;
use crate::data::read::Format;
use crate::data::text;
use crate::data::vectorize::{ITEM_END, VectorizeOptions};
use crate::data::{Dataset, IndexBase, Labels};
use crate::error::{Error, Result};
use crate::parallel;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How records become rows.
#[derive(Clone, Debug, Default)]
pub struct RecordOptions {
    /// What the columns are used as, where that is not guessed.
    pub roles: ColumnRoles,
    /// How separated values are written, where that is not guessed.
    pub dialect: Dialect,
    /// What the features of texts are.
    pub text: VectorizeOptions,
    /// The vectorizer to apply, instead of one that is fitted to the records. It says which columns are features; of the
    /// [`Self::roles`], only label and id are used.
    pub vectorizer: Option<Arc<RecordVectorizer>>,
    /// Whether to keep the texts of records, to display them.
    pub keep_texts: bool,
}

/// What is known about rows that were records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Records {
    /// What made the rows.
    pub vectorizer: Arc<RecordVectorizer>,
    /// What each column of the file is used as.
    pub columns: Vec<ColumnGuess>,
    /// The names of the records, if there is a column of them.
    pub ids: Option<Vec<String>>,
    /// The texts of the records, if they were to be kept.
    pub texts: Option<Vec<String>>,
    /// The first record without a label, in words, if there is a column of labels.
    pub unlabeled: Option<String>,
}

/// The columns of a batch: those of features, and others.
struct Plan {
    label: Option<usize>,
    id: Option<usize>,
    features: Vec<usize>,
    keep_texts: bool,
}

/// What a batch becomes.
struct Piece {
    counts: counts::Piece,
    labels: Interner,
    codes: Vec<u32>,
    unlabeled: Option<Place>,
    ids: Vec<(String, Place)>,
    texts: Vec<String>,
}

/// Opens a file of records.
fn open<'a>(
    input: Input<'a>,
    format: Format,
    extension: Option<&str>,
    options: &RecordOptions,
) -> Result<Box<dyn Source + 'a>> {
    let expected = options.vectorizer.as_deref().filter(|v| v.is_bound());
    Ok(match format {
        Format::Csv | Format::Tsv => {
            let mut dialect = options.dialect;
            if format == Format::Tsv {
                dialect.delimiter = dialect.delimiter.or(Some(b'\t'));
            }
            dialect.header = dialect.header.or(expected.and_then(|v| v.has_header()));
            Box::new(Csv::open(input, &dialect, extension)?)
        }
        Format::JsonLines => Box::new(Lines::json(input)?),
        #[cfg(feature = "columnar")]
        Format::Parquet | Format::Arrow => Box::new(super::columnar::Columnar::open(
            input,
            format == Format::Parquet,
        )?),
        #[cfg(not(feature = "columnar"))]
        Format::Parquet | Format::Arrow => {
            let reason = format!("{format} is not supported: hdsl was built without `columnar`");
            return Err(Error::file(input.path(), reason));
        }
        _ => Box::new(Lines::text(input)?),
    })
}

/// Reads a file of records.
pub(in crate::data) fn read(
    input: Input<'_>,
    format: Format,
    extension: Option<&str>,
    options: &RecordOptions,
) -> Result<Dataset> {
    let path = input.path().to_owned();
    let mut source = open(input, format, extension, options)?;
    let columns = source.columns().to_vec();
    let first = source.next()?;
    let Some(sample) = first.first() else {
        return Err(Error::file(&path, "has no records, only a header"));
    };
    let dialect = source.dialect();
    let resolve = || roles::resolve(&path, &columns, sample, &options.roles, format, dialect);
    let guess = match &options.vectorizer {
        Some(vectorizer) if vectorizer.is_bound() || format == Format::Text => {
            known_roles(&path, &columns, sample, vectorizer, options, format)?
        }
        Some(_) => only_text(&path, resolve()?)?,
        None => resolve()?,
    };
    let is_plain = format == Format::Text;
    let fitting = match &options.vectorizer {
        Some(_) => None,
        None => {
            let named = !is_plain && dialect.header != Some(false);
            let unfitted = RecordVectorizer::unfitted(&guess, &options.text, dialect, named)?;
            Some(Fitting::new(unfitted, &options.text))
        }
    };
    let vectorizer = match (&options.vectorizer, &fitting) {
        (Some(vectorizer), _) => vectorizer.clone(),
        (None, Some(fitting)) => Arc::new(fitting.vectorizer().clone()),
        (None, None) => unreachable!("one of them is there"),
    };
    let (plan, wanted) = plan(&path, &columns, &guess, &vectorizer, options.keep_texts)?;
    let first = first.iter().map(|batch| batch.select(&wanted)).collect();
    source.select(&wanted);
    let counted = counts::Counted::new(plan.features.len());
    let mut reading = Reading {
        path,
        plan,
        fitting,
        vectorizer,
        counted,
        labels: Interner::default(),
        codes: Vec::new(),
        unlabeled: None,
        ids: Interner::default(),
        id_places: Vec::new(),
        texts: Vec::new(),
    };
    reading.read(first, source.as_mut())?;
    reading.finish(guess, options)
}

/// The roles of columns for a vocabulary of texts: that of the one text, and no other feature.
fn only_text(path: &Path, mut guess: Vec<ColumnGuess>) -> Result<Vec<ColumnGuess>> {
    let texts = guess
        .iter()
        .filter(|column| column.role == Role::Text)
        .count();
    if texts != 1 {
        let reason = format!(
            "has {texts} columns that look like texts, expected one for the vocabulary; pass it with --text"
        );
        return Err(Error::file(path, reason));
    }
    for column in &mut guess {
        if roles::is_feature(column.role) && column.role != Role::Text {
            column.role = Role::Ignored;
        }
    }
    Ok(guess)
}

/// The roles of the columns of another file of the same kind.
fn known_roles(
    path: &Path,
    columns: &[String],
    sample: &Batch,
    vectorizer: &RecordVectorizer,
    options: &RecordOptions,
    format: Format,
) -> Result<Vec<ColumnGuess>> {
    let example = |column: usize| {
        let cell = |row| sample.cell(row, column).trim().replace(ITEM_END, " | ");
        let mut cells = (0..sample.n_rows().min(100)).map(cell);
        cells.find(|cell| !cell.is_empty()).unwrap_or_default()
    };
    let mut guess: Vec<ColumnGuess> = columns
        .iter()
        .enumerate()
        .map(|(column, name)| ColumnGuess {
            name: name.clone(),
            role: Role::Ignored,
            guessed: false,
            separator: None,
            example: example(column),
        })
        .collect();
    let is_text = format == Format::Text && vectorizer.takes_texts();
    for (name, role) in vectorizer.columns() {
        let name = if is_text { "text" } else { name };
        guess[roles::position(path, columns, name)?].role = role;
    }
    let known = |role: Role| match role {
        Role::Label => (options.roles.label.as_deref(), vectorizer.label()),
        _ => (options.roles.id.as_deref(), vectorizer.id()),
    };
    for role in [Role::Label, Role::Id] {
        let column = match known(role) {
            (Some(name), _) => Some(roles::position(path, columns, name)?),
            (None, Some(name)) => columns.iter().position(|other| other == name),
            (None, None) => None,
        };
        // A text file of fastText has its labels before the texts, whatever they were called in training.
        let column = match (role, column) {
            (Role::Label, None) if is_text => columns.iter().position(|name| name == "label"),
            (_, column) => column,
        };
        if let Some(column) = column {
            guess[column].role = role;
        }
    }
    Ok(guess)
}

/// Which columns of the file are read, and where they are in batches.
fn plan(
    path: &Path,
    columns: &[String],
    guess: &[ColumnGuess],
    vectorizer: &RecordVectorizer,
    keep_texts: bool,
) -> Result<(Plan, Vec<usize>)> {
    let of = |role: Role| guess.iter().position(|column| column.role == role);
    let mut wanted: Vec<usize> = Vec::new();
    let mut add = |column: Option<usize>| {
        wanted.extend(column);
        column.map(|_| wanted.len() - 1)
    };
    let (label, id) = (add(of(Role::Label)), add(of(Role::Id)));
    let only_text = vectorizer.takes_texts().then(|| of(Role::Text)).flatten();
    let mut features = Vec::new();
    for (name, _) in vectorizer.columns() {
        let column = match only_text {
            Some(column) => column,
            None => roles::position(path, columns, name)?,
        };
        features.extend(add(Some(column)));
    }
    let plan = Plan {
        label,
        id,
        features,
        keep_texts,
    };
    Ok((plan, wanted))
}

/// A file on the way to rows.
struct Reading {
    path: PathBuf,
    plan: Plan,
    fitting: Option<Fitting>,
    vectorizer: Arc<RecordVectorizer>,
    counted: counts::Counted,
    labels: Interner,
    codes: Vec<u32>,
    unlabeled: Option<Place>,
    ids: Interner,
    id_places: Vec<Place>,
    texts: Vec<String>,
}

impl Reading {
    /// Counts some batches while the next are read.
    fn read(&mut self, first: Vec<Batch>, source: &mut dyn Source) -> Result<()> {
        let mut batches: Vec<Batch> = first;
        while !batches.is_empty() {
            let this = &*self;
            let count = || -> Result<Vec<Piece>> {
                let batches = std::mem::take(&mut batches);
                parallel::try_map_each(batches, 1, |batch| this.count(&batch))
            };
            let (counted, next) = parallel::join(count, || source.next());
            for piece in counted? {
                self.merge(piece)?;
            }
            batches = next?;
        }
        Ok(())
    }

    fn count(&self, batch: &Batch) -> Result<Piece> {
        let plan = &self.plan;
        let (path, features) = (&self.path, &plan.features);
        let counts = match &self.fitting {
            Some(fitting) => fitting.count(path, batch, features)?,
            None => self.vectorizer.count(path, batch, features, None)?,
        };
        let mut piece = Piece {
            counts,
            labels: Interner::default(),
            codes: Vec::new(),
            unlabeled: None,
            ids: Vec::new(),
            texts: Vec::new(),
        };
        for row in 0..batch.n_rows() {
            if let Some(label) = plan.label {
                let label = batch.cell(row, label).trim();
                if label.is_empty() {
                    piece.unlabeled = piece.unlabeled.or(Some(batch.place(row)));
                }
                piece.codes.push(piece.labels.intern(label));
            }
            if let Some(id) = plan.id {
                let id = batch.cell(row, id).trim().to_owned();
                piece.ids.push((id, batch.place(row)));
            }
            if plan.keep_texts {
                piece.texts.push(self.shown(batch, row));
            }
        }
        Ok(piece)
    }

    /// A record as it is displayed: its texts, or all its columns if it has none.
    fn shown(&self, batch: &Batch, row: usize) -> String {
        let columns: Vec<(&str, Role)> = self.vectorizer.columns().collect();
        let has_text = columns.iter().any(|column| column.1 == Role::Text);
        let mut shown = Vec::new();
        for (&(name, role), &at) in columns.iter().zip(&self.plan.features) {
            let cell = batch.cell(row, at).trim().trim_end_matches(ITEM_END);
            match role {
                _ if cell.is_empty() => {}
                Role::Text => shown.push(cell.to_owned()),
                _ if has_text => {}
                _ => shown.push(format!("{name}={}", cell.replace(ITEM_END, ","))),
            }
        }
        shown.join(if has_text { " | " } else { " " })
    }

    fn merge(&mut self, piece: Piece) -> Result<()> {
        if let Some(id) = self.plan.id {
            let name = match self.vectorizer.id() {
                Some(name) => name.to_owned(),
                None => (id + 1).to_string(),
            };
            for (id, place) in piece.ids {
                self.add_id(&id, place, &name)?;
            }
        }
        let numbers = piece.labels.iter().map(|label| self.labels.intern(label));
        let numbers: Vec<u32> = numbers.collect();
        let codes = piece.codes.iter().map(|&code| numbers[code as usize]);
        self.codes.extend(codes);
        self.unlabeled = self.unlabeled.or(piece.unlabeled);
        self.texts.extend(piece.texts);
        self.counted.append(&piece.counts);
        Ok(())
    }

    fn add_id(&mut self, id: &str, place: Place, column: &str) -> Result<()> {
        if id.is_empty() {
            let reason = "the id is empty, expected one for each record";
            return Err(cell_error(&self.path, place, column, reason));
        }
        let number = self.ids.intern(id) as usize;
        if number < self.id_places.len() {
            let (id, before) = (quote(id.as_bytes()), in_words(self.id_places[number]));
            let reason = format!("id {id} is repeated, {before} has it, too");
            return Err(cell_error(&self.path, place, column, &reason));
        }
        self.id_places.push(place);
        Ok(())
    }

    fn finish(self, columns: Vec<ColumnGuess>, options: &RecordOptions) -> Result<Dataset> {
        let (vectorizer, rows) = match (self.fitting, &options.vectorizer) {
            (Some(fitting), _) => {
                let (vectorizer, rows) = fitting.finish(&self.path, self.counted)?;
                (Arc::new(vectorizer), rows)
            }
            (None, Some(vectorizer)) => {
                let placements = vectorizer.placements();
                let rows = self.counted.into_rows(vectorizer.n_features(), &placements);
                (vectorizer.clone(), rows)
            }
            (None, None) => unreachable!("there is a vectorizer to apply or to fit"),
        };
        let empty = rows.iter().filter(|row| row.nnz() == 0).count();
        let mut notes = Vec::new();
        if empty > 0 {
            let records = if empty == 1 {
                "record has"
            } else {
                "records have"
            };
            notes.push(format!(
                "{}: {empty} {records} no features",
                self.path.display()
            ));
        }
        let labels = self.codes.iter().map(|&code| self.labels.get(code));
        let all_labeled = self.plan.label.is_some() && self.unlabeled.is_none();
        let column = columns.iter().find(|column| column.role == Role::Label);
        let unlabeled = self.unlabeled.zip(column).map(|(place, column)| {
            let (name, place) = (quote(column.name.as_bytes()), in_words(place));
            format!("the label (column {name}) of {place} is empty")
        });
        notes.extend(
            unlabeled
                .iter()
                .map(|reason| format!("{}: {reason}; labels are not used", self.path.display())),
        );
        Ok(Dataset {
            rows,
            labels: all_labeled.then(|| Labels::from_names(labels)),
            queries: None,
            index_base: IndexBase::One,
            notes,
            records: Some(Records {
                vectorizer,
                columns,
                ids: self
                    .plan
                    .id
                    .map(|_| self.ids.iter().map(str::to_owned).collect()),
                texts: options.keep_texts.then_some(self.texts),
                unlabeled,
            }),
        })
    }
}

/// The format of text that is not of another known kind, by its start and the name of the file. `whole`: it is all there is.
pub(in crate::data) fn sniff(
    sample: &[u8],
    whole: bool,
    extension: Option<&str>,
) -> Option<Format> {
    match extension {
        Some("csv") => return Some(Format::Csv),
        Some("tsv" | "tab") => return Some(Format::Tsv),
        Some("jsonl" | "ndjson" | "json") => return Some(Format::JsonLines),
        _ => {}
    }
    let first = sample.trim_ascii_start();
    if first.starts_with(b"{") {
        return Some(Format::JsonLines);
    }
    if first.starts_with(b"__label__") || extension == Some("txt") {
        let tabs = || text::tokens(first).count() > 1 && csv::looks_like_csv(sample, whole);
        let is_table = !first.starts_with(b"__label__") && has_tabs(sample) && tabs();
        return Some(if is_table { Format::Tsv } else { Format::Text });
    }
    csv::looks_like_csv(sample, whole).then_some(Format::Csv)
}

/// Whether most lines have a tab.
fn has_tabs(sample: &[u8]) -> bool {
    let lines = crate::data::input::lines(sample);
    let (mut all, mut with) = (0, 0);
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        all += 1;
        with += usize::from(line.contains(&b'\t'));
    }
    10 * with >= 9 * all && all > 0
}
