//! Branch and bound, for low-dimensional rows.
//!
//! A leaf has the rows at eight consecutive positions as its children. An inner node has eight nodes of the level below
//! as its children. For each child, a node stores the maximum and the minimum of every column that occurs in the node.
//! The scores of all rows below a child are at most Σ max(x · minimum, x · maximum) over the columns of the query,
//! where x is the query's value. For a child of a leaf, which is one row, this bound is its score. One pass over the
//! query's columns computes the bounds of all eight children. The search visits the child with the highest bound first,
//! so it visits few nodes.
//!
//! Bounds are in single precision, and a slack accounts for their rounding errors. They only decide which scores are
//! computed; scores are in double precision.

use super::query::{Query, round_down};
use crate::data::Rows;
use std::ops::Range;

/// Children per node.
const ARITY: usize = 8;

/// One number per child, in a SIMD vector.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Lanes([f32; ARITY]);

const ZEROS: Lanes = Lanes([0.0; ARITY]);

/// All levels of the tree, leaves first.
pub(super) struct Tree {
    n_positions: usize,
    levels: Vec<Level>,
}

/// The nodes of one level.
struct Level {
    n_nodes: usize,
    /// The number of positions below a child.
    span: usize,
    n_columns: usize,
    /// For each node and column, the index of the column's [`Lanes`] in `maxima` and `minima`, counted from the node's
    /// index in `firsts`. It is 0 if the column does not occur in the node.
    slots: Vec<u16>,
    /// For each node, the index of its first lanes in `maxima` and `minima`. These are all zero, and stand for the
    /// columns that do not occur in the node.
    firsts: Vec<u32>,
    maxima: Vec<Lanes>,
    /// Empty in leaves, where minima and maxima are equal.
    minima: Vec<Lanes>,
}

/// The state of one search.
struct Search<'a, F> {
    query: &'a Query,
    /// The ranges of positions to search.
    ranges: &'a [Range<usize>],
    /// Computes the score at a position, and returns the threshold: positions with lower scores need not be considered
    /// any more.
    score: F,
    threshold: f32,
    /// The number of nodes that may still be visited. If it is used up, the inverted index is searched instead.
    budget: usize,
}

impl Tree {
    /// Whether a tree is worth building. The leaves have two bytes per leaf and column in `slots`. The factor 48 limits
    /// this to 12 bytes per stored value of the rows. All values must be in the range of single precision.
    pub(super) fn is_worthwhile(rows: &Rows) -> bool {
        let n_columns = rows.n_features();
        n_columns < usize::from(u16::MAX)
            && n_columns.saturating_mul(rows.n_rows()) <= rows.nnz().saturating_mul(48)
            && rows.values().iter().all(|value| value.abs() < 1e15)
    }

    pub(super) fn new(rows: &Rows) -> Self {
        let mut levels = vec![Level::leaves(rows)];
        while let Some(below) = levels.last().filter(|level| level.n_nodes > 1) {
            levels.push(Level::parents_of(below));
        }
        Self {
            n_positions: rows.n_rows(),
            levels,
        }
    }

    #[cfg(test)]
    pub(super) fn height(&self) -> usize {
        self.levels.len()
    }

    /// Calls `score` for the positions in the given ranges, except for those whose bound is below the threshold.
    /// `score` returns the threshold for the positions that follow. The result is false if the search gave up because
    /// its bounds exclude too few rows.
    pub(super) fn search(
        &self,
        query: &Query,
        ranges: &[Range<usize>],
        score: impl FnMut(usize) -> f64,
    ) -> bool {
        let mut search = Search {
            query,
            ranges,
            score,
            threshold: f32::NEG_INFINITY,
            budget: 16 + self.levels[0].n_nodes / 2,
        };
        self.visit(self.levels.len() - 1, 0, &mut search)
    }

    /// Searches below a node. False if the budget is used up.
    fn visit<F: FnMut(usize) -> f64>(
        &self,
        level: usize,
        node: usize,
        search: &mut Search<'_, F>,
    ) -> bool {
        let nodes = &self.levels[level];
        let first = node * ARITY * nodes.span;
        let positions = first..(first + ARITY * nodes.span).min(self.n_positions);
        let overlaps = |r: &Range<usize>| r.start < positions.end && positions.start < r.end;
        if !search.ranges.iter().any(overlaps) {
            return true;
        }
        if search.budget == 0 {
            return false;
        }
        search.budget -= 1;
        let mut bounds = nodes.bounds(node, search.query).0;
        if level == 0 {
            for (&bound, at) in bounds.iter().zip(positions) {
                if bound >= search.threshold && search.ranges.iter().any(|r| r.contains(&at)) {
                    search.threshold = round_down((search.score)(at));
                }
            }
            return true;
        }
        let n_children = positions.len().div_ceil(nodes.span);
        loop {
            let (mut best, mut child) = (f32::NEG_INFINITY, 0);
            for (at, &bound) in bounds[..n_children].iter().enumerate() {
                if bound > best {
                    (best, child) = (bound, at);
                }
            }
            if best < search.threshold || best == f32::NEG_INFINITY {
                return true;
            }
            bounds[child] = f32::NEG_INFINITY;
            if !self.visit(level - 1, node * ARITY + child, search) {
                return false;
            }
        }
    }
}

