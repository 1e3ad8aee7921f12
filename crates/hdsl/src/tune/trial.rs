//! One setting on one fold, round by round, with looks at the validation rows on the way.

use super::TuneParams;
use super::folds::Fold;
use super::setting::Setting;
use crate::atoms::ActiveSet;
use crate::error::{Error, Result};
use crate::knn::Jury;
use crate::model::{BilinearModel, Decision};
use crate::rounds::{Again, InRounds};
use crate::solver::{Iteration, Observer, Stop};
use crate::train::mine;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// What a look at a path saw.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Look {
    /// Iterations of the round that were allowed; the run may have ended by itself before.
    pub(super) iteration: usize,
    pub(super) atoms: usize,
    pub(super) features: usize,
    /// The judged rows that are wrong, for each decision, by their number among all folds.
    pub(super) wrong: Vec<Vec<u32>>,
}

/// A round of a setting on a fold, judged.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    pub(super) looks: Vec<Look>,
    /// Seconds of learning, of this round alone.
    pub(super) seconds: f64,
    /// Whether there may be another round.
    pub(super) goes_on: bool,
}

impl Judged {
    /// Whether no look is missing, because it was halted.
    pub(super) fn is_whole(&self, looks: &[usize]) -> bool {
        self.looks.len() == looks.len()
    }
}

/// What all rounds of all settings have in common.
pub(super) struct Course<'a> {
    pub(super) decisions: &'a [Decision],
    /// When to look, by iterations of a round; the last is its length.
    pub(super) looks: &'a [usize],
    pub(super) again: Again,
    pub(super) params: &'a TuneParams,
    /// Whether to stop at once.
    pub(super) halt: &'a (dyn Fn() -> bool + Sync),
}

impl Course<'_> {
    /// The next round of a setting on a fold. `state` is where its last round ended, and where this one does; if it is lost,
    /// the rounds before are learned again, without looks. None if halted before there was anything to judge.
    pub(super) fn round(
        &self,
        setting: &Setting,
        fold: &Fold,
        round: usize,
        state: &mut Option<InRounds<'static>>,
    ) -> Result<Option<Judged>> {
        let (rows, judged) = fold.scaled(setting.scaling);
        let length = *self.looks.last().expect("a round has a last look");
        let solver = self.params.solver(setting, length);
        let mut watch = Watch {
            jury: Jury::new(&rows, &fold.labels, &judged)?,
            fold,
            course: self,
            setting,
            n_features: rows.n_features(),
            silent: true,
            before: 0,
            looks: Vec::new(),
            failed: None,
        };
        let done = match state {
            Some(state) => state.ends.len(),
            None => 0,
        };
        for number in done..=round {
            watch.silent = number < round;
            let seconds = match state {
                None => {
                    watch.before = 0;
                    let triplets = mine(
                        &setting.triplets,
                        &rows,
                        Some(&fold.labels),
                        self.params.seed,
                    )?;
                    let first =
                        InRounds::first(&rows, Cow::Owned(triplets), &solver, None, &mut watch)?;
                    let seconds = first.run.seconds;
                    *state = Some(first);
                    seconds
                }
                Some(state) => {
                    watch.before = state.run.path.len();
                    let before = state.run.seconds;
                    state.again(&rows, &fold.labels, self.again, &solver, &mut watch)?;
                    state.run.seconds - before
                }
            };
            if let Some(error) = watch.failed.take() {
                return Err(error);
            }
            let learned = state.as_ref().expect("a round was learned");
            if learned.run.stop == Stop::ObserverAsked && watch.looks.is_empty() {
                return Ok(None);
            }
            if number == round {
                if learned.run.stop != Stop::ObserverAsked {
                    watch.last_look(&learned.run.active)?;
                }
                return Ok(Some(Judged {
                    looks: watch.looks,
                    seconds,
                    goes_on: learned.may_go_on(),
                }));
            }
        }
        Ok(None)
    }
}

/// Looks at the judged rows now and then.
struct Watch<'a> {
    jury: Jury<'a>,
    fold: &'a Fold,
    course: &'a Course<'a>,
    setting: &'a Setting,
    n_features: usize,
    silent: bool,
    /// Iterations of the rounds before.
    before: usize,
    looks: Vec<Look>,
    failed: Option<Error>,
}

impl Watch<'_> {
    fn look(&mut self, iteration: usize, active: &ActiveSet) -> Result<()> {
        let similarity = BilinearModel::from_active(self.n_features, self.setting.scale, active)?;
        let decisions = self.course.decisions;
        let wrong = self
            .jury
            .predictions(&similarity, decisions)?
            .iter()
            .map(|codes| {
                (self.fold.first..)
                    .zip(codes.iter().zip(&self.fold.truth))
                    .filter(|(_, (predicted, truth))| predicted != truth)
                    .map(|(row, _)| row)
                    .collect()
            })
            .collect();
        self.looks.push(Look {
            iteration,
            atoms: active.len(),
            features: active.n_features(),
            wrong,
        });
        Ok(())
    }

    /// A run that ended by itself stays where it is for all looks to come.
    fn last_look(&mut self, active: &ActiveSet) -> Result<()> {
        let seen = self.looks.len();
        if seen == self.course.looks.len() {
            return Ok(());
        }
        self.look(self.course.looks[seen], active)?;
        let last = self.looks[seen].clone();
        for &iteration in &self.course.looks[seen + 1..] {
            self.looks.push(Look {
                iteration,
                ..last.clone()
            });
        }
        Ok(())
    }
}

impl Observer for Watch<'_> {
    fn after(&mut self, now: &Iteration, active: &ActiveSet) -> ControlFlow<()> {
        if (self.course.halt)() {
            return ControlFlow::Break(());
        }
        let iteration = now.iter - self.before;
        let due = self.course.looks.get(self.looks.len()) == Some(&iteration);
        if due
            && !self.silent
            && let Err(error) = self.look(iteration, active)
        {
            self.failed = Some(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
