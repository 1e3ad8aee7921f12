//! Automatic search: the best similarity for a data set, without a λ to choose.
//!
//! Plain similarities come first: the dot product, the cosine, the tf-idf cosine. They are the references, and an answer
//! from the first second on. Then many configurations, on a base and without, get a few iterations; the better ones get
//! twice as many, again and again, as long as their validation errors fall, or mining rounds (successive halving). At
//! checkpoints of each path, every prediction rule is evaluated at the cost of one search for neighbors. With many rows,
//! the first rung runs on a sample of them.
//!
//! The point to take is chosen on rows that were not trained on, and the error to expect of it is estimated on rows that
//! did not choose. The final model is one ordinary [`train`](crate::train()) with the configuration found, so that one
//! line reproduces it; or a reference, if nothing learned is better.
//!
//! | file | job |
//! |---|---|
//! | `params.rs` | what a search is asked to do |
//! | `configuration.rs` | the configurations and prediction rules that are tried |
//! | `folds.rs` | validation schemes |
//! | `supervision.rs` | given triplets, clicks and judgments, by folds of their anchors |
//! | `journal.rs` | results of segments, and resuming a search that was killed |
//! | `choice.rs` | which point to take, and the error to expect of it |
//! | `search.rs` | parameters, observer and time limit, shared by all trials |
//! | `trial.rs` | one configuration, segment by segment on all folds |
//! | `rungs.rs` | successive halving |
//! | `remote.rs` | trials in other processes |
//! | `result.rs` | the result |

mod choice;
mod configuration;
mod folds;
mod journal;
mod params;
mod remote;
mod result;
mod rungs;
mod search;
mod supervision;
mod trial;

#[doc(hidden)]
pub use journal::inspect_journal;
pub use journal::remove_journal;
pub use params::{Ablation, Preset, TuneConfig, ValidationScheme};
pub use remote::{SharedTriplets, TrialData, TrialRunner, TrialState};
pub use result::{AblationResult, Candidate, Tuned};
pub use trial::TrialTask;

use crate::cancel::CancelToken;
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::model::TrainConfig;
use crate::observer::{Event, Observer, UntilCancelled};
use crate::solver::memory;
use crate::train::ensemble::{Member, ensemble_of};
use crate::train::{Labeled, TrainData, Trained, recorded_config, train};
use crate::triplets::check_classes;
use choice::Scored;
use folds::{FEW_ROWS, Folds, MANY_ROWS, given_first, validation_rows};
use journal::{Journal, Limits};
use rungs::{Found, SAMPLE};
use search::{Search, Shared, lock, watched};
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use supervision::Given;
use trial::Reached;

/// The final training may take this much longer than the time limit: a tenth of it, and half a second.
const GRACE: (f64, f64) = (1.1, 0.5);

/// Finds the best similarity: searches configurations under a time limit, chooses on validation rows (or by a
/// [`ValidationScheme`]), and trains the winner on all rows.
///
/// Of `data`, the training rows, the validation rows and the names are used. The same seed gives the same model, for any
/// number of threads, as long as the time allows all that is planned. When the observer breaks or its token is cancelled,
/// the search ends and the best configuration so far is trained. The observer is called from several threads, by one at a
/// time.
///
/// With [`TuneConfig::journal`], the caller removes the journal when the model is saved, with [`remove_journal`].
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
    tune_with(data, params, None, observer)
}

