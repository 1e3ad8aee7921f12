//! Search by inverted index: for each column of the query and each row that contains the column, the product of their
//! values is added to the score of the row. Then the rows with the highest scores are selected.
//!
//! Columns are added in increasing order, so each score has the same terms in the same order as
//! [`SparseRow::dot`](crate::SparseRow::dot), and the same rounding.

use super::Neighbor;
use super::index::Request;
use super::top::TopK;
use crate::data::{Rows, group_starts};

/// The number of positions in a block. A block whose largest score is too low is skipped.
const BLOCK: usize = 32;

/// A column is also stored as a dense vector if at least one in this many rows contains it. Adding a dense vector is
/// then faster than adding single entries.
const DENSE_SHARE: usize = 4;

/// The rows stored by column: for each column, the positions of the rows that contain it, and their values.
pub(super) struct InvertedIndex {
    n_rows: usize,
    /// Column c has the range `starts[c]..starts[c + 1]` of `positions` and `values`.
    starts: Vec<usize>,
    positions: Vec<u32>,
    values: Vec<f64>,
    /// Columns that many rows contain, as dense vectors over positions.
    dense: Vec<Option<Vec<f64>>>,
}

impl InvertedIndex {
    /// Indexes rows whose columns are numbered without gaps.
    pub(super) fn new(rows: &Rows) -> Self {
        let starts = group_starts(rows.n_features(), rows.indices().iter().copied());
        let mut next = starts.clone();
        let (mut positions, mut values) = (vec![0; rows.nnz()], vec![0.0; rows.nnz()]);
        for (position, row) in rows.iter().enumerate() {
            for (column, value) in row.iter() {
                let at = &mut next[column as usize];
                (positions[*at], values[*at]) = (position as u32, value);
                *at += 1;
            }
        }
        let dense = |range: &[usize]| {
            ((range[1] - range[0]) * DENSE_SHARE >= rows.n_rows()).then(|| {
                let mut dense = vec![0.0; rows.n_rows()];
                for at in range[0]..range[1] {
                    dense[positions[at] as usize] = values[at];
                }
                dense
            })
        };
        Self {
            n_rows: rows.n_rows(),
            dense: starts.windows(2).map(dense).collect(),
            starts,
            positions,
            values,
        }
    }

    /// Computes the score at every position.
    pub(super) fn score_all(&self, scores: &mut Vec<f64>, query: &[(u32, f64)]) {
        scores.clear();
        scores.resize(self.n_rows, 0.0);
        for &(column, x) in query {
            match &self.dense[column as usize] {
                // The dense vector is 0 for rows that do not contain the column. If x is finite, x · 0 is ±0. Adding ±0
                // leaves a score unchanged, because a score is never -0.
                Some(values) if x.is_finite() => {
                    for (score, y) in scores.iter_mut().zip(values) {
                        *score += x * y;
                    }
                }
                _ => {
                    let range = self.starts[column as usize]..self.starts[column as usize + 1];
                    let positions = &self.positions[range.clone()];
                    for (&position, y) in positions.iter().zip(&self.values[range]) {
                        scores[position as usize] += x * y;
                    }
                }
            }
        }
    }
}

/// Selects the nearest rows of a request, given the score at every position.
pub(super) fn select(
    scores: &[f64],
    request: &Request<'_>,
    row_at: impl Fn(usize) -> u32,
) -> Vec<Neighbor> {
    let mut top = TopK::new(request.k);
    for range in &request.positions {
        for start in range.clone().step_by(BLOCK) {
            let scores = &scores[start..range.end.min(start + BLOCK)];
            if max(scores) < top.threshold() {
                continue;
            }
            for (position, &score) in (start..).zip(scores) {
                let row = row_at(position);
                if top.accepts(row, score) && (request.allowed)(row) {
                    top.push(row, score);
                }
            }
        }
    }
    top.into_sorted()
}

/// The largest score. Four independent maxima let the compiler use SIMD instructions.
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
