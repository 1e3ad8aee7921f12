//! The learned bilinear form.

use super::matrix::Matrix;
use crate::data::{Rows, SparseRow, map_rows};
use crate::error::{Error, Result};
use crate::similarity::Similarity;
use std::borrow::Cow;

/// S(x, x') = xᵀ W x', W a dense matrix that need not be symmetric. Features beyond its size are ignored.
///
/// Queries are mapped to Wᵀ x and items stay as they are, so a ranking costs dim² for each query.
///
/// ```
/// use hdsl::baselines::OasisModel;
/// use hdsl::SparseRow;
/// let model = OasisModel::from_matrix(2, vec![1.0, 2.0, 0.0, 1.0])?;
/// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[1], &[1.0]));
/// assert_eq!((model.score(a, b), model.score(b, a)), (2.0, 0.0));
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OasisModel {
    matrix: Matrix,
}

impl OasisModel {
    /// A similarity from W, row after row.
    pub fn from_matrix(dim: usize, values: Vec<f64>) -> Result<Self> {
        if dim.checked_mul(dim) != Some(values.len()) {
            return Err(Error::data(format!(
                "a matrix of {dim} rows has {} values, expected {dim} in each row",
                values.len()
            )));
        }
        Self::new(Matrix::from_values(dim, values))
    }

    pub(super) fn new(matrix: Matrix) -> Result<Self> {
        if let Some(at) = matrix.values().iter().position(|w| !w.is_finite()) {
            return Err(Error::data(format!(
                "the matrix has the value {} in row {}, expected a finite number",
                matrix.values()[at],
                at / matrix.dim()
            )));
        }
        Ok(Self { matrix })
    }

    /// How many features rows have (r in the paper), and W has rows.
    pub fn dim(&self) -> usize {
        self.matrix.dim()
    }

    /// W, row after row.
    pub fn matrix(&self) -> &[f64] {
        self.matrix.values()
    }

    /// S(a, b).
    pub fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        let (a, b) = (self.known(a), self.known(b));
        a.iter()
            .map(|(i, x)| {
                let row = self.matrix.row(i as usize);
                let inner: f64 = b.iter().map(|(j, y)| row[j as usize] * y).sum();
                x * inner
            })
            .sum()
    }

    /// The features below the size of W.
    fn known<'a>(&self, row: SparseRow<'a>) -> SparseRow<'a> {
        let end = row
            .indices()
            .partition_point(|&i| (i as usize) < self.dim());
        SparseRow::new(&row.indices()[..end], &row.values()[..end])
    }
}

impl Similarity for OasisModel {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        OasisModel::score(self, a, b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        let (mapped, _) = map_rows(
            rows,
            self.dim(),
            || vec![0.0; self.dim()],
            |sums, row, indices, values| {
                sums.fill(0.0);
                for (i, x) in self.known(row).iter() {
                    let row = self.matrix.row(i as usize);
                    sums.iter_mut().zip(row).for_each(|(z, w)| *z += x * w);
                }
                for (j, &z) in sums.iter().enumerate().filter(|(_, z)| **z != 0.0) {
                    indices.push(j as u32);
                    // Too large for a number becomes the largest number; infinities of both signs cancel.
                    values.push(if z.is_nan() {
                        0.0
                    } else {
                        z.clamp(f64::MIN, f64::MAX)
                    });
                }
            },
        );
        Cow::Owned(mapped)
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        if rows.n_features() == self.dim() {
            return Cow::Borrowed(rows);
        }
        let mut known = Rows::new(self.dim());
        rows.iter().for_each(|row| known.push(self.known(row)));
        Cow::Owned(known)
    }
}
