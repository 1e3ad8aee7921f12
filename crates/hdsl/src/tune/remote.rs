//! Trials in other processes. The search itself stays where it is: it hands out tasks through a [`TrialRunner`], and gets back
//! what the journal records of a finished task.
//!
//! A worker has a [`TrialData`]: the same rows, from which it makes the same folds. Trials of a worker share its preprocessed
//! rows, as they do in one process. Triplets of neighbors are mined once, as [`SharedTriplets`], and sent to the workers that
//! need them. The models of a trial are a [`TrialState`] for each. It stays on the worker that trained it, and continues there
//! or where else the runner moves it, as a path: a worker that receives it mines the triplets of its mining rounds again.
//!
//! The models of the final training, if it is an ensemble, are trained likewise.

use super::folds::{Fold, Folds};
use super::journal::Segment;
use super::params::TuneConfig;
use super::search::Means;
use super::trial::TrialTask;
use super::{configuration, folds_and_rows, given, joined, sample};
use crate::atoms::{Atom, Path, Step};
use crate::cancel::CancelToken;
use crate::data::{IndexBase, Labels, Rows};
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::model::TrainConfig;
use crate::observer::{Stop, UntilCancelled};
use crate::solver::{Run, memory};
use crate::train::ensemble::{Member, train_one_member};
use crate::train::rounds::MiningRun;
use crate::train::{Labeled, RunSummary, TrainData};
use crate::triplets::{NeighborLists, Triplets};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Instant;

/// Runs the tasks of a search in other processes.
pub trait TrialRunner: Sync {
    /// For each task: [`TrialData::train`] for each of its models, given the state of that model after
    /// [`TrialTask::previous`] if it is still there, and what [`TrialData::mine`] made for a task with the same
    /// [`TrialTask::shared_triplets`]; then [`TrialData::evaluate`] on these states. Calls `done` with the place
    /// of the task and the result of the evaluation, as they are ready. Returns when all are, or soon after the token is
    /// cancelled. A task that was lost with its worker is run again. Several threads call this at the same time.
    fn run(
        &self,
        tasks: &[&TrialTask],
        cancel: CancelToken<'_>,
        done: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()>;
}

/// The rows of a search in a process that runs tasks.
pub struct TrialData {
    params: TuneConfig,
    folds: Folds,
    sample: Option<Folds>,
    rules: Vec<PredictionRule>,
    memory: Option<u64>,
    side_by_side: u64,
    /// Those of the final training.
    all: AllRows,
}

/// The rows of the final training, with their labels or the triplets given in their place.
struct AllRows {
    rows: Rows,
    labels: Option<Labels>,
    index_base: IndexBase,
    triplets: Option<Triplets>,
}

impl TrialData {
    /// From the same rows and parameters as those of the search. So many tasks run side by side, and share the memory.
    pub fn new(data: &TrainData<'_>, params: &TuneConfig, side_by_side: usize) -> Result<Self> {
        let given = given(data, params)?;
        let joined = joined(data, given.as_ref())?;
        let (folds, all) = folds_and_rows(data, given.as_ref(), joined.as_ref(), params)?;
        let all = AllRows {
            rows: all.rows.to_rows(),
            labels: all.labels.cloned(),
            index_base: all.index_base,
            triplets: data.triplets.cloned(),
        };
        Ok(Self {
            all,
            sample: sample(&folds, given.as_ref(), params)?,
            rules: configuration::rules(params, &folds),
            folds,
            memory: memory::budget(params.memory_limit),
            side_by_side: side_by_side.max(1) as u64,
            params: params.clone(),
        })
    }

    /// The triplets that [`TrialTask::shared_triplets`] names.
    pub fn mine(&self, task: &TrialTask, cancel: CancelToken<'_>) -> Result<SharedTriplets> {
        if task.shared_triplets().is_none() {
            return Err(Error::Elsewhere(
                "a task without shared triplets".to_owned(),
            ));
        }
        let fold = self.fold(task)?;
        let prepared = fold.prepared(task.config.preprocess);
        let all = fold.member(&prepared, &task.config)?;
        let mined = fold.triplets(&prepared, &task.config, &all, cancel);
        cancel.check()?;
        Ok(SharedTriplets(failure(mined)?))
    }

