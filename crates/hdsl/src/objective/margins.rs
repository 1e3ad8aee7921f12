//! Margins of the triplets of one shard, updated incrementally for the hinges.
//!
//! A margin is σ μ with one σ for all triplets, so that a step rescales every margin in O(1), and only *affected*
//! triplets (those with <A^t, B> ≠ 0) get a new μ. A hinge has up to three segments: linear (gradient weight v),
//! quadratic (v (1 - m)) and flat (0), see [`Segments`]. A sum of gradient weights times constants is then affine in σ:
//! a triplet contributes (v, 0), (v, v μ) or (0, 0) by segment. An unaffected triplet changes its segment only where
//! σ μ crosses the breakpoint 1; a scan over μ in two bytes each finds the candidates.

use super::loss::Segments;
use std::ops::Range;

/// The affine function a - σ b of the common factor σ, as [a, b].
pub(crate) type Affine = [f64; 2];

/// Triplets whose codes are scanned together.
const BLOCK: usize = 256;
/// Independent partial sums, so that the processor can add several numbers at a time in an order that is always the
/// same.
const LANES: usize = 8;

const LINEAR: u8 = 0;
const QUADRATIC: u8 = 1;
const FLAT: u8 = 2;
/// Set while a triplet is on the list of affected ones.
const LISTED: u8 = 4;

impl Segments {
    /// The largest gradient weight, for v = 1.
    fn max_weight(self) -> f64 {
        if self.has_linear { 1.0 } else { f64::INFINITY }
    }

    fn of(self, margin: f64) -> u8 {
        // Without branches, here and in what follows: the segment of the next triplet is unpredictable.
        QUADRATIC + u8::from(margin >= 1.0) - u8::from((margin <= 0.0) & self.has_linear)
    }
}

/// The gradient weight of a triplet, as a function of σ.
fn affine_weight(segment: u8, mu: f64, v: f64) -> Affine {
    let (sloped, quadratic) = (f64::from(segment < FLAT), f64::from(segment == QUADRATIC));
    [sloped * v, quadratic * (v * mu)]
}

/// The gradient weights w_t = -v_t ℓ'(m_t) at one σ.
pub(crate) struct GradientWeights<'a> {
    margins: &'a Margins,
    sigma: f64,
    max_weight: f64,
}

impl GradientWeights<'_> {
    /// The value of a sum of gradient weights.
    #[inline]
    pub(crate) fn value(&self, sum: Affine) -> f64 {
        sum[0] - self.sigma * sum[1]
    }

    /// The weight of a triplet as a function of σ.
    #[inline]
    pub(crate) fn affine(&self, t: usize) -> Affine {
        self.margins.affine_weight(t)
    }

    #[inline]
    fn at_mu(&self, mu: f64) -> f64 {
        (1.0 - self.sigma * mu).max(0.0).min(self.max_weight)
    }

    /// The weight of one triplet.
    #[inline]
    pub(crate) fn get(&self, t: usize) -> f64 {
        self.margins.weight(t) * self.at_mu(self.margins.mu[t])
    }

    /// The weights of a range of triplets.
    #[inline]
    pub(crate) fn range(&self, range: Range<usize>) -> impl Iterator<Item = f64> + '_ {
        let mus = self.margins.mu[range.clone()].iter();
        range
            .zip(mus)
            .map(|(t, &mu)| self.margins.weight(t) * self.at_mu(mu))
    }
}

/// Sums over triplets by segment: enough for the objective, <M, ∇f> and the unaffected part of a line search.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    /// Triplets on the linear or the quadratic segment.
    sloped: usize,
    /// Σ v and Σ v μ over the linear segment.
    linear: [f64; 2],
    /// Σ v, Σ v μ and Σ v μ² over the quadratic segment.
    quadratic: [f64; 3],
}

impl Sums {
    fn add(&mut self, segment: u8, mu: f64, v: f64) {
        let (linear, quadratic) = (
            f64::from(segment == LINEAR),
            f64::from(segment == QUADRATIC),
        );
        self.sloped += usize::from(segment < FLAT);
        self.linear[0] += linear * v;
        self.linear[1] += linear * (v * mu);
        self.quadratic[0] += quadratic * v;
        self.quadratic[1] += quadratic * (v * mu);
        self.quadratic[2] += quadratic * (v * mu * mu);
    }

