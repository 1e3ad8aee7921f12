//! Statistics of blocks of rows that merge to those of all rows: how a preprocessing is fitted to rows that are not in one
//! place.

use super::columns::Columns;
use super::preprocess::{Preprocess, Preprocessor};
use super::rows::RowsView;
use super::terms::TermStatistics;
use crate::error::{Error, Result};

/// What every preprocessing is fitted from, for one block of rows or several.
///
/// ```
/// use hdsl::{Rows, data::{BlockStatistics, Preprocess, Preprocessor}};
/// let rows = Rows::from_parts(3, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, 2.0, 1.0])?;
/// let [first, second] = [[0], [1]].map(|which| rows.select(&which));
/// let merged = BlockStatistics::of(&first).merge(&BlockStatistics::of(&second));
/// for kind in [Preprocess::Max, Preprocess::Tfidf, Preprocess::Auto] {
///     assert_eq!(merged.fit(kind, 3)?, Preprocessor::fit(kind, &rows));
/// }
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BlockStatistics {
    /// The number of rows.
    pub n_rows: usize,
    /// The number of stored values.
    pub n_values: usize,
    /// The features with a stored value, increasing.
    pub features: Vec<u32>,
    /// The largest absolute value of each of them.
    pub maxima: Vec<f64>,
    /// In how many rows each of them is non-zero.
    pub document_frequencies: Vec<u32>,
    /// Whether all non-zero values are whole numbers of at least 1.
    pub is_counts: bool,
    /// Whether all values are whole numbers of at least 0.
    pub is_whole: bool,
    /// Whether some value is above 1.
    pub above_one: bool,
    /// The sum of all absolute values. A merged sum differs from the sum in the order of rows by rounding; chained
    /// [`BlockStatistics::add_lengths`] gives the latter.
    pub total: f64,
    /// Row, feature and value of the first negative value.
    pub first_negative: Option<(usize, u32, f64)>,
}

