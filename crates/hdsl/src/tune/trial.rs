//! One configuration, segment by segment on all folds, with validation errors at checkpoints of its paths.
//!
//! A segment continues a path: with the same triplets, or after a mining round. A trial of a plain similarity has no path.

use super::choice::Point;
use super::folds::{Fold, Folds, Prepared};
use super::journal::{Checkpoint, Job, Losses, Segment};
use super::search::{Means, Search};
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::model::TrainConfig;
use crate::observer::{Stop, UntilCancelled};
use crate::parallel;
use crate::similarity::{BilinearModel, Dot, Normalization};
use crate::train::ensemble::average;
use crate::train::rounds::MiningRun;
use crate::triplets::TripletSource;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

/// The models of a configuration on a fold; none if they have to be trained again, or nothing was begun.
type Models = Vec<MiningRun<'static>>;

/// What a segment of a path does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Grow {
    /// So many more iterations with the same triplets.
    Extend(usize),
    /// A mining round of so many iterations.
    Mine(usize),
}

impl Grow {
    fn iterations(self) -> usize {
        match self {
            Self::Extend(count) | Self::Mine(count) => count,
        }
    }
}

impl fmt::Display for Grow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extend(count) => write!(f, "+{count}"),
            Self::Mine(count) => write!(f, "m{count}"),
        }
    }
}

/// Where a path is after some segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// The number of its last mining round, from 0.
    pub(super) round: usize,
    /// The iterations of that round.
    pub(super) iteration: usize,
}

impl Reached {
    pub(super) fn after(segments: &[Grow]) -> Self {
        segments
            .iter()
            .fold(Self::default(), |at, segment| match segment {
                Grow::Extend(count) => Self {
                    iteration: at.iteration + count,
                    ..at
                },
                Grow::Mine(count) => Self {
                    round: at.round + 1,
                    iteration: *count,
                },
            })
    }
}

/// A configuration with the segments it has done.
pub(super) struct Trial {
    pub(super) config: TrainConfig,
    /// Whether this is the dot product of preprocessed rows, without a learned part.
    pub(super) is_plain: bool,
    /// Those done on all folds.
    pub(super) segments: Vec<Grow>,
    /// Those that [`Trial::replay`] does.
    pub(super) planned: Vec<Grow>,
    /// On each fold.
    pub(super) models: Vec<Models>,
    pub(super) points: Vec<Point>,
    /// Whether more iterations make sense.
    pub(super) may_extend: bool,
    /// Whether a mining round makes sense.
    pub(super) may_mine: bool,
    /// Seconds of training, on all folds.
    pub(super) seconds: f64,
    /// Whether its last segment was refused because it needs more memory than its share.
    pub(super) is_too_large: bool,
    /// Its place in the order in which the trials of a rung begin.
    pub(super) order: usize,
}

impl Trial {
    pub(super) fn new(config: TrainConfig, folds: &Folds) -> Self {
        Self {
            config,
            is_plain: false,
            segments: Vec::new(),
            planned: Vec::new(),
            models: vec![Vec::new(); folds.folds.len()],
            points: Vec::new(),
            may_extend: true,
            may_mine: true,
            seconds: 0.0,
            is_too_large: false,
            order: 0,
        }
    }

    pub(super) fn plain(config: TrainConfig, folds: &Folds) -> Self {
        Self {
            is_plain: true,
            may_extend: false,
            may_mine: false,
            ..Self::new(config, folds)
        }
    }

    /// The same configuration and the same models, to be continued in another way.
    pub(super) fn fork(&self) -> Self {
        Self {
            config: self.config.clone(),
            segments: self.segments.clone(),
            planned: Vec::new(),
            models: self.models.clone(),
            points: Vec::new(),
            ..*self
        }
    }

    pub(super) fn is_random(&self) -> bool {
        matches!(self.config.triplets, TripletSource::Random { .. })
    }

    /// Whether it has a mining round.
    pub(super) fn mines(&self) -> bool {
        Reached::after(&self.segments).round > 0
    }

    /// The lowest error so far.
    pub(super) fn error(&self, n_validation: usize) -> f64 {
        self.least(|_| true) / n_validation as f64
    }

    /// The lowest sum of losses of these points.
    fn least(&self, of: impl Fn(&&Point) -> bool) -> f64 {
        let points = self.points.iter().filter(of);
        let least = points.map(|p| p.losses.sum()).min_by(f64::total_cmp);
        least.unwrap_or(f64::INFINITY)
    }

