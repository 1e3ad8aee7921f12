//! S, D and H_ij of the active atoms, summed over the triplets of one range of anchors.
//!
//! Every sum of gradient weights is stored as an affine function of σ, and changes only with triplets whose gradient
//! weight changed as such. Changes are collected by anchor, and applied when those of the next anchor begin.

mod coefficients;
mod diagonal;
mod products;

use super::Problem;
use super::active_features::ActiveFeatures;
use super::margins::{Affine, GradientWeights, Margins};
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
    pub(crate) sigma: f64,
    pub(crate) rows: &'a PackedRows,
    pub(crate) features: &'a ActiveFeatures,
}

pub(crate) struct Pairs {
    /// S.
    pub(crate) coefficients: Coefficients,
    /// D.
    pub(crate) diagonal: Diagonal,
    /// H_ij of active atoms, by slot.
    pub(crate) cross: Vec<Affine>,
    /// S X_{:,i} of this shard, where shards multiply in parallel.
    pub(crate) u: Vec<f64>,
    products: Option<Products>,
    changes: Changes,
    buffers: Buffers,
    /// The anchor whose changes are being collected.
    current: usize,
}

/// Changes of the coefficients of one anchor's pairs, which are numbered from its first.
struct Changes {
    by_pair: Vec<Affine>,
    marked: Vec<bool>,
    changed: Vec<u32>,
}

struct Buffers {
    /// Σ_q delta_q x_qg over the changed pairs (anchor, q): for each active feature g, and by place in the anchor's row.
    by_feature: Vec<Affine>,
    by_place: Vec<Affine>,
    /// Finds what rows have in common, where products are not stored.
    overlap: Overlap,
}

/// Adds delta x: the linear part, and the constant one if it changes.
#[inline]
fn add<const BOTH: bool>(sum: &mut Affine, delta: Affine, x: f64) {
    if BOTH {
        sum[0] += delta[0] * x;
    }
    sum[1] += delta[1] * x;
}

impl Changes {
    /// Each changed pair with the change of its coefficient.
    fn iter(&self) -> impl Iterator<Item = (usize, Affine)> + '_ {
        let changed = self.changed.iter().map(|&local| local as usize);
        changed.map(|local| (local, self.by_pair[local]))
    }
}

impl Pairs {
    /// For the pairs that have these coefficients.
    pub(crate) fn new(
        problem: &Problem<'_>,
        coefficients: Coefficients,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let anchors = coefficients.anchors();
        let n_pairs = anchors.clone().map(|a| coefficients.pairs_of(a).len());
        let most_pairs = n_pairs.max().unwrap_or(0);
        Ok(Self {
            current: anchors.start,
            products: Products::new(problem, &coefficients, cancel)?,
            coefficients,
            diagonal: Diagonal::new(problem.n_columns()),
            cross: Vec::new(),
            u: Vec::new(),
            changes: Changes {
                by_pair: vec![[0.0; 2]; most_pairs],
                marked: vec![false; most_pairs],
                changed: Vec::new(),
            },
            buffers: Buffers {
                by_feature: Vec::new(),
                by_place: Vec::new(),
                overlap: Overlap::new(problem.rows.longest()),
            },
        })
    }

    /// Computes all sums from the margins.
    pub(crate) fn rebuild(&mut self, margins: &Margins, state: State<'_>) {
        self.coefficients.reset();
        self.diagonal.reset();
        self.cross.clear();
        self.cross.resize(state.features.n_slots(), [0.0; 2]);
        for t in 0..margins.len() {
            let weight = margins.affine_weight(t);
            if weight != [0.0; 2] {
                self.change(t, weight, state);
            }
        }
        self.flush(state);
    }

    /// Adds to the gradient weight of triplet t. [`Pairs::flush`] has to follow.
    pub(crate) fn change(&mut self, t: usize, by: Affine, state: State<'_>) {
        if !self.coefficients.of_anchor(self.current).contains(&t) {
            self.flush(state);
            self.current = self.coefficients.anchor_of(t, self.current);
        }
        let first = self.coefficients.pairs_of(self.current).start;
        let [near, far] = self.coefficients.pairs_of_triplet(t);
        for (pair, sign) in [(near, 1.0), (far, -1.0)] {
            let local = pair - first;
            if !std::mem::replace(&mut self.changes.marked[local], true) {
                self.changes.changed.push(local as u32);
            }
            let delta = &mut self.changes.by_pair[local];
            delta[0] += sign * by[0];
            delta[1] += sign * by[1];
        }
    }

