//! Margins of the triplets of one shard, updated incrementally for the hinge losses.
//!
//! A margin is σ μ with one σ for all triplets. A step rescales all margins in O(1) by changing σ, and only *affected*
//! triplets (those with <A^t, B> ≠ 0) get a new μ. A hinge loss has up to three segments: linear (gradient weight v),
//! quadratic (v (1 - m)) and flat (0), see [`Segments`]. A sum of gradient weights times constants is therefore an
//! affine function a - σ b of σ. A triplet contributes (v, 0), (v, v μ) or (0, 0) to (a, b), depending on its segment.
//! An unaffected triplet changes its segment only if σ μ crosses the breakpoint 1. A scan over 16-bit codes of all μ
//! finds the triplets that may do so.

use super::loss::Segments;
use std::ops::Range;

/// The affine function a - σ b of the common factor σ, as [a, b].
pub(crate) type Affine = [f64; 2];

/// The number of triplets whose codes are scanned together.
const BLOCK: usize = 256;
/// The number of independent partial sums. They allow SIMD instructions, and fix the order of additions.
const LANES: usize = 8;

const LINEAR: u8 = 0;
const QUADRATIC: u8 = 1;
const FLAT: u8 = 2;
/// A bit of the segment, set while a triplet is in the list of affected triplets.
const LISTED: u8 = 4;

impl Segments {
    /// The largest gradient weight, for v = 1.
    fn max_weight(self) -> f64 {
        if self.has_linear { 1.0 } else { f64::INFINITY }
    }

    fn of(self, margin: f64) -> u8 {
        // No branches here and below, because the segment of the next triplet is unpredictable.
        QUADRATIC + u8::from(margin >= 1.0) - u8::from((margin <= 0.0) & self.has_linear)
    }
}

/// The gradient weight of a triplet, as a function of σ.
fn affine_weight(segment: u8, mu: f64, v: f64) -> Affine {
    let (sloped, quadratic) = (f64::from(segment < FLAT), f64::from(segment == QUADRATIC));
    [sloped * v, quadratic * (v * mu)]
}

/// Sums over triplets: their number on the linear and the quadratic segment together; Σ v and Σ v μ on the linear one;
/// Σ v, Σ v μ and Σ v μ² on the quadratic one. They determine the objective, <M, ∇f> and the contribution of unaffected
/// triplets to a line search.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums([f64; 6]);

impl Sums {
    fn add(&mut self, segment: u8, mu: f64, v: f64) {
        let linear = f64::from(segment == LINEAR);
        let quadratic = f64::from(segment == QUADRATIC);
        self.merge(&Self([
            linear + quadratic,
            linear * v,
            linear * (v * mu),
            quadratic * v,
            quadratic * (v * mu),
            quadratic * (v * mu * mu),
        ]));
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        (0..6).for_each(|k| self.0[k] += other.0[k]);
    }

    /// The sums without those of some of the triplets.
    fn without(&self, others: &Self) -> Self {
        let rest: [f64; 6] = std::array::from_fn(|k| self.0[k] - others.0[k]);
        // If no triplets are left, the rest are rounding errors.
        Self(if rest[0] == 0.0 { [0.0; 6] } else { rest })
    }

    /// V f. `None` if it would be a small difference of large numbers; it must then be computed from the margins.
    pub(crate) fn value(&self, sigma: f64) -> Option<f64> {
        let [_, v_linear, mu_linear, v, mu, square] = self.0;
        let linear = 0.5 * v_linear - sigma * mu_linear;
        let quadratic = 0.5 * (v - 2.0 * sigma * mu + sigma * sigma * square);
        (linear + quadratic >= 1e-3 * v).then_some(linear + quadratic)
    }

    /// Σ v m over both segments, and Σ v m² over the quadratic one. <M, -V ∇f> is their difference.
    pub(crate) fn moments(&self, sigma: f64) -> [f64; 2] {
        let [.., mu_linear, _, mu, square] = self.0;
        [sigma * (mu_linear + mu), sigma * sigma * square]
    }
}

/// A 16-bit code of μ: monotone in μ, and 0 for μ <= 0.
fn code(mu: f64) -> u16 {
    ((mu as f32).to_bits() >> 16) as u16 * u16::from(mu > 0.0)
}

