//! Learn which features make two things similar, from very high-dimensional sparse data.
//!
//! # The problem
//!
//! The data are sparse rows of d features. The supervision is triplets of rows, "x is more similar to y than to z",
//! derived from labels, judgments or clicks. The library learns a similarity S_M(x, x') = xᵀ M x' that satisfies the
//! triplets and uses few features. Time and memory depend on the non-zeros of the data, not on d². Following Liu, Bellet
//! and Sha (*Similarity Learning for High-Dimensional Sparse Data*, AISTATS 2015), the problem is
//!
//! ```text
//! minimize    f(M) = (1/T) Σ_t ℓ(m_t),   m_t = S_M(x_t, y_t) - S_M(x_t, z_t)           (Eq. 1)
//! subject to  M in the convex hull of the atoms λ (e_i ± e_j)(e_i ± e_j)ᵀ
//! ```
//!
//! If one row has feature i and the other feature j, a plus atom increases their similarity and a minus atom decreases
//! it. Every iteration adds one atom or changes the weight of one (a Frank-Wolfe method with away steps), so the iterates are
//! sparse, positive semi-definite and small to store. Early stopping is the regularizer.
//!
//! # A first fit
//!
//! ```
#![doc = include_str!("../examples/first_fit.rs")]
//! ```
//!
//! From there: [`read_dataset`] instead of [`parse_dataset`] for files, validation rows in [`TrainData::valid`] with
//! several λ in [`TrainConfig::lambda`] to choose from, [`tune::tune`] to choose everything, [`KnnIndex`] to rank,
//! [`knn::classify`] to classify, [`Model::transform_rows`] for other tools, [`BilinearModel::explain_pair`] for reasons.
//!
//! # Modules
//!
//! Each may use those above it, never those below.
//!
//! | module | contents | start reading at |
//! |---|---|---|
//! | [`error`] | errors about what a caller gave; broken invariants panic | [`Error`] |
//! | [`format`](mod@format) | numbers and sizes in messages | |
//! | [`eigen`] | eigenvalues and eigenvectors of small dense matrices | [`eigen::symmetric_eigen`] |
//! | [`data`] | sparse rows, labels, readers and writers, preprocessing, text vectorization | [`Rows`], [`read_dataset`], [`Preprocessor`] |
//! | [`atoms`] | pairs of features, convex combinations of them, steps and paths | [`Atom`], [`ActiveSet`] |
//! | [`checkpoint`] | the steps of a training in a file, to go on after an interruption | [`checkpoint::Checkpoint`] |
//! | [`observer`] | events of a run, and why it ended | [`Observer`], [`Stop`] |
//! | [`similarity`] | dot product, cosine, learned bilinear form, explanations | [`Similarity`], [`BilinearModel`] |
//! | [`knn`] | exact neighbors under any similarity, prediction rules, error rates | [`KnnIndex`], [`PredictionRule`] |
//! | [`triplets`] | by neighbors, at random, from lists, clicks and judgments | [`TripletSource`], [`Triplets`] |
//! | [`measures`] | triplet accuracy; nDCG, average precision, recall and reciprocal rank | [`measures::TripletAccuracy`], [`measures::RankedGains`] |
//! | [`objective`] | the losses of a margin | [`LossKind`] |
//! | [`solver`] | Alg. 1 on triplets and preprocessed rows | [`SolverParams`], [`Solver::fit`] |
//! | [`baselines`] | the methods that the paper compares with: one weight per feature, OASIS | [`baselines::Diagonal`], [`baselines::Oasis`] |
//! | [`model`] | the saved model, its configuration, its file and the command line that trains it again | [`Model`], [`TrainConfig`] |
//! | [`index`] | rows to search under a model, with labels, ids and texts, in memory and in a file | [`Index`] |
//! | [`mod@train`] | preprocessing, triplets, one run per λ, mining rounds, ensembles, validation | [`train()`], [`TrainData`] |
//! | [`cluster`] | training over shards of rows and triplets on several machines | [`cluster::train`], [`cluster::Shard`] |
//! | [`ranking`] | a similarity of queries and documents from judgments, and its nDCG on held-out queries | [`ranking::rank`] |
//! | [`tune`] | the search for the best configuration | [`tune::tune`] |
//!
//! The library is silent: it never prints, and reports events to one [`Observer`], which may end the run; `()` ignores
//! them. Same seed, same bytes, for any number of threads. There is no unsafe code.

pub mod atoms;
pub mod baselines;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
mod cancel;
pub mod checkpoint;
pub mod cluster;
pub mod data;
pub mod eigen;
pub mod error;
pub mod format;
pub mod index;
pub mod knn;
pub mod measures;
pub mod model;
mod named;
pub mod objective;
pub mod observer;
mod parallel;
pub(crate) mod random;
pub mod ranking;
pub mod similarity;
pub mod solver;
mod sort;
pub mod train;
pub mod triplets;
pub mod tune;

pub use atoms::{ActiveSet, Atom, Sign};
pub use cancel::CancelToken;
pub use data::{
    Dataset, Format, IndexBase, Labels, Preprocess, Preprocessor, ReadOptions, Rows, SparseRow,
    parse_dataset, read_dataset,
};
pub use error::{Error, Result};
pub use index::Index;
pub use knn::{KnnIndex, Neighbor, PredictionRule, Vote};
pub use model::{Model, ModelParts, TrainConfig};
pub use objective::LossKind;
pub use observer::{Gap, Iteration, Observer, Stop};
pub use similarity::{BilinearModel, Dot, Normalization, Similarity};
pub use solver::{Run, Solver, SolverParams, StepRule};
pub use train::{Labeled, TrainData, Trained, train};
pub use triplets::{TripletSource, Triplets};