    /// One model of a task up to the end of its segment. `begun` is that model after the segment before; without it, the
    /// segments before are run again. `mined` are its shared triplets; without them, they are mined here.
    pub fn train(
        &self,
        task: &TrialTask,
        model: usize,
        begun: Option<&TrialState>,
        mined: Option<&SharedTriplets>,
        cancel: CancelToken<'_>,
    ) -> Result<TrialState> {
        if task.is_final {
            return self.train_finally(&task.config, model, cancel);
        }
        let started = Instant::now();
        let fold = self.fold(task)?;
        let prepared = fold.prepared(task.config.preprocess);
        match mined.map(|mined| &mined.0) {
            Some(Ok(mined)) => prepared.set_neighbors(mined),
            Some(Err(failure)) => return Ok(TrialState(Err(failure.clone()))),
            None => {}
        }
        let begun = match begun.map(|state| &state.0) {
            // A segment that was refused beside others was then run alone, by another name.
            None | Some(Err(_)) => Ok(None),
            Some(Ok(begun)) if begun.has_triplets => Ok(Some(begun.run.clone())),
            Some(Ok(begun)) => {
                let run = begun.run.clone();
                let run = task.with_triplets(model, run, fold, &prepared, cancel);
                run.map(Some)
            }
        };
        let trained = begun.and_then(|begun| {
            let run = task.train(model, begun, fold, &prepared, self.means(task, cancel))?;
            cancel.check()?;
            Ok(Trained {
                run,
                has_triplets: true,
                seconds: started.elapsed().as_secs_f64(),
                summary: None,
            })
        });
        Ok(TrialState(failure(trained)?))
    }

    /// One model of the final training.
    fn train_finally(
        &self,
        config: &TrainConfig,
        model: usize,
        cancel: CancelToken<'_>,
    ) -> Result<TrialState> {
        let all = &self.all;
        let data = TrainData {
            triplets: all.triplets.as_ref(),
            ..TrainData::new(Labeled {
                rows: all.rows.view(),
                labels: all.labels.as_ref(),
                index_base: all.index_base,
            })
        };
        let trained = train_one_member(&data, config, model, &mut UntilCancelled(cancel))?;
        cancel.check()?;
        let path = trained.model.path().clone();
        let run = Run {
            active: path.at(path.len())?,
            path,
            trace: Vec::new(),
            stop: trained.run.stop,
            seconds: trained.run.train_seconds,
        };
        Ok(TrialState(Ok(Trained {
            seconds: run.seconds,
            run: MiningRun::new(run, Cow::Owned(Triplets::new())),
            has_triplets: false,
            summary: Some(Summary {
                base: trained.model.base(),
                run: trained.run,
            }),
        })))
    }

    /// The result of a task whose models are trained, for the search to read.
    pub fn evaluate(
        &self,
        task: &TrialTask,
        states: &[&TrialState],
        cancel: CancelToken<'_>,
    ) -> Result<Vec<u8>> {
        let trained: std::result::Result<Vec<&Trained>, &Failure> =
            states.iter().map(|state| state.0.as_ref()).collect();
        let outcome: Outcome = match trained {
            Err(failure) => Err(failure.clone()),
            Ok(trained) if task.is_final => {
                let sent: Vec<Sent> = trained.into_iter().map(Sent::of).collect();
                return Ok(serde_json::to_vec(&sent).expect("plain data becomes JSON"));
            }
            Ok(trained) => {
                let fold = self.fold(task)?;
                let prepared = fold.prepared(task.config.preprocess);
                let runs: Vec<&MiningRun<'_>> = trained.iter().map(|model| &model.run).collect();
                let seconds = trained.iter().map(|model| model.seconds).sum();
                let means = self.means(task, cancel);
                let segment = task.evaluate(&runs, seconds, fold, &prepared, means);
                cancel.check()?;
                failure(segment)?
            }
        };
        Ok(serde_json::to_vec(&outcome).expect("plain data becomes JSON"))
    }

