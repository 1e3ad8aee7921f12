//! A query in the forms that the searches need.
//!
//! Both searches exclude rows by scores or bounds in single precision, and then compute the remaining scores in double
//! precision. A slack accounts for the rounding errors of single precision.

use crate::data::{Rows, SparseRow};

/// A query without the features that occur in no row.
#[derive(Default)]
pub(super) struct Query {
    /// Columns and values.
    pub(super) columns: Vec<(u32, f64)>,
    /// The columns with non-negative values, in single precision.
    pub(super) non_negative: Vec<(u32, f32)>,
    /// The columns with negative values, in single precision.
    pub(super) negative: Vec<(u32, f32)>,
    /// The query as a dense vector.
    dense: Vec<f64>,
}

impl Query {
    /// Replaces the query by another one.
    pub(super) fn set(&mut self, columns: impl Iterator<Item = (u32, f64)>, n_columns: usize) {
        for (column, _) in self.columns.drain(..) {
            self.dense[column as usize] = 0.0;
        }
        self.non_negative.clear();
        self.negative.clear();
        self.dense.resize(n_columns, 0.0);
        for (column, x) in columns {
            let side = match x < 0.0 {
                true => &mut self.negative,
                false => &mut self.non_negative,
            };
            side.push((column, x as f32));
            self.columns.push((column, x));
            self.dense[column as usize] = x;
        }
    }

    /// The score of a row, bitwise equal to [`SparseRow::dot`]. Columns that are not in the query add ±0, which leaves
    /// the sum unchanged because it is never -0.
    pub(super) fn dot(&self, row: SparseRow<'_>) -> f64 {
        self.add_dot(0.0, row.iter())
    }

    /// The sum plus the products with these columns, added one by one.
    pub(super) fn add_dot(&self, sum: f64, row: impl Iterator<Item = (u32, f64)>) -> f64 {
        row.map(|(column, y)| self.dense[column as usize] * y)
            .fold(sum, |sum, term| sum + term)
    }
}

/// The largest absolute value in each column.
pub(super) struct ColumnMaxima(Vec<f64>);

impl ColumnMaxima {
    pub(super) fn of(rows: &Rows) -> Self {
        Self::scaled(rows, |_| 1.0)
    }

    /// Those of rows that are multiplied by a factor each.
    pub(super) fn scaled(rows: &Rows, factor: impl Fn(usize) -> f64) -> Self {
        let mut largest = vec![0.0f64; rows.n_features()];
        for (number, row) in rows.iter().enumerate() {
            let factor = factor(number);
            for (column, value) in row.iter() {
                let largest = &mut largest[column as usize];
                *largest = largest.max(factor * value.abs());
            }
        }
        Self(largest)
    }

    /// That of one column.
    pub(super) fn of_column(&self, column: u32) -> f64 {
        self.0[column as usize]
    }

    /// An upper bound of the difference between a score in double precision and the same sum in single precision, added in
    /// any order; `None` if single precision does not have the range.
    pub(super) fn slack(&self, query: &Query) -> Option<f64> {
        let columns = query.columns.iter();
        slack(columns.map(|&(column, x)| (x, self.of_column(column))))
    }
}

/// [`ColumnMaxima::slack`], given the query's value and the largest absolute value of each column.
pub(super) fn slack(columns: impl ExactSizeIterator<Item = (f64, f64)>) -> Option<f64> {
    let n_terms = columns.len() as f64;
    let (mut largest_score, mut square, mut largest_value) = (0.0, 0.0, 0.0f64);
    for (x, largest) in columns {
        largest_score += x.abs() * largest;
        square += x * x;
        largest_value = largest_value.max(largest);
    }
    if largest_score == 0.0 {
        return Some(0.0);
    }
    // A term is rounded three times: the query's value, the row's value and their product. Each addition rounds
    // once more. The absolute value of every partial sum, and the sum of the absolute values of all terms, is at
    // most `largest_score`, so the errors add up to at most (n + 3) 2^-24 times that for n terms. The slack is more
    // than twice as large, and so also covers the far smaller rounding errors of the scores in double precision.
    let slack = (n_terms + 16.0) * largest_score * f64::from(f32::EPSILON) + 1e-37;
    let in_range = (1e-20..1e15).contains(&largest_score) && square < 1e30;
    (in_range && largest_value < 1e15).then_some(slack)
}

/// The largest single-precision number that is not above `value`.
pub(super) fn round_down(value: f64) -> f32 {
    let rounded = value as f32;
    match f64::from(rounded) <= value {
        true => rounded,
        false => rounded.next_down(),
    }
}
