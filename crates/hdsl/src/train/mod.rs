//! From data sets to a saved model: preprocessing, triplets, a run for each λ, and the choice on validation rows.
//!
//! The command line and the Python package both train through here, so that they make the same model.

pub(crate) mod ensemble;
pub(crate) mod rounds;

pub use ensemble::mean;
pub use rounds::Again;

use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::data::{Dataset, IndexBase, Labels, Preprocess, Preprocessor, Rows, RowsView};
use crate::error::{Error, Result};
use crate::knn;
use crate::knn::PredictionRule;
use crate::model::{Model, ModelParts, TracePoint};
use crate::objective::{Problem, candidates};
use crate::observer::{self, Gap, Iteration, Observer, Stop, Stopwatch};
use crate::similarity::BilinearModel;
use crate::solver::{Run, SolverParams};
use crate::triplets::{TripletSource, Triplets};
use ensemble::train_mean;
use rounds::InRounds;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::Instant;

/// Settings of [`train`].
#[derive(Clone, Debug)]
pub struct TrainParams {
    /// The λ to try; more than one needs validation rows to choose by.
    pub scales: Vec<f64>,
    /// What to do to raw values first.
    pub preprocess: Preprocess,
    /// Where the triplets come from.
    pub triplets: TripletSource,
    /// Triplets that are there already, instead of those that the source would give.
    pub given: Option<Triplets>,
    /// Settings of the solver; its λ is taken from `scales`, its seed also feeds random triplets.
    pub solver: SolverParams,
    /// How training rows decide the classes of validation rows; kept in the model as its own.
    pub rule: PredictionRule,
    /// Look at the validation error every so many iterations.
    pub eval_every: usize,
    /// End a run when the validation error has not improved for this many iterations.
    pub patience: Option<usize>,
    /// A solution to go on from, instead of the best single atom. Atoms of features that no training row has are left
    /// out; if none remains, the start is as usual.
    pub start: Option<ActiveSet>,
    /// A preprocessing that is known already, instead of one fitted on the training rows.
    pub fitted: Option<Preprocessor>,
    /// Whether triplets are mined again under the similarity learned so far. Each round has as many iterations as the
    /// solver's settings allow.
    pub again: Again,
    /// Iterations at most of the last round, where those are not as many as of the others.
    pub last_iter: Option<usize>,
    /// Take the mean of so many models, each with its own seed (one after the other, from the solver's): other random
    /// triplets, other starts of the search. It is steadier than one, and uses more features.
    pub models: usize,
}

impl TrainParams {
    /// The paper's recipe at one λ: [0, 1] preprocessing, 3 x 5 neighbors, 3-NN on validation rows.
    pub fn new(scale: f64) -> Self {
        Self {
            scales: vec![scale],
            preprocess: Preprocess::Max,
            triplets: TripletSource::Neighbors {
                targets: 3,
                impostors: 5,
            },
            given: None,
            solver: SolverParams::new(scale),
            rule: PredictionRule::default(),
            eval_every: 10,
            patience: None,
            start: None,
            fitted: None,
            again: Again::default(),
            last_iter: None,
            models: 1,
        }
    }

    /// The preprocessing that is known, or else is fitted on these rows.
    pub(crate) fn preprocess_for(&self, rows: RowsView<'_>) -> Preprocessor {
        let fit = || Preprocessor::fit(self.preprocess, rows);
        self.fitted.clone().unwrap_or_else(fit)
    }

