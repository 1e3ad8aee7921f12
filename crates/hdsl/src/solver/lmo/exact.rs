//! The true best of all d(d-1) atoms.
//!
//! Features are numbered by decreasing size, and a pair {j, i} with j < i is looked at from both ends: u_j = S X_{:,j}
//! of the larger, and the column x_i of the smaller, whose product is H_ij. As |v · x| <= min(max|v| ‖x‖_1, ‖v‖_2 ‖x‖_2):
//!
//! 1. The sizes of u_j are bounded by those of the rows of S that feature j picks. Where not even the best that could
//!    go with them beats the best atom so far, u_j is not computed: most features are too small.
//! 2. The sizes of u_j itself rule out many of the others.
//! 3. The u_j that remain make a [`Panel`], in which smaller columns find their partners by bounds on many at once.

use super::pair_rows::{PairRows, sizes};
use super::panel::{Panel, SLACK, Visit};
use crate::objective::{Problem, Scored};
use crate::parallel::prelude::*;
use crate::solver::engine::SymmetrizedGradient;

/// Columns whose u_j are computed by one thread at a time.
const PRODUCTS: usize = 8;
/// Columns that look for a partner in one thread at a time.
const VISITORS: usize = 64;

/// How the work is cut up: settings of the problem, never of the machine.
struct Cut {
    /// Columns of the first panel: with luck they raise what the others have to beat.
    head: usize,
    /// Numbers in a panel after that, unless the rows hold more.
    panel: usize,
    /// Multiplications that make threads worth waking.
    parallel: usize,
}

impl Default for Cut {
    fn default() -> Self {
        Self {
            head: 128,
            panel: 1 << 21,
            parallel: 1 << 20,
        }
    }
}

/// The search, with its memory.
#[derive(Default)]
pub(crate) struct Exact {
    cut: Cut,
    panel: Panel,
    /// The columns that may find a partner below each of the panel's lowest nodes.
    visitors: Vec<Vec<u32>>,
    /// Multiplications of the last search.
    work: u64,
}

impl Exact {
    /// With everything cut so small that a tiny problem takes every path.
    #[cfg(test)]
    pub(crate) fn in_small_pieces() -> Self {
        let cut = Cut {
            head: 3,
            panel: 0,
            parallel: 0,
        };
        Self {
            cut,
            ..Self::default()
        }
    }

    /// The best atom, at least as good as `so_far`.
    pub(crate) fn best<'p>(
        &mut self,
        gradient: &mut impl SymmetrizedGradient<'p>,
        so_far: Scored,
    ) -> Scored {
        let problem = gradient.problem();
        let now = Now::of(gradient);
        let n_rows = problem.rows.n_rows();
        let row_sizes: Vec<[f64; 2]> = (0..n_rows)
            .map(|row| sizes(now.pairs.row(row).1, problem.non_negative))
            .collect();
        let mut columns = 0..problem.n_columns() as u32 - 1;
        let full = (self.cut.panel.max(problem.rows.nnz()) / n_rows).max(VISITORS);
        let mut width = self.cut.head.min(full);
        let mut best = so_far;
        self.work = 0;
        loop {
            self.panel.clear(n_rows);
            while self.panel.len() < width {
                let some: Vec<u32> = columns
                    .by_ref()
                    .filter(|&j| now.may_win(j, now.sizes_at_most(j, &row_sizes), best))
                    .take(width)
                    .collect();
                if some.is_empty() {
                    break;
                }
                self.fill(&now, &some, best);
            }
            if self.panel.len() == 0 {
                return best;
            }
            self.panel.build(problem.non_negative);
            best = self.search(&now, best);
            width = full;
        }
    }

    /// Puts u_j of these columns into the panel, of those that may win.
    fn fill(&mut self, now: &Now<'_>, columns: &[u32], best: Scored) {
        let mut push = |j: u32, rows: Option<&[u32]>, u: &[f64]| {
            self.panel.push(j, now.diagonal[j as usize], rows, u);
        };
        let cost = columns.iter().map(|&j| now.cost(j)).sum::<usize>();
        self.work += cost as u64;
        if cost < self.cut.parallel {
            return now.products(columns, best, &mut push);
        }
        let found: Vec<Vec<_>> = columns
            .par_chunks(PRODUCTS)
            .map(|chunk| {
                let mut found = Vec::new();
                now.products(chunk, best, &mut |j, rows, u| {
                    found.push((j, rows.map(<[u32]>::to_vec), u.to_vec()));
                });
                found
            })
            .collect();
        for (j, rows, u) in found.into_iter().flatten() {
            push(j, rows.as_deref(), &u);
        }
    }

    /// The best atom of one of the panel's columns with a later one, or the best so far.
    fn search(&mut self, now: &Now<'_>, best: Scored) -> Scored {
        let panel = &self.panel;
        let visit = |best: Scored| Visit {
            problem: now.problem,
            diagonal: &now.diagonal,
            panel,
            best,
            work: 0,
        };
        let later: Vec<u32> = panel.later(now.problem.n_columns()).collect();
        let nodes_for = |columns: &[u32]| {
            let (mut visit, mut nodes) = (visit(best), Vec::new());
            for &i in columns {
                visit.nodes_for(i, &mut |node| nodes.push((node, i)));
            }
            (nodes, visit.work)
        };
        let parallel = now.problem.rows.nnz() * panel.n_nodes() >= self.cut.parallel;
        let found: Vec<_> = if parallel {
            later.par_chunks(VISITORS).map(nodes_for).collect()
        } else {
            vec![nodes_for(&later)]
        };
        self.visitors.iter_mut().for_each(Vec::clear);
        self.visitors.resize(panel.n_nodes(), Vec::new());
        for (nodes, work) in found {
            self.work += work;
            for (node, i) in nodes {
                self.visitors[node].push(i);
            }
        }
        // Node by node: its numbers stay in the cache.
        let pieces: Vec<(usize, &[u32])> = (self.visitors.iter().enumerate())
            .flat_map(|(node, columns)| columns.chunks(VISITORS).map(move |some| (node, some)))
            .collect();
        let visit_all = |pieces: &[(usize, &[u32])]| {
            let mut visit = visit(best);
            for &(node, columns) in pieces {
                columns.iter().for_each(|&i| visit.pairs_of(node, i));
            }
            visit
        };
        let visits: Vec<Visit<'_>> = if parallel {
            pieces.par_chunks(1).map(visit_all).collect()
        } else {
            vec![visit_all(&pieces)]
        };
        self.work += visits.iter().map(|visit| visit.work).sum::<u64>();
        visits
            .iter()
            .fold(best, |best, visit| now.problem.better(best, visit.best))
    }
}

