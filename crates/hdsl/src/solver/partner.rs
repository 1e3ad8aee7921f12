//! Partner search: given a feature i, find the feature j and the sign that maximize the score D_i + D_j ± H_ij.
//!
//! Row i of H is Xᵀ u with u = C X_{:,i}, where C is the matrix of pair coefficients. [`Norms`] gives an upper bound of
//! |H_ij| from the norms of u and of column j, and so an upper bound of the score. Column j is skipped if this bound is
//! lower than the best score so far. Internal feature indices are ordered by decreasing ‖X_j‖_1, so the bounds are
//! highest in the first blocks of columns. There are two algorithms, and the one with the lower estimated cost is used:
//! - by columns: compute H_ij = X_{:,j} · u for every column j that is not skipped.
//! - by rows: add u_q x_q to row i of H for every row q with u_q ≠ 0. Most |u_q| are small and hardly change the sum.
//!   Each block of columns therefore has a limit, and row q is added to a block only if |u_q| exceeds its limit. The
//!   error of this partial sum is at most limit · ‖X_j‖_1. Column j can only win if |H_ij| is at least the best score -
//!   D_i - D_j, and the limit is chosen such that the error is at most half of that. Columns that may win according to
//!   their partial sum and its error are then computed exactly.
//!
//! A skipped column cannot have a better score, so the result is the same as from the complete row of H.

use super::bounds::{Norms, SLACK, better_pair, largest_abs};
use crate::atoms::Atom;
use crate::objective::{COLUMNS, Problem, Scored};
use crate::parallel::{self, current_num_threads};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Several threads are used from this many stored values on. By columns, the values of X are counted; by rows, those of
/// the rows with u_q ≠ 0.
pub(super) const PARALLEL: usize = 1 << 20;
/// The number of blocks at the start whose columns are tried one by one, because they have many values. Of later columns,
/// whole blocks are tried or skipped.
const HEAD_BLOCKS: usize = 4;
/// The cost of a column in addition to its values, where each value costs 1. This and the next two constants are the
/// cost model that chooses between columns and rows. They were measured, and affect speed only.
const COLUMN_COST: usize = 8;
/// The sums of up to this many columns fit in the cache.
const CACHED_COLUMNS: usize = 1 << 17;
/// By rows, one value costs this much if the sums do not fit in the cache.
const UNCACHED_COST: usize = 3;
/// The features of this many of the latest active atoms are tried first.
const N_LATEST_ATOMS: usize = 8;
/// So are the partners of the feature itself in this many of its latest active atoms.
const N_OWN_ATOMS: usize = 16;
/// By rows, the error of a partial sum is at most this share of the |H_ij| that column j needs to win.
const MAX_ERROR_SHARE: f64 = 0.5;

/// What a search collects of the columns that it visits.
trait Collector: Clone + Send + Sync {
    /// The value that D_j + |H_ij| must reach for column j to be collected.
    fn required(&self) -> f64;
    /// Collects a column, given D_j and H_ij, if it is good enough. A column may be offered twice.
    fn offer(&mut self, j: u32, diagonal: f64, h: f64);
    /// Adds what was collected from other columns.
    fn merge(&mut self, other: Self);
}

/// The best atom that contains a feature.
#[derive(Clone, Copy)]
struct Best<'p> {
    problem: &'p Problem<'p>,
    /// The feature i, and D_i.
    feature: u32,
    diagonal: f64,
    /// The best atom so far.
    best: Scored,
}

impl Collector for Best<'_> {
    fn required(&self) -> f64 {
        self.best.1 - self.diagonal
    }

    fn offer(&mut self, j: u32, diagonal: f64, h: f64) {
        let (pair, diagonals) = ([self.feature, j], self.diagonal + diagonal);
        self.best = better_pair(&self.problem.features, self.best, pair, diagonals, h);
    }

    fn merge(&mut self, other: Self) {
        self.best = self.problem.better(self.best, other.best);
    }
}

/// A column j, given a feature i: D_j and H_ij over the triplets of this process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Partner {
    pub(crate) column: u32,
    pub(crate) diagonal: f64,
    pub(crate) h: f64,
}

impl Partner {
    /// D_j + |H_ij|.
    pub(super) fn size(&self) -> f64 {
        self.diagonal + self.h.abs()
    }
}