    /// How long rounds are, where the length of a path does not tell, as settings of a model.
    pub(crate) fn lengths(&self) -> Vec<(String, String)> {
        let most = ("max-iter", Some(self.solver.max_iter));
        [most, ("last-iter", self.last_iter)]
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.to_string())))
            .collect()
    }

    fn check(&self, validated: bool) -> Result<()> {
        if self.scales.is_empty() {
            return Err(Error::param(
                "scale",
                "an empty list",
                "at least one number above 0",
            ));
        }
        for &scale in &self.scales {
            self.solver.clone().scale(scale).build()?;
        }
        for (name, value) in [
            ("k", Some(self.rule.k)),
            ("eval-every", Some(self.eval_every)),
            ("patience", self.patience),
            ("last-iter", self.last_iter),
            ("models", Some(self.models)),
        ] {
            if value == Some(0) {
                return Err(Error::param(name, 0, "a whole number above 0"));
            }
        }
        if self.scales.len() > 1 && !validated {
            return Err(Error::param(
                "scale",
                format!("a list of {}", self.scales.len()),
                "one number, or validation rows to choose by",
            ));
        }
        if self.models > 1 {
            let one = |name, value: String| {
                let wanted = "one model where it is given";
                Err(Error::param(
                    "models",
                    format!("{} with {name} {value}", self.models),
                    wanted,
                ))
            };
            if self.scales.len() > 1 {
                return one("scale", format!("a list of {}", self.scales.len()));
            }
            if let Some(most) = self.solver.max_features {
                return one("max-features", most.to_string());
            }
        }
        if self.patience.is_some() && !validated {
            return Err(Error::param(
                "patience",
                self.patience.unwrap_or(0),
                "validation rows to watch, or no patience",
            ));
        }
        Ok(())
    }
}

/// Rows with their labels, borrowed from wherever they are kept: a [`Dataset`], or arrays of another language.
#[derive(Clone, Copy, Debug)]
pub struct Labeled<'a> {
    /// Raw rows.
    pub rows: RowsView<'a>,
    /// The class of each row, if known.
    pub labels: Option<&'a Labels>,
    /// What the lowest feature is called, for names such as `f17`.
    pub index_base: IndexBase,
}

impl<'a> From<&'a Dataset> for Labeled<'a> {
    fn from(data: &'a Dataset) -> Self {
        Self {
            rows: data.rows.view(),
            labels: data.labels.as_ref(),
            index_base: data.index_base,
        }
    }
}

/// What happens while training, told as it happens.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The triplets are there.
    Triplets {
        /// How many.
        count: usize,
        /// How long mining took.
        seconds: f64,
    },
    /// One of several models begins, of which the mean will be taken.
    ModelStarted {
        /// Which, from 0.
        index: usize,
        /// How many there are.
        of: usize,
    },
    /// A run begins.
    ScaleStarted {
        /// Which of the grid, from 0.
        index: usize,
        /// How many there are.
        of: usize,
        /// λ.
        scale: f64,
    },
    /// An iteration is done, and this is the iterate.
    Iteration(&'a Iteration, &'a ActiveSet),
    /// Validation rows were classified under the iterate of now.
    Evaluated {
        /// Which iterate.
        iter: usize,
        /// f there.
        objective: f64,
        /// The gap before its last step.
        gap: Gap,
        /// Active atoms.
        n_atoms: usize,
        /// Features they use.
        n_features: usize,
        /// k-NN error on the validation rows.
        error: f64,
    },
    /// A run has ended.
    ScaleDone {
        /// λ.
        scale: f64,
        /// Steps taken.
        iterations: usize,
        /// Why it ended.
        stop: Stop,
        /// The lowest validation error on its path.
        valid_error: Option<f64>,
    },
}

/// Hears [`Event`]s. Break stops training and keeps the best so far.
pub trait Watcher {
    /// Called for each event, in order.
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()>;

    /// Looked at where no event comes for long, before the first iteration: while triplets are mined and the solver is
    /// set up. Raised then, it ends training with [`Error::Stopped`], since there is nothing to keep.
    fn cancel(&self) -> CancelToken<'_> {
        CancelToken::NEVER
    }
}

impl<F: FnMut(&Event<'_>) -> ControlFlow<()>> Watcher for F {
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self(event)
    }
}