    /// Whether the last segment lowered the error, or is one of the first two, which prove little.
    pub(super) fn is_improving(&self) -> bool {
        let last = self.segments.len();
        let now = self.least(|p| p.segment + 1 == last);
        last <= 2 || now < self.least(|p| p.segment + 1 < last)
    }

    /// Evaluates a plain similarity. Returns whether there was time.
    pub(super) fn evaluate(
        &mut self,
        number: usize,
        folds: &Folds,
        search: &Search<'_>,
    ) -> Result<bool> {
        let Some(done) = self.run(&[], folds, search)? else {
            return Ok(false);
        };
        self.segments.push(Grow::Extend(0));
        self.add(number, search, &done);
        Ok(true)
    }

    /// The tasks of the last of these segments, one for each fold.
    fn tasks(&self, segments: &[Grow], folds: &Folds, search: &Search<'_>) -> Vec<TrialTask> {
        let task = |fold| TrialTask {
            job: Job {
                sampled: folds.is_sample,
                configuration: match self.is_plain {
                    true => format!("plain {}", self.config.preprocess),
                    false => self.config.to_string(),
                },
                fold,
                segments: words(segments),
            },
            config: self.config.clone(),
            is_plain: self.is_plain,
            segments: segments.to_vec(),
            is_given: folds.folds[fold].is_given(),
            is_sequential: search.is_sequential,
            is_final: false,
            rung: search.rung,
            order: self.order,
        };
        (0..folds.folds.len()).map(task).collect()
    }

    /// The last of these segments on all folds. None if there was no time for all of them.
    fn run(
        &mut self,
        segments: &[Grow],
        folds: &Folds,
        search: &Search<'_>,
    ) -> Result<Option<Vec<Segment>>> {
        let tasks = self.tasks(segments, folds, search);
        if let Some(runner) = search.runner {
            return search.recorded_elsewhere(runner, &tasks);
        }
        let means = search.means();
        let on_fold = |(fold, models): (usize, &mut Models)| {
            let task: &TrialTask = &tasks[fold];
            search.recorded(task.job.clone(), || {
                task.run(&folds.folds[fold], means, models)
            })
        };
        let models = self.models.iter_mut().enumerate().collect();
        let done = parallel::try_map_each(models, means.runs_per_thread, on_fold)?;
        Ok(done.into_iter().collect())
    }

    /// Continues the path on all folds. Returns whether there was time for all of it.
    pub(super) fn grow(
        &mut self,
        number: usize,
        segment: Grow,
        folds: &Folds,
        search: &Search<'_>,
    ) -> Result<bool> {
        let mut segments = self.segments.clone();
        segments.push(segment);
        let done = match self.run(&segments, folds, search) {
            Err(Error::Memory { .. }) => {
                self.is_too_large = true;
                return Ok(true);
            }
            // Some folds are too small for these triplets, but others may suit them.
            Err(Error::Data(_)) => {
                (self.may_extend, self.may_mine) = (false, false);
                return Ok(true);
            }
            done => done?,
        };
        let Some(done) = done else {
            return Ok(false);
        };
        self.segments = segments;
        self.add(number, search, &done);
        Ok(done.iter().all(|segment| segment.is_whole))
    }

    /// All segments that are planned. Returns whether there was time for all of them.
    pub(super) fn replay(
        &mut self,
        number: usize,
        folds: &Folds,
        search: &Search<'_>,
    ) -> Result<bool> {
        if let Some(runner) = search.runner {
            // All segments at once: the next one begins while the one before is evaluated.
            let segments = 1..=self.planned.len();
            let tasks = segments.flat_map(|n| self.tasks(&self.planned[..n], folds, search));
            match search.recorded_elsewhere(runner, &tasks.collect::<Vec<_>>()) {
                // Dealt with below, segment by segment.
                Err(Error::Memory { .. } | Error::Data(_)) => {}
                done => drop(done?),
            }
        }
        for segment in self.planned.clone() {
            if !self.grow(number, segment, folds, search)? {
                return Ok(false);
            }
        }
        self.models.iter_mut().for_each(Vec::clear);
        Ok(true)
    }

