//! The columns that occur at all.

use super::rows::{Rows, RowsView, SparseRow};

const ABSENT: u32 = u32::MAX;

/// The distinct non-empty columns of some rows, numbered from 0 in increasing order.
///
/// Of millions of features only those that occur can matter, and everything that keeps a number per feature
/// keeps one per *occurring* feature. Lookup is a table when the features are few against the stored values, a
/// binary search otherwise, so that nothing of the size of the feature space is ever allocated for sparse data.
///
/// ```
/// use hdsl::{Rows, data::Columns};
/// let rows = Rows::from_parts(4_000_000_000, vec![0, 2, 3], vec![7, 3_000_000_000, 7], vec![1.0, 2.0, 3.0])?;
/// let columns = Columns::of(&rows);
/// assert_eq!(columns.len(), 2);
/// assert_eq!(columns.number(3_000_000_000), Some(1));
/// assert_eq!(columns.feature(1), 3_000_000_000);
/// assert_eq!(columns.compact(&rows).row(0).indices(), [0, 1]);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Columns {
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
    pub fn of<'a>(rows: impl Into<RowsView<'a>>) -> Self {
        let rows = rows.into();
        if table_pays(rows.n_features(), rows.nnz()) {
            let mut table = vec![ABSENT; rows.n_features()];
            for &feature in rows.indices() {
                table[feature as usize] = 0;
            }
            let mut features = Vec::new();
            for (feature, number) in table.iter_mut().enumerate() {
                if *number != ABSENT {
                    *number = features.len() as u32;
                    features.push(feature as u32);
                }
            }
            features.shrink_to_fit();
            Self {
                features,
                table: Some(table),
            }
        } else {
            let mut features = rows.indices().to_vec();
            features.sort_unstable();
            features.dedup();
            features.shrink_to_fit();
            Self {
                features,
                table: None,
            }
        }
    }

    /// Given features, in any order, of `n_features`; repetitions and those outside are left out.
    pub fn from_features(n_features: usize, mut features: Vec<u32>) -> Self {
        features.retain(|&f| (f as usize) < n_features);
        features.sort_unstable();
        features.dedup();
        let table = table_pays(n_features, features.len()).then(|| {
            let mut table = vec![ABSENT; n_features];
            for (number, &feature) in features.iter().enumerate() {
                table[feature as usize] = number as u32;
            }
            table
        });
        Self { features, table }
    }

    /// How many columns occur.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// The compact number of a feature, if it occurs.
    pub fn number(&self, feature: u32) -> Option<u32> {
        match &self.table {
            Some(table) => table
                .get(feature as usize)
                .copied()
                .filter(|&number| number != ABSENT),
            None => self.features.binary_search(&feature).ok().map(|n| n as u32),
        }
    }

    /// The feature that has a compact number.
    ///
    /// # Panics
    /// If `number` is not below [`Columns::len`].
    pub fn feature(&self, number: u32) -> u32 {
        self.features[number as usize]
    }

    /// All occurring features, in increasing order.
    pub fn features(&self) -> &[u32] {
        &self.features
    }

    /// All occurring features, in increasing order, and nothing else.
    pub(crate) fn into_features(self) -> Vec<u32> {
        self.features
    }

    /// The same rows with compact numbers for features. Values of other columns are left out.
    pub fn compact(&self, rows: &Rows) -> Rows {
        let mut starts = Vec::with_capacity(rows.n_rows() + 1);
        let mut indices = Vec::with_capacity(rows.nnz());
        let mut values = Vec::with_capacity(rows.nnz());
        starts.push(0);
        for row in rows.iter() {
            for (feature, value) in row.iter() {
                if let Some(number) = self.number(feature) {
                    indices.push(number);
                    values.push(value);
                }
            }
            starts.push(indices.len());
        }
        Rows::from_parts(self.len(), starts, indices, values)
            .expect("renumbering keeps the order of columns")
    }

    /// One row with compact numbers for features. Values of other columns are left out.
    pub fn compact_row(&self, row: SparseRow<'_>) -> (Vec<u32>, Vec<f64>) {
        row.iter()
            .filter_map(|(feature, value)| self.number(feature).map(|number| (number, value)))
            .unzip()
    }
}

/// A table of all features costs no more than the data itself, give or take a quarter of a megabyte.
fn table_pays(n_features: usize, nnz: usize) -> bool {
    n_features <= nnz.saturating_mul(4).saturating_add(65_536)
}
