//! The similarities the paper compares itself with (Sec. 4.1), learned from the same triplets and evaluated by the same
//! k-NN search.
//!
//! | learner | similarity | learned by | for |
//! |---|---|---|---|
//! | [`Diagonal`] | Σ_i w_i x_i x'_i | proximal gradient, to a certified gap | sparse rows: time and memory depend on the non-zeros |
//! | [`Oasis`] | xᵀ W x' | passive-aggressive steps, one per drawn triplet | rows of few features, after PCA or random projections |
//!
//! Settings are public fields, checked by `fit` before any work. Both learners report their progress to an observer, which
//! may end the run, and give the same bytes for the same seed and any number of threads.
//!
//! ```
//! use hdsl::baselines::{Diagonal, Oasis};
//! use hdsl::{Rows, Similarity, Triplets};
//! // Feature 1 is in every row, feature 0 only in the two rows that belong together.
//! let rows = Rows::from_parts(2, vec![0, 2, 4, 5], vec![0, 1, 0, 1, 1], vec![1.0, 0.1, 1.0, 0.1, 2.0])?;
//! let mut triplets = Triplets::new();
//! triplets.push(0, 1, 2);
//! let diagonal = Diagonal::default().fit(None, &rows, &triplets, &mut ())?.model;
//! let oasis = Oasis { steps: Some(10), ..Oasis::default() }.fit(None, &rows, &triplets, &mut ())?.model;
//! for similarity in [&diagonal as &dyn Similarity, &oasis] {
//!     assert!(similarity.score(rows.row(0), rows.row(1)) > similarity.score(rows.row(0), rows.row(2)) + 0.5);
//! }
//! # Ok::<(), hdsl::Error>(())
//! ```

mod diagonal;
mod oasis;

pub use crate::observer::{DiagonalIteration, OasisProgress};
pub use diagonal::{Diagonal, DiagonalFit, DiagonalModel, Penalty};
pub use oasis::{Finish, Oasis, OasisFit, OasisModel, Sampling};

use crate::error::{Error, Result};

fn check_positive(name: &'static str, value: f64) -> Result<()> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err(Error::param(name, value, "a finite number above 0")),
    }
}
