//! The gradient over some triplets by its definition, without any d x d array.
//!
//! With gradient weights w_t = -v_t ℓ'(m_t), let G = Σ_t w_t x_a (x_n - x_f)ᵀ = -V ∇f. Put the w_t on *pairs of rows*:
//! the pair coefficient of {a, n} is the sum of its w_t, less those of the triplets where it is {a, f}. With S the
//! symmetric matrix of pair coefficients, the symmetrized gradient is H = G + Gᵀ = Xᵀ S X, and its half diagonal is
//! D_i = H_ii / 2. An atom B = λ(e_i ± e_j)(e_i ± e_j)ᵀ has <B, G> = λ (D_i + D_j ± H_ij); the factor of λ is its
//! *score*. Mined triplets share pairs, so this is several times less work than summing over triplets.

use super::Problem;
use super::active_features::ActiveFeatures;
use crate::data::{Groups, Overlap};

/// S and D, computed anew for every iterate.
pub(crate) struct PairGradient {
    /// The two rows of each pair, the lower first. Pairs are sorted by lower row.
    pairs: Vec<(u32, u32)>,
    /// The pairs (anchor, near) and (anchor, far) of each triplet.
    of_triplets: Vec<[u32; 2]>,
    /// For each row, the other row and the pair. A row paired with itself is listed twice, since S has twice the
    /// coefficient on its diagonal.
    neighbors: Groups<(u32, u32)>,
    coefficients: Vec<f64>,
    diagonal: Vec<f64>,
    overlap: Overlap,
    /// Σ_t w_t m_t = <M, G>.
    model_gain: f64,
    /// V.
    total_weight: f64,
}

impl PairGradient {
    /// For these triplets, whose gradient weights are still unknown.
    pub(crate) fn new(problem: &Problem<'_>, which: impl Iterator<Item = u32> + Clone) -> Self {
        let n_rows = problem.rows.n_rows();
        let pairs_of = |(k, t): (u32, u32)| {
            let (a, near, far) = problem.triplets.get(t as usize);
            let pair = |other: u32, place: u32| (a.min(other), (a.max(other), place));
            [pair(near, 2 * k), pair(far, 2 * k + 1)]
        };
        let by_lower = Groups::new(n_rows, (0u32..).zip(which.clone()).flat_map(pairs_of));
        let mut of_triplets = vec![[0; 2]; by_lower.items().len() / 2];
        let mut pairs = Vec::new();
        let mut seen = vec![(u32::MAX, 0); n_rows];
        for low in 0..n_rows as u32 {
            for &(high, place) in by_lower.of(low as usize) {
                let known = &mut seen[high as usize];
                if known.0 != low {
                    *known = (low, pairs.len() as u32);
                    pairs.push((low, high));
                }
                of_triplets[place as usize / 2][place as usize % 2] = known.1;
            }
        }
        drop(by_lower);
        let both_ways = (0u32..).zip(&pairs);
        let both_ways = both_ways.flat_map(|(pair, &(p, q))| [(p, (q, pair)), (q, (p, pair))]);
        Self {
            neighbors: Groups::new(n_rows, both_ways),
            coefficients: vec![0.0; pairs.len()],
            diagonal: vec![0.0; problem.rows.n_features()],
            overlap: Overlap::new(problem.rows.longest()),
            model_gain: 0.0,
            total_weight: which.map(|t| problem.triplets.weight(t as usize)).sum(),
            pairs,
            of_triplets,
        }
    }

    /// Computes S and D from the gradient weights and margins of the triplets, in the order they were given in.
    pub(crate) fn set(&mut self, problem: &Problem<'_>, weights: &[f64], margins: &[f64]) {
        self.model_gain = weights.iter().zip(margins).map(|(w, m)| w * m).sum();
        self.coefficients.fill(0.0);
        for (&[near, far], &w) in self.of_triplets.iter().zip(weights) {
            self.coefficients[near as usize] += w;
            self.coefficients[far as usize] -= w;
        }
        self.diagonal.fill(0.0);
        let (rows, mut last) = (&problem.rows, u32::MAX);
        for (&(low, high), &c) in self.pairs.iter().zip(&self.coefficients) {
            if c == 0.0 {
                continue;
            }
            let (own, other) = (rows.row(low as usize), rows.row(high as usize));
            if last != low {
                self.overlap.learn(own.indices());
                last = low;
            }
            for &(p, q) in self.overlap.with(other.indices()) {
                let product = own.values().at(p as usize) * other.values().at(q as usize);
                self.diagonal[own.indices()[p as usize] as usize] += c * product;
            }
        }
    }

    /// D by feature.
    pub(crate) fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// <B, -∇f> of an atom with this score.
    pub(crate) fn gain(&self, problem: &Problem<'_>, score: f64) -> f64 {
        problem.lambda / self.total_weight * score
    }

    /// <M, -∇f>.
    pub(crate) fn model_gain(&self) -> f64 {
        self.model_gain / self.total_weight
    }

    /// Calls `add` with the rows and summands of S X_{:,i}.
    pub(crate) fn multiply(&self, problem: &Problem<'_>, i: u32, mut add: impl FnMut(usize, f64)) {
        let (rows, values) = problem.lists.column(i);
        for (&p, &x) in rows.iter().zip(values) {
            for &(q, pair) in self.neighbors.of(p as usize) {
                let c = self.coefficients[pair as usize];
                if c != 0.0 {
                    add(q as usize, c * x);
                }
            }
        }
    }

    /// Visits every pair of rows with its coefficient, unless that is 0.
    pub(crate) fn each_pair(&self, mut visit: impl FnMut(u32, u32, f64)) {
        for (&(p, q), &c) in self.pairs.iter().zip(&self.coefficients) {
            if c != 0.0 {
                visit(p, q, c);
            }
        }
    }

    /// H_ij of every active atom, by slot.
    pub(crate) fn cross_terms(&self, features: &ActiveFeatures) -> Vec<f64> {
        let mut cross = vec![0.0; features.n_slots()];
        let mut sums = vec![0.0; features.n_features()];
        let mut first = 0;
        for of_row in self.pairs.chunk_by(|a, b| a.0 == b.0) {
            let coefficients = &self.coefficients[first..first + of_row.len()];
            first += of_row.len();
            let own = features.row(of_row[0].0 as usize);
            if own.is_empty() {
                continue;
            }
            sums.fill(0.0);
            for (&(_, high), &c) in of_row.iter().zip(coefficients) {
                if c != 0.0 {
                    for &(feature, x) in features.row(high as usize) {
                        sums[feature as usize] += c * x;
                    }
                }
            }
            for &(feature, x) in own {
                for link in features.links(feature) {
                    cross[link.slot as usize] += x * sums[link.to as usize];
                }
            }
        }
        cross
    }
}
