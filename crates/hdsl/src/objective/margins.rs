//! Margins of the triplets of one shard, updated incrementally for the hinge losses.
//!
//! A margin is m = b + σ μ. The base margin b is a constant of the triplet, 0 unless there is a base similarity. The
//! *learned margin* σ μ = <A^t, M> has one σ for all triplets. A step rescales all learned margins in O(1) by changing
//! σ, and only *affected* triplets (those with <A^t, B> ≠ 0) get a new μ.
//!
//! A hinge loss has up to three segments: linear (gradient weight v), quadratic (v (1 - m) = v (r - σ μ), where
//! r = 1 - b) and flat (0), see [`Segments`]. A sum of gradient weights times constants is therefore an affine function
//! a - σ c of σ. A triplet contributes (v, 0), (v r, v μ) or (0, 0) to (a, c), depending on its segment. An unaffected
//! triplet changes its segment only if m crosses the breakpoint 1 or 0, that is, if 1/σ crosses μ / r or μ / -b. A scan
//! over 16-bit codes of these two quotients finds the triplets that may do so. Without a base the second one is never
//! crossed, and is not stored.

use super::loss::Segments;
use std::ops::Range;

/// The affine function a - σ c of the common factor σ, as [a, c].
pub(crate) type Affine = [f64; 2];

/// The number of triplets whose codes are scanned together.
const BLOCK: usize = 256;
/// Blocks of affected triplets are searched for breakpoints, or skipped.
const SMALL_BLOCK: usize = 64;
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

/// What a triplet contributes to sums: its segment, μ, r = 1 - b and its weight v.
#[derive(Clone, Copy)]
struct Term {
    segment: u8,
    mu: f64,
    r: f64,
    v: f64,
}

impl Term {
    /// The gradient weight, as a function of σ.
    fn affine_weight(self) -> Affine {
        let Self { segment, mu, r, v } = self;
        let (linear, quadratic) = (
            f64::from(segment == LINEAR),
            f64::from(segment == QUADRATIC),
        );
        [linear * v + quadratic * (v * r), quadratic * (v * mu)]
    }

    /// The gradient weight of this segment for v = 1, at the learned margin m.
    fn slope_at(self, m: f64) -> f64 {
        match self.segment {
            LINEAR => 1.0,
            QUADRATIC => self.r - m,
            _ => 0.0,
        }
    }
}

/// Sums over triplets: their number on the linear and the quadratic segment together; Σ v (r - ½) and Σ v μ on the
/// linear one; Σ v r², Σ v r μ and Σ v μ² on the quadratic one. They determine the objective, <M, ∇f> and the
/// contribution of unaffected triplets to a line search.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums([f64; 6]);