    /// Applies the collected changes of one anchor's pairs to S, D and the H_ij of active atoms.
    pub(crate) fn flush(&mut self, state: State<'_>) {
        let changes = &self.changes;
        if changes.changed.is_empty() {
            return;
        }
        let (anchor, sigma) = (self.current, state.sigma);
        let (changed, by_pair) = (&changes.changed[..], &changes.by_pair[..]);
        self.coefficients.add(anchor, changed, by_pair, sigma);
        // Most changes are within the quadratic segment, where only the linear part of a weight changes.
        let both = changes.iter().any(|(_, delta)| delta[0] != 0.0);
        match both {
            true => self.update_sums::<true>(state),
            false => self.update_sums::<false>(state),
        }
        let changes = &mut self.changes;
        for local in changes.changed.drain(..) {
            changes.marked[local as usize] = false;
            changes.by_pair[local as usize] = [0.0; 2];
        }
    }

    fn update_sums<const BOTH: bool>(&mut self, state: State<'_>) {
        self.update_diagonal::<BOTH>(state);
        if !state.features.row(self.current).is_empty() {
            self.update_cross::<BOTH>(state);
        }
    }

    /// D: summed by place in the anchor's row, which stays in the cache, and added once for each of its columns.
    fn update_diagonal<const BOTH: bool>(&mut self, state: State<'_>) {
        let Self {
            coefficients,
            diagonal,
            products,
            changes,
            buffers,
            ..
        } = self;
        let own = state.rows.row(self.current);
        let pairs = coefficients.pairs_of(self.current);
        buffers.by_place.clear();
        buffers.by_place.resize(own.indices().len(), [0.0; 2]);
        let sums = &mut buffers.by_place[..];
        if let Some(products) = products {
            for (local, delta) in changes.iter() {
                products.each(pairs.start + local, |place, x| {
                    add::<BOTH>(&mut sums[place], delta, x);
                });
            }
        } else {
            let others = &coefficients.others()[pairs];
            buffers.overlap.learn(own.indices());
            for (local, delta) in changes.iter() {
                let other = state.rows.row(others[local] as usize);
                for &(place, at) in buffers.overlap.with(other.indices()) {
                    let x = other.values().at(at as usize);
                    add::<BOTH>(&mut sums[place as usize], delta, x);
                }
            }
        }
        let by_column = own.indices().iter().zip(sums);
        own.values().each_with(by_column, |(&column, sum), x| {
            if *sum != [0.0; 2] {
                diagonal.add::<BOTH>(column, [x * sum[0], x * sum[1]]);
            }
        });
    }

    /// H_ij of an active atom gains x_i of the anchor times Σ_q delta_q x_qj, and the same with i and j exchanged.
    fn update_cross<const BOTH: bool>(&mut self, State { features, .. }: State<'_>) {
        let others = &self.coefficients.others()[self.coefficients.pairs_of(self.current)];
        self.buffers.by_feature.clear();
        let n_features = features.n_features();
        self.buffers.by_feature.resize(n_features, [0.0; 2]);
        let sums = &mut self.buffers.by_feature[..];
        for (local, delta) in self.changes.iter() {
            for &(feature, x) in features.row(others[local] as usize) {
                add::<BOTH>(&mut sums[feature as usize], delta, x);
            }
        }
        for &(feature, x) in features.row(self.current) {
            for link in features.links(feature) {
                let cross = &mut self.cross[link.slot as usize];
                add::<BOTH>(cross, sums[link.to as usize], x);
            }
        }
    }

    /// Computes H_ij of a new atom, given its two columns by row and the rows that contain either.
    pub(crate) fn set_cross(
        &mut self,
        slot: usize,
        weights: &GradientWeights<'_>,
        (column_i, column_j): (&[f64], &[f64]),
        rows: &[u32],
    ) {
        let mut cross = [0.0; 2];
        for anchor in self.anchors_in(rows).iter().map(|&row| row as usize) {
            let (x_i, x_j) = (column_i[anchor], column_j[anchor]);
            let product = |other: usize| x_i * column_j[other] + x_j * column_i[other];
            let sum = self.coefficients.dot(anchor, weights, product);
            cross = [cross[0] + sum[0], cross[1] + sum[1]];
        }
        if self.cross.len() <= slot {
            self.cross.resize(slot + 1, [0.0; 2]);
        }
        self.cross[slot] = cross;
    }

    /// u = S x.
    pub(crate) fn multiply(&mut self, weights: &GradientWeights<'_>, column: &Column<'_>) {
        self.u.clear();
        self.u.resize(column.dense.len(), 0.0);
        self.coefficients.multiply(weights, column, &mut self.u);
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
