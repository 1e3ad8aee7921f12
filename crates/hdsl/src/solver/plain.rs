//! The books kept the plain way: every iteration computes the gradient anew, over all triplets or over a batch.
//!
//! With margins computed anew as well ([`Streamed`](super::streamed)) it works for every loss, and is what the
//! incremental engine is tested against. With margins kept up to date ([`Kept`](super::kept)) a batch takes no pass over
//! the triplets.

use super::batch::{Active, Batch};
use super::engine::{Gradient, Iterate, LineSearch, SymmetrizedGradient};
use super::incremental::LATEST;
use super::motion::Projection;
use super::partner::{Diagonals, PARALLEL, Partner, PartnerSearch};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::objective::gradient::{self, RowAtoms, Scratch};
use crate::objective::{Problem, Scored};
use crate::random;
use crate::solver::direction::Direction;
use rand_chacha::ChaCha8Rng;

/// Features with a large D that are tried first as partners, in batches.
const LEADERS: usize = 4;

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
    /// As [`LineSearch::search_line`].
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64;
    /// Takes the step found by the line search just done, to the given iterate.
    fn advance(&mut self, gamma: f64, active: &ActiveSet);
}

pub(crate) struct Plain<'p, K> {
    problem: &'p Problem<'p>,
    active: ActiveSet,
    pub(super) keeper: K,
    pushes: Vec<f64>,
    margins: Vec<f64>,
    batches: Option<Batches<'p>>,
    /// Over all triplets, once somebody asks for it.
    whole: Option<Whole>,
}

/// The gradient over all triplets. It is what others are tested against, so it looks at whole rows of H.
struct Whole {
    gradient: gradient::Gradient,
    table: RowAtoms,
    scratch: Scratch,
}

impl Whole {
    fn new(problem: &Problem<'_>, active: &ActiveSet) -> Self {
        let mut table = RowAtoms::new(problem.rows.n_rows());
        table.follow(problem, active);
        Self {
            gradient: gradient::Gradient::full(problem),
            table,
            scratch: Scratch::new(problem),
        }
    }

    fn best_diagonal(&self) -> u32 {
        let diagonal = self.gradient.diagonal();
        (0..diagonal.len()).fold(0, |best, j| {
            if diagonal[j] > diagonal[best] {
                j
            } else {
                best
            }
        }) as u32
    }
}

/// The gradient over batches.
struct Batches<'p> {
    size: usize,
    gradient: Batch<'p>,
    search: PartnerSearch<'p>,
    /// The features with the largest D.
    leaders: Vec<u32>,
    active: Active,
    projection: Projection,
}

impl<'p> Batches<'p> {
    fn new(problem: &'p Problem<'p>, size: usize) -> Self {
        Self {
            size,
            gradient: Batch::new(problem),
            search: PartnerSearch::new(problem, PARALLEL),
            leaders: Vec::new(),
            active: Active::new(problem.rows.n_rows()),
            projection: Projection::default(),
        }
    }

    /// The best partner, no worse than the floor if there is one, without looking at the whole row of H.
    fn best_partner(
        &mut self,
        problem: &'p Problem<'p>,
        feature: u32,
        floor: Option<Scored>,
    ) -> Scored {
        let Self {
            gradient,
            search,
            leaders,
            active,
            ..
        } = self;
        let partner = Partner::new(problem, feature, gradient.now(feature), floor);
        let product = &mut search.product;
        gradient.each_product(feature, |row, by| product.add(row, by));
        let reach = product.reach_of_added(problem);
        let tried = if gradient.goes_by_columns() {
            LATEST
        } else {
            0
        };
        let latest = active.atoms().iter().rev().take(tried);
        let first = latest.flat_map(|atom| [atom.i(), atom.j()]);
        let found = search.best(
            partner,
            reach,
            gradient,
            leaders.iter().copied().chain(first),
        );
        found.expect("there are at least two features")
    }

    /// Everybody will ask for D of these, and for those beside them.
    fn find_leaders(&mut self) {
        self.leaders = self.search.best_diagonals(LEADERS, &mut self.gradient);
    }
}

impl<'p, K: Keeper<'p>> Plain<'p, K> {
    pub(crate) fn new(problem: &'p Problem<'p>, batch: Option<usize>) -> Self {
        let batch = batch.filter(|&size| size < problem.triplets.len());
        Self {
            problem,
            active: ActiveSet::default(),
            keeper: K::new(problem),
            pushes: Vec::new(),
            margins: Vec::new(),
            batches: batch.map(|size| Batches::new(problem, size)),
            whole: None,
        }
    }

    /// D over batches by columns, however few the values are.
    #[cfg(test)]
    pub(super) fn go_by_columns(&mut self) {
        if let Some(batches) = &mut self.batches {
            batches.gradient.go_by_columns();
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

    /// Brings everything that goes by active atoms in line with them.
    fn follow(&mut self) {
        if let Some(batches) = &mut self.batches {
            batches.active.follow(self.problem, &self.active);
        }
        if let Some(whole) = &mut self.whole {
            whole.table.follow(self.problem, &self.active);
        }
    }

    /// The gradient of now: over all triplets, or over a batch.
    fn now(&self) -> Now<&Whole, &Batches<'p>> {
        match (&self.whole, &self.batches) {
            (Some(whole), _) => Now::Whole(whole),
            (None, Some(batches)) => Now::Batch(batches),
            (None, None) => panic!("{REFRESH}"),
        }
    }

    fn now_mut(&mut self) -> Now<&mut Whole, &mut Batches<'p>> {
        match (&mut self.whole, &mut self.batches) {
            (Some(whole), _) => Now::Whole(whole),
            (None, Some(batches)) => Now::Batch(batches),
            (None, None) => panic!("{REFRESH}"),
        }
    }
}

