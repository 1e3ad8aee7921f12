//! Data and models from files.

use crate::args::{AddedRows, ColumnArgs, PathPoint, ReadArgs, TextArgs};
use crate::failure::Failure;
use crate::output::{Log, count};
use hdsl::data::{ColumnGuess, RecordOptions, RecordVectorizer, Role, VectorizeOptions};
use hdsl::index::is_index;
use hdsl::{
    Dataset, Format, IndexBase, Labels, Model, Preprocess, ReadOptions, Rows, read_dataset,
};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads the data files of one command: all with the same flags and the same numbering of features.
pub(crate) struct Reader<'a> {
    args: &'a ReadArgs,
    log: &'a Log,
    base: Option<IndexBase>,
    stdin_used: bool,
    columns: Option<&'a ColumnArgs>,
    text: VectorizeOptions,
    /// What turns records into rows: that of the model, or that of the file read first.
    vectorizer: Option<Arc<RecordVectorizer>>,
    /// Whether the vectorizer is that of a model or of --vocab.
    is_given: bool,
    /// Whether there is a model that takes no records.
    takes_rows_only: bool,
    keep_texts: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(args: &'a ReadArgs, log: &'a Log) -> Self {
        Self {
            args,
            log,
            base: None,
            stdin_used: false,
            columns: None,
            text: VectorizeOptions::default(),
            vectorizer: None,
            is_given: false,
            takes_rows_only: false,
            keep_texts: false,
        }
    }

    /// With options about columns.
    pub(crate) fn with_columns(mut self, columns: &'a ColumnArgs) -> Self {
        self.columns = Some(columns);
        self
    }

    /// With options about texts. Reads the vocabulary, if one is given.
    pub(crate) fn with_text(mut self, text: &TextArgs) -> Result<Self, Failure> {
        self.text = text.options()?;
        if let Some(path) = &text.vocab {
            self.vectorizer = Some(Arc::new(RecordVectorizer::read(path)?));
            self.is_given = true;
        }
        Ok(self)
    }

    /// Keeps the texts of records.
    pub(crate) fn keep_texts(mut self) -> Self {
        self.keep_texts = true;
        self
    }

    /// What turns records into rows, once it is known.
    pub(crate) fn vectorizer(&self) -> Option<&Arc<RecordVectorizer>> {
        self.vectorizer.as_ref()
    }

    /// From now on, features are numbered as in the training files of the model, unless a flag says otherwise.
    pub(crate) fn number_as_model(&mut self, model: &Model) {
        let parts = model.parts();
        self.base = match (parts.numbered_by_position, parts.zero_based) {
            (true, _) => None,
            (false, true) => Some(IndexBase::Zero),
            (false, false) => Some(IndexBase::One),
        };
        self.vectorizer = model.vectorizer().cloned();
        self.is_given = self.vectorizer.is_some();
        self.takes_rows_only = self.vectorizer.is_none();
    }

    /// Whether features have no written number in this file, so that it does not tell how others number them.
    pub(crate) fn is_numbered_by_position(&self, path: &Path) -> bool {
        match self.args.format {
            Some(format) => format == Format::Npz,
            None => {
                let name = path.to_string_lossy().to_ascii_lowercase();
                name.ends_with(".npz")
                    || name.contains(".npz.")
                    || first_bytes(path) == Some(*b"PK\x03\x04")
            }
        }
    }

    /// Reads one file. Notes of the reader are printed under `-v`.
    pub(crate) fn data(
        &mut self,
        path: &Path,
        labels: Option<&PathBuf>,
    ) -> Result<Dataset, Failure> {
        for file in [Some(path), labels.map(PathBuf::as_path)]
            .into_iter()
            .flatten()
        {
            self.claim_stdin(file)?;
        }
        let columns = self.columns;
        let is_bound = self.vectorizer.as_ref().is_some_and(|v| v.is_bound());
        if self.is_given && is_bound && columns.is_some_and(ColumnArgs::has_features) {
            return Err(Failure::usage(
                "the columns of features are those of the model or of --vocab; of the columns, only --label and --id can \
                 be given",
            ));
        }
        let options = ReadOptions {
            format: self.args.format,
            labels: labels.cloned(),
            index_base: self.args.index_base().or(self.base),
            n_features: None,
            records: RecordOptions {
                roles: columns.map(ColumnArgs::roles).unwrap_or_default(),
                dialect: columns.map(ColumnArgs::dialect).unwrap_or_default(),
                text: self.text.clone(),
                vectorizer: self.vectorizer.clone(),
                keep_texts: self.keep_texts,
            },
        };
        let data = read_dataset(path, &options)?;
        if self.takes_rows_only && data.records.is_some() {
            return Err(Failure::file(
                path,
                "has records, but the model was trained on rows of numbered features and does not say how records become \
                 rows",
            ));
        }
        if let (Some(columns), None) = (columns, &data.records)
            && columns.roles().is_given()
        {
            return Err(Failure::file(
                path,
                "has rows of numbered features, which have no columns; --label, --text and the like are for records",
            ));
        }
        data.notes.iter().for_each(|note| self.log.detail(note));
        self.log.detail(format!(
            "{}: read {}, {}",
            path.display(),
            count(data.rows.n_rows(), "row"),
            count(data.rows.n_features(), "feature")
        ));
        Ok(data)
    }

    /// Reads labeled rows. `option` is the flag for a file of labels.
    pub(crate) fn labeled(
        &mut self,
        path: &Path,
        labels: Option<&PathBuf>,
        option: &str,
    ) -> Result<(Dataset, Labels), Failure> {
        let data = self.data(path, labels)?;
        match data.labels.clone() {
            Some(labels) => Ok((data, labels)),
            None => Err(no_labels(path, &data, option)),
        }
    }

    /// Reads training rows, those of `--add` included. Files read later number their features alike.
    pub(crate) fn training(
        &mut self,
        path: &Path,
        labels: Option<&PathBuf>,
        option: &str,
        added: &AddedRows,
    ) -> Result<Dataset, Failure> {
        let mut data = self.data(path, labels)?;
        if let Some(records) = &data.records {
            self.vectorizer = Some(records.vectorizer.clone());
            if let Some(guess) = guessed(&records.columns) {
                self.log.note(format!("{}: {guess}", path.display()));
            }
        }
        self.base = (!self.is_numbered_by_position(path)).then_some(data.index_base);
        self.append(&mut data, path, option, added)?;
        Ok(data)
    }

    /// Appends the rows of `--add`, if there are any. Both files have labels, or neither has.
    pub(crate) fn append(
        &mut self,
        data: &mut Dataset,
        path: &Path,
        option: &str,
        added: &AddedRows,
    ) -> Result<(), Failure> {
        let Some(more_path) = &added.add else {
            return Ok(());
        };
        let more = self.data(more_path, added.add_labels.as_ref())?;
        match (&mut data.labels, &more.labels) {
            (Some(labels), Some(others)) => labels.append(others),
            (None, None) => {}
            (None, Some(_)) => return Err(no_labels(path, data, option)),
            (Some(_), None) => return Err(no_labels(more_path, &more, "--add-labels")),
        }
        data.rows.append(more.rows.view());
        if let (Some(records), Some(more)) = (&mut data.records, more.records) {
            records.ids = match (records.ids.take(), more.ids) {
                (Some(mut ids), Some(more)) => {
                    ids.extend(more);
                    Some(ids)
                }
                _ => None,
            };
        }
        data.queries = None;
        Ok(())
    }

    /// Standard input can be read only once.
    fn claim_stdin(&mut self, path: &Path) -> Result<(), Failure> {
        if path == Path::new("-") && std::mem::replace(&mut self.stdin_used, true) {
            return Err(Failure::usage(
                "standard input (`-`) is named twice, but can be read only once",
            ));
        }
        Ok(())
    }
}

