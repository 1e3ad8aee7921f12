//! The best similarity for a set of data, without anybody knowing what λ is.
//!
//! A search over ways to learn ([`Setting`]) by rungs: many settings have a short first round, the better ones go on to
//! rounds in which triplets are mined again under what was learned, and new settings are tried around the best. Along each
//! path, at a dozen looks a round, every way to decide a class is tried at the price of one search for neighbours. Where
//! rows are many, a sample of them gives the first impression.
//!
//! The point to take is chosen on rows that were not learned from, and what to expect of it is estimated on rows that did
//! not choose (`points.rs`). The final model is one ordinary [`train`](crate::train()) with the settings found, so that
//! one line reproduces it.

mod folds;
mod journal;
mod points;
mod setting;
mod trial;

pub use setting::Setting;

use crate::data::{Labels, Rows, ScalingKind};
use crate::error::{Error, Result};
use crate::knn;
use crate::model::{Decision, Dot};
use crate::rounds::{Again, InRounds};
use crate::solver::SolverParams;
use crate::train::{Labelled, TrainParams, Trained, train_borrowed};
use folds::{Fold, Folds};
use journal::{Job, Journal};
use points::{Choice, Chosen, Point};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trial::{Course, Judged};

/// More training rows than this are sampled for a first impression.
const SCOUTING_ROWS: usize = 4000;

/// And more rows to judge by than this.
const SCOUTING_JUDGED: usize = 2000;

/// Fewer labelled rows than this are judged in folds rather than by a share held out.
const FEW_ROWS: usize = 3000;

/// How many settings go on to each round after the first.
const SURVIVORS: [usize; 3] = [6, 4, 2];

/// By when each rung has to be done, as a share of the time for the search.
const TIME_SHARES: [f64; 4] = [0.4, 0.75, 0.9, 1.0];

/// Time kept for the last training, as a multiple of what it took in the search.
const RESERVE: f64 = 1.5;

/// What is searched over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Everything that was found to help.
    #[default]
    Best,
    /// The paper's recipe: [0, 1] scaling, 3 x 5 static neighbours, λ from 1 to 10^9, the majority of 3.
    Paper,
}

/// Which rows judge, where no validation rows are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judges {
    /// Five folds where rows are few, a fifth of the rows where they are many.
    Auto,
    /// So many folds, each of which judges what is learned from the others.
    Folds(usize),
    /// A share of the rows, by class, at random.
    Share(f64),
}

/// Settings of [`tune`].
#[derive(Clone, Debug)]
pub struct TuneParams {
    /// What is searched over.
    pub preset: Preset,
    /// Who judges without validation rows.
    pub judges: Judges,
    /// Whether validation rows are learned from as well, once everything is chosen.
    pub refit: bool,
    /// How long all of it may take.
    pub time: Option<Duration>,
    /// Features a model may use at most.
    pub max_features: Option<usize>,
    /// Atoms a model may have at most.
    pub max_atoms: Option<usize>,
    /// Iterations of a round; by default they go by the number of classes.
    pub round_iter: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
    /// Bytes a run may take at most; by default what is free.
    pub memory_limit: Option<u64>,
    /// Where to keep what is finished, to go on after a kill.
    pub journal: Option<PathBuf>,
}

impl Default for TuneParams {
    fn default() -> Self {
        Self {
            preset: Preset::Best,
            judges: Judges::Auto,
            refit: true,
            time: None,
            max_features: None,
            max_atoms: None,
            round_iter: None,
            seed: 0,
            memory_limit: None,
            journal: None,
        }
    }
}

/// What happens while tuning.
#[derive(Debug)]
#[non_exhaustive]
pub enum TuneEvent<'a> {
    /// The search begins.
    Started {
        /// Rows that judge.
        n_judged: usize,
        /// Folds they come in.
        n_folds: usize,
        /// 3-NN error of the dot product of rows scaled by maximum on them.
        dot_error: f64,
        /// Jobs found done in the journal.
        resumed: usize,
    },
    /// A rung begins.
    Rung {
        /// Which, from 0.
        rung: usize,
        /// How many there are.
        of: usize,
        /// Settings on it.
        settings: usize,
        /// Whether on a sample of the rows.
        scouting: bool,
    },
    /// A setting has done its round on all folds.
    Judged {
        /// The setting.
        setting: &'a Setting,
        /// Its lowest error on the judged rows so far.
        error: f64,
        /// Settings done on this rung.
        done: usize,
        /// Settings on this rung.
        of: usize,
    },
    /// The choice is made, and the final model is trained.
    Training {
        /// On so many rows.
        n_rows: usize,
    },
}

