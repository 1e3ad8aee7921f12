//! What a run reports: events for one observer, which may end it, and the reason why it ended.

use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::checkpoint::Recorder;
use crate::data::Preprocess;
use crate::named::named_enum;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Receives the events of a run, of whatever kind, and may end it. `()` ignores all events, and closures are observers:
///
/// ```
/// use hdsl::observer::{Event, Observer};
/// use std::ops::ControlFlow;
/// let mut lowest = f64::INFINITY;
/// let mut observer = |event: &Event<'_>| {
///     if let Event::Iteration(iteration, _) = event {
///         lowest = lowest.min(iteration.objective);
///     }
///     ControlFlow::Continue(())
/// };
/// let observer: &mut dyn Observer = &mut observer;
/// # let _ = observer;
/// ```
pub trait Observer {
    /// Called for each event, in order. [`ControlFlow::Break`] ends the run, which keeps what it has so far.
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()>;

    /// Checked during work that reports no events: mining triplets, setting up the solver. If it is cancelled there, the
    /// run ends with [`Error::Stopped`](crate::Error::Stopped), because there is no result to keep.
    fn cancel_token(&self) -> CancelToken<'_> {
        CancelToken::NEVER
    }

    /// What records the steps of the run for a checkpoint; used by training.
    #[doc(hidden)]
    fn recorder(&mut self) -> Option<&mut Recorder> {
        None
    }
}

impl<F: FnMut(&Event<'_>) -> ControlFlow<()>> Observer for F {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self(event)
    }
}

impl Observer for () {
    fn on_event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Ignores all events, and ends a run when the token is cancelled.
pub(crate) struct UntilCancelled<'a>(pub(crate) CancelToken<'a>);

impl Observer for UntilCancelled<'_> {
    fn on_event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        match self.0.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        self.0
    }
}

/// What happens during a run. Each kind of run reports some of them.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The solver has finished an iteration, and this is the iterate after its step.
    Iteration(&'a Iteration, &'a ActiveSet),
    /// The diagonal baseline has finished an iteration.
    DiagonalIteration(&'a DiagonalIteration),
    /// OASIS has taken some more steps.
    OasisProgress(&'a OasisProgress),
    /// Training has its triplets.
    Triplets {
        /// How many.
        count: usize,
        /// How long mining took.
        seconds: f64,
    },
    /// Training of one member of an ensemble begins.
    EstimatorStarted {
        /// Its number, from 0.
        index: usize,
        /// How many there are.
        of: usize,
    },
    /// The run for one λ begins.
    LambdaStarted {
        /// Its position in the grid, from 0.
        index: usize,
        /// How many there are.
        of: usize,
        /// λ.
        lambda: f64,
        /// β of the base similarity.
        base: f64,
        /// The preprocessing of the rows.
        preprocess: Preprocess,
    },
    /// The validation error of the iterate was computed.
    Evaluated {
        /// The iteration that gave the iterate.
        iteration: &'a Iteration,
        /// The iterate.
        active: &'a ActiveSet,
        /// The validation error.
        error: f64,
    },
    /// The run for one λ has ended.
    LambdaDone {
        /// λ.
        lambda: f64,
        /// Steps taken.
        iterations: usize,
        /// Why it ended.
        stop: Stop,
        /// The lowest validation error on its path.
        valid_error: Option<f64>,
    },
    /// A search for a configuration begins.
    SearchStarted {
        /// Rows that trials are validated on.
        n_validation: usize,
        /// Folds they are divided into.
        n_folds: usize,
        /// Trials found finished in the journal.
        resumed: usize,
    },
    /// A rung of successive halving begins.
    RungStarted {
        /// Configurations on it.
        configurations: usize,
        /// Rows that each is trained on.
        rows: usize,
    },
    /// The trial of a configuration on a rung has finished on all folds.
    TrialDone {
        /// The configuration, for display.
        configuration: &'a str,
        /// Whether it is a plain similarity, with nothing learned.
        is_reference: bool,
        /// Its lowest validation error so far.
        error: f64,
        /// Trials finished on this rung.
        done: usize,
        /// Trials on this rung.
        of: usize,
    },
    /// A fold of a ranking's cross-validation is done.
    FoldDone {
        /// Folds done so far.
        done: usize,
        /// Folds, and the final model.
        of: usize,
    },
    /// Something that whoever started the run should know, in a sentence.
    Note(&'a str),
    /// The search has chosen a configuration, and the final model is trained.
    FinalTraining {
        /// On so many rows.
        n_rows: usize,
    },
}

/// One iteration of the solver, after its step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Iteration {
    /// Its number, from 1.
    pub iter: usize,
    /// f after the step.
    pub objective: f64,
    /// The gap before the step, where the direction was chosen.
    pub gap: Gap,
    /// Seconds of solver time so far, without the time of the observer.
    pub seconds: f64,
}

/// One iteration of the diagonal baseline, after its step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DiagonalIteration {
    /// Its number, from 1.
    pub iter: usize,
    /// The objective, penalty included. Never above that of the iteration before.
    pub objective: f64,
    /// The objective is at most this far above the optimum: certified.
    pub gap: f64,
    /// Features whose weight is not 0.
    pub n_features: usize,
    /// Seconds of work so far, without the time of the observer.
    pub seconds: f64,
}

