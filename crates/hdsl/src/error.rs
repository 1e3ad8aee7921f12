//! What can be wrong with something the caller gave us. Our own mistakes panic instead.

use std::io;
use std::path::{Path, PathBuf};

/// Everything fallible in this crate returns this.
pub type Result<T> = std::result::Result<T, Error>;

/// What can be wrong with something the caller gave us: it names the place, the value and what was wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line of an input file does not say what it should.
    #[error("{}:{line}: {reason}", path.display())]
    Parse {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is there and what was wanted.
        reason: String,
    },
    /// A whole file is not what it should be: empty, truncated, corrupt, of another kind.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// What is wrong and what was wanted.
        reason: String,
    },
    /// A file cannot be opened or read.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A file cannot be written. The one kind of error that may come after work was done.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file, `-` for standard output.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A setting is outside its range.
    #[error("`{name}` is {value}, expected {want}")]
    Param {
        /// The setting, spelled as the library spells it.
        name: &'static str,
        /// The value given.
        value: String,
        /// What would have been accepted.
        want: &'static str,
    },
    /// A triplet names a row that is not there.
    #[error("triplet {index} names row {row}, but there are {rows} rows")]
    TripletRow {
        /// Which triplet, counted from 0.
        index: usize,
        /// The row it names, counted from 0.
        row: u32,
        /// How many rows there are.
        rows: usize,
    },
    /// The data as a whole cannot be used: one class only, labels that do not match rows, and so on.
    #[error("{0}")]
    Data(String),
}

impl Error {
    /// Shorthand for [`Error::Param`] with any displayable value.
    pub fn param(name: &'static str, value: impl ToString, want: &'static str) -> Self {
        Error::Param {
            name,
            value: value.to_string(),
            want,
        }
    }

    /// Shorthand for [`Error::Data`].
    pub fn data(reason: impl Into<String>) -> Self {
        Error::Data(reason.into())
    }

    /// Says which file the data came from, where that is not said already.
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Error::Data(reason) => Error::File {
                path: path.to_owned(),
                reason,
            },
            other => other,
        }
    }
}
