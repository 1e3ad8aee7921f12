//! Rows as the solver stores them: values that are equal within each row are stored once per row, and few distinct values take
//! one byte each.

use super::rows::{CsrRows, Rows, SparseRow};
use std::ops::Range;

/// How many distinct values have a code of one byte.
const CODES: usize = 256;

/// The same as [`Rows`], in less memory where values repeat: binary features, also if rows were scaled to unit length; counts
/// scaled by their maximum; grades.
pub(crate) type PackedRows = CsrRows<Vec<usize>, Vec<u32>, Values>;

/// The values themselves, or the one value of each row, or a code for each value and the value of every code.
pub(crate) enum Values {
    Plain(Vec<f64>),
    Constant(Vec<f64>),
    Coded(Vec<u8>, Box<[f64; CODES]>),
}

/// One row of [`PackedRows`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedRow<'a> {
    indices: &'a [u32],
    values: PackedValues<'a>,
}

/// Values of a row, as in [`PackedRows`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum PackedValues<'a> {
    Plain(&'a [f64]),
    Constant(f64),
    Coded(&'a [u8], &'a [f64; CODES]),
}

impl PackedRows {
    /// Takes rows over.
    pub(crate) fn of(rows: Rows) -> Self {
        let values = if let Some(of_rows) = constant(&rows) {
            Values::Constant(of_rows)
        } else if let Some((codes, table)) = coded(&rows.values) {
            Values::Coded(codes, table)
        } else {
            Values::Plain(rows.values)
        };
        Self {
            n_features: rows.n_features,
            starts: rows.starts,
            indices: rows.indices,
            values,
        }
    }

    /// How many values the longest row has.
    pub(crate) fn longest(&self) -> usize {
        let lengths = (0..self.n_rows()).map(|row| self.nnz_of(row));
        lengths.max().unwrap_or(0)
    }

    /// How many values a row has.
    pub(crate) fn nnz_of(&self, row: usize) -> usize {
        self.range(row).len()
    }

    /// The value of all entries of each row, if they are equal within every row.
    pub(crate) fn constants(&self) -> Option<&[f64]> {
        match &self.values {
            Values::Constant(of_rows) => Some(of_rows),
            _ => None,
        }
    }

    /// One value, by its place among those of all rows. They must not be stored once per row.
    #[inline]
    pub(crate) fn value(&self, position: usize) -> f64 {
        match &self.values {
            Values::Plain(values) => values[position],
            Values::Constant(_) => unreachable!("rows with constant values have no list of them"),
            Values::Coded(codes, table) => table[usize::from(codes[position])],
        }
    }

    /// The bytes of one index and one value.
    #[cfg(feature = "bench")]
    pub(crate) fn bytes_per_value(&self) -> usize {
        4 + match &self.values {
            Values::Plain(_) => 8,
            Values::Constant(_) => 0,
            Values::Coded(..) => 1,
        }
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> PackedRow<'_> {
        let range = self.range(row);
        PackedRow {
            indices: &self.indices[range.clone()],
            values: match &self.values {
                Values::Plain(values) => PackedValues::Plain(&values[range]),
                Values::Constant(of_rows) => PackedValues::Constant(of_rows[row]),
                Values::Coded(codes, table) => PackedValues::Coded(&codes[range], table),
            },
        }
    }
}

impl<'a> PackedRow<'a> {
    pub(crate) fn indices(&self) -> &'a [u32] {
        self.indices
    }

    pub(crate) fn values(&self) -> PackedValues<'a> {
        self.values
    }
}

impl<'a> PackedValues<'a> {
    /// One value.
    #[inline]
    pub(crate) fn at(self, place: usize) -> f64 {
        match self {
            Self::Plain(values) => values[place],
            Self::Constant(value) => value,
            Self::Coded(codes, table) => table[usize::from(codes[place])],
        }
    }

    /// The values at some places.
    #[inline]
    pub(crate) fn part(self, places: Range<usize>) -> Self {
        match self {
            Self::Plain(values) => Self::Plain(&values[places]),
            Self::Constant(value) => Self::Constant(value),
            Self::Coded(codes, table) => Self::Coded(&codes[places], table),
        }
    }

    /// Calls `each` with everything in a list as long as this, and the value beside it.
    #[inline]
    pub(crate) fn each_with<T>(
        self,
        others: impl Iterator<Item = T>,
        mut each: impl FnMut(T, f64),
    ) {
        match self {
            Self::Plain(values) => others.zip(values).for_each(|(other, &x)| each(other, x)),
            Self::Constant(x) => others.for_each(|other| each(other, x)),
            Self::Coded(codes, table) => {
                let values = codes.iter().map(|&code| table[usize::from(code)]);
                others.zip(values).for_each(|(other, x)| each(other, x));
            }
        }
    }
}

