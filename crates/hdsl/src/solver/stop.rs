//! Stopping rules.

use super::direction::Direction;
use super::params::SolverParams;
use crate::atoms::ActiveSet;
use crate::observer::{Gap, Stop};
use std::time::Duration;

/// A run ends as stationary after this many stalled iterations in a row, where a stalled iteration takes no step. One
/// stalled iteration is not enough: the oracle may find a descent direction from its next start.
const MAX_STALLED: usize = 30;
/// The same with mini-batches. Directions from a batch stall more often.
const MAX_STALLED_BATCHES: usize = 300;

/// The stop rules of a run.
pub(super) struct StopRules<'a> {
    params: &'a SolverParams,
    /// Stalled iterations since the last step.
    stalled: usize,
    /// Whether the observer asked to end the run after the last step.
    pub(super) requested: bool,
}

impl<'a> StopRules<'a> {
    pub(super) fn new(params: &'a SolverParams) -> Self {
        Self {
            params,
            stalled: 0,
            requested: false,
        }
    }

    /// The reason to end the run at the current iterate, before iteration `iter`, whatever the gap is; `None` if there is none.
    pub(super) fn due(&self, iter: usize, elapsed: Duration) -> Option<Stop> {
        let timed_out = self.params.time_limit.is_some_and(|limit| elapsed >= limit);
        let rules = [
            (Stop::ObserverAsked, self.requested),
            (Stop::MaxIter, iter > self.params.max_iter),
            (Stop::TimeLimit, timed_out),
        ];
        rules.into_iter().find(|rule| rule.1).map(|rule| rule.0)
    }

    /// The reason to end the run at an iterate with this gap, where `due` is that of [`StopRules::due`]; `None` to continue.
    pub(super) fn at_iterate(&self, due: Option<Stop>, gap: Gap) -> Option<Stop> {
        let tolerance = self.params.tolerance.filter(|_| gap.is_certified());
        match tolerance.is_some_and(|tolerance| gap.value() <= tolerance) {
            true if due != Some(Stop::ObserverAsked) => Some(Stop::Tolerance),
            _ => due,
        }
    }

    /// The reason to end the run at an iterate with objective 0, which is the minimum: `Satisfied`, unless the observer
    /// asked to stop.
    pub(super) fn at_zero_objective(&self) -> Stop {
        match self.requested {
            true => Stop::ObserverAsked,
            false => Stop::Satisfied,
        }
    }

    /// Stalled iterations since the last step.
    pub(super) fn n_stalled(&self) -> usize {
        self.stalled
    }

    /// Counts a stalled iteration. Returns whether the run ends as stationary: after too many of them in a row.
    pub(super) fn count_stalled(&mut self) -> bool {
        self.stalled += 1;
        let limit = match self.params.batch {
            Some(_) => MAX_STALLED_BATCHES,
            None => MAX_STALLED,
        };
        self.stalled == limit
    }

    /// Whether a step along `direction` would exceed `max_features`. Also resets the count of stalled iterations,
    /// because this iteration is not stalled.
    pub(super) fn exceeds_budget(&mut self, direction: Direction, active: &ActiveSet) -> bool {
        self.stalled = 0;
        let n_features = active.n_features() + direction.new_features(active);
        self.params.max_features.is_some_and(|max| n_features > max)
    }
}
