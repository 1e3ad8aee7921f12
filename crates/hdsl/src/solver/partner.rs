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

use super::bounds::{SLACK, Size};
use crate::atoms::{Atom, Sign};
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
struct Partner<'p> {
    problem: &'p Problem<'p>,
    feature: u32,
    diagonal: f64,
    /// The size of u.
    size: Size,
    best: Option<Scored>,
}

impl Partner<'_> {
    /// Whether a column (or one of many) may win that has at most this D and |H_ij|.
    fn may_win(&self, diagonal: f64, h: f64) -> bool {
        diagonal + h >= self.wanted()
    }

    /// What D_j + |H_ij| has to reach.
    fn wanted(&self) -> f64 {
        self.best
            .map_or(f64::NEG_INFINITY, |best| best.1 - self.diagonal)
    }

    fn offer(&mut self, j: u32, diagonal: f64, h: f64) {
        let score = self.diagonal + diagonal + h.abs();
        if j != self.feature && self.best.is_none_or(|best| score >= best.1) {
            let sign = if h < 0.0 { Sign::Minus } else { Sign::Plus };
            let atom = Atom::new(self.feature, j, sign).expect("a partner is another feature");
            let better = |best| self.problem.better(best, (atom, score));
            self.best = Some(self.best.map_or((atom, score), better));
        }
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
    u: Vec<f64>,
    /// The rows where u may differ from 0, unless it is dense.
    rows: Vec<u32>,
    is_listed: Vec<bool>,
    is_dense: bool,
}

impl Product {
    fn new(n_rows: usize) -> Self {
        Self {
            u: vec![0.0; n_rows],
            rows: Vec::new(),
            is_listed: vec![false; n_rows],
            is_dense: false,
        }
    }

    /// Adds to one row, for products that reach few.
    pub(super) fn add(&mut self, row: usize, by: f64) {
        if !std::mem::replace(&mut self.is_listed[row], true) {
            self.rows.push(row as u32);
        }
        self.u[row] += by;
    }

    /// All of u, to be set as a whole.
    pub(super) fn dense(&mut self) -> &mut [f64] {
        self.is_dense = true;
        &mut self.u
    }

    /// The rows where u may differ from 0, with u.
    fn entries(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let n_rows = if self.is_dense { self.u.len() } else { 0 };
        let rows = self.rows.iter().map(|&row| row as usize).chain(0..n_rows);
        rows.map(|row| (row, self.u[row]))
    }

    fn size(&self, non_negative: bool) -> Size {
        if self.is_dense {
            return Size::of(&self.u, non_negative);
        }
        let u: Vec<f64> = self.entries().map(|entry| entry.1).collect();
        Size::of(&u, non_negative)
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_dense) {
            self.u.fill(0.0);
        }
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
    limits: Vec<f64>,
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
            limits: Vec::new(),
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
        let mut partner = Partner {
            problem: self.problem,
            feature,
            diagonal: diagonal(feature),
            size: self.product.size(self.problem.non_negative),
            best: floor,
        };
        let mut columns = vec![best_diagonal];
        for atom in active.iter().rev().take(LATEST) {
            for j in [atom.i(), atom.j()] {
                if !columns.contains(&j) {
                    columns.push(j);
                }
            }
        }
        self.each_in(0..columns.len(), 1, &mut partner, |partner, at| {
            self.try_column(partner, columns[at], diagonal);
        });
        let values = self.values_reached();
        if self.work_by_columns(&partner) < self.work_by_rows(values) {
            self.search_columns(&mut partner, diagonal);
        } else {
            self.set_limits(&partner);
            let end = self.add_up_rows(values, partner.size);
            self.search_sums(&mut partner, end, diagonal);
        }
        self.product.clear();
        partner.best.expect("there are at least two features")
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

    fn block_may_win(&self, block: usize, partner: &Partner<'p>) -> bool {
        let h = partner.size.times(self.block_norms[block]);
        partner.may_win(self.block_diagonals[block], h)
    }

    fn blocks(&self) -> Range<usize> {
        0..self.block_norms.len()
    }

    fn columns(&self, block: usize) -> Range<usize> {
        block * COLUMNS..((block + 1) * COLUMNS).min(self.problem.n_columns())
    }

