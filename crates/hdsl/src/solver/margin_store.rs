//! The margins of all triplets, updated incrementally for the hinges: a step takes time for the triplets it affects.
//!
//! Triplets are split into shards by anchor. A shard sums over its own triplets, and the sums are merged, always in the
//! same order and with a number of shards that depends on the problem alone, so that any number of threads gives the
//! same bytes.

use super::motion::{Moving, Projection};
use crate::atoms::ActiveSet;
use crate::error::Result;
use crate::objective::Problem;
use crate::objective::loss::Segments;
use crate::objective::margins::{Found, Margins, Sums};
use crate::objective::shard::ShardTriplets;
use crate::parallel::prelude::*;
use crate::solver::direction::{Direction, line_search};
use crate::triplets::Anchors;
use std::ops::Range;

/// Triplets that make a shard worth its cost.
const SHARD: usize = 1 << 17;
/// More shards than this would cost more in merging than they save.
const MAX_SHARDS: usize = 4;

/// The number of shards for this many triplets: a power of 2, so that two threads have equal shares.
pub(super) fn n_shards(n_triplets: usize) -> usize {
    1 << (n_triplets / SHARD).clamp(1, MAX_SHARDS).ilog2()
}

/// Margins, and what else is known of the same triplets.
pub(super) struct Shard<T> {
    pub(super) margins: Margins,
    pub(super) triplets: T,
    found: Found,
}

pub(super) struct MarginStore<'p, T> {
    problem: &'p Problem<'p>,
    pub(super) segments: Segments,
    pub(super) sigma: f64,
    pub(super) shards: Vec<Shard<T>>,
    /// The direction of the current line search.
    moving: Moving,
}

impl<'p, T: ShardTriplets> MarginStore<'p, T> {
    /// All margins 0; `triplets` gives the triplets of a range of anchors.
    pub(super) fn new(
        problem: &'p Problem<'p>,
        anchors: &Anchors,
        n_shards: usize,
        triplets: impl Fn(Range<usize>) -> Result<T> + Sync,
    ) -> Result<Self> {
        let shard = |rows: Range<usize>| {
            let positions = anchors.starts()[rows.start]..anchors.starts()[rows.end];
            let weight = |position| problem.triplets.weight_at(anchors, position);
            let weights = problem.triplets.weights();
            Ok(Shard {
                triplets: triplets(rows)?,
                margins: Margins::new(
                    positions.len(),
                    weights.map(|_| positions.map(weight).collect()),
                ),
                found: Found::default(),
            })
        };
        let shards = anchors.cut(n_shards).into_par_iter().map(shard);
        let mut store = Self {
            problem,
            segments: (problem.loss.segments()).expect("the loss is a hinge"),
            sigma: 1.0,
            shards: shards.collect::<Result<_>>()?,
            moving: Moving::default(),
        };
        store.settle();
        Ok(store)
    }

    /// Runs on every shard, in parallel if there are several.
    pub(super) fn each<R: Send>(
        &mut self,
        work: impl Fn(&mut Shard<T>) -> R + Sync + Send,
    ) -> Vec<R> {
        match &mut self.shards[..] {
            [only] => vec![work(only)],
            shards => shards.par_iter_mut().map(work).collect(),
        }
    }

    /// Multiplies σ into the margins, and computes segments and sums from them.
    pub(super) fn settle(&mut self) {
        let (factor, segments) = (std::mem::replace(&mut self.sigma, 1.0), self.segments);
        self.each(|shard| {
            if factor != 1.0 {
                shard.margins.rescale(factor);
            }
            shard.margins.settle(segments);
        });
    }

    /// Computes the margins at an iterate.
    pub(super) fn start_at(&mut self, active: &ActiveSet) {
        self.sigma = 0.0;
        self.settle();
        let (problem, mut projection) = (self.problem, Projection::default());
        for (atom, weight) in active.iter() {
            projection.set(problem, atom);
            let z = |row: u32| projection.z[row as usize];
            self.each(|shard| {
                for &anchor in shard.triplets.anchors_in(&projection.rows) {
                    let add = |t, near, far| {
                        let by = weight * problem.lambda * z(anchor) * (z(near) - z(far));
                        shard.margins.add(t, by);
                    };
                    shard.triplets.each_of_anchor(anchor as usize, add);
                }
            });
        }
        self.settle();
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.shards
            .iter()
            .for_each(|shard| sums.merge(&shard.margins.sums));
        sums
    }

    /// f.
    pub(super) fn objective(&mut self) -> f64 {
        let (sigma, segments) = (self.sigma, self.segments);
        let total = self.sums().value(sigma).unwrap_or_else(|| {
            let values = self.each(|shard| shard.margins.value(sigma, segments));
            values.into_iter().sum()
        });
        total / self.problem.total_weight
    }

    /// <M, -∇f>.
    pub(super) fn model_gain(&self) -> f64 {
        self.sums().model_gain(self.sigma) / self.problem.total_weight
    }

    /// Lists the triplets that a direction affects: the anchor has z ≠ 0, and so has near or far.
    pub(super) fn list_affected(&mut self, direction: Direction) {
        let mut moving = std::mem::take(&mut self.moving);
        moving.set(self.problem, direction);
        let (motion, scale, sigma) = (moving.motion(), self.problem.lambda, self.sigma);
        self.each(|shard| {
            shard.margins.begin();
            for &anchor in shard.triplets.anchors_in(motion.rows) {
                let anchor = anchor as usize;
                let (triplets, found) = (&shard.triplets, &mut shard.found);
                found.begin(triplets.of_anchor(anchor).len());
                triplets.each_of_anchor(anchor, |t, near, far| {
                    let atom_margin =
                        motion.atom_margin(scale, anchor, near as usize, far as usize);
                    found.offer(t, atom_margin);
                });
                shard.margins.list(found, sigma);
            }
        });
        self.moving = moving;
    }

    /// The γ in [0, gamma_max] that minimizes f along the direction.
    pub(super) fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.list_affected(direction);
        let (sigma, segments, rate) = (self.sigma, self.segments, self.moving.rate);
        line_search(gamma_max, |gamma| {
            let parts = self.each(|shard| shard.margins.along(sigma, rate, gamma, segments));
            let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
            parts.into_iter().fold((0.0, 0.0), add)
        })
    }

    /// What a margin that is not affected is multiplied by in a step along the direction of the last line search, per γ
    /// and less 1: -1 forward, 1 away, 0 pairwise.
    pub(super) fn rate(&self) -> f64 {
        self.moving.rate
    }

    /// Whether σ has become so small or large that it should be multiplied into the margins.
    pub(super) fn should_settle(&self) -> bool {
        !(1e-12..1e12).contains(&self.sigma)
    }
}
