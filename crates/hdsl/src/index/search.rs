//! The exact search of one query in all segments.
//!
//! In each segment, upper bounds of the scores of all rows are summed in whole numbers: for each coordinate of the query,
//! those of a sparse column are added first. Then the dense columns are added block by block of 64 positions, those with the
//! largest gain first, until the largest sum of a block, plus the largest bytes of the columns left, is too low. Rows whose
//! bound is high enough are read, by decreasing bound, and their scores are computed in double precision.

use super::Read;
use super::columns::{BLOCK, Column, Values};
use super::mapping::Mapping;
use super::segment::{MAX_ROWS, Segment};
use crate::data::{Rows, SparseRow};
use crate::knn::{Neighbor, TopK};
use std::sync::Mutex;

/// Bounds are 16-bit numbers. The sum of all that is added, and of all that is subtracted, stays below this.
const MAX_SUM: u32 = 32_000;

/// A position whose bound need not be considered any more.
const DONE: i16 = i16::MIN;

/// After so many dense columns, the bounds of a block are compared with the lowest that counts.
const GROUP: usize = 8;

/// How many blocks are added to together.
const TILE: usize = 64;

/// How many rows are read at a time.
const BATCH: usize = 16;

/// One query.
pub(super) struct Search<'a> {
    pub(super) mapping: &'a Mapping,
    /// The mapped query.
    pub(super) query: SparseRow<'a>,
    pub(super) k: usize,
    /// Whether a row number is allowed.
    pub(super) allowed: &'a (dyn Fn(u32) -> bool + Sync),
    /// The nearest rows so far.
    pub(super) top: Mutex<TopK>,
}

/// Buffers of one search.
pub(super) struct Scratch {
    /// The bound at each position.
    bounds: Box<[i16; MAX_ROWS]>,
    /// The most that dense columns add in each block.
    blocks: Vec<i32>,
    candidates: Vec<(i16, u16)>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            bounds: zeros(),
            blocks: Vec::new(),
            candidates: Vec::new(),
        }
    }
}

/// One value per position, on the heap.
fn zeros<T: Copy + Default>() -> Box<[T; MAX_ROWS]> {
    let boxed = vec![T::default(); MAX_ROWS].into_boxed_slice();
    boxed
        .try_into()
        .unwrap_or_else(|_| unreachable!("it has so many"))
}

/// A column of the query's coordinates.
struct Term {
    column: Column,
    /// The absolute value of what one step of the column's bytes adds to a score.
    gain: f64,
    /// Whether the column adds to scores; otherwise it subtracts.
    adds: bool,
    /// The gain in units, rounded up if it adds and down if it subtracts.
    weight: u16,
}

/// How bounds are summed in a segment.
struct Plan {
    terms: Vec<Term>,
    /// A byte q adds weight · q / 2^shift, rounded up, or subtracts weight · (q - 1) / 2^shift, rounded down.
    shift: u32,
    /// The score of one unit.
    unit: f64,
    /// No score is above this.
    highest: f64,
    /// More than the rounding errors of scores in double precision.
    slack: f64,
}

impl Plan {
    /// `None` if bounds cannot be summed in 16 bits or numbers are too large or too small.
    fn new(segment: &Segment, query: SparseRow<'_>) -> Read<Option<Self>> {
        let (mut terms, mut columns) = (Vec::new(), Vec::new());
        for (coordinate, x) in query.iter().filter(|entry| entry.1 != 0.0) {
            segment.columns(coordinate, &mut columns)?;
            terms.extend(columns.drain(..).map(|(column, is_negative)| Term {
                gain: x.abs() * column.scale,
                adds: (x > 0.0) != is_negative,
                weight: 0,
                column,
            }));
        }
        let sum = |adds: bool| -> f64 {
            let terms = terms.iter().filter(|term| term.adds == adds);
            terms.map(|term| 255.0 * term.gain).sum()
        };
        let (highest, lowest) = (sum(true), sum(false));
        let slack = (terms.len() as f64 + 16.0) * (highest + lowest) * f64::EPSILON;
        let mut plan = Self {
            shift: 0,
            unit: 1.0,
            highest: highest + slack,
            slack,
            terms,
        };
        if plan.terms.is_empty() {
            return Ok(Some(plan));
        }
        let largest = plan.terms.iter().map(|term| term.gain).fold(0.0, f64::max);
        if !(1e-280..1e280).contains(&largest) || highest + lowest > 1e290 {
            return Ok(None);
        }
        // The finest unit whose sums fit.
        let mut step = largest / 254.0;
        for _ in 0..64 {
            plan.set_weights(step);
            let fits = |shift: &u32| plan.largest_sum(*shift) <= MAX_SUM;
            if let Some(shift) = (0..=8).find(fits) {
                plan.shift = shift;
                plan.unit = step * f64::from(1 << shift);
                return Ok(Some(plan));
            }
            step *= 1.5;
        }
        Ok(None)
    }

