//! "Sum over my triplets": everything the engine keeps, for the triplets of one range of anchors.
//!
//! A margin is σ μ with one σ for all, so that a step rescales every margin in O(1) and only *touched* triplets
//! (those with <A^t, B> ≠ 0) get a new μ. The loss has three zones: straight (m <= 0, push v), bent (push v (1 - m))
//! and satisfied (no push). A sum of pushes times something fixed is then (constant part) - σ (linear part), where
//! a triplet gives (v, 0), (v, v μ) or (0, 0) by zone. Pairs, diagonal and active scores are kept as such two
//! numbers, and change only with triplets that were touched or changed zone.

use super::active_rows::ActiveRows;
use super::links::Links;
use crate::data::Rows;
use crate::objective::Problem;
use std::ops::Range;

/// Two numbers that mean first - σ second.
pub(super) type Two = [f64; 2];

/// Triplets whose zone bounds are kept together.
const BLOCK: usize = 128;

/// Columns whose diagonal bounds are kept together.
pub(super) const COLUMNS: usize = 64;

const STRAIGHT: u8 = 0;
const BENT: u8 = 1;
const SATISFIED: u8 = 2;
/// Set while a triplet is on the list of touched ones.
const LISTED: u8 = 4;

/// Where a loss changes from one zone to the next.
#[derive(Clone, Copy)]
pub(super) struct Zones {
    /// The squared hinge has no straight zone.
    pub(super) has_straight: bool,
}

impl Zones {
    fn of(self, margin: f64) -> u8 {
        if margin >= 1.0 {
            SATISFIED
        } else if margin <= 0.0 && self.has_straight {
            STRAIGHT
        } else {
            BENT
        }
    }
}

/// What a triplet adds to every sum.
fn share(zone: u8, mu: f64, v: f64) -> Two {
    match zone {
        STRAIGHT => [v, 0.0],
        BENT => [v, v * mu],
        _ => [0.0, 0.0],
    }
}

/// Sums over triplets by zone: enough for objective, <M, ∇f> and the untouched part of a line search.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) unsatisfied: usize,
    pub(super) weight_straight: f64,
    pub(super) mu_straight: f64,
    pub(super) weight_bent: f64,
    pub(super) mu_bent: f64,
    pub(super) square_bent: f64,
}

impl Sums {
    fn add(&mut self, zone: u8, mu: f64, v: f64) {
        match zone {
            STRAIGHT => {
                self.unsatisfied += 1;
                self.weight_straight += v;
                self.mu_straight += v * mu;
            }
            BENT => {
                self.unsatisfied += 1;
                self.weight_bent += v;
                self.mu_bent += v * mu;
                self.square_bent += v * mu * mu;
            }
            _ => {}
        }
    }

    fn remove(&mut self, zone: u8, mu: f64, v: f64) {
        match zone {
            STRAIGHT => {
                self.unsatisfied -= 1;
                self.weight_straight -= v;
                self.mu_straight -= v * mu;
            }
            BENT => {
                self.unsatisfied -= 1;
                self.weight_bent -= v;
                self.mu_bent -= v * mu;
                self.square_bent -= v * mu * mu;
            }
            _ => {}
        }
        if self.unsatisfied == 0 {
            *self = Self::default();
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.unsatisfied += other.unsatisfied;
        self.weight_straight += other.weight_straight;
        self.mu_straight += other.mu_straight;
        self.weight_bent += other.weight_bent;
        self.mu_bent += other.mu_bent;
        self.square_bent += other.square_bent;
    }
}

/// A direction as the triplets see it: m(γ) = (1 + rate γ) m + γ b, with b = 0 where untouched.
#[derive(Clone, Copy)]
pub(super) struct Motion<'a> {
    /// -1 forward, 1 away, 0 pairwise.
    pub(super) rate: f64,
    /// z of the atom moved to (forward, pairwise) or from (away), and the sign its <A^t, B> comes in with.
    pub(super) main: &'a [f64],
    pub(super) sign: f64,
    /// z of the atom moved from, in a pairwise step.
    pub(super) other: Option<&'a [f64]>,
    /// Rows where either is not 0, increasing.
    pub(super) rows: &'a [u32],
}

