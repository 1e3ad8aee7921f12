//! The record of a run: its path in external feature indices, and the objective and the gap at each iterate.

use super::engine::Gradient;
use crate::atoms::{ActiveSet, Atom, Path, Step};
use crate::error::Result;
use crate::objective::Features;
use crate::observer::{Gap, Iteration, Stop};

/// Objective and gap at one iterate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IterateFacts {
    /// The objective f of Eq. 1.
    pub objective: f64,
    /// The duality gap, computed from the best atom known at this iterate: the oracle's, or the best active one.
    pub gap: Gap,
}

/// A finished run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// The first iterate and all steps. Replaying it gives any iterate.
    pub path: Path,
    /// The last iterate.
    pub active: ActiveSet,
    /// One entry for the first iterate, then one per step.
    pub trace: Vec<IterateFacts>,
    /// Why the run ended.
    pub stop: Stop,
    /// The time of the run in seconds, without the time spent in the observer.
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

/// The record of a run in progress, in external feature indices.
pub(super) struct Trace<'p> {
    features: &'p Features,
    run: Run,
    /// The gap at the current iterate, from the latest iteration. Stalled iterations compute it again.
    gap: Gap,
    /// f after the last step.
    objective: f64,
}

impl<'p> Trace<'p> {
    /// Starts a record at the iterate of this gradient.
    pub(super) fn new(gradient: &impl Gradient<'p>) -> Result<Self> {
        let features = gradient.features();
        let active = gradient.active().iter();
        let start = active.map(|(atom, weight)| (features.external(atom), weight));
        let path = Path::new(start.collect(), Vec::new())?;
        let run = Run {
            active: path.at(0)?,
            path,
            trace: Vec::new(),
            stop: Stop::MaxIter,
            seconds: 0.0,
        };
        let gap = Gap::Estimate(f64::INFINITY);
        Ok(Self {
            features,
            run,
            gap,
            objective: f64::NAN,
        })
    }

    /// The number of the next iteration; the first is 1.
    pub(super) fn iteration(&self) -> usize {
        self.run.path.len() + 1
    }

    /// The current iterate.
    pub(super) fn active(&self) -> &ActiveSet {
        &self.run.active
    }

    /// The atoms and weights of the first iterate.
    pub(super) fn start(&self) -> &[(Atom, f64)] {
        self.run.path.start()
    }

    /// The last step, and the facts of the iterate before it.
    pub(super) fn last_step(&self) -> (Step, IterateFacts) {
        let steps = self.run.path.steps();
        let step = steps.last().expect("a step was taken");
        (*step, self.run.trace[steps.len() - 1])
    }

    /// Records objective and gap of the current iterate. If stalled iterations record the same iterate again, their gap replaces
    /// the first one, unless that is certified: it is that of a search.
    pub(super) fn record(&mut self, objective: f64, gap: Gap) {
        self.gap = gap;
        let at = self.run.path.len();
        match self.run.trace.get_mut(at) {
            None => self.run.trace.push(IterateFacts { objective, gap }),
            Some(known) if known.gap.is_certified() => self.gap = known.gap,
            Some(known) => known.gap = gap,
        }
    }

    /// Records a step, given in internal feature indices, and returns the facts of the iteration. `objective` is its
    /// value after the step.
    pub(super) fn advance(&mut self, mut step: Step, objective: f64, seconds: f64) -> Iteration {
        step.atoms_mut()
            .for_each(|atom| *atom = self.features.external(*atom));
        self.run.active.apply(&step);
        self.run.path.push(step);
        self.objective = objective;
        Iteration {
            iter: self.run.path.len(),
            objective,
            gap: self.gap,
            seconds,
        }
    }

    /// Records the last iterate of a run that ended before its gap was known, with the gap before the last step.
    pub(super) fn close(&mut self) {
        self.record(self.objective, self.gap);
    }

    /// The finished run.
    pub(super) fn finish(self, stop: Stop, seconds: f64) -> Run {
        Run {
            stop,
            seconds,
            ..self.run
        }
    }
}
