//! The best partner of a feature: one row of H, as much of it as could matter.
//!
//! Row i of H is Xᵀ u with u = S X_{:,i}, and |H_ij| <= min(max|u| ‖X_j‖_1, ‖u‖_2 ‖X_j‖_2). Columns are numbered by
//! decreasing size. There are two ways, and the one that promises less work is taken:
//! - by columns: those whose bound says that they may win, one by one;
//! - by rows, where u is not 0. To win, column j has to bring |H_ij| up to some gap. A few rows have most of u, so a row
//!   where |u| is small is added up only as far as columns large enough to mind: what is left out of column j is at most
//!   (the largest |u| left out) ‖X_j‖_1, half the gap or less. Columns that might still win are then computed in full.
//!
//! What is left out cannot win, so the outcome is that of a whole row.

use crate::atoms::{Atom, Sign};
use crate::objective::{COLUMNS, Problem, Scored};
use crate::parallel::prelude::*;
use std::ops::Range;

/// Values in the rows that make threads worth waking for one row of H.
pub(super) const PARALLEL: usize = 1 << 20;
/// Blocks of columns so large that threads share out single columns.
const HEAD: usize = 4;
/// What a column costs besides its values, and what a value costs by rows where the sums of so many columns do not stay
/// in the cache. Measured; nothing but speed hangs on them.
const A_COLUMN: usize = 8;
const NEAR: usize = 1 << 17;
const FAR: usize = 3;
/// How much of the gap to the best a column may be missing.
const SHARE: f64 = 0.5;
/// The bounds and a row of H round differently: leave room for that.
const SLACK: f64 = 1.0 + 1e-9;

/// Who knows D.
pub(super) trait Diagonals: Sync {
    /// D of one column.
    fn at(&self, column: u32) -> f64;
    /// A better upper bound of D in a block of columns that may win; none where there is no better one.
    fn sharpen(&mut self, _block: usize) -> Option<f64> {
        None
    }
}

impl<F: Fn(u32) -> f64 + Sync> Diagonals for F {
    fn at(&self, column: u32) -> f64 {
        self(column)
    }
}

/// The best partner of one feature so far.
#[derive(Clone, Copy)]
pub(super) struct Partner<'p> {
    problem: &'p Problem<'p>,
    feature: u32,
    diagonal: f64,
    best: Option<Scored>,
}

impl<'p> Partner<'p> {
    /// Of a feature with this D; only partners that are no worse than the floor, if there is one.
    pub(super) fn new(
        problem: &'p Problem<'p>,
        feature: u32,
        diagonal: f64,
        floor: Option<Scored>,
    ) -> Self {
        Self {
            problem,
            feature,
            diagonal,
            best: floor,
        }
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
            let found = (atom, score);
            self.best = Some(
                self.best
                    .map_or(found, |best| self.problem.better(best, found)),
            );
        }
    }
}

/// How large u is, as far as it bounds its product with a column.
#[derive(Clone, Copy)]
struct Size {
    largest: f64,
    length: f64,
}

