//! A similarity together with the rows among which neighbors are searched.

use super::{Reader, check_values, note_unseen, read_model};
use crate::args::{ModelArg, RankingArgs};
use crate::failure::Failure;
use crate::output::Log;
use hdsl::{
    Dataset, Dot, Labels, Model, PredictionRule, Preprocess, Preprocessor, Rows, Similarity,
};
use std::path::Path;

/// A model or the plain dot product, the preprocessing it needs, and the training rows.
pub(crate) struct Ranker<'a> {
    log: &'a Log,
    reader: Reader<'a>,
    train_path: &'a Path,
    train: Dataset,
    /// The preprocessing, fitted on training rows.
    pub(crate) preprocess: Preprocessor,
    /// The model, unless the dot product was asked for.
    pub(crate) model: Option<Model>,
}

impl<'a> Ranker<'a> {
    /// Reads the model, if there is one, and the training rows.
    pub(crate) fn open(args: &'a RankingArgs, log: &'a Log) -> Result<Self, Failure> {
        let train_path = args.train.as_deref().ok_or_else(|| {
            Failure::usage("--train FILE is missing: the rows among which neighbors are searched")
        })?;
        Self::on_rows(args, train_path, log)
    }

    /// Reads the model, if there is one, and rows in place of those of `--train`.
    pub(crate) fn on_rows(
        args: &'a RankingArgs,
        train_path: &'a Path,
        log: &'a Log,
    ) -> Result<Self, Failure> {
        let mut reader = Reader::new(&args.read, log);
        let model = match &args.model {
            ModelArg::Identity if args.point.is_given() => {
                return Err(Failure::usage(
                    "the dot product has no path: --max-features, --max-atoms and --iteration need a model",
                ));
            }
            ModelArg::File(_) if args.preprocess.is_some() => {
                return Err(Failure::usage(
                    "--preprocess is for `identity` only: a model contains its preprocessing",
                ));
            }
            ModelArg::Identity => None,
            ModelArg::File(file) => Some(read_model(file, &args.point, log)?),
        };
        let labels = args.train_labels.as_ref();
        let train = match &model {
            Some(model) => {
                reader.number_as_model(model);
                let mut train = reader.data(train_path, labels)?;
                reader.append(&mut train, train_path, "--train-labels", &args.added)?;
                train
            }
            None => reader.training(train_path, labels, "--train-labels", &args.added)?,
        };
        let preprocess = match &model {
            Some(model) => model.preprocess().clone(),
            None => {
                let kind = args.preprocess.unwrap_or(Preprocess::Max);
                Preprocessor::fit(kind, &train.rows)
            }
        };
        Ok(Self {
            log,
            reader,
            train_path,
            train,
            preprocess,
            model,
        })
    }

    /// The learned similarity or the dot product.
    pub(crate) fn similarity(&self) -> &dyn Similarity {
        match &self.model {
            Some(model) => model.similarity(),
            None => &Dot,
        }
    }

    /// The model's prediction rule, or the default one.
    pub(crate) fn rule(&self) -> PredictionRule {
        self.model
            .as_ref()
            .map_or_else(PredictionRule::default, Model::rule)
    }

    /// The training rows as they were read.
    pub(crate) fn train(&self) -> &Dataset {
        &self.train
    }

    /// The labels of the training rows, which predictions need.
    pub(crate) fn labels(&self) -> Result<&Labels, Failure> {
        let missing = || Failure::no_labels(self.train_path, "--train-labels");
        self.train.labels.as_ref().ok_or_else(missing)
    }

    /// The training rows, preprocessed.
    pub(crate) fn train_rows(&self) -> Result<Rows, Failure> {
        self.prepare(self.train_path, &self.train)
    }

    /// Reads rows to be ranked, and preprocesses them.
    pub(crate) fn queries(&mut self, path: &Path) -> Result<Rows, Failure> {
        let data = self.reader.data(path, None)?;
        self.prepare(path, &data)
    }

    /// Reads rows with labels, and preprocesses them.
    pub(crate) fn labeled_queries(
        &mut self,
        path: &Path,
        labels: Option<&std::path::PathBuf>,
        option: &str,
    ) -> Result<(Rows, Labels), Failure> {
        let (data, labels) = self.reader.labeled(path, labels, option)?;
        Ok((self.prepare(path, &data)?, labels))
    }

    /// Preprocesses rows. Features that training did not have are ignored, and counted under `-v`.
    fn prepare(&self, path: &Path, data: &Dataset) -> Result<Rows, Failure> {
        check_values(self.preprocess.kind(), path, &data.rows)?;
        note_unseen(self.log, path, &data.rows, self.preprocess.n_features());
        Ok(self.preprocess.apply(&data.rows))
    }
}
