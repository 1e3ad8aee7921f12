//! The best similarity for a set of data, without anybody knowing what λ is.
//!
//! A search over ways to learn ([`Setting`]) by rungs: many settings have a short first round, the better ones go on to
//! rounds in which triplets are mined again under what was learned, and new settings are tried around the best. Along each
//! path, at a dozen looks a round, every way to decide a class is tried at the price of one search for neighbors. Where
//! rows are many, a sample of them gives the first impression.
//!
//! The point to take is chosen on rows that were not learned from, and what to expect of it is estimated on rows that did
//! not choose (`points.rs`). The final model is one ordinary [`train`](crate::train()) with the settings found, so that
//! one line reproduces it.

mod folds;
mod journal;
mod points;
mod search;
mod setting;
mod trial;

pub use setting::Setting;

use crate::data::{Labels, Preprocess, Rows};
use crate::error::{Error, Result};
use crate::knn;
use crate::knn::{PredictionRule, Vote};
use crate::objective::loss::LossKind;
use crate::similarity::Dot;
use crate::similarity::Normalization;
use crate::solver::SolverParams;
use crate::train::rounds::Again;
use crate::train::{Labeled, TrainParams, Trained, train_borrowed};
use crate::triplets::TripletSource;
use folds::{Fold, Folds};
use journal::Journal;
use points::{Choice, Chosen, Point};
use search::{Found, Search};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Fewer labeled rows than this are judged in folds rather than by a share held out.
const FEW_ROWS: usize = 3000;

/// What is searched over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Everything that was found to help.
    #[default]
    Best,
    /// The paper's recipe: [0, 1] preprocessing, 3 x 5 static neighbors, λ from 1 to 10^9, the majority of 3.
    Paper,
}

/// A part of the search that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Triplets that are mined again under the similarity learned so far.
    Rounds,
    /// Means of several models.
    Means,
    /// How many neighbors decide, and how: without, it is the majority of 3.
    Votes,
    /// The cosine form of the learned similarity.
    Cosine,
    /// Random triplets.
    Random,
    /// Triplets of neighbors under the dot product.
    Neighbors,
    /// Rows of length 1: without, values are scaled to [0, 1] by their maxima and no more.
    Unit,
    /// Losses other than the smoothed hinge.
    Losses,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 8] = [
        Part::Rounds,
        Part::Means,
        Part::Votes,
        Part::Cosine,
        Part::Random,
        Part::Neighbors,
        Part::Unit,
        Part::Losses,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Rounds => "rounds",
            Part::Means => "means",
            Part::Votes => "votes",
            Part::Cosine => "cosine",
            Part::Random => "random",
            Part::Neighbors => "neighbors",
            Part::Unit => "unit",
            Part::Losses => "losses",
        }
    }

    /// Whether a point owes something to it.
    fn is_in(self, setting: &Setting, point: &Point) -> bool {
        let PredictionRule {
            k,
            vote,
            normalization,
        } = point.rule;
        match self {
            Part::Rounds => point.round > 0,
            Part::Means => setting.models > 1,
            Part::Votes => k != 3 || vote != Vote::Majority,
            Part::Cosine => normalization == Normalization::Cosine,
            Part::Random => matches!(setting.triplets, TripletSource::Random { .. }),
            Part::Neighbors => matches!(setting.triplets, TripletSource::Neighbors { .. }),
            Part::Unit => setting.preprocess != Preprocess::Max,
            Part::Losses => setting.loss != LossKind::SmoothedHinge,
        }
    }
}

impl FromStr for Part {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Part::ALL.into_iter().find(|part| part.name() == text);
        let names = "rounds, means, votes, cosine, random, neighbors, unit or losses";
        found.ok_or_else(|| Error::param("without", text, names))
    }
}

/// Which rows judge, where no validation rows are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judges {
    /// Five folds where rows are few (fewer than that where there are fewer rows), a fifth of the rows where they are many.
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
    /// Parts of the search that are left out.
    pub without: Vec<Part>,
    /// Iterations of a round; by default they go by the number of classes and of rows.
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
            without: Vec::new(),
            round_iter: None,
            seed: 0,
            memory_limit: None,
            journal: None,
        }
    }
}

impl TuneParams {
    /// The solver of a setting, in the search and in the final training.
    fn solver(&self, setting: &Setting, length: usize) -> SolverParams {
        let mut solver = SolverParams::new(setting.scale)
            .loss(setting.loss)
            .seed(self.seed)
            .max_iter(length);
        if let Some(most) = self.max_features {
            solver = solver.max_features(most);
        }
        if let Some(limit) = self.memory_limit {
            solver = solver.memory_limit(limit);
        }
        solver
    }

