//! Trials of a search in other processes: both ends, between which Python moves bytes.

use crate::errors::to_python;
use crate::listening::{Listeners, Search, listen};
use crate::matrix::{Csr, view};
use crate::training::{Classes, Given, by_position, to_labeled, to_labels, to_triplets};
use crate::tuning::TuneSettings;
use crate::work::detached;
use hdsl::tune::{TrialRunner, TrialTask};
use hdsl::{CancelToken, TrainData};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a thread waits for results until it looks whether the search is to end, in seconds. There is one thread for each
/// trial of a rung.
const PATIENCE: f64 = 0.2;

/// A task for Python: its bytes, the name of what it computes, the name of the task it continues, the name of the triplets
/// it shares with others, the number of models, the rung, and its place in the order of the rung.
type Task<'py> = (
    Bound<'py, PyBytes>,
    String,
    Option<String>,
    Option<String>,
    usize,
    usize,
    usize,
);

/// The side of the search. `submit(tasks)` of the Python object returns a batch; its `wait(seconds)` gives the results
/// that are new, as (place, bytes), and its `cancel()` ends it.
pub(crate) struct Elsewhere {
    runner: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl Elsewhere {
    pub(crate) fn new(runner: Py<PyAny>) -> Self {
        Self {
            runner,
            raised: Mutex::new(None),
        }
    }

    /// The exception that ended the search, if one did.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(
        &self,
        py: Python<'_>,
        tasks: &[&TrialTask],
        cancel: CancelToken<'_>,
        done: &mut dyn FnMut(usize, &[u8]) -> hdsl::Result<()>,
    ) -> PyResult<hdsl::Result<()>> {
        let sent: Vec<Task<'_>> = tasks.iter().map(|task| for_python(py, task)).collect();
        let batch = self.runner.bind(py).call_method1("submit", (sent,))?;
        let mut open = tasks.len();
        while open > 0 {
            // What ends another trial with an exception ends the search.
            if cancel.check().is_err() || self.lock().is_some() {
                batch.call_method0("cancel")?;
                break;
            }
            let ready = batch.call_method1("wait", (PATIENCE,))?;
            for (place, bytes) in ready.extract::<Vec<(usize, Bound<'_, PyBytes>)>>()? {
                open -= 1;
                if let Err(error) = done(place, bytes.as_bytes()) {
                    return Ok(Err(error));
                }
            }
        }
        Ok(Ok(()))
    }
}

fn for_python<'py>(py: Python<'py>, task: &TrialTask) -> Task<'py> {
    (
        PyBytes::new(py, &task.to_bytes()),
        task.name(),
        task.previous(),
        task.shared_triplets(),
        task.n_models(),
        task.rung(),
        task.order(),
    )
}

impl TrialRunner for Elsewhere {
    fn run(
        &self,
        tasks: &[&TrialTask],
        cancel: CancelToken<'_>,
        done: &mut dyn FnMut(usize, &[u8]) -> hdsl::Result<()>,
    ) -> hdsl::Result<()> {
        let outcome = Python::attach(|py| Elsewhere::run(self, py, tasks, cancel, done));
        outcome.unwrap_or_else(|error| {
            let message = error.to_string();
            self.lock().get_or_insert(error);
            Err(hdsl::Error::Elsewhere(message))
        })
    }
}

/// The side of a worker: the rows of a search.
#[pyclass(frozen, module = "hdsl._core")]
pub(crate) struct TrialData(hdsl::tune::TrialData);

#[pymethods]
impl TrialData {
    /// The same arguments as those of `tune`, and how many tasks run side by side in this process.
    #[new]
    #[pyo3(signature = (settings, x, classes=None, *, valid=None, triplets=None, side_by_side=1))]
    fn new(
        py: Python<'_>,
        settings: TuneSettings,
        x: Csr<'_>,
        classes: Option<Classes<'_>>,
        valid: Option<(Csr<'_>, Classes<'_>)>,
        triplets: Option<Given<'_>>,
        side_by_side: usize,
    ) -> PyResult<Self> {
        let config = settings.config()?;
        let x = x.parts()?;
        let labels = classes.map(|c| to_labels(c, x.n_rows())).transpose()?;
        let triplets = triplets.map(|t| to_triplets(t, x.n_rows())).transpose()?;
        let valid = valid.as_ref().map(to_labeled).transpose()?;
        detached(py, 1, || {
            let mut data = TrainData::new(by_position(view(x)?, labels.as_ref()));
            data.valid = match &valid {
                Some((rows, labels)) => Some(by_position(view(*rows)?, Some(labels))),
                None => None,
            };
            data.triplets = triplets.as_ref();
            let made = hdsl::tune::TrialData::new(&data, &config, side_by_side);
            made.map(Self).map_err(to_python)
        })
    }

