//! The solver state as Alg. 1 needs it: the iterate M^(k), a convex combination of atoms, and the gradient at it.
//!
//! [`Engine`] and [`Gradient`] are what the algorithm and its oracles call. Their methods may fail, because the triplets may
//! be on other machines (`sharded/`). A [`LocalEngine`] has all triplets in this process and never fails;
//! every local engine is an engine.

use super::direction::Direction;
use super::gradient::SymmetrizedGradient;
use super::lmo::Exact;
use crate::atoms::{ActiveSet, Atom, Step};
use crate::error::Result;
use crate::objective::{Features, Scored};
use rand_chacha::ChaCha8Rng;

/// The solver state.
pub(crate) trait Engine<'p> {
    /// The gradient at the iterate.
    type Gradient: Gradient<'p>;

    /// The gradient at the iterate, and the active atoms.
    fn gradient(&mut self) -> &mut Self::Gradient;
    /// Brings the gradient up to date. With mini-batches, draws a new batch and computes the gradient over it.
    fn refresh(&mut self, rng: &mut ChaCha8Rng) -> Result<()>;
    /// Brings the gradient over all triplets up to date.
    fn refresh_all(&mut self) -> Result<()>;
    /// <B - M, -∇f> of some atoms, estimated on a second batch that is independent of the one they were selected on.
    /// `None` if the gradient is over all triplets.
    fn reestimated_rates(
        &mut self,
        atoms: &[Atom],
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<f64>>>;
    /// f at the iterate.
    fn objective(&mut self) -> Result<f64>;
    /// The relative rounding error by which the objective of the same steps may differ: 0 where sums are always added in the
    /// same order.
    fn rounding(&self) -> f64 {
        0.0
    }
    /// Replaces the iterate.
    fn start_at(&mut self, active: ActiveSet) -> Result<()>;
    /// The γ in [0, gamma_max] that minimizes f(M + γ D), over all triplets.
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> Result<f64>;
    /// Takes a step of length `gamma` along the direction of the last line search.
    fn advance(&mut self, step: &Step, gamma: f64) -> Result<()>;
}

/// The symmetrized gradient H = G + Gᵀ and its half diagonal D at an iterate, as the oracles need them. The score of an
/// atom is D_i + D_j ± H_ij. Features are internal.
pub(crate) trait Gradient<'p> {
    /// The features of the problem.
    fn features(&self) -> &'p Features;
    /// The active atoms with their weights.
    fn active(&self) -> &ActiveSet;
    /// <B, -∇f> of an atom with this score.
    fn gain(&self, score: f64) -> f64;
    /// <M, -∇f>.
    fn gain_of_model(&self) -> f64;
    /// The score of every active atom, in the order of the active set.
    fn active_scores(&self) -> Vec<f64>;
    /// The feature with the largest D; the first one if several are equal.
    fn best_diagonal(&mut self) -> Result<u32>;
    /// The best atom that contains this feature, or `floor` if that is better.
    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Result<Scored>;
    /// Says, before a step, that the search after it starts from the feature that `draw` returns. An engine over shards asks
    /// for its row of H in the same round as the step.
    fn plan(&mut self, _draw: &mut dyn FnMut() -> u32) {}
    /// The best of all atoms, or `found` if that is at least as good.
    fn best_atom(&mut self, exact: &mut Exact, found: Scored) -> Result<Scored>;
}

/// A solver state with all triplets in this process. The methods are those of [`Engine`].
pub(crate) trait LocalEngine<'p> {
    fn gradient(&mut self) -> &mut SymmetrizedGradient<'p>;
    fn refresh(&mut self, _rng: &mut ChaCha8Rng) {
        self.refresh_all();
    }
    fn refresh_all(&mut self);
    fn reestimated_rates(&mut self, _atoms: &[Atom], _rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        None
    }
    fn objective(&mut self) -> f64;
    fn start_at(&mut self, active: ActiveSet);
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
    fn advance(&mut self, step: &Step, gamma: f64);
}

impl<'p, E: LocalEngine<'p>> Engine<'p> for E {
    type Gradient = SymmetrizedGradient<'p>;

    fn gradient(&mut self) -> &mut SymmetrizedGradient<'p> {
        LocalEngine::gradient(self)
    }

    fn refresh(&mut self, rng: &mut ChaCha8Rng) -> Result<()> {
        LocalEngine::refresh(self, rng);
        Ok(())
    }

    fn refresh_all(&mut self) -> Result<()> {
        LocalEngine::refresh_all(self);
        Ok(())
    }

    fn reestimated_rates(
        &mut self,
        atoms: &[Atom],
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<f64>>> {
        Ok(LocalEngine::reestimated_rates(self, atoms, rng))
    }

    fn objective(&mut self) -> Result<f64> {
        Ok(LocalEngine::objective(self))
    }

    fn start_at(&mut self, active: ActiveSet) -> Result<()> {
        LocalEngine::start_at(self, active);
        Ok(())
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> Result<f64> {
        Ok(LocalEngine::search_line(self, direction, gamma_max))
    }

    fn advance(&mut self, step: &Step, gamma: f64) -> Result<()> {
        LocalEngine::advance(self, step, gamma);
        Ok(())
    }
}

impl<'p> Gradient<'p> for SymmetrizedGradient<'p> {
    fn features(&self) -> &'p Features {
        &self.problem().features
    }

    fn active(&self) -> &ActiveSet {
        self.active()
    }

    fn gain(&self, score: f64) -> f64 {
        self.gain(score)
    }

    fn gain_of_model(&self) -> f64 {
        self.gain_of_model()
    }

    fn active_scores(&self) -> Vec<f64> {
        self.active_scores()
    }

    fn best_diagonal(&mut self) -> Result<u32> {
        Ok(self.best_diagonal())
    }

    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Result<Scored> {
        Ok(self.best_partner(feature, floor))
    }

    fn best_atom(&mut self, exact: &mut Exact, found: Scored) -> Result<Scored> {
        Ok(exact.best(self, found))
    }
}
