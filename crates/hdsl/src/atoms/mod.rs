//! The building blocks of a similarity: atoms λ(e_i ± e_j)(e_i ± e_j)ᵀ and convex combinations of them.

mod path;
mod replay;

pub use path::Path;

use crate::data::SparseRow;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Whether the two features of an atom make rows more or less similar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Sign {
    /// P in the paper: feature i in one row and j in the other make them *more* similar.
    #[serde(rename = "+")]
    Plus,
    /// N in the paper: feature i in one row and j in the other make them *less* similar.
    #[serde(rename = "-")]
    Minus,
}

impl Sign {
    /// 1 or -1.
    pub fn value(self) -> f64 {
        match self {
            Sign::Plus => 1.0,
            Sign::Minus => -1.0,
        }
    }
}

/// (e_i ± e_j)(e_i ± e_j)ᵀ, with i < j. The order of atoms (i, then j, then plus) settles ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Atom {
    i: u32,
    j: u32,
    sign: Sign,
}

/// What was read as an atom.
#[derive(Deserialize)]
struct Unchecked {
    i: u32,
    j: u32,
    sign: Sign,
}

impl TryFrom<Unchecked> for Atom {
    type Error = Error;

    fn try_from(Unchecked { i, j, sign }: Unchecked) -> Result<Self> {
        Self::new(i, j, sign)
    }
}

impl Atom {
    /// An atom of two different features, given in any order.
    pub fn new(i: u32, j: u32, sign: Sign) -> Result<Self> {
        if i == j {
            return Err(Error::data(format!(
                "an atom joins two different features, not feature {i} with itself"
            )));
        }
        let (i, j) = (i.min(j), i.max(j));
        Ok(Self { i, j, sign })
    }

    /// P^(ij), with sign plus.
    pub fn plus(i: u32, j: u32) -> Result<Self> {
        Self::new(i, j, Sign::Plus)
    }

    /// N^(ij), with sign minus.
    pub fn minus(i: u32, j: u32) -> Result<Self> {
        Self::new(i, j, Sign::Minus)
    }

    /// The lower feature.
    pub fn i(&self) -> u32 {
        self.i
    }

    /// The higher feature.
    pub fn j(&self) -> u32 {
        self.j
    }

    /// Plus or minus.
    pub fn sign(&self) -> Sign {
        self.sign
    }

    /// x_i ± x_j, the coordinate of a row under this atom.
    pub(crate) fn project(&self, x: SparseRow<'_>) -> f64 {
        x.get(self.i) + self.sign.value() * x.get(self.j)
    }
}

/// What one iteration did to the weights. Replaying the steps of a run gives every iterate again, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "lowercase")]
pub enum Step {
    /// M ← (1-γ) M + γ B.
    Forward {
        /// B.
        atom: Atom,
        /// γ, in (0, 1].
        gamma: f64,
    },
    /// M ← (1+γ) M - γ B.
    Away {
        /// B, which is active.
        atom: Atom,
        /// γ, below weight / (1 - weight).
        gamma: f64,
    },
    /// The away step that removes an atom.
    Drop {
        /// B, which is active and not alone.
        atom: Atom,
    },
    /// M ← M + γ (to - from), γ below the weight of `from`.
    Pairwise {
        /// The atom that gains.
        to: Atom,
        /// The active atom that loses.
        from: Atom,
        /// γ.
        gamma: f64,
    },
    /// The pairwise step that moves all the weight of `from`.
    Swap {
        /// The atom that gains.
        to: Atom,
        /// The active atom that is removed.
        from: Atom,
    },
}

impl Step {
    /// The atoms whose weights change by more than the rescaling of all.
    pub(crate) fn atoms_mut(&mut self) -> impl Iterator<Item = &mut Atom> {
        let (first, second) = match self {
            Step::Forward { atom, .. } | Step::Away { atom, .. } | Step::Drop { atom } => {
                (atom, None)
            }
            Step::Pairwise { to, from, .. } | Step::Swap { to, from } => (to, Some(from)),
        };
        std::iter::once(first).chain(second)
    }
}

/// The least weight of all other atoms for an away step of the solver. Rounding errors of a sum of weights are about 1e-13
/// after some thousand steps, and a path whose weights do not sum to 1 up to 1e-3 is not read.
const LEAST_REST: f64 = 1e-9;

/// A convex combination of atoms: weights above 0 that sum to 1, in order of first use.
#[derive(Clone, Debug, Default)]
pub struct ActiveSet {
    atoms: Vec<Atom>,
    weights: Vec<f64>,
    /// The number each atom got when it was added. They increase, also after atoms were removed.
    numbers: Vec<u64>,
    /// The same numbers by atom: the place of an atom is found by a binary search, and removing one renumbers nothing.
    number_of: HashMap<Atom, u64>,
    next_number: u64,
    /// How many active atoms use each feature.
    uses: HashMap<u32, u32>,
}

