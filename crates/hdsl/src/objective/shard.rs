//! The triplets of a shard.

use std::ops::Range;

/// The triplets of a range of anchors, numbered from 0 in the order of anchors.
pub(crate) trait ShardTriplets: Send + Sync {
    /// The anchors.
    fn anchors(&self) -> Range<usize>;
    /// The triplets of an anchor.
    fn of_anchor(&self, anchor: usize) -> Range<usize>;
    /// Calls `each` for every triplet of an anchor, with its number and its near and far rows.
    fn each_of_anchor(&self, anchor: usize, each: impl FnMut(usize, u32, u32));

    /// The part of a sorted list of rows that are anchors of this shard.
    fn anchors_in<'a>(&self, rows: &'a [u32]) -> &'a [u32] {
        let anchors = self.anchors();
        let from = rows.partition_point(|&row| (row as usize) < anchors.start);
        let to = rows.partition_point(|&row| (row as usize) < anchors.end);
        &rows[from..to]
    }
}