    /// The factors allow for the rounding errors of scales, bytes and products.
    fn set_weights(&mut self, step: f64) {
        for term in &mut self.terms {
            let units = term.gain / step;
            term.weight = match term.adds {
                true => (units * (1.0 + 1e-9)).ceil() as u16,
                false => (units * (1.0 - 1e-9)).floor() as u16,
            };
        }
    }

    /// The larger one of what can be added to and subtracted from a bound.
    fn largest_sum(&self, shift: u32) -> u32 {
        let mut sums = [0u32; 2];
        for term in &self.terms {
            let most = (u32::from(term.weight) * 255).div_ceil(1 << shift);
            let sum = &mut sums[usize::from(term.adds)];
            *sum = sum.saturating_add(most);
        }
        sums[0].max(sums[1])
    }

    /// The lowest bound of a row whose score may be at least the threshold.
    fn limit(&self, threshold: f64) -> i32 {
        // A conversion saturates.
        ((threshold - self.slack) / self.unit - 1e-6).ceil() as i32
    }

    /// What each byte adds to bounds.
    fn table(&self, term: &Term) -> [i16; 256] {
        std::array::from_fn(|q| self.addend(term, q as u8))
    }

    #[inline(always)]
    fn addend(&self, term: &Term, q: u8) -> i16 {
        let round = (1u16 << self.shift) - 1;
        match term.adds {
            true => ((u16::from(q) * term.weight + round) >> self.shift) as i16,
            false => -(((u16::from(q).saturating_sub(1) * term.weight) >> self.shift) as i16),
        }
    }

    /// Adds the sparse columns to the bounds at all positions.
    fn add_sparse(&self, bounds: &mut [i16; MAX_ROWS]) {
        for term in &self.terms {
            if let Values::Sparse(positions, values) = term.column.values() {
                let table = self.table(term);
                for (position, &q) in positions.iter().zip(values) {
                    let bound = &mut bounds[usize::from(u16::from_le_bytes(*position))];
                    *bound = bound.wrapping_add(table[usize::from(q)]);
                }
            }
        }
    }
}

/// Adds the dense columns to the bounds of some blocks, the first of which has the number `first`. `most_left` is the most
/// they add to each. Where the bounds are certain to be below the limit, they become [`DONE`].
fn add_dense(
    dense: &[Dense<'_>],
    first: usize,
    bounds: &mut [i16],
    most_left: &mut [i32],
    limit: i32,
    shift: u32,
) {
    let mut open: Vec<usize> = (0..most_left.len()).collect();
    for group in dense.chunks(GROUP) {
        open.retain(|&block| {
            let start = block * BLOCK;
            let end = bounds.len().min(start + BLOCK);
            let bounds = &mut bounds[start..end];
            let largest = bounds.iter().copied().max().unwrap_or(0);
            let is_open = i32::from(largest) + most_left[block] >= limit;
            if !is_open {
                bounds.fill(DONE);
            }
            is_open
        });
        // One column after the other, since neighboring blocks of a column are neighbors in memory.
        for column in group {
            for &block in &open {
                let start = block * BLOCK;
                let end = bounds.len().min(start + BLOCK);
                column.add(&mut bounds[start..end], (first + block) * BLOCK, shift);
                most_left[block] -= column.most(first + block, shift);
            }
        }
    }
}

/// A dense column of a plan.
struct Dense<'a> {
    /// The largest value of each block.
    maxima: &'a [u8],
    values: &'a [u8],
    weight: u16,
    adds: bool,
}

