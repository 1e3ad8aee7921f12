//! Successive halving: rungs of trials, run side by side. Each rung gives its trials one more mining round, and the best
//! of them continue to the next.

use super::choice::{Choice, Point};
use super::configuration;
use super::folds::Folds;
use super::journal::{Job, Journal};
use super::params::{Ablation, Preset, TuneConfig};
use super::trial::{Round, State, TrialRunner};
use crate::error::Result;
use crate::knn::PredictionRule;
use crate::model::TrainConfig;
use crate::observer::{Event, Observer};
use crate::parallel;
use crate::triplets::TripletSource;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// With more training rows than this, the first rung runs on a sample of that size.
const SAMPLED_ROWS: usize = 4000;

/// Validation rows of such a sample at most.
const SAMPLED_VALIDATION: usize = 2000;

/// How many trials continue to each rung after the first.
const SURVIVORS: [usize; 3] = [5, 3, 2];

/// Models of an ensemble.
const N_ESTIMATORS: usize = 3;

/// Rungs at most: a first one, one per further round, and one for ensembles.
const RUNGS: usize = SURVIVORS.len() + 2;

/// When each rung has to be done, as a share of the time for the search.
const TIME_SHARES: [f64; RUNGS] = [0.35, 0.6, 0.72, 0.8, 1.0];

/// Time reserved for the final training, as a multiple of what it took in the search.
const RESERVE: f64 = 1.5;

/// A configuration with the rounds it has done.
pub(super) struct Trial {
    pub(super) config: TrainConfig,
    /// Its models on each fold; none where they have to be trained again.
    states: Vec<State>,
    /// The rounds of the current rung, by fold.
    pending: Vec<Vec<Round>>,
    pub(super) points: Vec<Point>,
    /// Rounds that are done on all folds.
    rounds: usize,
    may_continue: bool,
    /// Seconds of training, on all folds.
    seconds: f64,
}

impl Trial {
    fn new(config: TrainConfig, folds: &Folds) -> Self {
        Self {
            config,
            states: folds.folds.iter().map(|_| None).collect(),
            pending: Vec::new(),
            points: Vec::new(),
            rounds: 0,
            may_continue: true,
            seconds: 0.0,
        }
    }

    /// Adds the pending rounds that are done on all folds; returns whether there are any.
    fn settle(&mut self, number: usize, rules: &[PredictionRule]) -> bool {
        let pending = std::mem::take(&mut self.pending);
        let done = pending.iter().map(Vec::len).min().unwrap_or(0);
        for round in 0..done {
            let folds: Vec<&Round> = pending.iter().map(|rounds| &rounds[round]).collect();
            self.add(number, rules, &folds);
        }
        if done == 0 {
            self.pending = pending;
        }
        done > 0
    }

