//! The best partner of a feature: as much of a row of H as can matter.
//!
//! Row i of H is Xᵀ u with u = S X_{:,i}, and [`Size`] bounds |H_ij| by the size of u and the norms of column j. Columns
//! are numbered by decreasing size. There are two ways to find the best, and the one that promises less work is taken:
//! - by columns: those whose bound says that they may win, one by one;
//! - by rows, where u is not 0. To win, column j needs an |H_ij| of at least some gap. A few rows have most of u, so a row
//!   where |u| is small is added only to columns that are large enough to be changed by it: what is left out of column j
//!   is at most (the largest |u| left out) ‖X_j‖_1, half the gap or less. Columns that may still win are then computed in
//!   full.
//!
//! What is left out cannot win, so the result is that of a whole row.

use super::bounds::{SLACK, Size, better_pair};
use crate::atoms::Atom;
use crate::objective::{COLUMNS, Problem, Scored};
use crate::parallel::{current_num_threads, prelude::*};
use std::ops::Range;

/// Values in the rows that make threads worth starting for one row of H.
pub(super) const PARALLEL: usize = 1 << 20;
/// Blocks of columns so large that threads share single columns.
const HEAD: usize = 4;
/// What a column costs besides its values, and what a value costs by rows if there are so many columns that their sums do
/// not stay in the cache. Measured; they affect nothing but speed.
const COLUMN_COST: usize = 8;
const CACHED_COLUMNS: usize = 1 << 17;
const UNCACHED_COST: usize = 3;
/// Active atoms whose features are tried first.
const LATEST: usize = 8;
/// The share of the gap that may be left out of a column.
const SHARE: f64 = 0.5;

/// The best partner of one feature so far.
#[derive(Clone, Copy)]
struct Partner {
    feature: u32,
    diagonal: f64,
    /// The size of u.
    size: Size,
    best: Scored,
}

impl Partner {
    /// Whether a column (or one of many) may win that has at most this D and |H_ij|.
    fn may_win(&self, diagonal: f64, h: f64) -> bool {
        diagonal + h >= self.wanted()
    }

    /// What D_j + |H_ij| has to reach.
    fn wanted(&self) -> f64 {
        self.best.1 - self.diagonal
    }
}

/// Σ u_q x_q over some rows q: four sums side by side, since one has to wait for the addition before.
fn picked_dot(u: &[f64], rows: &[u32], values: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let ((rows, last_rows), (values, last_values)) =
        (rows.as_chunks::<4>(), values.as_chunks::<4>());
    for (rows, values) in rows.iter().zip(values) {
        for k in 0..4 {
            sums[k] += u[rows[k] as usize] * values[k];
        }
    }
    for (&row, &x) in last_rows.iter().zip(last_values) {
        sums[0] += u[row as usize] * x;
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// u = S X_{:,i}. All 0 between searches.
pub(super) struct Product {
    /// May be set as a whole, with nothing listed.
    pub(super) u: Vec<f64>,
    /// The rows where u may differ from 0.
    rows: Vec<u32>,
    is_listed: Vec<bool>,
}

impl Product {
    fn new(n_rows: usize) -> Self {
        Self {
            u: vec![0.0; n_rows],
            rows: Vec::new(),
            is_listed: vec![false; n_rows],
        }
    }

    /// Adds to one row, for products that reach few.
    pub(super) fn add(&mut self, row: usize, by: f64) {
        if !std::mem::replace(&mut self.is_listed[row], true) {
            self.rows.push(row as u32);
        }
        self.u[row] += by;
    }

    /// Lists the rows of a u that was set as a whole.
    fn list(&mut self) {
        if self.rows.is_empty() {
            let rows = (0..).zip(&self.u).filter(|(_, u)| **u != 0.0);
            self.rows.extend(rows.map(|(row, _)| row));
        }
    }

    /// The rows listed, with u.
    fn entries(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let rows = self.rows.iter().map(|&row| row as usize);
        rows.map(|row| (row, self.u[row]))
    }

    fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.u[row as usize] = 0.0;
            self.is_listed[row as usize] = false;
        }
    }
}

/// Bounds, and buffers that are used again.
pub(super) struct PartnerSearch<'p> {
    problem: &'p Problem<'p>,
    parallel_from: usize,
    /// The largest ‖X_j‖_1 and ‖X_j‖_2 of each block of columns.
    block_norms: Vec<[f64; 2]>,
    /// An upper bound of D in each block, which the engine keeps up to date.
    pub(super) block_diagonals: Vec<f64>,
    pub(super) product: Product,
    /// A row of H, as long as one was ever needed. All 0 between searches.
    row: Vec<f64>,
}

