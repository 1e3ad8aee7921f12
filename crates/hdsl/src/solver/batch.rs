//! The gradient over a batch of triplets: what is asked of it, when it is asked for.
//!
//! A batch serves for one iteration, so nothing is kept that many of them would have to pay for. Triplets are sorted by
//! anchor, and once more by near and far. D_j = Σ_a x_aj Σ_t w_t (x_nj - x_fj) takes the rows that hold feature j, not
//! what pairs of rows have in common; and most columns hold too little for their D to matter. Two bounds say so, the first
//! from the column alone, the second from the pushes of the anchors that hold it.

use super::active_rows::ActiveRows;
use super::links::Links;
use super::partner::{COLUMNS, Diagonals};
use crate::atoms::{ActiveSet, Atom};
use crate::objective::Problem;
use std::ops::Range;

/// A column is rare that fewer rows hold than one in so many.
const RARE: usize = 16;

pub(super) struct Batch<'p> {
    problem: &'p Problem<'p>,
    /// The triplets with row r as their anchor are at `starts[r]..starts[r + 1]`.
    starts: Vec<u32>,
    triplets: Vec<Sampled>,
    back: Back,
    diagonal: Vec<f64>,
    /// How well D is known, by block of columns.
    known: Vec<Known>,
    /// The largest ‖X_j‖_1 max_j |x_n - x_f| of each block of columns.
    reaches: Vec<f64>,
    /// The pushes of each anchor, summed up, and the largest such sum.
    by_anchor: Vec<f64>,
    most_push: f64,
    /// A column spread out, 0 in between; and a bit for each row, likewise.
    spread: Vec<f64>,
    bits: Vec<u64>,
    /// Σ_t w_t m_t = <M, G>.
    at_model: f64,
    /// λ / V over the batch.
    unit: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Known {
    Nothing,
    /// A bound from the pushes of the anchors that hold a column.
    Bound,
    Exactly,
}

/// A triplet with its push.
#[derive(Clone, Copy, Default)]
struct Sampled {
    near: u32,
    far: u32,
    push: f64,
}

/// The same triplets by near and by far: the anchors that a row is paired with, and by how much.
#[derive(Default)]
struct Back {
    starts: Vec<u32>,
    pairs: Vec<(u32, f64)>,
}

impl<'p> Batch<'p> {
    /// Of no triplets yet.
    pub(super) fn new(problem: &'p Problem<'p>) -> Self {
        let n_columns = problem.n_columns();
        let reach = |j: usize| {
            let values = problem.lists.column(j as u32).1;
            let least = values.iter().fold(0.0f64, |least, &x| least.min(x));
            let most = values.iter().fold(0.0f64, |most, &x| most.max(x));
            problem.norms(j as u32)[0] * (most - least)
        };
        let starts = (0..n_columns).step_by(COLUMNS);
        let blocks = starts.map(|start| start..(start + COLUMNS).min(n_columns));
        let reaches: Vec<f64> = blocks
            .map(|columns| columns.map(reach).fold(0.0, f64::max))
            .collect();
        Self {
            problem,
            starts: vec![0; problem.rows.n_rows() + 1],
            triplets: Vec::new(),
            back: Back::default(),
            diagonal: vec![0.0; n_columns],
            known: vec![Known::Nothing; reaches.len()],
            reaches,
            by_anchor: Vec::new(),
            most_push: 0.0,
            spread: vec![0.0; problem.rows.n_rows()],
            bits: vec![0; problem.rows.n_rows().div_ceil(64)],
            at_model: 0.0,
            unit: 0.0,
        }
    }

