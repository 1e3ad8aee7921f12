//! The curvature of f along the directions of active atoms, and the decrease of f that it predicts.
//!
//! A step of length γ along a direction with rate of descent r and curvature c decreases f by about γ r - γ² c / 2. The γ
//! that minimizes f is then r / c, so after a step c is estimated as r / γ, which is too large if γ was the longest possible.
//! B - M and M - B have the same c. The estimate is kept until the next step to or away from B: other steps change few gradient
//! weights, and the factor (1 ∓ γ)² of a step to or away from B itself is neglected.
//!
//! Of all active atoms, the one with the largest predicted decrease is chosen, not the one with the largest rate. In
//! coordinate descent this is the Gauss-Southwell-Lipschitz rule (Nutini et al., ICML 2015). Atoms of features that many rows
//! contain have large rates, but still larger curvatures.

use super::direction::{Direction, longest_away};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::objective::Features;

/// A direction, and the decrease of f that is predicted along it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predicted {
    pub(super) direction: Direction,
    /// <D, -∇f>.
    pub(super) rate: f64,
    /// The predicted decrease of f.
    pub(super) decrease: f64,
}

/// The curvature along B - M of each active atom B, in the order of the active set. `None` until the first step to or away from
/// an atom.
#[derive(Default)]
pub(super) struct Curvatures(Vec<(Atom, Option<f64>)>);

impl Curvatures {
    /// Takes note of a step, given the rate of its direction, its length, and the active set after it.
    pub(super) fn learn(&mut self, step: &Step, rate: f64, gamma: f64, active: &ActiveSet) {
        self.follow(active);
        if let Step::Forward { atom, .. } | Step::Away { atom, .. } = *step
            && let Some(at) = active.position(atom)
        {
            self.0[at].1 = Some(rate / gamma);
        }
    }

    /// Lists the atoms of an active set, which removes atoms anywhere and adds them at the end.
    fn follow(&mut self, active: &ActiveSet) {
        let mut staying = active.atoms().iter().copied().peekable();
        self.0
            .retain(|known| staying.next_if_eq(&known.0).is_some());
        self.0.extend(staying.map(|atom| (atom, None)));
    }

    /// The direction to or away from an active atom with the largest predicted decrease, given <B - M, -∇f> of every active
    /// atom B. `None` if no step can be taken.
    pub(super) fn best(
        &mut self,
        features: &Features,
        active: &ActiveSet,
        rates: &[f64],
    ) -> Option<Predicted> {
        self.follow(active);
        let known = self.0.iter().filter_map(|known| known.1);
        let (sum, n) = known.fold((0.0, 0), |(sum, n), curvature| (sum + curvature, n + 1));
        let mean = sum / f64::from(n.max(1));
        let mut best: Option<(Atom, Predicted)> = None;
        for (((atom, weight), rate), known) in active.iter().zip(rates).zip(&self.0) {
            let (direction, gamma_max) = match *rate >= 0.0 {
                true => (Direction::Forward(atom), 1.0),
                false if ActiveSet::leaves_rest(weight) => {
                    (Direction::Away(atom), longest_away(weight))
                }
                false => continue,
            };
            let (rate, curvature) = (rate.abs(), known.1.unwrap_or(mean));
            // The quotient is NaN if both are 0, and the minimum is then the other number.
            let gamma = (rate / curvature).min(gamma_max);
            let decrease = gamma * (rate - 0.5 * gamma * curvature);
            let is_better = best.is_none_or(|(other, best)| {
                decrease >= best.decrease
                    && features.better((other, best.decrease), (atom, decrease)).0 == atom
            });
            if is_better {
                let predicted = Predicted {
                    direction,
                    rate,
                    decrease,
                };
                best = Some((atom, predicted));
            }
        }
        best.map(|best| best.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(i: u32) -> Atom {
        Atom::plus(i, 8).unwrap()
    }

    #[test]
    fn the_largest_decrease_wins_over_the_largest_rate() {
        let features = Features::new((0..9).collect());
        let weights = [0.5, 0.25, 0.125, 0.125];
        let weighted: Vec<_> = (0..4).map(atom).zip(weights).collect();
        let active = ActiveSet::from_weighted(&weighted).unwrap();
        let mut curvatures = Curvatures::default();
        let best = |curvatures: &mut Curvatures, rates: [f64; 4]| {
            let best = curvatures.best(&features, &active, &rates).unwrap();
            (best.direction, best.rate, best.decrease)
        };
        // Nothing is known, and every step is as long as possible.
        let (direction, ..) = best(&mut curvatures, [0.5, 2.0, -9.0, 1.0]);
        assert_eq!(direction, Direction::Forward(atom(1)));

        // φ(γ) = -r γ + c γ² / 2 has its minimum at γ = r / c: c is 16, 4 and 1.
        for (i, rate, gamma) in [(0, 8.0, 0.5), (1, 1.0, 0.25), (2, 0.5, 0.5)] {
            let atom = atom(i);
            curvatures.learn(&Step::Forward { atom, gamma }, rate, gamma, &active);
        }
        // r² / 2c is 9/32, 1/8, 1/8 and, with the mean 7 of the known curvatures, 1/14.
        let found = best(&mut curvatures, [3.0, 1.0, 0.5, 1.0]);
        assert_eq!(found, (Direction::Forward(atom(0)), 3.0, 9.0 / 32.0));
        // Of equal decreases, the first atom's is taken.
        let found = best(&mut curvatures, [0.0, 1.0, 0.5, 0.0]);
        assert_eq!(found, (Direction::Forward(atom(1)), 1.0, 0.125));
        // Away from an atom of weight 1/8, γ is at most 1/7.
        let found = best(&mut curvatures, [0.0, 0.0, -1.0, 0.0]);
        assert_eq!(found.0, Direction::Away(atom(2)));
        assert!((found.2 - (1.0 / 7.0 - 0.5 / 49.0)).abs() < 1e-15);
    }

    #[test]
    fn curvatures_stay_with_their_atoms() {
        let features = Features::new((0..9).collect());
        let set = |list: &[u32]| {
            let weight = 1.0 / list.len() as f64;
            let weighted: Vec<_> = list.iter().map(|&i| (atom(i), weight)).collect();
            ActiveSet::from_weighted(&weighted).unwrap()
        };
        let mut curvatures = Curvatures::default();
        let all = set(&[3, 1, 2]);
        for i in 1..4 {
            let (atom, gamma) = (atom(i), 1.0 / f64::from(i));
            curvatures.learn(&Step::Away { atom, gamma }, 1.0, gamma, &all);
        }
        let after = set(&[3, 2]);
        curvatures.learn(&Step::Drop { atom: atom(1) }, 1.0, 1.0, &after);
        let best = curvatures.best(&features, &after, &[0.0, 1.0]).unwrap();
        assert_eq!(best.decrease, 0.25);
        // An atom that comes back is new: the mean of the others is 2.5.
        let again = set(&[3, 2, 1]);
        let best = curvatures.best(&features, &again, &[0.0, 0.0, 1.0]);
        assert_eq!(best.unwrap().decrease, 0.2);
    }

    #[test]
    fn no_step_leads_away_from_the_only_atom() {
        let features = Features::new((0..9).collect());
        let active = ActiveSet::single(atom(0));
        let mut curvatures = Curvatures::default();
        assert!(curvatures.best(&features, &active, &[-1.0]).is_none());
        assert!(curvatures.best(&features, &active, &[0.0]).is_some());
    }
}
