//! One setting on one fold, round by round, with looks at the validation rows on the way.

use super::TuneParams;
use super::folds::Fold;
use super::setting::Setting;
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::data::Rows;
use crate::error::Result;
use crate::knn::Jury;
use crate::knn::PredictionRule;
use crate::observer::{Event, Observer, Stop};
use crate::parallel::prelude::*;
use crate::similarity::BilinearModel;
use crate::train::ensemble::mean;
use crate::train::rounds::{Again, InRounds};
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
    pub(super) rules: &'a [PredictionRule],
    /// When to look, by iterations of a round; the last is its length.
    pub(super) looks: &'a [usize],
    pub(super) again: Again,
    pub(super) params: &'a TuneParams,
    /// Whether to stop at once.
    pub(super) cancel: &'a (dyn Fn() -> bool + Sync),
}

/// Where the models of a setting are on a fold; None where that is not known, or nothing was begun.
pub(super) type State = Option<Vec<InRounds<'static>>>;

impl Course<'_> {
    /// The next round of a setting on a fold. `state` is where its last round ended, and where this one does; if it is lost,
    /// the rounds before are learned again. None if halted before there was anything to judge.
    pub(super) fn round(
        &self,
        setting: &Setting,
        fold: &Fold,
        round: usize,
        state: &mut State,
    ) -> Result<Option<Judged>> {
        let (rows, judged) = fold.scaled(setting.preprocess);
        let begun: Vec<_> = match state.take() {
            Some(models) => models.into_iter().map(Some).collect(),
            None => vec![None; setting.models],
        };
        let seconds = |models: &mut dyn Iterator<Item = &InRounds<'_>>| -> f64 {
            models.map(|model| model.run.seconds).sum()
        };
        let before = seconds(&mut begun.iter().flatten());
        let learned: Result<Vec<Option<_>>> = begun
            .into_par_iter()
            .enumerate()
            .map(|(number, begun)| self.learn(setting, number, fold, &rows, round, begun))
            .collect();
        let Some(models) = learned?.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let mut looks = Vec::new();
        let jury = Jury::new(&rows, &fold.labels, &judged)?;
        for (iteration, active) in self.iterates(&models, round)? {
            let look = match active {
                Some(active) => self.look(setting, fold, &jury, iteration, &active)?,
                // A run that ended by itself stays where it is for all looks to come.
                None => Look {
                    iteration,
                    ..looks
                        .last()
                        .cloned()
                        .expect("it was looked at where it ended")
                },
            };
            looks.push(look);
        }
        let judged = Judged {
            looks,
            seconds: seconds(&mut models.iter()) - before,
            goes_on: models.iter().all(InRounds::may_go_on),
        };
        *state = Some(models);
        Ok((!judged.looks.is_empty()).then_some(judged))
    }

    /// One model of a setting up to the end of a round; None if halted before its first iteration.
    fn learn(
        &self,
        setting: &Setting,
        number: usize,
        fold: &Fold,
        rows: &Rows,
        round: usize,
        mut begun: Option<InRounds<'static>>,
    ) -> Result<Option<InRounds<'static>>> {
        let length = *self.looks.last().expect("a round has a last look");
        let seed = self.params.seed.wrapping_add(number as u64);
        let solver = self.params.solver(setting, length).seed(seed);
        let mut watch = Halted(self.cancel);
        loop {
            match &mut begun {
                None => {
                    let labels = Some(&fold.labels);
                    let triplets =
                        (setting.triplets).triplets(rows, labels, seed, CancelToken::NEVER)?;
                    let triplets = Cow::Owned(triplets);
                    let first = InRounds::first(rows, triplets, &solver, None, &mut watch)?;
                    if first.run.stop == Stop::ObserverAsked && round > 0 {
                        return Ok(None);
                    }
                    begun = Some(first);
                }
                Some(learned) if learned.ends.len() <= round => {
                    learned.again(rows, &fold.labels, self.again, &solver, &mut watch)?;
                    if learned.run.stop == Stop::ObserverAsked {
                        return Ok((learned.ends.len() > round).then_some(begun).flatten());
                    }
                }
                Some(_) => return Ok(begun),
            }
        }
    }

    /// The means of the models at each look of a round that all of them came to, by its iteration; None where they are as
    /// they were at the one before.
    fn iterates(
        &self,
        models: &[InRounds<'_>],
        round: usize,
    ) -> Result<Vec<(usize, Option<ActiveSet>)>> {
        let mut reached = self.looks.len();
        let mut places = Vec::with_capacity(models.len());
        for model in models {
            let start = if round == 0 { 0 } else { model.ends[round - 1] };
            let end = model.ends[round];
            if model.run.stop == Stop::ObserverAsked {
                let come = self.looks.iter().filter(|&&look| start + look <= end);
                reached = reached.min(come.count());
            }
            let place = |&look: &usize| (start + look).min(end);
            places.push(self.looks.iter().map(place).collect::<Vec<_>>());
        }
        let each: Result<Vec<_>> = models
            .iter()
            .zip(&places)
            .map(|(model, places)| model.run.path.at_each(&places[..reached]))
            .collect();
        let each = each?;
        (0..reached)
            .map(|look| {
                let stays = |p: &Vec<usize>| look > 0 && p[look] == p[look - 1];
                let iterate = match places.iter().all(stays) {
                    true => None,
                    false => {
                        let here: Vec<ActiveSet> = each.iter().map(|e| e[look].clone()).collect();
                        Some(mean(&here)?)
                    }
                };
                Ok((self.looks[look], iterate))
            })
            .collect()
    }

    fn look(
        &self,
        setting: &Setting,
        fold: &Fold,
        jury: &Jury<'_>,
        iteration: usize,
        active: &ActiveSet,
    ) -> Result<Look> {
        let n_features = fold.train().n_features();
        let similarity = BilinearModel::from_active(n_features, setting.scale, active)?;
        let wrong = jury
            .predictions(&similarity, self.rules)?
            .iter()
            .map(|codes| {
                (fold.first..)
                    .zip(codes.iter().zip(&fold.truth))
                    .filter(|(_, (predicted, truth))| predicted != truth)
                    .map(|(row, _)| row)
                    .collect()
            })
            .collect();
        Ok(Look {
            iteration,
            atoms: active.len(),
            features: active.n_features(),
            wrong,
        })
    }
}

/// Ends a run when the search is halted.
struct Halted<'a>(&'a (dyn Fn() -> bool + Sync));

impl Observer for Halted<'_> {
    fn on_event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        match (self.0)() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
