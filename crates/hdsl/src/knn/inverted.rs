//! Search by inverted index: the query's columns are added to the scores of their rows, then the best are selected.
//!
//! Columns are added in increasing order, so that each score is the sum of
//! [`SparseRow::dot`](crate::SparseRow::dot), term by term.

use super::index::{List, Places};
use super::top::TopK;
use crate::data::{Rows, group_starts};
use std::ops::Range;

/// Places whose scores are selected, or passed over, together.
const BLOCK: usize = 32;

/// A column is also stored with zeros if at least one row in this many has it: adding a vector is then faster than
/// adding to scattered rows.
const DENSE_SHARE: usize = 4;

/// Rows by column.
pub(super) struct InvertedIndex {
    n_rows: usize,
    /// Places and values of column c: `starts[c]..starts[c + 1]`.
    starts: Vec<usize>,
    places: Vec<u32>,
    values: Vec<f64>,
    kinds: Vec<Kind>,
}

/// How a column is added to the scores.
enum Kind {
    /// Value by value.
    Sparse,
    /// All values are this one.
    Constant(f64),
    /// A value for each place.
    Dense(Vec<f64>),
}

/// The scores of one query by place, all zero between queries.
#[derive(Default)]
pub(super) struct Sums {
    scores: Vec<f64>,
    /// The blocks of places that share a column with the query.
    nonzero: Vec<bool>,
}

impl InvertedIndex {
    /// Sorts rows with compact columns by column.
    pub(super) fn new(rows: &Rows) -> Self {
        let n_rows = rows.n_rows();
        let starts = group_starts(rows.n_features(), rows.indices().iter().copied());
        let mut next = starts.clone();
        let mut places = vec![0; rows.nnz()];
        let mut values = vec![0.0; rows.nnz()];
        for (place, row) in rows.iter().enumerate() {
            for (column, value) in row.iter() {
                let at = &mut next[column as usize];
                places[*at] = place as u32;
                values[*at] = value;
                *at += 1;
            }
        }
        let kind = |range: &[usize]| {
            let column = &values[range[0]..range[1]];
            if column.len() * DENSE_SHARE >= n_rows {
                let mut dense = vec![0.0; n_rows];
                for (&place, &value) in places[range[0]..].iter().zip(column) {
                    dense[place as usize] = value;
                }
                return Kind::Dense(dense);
            }
            match column.first() {
                Some(first) if column.iter().all(|v| v.to_bits() == first.to_bits()) => {
                    Kind::Constant(*first)
                }
                _ => Kind::Sparse,
            }
        };
        Self {
            n_rows,
            kinds: starts.windows(2).map(kind).collect(),
            starts,
            places,
            values,
        }
    }

    /// The score of every row.
    pub(super) fn sum(&self, sums: &mut Sums, query: &[(u32, f64)]) {
        sums.scores.resize(self.n_rows, 0.0);
        sums.nonzero.resize(self.n_rows.div_ceil(BLOCK), false);
        let count = |&(column, _): &(u32, f64)| self.range(column).len();
        if query.iter().map(count).sum::<usize>() >= self.n_rows / BLOCK {
            sums.nonzero.fill(true);
            self.add::<false>(sums, query);
        } else {
            self.add::<true>(sums, query);
        }
    }

    /// Adds the columns to the scores; `MARK` says whether blocks must be marked as they are met.
    fn add<const MARK: bool>(&self, sums: &mut Sums, query: &[(u32, f64)]) {
        let Sums { scores, nonzero } = sums;
        for &(column, x) in query {
            let range = self.range(column);
            let places = &self.places[range.clone()];
            let mut add = |place: u32, term: f64| {
                scores[place as usize] += term;
                if MARK {
                    nonzero[place as usize / BLOCK] = true;
                }
            };
            match &self.kinds[column as usize] {
                // Zeros change no bit of a sum, which is never -0, as long as x is a number.
                Kind::Dense(values) if x.is_finite() => {
                    for (score, y) in scores.iter_mut().zip(values) {
                        *score += x * y;
                    }
                }
                Kind::Constant(y) => {
                    let term = x * y;
                    places.iter().for_each(|&place| add(place, term));
                }
                _ => {
                    for (&place, y) in places.iter().zip(&self.values[range]) {
                        add(place, x * y);
                    }
                }
            }
        }
    }

    fn range(&self, column: u32) -> Range<usize> {
        self.starts[column as usize]..self.starts[column as usize + 1]
    }
}

impl Sums {
    /// Selects the best rows of a list.
    pub(super) fn select(&self, top: &mut TopK, list: &List<'_>, places: &Places) {
        top.reset(list.k);
        for range in &list.places {
            for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
                let start = range.start.max(block * BLOCK);
                let scores = &self.scores[start..range.end.min((block + 1) * BLOCK)];
                if !self.nonzero[block] || max(scores) < top.floor() {
                    continue;
                }
                for (place, &score) in (start..).zip(scores) {
                    let row = places.row_at(place);
                    if top.accepts(row, score) && (list.allowed)(row) {
                        top.offer(row, score);
                    }
                }
            }
        }
        // Rows that share no column with the query have score 0, and the lowest-numbered ones come first.
        for row in 0..self.scores.len() as u32 {
            if !top.accepts(row, 0.0) {
                break;
            }
            let place = places.place_of(row);
            let listed = list.places.iter().any(|range| range.contains(&place));
            if listed && !self.nonzero[place / BLOCK] && (list.allowed)(row) {
                top.offer(row, 0.0);
            }
        }
    }

    /// Zeros again.
    pub(super) fn clear(&mut self) {
        for (scores, nonzero) in self.scores.chunks_mut(BLOCK).zip(&mut self.nonzero) {
            if std::mem::take(nonzero) {
                scores.fill(0.0);
            }
        }
    }
}

/// The largest score, in lanes that the compiler turns into vectors.
#[inline]
fn max(scores: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let (chunks, rest) = scores.as_chunks::<4>();
    let mut lanes = [f64::NEG_INFINITY; 4];
    for chunk in chunks {
        for (lane, &score) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, score);
        }
    }
    rest.iter()
        .chain(&lanes)
        .copied()
        .fold(f64::NEG_INFINITY, larger)
}