/// One λ of the grid, when done.
#[derive(Clone, Debug)]
pub struct GridPoint {
    /// λ.
    pub scale: f64,
    /// f at the last iterate.
    pub objective: f64,
    /// Steps taken.
    pub iterations: usize,
    /// The iterate chosen.
    pub chosen: usize,
    /// k-NN error on the validation rows at the chosen iterate.
    pub valid_error: Option<f64>,
    /// Why the run ended.
    pub stop: Stop,
    /// Seconds the solver worked.
    pub train_seconds: f64,
}

/// What [`train`] gives back.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The best model.
    pub model: Model,
    /// Why its run ended.
    pub stop: Stop,
    /// f at the last iterate of its run.
    pub objective: f64,
    /// The gap there.
    pub gap: Gap,
    /// Steps its run took.
    pub iterations: usize,
    /// f at the iterate that was chosen.
    pub chosen_objective: f64,
    /// The gap there.
    pub chosen_gap: Gap,
    /// k-NN error on the validation rows at the chosen iterate.
    pub valid_error: Option<f64>,
    /// Triplets learned from.
    pub n_triplets: usize,
    /// Seconds the solver worked on the best model: no reading, mining or evaluation.
    pub train_seconds: f64,
    /// After how many steps each round of its run ended.
    pub round_ends: Vec<usize>,
    /// Every λ tried, in the order given.
    pub grid: Vec<GridPoint>,
}

/// Learns a similarity: fits the preprocessing on the training rows, finds triplets, runs the solver for each λ, and
/// keeps the iterate with the lowest validation error (the earliest of equals, which uses the fewest features), or
/// the last one where there are no validation rows.
///
/// `names` are feature names by number; those on the path are stored in the model.
pub fn train(
    train: &Dataset,
    valid: Option<&Dataset>,
    names: Option<&[String]>,
    params: &TrainParams,
    watcher: &mut dyn Watcher,
) -> Result<Trained> {
    train_borrowed(train.into(), valid.map(Into::into), names, params, watcher)
}

