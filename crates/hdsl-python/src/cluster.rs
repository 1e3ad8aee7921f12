//! Training over shards on the workers of a cluster, for `hdsl.dask`.

use crate::blocks::Preprocessor;
use crate::errors::to_python;
use crate::listening::{Facts, Listeners, listen};
use crate::matrix::{Copied, Csr, view};
use crate::model::Model;
use crate::settings::Settings;
use crate::training::{Classes, Listening, facts, to_labels};
use crate::work::detached;
use hdsl::cluster::{
    ClusterData, ColumnSums, Link, Prepared, ShardParts, ShardTriplets, WeightSums,
};
use hdsl::{Error, Rows};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::sync::{Mutex, PoisonError};

type Numbers<'py> = Bound<'py, PyArray1<u32>>;
type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// Adds |x| of the rows of a block to sums per feature.
#[pyfunction]
pub(crate) fn add_column_sums<'py>(
    py: Python<'py>,
    features: Numbers<'py>,
    sums: Floats<'py>,
    x: Csr<'py>,
) -> PyResult<(Numbers<'py>, Floats<'py>)> {
    let sums = ColumnSums::from_parts(features.copied()?, sums.copied()?).map_err(to_python)?;
    let parts = x.parts()?;
    let (features, sums) = detached(py, 1, || {
        let mut sums = sums;
        sums.add(view(parts)?);
        Ok(sums.into_parts())
    })?;
    Ok((features.into_pyarray(py), sums.into_pyarray(py)))
}

/// The features that atoms may use, in internal order.
#[pyfunction]
pub(crate) fn feature_order<'py>(
    py: Python<'py>,
    n_features: usize,
    features: Numbers<'py>,
    sums: Floats<'py>,
) -> PyResult<Numbers<'py>> {
    let sums = ColumnSums::from_parts(features.copied()?, sums.copied()?).map_err(to_python)?;
    Ok(sums.order(n_features).map_err(to_python)?.into_pyarray(py))
}

/// A range of training rows with their triplets, on one worker.
#[pyclass(frozen, module = "hdsl._core")]
pub(crate) struct Shard {
    shard: hdsl::cluster::Shard,
    nbytes: usize,
}

/// The rows of a matrix, copied.
fn rows(x: &Csr<'_>) -> PyResult<Rows> {
    let parts = x.parts()?;
    let view = view(parts)?;
    let all: Vec<u32> = (0..parts.n_rows() as u32).collect();
    Ok(view.select(&all))
}

fn starts(of: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let array = of
        .cast::<PyArray1<i64>>()
        .map_err(|_| PyTypeError::new_err("starts of lists are an array of int64"))?;
    Ok(array
        .copied()?
        .into_iter()
        .map(|start| start as usize)
        .collect())
}

fn numbers(of: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let array = of
        .cast::<PyArray1<u32>>()
        .map_err(|_| PyTypeError::new_err("row numbers and classes are arrays of uint32"))?;
    array.copied()
}

fn source(of: &Bound<'_, PyAny>) -> PyResult<ShardTriplets> {
    let of = of
        .cast::<PyTuple>()
        .map_err(|_| PyTypeError::new_err("triplets are a tuple"))?;
    let kind: String = of.get_item(0)?.extract()?;
    match kind.as_str() {
        "random" => Ok(ShardTriplets::Random {
            codes: numbers(&of.get_item(1)?)?,
            per_row: of.get_item(2)?.extract()?,
            seed: of.get_item(3)?.extract()?,
        }),
        "neighbors" => Ok(ShardTriplets::Neighbors {
            target_starts: starts(&of.get_item(1)?)?,
            targets: numbers(&of.get_item(2)?)?,
            impostor_starts: starts(&of.get_item(3)?)?,
            impostors: numbers(&of.get_item(4)?)?,
        }),
        "list" => {
            let weights = of.get_item(4)?;
            Ok(ShardTriplets::List {
                triplets: list([&of.get_item(1)?, &of.get_item(2)?, &of.get_item(3)?])?,
                weights: match weights.is_none() {
                    true => None,
                    false => Some(floats(&weights)?),
                },
            })
        }
        other => Err(PyValueError::new_err(format!(
            "there are no {other} triplets"
        ))),
    }
}

fn floats(of: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let array = of.cast::<PyArray1<f64>>();
    let array = array.map_err(|_| PyTypeError::new_err("weights are an array of float64"))?;
    array.copied()
}

