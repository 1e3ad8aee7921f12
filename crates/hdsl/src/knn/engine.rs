//! Exact search by inverted index: everything a query meets is summed, or only as much as proves the answer.
//!
//! Three ways lead to the same neighbors, bit for bit:
//!
//! - *Climbing*: where rows have few columns to choose from, as under a learned model, a [tree](super::tree) of bounds
//!   leads to the few rows that are scored at all.
//! - *Summing*: the query's columns in increasing order, each added to the scores of its rows. The sums are those of
//!   [`SparseRow::dot`](crate::SparseRow::dot), term by term.
//! - *Pruning*: columns that promise much for little (large |x| max|y| per row touched) are summed first, in single
//!   precision. What the others can still add to a row is bounded twice, by Σ |x| max|y| and by ‖x‖ ‖y‖ over them.
//!   The exact scores of the best rows so far give a floor, and only rows whose bound reaches the floor are scored
//!   exactly. The single precision sums only ever choose whom to score, with room for their rounding.
//!
//! Rows of one class stand together, and within it those that are [alike](super::order). So "my class" and "the others"
//! are ranges, and both come from one pass.

use super::order;
use super::single::{Fours, above, below, max};
use super::top::{INSERTION_K, Top};
use super::tree::{self, ByPlace, Tree};
use crate::cancel::CancelToken;
use crate::data::{Columns, Rows, SparseRow};
use crate::error::Result;
use std::ops::Range;
use std::sync::OnceLock;

/// Rows whose largest partial score is kept together, to pass over them at once.
const BLOCK: usize = 64;

/// A column is also kept densely if at least one row in this many has it.
const DENSE_SHARE: usize = 8;

/// Sums of whole numbers are exact in single precision while they stay below this.
const WHOLE_SUM: f64 = 8_388_608.0;

/// When pruning is tried and when it is given up. The answer does not depend on it, only the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Prune only among at least so many rows.
    pub(super) min_rows: usize,
    /// Prune only if summing would meet at least this many values per row.
    pub(super) min_share: f64,
    /// Sum this share of what the query meets before the first look.
    pub(super) first_share: f64,
    /// The cost of scoring one row exactly, in values summed.
    pub(super) verify_cost: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            min_rows: 256,
            min_share: 0.125,
            first_share: 0.25,
            verify_cost: 2.0,
        }
    }
}

/// The rows that are ranked, in an order where each class is a range, by column and by row.
pub(super) struct Engine {
    n_rows: usize,
    columns: Columns,
    /// Compact column to its rank: the column most rows have comes first, so that what is often used lies together.
    ranks: Vec<u32>,
    /// How many values the columns before that of each rank have.
    starts: Vec<usize>,
    /// The largest absolute value of a column.
    largest: Vec<f64>,
    /// Rows by place: columns (as ranks, in the order of the columns) and values.
    row_starts: Vec<usize>,
    row_ranks: Vec<u32>,
    row_values: Vec<f64>,
    /// Their lengths, rounded up.
    norms: Vec<f32>,
    /// Whether single precision can hold the values at all.
    tame: bool,
    /// Whether all values are whole numbers, whose sums are exact as long as they are small.
    whole: bool,
    /// Place to row and back; nothing if they are the same.
    order: Option<(Vec<u32>, Vec<u32>)>,
    /// Bounds for many rows at once, if that pays.
    tree: Option<Tree>,
    /// The rows by column, from when they are first asked for: where there is a tree, that may be never.
    by_column: OnceLock<ByColumn>,
    tuning: Tuning,
}

/// One list of neighbors to find: the best `k` of the rows at the given places that are allowed.
pub(super) struct Wanted<'a> {
    pub(super) k: usize,
    pub(super) places: [Range<usize>; 2],
    pub(super) allowed: &'a dyn Fn(u32) -> bool,
}

/// Rows by column, as places.
struct ByColumn {
    /// Places and values of the column of each rank: `starts[rank]..starts[rank + 1]` of the engine.
    places: Vec<u32>,
    values: Vec<f64>,
    /// Columns that a good share of rows have, once more in single precision and with zeros: a vector sum over all
    /// rows is then cheaper than a scattered one. Ranks go by count, so these are the first ranks.
    dense: Vec<Vec<f32>>,
    /// The one value of a column whose values are all the same.
    constant: Vec<Option<f64>>,
}

