//! Lines 3 to 10 of Alg. 1: the forward and the away atom, the rate of descent <D, -∇f> of their directions, and the choice of
//! a direction and of a step length.

use super::curvature::{Curvatures, Predicted};
use super::direction::Direction;
use super::engine::{Engine, Gradient};
use super::lmo::Oracle;
use super::params::StepRule;
use crate::atoms::{ActiveSet, Atom};
use crate::error::Result;
use crate::objective::Scored;
use crate::observer::Gap;
use rand_chacha::ChaCha8Rng;

/// A direction counts as a descent direction if <D, -∇f> / f is above this. Smaller rates may be rounding errors.
const MIN_RELATIVE_RATE: f64 = 1e-13;
/// A step counts as progress if its predicted decrease γ <D, -∇f> / f is above this. Smaller ones may be rounding
/// errors.
const MIN_RELATIVE_DECREASE: f64 = 1e-12;
/// A step to a new atom is preferred to one along the direction of an active atom whose predicted decrease is up to this many
/// times larger: it makes later steps possible, too. 1 and 3 are about as good.
const NEW_ATOM_FACTOR: f64 = 2.0;

/// What a step at an iterate may lead to or away from: the forward atom B_F, the away atom B_A, a new atom and the
/// active one with the largest predicted decrease.
pub(super) struct Candidates {
    forward: Atom,
    /// The atom that the oracle has found and its rate, if it is not active and f decreases towards it. Only of
    /// [`StepRule::Decrease`].
    new: Option<(Atom, f64)>,
    /// `None` if there is only one active atom.
    away: Option<Atom>,
    /// The rate of descent <D_F, -∇f> of D_F = B_F - M.
    forward_rate: f64,
    /// The rate of descent <D_A, -∇f> of D_A = M - B_A; 0 without an away atom.
    away_rate: f64,
    /// The direction of an active atom with the largest predicted decrease. Only of [`StepRule::Decrease`]; `None` if no step
    /// can be taken.
    best_active: Option<Predicted>,
    pub(super) gap: Gap,
}

/// A direction, its rate and the step length along it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) direction: Direction,
    pub(super) rate: f64,
    pub(super) gamma: f64,
}

