//! S, D and H of active atoms, summed up over the triplets of one range of anchors.
//!
//! Every sum of pushes is kept as two numbers, (constant part) - σ (linear part), and changes only with triplets whose
//! share changed. Changes are gathered by anchor and passed on when the next anchor's turn comes.

use super::changes::{Books, Changes, Products};
use super::diagonal::Diagonal;
use crate::data::Overlap;
use crate::error::Result;
use crate::halt::Halt;
use crate::objective::Problem;
use crate::solver::margins::{Found, Two};
use crate::triplets::Anchors;
use std::ops::Range;

pub(super) struct Pairs {
    /// The anchors are rows `first..first + triplet_starts.len() - 1`.
    first: usize,
    triplet_starts: Vec<u32>,
    pair_starts: Vec<u32>,
    /// The pairs (anchor, near) and (anchor, far) of each triplet.
    near: Vec<u32>,
    far: Vec<u32>,
    /// The row that each pair joins its anchor to.
    others: Vec<u32>,
    /// S, by pair.
    sums: Vec<Two>,
    back: Back,
    products: Option<Products>,
    pub(super) diagonal: Diagonal,
    /// H_ij of active atoms, by slot.
    pub(super) cross: Vec<Two>,
    deltas: Deltas,
    /// The anchor whose changes are gathered.
    current: usize,
}

/// The same pairs by the row that is not the anchor, with S once more: a search reads whole lists of them, many times
/// for each time that a sum changes.
struct Back {
    starts: Vec<u32>,
    anchors: Vec<u32>,
    sums: Vec<Two>,
    /// Where each pair is.
    places: Vec<u32>,
}

impl Back {
    fn of(n_rows: usize, first: usize, pair_starts: &[u32], others: &[u32]) -> Self {
        let mut starts = vec![0u32; n_rows + 1];
        for &other in others {
            starts[other as usize + 1] += 1;
        }
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut fill = starts.clone();
        let (mut anchors, mut places) = (vec![0; others.len()], Vec::with_capacity(others.len()));
        for (k, bounds) in pair_starts.windows(2).enumerate() {
            for &other in &others[bounds[0] as usize..bounds[1] as usize] {
                let at = &mut fill[other as usize];
                anchors[*at as usize] = (first + k) as u32;
                places.push(*at);
                *at += 1;
            }
        }
        Self {
            starts,
            anchors,
            sums: vec![[0.0; 2]; others.len()],
            places,
        }
    }

    fn pairs_of(&self, row: usize) -> Range<usize> {
        self.starts[row] as usize..self.starts[row + 1] as usize
    }
}

/// Changes of the pairs of one anchor, gathered before they are passed on.
struct Deltas {
    by_pair: Vec<Two>,
    marked: Vec<bool>,
    changed: Vec<u32>,
    /// Σ_q delta_q x_qg over the changed pairs (anchor, q), for each active feature g.
    by_feature: Vec<Two>,
    /// Sums by place in the anchor's row.
    by_place: Vec<Two>,
    /// For what the anchor's row shares with others, where products are not kept.
    overlap: Overlap,
}

