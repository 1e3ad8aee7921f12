//! A direction as rows and triplets see it.

use crate::atoms::Atom;
use crate::objective::Problem;
use crate::solver::direction::Direction;

/// A direction as triplets see it: m(γ) = (1 + rate γ) m + γ b, where b is 0 for triplets that are not affected.
#[derive(Clone, Copy)]
pub(super) struct Motion<'a> {
    /// z of the atom moved to (forward, pairwise) or from (away), and the sign of its <A^t, B>.
    main: &'a [f64],
    sign: f64,
    /// z of the atom moved from, in a pairwise step.
    other: Option<&'a [f64]>,
    /// Rows where either is not 0, increasing.
    pub(super) rows: &'a [u32],
}

impl Motion<'_> {
    /// b: the change of a margin per γ that comes from atoms rather than from the rescaling of all weights.
    pub(super) fn atom_margin(&self, scale: f64, anchor: usize, near: usize, far: usize) -> f64 {
        let mut b = scale * self.main[anchor] * (self.main[near] - self.main[far]);
        if let Some(other) = self.other {
            b -= scale * other[anchor] * (other[near] - other[far]);
        }
        self.sign * b
    }
}

/// z = x_i ± x_j or a single column, dense and as the sorted list of rows where it is not 0.
#[derive(Default)]
pub(super) struct Projection {
    pub(super) z: Vec<f64>,
    pub(super) rows: Vec<u32>,
}

impl Projection {
    /// x_i ± x_j of an atom.
    pub(super) fn set(&mut self, problem: &Problem<'_>, atom: Atom) {
        self.clear(problem);
        self.add_column(problem, atom.i(), 1.0);
        self.add_column(problem, atom.j(), atom.sign().value());
        let columns = [atom.i(), atom.j()].map(|j| problem.lists.column(j).0);
        merge_rows(columns, &mut self.rows);
        self.rows.retain(|&row| self.z[row as usize] != 0.0);
    }

    fn set_column(&mut self, problem: &Problem<'_>, column: u32) {
        self.clear(problem);
        self.add_column(problem, column, 1.0);
        self.rows.extend_from_slice(problem.lists.column(column).0);
    }

    fn add_column(&mut self, problem: &Problem<'_>, column: u32, sign: f64) {
        let (rows, values) = problem.lists.column(column);
        for (&row, &x) in rows.iter().zip(values) {
            self.z[row as usize] += sign * x;
        }
    }

    fn clear(&mut self, problem: &Problem<'_>) {
        for row in self.rows.drain(..) {
            self.z[row as usize] = 0.0;
        }
        self.z.resize(problem.rows.n_rows(), 0.0);
    }
}

/// The union of two increasing lists.
fn merge_rows([a, b]: [&[u32]; 2], into: &mut Vec<u32>) {
    into.clear();
    let (mut p, mut q) = (0, 0);
    while p < a.len() || q < b.len() {
        let x = a.get(p).copied().unwrap_or(u32::MAX);
        let y = b.get(q).copied().unwrap_or(u32::MAX);
        into.push(x.min(y));
        p += usize::from(x <= y);
        q += usize::from(y <= x);
    }
}

/// The direction of the last line search, or the two columns of an atom.
#[derive(Default)]
pub(super) struct Moving {
    main: Projection,
    other: Projection,
    pairwise: bool,
    rows: Vec<u32>,
    /// -1 forward, 1 away, 0 pairwise.
    pub(super) rate: f64,
    sign: f64,
}

impl Moving {
    pub(super) fn set(&mut self, problem: &Problem<'_>, direction: Direction) {
        let (main, from) = match direction {
            Direction::Forward(atom) => {
                (self.rate, self.sign) = (-1.0, 1.0);
                (atom, None)
            }
            Direction::Away(atom) => {
                (self.rate, self.sign) = (1.0, -1.0);
                (atom, None)
            }
            Direction::Pairwise { to, from } => {
                (self.rate, self.sign) = (0.0, 1.0);
                (to, Some(from))
            }
        };
        self.main.set(problem, main);
        self.pairwise = from.is_some();
        if let Some(from) = from {
            self.other.set(problem, from);
            merge_rows([&self.main.rows, &self.other.rows], &mut self.rows);
        }
    }

    /// The two columns of an atom instead of a direction.
    pub(super) fn set_columns(&mut self, problem: &Problem<'_>, atom: Atom) {
        self.main.set_column(problem, atom.i());
        self.other.set_column(problem, atom.j());
        merge_rows([&self.main.rows, &self.other.rows], &mut self.rows);
    }

    /// Both columns, dense, and the rows that contain either feature.
    pub(super) fn columns(&self) -> (&[f64], &[f64], &[u32]) {
        (&self.main.z, &self.other.z, &self.rows)
    }

    pub(super) fn motion(&self) -> Motion<'_> {
        Motion {
            main: &self.main.z,
            sign: self.sign,
            other: self.pairwise.then_some(&self.other.z[..]),
            rows: match self.pairwise {
                true => &self.rows,
                false => &self.main.rows,
            },
        }
    }
}
