//! Rows turned on their side.

use super::rows::Rows;
use std::ops::Range;

/// Rows turned on their side (CSC): for each column the rows that store a value there, in increasing order.
///
/// Meant for rows with few columns, such as those of [`Columns::compact`](super::Columns::compact): it keeps two numbers
/// a column. Values that are 1 throughout a column, as scaling by the maximum makes of most rare ones, are not kept.
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
    starts: Places,
    rows: Vec<u32>,
    /// Where the values of each column start.
    at: Places,
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
        let starts = Places::of(rows.nnz(), &counts);
        let mut next = longest;
        let mut at = Places::with_capacity(longest + rows.nnz(), n_columns);
        for (&count, &ones) in counts.iter().zip(&all_ones) {
            at.push(if ones { 0 } else { next });
            next += if ones { 0 } else { count as usize };
        }
        let mut row_numbers = vec![0u32; rows.nnz()];
        let mut values = vec![1.0; next];
        // From the last row to the first, each column from its end.
        for number in (0..rows.n_rows()).rev() {
            for (column, value) in rows.row(number).iter() {
                let column = column as usize;
                counts[column] -= 1;
                row_numbers[starts.get(column) + counts[column] as usize] = number as u32;
                if !all_ones[column] {
                    values[at.get(column) + counts[column] as usize] = value;
                }
            }
        }
        Self {
            starts,
            rows: row_numbers,
            at,
            values,
        }
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.at.len()
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
        let column = column as usize;
        let rows = &self.rows[self.starts.get(column)..self.starts.get(column + 1)];
        let at = self.at.get(column);
        (rows, &self.values[at..at + rows.len()])
    }

    /// How many values a range of columns holds.
    pub(crate) fn values_in(&self, columns: Range<usize>) -> usize {
        self.starts.get(columns.end) - self.starts.get(columns.start)
    }

    /// Cuts numbers for the first columns into ranges that hold about as many values each, with their first columns.
    pub(crate) fn cut<'a>(
        &self,
        mut by_column: &'a mut [f64],
        n_parts: usize,
    ) -> Vec<(usize, &'a mut [f64])> {
        let total = self.starts.get(by_column.len());
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

/// Places in a long array, in as few bytes as they need.
#[derive(Clone, Debug)]
enum Places {
    Short(Vec<u32>),
    Long(Vec<usize>),
}

impl Places {
    /// No places yet, up to `most` each, with room for so many.
    fn with_capacity(most: usize, room: usize) -> Self {
        match u32::try_from(most) {
            Ok(_) => Self::Short(Vec::with_capacity(room)),
            Err(_) => Self::Long(Vec::with_capacity(room)),
        }
    }

    /// Where parts of these lengths start, and the end of the last.
    fn of(total: usize, lengths: &[u32]) -> Self {
        let mut places = Self::with_capacity(total, lengths.len() + 1);
        let mut next = 0;
        places.push(next);
        for &length in lengths {
            next += length as usize;
            places.push(next);
        }
        places
    }

    fn push(&mut self, place: usize) {
        match self {
            Self::Short(places) => places.push(place as u32),
            Self::Long(places) => places.push(place),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Short(places) => places.len(),
            Self::Long(places) => places.len(),
        }
    }

    #[inline]
    fn get(&self, number: usize) -> usize {
        match self {
            Self::Short(places) => places[number] as usize,
            Self::Long(places) => places[number],
        }
    }

    /// The first number whose place is not below `place`, of places that never fall.
    fn first_from(&self, place: usize) -> usize {
        match self {
            Self::Short(places) => places.partition_point(|&p| (p as usize) < place),
            Self::Long(places) => places.partition_point(|&p| p < place),
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
        let mut places = Places::with_capacity(far, 2);
        places.push(3);
        places.push(far);
        assert!(matches!(places, Places::Long(_)));
        assert_eq!(
            (places.len(), places.get(1), places.first_from(4)),
            (2, far, 1)
        );
        assert!(matches!(Places::of(5, &[2, 3]), Places::Short(_)));
        assert_eq!(Places::of(5, &[2, 3]).first_from(2), 1);
    }
}
