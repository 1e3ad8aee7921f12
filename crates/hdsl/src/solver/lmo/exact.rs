//! The exact oracle: the best of all d(d-1) atoms.
//!
//! Internal feature indices are ordered by decreasing ‖X_j‖_1. For a pair {j, i} with j < i, H_ij is the dot product of
//! u_j = C X_{:,j} and column x_i. The bounds of [`Norms`] are used three times:
//!
//! 1. The norms of u_j are bounded by the norms of the rows of C at the non-zeros of column j. u_j is not computed if,
//!    by this bound, no later column can form an atom with j that is at least as good as the best so far. This excludes
//!    most columns, because their values are small.
//! 2. For the other columns, u_j is computed. Its norms exclude many of them in the same way.
//! 3. The u_j that remain form a [`Panel`], in which each later column searches for its best partner. A panel has
//!    bounds for groups of columns.

use super::panel::{Panel, Visit};
use crate::data::Groups;
use crate::objective::{Problem, Scored};
use crate::parallel;
use crate::solver::bounds::Norms;
use crate::solver::gradient::SymmetrizedGradient;
use std::ops::Range;

/// The number of columns whose u_j one thread computes at a time.
const PRODUCTS: usize = 8;
/// The number of columns whose partners one thread searches for at a time.
const VISITORS: usize = 64;

/// The oracle, with buffers that are reused. How its work is divided depends on the problem, not on the machine.
pub(crate) struct Exact {
    /// The number of columns in the first panel. It is small, because a good atom among them excludes many later
    /// columns.
    head: usize,
    /// The number of entries in a later panel, or the number of values in the rows if that is larger.
    full: usize,
    /// Several threads search a panel if the number of values in the rows times that of its columns is at least 64
    /// times this.
    parallel: usize,
    panel: Panel,
}

impl Default for Exact {
    fn default() -> Self {
        Self {
            head: 128,
            full: 1 << 21,
            parallel: 1 << 20,
            panel: Panel::default(),
        }
    }
}

impl Exact {
    /// An oracle that divides its work into such small pieces that a tiny problem runs through all of the code.
    #[cfg(test)]
    pub(crate) fn in_small_pieces() -> Self {
        Self {
            head: 3,
            full: 0,
            parallel: 0,
            ..Self::default()
        }
    }

    /// The best of all atoms, or `best` if that is at least as good.
    pub(crate) fn best<'p>(
        &mut self,
        gradient: &mut SymmetrizedGradient<'p>,
        mut best: Scored,
    ) -> Scored {
        let snapshot = Snapshot::of(gradient);
        let problem = snapshot.problem;
        let (n_rows, n_columns) = (problem.rows.n_rows(), problem.n_columns() as u32);
        let mut columns = 0..n_columns - 1;
        let full = (self.full.max(problem.rows.nnz()) / n_rows).max(VISITORS);
        let mut width = self.head.min(full);
        loop {
            let may_win = |&j: &u32| snapshot.may_win(j, snapshot.bound(j), best);
            let some: Vec<u32> = columns.by_ref().filter(may_win).take(width).collect();
            if some.is_empty() {
                return best;
            }
            self.fill(&snapshot, &some, best);
            if let Some(first) = self.panel.columns.first() {
                best = self.search(&snapshot, first + 1..n_columns, best);
            }
            width = full;
        }
    }

    /// Fills the panel with the u_j of those of the given columns that may win.
    fn fill(&mut self, snapshot: &Snapshot<'_>, columns: &[u32], best: Scored) {
        let product = |at: usize| {
            let j = columns[at];
            let u = snapshot.product(j);
            let norms = Norms::of(&u, snapshot.problem.non_negative);
            snapshot.may_win(j, norms, best).then_some((j, u, norms))
        };
        let products = parallel::map_blocks(columns.len(), PRODUCTS, product);
        self.panel.clear(snapshot.problem.rows.n_rows());
        for (j, u, norms) in products.into_iter().flatten() {
            (self.panel).push(j, &u, norms, snapshot.diagonal[j as usize]);
        }
        self.panel.build();
    }

    /// The best atom of a column of the panel and one of the given columns, or `best` if that is better.
    fn search(&self, snapshot: &Snapshot<'_>, columns: Range<u32>, best: Scored) -> Scored {
        let search = |columns: &[u32]| {
            let mut visit = Visit {
                problem: snapshot.problem,
                diagonal: &snapshot.diagonal,
                panel: &self.panel,
                best,
            };
            columns.iter().for_each(|&i| visit.search(i));
            visit.best
        };
        let problem = snapshot.problem;
        let columns: Vec<u32> = columns.collect();
        if problem.rows.nnz() * self.panel.columns.len() < 64 * self.parallel {
            return search(&columns);
        }
        let found = parallel::map_each(columns.chunks(VISITORS).collect(), search);
        let found = found.into_iter().reduce(|a, b| problem.better(a, b));
        found.unwrap_or(best)
    }
}

