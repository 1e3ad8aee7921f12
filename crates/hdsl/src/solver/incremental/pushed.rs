//! S over the triplets of one range of anchors: which rows the triplets of an anchor pair it with, and how hard they push.

use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::Problem;
use crate::solver::margins::{Pushes, Two};
use crate::triplets::Anchors;
use std::ops::Range;

/// How many of the pairs of triplets, near and far counted apart, have to differ for each to count as a pair of its own.
const MOSTLY: f64 = 0.75;

/// Whether so many triplets have so few pairs in common that each is taken to have its own.
pub(in crate::solver) fn has_own_pairs(pairs: f64, triplets: f64) -> bool {
    pairs >= MOSTLY * 2.0 * triplets
}

/// Pairs that stay in the cache.
const CACHED: usize = 1 << 18;
/// The pairs of a column are walked if less than one in so many rows hold it: where pairs are in the cache, and where they
/// are not, which costs something for each pair and for each row's list of them. Measured; nothing but speed hangs on it.
const WALK_CACHED: usize = 3;
const WALK_ENTRY: usize = 17;
const WALK_LIST: usize = 120;

/// A column of the rows: those that hold it, and their values by row.
pub(super) struct Column<'a> {
    pub(super) holders: &'a [u32],
    pub(super) spread: &'a [f64],
}

pub(super) struct Pushed {
    /// The anchors are rows `first..first + triplet_starts.len() - 1`.
    first: usize,
    triplet_starts: Vec<u32>,
    pair_starts: Vec<u32>,
    /// The row that each pair joins its anchor to.
    others: Vec<u32>,
    back: Back,
    sums: Sums,
}

/// The same pairs by the row that is not the anchor, each with its anchor.
struct Back {
    starts: Vec<u32>,
    anchors: Vec<u32>,
    pairs: Vec<u32>,
}

/// S by pair.
enum Sums {
    /// Kept up to date, for triplets that share pairs; with the pairs (anchor, near) and (anchor, far) of each triplet.
    Kept {
        near: Vec<u32>,
        far: Vec<u32>,
        sums: Vec<Two>,
    },
    /// Triplet t has pairs 2t and 2t + 1 to itself, nearly or truly, so that S is its push: there is nothing to keep.
    Own,
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
        let (mut anchors, mut pairs) = (vec![0; others.len()], vec![0; others.len()]);
        for (k, bounds) in pair_starts.windows(2).enumerate() {
            for pair in bounds[0]..bounds[1] {
                let at = &mut fill[others[pair as usize] as usize];
                anchors[*at as usize] = (first + k) as u32;
                pairs[*at as usize] = pair;
                *at += 1;
            }
        }
        Self {
            starts,
            anchors,
            pairs,
        }
    }
}

impl Pushed {
    /// Takes over the triplets of the anchors `anchors`.
    pub(super) fn new(
        problem: &Problem<'_>,
        grouped: &Anchors,
        anchors: Range<usize>,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let triplets = problem.triplets;
        let n = grouped.starts()[anchors.end] - grouped.starts()[anchors.start];
        let n_rows = problem.rows.n_rows();
        let mut triplet_starts = vec![0u32; anchors.len() + 1];
        let (mut pair_starts, mut others) = (vec![0u32], Vec::new());
        let (mut near, mut far) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut seen = vec![(u32::MAX, 0u32); n_rows];
        for (k, anchor) in anchors.clone().enumerate() {
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
            triplet_starts[k + 1] = near.len() as u32;
            pair_starts.push(others.len() as u32);
        }
        drop(seen);
        let own = has_own_pairs(others.len() as f64, n as f64);
        if own {
            let rows = near.iter().zip(&far);
            others = rows
                .flat_map(|(&near, &far)| [others[near as usize], others[far as usize]])
                .collect();
            let starts = pair_starts.iter_mut().zip(&triplet_starts);
            starts.for_each(|(pair, triplet)| *pair = 2 * triplet);
            (near, far) = (Vec::new(), Vec::new());
        }
        Ok(Self {
            first: anchors.start,
            triplet_starts,
            back: Back::of(n_rows, anchors.start, &pair_starts, &others),
            sums: match own {
                true => Sums::Own,
                false => Sums::Kept {
                    near,
                    far,
                    sums: vec![[0.0; 2]; others.len()],
                },
            },
            pair_starts,
            others,
        })
    }

