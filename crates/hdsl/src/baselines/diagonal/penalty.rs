//! The regularizer ψ(w) = λΩ(w), and infinity for negative weights if `non_negative` is set: its value, its proximal map,
//! and the lower bound it implies for the optimum.

use super::Diagonal;
use crate::named::named_enum;

named_enum! {
    /// The penalty Ω of the paper's Sec. 4.1.
    pub enum Penalty as "penalty" = "l1" | "l2" {
        /// ‖w‖₁ = Σ |w_i|, which makes most weights exactly 0.
        L1,
        /// ‖w‖₂² = Σ w_i², without a factor of one half, as in the paper.
        L2,
    }
}

impl Diagonal {
    /// λΩ(w) for feasible weights.
    pub(super) fn penalty_value(&self, weights: &[f64]) -> f64 {
        let omega: f64 = match self.penalty {
            Penalty::L1 => weights.iter().map(|w| w.abs()).sum(),
            Penalty::L2 => weights.iter().map(|w| w * w).sum(),
        };
        self.strength * omega
    }

    /// The nearest feasible weight.
    pub(super) fn project(&self, weight: f64) -> f64 {
        match self.non_negative {
            true => weight.max(0.0),
            false => weight,
        }
    }

    /// argmin_u λΩ(u) + (c/2)(u - v)², for one weight.
    pub(super) fn prox(&self, v: f64, c: f64) -> f64 {
        let v = self.project(v);
        match self.penalty {
            // Exactly 0 and never -0 inside the threshold.
            Penalty::L1 if v.abs() <= self.strength / c => 0.0,
            Penalty::L1 => v - (self.strength / c).copysign(v),
            Penalty::L2 => v * (c / (c + 2.0 * self.strength)),
        }
    }

    /// How fast f falls, by its partial derivative `g`, when one weight moves away from 0 in the best feasible direction.
    pub(super) fn descent_rate(&self, g: f64) -> f64 {
        match self.non_negative {
            true => (-g).max(0.0),
            false => g.abs(),
        }
    }

    /// A lower bound of <g, u> + ψ(u) over every u whose objective is at most `objective`. Losses are never negative,
    /// so such a u has ψ(u) <= `objective`; without that, ℓ1 would have no bound wherever |g_i| > λ.
    pub(super) fn lower_bound(&self, gradient: &[f64], objective: f64) -> f64 {
        let rates = gradient.iter().map(|&g| self.descent_rate(g));
        match self.penalty {
            Penalty::L1 => {
                let radius = objective / self.strength;
                -radius * (rates.fold(0.0, f64::max) - self.strength).max(0.0)
            }
            Penalty::L2 => -rates.map(|g| g * g).sum::<f64>() / (4.0 * self.strength),
        }
    }
}
