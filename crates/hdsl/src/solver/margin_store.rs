//! The margins of all triplets, updated incrementally for the hinge losses: the time of a step is mostly proportional
//! to the number of triplets it affects.
//!
//! Triplets are split into shards by anchor. A shard sums over its own triplets, and the sums are merged in the order
//! of the shards. The number of shards depends on the problem only, so the result is bitwise equal for any number of
//! threads.

use super::motion::{Motion, Projection};
use crate::atoms::ActiveSet;
use crate::error::Result;
use crate::objective::loss::Segments;
use crate::objective::margins::{Margins, Sums};
use crate::objective::shard::ShardTriplets;
use crate::objective::{Base, Problem};
use crate::parallel;
use crate::solver::direction::{Direction, line_search};
use crate::triplets::{Anchors, Triplets};
use std::ops::Range;

/// The number of triplets per shard from which another shard is worth its cost.
const SHARD: usize = 1 << 17;
/// The largest number of shards. Merging more shards would take more time than they save.
const MAX_SHARDS: usize = 4;

/// The number of shards for this many triplets: a power of 2, so that two threads have equal shares.
pub(super) fn n_shards(n_triplets: usize) -> usize {
    1 << (n_triplets / SHARD).clamp(1, MAX_SHARDS).ilog2()
}

/// The margins of a range of triplets, and the triplets themselves with all else that `T` stores of them.
pub(super) struct Shard<T> {
    pub(super) margins: Margins,
    pub(super) triplets: T,
}

pub(super) struct MarginStore<'p, T> {
    problem: &'p Problem<'p>,
    pub(super) shards: Vec<Shard<T>>,
    /// The direction of the current line search.
    pub(super) motion: Motion,
}

impl<'p, T: ShardTriplets> MarginStore<'p, T> {
    /// A store at M = 0, on top of this base. `make` returns the triplets of a range of anchors. The store of a gradient
    /// alone has gradient weights as its weights, and no base.
    pub(super) fn new(
        problem: &'p Problem<'p>,
        base: &Base,
        triplets: &Triplets,
        anchors: &Anchors,
        n_shards: usize,
        make: impl Fn(Range<usize>) -> Result<T> + Sync,
    ) -> Result<Self> {
        // For other losses, the store is that of a gradient alone. At margin 0 the slope of every hinge loss is -1.
        let segments = problem.loss.segments();
        let segments = segments.unwrap_or(Segments { has_linear: true });
        let shard = |rows: Range<usize>| -> Result<Shard<T>> {
            let positions = anchors.starts()[rows.start]..anchors.starts()[rows.end];
            let n = positions.len();
            let weight = |position| triplets.weight_at(anchors, position);
            let weights = triplets.weights().map(|_| positions.map(weight).collect());
            let base = base.margins_of(&problem.rows, triplets, anchors, rows.clone());
            Ok(Shard {
                triplets: make(rows)?,
                margins: Margins::new(segments, n, weights, base),
            })
        };
        Ok(Self {
            problem,
            shards: parallel::try_map_each(anchors.cut(n_shards), 1, shard)?,
            motion: Motion::default(),
        })
    }

    /// Calls `work` for every shard, in parallel if there are several.
    pub(super) fn each<R: Send>(
        &mut self,
        work: impl Fn(&mut Shard<T>) -> R + Sync + Send,
    ) -> Vec<R> {
        match &mut self.shards[..] {
            [only] => vec![work(only)],
            shards => parallel::map_each(shards.iter_mut().collect(), work),
        }
    }

    /// The common factor of all learned margins.
    pub(super) fn sigma(&self) -> f64 {
        self.shards[0].margins.sigma()
    }

    /// Computes the margins at an iterate.
    pub(super) fn start_at(&mut self, active: &ActiveSet) {
        self.each(|shard| shard.margins.clear());
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
        self.each(|shard| shard.margins.settle());
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
        let total = self.sums().value(self.sigma()).unwrap_or_else(|| {
            let values = self.each(|shard| shard.margins.value());
            values.into_iter().sum()
        });
        total / self.problem.total_weight
    }

    /// <M, -∇f>.
    pub(super) fn model_gain(&self) -> f64 {
        let [sum, square] = self.sums().moments(self.sigma());
        (sum - square) / self.problem.total_weight
    }

    /// Lists the triplets that a direction affects, and begins a line search. A triplet is affected if the anchor has
    /// z ≠ 0, and near and far have different z. All learned margins are also multiplied by 1 + rate γ.
    pub(super) fn list_affected(&mut self, direction: Direction, rate: f64) {
        let mut motion = std::mem::take(&mut self.motion);
        motion.set(self.problem, direction, rate);
        let (main, scale) = (&motion.main, motion.scale);
        let z = |row: u32| main.z[row as usize];
        self.each(|Shard { margins, triplets }| {
            margins.begin(rate);
            for &anchor in triplets.anchors_in(&main.rows) {
                let row = anchor as usize;
                let at_anchor = scale * z(anchor);
                margins.reserve(triplets.of_anchor(row).len());
                match &motion.other {
                    None => triplets.each_of_anchor(row, |t, near, far| {
                        margins.offer(t, at_anchor * (z(near) - z(far)));
                    }),
                    Some(from) => triplets.each_of_anchor(row, |t, near, far| {
                        let b = at_anchor * (z(near) - z(far));
                        let z = |row: u32| from.z[row as usize];
                        margins.offer(t, b - scale * z(anchor) * (z(near) - z(far)));
                    }),
                }
                margins.read_listed();
            }
        });
        self.motion = motion;
    }

    /// The γ in [0, gamma_max] that minimizes f along the direction.
    pub(super) fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.list_affected(direction, direction.rate());
        line_search(gamma_max, |gamma| self.derivatives(gamma))
    }

    /// φ'(γ) and φ''(γ), where φ is V f along the direction of the last line search.
    pub(super) fn derivatives(&mut self, gamma: f64) -> (f64, f64) {
        let parts = self.each(|shard| shard.margins.along(gamma));
        let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        parts.into_iter().fold((0.0, 0.0), add)
    }

    /// The breakpoints of φ' for γ in an open interval, as (γ, change of φ''). `None` if a shard has more than `most`.
    pub(super) fn breakpoints(
        &mut self,
        low: f64,
        high: f64,
        most: usize,
    ) -> Option<Vec<(f64, f64)>> {
        let parts = self.each(|shard| shard.margins.breakpoints(low, high, most));
        let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
        Some(parts.concat())
    }

    /// Whether a step along the direction of the last line search moves all weight to one atom.
    pub(super) fn starts_again(&self, gamma: f64) -> bool {
        1.0 + self.motion.rate * gamma <= 0.0
    }

    /// Whether σ has become so small or large that it should be multiplied into the margins.
    pub(super) fn should_settle(&self) -> bool {
        !(1e-12..1e12).contains(&self.sigma())
    }
}
