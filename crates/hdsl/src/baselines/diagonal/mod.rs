//! Diagonal similarity learning: one weight per feature.
//!
//! minimize (1/V) Σ_t v_t ℓ(S_w(x_t, y_t) - S_w(x_t, z_t)) + λ Ω(w) over w in ℝ^d,
//!
//! with S_w(x, x') = Σ_i w_i x_i x'_i, triplet weights v_t of sum V (v_t = 1 in the paper), and Ω(w) = ‖w‖₁ or ‖w‖₂²
//! (Sec. 4.1). The paper puts no constraint on w, so weights may be negative unless [`Diagonal::non_negative`] is set.

mod descent;
mod model;
mod penalty;
mod products;
#[cfg(test)]
pub(super) mod tests;

pub use model::DiagonalModel;
pub use penalty::Penalty;

use super::check_positive;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::objective::loss::LossKind;
use crate::observer::{DiagonalIteration, Observer, Stop, Stopwatch};
use crate::triplets::Triplets;
use descent::Descent;
use products::Products;
use serde::{Deserialize, Serialize};

/// Diagonal similarity learning, DIAG in the paper's Table 3, with its settings. They are checked by
/// [`Diagonal::fit`].
///
/// The time per iteration and the memory depend on the non-zeros of the rows and the number of triplets, not on d.
///
/// ```
/// use hdsl::baselines::{Diagonal, Penalty};
/// use hdsl::{Rows, Triplets};
/// // Row 0 shares feature 0 with the row it is similar to, and feature 1 with the other one.
/// let rows = Rows::from_parts(3, vec![0, 2, 3, 4], vec![0, 1, 0, 1], vec![1.0; 4])?;
/// let mut triplets = Triplets::new();
/// triplets.push(0, 1, 2);
/// let diagonal = Diagonal { penalty: Penalty::L2, strength: 0.25, tolerance: 1e-12, ..Diagonal::default() };
/// let fit = diagonal.fit(None, &rows, &triplets, &mut ())?;
/// // The margin is w_0 - w_1, and ½(1 - 2w)² + 2w²/4 is smallest at w = 0.4.
/// assert_eq!(fit.stop, hdsl::Stop::Tolerance);
/// assert!((fit.model.weight(0) - 0.4).abs() < 1e-6 && (fit.model.weight(1) + 0.4).abs() < 1e-6);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Diagonal {
    /// Ω.
    pub penalty: Penalty,
    /// λ, the weight of the penalty, above 0; the paper tries 10⁻⁹, ..., 10⁸ on validation rows.
    pub strength: f64,
    /// The loss ℓ of a margin.
    pub loss: LossKind,
    /// Allow no negative weights, so that the similarity is an inner product.
    pub non_negative: bool,
    /// Stop after this many iterations.
    pub max_iter: usize,
    /// Stop when the objective is certified to exceed the optimum by at most this fraction of itself.
    pub tolerance: f64,
}

impl Default for Diagonal {
    fn default() -> Self {
        Self {
            penalty: Penalty::L1,
            strength: 1e-3,
            loss: LossKind::default(),
            non_negative: false,
            max_iter: 10_000,
            tolerance: 1e-4,
        }
    }
}

impl Diagonal {
    /// Learns the weights, starting from w = 0, or from the weights of `start`: a warm start, for a sequence of strengths
    /// for example. Features that no row contains get no weight, and negative weights become 0 if they are not allowed.
    ///
    /// ```
    /// use hdsl::baselines::Diagonal;
    /// use hdsl::{Rows, Triplets};
    /// # let rows = Rows::from_parts(3, vec![0, 2, 3, 4], vec![0, 1, 0, 1], vec![1.0; 4])?;
    /// # let mut triplets = Triplets::new();
    /// # triplets.push(0, 1, 2);
    /// let with = |strength| Diagonal { strength, ..Diagonal::default() };
    /// let first = with(0.1).fit(None, &rows, &triplets, &mut ())?;
    /// let next = with(0.01).fit(Some(&first.model), &rows, &triplets, &mut ())?;
    /// assert!(next.last.objective < first.last.objective);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn fit(
        &self,
        start: Option<&DiagonalModel>,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<DiagonalFit> {
        let clock = Stopwatch::start();
        self.check()?;
        let products = Products::new(rows, triplets)?;
        let features = products.columns.features();
        let weight = |&feature| start.map_or(0.0, |model| model.weight(feature));
        let start = (features.iter())
            .map(|feature| self.project(weight(feature)))
            .collect();
        let (weights, last, stop) =
            Descent::new(&products, self).minimize(start, clock, observer)?;
        let weighted = features.iter().copied().zip(weights).collect();
        Ok(DiagonalFit {
            model: DiagonalModel::new(rows.n_features(), weighted)?,
            last,
            stop,
        })
    }

    /// The critical strength of the ℓ1 penalty, ‖∇f(0)‖∞: from it on every weight is 0, below it some weight is not.
    /// (With `non_negative`, the largest of -∇f(0).) Strengths worth trying are below it.
    ///
    /// ```
    /// use hdsl::baselines::Diagonal;
    /// # use hdsl::{Rows, Triplets};
    /// # let rows = Rows::from_parts(3, vec![0, 2, 3, 4], vec![0, 1, 0, 1], vec![1.0, 1.0, 1.0, 2.0])?;
    /// # let mut triplets = Triplets::new();
    /// # triplets.push(0, 1, 2);
    /// let critical = Diagonal::default().critical_strength(&rows, &triplets)?;
    /// for (strength, used) in [(critical, 0), (0.99 * critical, 1)] {
    ///     let fit = Diagonal { strength, ..Diagonal::default() }.fit(None, &rows, &triplets, &mut ())?;
    ///     assert_eq!(fit.model.features().len(), used);
    /// }
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn critical_strength(&self, rows: &Rows, triplets: &Triplets) -> Result<f64> {
        let products = Products::new(rows, triplets)?;
        let gradient = Descent::new(&products, self).gradient_at_zero();
        let rates = gradient.into_iter().map(|g| self.descent_rate(g));
        Ok(rates.fold(0.0, f64::max))
    }

    fn check(&self) -> Result<()> {
        check_positive("strength", self.strength)?;
        check_positive("tolerance", self.tolerance)?;
        match self.max_iter {
            0 => Err(Error::param("max_iter", 0, "a whole number above 0")),
            _ => Ok(()),
        }
    }
}

/// The result of [`Diagonal::fit`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiagonalFit {
    /// The learned weights.
    pub model: DiagonalModel,
    /// Objective, gap, number of iterations and seconds at the end.
    pub last: DiagonalIteration,
    /// Why it ended: `Tolerance`, `MaxIter`, `ObserverAsked`, or `Stationary` where rounding allows no progress.
    pub stop: Stop,
}
