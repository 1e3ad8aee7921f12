//! Some columns of S X side by side, and the bounds that spare looking at most of them.
//!
//! For a column x_i and a column u_j = S X_{:,j} of the panel, H_ij = x_i · u_j. Eight columns make a block, eight
//! blocks a node. A node keeps, for every row, the greatest and the least entry of each of its blocks; nodes of the
//! next level keep those of eight nodes, and so on. If x_i >= 0, the same sum over the greatest entries is at least
//! every x_i · u_j below it; the least give the other end, and a negative entry of x_i swaps the two. So most of a
//! panel is passed over eight, 64 or 512 columns at a time. The sums run in the same order at every level, and rounding
//! keeps the order of numbers: a bound is never below what the columns below it give, not even by the last bit.

use crate::atoms::{Atom, Sign};
use crate::objective::{Problem, Scored};
use crate::solver::bounds::Size;

/// Columns in a block, and children of a node.
const FAN: usize = 8;

/// For one row: the entries of the columns of a block.
type Entries = [f64; FAN];
/// For one row: the greatest entry of each child of a node, then the least of each, negated.
type Extremes = [f64; 2 * FAN];

/// The columns, and the nodes above them. Kept from one search to the next for the sake of its memory.
#[derive(Default)]
pub(super) struct Panel {
    n_rows: usize,
    /// The columns, increasing, and their D.
    columns: Vec<u32>,
    diagonal: Vec<f64>,
    /// Row r of block b is at `b * n_rows + r`.
    blocks: Vec<Entries>,
    /// The nodes over blocks, the nodes over those, and so on up to a single one.
    levels: Vec<Level>,
    /// The largest D, and a bound of the size of every column.
    top: f64,
    top_size: Size,
}

/// u_j of a column: its entries in the rows listed, or in all rows.
pub(super) struct Product {
    pub(super) column: u32,
    pub(super) rows: Option<Vec<u32>>,
    pub(super) entries: Vec<f64>,
}

#[derive(Default)]
struct Level {
    /// Row r of node k is at `k * n_rows + r`.
    nodes: Vec<Extremes>,
    /// The greatest D of each child of each node.
    diagonals: Vec<Entries>,
}

impl Panel {
    pub(super) fn clear(&mut self, n_rows: usize) {
        self.n_rows = n_rows;
        self.columns.clear();
        self.diagonal.clear();
    }

    /// How many nodes of the lowest level there are.
    pub(super) fn n_nodes(&self) -> usize {
        self.columns.len().div_ceil(FAN * FAN)
    }

    /// How many columns there are.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The columns that come after the first.
    pub(super) fn later(&self, n_columns: usize) -> std::ops::Range<u32> {
        self.columns.first().map_or(0, |first| first + 1)..n_columns as u32
    }

    /// Adds the product of the next column, numbered above those before, with its D.
    pub(super) fn push(&mut self, product: &Product, diagonal: f64) {
        let (block, k) = (self.columns.len() / FAN, self.columns.len() % FAN);
        self.columns.push(product.column);
        self.diagonal.push(diagonal);
        let end = (block + 1) * self.n_rows;
        if self.blocks.len() < end {
            self.blocks.resize(end, [0.0; FAN]);
        }
        let block = &mut self.blocks[end - self.n_rows..end];
        if k == 0 {
            block.fill([0.0; FAN]);
        }
        match &product.rows {
            Some(rows) => {
                for (&row, &u) in rows.iter().zip(&product.entries) {
                    block[row as usize][k] = u;
                }
            }
            None => {
                for (entries, &u) in block.iter_mut().zip(&product.entries) {
                    entries[k] = u;
                }
            }
        }
    }

    /// Builds the nodes, once all columns are there.
    pub(super) fn build(&mut self, non_negative: bool) {
        let n_rows = self.n_rows;
        let mut n_children = self.columns.len().div_ceil(FAN);
        let mut diagonals: Vec<f64> = self.diagonal.chunks(FAN).map(greatest).collect();
        let mut depth = 0;
        loop {
            if self.levels.len() == depth {
                self.levels.push(Level::default());
            }
            let (below, above) = self.levels.split_at_mut(depth);
            let n_nodes = n_children.div_ceil(FAN);
            let level = &mut above[0];
            if level.nodes.len() < n_nodes * n_rows {
                level.nodes.resize(n_nodes * n_rows, [0.0; 2 * FAN]);
            }
            for child in 0..n_children {
                let node = &mut level.nodes[child / FAN * n_rows..][..n_rows];
                let mut set = |row: usize, [most, least]: [f64; 2]| {
                    node[row][child % FAN] = most;
                    node[row][FAN + child % FAN] = least;
                };
                let range = child * n_rows..(child + 1) * n_rows;
                match below.last() {
                    None => {
                        for (row, entries) in self.blocks[range].iter().enumerate() {
                            set(row, [greatest(entries), -least(entries)]);
                        }
                    }
                    Some(below) => {
                        for (row, extremes) in below.nodes[range].iter().enumerate() {
                            let (most, least) = extremes.split_at(FAN);
                            set(row, [greatest(most), greatest(least)]);
                        }
                    }
                }
            }
            diagonals.resize(n_nodes * FAN, f64::NEG_INFINITY);
            level.diagonals.clear();
            level.diagonals.extend_from_slice(diagonals.as_chunks().0);
            depth += 1;
            if n_nodes == 1 {
                self.levels.truncate(depth);
                return self.build_top(non_negative);
            }
            diagonals = level.diagonals.iter().map(|d| greatest(d)).collect();
            n_children = n_nodes;
        }
    }

