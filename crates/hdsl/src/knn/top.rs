//! Selection of the k nearest rows.

use super::Neighbor;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The `k` nearest of the rows pushed so far.
pub(crate) struct TopK {
    k: usize,
    /// A max-heap in ranking order, so that the last-ranked row is on top.
    heap: BinaryHeap<Ranked>,
}

impl TopK {
    pub(crate) fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::new(),
        }
    }

    /// The lowest score that a row needs to be among the `k` nearest; -∞ while there are fewer than `k` rows.
    #[inline]
    pub(crate) fn threshold(&self) -> f64 {
        match self.heap.peek() {
            Some(last) if self.heap.len() == self.k => last.0.score,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Whether a row with this score is among the `k` nearest so far.
    #[inline]
    pub(super) fn accepts(&self, row: u32, score: f64) -> bool {
        self.heap.len() < self.k
            || (self.heap.peek()).is_some_and(|last| Ranked(Neighbor { row, score }) < *last)
    }

    /// Adds a row if it is among the `k` nearest so far.
    pub(crate) fn push(&mut self, row: u32, score: f64) {
        // NaN results only from overflow, where values are near the limits of f64. It ranks last.
        let score = if score.is_nan() {
            f64::NEG_INFINITY
        } else {
            score
        };
        if self.accepts(row, score) {
            if self.heap.len() == self.k {
                self.heap.pop();
            }
            self.heap.push(Ranked(Neighbor { row, score }));
        }
    }

    /// The `k` nearest rows, nearest first.
    pub(crate) fn into_sorted(self) -> Vec<Neighbor> {
        let nearest = self.heap.into_sorted_vec();
        nearest.into_iter().map(|ranked| ranked.0).collect()
    }
}

/// A neighbor, in ranking order: by decreasing score, then by increasing row number. The score is not NaN.
#[derive(PartialEq)]
struct Ranked(Neighbor);

impl Eq for Ranked {}

impl Ord for Ranked {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.0.score.partial_cmp(&self.0.score);
        by_score
            .unwrap_or(Ordering::Equal)
            .then(self.0.row.cmp(&other.0.row))
    }
}

impl PartialOrd for Ranked {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
