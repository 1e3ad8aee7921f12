//! The books kept the plain way: every iteration computes sums and diagonal anew, over all triplets or over a batch.
//!
//! With margins computed anew as well ([`Streamed`](super::streamed)) it works for every loss, and is what the
//! incremental engine is tested against. With margins kept up to date ([`Kept`](super::kept)) a batch takes no pass over
//! the triplets.

use super::engine::{Engine, Judgement};
use super::motion::Projection;
use super::partner::{COLUMNS, PARALLEL, Partner, PartnerSearch};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::gradient::{Gradient, RowAtoms, Scratch};
use crate::objective::{Problem, Scored};
use crate::random;
use crate::step::Direction;
use rand_chacha::ChaCha8Rng;

/// Who knows the margins. *Positions* number the triplets in an order of the keeper's choice.
pub(crate) trait Keeper<'p> {
    fn new(problem: &'p Problem<'p>) -> Self;
    /// Makes this the iterate of now.
    fn start_at(&mut self, active: &ActiveSet);
    /// f at the iterate of now.
    fn objective(&mut self) -> f64;
    /// Pushes and margins of all triplets, in their order.
    fn all(&self, pushes: &mut Vec<f64>, margins: &mut Vec<f64>);
    /// The triplet at a position.
    fn triplet(&self, position: u32) -> u32;
    /// Pushes and margins of the triplets at some positions, increasing.
    fn some(&self, positions: &[u32], pushes: &mut Vec<f64>, margins: &mut Vec<f64>);
    /// As [`Engine::search_line`].
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
    /// Takes the step found by the line search just done, to the given iterate.
    fn advance(&mut self, gamma: f64, active: &ActiveSet);
}

pub(crate) struct Plain<'p, K> {
    problem: &'p Problem<'p>,
    batch: Option<usize>,
    active: ActiveSet,
    pub(super) keeper: K,
    pushes: Vec<f64>,
    margins: Vec<f64>,
    gradient: Gradient,
    /// Whether `gradient` is built over all triplets rather than a batch.
    whole: bool,
    table: RowAtoms,
    scratch: Scratch,
    /// For batches. The gradient over all triplets is what others are tested against, so it looks at whole rows of H.
    search: Option<PartnerSearch<'p>>,
    projection: Projection,
}

impl<'p, K: Keeper<'p>> Plain<'p, K> {
    pub(crate) fn new(problem: &'p Problem<'p>, batch: Option<usize>) -> Self {
        let batch = batch.filter(|&size| size < problem.triplets.len());
        Self {
            problem,
            batch,
            active: ActiveSet::default(),
            keeper: K::new(problem),
            pushes: Vec::new(),
            margins: Vec::new(),
            gradient: match batch {
                None => Gradient::full(problem),
                Some(_) => Gradient::batch(problem, &[]),
            },
            whole: batch.is_none(),
            table: RowAtoms::new(problem.rows.n_rows()),
            scratch: Scratch::new(problem),
            search: batch.map(|_| PartnerSearch::new(problem, PARALLEL)),
            projection: Projection::default(),
        }
    }

    /// A fresh batch: which triplets, by number, with their pushes and margins in place.
    fn draw(&mut self, size: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let mut which = random::sample(rng, self.problem.triplets.len(), size);
        let Self {
            keeper,
            pushes,
            margins,
            ..
        } = self;
        keeper.some(&which, pushes, margins);
        for position in &mut which {
            *position = keeper.triplet(*position);
        }
        which
    }

    /// The best partner, no worse than the floor if there is one, without looking at the whole row of H.
    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Scored {
        let (problem, gradient) = (self.problem, &self.gradient);
        let search = self.search.as_mut().expect("there are batches");
        let diagonal = |j: u32| gradient.diagonal()[j as usize];
        let partner = Partner::new(problem, feature, diagonal(feature), floor);
        let product = &mut search.product;
        gradient.each_product(problem, feature, |row, by| product.add(row, by));
        let reach = product.reach_of_added(problem);
        let first = floor.is_none().then(|| search.best_diagonal(diagonal));
        let found = search.best(partner, reach, diagonal, first.into_iter());
        found.expect("there are at least two features")
    }
}

impl<'p, K: Keeper<'p>> Engine<'p> for Plain<'p, K> {
    fn problem(&self) -> &'p Problem<'p> {
        self.problem
    }

    fn active(&self) -> &ActiveSet {
        &self.active
    }

    fn start_at(&mut self, active: ActiveSet) {
        self.keeper.start_at(&active);
        self.active = active;
        self.table.follow(self.problem, &self.active);
    }

    fn objective(&mut self) -> f64 {
        self.keeper.objective()
    }

    fn refresh(&mut self, rng: &mut ChaCha8Rng) {
        let Some(size) = self.batch else {
            return self.refresh_all();
        };
        let which = self.draw(size, rng);
        self.gradient.rebatch(self.problem, &which);
        self.gradient
            .refresh(&self.problem.rows, &self.pushes, &self.margins);
        let search = self.search.as_mut().expect("there are batches");
        let blocks = self.gradient.diagonal().chunks(COLUMNS);
        for (most, block) in search.block_diagonals.iter_mut().zip(blocks) {
            *most = block.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        }
        self.whole = false;
    }

    fn refresh_all(&mut self) {
        if !self.whole {
            self.gradient = Gradient::full(self.problem);
            self.whole = true;
        }
        self.keeper.all(&mut self.pushes, &mut self.margins);
        self.gradient
            .refresh(&self.problem.rows, &self.pushes, &self.margins);
    }

    fn judge(&mut self, atoms: &[Atom], rng: &mut ChaCha8Rng) -> Option<Judgement> {
        let which = self.draw(self.batch?, rng);
        let problem = self.problem;
        let triplets: Vec<(u32, u32, u32)> = which
            .iter()
            .map(|&t| problem.triplets.get(t as usize))
            .collect();
        let weight: f64 = which
            .iter()
            .map(|&t| problem.triplets.weight(t as usize))
            .sum();
        let gains = atoms.iter().map(|&atom| {
            self.projection.set(problem, atom);
            let z = |row: u32| self.projection.z[row as usize];
            let gains =
                triplets
                    .iter()
                    .zip(&self.pushes)
                    .map(|(&(anchor, near, far), push)| match z(anchor) {
                        0.0 => 0.0,
                        at_anchor => push * at_anchor * (z(near) - z(far)),
                    });
            problem.scale * gains.sum::<f64>() / weight
        });
        let gains = gains.collect();
        let of_model = self.pushes.iter().zip(&self.margins).map(|(w, m)| w * m);
        Some(Judgement {
            gains,
            of_model: of_model.sum::<f64>() / weight,
        })
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
        if let (false, Some(search)) = (self.whole, &self.search) {
            return search.best_diagonal(|j| self.gradient.diagonal()[j as usize]);
        }
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
        if !self.whole {
            return self.best_partner(feature, None);
        }
        self.gradient
            .best_with(self.problem, feature, &mut self.scratch)
    }

    fn active_scores(&mut self) -> Vec<f64> {
        self.gradient.active_scores(&self.table, self.active.len())
    }

    fn best_above(&mut self, feature: u32, floor: Scored) -> Scored {
        if !self.whole {
            return self.best_partner(feature, Some(floor));
        }
        self.problem.better(floor, self.best_with(feature))
    }

    fn each_pair(&self, visit: impl FnMut(u32, u32, f64)) {
        self.gradient.each_pair(visit);
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.keeper.search_line(direction, gamma_max)
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        self.active.apply(step);
        self.keeper.advance(gamma, &self.active);
        self.table.follow(self.problem, &self.active);
    }
}
