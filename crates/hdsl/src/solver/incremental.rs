//! The incremental solver state, for the smoothed and the squared hinge: a step updates the margins and the gradient of
//! affected triplets instead of recomputing everything.

use super::engine::LocalEngine;
use super::gradient::{SymmetrizedGradient, pair_store};
use super::margin_store::n_shards;
use super::partner::PARALLEL;
use super::sharded::ShardEngine;
use crate::atoms::{ActiveSet, Step};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::Problem;
use crate::solver::direction::Direction;

/// The number of steps after which all sums are recomputed, because rounding errors accumulate.
const REBUILD_EVERY: usize = 2000;

pub(crate) struct Incremental<'p> {
    pub(super) gradient: SymmetrizedGradient<'p>,
    steps: usize,
}

impl<'p> Incremental<'p> {
    /// The state at M = 0.
    pub(crate) fn new(problem: &'p Problem<'p>, cancel: CancelToken<'_>) -> Result<Self> {
        let n_shards = n_shards(problem.triplets.len());
        Self::in_shards(problem, n_shards, PARALLEL, cancel)
    }

    /// The state at M = 0, with `n_shards` shards. Rows of H are computed by several threads from `parallel_from`
    /// values on. The number of shards may depend on the problem but not on the machine, because it determines the
    /// order of sums.
    pub(super) fn in_shards(
        problem: &'p Problem<'p>,
        n_shards: usize,
        parallel_from: usize,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let anchors = problem.triplets.by_anchor(problem.rows.n_rows());
        let margins = pair_store(problem, &problem.base, &anchors, n_shards, cancel)?;
        drop(anchors);
        Ok(Self {
            gradient: SymmetrizedGradient::new(problem, margins, parallel_from),
            steps: 0,
        })
    }

    fn restart(&mut self, active: ActiveSet) {
        self.gradient.margins.start_at(&active);
        self.gradient.set_active(active);
        self.rebuild();
    }

    fn rebuild(&mut self) {
        self.steps = 0;
        self.gradient.rebuild();
    }
}

impl<'p> LocalEngine<'p> for Incremental<'p> {
    fn gradient(&mut self) -> &mut SymmetrizedGradient<'p> {
        &mut self.gradient
    }

    fn refresh_all(&mut self) {}

    fn objective(&mut self) -> f64 {
        self.gradient.margins.objective()
    }

    fn start_at(&mut self, active: ActiveSet) {
        let gradient = &mut self.gradient;
        if let [atom] = *active.atoms()
            && gradient.active().is_empty()
        {
            // From M = 0, where all learned margins are 0: a step of length 1 to the atom, at rate 0.
            gradient
                .margins
                .list_affected(Direction::Forward(atom), 0.0);
            gradient.advance(1.0);
            return gradient.follow(active);
        }
        self.restart(active);
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.gradient.margins.search_line(direction, gamma_max)
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        let mut active = self.gradient.take_active();
        active.apply(step);
        if self.gradient.margins.starts_again(gamma) {
            return self.restart(active);
        }
        self.gradient.advance(gamma);
        self.gradient.follow(active);
        self.steps += 1;
        if self.steps == REBUILD_EVERY || self.gradient.margins.should_settle() {
            self.rebuild();
        }
    }
}

impl<'p> ShardEngine<'p> for Incremental<'p> {
    fn derivatives(&mut self, gamma: f64) -> (f64, f64) {
        self.gradient.margins.derivatives(gamma)
    }

    fn breakpoints(&mut self, low: f64, high: f64, most: usize) -> Option<Vec<(f64, f64)>> {
        self.gradient.margins.breakpoints(low, high, most)
    }
}