/// Which of the columns with the largest D_j + |H_ij| are collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Those that reach this value,
    pub(super) floor: f64,
    /// and this share of the largest value, if that is above 0,
    pub(super) share: f64,
    /// but not more than this.
    pub(super) most: usize,
}

/// The columns with the largest D_j + |H_ij|.
#[derive(Clone, Debug)]
pub(super) struct Top {
    limits: Limits,
    /// By decreasing D_j + |H_ij|; of equals, the first columns come first.
    pub(super) partners: Vec<Partner>,
}

impl Top {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            partners: Vec::new(),
        }
    }

    /// An upper bound of D_j + |H_ij| of the columns that were not collected.
    pub(super) fn bound(&self) -> f64 {
        self.required()
    }
}

impl Collector for Top {
    fn required(&self) -> f64 {
        let Limits { floor, share, most } = self.limits;
        let size = |place: usize| self.partners.get(place).map(Partner::size);
        let relative = size(0).filter(|&first| first > 0.0 && share > 0.0);
        let last = size(most - 1).unwrap_or(floor);
        floor
            .max(last)
            .max(relative.map_or(floor, |first| share * first))
    }

    fn offer(&mut self, column: u32, diagonal: f64, h: f64) {
        let new = Partner {
            column,
            diagonal,
            h,
        };
        if new.size() < self.required() || self.partners.iter().any(|p| p.column == column) {
            return;
        }
        let before =
            |p: &Partner| p.size() > new.size() || (p.size() == new.size() && p.column < column);
        self.partners
            .insert(self.partners.partition_point(before), new);
        self.partners.truncate(self.limits.most);
        // A larger first value may exclude the last ones.
        let required = self.required();
        self.partners.retain(|p| p.size() >= required);
    }

    fn merge(&mut self, other: Self) {
        for Partner {
            column,
            diagonal,
            h,
        } in other.partners
        {
            self.offer(column, diagonal, h);
        }
    }
}

/// The state of one search.
#[derive(Clone)]
struct State<C> {
    /// The feature i whose partner j is searched for.
    feature: u32,
    /// The norms of u.
    norms: Norms,
    found: C,
}

impl<C: Collector> State<C> {
    /// Whether a column j may be collected, given upper bounds of D_j and |H_ij|.
    fn may_win(&self, diagonal: f64, h: f64) -> bool {
        diagonal + h >= self.found.required()
    }
}

/// Σ u_q x_q over the given rows q. Four partial sums hide the latency of the additions.
fn gather_dot(u: &[f64], rows: &[u32], values: &[f64]) -> f64 {
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

/// The vector u = C X_{:,i} of one search. All entries are 0 between searches.
pub(super) struct Product {
    pub(super) u: Vec<f64>,
    /// The rows whose entry may be non-zero, unless all may be.
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

    /// Adds to one entry and lists its row. For a u with few non-zeros.
    pub(super) fn add(&mut self, row: usize, by: f64) {
        if by != 0.0 && !std::mem::replace(&mut self.is_listed[row], true) {
            self.rows.push(row as u32);
        }
        self.u[row] += by;
    }

    /// The entries, to be written directly. For a u with many non-zeros.
    pub(super) fn dense(&mut self) -> &mut [f64] {
        self.is_dense = true;
        &mut self.u
    }

    /// Calls `visit` for every row with an entry other than 0.
    fn each(&self, mut visit: impl FnMut(usize, f64)) {
        let mut visit = |row: usize, u: f64| {
            if u != 0.0 {
                visit(row, u);
            }
        };
        match self.is_dense {
            true => (0..).zip(&self.u).for_each(|(row, &u)| visit(row, u)),
            false => (self.rows.iter()).for_each(|&row| visit(row as usize, self.u[row as usize])),
        }
    }

    /// The number of entries other than 0, or some more.
    fn n_nonzero(&self) -> usize {
        match self.is_dense {
            true => self.u.iter().filter(|&&u| u != 0.0).count(),
            false => self.rows.len(),
        }
    }

    fn norms(&self, non_negative: bool) -> Norms {
        if self.is_dense {
            return Norms::of(&self.u, non_negative);
        }
        let listed = self.rows.iter().map(|&row| self.u[row as usize]);
        Norms::of(&listed.collect::<Vec<f64>>(), non_negative)
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_dense) {
            self.u.fill(0.0);
        }
        for row in self.rows.drain(..) {
            self.u[row as usize] = 0.0;
            self.is_listed[row as usize] = false;
        }
    }
}

