//! Training over rows and triplets on several machines.
//!
//! A *shard* has a range of the training rows: their triplets, all rows that these triplets name, and, if there are
//! validation rows, those too ([`Shard`]). The *coordinator* ([`train`]) runs Alg. 1 and has no rows. The caller provides the
//! [`Link`] between them: it makes the shards, carries messages, and replaces what was lost. For the same rows and seed, the
//! result has the same atoms as that of [`crate::train()`], and weights that differ by rounding errors.

mod coordinator;
mod message;
mod shard;
#[cfg(test)]
mod tests;

pub use crate::objective::ColumnSums;
pub use crate::train::WeightSums;
pub use coordinator::{ClusterData, ClusterTrained, train};
pub use shard::{Shard, ShardParts, ShardTriplets};

use crate::error::Result;
use crate::model::Model;

/// What [`train`] needs to know of the shards that were made.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The features that atoms may use, in internal order, as [`ColumnSums::order`] gives them for all training rows.
    pub features: Vec<u32>,
    /// The number of triplets of all shards.
    pub n_triplets: usize,
    /// The sum of the weights of these triplets.
    pub total_weight: f64,
    /// Sums over the preprocessed training rows.
    pub sums: WeightSums,
    /// The class of each row, if the shards have only some of the training rows.
    pub codes: Option<Vec<u32>>,
    /// The number of triplets that the caller passed, if triplets are not mined.
    pub given: Option<usize>,
}

/// The shards, as the coordinator reaches them.
pub trait Link {
    /// Makes the shards of one model: triplets drawn with this seed from a share of the rows or anchors.
    fn prepare(&self, seed: u64, subsample: f64) -> Result<Prepared>;
    /// Adds to all shards the triplets of a mining round: the nearest rows under this model.
    fn mine(&self, model: Model) -> Result<Prepared>;
    /// Sends a message to every shard, and returns the answers in the order of shards.
    /// [`Error::WorkerLost`](crate::Error::WorkerLost) if a shard is gone.
    fn ask(&self, message: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Makes the same shards again after one was lost, or fails with [`Error::DataLost`](crate::Error::DataLost).
    fn recover(&self, reason: &str) -> Result<()>;
}
