//! Sparse rows: one row-major matrix type, `u32` columns, `f64` values.

use crate::error::{Error, Result};
use std::ops::Range;

/// One sparse row, borrowed: strictly increasing feature numbers and their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseRow<'a> {
    indices: &'a [u32],
    values: &'a [f64],
}

impl<'a> SparseRow<'a> {
    /// Wraps two slices of equal length; the indices must increase strictly.
    ///
    /// # Panics
    /// If the lengths differ. The order is checked in debug builds only.
    pub fn new(indices: &'a [u32], values: &'a [f64]) -> Self {
        assert_eq!(indices.len(), values.len(), "one value per index");
        debug_assert!(indices.is_sorted_by(|a, b| a < b), "indices increase");
        Self { indices, values }
    }

    /// The features that are stored, in increasing order.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// Their values, in the same order.
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// The number of stored features.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// The stored (feature, value) pairs, by increasing feature.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        let values = self.values.iter().copied();
        self.indices.iter().copied().zip(values)
    }

    /// The value of one feature, 0 if it is not stored.
    pub fn get(&self, feature: u32) -> f64 {
        self.indices
            .binary_search(&feature)
            .map_or(0.0, |at| self.values[at])
    }

    /// The dot product with another row, summed by increasing feature.
    pub fn dot(&self, other: SparseRow<'_>) -> f64 {
        let (mut p, mut q, mut sum) = (0, 0, 0.0);
        while p < self.indices.len() && q < other.indices.len() {
            let (i, j) = (self.indices[p], other.indices[q]);
            if i == j {
                sum += self.values[p] * other.values[q];
            }
            p += usize::from(i <= j);
            q += usize::from(j <= i);
        }
        sum
    }

    /// The Euclidean length.
    pub fn norm(&self) -> f64 {
        self.values.iter().map(|v| v * v).sum::<f64>().sqrt()
    }
}

/// Sparse rows in one block of memory (CSR): [`Rows`] that own their arrays, or a [`RowsView`] that borrows them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CsrRows<Starts, Indices, Values> {
    pub(super) n_features: usize,
    pub(super) starts: Starts,
    pub(super) indices: Indices,
    pub(super) values: Values,
}

/// Sparse rows. Values are finite; indices increase strictly within a row.
///
/// ```
/// use hdsl::Rows;
/// let rows = Rows::from_parts(4, vec![0, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 5.0])?;
/// assert_eq!((rows.n_rows(), rows.n_features(), rows.nnz()), (2, 4, 3));
/// assert_eq!(rows.row(0).get(3), 2.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub type Rows = CsrRows<Vec<usize>, Vec<u32>, Vec<f64>>;

/// [`Rows`] whose three arrays are borrowed, for example from numpy. Functions that read raw rows once accept a view, so
/// that the rows need not be copied first.
///
/// ```
/// use hdsl::data::{RowsView, Preprocessor, Preprocess};
/// let (starts, columns, values) = ([0, 2, 3], [0, 3, 1], [1.0, 2.0, 5.0]);
/// let rows = RowsView::from_parts(4, &starts, &columns, &values)?;
/// let scaled = Preprocessor::fit(Preprocess::Max, rows).apply(rows);
/// assert_eq!(scaled.values(), [1.0, 1.0, 1.0]);
/// assert!(RowsView::from_parts(3, &starts, &columns, &values).is_err()); // there is no column 3
/// # Ok::<(), hdsl::Error>(())
/// ```
pub type RowsView<'a> = CsrRows<&'a [usize], &'a [u32], &'a [f64]>;

impl<S: AsRef<[usize]>, I: AsRef<[u32]>, V> CsrRows<S, I, V> {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts().len() - 1
    }

    /// The number of features (d in the paper), most of them absent from any row.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The number of stored values.
    pub fn nnz(&self) -> usize {
        self.indices().len()
    }

    /// Where each row starts in [`CsrRows::indices`], and the end of the last.
    pub fn starts(&self) -> &[usize] {
        self.starts.as_ref()
    }

    /// All feature numbers, row after row.
    pub fn indices(&self) -> &[u32] {
        self.indices.as_ref()
    }

    /// Where the values of a row are among all values.
    #[inline]
    pub(crate) fn range(&self, row: usize) -> Range<usize> {
        self.starts()[row]..self.starts()[row + 1]
    }
}

impl<S: AsRef<[usize]>, I: AsRef<[u32]>, V: AsRef<[f64]>> CsrRows<S, I, V> {
    /// Takes the three arrays of a CSR matrix after checking them.
    pub fn from_parts(n_features: usize, starts: S, indices: I, values: V) -> Result<Self> {
        let rows = Self {
            n_features,
            starts,
            indices,
            values,
        };
        check(n_features, rows.starts(), rows.indices(), rows.values()).map_err(Error::Data)?;
        Ok(rows)
    }

