//! The books kept up to date instead of computed again, for the piecewise quadratic losses.
//!
//! Triplets are split into shards by anchor. A shard sums over its own triplets; this file merges the sums, always in
//! the same order and with a number of shards that depends on the problem alone, so that any number of threads gives
//! the same bytes. See [`shard`] for what is kept.

mod active_rows;
mod links;
mod shard;

use self::active_rows::ActiveRows;
use self::links::Links;
use super::engine::Engine;
use crate::atoms::{ActiveSet, Atom, Sign, Step};
use crate::loss::LossKind;
use crate::objective::{Problem, Scored};
use crate::step::{Direction, line_search};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use shard::{Books, COLUMNS, Motion, Reached, Shard, Sums, Two, Zones};

/// Triplets worth a shard of their own.
const SHARD: usize = 1 << 16;
/// More shards than this would cost more in merging than they bring.
const MOST_SHARDS: usize = 8;
/// Values in the rows that make threads worth waking for one row of H.
const PARALLEL: usize = 1 << 20;
/// Rounding adds up: start afresh after this many steps.
const REBUILD_EVERY: usize = 2000;

pub(crate) struct Incremental<'p> {
    problem: &'p Problem<'p>,
    zones: Zones,
    active: ActiveSet,
    sigma: f64,
    parallel_from: usize,
    shards: Vec<Shard>,
    active_rows: ActiveRows,
    links: Links,
    /// The slot of each active atom, in their order.
    slots: Vec<u32>,
    steps: usize,
    motion: Moving,
    /// The largest ‖X_j‖_1 and ‖X_j‖_2 of each block of columns.
    block_norms: Vec<[f64; 2]>,
    spread: Vec<f64>,
    /// S X_{:,i}, 0 between searches, and which of its rows were met.
    u: Vec<f64>,
    met: Vec<bool>,
    /// A row of H, 0 between searches, and which of its columns were met.
    row: Vec<f64>,
    row_met: Vec<bool>,
}

/// The direction of the line search under way.
#[derive(Default)]
struct Moving {
    main: Projection,
    other: Projection,
    pairwise: bool,
    rows: Vec<u32>,
    rate: f64,
    sign: f64,
}

/// x_i ± x_j by row, spread out and as the sorted list of rows where it is not 0.
#[derive(Default)]
struct Projection {
    z: Vec<f64>,
    rows: Vec<u32>,
}

impl Projection {
    fn set(&mut self, problem: &Problem<'_>, atom: Atom) {
        self.clear();
        self.z.resize(problem.rows.n_rows(), 0.0);
        let (rows_i, values_i) = problem.lists.column(atom.i());
        let (rows_j, values_j) = problem.lists.column(atom.j());
        let sign = atom.sign().value();
        let (mut p, mut q) = (0, 0);
        while p < rows_i.len() || q < rows_j.len() {
            let row_i = rows_i.get(p).copied().unwrap_or(u32::MAX);
            let row_j = rows_j.get(q).copied().unwrap_or(u32::MAX);
            let row = row_i.min(row_j);
            let mut z = 0.0;
            if row_i == row {
                z += values_i[p];
                p += 1;
            }
            if row_j == row {
                z += sign * values_j[q];
                q += 1;
            }
            if z != 0.0 {
                self.z[row as usize] = z;
                self.rows.push(row);
            }
        }
    }

    fn set_column(&mut self, problem: &Problem<'_>, column: u32) {
        self.clear();
        self.z.resize(problem.rows.n_rows(), 0.0);
        let (rows, values) = problem.lists.column(column);
        self.rows.extend_from_slice(rows);
        for (&row, &x) in rows.iter().zip(values) {
            self.z[row as usize] = x;
        }
    }

    fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.z[row as usize] = 0.0;
        }
    }
}

/// The union of two increasing lists.
fn merge_rows(a: &[u32], b: &[u32], into: &mut Vec<u32>) {
    into.clear();
    let (mut p, mut q) = (0, 0);
    while p < a.len() || q < b.len() {
        let (x, y) = (
            a.get(p).copied().unwrap_or(u32::MAX),
            b.get(q).copied().unwrap_or(u32::MAX),
        );
        into.push(x.min(y));
        p += usize::from(x <= y);
        q += usize::from(y <= x);
    }
}