fn list(columns: [&Bound<'_, PyAny>; 3]) -> PyResult<Vec<(u32, u32, u32)>> {
    let [anchors, nears, fars] = columns.map(numbers);
    let (anchors, nears, fars) = (anchors?, nears?, fars?);
    if nears.len() != anchors.len() || fars.len() != anchors.len() {
        return Err(PyValueError::new_err(
            "the columns of triplets differ in length",
        ));
    }
    let others = nears.into_iter().zip(fars);
    Ok(anchors
        .into_iter()
        .zip(others)
        .map(|(a, (n, f))| (a, n, f))
        .collect())
}

#[pymethods]
impl Shard {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        x: Csr<'_>,
        row_numbers: Numbers<'_>,
        own: (u32, u32),
        n_rows: usize,
        features: Numbers<'_>,
        triplets: &Bound<'_, PyAny>,
        loss: &str,
        n_threads: usize,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let triplets = match triplets.cast::<PyList>() {
            Ok(several) => several
                .iter()
                .map(|one| source(&one))
                .collect::<PyResult<_>>()?,
            Err(_) => vec![source(triplets)?],
        };
        let rows = rows(&x)?;
        let nbytes = 12 * rows.nnz();
        let parts = ShardParts {
            rows,
            numbers: row_numbers.copied()?,
            own: own.0..own.1,
            n_rows,
            features: features.copied()?,
            triplets,
            loss: loss.parse().map_err(to_python)?,
            n_threads,
            memory_limit: memory,
        };
        drop(x);
        let shard = py
            .detach(|| hdsl::cluster::Shard::new(parts))
            .map_err(to_python)?;
        let nbytes = nbytes + 40 * shard.n_triplets();
        Ok(Self { shard, nbytes })
    }

    /// Answers a message of the coordinator.
    fn answer<'py>(&self, py: Python<'py>, request: Vec<u8>) -> PyResult<Bound<'py, PyBytes>> {
        let answer = py
            .detach(|| self.shard.answer(&request))
            .map_err(to_python)?;
        Ok(PyBytes::new(py, &answer))
    }

    #[getter]
    fn n_triplets(&self) -> usize {
        self.shard.n_triplets()
    }

    #[getter]
    fn total_weight(&self) -> f64 {
        self.shard.total_weight()
    }

    /// About how many bytes the shard takes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn base_margins(&self, py: Python<'_>, every: usize, offset: usize) -> PyResult<(f64, usize)> {
        py.detach(|| self.shard.base_margins(every, offset))
            .map_err(to_python)
    }

    fn set_validation(
        &self,
        x: Csr<'_>,
        items: Csr<'_>,
        n_neighbors: usize,
        normalization: &str,
    ) -> PyResult<()> {
        let normalization = normalization.parse().map_err(to_python)?;
        let (x, items) = (rows(&x)?, rows(&items)?);
        self.shard
            .set_validation(x, items, n_neighbors, normalization)
            .map_err(to_python)
    }

    fn set_held_out(
        &self,
        x: Csr<'_>,
        anchors: &Bound<'_, PyAny>,
        nears: &Bound<'_, PyAny>,
        fars: &Bound<'_, PyAny>,
        weights: Option<Floats<'_>>,
        normalization: &str,
    ) -> PyResult<()> {
        let normalization = normalization.parse().map_err(to_python)?;
        let triplets = list([anchors, nears, fars])?;
        let weights: Option<Vec<f64>> = weights.map(|w| w.copied()).transpose()?;
        let rows = rows(&x)?;
        self.shard
            .set_held_out(rows, &triplets, weights.as_deref(), normalization)
            .map_err(to_python)
    }
}

/// The `Cluster` of `hdsl.dask`.
struct PythonLink {
    cluster: Py<PyAny>,
    /// The exception behind the last error.
    raised: Mutex<Option<PyErr>>,
}

