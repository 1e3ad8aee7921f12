//! Hard-negative mining: triplets are mined under the similarity learned so far and added to those there were, and the
//! run continues from its last iterate.
//!
//! Neighbors under the dot product are a guess at which rows will be compared; neighbors under the similarity learned
//! so far are the comparisons it gets wrong, or right by a small margin. A round costs one search for neighbors.

use super::data::weighted_by_class;
use crate::atoms::{ActiveSet, Path};
use crate::cancel::CancelToken;
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::observer::{Observer, Stop};
use crate::similarity::BilinearModel;
use crate::solver::{Run, SolverParams};
use crate::triplets::Triplets;
use std::borrow::Cow;
use std::time::Duration;

/// Same-class and other-class neighbors per row that a mining round adds triplets of.
const MINED: [usize; 2] = [3, 5];

/// A run with its mining rounds as far as they are done.
#[derive(Clone, Debug)]
pub(crate) struct MiningRun<'t> {
    /// All rounds as one: one path, one trace.
    pub(crate) run: Run,
    /// The triplets of all rounds; none if they are on other machines.
    pub(crate) triplets: Cow<'t, Triplets>,
    /// Their number.
    pub(crate) n_triplets: usize,
    /// The weight of each class, of the anchors of mined triplets.
    pub(crate) class_weights: Option<&'t [f64]>,
    /// The number of steps after which each round ended.
    pub(crate) ends: Vec<usize>,
}

impl<'t> MiningRun<'t> {
    /// After the first round, which is an ordinary run.
    pub(crate) fn new(run: Run, triplets: Cow<'t, Triplets>) -> Self {
        Self {
            ends: vec![run.path.len()],
            run,
            n_triplets: triplets.len(),
            triplets,
            class_weights: None,
        }
    }

    /// Whether another round makes sense: this one ended by itself, and not because a budget was used up.
    pub(crate) fn may_continue(&self) -> bool {
        matches!(
            self.run.stop,
            Stop::MaxIter | Stop::Tolerance | Stop::Satisfied | Stop::Stationary
        )
    }

    /// Runs mining rounds until round `last` is done (the first run is round 0), or the run may not continue. Triplets are
    /// mined from these rows, and `solver` gives the parameters of each round.
    pub(crate) fn continue_to(
        &mut self,
        last: usize,
        rows: &Rows,
        labels: &Labels,
        solver: impl Fn(usize) -> Result<SolverParams>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        while self.ends.len() <= last && self.may_continue() {
            match self.round(rows, labels, solver(self.ends.len())?, observer) {
                // Cancelled before its first iteration: the rounds before remain.
                Err(Error::Stopped) => self.run.stop = Stop::ObserverAsked,
                done => done?,
            }
        }
        Ok(())
    }

    /// Continues the last round with the same triplets.
    pub(crate) fn extend(
        &mut self,
        rows: &Rows,
        solver: SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let active = Some(&self.run.active);
        let next = solver
            .build()?
            .fit_from(rows, &self.triplets, active, observer)?;
        self.append(next)
    }

    /// A run of which only the path is known, with the triplets of its first round. Those of later rounds are mined again:
    /// after the runs that these numbers name, under the iterate that each of them ended with.
    pub(crate) fn with_triplets(
        self,
        mut triplets: Triplets,
        before_rounds: impl IntoIterator<Item = usize>,
        (rows, labels): (&Rows, &Labels),
        solver: &SolverParams,
        cancel: CancelToken<'_>,
    ) -> Result<MiningRun<'static>> {
        for run in before_rounds {
            let active = self.run.path.at(self.ends[run])?;
            triplets.append(&mined(&active, (rows, labels), solver, cancel)?);
        }
        Ok(MiningRun {
            run: self.run,
            n_triplets: triplets.len(),
            triplets: Cow::Owned(triplets),
            class_weights: None,
            ends: self.ends,
        })
    }

    /// One more round; a time limit counts from the start of the first.
    pub(crate) fn round(
        &mut self,
        rows: &Rows,
        labels: &Labels,
        mut solver: SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let active = &self.run.active;
        let found = mined(active, (rows, labels), &solver, observer.cancel_token())?;
        let found = weighted_by_class(found, Some(labels), self.class_weights);
        self.triplets.to_mut().append(&found);
        self.n_triplets = self.triplets.len();
        if let Some(limit) = solver.time_limit {
            let spent = Duration::from_secs_f64(self.run.seconds);
            solver.time_limit = Some(limit.saturating_sub(spent));
        }
        // Memory that was freed may not look free yet: without a limit of the caller's there is none.
        solver.memory_limit.get_or_insert(u64::MAX);
        let next = solver
            .build()?
            .fit_from(rows, &self.triplets, Some(active), observer)?;
        self.append(next)
    }

    /// Adds a run that continued from the last iterate.
    pub(crate) fn append(&mut self, next: Run) -> Result<()> {
        let mut steps = self.run.path.steps().to_vec();
        steps.extend_from_slice(next.path.steps());
        self.run.path = Path::new(self.run.path.start().to_vec(), steps)?;
        // The last digits of these weights may differ from those of the run that was appended, which began with others. What
        // follows continues from the path, also in another process.
        self.run.active = self.run.path.at(self.run.path.len())?;
        // The objective of the last iterate over the old triplets gives way to that over all.
        self.run.trace.pop();
        self.run.trace.extend(next.trace);
        self.run.stop = next.stop;
        self.run.seconds += next.seconds;
        self.ends.push(self.run.path.len());
        Ok(())
    }
}

/// The triplets that a mining round adds.
fn mined(
    active: &ActiveSet,
    (rows, labels): (&Rows, &Labels),
    solver: &SolverParams,
    cancel: CancelToken<'_>,
) -> Result<Triplets> {
    let (lambda, base) = (solver.lambda, solver.base);
    let learned = BilinearModel::on_base(rows.n_features(), lambda, active, base)?;
    Triplets::by_neighbors(&learned, rows, labels, MINED, cancel)
}
