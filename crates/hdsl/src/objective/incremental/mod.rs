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
//! weight has become another function of σ. Changes are collected for one anchor at a time, and applied before those of
//! the next anchor.

mod coefficients;
mod diagonal;
mod products;

use super::Problem;
use super::active_features::ActiveFeatures;
use super::margins::{Affine, Margins};
use super::shard::ShardTriplets;
use crate::cancel::CancelToken;
use crate::data::{Overlap, PackedRows};
use crate::error::Result;
pub(crate) use coefficients::{Coefficients, Column, has_own_pairs};
use diagonal::Diagonal;
pub(crate) use products::MAX_WORK;
use products::Products;
use std::ops::Range;

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
    /// H_ij of the active atoms, in their order.
    pub(crate) cross: Vec<Affine>,
    /// C X_{:,i} over this shard, or its terms with their rows, if shards multiply in parallel.
    pub(crate) u: Vec<f64>,
    pub(crate) terms: Vec<(u32, f64)>,
    products: Option<Products>,
    /// The anchor whose changes are being collected.
    current: usize,
    /// The changes of the coefficients of this anchor's pairs, and the pairs whose change may differ from 0. Pairs are
    /// numbered from the anchor's first pair.
    by_pair: Vec<Affine>,
    changed: Vec<u32>,
    /// The changes that are being applied.
    changes: Vec<(usize, Affine)>,
    /// Σ_q delta_q x_qg over the changed pairs {anchor, q}: for each active feature g, and for each feature g of the
    /// anchor's row.
    by_feature: Vec<Affine>,
    by_place: Vec<Affine>,
    /// Finds the features that two rows share, if products are not stored.
    overlap: Overlap,
    /// The number of changed triplets, since the solver started.
    #[cfg(feature = "bench")]
    pub(crate) n_changed: usize,
}

/// Up to this many changes of an anchor's pairs are added to D one by one.
const FEW: usize = 4;

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
        Ok(Self {
            current: anchors.start,
            products: match store_products {
                true => Products::new(problem, &coefficients, cancel)?,
                false => None,
            },
            by_pair: vec![[0.0; 2]; n_pairs.max().unwrap_or(0)],
            coefficients,
            diagonal: Diagonal::new(problem.n_columns()),
            cross: Vec::new(),
            u: Vec::new(),
            terms: Vec::new(),
            changed: Vec::new(),
            changes: Vec::new(),
            by_feature: Vec::new(),
            by_place: Vec::new(),
            overlap: Overlap::new(problem.rows.longest()),
            #[cfg(feature = "bench")]
            n_changed: 0,
        })
    }

    /// Recomputes all sums from the margins. [`Pairs::flush`] must be called afterwards.
    pub(crate) fn rebuild(&mut self, margins: &Margins, state: State<'_>) {
        self.coefficients.reset();
        self.diagonal.reset();
        self.cross.clear();
        self.cross.resize(state.features.n_atoms(), [0.0; 2]);
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
            self.flush(state);
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

    /// Applies the collected changes of one anchor's pairs to C, D and the H_ij of active atoms.
    pub(crate) fn flush(&mut self, state: State<'_>) {
        if self.changed.is_empty() {
            return;
        }
        let by_pair = &mut self.by_pair;
        self.changes.clear();
        self.changes.extend(self.changed.drain(..).map(|local| {
            // A pair is listed twice if its change returned to 0 in between. The second time, its change is 0.
            let delta = std::mem::take(&mut by_pair[local as usize]);
            (local as usize, delta)
        }));
        let (anchor, sigma) = (self.current, state.sigma);
        self.coefficients.add(anchor, &self.changes, sigma);
        self.update_diagonal(state.rows);
        if !state.features.row(anchor).is_empty() {
            self.update_cross(state.features);
        }
    }

    /// Updates D. Many changes are first summed for each value of the anchor's row, in a buffer that fits in the cache, and
    /// then added to D once per column. A few are added at once, so that not all of the row has to be read.
    fn update_diagonal(&mut self, rows: &PackedRows) {
        let own = rows.row(self.current);
        let pairs = self.coefficients.pairs_of(self.current);
        let others = &self.coefficients.others()[pairs.clone()];
        let (constants, anchor) = (rows.constants(), self.current);
        let constant = |local: usize| constants.map(|x| x[anchor] * x[others[local] as usize]);
        if let Some(products) = &self.products
            && self.changes.len() <= FEW
        {
            for &(local, delta) in &self.changes {
                products.each(pairs.start + local, constant(local), |place, product| {
                    self.diagonal.add(own.indices()[place], delta, product);
                });
            }
            return;
        }
        self.by_place.clear();
        self.by_place.resize(own.indices().len(), [0.0; 2]);
        let sums = &mut self.by_place[..];
        if let Some(products) = &self.products {
            for &(local, delta) in &self.changes {
                let each = |place: usize, product: f64| add(&mut sums[place], delta, product);
                products.each(pairs.start + local, constant(local), each);
            }
        } else {
            self.overlap.learn(own.indices());
            for &(local, delta) in &self.changes {
                let other = rows.row(others[local] as usize);
                for &(place, at) in self.overlap.with(other.indices()) {
                    let product = own.values().at(place as usize) * other.values().at(at as usize);
                    add(&mut sums[place as usize], delta, product);
                }
            }
        }
        for (&column, sum) in own.indices().iter().zip(sums) {
            if *sum != [0.0; 2] {
                self.diagonal.add(column, *sum, 1.0);
            }
        }
    }

    /// Updates H_ij of the active atoms: adds x_i of the anchor times Σ_q delta_q x_qj, and the same with i and j
    /// exchanged.
    fn update_cross(&mut self, features: &ActiveFeatures) {
        let others = &self.coefficients.others()[self.coefficients.pairs_of(self.current)];
        self.by_feature.clear();
        self.by_feature.resize(features.n_features(), [0.0; 2]);
        // Slices stay in registers, where vectors would be read again after every addition.
        let (sums, cross) = (&mut self.by_feature[..], &mut self.cross[..]);
        for &(local, delta) in &self.changes {
            for &(feature, x) in features.row(others[local] as usize) {
                add(&mut sums[feature as usize], delta, x);
            }
        }
        for &(feature, x) in features.row(self.current) {
            for link in features.links(feature) {
                add(&mut cross[link.atom], sums[link.to as usize], x);
            }
        }
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
        let (n, bytes) = self.products.as_ref().map_or((0, 0), Products::size);
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