    fn fold(&self, task: &TrialTask) -> Result<&Fold> {
        let folds = match (&self.sample, task.job.sampled) {
            (Some(sample), true) => sample,
            (_, _) => &self.folds,
        };
        let fold = folds.folds.get(task.job.fold);
        fold.ok_or_else(|| Error::Elsewhere("a task of another search".to_owned()))
    }

    fn means<'a>(&'a self, task: &TrialTask, cancel: CancelToken<'a>) -> Means<'a> {
        let share = if task.is_sequential {
            1
        } else {
            self.side_by_side
        };
        Means {
            rules: &self.rules,
            max_atoms: self.params.max_atoms,
            memory: self.memory.map(|all| all / share),
            runs_per_thread: 1,
            cancel,
        }
    }
}

/// A model of a trial, as far as it is trained; or why it cannot be.
pub struct TrialState(std::result::Result<Trained, Failure>);

struct Trained {
    run: MiningRun<'static>,
    /// Whether it was trained in this process, and not sent here.
    has_triplets: bool,
    /// Seconds of its last segment.
    seconds: f64,
    /// If it is of the final training.
    summary: Option<Summary>,
}

/// What a model of the final training has besides its path.
#[derive(Clone, Serialize, Deserialize)]
struct Summary {
    base: f64,
    run: RunSummary,
}

/// Triplets that the models of several tasks learn from; or why there are none.
pub struct SharedTriplets(std::result::Result<Triplets, Failure>);

impl SharedTriplets {
    /// To be sent to another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let lists = self.0.as_ref().map(Triplets::lists);
        serde_json::to_vec(&lists).expect("plain data becomes JSON")
    }

    /// As sent by another process.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let lists: std::result::Result<NeighborLists, Failure> = read(bytes)?;
        Ok(Self(lists.map(Triplets::from_lists)))
    }
}

/// A state as it is sent: the path, from which all else follows.
#[derive(Serialize, Deserialize)]
struct Sent {
    start: Vec<(Atom, f64)>,
    steps: Vec<Step>,
    ends: Vec<usize>,
    stop: Stop,
    seconds: [f64; 2],
    summary: Option<Summary>,
}

impl Sent {
    fn of(trained: &Trained) -> Self {
        let run = &trained.run;
        Self {
            start: run.run.path.start().to_vec(),
            steps: run.run.path.steps().to_vec(),
            ends: run.ends.clone(),
            stop: run.run.stop,
            seconds: [run.run.seconds, trained.seconds],
            summary: trained.summary.clone(),
        }
    }

    fn received(self) -> Result<Trained> {
        let path = Path::new(self.start, self.steps)?;
        let run = Run {
            active: path.at(path.len())?,
            path,
            trace: Vec::new(),
            stop: self.stop,
            seconds: self.seconds[0],
        };
        let run = MiningRun {
            run,
            triplets: Cow::Owned(Triplets::new()),
            n_triplets: 0,
            class_weights: None,
            ends: self.ends,
        };
        Ok(Trained {
            run,
            has_triplets: false,
            seconds: self.seconds[1],
            summary: self.summary,
        })
    }
}

impl TrialState {
    /// To be sent to another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sent = self.0.as_ref().map(Sent::of);
        serde_json::to_vec(&sent).expect("plain data becomes JSON")
    }

    /// As sent by another process.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let sent: std::result::Result<Sent, Failure> = read(bytes)?;
        Ok(Self(match sent {
            Ok(sent) => Ok(sent.received()?),
            Err(failure) => Err(failure),
        }))
    }

    /// About how many bytes it takes to send it.
    pub fn n_bytes(&self) -> usize {
        const STEP: usize = 80;
        self.0
            .as_ref()
            .map_or(0, |model| STEP * model.run.run.path.len())
    }
}

