//! What the trials of a search share: parameters, journal, observer and time limit.

use super::journal::{Job, Journal, Segment};
use super::params::TuneConfig;
use super::remote::{TrialRunner, outcome};
use super::trial::TrialTask;
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
    /// Runs the trials in other processes; none: they run here.
    pub(super) runner: Option<&'a dyn TrialRunner>,
    pub(super) started: Instant,
    /// Rows of the final training.
    pub(super) all_rows: usize,
    /// Bytes that all runs of the search may take together; none if that is unknown.
    pub(super) memory: Option<u64>,
    /// Whether runs go on one after the other, so that each may take all of the memory.
    pub(super) is_sequential: bool,
    /// The number of rungs begun.
    pub(super) rung: usize,
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

    /// What the tasks of trials are run with in this process.
    pub(super) fn means(&self) -> Means<'_> {
        let (side_by_side, runs_per_thread) = match self.is_sequential {
            true => (1, usize::MAX),
            false => (current_num_threads() as u64, 1),
        };
        Means {
            rules: &self.rules,
            max_atoms: self.params.max_atoms,
            memory: self.memory.map(|all| all / side_by_side),
            runs_per_thread,
            cancel: self.cancel_token(),
        }
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
        if let Some(segment) = &done {
            self.record(job, segment);
        }
        Ok(done)
    }

    fn record(&self, job: Job, segment: &Segment) {
        if !segment.is_whole {
            return;
        }
        let mut journal = lock(&self.journal);
        let spent = journal.spent + self.started.elapsed().as_secs_f64();
        journal.record(job, segment, spent);
        let note = journal.take_note();
        drop(journal);
        if let Some(note) = note {
            self.tell(&Event::Note(&note));
        }
    }

    /// The results of tasks: those in the journal, or else what other processes return, recorded likewise. None if
    /// cancelled.
    pub(super) fn recorded_elsewhere(
        &self,
        runner: &dyn TrialRunner,
        tasks: &[TrialTask],
    ) -> Result<Option<Vec<Segment>>> {
        let known = |task: &TrialTask| lock(&self.journal).finished.get(&task.job).cloned();
        let mut results: Vec<Option<Segment>> = tasks.iter().map(known).collect();
        let open: Vec<usize> = (0..tasks.len())
            .filter(|&at| results[at].is_none())
            .collect();
        if open.is_empty() || self.is_cancelled() {
            return Ok(results.into_iter().collect());
        }
        let unknown: Vec<&TrialTask> = open.iter().map(|&at| &tasks[at]).collect();
        let mut failed = None;
        runner.run(&unknown, self.cancel_token(), &mut |number, bytes| {
            match outcome(bytes)? {
                Ok(Some(segment)) => {
                    self.record(unknown[number].job.clone(), &segment);
                    results[open[number]] = Some(segment);
                }
                Ok(None) => {}
                Err(failure) => failed = Some(failure.into()),
            }
            Ok(())
        })?;
        match failed {
            Some(error) => Err(error),
            None => Ok(results.into_iter().collect()),
        }
    }
}

/// What a task is run with besides its rows.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) rules: &'a [PredictionRule],
    pub(super) max_atoms: Option<usize>,
    /// Bytes that one run may take: its share, if others go on beside it.
    pub(super) memory: Option<u64>,
    /// How many of the runs of a task are done by one thread, one after the other.
    pub(super) runs_per_thread: usize,
    pub(super) cancel: CancelToken<'a>,
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
