//! A direction as rows and triplets see it.

use crate::atoms::Atom;
use crate::objective::Problem;
use crate::solver::direction::Direction;

/// A direction as the triplets see it: m(γ) = (1 + rate γ) m + γ b, with b = 0 where untouched.
#[derive(Clone, Copy)]
pub(super) struct Motion<'a> {
    /// z of the atom moved to (forward, pairwise) or from (away), and the sign its <A^t, B> comes in with.
    pub(super) main: &'a [f64],
    pub(super) sign: f64,
    /// z of the atom moved from, in a pairwise step.
    pub(super) other: Option<&'a [f64]>,
    /// Rows where either is not 0, increasing.
    pub(super) rows: &'a [u32],
}

impl Motion<'_> {
    /// The change of a margin per γ that comes from atoms rather than from the rescaling of all: ± <A^t, B>.
    pub(super) fn push(&self, scale: f64, anchor: usize, near: usize, far: usize) -> f64 {
        let mut b = scale * self.main[anchor] * (self.main[near] - self.main[far]);
        if let Some(other) = self.other {
            b -= scale * other[anchor] * (other[near] - other[far]);
        }
        self.sign * b
    }
}

/// The direction of the line search under way.
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

/// x_i ± x_j by row, spread out and as the sorted list of rows where it is not 0.
#[derive(Default)]
pub(super) struct Projection {
    pub(super) z: Vec<f64>,
    pub(super) rows: Vec<u32>,
}

impl Projection {
    pub(super) fn set(&mut self, problem: &Problem<'_>, atom: Atom) {
        self.clear();
        self.z.resize(problem.rows.n_rows(), 0.0);
        let (rows_i, values_i) = problem.lists.column(atom.i());
        let (rows_j, values_j) = problem.lists.column(atom.j());
        let sign = atom.sign().value();
        let (mut p, mut q) = (0, 0);
        while p < rows_i.len() || q < rows_j.len() {
            let row_i = rows_i.get(p).copied().unwrap_or(u32::MAX);
            let row_j = rows_j.get(q).copied().unwrap_or(u32::MAX);
            let row = row_i.min(row_j);
            let mut z = 0.0;
            if row_i == row {
                z += values_i[p];
                p += 1;
            }
            if row_j == row {
                z += sign * values_j[q];
                q += 1;
            }
            if z != 0.0 {
                self.z[row as usize] = z;
                self.rows.push(row);
            }
        }
    }

    fn set_column(&mut self, problem: &Problem<'_>, column: u32) {
        self.clear();
        self.z.resize(problem.rows.n_rows(), 0.0);
        let (rows, values) = problem.lists.column(column);
        self.rows.extend_from_slice(rows);
        for (&row, &x) in rows.iter().zip(values) {
            self.z[row as usize] = x;
        }
    }

    fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.z[row as usize] = 0.0;
        }
    }
}

/// The union of two increasing lists.
fn merge_rows(a: &[u32], b: &[u32], into: &mut Vec<u32>) {
    into.clear();
    let (mut p, mut q) = (0, 0);
    while p < a.len() || q < b.len() {
        let (x, y) = (
            a.get(p).copied().unwrap_or(u32::MAX),
            b.get(q).copied().unwrap_or(u32::MAX),
        );
        into.push(x.min(y));
        p += usize::from(x <= y);
        q += usize::from(y <= x);
    }
}

impl Moving {
    /// The two columns of an atom instead of a direction.
    pub(super) fn set_columns(&mut self, problem: &Problem<'_>, atom: Atom) {
        self.main.set_column(problem, atom.i());
        self.other.set_column(problem, atom.j());
        merge_rows(&self.main.rows, &self.other.rows, &mut self.rows);
    }

    /// Both columns spread out, and the rows that hold either.
    pub(super) fn columns(&self) -> (&[f64], &[f64], &[u32]) {
        (&self.main.z, &self.other.z, &self.rows)
    }

    pub(super) fn motion(&self) -> Motion<'_> {
        Motion {
            main: &self.main.z,
            sign: self.sign,
            other: self.pairwise.then_some(&self.other.z[..]),
            rows: if self.pairwise {
                &self.rows
            } else {
                &self.main.rows
            },
        }
    }

    pub(super) fn set(&mut self, problem: &Problem<'_>, direction: Direction) {
        self.pairwise = false;
        match direction {
            Direction::Forward(atom) => {
                self.main.set(problem, atom);
                (self.rate, self.sign) = (-1.0, 1.0);
            }
            Direction::Away(atom) => {
                self.main.set(problem, atom);
                (self.rate, self.sign) = (1.0, -1.0);
            }
            Direction::Pairwise { to, from } => {
                self.main.set(problem, to);
                self.other.set(problem, from);
                (self.rate, self.sign, self.pairwise) = (0.0, 1.0, true);
                merge_rows(&self.main.rows, &self.other.rows, &mut self.rows);
            }
        }
    }
}
