//! Search by inverted index: the query's columns are added to the scores of their rows, then the best are selected.
//!
//! Columns are added in increasing order, so that each score is the sum of
//! [`SparseRow::dot`](crate::SparseRow::dot), term by term.

use super::Neighbor;
use super::index::List;
use super::top::TopK;
use crate::data::{Rows, group_starts};

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
    /// A value for each place, for columns that many rows have.
    dense: Vec<Option<Vec<f64>>>,
}

impl InvertedIndex {
    /// Sorts rows with compact columns by column.
    pub(super) fn new(rows: &Rows) -> Self {
        let starts = group_starts(rows.n_features(), rows.indices().iter().copied());
        let mut next = starts.clone();
        let (mut places, mut values) = (vec![0; rows.nnz()], vec![0.0; rows.nnz()]);
        for (place, row) in rows.iter().enumerate() {
            for (column, value) in row.iter() {
                let at = &mut next[column as usize];
                (places[*at], values[*at]) = (place as u32, value);
                *at += 1;
            }
        }
        let dense = |range: &[usize]| {
            ((range[1] - range[0]) * DENSE_SHARE >= rows.n_rows()).then(|| {
                let mut dense = vec![0.0; rows.n_rows()];
                for at in range[0]..range[1] {
                    dense[places[at] as usize] = values[at];
                }
                dense
            })
        };
        Self {
            n_rows: rows.n_rows(),
            dense: starts.windows(2).map(dense).collect(),
            starts,
            places,
            values,
        }
    }

    /// The score of every place.
    pub(super) fn sum(&self, scores: &mut Vec<f64>, query: &[(u32, f64)]) {
        scores.clear();
        scores.resize(self.n_rows, 0.0);
        for &(column, x) in query {
            match &self.dense[column as usize] {
                // Zeros change no bit of a sum, which is never -0, as long as x is a number.
                Some(values) if x.is_finite() => {
                    for (score, y) in scores.iter_mut().zip(values) {
                        *score += x * y;
                    }
                }
                _ => {
                    let range = self.starts[column as usize]..self.starts[column as usize + 1];
                    let places = &self.places[range.clone()];
                    for (&place, y) in places.iter().zip(&self.values[range]) {
                        scores[place as usize] += x * y;
                    }
                }
            }
        }
    }
}

/// Selects the best rows of a list from the scores of all places.
pub(super) fn select(
    scores: &[f64],
    list: &List<'_>,
    row_at: impl Fn(usize) -> u32,
) -> Vec<Neighbor> {
    let mut top = TopK::new(list.k);
    for range in &list.places {
        for start in range.clone().step_by(BLOCK) {
            let scores = &scores[start..range.end.min(start + BLOCK)];
            if max(scores) < top.floor() {
                continue;
            }
            for (place, &score) in (start..).zip(scores) {
                let row = row_at(place);
                if top.accepts(row, score) && (list.allowed)(row) {
                    top.offer(row, score);
                }
            }
        }
    }
    top.into_list()
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
