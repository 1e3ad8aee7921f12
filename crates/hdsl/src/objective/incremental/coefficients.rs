//! The pair coefficients C over the triplets of one range of anchors.
//!
//! If triplets share pairs, as mined triplets do, coefficients are stored as affine functions of σ. Random triplets
//! hardly share pairs. Most coefficients are then ± the gradient weight of one triplet and follow from its margin, so
//! none are stored. With 10⁷ triplets, this reduces the peak memory from 1.37 GB to 0.82 GB.

use crate::cancel::CancelToken;
use crate::data::Groups;
use crate::error::Result;
use crate::objective::margins::{Affine, Margins, UseWeights};
use crate::objective::shard::ShardTriplets;
use crate::triplets::{Anchors, Triplets};
use std::ops::Range;

/// If at least this share of all pairs, two per triplet, are distinct, coefficients are not stored.
const MOSTLY_DISTINCT: f64 = 0.75;

/// Whether triplets with this number of distinct pairs are treated as if they shared none.
pub(crate) fn has_own_pairs(pairs: f64, triplets: f64) -> bool {
    pairs >= MOSTLY_DISTINCT * 2.0 * triplets
}

/// Up to this many pairs fit in the cache.
const CACHED: usize = 1 << 18;
/// C x is computed from the pairs of the rows that contain the column if fewer than one in this many rows do, and
/// otherwise by a pass over all pairs. The first constant is for pairs that fit in the cache. The others are for pairs
/// that do not: one in `WALK_PAIR` + `WALK_ROW` · rows / pairs. They were measured, and affect speed only.
const WALK_CACHED: usize = 3;
const WALK_PAIR: usize = 17;
const WALK_ROW: usize = 120;
/// The same if every triplet has pairs of its own ([`Values::Own`]) and they do not fit in the cache.
const WALK_OWN: usize = 18;

/// A column of X: the rows that contain it, and its values as a dense vector.
pub(crate) struct Column<'a> {
    pub(crate) rows: &'a [u32],
    pub(crate) dense: &'a [f64],
}

pub(crate) struct Coefficients {
    /// The anchors are rows `first..first + triplet_starts.len() - 1`.
    first: usize,
    triplet_starts: Vec<u32>,
    pair_starts: Vec<u32>,
    /// The other row of each pair. Pairs are sorted by anchor.
    others: Vec<u32>,
    /// For each row, the pairs with this row as the other row: their anchors and numbers.
    by_other: Groups<(u32, u32)>,
    values: Values,
}

/// The coefficient of each pair.
enum Values {
    Stored {
        /// For each triplet, the numbers of its pairs {anchor, near} and {anchor, far}.
        near: Vec<u32>,
        far: Vec<u32>,
        coefficients: Vec<Affine>,
    },
    /// Not stored. Triplet t has the pairs 2t and 2t + 1, with its gradient weight and minus its gradient weight. A
    /// pair that several triplets share is listed once for each of them.
    Own,
}

impl Coefficients {
    /// The coefficients over the triplets of these anchors, all 0.
    pub(crate) fn new(
        triplets: &Triplets,
        grouped: &Anchors,
        anchors: Range<usize>,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let n = grouped.starts()[anchors.end] - grouped.starts()[anchors.start];
        let n_rows = grouped.starts().len() - 1;
        let (mut triplet_starts, mut pair_starts, mut others) = (vec![0], vec![0], Vec::new());
        let (mut near, mut far) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut seen = vec![(u32::MAX, 0u32); n_rows];
        for anchor in anchors.clone() {
            cancel.check()?;
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
            triplet_starts.push(near.len() as u32);
            pair_starts.push(others.len() as u32);
        }
        drop(seen);
        let values = if has_own_pairs(others.len() as f64, n as f64) {
            let pairs = near.into_iter().zip(far);
            others = pairs
                .flat_map(|(near, far): (u32, u32)| [others[near as usize], others[far as usize]])
                .collect();
            pair_starts = triplet_starts.iter().map(|start| 2 * start).collect();
            Values::Own
        } else {
            Values::Stored {
                near,
                far,
                coefficients: vec![[0.0; 2]; others.len()],
            }
        };
        let ranges = anchors.clone().zip(pair_starts.windows(2));
        let pairs = ranges.flat_map(|(anchor, bounds)| {
            let pairs = (bounds[0]..bounds[1]).zip(&others[bounds[0] as usize..]);
            pairs.map(move |(pair, &other)| (other, (anchor as u32, pair)))
        });
        Ok(Self {
            first: anchors.start,
            by_other: Groups::new(n_rows, pairs),
            triplet_starts,
            pair_starts,
            others,
            values,
        })
    }