/// [`tune`] with trials in other processes, if there is a runner: the same result, as long as the time allows all that is
/// planned. The first configurations are set up in this process, and a single final model is trained in it.
pub fn tune_with(
    data: &TrainData<'_>,
    params: &TuneConfig,
    runner: Option<&dyn TrialRunner>,
    observer: &mut (dyn Observer + Send),
) -> Result<Tuned> {
    let started = Instant::now();
    params.check()?;
    let given = given(data, params)?;
    let joined = joined(data, given.as_ref())?;
    let (folds, all) = folds_and_rows(data, given.as_ref(), joined.as_ref(), params)?;
    let refitted = joined.is_some() && !params.no_refit;
    let rules = configuration::rules(params, &folds);
    let limits = Limits {
        n_rows: folds.row_of.len(),
        n_rules: rules.len(),
    };
    let mut journal = match &params.journal {
        Some(path) => Journal::open(path, &fingerprint(&folds, params), limits)?,
        None => Journal::default(),
    };
    let note = journal.take_note();
    let (observer, stopped) = (Mutex::new(Shared(observer)), AtomicBool::new(false));
    let mut search = Search {
        params,
        rules,
        journal: Mutex::new(journal),
        observer: &observer,
        runner,
        started,
        all_rows: all.rows.n_rows(),
        memory: memory::budget(params.memory_limit),
        is_sequential: false,
        rung: 0,
        deadline: None,
        stopped: &stopped,
        reserved: 0.0,
        finished: true,
    };
    if let Some(note) = note {
        search.tell(&Event::Note(&note));
    }
    search.tell(&Event::SearchStarted {
        n_validation: folds.n_rows,
        n_folds: folds.folds.len(),
        resumed: lock(&search.journal).finished.len(),
    });
    let sample = sample(&folds, given.as_ref(), params)?;
    let first = (params.preset == Preset::Best)
        .then(|| folds.screening())
        .flatten();
    let run = || match &first {
        Some(first) => search.run(first, sample.as_ref(), Some(&folds)),
        None => search.run(&folds, sample.as_ref(), None),
    };
    let found = watched(&observer, &stopped, run);
    let found = found.inspect_err(|_| lock(&search.journal).remove_if_empty())?;
    let leaderboard = leaderboard(&found, params)?;
    let n_rows = all.rows.n_rows();
    search.tell(&Event::FinalTraining { n_rows });
    let data = TrainData {
        names: data.names,
        // Those of a file are read again, and the model remembers which.
        triplets: data.triplets,
        ..TrainData::new(all)
    };
    let config = TrainConfig {
        added_rows: refitted,
        ..leaderboard[0].config.clone()
    };
    let trained = search.final_training(&data, config)?;
    Ok(Tuned {
        trained,
        n_rows,
        refitted,
        leaderboard,
        ablations: ablations(&found, params),
        expected_error: found.choice(params, None).expected_error(params.seed),
        expected_reference_error: found.references().expected_error(params.seed),
        n_validation: found.folds.n_rows,
        measure: given.as_ref().map(Given::measure),
        n_points: found.n_points(),
        finished: search.finished,
    })
}

impl Search<'_> {
    /// Trains the winner, for a little longer than the time limit at most.
    fn final_training(&self, data: &TrainData<'_>, config: TrainConfig) -> Result<Trained> {
        let end = self.params.time.and_then(|time| {
            let seconds = GRACE.0 * time.as_secs_f64() + GRACE.1 - lock(&self.journal).spent;
            let limit = Duration::try_from_secs_f64(seconds.max(0.0)).ok()?;
            self.started.checked_add(limit)
        });
        let cancel = CancelToken::NEVER.until(end);
        if let (Some(runner), true) = (self.runner, config.is_ensemble()) {
            let config = recorded_config(data, &config);
            if let Some(members) = members_elsewhere(runner, &config, self.rung + 1, cancel)? {
                return ensemble_of(data, &config, members);
            }
        }
        let mut observer = UntilCancelled(cancel);
        train_within(data, config, self.params.max_atoms, &mut observer)
    }
}

/// The models of an ensemble, trained in other processes. None if there was no time for all of them, or these processes are
/// lost: then they are trained here.
fn members_elsewhere(
    runner: &dyn TrialRunner,
    config: &TrainConfig,
    rung: usize,
    cancel: CancelToken<'_>,
) -> Result<Option<Vec<Member>>> {
    let task = TrialTask::last(config.clone(), rung);
    let mut trained = None;
    let done = runner.run(&[&task], cancel, &mut |_, bytes| {
        trained = Some(remote::members(bytes)?);
        Ok(())
    });
    match done {
        Err(Error::Elsewhere(_)) => Ok(None),
        done => done.map(|()| trained),
    }
}

/// What is given in place of labels, if anything is.
fn given(data: &TrainData<'_>, params: &TuneConfig) -> Result<Option<Given>> {
    let n_rows = data.train.rows.n_rows();
    match data.triplets {
        Some(triplets) => {
            triplets.check(n_rows)?;
            Ok(Some(Given::triplets(triplets)))
        }
        None => Given::read(&params.triplets, n_rows),
    }
}

