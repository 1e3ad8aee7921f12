//! The solver state updated incrementally instead of computed again, for the hinges.
//!
//! Margins are in a [`MarginStore`], by shard. Each shard also has S, D and the H_ij of active atoms over its own
//! triplets ([`Pairs`]), which this file merges.

use super::engine::{Gradient, Iterate, LineSearch, SymmetrizedGradient};
use super::margin_store::{self, MarginStore, Shard};
use super::motion::Moving;
use super::partner::{PARALLEL, PartnerSearch};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::active_features::ActiveFeatures;
use crate::objective::incremental::{Coefficients, Column, Pairs, State};
use crate::objective::margins::Affine;
use crate::objective::{Problem, Scored};
use crate::parallel::prelude::*;
use crate::solver::direction::Direction;

/// Entries of u merged by one thread at a time.
const CHUNK: usize = 1 << 14;
/// Steps after which everything is computed again, since rounding errors add up.
const REBUILD_EVERY: usize = 2000;

pub(crate) struct Incremental<'p> {
    problem: &'p Problem<'p>,
    active: ActiveSet,
    features: ActiveFeatures,
    margins: MarginStore<'p, Pairs>,
    steps: usize,
    search: PartnerSearch<'p>,
    /// Pairs to visit that make it worth multiplying by shard.
    parallel_work: usize,
    /// The columns of the last atom.
    columns: Moving,
    /// A column by row, 0 between searches.
    dense: Vec<f64>,
    /// The feature with the largest D, if known.
    best_diagonal: Option<u32>,
}

impl<'p> Incremental<'p> {
    /// The state at M = 0.
    pub(crate) fn new(problem: &'p Problem<'p>, cancel: CancelToken<'_>) -> Result<Self> {
        let n_shards = margin_store::n_shards(problem.triplets.len());
        Self::in_shards(problem, n_shards, PARALLEL, cancel)
    }

    /// With this many shards, and threads for rows of H from this many values on. Both depend on the problem, never on
    /// the machine: sums are merged by shard.
    pub(super) fn in_shards(
        problem: &'p Problem<'p>,
        n_shards: usize,
        parallel_from: usize,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let n_rows = problem.rows.n_rows();
        let anchors = problem.triplets.by_anchor(n_rows);
        let pairs = |rows| {
            let coefficients = Coefficients::new(problem, &anchors, rows, cancel)?;
            Pairs::new(problem, coefficients, cancel)
        };
        let mut engine = Self {
            problem,
            active: ActiveSet::default(),
            features: ActiveFeatures::new(n_rows),
            margins: MarginStore::new(problem, &anchors, n_shards, pairs)?,
            steps: 0,
            search: PartnerSearch::new(problem, parallel_from),
            parallel_work: parallel_from / 4,
            columns: Moving::default(),
            dense: vec![0.0; n_rows],
            best_diagonal: None,
        };
        engine.rebuild();
        Ok(engine)
    }

    /// The margins, in the order of anchors.
    #[cfg(test)]
    pub(super) fn margins(&self) -> Vec<f64> {
        let shards = self.margins.shards.iter();
        shards
            .flat_map(|shard| shard.margins.iter(self.margins.sigma))
            .collect()
    }

    /// Computes all sums from the margins, with σ multiplied into them.
    fn rebuild(&mut self) {
        self.steps = 0;
        self.margins.settle();
        let state = State {
            sigma: self.margins.sigma,
            rows: &self.problem.rows,
            features: &self.features,
        };
        self.margins
            .each(|shard| shard.triplets.rebuild(&shard.margins, state));
        self.bound_diagonals();
    }

