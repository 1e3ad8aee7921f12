//! The margins of some triplets, kept up to date for the piecewise quadratic losses.
//!
//! A margin is σ μ with one σ for all, so that a step rescales every margin in O(1) and only *touched* triplets
//! (those with <A^t, B> ≠ 0) get a new μ. The loss has three zones: straight (m <= 0, push v), bent (push v (1 - m))
//! and satisfied (no push). A sum of pushes times something fixed is then (constant part) - σ (linear part), where
//! a triplet gives (v, 0), (v, v μ) or (0, 0) by zone. Zones of untouched triplets change only where σ μ crosses 1,
//! and bounds by block say where that may be.

use crate::loss::LossKind;

/// Two numbers that mean first - σ second.
pub(super) type Two = [f64; 2];

/// Evaluations of a line search before it has come down to a range worth looking at.
const WIDE: usize = 2;

/// Triplets whose zone bounds are kept together.
const BLOCK: usize = 128;

/// Triplets worth a shard of their own.
const SHARD: usize = 1 << 17;
/// More shards than this would cost more in merging than they bring.
const MOST_SHARDS: usize = 4;

/// Into how many shards to cut so many triplets: a setting of the problem, never of the machine, since sums are merged
/// by shard. A power of 2, so that two threads have equal shares.
pub(super) fn n_shards(n_triplets: usize) -> usize {
    1 << (n_triplets / SHARD).clamp(1, MOST_SHARDS).ilog2()
}

const STRAIGHT: u8 = 0;
const BENT: u8 = 1;
const SATISFIED: u8 = 2;
/// Set while a triplet is on the list of touched ones.
const LISTED: u8 = 4;

/// Where a loss changes from one zone to the next.
#[derive(Clone, Copy)]
pub(super) struct Zones {
    /// The squared hinge has no straight zone.
    has_straight: bool,
}

impl Zones {
    /// The zones of a loss that has them.
    pub(super) fn of_loss(loss: LossKind) -> Option<Self> {
        match loss {
            LossKind::SmoothedHinge => Some(Self { has_straight: true }),
            LossKind::SquaredHinge => Some(Self {
                has_straight: false,
            }),
            LossKind::Logistic | LossKind::Exponential => None,
        }
    }

    fn of(self, margin: f64) -> u8 {
        if margin >= 1.0 {
            SATISFIED
        } else if margin <= 0.0 && self.has_straight {
            STRAIGHT
        } else {
            BENT
        }
    }
}

/// What a triplet adds to every sum.
fn share(zone: u8, mu: f64, v: f64) -> Two {
    match zone {
        STRAIGHT => [v, 0.0],
        BENT => [v, v * mu],
        _ => [0.0, 0.0],
    }
}

/// Sums over triplets by zone: enough for objective, <M, ∇f> and the untouched part of a line search.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    unsatisfied: usize,
    weight_straight: f64,
    mu_straight: f64,
    weight_bent: f64,
    mu_bent: f64,
    square_bent: f64,
}

impl Sums {
    fn add(&mut self, zone: u8, mu: f64, v: f64) {
        match zone {
            STRAIGHT => {
                self.unsatisfied += 1;
                self.weight_straight += v;
                self.mu_straight += v * mu;
            }
            BENT => {
                self.unsatisfied += 1;
                self.weight_bent += v;
                self.mu_bent += v * mu;
                self.square_bent += v * mu * mu;
            }
            _ => {}
        }
    }

    fn remove(&mut self, zone: u8, mu: f64, v: f64) {
        match zone {
            STRAIGHT => {
                self.unsatisfied -= 1;
                self.weight_straight -= v;
                self.mu_straight -= v * mu;
            }
            BENT => {
                self.unsatisfied -= 1;
                self.weight_bent -= v;
                self.mu_bent -= v * mu;
                self.square_bent -= v * mu * mu;
            }
            _ => {}
        }
        if self.unsatisfied == 0 {
            *self = Self::default();
        }
    }