/// [`train`] on rows that need not be copied first.
pub fn train_borrowed(
    train: Labeled<'_>,
    valid: Option<Labeled<'_>>,
    names: Option<&[String]>,
    params: &TrainParams,
    watcher: &mut dyn Watcher,
) -> Result<Trained> {
    params.check(valid.is_some())?;
    if params.models > 1 {
        return train_mean(train, valid, names, params, watcher);
    }
    let labels = train.labels;
    let preprocess = params.preprocess_for(train.rows);
    watcher.cancel().check()?;
    let rows = preprocess.apply(train.rows);
    watcher.cancel().check()?;
    let start = params.start.as_ref().and_then(|s| occurring(s, &rows));
    // Whoever judges or mines again needs the training rows; else the solver may have them.
    let (kept, mut rows) = match valid.is_some() || params.again.rounds > 0 {
        true => (Some(rows), None),
        false => (None, Some(rows)),
    };
    let validation = match (valid, &kept) {
        (Some(valid), Some(rows)) => Some(Validation::new(
            rows,
            labels,
            valid,
            &preprocess,
            params.rule,
        )?),
        _ => None,
    };
    let preprocess = ToStore::of(preprocess, params);
    let started = Instant::now();
    let scaled = kept.as_ref().or(rows.as_ref());
    let scaled = scaled.expect("somebody has them");
    let triplets = match &params.given {
        Some(given) => given.clone(),
        None => {
            let seed = params.solver.seed;
            params
                .triplets
                .triplets(scaled, labels, seed, watcher.cancel())?
        }
    };
    let mut halted = watcher
        .event(&Event::Triplets {
            count: triplets.len(),
            seconds: started.elapsed().as_secs_f64(),
        })
        .is_break();
    let mut grid = Vec::new();
    let mut best: Option<(InRounds<'_>, f64, Choice)> = None;
    let mut problem: Option<Problem<'_>> = None;
    for (index, &scale) in params.scales.iter().enumerate() {
        if halted && best.is_some() {
            break;
        }
        let of = params.scales.len();
        halted |= watcher
            .event(&Event::ScaleStarted { index, of, scale })
            .is_break();
        let mut listener = Listener {
            watcher,
            validation: validation.as_ref(),
            params,
            scale,
            n_features: train.rows.n_features(),
            choice: Choice::default(),
            outcome: None,
            failed: None,
        };
        if halted {
            // Asked to stop before anything was learned: one step, so that there is a model to keep.
            listener.outcome = Some(Stop::ObserverAsked);
        }
        let solver = params.solver.clone().scale(scale);
        let clock = Stopwatch::start();
        let problem = match &mut problem {
            Some(problem) => problem,
            None => {
                let rows = match &kept {
                    Some(kept) => Cow::Borrowed(kept),
                    None => Cow::Owned(rows.take().expect("nobody took them yet")),
                };
                let solver = solver.clone().build()?;
                problem.insert(solver.problem_of(rows, &triplets, listener.watcher.cancel())?)
            }
        };
        problem.lambda = scale;
        let first = FirstRound {
            problem,
            start: start.as_ref(),
            clock,
        };
        let data = (kept.as_ref(), labels);
        let learned = in_rounds(params, &solver, first, data, &triplets, &mut listener)?;
        let run = &learned.run;
        let mut choice = listener.finish(run)?;
        let stop = choice.stop.unwrap_or(run.stop);
        halted |= stop == Stop::ObserverAsked;
        choice.stop = Some(stop);
        let point = GridPoint {
            scale,
            objective: run.objective(),
            iterations: run.path.len(),
            chosen: choice.iterate,
            valid_error: choice.error,
            stop,
            train_seconds: run.seconds,
        };
        let iterations = point.iterations;
        grid.push(point);
        let done = Event::ScaleDone {
            scale,
            iterations,
            stop,
            valid_error: choice.error,
        };
        halted |= watcher.event(&done).is_break();
        let wins = best.as_ref().is_none_or(|(_, _, b)| {
            choice
                .error
                .zip(b.error)
                .is_some_and(|(new, old)| new < old)
        });
        if wins {
            best = Some((learned, scale, choice));
        }
    }
    let (learned, scale, choice) = best.expect("at least one scale was run");
    let InRounds {
        run,
        triplets,
        ends,
    } = learned;
    let facts = run.trace[choice.iterate];
    Ok(Trained {
        stop: choice.stop.unwrap_or(run.stop),
        objective: run.objective(),
        gap: run.gap(),
        iterations: run.path.len(),
        chosen_objective: facts.objective,
        chosen_gap: facts.gap,
        valid_error: choice.error,
        n_triplets: triplets.len(),
        round_ends: ends,
        train_seconds: run.seconds,
        model: assemble(
            train,
            names,
            params,
            Won {
                run,
                scale,
                choice,
                preprocess,
            },
        )?,
        grid,
    })
}

/// What the first round of a λ starts from.
struct FirstRound<'a, 'p> {
    problem: &'a Problem<'p>,
    start: Option<&'a ActiveSet>,
    clock: Stopwatch,
}

/// All rounds of one λ.
fn in_rounds<'t>(
    params: &TrainParams,
    solver: &SolverParams,
    first: FirstRound<'_, '_>,
    (rows, labels): (Option<&Rows>, Option<&Labels>),
    triplets: &'t Triplets,
    observer: &mut dyn Observer,
) -> Result<InRounds<'t>> {
    let last = params.again.rounds;
    let settings = |round: usize| match params.last_iter {
        Some(most) if round == last => solver.clone().max_iter(most),
        _ => solver.clone(),
    };
    let run =
        settings(0)
            .build()?
            .fit_problem(first.problem, first.start, first.clock, observer)?;
    let mut learned = InRounds::begun(run, Cow::Borrowed(triplets));
    for round in 1..=last {
        let (Some(rows), true) = (rows, learned.may_go_on()) else {
            break;
        };
        let labels = labels.ok_or_else(|| {
            Error::data("the training rows have no labels to mine triplets again from")
        })?;
        learned.again(rows, labels, params.again, &settings(round), observer)?;
    }
    Ok(learned)
}

