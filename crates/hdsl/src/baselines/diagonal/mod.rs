//! Diagonal similarity learning: a weight for each feature.
//!
//! minimize (1/V) Σ_t v_t ℓ(S_w(x_t, y_t) - S_w(x_t, z_t)) + λ Ω(w) over w in ℝ^d,
//!
//! with S_w(x, x') = Σ_i w_i x_i x'_i and Ω(w) = ‖w‖₁ or ‖w‖₂² (Sec. 4.1; v_t = 1 in the paper). The paper puts no
//! constraint on w, so weights may be below 0 unless [`Diagonal::non_negative`] is asked for.

mod descent;
mod model;
mod penalty;
mod products;
#[cfg(test)]
mod tests;

pub use model::DiagonalModel;
pub use penalty::Penalty;

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::objective::loss::LossKind;
use crate::observer::{Observer, Stop, Stopwatch};
use crate::triplets::Triplets;
use descent::{Outcome, minimize};
use penalty::Regularizer;
use products::Products;

/// Settings of diagonal similarity learning, DIAG in the paper's Table 3. Nothing is checked until
/// [`Diagonal::fit`].
///
/// Time of an iteration and memory depend on the non-zeros of the rows and the number of triplets, not on d.
///
/// ```
/// use hdsl::baselines::{Diagonal, Penalty};
/// use hdsl::{Rows, Triplets};
/// // Row 0 shares feature 0 with the row it is like, and feature 1 with the one it is not like.
/// let rows = Rows::from_parts(3, vec![0, 2, 3, 4], vec![0, 1, 0, 1], vec![1.0; 4])?;
/// let mut triplets = Triplets::new();
/// triplets.push(0, 1, 2);
/// let fit = Diagonal::new(Penalty::L2, 0.25).tolerance(1e-12).fit(&rows, &triplets, &mut ())?;
/// // The margin is w_0 - w_1, and ½(1 - 2w)² + 2w²/4 is least at w = 0.4.
/// assert!(fit.converged());
/// assert!((fit.model.weight(0) - 0.4).abs() < 1e-6 && (fit.model.weight(1) + 0.4).abs() < 1e-6);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Diagonal {
    penalty: Penalty,
    strength: f64,
    loss: LossKind,
    non_negative: bool,
    max_iter: usize,
    tolerance: f64,
}

impl Diagonal {
    /// `strength` is λ, above 0; the paper tries 10⁻⁹, ..., 10⁸ on validation rows.
    pub fn new(penalty: Penalty, strength: f64) -> Self {
        Self {
            penalty,
            strength,
            loss: LossKind::default(),
            non_negative: false,
            max_iter: 10_000,
            tolerance: 1e-4,
        }
    }

    /// What a margin costs; the paper's smoothed hinge unless set.
    pub fn loss(mut self, loss: LossKind) -> Self {
        self.loss = loss;
        self
    }

    /// Allow no weight below 0, so that the similarity is an inner product; not so unless set, as in the paper.
    pub fn non_negative(mut self, non_negative: bool) -> Self {
        self.non_negative = non_negative;
        self
    }

    /// Stop after this many iterations; 10,000 unless set.
    pub fn max_iter(mut self, iterations: usize) -> Self {
        self.max_iter = iterations;
        self
    }

    /// Stop when the objective is proved to be within this share of itself above the optimum; 10⁻⁴ unless set.
    pub fn tolerance(mut self, share: f64) -> Self {
        self.tolerance = share;
        self
    }

