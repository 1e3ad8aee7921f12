//! Settings of a solver, and the one call that checks them.

use super::Solver;
use crate::error::{Error, Result};
use crate::named::named_enum;
use crate::objective::loss::LossKind;
use std::time::Duration;

named_enum! {
/// The linear minimization oracle: how the forward atom is searched for.
#[derive(Default)]
pub enum Search as "search" {
    /// Best partner of a start feature, then best partner of that one: the paper's heuristic, fast.
    #[default]
    Alternating = "alternating",
    /// Best of all d(d-1) atoms: slower, and the gap is certified.
    Exact = "exact",
}
}

named_enum! {
/// Which directions a step may take.
#[derive(Default)]
pub enum StepRule as "steps" {
    /// Forward, or away from the worst active atom, whichever promises more (Alg. 1).
    #[default]
    Away = "away",
    /// Move weight from the worst active atom to the forward atom.
    Pairwise = "pairwise",
    /// Forward only: Frank-Wolfe without away steps.
    Forward = "forward",
}
}

/// Settings of Alg. 1. Nothing is checked until [`SolverParams::build`].
///
/// ```
/// use hdsl::{Search, SolverParams};
/// let solver = SolverParams::new(100.0).search(Search::Exact).max_iter(50).build()?;
/// assert!(SolverParams::new(-1.0).build().is_err());
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SolverParams {
    pub(crate) scale: f64,
    pub(crate) loss: LossKind,
    pub(crate) search: Search,
    pub(crate) batch: Option<usize>,
    pub(crate) step_rule: StepRule,
    pub(crate) max_iter: usize,
    pub(crate) tolerance: Option<f64>,
    pub(crate) max_features: Option<usize>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) seed: u64,
    pub(crate) certify: bool,
    pub(crate) memory_limit: Option<u64>,
}

impl SolverParams {
    /// `scale` is λ in Eq. 1: the one setting with no sensible default.
    pub fn new(scale: f64) -> Self {
        Self {
            scale,
            loss: LossKind::default(),
            search: Search::default(),
            batch: None,
            step_rule: StepRule::default(),
            max_iter: 1000,
            tolerance: None,
            max_features: None,
            time_limit: None,
            seed: 0,
            certify: false,
            memory_limit: None,
        }
    }

    /// The loss that was set.
    pub fn loss_kind(&self) -> LossKind {
        self.loss
    }

    /// The iterations that were allowed.
    pub fn iterations(&self) -> usize {
        self.max_iter
    }

    /// λ, the size of the domain.
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    /// What a margin costs.
    pub fn loss(mut self, loss: LossKind) -> Self {
        self.loss = loss;
        self
    }

    /// How the forward atom is sought.
    pub fn search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// Take directions from this many random triplets an iteration (M in Table 1) instead of all.
    pub fn batch(mut self, triplets: usize) -> Self {
        self.batch = Some(triplets);
        self
    }

    /// Which directions a step may take.
    pub fn step_rule(mut self, rule: StepRule) -> Self {
        self.step_rule = rule;
        self
    }

    /// Stop after this many iterations; 1000 unless set.
    pub fn max_iter(mut self, iterations: usize) -> Self {
        self.max_iter = iterations;
        self
    }

    /// Stop when the certified gap, a bound of f - f*, is at most this. Needs every triplet in the gradient.
    pub fn tolerance(mut self, gap: f64) -> Self {
        self.tolerance = Some(gap);
        self
    }

    /// Stop before more than this many features are used.
    pub fn max_features(mut self, features: usize) -> Self {
        self.max_features = Some(features);
        self
    }

    /// Stop when the solver itself has worked this long.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Seed of the random starts and batches; 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// End with one exact search over all triplets, so that the final gap is certified.
    pub fn certify(mut self, certify: bool) -> Self {
        self.certify = certify;
        self
    }

    /// Refuse a run that would take more than this many bytes, with [`Error::Memory`]; unless set, more than the system
    /// says is free.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Checks every setting. The only way to a [`Solver`].
    pub fn build(self) -> Result<Solver> {
        // Accept what is good instead of rejecting what is bad: NaN slips past `scale <= 0.0`.
        let above_0 = |x: f64| x.is_finite() && x > 0.0;
        if !above_0(self.scale) {
            return Err(Error::param("scale", self.scale, "a finite number above 0"));
        }
        if let Some(tolerance) = self.tolerance.filter(|&t| !above_0(t)) {
            return Err(Error::param("tol", tolerance, "a finite number above 0"));
        }
        if self.tolerance.is_some() && self.batch.is_some() {
            return Err(Error::param(
                "tol",
                self.tolerance.unwrap_or_default(),
                "no tolerance together with `batch`: a gap over a batch certifies nothing",
            ));
        }
        for (name, value) in [
            ("batch", self.batch),
            ("max-iter", Some(self.max_iter)),
            (
                "max-features",
                self.max_features.map(|n| n.saturating_sub(1)),
            ),
        ] {
            if value == Some(0) {
                let want = match name {
                    "max-features" => "at least 2: an atom has two features",
                    _ => "a whole number above 0",
                };
                let shown = if name == "max-features" {
                    self.max_features.unwrap_or(0)
                } else {
                    0
                };
                return Err(Error::param(name, shown, want));
            }
        }
        Ok(Solver { params: self })
    }
}