    /// No column of the panel has an entry beyond the extremes of the top node.
    fn build_top(&mut self, non_negative: bool) {
        let node = &self.levels[self.levels.len() - 1].nodes[..self.n_rows];
        let size = |from: usize, to: usize| {
            let entries: Vec<f64> = node.iter().map(|e| greatest(&e[from..to])).collect();
            Size::of(&entries, true)
        };
        self.top = greatest(&self.diagonal);
        self.top_size = match non_negative {
            true => size(0, FAN).max(size(FAN, 2 * FAN)),
            false => size(0, 2 * FAN),
        };
    }

    /// How many columns are numbered below i.
    fn below(&self, i: u32) -> usize {
        match self.columns.last() {
            Some(&last) if last < i => self.columns.len(),
            _ => self.columns.partition_point(|&j| j < i),
        }
    }
}

fn greatest(values: &[f64]) -> f64 {
    // Unlike `f64::max`, a plain comparison is one instruction.
    values
        .iter()
        .fold(f64::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}

fn least(values: &[f64]) -> f64 {
    values
        .iter()
        .fold(f64::INFINITY, |a, &b| if b < a { b } else { a })
}

/// A search of a panel for pairs that beat the best.
pub(super) struct Visit<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) diagonal: &'a [f64],
    pub(super) panel: &'a Panel,
    pub(super) best: Scored,
}

impl Visit<'_> {
    /// Names the lowest nodes where column i may find a partner numbered below it.
    pub(super) fn nodes_for(&self, i: u32, found: &mut impl FnMut(usize)) {
        let h = self.panel.top_size.times(self.problem.norms(i));
        if self.diagonal[i as usize] + self.panel.top + h < self.best.1 {
            return;
        }
        let limit = self.panel.below(i);
        if limit > 0 {
            self.descend(self.panel.levels.len(), 0, i, limit, found);
        }
    }

    /// From a node of a level (the lowest is 1) down to those of level 1.
    fn descend(
        &self,
        level: usize,
        at: usize,
        i: u32,
        limit: usize,
        found: &mut impl FnMut(usize),
    ) {
        if level == 1 {
            return found(at);
        }
        let may_win = self.children(level, at, i);
        let width = FAN.pow(level as u32);
        for (k, may_win) in may_win.into_iter().enumerate() {
            let child = at * FAN + k;
            if may_win && child * width < limit {
                self.descend(level - 1, child, i, limit, found);
            }
        }
    }

    /// Which children of a node may hold a partner of column i.
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

    /// Looks at all pairs of column i with a column below this lowest node that might beat the best.
    pub(super) fn pairs_of(&mut self, node: usize, i: u32) {
        let limit = self.panel.below(i);
        let may_win = self.children(1, node, i);
        let (rows, values) = self.problem.lists.column(i);
        for (k, may_win) in may_win.into_iter().enumerate() {
            let at = node * FAN + k;
            if !may_win || at * FAN >= limit {
                continue;
            }
            let block = &self.panel.blocks[at * self.panel.n_rows..][..self.panel.n_rows];
            let mut sums = [0.0; FAN];
            for (&row, &x) in rows.iter().zip(values) {
                let entries = &block[row as usize];
                for k in 0..FAN {
                    sums[k] += x * entries[k];
                }
            }
            for place in at * FAN..((at + 1) * FAN).min(limit) {
                self.offer(i, self.panel.columns[place], sums[place % FAN]);
            }
        }
    }

    fn offer(&mut self, i: u32, j: u32, h: f64) {
        let score = self.diagonal[i as usize] + self.diagonal[j as usize] + h.abs();
        if score >= self.best.1 {
            let sign = if h < 0.0 { Sign::Minus } else { Sign::Plus };
            let atom = Atom::new(i, j, sign).expect("a partner is another feature");
            self.best = self.problem.better(self.best, (atom, score));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Rows, SparseRow};
    use crate::objective::loss::LossKind;
    use crate::random;
    use crate::triplets::Triplets;
    use rand_chacha::ChaCha8Rng;

    /// A whole number from -4 to 4, or from 0: sums are exact and ties are common.
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
        // What an earlier search left must not show.
        for round in 0..2 {
            panel.clear(n);
            for j in (round..d).step_by(step) {
                let rows: Option<Vec<u32>> =
                    (j % 2 == 1).then(|| (0..n as u32).step_by(2).collect());
                let n_entries = rows.as_ref().map_or(n, Vec::len);
                let product = Product {
                    column: j as u32,
                    rows,
                    entries: (0..n_entries).map(|_| 0.1 * draw(rng, true)).collect(),
                };
                panel.push(&product, diagonal[j]);
            }
            panel.build(problem.non_negative);
        }
        (panel, diagonal)
    }

    /// x_i · u_j, summed like the panel does.
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
                    for child in 0..panel.len().div_ceil(width) {
                        let places = child * width..((child + 1) * width).min(panel.len());
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
            for i in panel.later(problem.n_columns()) {
                for place in 0..panel.below(i) {
                    let (j, h) = (panel.columns[place], h(problem, panel, i, place));
                    let sign = if h < 0.0 { Sign::Minus } else { Sign::Plus };
                    let score = diagonal[i as usize] + diagonal[j as usize] + h.abs();
                    want = problem.better(want, (Atom::new(i, j, sign).unwrap(), score));
                }
                let mut nodes = Vec::new();
                visit.nodes_for(i, &mut |node| nodes.push(node));
                for node in nodes {
                    visit.pairs_of(node, i);
                }
            }
            assert_eq!(visit.best, want);
        });
    }
}
