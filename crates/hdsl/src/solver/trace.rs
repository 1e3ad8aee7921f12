//! What a run tells: an event an iteration, a reason at the end, and who may listen.

use crate::atoms::Path;
use crate::atoms::{ActiveSet, Step};
use crate::cancel::CancelToken;
use std::fmt;
use std::ops::ControlFlow;

/// <M - B_F, ∇f>, an upper bound of f - f* when B_F is the true best atom for the gradient over all triplets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// Search and gradient were exact: f is at most this far above the optimum.
    Certified(f64),
    /// A heuristic search or a batch: a hint, no bound.
    Estimate(f64),
}

impl Gap {
    /// The number, whatever it is worth.
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

/// One iteration, after its step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Iteration {
    /// Which, counted from 1.
    pub iter: usize,
    /// What was done.
    pub step: Step,
    /// γ of the line search.
    pub gamma: f64,
    /// f after the step.
    pub objective: f64,
    /// The gap before the step, where the direction was chosen.
    pub gap: Gap,
    /// Active atoms after the step.
    pub n_atoms: usize,
    /// Features they use.
    pub n_active_features: usize,
    /// Seconds of solver time so far; the observer's own time does not count.
    pub seconds: f64,
}

/// Sees each iteration and may end the run.
pub trait Observer {
    /// Called after each step; [`ControlFlow::Break`] ends the run with [`Stop::ObserverAsked`].
    fn after(&mut self, now: &Iteration, active: &ActiveSet) -> ControlFlow<()>;

    /// Looked at before the first iteration, while the books are set up; raised, it ends the run with
    /// [`Error::Stopped`](crate::Error::Stopped).
    fn cancel(&self) -> CancelToken<'_> {
        CancelToken::NEVER
    }
}

/// Any closure will do; `()` watches nothing.
impl<F: FnMut(&Iteration, &ActiveSet) -> ControlFlow<()>> Observer for F {
    fn after(&mut self, now: &Iteration, active: &ActiveSet) -> ControlFlow<()> {
        self(now, active)
    }
}

impl Observer for () {
    fn after(&mut self, _: &Iteration, _: &ActiveSet) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Why a run ended. Stopping early is an outcome, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The iterations allowed were used up.
    MaxIter,
    /// The certified gap is within the tolerance.
    Tolerance,
    /// The next step would use more features than allowed.
    FeatureBudget,
    /// The time allowed was used up.
    TimeLimit,
    /// Every triplet is satisfied with margin 1: the loss is 0.
    Satisfied,
    /// No direction leads down any more, to rounding.
    Stationary,
    /// The validation error has not improved for long enough.
    Patience,
    /// The observer asked for it.
    ObserverAsked,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::MaxIter => "max-iter",
            Stop::Tolerance => "tolerance",
            Stop::FeatureBudget => "feature-budget",
            Stop::TimeLimit => "time-limit",
            Stop::Satisfied => "satisfied",
            Stop::Stationary => "stationary",
            Stop::Patience => "patience",
            Stop::ObserverAsked => "interrupted",
        })
    }
}

/// Objective and gap at one iterate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IterateFacts {
    /// f.
    pub objective: f64,
    /// The gap as the search of the next iteration saw it.
    pub gap: Gap,
}

/// A finished run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// Every step, from which every iterate can be had again.
    pub path: Path,
    /// The last iterate.
    pub active: ActiveSet,
    /// One entry an iterate: the start, then one a step.
    pub trace: Vec<IterateFacts>,
    /// Why it ended.
    pub stop: Stop,
    /// Seconds the solver worked, without the observer.
    pub seconds: f64,
}

impl Run {
    /// f at the last iterate.
    pub fn objective(&self) -> f64 {
        self.trace.last().map_or(f64::NAN, |p| p.objective)
    }

    /// The gap at the last iterate.
    pub fn gap(&self) -> Gap {
        self.trace.last().map_or(Gap::Estimate(f64::NAN), |p| p.gap)
    }
}
