//! One model: a run per λ with its mining rounds, and the best of them as a [`Model`].

use super::data::TrainData;
use super::rounds::{Mined, MiningRun};
use super::validation::{Kept, RunObserver, ValidationRows};
use super::{GridPoint, Trained};
use crate::atoms::ActiveSet;
use crate::data::{IndexBase, Preprocess, Preprocessor, Rows, RowsView};
use crate::error::Result;
use crate::model::{Model, ModelParts, TracePoint, TrainConfig};
use crate::objective::{Problem, candidates};
use crate::observer::{Event, Gap, Observer, Stop, Stopwatch};
use crate::solver::{IterateFacts, SolverParams};
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
    let preprocessor = fitted(data, config);
    observer.cancel_token().check()?;
    let rows = preprocessor.apply(data.train.rows);
    observer.cancel_token().check()?;
    let validation = ValidationRows::of(data, &preprocessor, config.rule)?;
    let stored = StoredPreprocessing::of(preprocessor, data);
    let start = data.start.and_then(|start| occurring(start, &rows));
    let started = Instant::now();
    let triplets = match data.triplets {
        Some(given) => Cow::Borrowed(given),
        None => Cow::Owned(config.triplets.triplets(
            &rows,
            data.train.labels,
            config.seed,
            observer.cancel_token(),
        )?),
    };
    let asked = observer.on_event(&Event::Triplets {
        count: triplets.len(),
        seconds: started.elapsed().as_secs_f64(),
    });
    // Validation and mining rounds need the training rows; otherwise the solver takes them over without a copy.
    let (shared, unshared) = match validation.is_some() || config.mining_rounds > 0 {
        true => (Some(rows), None),
        false => (None, Some(rows)),
    };
    let mut grid = Grid {
        data,
        config,
        validation: validation.as_ref().zip(shared.as_ref()),
        rows: shared.as_ref(),
        unshared,
        start,
        triplets: &triplets,
        problem: None,
        stopped: asked.is_break(),
        points: Vec::new(),
    };
    let best = grid.run(observer)?;
    let points = grid.points;
    let MiningRun { run, ends, .. } = &best.learned;
    let kept = run.trace[best.kept.iterate];
    Ok(Trained {
        stop: best.stop,
        objective: run.objective(),
        gap: run.gap(),
        iterations: run.path.len(),
        chosen_objective: kept.objective,
        chosen_gap: kept.gap,
        valid_error: best.kept.error,
        n_triplets: best.learned.triplets.len(),
        round_ends: ends.clone(),
        train_seconds: run.seconds,
        model: assemble(data, config, best, stored)?,
        grid: points,
    })
}

/// The runs of all λ over the same rows and triplets.
struct Grid<'a> {
    data: &'a TrainData<'a>,
    config: &'a TrainConfig,
    validation: Option<(&'a ValidationRows<'a>, &'a Rows)>,
    /// The preprocessed rows, unless the solver takes them over.
    rows: Option<&'a Rows>,
    unshared: Option<Rows>,
    start: Option<ActiveSet>,
    triplets: &'a Triplets,
    /// Made for the first λ.
    problem: Option<Problem<'a>>,
    /// Whether the observer asked to stop.
    stopped: bool,
    points: Vec<GridPoint>,
}

/// A run with the iterate to keep.
struct Candidate<'a> {
    lambda: f64,
    learned: MiningRun<'a>,
    kept: Kept,
    stop: Stop,
}

