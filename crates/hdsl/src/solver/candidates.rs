//! Lines 3 and 4 of Alg. 1: the forward and the away atom, and how fast f falls along their directions.

use super::direction::Direction;
use super::engine::Engine;
use super::gradient::SymmetrizedGradient;
use super::lmo::Oracle;
use super::params::StepRule;
use crate::atoms::Atom;
use crate::objective::Scored;
use crate::observer::Gap;
use rand_chacha::ChaCha8Rng;

/// The atoms that the next direction is made of.
pub(super) struct Candidates {
    forward: Atom,
    /// None if a single atom is active.
    away: Option<Atom>,
    /// <D_F, -∇f> and <D_A, -∇f>.
    forward_rate: f64,
    away_rate: f64,
    pub(super) gap: Gap,
}

impl Candidates {
    /// The candidates at the iterate, whose gradient is up to date.
    ///
    /// In mini-batch mode, rates come from a second batch. The atom that scores best on a batch, among many, is mostly one
    /// whose score was overestimated; the second batch is unbiased. The best active atom, which was chosen among few,
    /// replaces the forward atom if it is better there.
    pub(super) fn find<'p>(
        engine: &mut impl Engine<'p>,
        oracle: &mut Oracle,
        iter: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let gradient = engine.gradient();
        let (best, worst) = best_and_worst_active(gradient);
        let (forward, exact) = oracle.forward(gradient, best, iter, rng);
        let away = worst.map(|worst| worst.0);
        let atoms: Vec<Atom> = [best.0, forward.0].into_iter().chain(away).collect();
        if let Some(rates) = engine.reestimated_rates(&atoms, rng) {
            let at = usize::from(rates[1] > rates[0]);
            return Self {
                forward: atoms[at],
                away,
                forward_rate: rates[at],
                away_rate: rates.get(2).map_or(0.0, |rate| -rate),
                gap: Gap::Estimate(rates[at].max(0.0)),
            };
        }
        let gradient = engine.gradient();
        let of_model = gradient.gain_of_model();
        let forward_rate = gradient.gain(forward.1) - of_model;
        Self {
            forward: forward.0,
            away,
            forward_rate,
            away_rate: worst.map_or(0.0, |worst| of_model - gradient.gain(worst.1)),
            gap: match exact {
                true => Gap::Certified(forward_rate.max(0.0)),
                false => Gap::Estimate(forward_rate),
            },
        }
    }

    /// How fast f falls along the steeper of the two directions.
    pub(super) fn rate(&self) -> f64 {
        self.forward_rate.max(self.away_rate)
    }

    /// Lines 5 to 9 of Alg. 1, and the two other step rules.
    pub(super) fn direction(&self, rule: StepRule) -> Direction {
        let forward = Direction::Forward(self.forward);
        let Some(away) = self.away else {
            return forward;
        };
        match rule {
            StepRule::Away if self.away_rate > self.forward_rate => Direction::Away(away),
            StepRule::Pairwise if away != self.forward => Direction::Pairwise {
                to: self.forward,
                from: away,
            },
            _ => forward,
        }
    }
}

/// The active atoms with the highest and, if there are at least two, the lowest score.
fn best_and_worst_active(gradient: &SymmetrizedGradient<'_>) -> (Scored, Option<Scored>) {
    let problem = gradient.problem();
    let scores = gradient.active_scores();
    let best_of = |sign: f64| {
        let scored = gradient.active().atoms().iter().copied().zip(&scores);
        let signed = scored.map(|(atom, score)| (atom, sign * score));
        let best = signed.reduce(|a, b| problem.better(a, b));
        let (atom, score) = best.expect("some atom is active");
        (atom, sign * score)
    };
    let worst = (scores.len() > 1).then(|| best_of(-1.0));
    (best_of(1.0), worst)
}
