//! The cancellation token, checked during long work that reports no events.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A flag that may be set at any time, from any thread, for instance on Ctrl-C, and a time at which to stop. Functions that
/// take a token return [`Error::Stopped`] within a fraction of a second after it is cancelled.
///
/// ```
/// use hdsl::{Dot, Error, CancelToken, Labels, Rows, Triplets};
/// use std::sync::atomic::AtomicBool;
/// let cancelled = AtomicBool::new(true);
/// let rows = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![1.0, 2.0, 3.0])?;
/// let labels = Labels::from_names(["a", "b", "a"]);
/// let mined = Triplets::by_neighbors(&Dot, &rows, &labels, [1, 1], CancelToken::when(&cancelled));
/// assert!(matches!(mined, Err(Error::Stopped)));
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CancelToken<'a> {
    flag: Option<&'a AtomicBool>,
    deadline: Option<Instant>,
}

impl<'a> CancelToken<'a> {
    /// A token that is never cancelled.
    pub const NEVER: CancelToken<'static> = CancelToken {
        flag: None,
        deadline: None,
    };

    /// A token that is cancelled when the flag becomes true.
    pub fn when(flag: &'a AtomicBool) -> Self {
        Self {
            flag: Some(flag),
            deadline: None,
        }
    }

    /// The same token, which is cancelled at the deadline at the latest, if there is one.
    pub(crate) fn until(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// Whether the flag is set or the deadline has passed.
    pub(crate) fn is_cancelled(self) -> bool {
        self.flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|at| Instant::now() >= at)
    }

    /// [`Error::Stopped`] if it is cancelled.
    pub fn check(self) -> Result<()> {
        match self.is_cancelled() {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}