    /// Without some triplets and with others.
    fn replace(&mut self, lost: &Self, gained: &Self) {
        self.sloped -= lost.sloped;
        if self.sloped == 0 {
            // What is left is rounding.
            *self = Self::default();
        } else {
            (0..2).for_each(|k| self.linear[k] -= lost.linear[k]);
            (0..3).for_each(|k| self.quadratic[k] -= lost.quadratic[k]);
        }
        self.merge(gained);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sloped += other.sloped;
        (0..2).for_each(|k| self.linear[k] += other.linear[k]);
        (0..3).for_each(|k| self.quadratic[k] += other.quadratic[k]);
    }

    /// V f; none where it would be a small difference of large numbers, and has to be computed from the margins.
    pub(crate) fn value(&self, sigma: f64) -> Option<f64> {
        let [v_linear, mu_linear] = self.linear;
        let [v, mu, square] = self.quadratic;
        let linear = 0.5 * v_linear - sigma * mu_linear;
        let quadratic = 0.5 * (v - 2.0 * sigma * mu + sigma * sigma * square);
        (linear + quadratic >= 1e-3 * v).then_some(linear + quadratic)
    }

    /// <M, -V ∇f>.
    pub(crate) fn model_gain(&self, sigma: f64) -> f64 {
        sigma * (self.linear[1] + self.quadratic[1]) - sigma * sigma * self.quadratic[2]
    }
}

/// μ in two bytes: monotone in μ, and 0 where μ is not above 0.
fn code(mu: f64) -> u16 {
    ((mu as f32).to_bits() >> 16) as u16 * u16::from(mu > 0.0)
}

pub(crate) struct Margins {
    mu: Vec<f64>,
    codes: Vec<u16>,
    segment: Vec<u8>,
    weights: Option<Vec<f64>>,
    pub(crate) sums: Sums,
    affected: Affected,
    /// Over the unaffected triplets, Σ v m on the linear and quadratic segments and Σ v m² on the quadratic one.
    unaffected: [f64; 2],
    /// Unaffected triplets that cross the breakpoint for some γ up to `crossings_to`.
    crossings: Vec<Crossing>,
    crossings_to: f64,
}

/// Affected triplets of the current line search, increasing.
#[derive(Default)]
struct Affected {
    triplets: Vec<u32>,
    margins: Vec<f64>,
    /// ± <A^t, B>, the coefficients of γ / σ' in the new μ.
    atom_margins: Vec<f64>,
    /// Empty where all weights are 1.
    weights: Vec<f64>,
    /// Their part of the sums before the step.
    sums: Sums,
}

/// The affected triplets of one anchor.
#[derive(Default)]
pub(crate) struct Found {
    triplets: Vec<u32>,
    atom_margins: Vec<f64>,
    len: usize,
}

impl Found {
    /// Starts an empty list with room for this many triplets.
    pub(crate) fn begin(&mut self, most: usize) {
        if self.triplets.len() <= most {
            self.triplets.resize(most + 1, 0);
            self.atom_margins.resize(most + 1, 0.0);
        }
        self.len = 0;
    }

    /// Lists the triplet if its <A^t, B> differs from 0.
    #[inline]
    pub(crate) fn offer(&mut self, t: usize, atom_margin: f64) {
        self.triplets[self.len] = t as u32;
        self.atom_margins[self.len] = atom_margin;
        self.len += usize::from(atom_margin != 0.0);
    }
}

struct Crossing {
    triplet: u32,
    margin: f64,
    weight: f64,
}

impl Affected {
    fn clear(&mut self) {
        self.triplets.clear();
        self.margins.clear();
        self.atom_margins.clear();
        self.weights.clear();
        self.sums = Sums::default();
    }

    /// φ'(γ) and φ''(γ) of these triplets.
    fn along(&self, rate: f64, gamma: f64, segments: Segments) -> (f64, f64) {
        match self.weights.is_empty() {
            true => self.sum_up(rate, gamma, segments, |_| 1.0),
            false => self.sum_up(rate, gamma, segments, |k| self.weights[k]),
        }
    }

    #[inline]
    fn sum_up(
        &self,
        rate: f64,
        gamma: f64,
        segments: Segments,
        weight: impl Fn(usize) -> f64,
    ) -> (f64, f64) {
        let max_weight = segments.max_weight();
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
        let (margins, last_margins) = self.margins.as_chunks::<LANES>();
        let (atom_margins, last_atom_margins) = self.atom_margins.as_chunks::<LANES>();
        for (chunk, (margins, atom_margins)) in margins.iter().zip(atom_margins).enumerate() {
            for lane in 0..LANES {
                let k = chunk * LANES + lane;
                add(lane, k, margins[lane], atom_margins[lane]);
            }
        }
        let whole = self.margins.len() - last_margins.len();
        for (lane, (&margin, &atom_margin)) in
            last_margins.iter().zip(last_atom_margins).enumerate()
        {
            add(lane, whole + lane, margin, atom_margin);
        }
        (first.iter().sum(), second.iter().sum())
    }
}

