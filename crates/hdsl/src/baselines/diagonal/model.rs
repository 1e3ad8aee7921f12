//! The learned weights.

use crate::data::{Columns, Rows, SparseRow, map_rows};
use crate::error::{Error, Result};
use crate::similarity::Similarity;
use std::borrow::Cow;

/// S(x, x') = Σ_i w_i x_i x'_i. Weights of 0 are not stored, and features without a weight are ignored.
///
/// Weights may be negative, so no square root of them is taken: queries are mapped to w_i x_i and items keep their values.
///
/// ```
/// use hdsl::baselines::DiagonalModel;
/// use hdsl::{Similarity, SparseRow};
/// let model = DiagonalModel::new(4, vec![(3, -0.5), (0, 2.0), (1, 0.0)])?;
/// assert_eq!((model.features(), model.weights()), (&[0, 3][..], &[2.0, -0.5][..]));
/// let (a, b) = (SparseRow::new(&[0, 3], &[1.0, 2.0]), SparseRow::new(&[0, 1, 3], &[3.0, 9.0, 1.0]));
/// assert_eq!(model.score(a, b), 5.0); // 2 * 1 * 3 - 0.5 * 2 * 1
/// assert!(DiagonalModel::new(4, vec![(4, 1.0)]).is_err()); // there is no feature 4
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DiagonalModel {
    n_features: usize,
    columns: Columns,
    weights: Vec<f64>,
}

impl DiagonalModel {
    /// A similarity from its (feature, weight) pairs, in any order. Features are below `n_features` and occur once, weights
    /// are finite.
    pub fn new(n_features: usize, mut weighted: Vec<(u32, f64)>) -> Result<Self> {
        weighted.sort_unstable_by_key(|w| w.0);
        let twice = weighted.windows(2).find(|w| w[0].0 == w[1].0);
        let outside = weighted.last().filter(|w| w.0 as usize >= n_features);
        let infinite = weighted.iter().find(|w| !w.1.is_finite());
        if let Some(pair) = twice {
            let feature = pair[0].0;
            return Err(Error::data(format!(
                "feature {feature} has two weights, expected one"
            )));
        } else if let Some((feature, _)) = outside {
            return Err(Error::data(format!(
                "feature {feature} has a weight, but there are {n_features} features"
            )));
        } else if let Some((feature, weight)) = infinite {
            return Err(Error::data(format!(
                "feature {feature} has the weight {weight}, expected a finite number"
            )));
        }
        weighted.retain(|w| w.1 != 0.0);
        let (features, weights) = weighted.into_iter().unzip();
        Ok(Self {
            n_features,
            columns: Columns::from_features(n_features, features),
            weights,
        })
    }

    /// The number of features of the rows (d in the paper), used or not.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The features of non-zero weight, in increasing order.
    pub fn features(&self) -> &[u32] {
        self.columns.features()
    }

    /// Their weights, in the same order.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weight of a feature, 0 if it is not used.
    pub fn weight(&self, feature: u32) -> f64 {
        self.columns
            .number(feature)
            .map_or(0.0, |number| self.weights[number as usize])
    }
}

/// Clamps a product that overflows to the largest number.
fn limited(product: f64) -> f64 {
    product.clamp(f64::MIN, f64::MAX)
}

impl Similarity for DiagonalModel {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        let (features, values): (Vec<u32>, Vec<f64>) = (a.iter())
            .map(|(feature, value)| (feature, limited(self.weight(feature) * value)))
            .unzip();
        SparseRow::new(&features, &values).dot(b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        let mapped = map_rows(
            rows,
            self.columns.len(),
            || (),
            |(), row, indices, values| {
                for (feature, value) in row.iter() {
                    if let Some(number) = self.columns.number(feature) {
                        indices.push(number);
                        values.push(limited(self.weights[number as usize] * value));
                    }
                }
            },
        );
        Cow::Owned(mapped)
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(self.columns.compact(rows.clone()))
    }
}