    /// The number of triplets.
    pub(crate) fn n_triplets(&self) -> usize {
        self.triplet_starts[self.triplet_starts.len() - 1] as usize
    }

    /// The pairs of an anchor.
    pub(crate) fn pairs_of(&self, anchor: usize) -> Range<usize> {
        let k = anchor - self.first;
        self.pair_starts[k] as usize..self.pair_starts[k + 1] as usize
    }

    /// The other row of each pair.
    pub(crate) fn others(&self) -> &[u32] {
        &self.others
    }

    /// The number of pairs with this row as the other row.
    pub(crate) fn n_as_other(&self, row: usize) -> usize {
        self.by_other.of(row).len()
    }

    /// The pairs {anchor, near} and {anchor, far} of a triplet.
    #[inline]
    pub(crate) fn pairs_of_triplet(&self, t: usize) -> [usize; 2] {
        match &self.values {
            Values::Stored { near, far, .. } => [near[t] as usize, far[t] as usize],
            Values::Own => [2 * t, 2 * t + 1],
        }
    }

    /// The anchor of triplet t. It is found fastest if it is one of the first anchors from `guess` on.
    pub(crate) fn anchor_of(&self, t: usize, guess: usize) -> usize {
        let (starts, k) = (&self.triplet_starts, guess - self.first);
        let from = if t < starts[k] as usize { 0 } else { k };
        let ahead = starts[from + 1..].iter().take(8);
        let at = match ahead.clone().position(|&start| start as usize > t) {
            Some(steps) => from + steps,
            None => starts.partition_point(|&start| start as usize <= t) - 1,
        };
        self.first + at
    }

    /// Sets all stored coefficients to 0.
    pub(crate) fn reset(&mut self) {
        if let Values::Stored { coefficients, .. } = &mut self.values {
            coefficients.fill([0.0; 2]);
        }
    }

    /// Changes the coefficients of an anchor's pairs. Pairs are numbered from the anchor's first pair.
    pub(crate) fn add(&mut self, anchor: usize, changes: &[(usize, Affine)], sigma: f64) {
        let first = self.pairs_of(anchor).start;
        let Values::Stored { coefficients, .. } = &mut self.values else {
            return;
        };
        for &(local, delta) in changes {
            let c = &mut coefficients[first + local];
            *c = [c[0] + delta[0], c[1] + delta[1]];
            // If all triplets of a pair are on the flat segment, only rounding errors are left. An exact 0 can be
            // skipped.
            if c[0].abs() < 1e-12 && (sigma * c[1]).abs() < 1e-12 {
                *c = [0.0; 2];
            }
        }
    }

    /// Calls `each` with the other row and the coefficient of every pair of an anchor.
    #[inline]
    fn each_of_pairs(&self, anchor: usize, margins: &Margins, mut each: impl FnMut(usize, f64)) {
        let pairs = self.pairs_of(anchor);
        let others = &self.others[pairs.clone()];
        match &self.values {
            Values::Stored { coefficients, .. } => {
                for (&other, &c) in others.iter().zip(&coefficients[pairs]) {
                    each(other as usize, margins.evaluate(c));
                }
            }
            Values::Own => {
                let range = self.of_anchor(anchor);
                for (w, &[near, far]) in margins.gradient_weights(range).zip(others.as_chunks().0) {
                    each(near as usize, w);
                    each(far as usize, -w);
                }
            }
        }
    }

    /// The coefficient of one pair.
    #[inline]
    fn get(&self, pair: usize, margins: &Margins) -> f64 {
        match &self.values {
            Values::Stored { coefficients, .. } => margins.evaluate(coefficients[pair]),
            Values::Own if pair.is_multiple_of(2) => margins.gradient_weight(pair / 2),
            Values::Own => -margins.gradient_weight(pair / 2),
        }
    }

    /// Σ_q c_pq x_q over the pairs of an anchor p.
    #[inline]
    pub(crate) fn dot(&self, anchor: usize, margins: &Margins, x: impl Fn(usize) -> f64) -> Affine {
        let mut sum = [0.0; 2];
        match &self.values {
            Values::Stored { coefficients, .. } => {
                let pairs = self.pairs_of(anchor);
                for (&other, &c) in self.others[pairs.clone()].iter().zip(&coefficients[pairs]) {
                    super::add(&mut sum, c, x(other as usize));
                }
            }
            Values::Own => self.each_of_anchor(anchor, |t, near, far| {
                let x = x(near as usize) - x(far as usize);
                super::add(&mut sum, margins.affine_weight(t), x);
            }),
        }
        sum
    }

