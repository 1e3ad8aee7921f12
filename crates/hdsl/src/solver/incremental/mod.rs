//! The books kept up to date instead of computed again, for the piecewise quadratic losses.
//!
//! Triplets are split into shards by anchor. A shard sums over its own triplets; this file merges the sums, always in
//! the same order and with a number of shards that depends on the problem alone, so that any number of threads gives
//! the same bytes. See [`shard`] for what is kept.

mod changes;
mod diagonal;
mod pairs;
mod pushed;
mod shard;

use super::active_rows::ActiveRows;
use super::engine::{Gradient, Iterate, LineSearch, SymmetrizedGradient};
use super::links::Links;
use super::margins::{self, Sums, Two, Zones};
use super::motion::{Moving, Projection};
use super::partner::{PARALLEL, Partner, PartnerSearch, Reach};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::{Problem, Scored};
use crate::parallel::prelude::*;
use crate::solver::direction::{Direction, line_search};
use changes::Books;
pub(super) use changes::MOST_WORK;
use pushed::Column;
pub(super) use pushed::has_own_pairs;
use shard::Shard;

/// Active atoms whose features are tried first as partners.
pub(super) const LATEST: usize = 8;
/// Pairs to go through that make it worth multiplying by shard.
const PARALLEL_WORK: usize = 1 << 18;
/// Entries of u merged by one thread at a time.
const CHUNK: usize = 1 << 14;
/// Rounding adds up: start afresh after this many steps.
const REBUILD_EVERY: usize = 2000;

pub(crate) struct Incremental<'p> {
    problem: &'p Problem<'p>,
    zones: Zones,
    active: ActiveSet,
    sigma: f64,
    shards: Vec<Shard>,
    active_rows: ActiveRows,
    links: Links,
    /// The slot of each active atom, in their order.
    slots: Vec<u32>,
    steps: usize,
    motion: Moving,
    search: PartnerSearch<'p>,
    /// A column spread out, 0 between searches.
    spread: Vec<f64>,
    /// The feature with the largest D, once somebody asked.
    best_diagonal: Option<u32>,
}

impl<'p> Incremental<'p> {
    /// Sets up the books, unless somebody wants to stop first.
    pub(crate) fn new_until(problem: &'p Problem<'p>, cancel: CancelToken<'_>) -> Result<Self> {
        let n_shards = margins::n_shards(problem.triplets.len());
        Ok(Self::over(
            problem,
            cut(problem, n_shards, cancel)?,
            PARALLEL,
        ))
    }

    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn new(problem: &'p Problem<'p>) -> Self {
        Self::in_shards(problem, margins::n_shards(problem.triplets.len()), PARALLEL)
    }

    #[cfg(any(test, feature = "bench"))]
    pub(super) fn in_shards(
        problem: &'p Problem<'p>,
        n_shards: usize,
        parallel_from: usize,
    ) -> Self {
        let shards = cut(problem, n_shards, CancelToken::NEVER).expect("nobody stops this");
        Self::over(problem, shards, parallel_from)
    }

    /// With these shards, and threads for rows of H from so many values on. Both are settings of the problem, never
    /// of the machine: sums are merged by shard.
    fn over(problem: &'p Problem<'p>, shards: Vec<Shard>, parallel_from: usize) -> Self {
        let n_rows = problem.rows.n_rows();
        let mut engine = Self {
            problem,
            zones: Zones::of_loss(problem.loss).expect("the loss is piecewise quadratic"),
            active: ActiveSet::default(),
            sigma: 1.0,
            shards,
            active_rows: ActiveRows::new(n_rows),
            links: Links::default(),
            slots: Vec::new(),
            steps: 0,
            motion: Moving::default(),
            search: PartnerSearch::new(problem, parallel_from),
            spread: vec![0.0; n_rows],
            best_diagonal: None,
        };
        engine.rebuild();
        engine
    }

    /// The margins, in the order of anchors.
    #[cfg(test)]
    pub(super) fn margins(&self) -> Vec<f64> {
        self.shards
            .iter()
            .flat_map(|shard| shard.margins.iter(self.sigma))
            .collect()
    }