/// A touched triplet during a line search.
struct Touched {
    t: u32,
    margin: f64,
    /// dm/dγ.
    slope: f64,
    /// The coefficient of γ / σ' in the new μ.
    push: f64,
}

/// What the products of paired rows are, or that they are too many to keep.
struct Products {
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

pub(super) struct Shard {
    /// The anchors of this shard are rows `first..first + triplet_starts.len() - 1`.
    first: usize,
    triplet_starts: Vec<u32>,
    pair_starts: Vec<u32>,
    /// The pairs (anchor, near) and (anchor, far) of each triplet.
    near: Vec<u32>,
    far: Vec<u32>,
    weights: Option<Vec<f64>>,
    /// The row that each pair joins its anchor to.
    others: Vec<u32>,
    /// For each row, the pairs it is the other of, with their anchors.
    back_starts: Vec<u32>,
    back: Vec<(u32, u32)>,
    products: Option<Products>,
    mu: Vec<f64>,
    zone: Vec<u8>,
    /// Least μ of the satisfied and greatest of the bent triplets of each block, or beyond.
    least_satisfied: Vec<f64>,
    greatest_bent: Vec<f64>,
    pub(super) sums: Sums,
    /// S, by pair.
    pairs: Vec<Two>,
    /// D, by column; by block of columns, the most of its first and the least of its second number; and whether a
    /// block changed since those were taken.
    pub(super) diagonal: Vec<Two>,
    pub(super) diagonal_bounds: Vec<Two>,
    stale: Vec<bool>,
    /// H_ij of active atoms, by slot.
    pub(super) cross: Vec<Two>,
    touched: Vec<Touched>,
    untouched: Sums,
    crossers: Vec<(f64, f64)>,
    crossers_to: f64,
    deltas: Deltas,
    /// Row of S X_{:,i} from this shard's pairs.
    pub(super) u: Vec<f64>,
    pub(super) reached: Reached,
}

/// Which entries of `u` may differ from 0.
pub(super) enum Reached {
    Rows(Vec<u32>),
    All,
}

/// Changes of the pairs of one anchor, gathered before they are passed on.
#[derive(Default)]
struct Deltas {
    by_pair: Vec<Two>,
    marked: Vec<bool>,
    changed: Vec<u32>,
    /// Σ_q delta_q x_qg over the changed pairs (anchor, q), for each active feature g.
    by_feature: Vec<Two>,
    /// The anchor's values spread out over columns, where products are not kept.
    by_column: Vec<f64>,
}

impl Shard {
    /// Takes over the triplets `sorted[range]`, which are all those of anchors `anchors`, sorted by anchor.
    pub(super) fn new(problem: &Problem<'_>, anchors: Range<usize>, sorted: &[u32]) -> Self {
        let triplets = problem.triplets;
        let n_rows = problem.rows.n_rows();
        let mut triplet_starts = vec![0u32; anchors.len() + 1];
        let (mut pair_starts, mut others) = (vec![0u32], Vec::new());
        let (mut near, mut far) = (
            Vec::with_capacity(sorted.len()),
            Vec::with_capacity(sorted.len()),
        );
        let mut seen = vec![(u32::MAX, 0u32); n_rows];
        let mut next = 0;
        for (k, anchor) in anchors.clone().enumerate() {
            let mut pair_with = |other: u32| {
                let known = &mut seen[other as usize];
                if known.0 != anchor as u32 {
                    *known = (anchor as u32, others.len() as u32);
                    others.push(other);
                }
                known.1
            };
            while next < sorted.len() && triplets.anchor()[sorted[next] as usize] as usize == anchor
            {
                let t = sorted[next] as usize;
                near.push(pair_with(triplets.near()[t]));
                far.push(pair_with(triplets.far()[t]));
                next += 1;
            }
            triplet_starts[k + 1] = next as u32;
            pair_starts.push(others.len() as u32);
        }
        drop(seen);
        let mut back_starts = vec![0u32; n_rows + 1];
        for &other in &others {
            back_starts[other as usize + 1] += 1;
        }
        for row in 0..n_rows {
            back_starts[row + 1] += back_starts[row];
        }
        let mut fill = back_starts.clone();
        let mut back = vec![(0, 0); others.len()];
        for (k, anchor) in anchors.clone().enumerate() {
            for pair in pair_starts[k]..pair_starts[k + 1] {
                let at = &mut fill[others[pair as usize] as usize];
                back[*at as usize] = (pair, anchor as u32);
                *at += 1;
            }
        }
        let limit = 8 * (problem.rows.nnz() + sorted.len());
        let products = Products::of(&problem.rows, anchors.start, &pair_starts, &others, limit);
        let n = sorted.len();
        let n_columns = problem.n_columns();
        let most_pairs = pair_starts
            .windows(2)
            .map(|w| (w[1] - w[0]) as usize)
            .max()
            .unwrap_or(0);
        Self {
            first: anchors.start,
            triplet_starts,
            pair_starts,
            near,
            far,
            weights: triplets
                .weights()
                .map(|v| sorted.iter().map(|&t| v[t as usize]).collect()),
            pairs: vec![[0.0; 2]; others.len()],
            others,
            back_starts,
            back,
            mu: vec![0.0; n],
            zone: vec![SATISFIED; n],
            least_satisfied: vec![f64::INFINITY; n.div_ceil(BLOCK)],
            greatest_bent: vec![f64::NEG_INFINITY; n.div_ceil(BLOCK)],
            sums: Sums::default(),
            diagonal: vec![[0.0; 2]; n_columns],
            diagonal_bounds: vec![[0.0; 2]; n_columns.div_ceil(COLUMNS)],
            stale: vec![true; n_columns.div_ceil(COLUMNS)],
            cross: Vec::new(),
            touched: Vec::new(),
            untouched: Sums::default(),
            crossers: Vec::new(),
            crossers_to: 0.0,
            deltas: Deltas {
                by_pair: vec![[0.0; 2]; most_pairs],
                marked: vec![false; most_pairs],
                changed: Vec::new(),
                by_feature: Vec::new(),
                by_column: if products.is_none() {
                    vec![0.0; n_columns]
                } else {
                    Vec::new()
                },
            },
            products,
            u: vec![0.0; n_rows],
            reached: Reached::Rows(Vec::new()),
        }
    }

