//! The margins of some triplets, kept up to date for the piecewise quadratic losses.
//!
//! A margin is σ μ with one σ for all, so that a step rescales every margin in O(1) and only *touched* triplets
//! (those with <A^t, B> ≠ 0) get a new μ. The loss has three zones: straight (m <= 0, push v), bent (push v (1 - m))
//! and satisfied (no push). A sum of pushes times something fixed is then (constant part) - σ (linear part), where
//! a triplet gives (v, 0), (v, v μ) or (0, 0) by zone. Zones of untouched triplets change only where σ μ crosses 1;
//! a pass over μ in two bytes each finds where that may be.

use crate::objective::loss::LossKind;
use std::ops::Range;

/// Two numbers that mean first - σ second.
pub(super) type Two = [f64; 2];

/// Triplets whose codes are looked at together.
const BLOCK: usize = 256;
/// Sums that run side by side, so that the processor can add several numbers at a time in an order that is always the
/// same.
const LANES: usize = 8;

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

    /// The largest push, for v = 1.
    fn most(self) -> f64 {
        if self.has_straight {
            1.0
        } else {
            f64::INFINITY
        }
    }

    fn of(self, margin: f64) -> u8 {
        // Without branches, here and in what follows: nobody can guess the zone of the next triplet.
        BENT + u8::from(margin >= 1.0) - u8::from((margin <= 0.0) & self.has_straight)
    }
}

/// What a triplet adds to every sum.
fn share(zone: u8, mu: f64, v: f64) -> Two {
    let (unsatisfied, bent) = (f64::from(zone < SATISFIED), f64::from(zone == BENT));
    [unsatisfied * v, bent * (v * mu)]
}

/// How hard triplets push at one σ.
pub(super) struct Pushes<'a> {
    margins: &'a Margins,
    sigma: f64,
    most: f64,
}

