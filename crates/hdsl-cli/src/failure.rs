//! How a command can end other than well, and the exit status that goes with it.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong use or bad input: status 2.
    Usage(String),
    /// Something failed while running: status 1.
    Running(String),
    /// Ctrl-C before there was anything to keep: status 130, as a shell gives to what a signal ends.
    Stopped,
    /// Whoever read our output has gone (`hdsl ... | head`): nobody is left to complain to.
    ReaderGone,
}

impl Failure {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Running(_) => 1,
            Failure::Stopped => 130,
            Failure::ReaderGone => 0,
        }
    }

    /// Wrong use, in words.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(message.into())
    }

    /// Writing to standard output failed.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Running(format!("standard output: cannot write: {error}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Running(message) => f.write_str(message),
            Failure::Stopped => {
                f.write_str("stopped by Ctrl-C before there was a model; nothing was written")
            }
            Failure::ReaderGone => f.write_str("standard output was closed"),
        }
    }
}

/// Everything the library refuses is bad input, except a write that fails after the work was done.
impl From<hdsl::Error> for Failure {
    fn from(error: hdsl::Error) -> Self {
        match &error {
            hdsl::Error::Write { path, source } if path == Path::new("-") => {
                Failure::stdout(source)
            }
            hdsl::Error::Stopped => Failure::Stopped,
            hdsl::Error::Write { .. } => Failure::Running(error.to_string()),
            _ => Failure::Usage(error.to_string()),
        }
    }
}

/// What the caller gave or keeps is bad input; what the network does is not.
#[cfg(feature = "fetch")]
impl From<hdsl_fetch::FetchError> for Failure {
    fn from(error: hdsl_fetch::FetchError) -> Self {
        use hdsl_fetch::FetchError;
        match error {
            FetchError::Data(error) => error.into(),
            FetchError::Changed { .. } | FetchError::Broken { .. } => {
                Failure::Usage(format!("{error} (--again)"))
            }
            error if error.is_bad_input() => Failure::Usage(error.to_string()),
            error => Failure::Running(error.to_string()),
        }
    }
}