impl Candidates {
    /// The candidates at the iterate. The gradient must be up to date. If the predicted decrease along an
    /// active atom is large enough, the oracle skips its search, unless it must search.
    ///
    /// With mini-batches, the oracle maximizes over very many atoms on one batch, so the score of its atom is biased
    /// upwards. Both rates are therefore estimated on a second, independent batch. If the best active atom has a higher
    /// rate on the second batch than the oracle's atom, it becomes the forward atom.
    pub(super) fn find<'p>(
        engine: &mut impl Engine<'p>,
        oracle: &mut Oracle,
        curvatures: &mut Curvatures,
        rule: StepRule,
        (turn, must_search): (usize, bool),
        rng: &mut ChaCha8Rng,
    ) -> Result<Self> {
        let gradient = engine.gradient();
        let scores = gradient.active_scores();
        let (best, worst) = best_and_worst(gradient, &scores);
        let model_gain = gradient.gain_of_model();
        let best_active = match rule {
            StepRule::Decrease => {
                let rates = scores
                    .iter()
                    .map(|&score| gradient.gain(score) - model_gain);
                let rates: Vec<f64> = rates.collect();
                curvatures.best(gradient.features(), gradient.active(), &rates)
            }
            _ => None,
        };
        let skips = !must_search && best_active.is_some_and(|best| oracle.may_skip(best.decrease));
        let (found, exact) = match skips {
            true => (best, false),
            false => oracle.search(gradient, best, turn, rng)?,
        };
        // The best active atom has <B, -∇f> >= <M, -∇f>, so the rate of the forward direction is never negative.
        let forward = gradient.features().better(best, found);
        let [forward_rate, found_rate] =
            [forward, found].map(|(_, score)| gradient.gain(score) - model_gain);
        let away_rate = worst.map_or(0.0, |worst| model_gain - gradient.gain(worst.1));
        let is_useful = match rule {
            StepRule::Decrease => found_rate > 0.0,
            _ => forward.0 == found.0,
        };
        let is_new = gradient.active().position(found.0).is_none();
        let new = (is_new && is_useful).then_some((found.0, found_rate));
        if new.is_none() && !skips {
            oracle.learn(0.0, false, turn);
        }
        let new = new.filter(|_| rule == StepRule::Decrease);
        let away = worst.map(|worst| worst.0);
        let atoms: Vec<Atom> = [best.0, forward.0].into_iter().chain(away).collect();
        if let Some(rates) = engine.reestimated_rates(&atoms, rng)? {
            let chosen = usize::from(rates[1] > rates[0]);
            return Ok(Self {
                forward: atoms[chosen],
                new: None,
                away,
                forward_rate: rates[chosen],
                away_rate: rates.get(2).map_or(0.0, |rate| -rate),
                best_active: None,
                gap: Gap::Estimate(rates[chosen].max(0.0)),
            });
        }
        Ok(Self {
            forward: forward.0,
            new,
            away,
            forward_rate,
            away_rate,
            best_active,
            gap: match exact {
                true => Gap::Certified(forward_rate.max(0.0)),
                false => Gap::Estimate(forward_rate),
            },
        })
    }

    /// The direction D and the step length γ of the next step: lines 5 to 10. `None` if the iteration is stalled.
    ///
    /// With [`StepRule::Decrease`], the step to a new atom is compared with the best one along an active atom.
    pub(super) fn choose<'p>(
        &self,
        engine: &mut impl Engine<'p>,
        oracle: &mut Oracle,
        rule: StepRule,
        objective: f64,
        turn: usize,
    ) -> Result<Option<Move>> {
        let mut to_new = None;
        if let Some((atom, rate)) = self.new {
            let found = step_along(engine, Direction::Forward(atom), rate, objective)?;
            let decrease = found.map_or(0.0, |found| 0.5 * found.gamma * found.rate);
            let predicted = self.best_active.map_or(0.0, |best| best.decrease);
            let is_taken = found.is_some() && NEW_ATOM_FACTOR * decrease >= predicted;
            oracle.learn(decrease, is_taken, turn);
            if is_taken {
                return Ok(found);
            }
            to_new = found.map(|found| (found.direction, found.rate));
        }
        // If the predicted step makes no progress, the one to the new atom is taken after all. Its line search has to be the last one.
        let predicted = self.best_active.map(|best| (best.direction, best.rate));
        for (direction, rate) in predicted.into_iter().chain(to_new) {
            let found = step_along(engine, direction, rate, objective)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let (direction, rate) = self.steepest(rule, engine.gradient().active());
        step_along(engine, direction, rate, objective)
    }

    /// The direction and its rate: lines 5 to 9 of Alg. 1, or the direction of another step rule with the larger of the two
    /// rates.
    ///
    /// With exact rates, the away direction is never the steeper one if its atom has more than half of the weight. Rates from
    /// batches or with rounding errors may say so all the same, and the step is then taken forward if the weight is too close
    /// to 1 for an away step.
    fn steepest(&self, rule: StepRule, active: &ActiveSet) -> (Direction, f64) {
        let forward = Direction::Forward(self.forward);
        let rate = self.forward_rate.max(self.away_rate);
        let Some(away) = self.away else {
            return (forward, rate);
        };
        match rule {
            StepRule::Away | StepRule::Decrease if self.away_rate > self.forward_rate => {
                match active.can_lose(away) {
                    true => (Direction::Away(away), rate),
                    false => (forward, self.forward_rate),
                }
            }
            StepRule::Pairwise if away != self.forward => {
                let to = self.forward;
                (Direction::Pairwise { to, from: away }, rate)
            }
            _ => (forward, rate),
        }
    }
}

/// The step length γ in [0, γ_max] that minimizes f(M + γ D) along a direction D, or `None` if the step would be stalled. `rate`
/// is <D, -∇f>; for a pairwise direction, it is the larger of the rates of D_F and D_A.
///
/// A step is stalled if D is not a descent direction or the step makes no progress. This is common with mini-batches: D comes
/// from a batch, and f over all triplets may not decrease along it. A step of length γ_max is taken even without progress,
/// because it removes an atom.
fn step_along<'p>(
    engine: &mut impl Engine<'p>,
    direction: Direction,
    rate: f64,
    objective: f64,
) -> Result<Option<Move>> {
    if rate <= MIN_RELATIVE_RATE * objective {
        return Ok(None);
    }
    let gamma_max = direction.gamma_max(engine.gradient().active());
    let gamma = engine.search_line(direction, gamma_max)?;
    let progresses = gamma * rate > MIN_RELATIVE_DECREASE * objective || gamma >= gamma_max;
    Ok((gamma > 0.0 && progresses).then_some(Move {
        direction,
        rate,
        gamma,
    }))
}

/// The active atoms with the highest and, if there are at least two, the lowest score.
fn best_and_worst<'p>(gradient: &impl Gradient<'p>, scores: &[f64]) -> (Scored, Option<Scored>) {
    let features = gradient.features();
    // The highest score times `sign`: +1 for the best atom, -1 for the worst.
    let best_of = |sign: f64| {
        let scored = gradient.active().atoms().iter().copied().zip(scores);
        let signed = scored.map(|(atom, score)| (atom, sign * score));
        let best = signed.reduce(|a, b| features.better(a, b));
        let (atom, score) = best.expect("some atom is active");
        (atom, sign * score)
    };
    let worst = (scores.len() > 1).then(|| best_of(-1.0));
    (best_of(1.0), worst)
}
