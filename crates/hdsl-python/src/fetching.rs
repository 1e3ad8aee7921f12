//! Public data sets: fetched in a thread that Ctrl-C can abandon, and read as CSR arrays.

use crate::errors::to_python;
use crate::work::{detached, our_mistake};
use hdsl::{ReadOptions, read_dataset};
use hdsl_fetch::{Event, FetchError, FetchOptions, Fetched, SETS, default_folder, fetch, find};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often signals are checked and progress is shown.
const HEARTBEAT: Duration = Duration::from_millis(40);

/// The state that the worker shares with the caller's thread.
#[derive(Default)]
struct State {
    stop: AtomicBool,
    done: AtomicU64,
    /// 0 where unknown.
    total: AtomicU64,
    /// The file that is being received.
    file: Mutex<String>,
}

impl State {
    fn hear(&self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::Receiving { url, done, total } => {
                let file = url.rsplit('/').next().unwrap_or(url);
                *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file.to_owned();
                self.total.store(total.unwrap_or(0), Ordering::Relaxed);
                self.done.store(done, Ordering::Relaxed);
            }
            Event::Received { done, .. } => self.done.store(done, Ordering::Relaxed),
            _ => {}
        }
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_empty() {
            return Ok(None);
        }
        let facts = PyDict::new(py);
        facts.set_item("file", file.as_str())?;
        facts.set_item("done", self.done.load(Ordering::Relaxed))?;
        let total = self.total.load(Ordering::Relaxed);
        facts.set_item("total", (total > 0).then_some(total))?;
        Ok(Some(facts))
    }
}

/// Downloads parts of a set into the cache and returns their paths: `[(part, data, labels or None)]`.
///
/// A thread of its own does the work. On Ctrl-C the caller does not wait for a server that does not answer: the thread
/// ends at its next byte, and an incomplete file never gets its final name.
#[pyfunction]
#[pyo3(signature = (name, parts, folder, base_url, download, again, progress))]
#[allow(clippy::too_many_arguments)] // one caller, in Python, that names each
pub(crate) fn fetch_set(
    py: Python<'_>,
    name: &str,
    parts: Vec<String>,
    folder: Option<PathBuf>,
    base_url: Option<String>,
    download: bool,
    again: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<(String, PathBuf, Option<PathBuf>)>> {
    let set = find(name).map_err(error)?;
    let options = FetchOptions {
        folder,
        base_url,
        download,
        again,
        ..FetchOptions::default()
    };
    let state = Arc::new(State::default());
    let (say, hear) = channel::<PyResult<Fetched>>();
    let worker = Arc::clone(&state);
    thread::spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            fetch(set, &parts, &options, &mut |event| worker.hear(event)).map_err(error)
        }));
        // There is no receiver after Ctrl-C.
        let _ = say.send(outcome.unwrap_or_else(|panic| Err(our_mistake(&*panic))));
    });
    let fetched = py.detach(move || {
        loop {
            match hear.recv_timeout(HEARTBEAT) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Err(our_mistake(&"no answer")),
                Err(RecvTimeoutError::Timeout) => {
                    let pulse = Python::attach(|py| {
                        py.check_signals()?;
                        if let (Some(progress), Some(facts)) = (&progress, state.facts(py)?) {
                            progress.call1(py, (facts,))?;
                        }
                        Ok(())
                    });
                    if let Err(error) = pulse {
                        state.stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        }
    })?;
    let parts = fetched.parts.into_iter();
    Ok(parts
        .map(|part| (part.part.name.to_owned(), part.data, part.labels))
        .collect())
}

/// All data sets, as dictionaries.
#[pyfunction]
pub(crate) fn list_sets(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let sets = PyList::empty(py);
    for set in SETS {
        let facts = PyDict::new(py);
        facts.set_item("name", set.name)?;
        facts.set_item("about", set.about)?;
        facts.set_item("page", set.page)?;
        facts.set_item("n_features", set.n_features)?;
        facts.set_item("n_classes", set.n_classes)?;
        let parts = set.parts.iter().map(|p| (p.name, p.n_rows, p.labeled));
        facts.set_item("parts", parts.collect::<Vec<_>>())?;
        sets.append(facts)?;
    }
    Ok(sets)
}

/// The default cache folder.
#[pyfunction]
pub(crate) fn data_folder() -> PyResult<PathBuf> {
    default_folder().map_err(error)
}

/// Rows and labels of a file: `(data, indices, indptr, n_features, names, codes)`; no names without labels.
type Read<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    usize,
    Option<Vec<String>>,
    Option<Bound<'py, PyArray1<i64>>>,
);

/// Reads a file of any format that the program reads, with at least so many features.
#[pyfunction]
pub(crate) fn read_file<'py>(
    py: Python<'py>,
    path: PathBuf,
    labels: Option<PathBuf>,
    n_features: usize,
    n_threads: usize,
) -> PyResult<Read<'py>> {
    let options = ReadOptions {
        labels,
        ..ReadOptions::default()
    };
    let data = detached(py, n_threads, || {
        read_dataset(&path, &options).map_err(to_python)
    })?;
    let rows = &data.rows;
    let numbers = |of: &mut dyn Iterator<Item = i64>| of.collect::<Vec<_>>().into_pyarray(py);
    let mut ends = 0;
    let starts = rows.iter().map(|row| {
        ends += row.nnz() as i64;
        ends
    });
    Ok((
        rows.values().to_vec().into_pyarray(py),
        numbers(&mut rows.indices().iter().map(|&i| i64::from(i))),
        numbers(&mut std::iter::once(0).chain(starts)),
        rows.n_features().max(n_features),
        data.labels.as_ref().map(|l| l.names().to_vec()),
        data.labels
            .as_ref()
            .map(|l| numbers(&mut l.codes().iter().map(|&c| i64::from(c)))),
    ))
}

/// As scikit-learn's fetchers: OSError for the network and missing files, ValueError for wrong arguments.
fn error(error: FetchError) -> PyErr {
    match error {
        FetchError::Data(error) => to_python(error),
        FetchError::NotCached { .. } => PyFileNotFoundError::new_err(error.to_string()),
        FetchError::UnknownSet { .. }
        | FetchError::UnknownPart { .. }
        | FetchError::BadBaseUrl(_) => PyValueError::new_err(error.to_string()),
        other => PyOSError::new_err(other.to_string()),
    }
}
