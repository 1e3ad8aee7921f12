//! Search by branch and bound, where rows have few columns to choose from.
//!
//! Eight neighboring places are a leaf, eight leaves a node, and so on up to the root. For each column that occurs below
//! it, a node has the greatest and the least value below each of its eight children. No row below a child scores more
//! than Σ max(x · least, x · greatest) over the query's columns; for a single row, the child of a leaf, that is its
//! score. So one pass over the query's columns bounds eight children, and a search that opens the child of the largest
//! bound first opens few nodes.
//!
//! Bounds are in single precision. They only decide which rows are scored, with room for their rounding.

use crate::data::{Rows, SparseRow};
use std::ops::Range;

/// Children of a node.
const FAN: usize = 8;

/// A number for each child.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Lanes([f32; FAN]);

const ZEROS: Lanes = Lanes([0.0; FAN]);

/// All levels of the tree, leaves first.
pub(super) struct Tree {
    n_places: usize,
    levels: Vec<Level>,
    /// The largest absolute value of each column.
    largest: Vec<f64>,
}

/// The nodes of one level.
struct Level {
    n_nodes: usize,
    /// How many places are below a child.
    span: usize,
    n_columns: usize,
    /// Where the lanes of a column are, counted from the node's first; 0 if it does not occur below the node.
    slots: Vec<u16>,
    /// The first lanes of each node, which are zeros, for all columns that do not occur.
    firsts: Vec<u32>,
    greatest: Vec<Lanes>,
    /// Empty in leaves, where it would be the same.
    least: Vec<Lanes>,
}

/// A query.
#[derive(Default)]
pub(super) struct Query {
    /// Its columns with values from 0 up, and those below, in single precision.
    positive: Vec<(u32, f32)>,
    negative: Vec<(u32, f32)>,
    /// The value of each column.
    dense: Vec<f64>,
}

impl Query {
    /// Takes over the columns of a query; [`Query::clear`] must have followed the last one.
    pub(super) fn set(&mut self, columns: &[(u32, f64)], n_columns: usize) {
        self.positive.clear();
        self.negative.clear();
        self.dense.resize(n_columns, 0.0);
        for &(column, x) in columns {
            let side = match x < 0.0 {
                true => &mut self.negative,
                false => &mut self.positive,
            };
            side.push((column, x as f32));
            self.dense[column as usize] = x;
        }
    }

    pub(super) fn clear(&mut self, columns: &[(u32, f64)]) {
        for &(column, _) in columns {
            self.dense[column as usize] = 0.0;
        }
    }

    /// The exact score of a row. Columns that the query lacks add 0, which changes no bit: a sum is never -0.
    pub(super) fn dot(&self, row: SparseRow<'_>) -> f64 {
        row.iter()
            .map(|(column, y)| self.dense[column as usize] * y)
            .fold(0.0, |sum, term| sum + term)
    }
}

/// A search under way.
struct Search<'a, F> {
    query: &'a Query,
    /// The places asked for.
    ranges: &'a [Range<usize>],
    /// Scores a place, and gives the score below which no other place matters.
    score: F,
    floor: f32,
    /// How many nodes may still be opened.
    left: usize,
}

impl Tree {
    /// Whether a tree pays: its tables of columns, one for each leaf, should not outgrow the rows themselves, whose
    /// values single precision must be able to represent.
    pub(super) fn pays(rows: &Rows) -> bool {
        let n_columns = rows.n_features();
        n_columns < usize::from(u16::MAX)
            && n_columns.saturating_mul(rows.n_rows()) <= rows.nnz().saturating_mul(48)
            && rows.values().iter().all(|value| value.abs() < 1e15)
    }

    pub(super) fn new(rows: &Rows) -> Self {
        let mut largest = vec![0.0f64; rows.n_features()];
        for (&column, value) in rows.indices().iter().zip(rows.values()) {
            let largest = &mut largest[column as usize];
            *largest = largest.max(value.abs());
        }
        let mut levels = vec![Level::leaves(rows)];
        while let Some(below) = levels.last().filter(|level| level.n_nodes > 1) {
            levels.push(Level::above(below));
        }
        Self {
            n_places: rows.n_rows(),
            levels,
            largest,
        }
    }

    #[cfg(test)]
    pub(super) fn height(&self) -> usize {
        self.levels.len()
    }

    /// What rounding can do to the bounds of a query; nothing if single precision cannot represent them.
    pub(super) fn slack(&self, query: &[(u32, f64)]) -> Option<f64> {
        let (mut gain, mut square) = (0.0, 0.0);
        for &(column, x) in query {
            gain += x.abs() * self.largest[column as usize];
            square += x * x;
        }
        // Every sum is at most `gain` in size, and each of its terms (rounded thrice) and additions loses at most 2^-24
        // of that. Taken double, this also covers the exact scores, whose roundings are far smaller.
        let slack = (query.len() as f64 + 16.0) * gain * f64::from(f32::EPSILON) + 1e-37;
        ((1e-20..1e15).contains(&gain) && square < 1e30).then_some(slack)
    }

