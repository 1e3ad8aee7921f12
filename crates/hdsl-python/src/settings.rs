//! Settings of Python as the library's configurations.

use crate::errors::to_python;
use hdsl::model::Validation;
use hdsl::{PredictionRule, Result, TrainConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

/// Settings from JSON, which Python sends with the names of the library.
pub(crate) fn from_json<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The parameters of an estimator after scikit-learn's own checks.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    scale: Vec<f64>,
    pub(crate) triplets: String,
    preprocess: String,
    loss: String,
    search: String,
    steps: String,
    batch: Option<usize>,
    max_iter: usize,
    mining_rounds: usize,
    last_round_iter: Option<usize>,
    n_estimators: usize,
    tol: Option<f64>,
    certify: bool,
    max_features: Option<usize>,
    time: Option<f64>,
    memory: Option<u64>,
    n_neighbors: usize,
    vote: String,
    normalization: String,
    eval_every: usize,
    patience: Option<usize>,
    pub(crate) holdout: Option<f64>,
    pub(crate) seed: u64,
}

impl Settings {
    pub(crate) fn config(&self) -> PyResult<TrainConfig> {
        self.parsed().map_err(to_python)
    }

    fn parsed(&self) -> Result<TrainConfig> {
        let mut config = TrainConfig::new(1.0);
        config.lambda = self.scale.clone();
        config.preprocess = self.preprocess.parse()?;
        config.triplets = self.triplets.parse()?;
        config.loss = self.loss.parse()?;
        config.search = self.search.parse()?;
        config.steps = self.steps.parse()?;
        config.batch = self.batch;
        config.max_iter = self.max_iter;
        config.tolerance = self.tol;
        config.certify = self.certify;
        config.max_features = self.max_features;
        config.time_limit = self.time;
        config.memory_limit = self.memory;
        config.seed = self.seed;
        config.mining_rounds = self.mining_rounds;
        config.last_round_iter = self.last_round_iter;
        config.n_estimators = self.n_estimators;
        config.rule = PredictionRule {
            k: self.n_neighbors,
            vote: self.vote.parse()?,
            normalization: self.normalization.parse()?,
        };
        config.eval_every = self.eval_every;
        config.patience = self.patience;
        if let Some(fraction) = self.holdout {
            config.validation = Validation::Holdout(fraction);
        }
        Ok(config)
    }
}
