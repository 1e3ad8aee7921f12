//! The program `hdsl` inside the interpreter, for the command that the package installs.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The exit status of a Rust program that panicked. The message has been printed by then.
const PANICKED: u8 = 101;

/// Runs the program with the words after its name, and returns its exit status. To be called once per process, by a
/// caller who has given Ctrl-C its default effect: until the program sets its own handler, no Python code runs.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| catch_unwind(AssertUnwindSafe(|| hdsl_cli::run(words))).unwrap_or(PANICKED))
}
