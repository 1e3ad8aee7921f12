//! The columns that occur at all.

use super::map::change_rows;
use super::rows::{Rows, RowsView};

const ABSENT: u32 = u32::MAX;

/// The distinct non-empty columns of some rows, numbered from 0 in increasing order.
///
/// Of millions of features only those that occur can matter, and everything that stores one number per feature
/// stores one per *occurring* feature. Lookup is a table when the features are few compared with the stored values, a
/// binary search otherwise, so that nothing of the size of the feature space is ever allocated for sparse data.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    features: Vec<u32>,
    table: Option<Vec<u32>>,
}

/// Equal when the same features occur; how they are looked up does not matter.
impl PartialEq for Columns {
    fn eq(&self, other: &Self) -> bool {
        self.features == other.features
    }
}

impl Columns {
    /// The columns in which some row stores a value.
    pub(crate) fn of<'a>(rows: impl Into<RowsView<'a>>) -> Self {
        let rows = rows.into();
        if !table_pays(rows.n_features(), rows.nnz()) {
            return Self::from_features(rows.n_features(), rows.indices().to_vec());
        }
        let mut occurs = vec![false; rows.n_features()];
        for &feature in rows.indices() {
            occurs[feature as usize] = true;
        }
        let features = (0..rows.n_features() as u32).filter(|&feature| occurs[feature as usize]);
        Self::from_sorted(rows.n_features(), rows.nnz(), features.collect())
    }

    /// Given features, in any order, of `n_features`; repetitions and those outside are left out.
    pub(crate) fn from_features(n_features: usize, mut features: Vec<u32>) -> Self {
        features.retain(|&feature| (feature as usize) < n_features);
        features.sort_unstable();
        features.dedup();
        features.shrink_to_fit();
        Self::from_sorted(n_features, features.len(), features)
    }

    fn from_sorted(n_features: usize, n_values: usize, features: Vec<u32>) -> Self {
        let table = table_pays(n_features, n_values).then(|| {
            let mut table = vec![ABSENT; n_features];
            for (number, &feature) in features.iter().enumerate() {
                table[feature as usize] = number as u32;
            }
            table
        });
        Self { features, table }
    }

    /// Whether those of these rows would be looked up in a table, so that one number per feature is not too much.
    pub(crate) fn have_table(rows: &Rows) -> bool {
        table_pays(rows.n_features(), rows.nnz())
    }

    /// How many columns occur.
    pub(crate) fn len(&self) -> usize {
        self.features.len()
    }

    /// Whether no column occurs.
    pub(crate) fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// The compact number of a feature, if it occurs.
    pub(crate) fn number(&self, feature: u32) -> Option<u32> {
        match &self.table {
            Some(table) => table
                .get(feature as usize)
                .copied()
                .filter(|&number| number != ABSENT),
            None => self.features.binary_search(&feature).ok().map(|n| n as u32),
        }
    }

    /// All occurring features, in increasing order.
    pub(crate) fn into_features(self) -> Vec<u32> {
        self.features
    }

    /// All occurring features, in increasing order.
    pub(crate) fn features(&self) -> &[u32] {
        &self.features
    }

    /// The same rows with compact numbers for features. Values of other columns are left out.
    pub(crate) fn compact(&self, rows: Rows) -> Rows {
        let compact = |_: &mut (), indices: &mut [u32], values: &mut [f64]| {
            let mut n = 0;
            for at in 0..indices.len() {
                if let Some(number) = self.number(indices[at]) {
                    (indices[n], values[n]) = (number, values[at]);
                    n += 1;
                }
            }
            n
        };
        change_rows(rows, self.len(), || (), compact)
    }
}

/// A table of all features costs no more than the data itself, give or take a quarter of a megabyte.
fn table_pays(n_features: usize, nnz: usize) -> bool {
    n_features <= nnz.saturating_mul(4).saturating_add(65_536)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_numbered_with_and_without_a_table() {
        for (n_features, last, has_table) in [(4_000_000_000, 3_000_000_000, false), (50, 40, true)]
        {
            let rows = Rows::from_parts(
                n_features,
                vec![0, 2, 3],
                vec![7, last, 7],
                vec![1.0, 2.0, 3.0],
            );
            let rows = rows.unwrap();
            let columns = Columns::of(&rows);
            assert_eq!(columns.table.is_some(), has_table);
            assert_eq!(columns.features(), [7, last]);
            assert_eq!((columns.number(last), columns.number(8)), (Some(1), None));
            assert_eq!(columns.features()[1], last);
            let expected = Rows::from_parts(2, vec![0, 2, 3], vec![0, 1, 0], vec![1.0, 2.0, 3.0]);
            assert_eq!(columns.compact(rows), expected.unwrap());
            assert_eq!(
                columns,
                Columns::from_features(n_features, vec![last, 7, last, u32::MAX])
            );
        }
    }
}