/// Hears [`TuneEvent`]s, and is asked whether to go on; from several threads, one at a time.
pub trait TuneWatcher: Send {
    /// Called for each event, in order. Break ends the search; the best so far is trained.
    fn event(&mut self, event: &TuneEvent<'_>) -> ControlFlow<()>;
}

impl<F: FnMut(&TuneEvent<'_>) -> ControlFlow<()> + Send> TuneWatcher for F {
    fn event(&mut self, event: &TuneEvent<'_>) -> ControlFlow<()> {
        self(event)
    }
}

/// A line of the leaderboard: a setting at its best.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// How it learned.
    pub setting: Setting,
    /// How often triplets were mined again.
    pub rounds: usize,
    /// Iterations of the last round.
    pub last_iter: usize,
    /// How it decides.
    pub decision: Decision,
    /// Error on the judged rows.
    pub error: f64,
    /// What it was ranked by: the error drawn to that of its neighbourhood.
    pub score: f64,
    /// Features in use; the most of all folds.
    pub features: usize,
    /// Atoms; the most of all folds.
    pub atoms: usize,
}

/// What [`tune`] gives back.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The final training.
    pub trained: Trained,
    /// Its settings: what reproduces it.
    pub params: TrainParams,
    /// Rows it learned from.
    pub n_rows: usize,
    /// Whether the validation rows are among them.
    pub refitted: bool,
    /// Every setting that was judged at its best; the first is the winner.
    pub leaderboard: Vec<Contender>,
    /// The error to expect on new rows: of the choice, on rows that did not choose. With its standard deviation.
    pub expected_error: Option<(f64, f64)>,
    /// 3-NN error of the dot product on the judged rows.
    pub dot_error: f64,
    /// Rows that judged.
    pub n_judged: usize,
    /// Points that were judged.
    pub n_points: usize,
    /// Whether all that was planned was done.
    pub finished: bool,
}

