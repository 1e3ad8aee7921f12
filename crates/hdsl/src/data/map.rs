//! Row-by-row work in parallel, the same bytes for any number of threads.

use super::rows::{Rows, RowsView, SparseRow};
use crate::parallel::prelude::*;

/// The three arrays of a CSR matrix: row starts, indices, values.
pub(super) type Arrays = (Vec<usize>, Vec<u32>, Vec<f64>);

/// Makes a new matrix row by row. `each` appends one row's (feature, value) pairs, by increasing feature, to the
/// two lists; `state` is scratch space, made once per block of rows. Blocks depend on the number of rows alone, so the
/// result does not depend on the number of threads.
pub(crate) fn map_rows<'a, S: Send>(
    rows: impl Into<RowsView<'a>>,
    n_features: usize,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, SparseRow<'_>, &mut Vec<u32>, &mut Vec<f64>) + Sync,
) -> Rows {
    let rows = rows.into();
    let block = block_of(rows.n_rows());
    let parts: Vec<Arrays> = (0..rows.n_rows().div_ceil(block))
        .into_par_iter()
        .map(|b| {
            let mut state = state();
            let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in b * block..((b + 1) * block).min(rows.n_rows()) {
                each(&mut state, rows.row(row), &mut indices, &mut values);
                starts.push(indices.len());
            }
            (starts, indices, values)
        })
        .collect();
    let (starts, indices, values) = concat_rows(parts, 0);
    Rows::from_parts(n_features, starts, indices, values)
        .expect("mapped rows are increasing and finite")
}

/// Matrices below each other as one, with `base` subtracted from the indices; one task per matrix.
pub(super) fn concat_rows(parts: Vec<Arrays>, base: u32) -> Arrays {
    let n_rows: usize = parts.iter().map(|part| part.0.len() - 1).sum();
    let n = parts.iter().map(|part| part.1.len()).sum();
    let mut starts = Vec::with_capacity(n_rows + 1);
    starts.push(0);
    let (mut indices, mut values) = (vec![0; n], vec![0.0; n]);
    let (mut rest_indices, mut rest_values) = (&mut indices[..], &mut values[..]);
    let mut tasks = Vec::with_capacity(parts.len());
    let mut before = 0;
    for (part_starts, from_indices, from_values) in parts {
        starts.extend(part_starts[1..].iter().map(|start| before + start));
        before += from_indices.len();
        let (i, more_indices) = rest_indices.split_at_mut(from_indices.len());
        let (v, more_values) = rest_values.split_at_mut(from_values.len());
        (rest_indices, rest_values) = (more_indices, more_values);
        tasks.push((i, v, from_indices, from_values));
    }
    tasks.into_par_iter().for_each(|(i, v, indices, values)| {
        for (to, from) in i.iter_mut().zip(indices) {
            *to = from - base;
        }
        v.copy_from_slice(&values);
    });
    (starts, indices, values)
}

/// Changes rows in place, so that there is never a second copy of them. `each` gets one row's features and values,
/// and returns how many of them, from the first, are the new row, by increasing feature below `n_features`. State and
/// blocks are as in [`map_rows`].
pub(crate) fn change_rows<S: Send>(
    rows: Rows,
    n_features: usize,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &mut [u32], &mut [f64]) -> usize + Sync,
) -> Rows {
    let n_rows = rows.n_rows();
    let (mut starts, mut indices, mut values) = rows.into_parts();
    let block = block_of(n_rows);
    let mut lengths: Vec<u32> = vec![0; n_rows];
    let (mut rest_indices, mut rest_values) = (&mut indices[..], &mut values[..]);
    let mut parts = Vec::with_capacity(n_rows.div_ceil(block));
    for (b, lengths) in lengths.chunks_mut(block).enumerate() {
        let starts = &starts[b * block..b * block + lengths.len() + 1];
        let n = starts[lengths.len()] - starts[0];
        let (here, after) = rest_indices.split_at_mut(n);
        let (with, beyond) = rest_values.split_at_mut(n);
        (rest_indices, rest_values) = (after, beyond);
        parts.push((starts, lengths, here, with));
    }
    parts
        .into_par_iter()
        .for_each(|(starts, lengths, indices, values)| {
            let mut state = state();
            for (bounds, length) in starts.windows(2).zip(lengths) {
                let range = bounds[0] - starts[0]..bounds[1] - starts[0];
                let (indices, values) = (&mut indices[range.clone()], &mut values[range]);
                *length = each(&mut state, indices, values) as u32;
            }
        });
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
