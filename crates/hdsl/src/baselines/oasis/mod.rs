//! OASIS, the online algorithm for scalable image similarity (Chechik, Sharma, Shalit and Bengio, JMLR 2010): a full
//! bilinear similarity from one triplet after the other.
//!
//! Start from W = I. For a triplet x, y, z, with loss max(0, 1 - xᵀ W (y - z)) and V = x (y - z)ᵀ, the step is the
//! smallest change of W that makes the loss 0, or as much of it as the aggressiveness C allows:
//!
//! W += τ V,  τ = min(C, loss / ‖V‖²).

mod draws;
mod matrix;
mod model;
#[cfg(test)]
mod tests;
mod vector;

pub use model::OasisModel;

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::format::{bytes, thousands};
use crate::observer::{Event, OasisProgress, Observer, Stop, Stopwatch};
use crate::triplets::Triplets;
use draws::Draws;
use matrix::{Matrix, Move};
use vector::Vector;

/// Steps that are taken with one pass over W.
const BLOCK: usize = 32;

/// Points of a trace, and about how many multiplications between two at most.
const POINTS: usize = 100;
const BETWEEN: usize = 1 << 30;

/// Bytes W may take unless a limit is set: 16,384 features.
const MEMORY: u64 = 1 << 31;

/// How a triplet is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// First an anchor, each as likely, then one of its triplets, each as likely as its weight: as Chechik et al. draw a
    /// query and then its images.
    #[default]
    Anchors,
    /// One of all triplets, each as likely as its weight.
    Triplets,
}

/// What becomes of W after the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// Nothing.
    #[default]
    AsLearned,
    /// (W + Wᵀ) / 2.
    Symmetric,
    /// The nearest symmetric matrix without eigenvalues below 0. Cubic in the number of features.
    PositiveSemidefinite,
}

/// Settings of OASIS. Nothing is checked until [`Oasis::fit`].
///
/// A step costs the product of the values stored in x and in y - z, dim² at most, and memory is dim²: meant for rows of
/// few features, after PCA or random projections.
///
/// ```
/// use hdsl::baselines::Oasis;
/// use hdsl::{Rows, Triplets};
/// let rows = Rows::from_parts(2, vec![0, 1, 2, 3], vec![0, 1, 0], vec![1.0, 1.0, 1.0])?;
/// let mut triplets = Triplets::new();
/// triplets.push(0, 1, 2); // the row with feature 0 is more like the one with feature 1
/// let fit = Oasis::new(10.0).steps(1).fit(&rows, &triplets, &mut ())?;
/// // V = e_0 (e_1 - e_0)ᵀ, the loss is 1 - (0 - 1) = 2, ‖V‖² = 2, so τ = 1.
/// assert_eq!(fit.model.matrix(), [0.0, 1.0, 0.0, 1.0]);
/// assert_eq!(fit.model.score(rows.row(0), rows.row(1)) - fit.model.score(rows.row(0), rows.row(2)), 1.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Oasis {
    aggressiveness: f64,
    steps: Option<usize>,
    seed: u64,
    sampling: Sampling,
    finish: Finish,
    memory_limit: u64,
}

impl Oasis {
    /// `aggressiveness` is C, the longest step; the paper tries 10⁻⁹, ..., 10² on validation rows.
    pub fn new(aggressiveness: f64) -> Self {
        Self {
            aggressiveness,
            steps: None,
            seed: 0,
            sampling: Sampling::default(),
            finish: Finish::default(),
            memory_limit: MEMORY,
        }
    }

    /// How many triplets to draw; as many as there are unless set.
    pub fn steps(mut self, steps: usize) -> Self {
        self.steps = Some(steps);
        self
    }

    /// Seed of the draws; 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How a triplet is drawn.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// What becomes of W after the last step.
    pub fn finish(mut self, finish: Finish) -> Self {
        self.finish = finish;
        self
    }

    /// Refuse rows of so many features that more than this many bytes would be taken; 2 GiB unless set.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// About how many bytes a fit to rows of so many features takes.
    pub fn memory_needed(&self, n_features: usize) -> u64 {
        let squares = (n_features as u64).saturating_mul(n_features as u64);
        squares.saturating_mul(8 * self.copies())
    }

