//! A panel: some columns of C X as a dense matrix, with bounds for groups of columns.
//!
//! For a column x_i and a column u_j = C X_{:,j} of the panel, H_ij = x_i · u_j. Eight columns form a block, and eight
//! blocks form a node. For every row, a node stores the maximum and the minimum entry of each of its blocks. Nodes of
//! the next level store those of eight nodes, and so on. If x_i >= 0, the dot product of x_i with the maxima is an
//! upper bound of x_i · u_j for all columns below, and that with the minima is a lower bound. For a negative entry of
//! x_i, maximum and minimum are exchanged. With these bounds, 8, 64 or 512 columns can be skipped at a time. All dot
//! products are summed in the same order, and rounding is monotone, so a bound holds exactly, without a slack for
//! rounding errors.

use crate::objective::{Problem, Scored};
use crate::solver::bounds::{Norms, better_pair};

/// Columns in a block, and children of a node.
const FAN: usize = 8;

/// For one row, the entries of the columns of a block.
type Entries = [f64; FAN];
/// For one row, the maximum entry of each child of a node, followed by the negated minimum of each child.
type Extremes = [f64; 2 * FAN];

/// The columns, and the nodes above them. It is reused, so that its memory is allocated once.
#[derive(Default)]
pub(super) struct Panel {
    n_rows: usize,
    /// The columns, increasing, and their D.
    pub(super) columns: Vec<u32>,
    diagonal: Vec<f64>,
    /// Row r of block b is at `b * n_rows + r`.
    blocks: Vec<Entries>,
    /// The levels of nodes, from those above blocks to the root.
    levels: Vec<Level>,
    /// The largest D, and upper bounds of the norms of the columns.
    top: f64,
    top_norms: Norms,
}

struct Level {
    /// Row r of node k is at `k * n_rows + r`.
    nodes: Vec<Extremes>,
    /// For each node, the largest D of each child.
    diagonals: Vec<Entries>,
}

impl Panel {
    pub(super) fn clear(&mut self, n_rows: usize) {
        self.n_rows = n_rows;
        self.columns.clear();
        self.diagonal.clear();
        self.blocks.clear();
        self.levels.clear();
        (self.top, self.top_norms) = (f64::NEG_INFINITY, Norms::default());
    }

    /// Adds u_j of a column, with the norms of u_j and D_j. Columns are added in increasing order.
    #[inline]
    pub(super) fn push(&mut self, column: u32, u: &[f64], norms: Norms, diagonal: f64) {
        let (n_rows, k) = (self.n_rows, self.columns.len() % FAN);
        self.columns.push(column);
        self.diagonal.push(diagonal);
        self.top = self.top.max(diagonal);
        self.top_norms = self.top_norms.max(norms);
        if k == 0 {
            self.blocks.resize(self.blocks.len() + n_rows, [0.0; FAN]);
        }
        let block = self.blocks.len() - n_rows;
        for (entries, &u) in self.blocks[block..].iter_mut().zip(u) {
            entries[k] = u;
        }
    }

    /// Builds the nodes, after all columns have been added.
    pub(super) fn build(&mut self) {
        let n_rows = self.n_rows;
        let mut diagonals: Vec<f64> = self.diagonal.chunks(FAN).map(greatest).collect();
        let of_block = |e: &Entries| [greatest(e), greatest(&e.map(|u| -u))];
        let mut extremes: Vec<[f64; 2]> = self.blocks.iter().map(of_block).collect();
        while self.levels.is_empty() || diagonals.len() > 1 {
            let n_nodes = diagonals.len().div_ceil(FAN);
            let mut nodes = vec![[0.0; 2 * FAN]; n_nodes * n_rows];
            for (child, extremes) in extremes.chunks(n_rows).enumerate() {
                let node = &mut nodes[child / FAN * n_rows..];
                for (entries, &[most, least]) in node.iter_mut().zip(extremes) {
                    entries[child % FAN] = most;
                    entries[FAN + child % FAN] = least;
                }
            }
            diagonals.resize(n_nodes * FAN, f64::NEG_INFINITY);
            let level = Level {
                nodes,
                diagonals: diagonals.as_chunks().0.to_vec(),
            };
            let of_node = |e: &Extremes| [greatest(&e[..FAN]), greatest(&e[FAN..])];
            extremes = level.nodes.iter().map(of_node).collect();
            diagonals = level.diagonals.iter().map(|d| greatest(d)).collect();
            self.levels.push(level);
        }
    }
}