/// Buffers of one thread, all zero between queries.
pub(super) struct Scratch {
    scores: Vec<f64>,
    marked: Vec<bool>,
    touched: Vec<u32>,
    /// The query by column: rank and value.
    met: Vec<(u32, f64)>,
    pub(super) tops: Vec<Top>,
    pruning: Pruning,
}

#[derive(Default)]
struct Pruning {
    single: tree::Query,
    partial: Vec<f32>,
    /// The query, spread out over ranks.
    spread: Vec<f64>,
    plan: Vec<Planned>,
    peaks: Vec<f32>,
    seeds: Vec<(f32, u32)>,
    candidates: Vec<(u32, u32)>,
}

/// A column of the query in the order of pruning.
#[derive(Clone, Copy)]
struct Planned {
    rank: u32,
    x: f64,
    /// What summing it costs: about the rows that have it.
    cost: f64,
    /// The most it can add to any row.
    gain: f64,
    /// Sums over this column and all after it.
    cost_left: f64,
    gain_left: f64,
    square_left: f64,
}

impl ByColumn {
    fn new(engine: &Engine) -> Self {
        let (starts, n_rows) = (&engine.starts, engine.n_rows);
        let n_ranks = starts.len() - 1;
        let mut next = starts.clone();
        let mut places = vec![0; engine.row_ranks.len()];
        let mut values = vec![0.0; engine.row_ranks.len()];
        for place in 0..n_rows {
            let range = engine.row_starts[place]..engine.row_starts[place + 1];
            let row = engine.row_ranks[range.clone()].iter();
            for (&rank, &value) in row.zip(&engine.row_values[range]) {
                let at = &mut next[rank as usize];
                places[*at] = place as u32;
                values[*at] = value;
                *at += 1;
            }
        }
        let column = |rank: usize| &values[starts[rank]..starts[rank + 1]];
        let constant = (0..n_ranks)
            .map(|rank| {
                let first = column(rank)[0];
                let same = column(rank).iter().all(|v| v.to_bits() == first.to_bits());
                same.then_some(first)
            })
            .collect();
        let dense = (0..n_ranks)
            .take_while(|&rank| column(rank).len() * DENSE_SHARE >= n_rows)
            .map(|rank| {
                let mut dense = vec![0.0; n_rows];
                for (&place, &value) in places[starts[rank]..].iter().zip(column(rank)) {
                    dense[place as usize] = value as f32;
                }
                dense
            })
            .collect();
        Self {
            places,
            values,
            dense,
            constant,
        }
    }
}

impl Engine {
    /// Sorts mapped rows by column. If rows have classes, each class is a range of places.
    pub(super) fn new(items: &Rows, classes: Option<&[u32]>, tuning: Tuning) -> Self {
        Self::new_until(items, classes, tuning, CancelToken::NEVER).expect("nobody stops this")
    }