    fn anchors(&self) -> Range<usize> {
        self.first..self.first + self.triplet_starts.len() - 1
    }

    fn triplets_of(&self, anchor: usize) -> Range<usize> {
        let k = anchor - self.first;
        self.triplet_starts[k] as usize..self.triplet_starts[k + 1] as usize
    }

    fn pairs_of(&self, anchor: usize) -> Range<usize> {
        let k = anchor - self.first;
        self.pair_starts[k] as usize..self.pair_starts[k + 1] as usize
    }

    fn weight(&self, t: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |v| v[t])
    }

    /// The part of a sorted list of rows that are anchors of this shard.
    fn mine<'a>(&self, rows: &'a [u32]) -> &'a [u32] {
        let anchors = self.anchors();
        let from = rows.partition_point(|&r| (r as usize) < anchors.start);
        let to = rows.partition_point(|&r| (r as usize) < anchors.end);
        &rows[from..to]
    }

    /// μ += weight <A^t, B> for every triplet, B given by its z; for a start from an earlier solution.
    pub(super) fn add_atom(&mut self, scale: f64, weight: f64, z: &[f64], rows: &[u32]) {
        for &anchor in self.mine(rows) {
            for t in self.triplets_of(anchor as usize) {
                let z_of = |pair: u32| z[self.others[pair as usize] as usize];
                let b = scale * z[anchor as usize] * (z_of(self.near[t]) - z_of(self.far[t]));
                self.mu[t] += weight * b;
            }
        }
    }

    /// μ of every triplet times `factor`.
    pub(super) fn rescale(&mut self, factor: f64) {
        self.mu.iter_mut().for_each(|mu| *mu *= factor);
    }

    /// f times V, from the margins themselves.
    pub(super) fn value(&self, sigma: f64, zones: Zones) -> f64 {
        let mut sum = 0.0;
        for (t, &mu) in self.mu.iter().enumerate() {
            let m = sigma * mu;
            sum += self.weight(t)
                * match zones.of(m) {
                    STRAIGHT => 0.5 - m,
                    BENT => 0.5 * (1.0 - m) * (1.0 - m),
                    _ => 0.0,
                };
        }
        sum
    }

    /// Everything from μ, at σ = 1.
    pub(super) fn rebuild(&mut self, books: Books<'_>, zones: Zones) {
        self.sums = Sums::default();
        self.pairs.fill([0.0; 2]);
        self.diagonal.fill([0.0; 2]);
        self.stale.fill(true);
        self.cross.clear();
        self.cross.resize(books.links.n_slots(), [0.0; 2]);
        self.least_satisfied.fill(f64::INFINITY);
        self.greatest_bent.fill(f64::NEG_INFINITY);
        for anchor in self.anchors() {
            for t in self.triplets_of(anchor) {
                let (mu, v) = (self.mu[t], self.weight(t));
                self.zone[t] = zones.of(mu);
                self.sums.add(self.zone[t], mu, v);
                self.widen_block(t);
                let gained = share(self.zone[t], mu, v);
                self.change_pairs(anchor, t, gained);
            }
            self.pass_on(anchor, books);
        }
    }

    fn widen_block(&mut self, t: usize) {
        let (block, mu) = (t / BLOCK, self.mu[t]);
        match self.zone[t] {
            SATISFIED => self.least_satisfied[block] = self.least_satisfied[block].min(mu),
            BENT => self.greatest_bent[block] = self.greatest_bent[block].max(mu),
            _ => {}
        }
    }

    /// Notes that triplet t of the anchor pushes by `change` more.
    fn change_pairs(&mut self, anchor: usize, t: usize, change: Two) {
        if change == [0.0; 2] {
            return;
        }
        let base = self.pair_starts[anchor - self.first];
        for (pair, sign) in [(self.near[t], 1.0), (self.far[t], -1.0)] {
            let local = (pair - base) as usize;
            if !std::mem::replace(&mut self.deltas.marked[local], true) {
                self.deltas.changed.push(local as u32);
            }
            let delta = &mut self.deltas.by_pair[local];
            delta[0] += sign * change[0];
            delta[1] += sign * change[1];
        }
    }

    /// Passes the noted changes of one anchor's pairs on to S, D and the H of active atoms.
    fn pass_on(&mut self, anchor: usize, books: Books<'_>) {
        if self.deltas.changed.is_empty() {
            return;
        }
        let base = self.pair_starts[anchor - self.first] as usize;
        let Deltas {
            by_pair,
            marked,
            changed,
            by_feature,
            by_column,
        } = &mut self.deltas;
        let linked = books.active_rows.row(anchor);
        by_feature.clear();
        by_feature.resize(books.links.n_features(), [0.0; 2]);
        let own = books.rows.row(anchor);
        if self.products.is_none() {
            for (column, x) in own.iter() {
                by_column[column as usize] = x;
            }
        }
        for local in changed.drain(..) {
            let local = local as usize;
            marked[local] = false;
            let delta = std::mem::take(&mut by_pair[local]);
            let pair = base + local;
            let sum = &mut self.pairs[pair];
            *sum = [sum[0] + delta[0], sum[1] + delta[1]];
            // What is left when all triplets of a pair are satisfied is rounding: a true 0 can be passed over.
            if sum[0].abs() < 1e-12 && (books.sigma * sum[1]).abs() < 1e-12 {
                *sum = [0.0; 2];
            }
            let other = self.others[pair] as usize;
            match &self.products {
                Some(products) => {
                    let range = products.starts[pair] as usize..products.starts[pair + 1] as usize;
                    let products = products.columns[range.clone()]
                        .iter()
                        .zip(&products.values[range]);
                    if delta[0] == 0.0 {
                        // Most changes are within the bent zone.
                        for (&column, &x) in products {
                            self.diagonal[column as usize][1] += delta[1] * x;
                            self.stale[column as usize / COLUMNS] = true;
                        }
                    } else {
                        for (&column, &x) in products {
                            let d = &mut self.diagonal[column as usize];
                            d[0] += delta[0] * x;
                            d[1] += delta[1] * x;
                            self.stale[column as usize / COLUMNS] = true;
                        }
                    }
                }
                None => {
                    for (column, x) in books.rows.row(other).iter() {
                        let product = by_column[column as usize] * x;
                        if product != 0.0 {
                            let d = &mut self.diagonal[column as usize];
                            d[0] += delta[0] * product;
                            d[1] += delta[1] * product;
                            self.stale[column as usize / COLUMNS] = true;
                        }
                    }
                }
            }
            if !linked.is_empty() {
                for &(feature, x) in books.active_rows.row(other) {
                    let sum = &mut by_feature[feature as usize];
                    sum[0] += delta[0] * x;
                    sum[1] += delta[1] * x;
                }
            }
        }
        // H_ij of an atom gains x_i of the anchor times the sum at j, and the other way round.
        for &(feature, x) in linked {
            for link in books.links.of(feature) {
                let (cross, sum) = (
                    &mut self.cross[link.slot as usize],
                    by_feature[link.to as usize],
                );
                cross[0] += x * sum[0];
                cross[1] += x * sum[1];
            }
        }
        if self.products.is_none() {
            for &column in own.indices() {
                by_column[column as usize] = 0.0;
            }
        }
    }

    /// Makes the bounds of the diagonal exact again where it changed.
    pub(super) fn tighten(&mut self) {
        let blocks = self
            .diagonal
            .chunks(COLUMNS)
            .zip(&mut self.diagonal_bounds)
            .zip(&mut self.stale);
        for ((block, bound), stale) in blocks {
            if std::mem::take(stale) {
                *bound = block
                    .iter()
                    .fold([f64::NEG_INFINITY, f64::INFINITY], |a, d| {
                        [
                            if d[0] > a[0] { d[0] } else { a[0] },
                            if d[1] < a[1] { d[1] } else { a[1] },
                        ]
                    });
            }
        }
    }

    /// Finds the touched triplets: the anchor has z ≠ 0 and so has near or far.
    pub(super) fn touch(&mut self, scale: f64, sigma: f64, motion: Motion<'_>) {
        self.forget_touched();
        self.untouched = self.sums;
        self.crossers.clear();
        self.crossers_to = 0.0;
        for &anchor in self.mine(motion.rows) {
            let at_anchor = motion.main[anchor as usize];
            for t in self.triplets_of(anchor as usize) {
                let (near, far) = (
                    self.others[self.near[t] as usize] as usize,
                    self.others[self.far[t] as usize] as usize,
                );
                let mut b = scale * at_anchor * (motion.main[near] - motion.main[far]);
                if let Some(other) = motion.other {
                    b -= scale * other[anchor as usize] * (other[near] - other[far]);
                }
                if b == 0.0 {
                    continue;
                }
                let v = self.weight(t);
                self.untouched.remove(self.zone[t], self.mu[t], v);
                self.zone[t] |= LISTED;
                let margin = sigma * self.mu[t];
                let push = motion.sign * b;
                self.touched.push(Touched {
                    t: t as u32,
                    margin,
                    slope: push + motion.rate * margin,
                    push,
                });
            }
        }
    }

    /// Clears what an abandoned line search left.
    fn forget_touched(&mut self) {
        for touched in self.touched.drain(..) {
            self.zone[touched.t as usize] &= !LISTED;
        }
    }

    /// φ'(γ) and φ''(γ) of this shard's part of V f.
    pub(super) fn along(&mut self, sigma: f64, rate: f64, gamma: f64, zones: Zones) -> (f64, f64) {
        let (mut first, mut second) = (0.0, 0.0);
        for touched in &self.touched {
            let m = touched.margin + gamma * touched.slope;
            let v = self.weights.as_ref().map_or(1.0, |v| v[touched.t as usize]);
            match zones.of(m) {
                STRAIGHT => first -= v * touched.slope,
                BENT => {
                    first -= v * (1.0 - m) * touched.slope;
                    second += v * touched.slope * touched.slope;
                }
                _ => {}
            }
        }
        if rate == 0.0 {
            return (first, second);
        }
        // Untouched: m(γ) = factor m, so slope = rate m. The straight stay straight.
        let factor = 1.0 + rate * gamma;
        let u = &self.untouched;
        first -= rate * sigma * (u.mu_straight + u.mu_bent)
            - rate * factor * sigma * sigma * u.square_bent;
        second += sigma * sigma * u.square_bent;
        // Those that change zone on the way: satisfied ones that fall below 1, or bent ones that rise above.
        if gamma > self.crossers_to {
            self.find_crossers(sigma, rate, 1.5 * gamma);
        }
        for &(m, v) in &self.crossers {
            let moved = factor * m;
            if rate < 0.0 && moved < 1.0 {
                first -= v * (1.0 - moved) * rate * m;
                second += v * m * m;
            } else if rate > 0.0 && moved >= 1.0 {
                first += v * (1.0 - moved) * rate * m;
                second -= v * m * m;
            }
        }
        (first, second)
    }

    /// Whether a block may hold a satisfied triplet with μ below `joint` (forward) or a bent one at it or above (away).
    fn may_cross(&self, block: usize, rate: f64, joint: f64) -> bool {
        if rate < 0.0 {
            self.least_satisfied[block] < joint
        } else {
            self.greatest_bent[block] >= joint
        }
    }

    /// Lists the untouched triplets that change zone for some γ up to `to`.
    fn find_crossers(&mut self, sigma: f64, rate: f64, to: f64) {
        self.crossers.clear();
        self.crossers_to = to;
        let factor = (1.0 + rate * to).max(0.0);
        let joint = 1.0 / (sigma * factor);
        for block in 0..self.least_satisfied.len() {
            if !self.may_cross(block, rate, joint) {
                continue;
            }
            let zone = if rate < 0.0 { SATISFIED } else { BENT };
            for t in block * BLOCK..((block + 1) * BLOCK).min(self.mu.len()) {
                let mu = self.mu[t];
                if self.zone[t] == zone && (if rate < 0.0 { mu < joint } else { mu >= joint }) {
                    self.crossers.push((sigma * mu, self.weight(t)));
                }
            }
        }
    }

    /// Carries the step out. σ is the new one.
    pub(super) fn advance(&mut self, rate: f64, gamma: f64, books: Books<'_>, zones: Zones) {
        let sigma = books.sigma;
        let touched = std::mem::take(&mut self.touched);
        let mut anchor = self.first;
        for touched in &touched {
            let t = touched.t as usize;
            anchor = self.reach(anchor, t, books);
            let before = self.zone[t] & !LISTED;
            let (old, v) = (self.mu[t], self.weight(t));
            let new = old + gamma * touched.push / sigma;
            let after = zones.of(sigma * new);
            self.mu[t] = new;
            self.zone[t] = after;
            self.sums.remove(before, old, v);
            self.sums.add(after, new, v);
            self.widen_block(t);
            let (lost, gained) = (share(before, old, v), share(after, new, v));
            self.change_pairs(anchor, t, [gained[0] - lost[0], gained[1] - lost[1]]);
        }
        self.pass_on(anchor, books);
        self.touched = touched;
        self.touched.clear();
        if rate != 0.0 {
            self.change_zones(rate, books, zones);
        }
    }

    /// Goes on to the anchor of triplet t, passing on the changes of the one before.
    fn reach(&mut self, mut anchor: usize, t: usize, books: Books<'_>) -> usize {
        if t >= self.triplet_starts[anchor - self.first + 1] as usize {
            self.pass_on(anchor, books);
            let starts = &self.triplet_starts[anchor - self.first + 1..];
            anchor += starts.partition_point(|&start| start as usize <= t);
        }
        anchor
    }

    /// Zone changes of untouched triplets: only where σ μ crosses 1.
    fn change_zones(&mut self, rate: f64, books: Books<'_>, zones: Zones) {
        let sigma = books.sigma;
        let joint = 1.0 / sigma;
        let mut anchor = self.first;
        for block in 0..self.least_satisfied.len() {
            if !self.may_cross(block, rate, joint) {
                continue;
            }
            self.least_satisfied[block] = f64::INFINITY;
            self.greatest_bent[block] = f64::NEG_INFINITY;
            for t in block * BLOCK..((block + 1) * BLOCK).min(self.mu.len()) {
                let (before, mu) = (self.zone[t], self.mu[t]);
                let after = zones.of(sigma * mu);
                if after != before {
                    anchor = self.reach(anchor, t, books);
                    let v = self.weight(t);
                    self.zone[t] = after;
                    self.sums.remove(before, mu, v);
                    self.sums.add(after, mu, v);
                    let (lost, gained) = (share(before, mu, v), share(after, mu, v));
                    self.change_pairs(anchor, t, [gained[0] - lost[0], gained[1] - lost[1]]);
                }
                self.widen_block(t);
            }
        }
        self.pass_on(anchor, books);
    }

    /// H_ij of a new atom, given its two columns spread out and the rows that hold either.
    pub(super) fn cross_new(
        &mut self,
        slot: usize,
        column_i: &[f64],
        column_j: &[f64],
        rows: &[u32],
    ) {
        let mut cross = [0.0; 2];
        for &anchor in self.mine(rows) {
            let (x_i, x_j) = (column_i[anchor as usize], column_j[anchor as usize]);
            for pair in self.pairs_of(anchor as usize) {
                let other = self.others[pair] as usize;
                let product = x_i * column_j[other] + x_j * column_i[other];
                cross[0] += self.pairs[pair][0] * product;
                cross[1] += self.pairs[pair][1] * product;
            }
        }
        if self.cross.len() <= slot {
            self.cross.resize(slot + 1, [0.0; 2]);
        }
        self.cross[slot] = cross;
    }

    /// u = S x over this shard's pairs, for a column x given spread out and as a list of rows.
    ///
    /// Rare features walk the pairs of the rows that hold them; for common ones a pass over all pairs is cheaper.
    pub(super) fn multiply(&mut self, sigma: f64, spread: &[f64], holders: &[u32]) {
        self.clear_u();
        let forth: usize = self
            .mine(holders)
            .iter()
            .map(|&a| self.pairs_of(a as usize).len())
            .sum();
        let back: usize = holders
            .iter()
            .map(|&o| (self.back_starts[o as usize + 1] - self.back_starts[o as usize]) as usize)
            .sum();
        // A step of the walk back is a jump in memory; a step of the pass is not.
        if forth + 3 * back >= self.pairs.len() {
            for anchor in self.anchors() {
                let at_anchor = spread[anchor];
                let mut sum = 0.0;
                for pair in self.pairs_of(anchor) {
                    let s = self.pairs[pair][0] - sigma * self.pairs[pair][1];
                    let other = self.others[pair] as usize;
                    sum += s * spread[other];
                    if at_anchor != 0.0 {
                        self.u[other] += s * at_anchor;
                    }
                }
                self.u[anchor] += sum;
            }
            self.reached = Reached::All;
            return;
        }
        let Reached::Rows(mut reached) = std::mem::replace(&mut self.reached, Reached::All) else {
            unreachable!("clearing leaves a list");
        };
        // A row may be listed twice if its entry returns to 0 on the way; whoever reads the list allows for that.
        for &row in holders {
            let (row, x) = (row as usize, spread[row as usize]);
            if self.anchors().contains(&row) {
                for pair in self.pairs_of(row) {
                    if self.pairs[pair] == [0.0; 2] {
                        continue;
                    }
                    let s = self.pairs[pair][0] - sigma * self.pairs[pair][1];
                    let other = self.others[pair] as usize;
                    if self.u[other] == 0.0 {
                        reached.push(other as u32);
                    }
                    self.u[other] += s * x;
                }
            }
            for at in self.back_starts[row] as usize..self.back_starts[row + 1] as usize {
                let (pair, anchor) = self.back[at];
                if self.pairs[pair as usize] == [0.0; 2] {
                    continue;
                }
                let s = self.pairs[pair as usize][0] - sigma * self.pairs[pair as usize][1];
                if self.u[anchor as usize] == 0.0 {
                    reached.push(anchor);
                }
                self.u[anchor as usize] += s * x;
            }
        }
        self.reached = Reached::Rows(reached);
    }

    fn clear_u(&mut self) {
        match &mut self.reached {
            Reached::Rows(rows) => {
                for row in rows.drain(..) {
                    self.u[row as usize] = 0.0;
                }
            }
            Reached::All => {
                self.u.fill(0.0);
                self.reached = Reached::Rows(Vec::new());
            }
        }
    }

    /// Every pair of this shard with its sum of pushes, unless that is 0.
    pub(super) fn each_pair(&self, sigma: f64, visit: &mut impl FnMut(u32, u32, f64)) {
        for anchor in self.anchors() {
            for pair in self.pairs_of(anchor) {
                let [first, second] = self.pairs[pair];
                let sum = first - sigma * second;
                if sum != 0.0 {
                    visit(anchor as u32, self.others[pair], sum);
                }
            }
        }
    }

    /// Margins, for tests.
    #[cfg(test)]
    pub(super) fn margins(&self, sigma: f64) -> impl Iterator<Item = f64> + '_ {
        self.mu.iter().map(move |mu| sigma * mu)
    }
}

