//! C, D and H_ij of the active atoms, summed over the triplets of one range of anchors.
//!
//! With gradient weights w_t = -v_t ℓ'(m_t), let G = Σ_t w_t x_a (x_n - x_f)ᵀ = -V ∇f, where a, n and f are the anchor,
//! the near and the far row of triplet t. The *pair coefficient* c_pq of two rows is the sum of w_t over the triplets
//! with {a, n} = {p, q}, minus the sum over those with {a, f} = {p, q}. C is the symmetric matrix of pair coefficients.
//! The symmetrized gradient is H = G + Gᵀ = Xᵀ C X, and its half diagonal is D_i = H_ii / 2. An atom
//! B = λ(e_i ± e_j)(e_i ± e_j)ᵀ has <B, G> = λ (D_i + D_j ± H_ij), and D_i + D_j ± H_ij is its *score*. Mined triplets
//! share pairs, so a sum over pairs is several times less work than a sum over triplets.
//!
//! Every sum of gradient weights is stored as an affine function of σ. It is updated only for triplets whose gradient
//! weight has become another function of σ. Changes are collected for one anchor at a time and applied to C. D and H_ij
//! are updated for several anchors at once.

mod changes;
mod coefficients;
mod cross;
mod diagonal;
mod diagonal_update;
mod products;

use super::Problem;
use super::active_features::ActiveFeatures;
use super::margins::{Affine, Margins};
use super::shard::ShardTriplets;
use crate::cancel::CancelToken;
use crate::data::PackedRows;
use crate::error::Result;
use crate::parallel;
use changes::Changes;
pub(crate) use coefficients::{Coefficients, Column, has_own_pairs};
use cross::Cross;
use diagonal::Diagonal;
use diagonal_update::DiagonalUpdate;
pub(crate) use products::MAX_WORK;
use products::Products;
use std::ops::Range;

/// After this many changes of pair coefficients, which take 200 kB, D and the H_ij of active atoms are updated.
const UPDATED_TOGETHER: usize = 1 << 13;
/// From this many changes on, one thread updates D and another one H_ij. Fewer are not worth waking another thread. This and the
/// number above affect speed only, and were not varied.
const PARALLEL_CHANGES: usize = 1 << 8;

/// The part of the solver state that every shard reads.
#[derive(Clone, Copy)]
pub(crate) struct State<'a> {
    pub(crate) rows: &'a PackedRows,
    pub(crate) features: &'a ActiveFeatures,
    pub(crate) sigma: f64,
}

pub(crate) struct Pairs {
    /// C.
    pub(crate) coefficients: Coefficients,
    /// D.
    pub(crate) diagonal: Diagonal,
    /// H_ij of the active atoms.
    pub(crate) cross: Cross,
    /// C X_{:,i} over this shard, or its terms with their rows, if shards multiply in parallel.
    pub(crate) u: Vec<f64>,
    pub(crate) terms: Vec<(u32, f64)>,
    diagonal_update: DiagonalUpdate,
    /// The anchor whose changes are being collected.
    current: usize,
    /// The changes of the coefficients of this anchor's pairs, and the pairs whose change may differ from 0. Pairs are
    /// numbered from the anchor's first pair.
    by_pair: Vec<Affine>,
    changed: Vec<u32>,
    /// The changes of C that D and H_ij do not have yet.
    changes: Changes,
    /// The number of changed triplets, since the solver started.
    #[cfg(feature = "bench")]
    pub(crate) n_changed: usize,
}

/// Adds delta times x.
#[inline]
fn add(sum: &mut Affine, delta: Affine, x: f64) {
    *sum = [sum[0] + delta[0] * x, sum[1] + delta[1] * x];
}

impl Pairs {
    /// The sums over the pairs of `coefficients`, all 0. Storing products pays off if there will be many changes.
    pub(crate) fn new(
        problem: &Problem<'_>,
        coefficients: Coefficients,
        store_products: bool,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let anchors = coefficients.anchors();
        let n_pairs = anchors.clone().map(|a| coefficients.pairs_of(a).len());
        let products = match store_products {
            true => Products::new(problem, &coefficients, cancel)?,
            false => None,
        };
        Ok(Self {
            current: anchors.start,
            diagonal_update: DiagonalUpdate::new(products, &problem.rows),
            by_pair: vec![[0.0; 2]; n_pairs.max().unwrap_or(0)],
            coefficients,
            diagonal: Diagonal::new(problem.n_columns()),
            cross: Cross::default(),
            u: Vec::new(),
            terms: Vec::new(),
            changed: Vec::new(),
            changes: Changes::default(),
            #[cfg(feature = "bench")]
            n_changed: 0,
        })
    }

    /// Recomputes all sums from the margins. [`Pairs::flush`] must be called afterwards.
    pub(crate) fn rebuild(&mut self, margins: &Margins, state: State<'_>) {
        self.coefficients.reset();
        self.diagonal.reset();
        self.cross.reset(state.features.n_atoms());
        for t in 0..margins.len() {
            let weight = margins.affine_weight(t);
            if weight != [0.0; 2] {
                self.change(t, weight, state);
            }
        }
    }