/// Finds the best similarity: searches settings under a limit of time, chooses on validation rows (or on folds of the
/// training rows), and trains the winner on all rows there are.
///
/// The same seed gives the same model, for any number of threads, as long as the time allows all that is planned. `halt` is
/// asked now and then whether to stop searching and train the best so far.
///
/// ```
/// use hdsl::tune::{TuneParams, tune};
/// use hdsl::{Labelled, ReadOptions, parse_dataset};
/// use std::ops::ControlFlow;
/// let text: String = (0..40)
///     .map(|row| format!("{} {}:1 {}:1 9:1\n", row % 2, 1 + row % 4, 5 + row % 3))
///     .collect();
/// let data = parse_dataset("rows.svm", text.as_bytes(), &ReadOptions::default())?;
/// let params = TuneParams { round_iter: Some(20), ..TuneParams::default() };
/// let mut ignore = |_: &hdsl::tune::TuneEvent<'_>| ControlFlow::Continue(());
/// let tuned = tune(Labelled::from(&data), None, None, &params, &mut ignore, &|| false)?;
/// assert_eq!(tuned.leaderboard[0].error, 0.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn tune(
    train: Labelled<'_>,
    valid: Option<Labelled<'_>>,
    names: Option<&[String]>,
    params: &TuneParams,
    watcher: &mut dyn TuneWatcher,
    halt: &(dyn Fn() -> bool + Sync),
) -> Result<Tuned> {
    let started = Instant::now();
    let labels = labelled(train.labels, "training")?;
    let judges = match valid {
        Some(valid) => Folds::apart(
            (train.rows, labels),
            (valid.rows, labelled(valid.labels, "validation")?),
        )?,
        None => match params.judges {
            Judges::Folds(count) => Folds::crossed((train.rows, labels), count, params.seed)?,
            Judges::Share(share) => Folds::held_out((train.rows, labels), share, params.seed)?,
            Judges::Auto if labels.len() < FEW_ROWS => {
                Folds::crossed((train.rows, labels), 5, params.seed)?
            }
            Judges::Auto => Folds::held_out((train.rows, labels), 0.2, params.seed)?,
        },
    };
    let journal = match &params.journal {
        Some(path) => Journal::open(path, &fingerprint(&judges, params))?,
        None => Journal::none(),
    };
    let dot_error = dot_error(&judges)?;
    let smallest = judges.folds.iter().map(Fold::n_train).min().unwrap_or(0);
    let decisions = setting::decisions(params.preset, smallest);
    let length = params
        .round_iter
        .unwrap_or_else(|| setting::iterations(labels));
    let looks = setting::looks(length);
    let all_rows = train.rows.n_rows() + valid.map_or(0, |v| v.rows.n_rows());
    let mut search = Search {
        params,
        journal: Mutex::new(journal),
        watcher: Mutex::new(watcher),
        halt,
        started,
        decisions: &decisions,
        looks: &looks,
        stopped: Mutex::new(false),
        finished: true,
    };
    let resumed = search.journal.get_mut().expect("nobody panicked").len();
    search.tell(&TuneEvent::Started {
        n_judged: judges.n_judged,
        n_folds: judges.folds.len(),
        dot_error,
        resumed,
    });
    let trials = search.run(&judges, all_rows)?;
    let points: Vec<&Point> = trials.iter().flat_map(|t| &t.points).collect();
    let allowed = |p: &&&Point| {
        params.max_features.is_none_or(|most| p.features <= most)
            && params.max_atoms.is_none_or(|most| p.atoms <= most)
    };
    let choice = Choice::new(points.iter().filter(allowed).copied(), judges.n_judged);
    let Some(best) = choice.best() else {
        return Err(Error::data(match points.is_empty() {
            true => "the search was stopped before anything was learned; give it more time",
            false => "no model within so few features or atoms was found",
        }));
    };
    let contender = |chosen: &Chosen<'_>| {
        let point = chosen.point;
        Contender {
            setting: trials[point.trial].setting.clone(),
            rounds: point.round,
            last_iter: point.iteration,
            decision: point.decision,
            error: point.wrong.len() as f64 / judges.n_judged as f64,
            score: chosen.score,
            features: point.features,
            atoms: point.atoms,
        }
    };
    let winner = contender(&best);
    let mut leaderboard = vec![winner.clone()];
    leaderboard.extend(
        choice
            .by_trial()
            .iter()
            .filter(|c| c.point.trial != best.point.trial)
            .map(contender),
    );
    let expected_error = choice.expected_error(params.seed);
    let n_points = points.len();
    let winning = final_params(&winner, length, params);
    let joined = match valid {
        Some(valid) if params.refit => Some(together(train, valid)?),
        _ => None,
    };
    let all = match &joined {
        Some((rows, labels)) => Labelled {
            rows: rows.view(),
            labels: Some(labels),
            index_base: train.index_base,
        },
        None => train,
    };
    search.tell(&TuneEvent::Training {
        n_rows: all.rows.n_rows(),
    });
    let (trained, winning) = train_within(all, names, winning, params.max_atoms)?;
    let Search {
        journal, finished, ..
    } = search;
    journal.into_inner().expect("nobody panicked").remove();
    Ok(Tuned {
        trained,
        params: winning,
        n_rows: all.rows.n_rows(),
        refitted: joined.is_some(),
        leaderboard,
        expected_error,
        dot_error,
        n_judged: judges.n_judged,
        n_points,
        finished,
    })
}

fn labelled<'a>(labels: Option<&'a Labels>, which: &str) -> Result<&'a Labels> {
    labels.ok_or_else(|| Error::data(format!("the {which} rows have no labels to tune by")))
}

/// Training rows and validation rows as one.
fn together(train: Labelled<'_>, valid: Labelled<'_>) -> Result<(Rows, Labels)> {
    let mut rows = train.rows.to_rows();
    rows.append(valid.rows);
    let mut labels = labelled(train.labels, "training")?.clone();
    labels.append(labelled(valid.labels, "validation")?);
    Ok((rows, labels))
}

/// The settings that train the winner.
fn final_params(winner: &Contender, length: usize, params: &TuneParams) -> TrainParams {
    let setting = &winner.setting;
    let mut solver = SolverParams::new(setting.scale)
        .loss(setting.loss)
        .seed(params.seed)
        .max_iter(length);
    if let Some(most) = params.max_features {
        solver = solver.max_features(most);
    }
    if let Some(limit) = params.memory_limit {
        solver = solver.memory_limit(limit);
    }
    TrainParams {
        scaling: setting.scaling,
        triplets: setting.triplets.clone(),
        solver,
        decision: winner.decision,
        again: Again {
            rounds: winner.rounds,
            ..Again::default()
        },
        last_iter: (winner.last_iter < length).then_some(winner.last_iter),
        ..TrainParams::new(setting.scale)
    }
}