    /// One row.
    #[inline]
    pub fn row(&self, row: usize) -> SparseRow<'_> {
        let range = self.range(row);
        SparseRow {
            indices: &self.indices()[range.clone()],
            values: &self.values()[range],
        }
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SparseRow<'_>> {
        (0..self.n_rows()).map(|row| self.row(row))
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f64] {
        self.values.as_ref()
    }

    /// The same rows, borrowed.
    pub fn view(&self) -> RowsView<'_> {
        CsrRows {
            n_features: self.n_features,
            starts: self.starts(),
            indices: self.indices(),
            values: self.values(),
        }
    }

    /// A copy that owns its arrays.
    pub fn to_rows(&self) -> Rows {
        CsrRows {
            n_features: self.n_features,
            starts: self.starts().to_vec(),
            indices: self.indices().to_vec(),
            values: self.values().to_vec(),
        }
    }

    /// A copy of some rows, in the given order.
    pub fn select(&self, which: &[u32]) -> Rows {
        let nnz = which
            .iter()
            .map(|&row| self.range(row as usize).len())
            .sum();
        let mut rows = Rows {
            n_features: self.n_features,
            starts: Vec::with_capacity(which.len() + 1),
            indices: Vec::with_capacity(nnz),
            values: Vec::with_capacity(nnz),
        };
        rows.starts.push(0);
        for &row in which {
            rows.push(self.row(row as usize));
        }
        rows
    }
}

impl Rows {
    /// No rows yet; add them with [`Rows::push`].
    pub fn new(n_features: usize) -> Self {
        Self {
            n_features,
            starts: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If a feature lies outside the matrix.
    pub fn push(&mut self, row: SparseRow<'_>) {
        if let Some(&last) = row.indices.last() {
            let n_features = self.n_features;
            assert!(
                (last as usize) < n_features,
                "feature {last} of {n_features}"
            );
        }
        self.indices.extend_from_slice(row.indices);
        self.values.extend_from_slice(row.values);
        self.starts.push(self.indices.len());
    }

    /// Appends other rows. If they have more features, all rows have them from then on.
    ///
    /// ```
    /// use hdsl::Rows;
    /// let mut rows = Rows::from_parts(1, vec![0, 1], vec![0], vec![2.0])?;
    /// rows.append(Rows::from_parts(4, vec![0, 1], vec![3], vec![5.0])?.view());
    /// assert_eq!(rows, Rows::from_parts(4, vec![0, 1, 2], vec![0, 3], vec![2.0, 5.0])?);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn append(&mut self, others: RowsView<'_>) {
        self.n_features = self.n_features.max(others.n_features());
        others.iter().for_each(|row| self.push(row));
    }

    /// The three arrays: row starts, features, values.
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
        (self.starts, self.indices, self.values)
    }
}

impl<'a> From<&'a Rows> for RowsView<'a> {
    fn from(rows: &'a Rows) -> Self {
        rows.view()
    }
}

/// The largest absolute value that files may contain and that may be learned from as it is. Margins contain the square of a
/// value times λ, and the line search the square of a margin: with larger values, sums of those would overflow.
pub(crate) const LARGEST: f64 = 1e50;

/// What is wrong with the arrays of a CSR matrix.
fn check(
    n_features: usize,
    starts: &[usize],
    indices: &[u32],
    values: &[f64],
) -> std::result::Result<(), String> {
    let n_rows = starts.len().saturating_sub(1);
    if n_rows.max(n_features) > u32::MAX as usize {
        return Err(format!(
            "there are {n_rows} rows and {n_features} columns, expected at most 2^32 - 1 of each"
        ));
    }
    let n = indices.len();
    if starts.first() != Some(&0) || starts.last() != Some(&n) || n != values.len() {
        return Err(format!(
            "a matrix with {} row starts, {n} indices and {} values does not fit together",
            starts.len(),
            values.len()
        ));
    }
    for (row, bounds) in starts.windows(2).enumerate() {
        let (start, end) = (bounds[0], bounds[1]);
        if start > end || end > n {
            return Err(format!("row {row} starts at {start} but ends at {end}"));
        }
        let columns = &indices[start..end];
        if let Some(w) = columns.windows(2).find(|w| w[0] >= w[1]) {
            let (before, after) = (w[0], w[1]);
            return Err(format!(
                "row {row} has column {after} after column {before}, expected increasing columns"
            ));
        }
        if let Some(&last) = columns.last().filter(|&&last| last as usize >= n_features) {
            return Err(format!(
                "row {row} has column {last}, but there are {n_features} columns"
            ));
        }
        if let Some(value) = values[start..end].iter().find(|v| !v.is_finite()) {
            return Err(format!(
                "row {row} has the value {value}, expected a finite number"
            ));
        }
    }
    Ok(())
}
