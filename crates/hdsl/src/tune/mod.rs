//! Automatic search: the best similarity for a data set, without a λ to choose.
//!
//! A search over configurations by successive halving: many configurations get a short first round, the better ones
//! continue to further mining rounds, and new configurations are tried around the best. At a dozen checkpoints of each
//! path, every prediction rule is evaluated at the cost of one search for neighbors. With many rows, the first rung runs
//! on a sample of them.
//!
//! The point to take is chosen on rows that were not trained on, and the error to expect of it is estimated on rows that
//! did not choose. The final model is one ordinary [`train`](crate::train()) with the configuration found, so that one
//! line reproduces it.
//!
//! | file | job |
//! |---|---|
//! | `params.rs` | what a search is asked to do |
//! | `configuration.rs` | the configurations, checkpoints and prediction rules that are tried |
//! | `folds.rs` | validation schemes |
//! | `trial.rs` | one configuration on one fold |
//! | `rungs.rs` | successive halving |
//! | `choice.rs` | which point to take, and the error to expect of it |
//! | `journal.rs` | resuming a search that was killed |
//! | `result.rs` | the result |

mod choice;
mod configuration;
mod folds;
mod journal;
mod params;
mod result;
mod rungs;
mod trial;

pub use params::{Ablation, Preset, TuneConfig, ValidationScheme};
pub use result::{AblationResult, Candidate, Tuned};

use crate::data::{Labels, Preprocess, Rows};
use crate::error::{Error, Result};
use crate::knn::{PredictionRule, Predictor};
use crate::model::TrainConfig;
use crate::observer::{Event, Observer};
use crate::similarity::Dot;
use crate::train::{Labeled, TrainData, Trained, train};
use choice::{Choice, Chosen, Point};
use folds::{Fold, Folds};
use journal::Journal;
use rungs::{Found, Search};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Finds the best similarity: searches configurations under a time limit, chooses on validation rows (or by a
/// [`ValidationScheme`]), and trains the winner on all rows.
///
/// Of `data`, the training rows, the validation rows and the names are used. The same seed gives the same model, for any
/// number of threads, as long as the time allows all that is planned. When the observer breaks or its token is cancelled,
/// the search ends and the best configuration so far is trained. The observer is called from several threads, by one at a
/// time.
///
/// ```
/// use hdsl::tune::{TuneConfig, tune};
/// use hdsl::train::TrainData;
/// use hdsl::{ReadOptions, parse_dataset};
/// let text: String = (0..40)
///     .map(|row| format!("{} {}:1 {}:1 9:1\n", row % 2, 1 + row % 4, 5 + row % 3))
///     .collect();
/// let data = parse_dataset("rows.svm".as_ref(), text.as_bytes(), &ReadOptions::default())?;
/// let mut config = TuneConfig::default();
/// config.round_iter = Some(20);
/// let tuned = tune(&TrainData::new(&data), &config, &mut ())?;
/// assert_eq!(tuned.leaderboard[0].error, 0.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn tune(
    data: &TrainData<'_>,
    params: &TuneConfig,
    observer: &mut (dyn Observer + Send),
) -> Result<Tuned> {
    let started = Instant::now();
    params.check()?;
    let (train, valid) = (data.train, data.valid.as_ref());
    let folds = Folds::new(&train, valid, params.validation, params.seed)?;
    let journal = match &params.journal {
        Some(path) => Journal::open(path, &fingerprint(&folds, params))?,
        None => Journal::none(),
    };
    let resumed = journal.len();
    let dot_error = dot_error(&folds)?;
    let refit = valid.filter(|_| !params.no_refit);
    let smallest = folds.folds.iter().map(Fold::n_train).min().unwrap_or(0);
    let max_iter = match (params.round_iter, train.labels) {
        (Some(iterations), _) => iterations,
        (None, labels) => labels.map_or(0, configuration::iterations),
    };
    let mut search = Search {
        params,
        journal: Mutex::new(journal),
        observer: Mutex::new(observer),
        started,
        rules: &configuration::rules(params, smallest),
        checkpoints: &configuration::checkpoints(max_iter, params.max_atoms),
        all_rows: train.rows.n_rows() + refit.map_or(0, |valid| valid.rows.n_rows()),
        stopped: AtomicBool::new(false),
        finished: true,
    };
    search.tell(&Event::SearchStarted {
        n_validation: folds.n_validation,
        n_folds: folds.folds.len(),
        dot_error,
        resumed,
    });
    let found = search.run(&folds)?;
    let chosen = Leaders::of(&found, params)?;
    let joined = refit.map(|valid| join(&train, valid)).transpose()?;
    let all = match &joined {
        Some((rows, labels)) => Labeled {
            rows: rows.view(),
            labels: Some(labels),
            ..train
        },
        None => train,
    };
    search.tell(&Event::FinalTraining {
        n_rows: all.rows.n_rows(),
    });
    let config = TrainConfig {
        added_rows: joined.is_some(),
        ..chosen.leaderboard[0].config.clone()
    };
    let data = TrainData {
        names: data.names,
        ..TrainData::new(all)
    };
    let trained = train_within(&data, config, params.max_atoms)?;
    let journal = search.journal.into_inner();
    journal.unwrap_or_else(PoisonError::into_inner).remove();
    Ok(Tuned {
        trained,
        n_rows: all.rows.n_rows(),
        refitted: joined.is_some(),
        leaderboard: chosen.leaderboard,
        ablations: chosen.ablations,
        expected_error: chosen.expected_error,
        dot_error,
        n_validation: found.n_validation,
        n_points: found.trials.iter().map(|t| t.points.len()).sum(),
        finished: search.finished,
    })
}