/// Trains, with a shorter last round if there would be too many atoms otherwise.
fn train_within(
    data: Labelled<'_>,
    names: Option<&[String]>,
    mut params: TrainParams,
    max_atoms: Option<usize>,
) -> Result<(Trained, TrainParams)> {
    let quiet = &mut |_: &crate::train::Event<'_>| ControlFlow::Continue(());
    let trained = train_borrowed(data, None, names, &params, quiet)?;
    let path = trained.model.path();
    let last = match max_atoms {
        Some(most) => path.last_within(None, Some(most), path.len()),
        None => Some(path.len()),
    };
    match last {
        Some(last) if last == path.len() => Ok((trained, params)),
        // Atoms of the last round that fit; where not even its start does, the rounds before are one fewer.
        Some(last) => {
            let ends = &trained.round_ends;
            let round = ends.iter().take_while(|&&end| end < last).count();
            let before = if round == 0 { 0 } else { ends[round - 1] };
            params.again.rounds = round;
            params.last_iter = Some((last - before).max(1));
            Ok((train_borrowed(data, None, names, &params, quiet)?, params))
        }
        None => Err(Error::data("no model within so few atoms was found")),
    }
}

/// What is searched, in a line: a journal of anything else is not gone on with.
fn fingerprint(folds: &Folds, params: &TuneParams) -> String {
    let mut hasher = crc32fast::Hasher::new();
    for fold in &folds.folds {
        let rows = fold.train();
        for &start in rows.starts() {
            hasher.update(&(start as u64).to_le_bytes());
        }
        for &column in rows.indices() {
            hasher.update(&column.to_le_bytes());
        }
        for &value in rows.values() {
            hasher.update(&value.to_le_bytes());
        }
        for &code in fold.labels.codes().iter().chain(&fold.truth) {
            hasher.update(&code.to_le_bytes());
        }
    }
    format!(
        "hdsl {} {:?} data {:08x} judged {} by {} seed {} features {:?} atoms {:?} iterations {:?}",
        env!("CARGO_PKG_VERSION"),
        params.preset,
        hasher.finalize(),
        folds.n_judged,
        folds.folds.len(),
        params.seed,
        params.max_features,
        params.max_atoms,
        params.round_iter,
    )
}

/// The 3-NN error of the dot product, under the paper's scaling.
fn dot_error(folds: &Folds) -> Result<f64> {
    let mut wrong = 0;
    for fold in &folds.folds {
        let (rows, judged) = fold.scaled(ScalingKind::Max);
        let decision = Decision::nearest(3.min(rows.n_rows()));
        let predicted = knn::Jury::new(&rows, &fold.labels, &judged)?
            .predictions(&Dot, &[decision])?
            .swap_remove(0);
        wrong += predicted
            .iter()
            .zip(&fold.truth)
            .filter(|(p, t)| p != t)
            .count();
    }
    Ok(wrong as f64 / folds.n_judged as f64)
}