fn greatest(values: &[f64]) -> f64 {
    // Unlike `f64::max`, a plain comparison is one instruction.
    values
        .iter()
        .fold(f64::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}

/// A search of a panel for pairs that are at least as good as the best so far.
pub(super) struct Visit<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) diagonal: &'a [f64],
    pub(super) panel: &'a Panel,
    pub(super) best: Scored,
}

impl Visit<'_> {
    /// Searches for pairs of column i and a column j < i of the panel that are at least as good as the best so far.
    pub(super) fn search(&mut self, i: u32) {
        let h = self.panel.top_norms.bound(self.problem.norms(i));
        if self.diagonal[i as usize] + self.panel.top + h >= self.best.1 {
            let limit = self.panel.columns.partition_point(|&j| j < i);
            self.descend(self.panel.levels.len(), 0, i, limit);
        }
    }

    /// Searches below a node. Level 0 has the blocks, level 1 the nodes above them. Columns of the panel from `limit`
    /// on are ignored.
    fn descend(&mut self, level: usize, at: usize, i: u32, limit: usize) {
        if level == 0 {
            return self.pairs_of(at, i, limit);
        }
        let width = FAN.pow(level as u32);
        for (k, may_win) in self.children(level, at, i).into_iter().enumerate() {
            let child = at * FAN + k;
            if may_win && child * width < limit {
                self.descend(level - 1, child, i, limit);
            }
        }
    }

    /// Whether each child of a node may contain a partner of column i that wins.
    fn children(&self, level: usize, at: usize, i: u32) -> [bool; FAN] {
        let (rows, values) = self.problem.lists.column(i);
        let Level { nodes, diagonals } = &self.panel.levels[level - 1];
        let node = &nodes[at * self.panel.n_rows..][..self.panel.n_rows];
        let mut sums = [0.0; 2 * FAN];
        for (&row, &x) in rows.iter().zip(values) {
            let extremes = &node[row as usize];
            if x >= 0.0 {
                for k in 0..2 * FAN {
                    sums[k] += x * extremes[k];
                }
            } else {
                for k in 0..2 * FAN {
                    sums[k] += -x * extremes[(k + FAN) % (2 * FAN)];
                }
            }
        }
        let here = self.diagonal[i as usize];
        let mut may_win = [false; FAN];
        for (k, &there) in diagonals[at].iter().enumerate() {
            let h = if sums[k] > sums[FAN + k] {
                sums[k]
            } else {
                sums[FAN + k]
            };
            may_win[k] = here + there + h >= self.best.1;
        }
        may_win
    }

    /// Computes the scores of the pairs of column i with the columns of a block.
    fn pairs_of(&mut self, block: usize, i: u32, limit: usize) {
        let (rows, values) = self.problem.lists.column(i);
        let entries = &self.panel.blocks[block * self.panel.n_rows..][..self.panel.n_rows];
        let mut sums = [0.0; FAN];
        for (&row, &x) in rows.iter().zip(values) {
            let entries = &entries[row as usize];
            for k in 0..FAN {
                sums[k] += x * entries[k];
            }
        }
        for (place, h) in (block * FAN..limit).zip(sums) {
            let j = self.panel.columns[place];
            let diagonals = self.diagonal[i as usize] + self.diagonal[j as usize];
            self.best = better_pair(&self.problem.features, self.best, [i, j], diagonals, h);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atoms::{Atom, Sign};
    use crate::data::{Rows, SparseRow};
    use crate::objective::loss::LossKind;
    use crate::random;
    use crate::triplets::Triplets;
    use rand_chacha::ChaCha8Rng;

    /// A random integer from -4 to 4, or from 0 to 8. Sums of integers are exact, and ties are common.
    fn draw(rng: &mut ChaCha8Rng, negative: bool) -> f64 {
        random::below(rng, 9) as f64 - if negative { 4.0 } else { 0.0 }
    }

    fn random_rows(rng: &mut ChaCha8Rng, n: usize, d: usize, negative: bool) -> Rows {
        let mut rows = Rows::new(d);
        for _ in 0..n {
            let (mut indices, mut values) = (Vec::new(), Vec::new());
            for j in 0..d as u32 {
                let x = draw(rng, negative);
                if x != 0.0 && random::below(rng, 3) == 0 {
                    indices.push(j);
                    values.push(x);
                }
            }
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    }

    /// A panel of every `step`-th column with random entries, and all D.
    fn random_panel(rng: &mut ChaCha8Rng, problem: &Problem<'_>, step: usize) -> (Panel, Vec<f64>) {
        let (n, d) = (problem.rows.n_rows(), problem.n_columns());
        let diagonal: Vec<f64> = (0..d).map(|_| draw(rng, true)).collect();
        let mut panel = Panel::default();
        // The first round leaves data that must not affect the second.
        for round in 0..2 {
            panel.clear(n);
            for j in (round..d).step_by(step) {
                let u: Vec<f64> = (0..n).map(|_| 0.1 * draw(rng, true)).collect();
                let norms = Norms::of(&u, problem.non_negative);
                panel.push(j as u32, &u, norms, diagonal[j]);
            }
            panel.build();
        }
        (panel, diagonal)
    }

    /// x_i · u_j, summed in the same order as in the panel.
    fn h(problem: &Problem<'_>, panel: &Panel, i: u32, place: usize) -> f64 {
        let (rows, values) = problem.lists.column(i);
        let block = &panel.blocks[place / FAN * panel.n_rows..];
        let products = rows.iter().zip(values);
        products.fold(0.0, |sum, (&r, &x)| {
            sum + x * block[r as usize][place % FAN]
        })
    }

    fn with_random_panels(mut check: impl FnMut(&Problem<'_>, &Panel, &[f64])) {
        let mut triplets = Triplets::new();
        triplets.push(0, 0, 1);
        for (seed, (n, d, step)) in [(2, 20, 1), (5, 90, 1), (7, 300, 3), (12, 700, 1)]
            .into_iter()
            .enumerate()
        {
            for negative in [false, true] {
                let mut rng = random::rng(seed as u64, 5);
                let rows = random_rows(&mut rng, n, d, negative);
                let problem = Problem::new(&rows, &triplets, 1.0, LossKind::SmoothedHinge).unwrap();
                let (panel, diagonal) = random_panel(&mut rng, &problem, step);
                check(&problem, &panel, &diagonal);
            }
        }
    }

    #[test]
    fn bounds_are_never_below_what_they_stand_for() {
        with_random_panels(|problem, panel, diagonal| {
            for i in (0..problem.n_columns() as u32).step_by(7) {
                let score = |place: usize| {
                    let j = panel.columns[place] as usize;
                    diagonal[i as usize] + diagonal[j] + h(problem, panel, i, place).abs()
                };
                for level in 1..=panel.levels.len() {
                    let width = FAN.pow(level as u32);
                    let n = panel.columns.len();
                    for child in 0..n.div_ceil(width) {
                        let places = child * width..((child + 1) * width).min(n);
                        let best = places.map(score).fold(f64::NEG_INFINITY, f64::max);
                        let visit = Visit {
                            problem,
                            diagonal,
                            panel,
                            best: (Atom::plus(0, 1).unwrap(), best),
                        };
                        assert!(visit.children(level, child / FAN, i)[child % FAN]);
                    }
                }
            }
        });
    }

    #[test]
    fn finds_the_best_pair_of_all() {
        with_random_panels(|problem, panel, diagonal| {
            let none = (Atom::plus(0, 1).unwrap(), f64::NEG_INFINITY);
            let mut visit = Visit {
                problem,
                diagonal,
                panel,
                best: none,
            };
            let mut want = none;
            for i in 0..problem.n_columns() as u32 {
                for place in 0..panel.columns.partition_point(|&j| j < i) {
                    let (j, h) = (panel.columns[place], h(problem, panel, i, place));
                    let sign = if h < 0.0 { Sign::Minus } else { Sign::Plus };
                    let score = diagonal[i as usize] + diagonal[j as usize] + h.abs();
                    want = problem.better(want, (Atom::new(i, j, sign).unwrap(), score));
                }
                visit.search(i);
            }
            assert_eq!(visit.best, want);
        });
    }
}
