//! The search itself: rungs of settings, run side by side.

use super::folds::Folds;
use super::journal::{Job, Journal};
use super::points::{Choice, Point};
use super::setting::{self, Setting};
use super::trial::{Course, Judged, State};
use super::{Part, Preset, TuneEvent, TuneParams, TuneWatcher};
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::train::rounds::Again;
use crate::triplets::TripletSource;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// More training rows than this are sampled for a first impression.
const SCOUTING_ROWS: usize = 4000;

/// And more rows to judge by than this.
const SCOUTING_JUDGED: usize = 2000;

/// How many settings go on to each round after the first.
const SURVIVORS: [usize; 3] = [5, 3, 2];

/// Models of a mean.
const MODELS: usize = 3;

/// Rungs there are at most: a first one, one with each further round, and one for means.
const RUNGS: usize = SURVIVORS.len() + 2;

/// By when each rung has to be done, as a share of the time for the search.
const TIME_SHARES: [f64; RUNGS] = [0.35, 0.6, 0.72, 0.8, 1.0];

/// Time kept for the last training, as a multiple of what it took in the search.
const RESERVE: f64 = 1.5;

/// A setting as far as it has come.
pub(super) struct Trial {
    pub(super) setting: Setting,
    /// Where it is on each fold; none where that is not known any more.
    states: Vec<State>,
    pub(super) points: Vec<Point>,
    /// Rounds that are judged.
    rounds: usize,
    goes_on: bool,
    /// Seconds of learning, on all folds.
    seconds: f64,
}

impl Trial {
    fn new(setting: Setting, folds: &Folds) -> Self {
        Self {
            setting,
            states: folds.folds.iter().map(|_| None).collect(),
            points: Vec::new(),
            rounds: 0,
            goes_on: true,
            seconds: 0.0,
        }
    }

    /// Adds a round that was judged on all folds.
    fn add(&mut self, number: usize, rules: &[PredictionRule], judged: &[&Judged]) {
        let looks = judged.iter().map(|j| j.looks.len()).min().unwrap_or(0);
        for look in 0..looks {
            let seen = || judged.iter().map(|j| &j.looks[look]);
            for (at, &rule) in rules.iter().enumerate() {
                self.points.push(Point {
                    trial: number,
                    round: self.rounds,
                    iteration: judged[0].looks[look].iteration,
                    atoms: seen().map(|l| l.atoms).max().unwrap_or(0),
                    features: seen().map(|l| l.features).max().unwrap_or(0),
                    models: self.setting.models,
                    rule,
                    wrong: seen().flat_map(|l| l.wrong[at].iter().copied()).collect(),
                });
            }
        }
        self.rounds += 1;
        self.goes_on = judged.iter().all(|j| j.goes_on);
        self.seconds += judged.iter().map(|j| j.seconds).sum::<f64>();
    }

    /// The lowest error so far.
    fn error(&self, n_judged: usize) -> f64 {
        let least = self.points.iter().map(|p| p.wrong.len()).min();
        least.map_or(1.0, |least| least as f64 / n_judged as f64)
    }
}

/// The search as a whole.
pub(super) struct Search<'a> {
    pub(super) params: &'a TuneParams,
    pub(super) journal: Mutex<Journal>,
    pub(super) watcher: Mutex<&'a mut dyn TuneWatcher>,
    pub(super) cancel: &'a (dyn Fn() -> bool + Sync),
    pub(super) started: Instant,
    pub(super) rules: &'a [PredictionRule],
    pub(super) looks: &'a [usize],
    /// Rows the final model will learn from.
    pub(super) all_rows: usize,
    /// Whether the watcher asked to stop.
    pub(super) stopped: AtomicBool,
    /// Whether all that was planned was done.
    pub(super) finished: bool,
}

/// What a search found.
pub(super) struct Found {
    pub(super) trials: Vec<Trial>,
    /// Rows they were judged by.
    pub(super) n_judged: usize,
}

/// A stage of the search.
#[derive(Clone, Copy)]
struct Rung {
    /// Which, from 0.
    number: usize,
    /// Settings on it do rounds up to this one.
    round: usize,
    /// Models of each setting on it.
    models: usize,
    /// Whether on a sample of the rows.
    scouting: bool,
}