impl Size {
    /// A bound of the product with a column of these norms.
    fn times(self, norms: [f64; 2]) -> f64 {
        SLACK * (self.largest * norms[0]).min(self.length * norms[1])
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

/// Where u may differ from 0: at the rows listed, or anywhere; and the values that those rows hold.
#[derive(Clone, Copy)]
pub(super) enum Reach {
    Rows { values: usize },
    All { values: usize },
}

impl Reach {
    fn values(self) -> usize {
        match self {
            Reach::Rows { values } | Reach::All { values } => values,
        }
    }
}

/// S X_{:,i}, 0 between searches.
pub(super) struct Product {
    pub(super) u: Vec<f64>,
    /// The rows that were met, if they are listed.
    reached: Vec<u32>,
    met: Vec<bool>,
}

impl Product {
    /// Adds to one row, for products that reach few.
    pub(super) fn add(&mut self, row: usize, by: f64) {
        if !std::mem::replace(&mut self.met[row], true) {
            self.reached.push(row as u32);
        }
        self.u[row] += by;
    }

    /// All was added.
    pub(super) fn reach_of_added(&mut self, problem: &Problem<'_>) -> Reach {
        let mut values = 0;
        for &row in &self.reached {
            self.met[row as usize] = false;
            values += problem.rows.nnz_of(row as usize);
        }
        Reach::Rows { values }
    }

    /// `u` was set as a whole.
    pub(super) fn reach_of_all(&self, problem: &Problem<'_>) -> Reach {
        let reached = self.u.iter().enumerate().filter(|(_, u)| **u != 0.0);
        Reach::All {
            values: reached.map(|(row, _)| problem.rows.nnz_of(row)).sum(),
        }
    }

    /// The rows where u may differ from 0, with u.
    fn reached(&self, reach: Reach) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (listed, all) = match reach {
            Reach::Rows { .. } => (&self.reached[..], 0),
            Reach::All { .. } => (&[][..], self.u.len()),
        };
        let rows = listed.iter().map(|&q| q as usize).chain(0..all);
        rows.map(|q| (q, self.u[q]))
    }

    fn clear(&mut self, reach: Reach) {
        match reach {
            Reach::Rows { .. } => {
                for q in self.reached.drain(..) {
                    self.u[q as usize] = 0.0;
                }
            }
            Reach::All { .. } => self.u.fill(0.0),
        }
    }
}

/// Bounds, and buffers that stay from search to search.
pub(super) struct PartnerSearch<'p> {
    problem: &'p Problem<'p>,
    parallel_from: usize,
    /// The largest ‖X_j‖_1 and ‖X_j‖_2 of each block of columns.
    block_norms: Vec<[f64; 2]>,
    /// An upper bound of D in each block. Its keeper sees to it.
    pub(super) block_diagonals: Vec<f64>,
    pub(super) product: Product,
    /// A row of H as far as one was ever needed, 0 between searches.
    row: Vec<f64>,
    limits: Vec<f64>,
}

