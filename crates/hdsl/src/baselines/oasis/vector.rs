//! Dot products and sums of rows that may be sparse or dense. A row that stores every feature is used as a slice.

use crate::data::SparseRow;

/// a - b, with an entry for every feature that either row stores.
pub(super) fn difference(a: SparseRow<'_>, b: SparseRow<'_>) -> (Vec<u32>, Vec<f64>) {
    let mut entries: Vec<(u32, f64)> = a.iter().chain(b.iter().map(|(j, y)| (j, -y))).collect();
    entries.sort_by_key(|entry| entry.0);
    entries.dedup_by(|second, first| {
        let same = first.0 == second.0;
        first.1 += if same { second.1 } else { 0.0 };
        same
    });
    entries.into_iter().unzip()
}

/// a · b, of rows of `dim` features.
pub(super) fn dot(a: SparseRow<'_>, b: SparseRow<'_>, dim: usize) -> f64 {
    match (a.nnz() == dim, b.nnz() == dim) {
        (true, _) => dot_dense(b, a.values()),
        (_, true) => dot_dense(a, b.values()),
        _ => a.dot(b),
    }
}

/// The dot product with a dense vector.
pub(super) fn dot_dense(row: SparseRow<'_>, dense: &[f64]) -> f64 {
    match row.nnz() == dense.len() {
        true => dot_slices(row.values(), dense),
        false => row.iter().map(|(i, x)| x * dense[i as usize]).sum(),
    }
}

/// into += factor · row.
pub(super) fn add_to(row: SparseRow<'_>, factor: f64, into: &mut [f64]) {
    if row.nnz() == into.len() {
        (into.iter_mut().zip(row.values())).for_each(|(y, x)| *y += factor * x);
    } else {
        row.iter().for_each(|(i, x)| into[i as usize] += factor * x);
    }
}

/// Eight sums side by side, which compile to vector instructions.
fn dot_slices(a: &[f64], b: &[f64]) -> f64 {
    const WIDTH: usize = 8;
    let (a_parts, b_parts) = (a.chunks_exact(WIDTH), b.chunks_exact(WIDTH));
    let rest: f64 = (a_parts.remainder().iter().zip(b_parts.remainder()))
        .map(|(x, y)| x * y)
        .sum();
    let mut sums = [0.0; WIDTH];
    for (x, y) in a_parts.zip(b_parts) {
        for lane in 0..WIDTH {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}