/// The failure of a command that needs labels. `option` is the flag for a file of labels.
pub(crate) fn no_labels(path: &Path, data: &Dataset, option: &str) -> Failure {
    match &data.records {
        None => Failure::no_labels(path, option),
        Some(records) => {
            let reason = records.unlabeled.clone();
            let none = || "has no labels; pass the column of labels with --label".to_owned();
            Failure::file(path, reason.unwrap_or_else(none))
        }
    }
}

/// What columns were guessed to be, in words.
fn guessed(columns: &[ColumnGuess]) -> Option<String> {
    let used = columns.iter().filter(|c| c.role != Role::Ignored);
    let words = |column: &ColumnGuess| format!("{} = `{}`", column.role, column.name);
    let guessed: Vec<String> = used.filter(|c| c.guessed).map(words).collect();
    const SHOWN: usize = 8;
    let more = match guessed.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let some = guessed[..guessed.len().min(SHOWN)].join(", ");
    (!guessed.is_empty())
        .then(|| format!("guessed: {some}{more}; `hdsl inspect` shows all columns"))
}

/// The first bytes of a file, if it has so many. Standard input is left alone: what is read from it here would be missing
/// later.
fn first_bytes<const N: usize>(path: &Path) -> Option<[u8; N]> {
    let mut start = [0; N];
    let is_file = path != Path::new("-") && std::fs::metadata(path).is_ok_and(|m| m.is_file());
    let mut file = is_file.then(|| std::fs::File::open(path).ok()).flatten()?;
    file.read_exact(&mut start).ok()?;
    Some(start)
}

