//! One configuration, round by round on all folds, with validation errors at checkpoints of its paths.

use super::choice::Point;
use super::folds::{Fold, Folds};
use super::journal::{Checkpoint, Job, Round};
use super::search::Search;
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::data::Rows;
use crate::error::Result;
use crate::knn::Predictor;
use crate::model::TrainConfig;
use crate::observer::{Event, Stop};
use crate::parallel::prelude::*;
use crate::similarity::BilinearModel;
use crate::train::ensemble::average;
use crate::train::rounds::MiningRun;
use crate::triplets::TripletSource;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The models of a configuration on a fold; none if they have to be trained again, or nothing was begun.
type Models = Vec<MiningRun<'static>>;

/// A configuration with the rounds it has done.
pub(super) struct Trial {
    pub(super) config: TrainConfig,
    /// On each fold.
    pub(super) models: Vec<Models>,
    pub(super) points: Vec<Point>,
    /// Rounds that are done on all folds.
    pub(super) rounds: usize,
    pub(super) may_continue: bool,
    /// Seconds of training, on all folds.
    pub(super) seconds: f64,
}

impl Trial {
    pub(super) fn new(config: TrainConfig, folds: &Folds) -> Self {
        Self {
            config,
            models: vec![Vec::new(); folds.folds.len()],
            points: Vec::new(),
            rounds: 0,
            may_continue: true,
            seconds: 0.0,
        }
    }

    pub(super) fn is_random(&self) -> bool {
        matches!(self.config.triplets, TripletSource::Random { .. })
    }

    /// The lowest error so far.
    pub(super) fn error(&self, n_validation: usize) -> f64 {
        let least = self.points.iter().map(|p| p.wrong.len()).min();
        least.map_or(1.0, |least| least as f64 / n_validation as f64)
    }