/// The run to keep, and what to keep with it.
struct Won {
    run: Run,
    scale: f64,
    choice: Choice,
    preprocess: ToStore,
}

/// The preprocessing that a model will have.
enum ToStore {
    Whole(Preprocessor),
    /// Under `max` a feature off the path never matters. Of millions of maxima few are stored, and those are quickly
    /// found again when the path is known.
    MaximaOfPath,
}

impl ToStore {
    fn of(preprocess: Preprocessor, params: &TrainParams) -> Self {
        match (preprocess.kind(), &params.fitted) {
            (Preprocess::Max, None) => Self::MaximaOfPath,
            _ => Self::Whole(preprocess),
        }
    }

    fn at_last(self, rows: RowsView<'_>, path: &[u32]) -> Preprocessor {
        match self {
            Self::MaximaOfPath => Preprocessor::fit_max(rows, path),
            Self::Whole(preprocess) if preprocess.kind() == Preprocess::Max => {
                preprocess.restrict(path)
            }
            Self::Whole(preprocess) => preprocess,
        }
    }
}

/// The atoms of a solution that the solver can make from these rows, with weights that sum to 1 again.
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

/// Validation rows, scaled, and the training rows they are classified by.
struct Validation<'a> {
    train: &'a Rows,
    labels: &'a Labels,
    rows: Rows,
    truth: &'a Labels,
    rule: PredictionRule,
}

impl<'a> Validation<'a> {
    fn new(
        train: &'a Rows,
        labels: Option<&'a Labels>,
        valid: Labeled<'a>,
        preprocess: &Preprocessor,
        rule: PredictionRule,
    ) -> Result<Self> {
        let unlabeled = |which: &str| {
            Error::data(format!(
                "the {which} rows have no labels to compute an error with"
            ))
        };
        let labels = labels.ok_or_else(|| unlabeled("training"))?;
        let truth = valid.labels.ok_or_else(|| unlabeled("validation"))?;
        if rule.vote.has_k() && rule.k > train.n_rows() {
            return Err(Error::data(format!(
                "there are {} training rows, too few for {} neighbors",
                train.n_rows(),
                rule.k
            )));
        }
        Ok(Self {
            train,
            labels,
            rows: preprocess.apply(valid.rows),
            truth,
            rule,
        })
    }

    fn error(&self, similarity: &BilinearModel) -> Result<f64> {
        knn::evaluate_similarity(
            similarity,
            self.train,
            self.labels,
            &self.rows,
            self.truth,
            &self.rule,
        )
        .map(|e| e.error)
    }
}

/// Which iterate of a run to keep.
#[derive(Clone, Debug, Default)]
struct Choice {
    iterate: usize,
    error: Option<f64>,
    evaluations: Vec<(u32, f64)>,
    stop: Option<Stop>,
}

impl Choice {
    fn record(&mut self, iterate: usize, error: f64) {
        self.evaluations.push((iterate as u32, error));
        if self.error.is_none_or(|best| error < best) {
            (self.iterate, self.error) = (iterate, Some(error));
        }
    }
}

/// Passes iterations on, and classifies validation rows now and then.
struct Listener<'a> {
    watcher: &'a mut dyn Watcher,
    validation: Option<&'a Validation<'a>>,
    params: &'a TrainParams,
    scale: f64,
    n_features: usize,
    choice: Choice,
    outcome: Option<Stop>,
    failed: Option<Error>,
}

