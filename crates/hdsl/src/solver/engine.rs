//! The trait of a solver state, as Alg. 1 needs it: the iterate M^(k), a convex combination of atoms, and the gradient
//! at it.

use super::gradient::SymmetrizedGradient;
use crate::atoms::{ActiveSet, Atom, Step};
use crate::solver::direction::Direction;
use rand_chacha::ChaCha8Rng;

pub(crate) trait Engine<'p> {
    /// The gradient at the iterate, and the active atoms.
    fn gradient(&mut self) -> &mut SymmetrizedGradient<'p>;
    /// Brings the gradient up to date. With mini-batches, draws a new batch and computes the gradient over it.
    fn refresh(&mut self, _rng: &mut ChaCha8Rng) {
        self.refresh_all();
    }
    /// Brings the gradient over all triplets up to date.
    fn refresh_all(&mut self);
    /// <B - M, -∇f> of some atoms, estimated on a second batch that is independent of the one they were selected on.
    /// `None` if the gradient is over all triplets.
    fn reestimated_rates(&mut self, _atoms: &[Atom], _rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        None
    }
    /// f at the iterate.
    fn objective(&mut self) -> f64;
    /// Replaces the iterate.
    fn start_at(&mut self, active: ActiveSet);
    /// The γ in [0, gamma_max] that minimizes f(M + γ D), over all triplets.
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
    /// Takes a step of length `gamma` along the direction of the last line search.
    fn advance(&mut self, step: &Step, gamma: f64);
}
