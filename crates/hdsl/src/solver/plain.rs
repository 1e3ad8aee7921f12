//! The books kept the plain way: every iteration computes pushes, sums and diagonal anew in a pass over the triplets.
//!
//! Works for every loss and for batches, and is what the incremental engine is tested against.

use super::engine::Engine;
use crate::atoms::{ActiveSet, Step};
use crate::gradient::{Gradient, RowAtoms, Scratch};
use crate::objective::{Problem, Scored};
use crate::random;
use crate::step::{Deltas, Direction, line_search};
use rand_chacha::ChaCha8Rng;

pub(crate) struct Plain<'p> {
    problem: &'p Problem<'p>,
    batch: Option<usize>,
    active: ActiveSet,
    pub(super) margins: Vec<f64>,
    pushes: Vec<f64>,
    gradient: Gradient,
    /// Whether `gradient` is built over all triplets rather than a batch.
    whole: bool,
    table: RowAtoms,
    deltas: Deltas,
    scratch: Scratch,
}

impl<'p> Plain<'p> {
    pub(crate) fn new(problem: &'p Problem<'p>, batch: Option<usize>) -> Self {
        Self {
            problem,
            batch: batch.filter(|&size| size < problem.triplets.len()),
            active: ActiveSet::default(),
            margins: vec![0.0; problem.triplets.len()],
            pushes: Vec::new(),
            gradient: Gradient::full(problem),
            whole: true,
            table: RowAtoms::new(problem.rows.n_rows()),
            deltas: Deltas::default(),
            scratch: Scratch::new(problem),
        }
    }
}

impl<'p> Engine<'p> for Plain<'p> {
    fn problem(&self) -> &'p Problem<'p> {
        self.problem
    }

    fn active(&self) -> &ActiveSet {
        &self.active
    }

    fn start_at(&mut self, active: ActiveSet) {
        self.margins = self.problem.margins(&active);
        self.active = active;
        self.table.follow(self.problem, &self.active);
    }

    fn objective(&mut self) -> f64 {
        self.problem.value(&self.margins)
    }

    fn refresh(&mut self, rng: &mut ChaCha8Rng) {
        let Some(size) = self.batch else {
            return self.refresh_all();
        };
        let which = random::sample(rng, self.problem.triplets.len(), size);
        self.problem.pushes(&self.margins, &mut self.pushes);
        let pick = |from: &[f64]| -> Vec<f64> { which.iter().map(|&t| from[t as usize]).collect() };
        let (pushes, margins) = (pick(&self.pushes), pick(&self.margins));
        self.gradient = Gradient::batch(self.problem, &which);
        self.gradient.refresh(&self.problem.rows, &pushes, &margins);
        self.whole = false;
    }

    fn refresh_all(&mut self) {
        if !self.whole {
            self.gradient = Gradient::full(self.problem);
            self.whole = true;
        }
        self.problem.pushes(&self.margins, &mut self.pushes);
        self.gradient
            .refresh(&self.problem.rows, &self.pushes, &self.margins);
    }

    fn gain(&self, score: f64) -> f64 {
        self.gradient.gain(score)
    }

    fn gain_of_model(&self) -> f64 {
        self.gradient.gain_of_model(self.problem)
    }

    fn diagonal(&self, feature: u32) -> f64 {
        self.gradient.diagonal()[feature as usize]
    }

    fn best_diagonal(&mut self) -> u32 {
        let diagonal = self.gradient.diagonal();
        (0..diagonal.len()).fold(0, |best, j| {
            if diagonal[j] > diagonal[best] {
                j
            } else {
                best
            }
        }) as u32
    }

    fn best_with(&mut self, feature: u32) -> Scored {
        self.gradient
            .best_with(self.problem, feature, &mut self.scratch)
    }

    fn active_scores(&mut self) -> Vec<f64> {
        self.gradient.active_scores(&self.table, self.active.len())
    }

    fn best_above(&mut self, feature: u32, floor: Scored, _: u32) -> Scored {
        self.problem.better(floor, self.best_with(feature))
    }

    fn each_pair(&self, visit: impl FnMut(u32, u32, f64)) {
        self.gradient.each_pair(visit);
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        let deltas = self.deltas.along(self.problem, direction, &self.margins);
        let (problem, margins) = (self.problem, &self.margins);
        line_search(gamma_max, |gamma| problem.along(margins, deltas, gamma))
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        self.deltas.apply(gamma, &mut self.margins);
        self.active.apply(step);
        self.table.follow(self.problem, &self.active);
    }
}