impl Margins {
    /// All 0, for `n` triplets.
    pub(crate) fn new(n: usize, weights: Option<Vec<f64>>) -> Self {
        Self {
            mu: vec![0.0; n],
            codes: vec![0; n],
            segment: vec![FLAT; n],
            weights,
            sums: Sums::default(),
            affected: Affected::default(),
            unaffected: [0.0; 2],
            crossings: Vec::new(),
            crossings_to: 0.0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.mu.len()
    }

    #[inline]
    pub(crate) fn weight(&self, t: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |v| v[t])
    }

    /// One margin.
    pub(crate) fn get(&self, t: usize, sigma: f64) -> f64 {
        sigma * self.mu[t]
    }

    /// The margins.
    pub(crate) fn iter(&self, sigma: f64) -> impl Iterator<Item = f64> + '_ {
        self.mu.iter().map(move |mu| sigma * mu)
    }

    /// μ of every triplet times `factor`.
    pub(crate) fn rescale(&mut self, factor: f64) {
        self.mu.iter_mut().for_each(|mu| *mu *= factor);
    }

    /// Adds to one μ; [`Margins::settle`] has to follow.
    pub(crate) fn add(&mut self, t: usize, by: f64) {
        self.mu[t] += by;
    }

    /// V f, from the margins themselves.
    pub(crate) fn value(&self, sigma: f64, segments: Segments) -> f64 {
        let loss = |m: f64| match segments.of(m) {
            LINEAR => 0.5 - m,
            QUADRATIC => 0.5 * (1.0 - m) * (1.0 - m),
            _ => 0.0,
        };
        let margins = self.iter(sigma).enumerate();
        margins.map(|(t, m)| self.weight(t) * loss(m)).sum()
    }

    /// Computes segments and sums from μ, at σ = 1.
    pub(crate) fn settle(&mut self, segments: Segments) {
        self.sums = Sums::default();
        for t in 0..self.mu.len() {
            let (mu, v) = (self.mu[t], self.weight(t));
            self.segment[t] = segments.of(mu);
            self.codes[t] = code(mu);
            self.sums.add(self.segment[t], mu, v);
        }
    }

    /// The gradient weight of a triplet, as a function of σ.
    pub(crate) fn affine_weight(&self, t: usize) -> Affine {
        affine_weight(self.segment[t] & !LISTED, self.mu[t], self.weight(t))
    }

    /// The gradient weights at this σ.
    pub(crate) fn gradient_weights(&self, sigma: f64, segments: Segments) -> GradientWeights<'_> {
        GradientWeights {
            margins: self,
            sigma,
            max_weight: segments.max_weight(),
        }
    }

    /// Starts a list of affected triplets, and clears what an abandoned line search left.
    pub(crate) fn begin(&mut self) {
        for &t in &self.affected.triplets {
            self.segment[t as usize] &= !LISTED;
        }
        self.affected.clear();
        self.crossings.clear();
        self.crossings_to = 0.0;
    }

    /// Lists triplets as affected. They come in increasing order.
    pub(crate) fn list(&mut self, found: &Found, sigma: f64) {
        let triplets = &found.triplets[..found.len];
        let Self {
            affected,
            mu,
            segment,
            weights,
            ..
        } = self;
        let mut list = |t: u32, v: f64| {
            let segment = &mut segment[t as usize];
            affected.sums.add(*segment, mu[t as usize], v);
            *segment |= LISTED;
        };
        match weights {
            None => triplets.iter().for_each(|&t| list(t, 1.0)),
            Some(weights) => triplets.iter().for_each(|&t| list(t, weights[t as usize])),
        }
        affected.triplets.extend_from_slice(triplets);
        let atom_margins = &found.atom_margins[..found.len];
        affected.atom_margins.extend_from_slice(atom_margins);
        let margins = triplets.iter().map(|&t| sigma * mu[t as usize]);
        affected.margins.extend(margins);
        if let Some(weights) = weights {
            let weights = triplets.iter().map(|&t| weights[t as usize]);
            affected.weights.extend(weights);
        }
    }

    /// The part of the unaffected triplets in a line search: all sums without those of the affected ones.
    fn set_unaffected(&mut self, sigma: f64) {
        let (all, affected) = (&self.sums, &self.affected.sums);
        // Nothing but rounding would be left.
        self.unaffected = if affected.sloped == all.sloped {
            [0.0; 2]
        } else {
            let mu =
                all.linear[1] - affected.linear[1] + (all.quadratic[1] - affected.quadratic[1]);
            let square = all.quadratic[2] - affected.quadratic[2];
            [sigma * mu, sigma * sigma * square]
        };
    }

    /// φ'(γ) and φ''(γ) of this part of V f. A line search begins at γ = 0.
    pub(crate) fn along(
        &mut self,
        sigma: f64,
        rate: f64,
        gamma: f64,
        segments: Segments,
    ) -> (f64, f64) {
        let (mut first, mut second) = self.affected.along(rate, gamma, segments);
        if rate == 0.0 {
            return (first, second);
        }
        if gamma == 0.0 {
            self.set_unaffected(sigma);
        }
        // Unaffected: m(γ) = factor m, so slope = rate m. What is on the linear segment stays there.
        let factor = 1.0 + rate * gamma;
        let [sum, square] = self.unaffected;
        first -= rate * sum - rate * factor * square;
        second += square;
        // Breakpoint crossings: margins on the flat segment that fall below 1, or quadratic ones that rise above.
        if gamma > self.crossings_to {
            self.find_crossings(sigma, rate, 1.5 * gamma);
        }
        for &Crossing {
            margin: m,
            weight: v,
            ..
        } in &self.crossings
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

    /// Lists the unaffected triplets that cross the breakpoint for some γ up to `to`: those on the flat segment with μ
    /// below what will be the breakpoint, or those on the quadratic one with μ at it or above.
    fn find_crossings(&mut self, sigma: f64, rate: f64, to: f64) {
        self.crossings.clear();
        self.crossings_to = to;
        // Room for rounding, here and in the step itself.
        let now = (1.0 + 1e-9 * rate) / sigma;
        let then = (1.0 - 1e-9 * rate) / (sigma * (1.0 + rate * to).max(0.0));
        let (segment, from, to) = match rate < 0.0 {
            true => (FLAT, now, then),
            false => (QUADRATIC, then, now),
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
                if self.segment[t] == segment && mu >= from && mu < to {
                    self.crossings.push(Crossing {
                        triplet: t as u32,
                        margin: sigma * mu,
                        weight: self.weight(t),
                    });
                }
            }
        }
    }

    /// Takes the step. σ is the new one. Reports each triplet whose gradient weight changed as a function of σ, and by how
    /// much, by increasing number: first the affected ones, then those that only changed their segment.
    pub(crate) fn advance(
        &mut self,
        rate: f64,
        gamma: f64,
        sigma: f64,
        segments: Segments,
        mut changed: impl FnMut(usize, Affine),
    ) {
        if rate != 0.0 && gamma > self.crossings_to {
            self.find_crossings(sigma / (1.0 + rate * gamma), rate, gamma);
        }
        let affected = std::mem::take(&mut self.affected);
        let by = gamma / sigma;
        let (mut lost, mut gained) = (affected.sums, Sums::default());
        for (&t, &atom_margin) in affected.triplets.iter().zip(&affected.atom_margins) {
            let t = t as usize;
            self.segment[t] &= !LISTED;
            let new = self.mu[t] + by * atom_margin;
            let segment = segments.of(sigma * new);
            self.move_to(t, new, segment, &mut gained, &mut changed);
        }
        self.affected = affected;
        self.affected.clear();
        let crossings = std::mem::take(&mut self.crossings);
        for &Crossing { triplet, .. } in &crossings {
            let t = triplet as usize;
            let after = segments.of(sigma * self.mu[t]);
            if after != self.segment[t] {
                lost.add(self.segment[t], self.mu[t], self.weight(t));
                self.move_to(t, self.mu[t], after, &mut gained, &mut changed);
            }
        }
        self.crossings = crossings;
        self.sums.replace(&lost, &gained);
    }

    #[inline]
    fn move_to(
        &mut self,
        t: usize,
        mu: f64,
        segment: u8,
        gained: &mut Sums,
        changed: &mut impl FnMut(usize, Affine),
    ) {
        let (before, old, v) = (self.segment[t], self.mu[t], self.weight(t));
        self.mu[t] = mu;
        self.segment[t] = segment;
        self.codes[t] = code(mu);
        gained.add(segment, mu, v);
        let (less, more) = (affine_weight(before, old, v), affine_weight(segment, mu, v));
        let change = [more[0] - less[0], more[1] - less[1]];
        if change != [0.0; 2] {
            changed(t, change);
        }
    }
}
