//! Lines 3 and 4 of Alg. 1: the forward and the away atom, and how fast f falls along their directions.

use super::direction::Direction;
use super::engine::SymmetrizedGradient;
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
    pub(super) fn find<'p>(
        gradient: &mut impl SymmetrizedGradient<'p>,
        oracle: &mut impl Oracle,
        iter: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let (best, worst) = best_and_worst_active(gradient);
        let answer = oracle.forward(gradient, best, iter, rng);
        let of_model = gradient.gain_of_model();
        let forward_rate = gradient.gain(answer.forward.1) - of_model;
        let candidates = Self {
            forward: answer.forward.0,
            away: worst.map(|worst| worst.0),
            forward_rate,
            away_rate: worst.map_or(0.0, |worst| of_model - gradient.gain(worst.1)),
            gap: match answer.exact {
                true => Gap::Certified(forward_rate.max(0.0)),
                false => Gap::Estimate(forward_rate),
            },
        };
        candidates.reestimated(gradient, best.0, rng)
    }

    /// The same with rates from a second batch, in mini-batch mode. The atom that scores best on a batch, among many, is
    /// mostly one whose score was overestimated; the second batch is unbiased. The best active atom, which was chosen
    /// among few, replaces the forward atom if it is better there.
    fn reestimated<'p>(
        self,
        gradient: &mut impl SymmetrizedGradient<'p>,
        best_active: Atom,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let mut atoms = vec![best_active, self.forward];
        atoms.extend(self.away);
        let Some(rates) = gradient.reestimated_rates(&atoms, rng) else {
            return self;
        };
        let at = usize::from(rates[1] > rates[0]);
        Self {
            forward: atoms[at],
            away: self.away,
            forward_rate: rates[at],
            away_rate: self.away.map_or(0.0, |_| -rates[2]),
            gap: Gap::Estimate(rates[at].max(0.0)),
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
fn best_and_worst_active<'p>(
    gradient: &mut impl SymmetrizedGradient<'p>,
) -> (Scored, Option<Scored>) {
    let problem = gradient.problem();
    let scores = gradient.active_scores();
    let scored = || {
        gradient
            .active()
            .atoms()
            .iter()
            .copied()
            .zip(scores.iter().copied())
    };
    let best = scored().reduce(|a, b| problem.better(a, b));
    let negated = scored().map(|(atom, score)| (atom, -score));
    let worst = negated.reduce(|a, b| problem.better(a, b));
    let worst = worst.filter(|_| scores.len() > 1);
    (
        best.expect("some atom is active"),
        worst.map(|(atom, score)| (atom, -score)),
    )
}