impl<'a> Grid<'a> {
    /// All λ. Returns the run with the lowest validation error, the first of equals.
    fn run(&mut self, observer: &mut dyn Observer) -> Result<Candidate<'a>> {
        let of = self.config.lambda.len();
        let mut best: Option<Candidate<'a>> = None;
        for (index, &lambda) in self.config.lambda.iter().enumerate() {
            if self.stopped && best.is_some() {
                break;
            }
            let started = Event::LambdaStarted { index, of, lambda };
            self.stopped |= observer.on_event(&started).is_break();
            let new = self.run_one(lambda, observer)?;
            self.stopped |= new.stop == Stop::ObserverAsked;
            let run = &new.learned.run;
            self.points.push(GridPoint {
                lambda,
                objective: run.objective(),
                iterations: run.path.len(),
                chosen: new.kept.iterate,
                valid_error: new.kept.error,
                stop: new.stop,
                train_seconds: run.seconds,
            });
            let done = Event::LambdaDone {
                lambda,
                iterations: run.path.len(),
                stop: new.stop,
                valid_error: new.kept.error,
            };
            self.stopped |= observer.on_event(&done).is_break();
            let wins = best.as_ref().is_none_or(|best| {
                let errors = new.kept.error.zip(best.kept.error);
                errors.is_some_and(|(new, old)| new < old)
            });
            if wins {
                best = Some(new);
            }
        }
        Ok(best.expect("the configuration has at least one lambda"))
    }

    /// One λ, with its mining rounds.
    fn run_one(&mut self, lambda: f64, observer: &mut dyn Observer) -> Result<Candidate<'a>> {
        let (config, triplets) = (self.config, self.triplets);
        let mut observer = RunObserver::new(observer, self.validation, config, lambda);
        if self.stopped {
            observer.stop_at_once();
        }
        let solver = config.solver(lambda)?;
        let of_round = |round: usize| match config.last_round_iter {
            Some(max_iter) if round == config.mining_rounds => SolverParams {
                max_iter,
                ..solver.clone()
            },
            _ => solver.clone(),
        };
        let clock = Stopwatch::start();
        let problem = match &mut self.problem {
            Some(problem) => problem,
            None => {
                let rows = match (self.rows, self.unshared.take()) {
                    (Some(rows), _) => Cow::Borrowed(rows),
                    (None, rows) => Cow::Owned(rows.expect("the first run takes the rows over")),
                };
                let solver = solver.clone().build()?;
                let problem = solver.problem_of(rows, triplets, observer.cancel_token())?;
                self.problem.insert(problem)
            }
        };
        problem.lambda = lambda;
        let run =
            of_round(0)
                .build()?
                .fit_problem(problem, self.start.as_ref(), clock, &mut observer)?;
        let mut learned = MiningRun::new(run, Cow::Borrowed(triplets));
        if let (Some(rows), 1..) = (self.rows, config.mining_rounds) {
            let labels = self
                .data
                .train
                .labels_for("training", "to mine triplets from")?;
            let mined = Mined { rows, labels };
            learned.continue_to(config.mining_rounds, mined, of_round, &mut observer)?;
        }
        let (kept, stop) = observer.finish(&learned.run)?;
        Ok(Candidate {
            lambda,
            learned,
            kept,
            stop,
        })
    }
}

/// The preprocessing that the model will contain.
enum StoredPreprocessing {
    Whole(Preprocessor),
    /// Under `max` a feature off the path never matters. Of millions of maxima few are stored, and those are quickly
    /// computed again when the path is known.
    MaximaOfPath,
}

impl StoredPreprocessing {
    fn of(preprocessor: Preprocessor, data: &TrainData<'_>) -> Self {
        match (preprocessor.kind(), data.preprocessor) {
            (Preprocess::Max, None) => Self::MaximaOfPath,
            _ => Self::Whole(preprocessor),
        }
    }

    fn on_path(self, rows: RowsView<'_>, path: &[u32]) -> Preprocessor {
        match self {
            Self::MaximaOfPath => Preprocessor::fit_max(rows, path),
            Self::Whole(known) if known.kind() == Preprocess::Max => known.restrict(path),
            Self::Whole(known) => known,
        }
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

/// The best run as a model.
fn assemble(
    data: &TrainData<'_>,
    config: &TrainConfig,
    best: Candidate<'_>,
    stored: StoredPreprocessing,
) -> Result<Model> {
    let rows = data.train.rows;
    let run = best.learned.run;
    let mut parts = ModelParts::new(rows.n_features(), best.lambda, run.path);
    let features = parts.path.features();
    parts.preprocess = stored.on_path(rows, &features);
    parts.zero_based = data.train.index_base == IndexBase::Zero;
    if let Some(names) = data.names {
        let name = |&feature: &u32| Some((feature, names.get(feature as usize)?.clone()));
        parts.names = features.iter().filter_map(name).collect();
    }
    parts.chosen = best.kept.iterate;
    let point = |at: &IterateFacts| TracePoint {
        objective: at.objective,
        gap: at.gap.value(),
    };
    parts.trace = run.trace.iter().map(point).collect();
    let gap = run.trace.last().map(|point| point.gap);
    parts.gap_certified = gap.filter(|gap| gap.is_certified()).map(Gap::value);
    parts.evaluations = best.kept.evaluations;
    parts.classes = data.train.labels.map(|labels| labels.names().to_vec());
    parts.config = config.clone();
    parts.stop = Some(best.stop);
    Model::new(parts)
}
