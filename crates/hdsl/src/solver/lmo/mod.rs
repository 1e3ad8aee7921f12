//! The linear minimization oracle, line 3 of Alg. 1: an atom B_F that minimizes <B, ∇f> over all d(d-1) atoms.

mod alternating;
mod exact;
mod panel;

pub(crate) use alternating::alternating;
pub(crate) use exact::Exact;

use super::engine::SymmetrizedGradient;
use super::params::{Search, SolverParams};
use crate::objective::Scored;
use crate::random;
use rand_chacha::ChaCha8Rng;

/// What an oracle found.
pub(crate) struct Answer {
    /// The atom and its score.
    pub(crate) forward: Scored,
    /// Whether no atom has a higher score.
    pub(crate) exact: bool,
}

/// A linear minimization oracle.
pub(crate) trait Oracle {
    /// The atom to start from, for the gradient at M = 0.
    fn initial<'p>(&mut self, gradient: &mut impl SymmetrizedGradient<'p>) -> Answer;

    /// The forward atom of iteration `iter`, no worse than `best_active`. The best active atom is at least as good as M
    /// itself, so that the forward direction is one of descent.
    fn forward<'p>(
        &mut self,
        gradient: &mut impl SymmetrizedGradient<'p>,
        best_active: Scored,
        iter: usize,
        rng: &mut ChaCha8Rng,
    ) -> Answer;
}

/// The oracle that [`Search`] names. The heuristic asks for an exact answer now and then if there is a tolerance to
/// certify.
pub(crate) struct AtomOracle {
    search: Search,
    tolerance: Option<f64>,
    /// The first iteration whose heuristic answer may be followed by an exact one.
    next_certificate: usize,
    exact: Exact,
}

impl AtomOracle {
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

    /// The best of all atoms, whatever the search of the run.
    pub(crate) fn best<'p>(&mut self, gradient: &mut impl SymmetrizedGradient<'p>) -> Scored {
        let start = gradient.best_diagonal();
        let found = alternating(gradient, start);
        self.exact.best(gradient, found)
    }

    /// A heuristic answer, or the exact one that it is the start for.
    fn answer<'p>(
        &mut self,
        gradient: &mut impl SymmetrizedGradient<'p>,
        found: Scored,
        exact: bool,
    ) -> Answer {
        let forward = match exact {
            true => self.exact.best(gradient, found),
            false => found,
        };
        Answer { forward, exact }
    }

    /// Whether a heuristic answer needs to be followed by an exact one. A heuristic gap above the tolerance proves that
    /// the true one is above it, too.
    fn needs_certificate<'p>(
        &self,
        gradient: &impl SymmetrizedGradient<'p>,
        found: Scored,
        iter: usize,
    ) -> bool {
        let gap = gradient.gain(found.1) - gradient.gain_of_model();
        self.tolerance.is_some_and(|tolerance| gap <= tolerance) && iter >= self.next_certificate
    }
}

impl Oracle for AtomOracle {
    fn initial<'p>(&mut self, gradient: &mut impl SymmetrizedGradient<'p>) -> Answer {
        let start = gradient.best_diagonal();
        let found = alternating(gradient, start);
        self.answer(gradient, found, self.search == Search::Exact)
    }

    fn forward<'p>(
        &mut self,
        gradient: &mut impl SymmetrizedGradient<'p>,
        best_active: Scored,
        iter: usize,
        rng: &mut ChaCha8Rng,
    ) -> Answer {
        let problem = gradient.problem();
        // A random feature and the best diagonal in turn: each start alone stalls on some data.
        let start = if iter.is_multiple_of(2) {
            random::below(rng, problem.n_columns()) as u32
        } else {
            gradient.best_diagonal()
        };
        let found = problem.better(best_active, alternating(gradient, start));
        let exact = self.search == Search::Exact || self.needs_certificate(gradient, found, iter);
        if exact {
            self.next_certificate = iter + 10 + iter / 10;
        }
        self.answer(gradient, found, exact)
    }
}