    /// Runs on every shard, side by side when there is enough to do.
    fn each<T: Send>(&mut self, work: impl Fn(&mut Shard) -> T + Sync + Send) -> Vec<T> {
        if self.shards.len() == 1 {
            vec![work(&mut self.shards[0])]
        } else {
            self.shards.par_iter_mut().map(work).collect()
        }
    }

    /// Runs on every shard with what they all read.
    fn each_with_books<T: Send>(
        &mut self,
        work: impl Fn(&mut Shard, Books<'_>) -> T + Sync + Send,
    ) -> Vec<T> {
        let active_rows = std::mem::take(&mut self.active_rows);
        let links = std::mem::take(&mut self.links);
        let books = Books {
            sigma: self.sigma,
            rows: &self.problem.rows,
            active_rows: &active_rows,
            links: &links,
        };
        let done = self.each(|shard| work(shard, books));
        (self.active_rows, self.links) = (active_rows, links);
        done
    }

    /// Everything from the margins, with σ folded into them.
    fn rebuild(&mut self) {
        let (factor, zones) = (self.sigma, self.zones);
        self.sigma = 1.0;
        self.steps = 0;
        self.each_with_books(|shard, books| {
            if factor != 1.0 {
                shard.margins.rescale(factor);
            }
            shard.rebuild(books, zones);
        });
        self.bound_diagonals();
    }

    /// Bounds of D by block of columns, after it changed.
    fn bound_diagonals(&mut self) {
        self.best_diagonal = None;
        let sigma = self.sigma;
        self.each(|shard| shard.pairs.diagonal.tighten(sigma));
        let shards = &self.shards;
        for (block, sum) in self.search.block_diagonals.iter_mut().enumerate() {
            *sum = shards
                .iter()
                .map(|shard| shard.pairs.diagonal.bound(block, sigma))
                .sum();
        }
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.shards
            .iter()
            .for_each(|shard| sums.merge(&shard.margins.sums));
        sums
    }

    /// Puts a new atom into the tables.
    fn admit(&mut self, atom: Atom) {
        let (slot, new) = self.links.add(atom);
        self.slots.push(slot);
        for (column, number) in new {
            let (rows, values) = self.problem.lists.column(column);
            for (&row, &x) in rows.iter().zip(values) {
                self.active_rows.push(row as usize, number, x);
            }
        }
    }

    fn dismiss(&mut self, atom: Atom, at: usize) {
        let slot = self.slots.remove(at);
        for (column, number) in self.links.remove(atom, slot) {
            for &row in self.problem.lists.column(column).0 {
                self.active_rows.remove(row as usize, number);
            }
        }
    }

    /// From M = 0, where the books are after they were set up, to a single atom: a step that rescales nothing.
    fn start_from_nothing(&mut self, atom: Atom, active: ActiveSet) {
        self.motion.set(self.problem, Direction::Forward(atom));
        let moving = std::mem::take(&mut self.motion);
        let (scale, sigma, zones) = (self.problem.scale, self.sigma, self.zones);
        self.each(|shard| shard.touch(scale, sigma, moving.motion()));
        self.motion = moving;
        self.each_with_books(|shard, books| shard.advance(0.0, 1.0, books, zones));
        self.active = active;
        self.admit(atom);
        self.cross_last(atom);
        self.bound_diagonals();
    }

    /// Computes H_ij of the atom admitted last.
    fn cross_last(&mut self, atom: Atom) {
        let slot = *self.slots.last().expect("an atom was admitted");
        let mut moving = std::mem::take(&mut self.motion);
        moving.set_columns(self.problem, atom);
        let (i, j, rows) = moving.columns();
        let (sigma, zones) = (self.sigma, self.zones);
        self.each(|shard| shard.cross_new(slot as usize, sigma, zones, i, j, rows));
        self.motion = moving;
    }

    /// u = S X_{:,i} into `self.u`, and where it may differ from 0.
    fn multiply(&mut self, feature: u32) -> Reach {
        let (holders, values) = self.problem.lists.column(feature);
        let mut spread = std::mem::take(&mut self.spread);
        for (&row, &x) in holders.iter().zip(values) {
            spread[row as usize] = x;
        }
        let column = Column {
            holders,
            spread: &spread,
        };
        let pushed = self.shards.iter().map(|shard| &shard.pairs.pushed);
        let work: usize = pushed.map(|pushed| pushed.work_of(&column)).sum();
        let reach = if 2 * work < spread.len() {
            self.multiply_sparse(&column)
        } else {
            self.multiply_dense(&column, work)
        };
        for &row in holders {
            spread[row as usize] = 0.0;
        }
        self.spread = spread;
        reach
    }

    /// For a column of few pairs: the rows it reaches are listed.
    fn multiply_sparse(&mut self, column: &Column<'_>) -> Reach {
        let product = &mut self.search.product;
        for shard in &self.shards {
            let pushes = shard.margins.pushes(self.sigma, self.zones);
            let add = |row: usize, by: f64| product.add(row, by);
            shard.pairs.pushed.each_product(&pushes, column, add);
        }
        product.reach_of_added(self.problem)
    }

    /// For others: by shard, where that is worth having them add up on their own.
    fn multiply_dense(&mut self, column: &Column<'_>, work: usize) -> Reach {
        let (sigma, zones) = (self.sigma, self.zones);
        if work < PARALLEL_WORK || self.shards.len() == 1 {
            let u = &mut self.search.product.u[..];
            for shard in &self.shards {
                let pushes = shard.margins.pushes(sigma, zones);
                shard.pairs.pushed.multiply(&pushes, column, u);
            }
        } else {
            self.each(|shard| shard.multiply(sigma, zones, column));
            let shards = &self.shards;
            let merge = |(chunk, u): (usize, &mut [f64])| {
                let start = chunk * CHUNK;
                u.copy_from_slice(&shards[0].u[start..start + u.len()]);
                for shard in &shards[1..] {
                    u.iter_mut()
                        .zip(&shard.u[start..])
                        .for_each(|(sum, x)| *sum += x);
                }
            };
            let u = &mut self.search.product.u;
            u.par_chunks_mut(CHUNK).enumerate().for_each(merge);
        }
        self.search.product.reach_of_all(self.problem)
    }

    /// D of one feature.
    fn diagonal_of(&self, feature: u32) -> f64 {
        diagonal_of(&self.shards, self.sigma, feature)
    }
}

/// D of one feature.
fn diagonal_of(shards: &[Shard], sigma: f64, feature: u32) -> f64 {
    merged(shards, sigma, |shard| shard.pairs.diagonal.get(feature))
}

/// First - σ second of a sum over shards.
fn merged(shards: &[Shard], sigma: f64, of_shard: impl Fn(&Shard) -> Two) -> f64 {
    let mut sum = of_shard(&shards[0]);
    for shard in &shards[1..] {
        let part = of_shard(shard);
        sum[0] += part[0];
        sum[1] += part[1];
    }
    sum[0] - sigma * sum[1]
}

impl<'p> Iterate<'p> for Incremental<'p> {
    fn problem(&self) -> &'p Problem<'p> {
        self.problem
    }