/// What a task that was evaluated gives. None if it was cancelled.
type Outcome = std::result::Result<Option<Segment>, Failure>;

/// The errors that are results of a task, since the search goes on without it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Failure {
    /// Such triplets cannot be mined from these rows.
    Data(String),
    /// It needs more memory than there is; the numbers are those of [`Error::Memory`].
    Memory {
        triplets: usize,
        needed: u64,
        limit: u64,
        limit_is_set: bool,
        batch: Option<usize>,
        fewer: Option<usize>,
    },
}

/// Tells these errors from others.
fn failure<T>(result: Result<T>) -> Result<std::result::Result<T, Failure>> {
    Ok(Err(match result {
        Ok(done) => return Ok(Ok(done)),
        Err(Error::Data(reason)) => Failure::Data(reason),
        Err(Error::Memory {
            triplets,
            needed,
            limit,
            limit_is_set,
            batch,
            fewer,
        }) => Failure::Memory {
            triplets,
            needed,
            limit,
            limit_is_set,
            batch,
            fewer,
        },
        Err(other) => return Err(other),
    }))
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Data(reason) => Error::Data(reason),
            Failure::Memory {
                triplets,
                needed,
                limit,
                limit_is_set,
                batch,
                fewer,
            } => Error::Memory {
                triplets,
                needed,
                limit,
                limit_is_set,
                batch,
                fewer,
            },
        }
    }
}

/// What [`TrialData::evaluate`] returned for the final training.
pub(super) fn members(bytes: &[u8]) -> Result<Vec<Member>> {
    let sent: Vec<Sent> = read(bytes)?;
    let member = |sent: Sent| {
        let Trained { run, summary, .. } = sent.received()?;
        let of_a_trial = || Error::Elsewhere("a model of a trial".to_owned());
        let Summary { base, run: summary } = summary.ok_or_else(of_a_trial)?;
        Ok(Member {
            active: run.run.active,
            base,
            run: summary,
        })
    };
    sent.into_iter().map(member).collect()
}

/// What [`TrialData::evaluate`] returned for a trial.
pub(super) fn outcome(bytes: &[u8]) -> Result<Outcome> {
    read(bytes)
}

fn read<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T> {
    let wrong = |error| Error::Elsewhere(format!("a message of another version: {error}"));
    serde_json::from_slice(bytes).map_err(wrong)
}

