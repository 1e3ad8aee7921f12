//! The solver state with the gradient computed anew in every iteration, over all triplets or over a batch.
//!
//! It works for every loss. At a fixed iterate, gradient weights are constants. The gradient therefore equals that of a
//! hinge loss at M = 0 over the same triplets, if each triplet has its gradient weight as its weight.

use super::engine::LocalEngine;
use super::gradient::{SymmetrizedGradient, gradient_store, pair_store};
use super::margin_store::n_shards;
use super::partner::PARALLEL;
use super::sharded::ShardEngine;
use crate::atoms::{ActiveSet, Atom, Step};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::{Base, Problem};
use crate::random;
use crate::solver::direction::{Direction, line_search};
use crate::triplets::{Anchors, Triplets};
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// The margins of all triplets. A *position* is an index of a triplet, in an order that the implementation chooses.
pub(crate) trait MarginSource<'p> {
    fn new(problem: &'p Problem<'p>) -> Self;
    /// Replaces the iterate.
    fn start_at(&mut self, active: &ActiveSet);
    /// f at the iterate.
    fn objective(&mut self) -> f64;
    /// The triplet at a position, and its margin.
    fn at(&self, position: usize) -> (u32, TripletMargin);
    /// As [`LocalEngine::search_line`].
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
    /// Takes a step of length `gamma` along the direction of the last line search. `active` is the new iterate.
    fn advance(&mut self, gamma: f64, active: &ActiveSet);
}

/// A margin b_t + <A^t, M>, and its part <A^t, M>.
#[derive(Clone, Copy)]
pub(crate) struct TripletMargin {
    pub(crate) total: f64,
    pub(crate) learned: f64,
}

/// Margins that are updated by a pass over all triplets, for every loss. The position of a triplet is its number.
pub(crate) struct AllMargins<'p> {
    problem: &'p Problem<'p>,
    margins: Vec<f64>,
    /// b_t, unless all are 0.
    base: Option<Vec<f64>>,
    /// <A^t, D> for every triplet, for the direction of the last line search.
    changes: Vec<f64>,
}

impl<'p> MarginSource<'p> for AllMargins<'p> {
    fn new(problem: &'p Problem<'p>) -> Self {
        Self {
            problem,
            margins: problem.margins(&ActiveSet::default()),
            base: problem.base_margins(),
            changes: Vec::new(),
        }
    }

    fn start_at(&mut self, active: &ActiveSet) {
        self.margins = self.problem.margins(active);
    }

    fn objective(&mut self) -> f64 {
        self.problem.value(&self.margins)
    }

    fn at(&self, position: usize) -> (u32, TripletMargin) {
        let total = self.margins[position];
        let base = self.base.as_ref().map_or(0.0, |b| b[position]);
        let learned = total - base;
        (position as u32, TripletMargin { total, learned })
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        let (problem, margins) = (self.problem, &self.margins);
        let learned = match &self.base {
            None => Cow::Borrowed(margins),
            Some(base) => Cow::Owned(difference(margins.clone(), base)),
        };
        self.changes = match direction {
            Direction::Forward(atom) => difference(problem.atom_margins(atom), &learned),
            Direction::Away(atom) => difference(learned.into_owned(), &problem.atom_margins(atom)),
            Direction::Pairwise { to, from } => {
                difference(problem.atom_margins(to), &problem.atom_margins(from))
            }
        };
        let changes = &self.changes;
        line_search(gamma_max, |gamma| problem.along(margins, changes, gamma))
    }

    fn advance(&mut self, gamma: f64, _: &ActiveSet) {
        for (margin, change) in self.margins.iter_mut().zip(&self.changes) {
            *margin += gamma * change;
        }
    }
}

fn difference(mut a: Vec<f64>, b: &[f64]) -> Vec<f64> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a -= b);
    a
}

/// The number of margins that are read at a time.
const BLOCK: usize = 1024;

/// A set of triplets with their gradient weights at an iterate: a batch, or all triplets.
struct Sample {
    /// The triplets, weighted by their gradient weights. Those with weight 0 are left out.
    triplets: Triplets,
    /// The sum of their original weights, including those that are left out.
    total_weight: f64,
    /// <M, -∇f>.
    model_gain: f64,
}

impl Sample {
    /// The triplets at these positions.
    fn at<'p>(
        problem: &Problem<'_>,
        margins: &impl MarginSource<'p>,
        mut positions: impl Iterator<Item = usize>,
    ) -> Self {
        let (mut triplets, mut total_weight, mut model_gain) = (Triplets::new(), 0.0, 0.0);
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            // Read first and used later, so that the processor waits for several margins at a time.
            let next = positions.by_ref().take(BLOCK);
            block.extend(next.map(|position| margins.at(position)));
            if block.is_empty() {
                break;
            }
            for (t, margin) in block.drain(..) {
                let t = t as usize;
                let weight = problem.gradient_weight(t, margin.total);
                if weight != 0.0 {
                    let (anchor, near, far) = problem.triplets.get(t);
                    triplets.push_weighted(anchor, near, far, weight);
                }
                total_weight += problem.triplets.weight(t);
                model_gain += weight * margin.learned;
            }
        }
        Self {
            triplets,
            total_weight,
            model_gain: model_gain / total_weight,
        }
    }

    /// <B - M, -∇f> of some atoms.
    fn rates(&self, problem: &Problem<'_>, atoms: &[Atom]) -> Vec<f64> {
        let rate = |&atom: &Atom| {
            let projected = problem.project(atom);
            let z = |row: u32| projected[row as usize];
            let gain = |(t, (a, near, far))| self.triplets.weight(t) * z(a) * (z(near) - z(far));
            let gains = self.triplets.iter().enumerate().map(gain);
            problem.lambda * gains.sum::<f64>() / self.total_weight - self.model_gain
        };
        atoms.iter().map(rate).collect()
    }
}

