//! The rules that end a run.

use super::direction::Direction;
use super::params::SolverParams;
use crate::atoms::ActiveSet;
use crate::observer::{Gap, Stop};
use std::time::Duration;

/// Stalled iterations in a row after which a run counts as stationary. A random start of the oracle may fail once, but
/// not this often. The gradient over a batch fails more often.
const STALLED: usize = 30;
const STALLED_BATCHES: usize = 300;

/// The stop rules of a run.
pub(super) struct StopRules<'a> {
    params: &'a SolverParams,
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

    /// Whether the run ends at this iterate, before iteration `iter`.
    pub(super) fn at_iterate(&self, iter: usize, gap: Gap, elapsed: Duration) -> Option<Stop> {
        let params = self.params;
        let certified = gap.is_certified();
        let converged = certified && params.tolerance.is_some_and(|t| gap.value() <= t);
        let timed_out = params.time_limit.is_some_and(|limit| elapsed >= limit);
        let rules = [
            (Stop::ObserverAsked, self.requested),
            (Stop::Tolerance, converged),
            (Stop::MaxIter, iter > params.max_iter),
            (Stop::TimeLimit, timed_out),
        ];
        rules.into_iter().find(|rule| rule.1).map(|rule| rule.0)
    }

    /// Why a run ends whose objective is 0.
    pub(super) fn at_zero(&self) -> Stop {
        match self.requested {
            true => Stop::ObserverAsked,
            false => Stop::Satisfied,
        }
    }

    /// Counts an iteration that takes no step; whether there were so many in a row that the run is stationary.
    pub(super) fn is_stationary(&mut self) -> bool {
        self.stalled += 1;
        let most = match self.params.batch {
            Some(_) => STALLED_BATCHES,
            None => STALLED,
        };
        self.stalled == most
    }

    /// Whether a step along `direction` would use more features than allowed. Such a step makes progress, and ends a
    /// series of stalled iterations.
    pub(super) fn exceeds_budget(&mut self, direction: Direction, active: &ActiveSet) -> bool {
        self.stalled = 0;
        let n_features = active.n_features() + direction.new_features(active);
        self.params
            .max_features
            .is_some_and(|most| n_features > most)
    }
}
