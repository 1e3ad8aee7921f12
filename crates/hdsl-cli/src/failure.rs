//! How a command can fail, and the exit status of each failure.

use crate::cli::Cli;
use crate::signals;
use clap::CommandFactory;
use std::fmt;
use std::io;
use std::path::Path;

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage or bad input: status 2.
    Usage(String),
    /// Something failed while running: status 1.
    Running(String),
    /// A signal before there was a result: status 130 for Ctrl-C, as a shell reports for a process that SIGINT ended.
    Stopped,
    /// The reader of our standard output has closed it (`hdsl ... | head`), which is no error.
    ReaderGone,
}

impl Failure {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Running(_) => 1,
            Failure::Stopped => signals::status(),
            Failure::ReaderGone => 0,
        }
    }

    /// Wrong usage, in words.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(message.into())
    }

    /// A file that is not what it should be.
    pub(crate) fn file(path: &Path, message: impl fmt::Display) -> Self {
        Failure::Usage(format!("{}: {message}", path.display()))
    }

    /// Rows without the labels that a command needs.
    pub(crate) fn no_labels(path: &Path, option: &str) -> Self {
        let message = format!("has no labels; pass a file with one label per line with {option}");
        Failure::file(path, message)
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
            Failure::Stopped => write!(
                f,
                "stopped by {} before there was a model; nothing was written",
                signals::name()
            ),
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
            // Such as a label that the format cannot hold.
            hdsl::Error::Write { source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
                Failure::Usage(error.to_string())
            }
            hdsl::Error::Write { .. } => Failure::Running(error.to_string()),
            hdsl::Error::Param { name, value, want } => {
                Failure::Usage(format!("{} is {value}, expected {want}", flag(name)))
            }
            _ => Failure::Usage(error.to_string()),
        }
    }
}

/// A parameter of the library as it is typed on the command line: options have the library's names as their ids.
fn flag(parameter: &str) -> String {
    let program = Cli::command();
    let option = program
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .find(|option| option.get_id() == parameter);
    match option.map(|option| (option.get_long(), option.get_short())) {
        Some((Some(long), _)) => format!("--{long}"),
        Some((None, Some(short))) => format!("-{short}"),
        _ => format!("`{parameter}`"),
    }
}

/// What the caller passed or keeps is bad input; a failure of the network is not.
#[cfg(feature = "fetch")]
impl From<hdsl_fetch::FetchError> for Failure {
    fn from(error: hdsl_fetch::FetchError) -> Self {
        use hdsl_fetch::FetchError;
        match error {
            FetchError::Data(error) => error.into(),
            FetchError::Changed { .. } | FetchError::Corrupt { .. } => {
                Failure::Usage(format!("{error} (--again)"))
            }
            error if error.is_bad_input() => Failure::Usage(error.to_string()),
            error => Failure::Running(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_spelled_as_on_the_command_line() {
        for (parameter, typed) in [
            ("lambda", "--lambda"),
            ("k", "-k"),
            ("max_features", "--max-features"),
            ("tolerance", "--tol"),
            ("last_round_iter", "--last-round-iter"),
            ("n_estimators", "--n-estimators"),
            ("ablate", "--ablate"),
            ("something else", "`something else`"),
        ] {
            assert_eq!(flag(parameter), typed);
        }
    }
}