impl PythonLink {
    /// Calls a method. Exceptions become errors, and are kept.
    fn call<T>(
        &self,
        lost: fn(String) -> Error,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> hdsl::Result<T> {
        Python::attach(|py| {
            call(self.cluster.bind(py)).map_err(|raised| {
                let text = raised.value(py).to_string();
                let name = raised.get_type(py).name();
                let is_lost = name.is_ok_and(|name| name == "WorkerLost");
                if is_lost {
                    return Error::WorkerLost(text);
                }
                let error = match raised.is_instance_of::<PyKeyboardInterrupt>(py) {
                    true => Error::Stopped,
                    false => lost(text),
                };
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                error
            })
        })
    }

    fn take_raised(&self) -> Option<PyErr> {
        self.raised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

fn prepared(of: &Bound<'_, PyAny>) -> PyResult<Prepared> {
    let of = of
        .cast::<PyDict>()
        .map_err(|_| PyTypeError::new_err("expected a dict"))?;
    let wanted = |name: &str| {
        let found = of.get_item(name)?.filter(|value| !value.is_none());
        Ok::<_, PyErr>(found)
    };
    let get = |name: &str| {
        wanted(name)?.ok_or_else(|| PyValueError::new_err(format!("{name} is missing")))
    };
    Ok(Prepared {
        features: numbers(&get("features")?)?,
        n_triplets: get("n_triplets")?.extract()?,
        total_weight: get("total_weight")?.extract()?,
        sums: WeightSums::new(
            get("base_margin")?.extract()?,
            get("n_columns")?.extract()?,
            get("nnz")?.extract()?,
            get("squares")?.extract()?,
        ),
        codes: wanted("codes")?.map(|codes| numbers(&codes)).transpose()?,
        given: wanted("given")?.map(|n| n.extract()).transpose()?,
    })
}

impl Link for PythonLink {
    fn prepare(&self, seed: u64, subsample: f64) -> hdsl::Result<Prepared> {
        self.call(Error::Data, |cluster| {
            prepared(&cluster.call_method1("prepare", (seed, subsample))?)
        })
    }

    fn mine(&self, model: hdsl::Model) -> hdsl::Result<Prepared> {
        self.call(Error::Data, |cluster| {
            prepared(&cluster.call_method1("mine", (Model::new(model),))?)
        })
    }

    fn ask(&self, message: &[u8]) -> hdsl::Result<Vec<Vec<u8>>> {
        self.call(Error::Data, |cluster| {
            let message = PyBytes::new(cluster.py(), message);
            let answers = cluster.call_method1("ask", (message,))?;
            let answers = answers.try_iter()?.map(|answer| {
                let answer = answer?;
                let bytes = answer.cast::<PyBytes>();
                let bytes = bytes.map_err(|_| PyTypeError::new_err("an answer is bytes"))?;
                Ok(bytes.as_bytes().to_vec())
            });
            answers.collect()
        })
    }

    fn recover(&self, reason: &str) -> hdsl::Result<()> {
        self.call(Error::DataLost, |cluster| {
            cluster.call_method1("recover", (reason,)).map(|_| ())
        })
    }
}

/// Learns a similarity over the shards of a cluster. Returns the model and facts about the run, as `train` does.
#[pyfunction]
#[pyo3(signature = (
    settings, cluster, *, n_rows, n_features, preprocessor, classes=None, valid_classes=None, names=None, start=None,
    each=None, snapshots=false, progress=None
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train_sharded<'py>(
    py: Python<'py>,
    settings: Settings,
    cluster: Py<PyAny>,
    n_rows: usize,
    n_features: usize,
    preprocessor: &Bound<'py, Preprocessor>,
    classes: Option<Classes<'py>>,
    valid_classes: Option<Classes<'py>>,
    names: Option<Vec<String>>,
    start: Option<&Bound<'py, Model>>,
    each: Option<Py<PyAny>>,
    snapshots: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Model, Bound<'py, PyDict>)> {
    let config = settings.config()?;
    let checkpoint = config.checkpoint.clone();
    let labels = classes.map(|c| to_labels(c, n_rows)).transpose()?;
    let truth = valid_classes.map(|classes| {
        let n = classes.1.len()?;
        to_labels(classes, n)
    });
    let truth = truth.transpose()?;
    let start = start.map(|start| {
        let model = start.get().get();
        model.path().at(model.chosen()).map_err(to_python)
    });
    let start = start.transpose()?;
    let link = PythonLink {
        cluster,
        raised: Mutex::new(None),
    };
    let listeners = Listeners {
        each,
        progress,
        snapshots,
    };
    let preprocessor = preprocessor.get().get().clone();
    let (outcome, interrupted) = py.detach(|| {
        listen(&listeners, 1, |watch| {
            let data = ClusterData {
                n_features,
                labels: labels.as_ref(),
                truth: truth.as_ref(),
                preprocessor: &preprocessor,
                names: names.as_deref(),
                start: start.as_ref(),
            };
            let mut observer = Listening {
                watch,
                facts: Facts::default(),
            };
            let trained = hdsl::cluster::train(&data, &config, &link, &mut observer);
            let mut done =
                trained.map_err(|error| link.take_raised().unwrap_or_else(|| to_python(error)))?;
            done.trained.model = done.trained.model.numbered_by_position();
            Ok(done)
        })
    })?;
    // Python has the model now; saving it is up to the caller.
    if let (Some(checkpoint), false, None) = (&checkpoint, interrupted, &outcome.error) {
        checkpoint.remove();
    }
    let facts = facts(py, &outcome.trained)?;
    facts.set_item("interrupted", interrupted)?;
    let error = outcome
        .error
        .map(|error| link.take_raised().unwrap_or_else(|| to_python(error)));
    facts.set_item("error", error.map(|error| error.into_value(py)))?;
    Ok((Model::new(outcome.trained.model), facts))
}