    /// Adds the points of a segment that is done on all folds.
    fn add(&mut self, number: usize, search: &Search<'_>, folds: &[Segment]) {
        let reached = folds.iter().map(|s| s.checkpoints.len()).min().unwrap_or(0);
        let round = Reached::after(&self.segments).round;
        for at in 0..reached {
            let checkpoints = || folds.iter().map(|segment| &segment.checkpoints[at]);
            for (index, &rule) in search.rules.iter().enumerate() {
                let mut losses = Losses::default();
                let Some(()) = checkpoints().try_for_each(|c| {
                    losses.append(c.losses.get(index)?);
                    Some(())
                }) else {
                    // A plain similarity is not evaluated under all rules.
                    break;
                };
                self.points.push(Point {
                    trial: number,
                    segment: self.segments.len() - 1,
                    round,
                    iteration: checkpoints().map(|c| c.iteration).max().unwrap_or(0),
                    atoms: checkpoints().map(|c| c.atoms).max().unwrap_or(0),
                    features: checkpoints().map(|c| c.features).max().unwrap_or(0),
                    n_estimators: self.config.n_estimators,
                    rule,
                    losses,
                });
            }
        }
        let all = |of: fn(&Segment) -> bool| folds.iter().all(|s| s.is_whole && of(s));
        self.may_extend = all(|segment| segment.may_extend);
        self.may_mine = all(|segment| segment.may_mine);
        self.seconds += folds.iter().map(|segment| segment.seconds).sum::<f64>();
    }
}

/// The unit of work: one segment of a configuration on one fold, or the evaluation of a plain similarity there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialTask {
    pub(super) job: Job,
    pub(super) config: TrainConfig,
    pub(super) is_plain: bool,
    /// Those of the path up to this one.
    pub(super) segments: Vec<Grow>,
    /// Whether its triplets are given, not those of the configuration.
    pub(super) is_given: bool,
    /// Whether no other task runs beside it.
    pub(super) is_sequential: bool,
    /// Whether this is the final training on all rows, which is not evaluated.
    pub(super) is_final: bool,
    pub(super) rung: usize,
    pub(super) order: usize,
}

impl TrialTask {
    /// The final training of an ensemble, after this many rungs.
    pub(super) fn last(config: TrainConfig, rung: usize) -> Self {
        Self {
            job: Job {
                sampled: false,
                configuration: format!("final {config}"),
                fold: 0,
                segments: String::new(),
            },
            config,
            is_plain: false,
            segments: Vec::new(),
            is_given: false,
            is_sequential: false,
            is_final: true,
            rung,
            order: 0,
        }
    }

    /// A name of its own for what is computed. A task that was refused because it needs more memory than its share is another
    /// one when it runs alone.
    pub fn name(&self) -> String {
        let Job {
            sampled,
            configuration,
            fold,
            segments,
        } = &self.job;
        let alone = if self.is_sequential { " alone" } else { "" };
        format!("{configuration} {sampled} {fold} {segments}{alone}")
    }

    /// The name of the task whose models this one continues, if there is one. If that one ran alone, its models are not found
    /// by this name, and the segments before are run again.
    pub fn previous(&self) -> Option<String> {
        let (_, before) = self.segments.split_last()?;
        let job = Job {
            segments: words(before),
            ..self.job.clone()
        };
        let previous = Self {
            job,
            is_sequential: false,
            ..self.clone()
        };
        (!before.is_empty()).then(|| previous.name())
    }

    /// The name of the triplets that its models learn from, if those of other tasks do too: neighbors in a fold, by a
    /// preprocessing.
    pub fn shared_triplets(&self) -> Option<String> {
        let is_mined = matches!(self.config.triplets, TripletSource::Neighbors { .. });
        let is_shared = is_mined && self.config.subsample == 1.0 && !self.is_given;
        let Job { sampled, fold, .. } = &self.job;
        let name = || format!("{sampled} {fold} {}", self.config.preprocess);
        (is_shared && !self.is_plain && !self.is_final).then(name)
    }

    /// The number of models to train; none for a plain similarity.
    pub fn n_models(&self) -> usize {
        if self.is_plain {
            0
        } else {
            self.config.n_estimators
        }
    }

    /// The number of its rung.
    pub fn rung(&self) -> usize {
        self.rung
    }