impl Pushes<'_> {
    /// A sum of pushes that was kept as two numbers.
    #[inline]
    pub(super) fn of(&self, sum: Two) -> f64 {
        sum[0] - self.sigma * sum[1]
    }

    /// What a triplet adds to every sum.
    #[inline]
    pub(super) fn share(&self, t: usize) -> Two {
        self.margins.share(t)
    }

    #[inline]
    fn at_mu(&self, mu: f64) -> f64 {
        (1.0 - self.sigma * mu).max(0.0).min(self.most)
    }

    /// Of one triplet.
    #[inline]
    pub(super) fn at(&self, t: usize) -> f64 {
        self.margins.weight(t) * self.at_mu(self.margins.mu[t])
    }

    /// Of a range of triplets.
    #[inline]
    pub(super) fn each(&self, range: Range<usize>) -> impl Iterator<Item = f64> + '_ {
        let mus = self.margins.mu[range.clone()].iter();
        range
            .zip(mus)
            .map(|(t, &mu)| self.margins.weight(t) * self.at_mu(mu))
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
        let (straight, bent) = (f64::from(zone == STRAIGHT), f64::from(zone == BENT));
        self.unsatisfied += usize::from(zone < SATISFIED);
        self.weight_straight += straight * v;
        self.mu_straight += straight * (v * mu);
        self.weight_bent += bent * v;
        self.mu_bent += bent * (v * mu);
        self.square_bent += bent * (v * mu * mu);
    }

    /// Without some triplets and with others.
    fn replace(&mut self, lost: &Self, gained: &Self) {
        self.unsatisfied -= lost.unsatisfied;
        if self.unsatisfied == 0 {
            // What is left is rounding.
            *self = Self::default();
        } else {
            self.weight_straight -= lost.weight_straight;
            self.mu_straight -= lost.mu_straight;
            self.weight_bent -= lost.weight_bent;
            self.mu_bent -= lost.mu_bent;
            self.square_bent -= lost.square_bent;
        }
        self.merge(gained);
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

/// μ in two bytes: never falls where μ rises, and 0 where it is not above 0.
fn code(mu: f64) -> u16 {
    ((mu as f32).to_bits() >> 16) as u16 * u16::from(mu > 0.0)
}

pub(super) struct Margins {
    mu: Vec<f64>,
    codes: Vec<u16>,
    zone: Vec<u8>,
    weights: Option<Vec<f64>>,
    pub(super) sums: Sums,
    touched: Touched,
    /// Σ v m over the unsatisfied of the untouched triplets and Σ v m² over the bent ones.
    untouched: [f64; 2],
    /// Untouched triplets that change zone for some γ up to `crossers_to`.
    crossers: Vec<Crosser>,
    crossers_to: f64,
}

/// Touched triplets of the line search under way, increasing.
#[derive(Default)]
struct Touched {
    triplets: Vec<u32>,
    margins: Vec<f64>,
    /// The coefficients of γ / σ' in their new μ.
    pushes: Vec<f64>,
    /// None where all weights are 1.
    weights: Vec<f64>,
    /// What they add to the sums before the step.
    sums: Sums,
}

/// The touched triplets of one anchor.
#[derive(Default)]
pub(super) struct Found {
    triplets: Vec<u32>,
    pushes: Vec<f64>,
    len: usize,
}

impl Found {
    /// Forgets those of the last anchor, and makes room for so many offers.
    pub(super) fn begin(&mut self, most: usize) {
        if self.triplets.len() <= most {
            self.triplets.resize(most + 1, 0);
            self.pushes.resize(most + 1, 0.0);
        }
        self.len = 0;
    }

    /// Takes the next triplet in, if it is pushed at all.
    #[inline]
    pub(super) fn offer(&mut self, t: usize, push: f64) {
        self.triplets[self.len] = t as u32;
        self.pushes[self.len] = push;
        self.len += usize::from(push != 0.0);
    }
}

struct Crosser {
    triplet: u32,
    margin: f64,
    weight: f64,
}

impl Touched {
    fn clear(&mut self) {
        self.triplets.clear();
        self.margins.clear();
        self.pushes.clear();
        self.weights.clear();
        self.sums = Sums::default();
    }

    /// φ'(γ) and φ''(γ) of these triplets.
    fn along(&self, rate: f64, gamma: f64, zones: Zones) -> (f64, f64) {
        match self.weights.is_empty() {
            true => self.sum_up(rate, gamma, zones, |_| 1.0),
            false => self.sum_up(rate, gamma, zones, |k| self.weights[k]),
        }
    }

    #[inline]
    fn sum_up(
        &self,
        rate: f64,
        gamma: f64,
        zones: Zones,
        weight: impl Fn(usize) -> f64,
    ) -> (f64, f64) {
        let most = zones.most();
        let (mut first, mut second) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |lane: usize, k: usize, margin: f64, push: f64| {
            let slope = push + rate * margin;
            let moved = margin + gamma * slope;
            let falling = (1.0 - moved).max(0.0).min(most);
            let bent = if falling > 0.0 && falling < most {
                slope
            } else {
                0.0
            };
            let v = weight(k);
            first[lane] -= v * falling * slope;
            second[lane] += v * bent * bent;
        };
        let (margins, pushes) = (&self.margins[..], &self.pushes[..]);
        let whole = margins.len() / LANES * LANES;
        let lanes = margins.chunks_exact(LANES).zip(pushes.chunks_exact(LANES));
        for (chunk, (margins, pushes)) in lanes.enumerate() {
            for lane in 0..LANES {
                add(lane, chunk * LANES + lane, margins[lane], pushes[lane]);
            }
        }
        for k in whole..margins.len() {
            add(k - whole, k, margins[k], pushes[k]);
        }
        (first.iter().sum(), second.iter().sum())
    }
}

impl Margins {
    /// All 0, of so many triplets.
    pub(super) fn new(n: usize, weights: Option<Vec<f64>>) -> Self {
        Self {
            mu: vec![0.0; n],
            codes: vec![0; n],
            zone: vec![SATISFIED; n],
            weights,
            sums: Sums::default(),
            touched: Touched::default(),
            untouched: [0.0; 2],
            crossers: Vec::new(),
            crossers_to: 0.0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.mu.len()
    }

    #[inline]
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

    /// Everything from μ, at σ = 1.
    pub(super) fn settle(&mut self, zones: Zones) {
        self.sums = Sums::default();
        for t in 0..self.mu.len() {
            let (mu, v) = (self.mu[t], self.weight(t));
            self.zone[t] = zones.of(mu);
            self.codes[t] = code(mu);
            self.sums.add(self.zone[t], mu, v);
        }
    }

    /// What a triplet adds to every sum.
    pub(super) fn share(&self, t: usize) -> Two {
        share(self.zone[t] & !LISTED, self.mu[t], self.weight(t))
    }

    /// How hard they push.
    pub(super) fn pushes(&self, sigma: f64, zones: Zones) -> Pushes<'_> {
        Pushes {
            margins: self,
            sigma,
            most: zones.most(),
        }
    }

    /// Begins the list of touched triplets, clearing what an abandoned line search left.
    pub(super) fn begin(&mut self) {
        for &t in &self.touched.triplets {
            self.zone[t as usize] &= !LISTED;
        }
        self.touched.clear();
        self.crossers.clear();
        self.crossers_to = 0.0;
    }

    /// Lists triplets as touched. They come in increasing order.
    pub(super) fn touch(&mut self, found: &Found, sigma: f64) {
        let (triplets, pushes) = (&found.triplets[..found.len], &found.pushes[..found.len]);
        let Self {
            touched,
            mu,
            zone,
            weights,
            ..
        } = self;
        let mut list = |t: u32, v: f64| {
            let zone = &mut zone[t as usize];
            touched.sums.add(*zone, mu[t as usize], v);
            *zone |= LISTED;
        };
        match weights {
            None => triplets.iter().for_each(|&t| list(t, 1.0)),
            Some(weights) => triplets.iter().for_each(|&t| list(t, weights[t as usize])),
        }
        touched.triplets.extend_from_slice(triplets);
        touched.pushes.extend_from_slice(pushes);
        let margins = triplets.iter().map(|&t| sigma * mu[t as usize]);
        touched.margins.extend(margins);
        if let Some(weights) = weights {
            let weights = triplets.iter().map(|&t| weights[t as usize]);
            touched.weights.extend(weights);
        }
    }

    /// What the untouched triplets add to a line search: all but the touched ones.
    fn set_untouched(&mut self, sigma: f64) {
        let (all, sums) = (&self.sums, &self.touched.sums);
        // Nothing but rounding would be left.
        self.untouched = if sums.unsatisfied == all.unsatisfied {
            [0.0; 2]
        } else {
            let mu = all.mu_straight - sums.mu_straight + (all.mu_bent - sums.mu_bent);
            let square = all.square_bent - sums.square_bent;
            [sigma * mu, sigma * sigma * square]
        };
    }

    /// φ'(γ) and φ''(γ) of this part of V f. A line search begins at γ = 0.
    pub(super) fn along(&mut self, sigma: f64, rate: f64, gamma: f64, zones: Zones) -> (f64, f64) {
        let (mut first, mut second) = self.touched.along(rate, gamma, zones);
        if rate == 0.0 {
            return (first, second);
        }
        if gamma == 0.0 {
            self.set_untouched(sigma);
        }
        // Untouched: m(γ) = factor m, so slope = rate m. The straight stay straight.
        let factor = 1.0 + rate * gamma;
        let [unsatisfied, square_bent] = self.untouched;
        first -= rate * unsatisfied - rate * factor * square_bent;
        second += square_bent;
        // Those that change zone on the way: satisfied ones that fall below 1, or bent ones that rise above.
        if gamma > self.crossers_to {
            self.find_crossers(sigma, rate, 1.5 * gamma);
        }
        for &Crosser {
            margin: m,
            weight: v,
            ..
        } in &self.crossers
        {
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

    /// Lists the untouched triplets that change zone for some γ up to `to`: satisfied ones with μ below what will be
    /// the joint, or bent ones with μ at it or above.
    fn find_crossers(&mut self, sigma: f64, rate: f64, to: f64) {
        self.crossers.clear();
        self.crossers_to = to;
        // Room for rounding, here and in the step itself.
        let now = (1.0 + 1e-9 * rate) / sigma;
        let then = (1.0 - 1e-9 * rate) / (sigma * (1.0 + rate * to).max(0.0));
        let (zone, from, to) = match rate < 0.0 {
            true => (SATISFIED, now, then),
            false => (BENT, then, now),
        };
        let (least, most) = (code(from), code(to));
        for (block, codes) in self.codes.chunks(BLOCK).enumerate() {
            let within = |&code: &u16| code.wrapping_sub(least) <= most - least;
            // No early end: like this the processor takes many at a time.
            if !codes.iter().fold(false, |any, code| any | within(code)) {
                continue;
            }
            for (k, _) in codes.iter().enumerate().filter(|(_, code)| within(code)) {
                let t = block * BLOCK + k;
                let mu = self.mu[t];
                if self.zone[t] == zone && mu >= from && mu < to {
                    self.crossers.push(Crosser {
                        triplet: t as u32,
                        margin: sigma * mu,
                        weight: self.weights.as_ref().map_or(1.0, |v| v[t]),
                    });
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
        if rate != 0.0 && gamma > self.crossers_to {
            self.find_crossers(sigma / (1.0 + rate * gamma), rate, gamma);
        }
        let touched = std::mem::take(&mut self.touched);
        let by = gamma / sigma;
        let (mut lost, mut gained) = (touched.sums, Sums::default());
        for (&t, &push) in touched.triplets.iter().zip(&touched.pushes) {
            let t = t as usize;
            self.zone[t] &= !LISTED;
            let new = self.mu[t] + by * push;
            let zone = zones.of(sigma * new);
            self.move_to(t, new, zone, &mut gained, &mut changed);
        }
        self.touched = touched;
        self.touched.clear();
        let crossers = std::mem::take(&mut self.crossers);
        for &Crosser { triplet, .. } in &crossers {
            let t = triplet as usize;
            let after = zones.of(sigma * self.mu[t]);
            if after != self.zone[t] {
                lost.add(self.zone[t], self.mu[t], self.weight(t));
                self.move_to(t, self.mu[t], after, &mut gained, &mut changed);
            }
        }
        self.crossers = crossers;
        self.sums.replace(&lost, &gained);
    }

    #[inline]
    fn move_to(
        &mut self,
        t: usize,
        mu: f64,
        zone: u8,
        gained: &mut Sums,
        changed: &mut impl FnMut(usize, Two),
    ) {
        let (before, old, v) = (self.zone[t], self.mu[t], self.weight(t));
        self.mu[t] = mu;
        self.zone[t] = zone;
        self.codes[t] = code(mu);
        gained.add(zone, mu, v);
        let (less, more) = (share(before, old, v), share(zone, mu, v));
        let change = [more[0] - less[0], more[1] - less[1]];
        if change != [0.0; 2] {
            changed(t, change);
        }
    }
}