    /// Runs the rounds that are missing up to round `last`. Returns whether there was time for all of them.
    pub(super) fn run(
        &mut self,
        number: usize,
        last: usize,
        folds: &Folds,
        sampled: bool,
        search: &Search<'_>,
    ) -> Result<bool> {
        while self.rounds <= last && self.may_continue {
            let (config, round) = (&self.config, self.rounds);
            let on_fold = |(fold, models): (usize, &mut Models)| {
                let job = Job {
                    sampled,
                    configuration: config.to_string(),
                    fold,
                    round,
                };
                search.recorded(job, || {
                    run_round(search, config, &folds.folds[fold], round, models)
                })
            };
            let done = self.models.par_iter_mut().enumerate().map(on_fold);
            let Some(done) = done.collect::<Result<Option<Vec<Round>>>>()? else {
                return Ok(false);
            };
            self.add(number, search, &done);
            if !done.iter().all(|round| search.is_whole(round)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds a round that is done on all folds.
    fn add(&mut self, number: usize, search: &Search<'_>, folds: &[Round]) {
        let reached = folds.iter().map(|r| r.checkpoints.len()).min().unwrap_or(0);
        for (at, &iteration) in search.checkpoints[..reached].iter().enumerate() {
            let checkpoints = || folds.iter().map(|round| &round.checkpoints[at]);
            for (index, &rule) in search.rules.iter().enumerate() {
                self.points.push(Point {
                    trial: number,
                    round: self.rounds,
                    iteration,
                    atoms: checkpoints().map(|c| c.atoms).max().unwrap_or(0),
                    features: checkpoints().map(|c| c.features).max().unwrap_or(0),
                    n_estimators: self.config.n_estimators,
                    rule,
                    wrong: checkpoints()
                        .flat_map(|c| c.wrong[index].iter().copied())
                        .collect(),
                });
            }
        }
        self.rounds += 1;
        self.may_continue = folds.iter().all(|round| round.may_continue);
        self.seconds += folds.iter().map(|round| round.seconds).sum::<f64>();
    }
}

/// The next round of a configuration on a fold. `models` are as the last round left them, or lost; then the rounds before
/// are run again. None if cancelled before the first checkpoint.
fn run_round(
    search: &Search<'_>,
    config: &TrainConfig,
    fold: &Fold,
    round: usize,
    models: &mut Models,
) -> Result<Option<Round>> {
    let (rows, validation) = fold.preprocessed(config.preprocess);
    let seconds = |models: &Models| models.iter().map(|m| m.run.seconds).sum::<f64>();
    let begun = std::mem::take(models);
    let trained: Result<Models> = (0..config.n_estimators)
        .into_par_iter()
        .map(|number| {
            let config = TrainConfig {
                seed: config.seed.wrapping_add(number as u64),
                ..config.clone()
            };
            train(search, &config, fold, &rows, round, begun.get(number))
        })
        .collect();
    let trained = trained?;
    let predictor = Predictor::new(&rows, &fold.labels, &validation)?;
    let mut checkpoints: Vec<Checkpoint> = Vec::new();
    let mut last = ActiveSet::default();
    for (&iteration, active) in search
        .checkpoints
        .iter()
        .zip(iterates(search, &trained, round)?)
    {
        let wrong = match checkpoints.last() {
            // A run that has ended stays where it is.
            Some(before) if last == active => before.wrong.clone(),
            _ => {
                let (n_features, lambda) = (rows.n_features(), config.lambda[0]);
                let base = config.solver(lambda, round)?.base;
                let similarity = BilinearModel::on_base(n_features, lambda, &active, base)?;
                let predictions = predictor.predictions(&similarity, &search.rules)?;
                predictions.iter().map(|p| fold.wrong(p)).collect()
            }
        };
        checkpoints.push(Checkpoint {
            iteration,
            atoms: active.len(),
            features: active.n_features(),
            wrong,
        });
        last = active;
    }
    if checkpoints.is_empty() {
        return Ok(None);
    }
    let result = Round {
        checkpoints,
        seconds: seconds(&trained) - seconds(&begun),
        may_continue: trained.iter().all(MiningRun::may_continue),
    };
    *models = trained;
    Ok(Some(result))
}

/// One model of a configuration up to the end of a round, or until cancelled.
fn train(
    search: &Search<'_>,
    config: &TrainConfig,
    fold: &Fold,
    rows: &Rows,
    round: usize,
    begun: Option<&MiningRun<'static>>,
) -> Result<MiningRun<'static>> {
    let solver = |round| config.solver(config.lambda[0], round);
    let mut observer = |_: &Event<'_>| match search.is_cancelled() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let mut model = match begun {
        Some(model) => model.clone(),
        None => {
            let (source, labels) = (&config.triplets, Some(&fold.labels));
            let triplets = source.triplets(rows, labels, config.seed, CancelToken::NEVER)?;
            let run = solver(0)?.build()?.fit(rows, &triplets, &mut observer)?;
            MiningRun::new(run, Cow::Owned(triplets))
        }
    };
    model.continue_to(round, rows, &fold.labels, solver, &mut observer)?;
    Ok(model)
}

/// The average of the models at each checkpoint of a round that all of them reached.
fn iterates(search: &Search<'_>, models: &Models, round: usize) -> Result<Vec<ActiveSet>> {
    let mut reached = search.checkpoints.len();
    let mut paths = Vec::new();
    for model in models {
        // Cancelled in a round before.
        let Some(&end) = model.ends.get(round) else {
            return Ok(Vec::new());
        };
        let start = if round == 0 { 0 } else { model.ends[round - 1] };
        let at: Vec<usize> = search.checkpoints.iter().map(|at| start + at).collect();
        if model.run.stop == Stop::ObserverAsked {
            reached = reached.min(at.iter().filter(|&&at| at <= end).count());
        }
        let at: Vec<usize> = at.into_iter().map(|at| at.min(end)).collect();
        paths.push(model.run.path.at_each(&at)?);
    }
    (0..reached)
        .map(|at| {
            average(
                &paths
                    .iter()
                    .map(|path| path[at].clone())
                    .collect::<Vec<_>>(),
            )
        })
        .collect()
}