impl Moving {
    fn motion(&self) -> Motion<'_> {
        Motion {
            rate: self.rate,
            main: &self.main.z,
            sign: self.sign,
            other: self.pairwise.then_some(&self.other.z[..]),
            rows: if self.pairwise {
                &self.rows
            } else {
                &self.main.rows
            },
        }
    }

    fn set(&mut self, problem: &Problem<'_>, direction: Direction) {
        self.pairwise = false;
        match direction {
            Direction::Forward(atom) => {
                self.main.set(problem, atom);
                (self.rate, self.sign) = (-1.0, 1.0);
            }
            Direction::Away(atom) => {
                self.main.set(problem, atom);
                (self.rate, self.sign) = (1.0, -1.0);
            }
            Direction::Pairwise { to, from } => {
                self.main.set(problem, to);
                self.other.set(problem, from);
                (self.rate, self.sign, self.pairwise) = (0.0, 1.0, true);
                merge_rows(&self.main.rows, &self.other.rows, &mut self.rows);
            }
        }
    }
}

impl<'p> Incremental<'p> {
    pub(crate) fn new(problem: &'p Problem<'p>) -> Self {
        let n_shards = (problem.triplets.len() / SHARD).clamp(1, MOST_SHARDS);
        Self::in_shards(problem, n_shards, PARALLEL)
    }

    /// With so many shards, and threads for rows of H from so many values on. Both are settings of the problem, never
    /// of the machine: sums are merged by shard.
    pub(super) fn in_shards(
        problem: &'p Problem<'p>,
        n_shards: usize,
        parallel_from: usize,
    ) -> Self {
        let n_rows = problem.rows.n_rows();
        let shards = cut(problem, n_shards);
        let columns: Vec<u32> = (0..problem.n_columns() as u32).collect();
        let block_norms = columns
            .chunks(COLUMNS)
            .map(|block| {
                block.iter().fold([0.0f64; 2], |most, &j| {
                    let [sum, length] = problem.norms(j);
                    [most[0].max(sum), most[1].max(length)]
                })
            })
            .collect();
        let mut engine = Self {
            problem,
            zones: Zones {
                has_straight: problem.loss == LossKind::SmoothedHinge,
            },
            active: ActiveSet::default(),
            sigma: 1.0,
            parallel_from,
            shards,
            active_rows: ActiveRows::new(n_rows),
            links: Links::new(problem.n_columns()),
            slots: Vec::new(),
            steps: 0,
            motion: Moving::default(),
            block_norms,
            spread: vec![0.0; n_rows],
            u: vec![0.0; n_rows],
            met: vec![false; n_rows],
            row: vec![0.0; problem.n_columns()],
            row_met: vec![false; problem.n_columns()],
        };
        engine.rebuild();
        engine
    }

    /// The margins, in the order of anchors.
    #[cfg(test)]
    pub(super) fn margins(&self) -> Vec<f64> {
        self.shards
            .iter()
            .flat_map(|shard| shard.margins(self.sigma))
            .collect()
    }

    /// Runs on every shard, side by side when there is enough to do.
    fn each<T: Send>(&mut self, work: impl Fn(&mut Shard) -> T + Sync + Send) -> Vec<T> {
        if self.shards.len() == 1 {
            vec![work(&mut self.shards[0])]
        } else {
            self.shards.par_iter_mut().map(work).collect()
        }
    }

