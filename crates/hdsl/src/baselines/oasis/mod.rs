//! OASIS, the online algorithm for scalable image similarity (Chechik, Sharma, Shalit and Bengio, JMLR 2010): a full
//! bilinear similarity, learned from one triplet at a time.
//!
//! Start from W = I. For a triplet x, y, z, with loss max(0, 1 - xᵀ W (y - z)) and V = x (y - z)ᵀ, the step is the
//! smallest change of W that makes the loss 0, or as much of it as the aggressiveness C allows:
//!
//! W += τ V,  τ = min(C, loss / ‖V‖²).

mod draws;
mod model;
mod steps;
#[cfg(test)]
mod tests;
mod vector;

pub use model::OasisModel;

use super::check_positive;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::format::{bytes, thousands};
use crate::named::named_enum;
use crate::observer::{Event, OasisProgress, Observer, Stop, Stopwatch};
use crate::triplets::Triplets;
use draws::Draws;
use serde::{Deserialize, Serialize};
use steps::Move;

/// Steps that are taken with one pass over W.
const BLOCK: usize = 32;

/// Points of a trace at least, and about the most multiplications between two of them.
const POINTS: usize = 100;
const BETWEEN: usize = 1 << 30;

/// The default limit of the bytes of W: 16,384 features.
const MEMORY: u64 = 1 << 31;

named_enum! {
    /// How a triplet is drawn.
    pub enum Sampling as "sampling" = "anchors" | "triplets" {
        /// First an anchor, uniformly, then one of its triplets, by their weights: as Chechik et al. draw a query and then
        /// its images.
        Anchors,
        /// One of all triplets, by their weights.
        Triplets,
    }
}

named_enum! {
    /// What is done to W after the last step.
    pub enum Finish as "finish" = "as-learned" | "symmetric" | "psd" {
        /// Nothing.
        AsLearned,
        /// W becomes (W + Wᵀ) / 2.
        Symmetric,
        /// W becomes the nearest positive semi-definite matrix. Cubic in the number of features.
        PositiveSemidefinite,
    }
}

/// OASIS with its settings, which are checked by [`Oasis::fit`].
///
/// A step costs the product of the numbers of values stored in x and in y - z, dim² at most, and memory is dim²: meant for
/// rows of few features, after PCA or random projections.
///
/// ```
/// use hdsl::baselines::Oasis;
/// use hdsl::{Rows, Similarity, Triplets};
/// let rows = Rows::from_parts(2, vec![0, 1, 2, 3], vec![0, 1, 0], vec![1.0, 1.0, 1.0])?;
/// let mut triplets = Triplets::new();
/// triplets.push(0, 1, 2); // the row with feature 0 is more similar to the one with feature 1
/// let fit = Oasis { aggressiveness: 10.0, steps: Some(1), ..Oasis::default() }.fit(None, &rows, &triplets, &mut ())?;
/// // V = e_0 (e_1 - e_0)ᵀ, the loss is 1 - (0 - 1) = 2, ‖V‖² = 2, so τ = 1.
/// assert_eq!(fit.model.matrix(), [0.0, 1.0, 0.0, 1.0]);
/// assert_eq!(fit.model.score(rows.row(0), rows.row(1)) - fit.model.score(rows.row(0), rows.row(2)), 1.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Oasis {
    /// C, the largest τ; the paper tries 10⁻⁹, ..., 10² on validation rows.
    pub aggressiveness: f64,
    /// The number of draws; by default the number of triplets.
    pub steps: Option<usize>,
    /// The seed of the draws.
    pub seed: u64,
    /// How a triplet is drawn.
    pub sampling: Sampling,
    /// What is done to W after the last step.
    pub finish: Finish,
    /// The largest number of bytes a fit may need; by default 2 GiB.
    pub memory_limit: Option<u64>,
}

impl Default for Oasis {
    fn default() -> Self {
        Self {
            aggressiveness: 0.1,
            steps: None,
            seed: 0,
            sampling: Sampling::Anchors,
            finish: Finish::AsLearned,
            memory_limit: None,
        }
    }
}

