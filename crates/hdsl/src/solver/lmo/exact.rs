//! The exact oracle: the best of all d(d-1) atoms.
//!
//! Features are numbered by decreasing size, and a pair {j, i} with j < i is looked at from both ends: u_j = S X_{:,j}
//! of the larger, and the column x_i of the smaller, whose product is H_ij. By the bounds of [`Size`]:
//!
//! 1. The size of u_j is bounded by the sizes of the rows of S that column j selects. If even the best later column
//!    could not make a better atom with it than the best so far, u_j is not computed: most features are too small.
//! 2. The size of u_j itself rules out many of the others.
//! 3. The u_j that remain form a [`Panel`], in which smaller columns find their partners by bounds on many at once.

use super::panel::{Panel, Product, Visit};
use crate::data::Groups;
use crate::objective::{Problem, Scored};
use crate::parallel::prelude::*;
use crate::solver::bounds::Size;
use crate::solver::engine::SymmetrizedGradient;

/// Columns whose u_j are computed by one thread at a time.
const PRODUCTS: usize = 8;
/// Columns that search for a partner in one thread at a time.
const VISITORS: usize = 64;

/// How the work is divided: settings of the problem, never of the machine.
struct Division {
    /// Columns of the first panel: with luck they raise the score that the others have to beat.
    head: usize,
    /// Numbers in a panel after that, or the number of values in the rows if that is larger.
    panel: usize,
    /// Multiplications that make threads worth starting.
    parallel: usize,
}

impl Default for Division {
    fn default() -> Self {
        Self {
            head: 128,
            panel: 1 << 21,
            parallel: 1 << 20,
        }
    }
}

/// The oracle, with memory that is used again.
#[derive(Default)]
pub(crate) struct Exact {
    division: Division,
    panel: Panel,
    /// The columns that may find a partner below each of the panel's lowest nodes.
    visitors: Vec<Vec<u32>>,
}

impl Exact {
    /// With work divided into pieces so small that a tiny problem takes every path.
    #[cfg(test)]
    pub(crate) fn in_small_pieces() -> Self {
        let division = Division {
            head: 3,
            panel: 0,
            parallel: 0,
        };
        Self {
            division,
            ..Self::default()
        }
    }

    /// The best atom, at least as good as `so_far`.
    pub(crate) fn best<'p>(
        &mut self,
        gradient: &mut impl SymmetrizedGradient<'p>,
        so_far: Scored,
    ) -> Scored {
        let snapshot = Snapshot::of(gradient);
        let problem = snapshot.problem;
        let n_rows = problem.rows.n_rows();
        let mut columns = 0..problem.n_columns() as u32 - 1;
        let full = (self.division.panel.max(problem.rows.nnz()) / n_rows).max(VISITORS);
        let mut width = self.division.head.min(full);
        let mut best = so_far;
        loop {
            self.panel.clear(n_rows);
            while self.panel.len() < width {
                let some: Vec<u32> = columns
                    .by_ref()
                    .filter(|&j| snapshot.may_win(j, snapshot.bound(j), best))
                    .take(width)
                    .collect();
                if some.is_empty() {
                    break;
                }
                self.fill(&snapshot, &some, best);
            }
            if self.panel.len() == 0 {
                return best;
            }
            self.panel.build(problem.non_negative);
            best = self.search(&snapshot, best);
            width = full;
        }
    }

    /// Puts u_j of these columns into the panel, of those that may win.
    fn fill(&mut self, snapshot: &Snapshot<'_>, columns: &[u32], best: Scored) {
        let cost: usize = columns.iter().map(|&j| snapshot.cost(j)).sum();
        let found: Vec<Vec<Product>> = match cost < self.division.parallel {
            true => vec![snapshot.products(columns, best)],
            false => columns
                .par_chunks(PRODUCTS)
                .map(|chunk| snapshot.products(chunk, best))
                .collect(),
        };
        for product in found.iter().flatten() {
            let diagonal = snapshot.diagonal[product.column as usize];
            self.panel.push(product, diagonal);
        }
    }

    /// The best atom of one of the panel's columns with a later one, or the best so far.
    fn search(&mut self, snapshot: &Snapshot<'_>, best: Scored) -> Scored {
        let (problem, panel) = (snapshot.problem, &self.panel);
        let visit = || Visit {
            problem,
            diagonal: &snapshot.diagonal,
            panel,
            best,
        };
        let later: Vec<u32> = panel.later(problem.n_columns()).collect();
        let nodes_for = |columns: &[u32]| {
            let mut nodes = Vec::new();
            for &i in columns {
                visit().nodes_for(i, &mut |node| nodes.push((node, i)));
            }
            nodes
        };
        let parallel = problem.rows.nnz() * panel.n_nodes() >= self.division.parallel;
        let found: Vec<Vec<(usize, u32)>> = match parallel {
            true => later.par_chunks(VISITORS).map(nodes_for).collect(),
            false => vec![nodes_for(&later)],
        };
        self.visitors.iter_mut().for_each(Vec::clear);
        self.visitors.resize(panel.n_nodes(), Vec::new());
        for (node, i) in found.into_iter().flatten() {
            self.visitors[node].push(i);
        }
        // Node by node: its numbers stay in the cache.
        let pieces: Vec<(usize, &[u32])> = (self.visitors.iter().enumerate())
            .flat_map(|(node, columns)| columns.chunks(VISITORS).map(move |some| (node, some)))
            .collect();
        let visit_all = |pieces: &[(usize, &[u32])]| {
            let mut visit = visit();
            for &(node, columns) in pieces {
                columns.iter().for_each(|&i| visit.pairs_of(node, i));
            }
            visit.best
        };
        let found: Vec<Scored> = match parallel {
            true => pieces.par_chunks(1).map(visit_all).collect(),
            false => vec![visit_all(&pieces)],
        };
        let better = |a, b| problem.better(a, b);
        found.into_iter().fold(best, better)
    }
}

