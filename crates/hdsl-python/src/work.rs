//! Work without the interpreter lock, on a given number of threads.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work` without the interpreter lock in a pool of its own. One pool per call survives `fork`, unlike a global pool,
/// and costs some tens of microseconds. A panic, which is a bug, becomes a RuntimeError.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| pooled(n_threads, work)))
            .unwrap_or_else(|panic| Err(our_mistake(&*panic)))
    })
}

/// Runs `work` in a pool of so many threads.
pub(crate) fn pooled<T: Send>(
    n_threads: usize,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?
        .install(work)
}

/// A panic as an exception.
pub(crate) fn our_mistake(panic: &(dyn Any + Send)) -> PyErr {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given");
    PyRuntimeError::new_err(format!("a bug in hdsl, please report it: {what}"))
}
