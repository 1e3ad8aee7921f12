//! A direction as rows and triplets see it.

use crate::atoms::Atom;
use crate::objective::Problem;
use crate::solver::direction::Direction;

/// z = x_i ± x_j of an atom, dense and as the sorted list of rows where it may differ from 0.
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

/// A direction as triplets see it: m(γ) = (1 + rate γ) m + γ b, where b is 0 for triplets that are not affected.
#[derive(Default)]
pub(super) struct Motion {
    /// z of the atom moved to (forward, pairwise) or from (away), with all rows where b may differ from 0.
    pub(super) main: Projection,
    /// z of the atom moved from, in a pairwise step.
    pub(super) other: Option<Projection>,
    /// λ, or -λ if away.
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
    /// What a margin that is not affected is multiplied by, per γ and less 1.
    pub(super) fn rate(self) -> f64 {
        match self {
            Direction::Forward(_) => -1.0,
            Direction::Away(_) => 1.0,
            Direction::Pairwise { .. } => 0.0,
        }
    }
}