    /// Whether a part is searched over.
    fn uses(&self, part: Part) -> bool {
        self.preset == Preset::Best && !self.without.contains(&part)
    }

    fn check(&self) -> Result<()> {
        let sources = [Part::Random, Part::Neighbors];
        match sources.iter().all(|part| self.without.contains(part)) {
            true => Err(Error::param(
                "without",
                "random and neighbors",
                "one of them to be left, for triplets to come from",
            )),
            false => Ok(()),
        }
    }

    /// Whether a point is within what a model may use.
    fn allows(&self, point: &Point) -> bool {
        self.max_features.is_none_or(|most| point.features <= most)
            && self.max_atoms.is_none_or(|most| point.atoms <= most)
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
        /// Which, from 0: on the first, settings have one round, on each further one more, and on the last are means of
        /// several models.
        rung: usize,
        /// How many there are.
        of: usize,
        /// Settings on it.
        settings: usize,
        /// Models of each of them.
        models: usize,
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
    pub rule: PredictionRule,
    /// Error on the judged rows.
    pub error: f64,
    /// What it was ranked by: the error drawn to that of its neighborhood.
    pub score: f64,
    /// Features in use; the most of all folds.
    pub features: usize,
    /// Atoms; the most of all folds.
    pub atoms: usize,
}

/// What would have been chosen without a part of the search: what that part is worth here.
#[derive(Clone, Debug, PartialEq)]
pub struct Without {
    /// The part.
    pub part: Part,
    /// What the same choice takes of all that was judged but has nothing of the part.
    pub contender: Contender,
    /// The error to expect of that on new rows, as [`Tuned::expected_error`].
    pub expected_error: Option<(f64, f64)>,
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
    /// What would have been chosen without each part that was searched over and can be missed.
    pub without: Vec<Without>,
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
/// The same seed gives the same model, for any number of threads, as long as the time allows all that is planned. `cancel` is
/// asked now and then whether to stop searching and train the best so far.
///
/// ```
/// use hdsl::tune::{TuneParams, tune};
/// use hdsl::{Labeled, ReadOptions, parse_dataset};
/// use std::ops::ControlFlow;
/// let text: String = (0..40)
///     .map(|row| format!("{} {}:1 {}:1 9:1\n", row % 2, 1 + row % 4, 5 + row % 3))
///     .collect();
/// let data = parse_dataset("rows.svm".as_ref(), text.as_bytes(), &ReadOptions::default())?;
/// let params = TuneParams { round_iter: Some(20), ..TuneParams::default() };
/// let mut ignore = |_: &hdsl::tune::TuneEvent<'_>| ControlFlow::Continue(());
/// let tuned = tune(Labeled::from(&data), None, None, &params, &mut ignore, &|| false)?;
/// assert_eq!(tuned.leaderboard[0].error, 0.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn tune(
    train: Labeled<'_>,
    valid: Option<Labeled<'_>>,
    names: Option<&[String]>,
    params: &TuneParams,
    watcher: &mut dyn TuneWatcher,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<Tuned> {
    let started = Instant::now();
    params.check()?;
    let labels = labeled(train.labels, "training")?;
    let judges = match valid {
        Some(valid) => Folds::apart(
            (train.rows, labels),
            (valid.rows, labeled(valid.labels, "validation")?),
        )?,
        None => match params.judges {
            Judges::Folds(count) => Folds::crossed((train.rows, labels), count, params.seed)?,
            Judges::Share(share) => Folds::held_out((train.rows, labels), share, params.seed)?,
            Judges::Auto if labels.len() < FEW_ROWS => {
                Folds::crossed((train.rows, labels), labels.len().min(5), params.seed)?
            }
            Judges::Auto => Folds::held_out((train.rows, labels), 0.2, params.seed)?,
        },
    };
    let journal = match &params.journal {
        Some(path) => Journal::open(path, &fingerprint(&judges, params))?,
        None => Journal::none(),
    };
    let resumed = journal.len();
    let dot_error = dot_error(&judges)?;
    let smallest = judges.folds.iter().map(Fold::n_train).min().unwrap_or(0);
    let rules = setting::rules(params, smallest);
    let length = params
        .round_iter
        .unwrap_or_else(|| setting::iterations(labels));
    let looks = setting::looks(length, params.max_atoms);
    let more = valid
        .filter(|_| params.refit)
        .map_or(0, |v| v.rows.n_rows());
    let mut search = Search {
        params,
        journal: Mutex::new(journal),
        watcher: Mutex::new(watcher),
        cancel,
        started,
        rules: &rules,
        looks: &looks,
        all_rows: train.rows.n_rows() + more,
        stopped: AtomicBool::new(false),
        finished: true,
    };
    search.tell(&TuneEvent::Started {
        n_judged: judges.n_judged,
        n_folds: judges.folds.len(),
        dot_error,
        resumed,
    });
    let Found { trials, n_judged } = search.run(&judges)?;
    let points: Vec<&Point> = trials.iter().flat_map(|t| &t.points).collect();
    let allowed = points.iter().copied().filter(|p| params.allows(p));
    let choice = Choice::new(allowed.clone(), n_judged);
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
            rule: point.rule,
            error: point.wrong.len() as f64 / n_judged as f64,
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
    let setting = |point: &Point| &trials[point.trial].setting;
    let without = Part::ALL.into_iter().filter(|&part| params.uses(part));
    let without = without.filter_map(|part| {
        let rest = allowed.clone().filter(|p| !part.is_in(setting(p), p));
        let choice = Choice::new(rest, n_judged);
        let best = choice.best()?;
        Some(Without {
            part,
            contender: contender(&best),
            expected_error: choice.expected_error(params.seed),
        })
    });
    let without = without.collect();
    let n_points = points.len();
    let winning = final_params(&winner, length, params);
    let joined = match valid {
        Some(valid) if params.refit => Some(together(train, valid)?),
        _ => None,
    };
    let all = match &joined {
        Some((rows, labels)) => Labeled {
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
    journal
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .remove();
    Ok(Tuned {
        trained,
        params: winning,
        n_rows: all.rows.n_rows(),
        refitted: joined.is_some(),
        leaderboard,
        without,
        expected_error,
        dot_error,
        n_judged,
        n_points,
        finished,
    })
}

fn labeled<'a>(labels: Option<&'a Labels>, which: &str) -> Result<&'a Labels> {
    labels.ok_or_else(|| Error::data(format!("the {which} rows have no labels to tune by")))
}

/// Training rows and validation rows as one.
fn together(train: Labeled<'_>, valid: Labeled<'_>) -> Result<(Rows, Labels)> {
    let mut rows = train.rows.to_rows();
    rows.append(valid.rows);
    let mut labels = labeled(train.labels, "training")?.clone();
    labels.append(labeled(valid.labels, "validation")?);
    Ok((rows, labels))
}

/// The settings that train the winner.
fn final_params(winner: &Contender, length: usize, params: &TuneParams) -> TrainParams {
    let setting = &winner.setting;
    TrainParams {
        preprocess: setting.preprocess,
        triplets: setting.triplets.clone(),
        solver: params.solver(setting, length),
        rule: winner.rule,
        again: Again {
            rounds: winner.rounds,
            ..Again::default()
        },
        last_iter: (winner.last_iter < length).then_some(winner.last_iter),
        models: setting.models,
        ..TrainParams::new(setting.scale)
    }
}

/// Trains, with a shorter last round if there would be too many atoms otherwise.
fn train_within(
    data: Labeled<'_>,
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
        "hdsl {} {:?} without {:?} data {:08x} judged {} by {} seed {} features {:?} atoms {:?} iterations {:?}",
        env!("CARGO_PKG_VERSION"),
        params.preset,
        params.without,
        hasher.finalize(),
        folds.n_judged,
        folds.folds.len(),
        params.seed,
        params.max_features,
        params.max_atoms,
        params.round_iter,
    )
}

/// The 3-NN error of the dot product, under the paper's preprocessing.
fn dot_error(folds: &Folds) -> Result<f64> {
    let mut wrong = 0;
    for fold in &folds.folds {
        let (rows, judged) = fold.scaled(Preprocess::Max);
        let rule = PredictionRule::nearest(3.min(rows.n_rows()));
        let predicted = knn::Jury::new(&rows, &fold.labels, &judged)?
            .predictions(&Dot, &[rule])?
            .swap_remove(0);
        wrong += predicted
            .iter()
            .zip(&fold.truth)
            .filter(|(p, t)| p != t)
            .count();
    }
    Ok(wrong as f64 / folds.n_judged as f64)
}