    /// Runs on every shard with what they all read.
    fn each_with_books<T: Send>(
        &mut self,
        work: impl Fn(&mut Shard, Books<'_>) -> T + Sync + Send,
    ) -> Vec<T> {
        let active_rows = std::mem::take(&mut self.active_rows);
        let links = std::mem::take(&mut self.links);
        let books = Books {
            sigma: self.sigma,
            rows: &self.problem.rows,
            active_rows: &active_rows,
            links: &links,
        };
        let done = self.each(|shard| work(shard, books));
        (self.active_rows, self.links) = (active_rows, links);
        done
    }

    /// Everything from the margins, with σ folded into them.
    fn rebuild(&mut self) {
        let (factor, zones) = (self.sigma, self.zones);
        self.sigma = 1.0;
        self.steps = 0;
        self.each_with_books(|shard, books| {
            if factor != 1.0 {
                shard.rescale(factor);
            }
            shard.rebuild(books, zones);
            shard.tighten();
        });
    }

    /// First - σ second of a sum over shards.
    fn merged(&self, of_shard: impl Fn(&Shard) -> Two) -> f64 {
        let mut sum = [0.0; 2];
        for shard in &self.shards {
            let part = of_shard(shard);
            sum[0] += part[0];
            sum[1] += part[1];
        }
        sum[0] - self.sigma * sum[1]
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.shards.iter().for_each(|shard| sums.merge(&shard.sums));
        sums
    }

    /// An upper bound of D within a block of columns.
    fn diagonal_bound(&self, block: usize) -> f64 {
        self.merged(|shard| shard.diagonal_bounds[block])
    }

    /// Puts a new atom into the tables.
    fn admit(&mut self, atom: Atom) {
        let (slot, new) = self.links.add(atom);
        self.slots.push(slot);
        for (column, number) in new {
            let (rows, values) = self.problem.lists.column(column);
            for (&row, &x) in rows.iter().zip(values) {
                self.active_rows.push(row as usize, number, x);
            }
        }
    }

    fn dismiss(&mut self, atom: Atom, at: usize) {
        let slot = self.slots.remove(at);
        for (column, number) in self.links.remove(atom, slot) {
            for &row in self.problem.lists.column(column).0 {
                self.active_rows.remove(row as usize, number);
            }
        }
    }

    /// Computes H_ij of the atom admitted last.
    fn cross_last(&mut self, atom: Atom) {
        let slot = *self.slots.last().expect("an atom was admitted");
        let Moving {
            main, other, rows, ..
        } = &mut self.motion;
        main.set_column(self.problem, atom.i());
        other.set_column(self.problem, atom.j());
        merge_rows(&main.rows, &other.rows, rows);
        let moving = std::mem::take(&mut self.motion);
        self.each(|shard| {
            shard.cross_new(slot as usize, &moving.main.z, &moving.other.z, &moving.rows)
        });
        self.motion = moving;
    }

    /// u = S X_{:,i} into `self.u`; gives the rows where it may differ from 0, if they are few.
    fn multiply(&mut self, feature: u32) -> Option<Vec<u32>> {
        let (holders, values) = self.problem.lists.column(feature);
        let mut spread = std::mem::take(&mut self.spread);
        for (&row, &x) in holders.iter().zip(values) {
            spread[row as usize] = x;
        }
        let sigma = self.sigma;
        self.each(|shard| shard.multiply(sigma, &spread, holders));
        for &row in holders {
            spread[row as usize] = 0.0;
        }
        self.spread = spread;
        let sparse = self
            .shards
            .iter()
            .all(|shard| matches!(shard.reached, Reached::Rows(_)));
        if !sparse {
            if self.shards.len() == 1 {
                self.u.copy_from_slice(&self.shards[0].u);
            } else {
                let shards = &self.shards;
                self.u
                    .par_chunks_mut(4096)
                    .enumerate()
                    .for_each(|(chunk, u)| {
                        let start = chunk * 4096;
                        u.copy_from_slice(&shards[0].u[start..start + u.len()]);
                        for shard in &shards[1..] {
                            u.iter_mut()
                                .zip(&shard.u[start..])
                                .for_each(|(sum, x)| *sum += x);
                        }
                    });
            }
            return None;
        }
        let mut reached = Vec::new();
        for shard in &self.shards {
            let Reached::Rows(rows) = &shard.reached else {
                continue;
            };
            for &row in rows {
                if !std::mem::replace(&mut self.met[row as usize], true) {
                    reached.push(row);
                }
            }
        }
        for &row in &reached {
            self.met[row as usize] = false;
            self.u[row as usize] = self.shards.iter().map(|shard| shard.u[row as usize]).sum();
        }
        Some(reached)
    }

    fn best_partner(&mut self, mut partner: Partner<'p>) -> Option<Scored> {
        let reached = self.multiply(partner.feature);
        // A floor to beat makes columns cheap: nearly all are passed over.
        let few = |rows: &[u32]| {
            let nnz: usize = rows
                .iter()
                .map(|&q| self.problem.rows.row(q as usize).nnz())
                .sum();
            nnz * 4 < self.problem.rows.nnz()
        };
        match reached {
            Some(rows) if partner.best.is_none() && few(&rows) => {
                self.search_rows(&mut partner, &rows)
            }
            Some(rows) => {
                self.search_columns(&mut partner, &mut rows.iter().map(|&q| self.u[q as usize]));
                for q in rows {
                    self.u[q as usize] = 0.0;
                }
            }
            None => {
                self.search_columns(&mut partner, &mut self.u.iter().copied());
                self.u.fill(0.0);
            }
        }
        partner.best
    }

    /// When few rows are reached: spreads their values out, and clears `self.u`.
    fn search_rows(&mut self, partner: &mut Partner<'p>, reached: &[u32]) {
        let mut columns = Vec::new();
        for &q in reached {
            let u = std::mem::take(&mut self.u[q as usize]);
            let row = self.problem.rows.row(q as usize);
            for (&j, &x) in row.indices().iter().zip(row.values()) {
                if !std::mem::replace(&mut self.row_met[j as usize], true) {
                    columns.push(j);
                }
                self.row[j as usize] += u * x;
            }
        }
        for j in columns {
            let h = std::mem::take(&mut self.row[j as usize]);
            self.row_met[j as usize] = false;
            partner.offer(j, self.diagonal(j), h);
        }
        // Features that share no triplet with this one: H is 0, and the best D is the best of them.
        for block in 0..self.block_norms.len() {
            if partner.could_use(self.diagonal_bound(block)) {
                for j in block * COLUMNS..((block + 1) * COLUMNS).min(self.problem.n_columns()) {
                    // A feature met above was offered with its true H, which can only be better.
                    partner.offer_alone(j as u32, self.diagonal(j as u32));
                }
            }
        }
    }

    /// The columns one by one, those that cannot win left out. `entries` are the entries of u that may not be 0.
    fn search_columns(&self, partner: &mut Partner<'p>, entries: &mut dyn Iterator<Item = f64>) {
        // |H_ij| <= max|u| ‖X_j‖_1 and <= ‖u‖_2 ‖X_j‖_2, where for X >= 0 only one sign of u can count.
        let mut largest = 0.0f64;
        let mut squares = [0.0f64; 2];
        for u in entries {
            largest = largest.max(u.abs());
            squares[usize::from(u < 0.0)] += u * u;
        }
        let length = if self.problem.non_negative {
            squares[0].max(squares[1]).sqrt()
        } else {
            (squares[0] + squares[1]).sqrt()
        };
        let slack = 1.0 + 1e-9;
        let at_most = |norms: [f64; 2]| slack * (largest * norms[0]).min(length * norms[1]);
        let blocks = partner.first / COLUMNS..self.block_norms.len();
        if self.problem.rows.nnz() < self.parallel_from {
            blocks.for_each(|block| self.search_block(partner, block, at_most));
            return;
        }
        // The largest columns first, so that the others have something to beat. What is left out cannot win, so the
        // winner does not depend on who looks where.
        let head = blocks.start..(blocks.start + 4).min(blocks.end);
        let tail = head.end..blocks.end;
        head.for_each(|block| self.search_block(partner, block, at_most));
        let found = tail
            .into_par_iter()
            .with_min_len(64)
            .fold(
                || *partner,
                |mut partner, block| {
                    self.search_block(&mut partner, block, at_most);
                    partner
                },
            )
            .filter_map(|partner| partner.best)
            .reduce_with(|a, b| self.problem.better(a, b));
        partner.best = found.or(partner.best);
    }

    /// One block of columns, given a bound of |H_ij| by the norms of a column.
    fn search_block(
        &self,
        partner: &mut Partner<'p>,
        block: usize,
        at_most: impl Fn([f64; 2]) -> f64,
    ) {
        if !partner.could_use(self.diagonal_bound(block) + at_most(self.block_norms[block])) {
            return;
        }
        let end = ((block + 1) * COLUMNS).min(self.problem.n_columns());
        for j in (block * COLUMNS).max(partner.first)..end {
            let d = self.diagonal(j as u32);
            if partner.could_use(d + at_most(self.problem.norms(j as u32))) {
                let (rows, values) = self.problem.lists.column(j as u32);
                let h = rows
                    .iter()
                    .zip(values)
                    .map(|(&q, &x)| self.u[q as usize] * x)
                    .sum();
                partner.offer(j as u32, d, h);
            }
        }
    }
}

/// The best partner of one feature so far.
#[derive(Clone, Copy)]
struct Partner<'p> {
    problem: &'p Problem<'p>,
    feature: u32,
    diagonal: f64,
    /// The lowest feature asked about.
    first: usize,
    best: Option<Scored>,
}