/// Whether a file is a model, by name or by content: a safetensors file starts with the length of its JSON header.
pub(crate) fn is_model(path: &Path) -> bool {
    let is_safetensors = |start: [u8; 9]| {
        let [length @ .., brace] = start;
        brace == b'{' && u64::from_le_bytes(length) < 1 << 32
    };
    path.extension().is_some_and(|e| e == "hdsl") || first_bytes(path).is_some_and(is_safetensors)
}

/// Counts under `-v` the values of features beyond those of the model; they are ignored.
pub(crate) fn note_unseen(log: &Log, path: &Path, rows: &Rows, n_features: usize) {
    let indices = rows.indices().iter();
    let unseen = indices.filter(|&&i| i as usize >= n_features).count();
    if unseen > 0 {
        log.detail(format!(
            "{}: ignored {} of features above the {n_features} of the training rows",
            path.display(),
            count(unseen, "value")
        ));
    }
}

/// Checks that the rows of a file have values that the preprocessing is for.
pub(crate) fn check_values(kind: Preprocess, path: &Path, rows: &Rows) -> Result<(), Failure> {
    kind.check(rows).map_err(|error| error.in_file(path).into())
}

/// Reads a model and goes to the point of its path that is asked for.
pub(crate) fn read_model(path: &Path, point: &PathPoint, log: &Log) -> Result<Model, Failure> {
    let model = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::usage(format!("standard input: cannot read: {e}")))?;
        Model::from_bytes(path, &bytes)?
    } else if is_index(path) {
        return Err(Failure::file(
            path,
            "is an index, expected a model; `hdsl index` has the commands for it",
        ));
    } else {
        Model::read(path)?
    };
    let model = match (point.max_features, point.max_atoms, point.iteration) {
        (Some(n), _, _) => model.with_max_features(n)?,
        (_, Some(n), _) => model.with_max_atoms(n)?,
        (_, _, Some(n)) => model.at(n)?,
        _ => model,
    };
    log.detail(format!(
        "{}: iteration {} of {}, {}, {}",
        path.display(),
        model.chosen(),
        model.path().len(),
        count(model.similarity().atoms().len(), "atom"),
        count(model.similarity().n_features_used(), "feature")
    ));
    Ok(model)
}

/// Feature names, one per line. Too few are those of another data set; more may be features that do not occur.
pub(crate) fn read_names(path: &Path, n_features: usize) -> Result<Vec<String>, Failure> {
    let names = hdsl::data::read_names(path)?;
    match names.len() < n_features {
        false => Ok(names),
        true => Err(Failure::file(
            path,
            format!(
                "has {}, expected one for each of {}",
                count(names.len(), "name"),
                count(n_features, "feature")
            ),
        )),
    }
}
