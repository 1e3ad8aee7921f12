//! Rows turned on their side.

use super::rows::Rows;
use std::ops::Range;

/// Rows turned on their side (CSC): for each column the rows that store a value there, in increasing order.
///
/// Meant for rows with few columns, such as those of [`Columns::compact`](super::Columns::compact): it keeps two numbers
/// a column. Values that are 1 throughout a column, as preprocessing by the maximum makes of most rare ones, are not kept.
///
/// ```
/// use hdsl::{Rows, data::ColumnLists};
/// let rows = Rows::from_parts(2, vec![0, 1, 3], vec![1, 0, 1], vec![5.0, 6.0, 7.0])?;
/// let lists = ColumnLists::of(&rows);
/// assert_eq!(lists.column(1), (&[0, 1][..], &[5.0, 7.0][..]));
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ColumnLists {
    /// Where the rows and the values of each column start; at the end, where the last column's rows end.
    starts: Starts,
    rows: Vec<u32>,
    /// As many ones as the longest column of ones has, then the values of all other columns.
    values: Vec<f64>,
}

impl ColumnLists {
    /// Sorts the stored values by column.
    pub fn of(rows: &Rows) -> Self {
        let n_columns = rows.n_features();
        let mut counts = vec![0u32; n_columns];
        let mut all_ones = vec![true; n_columns];
        for (&column, &value) in rows.indices().iter().zip(rows.values()) {
            counts[column as usize] += 1;
            all_ones[column as usize] &= value == 1.0;
        }
        let of_ones = counts.iter().zip(&all_ones).filter(|(_, ones)| **ones);
        let longest = of_ones.map(|(&count, _)| count).max().unwrap_or(0) as usize;
        let mut starts = Starts::with_capacity(longest + rows.nnz(), n_columns + 1);
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
                let column = column as usize;
                let [row, at] = starts.get(column);
                counts[column] -= 1;
                row_numbers[row + counts[column] as usize] = number as u32;
                if !all_ones[column] {
                    values[at + counts[column] as usize] = value;
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
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values are stored in the rows.
    pub fn nnz(&self) -> usize {
        self.rows.len()
    }

    /// The rows that store a value in a column, and the values.
    ///
    /// # Panics
    /// If `column` is not below [`ColumnLists::len`].
    #[inline]
    pub fn column(&self, column: u32) -> (&[u32], &[f64]) {
        let ([start, at], end) = self.starts.around(column as usize);
        let rows = &self.rows[start..end];
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
            let to = match part == n_parts {
                true => end,
                false => self
                    .starts
                    .first_from(part * total / n_parts)
                    .clamp(from, end),
            };
            let (here, rest) = std::mem::take(&mut by_column).split_at_mut(to - from);
            parts.push((from, here));
            (by_column, from) = (rest, to);
        }
        parts
    }
}

/// Places in two long arrays, in as few bytes as they need.
#[derive(Clone, Debug)]
enum Starts {
    Short(Vec<[u32; 2]>),
    Long(Vec<[usize; 2]>),
}

impl Starts {
    /// No places yet, up to `most` each, with room for so many.
    fn with_capacity(most: usize, room: usize) -> Self {
        match u32::try_from(most) {
            Ok(_) => Self::Short(Vec::with_capacity(room)),
            Err(_) => Self::Long(Vec::with_capacity(room)),
        }
    }

    fn push(&mut self, places: [usize; 2]) {
        match self {
            Self::Short(all) => all.push(places.map(|place| place as u32)),
            Self::Long(all) => all.push(places),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Short(all) => all.len(),
            Self::Long(all) => all.len(),
        }
    }

    #[inline]
    fn get(&self, number: usize) -> [usize; 2] {
        match self {
            Self::Short(all) => all[number].map(|place| place as usize),
            Self::Long(all) => all[number],
        }
    }

    /// Both places of a number, and the first of the next.
    #[inline]
    fn around(&self, number: usize) -> ([usize; 2], usize) {
        match self {
            Self::Short(all) => {
                let two = &all[number..number + 2];
                (two[0].map(|place| place as usize), two[1][0] as usize)
            }
            Self::Long(all) => (all[number], all[number + 1][0]),
        }
    }

    /// The first number whose first place is not below `place`; first places never fall.
    fn first_from(&self, place: usize) -> usize {
        match self {
            Self::Short(all) => all.partition_point(|p| (p[0] as usize) < place),
            Self::Long(all) => all.partition_point(|p| p[0] < place),
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
            prop_assert_eq!((lists.len(), lists.nnz()), (5, rows.nnz()));
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

    #[test]
    fn long_places_are_told_apart_from_short_ones() {
        let far = u32::MAX as usize + 7;
        for (most, short) in [(far, false), (9, true)] {
            let mut starts = Starts::with_capacity(most, 2);
            starts.push([3, 0]);
            starts.push([most, most - 1]);
            assert_eq!(matches!(starts, Starts::Short(_)), short);
            assert_eq!((starts.len(), starts.get(1)), (2, [most, most - 1]));
            assert_eq!(
                (starts.around(0), starts.first_from(4)),
                (([3, 0], most), 1)
            );
        }
    }
}