impl Level {
    fn new(n_nodes: usize, span: usize, n_columns: usize) -> Self {
        Self {
            n_nodes,
            span,
            n_columns,
            slots: vec![0; n_nodes * n_columns],
            firsts: Vec::with_capacity(n_nodes),
            maxima: Vec::new(),
            minima: Vec::new(),
        }
    }

    /// The leaves, with eight rows each.
    fn leaves(rows: &Rows) -> Self {
        let (n_positions, n_columns) = (rows.n_rows(), rows.n_features());
        let mut level = Self::new(n_positions.div_ceil(ARITY), 1, n_columns);
        level.maxima.reserve(level.n_nodes + rows.nnz() / 2);
        for leaf in 0..level.n_nodes {
            let first = level.start_node();
            for (lane, position) in (leaf * ARITY..n_positions).take(ARITY).enumerate() {
                for (column, value) in rows.row(position).iter() {
                    let at = first + level.slot(leaf, column as usize, first);
                    level.maxima[at].0[lane] = value as f32;
                }
            }
        }
        level
    }

    /// The parents of the nodes of a level.
    fn parents_of(below: &Self) -> Self {
        let n_columns = below.n_columns;
        let mut level = Self::new(below.n_nodes.div_ceil(ARITY), below.span * ARITY, n_columns);
        for node in 0..level.n_nodes {
            let first = level.start_node();
            for (lane, child) in (node * ARITY..below.n_nodes).take(ARITY).enumerate() {
                for (column, &slot) in below.slots_of(child).iter().enumerate() {
                    if slot != 0 {
                        let at = first + level.slot(node, column, first);
                        let [max, min] = below.max_and_min(child, slot);
                        level.maxima[at].0[lane] = max;
                        level.minima.resize(level.maxima.len(), ZEROS);
                        level.minima[at].0[lane] = min;
                    }
                }
            }
            level.minima.resize(level.maxima.len(), ZEROS);
        }
        level
    }

    /// Starts the next node, and returns the index of its first lanes.
    fn start_node(&mut self) -> usize {
        let first = self.maxima.len();
        self.firsts.push(first as u32);
        self.maxima.push(ZEROS);
        first
    }

    /// The offset of a column's lanes from the node's first ones. Adds lanes if the node does not have the column yet.
    fn slot(&mut self, node: usize, column: usize, first: usize) -> usize {
        let slot = &mut self.slots[node * self.n_columns + column];
        if *slot == 0 {
            *slot = (self.maxima.len() - first) as u16;
            self.maxima.push(ZEROS);
        }
        usize::from(*slot)
    }

    /// The offsets of all columns in a node.
    fn slots_of(&self, node: usize) -> &[u16] {
        &self.slots[node * self.n_columns..(node + 1) * self.n_columns]
    }

    fn minima(&self) -> &[Lanes] {
        match self.minima.is_empty() {
            true => &self.maxima,
            false => &self.minima,
        }
    }

    /// The maximum and the minimum in a node of the column that has this slot.
    fn max_and_min(&self, node: usize, slot: u16) -> [f32; 2] {
        let at = self.firsts[node] as usize + usize::from(slot);
        let (maxima, minima) = (self.maxima[at].0, self.minima()[at].0);
        [
            maxima.into_iter().fold(f32::NEG_INFINITY, f32::max),
            minima.into_iter().fold(f32::INFINITY, f32::min),
        ]
    }

    /// For each child of a node, an upper bound of the scores of the rows below it.
    fn bounds(&self, node: usize, query: &Query) -> Lanes {
        let slots = self.slots_of(node);
        let first = self.firsts[node] as usize;
        let mut sums = ZEROS;
        for (columns, extremes) in [
            (&query.non_negative, &self.maxima[first..]),
            (&query.negative, &self.minima()[first..]),
        ] {
            for &(column, x) in columns {
                let lanes = &extremes[usize::from(slots[column as usize])];
                for (sum, &extreme) in sums.0.iter_mut().zip(&lanes.0) {
                    *sum += x * extreme;
                }
            }
        }
        sums
    }
}