/// A setting as far as it has come.
struct Trial {
    setting: Setting,
    /// Where it is on each fold; none where that is not known any more.
    states: Vec<Option<InRounds<'static>>>,
    points: Vec<Point>,
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
    fn add(&mut self, number: usize, decisions: &[Decision], judged: &[Judged]) {
        let looks = judged.iter().map(|j| j.looks.len()).min().unwrap_or(0);
        for look in 0..looks {
            let seen = || judged.iter().map(|j| &j.looks[look]);
            for (at, &decision) in decisions.iter().enumerate() {
                self.points.push(Point {
                    trial: number,
                    round: self.rounds,
                    iteration: judged[0].looks[look].iteration,
                    atoms: seen().map(|l| l.atoms).max().unwrap_or(0),
                    features: seen().map(|l| l.features).max().unwrap_or(0),
                    decision,
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
struct Search<'a> {
    params: &'a TuneParams,
    journal: Mutex<Journal>,
    watcher: Mutex<&'a mut dyn TuneWatcher>,
    halt: &'a (dyn Fn() -> bool + Sync),
    started: Instant,
    decisions: &'a [Decision],
    looks: &'a [usize],
    /// The watcher asked to stop.
    stopped: Mutex<bool>,
    finished: bool,
}

impl Search<'_> {
    /// All rungs.
    fn run(&mut self, judges: &Folds, all_rows: usize) -> Result<Vec<Trial>> {
        let first = setting::first(self.params.preset, judges.folds[0].train());
        let scouting =
            self.params.preset == Preset::Best && judges.folds[0].n_train() > SCOUTING_ROWS;
        let of = SURVIVORS.len() + 1;
        let mut trials: Vec<Trial>;
        let mut ranked: Vec<usize>;
        if scouting {
            let fold = judges.folds[0].sampled(SCOUTING_ROWS, SCOUTING_JUDGED, self.params.seed)?;
            let sample = Folds {
                n_judged: fold.truth.len(),
                folds: vec![fold],
            };
            let mut scouts: Vec<Trial> =
                first.into_iter().map(|s| Trial::new(s, &sample)).collect();
            let all: Vec<usize> = (0..scouts.len()).collect();
            self.rung(0, of, &sample, &mut scouts, &all, true, all_rows)?;
            trials = self
                .ranked(&scouts, sample.n_judged)
                .into_iter()
                .map(|at| Trial::new(scouts[at].setting.clone(), judges))
                .collect();
            ranked = (0..trials.len()).collect();
        } else {
            trials = first.into_iter().map(|s| Trial::new(s, judges)).collect();
            let all: Vec<usize> = (0..trials.len()).collect();
            self.rung(0, of, judges, &mut trials, &all, false, all_rows)?;
            ranked = self.ranked(&trials, judges.n_judged);
        }
        for (round, &keep) in SURVIVORS.iter().enumerate() {
            if self.params.preset == Preset::Paper {
                break;
            }
            let rung = round + 1;
            let mut going: Vec<usize> = ranked
                .iter()
                .copied()
                .filter(|&at| trials[at].goes_on)
                .take(keep)
                .collect();
            if rung == 1 {
                let leaders: Vec<Setting> = ranked
                    .iter()
                    .take(2)
                    .map(|&at| trials[at].setting.clone())
                    .collect();
                for new in leaders.iter().flat_map(setting::around) {
                    if trials.iter().all(|t| t.setting != new) {
                        going.push(trials.len());
                        trials.push(Trial::new(new, judges));
                    }
                }
            }
            self.rung(rung, of, judges, &mut trials, &going, false, all_rows)?;
            // The states of those that stay behind are not needed any more.
            ranked = self.ranked(&trials, judges.n_judged);
            for (at, trial) in trials.iter_mut().enumerate() {
                if !going.contains(&at) {
                    trial.states.iter_mut().for_each(|s| *s = None);
                }
            }
        }
        Ok(trials)
    }

    /// The trials that have points, the best first.
    fn ranked(&self, trials: &[Trial], n_judged: usize) -> Vec<usize> {
        let allowed = |p: &&Point| {
            self.params
                .max_features
                .is_none_or(|most| p.features <= most)
                && self.params.max_atoms.is_none_or(|most| p.atoms <= most)
        };
        let points = trials.iter().flat_map(|t| &t.points).filter(allowed);
        let best = Choice::new(points, n_judged).by_trial();
        best.iter().map(|c| c.point.trial).collect()
    }

    /// One rung: each of `going` does the rounds it lacks up to the rung's own.
    #[allow(clippy::too_many_arguments)]
    fn rung(
        &mut self,
        rung: usize,
        of: usize,
        folds: &Folds,
        trials: &mut [Trial],
        going: &[usize],
        scouting: bool,
        all_rows: usize,
    ) -> Result<()> {
        self.tell(&TuneEvent::Rung {
            rung,
            of,
            settings: going.len(),
            scouting,
        });
        let deadline = self.deadline(rung, trials, folds, all_rows);
        let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let halted = || late() || (self.halt)() || *self.stopped.lock().expect("nobody panicked");
        let course = Course {
            decisions: self.decisions,
            looks: self.looks,
            again: Again::default(),
            seed: self.params.seed,
            max_features: self.params.max_features,
            memory_limit: self.params.memory_limit,
            halt: &halted,
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
        let journal = &self.journal;
        let work = || {
            loop {
                let at = desk.next.fetch_add(1, Ordering::Relaxed);
                let Some(&(trial, fold)) = jobs.get(at) else {
                    return;
                };
                let (setting, rounds, mut state) = {
                    let mut board = desk.board.lock().expect("nobody panicked");
                    if board.failed.is_some() {
                        return;
                    }
                    let trial = &mut board.trials[trial];
                    (
                        trial.setting.clone(),
                        trial.rounds,
                        trial.states[fold].take(),
                    )
                };
                let mut judged = Vec::new();
                let mut outcome = Ok(());
                for round in rounds..=rung {
                    let job = Job {
                        scouting,
                        setting: setting.to_string(),
                        fold,
                        round,
                    };
                    let known = journal
                        .lock()
                        .expect("nobody panicked")
                        .finished(&job)
                        .cloned();
                    let found = match known {
                        Some(known) => Ok(Some(known)),
                        None if halted() => Ok(None),
                        None => course.round(&setting, &folds.folds[fold], round, &mut state),
                    };
                    match found {
                        Ok(Some(found)) => {
                            let whole = found.looks.len() == self.looks.len();
                            if whole {
                                let mut journal = journal.lock().expect("nobody panicked");
                                let spent = journal.spent + self.started.elapsed().as_secs_f64();
                                if journal.finished(&job).is_none() {
                                    outcome = journal.keep(&job, &found, spent);
                                }
                            }
                            let goes_on = found.goes_on;
                            judged.push(found);
                            if !whole || !goes_on || outcome.is_err() {
                                break;
                            }
                        }
                        Ok(None) => break,
                        Err(error) => {
                            outcome = Err(error);
                            break;
                        }
                    }
                }
                let mut board = desk.board.lock().expect("nobody panicked");
                board.complete &=
                    judged.len() == rung + 1 - rounds || judged.last().is_some_and(|j| !j.goes_on);
                if let Err(error) = outcome {
                    board.failed.get_or_insert(error);
                    return;
                }
                board.trials[trial].states[fold] = state;
                board.rounds[at] = judged;
                // Jobs of a trial come one after the other; when the last of them is done, the trial is judged.
                let mine: Vec<usize> = (0..jobs.len()).filter(|&j| jobs[j].0 == trial).collect();
                board.done += 1;
                let settled = board.settle(trial, &mine, folds.folds.len(), self.decisions);
                if settled {
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
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads() {
                scope.spawn(|_| work());
            }
        });
        let board = desk.board.into_inner().expect("nobody panicked");
        let (complete, failed) = (board.complete, board.failed);
        self.finished &= complete;
        match failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// By when a rung has to be done.
    fn deadline(
        &self,
        rung: usize,
        trials: &[Trial],
        folds: &Folds,
        all_rows: usize,
    ) -> Option<Instant> {
        let budget = self.params.time?.as_secs_f64();
        let spent = self.journal.lock().expect("nobody panicked").spent;
        let ranked = self.ranked(trials, folds.n_judged);
        let last = ranked.first().map_or(0.0, |&at| {
            let trial = &trials[at];
            let more = all_rows as f64 / folds.folds[0].n_train() as f64;
            let a_round = trial.seconds / (trial.rounds * folds.folds.len()) as f64;
            RESERVE * more * a_round * (rung + 1) as f64
        });
        let search = (budget - spent - last).max(0.0) * TIME_SHARES[rung];
        Some(self.started + Duration::from_secs_f64(search))
    }

    fn tell(&self, event: &TuneEvent<'_>) {
        let told = self.watcher.lock().expect("nobody panicked").event(event);
        if told.is_break() {
            *self.stopped.lock().expect("nobody panicked") = true;
        }
    }
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
    /// Adds the rounds that all folds of a trial have done, if all its jobs are done.
    fn settle(
        &mut self,
        trial: usize,
        jobs: &[usize],
        n_folds: usize,
        decisions: &[Decision],
    ) -> bool {
        if jobs.len() < n_folds || jobs.iter().any(|&job| self.rounds[job].is_empty()) {
            return false;
        }
        let rounds = jobs.iter().map(|&job| self.rounds[job].len()).min();
        for round in 0..rounds.unwrap_or(0) {
            let judged: Vec<Judged> = jobs
                .iter()
                .map(|&job| self.rounds[job][round].clone())
                .collect();
            self.trials[trial].add(trial, decisions, &judged);
        }
        true
    }
}
