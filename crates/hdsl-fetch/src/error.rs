//! What can go wrong on the way from a server to the cache. Each message says what to do.

use crate::catalogue::SETS;
use std::path::PathBuf;

/// Everything fallible in this crate returns this.
pub type Result<T> = std::result::Result<T, FetchError>;

/// Why a set is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No set is called that.
    #[error("no data set is called `{name}`; there are {}", names())]
    UnknownSet {
        /// The name asked for.
        name: String,
    },
    /// The set has no such part.
    #[error("{set} has no part `{part}`; it has {has}")]
    UnknownPart {
        /// The set.
        set: &'static str,
        /// The part asked for.
        part: String,
        /// The parts there are.
        has: String,
    },
    /// Not there, and downloading was not allowed.
    #[error("{} is not there, and downloading is switched off; it comes from {url}", path.display())]
    NotCached {
        /// Where it would lie.
        path: PathBuf,
        /// Where it would come from.
        url: String,
    },
    /// No answer: no network, no such host, a closed port, a bad certificate.
    #[error("cannot reach {host}: {reason}; without a network here, download {source_url} elsewhere and put it at {}", path.display())]
    Unreachable {
        /// The host that did not answer.
        host: String,
        /// Where the file comes from.
        source_url: String,
        /// Where the file belongs.
        path: PathBuf,
        /// The system's word.
        reason: String,
    },
    /// The connection broke again and again. What came is kept.
    #[error(
        "the connection to {host} broke after {done} of {total} bytes: {reason}; they are kept, and the same call goes on from there"
    )]
    Cut {
        /// The host.
        host: String,
        /// Bytes that came.
        done: u64,
        /// Bytes there should be, or `an unknown number`.
        total: String,
        /// The system's word.
        reason: String,
    },
    /// The server answered, but not with the file.
    #[error("{host} answered {status} to {url}; if you can get {source_url} by hand, put it at {}", path.display())]
    Status {
        /// The host.
        host: String,
        /// `404 Not Found` and the like.
        status: String,
        /// What we asked it for.
        url: String,
        /// Where the file comes from.
        source_url: String,
        /// Where the file belongs.
        path: PathBuf,
    },
    /// What came is not a file of the kind it should be: often a page that asks to log in.
    #[error("{url} is not a {want} file: it starts with {found:?}; nothing was kept")]
    NotTheFile {
        /// What we asked for.
        url: String,
        /// `zip` or `bzip2`.
        want: &'static str,
        /// Its first bytes.
        found: String,
    },
    /// What came is not what it should be.
    #[error("{url} has the SHA-256 {got}, expected {want}; nothing was kept")]
    Checksum {
        /// Where it came from.
        url: String,
        /// As it should be.
        want: String,
        /// As it is.
        got: String,
    },
    /// A file in the cache is not what it was.
    #[error("{} has changed since it was fetched: its SHA-256 is {got}, and was {want}; fetch it again to replace it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// As remembered.
        want: String,
        /// As it is.
        got: String,
    },
    /// A file in the cache cannot be read or unpacked.
    #[error("{}: {reason}; fetch it again to replace it", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system has no word for where caches go.
    #[error("there is no home folder to keep data in: set HDSL_DATA to a folder")]
    NoFolder,
    /// The address to fetch from instead is not one.
    #[error("`{0}` is no address to fetch from, expected http://HOST/PATH or https://HOST/PATH")]
    BadBase(String),
    /// Whoever watches asked to stop. What came is kept.
    #[error("stopped; what came is kept, and the same call goes on from there")]
    Stopped,
    /// The file system's or the reader's word.
    #[error(transparent)]
    Data(#[from] hdsl::Error),
}

impl FetchError {
    /// Whether the fault is with what the caller gave or keeps, rather than with the network.
    pub fn is_bad_input(&self) -> bool {
        match self {
            FetchError::UnknownSet { .. }
            | FetchError::UnknownPart { .. }
            | FetchError::NotCached { .. }
            | FetchError::Changed { .. }
            | FetchError::Broken { .. }
            | FetchError::NoFolder
            | FetchError::BadBase(_) => true,
            FetchError::Data(error) => !matches!(error, hdsl::Error::Write { .. }),
            _ => false,
        }
    }
}

fn names() -> String {
    SETS.iter()
        .map(|set| set.name)
        .collect::<Vec<_>>()
        .join(", ")
}