    /// Mines the triplets that a task shares with others, on one thread. `check` is called many times in a second, and ends
    /// the work when it raises.
    fn mine(&self, py: Python<'_>, task: &[u8], check: Py<PyAny>) -> PyResult<SharedTriplets> {
        let task = TrialTask::from_bytes(task).map_err(to_python)?;
        self.run(py, check, |cancel| self.0.mine(&task, cancel))
            .map(SharedTriplets)
    }

    /// Trains a model of a task, on one thread, with `check` as for `mine`.
    fn train(
        &self,
        py: Python<'_>,
        task: &[u8],
        model: usize,
        begun: Option<&Bound<'_, TrialState>>,
        mined: Option<&Bound<'_, SharedTriplets>>,
        check: Py<PyAny>,
    ) -> PyResult<TrialState> {
        let task = TrialTask::from_bytes(task).map_err(to_python)?;
        let begun = begun.map(|state| &state.get().0);
        let mined = mined.map(|mined| &mined.get().0);
        self.run(py, check, |cancel| {
            self.0.train(&task, model, begun, mined, cancel)
        })
        .map(TrialState)
    }

    /// Evaluates the models of a task, on one thread, with `check` as for `mine`. Returns bytes for the search.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        task: &[u8],
        states: Vec<Bound<'py, TrialState>>,
        check: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let task = TrialTask::from_bytes(task).map_err(to_python)?;
        let states: Vec<&hdsl::tune::TrialState> = states.iter().map(|s| &s.get().0).collect();
        let bytes = self.run(py, check, |cancel| self.0.evaluate(&task, &states, cancel))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl TrialData {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        check: Py<PyAny>,
        work: impl FnOnce(CancelToken<'_>) -> hdsl::Result<T> + Send,
    ) -> PyResult<T> {
        let listeners = Listeners {
            each: None,
            progress: Some(check),
            snapshots: false,
        };
        let done = py.detach(|| {
            listen(&listeners, 1, |watch| {
                let watch = watch.of_search();
                // From now on there is news, so that `check` is called.
                watch.tell(&Search::default());
                work(watch.cancel()).map_err(to_python)
            })
        });
        done.map(|(done, _)| done)
    }
}

/// A model of a trial, as far as it is trained.
#[pyclass(frozen, module = "hdsl._core")]
pub(crate) struct TrialState(hdsl::tune::TrialState);

#[pymethods]
impl TrialState {
    #[new]
    fn new(bytes: &[u8]) -> PyResult<Self> {
        let state = hdsl::tune::TrialState::from_bytes(bytes);
        state.map(Self).map_err(to_python)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, pyo3::types::PyType>, (Bound<'py, PyBytes>,)) {
        let bytes = PyBytes::new(slf.py(), &slf.get().0.to_bytes());
        (slf.get_type(), (bytes,))
    }

    fn __sizeof__(&self) -> usize {
        self.0.n_bytes()
    }
}

/// Triplets that the models of several tasks learn from.
#[pyclass(frozen, module = "hdsl._core")]
pub(crate) struct SharedTriplets(hdsl::tune::SharedTriplets);

#[pymethods]
impl SharedTriplets {
    #[new]
    fn new(bytes: &[u8]) -> PyResult<Self> {
        let mined = hdsl::tune::SharedTriplets::from_bytes(bytes);
        mined.map(Self).map_err(to_python)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, pyo3::types::PyType>, (Bound<'py, PyBytes>,)) {
        let bytes = PyBytes::new(slf.py(), &slf.get().0.to_bytes());
        (slf.get_type(), (bytes,))
    }
}