    fn active(&self) -> &ActiveSet {
        &self.active
    }

    fn objective(&mut self) -> f64 {
        let (sums, sigma) = (self.sums(), self.sigma);
        let zones = self.zones;
        let total = sums.value(sigma).unwrap_or_else(|| {
            self.each(|shard| shard.margins.value(sigma, zones))
                .into_iter()
                .sum()
        });
        total / self.problem.total_weight
    }

    fn start_at(&mut self, active: ActiveSet) {
        if self.active.is_empty()
            && let [atom] = active.atoms()
        {
            return self.start_from_nothing(*atom, active);
        }
        self.sigma = 1.0;
        self.slots.clear();
        self.active_rows = ActiveRows::new(self.problem.rows.n_rows());
        self.links = Links::default();
        self.each(|shard| shard.margins.rescale(0.0));
        let scale = self.problem.scale;
        let mut projection = Projection::default();
        for (atom, weight) in active.iter() {
            projection.set(self.problem, atom);
            self.each(|shard| shard.add_atom(scale, weight, &projection.z, &projection.rows));
            self.admit(atom);
        }
        self.active = active;
        self.rebuild();
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        let rate = self.motion.rate;
        let factor = 1.0 + rate * gamma;
        let leaving = match step {
            Step::Drop { atom } | Step::Swap { from: atom, .. } => Some(*atom),
            _ => None,
        };
        let at = leaving.and_then(|atom| self.active.position(atom));
        self.active.apply(step);
        if factor <= 0.0 || self.active.len() + usize::from(at.is_some()) < self.slots.len() {
            // All weight moved to one atom, or weights vanished on the way.
            return self.start_at(self.active.clone());
        }
        self.sigma *= factor;
        let zones = self.zones;
        self.each_with_books(|shard, books| shard.advance(rate, gamma, books, zones));
        if let (Some(atom), Some(at)) = (leaving, at) {
            self.dismiss(atom, at);
        }
        if self.slots.len() < self.active.len() {
            let atom = *self
                .active
                .atoms()
                .last()
                .expect("a new atom joins at the end");
            self.admit(atom);
            self.cross_last(atom);
        }
        self.bound_diagonals();
        self.steps += 1;
        if self.steps == REBUILD_EVERY || !(1e-12..1e12).contains(&self.sigma) {
            self.rebuild();
        }
    }
}