impl<'p> PartnerSearch<'p> {
    /// With threads from so many values on.
    pub(super) fn new(problem: &'p Problem<'p>, parallel_from: usize) -> Self {
        let mut block_norms = vec![[0.0f64; 2]; problem.n_columns().div_ceil(COLUMNS)];
        for j in 0..problem.n_columns() {
            let most = &mut block_norms[j / COLUMNS];
            let [sum, length] = problem.norms(j as u32);
            *most = [most[0].max(sum), most[1].max(length)];
        }
        let n_rows = problem.rows.n_rows();
        Self {
            problem,
            parallel_from,
            block_diagonals: vec![f64::INFINITY; block_norms.len()],
            block_norms,
            product: Product {
                u: vec![0.0; n_rows],
                reached: Vec::new(),
                met: vec![false; n_rows],
            },
            row: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// The best partner that can be had under this D, no worse than the floor if there is one. The product with the
    /// partner's feature is in place. Columns named by `first` are tried first: the more there is to beat, the less there is
    /// to look at.
    pub(super) fn best(
        &mut self,
        mut partner: Partner<'p>,
        reach: Reach,
        diagonal: &mut impl Diagonals,
        first: impl Iterator<Item = u32>,
    ) -> Option<Scored> {
        let size = self.size_of_u(reach);
        let mut columns: Vec<u32> = Vec::new();
        for j in first {
            if !columns.contains(&j) {
                columns.push(j);
            }
        }
        self.each_in(0..columns.len(), 1, &mut partner, |partner, at| {
            self.look_if_it_may_win(partner, columns[at], size, diagonal);
        });
        for block in self.blocks() {
            while self.may_win(block, &partner, size)
                && let Some(most) = diagonal.sharpen(block)
            {
                self.block_diagonals[block] = most;
            }
        }
        if self.work_by_columns(&partner, size) < self.work_by_rows(reach) {
            self.look_at_columns(&mut partner, size, diagonal);
        } else {
            self.set_limits(&partner, size);
            let end = self.add_up_rows(reach, size);
            self.look_at_the_best(&mut partner, end, diagonal);
        }
        self.product.clear(reach);
        partner.best
    }

    /// The columns with the largest D, so many of them, the first of equals before the others.
    pub(super) fn best_diagonals(&mut self, n: usize, diagonal: &mut impl Diagonals) -> Vec<u32> {
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(n + 1);
        for block in self.blocks() {
            let least = |best: &[(f64, u32)]| match best.len() < n {
                true => f64::NEG_INFINITY,
                false => best[n - 1].0,
            };
            while self.block_diagonals[block] >= least(&best)
                && let Some(most) = diagonal.sharpen(block)
            {
                self.block_diagonals[block] = most;
            }
            if self.block_diagonals[block] < least(&best) {
                continue;
            }
            for j in self.columns(block) {
                let d = diagonal.at(j as u32);
                if best.len() < n || d > least(&best) {
                    let at = best.partition_point(|&(other, _)| other >= d);
                    best.insert(at, (d, j as u32));
                    best.truncate(n);
                }
            }
        }
        best.into_iter().map(|(_, j)| j).collect()
    }

    /// Whether a block of columns may hold the winner.
    fn may_win(&self, block: usize, partner: &Partner<'p>, size: Size) -> bool {
        self.block_diagonals[block] + size.times(self.block_norms[block]) >= partner.wanted()
    }

    fn blocks(&self) -> Range<usize> {
        0..self.block_norms.len()
    }

    fn columns(&self, block: usize) -> Range<usize> {
        block * COLUMNS..((block + 1) * COLUMNS).min(self.problem.n_columns())
    }

    fn work_by_columns(&self, partner: &Partner<'p>, size: Size) -> usize {
        self.blocks()
            .filter(|&block| self.may_win(block, partner, size))
            .map(|block| {
                let columns = self.columns(block);
                self.problem.lists.values_in(columns.clone()) + A_COLUMN * columns.len()
            })
            .sum()
    }

    fn work_by_rows(&self, reach: Reach) -> usize {
        match self.problem.n_columns() {
            n if n <= NEAR => reach.values(),
            _ => FAR * reach.values(),
        }
    }

    /// The columns that may win, in full.
    fn look_at_columns(&self, partner: &mut Partner<'p>, size: Size, diagonal: &impl Diagonals) {
        let look = |partner: &mut Partner<'p>, j: usize| {
            self.look_if_it_may_win(partner, j as u32, size, diagonal);
        };
        let look_at_block = |partner: &mut Partner<'p>, block: usize| {
            if self.may_win(block, partner, size) {
                self.columns(block).for_each(|j| look(partner, j));
            }
        };
        // The largest columns first, so that the others have something to beat, and one by one, so that threads can share them.
        let n_blocks = self.block_norms.len();
        let head = HEAD.min(n_blocks);
        self.each_in(0..self.columns(head - 1).end, 1, partner, look);
        self.each_in(head..n_blocks, 64, partner, look_at_block);
    }