    /// Learns the weights, starting from none.
    pub fn fit(
        &self,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<DiagonalFit> {
        self.run(None, rows, triplets, observer)
    }

    /// The same, going on from weights learned before: with another strength, say, which is how to go through a list of
    /// them. Features that no row holds lose their weight, and so do weights below 0 where none are allowed.
    ///
    /// ```
    /// use hdsl::baselines::{Diagonal, Penalty};
    /// use hdsl::{Rows, Triplets};
    /// # let rows = Rows::from_parts(3, vec![0, 2, 3, 4], vec![0, 1, 0, 1], vec![1.0; 4])?;
    /// # let mut triplets = Triplets::new();
    /// # triplets.push(0, 1, 2);
    /// let first = Diagonal::new(Penalty::L1, 0.1).fit(&rows, &triplets, &mut ())?;
    /// let next = Diagonal::new(Penalty::L1, 0.01).fit_from(&first.model, &rows, &triplets, &mut ())?;
    /// assert!(next.objective < first.objective);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn fit_from(
        &self,
        start: &DiagonalModel,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<DiagonalFit> {
        self.run(Some(start), rows, triplets, observer)
    }

    /// The critical strength of the ℓ1 penalty, ‖∇f(0)‖∞: with it and above it every weight is 0, below it some weight
    /// is not. (Of the largest pull upwards only, if weights are not to be negative.) Strengths worth trying are below
    /// it.
    ///
    /// ```
    /// use hdsl::baselines::{Diagonal, Penalty};
    /// # use hdsl::{Rows, Triplets};
    /// # let rows = Rows::from_parts(3, vec![0, 2, 3, 4], vec![0, 1, 0, 1], vec![1.0, 1.0, 1.0, 2.0])?;
    /// # let mut triplets = Triplets::new();
    /// # triplets.push(0, 1, 2);
    /// let most = Diagonal::new(Penalty::L1, 1.0).critical_strength(&rows, &triplets)?;
    /// let used = |strength| Ok(Diagonal::new(Penalty::L1, strength).fit(&rows, &triplets, &mut ())?.model.n_features_used());
    /// assert_eq!((used(most)?, used(0.99 * most)?), (0, 1));
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn critical_strength(&self, rows: &Rows, triplets: &Triplets) -> Result<f64> {
        let products = Products::new(rows, triplets)?;
        let pull = |g: f64| match self.non_negative {
            true => (-g).max(0.0),
            false => g.abs(),
        };
        Ok(descent::gradient_at_zero(&products, self)
            .into_iter()
            .map(pull)
            .fold(0.0, f64::max))
    }

    fn run(
        &self,
        start: Option<&DiagonalModel>,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<DiagonalFit> {
        let clock = Stopwatch::start();
        self.check()?;
        let products = Products::new(rows, triplets)?;
        let features = products.columns().features();
        let weight = |&feature: &u32| {
            let weight = start.map_or(0.0, |model| model.weight(feature));
            match self.non_negative {
                true => weight.max(0.0),
                false => weight,
            }
        };
        let start = features.iter().map(weight).collect();
        let Outcome {
            weights,
            last,
            stop,
        } = minimize(&products, self, start, clock, observer)?;
        let weighted = features.iter().copied().zip(weights).collect();
        Ok(DiagonalFit {
            model: DiagonalModel::new(rows.n_features(), weighted)?,
            objective: last.objective,
            gap: last.gap,
            iterations: last.iter,
            stop,
            seconds: last.seconds,
        })
    }

    fn check(&self) -> Result<()> {
        for (name, value) in [("strength", self.strength), ("tol", self.tolerance)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::param(name, value, "a finite number above 0"));
            }
        }
        if self.max_iter == 0 {
            return Err(Error::param("max-iter", 0, "a whole number above 0"));
        }
        Ok(())
    }

    fn regularizer(&self) -> Regularizer {
        Regularizer {
            penalty: self.penalty,
            strength: self.strength,
            non_negative: self.non_negative,
        }
    }
}

/// What [`Diagonal::fit`] gives back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiagonalFit {
    /// The weights.
    pub model: DiagonalModel,
    /// The objective, penalty included.
    pub objective: f64,
    /// The objective is at most this far above the optimum: certified.
    pub gap: f64,
    /// Iterations taken.
    pub iterations: usize,
    /// Why it ended: `Tolerance`, `MaxIter`, `ObserverAsked`, or `Stationary` where rounding allows no progress.
    pub stop: Stop,
    /// Seconds of work, without the time of the observer.
    pub seconds: f64,
}

impl DiagonalFit {
    /// Whether the gap came down to the tolerance.
    pub fn converged(&self) -> bool {
        self.stop == Stop::Tolerance
    }
}