/// The value of all entries of each row; none if a row has entries with different bits.
fn constant(rows: &Rows) -> Option<Vec<f64>> {
    let value_of = |row: SparseRow<'_>| match row.values() {
        // An empty row has no value; 0 stands in.
        [] => Some(0.0),
        [first, others @ ..] => {
            let are_equal = others.iter().all(|x| x.to_bits() == first.to_bits());
            are_equal.then_some(*first)
        }
    };
    rows.iter().map(value_of).collect()
}

/// A code for each value, by its bits, and the value of every code; none if there are too many distinct values.
fn coded(values: &[f64]) -> Option<(Vec<u8>, Box<[f64; CODES]>)> {
    let mut distinct: Vec<u64> = Vec::new();
    for value in values {
        if let Err(place) = distinct.binary_search(&value.to_bits()) {
            if distinct.len() == CODES {
                return None;
            }
            distinct.insert(place, value.to_bits());
        }
    }
    let code = |value: &f64| distinct.partition_point(|&bits| bits < value.to_bits()) as u8;
    let codes = values.iter().map(code).collect();
    let mut table = Box::new([0.0; CODES]);
    for (value, &bits) in table.iter_mut().zip(&distinct) {
        *value = f64::from_bits(bits);
    }
    Some((codes, table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows that take turns with so many different values.
    fn rows(lengths: &[usize], different: usize) -> Rows {
        let mut rows = Rows::new(100);
        let mut next = 0;
        for &length in lengths {
            let features: Vec<u32> = (0..length as u32).collect();
            let values = features.iter().map(|_| {
                next += 1;
                1.0 / (1 + next % different) as f64
            });
            let values: Vec<f64> = values.collect();
            rows.push(SparseRow::new(&features, &values));
        }
        rows
    }

    proptest! {
        #[test]
        fn packed_rows_are_the_same_rows(
            lengths in prop::collection::vec(prop_oneof![0..100usize, 0..2usize], 0..30),
            different in prop::sample::select(vec![1, 3, 255, 256, 257, 5_000]),
        ) {
            let rows = rows(&lengths, different);
            let packed = PackedRows::of(rows.clone());
            prop_assert_eq!((packed.n_rows(), packed.nnz(), packed.n_features()), (rows.n_rows(), rows.nnz(), 100));
            prop_assert_eq!(packed.longest(), rows.iter().map(|row| row.nnz()).max().unwrap_or(0));
            for (r, row) in rows.iter().enumerate() {
                let values = packed.row(r).values();
                prop_assert_eq!(packed.row(r).indices(), row.indices());
                prop_assert_eq!(packed.nnz_of(r), row.nnz());
                let mut seen = Vec::new();
                values.each_with(row.indices().iter(), |&j, x| seen.push((j, x)));
                prop_assert_eq!(seen, row.iter().collect::<Vec<_>>());
                for (place, &x) in row.values().iter().enumerate() {
                    prop_assert_eq!(values.at(place), x);
                    prop_assert_eq!(values.part(place..row.nnz()).at(0), x);
                }
            }
        }
    }

    #[test]
    fn one_value_per_row_will_do_if_they_are_equal() {
        let mut rows = Rows::new(9);
        for (features, value) in [(&[0, 4][..], 0.5), (&[], 0.0), (&[8], 0.25)] {
            rows.push(SparseRow::new(features, &vec![value; features.len()]));
        }
        let packed = PackedRows::of(rows.clone());
        assert_eq!(packed.constants(), Some(&[0.5, 0.0, 0.25][..]));
        rows.push(SparseRow::new(&[1, 2], &[0.5, 0.25]));
        assert_eq!(PackedRows::of(rows.clone()).constants(), None);
        // Bits count.
        let mut rows = Rows::new(9);
        rows.push(SparseRow::new(&[1, 2], &[0.0, -0.0]));
        assert_eq!(PackedRows::of(rows).constants(), None);
    }

    #[test]
    fn a_byte_will_do_for_256_values_and_not_for_257() {
        let packed = |different| PackedRows::of(rows(&[100; 60], different)).values;
        assert!(matches!(packed(256), Values::Coded(..)));
        assert!(matches!(packed(257), Values::Plain(_)));
    }
}