const REFRESH: &str = "a gradient is refreshed before it is used";

enum Now<W, B> {
    Whole(W),
    Batch(B),
}

impl<'p, K: Keeper<'p>> Iterate<'p> for Plain<'p, K> {
    fn problem(&self) -> &'p Problem<'p> {
        self.problem
    }

    fn active(&self) -> &ActiveSet {
        &self.active
    }

    fn objective(&mut self) -> f64 {
        self.keeper.objective()
    }

    fn start_at(&mut self, active: ActiveSet) {
        self.keeper.start_at(&active);
        self.active = active;
        self.follow();
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        self.active.apply(step);
        self.keeper.advance(gamma, &self.active);
        self.follow();
    }
}

impl<'p, K: Keeper<'p>> Gradient<'p> for Plain<'p, K> {
    fn refresh(&mut self, rng: &mut ChaCha8Rng) {
        let Some(size) = self.batches.as_ref().map(|batches| batches.size) else {
            return self.refresh_all();
        };
        self.whole = None;
        let which = self.draw(size, rng);
        let batches = self.batches.as_mut().expect("there are batches");
        batches.gradient.set(&which, &self.pushes, &self.margins);
        let blocks = batches.search.block_diagonals.iter_mut();
        for (most, bound) in blocks.zip(batches.gradient.bounds()) {
            *most = bound;
        }
        batches.find_leaders();
    }

    fn refresh_all(&mut self) {
        let (problem, active) = (self.problem, &self.active);
        let whole = self
            .whole
            .get_or_insert_with(|| Whole::new(problem, active));
        self.keeper.all(&mut self.pushes, &mut self.margins);
        whole
            .gradient
            .refresh(&problem.rows, &self.pushes, &self.margins);
    }

    fn gain(&self, score: f64) -> f64 {
        match self.now() {
            Now::Whole(whole) => whole.gradient.gain(score),
            Now::Batch(batches) => batches.gradient.gain(score),
        }
    }

    fn gain_of_model(&self) -> f64 {
        match self.now() {
            Now::Whole(whole) => whole.gradient.gain_of_model(self.problem),
            Now::Batch(batches) => batches.gradient.gain_of_model(),
        }
    }

    fn active_scores(&mut self) -> Vec<f64> {
        let n_atoms = self.active.len();
        match self.now_mut() {
            Now::Whole(whole) => whole.gradient.active_scores(&whole.table, n_atoms),
            Now::Batch(Batches {
                gradient, active, ..
            }) => gradient.scores(active),
        }
    }

    fn reestimated_rates(&mut self, atoms: &[Atom], rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        let size = self.batches.as_ref()?.size;
        let which = self.draw(size, rng);
        let problem = self.problem;
        let triplets: Vec<(u32, u32, u32)> = which
            .iter()
            .map(|&t| problem.triplets.get(t as usize))
            .collect();
        let weight: f64 = which
            .iter()
            .map(|&t| problem.triplets.weight(t as usize))
            .sum();
        let of_model = self.pushes.iter().zip(&self.margins).map(|(w, m)| w * m);
        let of_model = of_model.sum::<f64>() / weight;
        let projection = &mut self.batches.as_mut()?.projection;
        let rates = atoms.iter().map(|&atom| {
            projection.set(problem, atom);
            let z = |row: u32| projection.z[row as usize];
            let gains =
                triplets
                    .iter()
                    .zip(&self.pushes)
                    .map(|(&(anchor, near, far), push)| match z(anchor) {
                        0.0 => 0.0,
                        at_anchor => push * at_anchor * (z(near) - z(far)),
                    });
            problem.scale * gains.sum::<f64>() / weight - of_model
        });
        Some(rates.collect())
    }
}

impl<'p, K: Keeper<'p>> SymmetrizedGradient<'p> for Plain<'p, K> {
    fn best_diagonal(&mut self) -> u32 {
        match self.now_mut() {
            Now::Whole(whole) => whole.best_diagonal(),
            Now::Batch(batches) => batches.leaders[0],
        }
    }

    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Scored {
        let problem = self.problem;
        match self.now_mut() {
            Now::Whole(Whole {
                gradient, scratch, ..
            }) => {
                let found = gradient.best_with(problem, feature, scratch);
                floor.map_or(found, |floor| problem.better(floor, found))
            }
            Now::Batch(batches) => batches.best_partner(problem, feature, floor),
        }
    }

    fn diagonal(&mut self) -> Vec<f64> {
        let problem = self.problem;
        match self.now_mut() {
            Now::Whole(whole) => whole.gradient.diagonal().to_vec(),
            Now::Batch(batches) => {
                batches.gradient.know_all();
                let columns = 0..problem.n_columns() as u32;
                columns.map(|j| batches.gradient.at(j)).collect()
            }
        }
    }

    fn each_pair(&self, visit: impl FnMut(u32, u32, f64)) {
        match self.now() {
            Now::Whole(whole) => whole.gradient.each_pair(visit),
            Now::Batch(batches) => batches.gradient.each_pair(visit),
        }
    }
}

impl<'p, K: Keeper<'p>> LineSearch for Plain<'p, K> {
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.keeper.search_line(direction, gamma_max)
    }
}
