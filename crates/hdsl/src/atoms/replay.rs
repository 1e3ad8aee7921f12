//! Steps taken many at a time, with the weights that [`ActiveSet::apply`] gives, bit for bit.

use super::{ActiveSet, Atom, Step};

/// The number of steps whose factors are multiplied into all weights in one pass.
const BLOCK: usize = 64;
/// Weights that are multiplied side by side: as many as there are registers for.
const LANES: usize = 16;

/// An active set and the factors of the last steps, which are still to be multiplied into most weights.
///
/// A step multiplies all weights by one factor, and changes one or two of them further. The latter are brought up to date
/// when a step needs them. All others are multiplied by up to [`BLOCK`] factors in a row, in the order of the steps. Each
/// weight is rounded as often as in [`ActiveSet::apply`], so the result is the same. But it is read and written only once,
/// and the atoms that were removed are taken out in the same pass.
pub(super) struct Replay {
    active: ActiveSet,
    /// Factors that not all weights have yet.
    factors: Vec<f64>,
    /// How many of the factors each weight has.
    done: Vec<u32>,
    /// The positions of the weights that have some.
    touched: Vec<usize>,
    /// How many weights are known to be 0: their atoms are not active any more.
    n_lost: usize,
    /// The number of passes over all weights.
    pub(super) passes: usize,
}

impl Replay {
    pub(super) fn new(active: ActiveSet) -> Self {
        Self {
            done: vec![0; active.len()],
            active,
            factors: Vec::with_capacity(BLOCK),
            touched: Vec::new(),
            n_lost: 0,
            passes: 0,
        }
    }

    /// The current iterate.
    pub(super) fn active(&mut self) -> &ActiveSet {
        self.settle();
        &self.active
    }

    /// Takes a step, and returns the factor of the weights. `None` if the step cannot be taken, by the conditions of
    /// [`ActiveSet::accepts`].
    pub(super) fn take(&mut self, step: &Step) -> Option<f64> {
        if self.factors.len() == BLOCK {
            self.settle();
        }
        match *step {
            Step::Forward { atom, gamma } => {
                let factor = 1.0 - gamma;
                if !(gamma > 0.0 && gamma <= 1.0) {
                    return None;
                }
                self.factors.push(factor);
                if factor == 0.0 {
                    self.settle();
                }
                self.add(atom, gamma);
                Some(factor)
            }
            Step::Away { atom, gamma } => {
                let (at, weight) = self.weight(atom)?;
                let rest = weight * (1.0 + gamma) - gamma;
                if !(self.has_others() && gamma > 0.0 && weight < 1.0 && rest > 0.0) {
                    return None;
                }
                self.factors.push(1.0 + gamma);
                *self.updated(at) -= gamma;
                Some(1.0 + gamma)
            }
            Step::Drop { atom } => {
                let (at, weight) = self.weight(atom)?;
                if !(self.has_others() && weight < 1.0) {
                    return None;
                }
                let factor = 1.0 / (1.0 - weight);
                self.lose(at);
                self.factors.push(factor);
                Some(factor)
            }
            Step::Pairwise { to, from, gamma } => {
                let (at, weight) = self.weight(from)?;
                if !(to != from && gamma > 0.0 && gamma < weight) {
                    return None;
                }
                *self.updated(at) -= gamma;
                self.add(to, gamma);
                Some(1.0)
            }
            Step::Swap { to, from } => {
                let (at, weight) = self.weight(from)?;
                if to == from {
                    return None;
                }
                self.lose(at);
                self.add(to, weight);
                Some(1.0)
            }
        }
    }

    /// The position and the weight of an atom, if it is active.
    fn weight(&mut self, atom: Atom) -> Option<(usize, f64)> {
        let at = self.active.position(atom)?;
        let weight = *self.updated(at);
        (weight > 0.0).then_some((at, weight))
    }

    /// Whether there are at least two active atoms.
    fn has_others(&self) -> bool {
        self.active.len() - self.n_lost > 1
    }

    /// The weight at a position, with all factors.
    fn updated(&mut self, at: usize) -> &mut f64 {
        let done = std::mem::replace(&mut self.done[at], self.factors.len() as u32) as usize;
        if done == 0 && !self.factors.is_empty() {
            self.touched.push(at);
        }
        let weight = &mut self.active.weights[at];
        if *weight != 0.0 {
            self.factors[done..].iter().for_each(|f| *weight *= f);
            self.n_lost += usize::from(*weight == 0.0);
        }
        weight
    }

    fn lose(&mut self, at: usize) {
        *self.updated(at) = 0.0;
        self.n_lost += 1;
    }

    fn add(&mut self, atom: Atom, weight: f64) {
        if let Some(at) = self.active.position(atom) {
            let known = self.updated(at);
            if *known != 0.0 {
                *known += weight;
                return;
            }
            // The atom was removed and comes back as the last one.
            self.settle();
        }
        self.active.add(atom, weight);
        self.done.push(self.factors.len() as u32);
        if !self.factors.is_empty() {
            self.touched.push(self.active.len() - 1);
        }
    }

