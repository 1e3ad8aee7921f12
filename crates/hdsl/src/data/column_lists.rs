//! Rows by column.

use super::rows::Rows;
use std::ops::Range;

/// A matrix by columns (CSC): for each column the rows that store a value there, in increasing order.
///
/// Meant for rows whose columns all occur: it stores two numbers per column. A column whose values are all 1, as
/// preprocessing by the maximum makes of most rare ones, shares its values with the other such columns.
#[derive(Clone, Debug)]
pub(crate) struct ColumnLists {
    /// Where the rows and the values of each column start; at the end, where the last column's rows end.
    starts: Starts,
    rows: Vec<u32>,
    /// As many ones as the longest column of ones has, then the values of all other columns.
    values: Vec<f64>,
}

impl ColumnLists {
    /// Sorts the stored values by column.
    pub(crate) fn of(rows: &Rows) -> Self {
        let mut counts = vec![0u32; rows.n_features()];
        let mut all_ones = vec![true; rows.n_features()];
        for (&column, &value) in rows.indices().iter().zip(rows.values()) {
            counts[column as usize] += 1;
            all_ones[column as usize] &= value == 1.0;
        }
        let of_ones = counts.iter().zip(&all_ones).filter(|(_, ones)| **ones);
        let longest = of_ones.map(|(&count, _)| count).max().unwrap_or(0) as usize;
        let mut starts = Starts::new(longest + rows.nnz(), rows.n_features() + 1);
        let (mut next_row, mut next_value) = (0, longest);
        for (&count, &ones) in counts.iter().zip(&all_ones) {
            starts.push([next_row, if ones { 0 } else { next_value }]);
            next_row += count as usize;
            next_value += if ones { 0 } else { count as usize };
        }
        starts.push([next_row, next_value]);
        let mut row_numbers = vec![0u32; rows.nnz()];
        let mut values = vec![1.0; next_value];
        // From the last row to the first, each column from its end.
        for number in (0..rows.n_rows()).rev() {
            for (column, value) in rows.row(number).iter() {
                let [row_at, value_at] = starts.get(column as usize);
                let place = &mut counts[column as usize];
                *place -= 1;
                row_numbers[row_at + *place as usize] = number as u32;
                if !all_ones[column as usize] {
                    values[value_at + *place as usize] = value;
                }
            }
        }
        Self {
            starts,
            rows: row_numbers,
            values,
        }
    }

    /// How many columns there are.
    pub(crate) fn len(&self) -> usize {
        match &self.starts {
            Starts::Short(starts) => starts.len() - 1,
            Starts::Long(starts) => starts.len() - 1,
        }
    }

    /// The rows that store a value in a column, and the values.
    ///
    /// # Panics
    /// If `column` is not below [`ColumnLists::len`].
    #[inline]
    pub(crate) fn column(&self, column: u32) -> (&[u32], &[f64]) {
        let [start, at] = self.starts.get(column as usize);
        let rows = &self.rows[start..self.starts.get(column as usize + 1)[0]];
        (rows, &self.values[at..at + rows.len()])
    }

    /// How many values a range of columns holds.
    pub(crate) fn values_in(&self, columns: Range<usize>) -> usize {
        self.starts.get(columns.end)[0] - self.starts.get(columns.start)[0]
    }

    /// Cuts numbers for the first columns into ranges that hold about as many values each, with their first columns.
    pub(crate) fn cut<'a>(
        &self,
        mut by_column: &'a mut [f64],
        n_parts: usize,
    ) -> Vec<(usize, &'a mut [f64])> {
        let [total, _] = self.starts.get(by_column.len());
        let (mut parts, mut from) = (Vec::with_capacity(n_parts), 0);
        for part in 1..=n_parts {
            let end = from + by_column.len();
            let share = part * total / n_parts;
            let to = match part == n_parts {
                true => end,
                false => self.starts.first_from(share).clamp(from, end),
            };
            let (here, rest) = by_column.split_at_mut(to - from);
            parts.push((from, here));
            (by_column, from) = (rest, to);
        }
        parts
    }
}

/// Starts in two arrays, in 32 bits where those suffice: most columns of wide data have few values, so that starts are
/// a large part of the lists.
#[derive(Clone, Debug)]
enum Starts {
    Short(Vec<[u32; 2]>),
    Long(Vec<[usize; 2]>),
}

impl Starts {
    fn new(largest: usize, capacity: usize) -> Self {
        match u32::try_from(largest) {
            Ok(_) => Self::Short(Vec::with_capacity(capacity)),
            Err(_) => Self::Long(Vec::with_capacity(capacity)),
        }
    }

    fn push(&mut self, both: [usize; 2]) {
        match self {
            Self::Short(starts) => starts.push(both.map(|start| start as u32)),
            Self::Long(starts) => starts.push(both),
        }
    }

    #[inline]
    fn get(&self, column: usize) -> [usize; 2] {
        match self {
            Self::Short(starts) => starts[column].map(|start| start as usize),
            Self::Long(starts) => starts[column],
        }
    }

    /// The first column whose rows start at `place` or later.
    fn first_from(&self, place: usize) -> usize {
        match self {
            Self::Short(starts) => starts.partition_point(|start| (start[0] as usize) < place),
            Self::Long(starts) => starts.partition_point(|start| start[0] < place),
        }
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
            let lists = ColumnLists::of(&rows);
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