impl<'p> Partner<'p> {
    fn new(problem: &'p Problem<'p>, feature: u32, diagonal: f64) -> Self {
        Self {
            problem,
            feature,
            diagonal,
            first: 0,
            best: None,
        }
    }

    /// Whether a partner with D_j + |H_ij| of at most this could win.
    fn could_use(&self, at_most: f64) -> bool {
        self.best
            .is_none_or(|best| self.diagonal + at_most >= best.1)
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

    /// Offers a feature whose H is 0 or was offered already: it never replaces an equal.
    fn offer_alone(&mut self, j: u32, diagonal: f64) {
        let score = self.diagonal + diagonal;
        if self.best.is_none_or(|best| {
            score > best.1 || (score == best.1 && best.0.i() != j && best.0.j() != j)
        }) {
            self.offer(j, diagonal, 0.0);
        }
    }
}

impl<'p> Engine<'p> for Incremental<'p> {
    fn problem(&self) -> &'p Problem<'p> {
        self.problem
    }

    fn active(&self) -> &ActiveSet {
        &self.active
    }

    fn start_at(&mut self, active: ActiveSet) {
        self.sigma = 1.0;
        self.slots.clear();
        self.active_rows = ActiveRows::new(self.problem.rows.n_rows());
        self.links = Links::new(self.problem.n_columns());
        self.each(|shard| shard.rescale(0.0));
        let scale = self.problem.scale;
        let mut projection = Projection::default();
        for (atom, weight) in active.iter() {
            projection.set(self.problem, atom);
            self.each(|shard| shard.add_atom(scale, weight, &projection.z, &projection.rows));
            self.admit(atom);
        }
        self.active = active;
        self.rebuild();
    }