/// Partner search with the bounds of column blocks, and buffers that are reused by all searches.
pub(super) struct PartnerSearch<'p> {
    problem: &'p Problem<'p>,
    /// The number of values from which several threads are used; see [`PARALLEL`].
    parallel_from: usize,
    /// The largest ‖X_j‖_1 and the largest ‖X_j‖_2 in each block of columns.
    block_norms: Vec<[f64; 2]>,
    /// An upper bound of D_j in each block. The solver state updates it.
    pub(super) block_diagonals: Vec<f64>,
    pub(super) product: Product,
    /// The first entries of a row of H: as many as any search needed so far. All entries are 0 between searches.
    row: Vec<f64>,
}

impl<'p> PartnerSearch<'p> {
    /// A search that uses several threads if there are at least `parallel_from` values; see [`PARALLEL`].
    pub(super) fn new(problem: &'p Problem<'p>, parallel_from: usize) -> Self {
        let mut block_norms = vec![[0.0f64; 2]; problem.n_columns().div_ceil(COLUMNS)];
        for j in 0..problem.n_columns() {
            let largest = &mut block_norms[j / COLUMNS];
            let [norm1, norm2] = problem.norms(j as u32);
            *largest = [largest[0].max(norm1), largest[1].max(norm2)];
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

    /// The best atom that contains `feature`, or `floor` if that is better. `self.product` must contain u, and is cleared.
    ///
    /// `best_diagonal`, the feature with the largest D, the features of the latest active atoms and the partners of `feature` in
    /// active atoms are often good partners. They are tried first, because a higher best score allows more columns to be skipped.
    pub(super) fn best(
        &mut self,
        feature: u32,
        floor: Option<Scored>,
        diagonal: &(impl Fn(u32) -> f64 + Sync),
        best_diagonal: u32,
        active: &[Atom],
    ) -> Scored {
        let placeholder = Atom::plus(0, 1).expect("the features differ");
        let found = Best {
            problem: self.problem,
            feature,
            diagonal: diagonal(feature),
            best: floor.unwrap_or((placeholder, f64::NEG_INFINITY)),
        };
        let found = self.search(feature, found, diagonal, best_diagonal, active);
        self.product.clear();
        found.best
    }

    /// The columns with the largest D_j + |H_ij|. `self.product` must contain u.
    pub(super) fn top(
        &mut self,
        feature: u32,
        limits: Limits,
        diagonal: &(impl Fn(u32) -> f64 + Sync),
        best_diagonal: u32,
        active: &[Atom],
    ) -> Top {
        let found = Top::new(limits);
        self.search(feature, found, diagonal, best_diagonal, active)
    }

    /// D_j and H_ij of one column j. `self.product` must contain u of feature i.
    pub(super) fn partner(&self, column: u32, diagonal: f64) -> Partner {
        let (rows, values) = self.problem.lists.column(column);
        Partner {
            column,
            diagonal,
            h: gather_dot(&self.product.u, rows, values),
        }
    }

    /// Collects the partners of a feature. Columns that cannot be collected are skipped.
    fn search<C: Collector>(
        &mut self,
        feature: u32,
        found: C,
        diagonal: &(impl Fn(u32) -> f64 + Sync),
        best_diagonal: u32,
        active: &[Atom],
    ) -> C {
        let mut state = State {
            feature,
            norms: self.product.norms(self.problem.non_negative),
            found,
        };
        let latest = active.iter().rev().take(N_LATEST_ATOMS);
        let mut columns: Vec<u32> = latest.flat_map(|atom| [atom.i(), atom.j()]).collect();
        let partner = |atom: &Atom| match atom.i() == feature {
            true => Some(atom.j()),
            false => (atom.j() == feature).then_some(atom.i()),
        };
        let own = active.iter().rev().filter_map(partner);
        columns.extend(own.take(N_OWN_ATOMS));
        columns.push(best_diagonal);
        columns.sort_unstable();
        columns.dedup();
        self.try_range(0..columns.len(), &mut state, |state, at| {
            self.try_column(state, columns[at], diagonal);
        });
        let rows = &self.problem.rows;
        let n_values = self.product.n_nonzero() * rows.nnz() / rows.n_rows();
        let value_cost = match self.problem.n_columns() <= CACHED_COLUMNS {
            true => 1,
            false => UNCACHED_COST,
        };
        if self.cost_by_columns(&state) < value_cost * n_values {
            self.search_columns(&mut state, diagonal);
        } else {
            let limits = self.limits(&state);
            let n_blocks = self.sum_rows(n_values, state.norms, &limits);
            self.search_partial_sums(&mut state, &limits[..n_blocks], diagonal);
        }
        state.found
    }

    /// Up to `most` columns with the largest D.
    pub(super) fn top_diagonal(&self, most: usize, diagonal: impl Fn(u32) -> f64) -> Top {
        let mut found = Top::new(Limits {
            floor: f64::NEG_INFINITY,
            share: 0.0,
            most,
        });
        for block in self.blocks() {
            if self.block_diagonals[block] >= found.required() {
                for j in self.columns(block) {
                    found.offer(j as u32, diagonal(j as u32), 0.0);
                }
            }
        }
        found
    }

    /// The column with the largest D; the first one if several are equal.
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

    /// Whether a column of this block can be at least as good as the best so far.
    fn block_may_win<C: Collector>(&self, block: usize, state: &State<C>) -> bool {
        let h = state.norms.bound(self.block_norms[block]);
        state.may_win(self.block_diagonals[block], h)
    }

    fn blocks(&self) -> Range<usize> {
        0..self.block_norms.len()
    }

    fn columns(&self, block: usize) -> Range<usize> {
        block * COLUMNS..((block + 1) * COLUMNS).min(self.problem.n_columns())
    }

    /// The estimated cost of the algorithm by columns.
    fn cost_by_columns<C: Collector>(&self, state: &State<C>) -> usize {
        self.blocks()
            .filter(|&block| self.block_may_win(block, state))
            .map(|block| {
                let columns = self.columns(block);
                self.problem.lists.values_in(columns.clone()) + COLUMN_COST * columns.len()
            })
            .sum()
    }

    /// The algorithm by columns: computes H_ij for every column that may win.
    fn search_columns<C: Collector>(
        &self,
        state: &mut State<C>,
        diagonal: &(impl Fn(u32) -> f64 + Sync),
    ) {
        let try_one = |state: &mut State<C>, j: usize| {
            self.try_column(state, j as u32, diagonal);
        };
        let try_block = |state: &mut State<C>, block: usize| {
            if self.block_may_win(block, state) {
                self.columns(block).for_each(|j| try_one(state, j));
            }
        };
        // The first columns have the most values, and a high score among them lets most of the later blocks be skipped.
        let n_blocks = self.block_norms.len();
        let head = HEAD_BLOCKS.min(n_blocks);
        self.try_range(0..self.columns(head - 1).end, state, try_one);
        self.try_range(head..n_blocks, state, try_block);
    }

    /// Calls `try_one` for each index of a range, in parallel if X has many values. Each of n threads takes every n-th index, so
    /// that all have as many of the first ones, which are the most work. Skipped columns cannot be better, so the result does not
    /// depend on how the range is divided.
    fn try_range<C: Collector>(
        &self,
        range: Range<usize>,
        state: &mut State<C>,
        try_one: impl Fn(&mut State<C>, usize) + Sync,
    ) {
        let n = current_num_threads();
        if self.problem.rows.nnz() < self.parallel_from || n == 1 {
            return range.for_each(|at| try_one(state, at));
        }
        let tried = parallel::map(n, |part| {
            let mut state = state.clone();
            let part = range.clone().skip(part).step_by(n);
            part.for_each(|at| try_one(&mut state, at));
            state.found
        });
        tried.into_iter().for_each(|found| state.found.merge(found));
    }

    /// Computes H_ij of one column, unless its bound shows that it cannot win.
    fn try_column<C: Collector>(
        &self,
        state: &mut State<C>,
        j: u32,
        diagonal: &impl Fn(u32) -> f64,
    ) {
        let h = state.norms.bound(self.problem.norms(j));
        if state.may_win(diagonal(j), h) {
            self.compute_column(state, j, diagonal);
        }
    }

    /// Computes H_ij of one column and offers it to the collector.
    fn compute_column<C: Collector>(
        &self,
        state: &mut State<C>,
        j: u32,
        diagonal: &impl Fn(u32) -> f64,
    ) {
        if j != state.feature {
            let Partner { diagonal, h, .. } = self.partner(j, diagonal(j));
            state.found.offer(j, diagonal, h);
        }
    }

    /// The limit of each block of columns: a row q with |u_q| up to the limit is not added to the block. Limits do not
    /// decrease from one block to the next.
    fn limits<C: Collector>(&self, state: &State<C>) -> Vec<f64> {
        let (required, mut lowest) = (state.found.required(), f64::INFINITY);
        let mut limits = vec![lowest; self.block_norms.len()];
        for block in self.blocks().rev() {
            let [norm1, norm2] = self.block_norms[block];
            let required_h = required - self.block_diagonals[block];
            // Otherwise no column of the block can win, so the block needs no limit of its own.
            if required_h <= SLACK * state.norms.length * norm2 {
                let error = (MAX_ERROR_SHARE * required_h).max(0.0);
                // The norm is 0 if all values of the block are.
                lowest = lowest.min(if error == 0.0 { 0.0 } else { error / norm1 });
            }
            limits[block] = lowest;
        }
        limits
    }

    /// The algorithm by rows, first part: writes partial sums of Xᵀ u to `self.row`. The sums of a block of columns
    /// leave out every u_q up to the limit of the block. Returns the number of blocks that may have a column that wins.
    /// These are the first blocks.
    fn sum_rows(&mut self, n_values: usize, norms: Norms, limits: &[f64]) -> usize {
        let problem = self.problem;
        let Self { row, product, .. } = self;
        let end_column = |u: f64| limits.partition_point(|&limit| limit < u.abs()) * COLUMNS;
        let end = end_column(norms.largest).min(problem.n_columns());
        // In a block with limit 0, D_j may be high enough to win with H_ij = 0. Such a block is searched even if no row
        // is added to it.
        let unlimited = limits.partition_point(|&limit| limit == 0.0);
        let n_blocks = end.div_ceil(COLUMNS).max(unlimited);
        row.resize(row.len().max(n_blocks * COLUMNS), 0.0);
        // Each column is summed by one thread in the order of the rows, so the result does not depend on the threads.
        let add = |sums: &mut [f64], from: usize| {
            let to = from + sums.len();
            product.each(|q, u| {
                // Columns are increasing, and so are limits.
                let is_added = |j: &u32| limits[*j as usize / COLUMNS] < u.abs();
                if to == from || !is_added(&(from as u32)) {
                    return;
                }
                let row = problem.rows.row(q);
                let first = match from {
                    0 => 0,
                    _ => row.indices().partition_point(|&j| (j as usize) < from),
                };
                let indices = &row.indices()[first..];
                let added = indices
                    .iter()
                    .take_while(|j| is_added(j) && (**j as usize) < to);
                let values = row.values().part(first..row.indices().len());
                values.each_with(added, |&j, x| sums[j as usize - from] += u * x);
            });
        };
        let threads = current_num_threads();
        if threads == 1 || n_values < self.parallel_from {
            add(&mut row[..end], 0);
        } else {
            let parts = problem.lists.cut(&mut row[..end], threads);
            parallel::map_each(parts, |(from, sums)| add(sums, from));
        }
        n_blocks
    }

    /// The algorithm by rows, second part: computes every column that may win given its partial sum, and clears
    /// `self.row`.
    fn search_partial_sums<C: Collector>(
        &mut self,
        state: &mut State<C>,
        limits: &[f64],
        diagonal: &impl Fn(u32) -> f64,
    ) {
        let mut row = std::mem::take(&mut self.row);
        for (block, &limit) in limits.iter().enumerate() {
            let columns = self.columns(block);
            let sums = &row[columns.clone()];
            let largest = largest_abs(sums);
            // The error of a partial sum is at most the limit times the 1-norm of the column.
            let bound = |h: f64, norm1: f64| SLACK * (h.abs() + limit * norm1);
            let h = bound(largest, self.block_norms[block][0]);
            if !state.may_win(self.block_diagonals[block], h) {
                continue;
            }
            for (j, &h) in columns.zip(sums) {
                let j = j as u32;
                if state.may_win(diagonal(j), bound(h, self.problem.norms(j)[0])) {
                    self.compute_column(state, j, diagonal);
                }
            }
        }
        row[..limits.len() * COLUMNS].fill(0.0);
        self.row = row;
    }
}