    /// Adds a round that is done on all folds.
    fn add(&mut self, number: usize, rules: &[PredictionRule], folds: &[&Round]) {
        let reached = folds.iter().map(|r| r.checkpoints.len()).min().unwrap_or(0);
        for at in 0..reached {
            let checkpoints = || folds.iter().map(|round| &round.checkpoints[at]);
            for (index, &rule) in rules.iter().enumerate() {
                self.points.push(Point {
                    trial: number,
                    round: self.rounds,
                    iteration: folds[0].checkpoints[at].iteration,
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

    /// The lowest error so far.
    fn error(&self, n_validation: usize) -> f64 {
        let least = self.points.iter().map(|p| p.wrong.len()).min();
        least.map_or(1.0, |least| least as f64 / n_validation as f64)
    }

    fn is_random(&self) -> bool {
        matches!(self.config.triplets, TripletSource::Random { .. })
    }
}

/// The trials of a search, and the number of rows their errors were computed on.
pub(super) struct Found {
    pub(super) trials: Vec<Trial>,
    pub(super) n_validation: usize,
}

/// A stage of the search.
#[derive(Clone, Copy)]
struct Rung {
    /// Which, from 0.
    number: usize,
    /// The round up to which its trials run.
    round: usize,
    n_estimators: usize,
    /// Whether on a sample of the rows.
    sampled: bool,
}

/// The search as a whole.
pub(super) struct Search<'a> {
    pub(super) params: &'a TuneConfig,
    pub(super) journal: Mutex<Journal>,
    pub(super) observer: Mutex<&'a mut (dyn Observer + Send)>,
    pub(super) started: Instant,
    pub(super) rules: &'a [PredictionRule],
    pub(super) checkpoints: &'a [usize],
    /// Rows of the final training.
    pub(super) all_rows: usize,
    /// Whether the observer asked to stop.
    pub(super) stopped: AtomicBool,
    /// Whether all that was planned was done.
    pub(super) finished: bool,
}

impl Search<'_> {
    /// All rungs.
    pub(super) fn run(&mut self, folds: &Folds) -> Result<Found> {
        let best = self.params.preset == Preset::Best;
        let sample = match best && folds.folds[0].n_train() > SAMPLED_ROWS {
            true => Some(folds.sampled(SAMPLED_ROWS, SAMPLED_VALIDATION, self.params.seed)?),
            false => None,
        };
        let first = Rung {
            number: 0,
            round: 0,
            n_estimators: 1,
            sampled: sample.is_some(),
        };
        let mut trials = self.first_rung(first, folds, sample.as_ref().unwrap_or(folds))?;
        let mut on_sample = None;
        let mut ranked = self.ranked(&trials, sample.as_ref().unwrap_or(folds).n_validation);
        if let Some(sample) = &sample {
            let again = |&at: &usize| Trial::new(trials[at].config.clone(), folds);
            let on_all = ranked.iter().map(again).collect();
            ranked = (0..ranked.len()).collect();
            on_sample = Some(Found {
                trials: std::mem::replace(&mut trials, on_all),
                n_validation: sample.n_validation,
            });
        }
        if best {
            self.halve(&mut trials, ranked, folds)?;
            self.ensembles(&mut trials, folds)?;
        }
        match on_sample {
            // There was no time for all rows.
            Some(on_sample) if trials.iter().all(|t| t.points.is_empty()) => Ok(on_sample),
            _ => Ok(Found {
                trials,
                n_validation: folds.n_validation,
            }),
        }
    }

    fn first_rung(&mut self, rung: Rung, all: &Folds, folds: &Folds) -> Result<Vec<Trial>> {
        let max_iter = self.checkpoints[self.checkpoints.len() - 1];
        let first = configuration::first(self.params, all.folds[0].train(), max_iter);
        let mut trials: Vec<Trial> = first.into_iter().map(|c| Trial::new(c, folds)).collect();
        let every: Vec<usize> = (0..trials.len()).collect();
        self.rung(rung, folds, &mut trials, &every)?;
        Ok(trials)
    }

    /// The rungs after the first, each with fewer trials and one more mining round.
    fn halve(
        &mut self,
        trials: &mut Vec<Trial>,
        mut ranked: Vec<usize>,
        folds: &Folds,
    ) -> Result<()> {
        let mines = self.params.uses(Ablation::MiningRounds);
        // Without mining rounds there is one more rung, for the configurations around the best.
        let n_rungs = if mines { SURVIVORS.len() } else { 1 };
        for (at, &keep) in SURVIVORS[..n_rungs].iter().enumerate() {
            let mut active = self.survivors(trials, &ranked, keep);
            if at == 0 {
                self.add_promising(trials, &mut active, &ranked, folds);
            }
            let rung = Rung {
                number: at + 1,
                round: if mines { at + 1 } else { 0 },
                n_estimators: 1,
                sampled: false,
            };
            self.rung(rung, folds, trials, &active)?;
            ranked = self.ranked(trials, folds.n_validation);
            for (at, trial) in trials.iter_mut().enumerate() {
                if !active.contains(&at) {
                    trial.states.iter_mut().for_each(|state| *state = None);
                }
            }
        }
        Ok(())
    }

    /// The best trials that may continue.
    fn survivors(&self, trials: &[Trial], ranked: &[usize], keep: usize) -> Vec<usize> {
        let may_continue = ranked.iter().copied().filter(|&at| trials[at].may_continue);
        may_continue.take(keep).collect()
    }

    /// After the first rung: trials of the other triplet source, and new ones around the best two.
    fn add_promising(
        &self,
        trials: &mut Vec<Trial>,
        active: &mut Vec<usize>,
        ranked: &[usize],
        folds: &Folds,
    ) {
        // Triplets of neighbors gain most from mining rounds: they are not given up before the first.
        let others = ranked.iter().copied().filter(|&at| {
            let other_source = trials[at].is_random() != trials[ranked[0]].is_random();
            trials[at].may_continue && other_source
        });
        let others: Vec<usize> = others.take(2).filter(|at| !active.contains(at)).collect();
        active.extend(others);
        let near = |&at: &usize| configuration::around(self.params, &trials[at].config);
        let near: Vec<TrainConfig> = ranked.iter().take(2).flat_map(near).collect();
        for new in near {
            if trials.iter().all(|trial| trial.config != new) {
                active.push(trials.len());
                trials.push(Trial::new(new, folds));
            }
        }
    }

    /// The last rung: an ensemble of the best configuration with random triplets, up to its best round. Models of the
    /// same neighbors would be too similar for their average to be any better.
    ///
    /// There is none if features or atoms are limited: each model would be within the limit, but not their average.
    fn ensembles(&mut self, trials: &mut Vec<Trial>, folds: &Folds) -> Result<()> {
        let limited = self.params.max_features.is_some() || self.params.max_atoms.is_some();
        if limited || !self.params.uses(Ablation::Ensembles) {
            return Ok(());
        }
        let points = trials.iter().flat_map(|trial| &trial.points);
        let ranked = Choice::new(points, folds.n_validation).by_trial();
        let Some(best) = ranked.iter().find(|c| trials[c.point.trial].is_random()) else {
            return Ok(());
        };
        let rung = Rung {
            number: RUNGS - 1,
            round: best.point.round,
            n_estimators: N_ESTIMATORS,
            sampled: false,
        };
        let ensemble = TrainConfig {
            n_estimators: N_ESTIMATORS,
            ..trials[best.point.trial].config.clone()
        };
        let at = trials.len();
        trials.push(Trial::new(ensemble, folds));
        self.rung(rung, folds, trials, &[at])
    }

    /// The trials that have points, the best first.
    fn ranked(&self, trials: &[Trial], n_validation: usize) -> Vec<usize> {
        let points = trials.iter().flat_map(|trial| &trial.points);
        let points = points.filter(|point| self.params.allows(point));
        let best = Choice::new(points, n_validation).by_trial();
        best.iter().map(|chosen| chosen.point.trial).collect()
    }

    /// One rung: each of the `active` trials does the rounds it lacks, up to that of the rung.
    fn rung(
        &mut self,
        rung: Rung,
        folds: &Folds,
        trials: &mut [Trial],
        active: &[usize],
    ) -> Result<()> {
        self.tell(&Event::RungStarted {
            rung: rung.number,
            of: match self.params.preset {
                Preset::Best => RUNGS,
                Preset::Paper => 1,
            },
            configurations: active.len(),
            n_estimators: rung.n_estimators,
            sampled: rung.sampled,
        });
        let deadline = self.deadline(rung, trials, folds);
        let is_cancelled = || self.is_cancelled(deadline);
        let running = Running {
            search: self,
            rung,
            folds,
            runner: TrialRunner {
                rules: self.rules,
                checkpoints: self.checkpoints,
                is_cancelled: &is_cancelled,
            },
            n_trials: active.len(),
            board: Mutex::new(Board {
                trials,
                done: 0,
                complete: true,
            }),
        };
        for &at in active {
            let pending = folds.folds.iter().map(|_| Vec::new()).collect();
            lock(&running.board).trials[at].pending = pending;
        }
        // One worker after the other takes the next job, so that the most promising trials are done first.
        let job = |&trial: &usize| (0..folds.folds.len()).map(move |fold| (trial, fold));
        let jobs = Mutex::new(active.iter().flat_map(job));
        let failed = Mutex::new(None);
        let work = || {
            let next = || lock(&jobs).next().filter(|_| lock(&failed).is_none());
            while let Some((trial, fold)) = next() {
                if let Err(error) = running.job(trial, fold) {
                    lock(&failed).get_or_insert(error);
                }
            }
        };
        parallel::scope(|scope| {
            for _ in 0..parallel::current_num_threads() {
                scope.spawn(|_| work());
            }
        });
        if let Some(error) = lock(&failed).take() {
            return Err(error);
        }
        let complete = lock(&running.board).complete;
        self.finished &= complete;
        Ok(())
    }

    /// When a rung has to be done.
    fn deadline(&self, rung: Rung, trials: &[Trial], folds: &Folds) -> Option<Instant> {
        let budget = self.params.time?.as_secs_f64();
        let spent = lock(&self.journal).spent;
        let ranked = self.ranked(trials, folds.n_validation);
        let last = ranked.first().map_or(0.0, |&at| {
            let trial = &trials[at];
            let more = self.all_rows as f64 / folds.folds[0].n_train() as f64;
            let per_round = trial.seconds / (trial.rounds * folds.folds.len()) as f64;
            RESERVE * more * per_round * ((rung.round + 1) * rung.n_estimators) as f64
        });
        let search = (budget - spent - last).max(0.0) * TIME_SHARES[rung.number];
        // A time beyond what the clock can represent is no limit.
        self.started
            .checked_add(Duration::try_from_secs_f64(search).ok()?)
    }

    pub(super) fn tell(&self, event: &Event<'_>) {
        if lock(&self.observer).on_event(event).is_break() {
            self.stopped.store(true, Ordering::SeqCst);
        }
    }

    fn is_cancelled(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.stopped.load(Ordering::SeqCst)
            || lock(&self.observer).cancel_token().is_cancelled()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panicked ends the search by itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A rung while its jobs run: one job per trial and fold.
struct Running<'a, 's> {
    search: &'a Search<'s>,
    rung: Rung,
    folds: &'a Folds,
    runner: TrialRunner<'a>,
    n_trials: usize,
    board: Mutex<Board<'a>>,
}

/// What the workers of a rung share.
struct Board<'a> {
    trials: &'a mut [Trial],
    /// Jobs done.
    done: usize,
    complete: bool,
}

impl Running<'_, '_> {
    /// The rounds that a trial lacks on a fold.
    fn job(&self, number: usize, fold: usize) -> Result<()> {
        let (config, first, mut state) = {
            let trial = &mut lock(&self.board).trials[number];
            (
                trial.config.clone(),
                trial.rounds,
                trial.states[fold].take(),
            )
        };
        let rounds = self.rounds(&config, fold, first, &mut state)?;
        let wanted = self.rung.round + 1 - first;
        let ended = rounds.last().is_some_and(|round| !round.may_continue);
        let mut board = lock(&self.board);
        board.complete &= rounds.len() == wanted || (ended && !(self.runner.is_cancelled)());
        board.done += 1;
        let done = board.done / self.folds.folds.len();
        let trial = &mut board.trials[number];
        trial.states[fold] = state;
        trial.pending[fold] = rounds;
        if trial.settle(number, self.search.rules) {
            self.search.tell(&Event::TrialDone {
                configuration: &config.to_string(),
                error: trial.error(self.folds.n_validation),
                done,
                of: self.n_trials,
            });
        }
        Ok(())
    }

    /// The rounds from `first` to that of the rung, as far as there is time; from the journal where it has them.
    fn rounds(
        &self,
        config: &TrainConfig,
        fold: usize,
        first: usize,
        state: &mut State,
    ) -> Result<Vec<Round>> {
        let search = self.search;
        let mut rounds = Vec::new();
        for round in first..=self.rung.round {
            let job = Job {
                sampled: self.rung.sampled,
                configuration: config.to_string(),
                fold,
                round,
            };
            let known = lock(&search.journal).finished(&job).cloned();
            let done = match known {
                Some(known) => known,
                None if (self.runner.is_cancelled)() => break,
                None => {
                    let fold = &self.folds.folds[fold];
                    let Some(done) = self.runner.round(config, fold, round, state)? else {
                        break;
                    };
                    if done.is_whole(search.checkpoints) {
                        let mut journal = lock(&search.journal);
                        let spent = journal.spent + search.started.elapsed().as_secs_f64();
                        journal.record(job, &done, spent)?;
                    }
                    done
                }
            };
            let continues = done.may_continue && done.is_whole(search.checkpoints);
            rounds.push(done);
            if !continues {
                break;
            }
        }
        Ok(rounds)
    }
}
