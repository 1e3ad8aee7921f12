//! The coordinator: the training of [`crate::train()`] with rows and triplets on shards.

use super::message::{Answer, Message};
use super::{Link, Prepared};
use crate::atoms::{ActiveSet, Sign};
use crate::data::{IndexBase, Labels, Preprocessor};
use crate::error::{Error, Result};
use crate::knn::{Neighbor, PredictionRule, predict_class};
use crate::measures::TripletAccuracy;
use crate::model::{Model, ModelParts, TrainConfig, Validation};
use crate::objective::Features;
use crate::observer::{Event, Observer, Stop, Stopwatch};
use crate::solver::sharded::{Reply, Request, Shards, decode, encode};
use crate::sort::sort_by;
use crate::train::Trained;
use crate::train::base::with_weights_of;
use crate::train::rounds::MiningRun;
use crate::train::sharded::{
    Backend, Described, Evaluate, Sum, averaged, recorded, run_grid, train_members, trained_of,
};
use crate::triplets::{TripletSource, Triplets};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// What a training over shards is given besides the shards.
pub struct ClusterData<'a> {
    /// The number of features.
    pub n_features: usize,
    /// The class of each training row, if known.
    pub labels: Option<&'a Labels>,
    /// The class of each validation row, if there are any.
    pub truth: Option<&'a Labels>,
    /// The preprocessing, fitted on all training rows.
    pub preprocessor: &'a Preprocessor,
    /// Names of features, by number.
    pub names: Option<&'a [String]>,
    /// A solution to start from.
    pub start: Option<&'a ActiveSet>,
}

/// What [`train`] returns.
pub struct ClusterTrained {
    /// The best model.
    pub trained: Trained,
    /// If rows were lost for good: the error, and the model is that of the iterations before.
    pub error: Option<Error>,
}

/// Trains over shards, as [`crate::train()`] does over rows. λ and β are given, or chosen from sums over the rows.
///
/// With [`TrainConfig::checkpoint`], the coordinator writes the steps to a file, and goes on from there. The shards may be
/// others than those of the earlier training; sums then differ by rounding errors.
pub fn train(
    data: &ClusterData<'_>,
    config: &TrainConfig,
    link: &dyn Link,
    observer: &mut dyn Observer,
) -> Result<ClusterTrained> {
    let Some(checkpoint) = &config.checkpoint else {
        return train_unrecorded(data, config, link, observer);
    };
    let config = TrainConfig {
        checkpoint: None,
        ..config.clone()
    };
    recorded(checkpoint, fingerprint(data, &config), observer, |o| {
        let trained = train_unrecorded(data, &config, link, o)?;
        let is_complete =
            trained.error.is_none() && trained.trained.run.stop != Stop::ObserverAsked;
        Ok((trained, is_complete))
    })
}

/// What is trained, in one line. Rows are elsewhere; that they are the same shows in the objective.
fn fingerprint(data: &ClusterData<'_>, config: &TrainConfig) -> String {
    let mut sum = Sum::default();
    sum.numbers([data.n_features as u64]);
    sum.labels(data.labels);
    sum.labels(data.truth);
    sum.preprocessor(data.preprocessor);
    sum.names(data.names);
    sum.start(data.start);
    sum.training(config)
}

fn train_unrecorded(
    data: &ClusterData<'_>,
    config: &TrainConfig,
    link: &dyn Link,
    observer: &mut dyn Observer,
) -> Result<ClusterTrained> {
    let mut config = config.clone();
    config.warm_start = data.start.is_some();
    if config.validation == Validation::None && data.truth.is_some() {
        config.validation = Validation::Rows;
    }
    config.preprocess = data.preprocessor.kind();
    config.check()?;
    let lost = RefCell::new(None);
    let described = Described {
        n_features: data.n_features,
        names: data.names,
        classes: data.labels.map(Labels::names),
        index_base: IndexBase::Zero,
    };
    let one = |config: &TrainConfig, observer: &mut dyn Observer| {
        train_one(data, &described, config, link, &lost, observer)
    };
    let trained = match config.is_ensemble() {
        false => one(&config, observer)?,
        true => {
            let members = train_members(&config, observer, one)?;
            let error = |weights, active: &ActiveSet| {
                if config.validation == Validation::None || lost.borrow().is_some() {
                    return Ok(None);
                }
                // The average is evaluated with all rows.
                let prepared = match config.subsample == 1.0 {
                    true => None,
                    false => Some(link.prepare(config.seed, 1.0)?),
                };
                let codes = prepared.and_then(|prepared| prepared.codes);
                let remote = Remote::new(data, codes, &config, link, &lost);
                remote.error(weights, active).map(Some)
            };
            averaged(&described, &config, data.preprocessor, members, error)?
        }
    };
    Ok(ClusterTrained {
        trained,
        error: lost.into_inner(),
    })
}

