//! The weights of atoms: a convex combination, and what a step does to it.

use super::{Atom, Step};
use crate::error::{Error, Result};
use std::collections::HashMap;

/// The least weight of all other atoms for an away step of the solver. The step divides by it, which magnifies a drift of the
/// sum of weights of 1e-13 to 1e-4, and a path is refused from 1e-3 on.
const LEAST_REST: f64 = 1e-9;

/// The least weight that a step gives to an atom. Atoms with smaller weights are removed when all weights are multiplied.
const LEAST_WEIGHT: f64 = 1e-200;

/// Bounds of σ. Outside them it is multiplied into all β, so that no β underflows.
const LEAST_FACTOR: f64 = 1e-50;
const LARGEST_FACTOR: f64 = 1e50;

/// When rounding errors may have changed the sum of the weights by more than this, it is made 1 again; with very many atoms,
/// by more than a few times what a sum of them rounds.
const MAX_DRIFT: f64 = 1e-10;

/// A convex combination of atoms: weights above 0 that sum to 1, in order of first use.
///
/// A step multiplies all weights by the same number. That is done to one common factor, so a step takes the same time for any
/// number of atoms, except that removing one moves those after it.
#[derive(Clone, Debug)]
pub struct ActiveSet {
    atoms: Vec<Atom>,
    /// σ.
    factor: f64,
    /// β: the weight of an atom is σ β. It is 0 for removed atoms that are still listed.
    parts: Vec<f64>,
    /// The number each atom got when it was added. They increase, also after atoms were removed.
    numbers: Vec<u64>,
    /// The same numbers by atom: the place of an atom is found by a binary search, and removing one renumbers nothing.
    number_of: HashMap<Atom, u64>,
    next_number: u64,
    /// How many active atoms use each feature.
    uses: HashMap<u32, u32>,
    /// A bound of how far the sum of the weights is from 1.
    drift: f64,
    /// How many atoms were visited to multiply or sum all weights, or to close gaps in the lists.
    pub(super) visited: u64,
}

impl Default for ActiveSet {
    fn default() -> Self {
        Self {
            atoms: Vec::new(),
            factor: 1.0,
            parts: Vec::new(),
            numbers: Vec::new(),
            number_of: HashMap::new(),
            next_number: 0,
            uses: HashMap::new(),
            drift: 0.0,
            visited: 0,
        }
    }
}

/// Equal when the atoms and weights are, however they came about.
impl PartialEq for ActiveSet {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl ActiveSet {
    /// All weight on one atom.
    pub(crate) fn single(atom: Atom) -> Self {
        let mut set = Self::default();
        set.add(atom, 1.0);
        set
    }

    /// A given combination; weights must be above 0 and sum to 1 (to 1e-9). Atoms with weights below 1e-200 are left out.
    pub fn from_weighted(weighted: &[(Atom, f64)]) -> Result<Self> {
        if let Some((_, weight)) = weighted.iter().find(|w| !(w.1.is_finite() && w.1 > 0.0)) {
            let reason = format!("an atom has weight {weight}, expected a number above 0");
            return Err(Error::data(reason));
        }
        let (n, total) = (weighted.len(), weighted.iter().map(|w| w.1).sum::<f64>());
        if n == 0 || (total - 1.0).abs() > 1e-9 {
            let reason = format!("the weights of {n} atoms sum to {total}, expected 1");
            return Err(Error::data(reason));
        }
        let mut set = Self::default();
        for &(atom, weight) in weighted {
            if set.position(atom).is_some() {
                let Atom { i, j, .. } = atom;
                let reason = format!("the atom of features {i} and {j} is listed twice");
                return Err(Error::data(reason));
            }
            set.add(atom, weight);
        }
        for &(atom, _) in weighted.iter().filter(|w| w.1 < LEAST_WEIGHT) {
            set.remove(atom);
        }
        set.close_gaps();
        set.drift = (total - 1.0).abs() + n as f64 * f64::EPSILON;
        Ok(set)
    }

    /// The active atoms, in order of first use.
    pub fn atoms(&self) -> &[Atom] {
        debug_assert!(self.is_closed(), "the lists have gaps");
        &self.atoms
    }

    /// Their weights, in the same order.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        debug_assert!(self.is_closed(), "the lists have gaps");
        self.parts.iter().map(|part| self.factor * part)
    }

