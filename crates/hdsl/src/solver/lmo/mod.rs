//! The linear minimization oracle, line 3 of Alg. 1: an atom B_F that minimizes <B, ∇f> over all d(d-1) atoms.

mod alternating;
mod exact;
mod panel;

pub(crate) use alternating::alternating;
pub(crate) use exact::{Exact, row_bounds};

use super::engine::Gradient;
use super::params::{Search, SolverParams};
use crate::error::Result;
use crate::objective::Scored;
use crate::random;
use rand_chacha::ChaCha8Rng;

/// The oracle that [`Search`] names. If there is a tolerance, the heuristic sometimes calls the exact oracle, to
/// certify that the gap is within it.
pub(crate) struct Oracle {
    search: Search,
    tolerance: Option<f64>,
    /// The first iteration in which the heuristic may call the exact oracle again.
    next_certificate: usize,
    exact: Exact,
}

impl Oracle {
    pub(crate) fn new(params: &SolverParams) -> Self {
        Self {
            search: params.search,
            tolerance: params.tolerance,
            next_certificate: 0,
            exact: Exact::default(),
        }
    }

    /// Before a step: lets the gradient know the start of the search in iteration `iter`, if it is random.
    pub(crate) fn plan<'p>(&self, gradient: &mut impl Gradient<'p>, iter: usize, rng: &ChaCha8Rng) {
        let n = gradient.features().len();
        if iter.is_multiple_of(2) {
            // The search itself draws the same number.
            gradient.plan(&mut || random::below(&mut rng.clone(), n) as u32);
        }
    }

    /// The first iteration in which the heuristic may call the exact oracle again.
    pub(crate) fn next_certificate(&self) -> usize {
        self.next_certificate
    }

    /// Goes on as an oracle that returned this.
    pub(crate) fn set_next_certificate(&mut self, iter: usize) {
        self.next_certificate = iter;
    }

    /// The same oracle with another exact search.
    #[cfg(test)]
    pub(crate) fn with_exact(params: &SolverParams, exact: Exact) -> Self {
        Self {
            exact,
            ..Self::new(params)
        }
    }

    /// The best atom that the given search finds. It need not be the search of the run.
    pub(crate) fn best<'p>(
        &mut self,
        gradient: &mut impl Gradient<'p>,
        search: Search,
    ) -> Result<Scored> {
        let start = gradient.best_diagonal()?;
        let found = alternating(gradient, start)?;
        match search {
            Search::Alternating => Ok(found),
            Search::Exact => gradient.best_atom(&mut self.exact, found),
        }
    }

    /// The forward atom, and whether it was found by the exact oracle. Its score is at least that of `best_active`. The best
    /// active atom has <B, -∇f> >= <M, -∇f>, so the rate of the forward direction is never negative. `turn` counts
    /// iterations, stalled ones too.
    pub(crate) fn forward<'p>(
        &mut self,
        gradient: &mut impl Gradient<'p>,
        best_active: Scored,
        turn: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Scored, bool)> {
        let features = gradient.features();
        // Starts from a random feature and from the one with the largest D in turn. On some data, either start alone
        // stalls.
        let start = match turn.is_multiple_of(2) {
            true => random::below(rng, features.len()) as u32,
            false => gradient.best_diagonal()?,
        };
        let found = features.better(best_active, alternating(gradient, start)?);
        // The gap of the heuristic is a lower bound of the true one. If it is above the tolerance, so is the true one.
        let gap = gradient.gain(found.1) - gradient.gain_of_model();
        let may_end = self.tolerance.is_some_and(|tolerance| gap <= tolerance);
        if self.search == Search::Exact || (may_end && turn >= self.next_certificate) {
            self.next_certificate = turn + 10 + turn / 10;
            Ok((gradient.best_atom(&mut self.exact, found)?, true))
        } else {
            Ok((found, false))
        }
    }
}