    /// Takes other triplets, given by number, with their pushes and margins.
    pub(super) fn set(&mut self, which: &[u32], pushes: &[f64], margins: &[f64]) {
        let all = self.problem.triplets;
        let weight: f64 = which.iter().map(|&t| all.weight(t as usize)).sum();
        self.unit = self.problem.scale / weight;
        self.at_model = pushes.iter().zip(margins).map(|(w, m)| w * m).sum();
        self.known.fill(Known::Nothing);
        // Who does not push has no part in the gradient.
        let pushing = which.iter().zip(pushes).filter(|(_, push)| **push != 0.0);
        let triplets: Vec<(u32, Sampled)> = pushing
            .map(|(&t, &push)| {
                let (anchor, near, far) = all.get(t as usize);
                (anchor, Sampled { near, far, push })
            })
            .collect();
        let n_rows = self.problem.rows.n_rows();
        count(&mut self.starts, n_rows, triplets.iter().map(|t| t.0));
        self.triplets.resize(triplets.len(), Sampled::default());
        for &(anchor, triplet) in triplets.iter().rev() {
            let at = &mut self.starts[anchor as usize + 1];
            *at -= 1;
            self.triplets[*at as usize] = triplet;
        }
        shift(&mut self.starts, triplets.len());
        let sums = self.starts.windows(2).map(|bounds| {
            let triplets = &self.triplets[bounds[0] as usize..bounds[1] as usize];
            triplets.iter().map(|t| t.push).sum::<f64>()
        });
        self.by_anchor.clear();
        self.by_anchor.extend(sums);
        self.most_push = self.by_anchor.iter().copied().fold(0.0, f64::max);
        self.back.set(n_rows, &triplets);
    }

    /// <B, -∇f> of an atom whose D_i + D_j ± H_ij is `score`.
    pub(super) fn gain(&self, score: f64) -> f64 {
        self.unit * score
    }

    /// <M, -∇f>.
    pub(super) fn gain_of_model(&self) -> f64 {
        self.at_model * self.unit / self.problem.scale
    }

