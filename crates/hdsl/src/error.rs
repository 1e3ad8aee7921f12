//! Errors about what a caller provided. A broken invariant of the library itself panics instead.

use crate::format::{bytes, thousands};
use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Something parsed, or what is wrong with it; the caller adds the file and the line.
pub(crate) type Parsed<T> = std::result::Result<T, String>;

/// An error about what the caller provided. Its message names the place, the value and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line of an input file cannot be parsed.
    #[error("{}:{line}: {reason}", path.display())]
    Parse {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What was found and what was expected.
        reason: String,
    },
    /// A file as a whole is unusable: empty, truncated, corrupt, of another kind.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// A file cannot be opened or read.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file cannot be written. Only this error may occur after work was done.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file, `-` for standard output.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A parameter is outside its range.
    #[error("`{name}` is {value}, expected {want}")]
    Param {
        /// The parameter: the name of the field of the configuration.
        name: &'static str,
        /// The value given.
        value: String,
        /// What would have been accepted.
        want: String,
    },
    /// A [`CancelToken`](crate::CancelToken) was cancelled before there was a result to return.
    #[error("stopped before there was a model")]
    Stopped,
    /// A process that has a part of the data is gone. The message says which, and what was observed.
    #[error("a worker was lost: {0}")]
    WorkerLost(String),
    /// Rows on other machines are gone for good, and with them the rest of the run.
    #[error("{0}")]
    DataLost(String),
    /// A run would need more memory than is available. It was not started.
    #[error(
        "training on {} triplets needs about {} of memory, and {}; {}",
        thousands(*.triplets),
        bytes(*.needed),
        limit_in_words(*.limit, *.limit_is_set),
        advice(*.batch, *.fewer)
    )]
    Memory {
        /// How many triplets there are.
        triplets: usize,
        /// About how many bytes the run allocates.
        needed: u64,
        /// How many bytes it may allocate.
        limit: u64,
        /// Whether the caller set that limit; otherwise it is what the operating system reports as free.
        limit_is_set: bool,
        /// A batch size that would fit.
        batch: Option<usize>,
        /// A number of triplets that would fit.
        fewer: Option<usize>,
    },
    /// Other processes that do a part of the work cannot go on.
    #[error("{0}")]
    Elsewhere(String),
    /// The data as a whole cannot be used: one class only, labels that do not match rows, and so on.
    #[error("{0}")]
    Data(String),
}

impl Error {
    /// Shorthand for [`Error::Param`] with any displayable value.
    pub fn param(name: &'static str, value: impl ToString, want: impl Into<String>) -> Self {
        Error::Param {
            name,
            value: value.to_string(),
            want: want.into(),
        }
    }

    /// Shorthand for [`Error::Data`].
    pub fn data(reason: impl Into<String>) -> Self {
        Error::Data(reason.into())
    }

    /// Shorthand for [`Error::File`].
    pub(crate) fn file(path: &Path, reason: impl Into<String>) -> Self {
        Error::File {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Shorthand for [`Error::Read`].
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Error::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Shorthand for [`Error::Parse`].
    pub(crate) fn parse(path: &Path, line: u64, reason: impl Into<String>) -> Self {
        Error::Parse {
            path: path.to_owned(),
            line,
            reason: reason.into(),
        }
    }

    /// Adds the name of the file that the data came from, unless the error names one already.
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Error::Data(reason) => Error::file(path, reason),
            other => other,
        }
    }
}

fn limit_in_words(limit: u64, is_set: bool) -> String {
    match is_set {
        true => format!("the limit is {}", bytes(limit)),
        false => format!("{} are free", bytes(limit)),
    }
}

fn advice(batch: Option<usize>, fewer: Option<usize>) -> String {
    let ways: Vec<String> = [
        batch.map(|n| format!("batches of {}", thousands(n))),
        fewer.map(|n| format!("{} triplets", thousands(n))),
    ]
    .into_iter()
    .flatten()
    .collect();
    match ways.is_empty() {
        true => "the rows alone are too many".to_owned(),
        false => format!("it would fit with {}", ways.join(", or with ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_too_large_is_told_what_would_fit() {
        let mut error = Error::Memory {
            triplets: 100_000_000,
            needed: 12_345_678_901,
            limit: 3_900_000_000,
            limit_is_set: false,
            batch: Some(100_000),
            fewer: Some(31_000_000),
        };
        assert_eq!(
            error.to_string(),
            "training on 100,000,000 triplets needs about 12 GB of memory, and 3.9 GB are free; it would fit with \
             batches of 100,000, or with 31,000,000 triplets"
        );
        if let Error::Memory {
            limit,
            limit_is_set,
            batch,
            fewer,
            ..
        } = &mut error
        {
            (*limit, *limit_is_set, *batch, *fewer) = (999, true, None, None);
        }
        assert_eq!(
            error.to_string(),
            "training on 100,000,000 triplets needs about 12 GB of memory, and the limit is 999 bytes; the rows alone \
             are too many"
        );
    }
}