/// One model.
fn train_one(
    data: &ClusterData<'_>,
    described: &Described<'_>,
    config: &TrainConfig,
    link: &dyn Link,
    lost: &RefCell<Option<Error>>,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let started = Instant::now();
    let mut prepared = link.prepare(config.seed, config.subsample)?;
    observer.cancel_token().check()?;
    let asked = observer.on_event(&Event::Triplets {
        count: prepared.n_triplets,
        seconds: started.elapsed().as_secs_f64(),
    });
    if prepared.n_triplets == 0 {
        return Err(Error::data("there are no triplets to learn from"));
    }
    let clock = Stopwatch::start();
    let mut config = with_weights_of(config, data.preprocessor.kind(), &prepared.sums);
    if let Some(count) = prepared.given {
        config.triplets = TripletSource::Given { count };
    }
    let codes = prepared.codes.take();
    let remote = Remote::new(data, codes, &config, link, lost);
    *remote.prepared.borrow_mut() = Some(prepared);
    let (best, grid) = run_grid(remote, &config, clock, asked.is_break(), observer)?;
    let preprocess = || data.preprocessor.clone();
    trained_of(described, &config, preprocess, best, grid)
}

/// The shards of one model.
struct Remote<'a> {
    data: &'a ClusterData<'a>,
    /// The labels of the rows that the shards have.
    labels: Option<Cow<'a, Labels>>,
    link: &'a dyn Link,
    /// What was lost for good.
    lost: &'a RefCell<Option<Error>>,
    rule: PredictionRule,
    has_validation: bool,
    prepared: RefCell<Option<Prepared>>,
    /// λ and β of the present run.
    weights: Cell<(f64, f64)>,
    /// Whether shards were made again during an evaluation, and no run has begun on them.
    are_new: Cell<bool>,
}

impl<'a> Remote<'a> {
    fn new(
        data: &'a ClusterData<'a>,
        codes: Option<Vec<u32>>,
        config: &TrainConfig,
        link: &'a dyn Link,
        lost: &'a RefCell<Option<Error>>,
    ) -> Self {
        let sampled = |labels: &Labels, codes: Vec<u32>| {
            Labels::from_codes(labels.names().to_vec(), codes)
                .ok()
                .map(Cow::Owned)
        };
        Self {
            data,
            labels: match (data.labels, codes) {
                (Some(labels), Some(codes)) => sampled(labels, codes),
                (labels, _) => labels.map(Cow::Borrowed),
            },
            link,
            lost,
            rule: config.rule,
            has_validation: config.validation != Validation::None,
            prepared: RefCell::new(None),
            weights: Cell::new((0.0, config.base.value().unwrap_or(0.0))),
            are_new: Cell::new(false),
        }
    }

    /// One round.
    fn round(&self, message: &Message) -> Result<Vec<Answer>> {
        let answers = self.link.ask(&encode(message))?;
        let answers = answers.iter().map(|bytes| match decode(bytes)? {
            Answer::Failed(reason) => Err(Error::data(reason)),
            Answer::NotBegun => Err(Error::WorkerLost("its shard was made again".into())),
            answer => Ok(answer),
        });
        answers.collect()
    }

    /// Begins a run on all shards, at M = 0.
    fn begin(&self) -> Result<()> {
        let (lambda, base) = self.weights.get();
        self.round(&Message::Begin { lambda, base }).map(|_| ())
    }

    /// Begins a run, on new shards if some are lost.
    fn begin_surely(&self) -> Result<()> {
        match self.begin() {
            Err(Error::WorkerLost(reason)) => self.recover(&reason),
            done => done,
        }
    }

    /// Has the shards made again.
    fn replace(&self, reason: &str) -> Result<()> {
        let replaced = self.link.recover(reason);
        if let Err(Error::DataLost(reason)) = &replaced {
            *self.lost.borrow_mut() = Some(Error::DataLost(reason.clone()));
        }
        replaced
    }