impl Sums {
    fn add(&mut self, Term { segment, mu, r, v }: Term) {
        let linear = f64::from(segment == LINEAR);
        let quadratic = f64::from(segment == QUADRATIC);
        self.merge(&Self([
            linear + quadratic,
            linear * (v * (r - 0.5)),
            linear * (v * mu),
            quadratic * (v * r * r),
            quadratic * (v * r * mu),
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
        let [_, at_zero, mu_linear, constant, mu, square] = self.0;
        let linear = at_zero - sigma * mu_linear;
        let quadratic = 0.5 * (constant - 2.0 * sigma * mu + sigma * sigma * square);
        (linear + quadratic >= 1e-3 * constant).then_some(linear + quadratic)
    }

    /// With the learned margin m = σ μ: Σ v m over the linear segment plus Σ v r m over the quadratic one, and Σ v m²
    /// over the quadratic one. <M, -V ∇f> is their difference.
    pub(crate) fn moments(&self, sigma: f64) -> [f64; 2] {
        let [.., mu_linear, _, mu, square] = self.0;
        [sigma * (mu_linear + mu), sigma * sigma * square]
    }
}

/// A 16-bit code of a number: monotone, and 0 for x <= 0.
fn code(x: f64) -> u16 {
    ((x as f32).to_bits() >> 16) as u16 * u16::from(x > 0.0)
}

/// The 1/σ at which the learned margin σ μ equals `at`. It is not above 0 if there is none.
fn crossing(mu: f64, at: f64) -> f64 {
    if at == 0.0 { 0.0 } else { mu / at }
}

/// The constants of triplets: weights v (without them, all are 1) and base margins b (without them, all are 0).
struct Constants {
    weights: Option<Vec<f64>>,
    base: Option<Vec<f64>>,
}

impl Constants {
    #[inline]
    fn v(&self, t: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |v| v[t])
    }

    #[inline]
    fn b(&self, t: usize) -> f64 {
        self.base.as_ref().map_or(0.0, |b| b[t])
    }

    #[inline]
    fn r(&self, t: usize) -> f64 {
        1.0 - self.b(t)
    }

    #[inline]
    fn term(&self, t: usize, segment: u8, mu: f64) -> Term {
        Term {
            segment,
            mu,
            r: self.r(t),
            v: self.v(t),
        }
    }
}

/// A computation with the gradient weight of each triplet, see [`Margins::with_weights`].
pub(crate) trait UseWeights {
    fn call(self, weight: impl Fn(usize) -> f64);
}

pub(crate) struct Margins {
    segments: Segments,
    sigma: f64,
    mu: Vec<f64>,
    /// The codes of the 1/σ at which m = 1, and of those at which m = 0. No m crosses 0 without a base, and no such
    /// crossing matters without a linear segment: the second list is then empty.
    codes: [Vec<u16>; 2],
    segment: Vec<u8>,
    constants: Constants,
    pub(crate) sums: Sums,
    /// In the current line search, an unaffected learned margin m becomes (1 + rate γ) m.
    rate: f64,
    affected: Affected,
    /// Unaffected triplets that cross a breakpoint for some γ up to `crossings_to`, and their learned margins.
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
    /// The learned margins, and r of each triplet if there is a base.
    margins: Vec<f64>,
    r: Vec<f64>,
    /// The sums over these triplets, before the step.
    sums: Sums,
}

impl Margins {
    /// The margins of `n` triplets at M = 0. [`Margins::settle`] must be called afterwards.
    pub(crate) fn new(
        segments: Segments,
        n: usize,
        weights: Option<Vec<f64>>,
        base: Option<Vec<f64>>,
    ) -> Self {
        let crosses_zero = base.is_some() && segments.has_linear;
        Self {
            segments,
            sigma: 1.0,
            mu: vec![0.0; n],
            codes: [vec![0; n], vec![0; if crosses_zero { n } else { 0 }]],
            segment: vec![FLAT; n],
            constants: Constants { weights, base },
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

    /// A learned margin.
    pub(crate) fn learned(&self, t: usize) -> f64 {
        self.sigma * self.mu[t]
    }

    /// A margin.
    pub(crate) fn get(&self, t: usize) -> f64 {
        self.constants.b(t) + self.learned(t)
    }

    /// Sets M = 0. [`Margins::settle`] must be called afterwards.
    pub(crate) fn clear(&mut self) {
        self.sigma = 1.0;
        self.mu.fill(0.0);
    }

    /// Replaces the weights. [`Margins::settle`] must be called afterwards.
    pub(crate) fn set_weights(&mut self, weights: impl Iterator<Item = f64>) {
        let list = self.constants.weights.get_or_insert_default();
        list.clear();
        list.extend(weights);
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
            let segment = self.segments.of(self.constants.b(t) + mu);
            self.set(t, segment, mu);
            self.sums.add(self.constants.term(t, segment, mu));
        }
    }

    #[inline]
    fn set(&mut self, t: usize, segment: u8, mu: f64) {
        self.mu[t] = mu;
        self.segment[t] = segment;
        self.codes[0][t] = code(match &self.constants.base {
            None => mu,
            Some(b) => crossing(mu, 1.0 - b[t]),
        });
        if let Some(zero) = self.codes[1].get_mut(t) {
            *zero = code(crossing(mu, -self.constants.b(t)));
        }
    }

    /// V f, computed from the margins instead of the sums.
    pub(crate) fn value(&self) -> f64 {
        // On each segment ℓ(m) = w (1 - m) - w² / 2, with w = -ℓ'(m).
        let loss = |t: usize| {
            let (w, r) = (self.slope(t, self.mu[t]), self.constants.r(t));
            w * (r - self.learned(t)) - 0.5 * w * w
        };
        (0..self.len()).map(|t| self.constants.v(t) * loss(t)).sum()
    }

    /// The value of an affine function at the current σ.
    #[inline]
    pub(crate) fn evaluate(&self, sum: Affine) -> f64 {
        sum[0] - self.sigma * sum[1]
    }

    /// The gradient weight w_t = -v_t ℓ'(m_t) of a triplet, as a function of σ.
    #[inline]
    pub(crate) fn affine_weight(&self, t: usize) -> Affine {
        let segment = self.segment[t] & !LISTED;
        self.constants.term(t, segment, self.mu[t]).affine_weight()
    }

    /// -ℓ'(m_t) of a triplet with this μ.
    #[inline]
    fn slope(&self, t: usize, mu: f64) -> f64 {
        (self.constants.r(t) - self.sigma * mu)
            .max(0.0)
            .min(self.segments.max_weight())
    }

    /// The gradient weight of a triplet.
    #[inline]
    pub(crate) fn gradient_weight(&self, t: usize) -> f64 {
        self.constants.v(t) * self.slope(t, self.mu[t])
    }

    /// The gradient weights of a range of triplets.
    #[inline]
    pub(crate) fn gradient_weights(&self, range: Range<usize>) -> impl Iterator<Item = f64> + '_ {
        let mus = self.mu[range.clone()].iter();
        range
            .zip(mus)
            .map(|(t, &mu)| self.constants.v(t) * self.slope(t, mu))
    }

    /// Calls `user` with a function that returns the gradient weight of a triplet. Without weights and base, which is the
    /// common case, the function is compiled without them.
    #[inline]
    pub(crate) fn with_weights(&self, user: impl UseWeights) {
        let Constants { weights, base } = &self.constants;
        let (mu, sigma) = (&self.mu[..], self.sigma);
        let most = self.segments.max_weight();
        match (weights, base) {
            (None, None) => user.call(|t| (1.0 - sigma * mu[t]).max(0.0).min(most)),
            _ => user.call(|t| self.gradient_weight(t)),
        }
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

    /// The number of triplets that the current direction affects.
    #[cfg(feature = "bench")]
    pub(crate) fn n_affected(&self) -> usize {
        self.affected.len
    }

    /// Reads the margins of the triplets that were listed since the last call.
    pub(crate) fn read_listed(&mut self) {
        let Self {
            sigma,
            segment,
            constants,
            affected,
            ..
        } = self;
        let listed = affected.triplets[affected.margins.len()..affected.len].iter();
        for t in listed.map(|&t| t as usize) {
            let term = constants.term(t, segment[t], self.mu[t]);
            affected.sums.add(term);
            segment[t] |= LISTED;
            affected.margins.push(*sigma * term.mu);
            if constants.base.is_some() {
                affected.r.push(term.r);
            }
        }
    }

    /// φ'(γ) and φ''(γ), where φ is V f along the direction over the triplets of this shard.
    pub(crate) fn along(&mut self, gamma: f64) -> (f64, f64) {
        let max_weight = self.segments.max_weight();
        let (affected, rate) = (&self.affected, self.rate);
        let Constants { weights, base } = &self.constants;
        let along = |line: Line| match (weights, base) {
            (None, None) => affected.along(line, |_| 1.0, |_| 1.0),
            (None, Some(_)) => affected.along(line, |_| 1.0, |k| affected.r[k]),
            (Some(v), None) => affected.along(line, |k| v[affected.triplets[k] as usize], |_| 1.0),
            (Some(v), Some(_)) => affected.along(
                line,
                |k| v[affected.triplets[k] as usize],
                |k| affected.r[k],
            ),
        };
        let (mut first, mut second) = along(Line {
            rate,
            gamma,
            max_weight,
        });
        if rate == 0.0 {
            return (first, second);
        }
        // Unaffected triplets, as if all stayed on their segments. The learned margin is m(γ) = factor m, and its
        // derivative is rate m.
        let factor = 1.0 + rate * gamma;
        let [sum, square] = self.sums.without(&affected.sums).moments(self.sigma);
        first -= rate * sum - rate * factor * square;
        second += square;
        // A triplet that changes its segment has another gradient weight than the sums assume.
        if gamma > self.crossings_to {
            self.find_crossings(1.5 * gamma);
        }
        for &(t, m) in &self.crossings {
            let t = t as usize;
            let term = self.constants.term(t, self.segment[t], self.mu[t]);
            let moved = factor * m;
            let w = (term.r - moved).max(0.0).min(max_weight);
            first -= term.v * (w - term.slope_at(moved)) * rate * m;
            let is_quadratic = term.r - moved > 0.0 && term.r - moved <= max_weight;
            let change = f64::from(is_quadratic) - f64::from(term.segment == QUADRATIC);
            second += term.v * m * m * change;
        }
        (first, second)
    }

    /// The breakpoints of φ' for γ in `low..high`, as (γ, change of φ''), relative to [`Margins::along`] at `low`. `None` if
    /// there are more than `most`.
    pub(crate) fn breakpoints(
        &mut self,
        low: f64,
        high: f64,
        most: usize,
    ) -> Option<Vec<(f64, f64)>> {
        if self.rate != 0.0 && high > self.crossings_to {
            self.find_crossings(high);
        }
        let (affected, rate) = (&self.affected, self.rate);
        let max_weight = self.segments.max_weight();
        let add = |found: &mut Vec<(f64, f64)>, t: u32, m: f64, slope: f64, is_crossing: bool| {
            if slope == 0.0 {
                return;
            }
            // The gradient weight r - (m + γ slope) is between 0 and its maximum, the quadratic segment, for γ between
            // these two.
            let r = self.constants.r(t as usize);
            let [a, b] = [(r - m) / slope, (r - max_weight - m) / slope];
            let (from, to) = (a.min(b), a.max(b));
            let weight = r - (m + low * slope);
            // As `along` counts it; the two differ if a breakpoint is at `low` itself.
            let was_quadratic = match is_crossing {
                false => weight > 0.0 && weight < max_weight,
                true => weight > 0.0 && weight <= max_weight,
            };
            let is_quadratic = from <= low && low < to;
            let curvature = self.constants.v(t as usize) * slope * slope;
            if is_quadratic != was_quadratic {
                found.push((low, if is_quadratic { curvature } else { -curvature }));
            }
            if from > low && from < high {
                found.push((from, curvature));
            }
            if to > low && to < high {
                found.push((to, -curvature));
            }
        };
        // Most triplets stay on their segment between `low` and `high`. Blocks of such triplets are skipped.
        let near = |r: f64, m: f64, slope: f64| {
            let [at_low, at_high] = [r - (m + low * slope), r - (m + high * slope)];
            let slack = 1e-9 * (r.abs() + m.abs() + high * slope.abs());
            let (least, largest) = (at_low.min(at_high) - slack, at_low.max(at_high) + slack);
            ((least <= 0.0) & (largest >= 0.0)) | ((least <= max_weight) & (largest >= max_weight))
        };
        let mut found = Vec::new();
        for start in (0..affected.len).step_by(SMALL_BLOCK) {
            let block = start..(start + SMALL_BLOCK).min(affected.len);
            let margins = affected.margins[block.clone()].iter();
            let atom_margins = affected.atom_margins[block.clone()].iter();
            let lines = margins.zip(atom_margins).map(|(&m, &b)| (m, b + rate * m));
            // A fold without an early exit can use SIMD instructions.
            let any = match affected.r.get(block.clone()) {
                None => lines.fold(false, |any, (m, slope)| any | near(1.0, m, slope)),
                Some(r) => {
                    (lines.zip(r)).fold(false, |any, ((m, slope), &r)| any | near(r, m, slope))
                }
            };
            if !any {
                continue;
            }
            for k in block {
                let (t, m) = (affected.triplets[k], affected.margins[k]);
                add(&mut found, t, m, affected.atom_margins[k] + rate * m, false);
            }
            if found.len() > most {
                return None;
            }
        }
        if rate != 0.0 {
            for &(t, m) in &self.crossings {
                add(&mut found, t, m, rate * m, true);
            }
        }
        (found.len() <= most).then_some(found)
    }

    /// Lists the unaffected triplets that cross a breakpoint for some γ up to `to`: those that cross it at a 1/σ between
    /// its present value and the one after the step.
    fn find_crossings(&mut self, to: f64) {
        self.crossings.clear();
        self.crossings_to = to;
        // The factors 1 ± 1e-9 allow for rounding errors here and in the step.
        let now = (1.0 + 1e-9 * self.rate) / self.sigma;
        let then = (1.0 - 1e-9 * self.rate) / (self.sigma * (1.0 + self.rate * to).max(0.0));
        let range = now.min(then)..now.max(then);
        let (least, most) = (code(range.start), code(range.end));
        let within = |&code: &u16| code.wrapping_sub(least) <= most - least;
        let [codes, zero_codes] = &self.codes;
        for (block, codes) in codes.chunks(BLOCK).enumerate() {
            let start = block * BLOCK;
            let zero_codes = zero_codes.get(start..start + codes.len()).unwrap_or(&[]);
            // A fold without an early exit can use SIMD instructions.
            let any = |codes: &[u16]| codes.iter().fold(false, |any, code| any | within(code));
            if !(any(codes) | any(zero_codes)) {
                continue;
            }
            for (k, code) in codes.iter().enumerate() {
                let t = start + k;
                if (within(code) || zero_codes.get(k).is_some_and(within))
                    && self.segment[t] & LISTED == 0
                    && self.crosses(t, &range)
                {
                    self.crossings.push((t as u32, self.sigma * self.mu[t]));
                }
            }
        }
    }

    /// Whether the margin of an unaffected triplet crosses a breakpoint at a 1/σ in this range.
    fn crosses(&self, t: usize, range: &Range<f64>) -> bool {
        let (mu, b) = (self.mu[t], self.constants.b(t));
        range.contains(&crossing(mu, 1.0 - b))
            || (self.segments.has_linear && range.contains(&crossing(mu, -b)))
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
                lost.add(self.constants.term(t, self.segment[t], self.mu[t]));
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
        let less = self.constants.term(t, self.segment[t], self.mu[t]);
        let segment = self.segments.of(self.constants.b(t) + self.sigma * mu);
        let more = Term {
            segment,
            mu,
            ..less
        };
        self.set(t, segment, mu);
        gained.add(more);
        let (less, more) = (less.affine_weight(), more.affine_weight());
        let change = [more[0] - less[0], more[1] - less[1]];
        if change != [0.0; 2] {
            changed(t, change);
        }
    }
}

/// A point of a line search: a learned margin m of an unaffected triplet is (1 + rate γ) m there.
#[derive(Clone, Copy)]
struct Line {
    rate: f64,
    gamma: f64,
    max_weight: f64,
}

impl Affected {
    fn clear(&mut self) {
        self.len = 0;
        self.margins.clear();
        self.r.clear();
        self.sums = Sums::default();
    }

    /// φ'(γ) and φ''(γ) of these triplets, given v and r of each.
    #[inline]
    fn along(
        &self,
        Line {
            rate,
            gamma,
            max_weight,
        }: Line,
        v: impl Fn(usize) -> f64,
        r: impl Fn(usize) -> f64,
    ) -> (f64, f64) {
        let (mut first, mut second) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |lane: usize, k: usize, margin: f64, atom_margin: f64| {
            let slope = atom_margin + rate * margin;
            let moved = margin + gamma * slope;
            let w = (r(k) - moved).max(0.0).min(max_weight);
            let quadratic = if w > 0.0 && w < max_weight {
                slope
            } else {
                0.0
            };
            let v = v(k);
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