pub(crate) struct Margins {
    segments: Segments,
    sigma: f64,
    mu: Vec<f64>,
    codes: Vec<u16>,
    segment: Vec<u8>,
    weights: Option<Vec<f64>>,
    pub(crate) sums: Sums,
    /// In the current line search, an unaffected margin m becomes (1 + rate γ) m.
    rate: f64,
    affected: Affected,
    /// Unaffected triplets that cross the breakpoint 1 for some γ up to `crossings_to`, and their margins.
    crossings: Vec<(u32, f64)>,
    crossings_to: f64,
}

/// The affected triplets of the current line search, in increasing order.
#[derive(Default)]
struct Affected {
    /// The number of affected triplets. `triplets` and `atom_margins` may be longer than this.
    len: usize,
    triplets: Vec<u32>,
    /// ± <A^t, B>. The new μ is μ + γ / σ' times this, where σ' is the new σ.
    atom_margins: Vec<f64>,
    margins: Vec<f64>,
    /// The sums over these triplets, before the step.
    sums: Sums,
}

impl Margins {
    /// The margins of `n` triplets, all 0. [`Margins::settle`] must be called afterwards.
    pub(crate) fn new(segments: Segments, n: usize, weights: Option<Vec<f64>>) -> Self {
        Self {
            segments,
            sigma: 1.0,
            mu: vec![0.0; n],
            codes: vec![0; n],
            segment: vec![FLAT; n],
            weights,
            sums: Sums::default(),
            rate: 0.0,
            affected: Affected::default(),
            crossings: Vec::new(),
            crossings_to: 0.0,
        }
    }

    /// The same margins with another σ.
    #[cfg(test)]
    pub(crate) fn with_sigma(mut self, sigma: f64) -> Self {
        self.mu.iter_mut().for_each(|mu| *mu /= sigma);
        Self { sigma, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.mu.len()
    }

    pub(crate) fn sigma(&self) -> f64 {
        self.sigma
    }

    #[inline]
    fn weight(&self, t: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |v| v[t])
    }

    /// One margin.
    pub(crate) fn get(&self, t: usize) -> f64 {
        self.sigma * self.mu[t]
    }

    /// Sets all margins to 0. [`Margins::settle`] must be called afterwards.
    pub(crate) fn clear(&mut self) {
        self.sigma = 1.0;
        self.mu.fill(0.0);
    }

    /// Adds to one margin; σ must be 1. [`Margins::settle`] must be called afterwards.
    pub(crate) fn add(&mut self, t: usize, by: f64) {
        self.mu[t] += by;
    }

    /// Multiplies σ into the margins, and computes segments and sums from them.
    pub(crate) fn settle(&mut self) {
        let sigma = std::mem::replace(&mut self.sigma, 1.0);
        self.sums = Sums::default();
        for t in 0..self.mu.len() {
            let mu = sigma * self.mu[t];
            self.mu[t] = mu;
            self.segment[t] = self.segments.of(mu);
            self.codes[t] = code(mu);
            self.sums.add(self.segment[t], mu, self.weight(t));
        }
    }

    /// V f, computed from the margins instead of the sums.
    pub(crate) fn value(&self) -> f64 {
        // On each segment ℓ(m) = w (1 - m) - w² / 2, with w = -ℓ'(m).
        let loss = |t: usize| {
            let w = self.slope(self.mu[t]);
            w * (1.0 - self.get(t)) - 0.5 * w * w
        };
        (0..self.len()).map(|t| self.weight(t) * loss(t)).sum()
    }

    /// The value of an affine function at the current σ.
    #[inline]
    pub(crate) fn evaluate(&self, sum: Affine) -> f64 {
        sum[0] - self.sigma * sum[1]
    }

    /// The gradient weight w_t = -v_t ℓ'(m_t) of a triplet, as a function of σ.
    #[inline]
    pub(crate) fn affine_weight(&self, t: usize) -> Affine {
        affine_weight(self.segment[t] & !LISTED, self.mu[t], self.weight(t))
    }

    /// -ℓ'(σ μ).
    #[inline]
    fn slope(&self, mu: f64) -> f64 {
        (1.0 - self.sigma * mu)
            .max(0.0)
            .min(self.segments.max_weight())
    }

    /// The gradient weight of a triplet.
    #[inline]
    pub(crate) fn gradient_weight(&self, t: usize) -> f64 {
        self.weight(t) * self.slope(self.mu[t])
    }