    pub(super) fn anchors(&self) -> Range<usize> {
        self.first..self.first + self.triplet_starts.len() - 1
    }

    pub(super) fn triplets_of(&self, anchor: usize) -> Range<usize> {
        let k = anchor - self.first;
        self.triplet_starts[k] as usize..self.triplet_starts[k + 1] as usize
    }

    pub(super) fn pairs_of(&self, anchor: usize) -> Range<usize> {
        let k = anchor - self.first;
        self.pair_starts[k] as usize..self.pair_starts[k + 1] as usize
    }

    /// The rows that pairs join their anchors to.
    pub(super) fn others(&self) -> &[u32] {
        &self.others
    }

    /// Where the pairs of each anchor start, and where the last ones end.
    pub(super) fn pair_starts(&self) -> &[u32] {
        &self.pair_starts
    }

    /// The part of a sorted list of rows that are anchors here.
    pub(super) fn mine<'a>(&self, rows: &'a [u32]) -> &'a [u32] {
        let anchors = self.anchors();
        let from = rows.partition_point(|&r| (r as usize) < anchors.start);
        let to = rows.partition_point(|&r| (r as usize) < anchors.end);
        &rows[from..to]
    }

    /// The pairs of a triplet with its near and its far row.
    #[inline]
    pub(super) fn pairs_of_triplet(&self, t: usize) -> [usize; 2] {
        match &self.sums {
            Sums::Kept { near, far, .. } => [near[t] as usize, far[t] as usize],
            Sums::Own => [2 * t, 2 * t + 1],
        }
    }

    /// The anchor of triplet t; most often soon after the one given.
    pub(super) fn anchor_of(&self, t: usize, guess: usize) -> usize {
        let (starts, k) = (&self.triplet_starts, guess - self.first);
        let from = if t < starts[k] as usize { 0 } else { k };
        let ahead = starts[from + 1..].iter().take(8);
        let at = match ahead.clone().position(|&start| start as usize > t) {
            Some(steps) => from + steps,
            None => starts.partition_point(|&start| start as usize <= t) - 1,
        };
        self.first + at
    }

    /// Calls `each` with triplet, near and far of every triplet of an anchor.
    #[inline]
    pub(super) fn each_of_anchor(&self, anchor: usize, mut each: impl FnMut(usize, u32, u32)) {
        let range = self.triplets_of(anchor);
        match &self.sums {
            Sums::Kept { near, far, .. } => {
                let pairs = near[range.clone()].iter().zip(&far[range.clone()]);
                for (t, (&near, &far)) in range.zip(pairs) {
                    each(t, self.others[near as usize], self.others[far as usize]);
                }
            }
            Sums::Own => {
                let rows = &self.others[self.pairs_of(anchor)];
                for (t, &[near, far]) in range.zip(rows.as_chunks().0) {
                    each(t, near, far);
                }
            }
        }
    }

    /// Nothing pushes; [`Pushed::add`] for every triplet brings the sums back.
    pub(super) fn reset(&mut self) {
        if let Sums::Kept { sums, .. } = &mut self.sums {
            sums.fill([0.0; 2]);
        }
    }

    /// The pairs named, counted from an anchor's first, push by so much more.
    pub(super) fn add(&mut self, anchor: usize, changed: &[u32], by_pair: &[Two], sigma: f64) {
        let pairs = self.pairs_of(anchor);
        let Sums::Kept { sums, .. } = &mut self.sums else {
            return;
        };
        let sums = &mut sums[pairs];
        for &local in changed {
            let (sum, delta) = (&mut sums[local as usize], by_pair[local as usize]);
            *sum = [sum[0] + delta[0], sum[1] + delta[1]];
            // What is left when all triplets of a pair are satisfied is rounding: a true 0 can be passed over.
            if sum[0].abs() < 1e-12 && (sigma * sum[1]).abs() < 1e-12 {
                *sum = [0.0; 2];
            }
        }
    }

    /// Calls `each` with the other row and S for every pair of an anchor.
    #[inline]
    fn each_forth(&self, anchor: usize, pushes: &Pushes<'_>, mut each: impl FnMut(usize, f64)) {
        let pairs = self.pairs_of(anchor);
        let others = &self.others[pairs.clone()];
        match &self.sums {
            Sums::Kept { sums, .. } => {
                for (&other, &sum) in others.iter().zip(&sums[pairs]) {
                    each(other as usize, pushes.of(sum));
                }
            }
            Sums::Own => {
                let range = self.triplets_of(anchor);
                for (push, &[near, far]) in pushes.each(range).zip(others.as_chunks().0) {
                    each(near as usize, push);
                    each(far as usize, -push);
                }
            }
        }
    }

    /// Calls `each` with anchor and S for every pair of a row that is not its anchor.
    #[inline]
    fn each_back(&self, row: usize, pushes: &Pushes<'_>, mut each: impl FnMut(usize, f64)) {
        let range = self.back.starts[row] as usize..self.back.starts[row + 1] as usize;
        let anchors = self.back.anchors[range.clone()].iter();
        for (&anchor, &pair) in anchors.zip(&self.back.pairs[range]) {
            let s = self.sum(pair as usize, pushes);
            each(anchor as usize, s);
        }
    }

    /// S of one pair.
    #[inline]
    fn sum(&self, pair: usize, pushes: &Pushes<'_>) -> f64 {
        match &self.sums {
            Sums::Kept { sums, .. } => pushes.of(sums[pair]),
            Sums::Own if pair.is_multiple_of(2) => pushes.at(pair / 2),
            Sums::Own => -pushes.at(pair / 2),
        }
    }

    /// Σ S x over the pairs of an anchor as two numbers, x given by the other row.
    #[inline]
    pub(super) fn sum_of(
        &self,
        anchor: usize,
        pushes: &Pushes<'_>,
        x: impl Fn(usize) -> f64,
    ) -> Two {
        let mut sum = [0.0; 2];
        match &self.sums {
            Sums::Kept { sums, .. } => {
                let pairs = self.pairs_of(anchor);
                for (&other, &two) in self.others[pairs.clone()].iter().zip(&sums[pairs]) {
                    let x = x(other as usize);
                    sum = [sum[0] + two[0] * x, sum[1] + two[1] * x];
                }
            }
            Sums::Own => self.each_of_anchor(anchor, |t, near, far| {
                let (two, x) = (pushes.share(t), x(near as usize) - x(far as usize));
                sum = [sum[0] + two[0] * x, sum[1] + two[1] * x];
            }),
        }
        sum
    }

    /// About how many pairs [`Pushed::multiply`] goes through.
    pub(super) fn work_of(&self, column: &Column<'_>) -> usize {
        let (rows, all) = (column.spread.len(), self.others.len());
        let n_anchors = self.triplet_starts.len() - 1;
        let forth = self.mine(column.holders).len() * all / n_anchors.max(1);
        match self.walks(column) {
            true => forth + column.holders.len() * all / rows,
            false => forth + all,
        }
    }

    /// S x, as a row and what it gains.
    #[inline]
    pub(super) fn each_product(
        &self,
        pushes: &Pushes<'_>,
        column: &Column<'_>,
        mut gain: impl FnMut(usize, f64),
    ) {
        let anchors = self.anchors();
        for &row in column.holders {
            let (row, x) = (row as usize, column.spread[row as usize]);
            let mut add = |other: usize, s: f64| {
                if s != 0.0 {
                    gain(other, s * x);
                }
            };
            if anchors.contains(&row) {
                self.each_forth(row, pushes, &mut add);
            }
            self.each_back(row, pushes, add);
        }
    }

    /// Whether few enough rows hold a column for their pairs to be walked. Those are all over the place, so where they are
    /// not in the cache it is soon cheaper to go through all pairs in order.
    fn walks(&self, column: &Column<'_>) -> bool {
        let rows = column.spread.len();
        let one_in = match self.others.len() < CACHED {
            true => WALK_CACHED,
            false => WALK_ENTRY + WALK_LIST * rows / self.others.len(),
        };
        one_in * column.holders.len() < rows
    }

    /// u += S x.
    pub(super) fn multiply(&self, pushes: &Pushes<'_>, column: &Column<'_>, u: &mut [f64]) {
        if self.walks(column) {
            self.each_product(pushes, column, |row, by| u[row] += by);
            return;
        }
        for anchor in self.anchors() {
            let x = column.spread[anchor];
            if x != 0.0 {
                self.each_forth(anchor, pushes, |other, s| u[other] += s * x);
            }
            // Without a look at who holds the column: nobody could guess the outcome.
            let mut sum = 0.0;
            self.each_forth(anchor, pushes, |other, s| sum += s * column.spread[other]);
            u[anchor] += sum;
        }
    }

    /// Every pair with its sum of pushes, unless that is 0. A pair may come more than once.
    pub(super) fn each_pair(&self, pushes: &Pushes<'_>, visit: &mut impl FnMut(u32, u32, f64)) {
        for anchor in self.anchors() {
            self.each_forth(anchor, pushes, |other, sum| {
                if sum != 0.0 {
                    visit(anchor as u32, other as u32, sum);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::objective::loss::LossKind;
    use crate::solver::margins::{Margins, Zones};
    use crate::triplets::Triplets;

    const SIGMA: f64 = 0.5;

    /// Pushes by the definition: μ, σ and the smoothed hinge.
    fn push(mu: f64, weight: f64) -> f64 {
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
        let mut pushed = Pushed::new(&problem, &grouped, 0..6, CancelToken::NEVER).unwrap();
        assert_eq!(matches!(pushed.sums, Sums::Own), own);

        // Straight, bent and satisfied ones, by position in the order of anchors.
        let n = list.len();
        let mus: Vec<f64> = (0..n).map(|t| [-1.0, 0.4, 1.2, 5.0][t % 4]).collect();
        let at = |p: usize| grouped.triplet(p);
        let weights = (0..n).map(|p| triplets.weight(at(p))).collect();
        let zones = Zones::of_loss(LossKind::SmoothedHinge).unwrap();
        let mut margins = Margins::new(n, Some(weights));
        // σ is 1 when margins settle, and the zones above are those for 0.5.
        mus.iter()
            .enumerate()
            .for_each(|(p, &mu)| margins.add(p, SIGMA * mu));
        margins.settle(zones);
        margins.rescale(1.0 / SIGMA);
        for anchor in 0..6 {
            for t in pushed.triplets_of(anchor) {
                let [near, far] = pushed.pairs_of_triplet(t);
                let first = pushed.pairs_of(anchor).start;
                let share = margins.share(t);
                let mut by_pair = vec![[0.0; 2]; pushed.pairs_of(anchor).len()];
                by_pair[near - first] = share;
                by_pair[far - first] = share.map(|x| -x);
                let changed = [(near - first) as u32, (far - first) as u32];
                pushed.add(anchor, &changed, &by_pair, SIGMA);
            }
        }
        let pushes = margins.pushes(SIGMA, zones);
        for j in 0..3 {
            let (holders, values) = problem.lists.column(j);
            let mut spread = vec![0.0; 6];
            for (&row, &x) in holders.iter().zip(values) {
                spread[row as usize] = x;
            }
            let (mut want, mut at_anchors) = (vec![0.0; 6], 0.0);
            for (p, &mu) in mus.iter().enumerate() {
                let (a, near, far) = triplets.get(at(p));
                let [a, near, far] = [a, near, far].map(|row| row as usize);
                let w = push(mu, triplets.weight(at(p)));
                at_anchors += w * (spread[near] - spread[far]);
                want[a] += w * (spread[near] - spread[far]);
                want[near] += w * spread[a];
                want[far] -= w * spread[a];
            }
            let column = Column {
                holders,
                spread: &spread,
            };
            let (mut passed, mut walked) = (vec![0.0; 6], vec![0.0; 6]);
            pushed.multiply(&pushes, &column, &mut passed);
            pushed.each_product(&pushes, &column, |row, by| walked[row] += by);
            let forth: f64 = (0..6)
                .map(|anchor| pushes.of(pushed.sum_of(anchor, &pushes, |other| spread[other])))
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