impl Pairs {
    /// Takes over the triplets of the anchors `anchors`.
    pub(super) fn new(
        problem: &Problem<'_>,
        grouped: &Anchors,
        anchors: Range<usize>,
        halt: Halt<'_>,
    ) -> Result<Self> {
        let triplets = problem.triplets;
        let n = grouped.starts()[anchors.end] - grouped.starts()[anchors.start];
        let n_rows = problem.rows.n_rows();
        let mut triplet_starts = vec![0u32; anchors.len() + 1];
        let (mut pair_starts, mut others) = (vec![0u32], Vec::new());
        let (mut near, mut far) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut seen = vec![(u32::MAX, 0u32); n_rows];
        for (k, anchor) in anchors.clone().enumerate() {
            halt.check()?;
            let mut pair_with = |other: u32| {
                let known = &mut seen[other as usize];
                if known.0 != anchor as u32 {
                    *known = (anchor as u32, others.len() as u32);
                    others.push(other);
                }
                known.1
            };
            triplets.each_of_anchor(grouped, anchor, |_, n, f| {
                near.push(pair_with(n));
                far.push(pair_with(f));
            });
            triplet_starts[k + 1] = near.len() as u32;
            pair_starts.push(others.len() as u32);
        }
        drop(seen);
        let back = Back::of(n_rows, anchors.start, &pair_starts, &others);
        let products = Products::of(problem, anchors.start, &pair_starts, &others, n, halt)?;
        let most_pairs = pair_starts
            .windows(2)
            .map(|w| (w[1] - w[0]) as usize)
            .max()
            .unwrap_or(0);
        Ok(Self {
            first: anchors.start,
            current: anchors.start,
            triplet_starts,
            pair_starts,
            near,
            far,
            sums: vec![[0.0; 2]; others.len()],
            others,
            back,
            diagonal: Diagonal::new(problem.n_columns()),
            cross: Vec::new(),
            deltas: Deltas {
                by_pair: vec![[0.0; 2]; most_pairs],
                marked: vec![false; most_pairs],
                changed: Vec::new(),
                by_feature: Vec::new(),
                by_place: Vec::new(),
                overlap: Overlap::new(problem.rows.longest()),
            },
            products,
        })
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

    /// The part of a sorted list of rows that are anchors of this shard.
    fn mine<'a>(&self, rows: &'a [u32]) -> &'a [u32] {
        let anchors = self.anchors();
        let from = rows.partition_point(|&r| (r as usize) < anchors.start);
        let to = rows.partition_point(|&r| (r as usize) < anchors.end);
        &rows[from..to]
    }

    /// Nothing pushes; [`Pairs::change`] for every triplet brings the sums back.
    pub(super) fn reset(&mut self, n_slots: usize) {
        self.sums.fill([0.0; 2]);
        self.back.sums.fill([0.0; 2]);
        self.diagonal.reset();
        self.cross.clear();
        self.cross.resize(n_slots, [0.0; 2]);
    }

    /// Triplet t pushes by `change` more. [`Pairs::flush`] has to follow.
    pub(super) fn change(&mut self, t: usize, change: Two, books: Books<'_>) {
        let starts = &self.triplet_starts;
        let k = self.current - self.first;
        if t >= starts[k + 1] as usize || t < starts[k] as usize {
            self.flush(books);
            self.current = self.first + self.anchor_of(k, t);
        }
        let base = self.pair_starts[self.current - self.first];
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

    /// The anchor of triplet t, counted from the first; most often soon after number k.
    fn anchor_of(&self, k: usize, t: usize) -> usize {
        let starts = &self.triplet_starts;
        let from = if t < starts[k] as usize { 0 } else { k };
        let ahead = starts[from + 1..].iter().take(8);
        match ahead.clone().position(|&start| start as usize > t) {
            Some(steps) => from + steps,
            None => starts.partition_point(|&start| start as usize <= t) - 1,
        }
    }

    /// Calls `each` with triplet, anchor, near and far of every triplet whose anchor is one of `rows`.
    pub(super) fn each_triplet(&self, rows: &[u32], mut each: impl FnMut(usize, u32, u32, u32)) {
        for &anchor in self.mine(rows) {
            self.each_of_anchor(anchor, |t, near, far| each(t, anchor, near, far));
        }
    }

    /// Calls `each` with what is touched of every anchor among `rows`, given how anchor, near and far are pushed.
    pub(super) fn each_touched(
        &self,
        rows: &[u32],
        found: &mut Found,
        push: impl Fn(usize, usize, usize) -> f64,
        mut each: impl FnMut(&Found),
    ) {
        for &anchor in self.mine(rows) {
            found.begin(self.triplets_of(anchor as usize).len());
            self.each_of_anchor(anchor, |t, near, far| {
                found.offer(t, push(anchor as usize, near as usize, far as usize));
            });
            each(found);
        }
    }

    #[inline]
    fn each_of_anchor(&self, anchor: u32, mut each: impl FnMut(usize, u32, u32)) {
        let range = self.triplets_of(anchor as usize);
        let rows = self.near[range.clone()]
            .iter()
            .zip(&self.far[range.clone()]);
        for (t, (&near, &far)) in range.zip(rows) {
            each(t, self.others[near as usize], self.others[far as usize]);
        }
    }

    /// Passes the noted changes of one anchor's pairs on to S, D and the H of active atoms.
    pub(super) fn flush(&mut self, books: Books<'_>) {
        if self.deltas.changed.is_empty() {
            return;
        }
        let anchor = self.current;
        let first = self.pair_starts[anchor - self.first] as usize;
        let last = self.pair_starts[anchor - self.first + 1] as usize;
        let deltas = &mut self.deltas;
        // Most changes are within the bent zone, where only the second number moves.
        let both = deltas
            .changed
            .iter()
            .any(|&local| deltas.by_pair[local as usize][0] != 0.0);
        let sums = &mut self.sums[first..last];
        let places = &self.back.places[first..last];
        for &local in &deltas.changed {
            let (sum, delta) = (&mut sums[local as usize], deltas.by_pair[local as usize]);
            *sum = [sum[0] + delta[0], sum[1] + delta[1]];
            // What is left when all triplets of a pair are satisfied is rounding: a true 0 can be passed over.
            if sum[0].abs() < 1e-12 && (books.sigma * sum[1]).abs() < 1e-12 {
                *sum = [0.0; 2];
            }
            self.back.sums[places[local as usize] as usize] = *sum;
        }
        let changes = Changes {
            own: books.rows.row(anchor),
            others: &self.others[first..last],
            changed: &deltas.changed,
            by_pair: &deltas.by_pair,
        };
        let diagonal = &mut self.diagonal;
        match &self.products {
            Some(products) if both => {
                products.pass_on::<true>(first, changes, &mut deltas.by_place, diagonal)
            }
            Some(products) => {
                products.pass_on::<false>(first, changes, &mut deltas.by_place, diagonal)
            }
            None => {
                let (overlap, sums) = (&mut deltas.overlap, &mut deltas.by_place);
                changes.pass_on_rows(books.rows, overlap, sums, diagonal);
            }
        }
        let linked = books.active_rows.row(anchor);
        if !linked.is_empty() {
            let sums = &mut deltas.by_feature;
            match both {
                true => changes.pass_on_active::<true>(books, linked, sums, &mut self.cross),
                false => changes.pass_on_active::<false>(books, linked, sums, &mut self.cross),
            }
        }
        for local in deltas.changed.drain(..) {
            deltas.marked[local as usize] = false;
            deltas.by_pair[local as usize] = [0.0; 2];
        }
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
                cross[0] += self.sums[pair][0] * product;
                cross[1] += self.sums[pair][1] * product;
            }
        }
        if self.cross.len() <= slot {
            self.cross.resize(slot + 1, [0.0; 2]);
        }
        self.cross[slot] = cross;
    }

    /// About how many sums the pairs of some rows are, so how long [`Pairs::each_product`] takes.
    pub(super) fn n_products(&self, rows: &[u32]) -> usize {
        let n_anchors = self.triplet_starts.len() - 1;
        let forth = self.mine(rows).len() * self.sums.len() / n_anchors.max(1);
        let back = rows.len() * self.sums.len() / (self.back.starts.len() - 1);
        forth + back
    }

    /// S x over this shard's pairs, as a row and what it gains, for a column x given spread out and as a list of rows.
    pub(super) fn each_product(
        &self,
        sigma: f64,
        spread: &[f64],
        holders: &[u32],
        mut gain: impl FnMut(usize, f64),
    ) {
        let mut walk = |others: &[u32], sums: &[Two], x: f64| {
            for (&other, &[constant, linear]) in others.iter().zip(sums) {
                if [constant, linear] != [0.0; 2] {
                    gain(other as usize, (constant - sigma * linear) * x);
                }
            }
        };
        let anchors = self.anchors();
        for &row in holders {
            let (row, x) = (row as usize, spread[row as usize]);
            if anchors.contains(&row) {
                let pairs = self.pairs_of(row);
                walk(&self.others[pairs.clone()], &self.sums[pairs], x);
            }
            let pairs = self.back.pairs_of(row);
            walk(&self.back.anchors[pairs.clone()], &self.back.sums[pairs], x);
        }
    }

    /// u += S x over this shard's pairs.
    ///
    /// Most features walk the pairs of the rows that hold them; for very common ones a pass over all pairs is cheaper.
    pub(super) fn multiply(&self, sigma: f64, spread: &[f64], holders: &[u32], u: &mut [f64]) {
        if 3 * self.n_products(holders) < 2 * self.sums.len() {
            self.each_product(sigma, spread, holders, |row, by| u[row] += by);
            return;
        }
        for anchor in self.anchors() {
            let at_anchor = spread[anchor];
            let pairs = self.pairs_of(anchor);
            let sums = &self.sums[pairs.clone()];
            let mut sum = 0.0;
            for (&other, &[constant, linear]) in self.others[pairs].iter().zip(sums) {
                let s = constant - sigma * linear;
                sum += s * spread[other as usize];
                if at_anchor != 0.0 {
                    u[other as usize] += s * at_anchor;
                }
            }
            u[anchor] += sum;
        }
    }

    /// Every pair with its sum of pushes, unless that is 0.
    pub(super) fn each_pair(&self, sigma: f64, visit: &mut impl FnMut(u32, u32, f64)) {
        for anchor in self.anchors() {
            for pair in self.pairs_of(anchor) {
                let [constant, linear] = self.sums[pair];
                let sum = constant - sigma * linear;
                if sum != 0.0 {
                    visit(anchor as u32, self.others[pair], sum);
                }
            }
        }
    }
}
