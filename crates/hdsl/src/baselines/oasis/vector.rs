//! Rows and their differences, sparse or written out, whichever is less work.

use crate::data::SparseRow;

/// A vector of known length, without zeros stored if few are not 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Vector {
    Dense(Vec<f64>),
    Sparse(Vec<u32>, Vec<f64>),
}

impl Vector {
    /// A row of `length` features.
    pub(super) fn of(row: SparseRow<'_>, length: usize) -> Self {
        Self::from_entries(row.iter(), row.nnz(), length)
    }

    /// a - b, of rows of `length` features.
    pub(super) fn difference(a: SparseRow<'_>, b: SparseRow<'_>, length: usize) -> Self {
        let (mut p, mut q) = (0, 0);
        let (i, j) = (a.indices(), b.indices());
        let entries = std::iter::from_fn(|| {
            let (left, right) = (i.get(p).copied(), j.get(q).copied());
            let index = match (left, right) {
                (None, None) => return None,
                (Some(l), Some(r)) => l.min(r),
                (Some(one), None) | (None, Some(one)) => one,
            };
            let mut value = 0.0;
            if left == Some(index) {
                value += a.values()[p];
                p += 1;
            }
            if right == Some(index) {
                value -= b.values()[q];
                q += 1;
            }
            Some((index, value))
        });
        Self::from_entries(entries, a.nnz().max(b.nnz()), length)
    }

    fn from_entries(
        entries: impl Iterator<Item = (u32, f64)>,
        stored: usize,
        length: usize,
    ) -> Self {
        // Looking up a place costs about as much as four neighbors in a row.
        if stored >= length / 4 {
            let mut dense = vec![0.0; length];
            entries.for_each(|(index, value)| dense[index as usize] = value);
            Vector::Dense(dense)
        } else {
            let (indices, values) = entries.filter(|entry| entry.1 != 0.0).unzip();
            Vector::Sparse(indices, values)
        }
    }

    /// How many numbers are stored.
    pub(super) fn stored(&self) -> usize {
        match self {
            Vector::Dense(values) | Vector::Sparse(_, values) => values.len(),
        }
    }

    /// The entries that are not 0, in order.
    pub(super) fn each(&self, mut each: impl FnMut(u32, f64)) {
        match self {
            Vector::Dense(values) => (values.iter().enumerate())
                .filter(|(_, x)| **x != 0.0)
                .for_each(|(index, &x)| each(index as u32, x)),
            Vector::Sparse(indices, values) => {
                indices.iter().zip(values).for_each(|(&i, &x)| each(i, x));
            }
        }
    }

    pub(super) fn squares(&self) -> f64 {
        match self {
            Vector::Dense(values) | Vector::Sparse(_, values) => dot(values, values),
        }
    }

    pub(super) fn dot(&self, other: &Vector) -> f64 {
        match (self, other) {
            (Vector::Dense(dense), vector) | (vector, Vector::Dense(dense)) => {
                vector.dot_dense(dense)
            }
            (Vector::Sparse(i, x), Vector::Sparse(j, y)) => {
                SparseRow::new(i, x).dot(SparseRow::new(j, y))
            }
        }
    }

    pub(super) fn dot_dense(&self, dense: &[f64]) -> f64 {
        match self {
            Vector::Dense(values) => dot(values, dense),
            Vector::Sparse(indices, values) => (indices.iter().zip(values))
                .map(|(&i, x)| x * dense[i as usize])
                .sum(),
        }
    }

    /// into += factor · self.
    pub(super) fn add_to(&self, factor: f64, into: &mut [f64]) {
        match self {
            Vector::Dense(values) => {
                into.iter_mut()
                    .zip(values)
                    .for_each(|(y, x)| *y += factor * x);
            }
            Vector::Sparse(indices, values) => {
                (indices.iter().zip(values)).for_each(|(&i, x)| into[i as usize] += factor * x)
            }
        }
    }
}

/// Eight sums side by side, which the compiler can make vector instructions of.
fn dot(a: &[f64], b: &[f64]) -> f64 {
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
