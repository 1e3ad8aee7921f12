//! Term weights for text: tf-idf and BM25.

use super::columns::Columns;
use super::rows::RowsView;
use crate::error::{Error, Result};

/// k1 of BM25: how soon more occurrences of a term stop counting.
const SATURATION: f64 = 1.5;

/// b of BM25: how much a longer row is scaled down.
const LENGTH_SHARE: f64 = 0.75;

/// What term weights need to know about the training rows. A row is a document, and a feature a term.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TermStatistics {
    /// How many training rows there were.
    pub n_rows: usize,
    /// Whether all non-zero values were whole numbers of at least 1.
    pub is_counts: bool,
    /// The mean of the rows' sums of absolute values: the mean length of a document, where values are counts.
    pub mean_length: f64,
    /// In how many rows each feature was non-zero, by increasing feature. Features without such rows are left out.
    #[serde(skip)]
    pub document_frequencies: Vec<(u32, u32)>,
}

impl TermStatistics {
    /// Those of training rows.
    pub(super) fn of(rows: RowsView<'_>) -> Self {
        let columns = Columns::of(rows);
        let mut frequencies = vec![0u32; columns.len()];
        let (mut is_counts, mut total) = (true, 0.0);
        let values = rows.indices().iter().zip(rows.values());
        for (&feature, value) in values.filter(|(_, value)| **value != 0.0) {
            let number = columns.number(feature).expect("the columns of these rows");
            frequencies[number as usize] += 1;
            is_counts &= *value >= 1.0 && value.fract() == 0.0;
            total += value.abs();
        }
        let frequencies = columns.features().iter().copied().zip(frequencies);
        Self {
            n_rows: rows.n_rows(),
            is_counts,
            mean_length: (total / rows.n_rows().max(1) as f64).min(f64::MAX),
            document_frequencies: frequencies.filter(|f| f.1 > 0).collect(),
        }
    }

    fn check(&self, n_features: usize) -> Result<()> {
        let (n_rows, length) = (self.n_rows, self.mean_length);
        if n_rows > u32::MAX as usize || !(0.0..=f64::MAX).contains(&length) {
            return Err(Error::data(format!(
                "term statistics of {n_rows} rows with mean length {length}, expected fewer than 2^32 rows and a finite \
                 length of at least 0"
            )));
        }
        let list = &self.document_frequencies;
        for (at, &(feature, frequency)) in list.iter().enumerate() {
            let want = match () {
                _ if at > 0 && feature <= list[at - 1].0 => "increasing features".into(),
                _ if feature as usize >= n_features => format!("one of the {n_features} features"),
                _ if !(1..=n_rows).contains(&(frequency as usize)) => {
                    format!("1 to {n_rows}, the number of rows")
                }
                _ => continue,
            };
            return Err(Error::data(format!(
                "feature {feature} has the document frequency {frequency}, expected {want}"
            )));
        }
        Ok(())
    }
}

/// What a term's value in a row becomes, before its idf.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TermFrequency {
    AsIs,
    Log,
    Bm25,
}

/// Weights of terms: term frequency x inverse document frequency, up to a factor common to all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TermWeights {
    frequency: TermFrequency,
    n_rows: usize,
    is_counts: bool,
    mean_length: f64,
    columns: Columns,
    frequencies: Vec<u32>,
    /// The idf of each column, and of a feature in no training row, both divided by [`IDF_SCALE`].
    idf: Vec<f64>,
    unseen_idf: f64,
}

/// A power of 2 above every idf of fewer than 2^32 rows: no product of a value and an idf overflows, and rounding is as
/// without the factor.
const IDF_SCALE: f64 = 32.0;

impl TermWeights {
    /// (1 + ln tf) x idf for counts and tf x idf for other values, with idf = ln((1 + n) / (1 + df)) + 1.
    pub(super) fn tfidf(n_features: usize, statistics: TermStatistics) -> Result<Self> {
        let frequency = match statistics.is_counts {
            true => TermFrequency::Log,
            false => TermFrequency::AsIs,
        };
        let idf = |n: f64, df: f64| ((1.0 + n) / (1.0 + df)).ln() + 1.0;
        Self::new(n_features, statistics, frequency, idf)
    }

    /// The term weights of Okapi BM25, with idf = ln(1 + (n - df + 0.5) / (df + 0.5)).
    pub(super) fn bm25(n_features: usize, statistics: TermStatistics) -> Result<Self> {
        let idf = |n: f64, df: f64| ((n - df + 0.5) / (df + 0.5)).ln_1p();
        Self::new(n_features, statistics, TermFrequency::Bm25, idf)
    }

    fn new(
        n_features: usize,
        statistics: TermStatistics,
        frequency: TermFrequency,
        idf: fn(f64, f64) -> f64,
    ) -> Result<Self> {
        statistics.check(n_features)?;
        let (features, frequencies): (Vec<u32>, Vec<u32>) =
            statistics.document_frequencies.into_iter().unzip();
        let idf = |df: u32| idf(statistics.n_rows as f64, f64::from(df)) / IDF_SCALE;
        Ok(Self {
            frequency,
            n_rows: statistics.n_rows,
            is_counts: statistics.is_counts,
            mean_length: statistics.mean_length,
            columns: Columns::from_features(n_features, features),
            idf: frequencies.iter().map(|&df| idf(df)).collect(),
            frequencies,
            unseen_idf: idf(0),
        })
    }

    pub(super) fn statistics(&self) -> TermStatistics {
        let features = self.columns.features().iter().copied();
        TermStatistics {
            n_rows: self.n_rows,
            is_counts: self.is_counts,
            mean_length: self.mean_length,
            document_frequencies: features.zip(self.frequencies.iter().copied()).collect(),
        }
    }

    /// Replaces the values of one row by their weights.
    pub(super) fn apply(&self, indices: &[u32], values: &mut [f64]) {
        let length: f64 = values.iter().map(|v| v.abs()).sum();
        for (&feature, value) in indices.iter().zip(values) {
            let idf = match self.columns.number(feature) {
                Some(number) => self.idf[number as usize],
                None => self.unseen_idf,
            };
            *value = idf * self.term_frequency(*value, length);
        }
    }

    /// Increasing in the value, 0 for 0, and finite.
    fn term_frequency(&self, value: f64, length: f64) -> f64 {
        let size = value.abs();
        match self.frequency {
            // Later rows may have values below 1, which no count is. 1 + ln goes on as the identity there.
            TermFrequency::Log if size > 1.0 => (1.0 + size.ln()).copysign(value),
            TermFrequency::Log | TermFrequency::AsIs => value,
            TermFrequency::Bm25 => {
                let relative = match self.mean_length > 0.0 {
                    true => length / self.mean_length,
                    false => 1.0,
                };
                let half = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * relative);
                (SATURATION + 1.0) * (value / (size + half))
            }
        }
    }
}