    fn of_anchor(&self, row: usize) -> &[Sampled] {
        &self.triplets[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// S X_{:,i}, as a row and what it gains.
    pub(super) fn each_product(&self, i: u32, mut gain: impl FnMut(usize, f64)) {
        let (holders, values) = self.problem.lists.column(i);
        for (&row, &x) in holders.iter().zip(values) {
            for triplet in self.of_anchor(row as usize) {
                gain(triplet.near as usize, triplet.push * x);
                gain(triplet.far as usize, -triplet.push * x);
            }
            for &(anchor, sum) in self.back.of(row as usize) {
                gain(anchor as usize, sum * x);
            }
        }
    }

    /// Every pair of rows with its push, as often as there are triplets.
    pub(super) fn each_pair(&self, mut visit: impl FnMut(u32, u32, f64)) {
        for anchor in 0..self.starts.len() - 1 {
            for triplet in self.of_anchor(anchor) {
                visit(anchor as u32, triplet.near, triplet.push);
                visit(anchor as u32, triplet.far, -triplet.push);
            }
        }
    }

    /// D of a column, given x_rj of any row r.
    fn sum_up(&self, column: u32, x_of: impl Fn(u32) -> f64) -> f64 {
        let (holders, values) = self.problem.lists.column(column);
        let mut sum = 0.0;
        for (&row, &x) in holders.iter().zip(values) {
            let triplets = self.of_anchor(row as usize).iter();
            let of_anchor = triplets.map(|t| t.push * (x_of(t.near) - x_of(t.far)));
            sum += x * of_anchor.sum::<f64>();
        }
        sum
    }

    /// D of a column that is not known.
    fn compute(&mut self, column: u32) -> f64 {
        match RARE * self.problem.lists.column(column).0.len() < self.spread.len() {
            true => self.compute_rare(column),
            false => self.compute_common(column),
        }
    }

    /// Of a column that few rows hold: a bit for each row, all of them in the nearest cache, tells those who do.
    fn compute_rare(&mut self, column: u32) -> f64 {
        let (holders, values) = self.problem.lists.column(column);
        let mut bits = std::mem::take(&mut self.bits);
        let place = |row: u32| (row as usize / 64, 1u64 << (row % 64));
        for &row in holders {
            let (word, bit) = place(row);
            bits[word] |= bit;
        }
        let sum = self.sum_up(column, |row| {
            let (word, bit) = place(row);
            match bits[word] & bit {
                0 => 0.0,
                _ => value_of(row, holders, values),
            }
        });
        for &row in holders {
            bits[place(row).0] = 0;
        }
        self.bits = bits;
        sum
    }

    /// Of a column that many rows hold, spread out.
    fn compute_common(&mut self, column: u32) -> f64 {
        let (holders, values) = self.problem.lists.column(column);
        let mut spread = std::mem::take(&mut self.spread);
        for (&row, &x) in holders.iter().zip(values) {
            spread[row as usize] = x;
        }
        let sum = self.sum_up(column, |row| spread[row as usize]);
        for &row in holders {
            spread[row as usize] = 0.0;
        }
        self.spread = spread;
        sum
    }

    fn block(&self, block: usize) -> Range<usize> {
        block * COLUMNS..((block + 1) * COLUMNS).min(self.diagonal.len())
    }

    /// Upper bounds of D by block of columns, before any is known.
    pub(super) fn bounds(&self) -> impl Iterator<Item = f64> + '_ {
        let most_push = (1.0 + 1e-9) * self.most_push;
        self.reaches.iter().map(move |reach| reach * most_push)
    }

    /// Knows D of every column from now on.
    pub(super) fn know_all(&mut self) {
        (0..self.known.len()).for_each(|block| self.know(block));
    }

    /// The score of every active atom, in their order.
    pub(super) fn scores(&mut self, active: &Active) -> Vec<f64> {
        let mut cross = vec![0.0; active.links.n_slots()];
        let mut sums = vec![0.0; active.links.n_features()];
        for anchor in 0..self.starts.len() - 1 {
            let (own, triplets) = (active.rows.row(anchor), self.of_anchor(anchor));
            if own.is_empty() || triplets.is_empty() {
                continue;
            }
            sums.fill(0.0);
            for triplet in triplets {
                for (row, push) in [(triplet.near, triplet.push), (triplet.far, -triplet.push)] {
                    for &(feature, x) in active.rows.row(row as usize) {
                        sums[feature as usize] += push * x;
                    }
                }
            }
            for &(feature, x) in own {
                for link in active.links.of(feature) {
                    cross[link.slot as usize] += x * sums[link.to as usize];
                }
            }
        }
        let mut scores = Vec::with_capacity(active.atoms.len());
        for (&atom, &slot) in active.atoms.iter().zip(&active.slots) {
            let cross = atom.sign().value() * cross[slot as usize];
            scores.push(self.now(atom.i()) + self.now(atom.j()) + cross);
        }
        scores
    }

    /// D of a column, computed if need be.
    pub(super) fn now(&mut self, column: u32) -> f64 {
        match self.known[column as usize / COLUMNS] {
            Known::Exactly => self.diagonal[column as usize],
            _ => self.compute(column),
        }
    }

    /// Knows D of a block of columns from now on.
    fn know(&mut self, block: usize) {
        if self.known[block] != Known::Exactly {
            self.known[block] = Known::Exactly;
            for j in self.block(block) {
                self.diagonal[j] = self.compute(j as u32);
            }
        }
    }

    /// An upper bound of D in a block of columns.
    fn bound(&self, block: usize) -> f64 {
        let of_column = |j: usize| {
            let (holders, values) = self.problem.lists.column(j as u32);
            let (mut sum, mut least, mut most) = (0.0, 0.0f64, 0.0f64);
            for (&row, &x) in holders.iter().zip(values) {
                sum += x.abs() * self.by_anchor[row as usize];
                (least, most) = (least.min(x), most.max(x));
            }
            sum * (most - least)
        };
        // Room for rounding.
        (1.0 + 1e-9) * self.block(block).map(of_column).fold(0.0, f64::max)
    }
}

impl Diagonals for Batch<'_> {
    fn at(&self, column: u32) -> f64 {
        if self.known[column as usize / COLUMNS] == Known::Exactly {
            return self.diagonal[column as usize];
        }
        let (holders, values) = self.problem.lists.column(column);
        self.sum_up(column, |row| value_of(row, holders, values))
    }