/// The symmetrized gradient as the oracle reads it.
struct Snapshot<'p> {
    problem: &'p Problem<'p>,
    /// S by rows, with each entry once.
    pairs: Groups<(u32, f64)>,
    /// The size of each row of S.
    row_sizes: Vec<Size>,
    diagonal: Vec<f64>,
    /// The largest D, ‖x‖_1 and ‖x‖_2 of the columns from each on.
    beyond: Vec<[f64; 3]>,
}

impl<'p> Snapshot<'p> {
    fn of(gradient: &mut impl SymmetrizedGradient<'p>) -> Self {
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
        let row_size = |row: usize| {
            let values: Vec<f64> = pairs.of(row).iter().map(|pair| pair.1).collect();
            Size::of(&values, problem.non_negative)
        };
        Self {
            problem,
            row_sizes: (0..problem.rows.n_rows()).map(row_size).collect(),
            pairs,
            diagonal,
            beyond,
        }
    }

    /// Whether column j, whose u_j has at most this size, may make an atom with a later one that is not worse.
    fn may_win(&self, j: u32, size: Size, best: Scored) -> bool {
        let [d, sum, length] = self.beyond[j as usize + 1];
        self.diagonal[j as usize] + d + size.times([sum, length]) >= best.1
    }

    /// A bound of the size of u_j, without computing it.
    fn bound(&self, j: u32) -> Size {
        let (rows, values) = self.problem.lists.column(j);
        let mut bound = Size::default();
        for (&p, &x) in rows.iter().zip(values) {
            let Size { largest, length } = self.row_sizes[p as usize];
            bound.largest += x.abs() * largest;
            bound.length += x.abs() * length;
        }
        bound
    }

    /// Multiplications to compute u_j.
    fn cost(&self, j: u32) -> usize {
        let (rows, _) = self.problem.lists.column(j);
        rows.iter().map(|&p| self.pairs.of(p as usize).len()).sum()
    }

    /// u_j of these columns, of those that may win.
    fn products(&self, columns: &[u32], best: Scored) -> Vec<Product> {
        let n_rows = self.problem.rows.n_rows();
        let (mut u, mut met) = (vec![0.0; n_rows], vec![false; n_rows]);
        let mut found = Vec::new();
        for &column in columns {
            let listed = 8 * self.cost(column) < n_rows;
            let rows = listed.then(|| self.reached(column, &mut met));
            self.multiply(column, &mut u);
            let entries: Vec<f64> = match &rows {
                Some(rows) => {
                    let take = |&q: &u32| std::mem::take(&mut u[q as usize]);
                    rows.iter().map(take).collect()
                }
                None => std::mem::replace(&mut u, vec![0.0; n_rows]),
            };
            let size = Size::of(&entries, self.problem.non_negative);
            if self.may_win(column, size, best) {
                found.push(Product {
                    column,
                    rows,
                    entries,
                });
            }
        }
        found
    }

    /// Adds u_j to u.
    fn multiply(&self, j: u32, u: &mut [f64]) {
        let (rows, values) = self.problem.lists.column(j);
        for (&p, &x) in rows.iter().zip(values) {
            for &(q, s) in self.pairs.of(p as usize) {
                u[q as usize] += s * x;
            }
        }
    }

    /// The rows where u_j may differ from 0. `met` is false everywhere, before and after.
    fn reached(&self, j: u32, met: &mut [bool]) -> Vec<u32> {
        let mut reached = Vec::new();
        for &p in self.problem.lists.column(j).0 {
            for &(q, _) in self.pairs.of(p as usize) {
                if !std::mem::replace(&mut met[q as usize], true) {
                    reached.push(q);
                }
            }
        }
        reached.iter().for_each(|&q| met[q as usize] = false);
        reached
    }
}

/// S by rows. A pair of two different rows is in both.
fn pairs_by_row<'p>(gradient: &impl SymmetrizedGradient<'p>) -> Groups<(u32, f64)> {
    let mut pairs: Vec<(u32, u32, f64)> = Vec::new();
    gradient.each_pair(|p, q, sum| pairs.push((p.min(q), p.max(q), sum)));
    // Stable, so that the parts of a coefficient add up in the order they came in.
    pairs.sort_by_key(|&(p, q, _)| (p, q));
    pairs.dedup_by(|part, sum| {
        let same = (part.0, part.1) == (sum.0, sum.1);
        if same {
            sum.2 += part.2;
        }
        same
    });
    let entries = pairs.iter().flat_map(|&(p, q, sum)| {
        // For p = q the two entries of S are one.
        let once = if p == q { 2.0 * sum } else { sum };
        [(p, (q, once)), (q, (p, sum))]
            .into_iter()
            .take(if p == q { 1 } else { 2 })
    });
    Groups::new(gradient.problem().rows.n_rows(), entries)
}
