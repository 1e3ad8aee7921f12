//! One model: a run per λ with its mining rounds, and the best of them as a [`Model`].

use super::base::with_weights;
use super::data::{TrainData, weighted_by_class};
use super::rounds::MiningRun;
use super::validation::{Candidate, Evaluate, RunObserver, ValidationSet};
use super::{RunSummary, Trained};
use crate::atoms::{ActiveSet, Path};
use crate::data::{IndexBase, Labels, Preprocessor, Rows};
use crate::error::Result;
use crate::model::{Model, ModelParts, TracePoint, TrainConfig};
use crate::objective::{Problem, candidates};
use crate::observer::{Event, Gap, Observer, Stop, Stopwatch};
use crate::solver::IterateFacts;
use crate::triplets::Triplets;
use std::borrow::Cow;
use std::time::Instant;

/// The preprocessing that is given, or else is fitted on the training rows.
pub(super) fn fitted(data: &TrainData<'_>, config: &TrainConfig) -> Preprocessor {
    match data.preprocessor {
        Some(known) => known.clone(),
        None => Preprocessor::fit(config.preprocess, data.train.rows),
    }
}

/// Trains one model.
pub(super) fn train_grid(
    data: &TrainData<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let labels = match config.mining_rounds {
        0 => None,
        _ => Some(data.train.labels_for("training", "to mine triplets from")?),
    };
    let preprocessor = fitted(data, config);
    observer.cancel_token().check()?;
    let mut rows = preprocessor.apply(data.train.rows);
    observer.cancel_token().check()?;
    let validation = ValidationSet::of(data, &preprocessor, config.rule)?;
    let kind = preprocessor.kind();
    // The maxima of millions of features take memory, and can be found again.
    drop(preprocessor);
    let start = data.start.and_then(|start| occurring(start, &rows));
    let started = Instant::now();
    let triplets = match data.triplets {
        Some(given) => Cow::Borrowed(given),
        None => {
            let (labels, seed) = (data.train.labels, config.seed);
            let cancel = observer.cancel_token();
            let made = config.triplets.triplets(&rows, labels, seed, cancel)?;
            Cow::Owned(match config.triplets.is_mined() {
                true => weighted_by_class(made, labels, data.class_weights),
                false => made,
            })
        }
    };
    let asked = observer.on_event(&Event::Triplets {
        count: triplets.len(),
        seconds: started.elapsed().as_secs_f64(),
    });
    let clock = Stopwatch::start();
    let config = &with_weights(config, kind, &rows, &triplets);
    // Validation and mining rounds need the training rows; otherwise the problem takes them over without a copy.
    let taken = match validation.is_some() || labels.is_some() {
        true => Cow::Borrowed(&rows),
        false => Cow::Owned(std::mem::replace(&mut rows, Rows::new(0))),
    };
    let solver = config.solver(config.lambda[0], 0)?.build()?;
    let grid = Grid {
        validation: validation.as_ref().map(|validation| (validation, &rows)),
        rows: &rows,
        labels,
        start,
        triplets: &triplets,
        class_weights: data.class_weights,
        problem: solver.problem_of(taken, &triplets, observer.cancel_token())?,
    };
    let (best, summaries) = run_grid(grid, config, clock, asked.is_break(), observer)?;
    let preprocess = || fitted(data, config);
    trained_of(&data.described(), config, preprocess, best, summaries)
}

/// The best run as a training.
pub(crate) fn trained_of(
    described: &Described<'_>,
    config: &TrainConfig,
    preprocess: impl FnOnce() -> Preprocessor,
    best: Candidate<'_>,
    grid: Vec<RunSummary>,
) -> Result<Trained> {
    let base = config.base.value().expect("`auto` has been replaced");
    Ok(Trained {
        run: best.summary.clone(),
        round_ends: best.learned.ends.clone(),
        model: model_of(described, config, preprocess(), base, best)?,
        grid,
        choice: None,
    })
}

/// What the runs of all λ share: rows and triplets, in this process or elsewhere.
pub(crate) trait Backend<'a> {
    /// Computes validation errors.
    fn validation(&self) -> Option<&dyn Evaluate>;
    /// Chooses the λ of the next run.
    fn set_lambda(&mut self, lambda: f64);
    /// Runs that λ, with its mining rounds.
    fn learn(
        &self,
        config: &TrainConfig,
        lambda: f64,
        clock: Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<MiningRun<'a>>;
}

/// The runs of all λ over the same rows and triplets.
struct Grid<'a> {
    /// Validation, by the preprocessed rows.
    validation: Option<(&'a ValidationSet<'a>, &'a Rows)>,
    /// The preprocessed rows, where validation or mining rounds need them.
    rows: &'a Rows,
    /// Where there are mining rounds.
    labels: Option<&'a Labels>,
    start: Option<ActiveSet>,
    triplets: &'a Triplets,
    class_weights: Option<&'a [f64]>,
    problem: Problem<'a>,
}

