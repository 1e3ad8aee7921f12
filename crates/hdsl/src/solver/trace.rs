//! What a run tells: an event an iteration, a reason at the end, and who may listen.

use crate::atoms::{ActiveSet, Atom, Path, Step};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::Problem;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

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

/// The record of a run under way, in external feature numbering.
pub(super) struct Trace<'p> {
    problem: &'p Problem<'p>,
    start: Vec<(Atom, f64)>,
    steps: Vec<Step>,
    active: ActiveSet,
    facts: Vec<IterateFacts>,
    /// The latest gap at the iterate.
    gap: Gap,
}

impl<'p> Trace<'p> {
    /// The record of a run that starts at an active set in internal numbering.
    pub(super) fn new(problem: &'p Problem<'p>, active: &ActiveSet) -> Result<Self> {
        let start: Vec<(Atom, f64)> = active
            .iter()
            .map(|(atom, weight)| (problem.outside(atom), weight))
            .collect();
        Ok(Self {
            problem,
            active: ActiveSet::from_weighted(&start)?,
            start,
            steps: Vec::new(),
            facts: Vec::new(),
            gap: Gap::Estimate(f64::INFINITY),
        })
    }

    /// The number of the next iteration, from 1.
    pub(super) fn iteration(&self) -> usize {
        self.steps.len() + 1
    }

    /// The iterate.
    pub(super) fn active(&self) -> &ActiveSet {
        &self.active
    }

    /// Records objective and gap of the iterate. A stalled iteration leaves the iterate as it is, and does not change the
    /// record.
    pub(super) fn record(&mut self, objective: f64, gap: Gap) {
        self.gap = gap;
        if self.facts.len() < self.iteration() {
            self.facts.push(IterateFacts { objective, gap });
        }
    }

    /// Records a step, given in internal numbering, and the objective after it.
    pub(super) fn advance(
        &mut self,
        step: Step,
        gamma: f64,
        objective: f64,
        elapsed: Duration,
    ) -> Iteration {
        let step = step.map_atoms(|atom| self.problem.outside(atom));
        self.active.apply(&step);
        self.steps.push(step);
        Iteration {
            iter: self.steps.len(),
            step,
            gamma,
            objective,
            gap: self.gap,
            n_atoms: self.active.len(),
            n_active_features: self.active.n_features(),
            seconds: elapsed.as_secs_f64(),
        }
    }

    pub(super) fn finish(self, stop: Stop, elapsed: Duration) -> Result<Run> {
        Ok(Run {
            path: Path::new(self.start, self.steps)?,
            active: self.active,
            trace: self.facts,
            stop,
            seconds: elapsed.as_secs_f64(),
        })
    }
}
