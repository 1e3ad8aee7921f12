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
        want: String,
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
    /// Somebody raised the flag of a [`CancelToken`](crate::CancelToken) before there was anything to keep.
    #[error("stopped before there was a model")]
    Stopped,
    /// A run would take more memory than there is. Nothing was done yet.
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
        /// About how many bytes the run takes beyond what is there already.
        needed: u64,
        /// How many it may take.
        limit: u64,
        /// Whether that limit was set by the caller; otherwise it is what the system says is free.
        limit_is_set: bool,
        /// A size of batches with which it would fit.
        batch: Option<usize>,
        /// A number of triplets with which it would fit.
        fewer: Option<usize>,
    },
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

/// A number with commas.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes to two or three digits.
pub(crate) fn bytes(n: u64) -> String {
    let mut number = n as f64;
    let mut units = ["bytes", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if number < 999.5 {
            break;
        }
        (number, unit) = (number / 1000.0, next);
    }
    match unit {
        "bytes" => format!("{number} {unit}"),
        _ if number < 9.95 => format!("{number:.1} {unit}"),
        _ => format!("{number:.0} {unit}"),
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

    #[test]
    fn bytes_are_short_and_right() {
        for (n, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_951, "10 kB"),
            (999_400, "999 kB"),
            (999_600, "1.0 MB"),
            (5_000_000_000_000_000, "5000 TB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }
}
