//! What Alg. 1 needs to know of the objective, whoever keeps the books.

use crate::atoms::{ActiveSet, Atom, Step};
use crate::objective::{Problem, Scored};
use crate::solver::direction::Direction;
use rand_chacha::ChaCha8Rng;

/// What a second batch says of atoms that a first one put forward.
pub(crate) struct Judgment {
    /// <B, -∇f> of each atom.
    pub(crate) gains: Vec<f64>,
    /// <M, -∇f>.
    pub(crate) of_model: f64,
}

/// The objective at the iterate of now, its gradient, and the way to the next iterate.
///
/// Scores are D_i + D_j ± H_ij of [`crate::objective::gradient`]; [`Engine::gain`] turns them into <B, -∇f>.
pub(crate) trait Engine<'p> {
    /// The problem being solved.
    fn problem(&self) -> &'p Problem<'p>;
    /// The iterate of now.
    fn active(&self) -> &ActiveSet;
    /// Makes this the iterate of now.
    fn start_at(&mut self, active: ActiveSet);
    /// f at the iterate of now.
    fn objective(&mut self) -> f64;
    /// Brings the gradient up to date, over a fresh batch if batches are asked for.
    fn refresh(&mut self, rng: &mut ChaCha8Rng);
    /// Brings the gradient over all triplets up to date.
    fn refresh_all(&mut self);
    /// <B, -∇f> of some atoms and <M, -∇f>, over a second batch that had no part in choosing them. None where no batches
    /// are asked for.
    fn judge(&mut self, _: &[Atom], _: &mut ChaCha8Rng) -> Option<Judgment> {
        None
    }
    /// <B, -∇f> of an atom with this score.
    fn gain(&self, score: f64) -> f64;
    /// <M, -∇f>.
    fn gain_of_model(&self) -> f64;
    /// Has D of all features at hand from now on, where it is otherwise computed when asked for.
    fn know_diagonal(&mut self) {}
    /// D of one feature.
    fn diagonal(&self, feature: u32) -> f64;
    /// The feature with the largest D, the first of equals.
    fn best_diagonal(&mut self) -> u32;
    /// The best atom that has this feature. Pairs that no triplet joins count: their H_ij is 0 but D_i + D_j need
    /// not be.
    fn best_with(&mut self, feature: u32) -> Scored;
    /// The score of every active atom, in their order.
    fn active_scores(&mut self) -> Vec<f64>;
    /// The better of `floor` and the best atom of this feature. A floor saves most of the work.
    fn best_above(&mut self, feature: u32, floor: Scored) -> Scored;
    /// Every pair of rows {p, q} with its sum of pushes s, which S holds at (p, q) and at (q, p); those with 0 may be
    /// left out, and a pair may come in several parts that add up.
    fn each_pair(&self, visit: impl FnMut(u32, u32, f64));
    /// The γ in [0, gamma_max] that minimizes f along the direction, over all triplets.
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
    /// Takes the step found by the line search just done.
    fn advance(&mut self, step: &Step, gamma: f64);
}
