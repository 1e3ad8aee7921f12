//! The similarities the paper compares itself with (Sec. 4.1), learned from the same triplets and ranked by the same
//! k-NN.
//!
//! | learner | similarity | learned by | for |
//! |---|---|---|---|
//! | [`Diagonal`] | Σ_i w_i x_i x'_i | proximal gradient, to a certified gap | rows as they are: time and memory by non-zeros |
//! | [`Oasis`] | xᵀ W x' | passive-aggressive steps, a triplet each | rows of few features, after PCA or random projections |
//!
//! Settings are kept as given and checked by `fit`, before any work. Both report to an
//! [`Observer`](crate::Observer), which may end the run, and both give the same bytes for the same seed and any number of threads.
//!
//! ```
//! use hdsl::baselines::{Diagonal, Oasis, Penalty};
//! use hdsl::{Rows, Similarity, Triplets};
//! // Feature 1 is in everything, feature 0 only in the two rows that belong together.
//! let rows = Rows::from_parts(2, vec![0, 2, 4, 5], vec![0, 1, 0, 1, 1], vec![1.0, 0.1, 1.0, 0.1, 2.0])?;
//! let mut triplets = Triplets::new();
//! triplets.push(0, 1, 2);
//! let diagonal = Diagonal::new(Penalty::L1, 0.01).fit(&rows, &triplets, &mut ())?.model;
//! let oasis = Oasis::new(0.1).steps(10).fit(&rows, &triplets, &mut ())?.model;
//! for similarity in [&diagonal as &dyn Similarity, &oasis] {
//!     assert!(similarity.score(rows.row(0), rows.row(1)) > similarity.score(rows.row(0), rows.row(2)) + 0.5);
//! }
//! # Ok::<(), hdsl::Error>(())
//! ```

mod diagonal;
mod oasis;

pub use diagonal::{Diagonal, DiagonalFit, DiagonalModel, Penalty};
pub use oasis::{Finish, Oasis, OasisFit, OasisModel, Sampling};
