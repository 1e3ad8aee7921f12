//! The best few of many, without sorting them all.

use super::Neighbor;
use std::cmp::Ordering;

/// Up to this many neighbors are kept in order by insertion; more are selected from a full list.
pub(super) const INSERTION_K: usize = 32;

/// The best `k` seen so far. For small `k` the list is always in order; otherwise it is cut down when it has
/// twice the length it needs.
#[derive(Default)]
pub(super) struct Top {
    k: usize,
    list: Vec<Neighbor>,
}

impl Top {
    pub(super) fn reset(&mut self, k: usize) {
        self.k = k;
        self.list.clear();
    }

    fn sorted(&self) -> bool {
        self.k <= INSERTION_K
    }

    /// Whether a row of this score may enter. Cheap, and exact for small `k`; "maybe" counts as yes.
    #[inline]
    pub(super) fn would_take(&self, row: u32, score: f64) -> bool {
        if !self.sorted() || self.list.len() < self.k {
            return true;
        }
        let last = self.list[self.k - 1];
        score > last.score || (score == last.score && row < last.row)
    }

    /// The score of the last of `k`, below which nothing enters; for small `k` only.
    pub(super) fn floor(&self) -> f64 {
        debug_assert!(self.sorted(), "the list is in order");
        match self.list.get(self.k - 1) {
            Some(last) => last.score,
            None => f64::NEG_INFINITY,
        }
    }

    pub(super) fn offer(&mut self, row: u32, score: f64) {
        // Not-a-number can only come from values near the limits of f64; it ranks last.
        let score = if score.is_nan() {
            f64::NEG_INFINITY
        } else {
            score
        };
        let new = Neighbor { row, score };
        if self.sorted() {
            if !self.would_take(row, score) {
                return;
            }
            let at = self.list.partition_point(|n| order(n, &new).is_lt());
            self.list.truncate(self.k - 1);
            self.list.insert(at, new);
        } else {
            self.list.push(new);
            if self.list.len() >= self.k.saturating_mul(2) {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        if self.list.len() > self.k {
            self.list.select_nth_unstable_by(self.k - 1, order);
            self.list.truncate(self.k);
        }
    }

    /// The best, nearest first.
    pub(super) fn finish(&mut self) -> &[Neighbor] {
        if !self.sorted() {
            self.cut();
            self.list.sort_unstable_by(order);
        }
        &self.list
    }
}

/// The larger score first, then the lower row.
fn order(a: &Neighbor, b: &Neighbor) -> Ordering {
    b.score
        .partial_cmp(&a.score)
        .expect("scores that are not numbers were replaced")
        .then(a.row.cmp(&b.row))
}
