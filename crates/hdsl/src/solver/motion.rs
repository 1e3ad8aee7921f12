//! The effect of a step on rows and margins.

use crate::atoms::Atom;
use crate::objective::Problem;
use crate::solver::direction::Direction;

/// z = x_i ± x_j of an atom for every row x: a dense vector, and the sorted list of rows where z ≠ 0.
#[derive(Default)]
pub(super) struct Projection {
    pub(super) z: Vec<f64>,
    pub(super) rows: Vec<u32>,
}

impl Projection {
    pub(super) fn set(&mut self, problem: &Problem<'_>, atom: Atom) {
        for row in self.rows.drain(..) {
            self.z[row as usize] = 0.0;
        }
        self.z.resize(problem.rows.n_rows(), 0.0);
        problem.add_column(atom.i(), 1.0, &mut self.z);
        problem.add_column(atom.j(), atom.sign().value(), &mut self.z);
        self.rows = problem.rows_of(atom);
        self.rows.retain(|&row| self.z[row as usize] != 0.0);
    }
}

/// The effect of a step of length γ on a learned margin m: m(γ) = (1 + rate γ) m + γ b, where b is 0 for unaffected triplets.
#[derive(Default)]
pub(super) struct Motion {
    /// z of the atom that the step moves to (forward, pairwise) or away from. `rows` has all rows where b may differ
    /// from 0; in a pairwise step, that includes the rows of `other`.
    pub(super) main: Projection,
    /// z of the atom that a pairwise step moves away from.
    pub(super) other: Option<Projection>,
    /// The factor of z(anchor) (z(near) - z(far)) in b: λ, or -λ in an away step.
    pub(super) scale: f64,
    pub(super) rate: f64,
}

impl Motion {
    pub(super) fn set(&mut self, problem: &Problem<'_>, direction: Direction, rate: f64) {
        let (atom, from, sign) = match direction {
            Direction::Forward(atom) => (atom, None, 1.0),
            Direction::Away(atom) => (atom, None, -1.0),
            Direction::Pairwise { to, from } => (to, Some(from), 1.0),
        };
        (self.scale, self.rate) = (sign * problem.lambda, rate);
        self.main.set(problem, atom);
        self.other = from.map(|from| {
            let mut other = Projection::default();
            other.set(problem, from);
            self.main.rows.extend_from_slice(&other.rows);
            self.main.rows.sort();
            self.main.rows.dedup();
            other
        });
    }
}

impl Direction {
    /// The rate of m(γ) = (1 + rate γ) m, the learned margin of an unaffected triplet after a step of length γ.
    pub(super) fn rate(self) -> f64 {
        match self {
            Direction::Forward(_) => -1.0,
            Direction::Away(_) => 1.0,
            Direction::Pairwise { .. } => 0.0,
        }
    }
}
