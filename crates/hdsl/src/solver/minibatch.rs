//! Mini-batches (Table 1 of the paper): the gradient is taken over triplets drawn at random in every iteration.
//!
//! The line search and the objective are over all triplets. So for the hinges all margins are updated incrementally, by
//! a [`MarginStore`] without anything else; its triplets are made again when they are needed.

use super::margin_store::{self, MarginStore};
use super::recomputed::MarginSource;
use crate::atoms::{ActiveSet, Atom};
use crate::objective::Problem;
use crate::objective::shard::ShardTriplets;
use crate::random;
use crate::solver::direction::Direction;
use crate::triplets::Anchors;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use std::sync::Arc;

/// Some triplets with their margins and gradient weights.
pub(super) struct Sample {
    pub(super) triplets: Vec<u32>,
    pub(super) margins: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

impl Sample {
    /// The triplets at these positions.
    pub(super) fn at<'p>(
        problem: &Problem<'_>,
        margins: &impl MarginSource<'p>,
        positions: impl Iterator<Item = usize>,
    ) -> Self {
        let (triplets, margins): (Vec<u32>, Vec<f64>) = positions.map(|p| margins.at(p)).unzip();
        let weights = problem.gradient_weights(triplets.iter().copied(), &margins);
        Self {
            triplets,
            margins,
            weights,
        }
    }

    /// A batch of this size.
    pub(super) fn draw<'p>(
        problem: &Problem<'_>,
        margins: &impl MarginSource<'p>,
        size: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let positions = random::sample(rng, problem.triplets.len(), size);
        Self::at(problem, margins, positions.iter().map(|&p| p as usize))
    }

    /// <B - M, -∇f> of some atoms over this batch.
    pub(super) fn rates(&self, problem: &Problem<'_>, atoms: &[Atom]) -> Vec<f64> {
        let triplets = self.triplets.iter().map(|&t| t as usize);
        let total: f64 = triplets.clone().map(|t| problem.triplets.weight(t)).sum();
        let triplets: Vec<_> = triplets.map(|t| problem.triplets.get(t)).collect();
        let weighted = self.weights.iter().zip(&self.margins);
        let of_model = weighted.map(|(w, m)| w * m).sum::<f64>() / total;
        let rate = |&atom: &Atom| {
            let projected = problem.project(atom);
            let z = |row: u32| projected[row as usize];
            let weighted = triplets.iter().zip(&self.weights);
            let gains = weighted.map(|(&(a, near, far), w)| w * z(a) * (z(near) - z(far)));
            problem.lambda * gains.sum::<f64>() / total - of_model
        };
        atoms.iter().map(rate).collect()
    }
}

/// The triplets of a shard, made again when they are needed.
pub(super) struct OnDemand<'p> {
    problem: &'p Problem<'p>,
    by_anchor: Arc<Anchors>,
    anchors: Range<usize>,
}

impl OnDemand<'_> {
    /// The position of the first.
    fn first(&self) -> usize {
        self.by_anchor.starts()[self.anchors.start]
    }
}

impl ShardTriplets for OnDemand<'_> {
    fn anchors(&self) -> Range<usize> {
        self.anchors.clone()
    }

    fn of_anchor(&self, anchor: usize) -> Range<usize> {
        let Range { start, end } = self.by_anchor.range(anchor);
        start - self.first()..end - self.first()
    }

    #[inline]
    fn each_of_anchor(&self, anchor: usize, mut each: impl FnMut(usize, u32, u32)) {
        let first = self.first();
        let each = |position, near, far| each(position - first, near, far);
        let triplets = self.problem.triplets;
        triplets.each_of_anchor(&self.by_anchor, anchor, each);
    }
}

/// The margins of all triplets, without anything else. Positions are in the order of anchors.
pub(crate) type StoredMargins<'p> = MarginStore<'p, OnDemand<'p>>;

impl<'p> MarginSource<'p> for StoredMargins<'p> {
    fn new(problem: &'p Problem<'p>) -> Self {
        Self::in_shards(problem, margin_store::n_shards(problem.triplets.len()))
    }

    fn start_at(&mut self, active: &ActiveSet) {
        MarginStore::start_at(self, active);
    }

    fn objective(&mut self) -> f64 {
        MarginStore::objective(self)
    }

    fn at(&self, position: usize) -> (u32, f64) {
        let after = self
            .shards
            .partition_point(|s| s.triplets.first() <= position);
        let shard = &self.shards[after - 1];
        let margin = shard
            .margins
            .get(position - shard.triplets.first(), self.sigma);
        (shard.triplets.by_anchor.triplet(position) as u32, margin)
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        MarginStore::search_line(self, direction, gamma_max)
    }

    fn advance(&mut self, gamma: f64, active: &ActiveSet) {
        let rate = self.rate();
        if 1.0 + rate * gamma <= 0.0 {
            return MarginStore::start_at(self, active);
        }
        self.sigma *= 1.0 + rate * gamma;
        let (sigma, segments) = (self.sigma, self.segments);
        let ignore = |_, _| {};
        self.each(|shard| shard.margins.advance(rate, gamma, sigma, segments, ignore));
        if self.should_settle() {
            self.settle();
        }
    }
}

impl<'p> StoredMargins<'p> {
    pub(super) fn in_shards(problem: &'p Problem<'p>, n_shards: usize) -> Self {
        let by_anchor = Arc::new(problem.triplets.by_anchor(problem.rows.n_rows()));
        let triplets = |anchors| {
            Ok(OnDemand {
                problem,
                by_anchor: Arc::clone(&by_anchor),
                anchors,
            })
        };
        MarginStore::new(problem, &by_anchor, n_shards, triplets)
            .expect("listing ranges of anchors does not fail")
    }
}
