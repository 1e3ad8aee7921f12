//! Preprocessing of features, fitted to training rows and applied to every later row.

use super::columns::Columns;
use super::map::change_rows;
use super::rows::{Rows, RowsView, SparseRow};
use super::terms::{TermStatistics, TermWeights};
use crate::error::{Error, Result};
use crate::named::named_enum;

named_enum! {
    /// The kind of preprocessing: `none`, `max` (the paper's), `unit`, `max+unit`, or `tfidf` and `bm25` for text.
    ///
    /// ```
    /// use hdsl::data::Preprocess;
    /// assert_eq!("max+unit".parse::<Preprocess>()?, Preprocess::MaxUnit);
    /// assert_eq!(Preprocess::Max.to_string(), "max");
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub enum Preprocess as "preprocess" = "none" | "max" | "unit" | "max+unit" | "tfidf" | "bm25" | "auto", default Max {
        /// Values as they are.
        None,
        /// Each feature divided by its largest absolute training value, then clipped to [-1, 1].
        Max,
        /// Each row divided by its Euclidean length.
        Unit,
        /// First max, then unit.
        MaxUnit,
        /// For word counts: 1 + ln(count), times the inverse document frequency, then unit.
        Tfidf,
        /// For word counts: the term weights of Okapi BM25 (k1 = 1.5, b = 0.75), then unit.
        Bm25,
        /// One of these that suits the training rows.
        Auto,
    }
}

/// With a larger share of non-zero values, rows are dense.
const DENSE: f64 = 0.1;

impl Preprocess {
    pub(super) fn has_maxima(self) -> bool {
        matches!(self, Preprocess::Max | Preprocess::MaxUnit)
    }

    fn has_unit(self) -> bool {
        !matches!(self, Preprocess::None | Preprocess::Max)
    }

    /// The kind itself, or the one that `auto` stands for: `max+unit` for dense rows; otherwise `tfidf` for counts and `unit`
    /// for other values.
    ///
    /// ```
    /// use hdsl::{Rows, data::Preprocess};
    /// let dense = Rows::from_parts(2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![5.1, 3.5, 4.9, 3.0])?;
    /// assert_eq!(Preprocess::Auto.resolved(&dense), Preprocess::MaxUnit);
    /// assert_eq!(Preprocess::Max.resolved(&dense), Preprocess::Max);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn resolved<'a>(self, rows: impl Into<RowsView<'a>>) -> Self {
        let rows = rows.into();
        let values = rows.values();
        let cells = rows.n_rows() as f64 * Columns::of(rows).len() as f64;
        match self {
            Preprocess::Auto => Self::suited(values.len(), cells, || {
                let are_counts = values.iter().all(|&x| x >= 0.0 && x.fract() == 0.0);
                are_counts && values.iter().any(|&x| x > 1.0)
            }),
            known => known,
        }
    }

    /// What `auto` stands for, by the number of stored values, the number of cells of occurring features, and whether the
    /// values are counts.
    pub(super) fn suited(n_values: usize, cells: f64, are_counts: impl FnOnce() -> bool) -> Self {
        match () {
            _ if n_values as f64 > DENSE * cells => Preprocess::MaxUnit,
            _ if are_counts() => Preprocess::Tfidf,
            _ => Preprocess::Unit,
        }
    }

    pub(super) fn has_terms(self) -> bool {
        matches!(self, Preprocess::Tfidf | Preprocess::Bm25)
    }

    /// Checks that raw rows have values that this preprocessing is for: `tfidf` and `bm25` take none below 0.
    pub fn check<'a>(self, rows: impl Into<RowsView<'a>>) -> Result<()> {
        let rows = rows.into();
        if !self.has_terms() {
            return Ok(());
        }
        let Some(at) = rows.values().iter().position(|&value| value < 0.0) else {
            return Ok(());
        };
        let row = rows.starts().partition_point(|&start| start <= at) - 1;
        Err(self.negative((row, rows.indices()[at], rows.values()[at])))
    }

    /// The error about a value below 0, given its row and feature.
    pub(super) fn negative(self, (row, feature, value): (usize, u32, f64)) -> Error {
        Error::data(format!(
            "row {row} has the value {value} for feature {feature} (both counted from 0), expected values of at least 0, \
             such as word counts, for the preprocessing `{self}`"
        ))
    }
}

