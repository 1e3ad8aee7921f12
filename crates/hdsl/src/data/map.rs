//! Row-by-row work in parallel, the same bytes for any number of threads.

use super::rows::{Rows, RowsView, SparseRow};
use crate::parallel;
use std::ops::Range;

/// Makes a new matrix row by row. `each` appends one row's (feature, value) pairs, by increasing feature, to the
/// two lists; `state` is scratch space, made once per block of rows. Blocks depend on the number of rows alone, so the
/// result does not depend on the number of threads.
pub(crate) fn map_rows<'a, S>(
    rows: impl Into<RowsView<'a>>,
    n_features: usize,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, SparseRow<'_>, &mut Vec<u32>, &mut Vec<f64>) + Sync,
) -> Rows {
    let rows = rows.into();
    map_blocks(rows, n_features, &|block| {
        let mut state = state();
        // Most maps keep the stored values.
        let nnz = rows.range(block.end - 1).end - rows.range(block.start).start;
        let mut ends = Vec::with_capacity(block.len());
        let mut indices = Vec::with_capacity(nnz);
        let mut values = Vec::with_capacity(nnz);
        for row in block {
            each(&mut state, rows.row(row), &mut indices, &mut values);
            ends.push(indices.len());
        }
        (ends, indices, values)
    })
}

/// Where the rows of a block end, and their features and values.
type Block = (Vec<usize>, Vec<u32>, Vec<f64>);

/// The part of [`map_rows`] that is compiled once.
fn map_blocks(
    rows: RowsView<'_>,
    n_features: usize,
    of_block: &(dyn Fn(Range<usize>) -> Block + Sync),
) -> Rows {
    let block = block_of(rows.n_rows());
    let parts = parallel::map(rows.n_rows().div_ceil(block), |b| {
        of_block(b * block..((b + 1) * block).min(rows.n_rows()))
    });
    let n = parts.iter().map(|part| part.1.len()).sum();
    let (mut starts, mut indices, mut values) =
        (vec![0], Vec::with_capacity(n), Vec::with_capacity(n));
    for part in parts {
        starts.extend(part.0.iter().map(|end| indices.len() + end));
        indices.extend(part.1);
        values.extend(part.2);
    }
    Rows::from_parts(n_features, starts, indices, values)
        .expect("mapped rows are increasing and finite")
}

/// Changes rows in place, so that there is never a second copy of them. `each` gets one row's features and values,
/// and returns how many of them, from the first, are the new row, by increasing feature below `n_features`. State and
/// blocks are as in [`map_rows`].
pub(crate) fn change_rows<S>(
    rows: Rows,
    n_features: usize,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &mut [u32], &mut [f64]) -> usize + Sync,
) -> Rows {
    change_blocks(rows, n_features, &|part| {
        let mut state = state();
        for (bounds, length) in part.starts.windows(2).zip(part.lengths) {
            let range = bounds[0] - part.starts[0]..bounds[1] - part.starts[0];
            let (indices, values) = (&mut part.indices[range.clone()], &mut part.values[range]);
            *length = each(&mut state, indices, values) as u32;
        }
    })
}

/// The rows of a block, and how many entries each of them keeps.
struct Part<'a> {
    starts: &'a [usize],
    lengths: &'a mut [u32],
    indices: &'a mut [u32],
    values: &'a mut [f64],
}

/// The part of [`change_rows`] that is compiled once.
fn change_blocks(rows: Rows, n_features: usize, of_part: &(dyn Fn(Part<'_>) + Sync)) -> Rows {
    let n_rows = rows.n_rows();
    let (mut starts, mut indices, mut values) = rows.into_parts();
    let block = block_of(n_rows);
    let mut lengths: Vec<u32> = vec![0; n_rows];
    let (mut rest_indices, mut rest_values) = (&mut indices[..], &mut values[..]);
    let mut parts = Vec::with_capacity(n_rows.div_ceil(block));
    for (b, lengths) in lengths.chunks_mut(block).enumerate() {
        let starts = &starts[b * block..b * block + lengths.len() + 1];
        let n = starts[lengths.len()] - starts[0];
        let indices = rest_indices.split_off_mut(..n).expect("within the rows");
        let values = rest_values.split_off_mut(..n).expect("within the rows");
        parts.push(Part {
            starts,
            lengths,
            indices,
            values,
        });
    }
    parallel::map_each(parts, of_part);
    // Closes the gaps.
    let mut end = 0;
    for (row, length) in lengths.into_iter().enumerate() {
        let (from, length) = (starts[row], length as usize);
        if from != end {
            indices.copy_within(from..from + length, end);
            values.copy_within(from..from + length, end);
        }
        starts[row] = end;
        end += length;
    }
    starts[n_rows] = end;
    indices.truncate(end);
    values.truncate(end);
    Rows::from_parts(n_features, starts, indices, values)
        .expect("changed rows are increasing and finite")
}

/// How many rows make a block.
fn block_of(n_rows: usize) -> usize {
    n_rows.div_ceil(64).clamp(32, 4096)
}
