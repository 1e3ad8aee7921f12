//! A similarity together with the rows among which neighbors are searched.

use super::{Reader, check_values, no_labels, note_unseen, read_model};
use crate::args::{ModelArg, RankingArgs};
use crate::failure::Failure;
use crate::output::Log;
use hdsl::model::TrainingRows;
use hdsl::{
    Dataset, Dot, Labels, Model, PredictionRule, Preprocess, Preprocessor, Rows, Similarity,
};
use std::path::Path;

/// A model or the plain dot product, the preprocessing it needs, and the training rows.
pub(crate) struct Ranker<'a> {
    log: &'a Log,
    reader: Reader<'a>,
    train: Training<'a>,
    /// The preprocessing, fitted on training rows.
    pub(crate) preprocess: Preprocessor,
    /// The model, unless the dot product was asked for.
    pub(crate) model: Option<Model>,
}

/// Where training rows come from.
enum Training<'a> {
    /// A file, and what it contains.
    File(&'a Path, Box<Dataset>),
    /// The model.
    Model,
}

impl<'a> Ranker<'a> {
    /// Reads the model, if there is one, and the training rows, unless the model contains them.
    pub(crate) fn open(args: &'a RankingArgs, log: &'a Log) -> Result<Self, Failure> {
        Self::on(args, args.train.as_deref(), log)
    }

    /// Reads the model, if there is one, and rows in place of those of `--train`.
    pub(crate) fn on_rows(
        args: &'a RankingArgs,
        train_path: &'a Path,
        log: &'a Log,
    ) -> Result<Self, Failure> {
        Self::on(args, Some(train_path), log)
    }

    fn on(args: &'a RankingArgs, path: Option<&'a Path>, log: &'a Log) -> Result<Self, Failure> {
        let mut reader = Reader::new(&args.read, log).with_columns(&args.columns);
        let model = read_similarity(args, log)?;
        if let Some(model) = &model {
            reader.number_as_model(model);
        }
        let train = match (path, &model) {
            (Some(path), _) => read_training(args, path, model.is_some(), &mut reader)?,
            (None, Some(model)) if model.training_rows().is_some() => match args.added.add {
                Some(_) => {
                    return Err(Failure::usage(
                        "--add adds rows to those of --train; pass both",
                    ));
                }
                None => Training::Model,
            },
            (None, _) => {
                let has = match &args.model {
                    ModelArg::Identity => "`identity` has no training rows".to_owned(),
                    ModelArg::File(file) => format!("{} has no training rows", file.display()),
                };
                return Err(Failure::usage(format!(
                    "{has}; pass the rows among which neighbors are searched with --train"
                )));
            }
        };
        let preprocess = match (&model, &train) {
            (None, Training::File(_, train)) => {
                let kind = args.preprocess.unwrap_or(Preprocess::Max);
                Preprocessor::fit(kind, &train.rows)
            }
            (Some(model), _) => model.preprocess().clone(),
            (None, Training::Model) => unreachable!("there is no model"),
        };
        Ok(Self {
            log,
            reader,
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

    /// The number of training rows.
    pub(crate) fn n_train(&self) -> usize {
        match &self.train {
            Training::File(_, train) => train.rows.n_rows(),
            Training::Model => self.training().map_or(0, |training| training.rows.n_rows()),
        }
    }

    fn training(&self) -> Option<&TrainingRows> {
        self.model.as_ref().and_then(Model::training_rows)
    }

    /// The labels of the training rows, if they have any.
    pub(crate) fn known_labels(&self) -> Option<&Labels> {
        match &self.train {
            Training::File(_, train) => train.labels.as_ref(),
            Training::Model => self.training()?.labels.as_ref(),
        }
    }

    /// The names of the training rows, if they have any.
    pub(crate) fn ids(&self) -> Option<&[String]> {
        match &self.train {
            Training::File(_, train) => train.records.as_ref()?.ids.as_deref(),
            Training::Model => self.training()?.ids.as_deref(),
        }
    }

    /// The labels of the training rows, which predictions need.
    pub(crate) fn labels(&self) -> Result<&Labels, Failure> {
        self.known_labels().ok_or_else(|| match &self.train {
            Training::File(path, train) => no_labels(path, train, "--train-labels"),
            Training::Model => Failure::usage(
                "the training rows of the model have no labels; pass labeled rows with --train",
            ),
        })
    }

    /// The training rows, preprocessed.
    pub(crate) fn train_rows(&self) -> Result<Rows, Failure> {
        match (&self.train, self.training()) {
            (Training::File(path, train), _) => self.prepare(path, train),
            (Training::Model, Some(training)) => Ok(self.preprocess.apply(&training.rows)),
            (Training::Model, None) => unreachable!("checked when it was opened"),
        }
    }

    /// Reads rows to be ranked, and preprocesses them.
    pub(crate) fn queries(&mut self, path: &Path) -> Result<Rows, Failure> {
        Ok(self.named_queries(path)?.0)
    }

    /// Reads rows to be ranked, preprocesses them, and gives their names, if they have any.
    pub(crate) fn named_queries(
        &mut self,
        path: &Path,
    ) -> Result<(Rows, Option<Vec<String>>), Failure> {
        let data = self.reader.data(path, None)?;
        let rows = self.prepare(path, &data)?;
        Ok((rows, data.records.and_then(|records| records.ids)))
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

/// The model, or none for the dot product.
fn read_similarity(args: &RankingArgs, log: &Log) -> Result<Option<Model>, Failure> {
    match &args.model {
        ModelArg::Identity if args.point.is_given() => Err(Failure::usage(
            "the dot product has no path: --max-features, --max-atoms and --iteration need a model",
        )),
        ModelArg::File(_) if args.preprocess.is_some() => Err(Failure::usage(
            "--preprocess is for `identity` only: a model contains its preprocessing",
        )),
        ModelArg::Identity => Ok(None),
        ModelArg::File(file) => Ok(Some(read_model(file, &args.point, log)?)),
    }
}

fn read_training<'a>(
    args: &RankingArgs,
    path: &'a Path,
    has_model: bool,
    reader: &mut Reader<'_>,
) -> Result<Training<'a>, Failure> {
    let labels = args.train_labels.as_ref();
    let train = match has_model {
        true => {
            let mut train = reader.data(path, labels)?;
            reader.append(&mut train, path, "--train-labels", &args.added)?;
            train
        }
        false => reader.training(path, labels, "--train-labels", &args.added)?,
    };
    Ok(Training::File(path, Box::new(train)))
}