    /// The gradient weights of a range of triplets.
    #[inline]
    pub(crate) fn gradient_weights(&self, range: Range<usize>) -> impl Iterator<Item = f64> + '_ {
        let mus = self.mu[range.clone()].iter();
        range
            .zip(mus)
            .map(|(t, &mu)| self.weight(t) * self.slope(mu))
    }

    /// Begins a line search in which an unaffected margin m becomes (1 + rate γ) m.
    pub(crate) fn begin(&mut self, rate: f64) {
        let Affected { len, triplets, .. } = &self.affected;
        for &t in &triplets[..*len] {
            // The last line search was not followed by a step.
            self.segment[t as usize] &= !LISTED;
        }
        self.rate = rate;
        self.affected.clear();
        self.crossings.clear();
        self.crossings_to = 0.0;
    }

    /// Makes room for [`Margins::offer`] to be called for this many triplets.
    pub(crate) fn reserve(&mut self, most: usize) {
        let Affected {
            len,
            triplets,
            atom_margins,
            ..
        } = &mut self.affected;
        if triplets.len() <= *len + most {
            triplets.resize(*len + most + 1, 0);
            atom_margins.resize(*len + most + 1, 0.0);
        }
    }

    /// Lists the triplet as affected if its <A^t, B> differs from 0. Must be called in increasing order of triplets.
    #[inline]
    pub(crate) fn offer(&mut self, t: usize, atom_margin: f64) {
        let affected = &mut self.affected;
        affected.triplets[affected.len] = t as u32;
        affected.atom_margins[affected.len] = atom_margin;
        affected.len += usize::from(atom_margin != 0.0);
    }

    /// Reads the margins of the triplets that were listed since the last call.
    pub(crate) fn read_listed(&mut self) {
        let Affected {
            len,
            triplets,
            margins,
            sums,
            ..
        } = &mut self.affected;
        let listed = triplets[margins.len()..*len].iter();
        margins.extend(listed.map(|&t| {
            let t = t as usize;
            let (mu, segment) = (self.mu[t], &mut self.segment[t]);
            sums.add(*segment, mu, self.weights.as_ref().map_or(1.0, |v| v[t]));
            *segment |= LISTED;
            self.sigma * mu
        }));
    }

    /// φ'(γ) and φ''(γ), where φ is V f along the direction over the triplets of this shard.
    pub(crate) fn along(&mut self, gamma: f64) -> (f64, f64) {
        let max_weight = self.segments.max_weight();
        let Self { affected, rate, .. } = self;
        let (mut first, mut second) = match &self.weights {
            None => affected.along(*rate, gamma, max_weight, |_| 1.0),
            Some(v) => {
                let weight = |k: usize| v[affected.triplets[k] as usize];
                affected.along(*rate, gamma, max_weight, weight)
            }
        };
        let rate = *rate;
        if rate == 0.0 {
            return (first, second);
        }
        // Unaffected triplets: m(γ) = factor m, so m'(γ) = rate m. A triplet on the linear segment stays there.
        let factor = 1.0 + rate * gamma;
        let [sum, square] = self.sums.without(&affected.sums).moments(self.sigma);
        first -= rate * sum - rate * factor * square;
        second += square;
        // Breakpoint crossings: margins on the flat segment that fall below 1, or on the quadratic one that rise to 1.
        if gamma > self.crossings_to {
            self.find_crossings(1.5 * gamma);
        }
        for &(t, m) in &self.crossings {
            let v = self.weight(t as usize);
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

    /// Lists the unaffected triplets that cross the breakpoint m = 1 for some γ up to `to`. As σ changes, the
    /// breakpoint μ = 1 / σ moves. If it rises, triplets on the flat segment with a μ below its new value cross it. If
    /// it falls, triplets on the quadratic segment with a μ at or above its new value do.
    fn find_crossings(&mut self, to: f64) {
        self.crossings.clear();
        self.crossings_to = to;
        // The factors 1 ± 1e-9 allow for rounding errors here and in the step.
        let now = (1.0 + 1e-9 * self.rate) / self.sigma;
        let then = (1.0 - 1e-9 * self.rate) / (self.sigma * (1.0 + self.rate * to).max(0.0));
        let (segment, from, to) = match self.rate < 0.0 {
            true => (FLAT, now, then),
            false => (QUADRATIC, then, now),
        };
        let (least, most) = (code(from), code(to));
        for (block, codes) in self.codes.chunks(BLOCK).enumerate() {
            let within = |&code: &u16| code.wrapping_sub(least) <= most - least;
            // A fold without an early exit can use SIMD instructions.
            if !codes.iter().fold(false, |any, code| any | within(code)) {
                continue;
            }
            for (k, _) in codes.iter().enumerate().filter(|(_, code)| within(code)) {
                let t = block * BLOCK + k;
                if self.segment[t] == segment && (from..to).contains(&self.mu[t]) {
                    self.crossings.push((t as u32, self.get(t)));
                }
            }
        }
    }

    /// Takes a step along the direction of the line search. Calls `changed` for each triplet whose gradient weight has
    /// become another function of σ, with the difference: first for the affected triplets, then for those that only
    /// changed their segment, each in increasing order.
    pub(crate) fn advance(&mut self, gamma: f64, mut changed: impl FnMut(usize, Affine)) {
        if self.rate != 0.0 && gamma > self.crossings_to {
            self.find_crossings(gamma);
        }
        self.sigma *= 1.0 + self.rate * gamma;
        let mut affected = std::mem::take(&mut self.affected);
        let by = gamma / self.sigma;
        let (mut lost, mut gained) = (affected.sums, Sums::default());
        let listed = affected.triplets[..affected.len].iter();
        for (&t, &atom_margin) in listed.zip(&affected.atom_margins) {
            let t = t as usize;
            self.segment[t] &= !LISTED;
            let mu = self.mu[t] + by * atom_margin;
            self.move_to(t, mu, &mut gained, &mut changed);
        }
        affected.clear();
        self.affected = affected;
        let crossings = std::mem::take(&mut self.crossings);
        for t in crossings.iter().map(|&(t, _)| t as usize) {
            if self.segments.of(self.get(t)) != self.segment[t] {
                lost.add(self.segment[t], self.mu[t], self.weight(t));
                self.move_to(t, self.mu[t], &mut gained, &mut changed);
            }
        }
        self.crossings = crossings;
        self.sums = self.sums.without(&lost);
        self.sums.merge(&gained);
    }

    #[inline]
    fn move_to(
        &mut self,
        t: usize,
        mu: f64,
        gained: &mut Sums,
        changed: &mut impl FnMut(usize, Affine),
    ) {
        let v = self.weight(t);
        let less = affine_weight(self.segment[t], self.mu[t], v);
        let segment = self.segments.of(self.sigma * mu);
        self.mu[t] = mu;
        self.segment[t] = segment;
        self.codes[t] = code(mu);
        gained.add(segment, mu, v);
        let more = affine_weight(segment, mu, v);
        let change = [more[0] - less[0], more[1] - less[1]];
        if change != [0.0; 2] {
            changed(t, change);
        }
    }
}

impl Affected {
    fn clear(&mut self) {
        self.len = 0;
        self.margins.clear();
        self.sums = Sums::default();
    }

    /// φ'(γ) and φ''(γ) of these triplets.
    #[inline]
    fn along(
        &self,
        rate: f64,
        gamma: f64,
        max_weight: f64,
        weight: impl Fn(usize) -> f64,
    ) -> (f64, f64) {
        let (mut first, mut second) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |lane: usize, k: usize, margin: f64, atom_margin: f64| {
            let slope = atom_margin + rate * margin;
            let moved = margin + gamma * slope;
            let w = (1.0 - moved).max(0.0).min(max_weight);
            let quadratic = if w > 0.0 && w < max_weight {
                slope
            } else {
                0.0
            };
            let v = weight(k);
            first[lane] -= v * w * slope;
            second[lane] += v * quadratic * quadratic;
        };
        let (margins, last) = self.margins.as_chunks::<LANES>();
        let (atom_margins, _) = self.atom_margins.as_chunks::<LANES>();
        for (chunk, (margins, atom_margins)) in margins.iter().zip(atom_margins).enumerate() {
            for lane in 0..LANES {
                let k = chunk * LANES + lane;
                add(lane, k, margins[lane], atom_margins[lane]);
            }
        }
        let whole = self.margins.len() - last.len();
        for (lane, &margin) in last.iter().enumerate() {
            let k = whole + lane;
            add(lane, k, margin, self.atom_margins[k]);
        }
        (first.iter().sum(), second.iter().sum())
    }
}