/// The folds to validate on, and the rows of the final training.
fn folds_and_rows<'a>(
    data: &TrainData<'a>,
    given: Option<&Given>,
    joined: Option<&'a (Rows, Labels)>,
    params: &TuneConfig,
) -> Result<(Folds, Labeled<'a>)> {
    let train = data.train;
    if let Some(given) = given {
        return Ok((Folds::of_given(train.rows, given, params)?, train));
    }
    let Some((rows, labels)) = joined else {
        let labels = train.labels_for("training", "to tune by")?;
        let validation = validation_rows(labels, params.validation, params.seed)?;
        let folds = Folds::new(train.rows, labels, &validation, params.seed)?;
        return Ok((folds, train));
    };
    let given: Vec<u32> = (train.rows.n_rows() as u32..rows.n_rows() as u32).collect();
    // Few validation rows say less than folds of all rows.
    let validation = match labels.len() {
        n if params.no_refit || n >= MANY_ROWS => vec![given],
        n if n < FEW_ROWS => validation_rows(labels, params.validation, params.seed)?,
        _ if params.preset == Preset::Paper => vec![given],
        _ => given_first(given, labels, params.seed)?,
    };
    let folds = Folds::new(rows.view(), labels, &validation, params.seed)?;
    let all = Labeled {
        rows: rows.view(),
        labels: Some(labels),
        ..train
    };
    Ok((folds, if params.no_refit { train } else { all }))
}

/// The rows of the first rung, if there are too many to use all.
fn sample(folds: &Folds, given: Option<&Given>, params: &TuneConfig) -> Result<Option<Folds>> {
    let is_large = folds.folds[0].train.n_rows() > SAMPLE[0];
    match params.preset == Preset::Best && given.is_none() && is_large {
        true => folds.sampled(SAMPLE, params.seed).map(Some),
        false => Ok(None),
    }
}

/// The best point, then those of the other trials.
fn leaderboard(found: &Found<'_>, params: &TuneConfig) -> Result<Vec<Candidate>> {
    let choice = found.choice(params, None);
    let Some(best) = choice.best() else {
        let mut possible = found.trials.iter();
        let nothing = possible.all(|trial| trial.points.is_empty() || trial.is_plain);
        return Err(Error::data(match nothing {
            true => "the search was stopped before a model was evaluated; give it more time",
            false => "no model within the limits on features and atoms was found",
        }));
    };
    let mut chosen = choice.by_trial();
    chosen.retain(|(point, _)| point.trial != best.0.trial);
    chosen.insert(0, best);
    let references = found.references();
    if params.is_limited() {
        // They cannot be chosen, but are shown.
        chosen.extend(references.by_trial());
    }
    Ok(chosen.into_iter().map(|c| candidate(found, c)).collect())
}

/// What would have been chosen without each part of the search.
fn ablations(found: &Found<'_>, params: &TuneConfig) -> Vec<AblationResult> {
    let parts = Ablation::ALL.into_iter().filter(|&part| params.uses(part));
    let results = parts.filter_map(|part| {
        let choice = found.choice(params, Some(part));
        Some(AblationResult {
            part,
            candidate: candidate(found, choice.best()?),
            expected_error: choice.expected_error(params.seed),
        })
    });
    results.collect()
}

/// A point with the configuration that trains it.
fn candidate(found: &Found<'_>, (point, score): Scored<'_>) -> Candidate {
    let trial = &found.trials[point.trial];
    let mut config = trial.config.clone();
    config.rule = point.rule;
    if point.round == 0 {
        config.max_iter = point.iteration;
    } else {
        // Every round has as many iterations as the first.
        config.max_iter = Reached::after(&trial.segments).iteration;
        config.mining_rounds = point.round;
        config.last_round_iter = (point.iteration < config.max_iter).then_some(point.iteration);
    }
    Candidate {
        config,
        is_reference: trial.is_plain,
        error: point.losses.sum() / found.folds.n_validation as f64,
        score,
        features: point.features,
        atoms: point.atoms,
    }
}

/// Training rows and validation rows as one, if there are validation rows and labels are what is learned from.
fn joined(data: &TrainData<'_>, given: Option<&Given>) -> Result<Option<(Rows, Labels)>> {
    if given.is_some() {
        return Ok(None);
    }
    let labels = data.train.labels_for("training", "to tune by")?;
    check_classes(data.train.rows.n_rows(), labels)?;
    let Some(valid) = data.valid else {
        return Ok(None);
    };
    let (mut rows, mut labels) = (data.train.rows.to_rows(), labels.clone());
    rows.append(valid.rows);
    labels.append(valid.labels_for("validation", "to tune by")?);
    Ok(Some((rows, labels)))
}

