//! Mini-batches (Table 1 of the paper): the gradient is taken over triplets drawn at random in every iteration.
//!
//! The line search and the objective are over all triplets. For the hinge losses, a [`MarginStore`] therefore updates
//! all margins incrementally. It stores margins only; triplets are generated when they are needed.

use super::margin_store::{self, MarginStore};
use super::recomputed::{MarginSource, TripletMargin};
use crate::atoms::ActiveSet;
use crate::objective::Problem;
use crate::objective::shard::ShardTriplets;
use crate::solver::direction::Direction;
use crate::triplets::Anchors;
use std::ops::Range;
use std::sync::Arc;

/// The triplets of a shard, generated when they are needed.
pub(super) struct OnDemand<'p> {
    problem: &'p Problem<'p>,
    by_anchor: Arc<Anchors>,
    anchors: Range<usize>,
}

impl OnDemand<'_> {
    /// The position of the first triplet.
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

/// The margins of all triplets, without pair coefficients. Positions are in the order of anchors.
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

    fn at(&self, position: usize) -> (u32, TripletMargin) {
        let after = self
            .shards
            .partition_point(|s| s.triplets.first() <= position);
        let shard = &self.shards[after - 1];
        let t = position - shard.triplets.first();
        let margin = TripletMargin {
            total: shard.margins.get(t),
            learned: shard.margins.learned(t),
        };
        (shard.triplets.by_anchor.triplet(position) as u32, margin)
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        MarginStore::search_line(self, direction, gamma_max)
    }

    fn advance(&mut self, gamma: f64, active: &ActiveSet) {
        if self.starts_again(gamma) {
            return MarginStore::start_at(self, active);
        }
        self.each(|shard| shard.margins.advance(gamma, |_, _| {}));
        if self.should_settle() {
            self.each(|shard| shard.margins.settle());
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
        let (base, all) = (&problem.base, problem.triplets);
        MarginStore::new(problem, base, all, &by_anchor, n_shards, triplets)
            .expect("listing ranges of anchors does not fail")
    }
}