/// The symmetrized gradient as the oracle needs it.
struct Snapshot<'p> {
    problem: &'p Problem<'p>,
    /// The rows of C, with each entry once.
    pairs: Groups<(u32, f64)>,
    /// The norms of each row of C.
    row_norms: Vec<Norms>,
    diagonal: Vec<f64>,
    /// For each column j, the largest D, ‖x‖_1 and ‖x‖_2 of the columns from j on.
    beyond: Vec<[f64; 3]>,
}

impl<'p> Snapshot<'p> {
    fn of(gradient: &mut SymmetrizedGradient<'p>) -> Self {
        let problem = gradient.problem();
        let n_columns = problem.n_columns();
        let diagonal = gradient.diagonal();
        let mut beyond = vec![[f64::NEG_INFINITY, 0.0, 0.0]; n_columns + 1];
        for j in (0..n_columns).rev() {
            let [sum, length] = problem.norms(j as u32);
            let [d, sums, lengths] = beyond[j + 1];
            beyond[j] = [d.max(diagonal[j]), sums.max(sum), lengths.max(length)];
        }
        let pairs = pairs_by_row(gradient);
        let row_norms_of = |row: usize| {
            let values: Vec<f64> = pairs.of(row).iter().map(|pair| pair.1).collect();
            Norms::of(&values, problem.non_negative)
        };
        Self {
            problem,
            row_norms: (0..problem.rows.n_rows()).map(row_norms_of).collect(),
            pairs,
            diagonal,
            beyond,
        }
    }

    /// Whether column j, given upper bounds of the norms of u_j, may form an atom with a later column that is at least
    /// as good.
    fn may_win(&self, j: u32, norms: Norms, best: Scored) -> bool {
        let [d, sum, length] = self.beyond[j as usize + 1];
        self.diagonal[j as usize] + d + norms.bound([sum, length]) >= best.1
    }

    /// An upper bound of the norms of u_j, without computing u_j. It is inlined in the oracle's loop over all columns.
    #[inline(always)]
    fn bound(&self, j: u32) -> Norms {
        let (rows, values) = self.problem.lists.column(j);
        let mut bound = Norms::default();
        for (&p, &x) in rows.iter().zip(values) {
            let Norms { largest, length } = self.row_norms[p as usize];
            bound.largest += x.abs() * largest;
            bound.length += x.abs() * length;
        }
        bound
    }

    /// u_j.
    fn product(&self, j: u32) -> Vec<f64> {
        let mut u = vec![0.0; self.problem.rows.n_rows()];
        let (rows, values) = self.problem.lists.column(j);
        for (&p, &x) in rows.iter().zip(values) {
            for &(q, s) in self.pairs.of(p as usize) {
                u[q as usize] += s * x;
            }
        }
        u
    }
}

/// For each column i, an upper bound of |H_ij| over all j.
pub(crate) fn row_bounds(gradient: &mut SymmetrizedGradient<'_>) -> Vec<f64> {
    let snapshot = Snapshot::of(gradient);
    let [_, sum, length] = snapshot.beyond[0];
    let columns = 0..snapshot.problem.n_columns() as u32;
    columns
        .map(|j| snapshot.bound(j).bound([sum, length]))
        .collect()
}

/// The rows of C. The coefficient of a pair {p, q} is an entry of row p and of row q; if p = q, the entry is twice the
/// coefficient.
fn pairs_by_row<'p>(gradient: &SymmetrizedGradient<'p>) -> Groups<(u32, f64)> {
    let mut entries: Vec<(u32, (u32, f64))> = Vec::new();
    gradient.each_pair(|p, q, sum| entries.extend([(p, (q, sum)), (q, (p, sum))]));
    // The sort is stable, so that the parts of a coefficient are added in the order in which they were visited.
    entries.sort_by_key(|&(p, (q, _))| (p, q));
    entries.dedup_by(|part, sum| {
        let same = (part.0, part.1.0) == (sum.0, sum.1.0);
        if same {
            sum.1.1 += part.1.1;
        }
        same
    });
    Groups::new(gradient.problem().rows.n_rows(), entries.into_iter())
}
