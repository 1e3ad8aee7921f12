//! Messages between coordinator and shard.

use crate::solver::sharded::{Reply, Request};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Begins a run with this λ and β, at M = 0.
    Begin { lambda: f64, base: f64 },
    /// Requests of the solver.
    Solve(Vec<Request>),
    /// See [`Shard::base_margins`](super::Shard::base_margins).
    BaseMargins { every: usize, offset: usize },
    /// Evaluates an iterate, given λ, β and its atoms (features, whether the sign is minus, weight), in external indices.
    Evaluate {
        lambda: f64,
        base: f64,
        atoms: Vec<(u32, u32, bool, f64)>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Begun,
    /// The answer to requests of the solver before a run has begun, as in a shard that replaces a lost one.
    NotBegun,
    Solved(Vec<Reply>),
    /// For each validation row, its nearest rows of this shard: (row, score), nearest first.
    Neighbors(Vec<Vec<(u32, f64)>>),
    /// The weights of held-out triplets: satisfied, tied and all.
    HeldOut([f64; 3]),
    /// The sum of base margins, and their number.
    BaseMargins(f64, usize),
    /// What went wrong.
    Failed(String),
}