impl Dense<'_> {
    /// The most it adds in a block.
    fn most(&self, block: usize, shift: u32) -> i32 {
        let round = (1u16 << shift) - 1;
        match self.adds {
            true => i32::from((u16::from(self.maxima[block]) * self.weight + round) >> shift),
            false => 0,
        }
    }

    /// Adds the column to the bounds of a block.
    #[inline(always)]
    fn add(&self, bounds: &mut [i16], start: usize, shift: u32) {
        let values = &self.values[start..start + bounds.len()];
        let (weight, round) = (self.weight, (1u16 << shift) - 1);
        match self.adds {
            true => {
                for (bound, &q) in bounds.iter_mut().zip(values) {
                    *bound = bound.wrapping_add(((u16::from(q) * weight + round) >> shift) as i16);
                }
            }
            false => {
                for (bound, &q) in bounds.iter_mut().zip(values) {
                    *bound = bound
                        .wrapping_sub(((u16::from(q).saturating_sub(1) * weight) >> shift) as i16);
                }
            }
        }
    }
}

impl Search<'_> {
    fn threshold(&self) -> f64 {
        self.top
            .lock()
            .expect("no thread panics with it")
            .threshold()
    }

    /// Adds rows with their scores.
    fn push(&self, scored: &[(u32, f64)]) {
        let mut top = self.top.lock().expect("no thread panics with it");
        scored.iter().for_each(|&(row, score)| top.push(row, score));
    }

    /// The result.
    pub(super) fn finish(self) -> Vec<Neighbor> {
        let top = self.top.into_inner().expect("no thread panics with it");
        top.into_sorted()
    }

    /// Searches a segment. `is_removed` says which positions are not there any more.
    pub(super) fn segment(
        &self,
        segment: &Segment,
        is_removed: impl Fn(usize) -> bool,
        scratch: &mut Scratch,
    ) -> Read<()> {
        let numbers = segment.numbers()?;
        let is_allowed = |at: usize| !is_removed(at) && (self.allowed)(numbers[at]);
        if !segment.has_columns() {
            let mapped = segment.mapped(self.mapping)?;
            let positions = (0..segment.n_rows()).filter(|&at| is_allowed(at));
            let scored = positions.map(|at| (numbers[at], self.query.dot(mapped.row(at))));
            self.push(&scored.collect::<Vec<_>>());
            return Ok(());
        }
        let Some(plan) = Plan::new(segment, self.query)? else {
            let positions: Vec<usize> =
                (0..segment.n_rows()).filter(|&at| is_allowed(at)).collect();
            return positions
                .chunks(4096)
                .try_for_each(|part| self.score(segment, numbers, part));
        };
        if plan.highest < self.threshold() {
            return Ok(());
        }
        self.bound(&plan, segment.n_rows(), scratch);
        self.verify(&plan, segment, numbers, &is_allowed, scratch)
    }

    /// Computes the bounds. Positions that are excluded have the bound [`DONE`].
    fn bound(&self, plan: &Plan, n_rows: usize, scratch: &mut Scratch) {
        let Scratch { bounds, blocks, .. } = scratch;
        bounds.fill(0);
        plan.add_sparse(bounds);
        let mut dense: Vec<Dense<'_>> = plan.terms.iter().filter_map(Dense::of).collect();
        if dense.is_empty() {
            return;
        }
        dense.sort_by_key(|column| std::cmp::Reverse(column.weight));
        blocks.clear();
        blocks.resize(n_rows.div_ceil(BLOCK), 0);
        for column in &dense {
            for (block, most) in blocks.iter_mut().enumerate() {
                *most += column.most(block, plan.shift);
            }
        }
        let limit = plan.limit(self.threshold());
        let tiles = bounds[..n_rows].chunks_mut(TILE * BLOCK);
        let tiles = tiles.zip(blocks.chunks_mut(TILE));
        for (first, (bounds, most)) in (0..).step_by(TILE).zip(tiles) {
            add_dense(&dense, first, bounds, most, limit, plan.shift);
        }
    }

    /// Computes the scores of the rows whose bounds are high enough.
    fn verify(
        &self,
        plan: &Plan,
        segment: &Segment,
        numbers: &[u32],
        is_allowed: &dyn Fn(usize) -> bool,
        scratch: &mut Scratch,
    ) -> Read<()> {
        let Scratch {
            bounds, candidates, ..
        } = scratch;
        let bounds = &bounds[..segment.n_rows()];
        candidates.clear();
        let limit = plan.limit(self.threshold());
        for (start, block) in (0..).step_by(BLOCK).zip(bounds.chunks(BLOCK)) {
            if block.iter().all(|&bound| i32::from(bound) < limit) {
                continue;
            }
            for (position, &bound) in (start..).zip(block) {
                if bound != DONE && i32::from(bound) >= limit && is_allowed(position) {
                    candidates.push((bound, position as u16));
                }
            }
        }
        // Rows without any of the query's coordinates have score 0, and there may be very many of them.
        if limit <= 0 && candidates.iter().any(|candidate| candidate.0 == 0) {
            let met = plan.met();
            let is_zero = |c: &(i16, u16)| c.0 == 0 && !met[usize::from(c.1)];
            let zeros = candidates.iter().filter(|candidate| is_zero(candidate));
            let zeros = zeros.map(|candidate| (numbers[usize::from(candidate.1)], 0.0));
            self.push(&zeros.collect::<Vec<_>>());
            candidates.retain(|candidate| !is_zero(candidate));
        }
        let score = |part: &[(i16, u16)]| {
            let positions: Vec<usize> = part.iter().map(|c| usize::from(c.1)).collect();
            self.score(segment, numbers, &positions)
        };
        // The k highest bounds give a threshold, which excludes most of the others.
        let mut rest = &mut candidates[..];
        if rest.len() > self.k {
            rest.select_nth_unstable_by(self.k, |a, b| b.cmp(a));
            let (first, others) = rest.split_at_mut(self.k);
            score(first)?;
            rest = others;
        }
        let limit = plan.limit(self.threshold());
        let mut left: Vec<(i16, u16)> = rest
            .iter()
            .copied()
            .filter(|c| i32::from(c.0) >= limit)
            .collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        for part in left.chunks(BATCH) {
            let limit = plan.limit(self.threshold());
            let n = part.partition_point(|c| i32::from(c.0) >= limit);
            if n == 0 {
                break;
            }
            score(&part[..n])?;
        }
        Ok(())
    }

    /// Computes the scores at some positions.
    fn score(&self, segment: &Segment, numbers: &[u32], positions: &[usize]) -> Read<()> {
        let n_features = self.mapping.model.n_features();
        let rows = segment.rows(positions.iter().copied(), n_features)?;
        let mapped: Rows = self.mapping.map(&rows);
        let scores = mapped.iter().map(|row| self.query.dot(row));
        let numbers = positions.iter().map(|&at| numbers[at]);
        self.push(&numbers.zip(scores).collect::<Vec<_>>());
        Ok(())
    }
}

impl<'a> Dense<'a> {
    fn of(term: &'a Term) -> Option<Self> {
        match term.column.values() {
            Values::Dense(maxima, values) => Some(Self {
                maxima,
                values,
                weight: term.weight,
                adds: term.adds,
            }),
            Values::Sparse(..) => None,
        }
    }
}

impl Plan {
    /// Which positions have a value in a column of the query.
    fn met(&self) -> Box<[bool; MAX_ROWS]> {
        let mut met = zeros();
        for term in &self.terms {
            match term.column.values() {
                Values::Dense(_, values) => {
                    for (met, &q) in met.iter_mut().zip(values) {
                        *met |= q != 0;
                    }
                }
                Values::Sparse(positions, _) => {
                    for position in positions {
                        met[usize::from(u16::from_le_bytes(*position))] = true;
                    }
                }
            }
        }
        met
    }
}