    /// One run over the present triplets.
    fn fit(
        &self,
        solver: crate::solver::SolverParams,
        start: Option<&ActiveSet>,
        clock: Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<crate::solver::Run> {
        let (features, total_weight) = {
            let prepared = self.prepared.borrow();
            let prepared = prepared.as_ref().expect("shards were prepared");
            (
                Features::new(prepared.features.clone()),
                prepared.total_weight,
            )
        };
        self.begin_surely()?;
        let solver = solver.build()?;
        solver.fit_sharded(self, &features, total_weight, start, clock, observer)
    }

    /// The similarity learned so far, for mining.
    fn model(&self, learned: &MiningRun<'_>) -> Result<Model> {
        let (lambda, base) = self.weights.get();
        let path = learned.run.path.clone();
        Model::new(ModelParts {
            preprocess: self.data.preprocessor.clone(),
            chosen: path.len(),
            base,
            ..ModelParts::new(self.data.n_features, lambda, path)
        })
    }

    fn n_triplets(&self) -> usize {
        self.prepared.borrow().as_ref().map_or(0, |p| p.n_triplets)
    }

    /// The error of an iterate, without a lost shard.
    fn try_error(&self, (lambda, base): (f64, f64), active: &ActiveSet) -> Result<f64> {
        let atoms = active.iter();
        let atoms = atoms.map(|(a, w)| (a.i(), a.j(), a.sign() == Sign::Minus, w));
        let answers = self.round(&Message::Evaluate {
            lambda,
            base,
            atoms: atoms.collect(),
        })?;
        let mut counts = TripletAccuracy::default();
        let mut merged: Vec<Vec<Neighbor>> = Vec::new();
        for answer in answers {
            match answer {
                Answer::HeldOut([satisfied, tied, total]) => {
                    counts.satisfied += satisfied;
                    counts.tied += tied;
                    counts.total += total;
                }
                Answer::Neighbors(lists) => {
                    merged.resize_with(lists.len(), Vec::new);
                    for (all, list) in merged.iter_mut().zip(lists) {
                        all.extend(list.into_iter().map(|(row, score)| Neighbor { row, score }));
                    }
                }
                other => return Err(Error::data(format!("an unexpected answer: {other:?}"))),
            }
        }
        let Some((truth, labels)) = self.data.truth.zip(self.labels.as_deref()) else {
            return Ok(1.0 - counts.accuracy());
        };
        let n = truth.len();
        if merged.len() != n || merged.iter().any(|list| list.len() < self.rule.k) {
            return Err(Error::data(format!(
                "the shards have fewer rows than the {} neighbors of a validation row",
                self.rule.k
            )));
        }
        let wrong = (0..n).filter(|&row| {
            let list = &mut merged[row];
            // By decreasing score, equal scores by row number, as one search over all rows.
            sort_by(list, |a, b| {
                b.score.total_cmp(&a.score).then(a.row.cmp(&b.row))
            });
            let class = predict_class(self.rule.vote, &list[..self.rule.k], labels);
            labels.names()[class as usize] != truth.name(row)
        });
        Ok(wrong.count() as f64 / n as f64)
    }
}

impl Shards for Remote<'_> {
    fn ask(&self, requests: &[Request]) -> Result<Vec<Vec<Reply>>> {
        let answers = self.round(&Message::Solve(requests.to_vec()))?;
        let replies = answers.into_iter().map(|answer| match answer {
            Answer::Solved(replies) => Ok(replies),
            other => Err(Error::data(format!("an unexpected answer: {other:?}"))),
        });
        replies.collect()
    }

    fn recover(&self, reason: &str) -> Result<()> {
        let mut reason = reason.to_owned();
        loop {
            if !self.are_new.take() {
                self.replace(&reason)?;
            }
            match self.begin() {
                Err(Error::WorkerLost(again)) => reason = again,
                done => return done,
            }
        }
    }
}

impl Evaluate for Remote<'_> {
    fn error(&self, weights: (f64, f64), active: &ActiveSet) -> Result<f64> {
        match self.try_error(weights, active) {
            // The solver notices, too, because no run has begun on the new shards.
            Err(Error::WorkerLost(reason)) => {
                self.replace(&reason)?;
                self.are_new.set(true);
                self.error(weights, active)
            }
            done => done,
        }
    }
}

impl<'a> Backend<'a> for Remote<'a> {
    fn validation(&self) -> Option<&dyn Evaluate> {
        self.has_validation.then_some(self as &dyn Evaluate)
    }

    fn set_lambda(&mut self, lambda: f64) {
        let base = self.weights.get().1;
        self.weights.set((lambda, base));
    }

    fn learn(
        &self,
        config: &TrainConfig,
        lambda: f64,
        clock: Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<MiningRun<'a>> {
        let run = self.fit(config.solver(lambda, 0)?, self.data.start, clock, observer)?;
        let mut learned = MiningRun::new(run, Cow::Owned(Triplets::new()));
        learned.n_triplets = self.n_triplets();
        for round in 1..=config.mining_rounds {
            if !learned.may_continue() || observer.cancel_token().check().is_err() {
                break;
            }
            let prepared = self.link.mine(self.model(&learned)?)?;
            *self.prepared.borrow_mut() = Some(prepared);
            let mut solver = config.solver(lambda, round)?;
            if let Some(limit) = solver.time_limit {
                let spent = Duration::from_secs_f64(learned.run.seconds);
                solver.time_limit = Some(limit.saturating_sub(spent));
            }
            let active = learned.run.active.clone();
            let next = self.fit(solver, Some(&active), Stopwatch::start(), observer)?;
            learned.append(next)?;
            learned.n_triplets = self.n_triplets();
        }
        if self.lost.borrow().is_some() {
            learned.run.stop = Stop::ObserverAsked;
        }
        Ok(learned)
    }
}