    /// Takes a step along the direction of the last line search, in margins, S, D and the H_ij of active atoms.
    fn advance_shards(&mut self, rate: f64, gamma: f64) {
        self.margins.sigma *= 1.0 + rate * gamma;
        let (sigma, segments) = (self.margins.sigma, self.margins.segments);
        let state = State {
            sigma,
            rows: &self.problem.rows,
            features: &self.features,
        };
        self.margins.each(
            |Shard {
                 margins, triplets, ..
             }| {
                margins.advance(rate, gamma, sigma, segments, |t, by| {
                    triplets.change(t, by, state);
                });
                triplets.flush(state);
            },
        );
    }

    /// Updates the bounds of D by block of columns.
    fn bound_diagonals(&mut self) {
        self.best_diagonal = None;
        let sigma = self.margins.sigma;
        self.margins
            .each(|shard| shard.triplets.diagonal.tighten(sigma));
        let shards = &self.margins.shards;
        for (block, sum) in self.search.block_diagonals.iter_mut().enumerate() {
            let bounds = shards
                .iter()
                .map(|shard| shard.triplets.diagonal.bound(block, sigma));
            *sum = bounds.sum();
        }
    }

    /// Computes H_ij of the last active atom.
    fn set_last_cross(&mut self) {
        let (atoms, slots) = (self.active.atoms(), self.features.slots());
        let (Some(&atom), Some(&slot)) = (atoms.last(), slots.last()) else {
            return;
        };
        self.columns.set_columns(self.problem, atom);
        let (column_i, column_j, rows) = self.columns.columns();
        let (sigma, segments) = (self.margins.sigma, self.margins.segments);
        self.margins.each(|shard| {
            let weights = shard.margins.gradient_weights(sigma, segments);
            let columns = (column_i, column_j);
            shard
                .triplets
                .set_cross(slot as usize, &weights, columns, rows);
        });
    }
    /// u = S X_{:,i} into the buffer of the search.
    fn multiply(&mut self, feature: u32) {
        let (rows, values) = self.problem.lists.column(feature);
        let mut dense = std::mem::take(&mut self.dense);
        for (&row, &x) in rows.iter().zip(values) {
            dense[row as usize] = x;
        }
        let column = Column {
            rows,
            dense: &dense,
        };
        let shards = self.margins.shards.iter();
        let work: usize = shards
            .map(|shard| shard.triplets.coefficients.work_of(&column))
            .sum();
        if 2 * work < dense.len() {
            self.multiply_sparse(&column);
        } else {
            self.multiply_dense(&column, work);
        }
        for &row in rows {
            dense[row as usize] = 0.0;
        }
        self.dense = dense;
    }

    /// For a column with few pairs: lists the rows where u may differ from 0.
    fn multiply_sparse(&mut self, column: &Column<'_>) {
        let MarginStore {
            sigma, segments, ..
        } = self.margins;
        let product = &mut self.search.product;
        for Shard {
            margins, triplets, ..
        } in &self.margins.shards
        {
            let weights = margins.gradient_weights(sigma, segments);
            let add = |row: usize, by: f64| product.add(row, by);
            triplets.coefficients.each_product(&weights, column, add);
        }
    }

    /// For other columns: in parallel by shard, where there is enough work.
    fn multiply_dense(&mut self, column: &Column<'_>, work: usize) {
        let MarginStore {
            sigma, segments, ..
        } = self.margins;
        let u = &mut self.search.product.u;
        if work < self.parallel_work || self.margins.shards.len() == 1 {
            for Shard {
                margins, triplets, ..
            } in &self.margins.shards
            {
                let weights = margins.gradient_weights(sigma, segments);
                triplets.coefficients.multiply(&weights, column, u);
            }
        } else {
            self.margins.each(|shard| {
                let weights = shard.margins.gradient_weights(sigma, segments);
                shard.triplets.multiply(&weights, column);
            });
            let shards = &self.margins.shards;
            let merge = |(chunk, u): (usize, &mut [f64])| {
                for shard in shards {
                    let part = &shard.triplets.u[chunk * CHUNK..];
                    u.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
                }
            };
            u.par_chunks_mut(CHUNK).enumerate().for_each(merge);
        }
    }
}

