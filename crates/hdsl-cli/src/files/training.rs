//! The data of a training.

use super::{Reader, note_unseen, read_names};
use crate::args::{AddedRows, TrainingFiles, ValidationFiles};
use crate::failure::Failure;
use crate::output::Log;
use hdsl::Dataset;

/// What the files of a training contain.
pub(crate) struct TrainingData {
    /// Training rows, those of `--add` included.
    pub(crate) train: Dataset,
    /// Validation rows of a file.
    pub(crate) valid: Option<Dataset>,
    /// Feature names.
    pub(crate) names: Option<Vec<String>>,
    /// Whether features have no written number in the training file.
    pub(crate) by_position: bool,
}

impl TrainingData {
    /// Reads the files.
    pub(crate) fn read(
        files: &TrainingFiles,
        validation: &ValidationFiles,
        added: &AddedRows,
        log: &Log,
    ) -> Result<Self, Failure> {
        let mut reader = Reader::new(&files.read, log);
        let labels = files.labels.as_ref();
        let train = reader.training(&files.train, labels, "--labels", added)?;
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
            train,
            valid,
            names,
        })
    }
}
