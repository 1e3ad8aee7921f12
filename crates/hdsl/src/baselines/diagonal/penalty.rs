//! λΩ(w): its value, its proximal map, and what it says about the optimum.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Ω of the paper's Sec. 4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Penalty {
    /// ‖w‖₁ = Σ |w_i|: most weights are exactly 0.
    L1,
    /// ‖w‖₂² = Σ w_i², without a half, as in the paper.
    L2,
}

impl Penalty {
    /// Both.
    pub const ALL: [Penalty; 2] = [Penalty::L1, Penalty::L2];

    /// `l1` or `l2`.
    pub fn name(self) -> &'static str {
        match self {
            Penalty::L1 => "l1",
            Penalty::L2 => "l2",
        }
    }
}

impl fmt::Display for Penalty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Penalty {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        (Penalty::ALL.into_iter())
            .find(|penalty| penalty.name() == name)
            .ok_or_else(|| Error::param("penalty", name, "l1 or l2"))
    }
}

/// ψ(w) = λΩ(w), and infinite where a weight is below 0 if that is not allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regularizer {
    pub(super) penalty: Penalty,
    pub(super) strength: f64,
    pub(super) non_negative: bool,
}

impl Regularizer {
    /// λΩ(w) of weights that are allowed.
    pub(super) fn value(&self, weights: &[f64]) -> f64 {
        let omega: f64 = match self.penalty {
            Penalty::L1 => weights.iter().map(|w| w.abs()).sum(),
            Penalty::L2 => weights.iter().map(|w| w * w).sum(),
        };
        self.strength * omega
    }

    /// argmin_u λΩ(u) + (c/2)(u - v)², for one weight.
    pub(super) fn prox(&self, v: f64, c: f64) -> f64 {
        let v = if self.non_negative { v.max(0.0) } else { v };
        match self.penalty {
            // Exactly 0 and never -0 inside the threshold.
            Penalty::L1 if v.abs() <= self.strength / c => 0.0,
            Penalty::L1 => v - (self.strength / c).copysign(v),
            Penalty::L2 => v * (c / (c + 2.0 * self.strength)),
        }
    }

    /// A bound of <g, u> + ψ(u) from below, for every u whose objective is at most `objective`. Losses are never below 0,
    /// so such a u has ψ(u) <= `objective`; without that, ℓ1 would have no bound wherever |g_i| > λ.
    pub(super) fn least(&self, gradient: &[f64], objective: f64) -> f64 {
        // How much one weight gains by growing.
        let pulls = gradient.iter().map(|&g| match self.non_negative {
            true => (-g).max(0.0),
            false => g.abs(),
        });
        match self.penalty {
            Penalty::L1 => {
                let radius = objective / self.strength;
                -radius * (pulls.fold(0.0, f64::max) - self.strength).max(0.0)
            }
            Penalty::L2 => -pulls.map(|g| g * g).sum::<f64>() / (4.0 * self.strength),
        }
    }
}
