//! Index files, and the rows that are put into them.

use super::{Reader, check_values, note_unseen};
use crate::args::{ColumnArgs, ModelArg, RankingArgs, ReadArgs, heading::FILES};
use crate::failure::Failure;
use crate::output::Log;
use clap::{Args, ValueHint};
use hdsl::index::{NewRows, is_index};
use hdsl::{Dataset, Index, Model, Normalization};
use std::path::{Path, PathBuf};

/// Rows to put into an index.
#[derive(Args, Debug, Clone)]
pub(crate) struct IndexedArgs {
    /// Rows or records to index
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    rows: PathBuf,
    /// Ids of the rows, one per line, all different [default: the ids of records, or row numbers]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    ids: Option<PathBuf>,
    /// Texts to show for the rows, one per line [default: the texts of records]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    texts: Option<PathBuf>,
    /// Labels of the rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    labels: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
}

/// Rows with what is known about them.
pub(crate) struct Indexed {
    data: Dataset,
    ids: Option<Vec<String>>,
    texts: Option<Vec<String>>,
}

impl IndexedArgs {
    /// Reads the rows and what is known about them.
    pub(crate) fn read(
        &self,
        read: &ReadArgs,
        model: &Model,
        log: &Log,
    ) -> Result<Indexed, Failure> {
        let reader = Reader::new(read, log).with_columns(&self.columns);
        let mut reader = reader.keep_texts();
        reader.number_as_model(model);
        let data = reader.data(&self.rows, self.labels.as_ref())?;
        check_values(model.preprocess().kind(), &self.rows, &data.rows)?;
        note_unseen(log, &self.rows, &data.rows, model.n_features());
        let records = data.records.as_ref();
        let own_ids = records.and_then(|records| records.ids.clone());
        let own_texts = records.and_then(|records| records.texts.clone());
        let lines = |path: &Option<PathBuf>, what: &str| -> Result<_, Failure> {
            let Some(path) = path else { return Ok(None) };
            let lines = hdsl::data::read_lines(path)?;
            let n_rows = data.rows.n_rows();
            if lines.len() != n_rows {
                let message = format!("has {} {what} for {n_rows} rows", lines.len());
                return Err(Failure::file(path, message));
            }
            Ok(Some(lines))
        };
        if data.labels.is_none() {
            log.note(format!(
                "{}: rows have no labels, so that `predict` cannot use them",
                self.rows.display()
            ));
        }
        Ok(Indexed {
            ids: lines(&self.ids, "ids")?.or(own_ids),
            texts: lines(&self.texts, "texts")?.or(own_texts),
            data,
        })
    }
}

impl Indexed {
    pub(crate) fn n_rows(&self) -> usize {
        self.data.rows.n_rows()
    }

    pub(crate) fn new_rows(&self, replace: bool) -> NewRows<'_> {
        NewRows {
            labels: self.data.labels.as_ref(),
            ids: self.ids.as_deref(),
            texts: self.texts.as_deref(),
            replace,
            ..NewRows::new(&self.data.rows)
        }
    }
}

/// The index that a command searches instead of training rows: in place of the model, or after `--train` beside its model.
pub(crate) fn ranking_index(args: &RankingArgs, log: &Log) -> Result<Option<Index>, Failure> {
    let ModelArg::File(model) = &args.model else {
        return Ok(None);
    };
    let others = [
        (args.preprocess.is_some(), "--preprocess"),
        (args.train_labels.is_some(), "--train-labels"),
        (args.added.add.is_some(), "--add"),
    ];
    let refuse = |path: &Path, others: &[(bool, &str)]| match others.iter().find(|other| other.0) {
        Some((_, option)) => Err(Failure::file(
            path,
            format!("is an index, which contains its model and its rows: {option} is not for it"),
        )),
        None => Ok(()),
    };
    if is_index(model) {
        refuse(model, &others)?;
        refuse(model, &[(args.train.is_some(), "--train")])?;
        let options = "--max-features, --max-atoms or --iteration";
        refuse(model, &[(args.point.is_given(), options)])?;
        return Ok(Some(Index::open(model)?));
    }
    let Some(train) = args.train.as_deref().filter(|path| is_index(path)) else {
        return Ok(None);
    };
    refuse(train, &others)?;
    let index = Index::open(train)?;
    let same = super::read_model(model, &args.point, log)?.without_training_rows();
    match *index.model() == same {
        true => Ok(Some(index)),
        false => Err(Failure::file(
            train,
            format!("is an index of another model than {}", model.display()),
        )),
    }
}

/// Changes an index file.
pub(crate) fn edit_index<T>(
    path: &Path,
    change: impl FnOnce(&mut Index) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut edit = Index::edit(path).map_err(|error| match error {
        // Nothing was done yet, so this is wrong usage.
        hdsl::Error::Write { .. } => Failure::usage(error.to_string()),
        error => error.into(),
    })?;
    let result = change(edit.index())?;
    edit.commit()?;
    Ok(result)
}

/// The row with an id, or with a number if the index has no ids.
pub(crate) fn find_row(index: &Index, path: &Path, id: &str) -> Result<u32, Failure> {
    let missing = || Failure::file(path, format!("has no row with the id `{id}`"));
    if index.has_ids() {
        return index.find(id)?.ok_or_else(missing);
    }
    id.parse().map_err(|_| {
        let message = format!("has no ids, and `{id}` is not a row number");
        Failure::file(path, message)
    })
}

/// An index has one normalization; another one needs another index.
pub(crate) fn check_normalization(
    index: &Index,
    wanted: Option<Normalization>,
) -> Result<(), Failure> {
    match wanted.filter(|wanted| *wanted != index.normalization()) {
        Some(wanted) => Err(Failure::usage(format!(
            "--normalization is {wanted}, but the index was built with {}",
            index.normalization()
        ))),
        None => Ok(()),
    }
}

/// Reads raw rows to search for.
pub(crate) fn read_queries(
    mut reader: Reader<'_>,
    model: &Model,
    path: &Path,
    log: &Log,
) -> Result<Dataset, Failure> {
    reader.number_as_model(model);
    let data = reader.data(path, None)?;
    check_values(model.preprocess().kind(), path, &data.rows)?;
    note_unseen(log, path, &data.rows, model.n_features());
    Ok(data)
}
