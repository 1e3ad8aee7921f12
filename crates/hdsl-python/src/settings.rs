//! Settings of Python as the library's configurations.

use crate::errors::to_python;
use hdsl::TrainConfig;
use hdsl::checkpoint::Checkpoint;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// Settings from JSON, which Python sends with the names of the library.
pub(crate) fn from_json<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(not_settings)
}

fn not_settings(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The configuration of a training. `fields` is JSON: those fields of [`TrainConfig`] that Python sets.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    fields: String,
    /// The source of the triplets as text, as on the command line.
    triplets: String,
    /// A limit of this machine, which a configuration does not contain when it is stored.
    memory: Option<u64>,
    /// The path of a checkpoint, and the seconds between two writes.
    checkpoint: Option<(PathBuf, f64)>,
}

impl Settings {
    pub(crate) fn config(&self) -> PyResult<TrainConfig> {
        let defaults = serde_json::to_string(&TrainConfig::new(1.0)).map_err(not_settings)?;
        let mut fields: Map<String, Value> = from_json(&defaults)?;
        fields.extend(from_json::<Map<String, Value>>(&self.fields)?);
        let config = serde_json::from_value(Value::Object(fields));
        let mut config: TrainConfig = config.map_err(not_settings)?;
        config.triplets = self.triplets.parse().map_err(to_python)?;
        config.memory_limit = self.memory;
        if let Some((path, seconds)) = &self.checkpoint {
            let mut checkpoint = Checkpoint::new(path);
            checkpoint.every = Duration::try_from_secs_f64(*seconds)
                .map_err(|_| PyValueError::new_err("checkpoint: expected seconds from 0"))?;
            config.checkpoint = Some(checkpoint);
        }
        Ok(config)
    }
}
