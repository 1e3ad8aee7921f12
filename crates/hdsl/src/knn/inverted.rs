//! Search by inverted index: for each column of the query and each row that contains the column, the product of their
//! values is added to the score of the row. Then the rows with the highest scores are selected.
//!
//! These sums are in single precision, which takes half the memory traffic. They only decide for which rows the score is
//! computed in double precision: those that are among the nearest or so close to them that rounding could decide.

use super::Neighbor;
use super::index::Request;
use super::query::{Query, round_down};
use super::top::TopK;
use crate::data::{Rows, group_starts};
use std::ops::Range;

/// The number of positions in a block. A block whose largest score is too low is skipped.
const BLOCK: usize = 64;

/// A column is stored as a dense vector if at least one in this many rows contains it. Adding a dense vector is then
/// faster than adding single entries. Of 4, 8, 16 and 32, this was the fastest on word counts and on mapped rows.
const DENSE_SHARE: usize = 8;

/// The rows stored by column.
pub(super) struct InvertedIndex {
    n_rows: usize,
    columns: Vec<Column>,
    /// Positions and values of the entries of all sparse columns.
    entries: Vec<(u32, f32)>,
}

/// The values in one column.
enum Column {
    /// A range of the entries.
    Sparse(Range<usize>),
    /// One value per position.
    Dense(Vec<f32>),
}

impl InvertedIndex {
    /// Indexes rows whose columns are numbered without gaps.
    pub(super) fn new(rows: &Rows) -> Self {
        let starts = group_starts(rows.n_features(), rows.indices().iter().copied());
        let mut next = 0;
        let column = |bounds: &[usize]| {
            let n = bounds[1] - bounds[0];
            if n * DENSE_SHARE >= rows.n_rows() {
                return Column::Dense(vec![0.0; rows.n_rows()]);
            }
            next += n;
            Column::Sparse(next - n..next - n)
        };
        let mut columns: Vec<Column> = starts.windows(2).map(column).collect();
        let mut entries = vec![(0, 0.0); next];
        for (position, row) in rows.iter().enumerate() {
            for (column, value) in row.iter() {
                match &mut columns[column as usize] {
                    Column::Dense(values) => values[position] = value as f32,
                    Column::Sparse(filled) => {
                        entries[filled.end] = (position as u32, value as f32);
                        filled.end += 1;
                    }
                }
            }
        }
        Self {
            n_rows: rows.n_rows(),
            columns,
            entries,
        }
    }

    /// Computes the score at every position in single precision.
    pub(super) fn score_all(&self, scores: &mut Vec<f32>, query: &Query) {
        scores.clear();
        scores.resize(self.n_rows, 0.0);
        let columns = query.non_negative.iter().chain(&query.negative);
        self.add_scores(scores, columns.copied());
    }

    /// Adds the products with these columns of a query to the score at every position.
    pub(super) fn add_scores(&self, scores: &mut [f32], columns: impl Iterator<Item = (u32, f32)>) {
        // Dense vectors are added four at a time, which loads and stores each score once instead of four times.
        let mut pending: [(f32, &[f32]); 4] = [(0.0, &[]); 4];
        let mut n_pending = 0;
        for (column, x) in columns {
            match &self.columns[column as usize] {
                Column::Dense(values) => {
                    pending[n_pending] = (x, values);
                    n_pending += 1;
                    if n_pending == 4 {
                        add_four(scores, pending);
                        n_pending = 0;
                    }
                }
                Column::Sparse(range) => add_entries(scores, x, &self.entries[range.clone()]),
            }
        }
        if n_pending > 0 {
            // Fewer than four are filled up with the first one times 0.
            let first = pending[0].1;
            pending[n_pending..].fill((0.0, first));
            add_four(scores, pending);
        }
    }
}

/// Adds x times a sparse column. Not inlined, like [`add_four`]: either loop alone has enough registers.
#[inline(never)]
fn add_entries(scores: &mut [f32], x: f32, entries: &[(u32, f32)]) {
    for &(position, y) in entries {
        scores[position as usize] += x * y;
    }
}

/// Adds four dense columns, each times its x.
#[inline(never)]
fn add_four(scores: &mut [f32], columns: [(f32, &[f32]); 4]) {
    let n = scores.len();
    let [(x0, y0), (x1, y1), (x2, y2), (x3, y3)] = columns.map(|(x, values)| (x, &values[..n]));
    for (at, score) in scores.iter_mut().enumerate() {
        *score += (x0 * y0[at] + x1 * y1[at]) + (x2 * y2[at] + x3 * y3[at]);
    }
}

/// Selects the nearest rows of a request, given the score at every position in single precision, which differs by at most
/// `slack` from the score in double precision. `exact` computes the latter.
pub(super) fn select(
    scores: &[f32],
    slack: f64,
    request: &Request<'_>,
    row_at: impl Fn(usize) -> u32,
    exact: impl Fn(usize) -> f64,
) -> Vec<Neighbor> {
    // The k-th largest of these scores is at most `slack` above the k-th largest exact score. No row that is further below it
    // than twice the slack is among the nearest.
    let k = request.k;
    let (blocks, expected) = blocks(scores, request);
    let mut limit = round_down(f64::from(expected) - 2.0 * slack);
    let (mut rough, mut candidates) = (TopK::new(k), Vec::new());
    loop {
        for (largest, block) in &blocks {
            if *largest < limit {
                continue;
            }
            for (position, &score) in block.clone().zip(&scores[block.clone()]) {
                if score >= limit && (request.allowed)(row_at(position)) {
                    candidates.push((position, score));
                    rough.push(position as u32, f64::from(score));
                    limit = limit.max(round_down(rough.threshold() - 2.0 * slack));
                }
            }
        }
        if candidates.len() >= k || limit == f32::NEG_INFINITY {
            break;
        }
        // Too few rows are allowed among those with high scores.
        (rough, limit) = (TopK::new(k), f32::NEG_INFINITY);
        candidates.clear();
    }
    let mut top = TopK::new(k);
    for (position, _) in candidates.into_iter().filter(|c| c.1 >= limit) {
        top.push(row_at(position), exact(position));
    }
    top.into_sorted()
}

/// The blocks of a request's positions with their largest scores, and a score that about `k` rows reach: the largest scores
/// of k + 1 blocks do, and one row may not be allowed. These blocks come first.
fn blocks(scores: &[f32], request: &Request<'_>) -> (Vec<(f32, Range<usize>)>, f32) {
    let mut blocks = Vec::new();
    for range in &request.positions {
        blocks.extend(range.clone().step_by(BLOCK).map(|start| {
            let block = start..range.end.min(start + BLOCK);
            (max(&scores[block.clone()]), block)
        }));
    }
    if blocks.len() <= request.k {
        return (blocks, f32::NEG_INFINITY);
    }
    let decreasing = |a: &(f32, _), b: &(f32, _)| b.0.total_cmp(&a.0);
    let expected = blocks.select_nth_unstable_by(request.k, decreasing).1.0;
    (blocks, expected)
}

/// The largest score. Independent maxima let the compiler use SIMD instructions.
#[inline]
fn max(scores: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (chunks, rest) = scores.as_chunks::<8>();
    let mut lanes = [f32::NEG_INFINITY; 8];
    for chunk in chunks {
        for (lane, &score) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, score);
        }
    }
    rest.iter()
        .chain(&lanes)
        .copied()
        .fold(f32::NEG_INFINITY, larger)
}
