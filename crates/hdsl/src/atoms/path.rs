//! How a model came about: where the solver started and every step it took.

use crate::atoms::{ActiveSet, Atom, Step};
use crate::error::{Error, Result};

/// How far from 1 the sum of weights may drift along a path.
const DRIFT: f64 = 1e-3;

/// A start and the steps from there, so that every iterate can be had again without training.
///
/// Iterate 0 is the start, iterate `n` comes after step `n`. Replaying gives the solver's weights bit for bit.
///
/// ```
/// use hdsl::{Atom, Step, model::Path};
/// let (a, b) = (Atom::plus(0, 1)?, Atom::minus(1, 5)?);
/// let path = Path::new(vec![(a, 1.0)], vec![Step::Forward { atom: b, gamma: 0.25 }])?;
/// assert_eq!(path.at(0)?.weight(a), 1.0);
/// assert_eq!(path.at(1)?.weight(a), 0.75);
/// assert_eq!(path.counts(), [(1, 2), (2, 3)]); // atoms and features of each iterate
/// assert_eq!(path.last_within(Some(2), None, 1), Some(0)); // at most two features
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    start: Vec<(Atom, f64)>,
    steps: Vec<Step>,
}

impl Path {
    /// A path from its parts, after replaying it once to see that every step can be taken.
    pub fn new(start: Vec<(Atom, f64)>, steps: Vec<Step>) -> Result<Self> {
        Self::within_work(start, steps, u64::MAX)
    }

    /// The same, but refused if the atoms that are active at each step add up to more than `limit`. Replaying costs
    /// as much, and a small file can ask for the square of its size.
    pub(crate) fn within_work(
        start: Vec<(Atom, f64)>,
        steps: Vec<Step>,
        limit: u64,
    ) -> Result<Self> {
        let mut work = 0;
        let mut active = ActiveSet::from_weighted(&start)?;
        for (number, step) in steps.iter().enumerate() {
            work += active.len() as u64;
            if work > limit {
                return Err(Error::Data(format!(
                    "the path is too long to replay: by step {} of {} its active atoms add up to more than {limit}",
                    number + 1,
                    steps.len()
                )));
            }
            if !active.accepts(step) {
                return Err(Error::Data(format!(
                    "step {} of the path cannot be taken: {step:?}",
                    number + 1
                )));
            }
            active.apply(step);
            // Steps that divide by a small rest magnify rounding, and a hostile file could drive the weights
            // anywhere.
            if matches!(step, Step::Away { .. } | Step::Drop { .. }) {
                let total: f64 = active.weights().iter().sum();
                if !(1.0 - DRIFT..1.0 + DRIFT).contains(&total) {
                    return Err(Error::Data(format!(
                        "after step {} of the path the weights sum to {total}, expected 1",
                        number + 1
                    )));
                }
            }
        }
        Ok(Self { start, steps })
    }

    /// The atoms and weights of iterate 0.
    pub fn start(&self) -> &[(Atom, f64)] {
        &self.start
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many steps there are; one less than there are iterates.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is nothing but the start.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The active set after `iteration` steps.
    pub fn at(&self, iteration: usize) -> Result<ActiveSet> {
        self.at_each(&[iteration]).map(|mut at| at.swap_remove(0))
    }

    /// The active sets after so many steps each, which do not fall. One pass.
    pub(crate) fn at_each(&self, iterations: &[usize]) -> Result<Vec<ActiveSet>> {
        let mut active = self.first();
        let mut done = 0;
        let mut found = Vec::with_capacity(iterations.len());
        for &iteration in iterations {
            if iteration > self.steps.len() {
                return Err(Error::Data(format!(
                    "iteration {iteration} is asked for, but the path has {} steps",
                    self.steps.len()
                )));
            }
            for step in &self.steps[done..iteration] {
                active.apply(step);
            }
            done = iteration;
            found.push(active.clone());
        }
        Ok(found)
    }

    /// How many atoms and how many features each iterate uses, the start first. One pass.
    pub fn counts(&self) -> Vec<(usize, usize)> {
        let mut active = self.first();
        let mut counts = Vec::with_capacity(self.steps.len() + 1);
        counts.push((active.len(), active.n_features()));
        for step in &self.steps {
            active.apply(step);
            counts.push((active.len(), active.n_features()));
        }
        counts
    }

    /// The latest iterate, not after `upto`, that uses at most so many features and so many atoms.
    pub fn last_within(
        &self,
        max_features: Option<usize>,
        max_atoms: Option<usize>,
        upto: usize,
    ) -> Option<usize> {
        let counts = self.counts();
        (0..=upto.min(self.steps.len())).rev().find(|&iteration| {
            let (atoms, features) = counts[iteration];
            max_features.is_none_or(|max| features <= max)
                && max_atoms.is_none_or(|max| atoms <= max)
        })
    }

    /// Every feature that any iterate uses, in increasing order.
    pub fn features(&self) -> Vec<u32> {
        let mut features = Vec::new();
        let mut add = |atom: Atom| features.extend([atom.i(), atom.j()]);
        self.start.iter().for_each(|s| add(s.0));
        for step in &self.steps {
            match *step {
                Step::Forward { atom, .. } | Step::Away { atom, .. } | Step::Drop { atom } => {
                    add(atom)
                }
                Step::Pairwise { to, from, .. } | Step::Swap { to, from } => {
                    add(to);
                    add(from);
                }
            }
        }
        features.sort_unstable();
        features.dedup();
        features
    }

    fn first(&self) -> ActiveSet {
        ActiveSet::from_weighted(&self.start).expect("the start was checked when the path was made")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_takes_too_long_to_replay_is_refused() {
        let atoms: Vec<Atom> = (1..5).map(|j| Atom::plus(0, j).unwrap()).collect();
        let start: Vec<(Atom, f64)> = atoms.iter().map(|&a| (a, 0.25)).collect();
        let step = Step::Forward {
            atom: atoms[0],
            gamma: 0.5,
        };
        // Four atoms at each of three steps.
        assert!(Path::within_work(start.clone(), vec![step; 3], 12).is_ok());
        let refusal = Path::within_work(start, vec![step; 3], 11).unwrap_err();
        assert!(
            refusal.to_string().contains("too long to replay"),
            "{refusal}"
        );
    }
}