    fn objective(&mut self) -> f64 {
        let (sums, sigma) = (self.sums(), self.sigma);
        let straight = 0.5 * sums.weight_straight - sigma * sums.mu_straight;
        let bent = 0.5
            * (sums.weight_bent - 2.0 * sigma * sums.mu_bent + sigma * sigma * sums.square_bent);
        // Near 0 the bent part is a small difference of large numbers.
        let total = if straight + bent < 1e-3 * sums.weight_bent {
            let zones = self.zones;
            self.each(|shard| shard.value(sigma, zones))
                .into_iter()
                .sum()
        } else {
            straight + bent
        };
        total / self.problem.total_weight
    }

    fn refresh(&mut self, _: &mut ChaCha8Rng) {}

    fn refresh_all(&mut self) {}

    fn gain(&self, score: f64) -> f64 {
        self.problem.scale * score / self.problem.total_weight
    }

    fn gain_of_model(&self) -> f64 {
        let (sums, sigma) = (self.sums(), self.sigma);
        (sigma * (sums.mu_straight + sums.mu_bent) - sigma * sigma * sums.square_bent)
            / self.problem.total_weight
    }

    fn diagonal(&self, feature: u32) -> f64 {
        self.merged(|shard| shard.diagonal[feature as usize])
    }

    fn best_diagonal(&mut self) -> u32 {
        let (mut best, mut at) = (f64::NEG_INFINITY, 0);
        for block in 0..self.block_norms.len() {
            if self.diagonal_bound(block) > best {
                for j in block * COLUMNS..((block + 1) * COLUMNS).min(self.problem.n_columns()) {
                    let d = self.diagonal(j as u32);
                    if d > best {
                        (best, at) = (d, j as u32);
                    }
                }
            }
        }
        at
    }

