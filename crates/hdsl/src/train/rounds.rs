//! Learning in rounds: triplets are mined again under the similarity learned so far and added to those there were, and
//! the run goes on from where it was.
//!
//! Neighbors under the dot product are a guess at which rows will be compared; neighbors under the similarity learned
//! so far are the comparisons it gets wrong, or right by little. A round costs one search for neighbors.

use crate::atoms::ActiveSet;
use crate::atoms::Path;
use crate::cancel::CancelToken;
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::observer::{Event, Observer, Stop};
use crate::similarity::BilinearModel;
use crate::solver::{Run, SolverParams};
use crate::triplets::Triplets;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::Duration;

/// How triplets are mined again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// How often.
    pub rounds: usize,
    /// Nearest rows of the same class, a row.
    pub targets: usize,
    /// Nearest rows of other classes, a row.
    pub impostors: usize,
}

impl Default for Again {
    /// Never; and 3 x 5 where only the number of rounds is changed.
    fn default() -> Self {
        Self {
            rounds: 0,
            targets: 3,
            impostors: 5,
        }
    }
}

/// A run as far as it has come, with the triplets it learned from.
#[derive(Clone, Debug)]
pub(crate) struct InRounds<'t> {
    /// All rounds as one: one path, one trace.
    pub(crate) run: Run,
    /// Those of all rounds.
    pub(crate) triplets: Cow<'t, Triplets>,
    /// After how many steps each round ended.
    pub(crate) ends: Vec<usize>,
}

impl<'t> InRounds<'t> {
    /// The first round: an ordinary run.
    pub(crate) fn first(
        rows: &Rows,
        triplets: Cow<'t, Triplets>,
        solver: &SolverParams,
        start: Option<&ActiveSet>,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let solver = solver.clone().build()?;
        let run = match start {
            Some(start) => solver.fit_from(start, rows, &triplets, observer)?,
            None => solver.fit(rows, &triplets, observer)?,
        };
        Ok(Self::begun(run, triplets))
    }

    /// After a first round that somebody else ran.
    pub(crate) fn begun(run: Run, triplets: Cow<'t, Triplets>) -> Self {
        Self {
            ends: vec![run.path.len()],
            run,
            triplets,
        }
    }

    /// Whether another round makes sense: this one ended by itself, and not because something was used up.
    pub(crate) fn may_go_on(&self) -> bool {
        matches!(
            self.run.stop,
            Stop::MaxIter | Stop::Tolerance | Stop::Satisfied | Stop::Stationary
        )
    }

    /// Another round of at most `max_iter` iterations; a limit of time counts from the start of the first. If somebody
    /// wants to stop before its first iteration, all stays as it is.
    pub(crate) fn again(
        &mut self,
        rows: &Rows,
        labels: &Labels,
        again: Again,
        solver: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        match self.mine(rows, labels, again, solver.scale, observer.cancel_token()) {
            Err(Error::Stopped) => {
                self.run.stop = Stop::ObserverAsked;
                return Ok(());
            }
            mined => mined?,
        }
        let mut solver = solver.clone();
        if let Some(limit) = solver.time_limit {
            solver.time_limit =
                Some(limit.saturating_sub(Duration::from_secs_f64(self.run.seconds)));
        }
        let mut onward = Onward {
            iterations: self.run.path.len(),
            seconds: self.run.seconds,
            observer,
        };
        // What fitted once is let try again, for memory that was given back may not look free yet; a limit that somebody
        // set holds all the same.
        solver.memory_limit.get_or_insert(u64::MAX);
        let next = solver
            .build()?
            .fit_from(&self.run.active, rows, &self.triplets, &mut onward);
        let next = match next {
            Err(Error::Stopped) => {
                self.run.stop = Stop::ObserverAsked;
                return Ok(());
            }
            next => next?,
        };
        let mut steps = self.run.path.steps().to_vec();
        steps.extend_from_slice(next.path.steps());
        self.run.path = Path::new(self.run.path.start().to_vec(), steps)?;
        // What the last iterate was worth to the old triplets gives way to what it is worth to all.
        self.run.trace.pop();
        self.run.trace.extend(next.trace);
        self.run.active = next.active;
        self.run.stop = next.stop;
        self.run.seconds += next.seconds;
        self.ends.push(self.run.path.len());
        Ok(())
    }

    /// Adds the triplets of the iterate of now.
    fn mine(
        &mut self,
        rows: &Rows,
        labels: &Labels,
        again: Again,
        scale: f64,
        cancel: CancelToken<'_>,
    ) -> Result<()> {
        let learned = BilinearModel::from_active(rows.n_features(), scale, &self.run.active)?;
        let each = (again.targets, again.impostors);
        let found = Triplets::by_neighbors_until(&learned, rows, labels, each, cancel)?;
        self.triplets.to_mut().append(&found);
        Ok(())
    }
}

/// Counts iterations and seconds on from the rounds before.
struct Onward<'a> {
    iterations: usize,
    seconds: f64,
    observer: &'a mut dyn Observer,
}

impl Observer for Onward<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let Event::Iteration(now, active) = event else {
            return self.observer.on_event(event);
        };
        let mut now = (*now).clone();
        now.iter += self.iterations;
        now.seconds += self.seconds;
        self.observer.on_event(&Event::Iteration(&now, active))
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        self.observer.cancel_token()
    }
}