/// Progress of OASIS since the last report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OasisProgress {
    /// Steps taken so far.
    pub step: usize,
    /// Steps to take in all.
    pub steps: usize,
    /// Mean loss of the triplets since the last report, each before its step.
    pub loss: f64,
    /// The share of them that had a loss above 0.
    pub violated: f64,
    /// Seconds of work so far, without the time of the observer.
    pub seconds: f64,
}

/// <M - B_F, ∇f>, an upper bound of f - f* if B_F is the best atom for the gradient over all triplets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Gap {
    /// Oracle and gradient were exact: f is at most this far above the optimum.
    Certified(f64),
    /// A heuristic oracle or a batch: an estimate, not a bound.
    Estimate(f64),
}

impl Gap {
    /// The number, certified or not.
    pub fn value(self) -> f64 {
        match self {
            Gap::Certified(gap) | Gap::Estimate(gap) => gap,
        }
    }

    /// Whether the number bounds f - f*.
    pub fn is_certified(self) -> bool {
        matches!(self, Gap::Certified(_))
    }
}

named_enum! {
    /// Why a run ended. Stopping early is an outcome, not an error.
    #[non_exhaustive]
    pub enum Stop as "stop" = "max-iter" | "tolerance" | "feature-budget" | "time-limit" | "satisfied" | "stationary"
        | "patience" | "interrupted" | "base-alone" {
        /// The maximum number of iterations was reached.
        MaxIter,
        /// The certified gap is within the tolerance.
        Tolerance,
        /// The next step would use more features than allowed.
        FeatureBudget,
        /// The time limit was reached.
        TimeLimit,
        /// Every triplet is satisfied with margin 1: the loss is 0.
        Satisfied,
        /// No direction is one of descent, to rounding.
        Stationary,
        /// The validation error has not improved for long enough.
        Patience,
        /// The observer ended the run.
        ObserverAsked,
        /// Nothing was learned: on held-out rows, the base similarity alone made no more errors.
        BaseAlone,
    }
}

/// The time of a run, without that of its observer.
pub(crate) struct Stopwatch {
    /// When it started, or would have started had it never been paused.
    started: Instant,
    /// The time of an earlier run that this one resumes.
    before: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            before: Duration::ZERO,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed() + self.before
    }

    /// Goes on from a time that was measured before.
    pub(crate) fn resume_at(&mut self, seconds: f64) {
        self.before = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.started = Instant::now();
    }

    /// Does some work whose time is not counted.
    pub(crate) fn pause<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = work();
        self.started += begin.elapsed();
        done
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }

    /// Passes an event to the observer. The time it takes is not counted.
    pub(crate) fn notify(
        &mut self,
        observer: &mut dyn Observer,
        event: &Event<'_>,
    ) -> ControlFlow<()> {
        self.pause(|| observer.on_event(event))
    }
}
