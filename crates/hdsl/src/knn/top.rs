//! The k best of many rows.

use super::Neighbor;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The best `k` rows seen so far.
pub(super) struct TopK {
    k: usize,
    /// The worst of them is the greatest.
    heap: BinaryHeap<Ranked>,
}

impl TopK {
    pub(super) fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::new(),
        }
    }

    /// The score below which no row enters.
    #[inline]
    pub(super) fn floor(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.k => worst.0.score,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Whether a row of this score enters.
    #[inline]
    pub(super) fn accepts(&self, row: u32, score: f64) -> bool {
        self.heap.len() < self.k
            || (self.heap.peek()).is_some_and(|worst| Ranked(Neighbor { row, score }) < *worst)
    }

    /// Enters a row if it is among the best.
    pub(super) fn offer(&mut self, row: u32, score: f64) {
        // Not-a-number can only come from values near the limits of f64; it ranks last.
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

    /// The best, nearest first.
    pub(super) fn into_list(self) -> Vec<Neighbor> {
        let best = self.heap.into_sorted_vec();
        best.into_iter().map(|ranked| ranked.0).collect()
    }
}

/// A neighbor in the order of lists: the larger score first, then the lower row. Scores are numbers.
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