pub(crate) struct Recomputed<'p, M> {
    problem: &'p Problem<'p>,
    pub(super) margins: M,
    gradient: SymmetrizedGradient<'p>,
    gradient_over: Over,
}

/// The triplets that gradients are over.
enum Over {
    /// All. They are stored once, in the order of anchors, and get new weights in every iteration.
    All(Anchors),
    /// Batches of this size.
    Batches(usize),
}

impl<'p, M: MarginSource<'p>> Recomputed<'p, M> {
    /// The state at M = 0. If `batch` is at least the number of triplets, all triplets are used.
    pub(crate) fn new(
        problem: &'p Problem<'p>,
        batch: Option<usize>,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let n = problem.triplets.len();
        let (store, gradient_over) = match batch.filter(|&size| size < n) {
            Some(size) => (
                gradient_store(problem, &Triplets::new()),
                Over::Batches(size),
            ),
            None => {
                let anchors = problem.triplets.by_anchor(problem.rows.n_rows());
                let store = pair_store(problem, &Base::None, &anchors, n_shards(n), cancel)?;
                (store, Over::All(anchors))
            }
        };
        Ok(Self {
            problem,
            margins: M::new(problem),
            gradient: SymmetrizedGradient::new(problem, store, PARALLEL),
            gradient_over,
        })
    }

    /// Draws a batch of this size.
    fn draw(&self, size: usize, rng: &mut ChaCha8Rng) -> Sample {
        let positions = random::sample(rng, self.problem.triplets.len(), size);
        let positions = positions.iter().map(|&position| position as usize);
        Sample::at(self.problem, &self.margins, positions)
    }

    /// Computes the gradient over a sample.
    fn set_gradient(&mut self, sample: &Sample) {
        // Frees the memory of the previous gradient before the new one is allocated.
        self.gradient.margins.shards.clear();
        self.gradient.margins = gradient_store(self.problem, &sample.triplets);
        self.gradient
            .recompute(sample.total_weight, sample.model_gain);
    }
}

impl<'p, M: MarginSource<'p>> LocalEngine<'p> for Recomputed<'p, M> {
    fn gradient(&mut self) -> &mut SymmetrizedGradient<'p> {
        &mut self.gradient
    }

    fn refresh(&mut self, rng: &mut ChaCha8Rng) {
        let Over::Batches(size) = self.gradient_over else {
            return self.refresh_all();
        };
        let sample = self.draw(size, rng);
        self.set_gradient(&sample);
    }

    fn refresh_all(&mut self) {
        let problem = self.problem;
        let positions = 0..problem.triplets.len();
        let Over::All(anchors) = &self.gradient_over else {
            let sample = Sample::at(problem, &self.margins, positions);
            return self.set_gradient(&sample);
        };
        let mut model_gain = 0.0;
        let mut weights = vec![0.0; positions.len()];
        for position in positions {
            let (t, margin) = self.margins.at(position);
            let weight = problem.gradient_weight(t as usize, margin.total);
            weights[t as usize] = weight;
            model_gain += weight * margin.learned;
        }
        let mut position = 0;
        for shard in &mut self.gradient.margins.shards {
            let positions = position..position + shard.margins.len();
            position = positions.end;
            let in_order = positions.map(|position| weights[anchors.triplet(position)]);
            shard.margins.set_weights(in_order);
        }
        let total_weight = problem.total_weight;
        self.gradient
            .recompute(total_weight, model_gain / total_weight);
    }

    fn reestimated_rates(&mut self, atoms: &[Atom], rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        match self.gradient_over {
            Over::All(_) => None,
            Over::Batches(size) => Some(self.draw(size, rng).rates(self.problem, atoms)),
        }
    }

    fn objective(&mut self) -> f64 {
        self.margins.objective()
    }

    fn start_at(&mut self, active: ActiveSet) {
        self.margins.start_at(&active);
        self.gradient.set_active(active);
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.margins.search_line(direction, gamma_max)
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        let mut active = self.gradient.take_active();
        active.apply(step);
        self.margins.advance(gamma, &active);
        self.gradient.set_active(active);
    }
}

impl<'p> ShardEngine<'p> for Recomputed<'p, AllMargins<'p>> {
    fn derivatives(&mut self, gamma: f64) -> (f64, f64) {
        let AllMargins {
            margins, changes, ..
        } = &self.margins;
        self.problem.along(margins, changes, gamma)
    }

    /// The losses of this engine are smooth.
    fn breakpoints(&mut self, _: f64, _: f64, _: usize) -> Option<Vec<(f64, f64)>> {
        None
    }
}