/// A preprocessing fitted to training rows.
///
/// - `max` divides each value by the largest *absolute* value its feature has in training rows, and clips the
///   quotient to [-1, 1]. Signs survive and zero stays zero, so sparse rows stay sparse; non-negative data ends up
///   in [0, 1]. A feature that is never non-zero in training has no maximum, and its values are dropped.
/// - `unit` divides each row by its Euclidean length, after dropping features outside the training rows' feature
///   space (number `n_features` and above). Features inside that space count in the length even if no training
///   row has them. A row without non-zero values is left as it is.
/// - `max+unit` does both in that order, so dropped features do not count in the length.
/// - `tfidf` multiplies the term frequency of each value by the inverse document frequency of its feature,
///   ln((1 + n) / (1 + df)) + 1, where df of the n training rows are non-zero in that feature, and then does `unit`. The
///   term frequency is 1 + ln(value) if all non-zero training values are whole numbers of at least 1 (later values below 1
///   are taken as they are), else the value itself. These are the numbers of scikit-learn's `TfidfTransformer`, with
///   `sublinear_tf=True` for counts.
/// - `bm25` multiplies (k1 + 1) value / (value + k1 (1 - b + b length / mean training length)), with k1 = 1.5, b = 0.75
///   and the sum of a row's values as its length, by ln(1 + (n - df + 0.5) / (df + 0.5)), and then does `unit`.
/// - `none` only drops features outside the training rows' feature space.
///
/// Whatever the kind, scaled rows have as many features as the training rows had. `tfidf` and `bm25` keep features inside
/// the feature space that no training row has (df is 0), and are not meant for negative values: [`Preprocessor::check`]
/// refuses them, and fitting and applying do not look (a negative value gets the weight of its absolute value, negated).
///
/// ```
/// use hdsl::{Rows, data::{Preprocessor, Preprocess}};
/// let train = Rows::from_parts(3, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, -2.0, 1.0])?;
/// let later = Rows::from_parts(9, vec![0, 4], vec![0, 1, 2, 8], vec![1.0, -5.0, 7.0, 7.0])?;
/// let scaled = Preprocessor::fit(Preprocess::Max, &train).apply(&later);
/// assert_eq!(scaled.row(0).indices(), [0, 1]); // features 2 and 8 are new
/// assert_eq!(scaled.row(0).values(), [0.25, -1.0]); // 1 / 4, and -5 / 2 clipped
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocessor {
    kind: Preprocess,
    n_features: usize,
    columns: Columns,
    maxima: Vec<f64>,
    terms: Option<TermWeights>,
}

