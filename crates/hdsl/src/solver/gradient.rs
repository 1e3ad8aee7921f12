//! The symmetrized gradient H = G + Gᵀ = Xᵀ C X and its half diagonal D_i = H_ii / 2, as the oracles need them.
//!
//! Each shard has C, D and the H_ij of active atoms, summed over its own triplets ([`Pairs`]). This file adds up the
//! shards. The score of an atom is D_i + D_j ± H_ij, see [`crate::objective::incremental`].

#[cfg(feature = "bench")]
pub(crate) mod traffic;

use super::margin_store::{MarginStore, Shard, n_shards};
use super::partner::{Limits, Partner, PartnerSearch, Top};
use crate::atoms::{ActiveSet, Atom};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::active_features::ActiveFeatures;
use crate::objective::incremental::{Coefficients, Column, Pairs, State};
use crate::objective::margins::{Affine, Margins};
use crate::objective::{Base, Problem, Scored};
use crate::parallel::{self, current_num_threads};
use crate::triplets::{Anchors, Triplets};

/// The number of entries of u that one thread merges at a time.
const CHUNK: usize = 1 << 14;
/// From this part of [`SymmetrizedGradient::parallel_work`] on, the terms of a product are listed in parallel.
const LISTED_SHARE: usize = 16;

pub(super) type PairStore<'p> = MarginStore<'p, Pairs>;

/// The gradient at an iterate, over all triplets or over a batch.
pub(crate) struct SymmetrizedGradient<'p> {
    problem: &'p Problem<'p>,
    active: ActiveSet,
    features: ActiveFeatures,
    pub(super) margins: PairStore<'p>,
    search: PartnerSearch<'p>,
    /// The number of pairs to visit from which the shards multiply in parallel.
    parallel_work: usize,
    /// One column of X as a dense vector over rows. All entries are 0 between searches.
    dense: Vec<f64>,
    /// The feature with the largest D, if known.
    best_diagonal: Option<u32>,
    /// V, the sum of the triplet weights.
    total_weight: f64,
    /// <M, -∇f>.
    model_gain: f64,
}

/// A store of all triplets at M = 0, on top of this base. It stores the features that the two rows of a pair share, which
/// pays off because the gradient is computed many times.
pub(super) fn pair_store<'p>(
    problem: &'p Problem<'p>,
    base: &Base,
    anchors: &Anchors,
    n_shards: usize,
    cancel: CancelToken<'_>,
) -> Result<PairStore<'p>> {
    let triplets = problem.triplets;
    let pairs = |rows| {
        let coefficients = Coefficients::new(triplets, anchors, rows, cancel)?;
        Pairs::new(problem, coefficients, true, cancel)
    };
    MarginStore::new(problem, base, triplets, anchors, n_shards, pairs)
}

/// The store of the gradient over triplets that have gradient weights as their weights.
pub(super) fn gradient_store<'p>(problem: &'p Problem<'p>, triplets: &Triplets) -> PairStore<'p> {
    let anchors = triplets.by_anchor(problem.rows.n_rows());
    let pairs = |rows| {
        let coefficients = Coefficients::new(triplets, &anchors, rows, CancelToken::NEVER)?;
        Pairs::new(problem, coefficients, false, CancelToken::NEVER)
    };
    let n_shards = n_shards(triplets.len());
    MarginStore::new(problem, &Base::None, triplets, &anchors, n_shards, pairs)
        .expect("it is never cancelled")
}

impl<'p> SymmetrizedGradient<'p> {
    /// The gradient at M = 0 over these triplets. Rows of H are computed by several threads from `parallel_from` values
    /// on.
    pub(super) fn new(
        problem: &'p Problem<'p>,
        margins: PairStore<'p>,
        parallel_from: usize,
    ) -> Self {
        let mut gradient = Self {
            problem,
            active: ActiveSet::default(),
            features: ActiveFeatures::new(problem.rows.n_rows()),
            margins,
            search: PartnerSearch::new(problem, parallel_from),
            parallel_work: parallel_from / 4,
            dense: vec![0.0; problem.rows.n_rows()],
            best_diagonal: None,
            total_weight: problem.total_weight,
            model_gain: 0.0,
        };
        gradient.rebuild();
        gradient
    }

    /// The problem being solved.
    pub(crate) fn problem(&self) -> &'p Problem<'p> {
        self.problem
    }

    /// The active atoms with their weights, in internal feature numbering.
    pub(crate) fn active(&self) -> &ActiveSet {
        &self.active
    }

    /// Takes the active atoms out, to be changed and set again.
    pub(super) fn take_active(&mut self) -> ActiveSet {
        std::mem::take(&mut self.active)
    }

    /// <B, -∇f> of an atom with this score.
    pub(crate) fn gain(&self, score: f64) -> f64 {
        self.problem.lambda * score / self.total_weight
    }

    /// <M, -∇f>.
    pub(crate) fn gain_of_model(&self) -> f64 {
        self.model_gain
    }