    fn sharpen(&mut self, block: usize) -> Option<f64> {
        match self.known[block] {
            Known::Nothing => {
                self.known[block] = Known::Bound;
                Some(self.bound(block))
            }
            Known::Bound => {
                self.know(block);
                let known = self.diagonal[self.block(block)].iter().copied();
                Some(known.fold(f64::NEG_INFINITY, f64::max))
            }
            Known::Exactly => None,
        }
    }
}

impl Back {
    fn set(&mut self, n_rows: usize, triplets: &[(u32, Sampled)]) {
        let others = triplets.iter().flat_map(|(_, t)| [t.near, t.far]);
        count(&mut self.starts, n_rows, others);
        self.pairs.resize(2 * triplets.len(), (0, 0.0));
        for &(anchor, Sampled { near, far, push }) in triplets.iter().rev() {
            for (row, push) in [(near, push), (far, -push)] {
                let at = &mut self.starts[row as usize + 1];
                *at -= 1;
                self.pairs[*at as usize] = (anchor, push);
            }
        }
        shift(&mut self.starts, 2 * triplets.len());
    }

    fn of(&self, row: usize) -> &[(u32, f64)] {
        &self.pairs[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

/// What a row holds in a column that is given as a list.
fn value_of(row: u32, holders: &[u32], values: &[f64]) -> f64 {
    holders.binary_search(&row).map_or(0.0, |at| values[at])
}

/// Counts how often each row occurs: afterwards, what belongs to row r ends at `starts[r + 1]`.
fn count(starts: &mut Vec<u32>, n_rows: usize, rows: impl Iterator<Item = u32>) {
    starts.clear();
    starts.resize(n_rows + 1, 0);
    rows.for_each(|row| starts[row as usize + 1] += 1);
    for row in 0..n_rows {
        starts[row + 1] += starts[row];
    }
}

/// Turns `starts` back after every row was filled from its end: what belongs to row r starts at `starts[r + 1]` then.
fn shift(starts: &mut [u32], n: usize) {
    let last = starts.len() - 1;
    starts.copy_within(1.., 0);
    starts[last] = n as u32;
}

/// The active atoms as rows see them. Follows the active set.
pub(super) struct Active {
    atoms: Vec<Atom>,
    slots: Vec<u32>,
    links: Links,
    rows: ActiveRows,
}

impl Active {
    pub(super) fn new(n_rows: usize) -> Self {
        Self {
            atoms: Vec::new(),
            slots: Vec::new(),
            links: Links::default(),
            rows: ActiveRows::new(n_rows),
        }
    }

    pub(super) fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Comes in line with the active set, whose order it follows.
    pub(super) fn follow(&mut self, problem: &Problem<'_>, active: &ActiveSet) {
        // Atoms leave anywhere and join at the end, so what stays is a common subsequence.
        let (mut atoms, mut slots) = (Vec::new(), Vec::new());
        for (&atom, &slot) in self.atoms.iter().zip(&self.slots) {
            if active.atoms().get(atoms.len()) == Some(&atom) {
                atoms.push(atom);
                slots.push(slot);
                continue;
            }
            for (column, number) in self.links.remove(atom, slot) {
                for &row in problem.lists.column(column).0 {
                    self.rows.remove(row as usize, number);
                }
            }
        }
        for &atom in &active.atoms()[atoms.len()..] {
            let (slot, new) = self.links.add(atom);
            for (column, number) in new {
                let (rows, values) = problem.lists.column(column);
                for (&row, &x) in rows.iter().zip(values) {
                    self.rows.push(row as usize, number, x);
                }
            }
            atoms.push(atom);
            slots.push(slot);
        }
        (self.atoms, self.slots) = (atoms, slots);
    }
}
