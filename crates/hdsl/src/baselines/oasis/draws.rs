//! Random draws of triplets.

use super::Sampling;
use crate::random;
use crate::triplets::{Anchors, Triplets};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::ops::Range;

/// Apart from the streams of the solver, of mining, splitting and planting.
const STREAM: u64 = 3;

/// An endless sequence of random triplets.
pub(super) struct Draws<'a> {
    triplets: &'a Triplets,
    rng: ChaCha8Rng,
    anchors: Anchors,
    /// The rows that are an anchor, if an anchor is drawn first.
    rows: Option<Vec<u32>>,
    /// Sums of the triplet weights before each position, and of all.
    sums: Vec<f64>,
}

impl<'a> Draws<'a> {
    /// Draws from triplets that were checked against `n_rows` rows.
    pub(super) fn new(
        triplets: &'a Triplets,
        n_rows: usize,
        sampling: Sampling,
        seed: u64,
    ) -> Self {
        let anchors = triplets.by_anchor(n_rows);
        let is_anchor = |&row: &u32| !anchors.range(row as usize).is_empty();
        let rows =
            (sampling == Sampling::Anchors).then(|| (0..n_rows as u32).filter(is_anchor).collect());
        let sums = (0..triplets.len()).scan(0.0, |sum, position| {
            *sum += triplets.weight_at(&anchors, position);
            Some(*sum)
        });
        Self {
            triplets,
            rng: random::rng(seed, STREAM),
            rows,
            sums: std::iter::once(0.0).chain(sums).collect(),
            anchors,
        }
    }

    /// Anchor, near, far, each with a probability proportional to the weight of the triplet.
    pub(super) fn next(&mut self) -> (u32, u32, u32) {
        let Range { start, end } = match &self.rows {
            Some(rows) => {
                let anchor = rows[random::below(&mut self.rng, rows.len())];
                self.anchors.range(anchor as usize)
            }
            None => 0..self.triplets.len(),
        };
        let (low, high) = (self.sums[start], self.sums[end]);
        let part = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let at = low + part * (high - low);
        let position = start + self.sums[start + 1..end].partition_point(|&sum| sum <= at);
        self.triplets.get(self.anchors.triplet(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triplets_come_as_often_as_they_should() {
        let mut triplets = Triplets::new();
        triplets.push_weighted(2, 0, 1, 1.0);
        triplets.push_weighted(0, 1, 2, 3.0);
        triplets.push_weighted(2, 1, 0, 2.0);
        triplets.push_weighted(0, 2, 1, 6.0);
        let mut unweighted = Triplets::new();
        triplets
            .iter()
            .for_each(|(a, n, f)| unweighted.push(a, n, f));
        for (triplets, sampling, expected) in [
            (
                &triplets,
                Sampling::Triplets,
                [1.0 / 12.0, 0.25, 2.0 / 12.0, 0.5],
            ),
            (
                &triplets,
                Sampling::Anchors,
                [1.0 / 6.0, 1.0 / 6.0, 2.0 / 6.0, 2.0 / 6.0],
            ),
            (&unweighted, Sampling::Triplets, [0.25; 4]),
            (&unweighted, Sampling::Anchors, [0.25; 4]),
        ] {
            let mut draws = Draws::new(triplets, 3, sampling, 1);
            let mut counts = [0; 4];
            for _ in 0..60_000 {
                let drawn = draws.next();
                let which = triplets.iter().position(|triplet| triplet == drawn);
                counts[which.unwrap()] += 1;
            }
            for (count, share) in counts.iter().zip(expected) {
                let off = f64::from(*count) / 60_000.0 - share;
                assert!(off.abs() < 0.01, "{sampling:?} {counts:?}");
            }
        }
    }
}
