//! The path of a run: where the solver started and every step it took.

use super::replay::Replay;
use crate::atoms::{ActiveSet, Atom, Step};
use crate::error::{Error, Result};
use std::collections::{BTreeSet, HashSet};

/// How far from 1 the sum of weights may drift along a path.
const DRIFT: f64 = 1e-3;

/// A start and the steps from there, from which every iterate can be computed without training again.
///
/// Iterate 0 is the start, and iterate `n` comes after step `n`. Replaying gives the weights of the solver bit for bit.
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
        Self::within_work(start, steps, u64::MAX)
    }

    /// The same, but refused if the active atoms of all iterates may add up to more than `limit`: the cost of replaying is
    /// proportional to that, and can be the square of the size of a file. It is refused before it is replayed.
    pub(crate) fn within_work(
        start: Vec<(Atom, f64)>,
        steps: Vec<Step>,
        limit: u64,
    ) -> Result<Self> {
        let refuse = |number: usize, reason: String| {
            Err(Error::data(format!(
                "step {number} of {} of the path {reason}",
                steps.len()
            )))
        };
        if let Some(number) = first_beyond(limit, &start, &steps) {
            let reason =
                "makes it too long to replay: the active atoms of its iterates add up to more than";
            return refuse(number, format!("{reason} {limit}"));
        }
        let active = match steps.is_empty() && start.is_empty() {
            true => ActiveSet::default(),
            false => ActiveSet::from_weighted(&start)?,
        };
        let mut sums = Drift::of(active.weights());
        let mut replay = Replay::new(active);
        for (number, step) in (1..).zip(&steps) {
            let Some(factor) = replay.take(step) else {
                return refuse(number, format!("cannot be taken: {step:?}"));
            };
            // Steps that divide by a small remainder magnify rounding, and a hostile file could drive the weights
            // anywhere.
            if !sums.stays_within(factor) {
                let total = sum(replay.active().weights());
                if !(1.0 - DRIFT..1.0 + DRIFT).contains(&total) {
                    return refuse(
                        number,
                        format!("gives weights that sum to {total}, expected 1"),
                    );
                }
                sums = Drift::of(replay.active().weights());
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
        let (mut replay, mut done) = (Replay::new(self.first()), 0);
        let go_on_to = |&iteration: &usize| {
            let steps = self.steps.get(done..iteration).ok_or_else(|| {
                let n = self.steps.len();
                Error::data(format!(
                    "there is no iterate {iteration}: the path has {n} steps"
                ))
            })?;
            for step in steps {
                let factor = replay.take(step);
                factor.expect("the steps were checked when the path was made");
            }
            done = iteration;
            Ok(replay.active().clone())
        };
        iterations.iter().map(go_on_to).collect()
    }

    /// The number of atoms and of features that each iterate uses, the start first.
    pub fn counts(&self) -> Vec<(usize, usize)> {
        let mut active = self.first();
        let count = |active: &ActiveSet| (active.len(), active.n_features());
        let mut counts = vec![count(&active)];
        counts.extend(self.steps.iter().map(|step| {
            active.apply(step);
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

/// A bound of how far the sum of the weights is from 1, from step to step, so that they need not be summed after each.
struct Drift(f64);

impl Drift {
    /// The bound for weights that were just summed.
    fn of(weights: &[f64]) -> Self {
        Self((sum(weights) - 1.0).abs() + weights.len() as f64 * f64::EPSILON)
    }

    /// The bound after a step that multiplies all weights by a factor, and that the sum would leave at 1 without rounding.
    /// The errors of the step before and after the multiplication are below 4 ε.
    fn stays_within(&mut self, factor: f64) -> bool {
        const ROUNDING: f64 = 4.0 * f64::EPSILON;
        self.0 = factor * (self.0 + ROUNDING) + ROUNDING;
        self.0 < DRIFT
    }
}

/// The number of the first step at which the active atoms of the iterates before it add up to more than `limit`. Weights
/// are not looked at, so that this is linear in the number of steps: a weight that underflows counts on.
fn first_beyond(limit: u64, start: &[(Atom, f64)], steps: &[Step]) -> Option<usize> {
    // All iterates together have at most this many atoms.
    let most = (start.len() as u64 + steps.len() as u64).saturating_mul(steps.len() as u64);
    if most <= limit {
        return None;
    }
    let mut active: HashSet<Atom> = start.iter().map(|weighted| weighted.0).collect();
    let mut work = 0u64;
    for (number, step) in (1..).zip(steps) {
        work += active.len() as u64;
        if work > limit {
            return Some(number);
        }
        match *step {
            Step::Forward { atom, gamma } => {
                if gamma == 1.0 {
                    active = HashSet::new();
                }
                active.insert(atom);
            }
            Step::Away { .. } => {}
            Step::Drop { atom } => _ = active.remove(&atom),
            Step::Pairwise { to, .. } => _ = active.insert(to),
            Step::Swap { to, from } => {
                active.remove(&from);
                active.insert(to);
            }
        }
    }
    None
}

/// The sum of numbers in eight parts, which takes a fraction of the time of one sum after the other.
fn sum(numbers: &[f64]) -> f64 {
    let chunks = numbers.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().sum();
    let mut parts = [0.0; 8];
    for chunk in chunks {
        for (part, number) in parts.iter_mut().zip(chunk) {
            *part += number;
        }
    }
    rest + parts.iter().sum::<f64>()
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

    /// The step at which a path becomes too long is found without replaying it: that takes 40,000 steps here, not 2·10⁹.
    #[test]
    fn the_work_of_a_path_is_known_before_it_is_replayed() {
        let n = 60_000;
        let atom = |k: u32| Atom::plus(2 * k, 2 * k + 1).unwrap();
        let start: Vec<(Atom, f64)> = (0..n).map(|k| (atom(k), 1.0 / f64::from(n))).collect();
        let step = Step::Forward {
            atom: atom(0),
            gamma: 1e-9,
        };
        let refusal = Path::within_work(start.clone(), vec![step; 40_000], 2_000_000_000);
        let refusal = refusal.unwrap_err().to_string();
        assert!(refusal.starts_with("step 33334 of 40000"), "{refusal}");
        // Other steps: what they add and remove is counted.
        let all = Step::Forward {
            atom: atom(1),
            gamma: 1.0,
        };
        let swap = Step::Swap {
            to: atom(2),
            from: atom(1),
        };
        let more = Step::Pairwise {
            to: atom(3),
            from: atom(2),
            gamma: 0.5,
        };
        let steps = vec![all, swap, more, Step::Drop { atom: atom(3) }, all];
        let work = u64::from(n) + 1 + 1 + 2 + 1;
        assert_eq!(first_beyond(work, &start, &steps), None);
        assert_eq!(first_beyond(work - 1, &start, &steps), Some(5));
        assert!(Path::within_work(start, steps, work).is_ok());
    }
}