    /// The score of every active atom, in the order of the active set.
    pub(crate) fn active_scores(&self) -> Vec<f64> {
        let score = |(place, atom): (usize, &Atom)| {
            let [d_i, d_j] = [atom.i(), atom.j()].map(|j| diagonal_of(&self.margins, j));
            let h = merged(&self.margins, |pairs| pairs.cross.get(place));
            d_i + d_j + atom.sign().value() * h
        };
        self.active.atoms().iter().enumerate().map(score).collect()
    }

    /// The feature with the largest D; the first one if several are equal.
    pub(crate) fn best_diagonal(&mut self) -> u32 {
        let (margins, search) = (&self.margins, &self.search);
        *self
            .best_diagonal
            .get_or_insert_with(|| search.best_diagonal(|j| diagonal_of(margins, j)))
    }

    /// The best atom that contains this feature, or `floor` if that is better. A floor saves most of the work.
    /// Partners with H_ij = 0 are considered too, because D_i + D_j may be high.
    pub(crate) fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Scored {
        self.multiply(feature);
        self.best_of_product(feature, floor)
    }

    /// [`Self::best_partner`], given u = C X_{:,i}.
    pub(super) fn best_of_product(&mut self, feature: u32, floor: Option<Scored>) -> Scored {
        let best = self.best_diagonal();
        let diagonal = |j: u32| diagonal_of(&self.margins, j);
        let active = self.active.atoms();
        self.search.best(feature, floor, &diagonal, best, active)
    }

    /// The partners of a feature with the largest D_j + |H_ij|. The product u = C X_{:,i} is kept for
    /// [`Self::more_partners`] and [`Self::partner`], until [`Self::end_row`].
    pub(super) fn top_partners(&mut self, feature: u32, limits: Limits) -> Top {
        self.end_row();
        self.multiply(feature);
        self.more_partners(feature, limits)
    }

    /// The same for the feature of the last call of [`Self::top_partners`].
    pub(super) fn more_partners(&mut self, feature: u32, limits: Limits) -> Top {
        let best = self.best_diagonal();
        let diagonal = |j: u32| diagonal_of(&self.margins, j);
        let active = self.active.atoms();
        self.search.top(feature, limits, &diagonal, best, active)
    }

    /// D_j and H_ij of one column j, for the feature i of the last call of [`Self::top_partners`].
    pub(super) fn partner(&self, column: u32) -> Partner {
        self.search.partner(column, self.diagonal_at(column))
    }

    /// Forgets the product of [`Self::top_partners`].
    pub(super) fn end_row(&mut self) {
        self.search.product.clear();
    }

    /// Up to `most` features with the largest D.
    pub(super) fn top_diagonal(&self, most: usize) -> Top {
        self.search.top_diagonal(most, |j| self.diagonal_at(j))
    }

    /// D of one feature.
    pub(super) fn diagonal_at(&self, feature: u32) -> f64 {
        diagonal_of(&self.margins, feature)
    }

    /// D of every feature.
    pub(crate) fn diagonal(&self) -> Vec<f64> {
        let columns = 0..self.problem.n_columns() as u32;
        columns.map(|j| diagonal_of(&self.margins, j)).collect()
    }

    /// Calls `visit` for every pair of rows {p, q} with its coefficient, which is at (p, q) and at (q, p) of C. Zeros
    /// are left out. A pair may be visited several times; its coefficient is then the sum.
    pub(crate) fn each_pair(&self, mut visit: impl FnMut(u32, u32, f64)) {
        for Shard { margins, triplets } in &self.margins.shards {
            triplets.coefficients.each_pair(margins, &mut visit);
        }
    }

    /// Replaces the active atoms. The caller must then update all sums. Returns which of the previous atoms are kept.
    pub(super) fn set_active(&mut self, active: ActiveSet) -> Vec<bool> {
        self.active = active;
        self.features.follow(self.problem, &self.active)
    }

    /// Recomputes all sums, for a store of the gradient alone. `total_weight` is the sum V of the original weights of its
    /// triplets, and `model_gain` is <M, -∇f>.
    pub(super) fn recompute(&mut self, total_weight: f64, model_gain: f64) {
        self.rebuild();
        (self.total_weight, self.model_gain) = (total_weight, model_gain);
    }

    /// Multiplies σ into the margins, and recomputes all sums from them.
    pub(super) fn rebuild(&mut self) {
        self.update(1.0, |margins, pairs, state| {
            margins.settle();
            pairs.rebuild(margins, state);
        });
        self.update_bounds();
    }

    /// Takes a step along the direction of the last line search: updates margins, C, D and the H_ij of active atoms.
    pub(super) fn advance(&mut self, gamma: f64) {
        let factor = 1.0 + self.margins.motion.rate * gamma;
        let sigma = factor * self.margins.sigma();
        self.update(sigma, |margins, pairs, state| {
            margins.advance(gamma, |t, by| pairs.change(t, by, state));
        });
    }

