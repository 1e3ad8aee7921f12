//! The linear minimization oracle, line 3 of Alg. 1: an atom B_F that minimizes <B, ∇f> over all d(d-1) atoms.

mod alternating;
mod exact;
mod panel;

pub(crate) use alternating::alternating;
pub(crate) use exact::Exact;

use super::gradient::SymmetrizedGradient;
use super::params::{Search, SolverParams};
use crate::objective::Scored;
use crate::random;
use rand_chacha::ChaCha8Rng;

/// The oracle that [`Search`] names. The heuristic asks for an exact answer now and then if there is a tolerance to
/// certify.
pub(crate) struct Oracle {
    search: Search,
    tolerance: Option<f64>,
    /// The first iteration whose heuristic answer may be followed by an exact one.
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

    /// The same oracle with another exact search.
    #[cfg(test)]
    pub(crate) fn with_exact(params: &SolverParams, exact: Exact) -> Self {
        Self {
            exact,
            ..Self::new(params)
        }
    }

    /// The best atom that this search finds, whatever the search of the run.
    pub(crate) fn best<'p>(
        &mut self,
        gradient: &mut SymmetrizedGradient<'p>,
        search: Search,
    ) -> Scored {
        let start = gradient.best_diagonal();
        let found = alternating(gradient, start);
        match search {
            Search::Alternating => found,
            Search::Exact => self.exact.best(gradient, found),
        }
    }

    /// The forward atom of iteration `iter`, no worse than `best_active`, and whether no atom has a higher score. The best
    /// active atom is at least as good as M itself, so that the forward direction is one of descent.
    pub(crate) fn forward<'p>(
        &mut self,
        gradient: &mut SymmetrizedGradient<'p>,
        best_active: Scored,
        iter: usize,
        rng: &mut ChaCha8Rng,
    ) -> (Scored, bool) {
        let problem = gradient.problem();
        // A random feature and the best diagonal in turn: each start alone stalls on some data.
        let start = match iter.is_multiple_of(2) {
            true => random::below(rng, problem.n_columns()) as u32,
            false => gradient.best_diagonal(),
        };
        let found = problem.better(best_active, alternating(gradient, start));
        // A heuristic gap above the tolerance proves that the true one is above it, too.
        let gap = gradient.gain(found.1) - gradient.gain_of_model();
        let may_end = self.tolerance.is_some_and(|tolerance| gap <= tolerance);
        if self.search == Search::Exact || (may_end && iter >= self.next_certificate) {
            self.next_certificate = iter + 10 + iter / 10;
            (self.exact.best(gradient, found), true)
        } else {
            (found, false)
        }
    }
}