    /// The place of its trial in the order in which the trials of a rung begin.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Does the work. `models` are as the segment before left them, or lost; then the segments before are run again. None
    /// if cancelled before the first checkpoint.
    fn run(&self, fold: &Fold, means: Means<'_>, models: &mut Models) -> Result<Option<Segment>> {
        let started = Instant::now();
        let prepared = fold.prepared(self.config.preprocess);
        let begun = std::mem::take(models);
        let trained = parallel::try_map(self.n_models(), means.runs_per_thread, |number| {
            self.train(number, begun.get(number).cloned(), fold, &prepared, means)
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let paths: Vec<&MiningRun<'_>> = trained.iter().collect();
        let result = self.evaluate(&paths, seconds, fold, &prepared, means)?;
        if result.is_some() {
            *models = trained;
        }
        Ok(result)
    }

    /// The losses of trained models at the checkpoints of the segment, or of a plain similarity. None if cancelled before
    /// the first.
    pub(super) fn evaluate(
        &self,
        trained: &[&MiningRun<'_>],
        seconds: f64,
        fold: &Fold,
        prepared: &Prepared,
        means: Means<'_>,
    ) -> Result<Option<Segment>> {
        if self.is_plain {
            return plain(fold, prepared, means).map(Some);
        }
        let (config, segments) = (&self.config, &self.segments);
        let planned = checkpoints(segments, means.max_atoms);
        let mut done: Vec<Checkpoint> = Vec::new();
        let mut last = ActiveSet::default();
        for (&iteration, active) in planned.iter().zip(iterates(trained, segments, &planned)?) {
            let losses = match done.last() {
                // A run that has ended stays where it is.
                Some(before) if last == active => before.losses.clone(),
                _ => {
                    let (lambda, n_features) = (config.lambda[0], prepared.train.n_features());
                    let base = config.solver(lambda, 0)?.base;
                    let similarity = BilinearModel::on_base(n_features, lambda, &active, base)?;
                    match fold.losses_of_model(prepared, &similarity, means.rules, means.cancel) {
                        Err(Error::Stopped) => break,
                        losses => losses?,
                    }
                }
            };
            done.push(Checkpoint {
                iteration,
                atoms: active.len(),
                features: active.n_features(),
                losses,
            });
            last = active;
        }
        if done.is_empty() {
            return Ok(None);
        }
        Ok(Some(Segment {
            is_whole: done.len() == planned.len(),
            checkpoints: done,
            seconds,
            may_extend: trained.iter().all(|m| m.run.stop == Stop::MaxIter),
            may_mine: !fold.is_given() && trained.iter().all(|m| m.may_continue()),
        }))
    }

    /// One of the models up to the end of the segment, or until cancelled.
    pub(super) fn train(
        &self,
        number: usize,
        begun: Option<MiningRun<'static>>,
        fold: &Fold,
        prepared: &Prepared,
        means: Means<'_>,
    ) -> Result<MiningRun<'static>> {
        let (config, segments) = (self.of_model(number), &self.segments);
        let member = fold.member(prepared, &config)?;
        let (rows, labels) = (&*member.0, &*member.1);
        let observer = &mut UntilCancelled(means.cancel);
        let solver = |segment: usize| {
            let mut params = config.solver(config.lambda[0], 0)?;
            params.max_iter = segments[segment].iterations();
            params.memory_limit = means.memory;
            // Other random starts than in the segments before.
            params.seed = params.seed.wrapping_add(0x5e67 * segment as u64);
            Ok::<_, Error>(params)
        };
        let mut model = match begun {
            Some(model) => model,
            None => {
                let triplets = fold.triplets(prepared, &config, &member, means.cancel)?;
                let run = solver(0)?.build()?.fit(rows, &triplets, observer)?;
                MiningRun::new(run, Cow::Owned(triplets))
            }
        };
        while model.ends.len() < segments.len() && model.run.stop != Stop::ObserverAsked {
            let segment = model.ends.len();
            let params = solver(segment)?;
            match segments[segment] {
                Grow::Extend(_) => model.extend(rows, params, observer)?,
                Grow::Mine(_) => model.round(rows, labels, params, observer)?,
            }
        }
        Ok(model)
    }

    /// A model that was begun in another process and arrived without its triplets.
    pub(super) fn with_triplets(
        &self,
        number: usize,
        begun: MiningRun<'static>,
        fold: &Fold,
        prepared: &Prepared,
        cancel: CancelToken<'_>,
    ) -> Result<MiningRun<'static>> {
        let config = self.of_model(number);
        let member = fold.member(prepared, &config)?;
        let triplets = fold.triplets(prepared, &config, &member, cancel)?;
        let is_round = |segment: &usize| matches!(self.segments[*segment], Grow::Mine(_));
        let rounds = (1..begun.ends.len()).filter(is_round);
        let before: Vec<usize> = rounds.map(|segment| segment - 1).collect();
        let solver = config.solver(config.lambda[0], 0)?;
        begun.with_triplets(triplets, before, (&member.0, &member.1), &solver, cancel)
    }

    /// The configuration of one of the models.
    fn of_model(&self, number: usize) -> TrainConfig {
        TrainConfig {
            seed: self.config.seed.wrapping_add(number as u64),
            ..self.config.clone()
        }
    }
}

fn words(segments: &[Grow]) -> String {
    segments.iter().map(Grow::to_string).collect()
}

/// The losses of the dot product of preprocessed rows.
fn plain(fold: &Fold, prepared: &Prepared, means: Means<'_>) -> Result<Segment> {
    let rules = means.rules.iter().copied();
    let rules: Vec<_> = rules
        .filter(|rule| rule.normalization == Normalization::Dot)
        .collect();
    let losses = fold.losses(prepared, &Dot, &rules, means.cancel)?;
    let checkpoint = Checkpoint {
        iteration: 0,
        atoms: 0,
        features: 0,
        losses,
    };
    Ok(Segment {
        checkpoints: vec![checkpoint],
        seconds: 0.0,
        is_whole: true,
        may_extend: false,
        may_mine: false,
    })
}

/// Segments of fewer iterations are evaluated at their end only: an evaluation takes about as long as 100 iterations, and
/// the next segment, which is no longer than all before it, is evaluated soon.
const LONG: usize = 512;

/// The iterations of its mining round after which the losses of the last segment are computed: more after a mining round,
/// which changes the errors fastest. With a limit on atoms, also early iterations, since each adds at most one atom.
fn checkpoints(segments: &[Grow], max_atoms: Option<usize>) -> Vec<usize> {
    let (last, before) = segments.split_last().expect("there is a segment");
    let start = match last {
        Grow::Extend(_) => Reached::after(before).iteration,
        Grow::Mine(_) => 0,
    };
    let count = last.iterations();
    let parts: &[usize] = match last {
        Grow::Extend(_) if count < LONG => &[8],
        Grow::Extend(_) => &[4, 8],
        Grow::Mine(_) => &[2, 4, 8],
    };
    let mut at: Vec<usize> = parts.iter().map(|p| (count * p).div_ceil(8)).collect();
    if let Some(most) = max_atoms {
        let early = [most.saturating_sub(1), most / 2, most / 4];
        at.extend(early.into_iter().filter(|&at| at < count));
    }
    at.retain(|&at| at > 0);
    at.sort_unstable();
    at.dedup();
    at.into_iter().map(|at| start + at).collect()
}

/// The average of the models at each checkpoint of the last segment that all of them reached.
fn iterates(
    models: &[&MiningRun<'_>],
    segments: &[Grow],
    planned: &[usize],
) -> Result<Vec<ActiveSet>> {
    let last = segments.len() - 1;
    // Checkpoints count from the beginning of the mining round, steps from the beginning of the segment.
    let offset = match segments[last] {
        Grow::Extend(_) => Reached::after(&segments[..last]).iteration,
        Grow::Mine(_) => 0,
    };
    let mut reached = planned.len();
    let mut paths = Vec::new();
    for model in models {
        // Cancelled in a segment before.
        let Some(&end) = model.ends.get(last) else {
            return Ok(Vec::new());
        };
        let start = if last == 0 { 0 } else { model.ends[last - 1] };
        let at: Vec<usize> = planned.iter().map(|at| start + at - offset).collect();
        if model.run.stop == Stop::ObserverAsked {
            reached = reached.min(at.iter().filter(|&&at| at <= end).count());
        }
        let at: Vec<usize> = at.into_iter().map(|at| at.min(end)).collect();
        paths.push(model.run.path.at_each(&at)?);
    }
    let at_each = |at: usize| paths.iter().map(|path| &path[at]).collect::<Vec<_>>();
    (0..reached).map(|at| average(&at_each(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_count_from_the_last_mining_round() {
        let segments = [Grow::Extend(128), Grow::Extend(128), Grow::Mine(256)];
        assert_eq!(checkpoints(&segments[..1], None), [128]);
        assert_eq!(checkpoints(&segments[..2], None), [256]);
        assert_eq!(checkpoints(&segments, None), [64, 128, 256]);
        assert_eq!(checkpoints(&segments[..1], Some(9)), [2, 4, 8, 128]);
        let long = [Grow::Extend(512), Grow::Extend(512)];
        assert_eq!(checkpoints(&long, None), [768, 1024]);
        let reached = |n: usize| {
            let Reached { round, iteration } = Reached::after(&segments[..n]);
            (round, iteration)
        };
        assert_eq!(
            [reached(1), reached(2), reached(3)],
            [(0, 128), (0, 256), (1, 256)]
        );
    }
}
