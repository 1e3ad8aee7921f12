//! Errors of downloads and of the cache. Each message says what to do.

use crate::catalogue::SETS;
use std::path::PathBuf;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, FetchError>;

/// Why a data set could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// There is no data set of this name.
    #[error("unknown data set `{name}`, expected one of {}", names())]
    UnknownSet {
        /// The requested name.
        name: String,
    },
    /// The set has no such part.
    #[error("{set} has no part `{part}`, expected one of {expected}")]
    UnknownPart {
        /// The set.
        set: &'static str,
        /// The requested part.
        part: String,
        /// The parts of the set.
        expected: String,
    },
    /// The file is not in the cache, and downloads are disabled.
    #[error("{} is not in the cache, and downloads are disabled; its source is {url}", path.display())]
    NotCached {
        /// Its path in the cache.
        path: PathBuf,
        /// Its address.
        url: String,
    },
    /// No connection: no network, unknown host, closed port, bad certificate.
    #[error("cannot reach {host}: {reason}; without a network, download {source_url} on another machine and save it as {}", path.display())]
    Unreachable {
        /// The host.
        host: String,
        /// The original address of the file.
        source_url: String,
        /// Its path in the cache.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The connection broke, and retries failed, too. The received bytes are kept.
    #[error(
        "the connection to {host} broke after {done} of {total} bytes: {reason}; the same call resumes the download"
    )]
    Interrupted {
        /// The host.
        host: String,
        /// Received bytes.
        done: u64,
        /// The size of the file, or `an unknown number of`.
        total: String,
        /// The error of the system.
        reason: String,
    },
    /// The server answered with an error status.
    #[error("{host} answered {status} to {url}; if you can download {source_url} by other means, save it as {}", path.display())]
    Status {
        /// The host.
        host: String,
        /// `404 Not Found` and the like.
        status: String,
        /// The requested address.
        url: String,
        /// The original address of the file.
        source_url: String,
        /// Its path in the cache.
        path: PathBuf,
    },
    /// The received file has another format, often because it is a login page.
    #[error("{url} is not a {expected} file: it starts with {start:?}; the file was deleted")]
    WrongFormat {
        /// The requested address.
        url: String,
        /// `zip` or `bzip2`.
        expected: &'static str,
        /// Its first bytes.
        start: String,
    },
    /// The received file has a wrong checksum.
    #[error("{url} has the SHA-256 digest {found}, expected {expected}; the file was deleted")]
    Checksum {
        /// The requested address.
        url: String,
        /// The digest in the catalogue.
        expected: String,
        /// The digest of the file.
        found: String,
    },
    /// A file in the cache was modified.
    #[error("{} has changed since it was fetched: its SHA-256 digest is {found}, expected {expected}; fetch it again to replace it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The recorded digest.
        expected: String,
        /// The digest of the file.
        found: String,
    },
    /// A file in the cache cannot be read or unpacked.
    #[error("{}: {reason}; fetch it again to replace it", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The system has no default folder for caches.
    #[error("no default cache folder, because there is no home folder; set HDSL_DATA to a folder")]
    NoCacheFolder,
    /// The address of the mirror is invalid.
    #[error(
        "invalid base URL `{0}`, expected https://HOST/PATH, or http:// for a server on this machine"
    )]
    BadBaseUrl(String),
    /// The observer cancelled the download. The received bytes are kept.
    #[error("cancelled; the same call resumes the download")]
    Cancelled,
    /// An error of the file system or of a reader.
    #[error(transparent)]
    Data(#[from] hdsl::Error),
}

impl FetchError {
    /// Whether the arguments or the cache are the cause, rather than the network.
    pub fn is_bad_input(&self) -> bool {
        match self {
            FetchError::UnknownSet { .. }
            | FetchError::UnknownPart { .. }
            | FetchError::NotCached { .. }
            | FetchError::Changed { .. }
            | FetchError::Corrupt { .. }
            | FetchError::NoCacheFolder
            | FetchError::BadBaseUrl(_) => true,
            FetchError::Data(error) => !matches!(error, hdsl::Error::Write { .. }),
            _ => false,
        }
    }
}

impl FetchError {
    /// The same error, in which addresses have no user names and passwords.
    pub(crate) fn without_passwords(mut self) -> Self {
        match &mut self {
            FetchError::NotCached { url, .. }
            | FetchError::WrongFormat { url, .. }
            | FetchError::Checksum { url, .. }
            | FetchError::BadBaseUrl(url) => *url = without_password(url),
            FetchError::Unreachable { host, reason, .. }
            | FetchError::Interrupted { host, reason, .. } => {
                *host = without_password(host);
                *reason = without_password(reason);
            }
            FetchError::Status { host, url, .. } => {
                *host = without_password(host);
                *url = without_password(url);
            }
            FetchError::UnknownSet { .. }
            | FetchError::UnknownPart { .. }
            | FetchError::Changed { .. }
            | FetchError::Corrupt { .. }
            | FetchError::NoCacheFolder
            | FetchError::Cancelled
            | FetchError::Data(_) => {}
        }
        self
    }
}

/// Text in which `NAME:PASSWORD@` before a host is left out, in each of its words.
pub(crate) fn without_password(text: &str) -> String {
    let hidden = |word: &str| {
        let start = word.find("://").map_or(0, |at| at + 3);
        let rest = &word[start..];
        let authority = rest.split('/').next().unwrap_or(rest);
        // After a host, there is a number. Anything else may be a password with a slash that was not encoded.
        let is_port = |after: &str| after.bytes().all(|b| b.is_ascii_digit());
        let has_password = authority
            .split_once(':')
            .is_some_and(|(_, after)| !is_port(after));
        let end = match has_password {
            true => rest.rfind('@'),
            false if start > 0 => authority.rfind('@'),
            false => None,
        };
        match end {
            Some(at) => format!("{}{}", &word[..start], &rest[at + 1..]),
            None => word.to_owned(),
        }
    };
    text.split(' ').map(hidden).collect::<Vec<_>>().join(" ")
}

fn names() -> String {
    SETS.iter()
        .map(|set| set.name)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_left_out() {
        for (text, shown) in [
            ("https://a.org:80/x@2", "https://a.org:80/x@2"),
            ("https://me:secret@a.org/x", "https://a.org/x"),
            ("https://token@a.org/x", "https://a.org/x"),
            ("https://me:se/cr@et@a.org", "https://a.org"),
            ("me:secret@a.org:80", "a.org:80"),
            (
                "cannot use http://me:secret@proxy:1 now",
                "cannot use http://proxy:1 now",
            ),
            ("mail a@b.org", "mail a@b.org"),
        ] {
            assert_eq!(without_password(text), shown);
        }
        let error = FetchError::BadBaseUrl("ftp://me:secret@a.org".into());
        let shown = error.without_passwords().to_string();
        assert!(shown.contains("`ftp://a.org`"), "{shown}");
    }
}
