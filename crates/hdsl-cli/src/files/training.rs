//! The data of a training.

use super::{Reader, note_unseen, read_names};
use crate::args::{AddedRows, TrainingFiles, ValidationFiles};
use crate::failure::Failure;
use crate::output::Log;
use crate::output::count;
use hdsl::data::RecordVectorizer;
use hdsl::{Dataset, Model, Rows};
use std::sync::Arc;

/// What the files of a training contain.
pub(crate) struct TrainingData {
    /// Training rows, those of `--add` included.
    pub(crate) train: Dataset,
    /// All rows of the training files, where some of them were held out and all are saved in the model.
    pub(crate) all: Option<Dataset>,
    /// Validation rows of a file.
    pub(crate) valid: Option<Dataset>,
    /// Feature names.
    pub(crate) names: Option<Vec<String>>,
    /// Whether features have no written number in the training file.
    pub(crate) by_position: bool,
    /// What turned records into rows; also of rows whose vocabulary was given.
    pub(crate) vectorizer: Option<Arc<RecordVectorizer>>,
}

/// Gives rows all the features of a vocabulary.
fn widen(data: &mut Dataset, n_features: usize, files: &TrainingFiles) -> Result<(), Failure> {
    let found = data.rows.n_features();
    if found > n_features {
        let reason = format!(
            "has {}, but the vocabulary of --vocab has {}",
            count(found, "feature"),
            count(n_features, "feature")
        );
        return Err(Failure::file(&files.train, reason));
    }
    data.rows.append(Rows::new(n_features).view());
    Ok(())
}

impl TrainingData {
    /// Reads the files.
    pub(crate) fn read(
        files: &TrainingFiles,
        validation: &ValidationFiles,
        added: &AddedRows,
        log: &Log,
    ) -> Result<Self, Failure> {
        let mut reader = Reader::new(&files.read, log)
            .with_columns(&files.columns)
            .with_text(&files.text)?;
        let labels = files.labels.as_ref();
        let mut train = reader.training(&files.train, labels, "--labels", added)?;
        if let Some(vectorizer) = reader.vectorizer() {
            widen(&mut train, vectorizer.n_features(), files)?;
        }
        let n_features = train.rows.n_features();
        let names = files.names.as_deref();
        let names = names.map(|path| read_names(path, n_features)).transpose()?;
        let valid = match &validation.valid {
            Some(path) => {
                let labels = validation.valid_labels.as_ref();
                let (valid, _) = reader.labeled(path, labels, "--valid-labels")?;
                note_unseen(log, path, &valid.rows, n_features);
                Some(valid)
            }
            None => None,
        };
        Ok(Self {
            by_position: reader.is_numbered_by_position(&files.train),
            vectorizer: reader.vectorizer().cloned(),
            train,
            all: None,
            valid,
            names,
        })
    }

    /// The model for records, with its training rows, if it was trained on records. `with_valid`: the validation rows are
    /// training rows of the final model.
    pub(crate) fn finish(
        &self,
        model: Model,
        files: &TrainingFiles,
        with_valid: bool,
    ) -> Result<Model, Failure> {
        let model = match self.by_position {
            true => model.numbered_by_position(),
            false => model,
        };
        let Some(vectorizer) = &self.vectorizer else {
            return Ok(model);
        };
        let model = model.with_vectorizer(vectorizer.clone())?;
        if files.without_rows {
            return Ok(model);
        }
        let train = self.all.as_ref().unwrap_or(&self.train);
        let valid = self.valid.as_ref().filter(|_| with_valid);
        let mut labels = train.labels.clone();
        let Some(valid) = valid else {
            let ids = train.records.as_ref().and_then(|r| r.ids.clone());
            return Ok(model.with_training_rows(train.rows.view(), labels, ids)?);
        };
        let mut rows = train.rows.clone();
        rows.append(valid.rows.view());
        if let (Some(labels), Some(others)) = (&mut labels, &valid.labels) {
            labels.append(others);
        }
        Ok(model.with_training_rows(rows.view(), labels, None)?)
    }
}
