//! Settings of Python as the library's configurations.

use crate::errors::to_python;
use hdsl::{PredictionRule, Result, SolverParams, TrainParams};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use std::time::Duration;

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
    pub(crate) fn params(&self) -> PyResult<TrainParams> {
        self.checked().map_err(to_python)
    }

    fn checked(&self) -> Result<TrainParams> {
        let scale = self.scale.first().copied().unwrap_or(f64::NAN);
        let mut solver = SolverParams::new(scale)
            .loss(self.loss.parse()?)
            .search(self.search.parse()?)
            .step_rule(self.steps.parse()?)
            .max_iter(self.max_iter)
            .seed(self.seed)
            .certify(self.certify);
        if let Some(batch) = self.batch {
            solver = solver.batch(batch);
        }
        if let Some(tolerance) = self.tol {
            solver = solver.tolerance(tolerance);
        }
        if let Some(features) = self.max_features {
            solver = solver.max_features(features);
        }
        if let Some(seconds) = self.time {
            let limit = Duration::try_from_secs_f64(seconds)
                .map_err(|_| hdsl::Error::param("time", seconds, "seconds, 0 or more"))?;
            solver = solver.time_limit(limit);
        }
        if let Some(bytes) = self.memory {
            solver = solver.memory_limit(bytes);
        }
        let mut params = TrainParams::new(scale);
        params.scales = self.scale.clone();
        params.preprocess = self.preprocess.parse()?;
        params.triplets = self.triplets.parse()?;
        params.solver = solver;
        params.rule = PredictionRule {
            k: self.n_neighbors,
            vote: self.vote.parse()?,
            normalization: self.normalization.parse()?,
        };
        params.again.rounds = self.mining_rounds;
        params.last_iter = self.last_round_iter;
        params.models = self.n_estimators;
        params.eval_every = self.eval_every;
        params.patience = self.patience;
        Ok(params)
    }
}
