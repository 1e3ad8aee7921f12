//! The wish to stop, looked at where work goes on for long without anything to tell.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that somebody may raise at any time, from any thread: on Ctrl-C, say. What looks at it ends with
/// [`Error::Stopped`] within a fraction of a second.
///
/// ```
/// use hdsl::{Dot, Error, CancelToken, Labels, Rows, Triplets};
/// use std::sync::atomic::AtomicBool;
/// let raised = AtomicBool::new(true);
/// let rows = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![1.0, 2.0, 3.0])?;
/// let labels = Labels::from_names(["a", "b", "a"]);
/// let mined = Triplets::by_neighbors_until(&Dot, &rows, &labels, (1, 1), CancelToken::when(&raised));
/// assert!(matches!(mined, Err(Error::Stopped)));
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CancelToken<'a> {
    flag: Option<&'a AtomicBool>,
}

impl<'a> CancelToken<'a> {
    /// Nobody ever wants to stop.
    pub const NEVER: CancelToken<'static> = CancelToken { flag: None };

    /// When this becomes true.
    pub fn when(flag: &'a AtomicBool) -> Self {
        Self { flag: Some(flag) }
    }

    /// Whether somebody wants to stop.
    pub fn is_cancelled(self) -> bool {
        self.flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// An error if somebody wants to stop.
    pub fn check(self) -> Result<()> {
        match self.is_cancelled() {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}