    /// An estimate of the number of pairs that [`Coefficients::multiply`] visits.
    pub(crate) fn work_of(&self, column: &Column<'_>) -> usize {
        let (rows, all) = (column.dense.len(), self.others.len());
        let n_anchors = self.triplet_starts.len() - 1;
        let of_anchors = self.anchors_in(column.rows).len() * all / n_anchors.max(1);
        match self.walks(column) {
            true => of_anchors + column.rows.len() * all / rows,
            false => of_anchors + all,
        }
    }

    /// The bytes that [`Coefficients::multiply`] reads one after the other, and the cache lines that it reads in no
    /// foreseeable order, for a column that these of `n_rows` rows contain.
    #[cfg(feature = "bench")]
    pub(crate) fn traffic(&self, rows: &[u32], n_rows: usize) -> (usize, usize) {
        let per_pair = match &self.values {
            Values::Stored { .. } => 4 + 16,
            Values::Own => 4 + 4, // half of the margin of its triplet
        };
        if !self.walks_rows(rows.len(), n_rows) {
            return (per_pair * self.others.len() + 16 * n_rows, 0);
        }
        let own = self
            .anchors_in(rows)
            .iter()
            .map(|&row| self.pairs_of(row as usize).len());
        let listed = rows.iter().map(|&row| self.by_other.of(row as usize).len());
        let (own, listed): (usize, usize) = (own.sum(), listed.sum());
        (per_pair * own + 8 * listed, listed + 2 * rows.len())
    }

    /// Calls `add` with the row and the value of each term of C x.
    #[inline]
    pub(crate) fn each_product(
        &self,
        margins: &Margins,
        column: &Column<'_>,
        mut add: impl FnMut(usize, f64),
    ) {
        let anchors = self.anchors();
        for &row in column.rows {
            let (row, x) = (row as usize, column.dense[row as usize]);
            let mut add = |other: usize, c: f64| {
                if c != 0.0 {
                    add(other, c * x);
                }
            };
            if anchors.contains(&row) {
                self.each_of_pairs(row, margins, &mut add);
            }
            for &(anchor, pair) in self.by_other.of(row) {
                add(anchor as usize, self.get(pair as usize, margins));
            }
        }
    }

    /// Whether few enough rows contain a column that only the pairs of these rows are visited. This is random access.
    /// If the pairs do not fit in the cache, a pass over all of them is often faster.
    pub(crate) fn walks(&self, column: &Column<'_>) -> bool {
        self.walks_rows(column.rows.len(), column.dense.len())
    }

    /// The same, for a column that `n` of `n_rows` rows contain.
    fn walks_rows(&self, n: usize, n_rows: usize) -> bool {
        let one_in = match &self.values {
            _ if self.others.len() < CACHED => WALK_CACHED,
            Values::Own => WALK_OWN,
            Values::Stored { .. } => WALK_PAIR + WALK_ROW * n_rows / self.others.len(),
        };
        one_in * n < n_rows
    }

    /// [`Coefficients::each_product`] for a column with many pairs.
    pub(crate) fn each_product_of_many(
        &self,
        margins: &Margins,
        column: &Column<'_>,
        add: impl FnMut(usize, f64),
    ) {
        match &self.values {
            Values::Own => margins.with_weights(OwnTerms {
                of: self,
                column,
                add,
            }),
            Values::Stored { .. } => self.each_product(margins, column, add),
        }
    }

    /// Adds C x to u.
    pub(crate) fn multiply(&self, margins: &Margins, column: &Column<'_>, u: &mut [f64]) {
        if self.walks(column) {
            return self.each_product_of_many(margins, column, |row, by| u[row] += by);
        }
        if let Values::Own = self.values {
            return margins.with_weights(OwnProduct {
                of: self,
                column,
                u,
            });
        }
        for anchor in self.anchors() {
            let x = column.dense[anchor];
            if x != 0.0 {
                self.each_of_pairs(anchor, margins, |other, c| u[other] += c * x);
            }
            // There is no test for zeros, because it would be an unpredictable branch.
            let mut sum = 0.0;
            self.each_of_pairs(anchor, margins, |other, c| sum += c * column.dense[other]);
            u[anchor] += sum;
        }
    }