    /// Adds `by` to the gradient weight of triplet t. [`Pairs::flush`] must be called afterwards.
    pub(crate) fn change(&mut self, t: usize, by: Affine, state: State<'_>) {
        #[cfg(feature = "bench")]
        {
            self.n_changed += 1;
        }
        if !self.coefficients.of_anchor(self.current).contains(&t) {
            self.collect(state.sigma);
            if self.changes.len() >= UPDATED_TOGETHER {
                self.update(state);
            }
            self.current = self.coefficients.anchor_of(t, self.current);
        }
        let first = self.coefficients.pairs_of(self.current).start;
        let [near, far] = self.coefficients.pairs_of_triplet(t);
        for (pair, sign) in [(near, 1.0), (far, -1.0)] {
            let delta = &mut self.by_pair[pair - first];
            if *delta == [0.0; 2] {
                self.changed.push((pair - first) as u32);
            }
            add(delta, by, sign);
        }
    }

    /// Applies all changes to C, D and the H_ij of active atoms.
    pub(crate) fn flush(&mut self, state: State<'_>) {
        self.collect(state.sigma);
        self.update(state);
    }

    /// Applies the changes of the current anchor's pairs to C.
    fn collect(&mut self, sigma: f64) {
        if self.changed.is_empty() {
            return;
        }
        let by_pair = &mut self.by_pair;
        let changed = self.changed.drain(..).map(|local| {
            // A pair is listed twice if its change returned to 0 in between. The second time, its change is 0.
            let delta = std::mem::take(&mut by_pair[local as usize]);
            (local as usize, delta)
        });
        let changes = self.changes.push(self.current, changed);
        self.coefficients.add(self.current, changes, sigma);
    }

    /// Updates D and the H_ij of active atoms for the changes of C. Each sum is computed by one thread in the order of the
    /// changes, so the result is bitwise equal for any number of threads.
    fn update(&mut self, state: State<'_>) {
        let (changes, coefficients) = (&self.changes, &self.coefficients);
        let (diagonal, of_diagonal) = (&mut self.diagonal, &mut self.diagonal_update);
        let mut update_diagonal =
            || of_diagonal.update(changes, coefficients, state.rows, diagonal);
        let mut update_cross = || self.cross.update(changes, coefficients, state.features);
        if changes.len() >= PARALLEL_CHANGES {
            parallel::join_outside_loops(update_diagonal, update_cross);
        } else {
            update_diagonal();
            update_cross();
        }
        self.changes.clear();
    }

    /// Computes H_ij of a new active atom, given its two columns as dense vectors and the rows that contain either
    /// feature.
    pub(crate) fn push_cross(
        &mut self,
        margins: &Margins,
        [column_i, column_j]: &[Vec<f64>; 2],
        rows: &[u32],
    ) {
        let mut cross = [0.0; 2];
        for anchor in self.anchors_in(rows).iter().map(|&row| row as usize) {
            let (x_i, x_j) = (column_i[anchor], column_j[anchor]);
            let product = |other: usize| x_i * column_j[other] + x_j * column_i[other];
            let sum = self.coefficients.dot(anchor, margins, product);
            add(&mut cross, sum, 1.0);
        }
        self.cross.push(cross);
    }

    /// The mean number of features that the two rows of a pair share, and the bytes of each; 0 if they are not stored.
    #[cfg(feature = "bench")]
    pub(crate) fn mean_shared(&self) -> (f64, f64) {
        let products = self.diagonal_update.products.as_ref();
        let (n, bytes) = products.map_or((0, 0), Products::size);
        let n_pairs = self.coefficients.others().len().max(1);
        (n as f64 / n_pairs as f64, bytes as f64)
    }

    /// Computes u = C x over this shard.
    pub(crate) fn multiply(&mut self, margins: &Margins, column: &Column<'_>) {
        self.u.clear();
        self.u.resize(column.dense.len(), 0.0);
        self.coefficients.multiply(margins, column, &mut self.u);
    }

    /// Lists the terms of u = C x over this shard.
    pub(crate) fn list_terms(&mut self, margins: &Margins, column: &Column<'_>) {
        self.terms.clear();
        let add = |row: usize, by: f64| self.terms.push((row as u32, by));
        self.coefficients.each_product_of_many(margins, column, add);
    }
}

impl ShardTriplets for Pairs {
    fn anchors(&self) -> Range<usize> {
        self.coefficients.anchors()
    }

    fn of_anchor(&self, anchor: usize) -> Range<usize> {
        self.coefficients.of_anchor(anchor)
    }

    #[inline]
    fn each_of_anchor(&self, anchor: usize, each: impl FnMut(usize, u32, u32)) {
        self.coefficients.each_of_anchor(anchor, each);
    }
}