impl TrialTask {
    /// To be sent to another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data becomes JSON")
    }

    /// As sent by another process.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::lock;
    use super::super::tests::{planted, searched_with};
    use super::super::{Ablation, Tuned, ValidationScheme};
    use super::*;
    use crate::solver::SolverParams;
    use crate::train::Labeled;
    use std::collections::HashMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Two workers that take tasks in turn, so that states are sent from one to the other all the time.
    struct InTurn {
        workers: [TrialData; 2],
        next: AtomicUsize,
        /// Every so many tasks, the states they would continue are lost.
        loses_every: usize,
        states: Mutex<HashMap<String, Vec<Vec<u8>>>>,
        mined: Mutex<HashMap<String, Vec<u8>>>,
        /// What is known is not computed again.
        results: Mutex<HashMap<String, Vec<u8>>>,
        n_final: AtomicUsize,
    }

    impl InTurn {
        fn new(data: &TrainData<'_>, params: &TuneConfig, loses_every: usize) -> Self {
            Self::with_shares(data, params, loses_every, 1)
        }

        /// Workers in which so many tasks share the memory.
        fn with_shares(
            data: &TrainData<'_>,
            params: &TuneConfig,
            loses_every: usize,
            shares: usize,
        ) -> Self {
            Self {
                workers: [0, 1].map(|_| TrialData::new(data, params, shares).unwrap()),
                next: AtomicUsize::new(1),
                loses_every,
                states: Mutex::default(),
                mined: Mutex::default(),
                results: Mutex::default(),
                n_final: AtomicUsize::new(0),
            }
        }
    }

    impl TrialRunner for InTurn {
        fn run(
            &self,
            tasks: &[&TrialTask],
            cancel: CancelToken<'_>,
            done: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
        ) -> Result<()> {
            // The last first: a search must not depend on the order.
            for (place, task) in tasks.iter().enumerate().rev() {
                let number = self.next.fetch_add(1, Ordering::SeqCst);
                let worker = &self.workers[number % 2];
                let task = TrialTask::from_bytes(&task.to_bytes())?;
                let known = lock(&self.results).get(&task.name()).cloned();
                if let Some(bytes) = known {
                    done(place, &bytes)?;
                    continue;
                }
                let begun = task
                    .previous()
                    .and_then(|name| lock(&self.states).get(&name).cloned());
                let begun = begun.filter(|_| !number.is_multiple_of(self.loses_every));
                let mined = task.shared_triplets().map(|name| {
                    let known = lock(&self.mined).get(&name).cloned();
                    let mine = || worker.mine(&task, cancel).map(|mined| mined.to_bytes());
                    let mined = known.map_or_else(mine, Ok)?;
                    lock(&self.mined).insert(name, mined.clone());
                    SharedTriplets::from_bytes(&mined)
                });
                let mined = mined.transpose()?;
                self.n_final
                    .fetch_add(usize::from(task.is_final), Ordering::SeqCst);
                let mut states = Vec::new();
                for model in 0..task.n_models() {
                    let begun = begun
                        .as_ref()
                        .map(|states| TrialState::from_bytes(&states[model]));
                    let state = worker.train(
                        &task,
                        model,
                        begun.transpose()?.as_ref(),
                        mined.as_ref(),
                        cancel,
                    )?;
                    states.push(state);
                }
                let sent: Vec<Vec<u8>> = states.iter().map(TrialState::to_bytes).collect();
                lock(&self.states).insert(task.name(), sent);
                let states: Vec<&TrialState> = states.iter().collect();
                let result = worker.evaluate(&task, &states, cancel)?;
                lock(&self.results).insert(task.name(), result.clone());
                done(place, &result)?;
            }
            Ok(())
        }
    }

    fn board(tuned: &Tuned) -> Vec<String> {
        let line = |c: &super::super::Candidate| format!("{} {} {c:?}", c.error, c.score);
        tuned.leaderboard.iter().map(line).collect()
    }

    #[test]
    fn other_processes_find_what_one_process_finds() {
        let (rows, labels) = planted();
        let labeled = Labeled {
            rows: rows.view(),
            labels: Some(&labels),
            index_base: crate::data::IndexBase::Zero,
        };
        let (mut n_mined, mut n_final) = (0, 0);
        let data = TrainData::new(labeled);
        for (validation, ablate) in [
            (ValidationScheme::CrossValidation(2), vec![]),
            (ValidationScheme::CrossValidation(3), vec![Ablation::Base]),
            // Repeated folds: the last rung is a replay.
            (ValidationScheme::Auto, vec![Ablation::Random]),
        ] {
            let params = TuneConfig {
                validation,
                ablate,
                round_iter: Some(12),
                ..TuneConfig::default()
            };
            let here = searched_with(&data, &params, None);
            let mined = here.leaderboard.iter();
            n_mined += mined.filter(|c| c.config.mining_rounds > 0).count();
            assert!(here.finished);
            for loses_every in [3, usize::MAX] {
                let runner = InTurn::new(&data, &params, loses_every);
                let there = searched_with(&data, &params, Some(&runner));
                assert_eq!(board(&there), board(&here));
                assert!(there.finished && there.expected_error == here.expected_error);
                assert!(there.trained.model.to_bytes() == here.trained.model.to_bytes());
                n_final += runner.n_final.load(Ordering::SeqCst);
            }
        }
        assert!(n_mined > 0, "some trials have mining rounds");
        assert!(n_final > 0, "some final trainings are ensembles");
    }

    #[test]
    fn given_triplets_are_not_mined_elsewhere() {
        let (rows, labels) = planted();
        let given = Triplets::at_random(&rows, &labels, 3, 1).unwrap();
        let mut data = TrainData::new(Labeled {
            rows: rows.view(),
            labels: None,
            index_base: IndexBase::Zero,
        });
        data.triplets = Some(&given);
        let params = TuneConfig {
            validation: ValidationScheme::CrossValidation(2),
            round_iter: Some(12),
            ..TuneConfig::default()
        };
        let runner = InTurn::new(&data, &params, 3);
        let here = searched_with(&data, &params, None);
        let there = searched_with(&data, &params, Some(&runner));
        assert_eq!(board(&there), board(&here));
        assert!(there.trained.model.to_bytes() == here.trained.model.to_bytes());
        assert!(lock(&runner.mined).is_empty());
    }

    #[test]
    fn what_is_too_large_for_a_worker_is_told_apart() {
        let (rows, labels) = planted();
        let labeled = Labeled {
            rows: rows.view(),
            labels: Some(&labels),
            index_base: crate::data::IndexBase::Zero,
        };
        let data = TrainData::new(labeled);
        let params = TuneConfig {
            validation: ValidationScheme::CrossValidation(2),
            round_iter: Some(12),
            memory_limit: Some(1000),
            ..TuneConfig::default()
        };
        let runner = InTurn::new(&data, &params, usize::MAX);
        let none = searched_with(&data, &params, Some(&runner));
        assert!(none.leaderboard.iter().all(|c| c.is_reference) && !none.finished);
    }

    #[test]
    fn what_is_too_large_beside_others_runs_alone() {
        let (rows, labels) = planted();
        let data = TrainData::new(Labeled {
            rows: rows.view(),
            labels: Some(&labels),
            index_base: IndexBase::Zero,
        });
        let triplets = Triplets::at_random(&rows, &labels, 100, 1).unwrap();
        let solver = SolverParams::new(1.0).build().unwrap();
        let one_run = solver.memory_needed(&rows, &triplets);
        let params = |memory| TuneConfig {
            validation: ValidationScheme::CrossValidation(2),
            round_iter: Some(12),
            memory_limit: Some(memory),
            ..TuneConfig::default()
        };
        let here = searched_with(&data, &params(u64::MAX), None);
        let tight = params(one_run);
        let runner = InTurn::with_shares(&data, &tight, usize::MAX, 4);
        let there = searched_with(&data, &tight, Some(&runner));
        let errors = |tuned: &Tuned| -> Vec<(f64, usize)> {
            let board = tuned.leaderboard.iter();
            board.map(|c| (c.error, c.features)).collect()
        };
        assert!(there.finished);
        assert_eq!(errors(&there), errors(&here));
        assert!(there.trained.model.to_bytes() == here.trained.model.to_bytes());
        let results = lock(&runner.results);
        assert!(results.keys().any(|name| name.ends_with(" alone")));
    }

    #[test]
    fn a_runner_that_fails_ends_the_search_with_its_message() {
        struct Broken;
        impl TrialRunner for Broken {
            fn run(
                &self,
                _: &[&TrialTask],
                _: CancelToken<'_>,
                _: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
            ) -> Result<()> {
                Err(Error::Elsewhere("no cluster".into()))
            }
        }
        let (rows, labels) = planted();
        let data = TrainData::new(Labeled {
            rows: rows.view(),
            labels: Some(&labels),
            index_base: crate::data::IndexBase::Zero,
        });
        let tuned = super::super::tune_with(&data, &TuneConfig::default(), Some(&Broken), &mut ());
        assert_eq!(tuned.unwrap_err().to_string(), "no cluster");
        assert!(TrialTask::from_bytes(b"{}").is_err() && TrialState::from_bytes(b"[]").is_err());
    }
}