impl Preprocessor {
    /// Learns the maxima or the term statistics, for the kinds that have any, from training rows.
    pub fn fit<'a>(kind: Preprocess, rows: impl Into<RowsView<'a>>) -> Self {
        let rows = rows.into();
        let kind = kind.resolved(rows);
        if kind.has_maxima() {
            return Self::fit_columns(kind, rows, Columns::of(rows));
        }
        let terms = kind.has_terms().then(|| TermStatistics::of(rows));
        Self::from_parts(kind, rows.n_features(), Vec::new(), terms)
            .expect("the statistics are those of the rows")
    }

    fn fit_columns(kind: Preprocess, rows: RowsView<'_>, columns: Columns) -> Self {
        let mut maxima = vec![0.0f64; columns.len()];
        for (&feature, value) in rows.indices().iter().zip(rows.values()) {
            if let Some(number) = columns.number(feature) {
                let max = &mut maxima[number as usize];
                *max = max.max(value.abs());
            }
        }
        let n_features = rows.n_features();
        if maxima.iter().all(|&max| max > 0.0) {
            return Self {
                kind,
                n_features,
                columns,
                maxima,
                terms: None,
            };
        }
        let maxima = columns.features().iter().copied().zip(maxima);
        Self::with_maxima(kind, n_features, maxima.filter(|max| max.1 > 0.0).collect())
    }

    /// The preprocessing that changes nothing.
    pub(crate) fn none(n_features: usize) -> Self {
        Self::with_maxima(Preprocess::None, n_features, Vec::new())
    }

    /// A preprocessing from its parts, as a file holds them: maxima by increasing feature, or term statistics, for the
    /// kinds that have any.
    pub fn from_parts(
        kind: Preprocess,
        n_features: usize,
        maxima: Vec<(u32, f64)>,
        terms: Option<TermStatistics>,
    ) -> Result<Self> {
        let terms = match (kind, terms) {
            (Preprocess::Tfidf, Some(terms)) => Some(TermWeights::tfidf(n_features, terms)?),
            (Preprocess::Bm25, Some(terms)) => Some(TermWeights::bm25(n_features, terms)?),
            (Preprocess::Auto, _) => {
                let want = "the preprocessing that it stands for";
                return Err(Error::param("preprocess", kind, want));
            }
            (_, Some(_)) => {
                return Err(Error::data(format!(
                    "the preprocessing `{kind}` has no term statistics, but some are given"
                )));
            }
            (_, None) if kind.has_terms() => {
                return Err(Error::data(format!(
                    "the preprocessing `{kind}` needs term statistics, but none are given"
                )));
            }
            (_, None) => None,
        };
        if !kind.has_maxima() && !maxima.is_empty() {
            let n = maxima.len();
            return Err(Error::data(format!(
                "the preprocessing `{kind}` has no maxima, but {n} are given"
            )));
        }
        for (at, &(feature, max)) in maxima.iter().enumerate() {
            let want = match () {
                _ if at > 0 && feature <= maxima[at - 1].0 => "increasing features".into(),
                _ if feature as usize >= n_features => format!("one of the {n_features} features"),
                _ if !(max.is_finite() && max > 0.0) => "a finite number above 0".into(),
                _ => continue,
            };
            return Err(Error::data(format!(
                "feature {feature} has the maximum {max}, expected {want}"
            )));
        }
        let maxima = Self::with_maxima(kind, n_features, maxima);
        Ok(Self { terms, ..maxima })
    }

    fn with_maxima(kind: Preprocess, n_features: usize, maxima: Vec<(u32, f64)>) -> Self {
        let (features, maxima) = maxima.into_iter().unzip();
        Self {
            kind,
            n_features,
            columns: Columns::from_features(n_features, features),
            maxima,
            terms: None,
        }
    }

    /// Checks that raw rows have values that this preprocessing is for, see [`Preprocess::check`].
    pub fn check<'a>(&self, rows: impl Into<RowsView<'a>>) -> Result<()> {
        self.kind.check(rows)
    }

    /// Which preprocessing this is.
    pub fn kind(&self) -> Preprocess {
        self.kind
    }

    /// How many features the training rows had, and every scaled row has.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The training maximum of each feature that has one, by increasing feature. Only `max` and `max+unit` have any.
    pub fn maxima(&self) -> impl ExactSizeIterator<Item = (u32, f64)> + '_ {
        self.columns
            .features()
            .iter()
            .copied()
            .zip(self.maxima.iter().copied())
    }

    /// The statistics of the training rows behind `tfidf` and `bm25`.
    pub fn term_statistics(&self) -> Option<TermStatistics> {
        self.terms.as_ref().map(TermWeights::statistics)
    }

    /// Forgets the maxima of all other features, which are then dropped as if unseen.
    ///
    /// A similarity that uses few features needs few maxima. Only `max` can forget: where rows have unit
    /// length every feature counts in it, so all other kinds are returned unchanged.
    pub fn restrict(&self, features: &[u32]) -> Self {
        if self.kind != Preprocess::Max {
            return self.clone();
        }
        let wanted = Columns::from_features(self.n_features, features.to_vec());
        let kept = self
            .maxima()
            .filter(|m| wanted.number(m.0).is_some())
            .collect();
        Self::with_maxima(self.kind, self.n_features, kept)
    }

    /// Preprocesses all rows, in parallel.
    pub fn apply<'a>(&self, rows: impl Into<RowsView<'a>>) -> Rows {
        self.apply_in_place(rows.into().to_rows())
    }

    /// [`Preprocessor::apply`] without a second copy of the rows.
    pub(crate) fn apply_in_place(&self, rows: Rows) -> Rows {
        if self.kind == Preprocess::None && rows.n_features() == self.n_features {
            return rows;
        }
        let apply =
            |_: &mut (), indices: &mut [u32], values: &mut [f64]| self.scale(indices, values);
        change_rows(rows, self.n_features, || (), apply)
    }

    /// Preprocesses one row: its features and values.
    pub fn apply_row(&self, row: SparseRow<'_>) -> (Vec<u32>, Vec<f64>) {
        let (mut indices, mut values) = (row.indices().to_vec(), row.values().to_vec());
        let n = self.scale(&mut indices, &mut values);
        indices.truncate(n);
        values.truncate(n);
        (indices, values)
    }

    /// Preprocesses one row in place: what is left comes first, and its length is returned.
    fn scale(&self, indices: &mut [u32], values: &mut [f64]) -> usize {
        let mut n = 0;
        for at in 0..indices.len() {
            let (feature, value) = (indices[at], values[at]);
            let scaled = match self.kind.has_maxima() {
                true => (self.columns.number(feature))
                    .map(|number| (value / self.maxima[number as usize]).clamp(-1.0, 1.0)),
                false => ((feature as usize) < self.n_features).then_some(value),
            };
            if let Some(scaled) = scaled {
                (indices[n], values[n]) = (feature, scaled);
                n += 1;
            }
        }
        if let Some(terms) = &self.terms {
            terms.apply(&indices[..n], &mut values[..n]);
        }
        if self.kind.has_unit() {
            make_unit(&mut values[..n]);
        }
        n
    }
}

fn make_unit(values: &mut [f64]) {
    let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mut length = norm(values);
    if !(1e-140..1e140).contains(&length) {
        // The squares left the range of f64: bring the largest value to 1 first.
        let largest = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if largest == 0.0 {
            return;
        }
        values.iter_mut().for_each(|v| *v /= largest);
        length = norm(values);
    }
    values.iter_mut().for_each(|v| *v /= length);
}