/// D of one feature.
fn diagonal_of(margins: &MarginStore<'_, Pairs>, feature: u32) -> f64 {
    merged(margins, |pairs| pairs.diagonal.get(feature))
}

/// The value of a sum over shards.
fn merged(margins: &MarginStore<'_, Pairs>, of_shard: impl Fn(&Pairs) -> Affine) -> f64 {
    let shards = margins.shards.iter().map(|shard| of_shard(&shard.triplets));
    let sum = shards.reduce(|a, b| [a[0] + b[0], a[1] + b[1]]);
    let sum = sum.expect("there is at least one shard");
    sum[0] - margins.sigma * sum[1]
}

impl<'p> Iterate<'p> for Incremental<'p> {
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
        let from_zero = self.active.is_empty();
        self.active = active;
        if let [atom] = *self.active.atoms()
            && from_zero
        {
            // A step to the atom that rescales nothing.
            self.margins.list_affected(Direction::Forward(atom));
            self.advance_shards(0.0, 1.0);
            self.features.follow(self.problem, &self.active);
            self.set_last_cross();
            return self.bound_diagonals();
        }
        self.margins.start_at(&self.active);
        self.features = ActiveFeatures::new(self.problem.rows.n_rows());
        self.features.follow(self.problem, &self.active);
        self.rebuild();
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        let rate = self.margins.rate();
        self.active.apply(step);
        if 1.0 + rate * gamma <= 0.0 {
            // All weight moved to one atom.
            return self.start_at(self.active.clone());
        }
        self.advance_shards(rate, gamma);
        if self.features.follow(self.problem, &self.active) > 0 {
            self.set_last_cross();
        }
        self.bound_diagonals();
        self.steps += 1;
        if self.steps == REBUILD_EVERY || self.margins.should_settle() {
            self.rebuild();
        }
    }
}

impl<'p> Gradient<'p> for Incremental<'p> {
    fn refresh_all(&mut self) {}

    fn gain(&self, score: f64) -> f64 {
        self.problem.lambda * score / self.problem.total_weight
    }

    fn gain_of_model(&self) -> f64 {
        self.margins.model_gain()
    }

    fn active_scores(&mut self) -> Vec<f64> {
        let score = |(atom, &slot): (&Atom, &u32)| {
            let [d_i, d_j] = [atom.i(), atom.j()].map(|j| diagonal_of(&self.margins, j));
            let h = merged(&self.margins, |pairs| pairs.cross[slot as usize]);
            d_i + d_j + atom.sign().value() * h
        };
        let atoms = self.active.atoms().iter();
        atoms.zip(self.features.slots()).map(score).collect()
    }
}

impl<'p> SymmetrizedGradient<'p> for Incremental<'p> {
    fn best_diagonal(&mut self) -> u32 {
        let (margins, search) = (&self.margins, &mut self.search);
        *self
            .best_diagonal
            .get_or_insert_with(|| search.best_diagonal(|j| diagonal_of(margins, j)))
    }

    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Scored {
        self.multiply(feature);
        let best = self.best_diagonal();
        let diagonal = |j: u32| diagonal_of(&self.margins, j);
        let active = self.active.atoms();
        self.search.best(feature, floor, &diagonal, best, active)
    }

    fn diagonal(&mut self) -> Vec<f64> {
        let columns = 0..self.problem.n_columns() as u32;
        columns.map(|j| diagonal_of(&self.margins, j)).collect()
    }

    fn each_pair(&self, mut visit: impl FnMut(u32, u32, f64)) {
        let MarginStore {
            sigma, segments, ..
        } = self.margins;
        for Shard {
            margins, triplets, ..
        } in &self.margins.shards
        {
            let weights = margins.gradient_weights(sigma, segments);
            triplets.coefficients.each_pair(&weights, &mut visit);
        }
    }
}

impl LineSearch for Incremental<'_> {
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.margins.search_line(direction, gamma_max)
    }
}
