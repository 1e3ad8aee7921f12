//! For benchmarks: the memory that the parts of an iteration must read at least.

use super::SymmetrizedGradient;
use crate::objective::shard::ShardTriplets;
use crate::solver::margin_store::Shard;

/// Memory that a part of an iteration must read at least.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// What is read one after the other.
    pub bytes: usize,
    /// Cache lines that are read in no foreseeable order.
    pub lines: usize,
}

impl SymmetrizedGradient<'_> {
    /// The number of changed triplets of each shard.
    pub(in crate::solver) fn n_changed(&self) -> Vec<usize> {
        let shards = self.margins.shards.iter();
        shards.map(|shard| shard.triplets.n_changed).collect()
    }

    /// For u = C X_{:,i}.
    pub(in crate::solver) fn product_traffic(&self, feature: u32) -> Traffic {
        let rows = self.problem.lists.column(feature).0;
        let shards = self.margins.shards.iter();
        let parts = shards.map(|shard| shard.triplets.coefficients.traffic(rows, self.dense.len()));
        parts.fold(Traffic::default(), |sum, (bytes, lines)| Traffic {
            bytes: sum.bytes + bytes,
            lines: sum.lines + lines,
        })
    }

    /// For Xᵀ u: the values of all rows with u ≠ 0.
    pub(in crate::solver) fn row_traffic(&self) -> Traffic {
        let rows = &self.problem.rows;
        let u = self.search.product.u.iter().enumerate();
        let values = u.filter(|(_, u)| **u != 0.0).map(|(q, _)| rows.nnz_of(q));
        Traffic {
            bytes: rows.bytes_per_value() * values.sum::<usize>(),
            lines: 0,
        }
    }

    /// For the last line search: near and far row of the triplets of every anchor with z ≠ 0, and the margins of those that
    /// are affected. The triplets of an anchor are next to each other.
    pub(in crate::solver) fn line_search_traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for Shard { margins, triplets } in &self.margins.shards {
            let anchors = triplets.anchors_in(&self.margins.motion.main.rows);
            let of_anchor = |&anchor: &u32| triplets.of_anchor(anchor as usize).len();
            traffic.bytes += 8 * anchors.iter().map(of_anchor).sum::<usize>();
            traffic.bytes += 9 * margins.n_affected();
            traffic.lines += 3 * anchors.len();
        }
        traffic
    }

    /// For the step since the number of changed triplets was `before`: the codes of all triplets, and what the two pairs of
    /// each changed triplet share.
    pub(in crate::solver) fn update_traffic(&self, before: &[usize]) -> Traffic {
        let mut traffic = Traffic::default();
        for (Shard { margins, triplets }, before) in self.margins.shards.iter().zip(before) {
            let n = triplets.n_changed - before;
            let (shared, bytes) = triplets.mean_shared();
            traffic.bytes += 2 * margins.len() + (2.0 * n as f64 * (8.0 + bytes * shared)) as usize;
            // Places and values of the pairs, and D of what they share. Triplets of one anchor may share entries of D, so this
            // is too high where many triplets of an anchor change.
            traffic.lines += (n as f64 * (2.0 + 2.0 * shared)) as usize;
        }
        traffic
    }
}
