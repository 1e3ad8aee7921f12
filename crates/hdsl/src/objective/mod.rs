//! The objective of Eq. 1 and its gradient:
//!
//! minimize f(M) = (1/V) Σ_t v_t ℓ(b_t + <A^t, M>) over M in conv{ λ(e_i ± e_j)(e_i ± e_j)ᵀ },
//!
//! where v_t is the weight of triplet t (1 in the paper), V is the sum of all v_t, and b_t is the margin of the base
//! similarity (0 in the paper).

pub(crate) mod active_features;
mod base;
pub(crate) mod incremental;
pub(crate) mod loss;
pub(crate) mod margins;
mod problem;
pub(crate) mod shard;

pub(crate) use base::Base;
pub use loss::LossKind;
pub use problem::ColumnSums;
pub(crate) use problem::{COLUMNS, Features, Problem, Scored, candidates};
