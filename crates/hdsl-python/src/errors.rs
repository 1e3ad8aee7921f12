//! The library's errors as Python exceptions.

use hdsl::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use std::io;
use std::path::Path;

/// Parameters whose name in Python differs from the field of the library's configuration.
const NAMES: [(&str, &str); 7] = [
    ("lambda", "scale"),
    ("k", "n_neighbors"),
    ("patience", "n_iter_no_change"),
    ("seed", "random_state"),
    ("tolerance", "tol"),
    ("time_limit", "time"),
    ("holdout", "validation_fraction"),
];

/// The exception for an error. Parameters are spelled as in Python.
pub(crate) fn to_python(error: Error) -> PyErr {
    match error {
        Error::Read { path, source } => os_error(&path, "cannot read", &source),
        Error::Write { path, source } => os_error(&path, "cannot write", &source),
        Error::Stopped => {
            PyKeyboardInterrupt::new_err("Ctrl-C stopped the fit before there was a model")
        }
        Error::Memory { .. } => PyMemoryError::new_err(format!(
            "{error} (set batch, mine fewer triplets, or set memory to try anyway)"
        )),
        Error::Param { name, value, want } => {
            let name = name.replace('-', "_");
            let renamed = NAMES.iter().find(|(ours, _)| *ours == name);
            let name = renamed.map_or(name.as_str(), |(_, theirs)| theirs);
            PyValueError::new_err(format!("`{name}` is {value}, expected {want}"))
        }
        other => PyValueError::new_err(other.to_string()),
    }
}

/// With errno if there is one, so that Python raises FileNotFoundError and the like.
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
