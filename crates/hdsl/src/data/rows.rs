//! Sparse rows: one row-major matrix type, `u32` columns, `f64` values.

use crate::error::{Error, Result};

/// One sparse row, borrowed: strictly increasing feature numbers and as many values.
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
        assert_eq!(
            indices.len(),
            values.len(),
            "a sparse row has as many values as indices"
        );
        debug_assert!(
            indices.windows(2).all(|w| w[0] < w[1]),
            "indices increase strictly"
        );
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

    /// How many features are stored.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// The stored (feature, value) pairs, by increasing feature.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        self.indices
            .iter()
            .copied()
            .zip(self.values.iter().copied())
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

/// Sparse rows in one block of memory (CSR). Values are finite; indices increase strictly within a row.
///
/// ```
/// use hdsl::Rows;
/// let rows = Rows::from_parts(4, vec![0, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 5.0])?;
/// assert_eq!((rows.n_rows(), rows.n_features(), rows.nnz()), (2, 4, 3));
/// assert_eq!(rows.row(0).get(3), 2.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    n_features: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
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

    /// Takes over the three arrays of a CSR matrix after checking them.
    pub fn from_parts(
        n_features: usize,
        starts: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self> {
        RowsView::new(n_features, &starts, &indices, &values)?;
        Ok(Self {
            n_features,
            starts,
            indices,
            values,
        })
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If a feature lies outside the matrix.
    pub fn push(&mut self, row: SparseRow<'_>) {
        if let Some(&last) = row.indices.last() {
            assert!(
                (last as usize) < self.n_features,
                "feature {last} of {}",
                self.n_features
            );
        }
        self.indices.extend_from_slice(row.indices);
        self.values.extend_from_slice(row.values);
        self.starts.push(self.indices.len());
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many features there are (d in the paper), most of them absent from any row.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// How many values are stored.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// One row.
    pub fn row(&self, row: usize) -> SparseRow<'_> {
        let range = self.starts[row]..self.starts[row + 1];
        SparseRow {
            indices: &self.indices[range.clone()],
            values: &self.values[range],
        }
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SparseRow<'_>> {
        (0..self.n_rows()).map(|r| self.row(r))
    }

    /// Where each row starts in [`Rows::indices`], and the end of the last.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// All feature numbers, row after row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The same rows, borrowed.
    pub fn view(&self) -> RowsView<'_> {
        RowsView {
            n_features: self.n_features,
            starts: &self.starts,
            indices: &self.indices,
            values: &self.values,
        }
    }

    /// A copy of some rows, in the order asked for.
    pub fn select(&self, which: &[u32]) -> Self {
        self.view().select(which)
    }

    /// The three arrays: row starts, features, values.
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
        (self.starts, self.indices, self.values)
    }

    /// Adds other rows behind these. If they have more features, all have them from then on.
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
        (0..others.n_rows()).for_each(|row| self.push(others.row(row)));
    }
}

/// [`Rows`] whose three arrays belong to somebody else, such as a numpy array. What reads raw rows once takes these, so
/// that the rows need not be copied first.
///
/// ```
/// use hdsl::data::{RowsView, Preprocessor, Preprocess};
/// let (starts, columns, values) = ([0, 2, 3], [0, 3, 1], [1.0, 2.0, 5.0]);
/// let rows = RowsView::new(4, &starts, &columns, &values)?;
/// let scaled = Preprocessor::fit(Preprocess::Max, rows).apply(rows);
/// assert_eq!(scaled.values(), [1.0, 1.0, 1.0]);
/// assert!(RowsView::new(3, &starts, &columns, &values).is_err()); // there is no column 3
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowsView<'a> {
    n_features: usize,
    starts: &'a [usize],
    indices: &'a [u32],
    values: &'a [f64],
}

impl<'a> RowsView<'a> {
    /// The three arrays of a CSR matrix, after checking them.
    pub fn new(
        n_features: usize,
        starts: &'a [usize],
        indices: &'a [u32],
        values: &'a [f64],
    ) -> Result<Self> {
        let bad = |reason: String| Err(Error::Data(reason));
        if n_features > u32::MAX as usize {
            return bad(format!(
                "there are {n_features} columns, expected at most 2^32 - 1"
            ));
        }
        if starts.first() != Some(&0)
            || starts.last() != Some(&indices.len())
            || indices.len() != values.len()
        {
            return bad(format!(
                "a matrix with {} row starts, {} indices and {} values does not fit together",
                starts.len(),
                indices.len(),
                values.len()
            ));
        }
        for (row, bounds) in starts.windows(2).enumerate() {
            if bounds[0] > bounds[1] || bounds[1] > indices.len() {
                return bad(format!(
                    "row {row} starts at {} but ends at {}",
                    bounds[0], bounds[1]
                ));
            }
            let columns = &indices[bounds[0]..bounds[1]];
            if let Some(w) = columns.windows(2).find(|w| w[0] >= w[1]) {
                return bad(format!(
                    "row {row} has column {} after column {}, expected increasing columns",
                    w[1], w[0]
                ));
            }
            if let Some(&last) = columns.last().filter(|&&last| last as usize >= n_features) {
                return bad(format!(
                    "row {row} has column {last}, but there are {n_features} columns"
                ));
            }
            if let Some(value) = values[bounds[0]..bounds[1]].iter().find(|v| !v.is_finite()) {
                return bad(format!(
                    "row {row} has the value {value}, expected a finite number"
                ));
            }
        }
        Ok(Self {
            n_features,
            starts,
            indices,
            values,
        })
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many features there are.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// How many values are stored.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// One row.
    pub fn row(&self, row: usize) -> SparseRow<'a> {
        let range = self.starts[row]..self.starts[row + 1];
        SparseRow {
            indices: &self.indices[range.clone()],
            values: &self.values[range],
        }
    }

    /// All feature numbers, row after row.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// All values, row after row.
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// A copy.
    pub fn to_rows(&self) -> Rows {
        Rows {
            n_features: self.n_features,
            starts: self.starts.to_vec(),
            indices: self.indices.to_vec(),
            values: self.values.to_vec(),
        }
    }

    /// A copy of some rows, in the order asked for.
    pub fn select(&self, which: &[u32]) -> Rows {
        let mut out = Rows::new(self.n_features);
        for &row in which {
            out.push(self.row(row as usize));
        }
        out
    }
}

impl<'a> From<&'a Rows> for RowsView<'a> {
    fn from(rows: &'a Rows) -> Self {
        rows.view()
    }
}