impl<'p> PartnerSearch<'p> {
    /// With threads for rows that have at least so many values.
    pub(super) fn new(problem: &'p Problem<'p>, parallel_from: usize) -> Self {
        let mut block_norms = vec![[0.0f64; 2]; problem.n_columns().div_ceil(COLUMNS)];
        for j in 0..problem.n_columns() {
            let most = &mut block_norms[j / COLUMNS];
            let [sum, length] = problem.norms(j as u32);
            *most = [most[0].max(sum), most[1].max(length)];
        }
        Self {
            problem,
            parallel_from,
            block_diagonals: vec![f64::INFINITY; block_norms.len()],
            block_norms,
            product: Product::new(problem.rows.n_rows()),
            row: Vec::new(),
        }
    }

    /// The best atom that contains a feature, or the floor if that is better. The product with the feature's column is in
    /// place.
    ///
    /// The best D makes a good partner for most features, and so do the features of the latest active atoms. They are
    /// tried first: the higher the score to beat, the less work there is.
    pub(super) fn best(
        &mut self,
        feature: u32,
        floor: Option<Scored>,
        diagonal: &(impl Fn(u32) -> f64 + Sync),
        best_diagonal: u32,
        active: &[Atom],
    ) -> Scored {
        self.product.list();
        let u: Vec<f64> = self.product.entries().map(|entry| entry.1).collect();
        let any = Atom::plus(0, 1).expect("0 and 1 differ");
        let mut partner = Partner {
            feature,
            diagonal: diagonal(feature),
            size: Size::of(&u, self.problem.non_negative),
            best: floor.unwrap_or((any, f64::NEG_INFINITY)),
        };
        let latest = active.iter().rev().take(LATEST);
        let mut columns: Vec<u32> = latest.flat_map(|atom| [atom.i(), atom.j()]).collect();
        columns.push(best_diagonal);
        columns.sort_unstable();
        columns.dedup();
        self.each_in(0..columns.len(), 1, &mut partner, |partner, at| {
            self.try_column(partner, columns[at], diagonal);
        });
        let reached = self.product.entries().filter(|entry| entry.1 != 0.0);
        let reached = reached.map(|(row, _)| self.problem.rows.nnz_of(row));
        let values: usize = reached.sum();
        let cost = match self.problem.n_columns() <= CACHED_COLUMNS {
            true => 1,
            false => UNCACHED_COST,
        };
        if self.work_by_columns(&partner) < cost * values {
            self.search_columns(&mut partner, diagonal);
        } else {
            let limits = self.limits(&partner);
            let n_blocks = self.add_up_rows(values, partner.size, &limits);
            self.search_sums(&mut partner, &limits[..n_blocks], diagonal);
        }
        self.product.clear();
        partner.best
    }

    /// The column with the largest D, the first of equals.
    pub(super) fn best_diagonal(&self, diagonal: impl Fn(u32) -> f64) -> u32 {
        let mut best = (f64::NEG_INFINITY, 0);
        for block in self.blocks() {
            if self.block_diagonals[block] < best.0 {
                continue;
            }
            for j in self.columns(block) {
                let d = diagonal(j as u32);
                if d > best.0 {
                    best = (d, j as u32);
                }
            }
        }
        best.1
    }

    fn block_may_win(&self, block: usize, partner: &Partner) -> bool {
        let h = partner.size.times(self.block_norms[block]);
        partner.may_win(self.block_diagonals[block], h)
    }

    fn blocks(&self) -> Range<usize> {
        0..self.block_norms.len()
    }

    fn columns(&self, block: usize) -> Range<usize> {
        block * COLUMNS..((block + 1) * COLUMNS).min(self.problem.n_columns())
    }

    fn work_by_columns(&self, partner: &Partner) -> usize {
        self.blocks()
            .filter(|&block| self.block_may_win(block, partner))
            .map(|block| {
                let columns = self.columns(block);
                self.problem.lists.values_in(columns.clone()) + COLUMN_COST * columns.len()
            })
            .sum()
    }

    /// Computes the columns that may win.
    fn search_columns(&self, partner: &mut Partner, diagonal: &(impl Fn(u32) -> f64 + Sync)) {
        let try_one = |partner: &mut Partner, j: usize| {
            self.try_column(partner, j as u32, diagonal);
        };
        let try_block = |partner: &mut Partner, block: usize| {
            if self.block_may_win(block, partner) {
                self.columns(block).for_each(|j| try_one(partner, j));
            }
        };
        // The largest columns first, so that there is a score to beat, and one by one, so that threads can share them.
        let n_blocks = self.block_norms.len();
        let head = HEAD.min(n_blocks);
        self.each_in(0..self.columns(head - 1).end, 1, partner, try_one);
        self.each_in(head..n_blocks, 64, partner, try_block);
    }