    /// Calls `score` with places of the given ranges, except those that are surely below the floor, which it gives for
    /// what follows. False if it gave up, since too few could be left out.
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
            floor: f32::NEG_INFINITY,
            left: 16 + self.levels[0].n_nodes / 2,
        };
        self.open(self.levels.len() - 1, 0, &mut search)
    }

    fn open<F: FnMut(usize) -> f64>(
        &self,
        level: usize,
        node: usize,
        search: &mut Search<'_, F>,
    ) -> bool {
        let here = &self.levels[level];
        let first = node * FAN * here.span;
        let places = first..(first + FAN * here.span).min(self.n_places);
        let meets = |r: &Range<usize>| r.start < places.end && places.start < r.end;
        if !search.ranges.iter().any(meets) {
            return true;
        }
        if search.left == 0 {
            return false;
        }
        search.left -= 1;
        let mut bounds = here.bounds(node, search.query).0;
        if level == 0 {
            for (&bound, place) in bounds.iter().zip(places) {
                if bound >= search.floor && search.ranges.iter().any(|r| r.contains(&place)) {
                    search.floor = round_down((search.score)(place));
                }
            }
            return true;
        }
        let n_children = places.len().div_ceil(here.span);
        loop {
            let (mut best, mut child) = (f32::NEG_INFINITY, 0);
            for (at, &bound) in bounds[..n_children].iter().enumerate() {
                if bound > best {
                    (best, child) = (bound, at);
                }
            }
            if best < search.floor || best == f32::NEG_INFINITY {
                return true;
            }
            bounds[child] = f32::NEG_INFINITY;
            if !self.open(level - 1, node * FAN + child, search) {
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
            greatest: Vec::new(),
            least: Vec::new(),
        }
    }

    /// The rows at their places, eight in each leaf.
    fn leaves(rows: &Rows) -> Self {
        let (n_places, n_columns) = (rows.n_rows(), rows.n_features());
        let mut level = Self::new(n_places.div_ceil(FAN), 1, n_columns);
        level.greatest.reserve(level.n_nodes + rows.nnz() / 2);
        for leaf in 0..level.n_nodes {
            let first = level.start_node();
            for (lane, place) in (leaf * FAN..n_places).take(FAN).enumerate() {
                for (column, value) in rows.row(place).iter() {
                    let at = first + level.slot(leaf, column as usize, first);
                    level.greatest[at].0[lane] = value as f32;
                }
            }
        }
        level
    }

    /// The nodes above those of a level.
    fn above(below: &Self) -> Self {
        let n_columns = below.n_columns;
        let mut level = Self::new(below.n_nodes.div_ceil(FAN), below.span * FAN, n_columns);
        for node in 0..level.n_nodes {
            let first = level.start_node();
            for (lane, child) in (node * FAN..below.n_nodes).take(FAN).enumerate() {
                for (column, &slot) in below.slots_of(child).iter().enumerate() {
                    if slot != 0 {
                        let at = first + level.slot(node, column, first);
                        let [greatest, least] = below.ends(child, slot);
                        level.greatest[at].0[lane] = greatest;
                        level.least.resize(level.greatest.len(), ZEROS);
                        level.least[at].0[lane] = least;
                    }
                }
            }
            level.least.resize(level.greatest.len(), ZEROS);
        }
        level
    }

    /// Begins the next node: where its lanes are.
    fn start_node(&mut self) -> usize {
        let first = self.greatest.len();
        self.firsts.push(first as u32);
        self.greatest.push(ZEROS);
        first
    }

    /// The slot of a column in a node, which is new if the column was not there yet.
    fn slot(&mut self, node: usize, column: usize, first: usize) -> usize {
        let slot = &mut self.slots[node * self.n_columns + column];
        if *slot == 0 {
            *slot = (self.greatest.len() - first) as u16;
            self.greatest.push(ZEROS);
        }
        usize::from(*slot)
    }

    fn slots_of(&self, node: usize) -> &[u16] {
        &self.slots[node * self.n_columns..(node + 1) * self.n_columns]
    }

    fn least(&self) -> &[Lanes] {
        match self.least.is_empty() {
            true => &self.greatest,
            false => &self.least,
        }
    }

    /// The greatest and the least value of a column below a node.
    fn ends(&self, node: usize, slot: u16) -> [f32; 2] {
        let at = self.firsts[node] as usize + usize::from(slot);
        let (greatest, least) = (self.greatest[at].0, self.least()[at].0);
        [
            greatest.into_iter().fold(f32::NEG_INFINITY, f32::max),
            least.into_iter().fold(f32::INFINITY, f32::min),
        ]
    }

    /// What the rows below each child of a node score at most.
    fn bounds(&self, node: usize, query: &Query) -> Lanes {
        let slots = self.slots_of(node);
        let first = self.firsts[node] as usize;
        let mut sums = ZEROS;
        for (columns, ends) in [
            (&query.positive, &self.greatest[first..]),
            (&query.negative, &self.least()[first..]),
        ] {
            for &(column, x) in columns {
                let lanes = &ends[usize::from(slots[column as usize])];
                for (sum, &end) in sums.0.iter_mut().zip(&lanes.0) {
                    *sum += x * end;
                }
            }
        }
        sums
    }
}

/// The largest number in single precision that is not above.
fn round_down(value: f64) -> f32 {
    let rounded = value as f32;
    match f64::from(rounded) <= value {
        true => rounded,
        false => rounded.next_down(),
    }
}