    /// Values in the rows where u is not 0.
    fn values_reached(&self) -> usize {
        let rows = self.product.entries().filter(|entry| entry.1 != 0.0);
        rows.map(|(row, _)| self.problem.rows.nnz_of(row)).sum()
    }

    fn work_by_columns(&self, partner: &Partner<'p>) -> usize {
        self.blocks()
            .filter(|&block| self.block_may_win(block, partner))
            .map(|block| {
                let columns = self.columns(block);
                self.problem.lists.values_in(columns.clone()) + COLUMN_COST * columns.len()
            })
            .sum()
    }

    fn work_by_rows(&self, values: usize) -> usize {
        match self.problem.n_columns() <= CACHED_COLUMNS {
            true => values,
            false => UNCACHED_COST * values,
        }
    }

    /// Computes the columns that may win.
    fn search_columns(&self, partner: &mut Partner<'p>, diagonal: &(impl Fn(u32) -> f64 + Sync)) {
        let try_one = |partner: &mut Partner<'p>, j: usize| {
            self.try_column(partner, j as u32, diagonal);
        };
        let try_block = |partner: &mut Partner<'p>, block: usize| {
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
        partner: &mut Partner<'p>,
        try_one: impl Fn(&mut Partner<'p>, usize) + Sync,
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
        let found = tried.filter_map(|partner| partner.best);
        let found = found.reduce_with(|a, b| self.problem.better(a, b));
        partner.best = found.or(partner.best);
    }

    /// Computes H_ij of one column, unless its bound rules it out.
    fn try_column(&self, partner: &mut Partner<'p>, j: u32, diagonal: &impl Fn(u32) -> f64) {
        let h = partner.size.times(self.problem.norms(j));
        if partner.may_win(diagonal(j), h) {
            self.compute_column(partner, j, diagonal);
        }
    }

    fn compute_column(&self, partner: &mut Partner<'p>, j: u32, diagonal: &impl Fn(u32) -> f64) {
        let (rows, values) = self.problem.lists.column(j);
        partner.offer(j, diagonal(j), picked_dot(&self.product.u, rows, values));
    }

    /// For each block of columns, up to which |u| a row may be left out of it. Does not decrease from block to block.
    fn set_limits(&mut self, partner: &Partner<'p>) {
        let (wanted, mut least) = (partner.wanted(), f64::INFINITY);
        self.limits.clear();
        self.limits.resize(self.block_norms.len(), least);
        for block in self.blocks().rev() {
            let [sum, norm] = self.block_norms[block];
            let gap = wanted - self.block_diagonals[block];
            if gap <= SLACK * partner.size.length * norm {
                least = least.min((SHARE * gap).max(0.0) / sum);
            }
            self.limits[block] = least;
        }
    }

    /// Blocks with limit 0, whose columns may win by their D alone.
    fn unlimited(&self) -> usize {
        self.limits.partition_point(|&limit| limit == 0.0)
    }

    /// Xᵀ u into `self.row`, each row up to the limits; returns the end of the columns that were added to.
    fn add_up_rows(&mut self, values: usize, size: Size) -> usize {
        let problem = self.problem;
        let unlimited = self.unlimited();
        let Self {
            row,
            product,
            limits,
            ..
        } = self;
        let end_for = |u: f64| limits.partition_point(|&limit| limit < u.abs()) * COLUMNS;
        let end = end_for(size.largest).min(problem.n_columns());
        // The search of the sums reads whole blocks.
        let read = COLUMNS * end.div_ceil(COLUMNS).max(unlimited);
        let read = read.min(problem.n_columns());
        if row.len() < read {
            row.resize(read, 0.0);
        }
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
        end
    }

    /// Computes every column that may win by its sum, and clears `self.row`.
    fn search_sums(
        &mut self,
        partner: &mut Partner<'p>,
        end: usize,
        diagonal: &(impl Fn(u32) -> f64 + Sync),
    ) {
        let mut row = std::mem::take(&mut self.row);
        for block in 0..self.unlimited().max(end.div_ceil(COLUMNS)) {
            let columns = self.columns(block);
            let sums = &row[columns.clone()];
            let most = sums.iter().fold(0.0f64, |most, h| most.max(h.abs()));
            // The limit says what is missing from the sums.
            let missing = self.limits[block];
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
        row[..end].fill(0.0);
        self.row = row;
    }
}