    /// Tries each of a range, in threads that take `at_once` of them or more if there are many values. What is left out
    /// cannot win, so the result does not depend on which thread tries what.
    fn each_in(
        &self,
        range: Range<usize>,
        at_once: usize,
        partner: &mut Partner,
        try_one: impl Fn(&mut Partner, usize) + Sync,
    ) {
        // A single thread would take halves, and the second half would not know the best of the first.
        if self.problem.rows.nnz() < self.parallel_from || current_num_threads() == 1 {
            return range.for_each(|at| try_one(partner, at));
        }
        let range = range.into_par_iter().with_min_len(at_once);
        let tried = range.fold_with(*partner, |mut partner, at| {
            try_one(&mut partner, at);
            partner
        });
        let found = tried.map(|partner| partner.best);
        let found = found.reduce_with(|a, b| self.problem.better(a, b));
        partner.best = found.unwrap_or(partner.best);
    }

    /// Computes H_ij of one column, unless its bound rules it out.
    fn try_column(&self, partner: &mut Partner, j: u32, diagonal: &impl Fn(u32) -> f64) {
        let h = partner.size.times(self.problem.norms(j));
        if partner.may_win(diagonal(j), h) {
            self.compute_column(partner, j, diagonal);
        }
    }

    fn compute_column(&self, partner: &mut Partner, j: u32, diagonal: &impl Fn(u32) -> f64) {
        if j != partner.feature {
            let (rows, values) = self.problem.lists.column(j);
            let h = picked_dot(&self.product.u, rows, values);
            let (pair, diagonals) = ([partner.feature, j], partner.diagonal + diagonal(j));
            partner.best = better_pair(self.problem, partner.best, pair, diagonals, h);
        }
    }

    /// For each block of columns, up to which |u| a row may be left out of it. Does not decrease from block to block.
    fn limits(&self, partner: &Partner) -> Vec<f64> {
        let (wanted, mut least) = (partner.wanted(), f64::INFINITY);
        let mut limits = vec![least; self.block_norms.len()];
        for block in self.blocks().rev() {
            let [sum, norm] = self.block_norms[block];
            let gap = wanted - self.block_diagonals[block];
            if gap <= SLACK * partner.size.length * norm {
                least = least.min((SHARE * gap).max(0.0) / sum);
            }
            limits[block] = least;
        }
        limits
    }

    /// Xᵀ u into `self.row`, each row up to the limits; returns the number of blocks of columns that may win.
    fn add_up_rows(&mut self, values: usize, size: Size, limits: &[f64]) -> usize {
        let problem = self.problem;
        let Self { row, product, .. } = self;
        let end_for = |u: f64| limits.partition_point(|&limit| limit < u.abs()) * COLUMNS;
        let end = end_for(size.largest).min(problem.n_columns());
        // The columns of a block with limit 0 may win by their D alone.
        let unlimited = limits.partition_point(|&limit| limit == 0.0);
        let n_blocks = end.div_ceil(COLUMNS).max(unlimited);
        row.resize(row.len().max(n_blocks * COLUMNS), 0.0);
        // Each column is summed in the order of rows, in whatever thread.
        let add = |sums: &mut [f64], from: usize| {
            let to = from + sums.len();
            for (q, u) in product.entries() {
                let to = end_for(u).min(to);
                if to <= from {
                    continue;
                }
                let values = problem.rows.row(q);
                let place = |column| values.indices().partition_point(|&j| (j as usize) < column);
                let places = if from == 0 { 0 } else { place(from) }..place(to);
                let indices = &values.indices()[places.clone()];
                if problem.all_ones {
                    for &j in indices {
                        sums[j as usize - from] += u;
                    }
                } else {
                    values
                        .values()
                        .part(places)
                        .each_with(indices.iter(), |&j, x| sums[j as usize - from] += u * x);
                }
            }
        };
        let threads = current_num_threads();
        if threads == 1 || values < self.parallel_from {
            add(&mut row[..end], 0);
        } else {
            problem
                .lists
                .cut(&mut row[..end], threads)
                .into_par_iter()
                .for_each(|(from, sums)| add(sums, from));
        }
        n_blocks
    }

    /// Computes every column that may win by its sum, and clears `self.row`.
    fn search_sums(
        &mut self,
        partner: &mut Partner,
        limits: &[f64],
        diagonal: &impl Fn(u32) -> f64,
    ) {
        let mut row = std::mem::take(&mut self.row);
        for (block, &missing) in limits.iter().enumerate() {
            let columns = self.columns(block);
            let sums = &row[columns.clone()];
            let most = sums.iter().fold(0.0f64, |most, h| most.max(h.abs()));
            // The limit says what is missing from the sums.
            let bound = |h: f64, sum: f64| SLACK * (h.abs() + missing * sum);
            let h = bound(most, self.block_norms[block][0]);
            if !partner.may_win(self.block_diagonals[block], h) {
                continue;
            }
            for (j, &h) in columns.zip(sums) {
                let j = j as u32;
                if partner.may_win(diagonal(j), bound(h, self.problem.norms(j)[0])) {
                    self.compute_column(partner, j, diagonal);
                }
            }
        }
        row[..limits.len() * COLUMNS].fill(0.0);
        self.row = row;
    }
}