/// The gradient as the search reads it.
struct Now<'p> {
    problem: &'p Problem<'p>,
    pairs: PairRows,
    diagonal: Vec<f64>,
    /// The most that the columns from each on have to offer: D, ‖x‖_1 and ‖x‖_2.
    beyond: Vec<[f64; 3]>,
}

impl<'p> Now<'p> {
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
        Self {
            problem,
            pairs: PairRows::of(gradient),
            diagonal,
            beyond,
        }
    }

    /// Whether column j, whose u_j has at most these sizes, may make an atom with a later one that is not worse.
    fn may_win(&self, j: u32, [largest, length]: [f64; 2], best: Scored) -> bool {
        let [d, sum, norm] = self.beyond[j as usize + 1];
        let h = SLACK * (largest * sum).min(length * norm);
        self.diagonal[j as usize] + d + h >= best.1
    }

    /// Bounds of the sizes of u_j, without computing it.
    fn sizes_at_most(&self, j: u32, row_sizes: &[[f64; 2]]) -> [f64; 2] {
        let (rows, values) = self.problem.lists.column(j);
        let mut at_most = [0.0; 2];
        for (&p, &x) in rows.iter().zip(values) {
            let [largest, length] = row_sizes[p as usize];
            at_most[0] += x.abs() * largest;
            at_most[1] += x.abs() * length;
        }
        at_most
    }

    /// Multiplications to compute u_j.
    fn cost(&self, j: u32) -> usize {
        let (rows, _) = self.problem.lists.column(j);
        rows.iter().map(|&p| self.pairs.len(p as usize)).sum()
    }

    /// Hands over u_j of these columns, of those that may win: the rows where it may differ from 0, if it pays to
    /// list them, and the entries there.
    fn products(
        &self,
        columns: &[u32],
        best: Scored,
        found: &mut impl FnMut(u32, Option<&[u32]>, &[f64]),
    ) {
        let n_rows = self.problem.rows.n_rows();
        let (mut u, mut met) = (vec![0.0; n_rows], vec![false; n_rows]);
        let (mut reached, mut entries) = (Vec::new(), Vec::new());
        for &j in columns {
            let listed = 8 * self.cost(j) < n_rows;
            if listed {
                self.reach(j, &mut met, &mut reached);
            }
            self.multiply(j, &mut u);
            if listed {
                entries.clear();
                for &q in &reached {
                    entries.push(std::mem::take(&mut u[q as usize]));
                    met[q as usize] = false;
                }
                if self.may_win(j, sizes(&entries, self.problem.non_negative), best) {
                    found(j, Some(&reached), &entries);
                }
                reached.clear();
            } else {
                if self.may_win(j, sizes(&u, self.problem.non_negative), best) {
                    found(j, None, &u);
                }
                u.fill(0.0);
            }
        }
    }

    /// Adds u_j to u.
    fn multiply(&self, j: u32, u: &mut [f64]) {
        let (rows, values) = self.problem.lists.column(j);
        for (&p, &x) in rows.iter().zip(values) {
            let (others, sums) = self.pairs.row(p as usize);
            for (&q, &s) in others.iter().zip(sums) {
                u[q as usize] += s * x;
            }
        }
    }

    /// Lists the rows where u_j may differ from 0.
    fn reach(&self, j: u32, met: &mut [bool], reached: &mut Vec<u32>) {
        for &p in self.problem.lists.column(j).0 {
            for &q in self.pairs.row(p as usize).0 {
                if !std::mem::replace(&mut met[q as usize], true) {
                    reached.push(q);
                }
            }
        }
    }
}
