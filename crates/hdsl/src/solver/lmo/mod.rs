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

/// Where the heuristic starts in an iteration. The kinds of start take turns, because each alone stalls on some data.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// The first or the second feature of the best active atom.
    BestActive {
        second: bool,
    },
    /// The feature with the largest D.
    BestDiagonal,
    Random,
}

impl Start {
    /// The start of one turn. After a line search, two active atoms have the same score but for rounding errors, which would
    /// decide which of them is the best one.
    fn of(turn: usize, n_active: usize) -> Self {
        match turn % 4 {
            0 if n_active > 2 => Start::BestActive { second: false },
            2 if n_active > 2 => Start::BestActive { second: true },
            3 => Start::Random,
            _ => Start::BestDiagonal,
        }
    }
}

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

    /// Before a step: lets the gradient know the start of the search in the next turn, if it is random.
    pub(crate) fn plan<'p>(&self, gradient: &mut impl Gradient<'p>, turn: usize, rng: &ChaCha8Rng) {
        let (n, n_active) = (gradient.features().len(), gradient.active().len());
        if Start::of(turn, n_active) == Start::Random {
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
        let found = alternating(gradient, start, None)?;
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
        let (start, floor) = match Start::of(turn, gradient.active().len()) {
            Start::BestActive { second: false } => (best_active.0.i(), Some(best_active)),
            Start::BestActive { second: true } => (best_active.0.j(), Some(best_active)),
            // These features may have no good atom themselves, but the partner of their partner may have one.
            Start::BestDiagonal => (gradient.best_diagonal()?, None),
            Start::Random => (random::below(rng, features.len()) as u32, None),
        };
        let found = features.better(best_active, alternating(gradient, start, floor)?);
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
