//! Row-by-row work in parallel, the same bytes for any number of threads.

use super::rows::{Rows, RowsView, SparseRow};
use rayon::prelude::*;

/// Makes a new matrix row by row. `each` appends one row's (feature, value) pairs, by increasing feature, to the
/// two lists; `state` is made once per block of rows, for scratch space and counts. The blocks' states come back
/// in order. Blocks depend on the number of rows alone, so the outcome does not depend on the threads.
pub(crate) fn map_rows<'a, S: Send>(
    rows: impl Into<RowsView<'a>>,
    n_features: usize,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, SparseRow<'_>, &mut Vec<u32>, &mut Vec<f64>) + Sync,
) -> (Rows, Vec<S>) {
    let rows = rows.into();
    let block = rows.n_rows().div_ceil(64).clamp(32, 4096);
    let n_blocks = rows.n_rows().div_ceil(block);
    let parts: Vec<_> = (0..n_blocks)
        .into_par_iter()
        .map(|b| {
            let mut state = state();
            let (mut lengths, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for row in b * block..((b + 1) * block).min(rows.n_rows()) {
                let before = indices.len();
                each(&mut state, rows.row(row), &mut indices, &mut values);
                lengths.push(indices.len() - before);
            }
            (state, lengths, indices, values)
        })
        .collect();
    let nnz = parts.iter().map(|p| p.2.len()).sum();
    let mut starts = Vec::with_capacity(rows.n_rows() + 1);
    let mut indices = Vec::with_capacity(nnz);
    let mut values = Vec::with_capacity(nnz);
    let mut states = Vec::with_capacity(n_blocks);
    let mut end = 0;
    starts.push(0);
    for (state, lengths, part_indices, part_values) in parts {
        for length in lengths {
            end += length;
            starts.push(end);
        }
        indices.extend_from_slice(&part_indices);
        values.extend_from_slice(&part_values);
        states.push(state);
    }
    let mapped = Rows::from_parts(n_features, starts, indices, values)
        .expect("mapped rows are increasing and finite");
    (mapped, states)
}
