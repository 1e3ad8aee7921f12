//! The library's errors as the exceptions a Python user expects.

use hdsl::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use std::io;
use std::path::Path;

/// Settings are spelled with a hyphen on the command line and with an underscore in Python.
pub(crate) fn to_python(error: Error) -> PyErr {
    match error {
        Error::Read { path, source } => os_error(&path, "cannot read", &source),
        Error::Write { path, source } => os_error(&path, "cannot write", &source),
        Error::Stopped => {
            PyKeyboardInterrupt::new_err("Ctrl-C stopped the fit before there was a model")
        }
        Error::Memory { .. } => PyMemoryError::new_err(format!(
            "{error} (set batch, mine fewer triplets, or set memory to try all the same)"
        )),
        Error::Param { name, value, want } => {
            let name = match name {
                "k" => "n_neighbors".to_owned(),
                "patience" => "n_iter_no_change".to_owned(),
                "seed" => "random_state".to_owned(),
                name => name.replace('-', "_"),
            };
            PyValueError::new_err(format!("`{name}` is {value}, expected {want}"))
        }
        other => PyValueError::new_err(other.to_string()),
    }
}

/// With errno where there is one, so that Python makes it a FileNotFoundError and the like.
fn os_error(path: &Path, what: &str, source: &io::Error) -> PyErr {
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((
            number,
            format!("{what}: {source}"),
            path.display().to_string(),
        )),
        None => PyOSError::new_err(format!("{}: {what}: {source}", path.display())),
    }
}