    /// V f; none where that would be a small difference of large numbers, to be had from the margins themselves.
    pub(super) fn value(&self, sigma: f64) -> Option<f64> {
        let straight = 0.5 * self.weight_straight - sigma * self.mu_straight;
        let bent = 0.5
            * (self.weight_bent - 2.0 * sigma * self.mu_bent + sigma * sigma * self.square_bent);
        (straight + bent >= 1e-3 * self.weight_bent).then_some(straight + bent)
    }

    /// <M, -V ∇f>.
    pub(super) fn at_model(&self, sigma: f64) -> f64 {
        sigma * (self.mu_straight + self.mu_bent) - sigma * sigma * self.square_bent
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.unsatisfied += other.unsatisfied;
        self.weight_straight += other.weight_straight;
        self.mu_straight += other.mu_straight;
        self.weight_bent += other.weight_bent;
        self.mu_bent += other.mu_bent;
        self.square_bent += other.square_bent;
    }
}

pub(super) struct Margins {
    mu: Vec<f64>,
    zone: Vec<u8>,
    weights: Option<Vec<f64>>,
    /// Least μ of the satisfied and greatest of the bent triplets of each block, or beyond.
    least_satisfied: Vec<f64>,
    greatest_bent: Vec<f64>,
    pub(super) sums: Sums,
    /// Touched triplets of the line search under way, increasing, with the coefficients of γ / σ' in their new μ.
    touched: Vec<u32>,
    pushes: Vec<f64>,
    /// Places in `touched` of those that may still change zone, and what all others come to.
    open: Vec<u32>,
    line: Line,
    evaluations: usize,
    untouched: Sums,
    crossers: Vec<(f64, f64)>,
    crossers_to: f64,
}

/// φ' where no zone changes: first + γ second.
#[derive(Clone, Copy, Default)]
struct Line {
    first: f64,
    second: f64,
}

impl Line {
    fn add(&mut self, zone: u8, margin: f64, slope: f64, v: f64) {
        match zone {
            STRAIGHT => self.first -= v * slope,
            BENT => {
                self.first -= v * (1.0 - margin) * slope;
                self.second += v * slope * slope;
            }
            _ => {}
        }
    }
}

impl Margins {
    /// All 0, of so many triplets.
    pub(super) fn new(n: usize, weights: Option<Vec<f64>>) -> Self {
        Self {
            mu: vec![0.0; n],
            zone: vec![SATISFIED; n],
            weights,
            least_satisfied: vec![f64::INFINITY; n.div_ceil(BLOCK)],
            greatest_bent: vec![f64::NEG_INFINITY; n.div_ceil(BLOCK)],
            sums: Sums::default(),
            touched: Vec::new(),
            pushes: Vec::new(),
            open: Vec::new(),
            line: Line::default(),
            evaluations: 0,
            untouched: Sums::default(),
            crossers: Vec::new(),
            crossers_to: 0.0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.mu.len()
    }

    pub(super) fn weight(&self, t: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |v| v[t])
    }

    /// One margin.
    pub(super) fn get(&self, t: usize, sigma: f64) -> f64 {
        sigma * self.mu[t]
    }

