//! S, D and H of active atoms, summed up over the triplets of one range of anchors.
//!
//! Every sum of pushes is kept as two numbers, (constant part) - σ (linear part), and changes only with triplets whose
//! share changed. Changes are gathered by anchor and passed on when the next anchor's turn comes.

use super::changes::{Books, Changes, Products};
use super::diagonal::Diagonal;
use super::pushed::Pushed;
use crate::cancel::CancelToken;
use crate::data::Overlap;
use crate::error::Result;
use crate::objective::Problem;
use crate::solver::margins::{Found, Pushes, Two};
use crate::triplets::Anchors;
use std::ops::Range;

pub(super) struct Pairs {
    /// S.
    pub(super) pushed: Pushed,
    products: Option<Products>,
    pub(super) diagonal: Diagonal,
    /// H_ij of active atoms, by slot.
    pub(super) cross: Vec<Two>,
    deltas: Deltas,
    /// The anchor whose changes are gathered.
    current: usize,
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
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let n = grouped.starts()[anchors.end] - grouped.starts()[anchors.start];
        let pushed = Pushed::new(problem, grouped, anchors.clone(), cancel)?;
        let (pair_starts, others) = (pushed.pair_starts(), pushed.others());
        let products = Products::of(problem, anchors.start, pair_starts, others, n, cancel)?;
        let most_pairs = pair_starts
            .windows(2)
            .map(|w| (w[1] - w[0]) as usize)
            .max()
            .unwrap_or(0);
        Ok(Self {
            current: anchors.start,
            pushed,
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

    /// Nothing pushes; [`Pairs::change`] for every triplet brings the sums back.
    pub(super) fn reset(&mut self, n_slots: usize) {
        self.pushed.reset();
        self.diagonal.reset();
        self.cross.clear();
        self.cross.resize(n_slots, [0.0; 2]);
    }

    /// Triplet t pushes by `change` more. [`Pairs::flush`] has to follow.
    pub(super) fn change(&mut self, t: usize, change: Two, books: Books<'_>) {
        if !self.pushed.triplets_of(self.current).contains(&t) {
            self.flush(books);
            self.current = self.pushed.anchor_of(t, self.current);
        }
        let base = self.pushed.pairs_of(self.current).start;
        let [near, far] = self.pushed.pairs_of_triplet(t);
        for (pair, sign) in [(near, 1.0), (far, -1.0)] {
            let local = pair - base;
            if !std::mem::replace(&mut self.deltas.marked[local], true) {
                self.deltas.changed.push(local as u32);
            }
            let delta = &mut self.deltas.by_pair[local];
            delta[0] += sign * change[0];
            delta[1] += sign * change[1];
        }
    }

    /// Calls `each` with triplet, anchor, near and far of every triplet whose anchor is one of `rows`.
    pub(super) fn each_triplet(&self, rows: &[u32], mut each: impl FnMut(usize, u32, u32, u32)) {
        for &anchor in self.pushed.mine(rows) {
            let each = |t, near, far| each(t, anchor, near, far);
            self.pushed.each_of_anchor(anchor as usize, each);
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
        for anchor in self.pushed.mine(rows).iter().map(|&row| row as usize) {
            found.begin(self.pushed.triplets_of(anchor).len());
            self.pushed.each_of_anchor(anchor, |t, near, far| {
                found.offer(t, push(anchor, near as usize, far as usize));
            });
            each(found);
        }
    }

    /// Passes the noted changes of one anchor's pairs on to S, D and the H of active atoms.
    pub(super) fn flush(&mut self, books: Books<'_>) {
        if self.deltas.changed.is_empty() {
            return;
        }
        let anchor = self.current;
        let pairs = self.pushed.pairs_of(anchor);
        let deltas = &mut self.deltas;
        // Most changes are within the bent zone, where only the second number moves.
        let both = deltas
            .changed
            .iter()
            .any(|&local| deltas.by_pair[local as usize][0] != 0.0);
        self.pushed
            .add(anchor, &deltas.changed, &deltas.by_pair, books.sigma);
        let changes = Changes {
            own: books.rows.row(anchor),
            others: &self.pushed.others()[pairs.clone()],
            changed: &deltas.changed,
            by_pair: &deltas.by_pair,
        };
        let diagonal = &mut self.diagonal;
        match &self.products {
            Some(products) if both => {
                products.pass_on::<true>(pairs.start, changes, &mut deltas.by_place, diagonal)
            }
            Some(products) => {
                products.pass_on::<false>(pairs.start, changes, &mut deltas.by_place, diagonal)
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
        pushes: &Pushes<'_>,
        column_i: &[f64],
        column_j: &[f64],
        rows: &[u32],
    ) {
        let mut cross = [0.0; 2];
        for anchor in self.pushed.mine(rows).iter().map(|&row| row as usize) {
            let (x_i, x_j) = (column_i[anchor], column_j[anchor]);
            let product = |other: usize| x_i * column_j[other] + x_j * column_i[other];
            let sum = self.pushed.sum_of(anchor, pushes, product);
            cross = [cross[0] + sum[0], cross[1] + sum[1]];
        }
        if self.cross.len() <= slot {
            self.cross.resize(slot + 1, [0.0; 2]);
        }
        self.cross[slot] = cross;
    }
}
