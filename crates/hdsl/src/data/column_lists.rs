//! Rows by column.

use super::rows::Rows;
use crate::error::{Error, Result};
use std::ops::Range;

/// A matrix by columns (CSC): for each column the rows that store a value there, in increasing order.
///
/// Meant for rows whose columns all occur: it stores two numbers per column. A column whose values are all 1, as
/// preprocessing by the maximum makes of most rare ones, shares its values with the other such columns.
#[derive(Clone, Debug)]
pub(crate) struct ColumnLists {
    /// Where the rows and the values of each column start; at the end, where the last column's rows end.
    starts: Vec<[u32; 2]>,
    rows: Vec<u32>,
    /// As many ones as the longest column of ones has, then the values of all other columns.
    values: Vec<f64>,
}

impl ColumnLists {
    /// Sorts the stored values by column. Starts take 32 bits, because they are a large part of the lists: most columns of
    /// wide data have few values.
    pub(crate) fn of(rows: &Rows) -> Result<Self> {
        let mut counts = vec![0u32; rows.n_features()];
        let mut all_ones = vec![true; rows.n_features()];
        for (&column, &value) in rows.indices().iter().zip(rows.values()) {
            counts[column as usize] += 1;
            all_ones[column as usize] &= value == 1.0;
        }
        let of_ones = counts.iter().zip(&all_ones).filter(|(_, ones)| **ones);
        let longest = of_ones.map(|(&count, _)| count).max().unwrap_or(0) as usize;
        if longest + rows.nnz() > u32::MAX as usize {
            let n = rows.nnz();
            return Err(Error::data(format!(
                "the rows have {n} values, expected fewer than 2^32 for training"
            )));
        }
        let mut starts = Vec::with_capacity(rows.n_features() + 1);
        let (mut next_row, mut next_value) = (0, longest as u32);
        for (&count, &ones) in counts.iter().zip(&all_ones) {
            starts.push([next_row, if ones { 0 } else { next_value }]);
            next_row += count;
            next_value += if ones { 0 } else { count };
        }
        starts.push([next_row, next_value]);
        let mut row_numbers = vec![0u32; rows.nnz()];
        let mut values = vec![1.0; next_value as usize];
        // From the last row to the first, each column from its end.
        for number in (0..rows.n_rows()).rev() {
            for (column, value) in rows.row(number).iter() {
                let [row_at, value_at] = starts[column as usize];
                let place = &mut counts[column as usize];
                *place -= 1;
                row_numbers[(row_at + *place) as usize] = number as u32;
                if !all_ones[column as usize] {
                    values[(value_at + *place) as usize] = value;
                }
            }
        }
        Ok(Self {
            starts,
            rows: row_numbers,
            values,
        })
    }

    /// How many columns there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows that store a value in a column, and the values.
    ///
    /// # Panics
    /// If `column` is not below [`ColumnLists::len`].
    #[inline]
    pub(crate) fn column(&self, column: u32) -> (&[u32], &[f64]) {
        let [start, at] = self.starts[column as usize].map(|start| start as usize);
        let rows = &self.rows[start..self.start(column as usize + 1)];
        (rows, &self.values[at..at + rows.len()])
    }

    /// Where the rows of a column start.
    #[inline]
    fn start(&self, column: usize) -> usize {
        self.starts[column][0] as usize
    }

    /// How many values a range of columns holds.
    pub(crate) fn values_in(&self, columns: Range<usize>) -> usize {
        self.start(columns.end) - self.start(columns.start)
    }

    /// Cuts numbers for the first columns into ranges that hold about as many values each, with their first columns.
    pub(crate) fn cut<'a>(
        &self,
        mut by_column: &'a mut [f64],
        n_parts: usize,
    ) -> Vec<(usize, &'a mut [f64])> {
        let total = self.start(by_column.len());
        let (mut parts, mut from) = (Vec::with_capacity(n_parts), 0);
        for part in 1..=n_parts {
            let end = from + by_column.len();
            let share = (part * total / n_parts) as u32;
            let to = match part == n_parts {
                true => end,
                false => (self.starts.partition_point(|start| start[0] < share)).clamp(from, end),
            };
            let (here, rest) = by_column.split_at_mut(to - from);
            parts.push((from, here));
            (by_column, from) = (rest, to);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_hold_what_rows_hold(
            dense in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![0.0, 1.0, 1.0, -2.0]), 5), 0..9),
        ) {
            let mut rows = Rows::new(5);
            for row in &dense {
                let features: Vec<u32> = (0..5).filter(|&j| row[j as usize] != 0.0).collect();
                let values: Vec<f64> = features.iter().map(|&j| row[j as usize]).collect();
                rows.push(super::super::SparseRow::new(&features, &values));
            }
            let lists = ColumnLists::of(&rows).unwrap();
            prop_assert_eq!((lists.len(), lists.values_in(0..5)), (5, rows.nnz()));
            for j in 0..5 {
                let (numbers, values) = lists.column(j as u32);
                let expected: Vec<(u32, f64)> = (0..dense.len())
                    .filter(|&r| dense[r][j] != 0.0)
                    .map(|r| (r as u32, dense[r][j]))
                    .collect();
                let found: Vec<(u32, f64)> = numbers.iter().copied().zip(values.iter().copied()).collect();
                prop_assert_eq!(found, expected);
                prop_assert_eq!(lists.values_in(j..j + 1), numbers.len());
            }
        }
    }
}