    /// The margins.
    pub(super) fn iter(&self, sigma: f64) -> impl Iterator<Item = f64> + '_ {
        self.mu.iter().map(move |mu| sigma * mu)
    }

    /// μ of every triplet times `factor`.
    pub(super) fn rescale(&mut self, factor: f64) {
        self.mu.iter_mut().for_each(|mu| *mu *= factor);
    }

    /// Adds to one μ; [`Margins::settle`] has to follow.
    pub(super) fn add(&mut self, t: usize, by: f64) {
        self.mu[t] += by;
    }

    /// f times V, from the margins themselves.
    pub(super) fn value(&self, sigma: f64, zones: Zones) -> f64 {
        let mut sum = 0.0;
        for (t, m) in self.iter(sigma).enumerate() {
            sum += self.weight(t)
                * match zones.of(m) {
                    STRAIGHT => 0.5 - m,
                    BENT => 0.5 * (1.0 - m) * (1.0 - m),
                    _ => 0.0,
                };
        }
        sum
    }

    /// Zones, sums and bounds from μ, at σ = 1.
    pub(super) fn settle(&mut self, zones: Zones) {
        self.sums = Sums::default();
        self.least_satisfied.fill(f64::INFINITY);
        self.greatest_bent.fill(f64::NEG_INFINITY);
        for t in 0..self.mu.len() {
            let (mu, v) = (self.mu[t], self.weight(t));
            self.zone[t] = zones.of(mu);
            self.sums.add(self.zone[t], mu, v);
            self.widen_block(t);
        }
    }

    /// What a triplet adds to every sum.
    pub(super) fn share(&self, t: usize) -> Two {
        share(self.zone[t] & !LISTED, self.mu[t], self.weight(t))
    }

    fn widen_block(&mut self, t: usize) {
        let (block, mu) = (t / BLOCK, self.mu[t]);
        match self.zone[t] {
            SATISFIED => self.least_satisfied[block] = self.least_satisfied[block].min(mu),
            BENT => self.greatest_bent[block] = self.greatest_bent[block].max(mu),
            _ => {}
        }
    }

    /// Begins the list of touched triplets, clearing what an abandoned line search left.
    pub(super) fn begin(&mut self) {
        for t in self.touched.drain(..) {
            self.zone[t as usize] &= !LISTED;
        }
        self.pushes.clear();
        self.untouched = self.sums;
        self.crossers.clear();
        self.crossers_to = 0.0;
    }

    /// Lists a triplet as touched. They come in increasing order.
    pub(super) fn touch(&mut self, t: usize, push: f64) {
        self.untouched
            .remove(self.zone[t], self.mu[t], self.weight(t));
        self.zone[t] |= LISTED;
        self.touched.push(t as u32);
        self.pushes.push(push);
    }

    /// φ'(γ) and φ''(γ) of this part of V f, for a search that has come down to `within`.
    pub(super) fn along(
        &mut self,
        sigma: f64,
        rate: f64,
        gamma: f64,
        within: [f64; 2],
        zones: Zones,
    ) -> (f64, f64) {
        if gamma == 0.0 {
            self.evaluations = 0;
        }
        self.evaluations += 1;
        let (mut first, mut second) = if self.evaluations <= WIDE {
            let all = 0..self.touched.len();
            let mut line = Line::default();
            for k in all {
                let (margin, slope, v) = self.moving(k, sigma, rate);
                line.add(zones.of(margin + gamma * slope), margin, slope, v);
            }
            (line.first + gamma * line.second, line.second)
        } else {
            self.along_open(sigma, rate, gamma, within, zones)
        };
        if rate == 0.0 {
            return (first, second);
        }
        // Untouched: m(γ) = factor m, so slope = rate m. The straight stay straight.
        let factor = 1.0 + rate * gamma;
        let u = &self.untouched;
        first -= rate * sigma * (u.mu_straight + u.mu_bent)
            - rate * factor * sigma * sigma * u.square_bent;
        second += sigma * sigma * u.square_bent;
        // Those that change zone on the way: satisfied ones that fall below 1, or bent ones that rise above.
        if gamma > self.crossers_to {
            self.find_crossers(sigma, rate, 1.5 * gamma);
        }
        for &(m, v) in &self.crossers {
            let moved = factor * m;
            if rate < 0.0 && moved < 1.0 {
                first -= v * (1.0 - moved) * rate * m;
                second += v * m * m;
            } else if rate > 0.0 && moved >= 1.0 {
                first += v * (1.0 - moved) * rate * m;
                second -= v * m * m;
            }
        }
        (first, second)
    }

    /// Margin, dm/dγ and weight of the k-th touched triplet.
    fn moving(&self, k: usize, sigma: f64, rate: f64) -> (f64, f64, f64) {
        let t = self.touched[k] as usize;
        let margin = sigma * self.mu[t];
        (margin, self.pushes[k] + rate * margin, self.weight(t))
    }

    /// The touched part of [`Margins::along`]: once few zones can still change, only those triplets are looked at.
    fn along_open(
        &mut self,
        sigma: f64,
        rate: f64,
        gamma: f64,
        within: [f64; 2],
        zones: Zones,
    ) -> (f64, f64) {
        let mut open = std::mem::take(&mut self.open);
        if self.evaluations == WIDE + 1 {
            self.line = Line::default();
            open.clear();
            open.extend(0..self.touched.len() as u32);
        }
        let (mut decided, mut undecided) = (self.line, Line::default());
        open.retain(|&k| {
            let (margin, slope, v) = self.moving(k as usize, sigma, rate);
            let zone = |gamma: f64| zones.of(margin + gamma * slope);
            // Within one zone φ' is a straight line, and straight lines add up to one.
            let is_open = zone(within[0]) != zone(within[1]);
            if is_open {
                undecided.add(zone(gamma), margin, slope, v);
            } else {
                decided.add(zone(gamma), margin, slope, v);
            }
            is_open
        });
        (self.open, self.line) = (open, decided);
        let second = decided.second + undecided.second;
        (decided.first + undecided.first + gamma * second, second)
    }

    /// Whether a block may hold a satisfied triplet with μ below `joint` (forward) or a bent one at it or above (away).
    fn may_cross(&self, block: usize, rate: f64, joint: f64) -> bool {
        if rate < 0.0 {
            self.least_satisfied[block] < joint
        } else {
            self.greatest_bent[block] >= joint
        }
    }

    fn block(&self, block: usize) -> std::ops::Range<usize> {
        block * BLOCK..((block + 1) * BLOCK).min(self.mu.len())
    }

    /// Lists the untouched triplets that change zone for some γ up to `to`.
    fn find_crossers(&mut self, sigma: f64, rate: f64, to: f64) {
        self.crossers.clear();
        self.crossers_to = to;
        let factor = (1.0 + rate * to).max(0.0);
        let joint = 1.0 / (sigma * factor);
        for block in 0..self.least_satisfied.len() {
            if !self.may_cross(block, rate, joint) {
                continue;
            }
            let zone = if rate < 0.0 { SATISFIED } else { BENT };
            for t in self.block(block) {
                let mu = self.mu[t];
                if self.zone[t] == zone && (if rate < 0.0 { mu < joint } else { mu >= joint }) {
                    self.crossers.push((sigma * mu, self.weight(t)));
                }
            }
        }
    }

    /// Carries the step out. σ is the new one. Tells of every triplet whose share changed and by how much, by
    /// increasing number: first the touched ones, then those that only changed zone.
    pub(super) fn advance(
        &mut self,
        rate: f64,
        gamma: f64,
        sigma: f64,
        zones: Zones,
        mut changed: impl FnMut(usize, Two),
    ) {
        let (touched, pushes) = (
            std::mem::take(&mut self.touched),
            std::mem::take(&mut self.pushes),
        );
        let by = gamma / sigma;
        for (&t, &push) in touched.iter().zip(&pushes) {
            let t = t as usize;
            self.zone[t] &= !LISTED;
            let new = self.mu[t] + by * push;
            self.move_to(t, new, zones.of(sigma * new), &mut changed);
            self.widen_block(t);
        }
        (self.touched, self.pushes) = (touched, pushes);
        self.touched.clear();
        self.pushes.clear();
        if rate == 0.0 {
            return;
        }
        let joint = 1.0 / sigma;
        for block in 0..self.least_satisfied.len() {
            if !self.may_cross(block, rate, joint) {
                continue;
            }
            self.least_satisfied[block] = f64::INFINITY;
            self.greatest_bent[block] = f64::NEG_INFINITY;
            for t in self.block(block) {
                let after = zones.of(sigma * self.mu[t]);
                if after != self.zone[t] {
                    self.move_to(t, self.mu[t], after, &mut changed);
                }
                self.widen_block(t);
            }
        }
    }

    fn move_to(&mut self, t: usize, mu: f64, zone: u8, changed: &mut impl FnMut(usize, Two)) {
        let (before, old, v) = (self.zone[t], self.mu[t], self.weight(t));
        self.mu[t] = mu;
        self.zone[t] = zone;
        self.sums.remove(before, old, v);
        self.sums.add(zone, mu, v);
        let (lost, gained) = (share(before, old, v), share(zone, mu, v));
        let change = [gained[0] - lost[0], gained[1] - lost[1]];
        if change != [0.0; 2] {
            changed(t, change);
        }
    }
}