    /// Calls `visit` for every pair with a non-zero coefficient. A pair may be visited several times; its coefficient
    /// is then the sum.
    pub(crate) fn each_pair(&self, margins: &Margins, visit: &mut impl FnMut(u32, u32, f64)) {
        for anchor in self.anchors() {
            self.each_of_pairs(anchor, margins, |other, c| {
                if c != 0.0 {
                    visit(anchor as u32, other as u32, c);
                }
            });
        }
    }
}

// Where every triplet has pairs of its own, C x has the terms ± w_t x_anchor at near and far, and w_t (x_near - x_far) at the
// anchor. Whether a triplet's weight is 0, and whether a pair is with near or far, is unpredictable, so there are no branches for
// it.

/// Calls `add` with the row and the value of each term, from the rows that contain the column.
struct OwnTerms<'a, F> {
    of: &'a Coefficients,
    column: &'a Column<'a>,
    add: F,
}

impl<F: FnMut(usize, f64)> UseWeights for OwnTerms<'_, F> {
    fn call(self, weight: impl Fn(usize) -> f64) {
        let Self {
            of,
            column,
            mut add,
        } = self;
        let triplets = of.others.as_chunks::<2>().0;
        for &row in column.rows {
            let (row, x) = (row as usize, column.dense[row as usize]);
            if of.anchors().contains(&row) {
                let range = of.of_anchor(row);
                for (t, &[near, far]) in range.clone().zip(&triplets[range]) {
                    let by = weight(t) * x;
                    add(near as usize, by);
                    add(far as usize, -by);
                }
            }
            let signed = [x, -x];
            for &(anchor, pair) in of.by_other.of(row) {
                let (t, is_far) = (pair as usize / 2, pair as usize % 2);
                add(anchor as usize, weight(t) * signed[is_far]);
            }
        }
    }
}

/// Adds C x to u by a pass over all triplets.
struct OwnProduct<'a> {
    of: &'a Coefficients,
    column: &'a Column<'a>,
    u: &'a mut [f64],
}

impl UseWeights for OwnProduct<'_> {
    fn call(self, weight: impl Fn(usize) -> f64) {
        let Self { of, column, u } = self;
        let (dense, triplets) = (column.dense, of.others.as_chunks::<2>().0);
        for anchor in of.anchors() {
            let (x, range) = (dense[anchor], of.of_anchor(anchor));
            let triplets = range.clone().zip(&triplets[range]);
            let mut sum = 0.0;
            if x != 0.0 {
                for (t, &[near, far]) in triplets {
                    let w = weight(t);
                    sum += w * (dense[near as usize] - dense[far as usize]);
                    u[near as usize] += w * x;
                    u[far as usize] -= w * x;
                }
            } else {
                for (t, &[near, far]) in triplets {
                    sum += weight(t) * (dense[near as usize] - dense[far as usize]);
                }
            }
            u[anchor] += sum;
        }
    }
}

impl ShardTriplets for Coefficients {
    fn anchors(&self) -> Range<usize> {
        self.first..self.first + self.triplet_starts.len() - 1
    }

    fn of_anchor(&self, anchor: usize) -> Range<usize> {
        let k = anchor - self.first;
        self.triplet_starts[k] as usize..self.triplet_starts[k + 1] as usize
    }