/// All λ, until `stopped`. Returns the run with the lowest validation error, the first of equals, and the summaries of
/// all runs. The clock has been running while the problem was set up. The configuration has numbers for β and λ.
pub(crate) fn run_grid<'a>(
    mut backend: impl Backend<'a>,
    config: &TrainConfig,
    clock: Stopwatch,
    mut stopped: bool,
    observer: &mut dyn Observer,
) -> Result<(Candidate<'a>, Vec<RunSummary>)> {
    let of = config.lambda.len();
    let base = config.base.value().expect("`auto` has been replaced");
    let mut clock = Some(clock);
    let mut best: Option<Candidate<'a>> = None;
    let mut summaries = Vec::new();
    for (index, &lambda) in config.lambda.iter().enumerate() {
        if stopped && best.is_some() {
            break;
        }
        let started = Event::LambdaStarted {
            index,
            of,
            lambda,
            base,
            preprocess: config.preprocess,
        };
        stopped |= observer.on_event(&started).is_break();
        let clock = clock.take().unwrap_or_else(Stopwatch::start);
        backend.set_lambda(lambda);
        let new = run_one(&backend, config, lambda, clock, stopped, observer)?;
        let summary = &new.summary;
        let done = Event::LambdaDone {
            lambda,
            iterations: summary.iterations,
            stop: summary.stop,
            valid_error: summary.valid_error,
        };
        stopped |= summary.stop == Stop::ObserverAsked;
        stopped |= observer.on_event(&done).is_break();
        summaries.push(summary.clone());
        let wins = best.as_ref().is_none_or(|best| {
            let errors = summary.valid_error.zip(best.summary.valid_error);
            errors.is_some_and(|(new, old)| new < old)
        });
        if wins {
            best = Some(new);
        }
    }
    let best = best.expect("the configuration has at least one lambda");
    Ok((best, summaries))
}

/// One λ, with its mining rounds and validation errors.
fn run_one<'a>(
    backend: &impl Backend<'a>,
    config: &TrainConfig,
    lambda: f64,
    clock: Stopwatch,
    stopped: bool,
    observer: &mut dyn Observer,
) -> Result<Candidate<'a>> {
    let validation = backend.validation();
    let mut observer = RunObserver::new(observer, validation, config, lambda, stopped);
    let learned = backend.learn(config, lambda, clock, &mut observer)?;
    observer.finish(learned)
}

impl<'a> Backend<'a> for Grid<'a> {
    fn validation(&self) -> Option<&dyn Evaluate> {
        self.validation
            .as_ref()
            .map(|validation| validation as &dyn Evaluate)
    }

    fn set_lambda(&mut self, lambda: f64) {
        self.problem.lambda = lambda;
    }

    fn learn(
        &self,
        config: &TrainConfig,
        lambda: f64,
        clock: Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<MiningRun<'a>> {
        let solver = |round| config.solver(lambda, round);
        let start = self.start.as_ref();
        let run = (solver(0)?.build()?).fit_problem(&self.problem, start, clock, observer)?;
        let mut learned = MiningRun::new(run, Cow::Borrowed(self.triplets));
        learned.class_weights = self.class_weights;
        if let Some(labels) = self.labels {
            let last = config.mining_rounds;
            learned.continue_to(last, self.rows, labels, solver, observer)?;
        }
        Ok(learned)
    }
}

/// The atoms of a solution whose features occur in these rows, with weights that sum to 1 again.
fn occurring(start: &ActiveSet, rows: &Rows) -> Option<ActiveSet> {
    let columns = candidates(rows).ok()?;
    let occurs = |feature| columns.number(feature).is_some();
    let kept: Vec<_> = start
        .iter()
        .filter(|(atom, _)| occurs(atom.i()) && occurs(atom.j()))
        .collect();
    let total: f64 = kept.iter().map(|k| k.1).sum();
    let rest: Vec<_> = kept.iter().map(|k| (k.0, k.1 / total)).collect();
    ActiveSet::from_weighted(&rest).ok()
}

/// What a model says of its training rows.
pub(crate) struct Described<'a> {
    pub(crate) n_features: usize,
    /// Names of features, by number.
    pub(crate) names: Option<&'a [String]>,
    pub(crate) classes: Option<&'a [String]>,
    pub(crate) index_base: IndexBase,
}

impl<'a> TrainData<'a> {
    pub(super) fn described(&self) -> Described<'a> {
        Described {
            n_features: self.train.rows.n_features(),
            names: self.names,
            classes: self.train.labels.map(Labels::names),
            index_base: self.train.index_base,
        }
    }
}

/// The parts of a model that depend on its data, its configuration and its path only.
pub(super) fn parts_of(
    described: &Described<'_>,
    config: &TrainConfig,
    preprocess: Preprocessor,
    (lambda, base): (f64, f64),
    path: Path,
) -> ModelParts {
    let names = described.names;
    let name = |feature: u32| Some((feature, names?.get(feature as usize)?.clone()));
    // With a base, every feature counts.
    let features = match base > 0.0 {
        true => (0..names.map_or(0, <[String]>::len) as u32).collect(),
        false => path.features(),
    };
    ModelParts {
        preprocess,
        zero_based: described.index_base == IndexBase::Zero,
        names: features.into_iter().filter_map(name).collect(),
        classes: described.classes.map(<[String]>::to_vec),
        config: config.clone(),
        base,
        ..ModelParts::new(described.n_features, lambda, path)
    }
}

/// The best run as a model.
fn model_of(
    described: &Described<'_>,
    config: &TrainConfig,
    preprocess: Preprocessor,
    base: f64,
    best: Candidate<'_>,
) -> Result<Model> {
    let (run, summary) = (best.learned.run, best.summary);
    let point = |at: &IterateFacts| TracePoint {
        objective: at.objective,
        gap: at.gap.value(),
    };
    Model::new(ModelParts {
        chosen: summary.chosen,
        trace: run.trace.iter().map(point).collect(),
        gap_certified: Some(summary.gap)
            .filter(|gap| gap.is_certified())
            .map(Gap::value),
        evaluations: best.evaluations,
        stop: Some(summary.stop),
        ..parts_of(
            described,
            config,
            preprocess,
            (summary.lambda, base),
            run.path,
        )
    })
}