/// Trains, with a shorter last round if there are too many atoms otherwise.
fn train_within(
    data: &TrainData<'_>,
    mut config: TrainConfig,
    max_atoms: Option<usize>,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let trained = train(data, &config, observer)?;
    let path = trained.model.path();
    let last = path.last_within(None, max_atoms, path.len());
    let last = last.ok_or_else(|| Error::data("no model within the limit on atoms was found"))?;
    if last == path.len() {
        return Ok(trained);
    }
    // The round that the last iterate within the limit is of becomes the last.
    let ends = &trained.round_ends;
    let round = ends.iter().take_while(|&&end| end < last).count();
    let before = if round == 0 { 0 } else { ends[round - 1] };
    config.mining_rounds = round;
    config.last_round_iter = Some((last - before).max(1));
    train(data, &config, observer)
}

/// What is searched, in one line: a journal of anything else is not resumed.
fn fingerprint(folds: &Folds, params: &TuneConfig) -> String {
    let mut hasher = crc32fast::Hasher::new();
    for fold in &folds.folds {
        let rows = &fold.train;
        (rows.starts(), rows.indices()).hash(&mut hasher);
        rows.values()
            .iter()
            .for_each(|value| value.to_bits().hash(&mut hasher));
        fold.labels.codes().hash(&mut hasher);
        fold.hash_given(&mut hasher);
    }
    // These do not change what is found.
    let params = TuneConfig {
        time: None,
        memory_limit: None,
        journal: None,
        ..params.clone()
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("hdsl {version} data {:08x} {params:?}", hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{IndexBase, SparseRow};
    use crate::solver::SolverParams;
    use crate::triplets::Triplets;

    /// Rows of two classes whose first features tell them apart, and noise.
    pub(super) fn planted() -> (Rows, Labels) {
        let mut random = crate::random::rng(5, 9);
        let mut rows = Rows::new(30);
        for row in 0..120u32 {
            let noise = 10 + crate::random::below(&mut random, 20) as u32;
            let telling = row % 2 * 5 + crate::random::below(&mut random, 5) as u32;
            rows.push(SparseRow::new(&[telling, noise], &[1.0, 2.0]));
        }
        let names = (0..120).map(|row| ["a", "b"][row % 2]);
        (rows, Labels::from_names(names))
    }

    fn searched(memory: Option<u64>) -> Tuned {
        let (rows, labels) = planted();
        let data = TrainData::new(Labeled {
            rows: rows.view(),
            labels: Some(&labels),
            index_base: IndexBase::Zero,
        });
        let config = TuneConfig {
            validation: ValidationScheme::CrossValidation(2),
            round_iter: Some(16),
            memory_limit: memory,
            ..TuneConfig::default()
        };
        searched_with(&data, &config, None)
    }

    /// On four threads.
    pub(super) fn searched_with(
        data: &TrainData<'_>,
        config: &TuneConfig,
        runner: Option<&dyn TrialRunner>,
    ) -> Tuned {
        let search = || tune_with(data, config, runner, &mut ()).unwrap();
        #[cfg(feature = "parallel")]
        return rayon::ThreadPoolBuilder::new()
            .num_threads(4)
            .build()
            .unwrap()
            .install(search);
        #[cfg(not(feature = "parallel"))]
        search()
    }

    /// Runs that do not fit side by side are done one after the other, with the same result.
    #[test]
    fn parallel_trials_share_one_memory_budget() {
        let (rows, labels) = planted();
        let triplets = Triplets::at_random(&rows, &labels, 100, 1).unwrap();
        let solver = SolverParams::new(1.0).build().unwrap();
        let one_run = solver.memory_needed(&rows, &triplets);
        let without = searched(Some(u64::MAX));
        assert!(without.finished && !without.leaderboard[0].is_reference);
        let tight = searched(Some(one_run));
        assert!(tight.finished);
        let errors = |tuned: &Tuned| -> Vec<(f64, usize)> {
            let board = tuned.leaderboard.iter();
            board.map(|c| (c.error, c.features)).collect()
        };
        assert_eq!(errors(&tight), errors(&without));
        assert!(tight.trained.model.to_bytes() == without.trained.model.to_bytes());
        // Nothing fits: the answer is a plain similarity.
        let none = searched(Some(1000));
        assert!(none.leaderboard.iter().all(|c| c.is_reference) && !none.finished);
    }
}