    /// The same unless somebody wants to stop first.
    pub(super) fn new_until(
        items: &Rows,
        classes: Option<&[u32]>,
        tuning: Tuning,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let n_rows = items.n_rows();
        cancel.check()?;
        let columns = Columns::of(items);
        cancel.check()?;
        let numbers: Vec<u32> = items
            .indices()
            .iter()
            .map(|&f| {
                columns
                    .number(f)
                    .expect("the columns are those of the rows")
            })
            .collect();
        let mut counts = vec![0usize; columns.len()];
        numbers.iter().for_each(|&n| counts[n as usize] += 1);
        let mut by_count: Vec<u32> = (0..columns.len() as u32).collect();
        by_count.sort_by_key(|&n| std::cmp::Reverse(counts[n as usize]));
        let mut ranks = vec![0; columns.len()];
        let mut starts = Vec::with_capacity(columns.len() + 1);
        starts.push(0);
        for (rank, &number) in by_count.iter().enumerate() {
            ranks[number as usize] = rank as u32;
            starts.push(starts[rank] + counts[number as usize]);
        }
        cancel.check()?;
        let plant = n_rows >= tuning.min_rows && Tree::pays(n_rows, columns.len(), items.nnz());
        let order = (plant || classes.is_some()).then(|| {
            let rank = |at: usize| ranks[numbers[at] as usize];
            order::alike(items, rank, columns.len(), classes)
        });
        let mut row_starts = Vec::with_capacity(n_rows + 1);
        let mut row_ranks = Vec::with_capacity(items.nnz());
        let mut row_values = Vec::with_capacity(items.nnz());
        let mut norms = Vec::with_capacity(n_rows);
        let mut largest = vec![0.0f64; columns.len()];
        row_starts.push(0);
        for place in 0..n_rows {
            cancel.check()?;
            let row = order.as_ref().map_or(place, |order| order[place] as usize);
            let range = items.starts()[row]..items.starts()[row + 1];
            let mut square = 0.0;
            for (&number, &value) in numbers[range.clone()].iter().zip(&items.values()[range]) {
                let rank = ranks[number as usize];
                row_ranks.push(rank);
                row_values.push(value);
                let largest = &mut largest[rank as usize];
                *largest = largest.max(value.abs());
                square += value * value;
            }
            row_starts.push(row_ranks.len());
            norms.push(above(square.sqrt()));
        }
        let tree = plant.then(|| {
            let rows = ByPlace {
                starts: &row_starts,
                ranks: &row_ranks,
                values: &row_values,
            };
            Tree::new(&rows, columns.len())
        });
        let order = order.map(|order| {
            let mut back = vec![0; n_rows];
            for (place, &row) in order.iter().enumerate() {
                back[row as usize] = place as u32;
            }
            (order, back)
        });
        Ok(Self {
            n_rows,
            whole: row_values.iter().all(|&v| is_whole(v)),
            tame: norms.iter().all(|&norm| norm < 1e15),
            columns,
            ranks,
            largest,
            starts,
            row_starts,
            row_ranks,
            row_values,
            norms,
            order,
            tree,
            by_column: OnceLock::new(),
            tuning,
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    #[cfg(test)]
    pub(super) fn tree_height(&self) -> usize {
        self.tree.as_ref().map_or(0, Tree::height)
    }

    pub(super) fn scratch(&self) -> Scratch {
        Scratch {
            scores: Vec::new(),
            marked: Vec::new(),
            touched: Vec::new(),
            met: Vec::new(),
            tops: Vec::new(),
            pruning: Pruning::default(),
        }
    }

    fn row_at(&self, place: usize) -> u32 {
        self.order
            .as_ref()
            .map_or(place as u32, |(order, _)| order[place])
    }

    fn by_column(&self) -> &ByColumn {
        self.by_column.get_or_init(|| ByColumn::new(self))
    }

    fn column(&self, rank: u32) -> (&[u32], &[f64]) {
        let range = self.starts[rank as usize]..self.starts[rank as usize + 1];
        let lists = self.by_column();
        (&lists.places[range.clone()], &lists.values[range])
    }

    fn count(&self, rank: u32) -> usize {
        self.starts[rank as usize + 1] - self.starts[rank as usize]
    }

    /// Finds the wanted lists for one mapped query; they are then in `scratch.tops`, in the same order.
    pub(super) fn search(
        &self,
        scratch: &mut Scratch,
        query: SparseRow<'_>,
        wanted: &[Wanted<'_>],
    ) {
        scratch.met.clear();
        let mut work = 0;
        for (feature, value) in query.iter() {
            if let Some(number) = self.columns.number(feature) {
                let rank = self.ranks[number as usize];
                scratch.met.push((rank, value));
                work += self.count(rank);
            }
        }
        scratch.tops.resize_with(wanted.len(), Top::default);
        for (top, list) in scratch.tops.iter_mut().zip(wanted) {
            top.reset(list.k);
        }
        let few = wanted.iter().all(|list| list.k <= INSERTION_K);
        if self.tame && few && self.climb(scratch, wanted) {
            return;
        }
        let worth_it = self.tame
            && few
            && self.n_rows >= self.tuning.min_rows
            && work as f64 >= self.tuning.min_share * self.n_rows as f64;
        if worth_it && self.prune(scratch, wanted) {
            return;
        }
        scratch.scores.resize(self.n_rows, 0.0);
        if work < self.n_rows / 8 {
            self.sum_few(scratch, wanted);
        } else {
            self.sum_all(scratch, wanted);
        }
    }

    /// Sums what the query meets and looks at nothing else.
    fn sum_few(&self, scratch: &mut Scratch, wanted: &[Wanted<'_>]) {
        let Scratch {
            scores,
            marked,
            touched,
            met,
            tops,
            ..
        } = scratch;
        marked.resize(self.n_rows, false);
        for &(rank, x) in met.iter() {
            let (places, values) = self.column(rank);
            for (&place, &y) in places.iter().zip(values) {
                if !marked[place as usize] {
                    marked[place as usize] = true;
                    touched.push(place);
                }
                scores[place as usize] += x * y;
            }
        }
        for (top, list) in tops.iter_mut().zip(wanted) {
            let has = |place: usize| list.places.iter().any(|range| range.contains(&place));
            for &place in touched.iter() {
                let row = self.row_at(place as usize);
                if has(place as usize) && (list.allowed)(row) {
                    top.offer(row, scores[place as usize]);
                }
            }
            // Untouched rows have score 0: the lowest-numbered ones come next, as long as they can still enter.
            for row in 0..self.n_rows as u32 {
                if !top.would_take(row, 0.0) {
                    break;
                }
                let place =
                    self.order
                        .as_ref()
                        .map_or(row, |(_, back)| back[row as usize]) as usize;
                if !marked[place] && has(place) && (list.allowed)(row) {
                    top.offer(row, 0.0);
                }
            }
        }
        for place in touched.drain(..) {
            scores[place as usize] = 0.0;
            marked[place as usize] = false;
        }
    }

    /// Sums what the query meets, then looks at every row.
    fn sum_all(&self, scratch: &mut Scratch, wanted: &[Wanted<'_>]) {
        let Scratch {
            scores, met, tops, ..
        } = scratch;
        for &(rank, x) in met.iter() {
            let (places, values) = self.column(rank);
            match self.by_column().constant[rank as usize] {
                Some(y) => {
                    let term = x * y;
                    for &place in places {
                        scores[place as usize] += term;
                    }
                }
                None => {
                    for (&place, &y) in places.iter().zip(values) {
                        scores[place as usize] += x * y;
                    }
                }
            }
        }
        for (top, list) in tops.iter_mut().zip(wanted) {
            for place in list.places.iter().cloned().flatten() {
                let row = self.row_at(place);
                if top.would_take(row, scores[place]) && (list.allowed)(row) {
                    top.offer(row, scores[place]);
                }
            }
        }
        scores.fill(0.0);
    }

    /// Searches the tree, if there is one that can serve. Gives up, with empty lists, where it leaves out too few.
    fn climb(&self, scratch: &mut Scratch, wanted: &[Wanted<'_>]) -> bool {
        let Scratch {
            met, tops, pruning, ..
        } = scratch;
        let Some(tree) = &self.tree else {
            return false;
        };
        let (mut gain, mut square) = (0.0, 0.0);
        for &(rank, x) in met.iter() {
            gain += x.abs() * self.largest[rank as usize];
            square += x * x;
        }
        let Some(slack) = self.slack(met, gain, square) else {
            return false;
        };
        let Pruning { spread, single, .. } = pruning;
        single.set(met);
        spread.resize(self.columns.len(), 0.0);
        met.iter().for_each(|&(rank, x)| spread[rank as usize] = x);
        let settled = tops.iter_mut().zip(wanted).all(|(top, list)| {
            tree.search(single, &list.places, |place, _| {
                let row = self.row_at(place);
                if (list.allowed)(row) {
                    top.offer(row, self.exact(spread, place as u32));
                }
                below(top.floor() - slack)
            })
        });
        met.iter()
            .for_each(|&(rank, _)| spread[rank as usize] = 0.0);
        if !settled {
            for (top, list) in tops.iter_mut().zip(wanted) {
                top.reset(list.k);
            }
        }
        settled
    }

    /// What scoring a row costs, in values summed.
    fn row_cost(&self) -> f64 {
        self.tuning.verify_cost * (8 + self.row_ranks.len() / self.n_rows) as f64
    }

    /// What rounding can do to a sum over the columns of a query, if that can be told in single precision. `gain` is the
    /// most the columns can add to any row, `square` the sum of the squares of the query.
    fn slack(&self, met: &[(u32, f64)], gain: f64, square: f64) -> Option<f64> {
        // Every sum is at most `gain` in size, and each of its terms (rounded thrice) and additions loses at
        // most 2^-24 of that. Taken double, this also covers the bounds and the exact scores, whose roundings are far smaller.
        // Small whole numbers, as in binary data and counts, are not rounded at all.
        let slack = if self.whole && gain < WHOLE_SUM && met.iter().all(|&(_, x)| is_whole(x)) {
            0.0
        } else {
            (met.len() as f64 + 16.0) * gain * f64::from(f32::EPSILON) + 1e-37
        };
        ((1e-20..1e15).contains(&gain) && square < 1e30).then_some(slack)
    }

    /// Sums until the rest can be settled by scoring few rows exactly. Gives up, with empty lists, if it cannot.
    fn prune(&self, scratch: &mut Scratch, wanted: &[Wanted<'_>]) -> bool {
        let Scratch {
            met, tops, pruning, ..
        } = scratch;
        self.plan(met, &mut pruning.plan);
        let (gain, square) = pruning
            .plan
            .first()
            .map_or((0.0, 0.0), |all| (all.gain_left, all.square_left));
        let Some(slack) = self.slack(met, gain, square) else {
            return false;
        };
        pruning.partial.resize(self.n_rows, 0.0);
        pruning.spread.resize(self.columns.len(), 0.0);
        met.iter()
            .for_each(|&(rank, x)| pruning.spread[rank as usize] = x);
        let settled = self.settle(pruning, tops, wanted, slack);
        pruning.partial.fill(0.0);
        met.iter()
            .for_each(|&(rank, _)| pruning.spread[rank as usize] = 0.0);
        if !settled {
            for (top, list) in tops.iter_mut().zip(wanted) {
                top.reset(list.k);
            }
        }
        settled
    }

    /// Puts the columns of a query in order.
    fn plan(&self, met: &[(u32, f64)], plan: &mut Vec<Planned>) {
        plan.clear();
        plan.extend(met.iter().map(|&(rank, x)| Planned {
            rank,
            x,
            cost: self.count(rank).min(self.n_rows.div_ceil(DENSE_SHARE)) as f64,
            gain: x.abs() * self.largest[rank as usize],
            cost_left: 0.0,
            gain_left: 0.0,
            square_left: 0.0,
        }));
        plan.sort_unstable_by(|a, b| {
            // The quotients, not the cross products: those round differently, and the order would not be one.
            let (a_rate, b_rate) = (a.gain / a.cost, b.gain / b.cost);
            b_rate.total_cmp(&a_rate).then_with(|| b.rank.cmp(&a.rank))
        });
        let (mut cost, mut gain, mut square) = (0.0, 0.0, 0.0);
        for column in plan.iter_mut().rev() {
            cost += column.cost;
            gain += column.gain;
            square += column.x * column.x;
            (column.cost_left, column.gain_left, column.square_left) = (cost, gain, square);
        }
    }

    fn settle(
        &self,
        pruning: &mut Pruning,
        tops: &mut [Top],
        wanted: &[Wanted<'_>],
        slack: f64,
    ) -> bool {
        let Pruning {
            partial,
            spread,
            plan,
            peaks,
            seeds,
            candidates,
            ..
        } = pruning;
        let mut goal = plan[0].cost_left * (1.0 - self.tuning.first_share);
        let mut done = 0;
        loop {
            let from = done;
            while done < plan.len() && plan[done].cost_left > goal {
                done += 1;
            }
            self.add(partial, &plan[from..done]);
            let (cost, gain, norm) = plan.get(done).map_or((0.0, 0.0, 0.0), |rest| {
                (rest.cost_left, rest.gain_left, rest.square_left.sqrt())
            });
            // Summing the rest and looking again would cost about this much, counted in rows to be scored.
            let row_cost = self.row_cost();
            let summed = slack == 0.0 && done == plan.len();
            let afford = if done < plan.len() {
                (cost + self.n_rows as f64 / 4.0) / row_cost
            } else if summed {
                f64::INFINITY // nothing is left to be scored: the sums are the scores
            } else {
                (plan[0].cost_left + self.n_rows as f64) / row_cost
            };
            let mut lowest = f64::INFINITY;
            candidates.clear();
            for (which, (top, list)) in tops.iter_mut().zip(wanted).enumerate() {
                self.peaks(partial, list, peaks, seeds);
                top.reset(list.k);
                for &(sum, place) in seeds.iter() {
                    let score = if summed {
                        f64::from(sum)
                    } else {
                        self.exact(spread, place)
                    };
                    top.offer(self.row_at(place as usize), score);
                }
                // A row reaches the floor only if both bounds let it.
                let floor = top.floor() - slack;
                if floor.is_finite() {
                    lowest = lowest.min(floor);
                }
                let (least, least_with_norm) = (below(floor - gain), below(floor));
                let norm = above(norm);
                let mut peak = peaks.iter();
                for range in &list.places {
                    for start in range.clone().step_by(BLOCK) {
                        if *peak.next().expect("a peak for each block") < least
                            || candidates.len() as f64 > afford
                        {
                            continue;
                        }
                        let block = start..(start + BLOCK).min(range.end);
                        let sums = partial[block.clone()].iter().zip(&self.norms[block]);
                        for (place, (&sum, &length)) in (start..).zip(sums) {
                            if sum >= least && sum + norm * length >= least_with_norm {
                                candidates.push((which as u32, place as u32));
                            }
                        }
                    }
                }
            }
            if candidates.len() as f64 <= afford {
                break;
            }
            if done == plan.len() {
                return false;
            }
            // Leave only what cannot lift many rows to the floor; if that is where we are, leave nothing.
            let rest = plan[done..]
                .iter()
                .find(|rest| rest.gain_left <= 0.4 * lowest)
                .map_or(0.0, |rest| rest.cost_left);
            goal = if rest < cost { rest } else { 0.0 };
        }
        for (top, list) in tops.iter_mut().zip(wanted) {
            top.reset(list.k);
        }
        let summed = slack == 0.0 && done == plan.len();
        for &(which, place) in candidates.iter() {
            let score = if summed {
                f64::from(partial[place as usize])
            } else {
                self.exact(spread, place)
            };
            let row = self.row_at(place as usize);
            let top = &mut tops[which as usize];
            if top.would_take(row, score) && (wanted[which as usize].allowed)(row) {
                top.offer(row, score);
            }
        }
        true
    }

    /// Adds columns to the partial scores.
    fn add(&self, partial: &mut [f32], columns: &[Planned]) {
        let mut fours = Fours::new();
        let dense = &self.by_column().dense;
        for column in columns {
            match dense.get(column.rank as usize) {
                Some(dense) => fours.add(partial, column.x as f32, dense),
                None => self.add_sparse(partial, column),
            }
        }
        fours.finish(partial);
    }

    fn add_sparse(&self, partial: &mut [f32], column: &Planned) {
        let (places, values) = self.column(column.rank);
        match self.by_column().constant[column.rank as usize] {
            Some(y) => {
                let term = (column.x * y) as f32;
                for &place in places {
                    partial[place as usize] += term;
                }
            }
            None => {
                for (&place, &y) in places.iter().zip(values) {
                    partial[place as usize] += (column.x * y) as f32;
                }
            }
        }
    }

    /// The largest partial score of each block of a list, and the list's allowed rows of largest partial score.
    fn peaks(
        &self,
        partial: &[f32],
        list: &Wanted<'_>,
        peaks: &mut Vec<f32>,
        seeds: &mut Vec<(f32, u32)>,
    ) {
        peaks.clear();
        seeds.clear();
        let mut floor = f32::NEG_INFINITY;
        for range in &list.places {
            for start in range.clone().step_by(BLOCK) {
                let block = &partial[start..(start + BLOCK).min(range.end)];
                let peak = max(block);
                peaks.push(peak);
                if peak <= floor {
                    continue;
                }
                for (at, &sum) in block.iter().enumerate() {
                    let place = start + at;
                    if sum > floor && (list.allowed)(self.row_at(place)) {
                        let position = seeds.partition_point(|s| s.0 >= sum);
                        seeds.truncate(list.k - 1);
                        seeds.insert(position, (sum, place as u32));
                        if seeds.len() == list.k {
                            floor = seeds[list.k - 1].0;
                        }
                    }
                }
            }
        }
    }

    /// The score of one row. Columns the query lacks add 0, which changes no bit: a sum is never -0.
    fn exact(&self, spread: &[f64], place: u32) -> f64 {
        let range = self.row_starts[place as usize]..self.row_starts[place as usize + 1];
        self.row_ranks[range.clone()]
            .iter()
            .zip(&self.row_values[range])
            .map(|(&rank, y)| spread[rank as usize] * y)
            .fold(0.0, |sum, term| sum + term)
    }
}

fn is_whole(value: f64) -> bool {
    value.abs() < WHOLE_SUM && value.trunc() == value
}