impl<'p> Gradient<'p> for Incremental<'p> {
    fn refresh_all(&mut self) {}

    fn gain(&self, score: f64) -> f64 {
        self.problem.scale * score / self.problem.total_weight
    }

    fn gain_of_model(&self) -> f64 {
        self.sums().at_model(self.sigma) / self.problem.total_weight
    }

    fn active_scores(&mut self) -> Vec<f64> {
        let score = |(&atom, &slot): (&Atom, &u32)| {
            let cross = merged(&self.shards, self.sigma, |shard| {
                shard.pairs.cross[slot as usize]
            });
            self.diagonal_of(atom.i()) + self.diagonal_of(atom.j()) + atom.sign().value() * cross
        };
        self.active
            .atoms()
            .iter()
            .zip(&self.slots)
            .map(score)
            .collect()
    }
}

impl<'p> SymmetrizedGradient<'p> for Incremental<'p> {
    fn best_diagonal(&mut self) -> u32 {
        let (shards, sigma, search) = (&self.shards, self.sigma, &mut self.search);
        *self.best_diagonal.get_or_insert_with(|| {
            search.best_diagonals(1, &mut |j| diagonal_of(shards, sigma, j))[0]
        })
    }

    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Scored {
        let partner = Partner::new(self.problem, feature, self.diagonal_of(feature), floor);
        let reach = self.multiply(feature);
        // The best D makes a good partner for most, and so do the features of the latest atoms.
        let best = self.best_diagonal();
        let latest = self.active.atoms().iter().rev().take(LATEST);
        let first = std::iter::once(best).chain(latest.flat_map(|atom| [atom.i(), atom.j()]));
        let (shards, sigma) = (&self.shards, self.sigma);
        let mut diagonal = |j: u32| diagonal_of(shards, sigma, j);
        let found = self.search.best(partner, reach, &mut diagonal, first);
        found.expect("there are at least two features")
    }

    fn diagonal(&mut self) -> Vec<f64> {
        (0..self.problem.n_columns() as u32)
            .map(|j| self.diagonal_of(j))
            .collect()
    }

    fn each_pair(&self, mut visit: impl FnMut(u32, u32, f64)) {
        for shard in &self.shards {
            let pushes = shard.margins.pushes(self.sigma, self.zones);
            shard.pairs.pushed.each_pair(&pushes, &mut visit);
        }
    }
}

impl LineSearch for Incremental<'_> {
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.motion.set(self.problem, direction);
        let moving = std::mem::take(&mut self.motion);
        let (scale, sigma, zones) = (self.problem.scale, self.sigma, self.zones);
        self.each(|shard| shard.touch(scale, sigma, moving.motion()));
        let gamma = line_search(gamma_max, |gamma| {
            let parts = self.each(|shard| shard.margins.along(sigma, moving.rate, gamma, zones));
            parts
                .into_iter()
                .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
        });
        self.motion = moving;
        gamma
    }
}

/// Cuts the triplets into shards of about equal size at boundaries between anchors.
fn cut(problem: &Problem<'_>, n_shards: usize, cancel: CancelToken<'_>) -> Result<Vec<Shard>> {
    let anchors = problem.triplets.by_anchor(problem.rows.n_rows());
    anchors
        .cut(n_shards)
        .into_par_iter()
        .map(|rows| Shard::new(problem, &anchors, rows, cancel))
        .collect()
}
