//! Algorithm 1 over shards of triplets in several processes.
//!
//! The coordinator runs the algorithm with the engine of `engine.rs`. Each shard has a range of anchors with their triplets,
//! all rows that these triplets name, and a local engine; it answers the requests of `protocol.rs` (`worker.rs`). Sums are
//! merged in the order of shards, so the same shards give the same bytes.

mod engine;
mod line;
mod merge;
mod protocol;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use engine::{Sharded, Shards};
pub(crate) use protocol::{Reply, Request, decode, encode};
pub(crate) use worker::{ShardEngine, answer, empty_reply, shard_engine};
