//! The solver state with the gradient computed anew in every iteration, over all triplets or over a batch.
//!
//! It works for every loss, and the incremental state is tested against it.

use super::engine::{Gradient, Iterate, LineSearch, SymmetrizedGradient};
use super::minibatch::Sample;
use super::partner::{PARALLEL, PartnerSearch};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::objective::active_features::ActiveFeatures;
use crate::objective::gradient::PairGradient;
use crate::objective::{COLUMNS, Problem, Scored};
use crate::solver::direction::{Direction, line_search};
use rand_chacha::ChaCha8Rng;

/// The margins of all triplets. *Positions* number the triplets in an order of the source's choice.
pub(crate) trait MarginSource<'p> {
    fn new(problem: &'p Problem<'p>) -> Self;
    /// Replaces the iterate.
    fn start_at(&mut self, active: &ActiveSet);
    /// f at the iterate.
    fn objective(&mut self) -> f64;
    /// The triplet at a position, and its margin.
    fn at(&self, position: usize) -> (u32, f64);
    /// As [`LineSearch::search_line`].
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
    /// Takes the step found by the line search just done, to the given iterate.
    fn advance(&mut self, gamma: f64, active: &ActiveSet);
}

/// Margins updated by a pass over all triplets, for every loss. Positions are the numbers of triplets.
pub(crate) struct AllMargins<'p> {
    problem: &'p Problem<'p>,
    margins: Vec<f64>,
    /// <A^t, D> for every triplet, for the direction of the last line search.
    changes: Vec<f64>,
}

impl<'p> MarginSource<'p> for AllMargins<'p> {
    fn new(problem: &'p Problem<'p>) -> Self {
        Self {
            problem,
            margins: vec![0.0; problem.triplets.len()],
            changes: Vec::new(),
        }
    }

    fn start_at(&mut self, active: &ActiveSet) {
        self.margins = self.problem.margins(active);
    }

    fn objective(&mut self) -> f64 {
        self.problem.value(&self.margins)
    }

    fn at(&self, position: usize) -> (u32, f64) {
        (position as u32, self.margins[position])
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        let (problem, margins) = (self.problem, &self.margins);
        self.changes = match direction {
            Direction::Forward(atom) => difference(problem.atom_margins(atom), margins),
            Direction::Away(atom) => difference(margins.clone(), &problem.atom_margins(atom)),
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

pub(crate) struct Recomputed<'p, M> {
    problem: &'p Problem<'p>,
    active: ActiveSet,
    features: ActiveFeatures,
    pub(super) margins: M,
    /// The size of batches.
    batch: Option<usize>,
    gradient: Option<PairGradient>,
    /// Whether the gradient is over all triplets.
    over_all: bool,
    best_diagonal: u32,
    search: PartnerSearch<'p>,
}

impl<'p, M: MarginSource<'p>> Recomputed<'p, M> {
    /// The state at M = 0. A batch that is not smaller than the number of triplets is all of them.
    pub(crate) fn new(problem: &'p Problem<'p>, batch: Option<usize>) -> Self {
        Self {
            problem,
            active: ActiveSet::default(),
            features: ActiveFeatures::new(problem.rows.n_rows()),
            margins: M::new(problem),
            batch: batch.filter(|&size| size < problem.triplets.len()),
            gradient: None,
            over_all: false,
            best_diagonal: 0,
            search: PartnerSearch::new(problem, PARALLEL),
        }
    }

    fn gradient(&self) -> &PairGradient {
        (self.gradient.as_ref()).expect("a gradient is computed before it is used")
    }

    /// Computes the gradient over these triplets, which are those of the last gradient if that is to be reused.
    fn set_gradient(&mut self, sample: &Sample, reuse: bool) {
        let mut gradient =
            self.gradient.take().filter(|_| reuse).unwrap_or_else(|| {
                PairGradient::new(self.problem, sample.triplets.iter().copied())
            });
        gradient.set(self.problem, &sample.weights, &sample.margins);
        let diagonal = gradient.diagonal();
        let blocks = diagonal
            .chunks(COLUMNS)
            .zip(&mut self.search.block_diagonals);
        for (block, bound) in blocks {
            *bound = block.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        }
        let better = |best: usize, j: usize| {
            if diagonal[j] > diagonal[best] {
                j
            } else {
                best
            }
        };
        self.best_diagonal = (0..diagonal.len()).fold(0, better) as u32;
        self.gradient = Some(gradient);
    }
}