/// What is chosen among all points, and what without each part of the search.
struct Leaders {
    leaderboard: Vec<Candidate>,
    ablations: Vec<AblationResult>,
    expected_error: Option<(f64, f64)>,
}

impl Leaders {
    fn of(found: &Found, params: &TuneConfig) -> Result<Self> {
        let n_validation = found.n_validation;
        let mut points = found.trials.iter().flat_map(|trial| &trial.points);
        let allowed = points.clone().filter(|point| params.allows(point));
        let choice = Choice::new(allowed.clone(), n_validation);
        let Some(best) = choice.best() else {
            return Err(Error::data(match points.next() {
                None => "the search was stopped before anything was learned; give it more time",
                Some(_) => "no model within the limits on features and atoms was found",
            }));
        };
        let mut leaderboard = vec![candidate(found, &best)];
        let others = choice.by_trial().into_iter();
        let others = others.filter(|c| c.point.trial != best.point.trial);
        leaderboard.extend(others.map(|chosen| candidate(found, &chosen)));
        let parts = Ablation::ALL.into_iter().filter(|&part| params.uses(part));
        let ablations = parts.filter_map(|part| {
            let config = |point: &Point| &found.trials[point.trial].config;
            let rest = allowed.clone();
            let rest = rest.filter(|point| !part.is_used_by(config(point), point));
            let choice = Choice::new(rest, n_validation);
            Some(AblationResult {
                part,
                candidate: candidate(found, &choice.best()?),
                expected_error: choice.expected_error(params.seed),
            })
        });
        Ok(Self {
            leaderboard,
            ablations: ablations.collect(),
            expected_error: choice.expected_error(params.seed),
        })
    }
}

/// A point with the configuration that trains it.
fn candidate(found: &Found, chosen: &Chosen<'_>) -> Candidate {
    let point = chosen.point;
    let config = &found.trials[point.trial].config;
    Candidate {
        config: TrainConfig {
            mining_rounds: point.round,
            last_round_iter: (point.iteration < config.max_iter).then_some(point.iteration),
            rule: point.rule,
            ..config.clone()
        },
        error: point.wrong.len() as f64 / found.n_validation as f64,
        score: chosen.score,
        features: point.features,
        atoms: point.atoms,
    }
}

/// Training rows and validation rows as one.
fn join(train: &Labeled<'_>, valid: &Labeled<'_>) -> Result<(Rows, Labels)> {
    let mut rows = train.rows.to_rows();
    rows.append(valid.rows);
    let mut labels = train.labels_for("training", "to tune by")?.clone();
    labels.append(valid.labels_for("validation", "to tune by")?);
    Ok((rows, labels))
}

/// Trains, with a shorter last round if there are too many atoms otherwise.
fn train_within(
    data: &TrainData<'_>,
    mut config: TrainConfig,
    max_atoms: Option<usize>,
) -> Result<Trained> {
    let trained = train(data, &config, &mut ())?;
    let path = trained.model.path();
    let last = match max_atoms {
        Some(most) => path.last_within(None, Some(most), path.len()),
        None => Some(path.len()),
    };
    let Some(last) = last else {
        return Err(Error::data("no model within the limit on atoms was found"));
    };
    if last == path.len() {
        return Ok(trained);
    }
    // The round that the last iterate within the limit is of becomes the last.
    let ends = &trained.round_ends;
    let round = ends.iter().take_while(|&&end| end < last).count();
    let before = if round == 0 { 0 } else { ends[round - 1] };
    config.mining_rounds = round;
    config.last_round_iter = Some((last - before).max(1));
    train(data, &config, &mut ())
}

/// What is searched, in one line: a journal of anything else is not resumed.
fn fingerprint(folds: &Folds, params: &TuneConfig) -> String {
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
        "hdsl {} {:?} without {:?} data {:08x} validation {} folds {} seed {} features {:?} atoms {:?} iterations {:?}",
        env!("CARGO_PKG_VERSION"),
        params.preset,
        params.ablate,
        hasher.finalize(),
        folds.n_validation,
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
        let (rows, validation) = fold.preprocessed(Preprocess::Max);
        let rule = PredictionRule::nearest(3.min(rows.n_rows()));
        let predicted =
            Predictor::new(&rows, &fold.labels, &validation)?.predictions(&Dot, &[rule])?;
        wrong += fold.wrong(&predicted[0]).count();
    }
    Ok(wrong as f64 / folds.n_validation as f64)
}