impl BlockStatistics {
    /// Those of one block.
    pub fn of<'a>(rows: impl Into<RowsView<'a>>) -> Self {
        let rows = rows.into();
        let columns = Columns::of(rows);
        let mut maxima = vec![0.0f64; columns.len()];
        let mut frequencies = vec![0u32; columns.len()];
        let (mut is_counts, mut is_whole, mut above_one) = (true, true, false);
        for (&feature, &value) in rows.indices().iter().zip(rows.values()) {
            let number = columns.number(feature).expect("the columns of these rows") as usize;
            maxima[number] = maxima[number].max(value.abs());
            let is_fraction = value.fract() != 0.0;
            is_whole &= value >= 0.0 && !is_fraction;
            above_one |= value > 1.0;
            if value != 0.0 {
                frequencies[number] += 1;
                is_counts &= value >= 1.0 && !is_fraction;
            }
        }
        let negative = rows.values().iter().position(|&value| value < 0.0);
        let first_negative = negative.map(|at| {
            let row = rows.starts().partition_point(|&start| start <= at) - 1;
            (row, rows.indices()[at], rows.values()[at])
        });
        Self {
            n_rows: rows.n_rows(),
            n_values: rows.nnz(),
            features: columns.features().to_vec(),
            maxima,
            document_frequencies: frequencies,
            is_counts,
            is_whole,
            above_one,
            total: Self::add_lengths(0.0, rows),
            first_negative,
        }
    }

    /// A sum of absolute values, continued by those of the next rows.
    pub fn add_lengths<'a>(total: f64, rows: impl Into<RowsView<'a>>) -> f64 {
        let rows = rows.into();
        let non_zero = rows.values().iter().filter(|&&value| value != 0.0);
        non_zero.fold(total, |total, value| total + value.abs())
    }

    /// Those of this block followed by the next.
    pub fn merge(&self, next: &Self) -> Self {
        let n = self.features.len() + next.features.len();
        let (mut features, mut maxima) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut frequencies = Vec::with_capacity(n);
        let (mut a, mut b) = (0, 0);
        while a < self.features.len() || b < next.features.len() {
            let [left, right] = [(self, a), (next, b)].map(|(s, at)| s.features.get(at).copied());
            let from_left = left.is_some_and(|l| right.is_none_or(|r| l <= r));
            let from_right = right.is_some_and(|r| left.is_none_or(|l| r <= l));
            let (mut max, mut frequency) = (0.0f64, 0);
            if from_left {
                features.extend(left);
                max = self.maxima[a];
                frequency = self.document_frequencies[a];
                a += 1;
            }
            if from_right {
                if !from_left {
                    features.extend(right);
                }
                max = max.max(next.maxima[b]);
                frequency += next.document_frequencies[b];
                b += 1;
            }
            maxima.push(max);
            frequencies.push(frequency);
        }
        let shifted = |(row, feature, value)| (row + self.n_rows, feature, value);
        Self {
            n_rows: self.n_rows + next.n_rows,
            n_values: self.n_values + next.n_values,
            features,
            maxima,
            document_frequencies: frequencies,
            is_counts: self.is_counts && next.is_counts,
            is_whole: self.is_whole && next.is_whole,
            above_one: self.above_one || next.above_one,
            total: self.total + next.total,
            first_negative: self.first_negative.or(next.first_negative.map(shifted)),
        }
    }

    /// As [`Preprocess::resolved`] of all rows.
    pub fn resolved(&self, kind: Preprocess) -> Preprocess {
        match kind {
            Preprocess::Auto => Preprocess::suited(
                self.n_values,
                self.n_rows as f64 * self.features.len() as f64,
                || self.is_whole && self.above_one,
            ),
            known => known,
        }
    }

    /// As [`Preprocess::check`] of all rows.
    pub fn check(&self, kind: Preprocess) -> Result<()> {
        match self.first_negative {
            Some(at) if kind.has_terms() => Err(kind.negative(at)),
            _ => Ok(()),
        }
    }

    /// As [`Preprocessor::fit`] to all rows, of so many features.
    pub fn fit(&self, kind: Preprocess, n_features: usize) -> Result<Preprocessor> {
        for (name, n) in [
            ("maxima", self.maxima.len()),
            ("document frequencies", self.document_frequencies.len()),
        ] {
            if n != self.features.len() {
                let wanted = self.features.len();
                return Err(Error::data(format!(
                    "there are {n} {name} for {wanted} features"
                )));
            }
        }
        let kind = self.resolved(kind);
        self.check(kind)?;
        let by_feature = || self.features.iter().copied();
        let maxima = match kind.has_maxima() {
            true => (by_feature().zip(self.maxima.iter().copied()))
                .filter(|max| max.1 > 0.0)
                .collect(),
            false => Vec::new(),
        };
        let terms = kind.has_terms().then(|| TermStatistics {
            n_rows: self.n_rows,
            is_counts: self.is_counts,
            mean_length: (self.total / self.n_rows.max(1) as f64).min(f64::MAX),
            document_frequencies: (by_feature().zip(self.document_frequencies.iter().copied()))
                .filter(|frequency| frequency.1 > 0)
                .collect(),
        });
        Preprocessor::from_parts(kind, n_features, maxima, terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Rows, SparseRow};
    use crate::random::{below, rng};

    /// Sparse rows: counts, fractions, or dense values; with stored zeros, and rows without values.
    fn rows(kind: u32, n_features: usize) -> Rows {
        let mut random = rng(u64::from(kind), 9);
        let mut rows = Rows::new(n_features);
        for row in 0..37 {
            let mut features: Vec<u32> = (0..if kind == 2 { n_features } else { row % 6 })
                .map(|_| below(&mut random, n_features) as u32)
                .collect();
            features.sort_unstable();
            features.dedup();
            let value = |_| match kind {
                0 => below(&mut random, 4) as f64,
                _ => below(&mut random, 1000) as f64 / 7.0,
            };
            let values: Vec<f64> = (0..features.len()).map(value).collect();
            rows.push(SparseRow::new(&features, &values));
        }
        rows
    }

    #[test]
    fn merged_statistics_fit_what_all_rows_fit() {
        for (which, n_features) in [(0, 40), (1, 3_000_000), (2, 12)] {
            let rows = rows(which, n_features);
            for cuts in [vec![0, 37], vec![0, 1, 20, 20, 37], (0..=37).collect()] {
                let mut merged: Option<BlockStatistics> = None;
                let mut total = 0.0;
                for cut in cuts.windows(2) {
                    let block = rows.select(&(cut[0]..cut[1]).collect::<Vec<u32>>());
                    let next = BlockStatistics::of(&block);
                    merged = Some(merged.map_or(next.clone(), |m| m.merge(&next)));
                    total = BlockStatistics::add_lengths(total, &block);
                }
                let merged = BlockStatistics {
                    total,
                    ..merged.unwrap()
                };
                assert_eq!(merged, BlockStatistics::of(&rows));
                for kind in Preprocess::ALL {
                    let alone = Preprocessor::fit(kind, &rows);
                    assert_eq!(merged.fit(kind, n_features).unwrap(), alone, "{kind}");
                }
            }
        }
    }

    #[test]
    fn a_negative_value_is_named_by_its_row_among_all() {
        let block = |value| Rows::from_parts(4, vec![0, 0, 1], vec![2], vec![value]).unwrap();
        let merged = BlockStatistics::of(&block(3.0)).merge(&BlockStatistics::of(&block(-1.5)));
        let error = merged.fit(Preprocess::Tfidf, 4).unwrap_err().to_string();
        assert!(
            error.starts_with("row 3 has the value -1.5 for feature 2"),
            "{error}"
        );
        assert!(merged.fit(Preprocess::Unit, 4).is_ok());
    }
}
