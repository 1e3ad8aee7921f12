//! The gradient over a batch of triplets: what is asked of it, when it is asked for.
//!
//! A batch serves for one iteration, so nothing is kept that many of them would have to pay for. Triplets are sorted by
//! anchor, and once more by near and far. Where rows stay in the cache, D comes from what the rows of triplets have in
//! common. Where they do not, D_j = Σ_a x_aj Σ_t w_t (x_nj - x_fj) takes the rows that hold feature j, not
//! what pairs of rows have in common; and most columns hold too little for their D to matter. Two bounds say so, the first
//! from the column alone, the second from the pushes of the anchors that hold it.

use super::active_rows::ActiveRows;
use super::links::Links;
use super::partner::{COLUMNS, Diagonals};
use crate::atoms::{ActiveSet, Atom};
use crate::data::Overlap;
use crate::objective::Problem;
use std::ops::Range;

/// Values of all rows that stay in the cache.
const CACHED: usize = 1 << 20;
/// A column is rare that fewer rows hold than one in so many.
const RARE: usize = 16;

pub(super) struct Batch<'p> {
    problem: &'p Problem<'p>,
    /// The triplets with row r as their anchor are at `starts[r]..starts[r + 1]`.
    starts: Vec<u32>,
    triplets: Vec<Sampled>,
    /// Near and far of the triplets of each row, where there are no more than two, for a glance: few rows of a batch have
    /// more. What is not there is `nobody`; where there are more, all are [`everybody`](Batch::everybody).
    glance: Vec<[u32; 4]>,
    back: Back,
    diagonal: Vec<f64>,
    /// Finds what rows have in common; none where D goes by columns.
    overlap: Option<Overlap>,
    /// How well D is known, by block of columns.
    known: Vec<Known>,
    /// The largest ‖X_j‖_1 max_j |x_n - x_f| of each block of columns.
    reaches: Vec<f64>,
    /// The pushes of each anchor, summed up, and the largest such sum.
    by_anchor: Vec<f64>,
    most_push: f64,
    /// A column spread out, 0 in between; and a bit for each row, likewise, with a word for nobody, whose bits are never
    /// set, and one for everybody, whose bits always are.
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
            glance: Vec::new(),
            back: Back::default(),
            diagonal: vec![0.0; n_columns],
            overlap: (problem.rows.nnz() < CACHED).then(|| Overlap::new(problem.rows.longest())),
            known: vec![Known::Nothing; reaches.len()],
            reaches,
            by_anchor: Vec::new(),
            most_push: 0.0,
            spread: vec![0.0; problem.rows.n_rows()],
            bits: bits_for(problem.rows.n_rows()),
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
        self.back.set(n_rows, &triplets);
        match self.overlap.take() {
            Some(mut overlap) => {
                self.know_by_rows(&mut overlap);
                self.overlap = Some(overlap);
            }
            None => self.look_at_anchors(),
        }
    }

    /// What bounds and columns need to know of each anchor.
    fn look_at_anchors(&mut self) {
        let sums = self.starts.windows(2).map(|bounds| {
            let triplets = &self.triplets[bounds[0] as usize..bounds[1] as usize];
            triplets.iter().map(|t| t.push).sum::<f64>()
        });
        self.by_anchor.clear();
        self.by_anchor.extend(sums);
        self.most_push = self.by_anchor.iter().copied().fold(0.0, f64::max);
        let mut glance = std::mem::take(&mut self.glance);
        glance.clear();
        glance.extend(
            (0..self.by_anchor.len()).map(|row| match *self.of_anchor(row) {
                [] => [self.nobody(); 4],
                [a] => [a.near, a.far, self.nobody(), self.nobody()],
                [a, b] => [a.near, a.far, b.near, b.far],
                _ => [self.everybody(); 4],
            }),
        );
        self.glance = glance;
    }

    /// In place of a row, one that no column holds.
    fn nobody(&self) -> u32 {
        64 * (self.bits.len() as u32 - 2)
    }

    /// In place of a row, one that every column holds.
    fn everybody(&self) -> u32 {
        64 * (self.bits.len() as u32 - 1)
    }

    /// Whether D goes by columns, so that much hangs on having something to beat.
    pub(super) fn goes_by_columns(&self) -> bool {
        self.overlap.is_none()
    }

    /// Goes by columns, however few the values are.
    #[cfg(test)]
    pub(super) fn go_by_columns(&mut self) {
        self.overlap = None;
    }

    /// Knows D of every column from now on, from what the two rows of each pair have in common. Mined triplets share
    /// pairs, whose pushes are summed up first.
    fn know_by_rows(&mut self, overlap: &mut Overlap) {
        let mut diagonal = std::mem::take(&mut self.diagonal);
        let mut sums = std::mem::take(&mut self.spread);
        let (rows, mut met) = (&self.problem.rows, Vec::new());
        diagonal.fill(0.0);
        for low in 0..rows.n_rows() {
            let mut add = |row: u32, push: f64| {
                sums[row as usize] += push;
                met.push(row);
            };
            for &Sampled { near, far, push } in self.of_anchor(low) {
                let both = [(near, push), (far, -push)].into_iter();
                both.filter(|(row, _)| *row as usize >= low)
                    .for_each(|(row, push)| add(row, push));
            }
            let back = self.back.of(low).iter();
            back.filter(|(anchor, _)| *anchor as usize > low)
                .for_each(|&(anchor, push)| add(anchor, push));
            if met.is_empty() {
                continue;
            }
            let own = rows.row(low);
            overlap.learn(own.indices());
            for row in met.drain(..) {
                // 0 where the row was met before, or its pushes cancel.
                let sum = std::mem::take(&mut sums[row as usize]);
                if sum == 0.0 {
                    continue;
                }
                let other = rows.row(row as usize);
                for &(p, q) in overlap.with(other.indices()) {
                    let product = own.values().at(p as usize) * other.values().at(q as usize);
                    diagonal[own.indices()[p as usize] as usize] += sum * product;
                }
            }
        }
        (self.diagonal, self.spread) = (diagonal, sums);
        self.known.fill(Known::Exactly);
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
            sum += x * self.of_row(row, &x_of);
        }
        sum
    }

    /// Σ_t w_t (x_n - x_f) over the triplets of an anchor.
    #[inline]
    fn of_row(&self, row: u32, x_of: impl Fn(u32) -> f64) -> f64 {
        let triplets = self.of_anchor(row as usize).iter();
        let sum = |sum: f64, t: &Sampled| sum + t.push * (x_of(t.near) - x_of(t.far));
        triplets.fold(0.0, sum)
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
        let holds = |row: u32| bits[place(row).0] & place(row).1 != 0;
        let mut sum = 0.0;
        for (&row, &x) in holders.iter().zip(values) {
            let [a, b, c, d] = self.glance[row as usize];
            // All four at once: that none of them holds the column is a safe guess.
            if holds(a) | holds(b) | holds(c) | holds(d) {
                sum += x * self.of_row(row, |row| match holds(row) {
                    true => value_of(row, holders, values),
                    false => 0.0,
                });
            }
        }
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

    /// Upper bounds of D by block of columns, as far as it is known.
    pub(super) fn bounds(&self) -> impl Iterator<Item = f64> + '_ {
        let most_push = (1.0 + 1e-9) * self.most_push;
        let reaches = self.reaches.iter().enumerate();
        reaches.map(move |(block, reach)| match self.known[block] {
            Known::Exactly => self.most(block),
            _ => reach * most_push,
        })
    }

    /// The largest D in a block of columns where it is known.
    fn most(&self, block: usize) -> f64 {
        let known = self.diagonal[self.block(block)].iter().copied();
        known.fold(f64::NEG_INFINITY, f64::max)
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
                Some(self.most(block))
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

/// A bit for each of so many rows, a word for nobody and a word for everybody.
fn bits_for(n_rows: usize) -> Vec<u64> {
    let mut bits = vec![0; n_rows.div_ceil(64) + 2];
    *bits.last_mut().expect("a word for everybody") = u64::MAX;
    bits
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Labels, Rows, SparseRow};
    use crate::objective::loss::LossKind;
    use crate::random;
    use crate::triplets::Triplets;

    /// Rows with columns in all of them down to columns in one or two.
    fn rows(n_rows: usize) -> Rows {
        let mut rng = random::rng(5, 0);
        let mut rows = Rows::new(400);
        for _ in 0..n_rows {
            let holds = |j: u32, rng: &mut _| random::below(rng, 1 + j as usize) < 3;
            let features: Vec<u32> = (0..400).filter(|&j| holds(j, &mut rng)).collect();
            let value = |_: &u32| random::below(&mut rng, 9) as f64 / 4.0 - 1.0;
            let values: Vec<f64> = features.iter().map(value).collect();
            rows.push(SparseRow::new(&features, &values));
        }
        rows
    }

    #[test]
    fn every_way_to_d_is_the_same_and_bounds_hold() {
        let rows = rows(300);
        let labels = Labels::from_names((0..300).map(|row| (row % 3).to_string()));
        let triplets = Triplets::at_random(&rows, &labels, 6, 1).unwrap();
        let problem = Problem::new(&rows, &triplets, 2.0, LossKind::SmoothedHinge).unwrap();
        let mut rng = random::rng(6, 0);
        let (mut batch, mut by_rows) = (Batch::new(&problem), Batch::new(&problem));
        batch.go_by_columns();
        // Batches in which an anchor has no triplet, one, two and more.
        for size in [1, 100, 300, 1500] {
            let which = random::sample(&mut rng, triplets.len(), size);
            let pushes: Vec<f64> = which.iter().map(|t| f64::from(t % 5) / 3.0).collect();
            batch.set(&which, &pushes, &vec![0.0; size]);
            by_rows.set(&which, &pushes, &vec![0.0; size]);
            let first: Vec<f64> = batch.bounds().collect();
            for j in 0..problem.n_columns() as u32 {
                let mut by_triplets = 0.0;
                let of = |row: u32| {
                    let (holders, values) = problem.lists.column(j);
                    value_of(row, holders, values)
                };
                for (&t, push) in which.iter().zip(&pushes) {
                    let (anchor, near, far) = triplets.get(t as usize);
                    by_triplets += push * of(anchor) * (of(near) - of(far));
                }
                let d = batch.at(j);
                assert!((d - by_triplets).abs() < 1e-10, "{d} against {by_triplets}");
                assert!((d - by_rows.at(j)).abs() < 1e-10);
                assert_eq!(d, batch.compute_rare(j));
                assert_eq!(d, batch.compute_common(j));
                assert_eq!(d, batch.now(j));
                let block = j as usize / COLUMNS;
                assert!(d <= batch.bound(block));
                assert!(batch.bound(block) <= (1.0 + 1e-12) * first[block]);
            }
            for block in 0..first.len() {
                let sharper = [batch.sharpen(block), batch.sharpen(block)].map(Option::unwrap);
                assert!(sharper[1] <= sharper[0] && batch.sharpen(block).is_none());
                let most = batch.block(block).map(|j| batch.at(j as u32));
                assert_eq!(sharper[1], most.fold(f64::NEG_INFINITY, f64::max));
            }
        }
    }
}