/// Equal when the atoms and weights are, however they came about.
impl PartialEq for ActiveSet {
    fn eq(&self, other: &Self) -> bool {
        self.atoms == other.atoms && self.weights == other.weights
    }
}

impl ActiveSet {
    /// All weight on one atom.
    pub(crate) fn single(atom: Atom) -> Self {
        let mut set = Self::default();
        set.add(atom, 1.0);
        set
    }

    /// A given combination; weights must be above 0 and sum to 1 (to 1e-9).
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
        Ok(set)
    }

    /// The active atoms, in order of first use.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Their weights, in the same order.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Atoms with weights.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Atom, f64)> + '_ {
        self.atoms.iter().copied().zip(self.weights.iter().copied())
    }

    /// The number of active atoms.
    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    /// Whether no atom is active (only before the first atom).
    pub fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// The weight of an atom, 0 if it is not active.
    pub fn weight(&self, atom: Atom) -> f64 {
        self.position(atom).map_or(0.0, |at| self.weights[at])
    }

    /// The position of an atom in [`ActiveSet::atoms`].
    pub(crate) fn position(&self, atom: Atom) -> Option<usize> {
        let number = self.number_of.get(&atom)?;
        self.numbers.binary_search(number).ok()
    }

    fn weight_mut(&mut self, atom: Atom) -> &mut f64 {
        let at = self.position(atom);
        &mut self.weights[at.expect("a step takes weight from active atoms only")]
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
        match *step {
            Step::Forward { atom, gamma } => {
                self.rescale(1.0 - gamma);
                self.add(atom, gamma);
            }
            Step::Away { atom, gamma } => {
                self.rescale(1.0 + gamma);
                *self.weight_mut(atom) -= gamma;
            }
            Step::Drop { atom } => {
                let weight = std::mem::take(self.weight_mut(atom));
                self.rescale(1.0 / (1.0 - weight));
            }
            Step::Pairwise { to, from, gamma } => {
                *self.weight_mut(from) -= gamma;
                self.add(to, gamma);
            }
            Step::Swap { to, from } => {
                let weight = std::mem::take(self.weight_mut(from));
                // Removes `from`.
                self.rescale(1.0);
                self.add(to, weight);
            }
        }
    }

    /// Whether the result of [`ActiveSet::apply`] is a convex combination. For steps read from a file.
    pub fn accepts(&self, step: &Step) -> bool {
        match *step {
            Step::Forward { gamma, .. } => gamma > 0.0 && gamma <= 1.0,
            Step::Away { atom, gamma } => {
                let weight = self.weight(atom);
                // Not a number for an infinite γ.
                let rest = weight * (1.0 + gamma) - gamma;
                self.len() > 1 && gamma > 0.0 && weight < 1.0 && rest > 0.0
            }
            Step::Drop { atom } => {
                let weight = self.weight(atom);
                self.len() > 1 && weight > 0.0 && weight < 1.0
            }
            Step::Pairwise { to, from, gamma } => {
                to != from && gamma > 0.0 && gamma < self.weight(from)
            }
            Step::Swap { to, from } => to != from && self.weight(from) > 0.0,
        }
    }

    /// Whether an away step from this atom has a finite and accurate length. It divides by 1 - weight, and weights sum to 1
    /// only up to rounding errors.
    pub(crate) fn can_lose(&self, atom: Atom) -> bool {
        1.0 - self.weight(atom) >= LEAST_REST
    }

    fn add(&mut self, atom: Atom, weight: f64) {
        match self.position(atom) {
            Some(at) => self.weights[at] += weight,
            None => {
                self.atoms.push(atom);
                self.weights.push(weight);
                self.numbers.push(self.next_number);
                self.number_of.insert(atom, self.next_number);
                self.next_number += 1;
                for feature in [atom.i, atom.j] {
                    *self.uses.entry(feature).or_insert(0) += 1;
                }
            }
        }
    }

    /// Multiplies every weight. Atoms whose weight becomes 0 (γ = 1, or underflow) are removed.
    fn rescale(&mut self, factor: f64) {
        let mut is_lost = false;
        for weight in &mut self.weights {
            *weight *= factor;
            is_lost |= *weight == 0.0;
        }
        if is_lost {
            self.remove_weightless();
        }
    }

    /// Removes the atoms of weight 0 in one pass, however many they are.
    fn remove_weightless(&mut self) {
        let mut kept = 0;
        for at in 0..self.atoms.len() {
            let atom = self.atoms[at];
            if self.weights[at] != 0.0 {
                self.atoms[kept] = atom;
                self.weights[kept] = self.weights[at];
                self.numbers[kept] = self.numbers[at];
                kept += 1;
                continue;
            }
            self.number_of.remove(&atom);
            for feature in [atom.i, atom.j] {
                let uses = self.uses.entry(feature).or_insert(0);
                *uses -= 1;
                if *uses == 0 {
                    self.uses.remove(&feature);
                }
            }
        }
        self.atoms.truncate(kept);
        self.weights.truncate(kept);
        self.numbers.truncate(kept);
    }
}