    /// Looks at each of a range, threads taking `at_once` of them or more if there are many values. What is left out
    /// cannot win, so the winner does not depend on who looks where.
    fn each_in(
        &self,
        range: Range<usize>,
        at_once: usize,
        partner: &mut Partner<'p>,
        look: impl Fn(&mut Partner<'p>, usize) + Sync,
    ) {
        // A thread alone would look at halves, and the second would not know what the first found.
        if self.problem.rows.nnz() < self.parallel_from
            || crate::parallel::current_num_threads() == 1
        {
            return range.for_each(|at| look(partner, at));
        }
        let start = *partner;
        let looked = range.into_par_iter().with_min_len(at_once).fold(
            || start,
            |mut partner, at| {
                look(&mut partner, at);
                partner
            },
        );
        let found = looked.filter_map(|partner| partner.best);
        let found = found.reduce_with(|a, b| self.problem.better(a, b));
        partner.best = found.or(partner.best);
    }

    /// H_ij of one column, offered unless its bound rules it out.
    fn look_if_it_may_win(
        &self,
        partner: &mut Partner<'p>,
        j: u32,
        size: Size,
        diagonal: &impl Diagonals,
    ) {
        if diagonal.at(j) + size.times(self.problem.norms(j)) >= partner.wanted() {
            self.look_at(partner, j, diagonal);
        }
    }

    /// H_ij of one column, offered.
    fn look_at(&self, partner: &mut Partner<'p>, j: u32, diagonal: &impl Diagonals) {
        let (rows, values) = self.problem.lists.column(j);
        partner.offer(j, diagonal.at(j), picked_dot(&self.product.u, rows, values));
    }

    /// For each block of columns, up to which |u| a row may be left out of it. Never falls from block to block.
    fn set_limits(&mut self, partner: &Partner<'p>, size: Size) {
        let wanted = partner.wanted();
        let mut limits = std::mem::take(&mut self.limits);
        limits.clear();
        limits.resize(self.block_norms.len(), f64::INFINITY);
        let mut least = f64::INFINITY;
        for block in self.blocks().rev() {
            let [sum, norm] = self.block_norms[block];
            let gap = wanted - self.block_diagonals[block];
            if gap <= SLACK * size.length * norm {
                least = least.min((SHARE * gap).max(0.0) / sum);
            }
            limits[block] = least;
        }
        self.limits = limits;
    }

    /// Xᵀ u into `self.row`, each row as far as the limits say; gives the end of what was added to.
    fn add_up_rows(&mut self, reach: Reach, size: Size) -> usize {
        let problem = self.problem;
        let Self {
            row,
            product,
            limits,
            ..
        } = self;
        let end_for = |u: f64| limits.partition_point(|&limit| limit < u.abs()) * COLUMNS;
        let end = end_for(size.largest).min(problem.n_columns());
        // Whoever looks for the best reads whole blocks, and those that may win by their D alone.
        let by_itself = limits.partition_point(|&limit| limit == 0.0);
        let read = COLUMNS * end.div_ceil(COLUMNS).max(by_itself);
        if row.len() < read.min(problem.n_columns()) {
            row.resize(read.min(problem.n_columns()), 0.0);
        }
        // Each column is summed up in the order of rows, whoever does it.
        let add = |sums: &mut [f64], from: usize| {
            let to = from + sums.len();
            for (q, u) in product.reached(reach) {
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
        let threads = crate::parallel::current_num_threads();
        if threads == 1 || reach.values() < self.parallel_from {
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

    /// Looks at every column that may win, and clears `self.row`.
    fn look_at_the_best(
        &mut self,
        partner: &mut Partner<'p>,
        end: usize,
        diagonal: &impl Diagonals,
    ) {
        let mut row = std::mem::take(&mut self.row);
        // Where the limit is 0 a column may win by its D alone; beyond, only if something was added to it.
        let by_itself = self.limits.partition_point(|&limit| limit == 0.0);
        for block in 0..by_itself.max(end.div_ceil(COLUMNS)) {
            let columns = self.columns(block);
            let sums = &row[columns.clone()];
            let most = sums.iter().fold(0.0f64, |most, h| most.max(h.abs()));
            // A limit says what is missing from the sums.
            let missing = self.limits[block];
            let at_most = |h: f64, sum: f64| SLACK * (h.abs() + missing * sum);
            if self.block_diagonals[block] + at_most(most, self.block_norms[block][0])
                >= partner.wanted()
            {
                for (j, &h) in columns.zip(sums) {
                    let at_most = at_most(h, self.problem.norms(j as u32)[0]);
                    if diagonal.at(j as u32) + at_most >= partner.wanted() {
                        self.look_at(partner, j as u32, diagonal);
                    }
                }
            }
        }
        row[..end].fill(0.0);
        self.row = row;
    }

    fn size_of_u(&self, reach: Reach) -> Size {
        let (mut above, mut below) = ([0.0f64; 2], [0.0f64; 2]);
        for (_, u) in self.product.reached(reach) {
            let (up, down) = (u.max(0.0), u.min(0.0));
            above = [above[0].max(up), above[1] + up * up];
            below = [below[0].min(down), below[1] + down * down];
        }
        // For X >= 0 only one sign of u can count.
        let square = match self.problem.non_negative {
            true => above[1].max(below[1]),
            false => above[1] + below[1],
        };
        Size {
            largest: above[0].max(-below[0]),
            length: square.sqrt(),
        }
    }
}