    /// Draws triplets and takes a step for each.
    pub fn fit(
        &self,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<OasisFit> {
        self.run(None, rows, triplets, observer)
    }

    /// The same, going on from a matrix that was learned before: new triplets for an online learner.
    pub fn fit_from(
        &self,
        start: &OasisModel,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<OasisFit> {
        self.run(Some(start), rows, triplets, observer)
    }

    fn run(
        &self,
        start: Option<&OasisModel>,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<OasisFit> {
        let mut clock = Stopwatch::start();
        let dim = rows.n_features();
        self.check(dim)?;
        if let Some(start) = start.filter(|start| start.dim() != dim) {
            return Err(Error::data(format!(
                "the matrix to start from has {} rows, but there are {dim} features",
                start.dim()
            )));
        }
        triplets.check(rows.n_rows())?;
        let steps = self.steps.unwrap_or(triplets.len());
        let every = (steps / POINTS).min(BETWEEN / (dim * dim)).max(1);
        let mut draws = Draws::new(triplets, rows.n_rows(), self.sampling, self.seed);
        let mut matrix = match start {
            Some(start) => Matrix::from_values(dim, start.matrix().to_vec()),
            None => Matrix::identity(dim),
        };
        let mut trace: Vec<OasisProgress> = Vec::new();
        let mut tally = Tally::default();
        let (mut step, mut stop) = (0, Stop::MaxIter);
        while step < steps {
            let told = trace.last().map_or(0, |point| point.step);
            let n = BLOCK.min(steps - step).min(told + every - step);
            let moves: Vec<Move> = (0..n).map(|_| a_move(rows, draws.next())).collect();
            for taken in matrix.advance(&moves, self.aggressiveness) {
                tally.losses += taken.loss;
                tally.violated += usize::from(taken.loss > 0.0);
            }
            step += n;
            if step == told + every || step == steps {
                let since = (step - told) as f64;
                let point = OasisProgress {
                    step,
                    steps,
                    loss: tally.losses / since,
                    violated: tally.violated as f64 / since,
                    seconds: clock.seconds(),
                };
                tally = Tally::default();
                let answer = clock.tell(observer, &Event::OasisProgress(&point));
                trace.push(point);
                if answer.is_break() {
                    stop = Stop::ObserverAsked;
                    break;
                }
            }
        }
        match self.finish {
            Finish::AsLearned => {}
            Finish::Symmetric => matrix.symmetrize(),
            Finish::PositiveSemidefinite => matrix.make_positive(),
        }
        Ok(OasisFit {
            model: OasisModel::new(matrix)?,
            trace,
            stop,
            seconds: clock.seconds(),
        })
    }

    /// Matrices of the size of W there are at once.
    fn copies(&self) -> u64 {
        match self.finish {
            Finish::AsLearned | Finish::Symmetric => 1,
            Finish::PositiveSemidefinite => 4,
        }
    }

    fn check(&self, dim: usize) -> Result<()> {
        if !(self.aggressiveness.is_finite() && self.aggressiveness > 0.0) {
            let want = "a finite number above 0";
            return Err(Error::param("aggressiveness", self.aggressiveness, want));
        }
        if self.steps == Some(0) {
            return Err(Error::param("steps", 0, "a whole number above 0"));
        }
        if dim == 0 {
            return Err(Error::data(
                "the rows have no features, expected at least 1",
            ));
        }
        let needed = self.memory_needed(dim);
        if needed > self.memory_limit {
            let most = (self.memory_limit / (8 * self.copies())).isqrt();
            return Err(Error::data(format!(
                "OASIS on {} features needs about {} for a matrix with a row and a column for each, and the limit is {}; \
                 it would fit with {} features, say after PCA or random projections",
                thousands(dim),
                bytes(needed),
                bytes(self.memory_limit),
                thousands(most as usize),
            )));
        }
        Ok(())
    }
}

/// What was lost since the last point of the trace.
#[derive(Default)]
struct Tally {
    losses: f64,
    violated: usize,
}

fn a_move(rows: &Rows, (anchor, near, far): (u32, u32, u32)) -> Move {
    let row = |row: u32| rows.row(row as usize);
    Move {
        anchor: Vector::of(row(anchor), rows.n_features()),
        difference: Vector::difference(row(near), row(far), rows.n_features()),
    }
}

/// What [`Oasis::fit`] gives back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OasisFit {
    /// The matrix.
    pub model: OasisModel,
    /// The loss as it went down, a hundred points or more.
    pub trace: Vec<OasisProgress>,
    /// Why it ended: `MaxIter` after all steps, or `ObserverAsked`.
    pub stop: Stop,
    /// Seconds of work, without the time of the observer.
    pub seconds: f64,
}
