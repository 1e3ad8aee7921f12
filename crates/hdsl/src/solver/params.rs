//! The parameters of the solver.

use crate::error::{Error, Result};
use crate::named::named_enum;
use crate::objective::loss::LossKind;
use std::time::Duration;

named_enum! {
/// The linear minimization oracle: how the forward atom is searched for.
pub enum Search as "search" = "alternating" | "exact", default Alternating {
    /// Best partner of a start feature, then best partner of that one: the paper's heuristic, fast.
    Alternating,
    /// Best of all d(d-1) atoms: slower, and the gap is certified.
    Exact,
}
}

named_enum! {
/// How the direction of a step is chosen.
pub enum StepRule as "steps" = "decrease" | "away" | "pairwise" | "forward", default Decrease {
    /// Largest predicted decrease of f, among directions to a new atom and to or away from active ones (with --batch: as `away`).
    Decrease,
    /// To the forward atom, or away from the worst active one, whichever is steeper: Alg. 1 of the paper.
    Away,
    /// Move weight from the worst active atom to the forward atom.
    Pairwise,
    /// Forward only: Frank-Wolfe without away steps.
    Forward,
}
}

/// Parameters of Alg. 1. Nothing is checked until [`SolverParams::build`].
///
/// ```
/// use hdsl::solver::{Search, SolverParams};
/// let mut params = SolverParams::new(100.0);
/// params.search = Search::Exact;
/// params.max_iter = 50;
/// let solver = params.build()?;
/// assert!(SolverParams::new(-1.0).build().is_err());
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SolverParams {
    /// λ in Eq. 1, the size of the domain.
    pub lambda: f64,
    /// β >= 0: the similarity is S(x, x') = β <x, x'> + xᵀ M x', and M is learned on top of the base similarity β <x, x'>. 0 is
    /// the method of the paper.
    pub base: f64,
    /// The loss of a margin.
    pub loss: LossKind,
    /// The linear minimization oracle.
    pub search: Search,
    /// How the direction of a step is chosen.
    pub steps: StepRule,
    /// Random triplets per iteration that directions are computed from (M in Table 1); none: all triplets.
    pub batch: Option<usize>,
    /// Refuse a run that would need more than this many bytes, with [`Error::Memory`]; none: more than the system reports
    /// as available.
    pub memory_limit: Option<u64>,
    /// End with one exact search over all triplets, so that the final gap is certified.
    pub certify: bool,
    /// Stop when the certified gap, a bound of f - f*, is at most this. Not together with `batch`.
    pub tolerance: Option<f64>,
    /// Stop before more than this many features are used.
    pub max_features: Option<usize>,
    /// Stop when the solver itself has worked this long.
    pub time_limit: Option<Duration>,
    /// Stop after this many iterations.
    pub max_iter: usize,
    /// Seed of random starts of the oracle and of batches.
    pub seed: u64,
}

/// The largest λ and β. See the largest value of a feature, in `data/rows.rs`.
const LARGEST: f64 = 1e30;

/// Alg. 1 with checked parameters; made by [`SolverParams::build`].
#[derive(Clone, Debug)]
pub struct Solver {
    pub(crate) params: SolverParams,
}

impl SolverParams {
    /// 1,000 iterations with this λ, and the defaults of everything else.
    pub fn new(lambda: f64) -> Self {
        Self {
            lambda,
            base: 0.0,
            loss: LossKind::default(),
            search: Search::default(),
            steps: StepRule::default(),
            batch: None,
            memory_limit: None,
            certify: false,
            tolerance: None,
            max_features: None,
            time_limit: None,
            max_iter: 1000,
            seed: 0,
        }
    }

    /// The step rule of a run. The rates of mini-batches are too noisy to predict decreases from.
    pub(super) fn rule(&self) -> StepRule {
        match (self.steps, self.batch) {
            (StepRule::Decrease, Some(_)) => StepRule::Away,
            (rule, _) => rule,
        }
    }

    /// Checks every parameter. The only way to get a [`Solver`].
    pub fn build(self) -> Result<Solver> {
        // Accept what is good instead of rejecting what is bad: NaN passes `lambda <= 0.0`.
        let is_bad = |x: &f64| !(x.is_finite() && *x > 0.0);
        for (name, number) in [("lambda", Some(self.lambda)), ("tolerance", self.tolerance)] {
            if let Some(bad) = number.filter(is_bad) {
                return Err(Error::param(name, bad, "a finite number above 0"));
            }
        }
        if self.lambda > LARGEST {
            let want = "at most 1e30: sums of larger ones overflow";
            return Err(Error::param("lambda", self.lambda, want));
        }
        if !(self.base <= LARGEST && self.base >= 0.0) {
            return Err(Error::param("base", self.base, "a number from 0 to 1e30"));
        }
        if let (Some(tolerance), Some(_)) = (self.tolerance, self.batch) {
            let want = "no tolerance together with `batch`: a gap over a batch certifies nothing";
            return Err(Error::param("tolerance", tolerance, want));
        }
        for (name, number) in [("batch", self.batch), ("max_iter", Some(self.max_iter))] {
            if number == Some(0) {
                return Err(Error::param(name, 0, "a whole number above 0"));
            }
        }
        if let Some(most) = self.max_features.filter(|&most| most < 2) {
            let want = "at least 2: an atom has two features";
            return Err(Error::param("max_features", most, want));
        }
        Ok(Solver { params: self })
    }
}
