//! "Sum over my triplets": everything the engine keeps, for the triplets of one range of anchors.

use super::changes::Books;
use super::pairs::Pairs;
use super::pushed::Column;
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::Problem;
use crate::solver::margins::{Found, Margins, Zones};
use crate::solver::motion::Motion;
use crate::triplets::Anchors;
use std::ops::Range;

pub(super) struct Shard {
    pub(super) margins: Margins,
    pub(super) pairs: Pairs,
    found: Found,
    /// S X_{:,i} from this shard's pairs, where shards multiply on their own.
    pub(super) u: Vec<f64>,
}

impl Shard {
    /// Takes over the triplets of the anchors `anchors`.
    pub(super) fn new(
        problem: &Problem<'_>,
        grouped: &Anchors,
        anchors: Range<usize>,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let triplets = problem.triplets;
        let positions = grouped.starts()[anchors.start]..grouped.starts()[anchors.end];
        let n = positions.len();
        let weights = triplets
            .weights()
            .map(|_| positions.map(|p| triplets.weight_at(grouped, p)).collect());
        Ok(Self {
            margins: Margins::new(n, weights),
            pairs: Pairs::new(problem, grouped, anchors, cancel)?,
            found: Found::default(),
            u: Vec::new(),
        })
    }

    /// u = S x over this shard's pairs.
    pub(super) fn multiply(&mut self, sigma: f64, zones: Zones, column: &Column<'_>) {
        self.u.clear();
        self.u.resize(column.spread.len(), 0.0);
        let pushes = self.margins.pushes(sigma, zones);
        self.pairs.pushed.multiply(&pushes, column, &mut self.u);
    }

    /// H_ij of a new atom, given its two columns spread out and the rows that hold either.
    pub(super) fn cross_new(
        &mut self,
        slot: usize,
        sigma: f64,
        zones: Zones,
        column_i: &[f64],
        column_j: &[f64],
        rows: &[u32],
    ) {
        let pushes = self.margins.pushes(sigma, zones);
        self.pairs
            .cross_new(slot, &pushes, column_i, column_j, rows);
    }

    /// μ += weight <A^t, B> for every triplet, B given by its z; for a start from an earlier solution.
    pub(super) fn add_atom(&mut self, scale: f64, weight: f64, z: &[f64], rows: &[u32]) {
        let margins = &mut self.margins;
        self.pairs.each_triplet(rows, |t, anchor, near, far| {
            let z = |row: u32| z[row as usize];
            margins.add(t, weight * scale * z(anchor) * (z(near) - z(far)));
        });
    }

    /// Everything from μ, at σ = 1.
    pub(super) fn rebuild(&mut self, books: Books<'_>, zones: Zones) {
        self.margins.settle(zones);
        self.pairs.reset(books.links.n_slots());
        for t in 0..self.margins.len() {
            let share = self.margins.share(t);
            if share != [0.0; 2] {
                self.pairs.change(t, share, books);
            }
        }
        self.pairs.flush(books);
    }

    /// Finds the touched triplets: the anchor has z ≠ 0 and so has near or far.
    pub(super) fn touch(&mut self, scale: f64, sigma: f64, motion: Motion<'_>) {
        let Self {
            margins,
            pairs,
            found,
            ..
        } = self;
        margins.begin();
        let push = |anchor, near, far| motion.push(scale, anchor, near, far);
        pairs.each_touched(motion.rows, found, push, |found| {
            margins.touch(found, sigma)
        });
    }

    /// Carries the step out. σ is the new one.
    pub(super) fn advance(&mut self, rate: f64, gamma: f64, books: Books<'_>, zones: Zones) {
        let Self { margins, pairs, .. } = self;
        margins.advance(rate, gamma, books.sigma, zones, |t, change| {
            pairs.change(t, change, books);
        });
        pairs.flush(books);
    }
}