    /// Atoms with weights.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Atom, f64)> + '_ {
        self.atoms().iter().copied().zip(self.weights())
    }

    /// The number of active atoms.
    pub fn len(&self) -> usize {
        self.number_of.len()
    }

    /// Whether no atom is active (only before the first atom).
    pub fn is_empty(&self) -> bool {
        self.number_of.is_empty()
    }

    /// The weight of an atom, 0 if it is not active.
    pub fn weight(&self, atom: Atom) -> f64 {
        self.factor * self.part(atom)
    }

    /// The position of an atom in [`ActiveSet::atoms`].
    pub(crate) fn position(&self, atom: Atom) -> Option<usize> {
        let number = self.number_of.get(&atom)?;
        self.numbers.binary_search(number).ok()
    }

    /// How many distinct features the active atoms use.
    pub fn n_features(&self) -> usize {
        self.uses.len()
    }

    /// Whether an active atom uses this feature.
    pub(crate) fn uses_feature(&self, feature: u32) -> bool {
        self.uses.contains_key(&feature)
    }

    /// The distinct features the active atoms use, in increasing order.
    pub(crate) fn features(&self) -> Vec<u32> {
        let mut features: Vec<u32> = self.uses.keys().copied().collect();
        features.sort_unstable();
        features
    }

    /// Takes one step. Atoms whose weight reaches 0 are removed.
    ///
    /// # Panics
    /// If the step takes weight from an atom that is not active; see [`ActiveSet::accepts`].
    pub fn apply(&mut self, step: &Step) {
        self.apply_leaving_gaps(step);
        self.close_gaps();
    }

    /// Takes one step of many. Removed atoms stay in the lists until they are half of them or [`Self::close_gaps`] is called, so
    /// that a step takes constant time on average. If rounding errors may have changed the sum of the weights, returns that sum,
    /// which is then made 1.
    pub(super) fn apply_leaving_gaps(&mut self, step: &Step) -> Option<f64> {
        let factor = match *step {
            Step::Forward { atom, gamma: 1.0 } => {
                let (next_number, visited) = (self.next_number, self.visited);
                *self = Self {
                    next_number,
                    visited,
                    ..Self::default()
                };
                self.add(atom, 1.0);
                0.0
            }
            Step::Forward { atom, gamma } => {
                self.factor *= 1.0 - gamma;
                self.add(atom, gamma);
                1.0 - gamma
            }
            Step::Away { atom, gamma } => {
                self.factor *= 1.0 + gamma;
                self.take(atom, gamma);
                1.0 + gamma
            }
            Step::Drop { atom } => {
                let factor = 1.0 / (1.0 - self.weight(atom));
                self.remove(atom);
                self.factor *= factor;
                factor
            }
            Step::Pairwise { to, from, gamma } => {
                self.take(from, gamma);
                self.add(to, gamma);
                1.0
            }
            Step::Swap { to, from } => {
                let part = self.remove(from);
                self.add_part(to, part);
                1.0
            }
        };
        // A step leaves the sum of the weights at 1, but for rounding errors: those before it, multiplied by the same factor, and
        // a few of its own. One that divides by a small remainder magnifies them.
        self.drift = factor * self.drift + 8.0 * f64::EPSILON * (1.0 + factor);
        let most = MAX_DRIFT.max(4.0 * f64::EPSILON * self.len() as f64);
        let total = (self.drift > most).then(|| self.normalize());
        if !(LEAST_FACTOR..=LARGEST_FACTOR).contains(&self.factor) {
            self.multiply_all();
        }
        if 2 * self.len() < self.atoms.len() {
            self.close_gaps();
        }
        total
    }

    /// Makes the sum of the weights 1, and returns what it was. The sum is taken in the order of the atoms, so gaps do not
    /// matter.
    fn normalize(&mut self) -> f64 {
        self.visited += self.atoms.len() as u64;
        let sum: f64 = self.parts.iter().sum();
        let total = self.factor * sum;
        self.factor = 1.0 / sum;
        self.drift = self.len() as f64 * f64::EPSILON;
        total
    }

    /// Whether the result of [`ActiveSet::apply`] is a convex combination. For steps read from a file.
    pub fn accepts(&self, step: &Step) -> bool {
        // Whether an atom keeps a weight, by the operations of a step: infinite or not a number for a huge γ.
        let keeps_weight = |atom: Atom, factor: f64, gamma: f64| {
            let factor = self.factor * factor;
            let rest = factor * (self.part(atom) - gamma / factor);
            (LEAST_WEIGHT..2.0).contains(&rest)
        };
        match *step {
            Step::Forward { gamma, .. } => (LEAST_WEIGHT..=1.0).contains(&gamma),
            Step::Away { atom, gamma } => {
                let is_one_of_several = self.len() > 1 && self.weight(atom) < 1.0;
                is_one_of_several && gamma > 0.0 && keeps_weight(atom, 1.0 + gamma, gamma)
            }
            Step::Drop { atom } => {
                let weight = self.weight(atom);
                self.len() > 1 && weight > 0.0 && weight < 1.0
            }
            Step::Pairwise { to, from, gamma } => {
                to != from && gamma >= LEAST_WEIGHT && keeps_weight(from, 1.0, gamma)
            }
            Step::Swap { to, from } => to != from && self.part(from) > 0.0,
        }
    }

    /// Whether an away step from this atom has a finite and accurate length. It divides by 1 - weight, and weights sum to 1
    /// only up to rounding errors.
    pub(crate) fn can_lose(&self, atom: Atom) -> bool {
        Self::leaves_rest(self.weight(atom))
    }

    /// The same for an atom with this weight.
    pub(crate) fn leaves_rest(weight: f64) -> bool {
        1.0 - weight >= LEAST_REST
    }

    /// β of an atom, 0 if it is not active.
    fn part(&self, atom: Atom) -> f64 {
        self.position(atom).map_or(0.0, |at| self.parts[at])
    }

    fn active_position(&self, atom: Atom) -> usize {
        let at = self.position(atom);
        at.expect("a step takes weight from active atoms only")
    }

    fn take(&mut self, atom: Atom, weight: f64) {
        let at = self.active_position(atom);
        self.parts[at] -= weight / self.factor;
        if self.parts[at] <= 0.0 {
            // Not after a step that is accepted.
            self.remove(atom);
        }
    }

    fn add(&mut self, atom: Atom, weight: f64) {
        self.add_part(atom, weight / self.factor);
    }

    fn add_part(&mut self, atom: Atom, part: f64) {
        if let Some(at) = self.position(atom) {
            self.parts[at] += part;
            return;
        }
        self.atoms.push(atom);
        self.parts.push(part);
        self.numbers.push(self.next_number);
        self.number_of.insert(atom, self.next_number);
        self.next_number += 1;
        for feature in [atom.i, atom.j] {
            *self.uses.entry(feature).or_insert(0) += 1;
        }
    }

    /// Removes an atom, and returns its β. A gap stays in the lists.
    fn remove(&mut self, atom: Atom) -> f64 {
        let at = self.active_position(atom);
        self.number_of.remove(&atom);
        for feature in [atom.i, atom.j] {
            let uses = self.uses.entry(feature).or_insert(0);
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(&feature);
            }
        }
        std::mem::take(&mut self.parts[at])
    }

    /// Multiplies the common factor into all weights. Atoms with less than the least weight are removed.
    fn multiply_all(&mut self) {
        self.visited += self.atoms.len() as u64;
        for at in 0..self.atoms.len() {
            let is_listed = self.parts[at] != 0.0;
            self.parts[at] *= self.factor;
            if is_listed && self.parts[at] < LEAST_WEIGHT {
                self.remove(self.atoms[at]);
            }
        }
        self.factor = 1.0;
    }

    fn is_closed(&self) -> bool {
        self.len() == self.atoms.len()
    }

    /// Takes removed atoms out of the lists.
    pub(super) fn close_gaps(&mut self) {
        if self.is_closed() {
            return;
        }
        self.visited += self.atoms.len() as u64;
        let mut kept = 0;
        for at in 0..self.atoms.len() {
            if self.parts[at] != 0.0 {
                self.atoms[kept] = self.atoms[at];
                self.parts[kept] = self.parts[at];
                self.numbers[kept] = self.numbers[at];
                kept += 1;
            }
        }
        self.atoms.truncate(kept);
        self.parts.truncate(kept);
        self.numbers.truncate(kept);
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

    /// What [`Step`] says about weights, done to each of them.
    fn applied(weights: &mut Vec<(Atom, f64)>, step: &Step) {
        let multiply = |weights: &mut Vec<(Atom, f64)>, by: f64| {
            weights.iter_mut().for_each(|weighted| weighted.1 *= by);
        };
        let add = |weights: &mut Vec<(Atom, f64)>, atom: Atom, by: f64| match weights
            .iter_mut()
            .find(|weighted| weighted.0 == atom)
        {
            Some(known) => known.1 += by,
            None => weights.push((atom, by)),
        };
        let of = |weights: &[(Atom, f64)], atom: Atom| {
            weights
                .iter()
                .find(|weighted| weighted.0 == atom)
                .unwrap()
                .1
        };
        match *step {
            Step::Forward { atom, gamma } => {
                multiply(weights, 1.0 - gamma);
                add(weights, atom, gamma);
            }
            Step::Away { atom, gamma } => {
                multiply(weights, 1.0 + gamma);
                add(weights, atom, -gamma);
            }
            Step::Drop { atom } => {
                let rest = 1.0 - of(weights, atom);
                weights.retain(|weighted| weighted.0 != atom);
                multiply(weights, 1.0 / rest);
            }
            Step::Pairwise { to, from, gamma } => {
                add(weights, from, -gamma);
                add(weights, to, gamma);
            }
            Step::Swap { to, from } => {
                let weight = of(weights, from);
                weights.retain(|weighted| weighted.0 != from);
                add(weights, to, weight);
            }
        }
        weights.retain(|weighted| weighted.1 >= LEAST_WEIGHT);
    }

    /// A step of any kind, also such that cannot be taken.
    fn any_step(rng: &mut impl RngExt, active: &ActiveSet, n: u32) -> Step {
        let from = atom(rng.random_range(0..n));
        let to = atom(rng.random_range(0..n + 1));
        let largest = active.weight(from).min(0.99);
        let gamma = [0.001, 0.5, 1.0, 1.5][rng.random_range(0..4)] * largest;
        match rng.random_range(0..8) {
            0 | 1 => Step::Forward {
                atom: to,
                gamma: [1e-9, 0.01, 0.3, 0.999][rng.random_range(0..4)],
            },
            2 if rng.random_range(0..20) == 0 => Step::Forward {
                atom: to,
                gamma: 1.0,
            },
            2 | 3 => Step::Away {
                atom: from,
                gamma: gamma / (1.0 - largest),
            },
            4 => Step::Drop { atom: from },
            5 => Step::Swap { to, from },
            _ => Step::Pairwise { to, from, gamma },
        }
    }

    #[test]
    fn steps_do_what_their_formulas_say() {
        let mut refused = 0;
        for seed in 0..60 {
            let mut rng = random::rng(seed, 0);
            let n = rng.random_range(2..40);
            let mut active = ActiveSet::single(atom(0));
            let (mut with_gaps, mut weights) = (active.clone(), vec![(atom(0), 1.0)]);
            for number in 0..400 {
                let step = any_step(&mut rng, &active, n);
                assert_eq!(active.accepts(&step), with_gaps.accepts(&step));
                if !active.accepts(&step) {
                    refused += 1;
                    continue;
                }
                active.apply(&step);
                with_gaps.apply_leaving_gaps(&step);
                applied(&mut weights, &step);
                // A remainder of about 1e-16 is nothing but rounding errors, and they would grow from there.
                if active.weights().any(|weight| weight < 1e-9) {
                    break;
                }
                assert!(active.iter().map(|a| a.0).eq(weights.iter().map(|w| w.0)));
                for (is, (_, want)) in active.weights().zip(&weights) {
                    assert!((is - want).abs() < 1e-9, "{seed}: {number}: {is} {want}");
                }
                assert_eq!(with_gaps.len(), active.len());
                assert_eq!(with_gaps.n_features(), active.n_features());
                assert!((active.weights().sum::<f64>() - 1.0).abs() < 2.0 * MAX_DRIFT);
                if number % 50 == 49 {
                    with_gaps.close_gaps();
                    assert_eq!(with_gaps, active, "{seed}: {number}");
                }
            }
        }
        assert!(refused > 100, "{refused}");
    }

    /// Also where the common factor becomes so small or large that it is multiplied into the weights.
    #[test]
    fn weights_survive_factors_of_any_size() {
        let mut active = ActiveSet::single(atom(0));
        let forward = |k: u32| Step::Forward {
            atom: atom(k),
            gamma: 1.0 - 1e-3,
        };
        for k in 1..30 {
            active.apply(&forward(k));
            assert!((active.weights().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        let first = active.weight(atom(0));
        assert!((first / 1e-87 - 1.0).abs() < 1e-10, "{first}");
        assert!(active.visited > 0);
        // Weights below the least one are removed when the factor is multiplied into them.
        for k in 30..100 {
            active.apply(&forward(k));
        }
        assert_eq!(
            (active.weight(atom(0)), active.position(atom(0))),
            (0.0, None)
        );
        assert!((60..100).contains(&active.len()), "{}", active.len());
        assert!(active.weights().all(|weight| weight > 0.0));
        // Back: the later atoms are dropped, and what the first ones have grows.
        for k in (95..100).rev() {
            active.apply(&Step::Drop { atom: atom(k) });
        }
        assert!(active.weight(atom(94)) > 0.9);
        assert!((active.weights().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// A step visits a constant number of atoms on average, however many there are.
    #[test]
    fn many_steps_visit_few_atoms() {
        let n = 3000;
        let start: Vec<(Atom, f64)> = (0..n).map(|k| (atom(k), 1.0 / f64::from(n))).collect();
        let mut active = ActiveSet::from_weighted(&start).unwrap();
        let n_steps = 8000;
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
            assert!(active.accepts(&step), "{k}: {step:?}");
            active.apply_leaving_gaps(&step);
        }
        assert_eq!(active.len() as u32, n);
        assert!(
            active.visited < 3 * u64::from(n_steps),
            "{}",
            active.visited
        );
    }
}