/// What every shard reads: σ, the rows, the active features of each, and which atoms link them.
#[derive(Clone, Copy)]
pub(super) struct Books<'a> {
    pub(super) sigma: f64,
    pub(super) rows: &'a Rows,
    pub(super) active_rows: &'a ActiveRows,
    pub(super) links: &'a Links,
}

impl Products {
    /// x_anchor ∘ x_other for every pair; none if there would be more than `limit` numbers.
    fn of(
        rows: &Rows,
        first: usize,
        pair_starts: &[u32],
        others: &[u32],
        limit: usize,
    ) -> Option<Self> {
        let mut products = Self {
            starts: Vec::with_capacity(others.len() + 1),
            columns: Vec::new(),
            values: Vec::new(),
        };
        let mut spread = vec![0.0; rows.n_features()];
        products.starts.push(0);
        for (k, bounds) in pair_starts.windows(2).enumerate() {
            let own = rows.row(first + k);
            for (column, x) in own.iter() {
                spread[column as usize] = x;
            }
            for &other in &others[bounds[0] as usize..bounds[1] as usize] {
                for (column, x) in rows.row(other as usize).iter() {
                    let mine = spread[column as usize];
                    if mine != 0.0 {
                        products.columns.push(column);
                        products.values.push(mine * x);
                    }
                }
                products.starts.push(products.columns.len() as u32);
            }
            for &column in own.indices() {
                spread[column as usize] = 0.0;
            }
            if products.columns.len() > limit.min(u32::MAX as usize / 2) {
                return None;
            }
        }
        products.columns.shrink_to_fit();
        products.values.shrink_to_fit();
        Some(products)
    }
}
