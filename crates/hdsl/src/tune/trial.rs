//! One configuration on one fold, round by round, with validation errors at checkpoints of its path.

use super::folds::Fold;
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::data::Rows;
use crate::error::Result;
use crate::knn::{PredictionRule, Predictor};
use crate::model::TrainConfig;
use crate::observer::{Event, Stop};
use crate::parallel::prelude::*;
use crate::similarity::BilinearModel;
use crate::train::ensemble::average;
use crate::train::rounds::{Mined, MiningRun};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The validation errors at one iterate of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Iterations of the round that were allowed; the run may have ended before.
    pub(super) iteration: usize,
    pub(super) atoms: usize,
    pub(super) features: usize,
    /// The validation rows that are predicted wrong, for each prediction rule, by their number among all folds.
    pub(super) wrong: Vec<Vec<u32>>,
}

/// The result of a round of one configuration on one fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) checkpoints: Vec<Checkpoint>,
    /// Seconds of training, of this round alone.
    pub(super) seconds: f64,
    /// Whether there may be another round.
    pub(super) may_continue: bool,
}

impl Round {
    /// Whether no checkpoint is missing because the round was cancelled.
    pub(super) fn is_whole(&self, checkpoints: &[usize]) -> bool {
        self.checkpoints.len() == checkpoints.len()
    }
}

/// The models of a configuration on a fold; none if they have to be trained again, or nothing was begun.
pub(super) type State = Option<Vec<MiningRun<'static>>>;

/// Runs rounds of trials.
pub(super) struct TrialRunner<'a> {
    pub(super) rules: &'a [PredictionRule],
    /// The iterations of a round at which validation errors are computed; the last is its length.
    pub(super) checkpoints: &'a [usize],
    pub(super) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl TrialRunner<'_> {
    /// The next round of a configuration on a fold. `state` is where its last round ended, and where this one does; if it
    /// is lost, the rounds before are run again. None if cancelled before the first checkpoint.
    pub(super) fn round(
        &self,
        config: &TrainConfig,
        fold: &Fold,
        round: usize,
        state: &mut State,
    ) -> Result<Option<Round>> {
        let (rows, validation) = fold.preprocessed(config.preprocess);
        let begun: Vec<_> = match state.take() {
            Some(models) => models.into_iter().map(Some).collect(),
            None => vec![None; config.n_estimators],
        };
        let before: f64 = begun.iter().flatten().map(|m| m.run.seconds).sum();
        let models: Result<Vec<Option<_>>> = begun
            .into_par_iter()
            .enumerate()
            .map(|(number, begun)| self.train(config, number, fold, &rows, round, begun))
            .collect();
        let Some(models) = models?.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let predictor = Predictor::new(&rows, &fold.labels, &validation)?;
        let mut checkpoints: Vec<Checkpoint> = Vec::new();
        for (iteration, active) in self.iterates(&models, round)? {
            let checkpoint = match (active, checkpoints.last()) {
                (Some(active), _) => {
                    self.checkpoint(config.lambda[0], fold, &predictor, iteration, &active)?
                }
                // A run that has ended stays where it is.
                (None, Some(last)) => Checkpoint {
                    iteration,
                    ..last.clone()
                },
                (None, None) => unreachable!("the first checkpoint has an iterate"),
            };
            checkpoints.push(checkpoint);
        }
        let result = Round {
            checkpoints,
            seconds: models.iter().map(|m| m.run.seconds).sum::<f64>() - before,
            may_continue: models.iter().all(MiningRun::may_continue),
        };
        *state = Some(models);
        Ok((!result.checkpoints.is_empty()).then_some(result))
    }

    /// One model of a configuration up to the end of a round; none if cancelled before its first iteration.
    fn train(
        &self,
        config: &TrainConfig,
        number: usize,
        fold: &Fold,
        rows: &Rows,
        round: usize,
        begun: Option<MiningRun<'static>>,
    ) -> Result<Option<MiningRun<'static>>> {
        let seed = config.seed.wrapping_add(number as u64);
        let mut solver = config.solver(config.lambda[0])?;
        solver.seed = seed;
        let mut observer = |_: &Event<'_>| match (self.is_cancelled)() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut model = match begun {
            Some(model) => model,
            None => {
                let (source, labels) = (&config.triplets, Some(&fold.labels));
                let triplets = source.triplets(rows, labels, seed, CancelToken::NEVER)?;
                let run = solver
                    .clone()
                    .build()?
                    .fit(rows, &triplets, &mut observer)?;
                MiningRun::new(run, Cow::Owned(triplets))
            }
        };
        let labels = &fold.labels;
        let mined = Mined { rows, labels };
        model.continue_to(round, mined, |_| solver.clone(), &mut observer)?;
        Ok((model.ends.len() > round).then_some(model))
    }

    /// The average of the models at each checkpoint of a round that all of them reached, by its iteration; none where it
    /// is the same as at the checkpoint before.
    fn iterates(
        &self,
        models: &[MiningRun<'_>],
        round: usize,
    ) -> Result<Vec<(usize, Option<ActiveSet>)>> {
        let mut reached = self.checkpoints.len();
        let mut places = Vec::with_capacity(models.len());
        for model in models {
            let start = if round == 0 { 0 } else { model.ends[round - 1] };
            let end = model.ends[round];
            if model.run.stop == Stop::ObserverAsked {
                let done = self.checkpoints.iter().filter(|&&at| start + at <= end);
                reached = reached.min(done.count());
            }
            let place = |&at: &usize| (start + at).min(end);
            places.push(self.checkpoints.iter().map(place).collect::<Vec<_>>());
        }
        let each: Result<Vec<_>> = models
            .iter()
            .zip(&places)
            .map(|(model, places)| model.run.path.at_each(&places[..reached]))
            .collect();
        let each = each?;
        (0..reached)
            .map(|at| {
                let stays = |p: &Vec<usize>| at > 0 && p[at] == p[at - 1];
                if places.iter().all(stays) {
                    return Ok((self.checkpoints[at], None));
                }
                let here: Vec<ActiveSet> = each.iter().map(|e| e[at].clone()).collect();
                Ok((self.checkpoints[at], Some(average(&here)?)))
            })
            .collect()
    }

    fn checkpoint(
        &self,
        lambda: f64,
        fold: &Fold,
        predictor: &Predictor<'_>,
        iteration: usize,
        active: &ActiveSet,
    ) -> Result<Checkpoint> {
        let n_features = fold.train().n_features();
        let similarity = BilinearModel::from_active(n_features, lambda, active)?;
        let predictions = predictor.predictions(&similarity, self.rules)?;
        Ok(Checkpoint {
            iteration,
            atoms: active.len(),
            features: active.n_features(),
            wrong: predictions
                .iter()
                .map(|p| fold.wrong(p).collect())
                .collect(),
        })
    }
}
