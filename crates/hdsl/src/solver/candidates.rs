//! Lines 3 and 4 of Alg. 1: the forward and the away atom, and the rate of descent <D, -∇f> of their directions.

use super::direction::Direction;
use super::engine::{Engine, Gradient};
use super::lmo::Oracle;
use super::params::StepRule;
use crate::atoms::{ActiveSet, Atom};
use crate::error::Result;
use crate::objective::Scored;
use crate::observer::Gap;
use rand_chacha::ChaCha8Rng;

/// The forward atom B_F and the away atom B_A at an iterate, from which the direction of the next step is built.
pub(super) struct Candidates {
    forward: Atom,
    /// `None` if there is only one active atom.
    away: Option<Atom>,
    /// The rate of descent <D_F, -∇f> of D_F = B_F - M.
    forward_rate: f64,
    /// The rate of descent <D_A, -∇f> of D_A = M - B_A; 0 without an away atom.
    away_rate: f64,
    pub(super) gap: Gap,
}

impl Candidates {
    /// The candidates at the iterate. The gradient must be up to date.
    ///
    /// With mini-batches, the oracle maximizes over very many atoms on one batch, so the score of its atom is biased
    /// upwards. Both rates are therefore estimated on a second, independent batch. If the best active atom has a higher
    /// rate on the second batch than the oracle's atom, it becomes the forward atom.
    pub(super) fn find<'p>(
        engine: &mut impl Engine<'p>,
        oracle: &mut Oracle,
        turn: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self> {
        let gradient = engine.gradient();
        let (best, worst) = best_and_worst_active(gradient);
        let (forward, exact) = oracle.forward(gradient, best, turn, rng)?;
        let away = worst.map(|worst| worst.0);
        let atoms: Vec<Atom> = [best.0, forward.0].into_iter().chain(away).collect();
        if let Some(rates) = engine.reestimated_rates(&atoms, rng)? {
            let chosen = usize::from(rates[1] > rates[0]);
            return Ok(Self {
                forward: atoms[chosen],
                away,
                forward_rate: rates[chosen],
                away_rate: rates.get(2).map_or(0.0, |rate| -rate),
                gap: Gap::Estimate(rates[chosen].max(0.0)),
            });
        }
        let gradient = engine.gradient();
        let model_gain = gradient.gain_of_model();
        let forward_rate = gradient.gain(forward.1) - model_gain;
        Ok(Self {
            forward: forward.0,
            away,
            forward_rate,
            away_rate: worst.map_or(0.0, |worst| model_gain - gradient.gain(worst.1)),
            gap: match exact {
                true => Gap::Certified(forward_rate.max(0.0)),
                false => Gap::Estimate(forward_rate),
            },
        })
    }

    /// The direction and its rate: lines 5 to 9 of Alg. 1 for [`StepRule::Away`], or the direction of another step rule
    /// with the larger of the two rates.
    ///
    /// With exact rates, the away direction is never the steeper one if its atom has more than half of the weight. Rates from
    /// batches or with rounding errors may say so all the same, and the step is then taken forward if the weight is too close
    /// to 1 for an away step.
    pub(super) fn direction(&self, rule: StepRule, active: &ActiveSet) -> (Direction, f64) {
        let forward = Direction::Forward(self.forward);
        let rate = self.forward_rate.max(self.away_rate);
        let Some(away) = self.away else {
            return (forward, rate);
        };
        match rule {
            StepRule::Away if self.away_rate > self.forward_rate => match active.can_lose(away) {
                true => (Direction::Away(away), rate),
                false => (forward, self.forward_rate),
            },
            StepRule::Pairwise if away != self.forward => {
                let to = self.forward;
                (Direction::Pairwise { to, from: away }, rate)
            }
            _ => (forward, rate),
        }
    }
}

/// The active atoms with the highest and, if there are at least two, the lowest score.
fn best_and_worst_active<'p>(gradient: &impl Gradient<'p>) -> (Scored, Option<Scored>) {
    let features = gradient.features();
    let scores = gradient.active_scores();
    // The highest score times `sign`: +1 for the best atom, -1 for the worst.
    let best_of = |sign: f64| {
        let scored = gradient.active().atoms().iter().copied().zip(&scores);
        let signed = scored.map(|(atom, score)| (atom, sign * score));
        let best = signed.reduce(|a, b| features.better(a, b));
        let (atom, score) = best.expect("some atom is active");
        (atom, sign * score)
    };
    let worst = (scores.len() > 1).then(|| best_of(-1.0));
    (best_of(1.0), worst)
}
