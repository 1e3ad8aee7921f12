//! The path of a run: where the solver started and every step it took.

use crate::atoms::{ActiveSet, Atom, Step};
use crate::error::{Error, Result};
use std::collections::BTreeSet;

/// How far from 1 the sum of weights may be on a path, before it is made 1 again.
const DRIFT: f64 = 1e-3;
/// How many atoms may be visited to check a path, per atom of the start and per step: this makes the check linear in its
/// length. The removal of atoms takes 2 at most, and sums of all weights are rare in runs of the solver.
const MAX_VISITS: u64 = 100;

/// A start and the steps from there, from which every iterate can be computed without training again.
///
/// Iterate 0 is the start, and iterate `n` comes after step `n`. Replaying the path of one run gives the weights
/// of the solver bit for bit.
///
/// ```
/// use hdsl::atoms::{Atom, Path, Step};
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
    /// A path from its parts, after replaying it once to see that every step can be taken. Only a path without steps may
    /// start without atoms: that of a model which is nothing but its base.
    pub fn new(start: Vec<(Atom, f64)>, steps: Vec<Step>) -> Result<Self> {
        let refuse = |number: usize, reason: String| {
            Err(Error::data(format!(
                "step {number} of {} of the path {reason}",
                steps.len()
            )))
        };
        let mut active = match steps.is_empty() && start.is_empty() {
            true => ActiveSet::default(),
            false => ActiveSet::from_weighted(&start)?,
        };
        let most_visited = MAX_VISITS * (start.len() + steps.len()) as u64;
        for (number, step) in (1..).zip(&steps) {
            if !active.accepts(step) {
                return refuse(number, format!("cannot be taken: {step:?}"));
            }
            // Steps that divide by a small remainder magnify rounding, and a hostile file could drive the weights
            // anywhere.
            let total = active.apply_leaving_gaps(step).unwrap_or(1.0);
            if !(1.0 - DRIFT..1.0 + DRIFT).contains(&total) {
                return refuse(
                    number,
                    format!("gives weights that sum to {total}, expected 1"),
                );
            }
            if active.visited > most_visited {
                let reason = "makes it too slow to check: too many of its steps visit all atoms";
                return refuse(number, reason.into());
            }
        }
        Ok(Self { start, steps })
    }

    /// Adds a step that the last iterate accepts.
    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// The atoms and weights of iterate 0.
    pub fn start(&self) -> &[(Atom, f64)] {
        &self.start
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The number of steps; one less than the number of iterates.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The active set after `iteration` steps.
    pub fn at(&self, iteration: usize) -> Result<ActiveSet> {
        self.at_each(&[iteration]).map(|mut at| at.swap_remove(0))
    }

    /// The active sets of some iterates, in increasing order, in one pass.
    pub(crate) fn at_each(&self, iterations: &[usize]) -> Result<Vec<ActiveSet>> {
        let (mut active, mut done) = (self.first(), 0);
        let go_on_to = |&iteration: &usize| {
            let steps = self.steps.get(done..iteration).ok_or_else(|| {
                let n = self.steps.len();
                Error::data(format!(
                    "there is no iterate {iteration}: the path has {n} steps"
                ))
            })?;
            for step in steps {
                active.apply_leaving_gaps(step);
            }
            done = iteration;
            active.close_gaps();
            Ok(active.clone())
        };
        iterations.iter().map(go_on_to).collect()
    }

    /// The number of atoms and of features that each iterate uses, the start first.
    pub fn counts(&self) -> Vec<(usize, usize)> {
        let mut active = self.first();
        let count = |active: &ActiveSet| (active.len(), active.n_features());
        let mut counts = vec![count(&active)];
        counts.extend(self.steps.iter().map(|step| {
            active.apply_leaving_gaps(step);
            count(&active)
        }));
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
        let mut atoms: Vec<Atom> = self.start.iter().map(|weighted| weighted.0).collect();
        for mut step in self.steps.iter().copied() {
            atoms.extend(step.atoms_mut().map(|atom| *atom));
        }
        let features: BTreeSet<u32> = atoms.iter().flat_map(|a| [a.i(), a.j()]).collect();
        features.into_iter().collect()
    }

    fn first(&self) -> ActiveSet {
        if self.start.is_empty() {
            return ActiveSet::default();
        }
        ActiveSet::from_weighted(&self.start).expect("the start was checked when the path was made")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every second step divides by a remainder so small that all weights have to be summed to know where they are.
    #[test]
    fn a_path_that_is_slow_to_replay_is_refused() {
        let n = 3000;
        let atom = |k: u32| Atom::plus(2 * k, 2 * k + 1).unwrap();
        let start: Vec<(Atom, f64)> = (0..n).map(|k| (atom(k), 1.0 / f64::from(n))).collect();
        let pair = [
            Step::Forward {
                atom: atom(n),
                // 1 - γ is a power of two, so that nothing is lost by dividing by it.
                gamma: 1.0 - 2f64.powi(-45),
            },
            Step::Drop { atom: atom(n) },
        ];
        let path = |n_pairs: usize| Path::new(start.clone(), pair.repeat(n_pairs));
        assert!(path(100).is_ok(), "{:?}", path(100).err());
        let refusal = path(2000).unwrap_err().to_string();
        assert!(refusal.contains("too slow to check"), "{refusal}");
    }
}