impl<'p, M: MarginSource<'p>> Iterate<'p> for Recomputed<'p, M> {
    fn problem(&self) -> &'p Problem<'p> {
        self.problem
    }

    fn active(&self) -> &ActiveSet {
        &self.active
    }

    fn objective(&mut self) -> f64 {
        self.margins.objective()
    }

    fn start_at(&mut self, active: ActiveSet) {
        self.margins.start_at(&active);
        self.active = active;
        self.features = ActiveFeatures::new(self.problem.rows.n_rows());
        self.features.follow(self.problem, &self.active);
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        self.active.apply(step);
        self.margins.advance(gamma, &self.active);
        self.features.follow(self.problem, &self.active);
    }
}

impl<'p, M: MarginSource<'p>> Gradient<'p> for Recomputed<'p, M> {
    fn refresh(&mut self, rng: &mut ChaCha8Rng) {
        let Some(size) = self.batch else {
            return self.refresh_all();
        };
        let sample = Sample::draw(self.problem, &self.margins, size, rng);
        self.set_gradient(&sample, false);
        self.over_all = false;
    }

    fn refresh_all(&mut self) {
        let positions = 0..self.problem.triplets.len();
        let sample = Sample::at(self.problem, &self.margins, positions);
        self.set_gradient(&sample, self.over_all);
        self.over_all = true;
    }

    fn gain(&self, score: f64) -> f64 {
        self.gradient().gain(self.problem, score)
    }

    fn gain_of_model(&self) -> f64 {
        self.gradient().model_gain()
    }

    fn active_scores(&mut self) -> Vec<f64> {
        let (gradient, slots) = (self.gradient(), self.features.slots());
        let (d, cross) = (gradient.diagonal(), gradient.cross_terms(&self.features));
        let score = |(atom, &slot): (&Atom, &u32)| {
            let h = atom.sign().value() * cross[slot as usize];
            d[atom.i() as usize] + d[atom.j() as usize] + h
        };
        self.active.atoms().iter().zip(slots).map(score).collect()
    }

    fn reestimated_rates(&mut self, atoms: &[Atom], rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        let sample = Sample::draw(self.problem, &self.margins, self.batch?, rng);
        Some(sample.rates(self.problem, atoms))
    }
}

impl<'p, M: MarginSource<'p>> SymmetrizedGradient<'p> for Recomputed<'p, M> {
    fn best_diagonal(&mut self) -> u32 {
        self.best_diagonal
    }

    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Scored {
        let Self {
            problem,
            gradient,
            search,
            active,
            ..
        } = self;
        let gradient = (gradient.as_ref()).expect("a gradient is computed before it is used");
        let product = &mut search.product;
        gradient.multiply(problem, feature, |row, by| product.add(row, by));
        let d = gradient.diagonal();
        let diagonal = |j: u32| d[j as usize];
        search.best(
            feature,
            floor,
            &diagonal,
            self.best_diagonal,
            active.atoms(),
        )
    }

    fn diagonal(&mut self) -> Vec<f64> {
        self.gradient().diagonal().to_vec()
    }

    fn each_pair(&self, visit: impl FnMut(u32, u32, f64)) {
        self.gradient().each_pair(visit);
    }
}

impl<'p, M: MarginSource<'p>> LineSearch for Recomputed<'p, M> {
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.margins.search_line(direction, gamma_max)
    }
}