impl Oasis {
    /// Draws triplets and takes a step for each, starting from W = I, or from the matrix of `start`: online learning from
    /// new triplets.
    pub fn fit(
        &self,
        start: Option<&OasisModel>,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<OasisFit> {
        let mut clock = Stopwatch::start();
        let dim = rows.n_features();
        self.check(dim)?;
        triplets.check(rows.n_rows())?;
        let mut model = match start {
            None => OasisModel::identity(dim),
            Some(start) if start.dim() == dim => start.clone(),
            Some(start) => {
                return Err(Error::data(format!(
                    "the matrix to start from has {} rows, but there are {dim} features",
                    start.dim()
                )));
            }
        };
        let steps = self.steps.unwrap_or(triplets.len());
        let every = (steps / POINTS).min(BETWEEN / (dim * dim)).max(1);
        let mut draws = Draws::new(triplets, rows.n_rows(), self.sampling, self.seed);
        let mut trace: Vec<OasisProgress> = Vec::new();
        let mut stop = Stop::MaxIter;
        let mut step = 0;
        while step < steps {
            // To the next point of the trace, block by block.
            let (first, end) = (step, steps.min(step + every));
            let (mut losses, mut violated) = (0.0, 0);
            while step < end {
                let n = BLOCK.min(end - step);
                let moves: Vec<Move<'_>> = (0..n).map(|_| a_move(rows, draws.next())).collect();
                for taken in model.advance(&moves, self.aggressiveness) {
                    losses += taken.loss;
                    violated += usize::from(taken.loss > 0.0);
                }
                step += n;
            }
            let point = OasisProgress {
                step,
                steps,
                loss: losses / (end - first) as f64,
                violated: violated as f64 / (end - first) as f64,
                seconds: clock.seconds(),
            };
            let answer = clock.notify(observer, &Event::OasisProgress(&point));
            trace.push(point);
            if answer.is_break() {
                stop = Stop::ObserverAsked;
                break;
            }
        }
        match self.finish {
            Finish::AsLearned => {}
            Finish::Symmetric => model.symmetrize(),
            Finish::PositiveSemidefinite => model.make_semidefinite(),
        }
        Ok(OasisFit {
            model: OasisModel::from_matrix(dim, model.values)?,
            trace,
            stop,
            seconds: clock.seconds(),
        })
    }

    fn check(&self, dim: usize) -> Result<()> {
        check_positive("aggressiveness", self.aggressiveness)?;
        if self.steps == Some(0) {
            return Err(Error::param("steps", 0, "a whole number above 0"));
        }
        if dim == 0 {
            return Err(Error::data("the rows have no features"));
        }
        // Matrices of the size of W that exist at once.
        let copies = match self.finish {
            Finish::AsLearned | Finish::Symmetric => 1,
            Finish::PositiveSemidefinite => 4,
        };
        let needed = (dim as u64).saturating_pow(2).saturating_mul(8 * copies);
        let limit = self.memory_limit.unwrap_or(MEMORY);
        if needed > limit {
            let most = (limit / (8 * copies)).isqrt();
            return Err(Error::data(format!(
                "OASIS on {} features needs about {} for its dense matrix, and the limit is {}; reduce the rows to \
                 {} features or fewer, for example by PCA or random projections",
                thousands(dim),
                bytes(needed),
                bytes(limit),
                thousands(most as usize),
            )));
        }
        Ok(())
    }
}

fn a_move(rows: &Rows, (anchor, near, far): (u32, u32, u32)) -> Move<'_> {
    let [anchor, near, far] = [anchor, near, far].map(|row| rows.row(row as usize));
    Move {
        anchor,
        difference: vector::difference(near, far),
    }
}

/// The result of [`Oasis::fit`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OasisFit {
    /// The learned matrix.
    pub model: OasisModel,
    /// The loss over time, a hundred points or more.
    pub trace: Vec<OasisProgress>,
    /// Why it ended: `MaxIter` after all steps, or `ObserverAsked`.
    pub stop: Stop,
    /// Seconds of work; the observer's own time does not count.
    pub seconds: f64,
}
