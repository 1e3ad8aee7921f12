//! The learned bilinear similarity.

use super::vector::dot_dense;
use crate::data::{Rows, SparseRow, map_rows};
use crate::error::{Error, Result};
use crate::similarity::Similarity;
use std::borrow::Cow;

/// S(x, x') = xᵀ W x' with a dense matrix W that need not be symmetric. Features beyond its size are ignored.
///
/// Queries are mapped to Wᵀ x and items are left unchanged, so a ranking costs dim² per query.
///
/// ```
/// use hdsl::baselines::OasisModel;
/// use hdsl::{Similarity, SparseRow};
/// let model = OasisModel::from_matrix(2, vec![1.0, 2.0, 0.0, 1.0])?;
/// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[1], &[1.0]));
/// assert_eq!((model.score(a, b), model.score(b, a)), (2.0, 0.0));
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OasisModel {
    pub(super) dim: usize,
    /// Row by row.
    pub(super) values: Vec<f64>,
}

impl OasisModel {
    /// A similarity from W, row by row.
    pub fn from_matrix(dim: usize, values: Vec<f64>) -> Result<Self> {
        if dim.checked_mul(dim) != Some(values.len()) {
            return Err(Error::data(format!(
                "a matrix of {dim} rows has {} values, expected {dim} in each row",
                values.len()
            )));
        }
        if let Some(at) = values.iter().position(|w| !w.is_finite()) {
            return Err(Error::data(format!(
                "the matrix has the value {} in row {}, expected a finite number",
                values[at],
                at / dim
            )));
        }
        Ok(Self { dim, values })
    }

    /// W = I: the dot product.
    pub(super) fn identity(dim: usize) -> Self {
        let mut values = vec![0.0; dim * dim];
        values.iter_mut().step_by(dim + 1).for_each(|w| *w = 1.0);
        Self { dim, values }
    }

    /// The number of features (r in the paper), which is the number of rows of W.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// W, row by row.
    pub fn matrix(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.dim..][..self.dim]
    }

    /// The part of a row that W has rows for.
    fn known<'a>(&self, row: SparseRow<'a>) -> SparseRow<'a> {
        let end = row.indices().partition_point(|&i| (i as usize) < self.dim);
        SparseRow::new(&row.indices()[..end], &row.values()[..end])
    }
}

impl Similarity for OasisModel {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        let b = self.known(b);
        let product = |(i, x)| x * dot_dense(b, self.row(i as usize));
        self.known(a).iter().map(product).sum()
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        let mapped = map_rows(
            rows,
            self.dim,
            || vec![0.0; self.dim],
            |sums, row, indices, values| {
                sums.fill(0.0);
                for (i, x) in self.known(row).iter() {
                    let row = self.row(i as usize);
                    sums.iter_mut().zip(row).for_each(|(z, w)| *z += x * w);
                }
                for (j, &z) in sums.iter().enumerate().filter(|(_, z)| **z != 0.0) {
                    indices.push(j as u32);
                    // A sum that overflows becomes the largest number; infinities of both signs cancel.
                    let clamped = z.clamp(f64::MIN, f64::MAX);
                    values.push(if z.is_nan() { 0.0 } else { clamped });
                }
            },
        );
        Cow::Owned(mapped)
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        if rows.n_features() == self.dim {
            return Cow::Borrowed(rows);
        }
        let mut known = Rows::new(self.dim);
        rows.iter().for_each(|row| known.push(self.known(row)));
        Cow::Owned(known)
    }
}
