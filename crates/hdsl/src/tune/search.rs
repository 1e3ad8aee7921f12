//! What the trials of a search share: parameters, journal, observer and time limit.

use super::journal::{Job, Journal, Round};
use super::params::TuneConfig;
use crate::error::Result;
use crate::knn::PredictionRule;
use crate::observer::{Event, Observer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(super) struct Search<'a> {
    pub(super) params: &'a TuneConfig,
    pub(super) rules: Vec<PredictionRule>,
    /// The iterations of a round at which validation errors are computed; the last is its length.
    pub(super) checkpoints: Vec<usize>,
    pub(super) journal: Mutex<Journal>,
    pub(super) observer: Mutex<&'a mut (dyn Observer + Send)>,
    pub(super) started: Instant,
    /// Rows of the final training.
    pub(super) all_rows: usize,
    /// When the current rung has to be done.
    pub(super) deadline: Option<Instant>,
    /// Whether the observer asked to stop.
    pub(super) stopped: AtomicBool,
    /// Whether all that was planned was done.
    pub(super) finished: bool,
}

impl Search<'_> {
    pub(super) fn tell(&self, event: &Event<'_>) {
        if lock(&self.observer).on_event(event).is_break() {
            self.stopped.store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.deadline.is_some_and(|at| Instant::now() >= at)
            || self.stopped.load(Ordering::SeqCst)
            || lock(&self.observer).cancel_token().is_cancelled()
    }

    /// Whether no checkpoint is missing because the round was cancelled.
    pub(super) fn is_whole(&self, round: &Round) -> bool {
        round.checkpoints.len() == self.checkpoints.len()
    }

    /// The result of a job: that in the journal, or else what `run` returns, which is recorded. None if cancelled.
    pub(super) fn recorded(
        &self,
        job: Job,
        run: impl FnOnce() -> Result<Option<Round>>,
    ) -> Result<Option<Round>> {
        let known = lock(&self.journal).finished.get(&job).cloned();
        if known.is_some() || self.is_cancelled() {
            return Ok(known);
        }
        let done = run()?;
        if let Some(round) = done.as_ref().filter(|round| self.is_whole(round)) {
            let mut journal = lock(&self.journal);
            let spent = journal.spent + self.started.elapsed().as_secs_f64();
            journal.record(job, round, spent)?;
        }
        Ok(done)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panicked ends the search by itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
