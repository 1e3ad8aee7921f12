//! What the trials of a search share: parameters, journal, observer and time limit.

use super::journal::{Job, Journal, Segment};
use super::params::TuneConfig;
use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::observer::{Event, Observer};
use crate::parallel::current_num_threads;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the observer is asked whether it is cancelled, during work without events.
const WATCH_EVERY: Duration = Duration::from_millis(20);

pub(super) struct Search<'a> {
    pub(super) params: &'a TuneConfig,
    pub(super) rules: Vec<PredictionRule>,
    pub(super) journal: Mutex<Journal>,
    pub(super) observer: &'a Mutex<dyn Observer + Send + 'a>,
    pub(super) started: Instant,
    /// Rows of the final training.
    pub(super) all_rows: usize,
    /// Bytes that all runs of the search may take together; none if that is unknown.
    pub(super) memory: Option<u64>,
    /// Whether runs go on one after the other, so that each may take all of the memory.
    pub(super) is_sequential: bool,
    /// When the current rung has to be done.
    pub(super) deadline: Option<Instant>,
    /// Whether the observer asked to stop.
    pub(super) stopped: &'a AtomicBool,
    /// The share of the time that is reserved for later rungs.
    pub(super) reserved: f64,
    /// Whether all that was planned was done.
    pub(super) finished: bool,
}

impl Search<'_> {
    pub(super) fn tell(&self, event: &Event<'_>) {
        if lock(self.observer).on_event(event).is_break() {
            self.stopped.store(true, Ordering::SeqCst);
        }
    }

    /// Cancelled when the observer asks to stop, or the rung has to be done.
    pub(super) fn cancel_token(&self) -> CancelToken<'_> {
        CancelToken::when(self.stopped).until(self.deadline)
    }

    /// Bytes that one run may take: its share, if others go on beside it.
    pub(super) fn memory_of_run(&self) -> Option<u64> {
        let side_by_side = match self.is_sequential {
            true => 1,
            false => current_num_threads() as u64,
        };
        self.memory.map(|all| all / side_by_side)
    }

    /// How many of the runs of a trial are done by one thread, one after the other.
    pub(super) fn runs_per_thread(&self) -> usize {
        if self.is_sequential { usize::MAX } else { 1 }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel_token().is_cancelled()
    }

    /// The result of a job: that in the journal, or else what `run` returns, which is recorded if it is whole. None if
    /// cancelled.
    pub(super) fn recorded(
        &self,
        job: Job,
        run: impl FnOnce() -> Result<Option<Segment>>,
    ) -> Result<Option<Segment>> {
        let known = lock(&self.journal).finished.get(&job).cloned();
        if known.is_some() || self.is_cancelled() {
            return Ok(known);
        }
        let done = match run() {
            Err(Error::Stopped) => None,
            done => done?,
        };
        if let Some(segment) = done.as_ref().filter(|segment| segment.is_whole) {
            let mut journal = lock(&self.journal);
            let spent = journal.spent + self.started.elapsed().as_secs_f64();
            journal.record(job, segment, spent);
            let note = journal.take_note();
            drop(journal);
            if let Some(note) = note {
                self.tell(&Event::Note(&note));
            }
        }
        Ok(done)
    }
}

/// The observer of a search, for several threads.
pub(super) struct Shared<'a>(pub(super) &'a mut (dyn Observer + Send));

impl Observer for Shared<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.0.on_event(event)
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        self.0.cancel_token()
    }
}

/// Does some work while another thread watches the observer's token, since there are no events during mining and
/// evaluation. When it is cancelled, `stopped` becomes true.
pub(super) fn watched<T>(
    observer: &Mutex<dyn Observer + Send + '_>,
    stopped: &AtomicBool,
    work: impl FnOnce() -> T,
) -> T {
    /// Ends the other thread, also after a panic.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                std::thread::sleep(WATCH_EVERY);
                if lock(observer).cancel_token().is_cancelled() {
                    stopped.store(true, Ordering::SeqCst);
                }
            }
        });
        let _done = Done(&done);
        work()
    })
}

pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panicked ends the search by itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