impl Search<'_> {
    /// All rungs.
    pub(super) fn run(&mut self, judges: &Folds) -> Result<Found> {
        let first = setting::first(self.params, judges.folds[0].train());
        let scouting =
            self.params.preset == Preset::Best && judges.folds[0].n_train() > SCOUTING_ROWS;
        let rung = Rung {
            number: 0,
            round: 0,
            models: 1,
            scouting,
        };
        let sample = match scouting {
            true => Some(judges.sampled(SCOUTING_ROWS, SCOUTING_JUDGED, self.params.seed)?),
            false => None,
        };
        let mut trials = self.first_rung(rung, first, sample.as_ref().unwrap_or(judges))?;
        let mut ranked = self.ranked(&trials, sample.as_ref().unwrap_or(judges).n_judged);
        let mut scouts = None;
        if let Some(sample) = &sample {
            let fresh = |&at: &usize| Trial::new(trials[at].setting.clone(), judges);
            let on_all = ranked.iter().map(fresh).collect();
            ranked = (0..ranked.len()).collect();
            scouts = Some((std::mem::replace(&mut trials, on_all), sample.n_judged));
        }
        if self.params.preset == Preset::Best {
            for (at, &keep) in SURVIVORS.iter().enumerate() {
                let round = if self.params.uses(Part::Rounds) {
                    at + 1
                } else {
                    0
                };
                if round <= at && at > 0 {
                    break;
                }
                let rung = Rung {
                    number: at + 1,
                    round,
                    models: 1,
                    scouting: false,
                };
                let going = self.survivors(&mut trials, &ranked, judges, keep, at == 0);
                self.rung(rung, judges, &mut trials, &going)?;
                ranked = self.ranked(&trials, judges.n_judged);
                // The states of those that stay behind are not needed any more.
                for (at, trial) in trials.iter_mut().enumerate() {
                    if !going.contains(&at) {
                        trial.states.iter_mut().for_each(|s| *s = None);
                    }
                }
            }
            self.means(&mut trials, judges)?;
        }
        // Where the time was not enough for all rows, the impression from a sample has to do.
        if let Some((scouts, n_judged)) = scouts
            && trials.iter().all(|t| t.points.is_empty())
        {
            return Ok(Found {
                trials: scouts,
                n_judged,
            });
        }
        Ok(Found {
            trials,
            n_judged: judges.n_judged,
        })
    }

    /// Who goes on to the next rung: the best, and after the first also new ones around them.
    fn survivors(
        &self,
        trials: &mut Vec<Trial>,
        ranked: &[usize],
        judges: &Folds,
        keep: usize,
        first: bool,
    ) -> Vec<usize> {
        let on: Vec<usize> = ranked
            .iter()
            .copied()
            .filter(|&at| trials[at].goes_on)
            .collect();
        let mut going: Vec<usize> = on.iter().copied().take(keep).collect();
        if !first {
            return going;
        }
        // Triplets of neighbors gain most from being mined again: they are not given up before they were.
        let kind = |at: usize| std::mem::discriminant(&trials[at].setting.triplets);
        let others = on.iter().filter(|&&at| kind(at) != kind(ranked[0])).take(2);
        let others: Vec<usize> = others.copied().filter(|at| !going.contains(at)).collect();
        going.extend(others);
        let leaders: Vec<Setting> = ranked
            .iter()
            .take(2)
            .map(|&at| trials[at].setting.clone())
            .collect();
        let near = |setting: &Setting| setting::around(self.params, setting);
        for new in leaders.iter().flat_map(near) {
            if trials.iter().all(|t| t.setting != new) {
                going.push(trials.len());
                trials.push(Trial::new(new, judges));
            }
        }
        going
    }

    /// The last rung: the mean of several models of the best setting that draws its triplets at random, as far as its best
    /// round. Models of the same neighbors would be too much alike for their mean to be any better.
    ///
    /// Where features or atoms are limited there is none: each model would keep the limit, and their mean would not.
    fn means(&mut self, trials: &mut Vec<Trial>, judges: &Folds) -> Result<()> {
        let limited = self.params.max_features.is_some() || self.params.max_atoms.is_some();
        if limited || !self.params.uses(Part::Means) {
            return Ok(());
        }
        let points = trials.iter().flat_map(|t| &t.points);
        let ranked = Choice::new(points, judges.n_judged).by_trial();
        let random = |at: usize| {
            let triplets = &trials[at].setting.triplets;
            matches!(triplets, TripletSource::Random { .. })
        };
        let Some(best) = ranked.iter().find(|c| random(c.point.trial)) else {
            return Ok(());
        };
        let rung = Rung {
            number: RUNGS - 1,
            round: best.point.round,
            models: MODELS,
            scouting: false,
        };
        let several = Setting {
            models: MODELS,
            ..trials[best.point.trial].setting.clone()
        };
        let at = trials.len();
        trials.push(Trial::new(several, judges));
        self.rung(rung, judges, trials, &[at])
    }

    fn first_rung(&mut self, rung: Rung, first: Vec<Setting>, folds: &Folds) -> Result<Vec<Trial>> {
        let mut trials: Vec<Trial> = first.into_iter().map(|s| Trial::new(s, folds)).collect();
        let all: Vec<usize> = (0..trials.len()).collect();
        self.rung(rung, folds, &mut trials, &all)?;
        Ok(trials)
    }

    /// The trials that have points, the best first.
    fn ranked(&self, trials: &[Trial], n_judged: usize) -> Vec<usize> {
        let points = trials.iter().flat_map(|t| &t.points);
        let points = points.filter(|p| self.params.allows(p));
        let best = Choice::new(points, n_judged).by_trial();
        best.iter().map(|c| c.point.trial).collect()
    }

    /// One rung: each of `going` does the rounds it lacks up to the rung's own.
    fn rung(
        &mut self,
        rung: Rung,
        folds: &Folds,
        trials: &mut [Trial],
        going: &[usize],
    ) -> Result<()> {
        self.tell(&TuneEvent::Rung {
            rung: rung.number,
            of: match self.params.preset {
                Preset::Best => RUNGS,
                Preset::Paper => 1,
            },
            settings: going.len(),
            models: rung.models,
            scouting: rung.scouting,
        });
        let deadline = self.deadline(rung, trials, folds);
        let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let halted = || late() || (self.cancel)() || self.stopped.load(Ordering::SeqCst);
        let course = Course {
            rules: self.rules,
            looks: self.looks,
            again: Again::default(),
            params: self.params,
            cancel: &halted,
        };
        let jobs: Vec<(usize, usize)> = going
            .iter()
            .flat_map(|&trial| (0..folds.folds.len()).map(move |fold| (trial, fold)))
            .collect();
        let desk = Desk {
            next: AtomicUsize::new(0),
            board: Mutex::new(Board {
                trials,
                rounds: vec![Vec::new(); jobs.len()],
                done: 0,
                complete: true,
                failed: None,
            }),
        };
        let work = || {
            loop {
                let at = desk.next.fetch_add(1, Ordering::Relaxed);
                let Some(&(trial, fold)) = jobs.get(at) else {
                    return;
                };
                let (setting, rounds, mut state) = {
                    let mut board = lock(&desk.board);
                    if board.failed.is_some() {
                        return;
                    }
                    let trial = &mut board.trials[trial];
                    let state = trial.states[fold].take();
                    (trial.setting.clone(), trial.rounds, state)
                };
                let job = Job {
                    scouting: rung.scouting,
                    setting: setting.to_string(),
                    fold,
                    round: rounds,
                };
                let judged = self.rounds(rung, &course, (&setting, job), folds, &mut state);
                let mut board = lock(&desk.board);
                match judged {
                    Ok(judged) => {
                        let wanted = rung.round + 1 - rounds;
                        let ended = judged.last().is_some_and(|j| !j.goes_on);
                        board.complete &= judged.len() == wanted || (ended && !halted());
                        board.trials[trial].states[fold] = state;
                        board.rounds[at] = judged;
                    }
                    Err(error) => {
                        board.failed.get_or_insert(error);
                        return;
                    }
                }
                board.done += 1;
                // A trial's jobs come one after the other.
                let first = at - fold;
                if board.settle(trial, first..first + folds.folds.len(), self.rules) {
                    let event = TuneEvent::Judged {
                        setting: &setting,
                        error: board.trials[trial].error(folds.n_judged),
                        done: board.done / folds.folds.len(),
                        of: going.len(),
                    };
                    self.tell(&event);
                }
            }
        };
        crate::parallel::scope(|scope| {
            for _ in 0..crate::parallel::current_num_threads() {
                scope.spawn(|_| work());
            }
        });
        let board = desk
            .board
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let (complete, failed) = (board.complete, board.failed);
        self.finished &= complete;
        match failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The rounds that a setting lacks on a fold, as far as there is time. `job` is the first of them.
    fn rounds(
        &self,
        rung: Rung,
        course: &Course<'_>,
        (setting, mut job): (&Setting, Job),
        folds: &Folds,
        state: &mut State,
    ) -> Result<Vec<Judged>> {
        let fold = &folds.folds[job.fold];
        let mut rounds = Vec::new();
        while job.round <= rung.round {
            let known = lock(&self.journal).finished(&job).cloned();
            let judged = match known {
                Some(known) => Some(known),
                None if (course.cancel)() => None,
                None => {
                    let judged = course.round(setting, fold, job.round, state)?;
                    if let Some(whole) = judged.as_ref().filter(|j| j.is_whole(self.looks)) {
                        let mut journal = lock(&self.journal);
                        let spent = journal.spent + self.started.elapsed().as_secs_f64();
                        journal.keep(&job, whole, spent)?;
                    }
                    judged
                }
            };
            let Some(judged) = judged else { break };
            let goes_on = judged.goes_on && judged.is_whole(self.looks);
            rounds.push(judged);
            if !goes_on {
                break;
            }
            job.round += 1;
        }
        Ok(rounds)
    }

    /// By when a rung has to be done.
    fn deadline(&self, rung: Rung, trials: &[Trial], folds: &Folds) -> Option<Instant> {
        let budget = self.params.time?.as_secs_f64();
        let spent = lock(&self.journal).spent;
        let ranked = self.ranked(trials, folds.n_judged);
        let last = ranked.first().map_or(0.0, |&at| {
            let trial = &trials[at];
            let more = self.all_rows as f64 / folds.folds[0].n_train() as f64;
            let a_round = trial.seconds / (trial.rounds * folds.folds.len()) as f64;
            RESERVE * more * a_round * ((rung.round + 1) * rung.models) as f64
        });
        let search = (budget - spent - last).max(0.0) * TIME_SHARES[rung.number];
        // More time than a clock can tell is no limit.
        self.started
            .checked_add(Duration::try_from_secs_f64(search).ok()?)
    }

    pub(super) fn tell(&self, event: &TuneEvent<'_>) {
        let told = lock(&self.watcher).event(event);
        if told.is_break() {
            self.stopped.store(true, Ordering::SeqCst);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panicked ends the search by itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the workers of a rung take their jobs and put what they did.
struct Desk<'a> {
    next: AtomicUsize,
    board: Mutex<Board<'a>>,
}

struct Board<'a> {
    trials: &'a mut [Trial],
    /// The rounds of each job.
    rounds: Vec<Vec<Judged>>,
    done: usize,
    complete: bool,
    failed: Option<Error>,
}

impl Board<'_> {
    /// Adds the rounds that all folds of a trial have done, if all its jobs are done. Whether they were.
    fn settle(&mut self, trial: usize, jobs: Range<usize>, rules: &[PredictionRule]) -> bool {
        let mine = &self.rounds[jobs];
        let rounds = mine.iter().map(Vec::len).min().unwrap_or(0);
        for round in 0..rounds {
            let judged: Vec<&Judged> = mine.iter().map(|rounds| &rounds[round]).collect();
            self.trials[trial].add(trial, rules, &judged);
        }
        rounds > 0
    }
}