    #[inline]
    fn each_of_anchor(&self, anchor: usize, mut each: impl FnMut(usize, u32, u32)) {
        let range = self.of_anchor(anchor);
        match &self.values {
            Values::Stored { near, far, .. } => {
                let pairs = near[range.clone()].iter().zip(&far[range.clone()]);
                for (t, (&near, &far)) in range.zip(pairs) {
                    each(t, self.others[near as usize], self.others[far as usize]);
                }
            }
            Values::Own => {
                let rows = &self.others[self.pairs_of(anchor)];
                for (t, &[near, far]) in range.zip(rows.as_chunks().0) {
                    each(t, near, far);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::objective::Problem;
    use crate::objective::loss::LossKind;
    use crate::objective::margins::Margins;
    use crate::triplets::Triplets;

    const SIGMA: f64 = 0.5;

    /// The gradient weight by its definition: μ, σ and the smoothed hinge.
    fn gradient_weight(mu: f64, weight: f64) -> f64 {
        weight * (1.0 - SIGMA * mu).clamp(0.0, 1.0)
    }

    fn check(list: &[(u32, u32, u32)], own: bool) {
        // Feature 0 is in one row, feature 1 in every other, feature 2 in all.
        let mut rows = Rows::new(3);
        for row in 0..6u32 {
            let features: Vec<u32> = (0..3)
                .filter(|&f| row % [6, 2, 1][f as usize] == 0)
                .collect();
            let values: Vec<f64> = features.iter().map(|&f| f64::from(1 + f + row)).collect();
            rows.push(crate::data::SparseRow::new(&features, &values));
        }
        let mut triplets = Triplets::new();
        for (t, &(anchor, near, far)) in list.iter().enumerate() {
            triplets.push_weighted(anchor, near, far, 1.0 + t as f64);
        }
        let problem = Problem::new(&rows, &triplets, 1.0, LossKind::SmoothedHinge).unwrap();
        let grouped = triplets.by_anchor(6);
        let mut coefficients =
            Coefficients::new(&triplets, &grouped, 0..6, CancelToken::NEVER).unwrap();
        assert_eq!(matches!(coefficients.values, Values::Own), own);

        // On the linear, quadratic and flat segments, by position in the order of anchors.
        let n = list.len();
        let mus: Vec<f64> = (0..n).map(|t| [-1.0, 0.4, 1.2, 5.0][t % 4]).collect();
        let at = |p: usize| grouped.triplet(p);
        let weights = (0..n).map(|p| triplets.weight(at(p))).collect();
        let segments = LossKind::SmoothedHinge.segments().unwrap();
        let mut margins = Margins::new(segments, n, Some(weights), None);
        // σ is 1 when margins settle, and the segments above are those for 0.5.
        mus.iter()
            .enumerate()
            .for_each(|(p, &mu)| margins.add(p, SIGMA * mu));
        margins.settle();
        let margins = margins.with_sigma(SIGMA);
        for anchor in 0..6 {
            for t in coefficients.of_anchor(anchor) {
                let [near, far] = coefficients.pairs_of_triplet(t);
                let first = coefficients.pairs_of(anchor).start;
                let weight = margins.affine_weight(t);
                let changes = [(near - first, weight), (far - first, weight.map(|x| -x))];
                coefficients.add(anchor, &changes, SIGMA);
            }
        }
        for j in 0..3 {
            let (rows, values) = problem.lists.column(j);
            let mut dense = vec![0.0; 6];
            for (&row, &x) in rows.iter().zip(values) {
                dense[row as usize] = x;
            }
            let (mut want, mut at_anchors) = (vec![0.0; 6], 0.0);
            for (p, &mu) in mus.iter().enumerate() {
                let (a, near, far) = triplets.get(at(p));
                let [a, near, far] = [a, near, far].map(|row| row as usize);
                let w = gradient_weight(mu, triplets.weight(at(p)));
                at_anchors += w * (dense[near] - dense[far]);
                want[a] += w * (dense[near] - dense[far]);
                want[near] += w * dense[a];
                want[far] -= w * dense[a];
            }
            let column = Column {
                rows,
                dense: &dense,
            };
            let (mut passed, mut walked) = (vec![0.0; 6], vec![0.0; 6]);
            coefficients.multiply(&margins, &column, &mut passed);
            coefficients.each_product(&margins, &column, |row, by| walked[row] += by);
            let forth: f64 = (0..6)
                .map(|anchor| {
                    margins.evaluate(coefficients.dot(anchor, &margins, |other| dense[other]))
                })
                .sum();
            assert!((forth - at_anchors).abs() < 1e-9);
            for row in 0..6 {
                let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
                assert!(close(passed[row], want[row]), "{passed:?} for {want:?}");
                assert!(close(walked[row], want[row]), "{walked:?} for {want:?}");
            }
        }
    }

    #[test]
    fn triplets_with_pairs_of_their_own_keep_no_sums() {
        check(
            &[(0, 1, 2), (4, 3, 5), (0, 3, 4), (2, 0, 1), (2, 5, 4)],
            true,
        );
    }

    #[test]
    fn pairs_that_triplets_share_are_summed_up() {
        check(
            &[
                (0, 1, 2),
                (0, 1, 3),
                (3, 0, 5),
                (0, 4, 2),
                (3, 0, 4),
                (0, 4, 3),
            ],
            false,
        );
    }

    #[test]
    fn a_pair_in_two_triplets_counts_twice_either_way() {
        check(&[(0, 1, 2), (0, 1, 3), (3, 0, 5), (5, 2, 1)], true);
    }
}