    /// Calls `change` for every shard. `sigma` is the value of σ after the change.
    fn update(
        &mut self,
        sigma: f64,
        change: impl Fn(&mut Margins, &mut Pairs, State<'_>) + Sync + Send,
    ) {
        let state = State {
            rows: &self.problem.rows,
            features: &self.features,
            sigma,
        };
        self.margins.each(|Shard { margins, triplets }| {
            change(margins, triplets, state);
            triplets.flush(state);
        });
    }

    /// Replaces the active atoms by those after the last step, and updates their H_ij. At most one atom is new.
    pub(super) fn follow(&mut self, active: ActiveSet) {
        let stays = self.set_active(active);
        let n_staying = stays.iter().filter(|&&stays| stays).count();
        if n_staying < stays.len() {
            for shard in &mut self.margins.shards {
                shard.triplets.cross.retain(&stays);
            }
        }
        for &atom in &self.active.atoms()[n_staying..] {
            let columns = [atom.i(), atom.j()].map(|j| self.problem.column(j));
            let rows = self.problem.rows_of(atom);
            self.margins
                .each(|Shard { margins, triplets }| triplets.push_cross(margins, &columns, &rows));
        }
        self.update_bounds();
    }

    /// Updates the upper bound of D in each block of columns, and <M, -∇f>.
    fn update_bounds(&mut self) {
        self.best_diagonal = None;
        self.model_gain = self.margins.model_gain();
        let sigma = self.margins.sigma();
        self.margins
            .each(|shard| shard.triplets.diagonal.tighten(sigma));
        for (block, sum) in self.search.block_diagonals.iter_mut().enumerate() {
            let shards = self.margins.shards.iter();
            let bounds = shards.map(|shard| shard.triplets.diagonal.bound(block, sigma));
            *sum = bounds.sum();
        }
    }

    /// Writes u = C X_{:,i} to the buffer of the search.
    pub(super) fn multiply(&mut self, feature: u32) {
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
        let work = shards.map(|shard| shard.triplets.coefficients.work_of(&column));
        self.multiply_column(&column, work.sum());
        for &row in rows {
            dense[row as usize] = 0.0;
        }
        self.dense = dense;
    }

    /// [`Self::multiply`], given the column and the number of pairs to visit. Shards multiply in parallel if there is enough
    /// work. u has the same bits for any number of threads.
    fn multiply_column(&mut self, column: &Column<'_>, work: usize) {
        let product = &mut self.search.product;
        let margins = &mut self.margins;
        let has_shards = margins.shards.len() > 1;
        if has_shards && work >= self.parallel_work {
            margins.each(|Shard { margins, triplets }| triplets.multiply(margins, column));
            let merge = |(chunk, u): (usize, &mut [f64])| {
                for shard in &margins.shards {
                    let part = &shard.triplets.u[chunk * CHUNK..];
                    u.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
                }
            };
            let chunks = product.dense().chunks_mut(CHUNK).enumerate();
            parallel::map_each(chunks.collect(), merge);
            return;
        }
        let is_sparse = 2 * work < column.dense.len();
        // To find the terms is most of the work. To merge sums would take longer than to add few terms one by one.
        let is_worth_it = work >= self.parallel_work / LISTED_SHARE && current_num_threads() > 1;
        let walks = |shard: &Shard<Pairs>| shard.triplets.coefficients.walks(column);
        if has_shards && is_worth_it && margins.shards.iter().all(walks) {
            margins.each(|Shard { margins, triplets }| triplets.list_terms(margins, column));
            let shards = margins.shards.iter();
            let terms = shards.flat_map(|shard| &shard.triplets.terms);
            let terms = terms.map(|&(row, by)| (row as usize, by));
            match is_sparse {
                true => terms.for_each(|(row, by)| product.add(row, by)),
                false => {
                    let u = product.dense();
                    terms.for_each(|(row, by)| u[row] += by);
                }
            }
            return;
        }
        for Shard { margins, triplets } in &margins.shards {
            let coefficients = &triplets.coefficients;
            match is_sparse {
                true => coefficients.each_product(margins, column, |row, by| product.add(row, by)),
                false => coefficients.multiply(margins, column, product.dense()),
            }
        }
    }
}

/// D of one feature.
fn diagonal_of(margins: &PairStore<'_>, feature: u32) -> f64 {
    merged(margins, |pairs| pairs.diagonal.get(feature))
}

/// The value of a sum over shards.
fn merged(margins: &PairStore<'_>, of_shard: impl Fn(&Pairs) -> Affine) -> f64 {
    let shards = margins.shards.iter().map(|shard| of_shard(&shard.triplets));
    let sum = shards.reduce(|a, b| [a[0] + b[0], a[1] + b[1]]);
    let sum = sum.expect("there is at least one shard");
    sum[0] - margins.sigma() * sum[1]
}
