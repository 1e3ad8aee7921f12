//! What Alg. 1 asks of a solver state, in small traits: the iterate, the gradient there, the symmetrized gradient as an
//! oracle reads it, and the line search. An [`Engine`] has them all.

use crate::atoms::{ActiveSet, Atom, Step};
use crate::objective::{Problem, Scored};
use crate::solver::direction::Direction;
use rand_chacha::ChaCha8Rng;

/// The iterate M^(k), as a convex combination of atoms.
pub(crate) trait Iterate<'p> {
    /// The problem being solved.
    fn problem(&self) -> &'p Problem<'p>;
    /// The active atoms with their weights, in internal feature numbering.
    fn active(&self) -> &ActiveSet;
    /// f at the iterate.
    fn objective(&mut self) -> f64;
    /// Replaces the iterate.
    fn start_at(&mut self, active: ActiveSet);
    /// Takes a step of length `gamma` along the direction of the line search just done.
    fn advance(&mut self, step: &Step, gamma: f64);
}

/// The gradient at the iterate, over all triplets or over a batch.
///
/// The score of an atom is D_i + D_j ± H_ij, see [`crate::objective::gradient`]; [`Gradient::gain`] turns it into
/// <B, -∇f>.
pub(crate) trait Gradient<'p>: Iterate<'p> {
    /// Brings the gradient up to date, over a new batch in mini-batch mode.
    fn refresh(&mut self, _rng: &mut ChaCha8Rng) {
        self.refresh_all();
    }
    /// Brings the gradient over all triplets up to date.
    fn refresh_all(&mut self);
    /// <B, -∇f> of an atom with this score.
    fn gain(&self, score: f64) -> f64;
    /// <M, -∇f>.
    fn gain_of_model(&self) -> f64;
    /// The score of every active atom, in the order of the active set.
    fn active_scores(&mut self) -> Vec<f64>;
    /// <B - M, -∇f> of some atoms, estimated again on a second batch that had no part in choosing them. None if the
    /// gradient is over all triplets.
    fn reestimated_rates(&mut self, _atoms: &[Atom], _rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        None
    }
}

/// The symmetrized gradient H = G + Gᵀ = Xᵀ S X and its half diagonal D_i = H_ii / 2, as an oracle reads them.
pub(crate) trait SymmetrizedGradient<'p>: Gradient<'p> {
    /// The feature with the largest D, the first of equals.
    fn best_diagonal(&mut self) -> u32;
    /// The best atom that contains this feature, or `floor` if that is better. A floor saves most of the work. Pairs of
    /// features that no triplet joins count: their H_ij is 0, but D_i + D_j need not be.
    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Scored;
    /// D of every feature.
    fn diagonal(&mut self) -> Vec<f64>;
    /// Visits every pair of rows {p, q} with its pair coefficient, which S has at (p, q) and at (q, p). Zeros may be left
    /// out, and a coefficient may come in several parts that add up.
    fn each_pair(&self, visit: impl FnMut(u32, u32, f64));
}

/// The step length along a direction.
pub(crate) trait LineSearch {
    /// The γ in [0, gamma_max] that minimizes f(M + γ D), over all triplets.
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
}

/// A complete solver state.
pub(crate) trait Engine<'p>: SymmetrizedGradient<'p> + LineSearch {}

impl<'p, E: SymmetrizedGradient<'p> + LineSearch> Engine<'p> for E {}