    /// Brings all weights up to date and removes the atoms of weight 0.
    fn settle(&mut self) {
        if self.factors.is_empty() && self.n_lost == 0 {
            return;
        }
        self.passes += 1;
        let touched = std::mem::take(&mut self.touched);
        let known: Vec<f64> = touched.iter().map(|&at| *self.updated(at)).collect();
        multiply(&mut self.active.weights, &self.factors);
        for (&at, weight) in touched.iter().zip(known) {
            self.active.weights[at] = weight;
            self.done[at] = 0;
        }
        self.factors.clear();
        self.n_lost = 0;
        if self.active.weights.contains(&0.0) {
            self.active.remove_weightless();
            self.done.truncate(self.active.len());
        }
    }
}

/// Multiplies every number by all factors, one after the other.
fn multiply(numbers: &mut [f64], factors: &[f64]) {
    let (chunks, rest) = numbers.as_chunks_mut::<LANES>();
    for chunk in chunks {
        let mut lanes = *chunk;
        for factor in factors {
            lanes.iter_mut().for_each(|x| *x *= factor);
        }
        *chunk = lanes;
    }
    for number in rest {
        factors.iter().for_each(|factor| *number *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;
    use proptest::prelude::RngExt;

    fn atom(k: u32) -> Atom {
        Atom::plus(2 * k, 2 * k + 1).unwrap()
    }

    fn bits(active: &ActiveSet) -> Vec<(Atom, u64)> {
        active.iter().map(|(a, w)| (a, w.to_bits())).collect()
    }

    /// Steps of all kinds, also such that weights underflow, that atoms come back, and that cannot be taken.
    #[test]
    fn weights_and_refusals_are_those_of_single_steps() {
        for seed in 0..60 {
            let mut rng = random::rng(seed, 0);
            let (n, mut refused) = (rng.random_range(2..40), 0);
            let mut active = ActiveSet::single(atom(0));
            let mut replay = Replay::new(active.clone());
            for number in 0..700 {
                let (a, b) = (
                    atom(rng.random_range(0..n)),
                    atom(rng.random_range(0..n + 1)),
                );
                let largest = active.weight(a).min(0.99);
                let part = [0.001, 0.5, 1.0, 1.5][rng.random_range(0..4)];
                let gamma = part * largest;
                let step = match rng.random_range(0..8) {
                    0 | 1 => Step::Forward {
                        atom: b,
                        gamma: [1e-9, 0.01, 0.3, 1.0 - 1e-12, 1e-320][rng.random_range(0..5)],
                    },
                    2 if seed % 4 == 0 => Step::Forward {
                        atom: b,
                        gamma: 1.0,
                    },
                    2 | 3 => Step::Away {
                        atom: a,
                        gamma: gamma / (1.0 - largest),
                    },
                    4 => Step::Drop { atom: a },
                    5 => Step::Swap { to: b, from: a },
                    _ => Step::Pairwise {
                        to: b,
                        from: a,
                        gamma,
                    },
                };
                let is_accepted = active.accepts(&step);
                assert_eq!(
                    replay.take(&step).is_some(),
                    is_accepted,
                    "{seed}: {step:?}"
                );
                match is_accepted {
                    true => active.apply(&step),
                    false => refused += 1,
                }
                if number % 50 == 49 {
                    assert_eq!(bits(replay.active()), bits(&active), "{seed}: {number}");
                    assert_eq!(replay.active().n_features(), active.n_features());
                }
            }
            assert!(refused > 0);
        }
    }

    /// All weights are read and written once for many steps: `ActiveSet::apply` does so in each, and twice if an atom is
    /// removed.
    #[test]
    fn the_passes_over_all_weights_are_few() {
        let n = 3000;
        let start: Vec<(Atom, f64)> = (0..n).map(|k| (atom(k), 1.0 / f64::from(n))).collect();
        let mut replay = Replay::new(ActiveSet::from_weighted(&start).unwrap());
        let n_steps = 4000;
        for k in 0..n_steps {
            let step = match k % 4 {
                0 => Step::Forward {
                    atom: atom(n + k),
                    gamma: 1e-4,
                },
                1 => Step::Away {
                    atom: atom(n + k - 1),
                    gamma: 1e-5,
                },
                2 => Step::Drop { atom: atom(k / 4) },
                _ => Step::Swap {
                    to: atom(2 * n + k),
                    from: atom(n + k - 3),
                },
            };
            assert!(replay.take(&step).is_some(), "{k}: {step:?}");
        }
        assert_eq!(replay.active().len() as u32, n);
        let factors = n_steps as usize * 3 / 4;
        assert_eq!(replay.passes, factors.div_ceil(BLOCK));
    }
}