    fn best_with(&mut self, feature: u32) -> Scored {
        let partner = Partner::new(self.problem, feature, self.diagonal(feature));
        self.best_partner(partner)
            .expect("there are at least two features")
    }

    fn best_above(&mut self, feature: u32, floor: Scored, first: u32) -> Scored {
        let mut partner = Partner::new(self.problem, feature, self.diagonal(feature));
        partner.first = first as usize;
        partner.best = Some(floor);
        self.best_partner(partner).expect("the floor is there")
    }

    fn active_scores(&mut self) -> Vec<f64> {
        let score = |(&atom, &slot): (&Atom, &u32)| {
            let cross = self.merged(|shard| shard.cross[slot as usize]);
            self.diagonal(atom.i()) + self.diagonal(atom.j()) + atom.sign().value() * cross
        };
        self.active
            .atoms()
            .iter()
            .zip(&self.slots)
            .map(score)
            .collect()
    }

    fn each_pair(&self, mut visit: impl FnMut(u32, u32, f64)) {
        for shard in &self.shards {
            shard.each_pair(self.sigma, &mut visit);
        }
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        self.motion.set(self.problem, direction);
        let moving = std::mem::take(&mut self.motion);
        let (scale, sigma, zones) = (self.problem.scale, self.sigma, self.zones);
        self.each(|shard| shard.touch(scale, sigma, moving.motion()));
        let gamma = line_search(gamma_max, |gamma| {
            let parts = self.each(|shard| shard.along(sigma, moving.rate, gamma, zones));
            parts
                .into_iter()
                .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
        });
        self.motion = moving;
        gamma
    }

    fn advance(&mut self, step: &Step, gamma: f64) {
        let rate = self.motion.rate;
        let factor = 1.0 + rate * gamma;
        let leaving = match step {
            Step::Drop { atom } | Step::Swap { from: atom, .. } => Some(*atom),
            _ => None,
        };
        let at = leaving.and_then(|atom| self.active.position(atom));
        self.active.apply(step);
        if factor <= 0.0 || self.active.len() + usize::from(at.is_some()) < self.slots.len() {
            // All weight moved to one atom, or weights vanished on the way.
            return self.start_at(self.active.clone());
        }
        self.sigma *= factor;
        let zones = self.zones;
        self.each_with_books(|shard, books| shard.advance(rate, gamma, books, zones));
        if let (Some(atom), Some(at)) = (leaving, at) {
            self.dismiss(atom, at);
        }
        if self.slots.len() < self.active.len() {
            let atom = *self
                .active
                .atoms()
                .last()
                .expect("a new atom joins at the end");
            self.admit(atom);
            self.cross_last(atom);
        }
        self.each(Shard::tighten);
        self.steps += 1;
        if self.steps == REBUILD_EVERY || !(1e-12..1e12).contains(&self.sigma) {
            self.rebuild();
        }
    }
}

/// Cuts the triplets into shards of about equal size at boundaries between anchors.
fn cut(problem: &Problem<'_>, n_shards: usize) -> Vec<Shard> {
    let (triplets, n_rows) = (problem.triplets, problem.rows.n_rows());
    let mut starts = vec![0usize; n_rows + 1];
    for &anchor in triplets.anchor() {
        starts[anchor as usize + 1] += 1;
    }
    for row in 0..n_rows {
        starts[row + 1] += starts[row];
    }
    let mut fill = starts.clone();
    let mut sorted = vec![0u32; triplets.len()];
    for (t, &anchor) in triplets.anchor().iter().enumerate() {
        sorted[fill[anchor as usize]] = t as u32;
        fill[anchor as usize] += 1;
    }
    let bounds: Vec<usize> = (0..=n_shards)
        .map(|k| match k {
            0 => 0,
            k if k == n_shards => n_rows,
            k => starts
                .partition_point(|&start| start < k * triplets.len() / n_shards)
                .min(n_rows),
        })
        .collect();
    bounds
        .par_windows(2)
        .map(|w| Shard::new(problem, w[0]..w[1], &sorted[starts[w[0]]..starts[w[1]]]))
        .collect()
}
