//! The record of a run: the path in external feature numbering, objective and gap at each iterate.

use crate::atoms::{ActiveSet, Path, Step};
use crate::error::Result;
use crate::objective::Problem;
use crate::observer::{Gap, Iteration, Stop};

/// Objective and gap at one iterate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IterateFacts {
    /// f.
    pub objective: f64,
    /// The gap, from the oracle of the next iteration.
    pub gap: Gap,
}

/// A finished run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// Every step, from which every iterate can be computed.
    pub path: Path,
    /// The last iterate.
    pub active: ActiveSet,
    /// One entry per iterate: the start, then one per step.
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
    run: Run,
    /// The latest gap at the iterate.
    gap: Gap,
}

impl<'p> Trace<'p> {
    /// The record of a run that starts at an active set in internal numbering.
    pub(super) fn new(problem: &'p Problem<'p>, active: &ActiveSet) -> Result<Self> {
        let start = active
            .iter()
            .map(|(atom, weight)| (problem.external(atom), weight));
        let path = Path::new(start.collect(), Vec::new())?;
        let run = Run {
            active: path.at(0)?,
            path,
            trace: Vec::new(),
            stop: Stop::MaxIter,
            seconds: 0.0,
        };
        let gap = Gap::Estimate(f64::INFINITY);
        Ok(Self { problem, run, gap })
    }

    /// The number of the next iteration, from 1.
    pub(super) fn iteration(&self) -> usize {
        self.run.path.len() + 1
    }

    /// The iterate.
    pub(super) fn active(&self) -> &ActiveSet {
        &self.run.active
    }

    /// Records objective and gap of the iterate. A stalled iteration leaves the iterate as it is, and does not change the
    /// record.
    pub(super) fn record(&mut self, objective: f64, gap: Gap) {
        self.gap = gap;
        if self.run.trace.len() < self.iteration() {
            self.run.trace.push(IterateFacts { objective, gap });
        }
    }

    /// Records a step, given in internal numbering, and the objective after it.
    pub(super) fn advance(&mut self, mut step: Step, objective: f64, seconds: f64) -> Iteration {
        step.atoms_mut()
            .for_each(|atom| *atom = self.problem.external(*atom));
        self.run.active.apply(&step);
        self.run.path.push(step);
        Iteration {
            iter: self.run.path.len(),
            objective,
            gap: self.gap,
            seconds,
        }
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