impl Listener<'_> {
    /// The validation error of an iterate; none without validation rows.
    fn judge(&mut self, iterate: usize, active: &ActiveSet) -> Result<Option<f64>> {
        let Some(validation) = self.validation else {
            return Ok(None);
        };
        let similarity = BilinearModel::from_active(self.n_features, self.scale, active)?;
        let error = validation.error(&similarity)?;
        self.choice.record(iterate, error);
        Ok(Some(error))
    }

    /// Judges the last iterate too, unless that was done.
    fn finish(mut self, run: &Run) -> Result<Choice> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let last = run.path.len();
        if self
            .choice
            .evaluations
            .last()
            .is_none_or(|&(at, _)| at as usize != last)
        {
            self.judge(last, &run.active)?;
        }
        if self.validation.is_none() {
            self.choice.iterate = last;
        }
        self.choice.stop = self.outcome;
        Ok(self.choice)
    }
}

impl Observer for Listener<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        self.watcher.cancel()
    }

    fn on_event(&mut self, event: &observer::Event<'_>) -> ControlFlow<()> {
        let observer::Event::Iteration(now, active) = *event else {
            return ControlFlow::Continue(());
        };
        let mut asked = self
            .watcher
            .event(&Event::Iteration(now, active))
            .is_break();
        if now.iter.is_multiple_of(self.params.eval_every) {
            match self.judge(now.iter, active) {
                Ok(Some(error)) => {
                    asked |= self
                        .watcher
                        .event(&Event::Evaluated {
                            iter: now.iter,
                            objective: now.objective,
                            gap: now.gap,
                            n_atoms: now.n_atoms,
                            n_features: now.n_active_features,
                            error,
                        })
                        .is_break();
                    let stale = now.iter - self.choice.iterate;
                    if self
                        .params
                        .patience
                        .is_some_and(|patience| stale >= patience)
                    {
                        self.outcome.get_or_insert(Stop::Patience);
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    self.failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        if asked {
            self.outcome = Some(Stop::ObserverAsked);
        }
        if self.outcome.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Puts the facts of the best run into a model.
fn assemble(
    data: Labeled<'_>,
    names: Option<&[String]>,
    params: &TrainParams,
    won: Won,
) -> Result<Model> {
    let Won {
        run,
        scale,
        choice,
        preprocess,
    } = won;
    let mut parts = ModelParts::new(data.rows.n_features(), scale, run.path);
    let features = parts.path.features();
    parts.preprocess = preprocess.at_last(data.rows, &features);
    parts.zero_based = data.index_base == IndexBase::Zero;
    if let Some(names) = names {
        let name = |&feature: &u32| {
            names
                .get(feature as usize)
                .map(|name| (feature, name.clone()))
        };
        parts.names = features.iter().filter_map(name).collect();
    }
    parts.chosen = choice.iterate;
    parts.trace = run
        .trace
        .iter()
        .map(|point| TracePoint {
            objective: point.objective,
            gap: point.gap.value(),
        })
        .collect();
    let gap = run.trace.last().map(|point| point.gap);
    parts.gap_certified = gap.filter(|gap| gap.is_certified()).map(Gap::value);
    parts.evaluations = choice.evaluations;
    parts.classes = data.labels.map(|labels| labels.names().to_vec());
    let solver = &params.solver;
    let setting = |key: &str, value: String| (key.to_owned(), value);
    parts.settings = vec![
        setting("loss", solver.loss.to_string()),
        setting("search", solver.search.to_string()),
        setting("seed", solver.seed.to_string()),
        setting("steps", solver.step_rule.to_string()),
        setting("stop", choice.stop.unwrap_or(run.stop).to_string()),
        setting("triplets", params.triplets.to_string()),
    ];
    parts
        .settings
        .extend(solver.batch.map(|size| setting("batch", size.to_string())));
    let again = params.again;
    if again.rounds > 0 {
        let mined = format!("knn:{}:{}", again.targets, again.impostors);
        parts.settings.extend([
            setting("rounds", again.rounds.to_string()),
            setting("again", mined),
        ]);
        parts.settings.extend(params.lengths());
    }
    parts.settings.extend(params.rule.settings());
    Model::new(parts)
}
