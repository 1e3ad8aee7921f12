//! The search for the best configuration, as `hdsl tune` does.

use crate::errors::to_python;
use crate::listening::{Listeners, Search, SearchWatch, listen};
use crate::matrix::{Csr, view};
use crate::model::Model;
use crate::training::{Classes, Given, by_position, facts, to_labeled, to_labels, to_triplets};
use crate::trials::Elsewhere;
use hdsl::observer::Event;
use hdsl::tune::{
    Ablation, AblationResult, Candidate, TrialRunner, TuneConfig, Tuned, ValidationScheme,
};
use hdsl::{CancelToken, Observer, TrainConfig, TrainData};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The arguments of `hdsl.tune` after its own checks.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TuneSettings {
    preset: String,
    cv: Option<usize>,
    holdout: Option<f64>,
    refit: bool,
    time: Option<f64>,
    max_features: Option<usize>,
    max_atoms: Option<usize>,
    ablate: Vec<String>,
    round_iter: Option<usize>,
    seed: u64,
    memory: Option<u64>,
    journal: Option<PathBuf>,
}

impl TuneSettings {
    pub(crate) fn config(&self) -> PyResult<TuneConfig> {
        self.parsed().map_err(to_python)
    }

    fn parsed(&self) -> hdsl::Result<TuneConfig> {
        let mut config = TuneConfig::default();
        config.preset = self.preset.parse()?;
        config.validation = match (self.cv, self.holdout) {
            (Some(folds), _) => ValidationScheme::CrossValidation(folds),
            (None, Some(fraction)) => ValidationScheme::Holdout(fraction),
            (None, None) => ValidationScheme::Auto,
        };
        config.no_refit = !self.refit;
        config.time = match self.time {
            Some(seconds) => Some(
                Duration::try_from_secs_f64(seconds)
                    .map_err(|_| hdsl::Error::param("time", seconds, "seconds, 0 or more"))?,
            ),
            None => None,
        };
        config.max_features = self.max_features;
        config.max_atoms = self.max_atoms;
        let parts: hdsl::Result<Vec<Ablation>> = self.ablate.iter().map(|p| p.parse()).collect();
        config.ablate = parts?;
        config.round_iter = self.round_iter;
        config.seed = self.seed;
        config.memory_limit = self.memory;
        config.journal = self.journal.clone();
        Ok(config)
    }
}

/// Searches as `hdsl tune` does. Returns the model, facts about its training, and the result of the search. With a runner,
/// trials run in other processes.
#[pyfunction]
#[pyo3(signature = (
    settings, x, classes=None, *, valid=None, triplets=None, names=None, progress=None, runner=None, n_threads=1
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn tune<'py>(
    py: Python<'py>,
    settings: TuneSettings,
    x: Csr<'py>,
    classes: Option<Classes<'py>>,
    valid: Option<(Csr<'py>, Classes<'py>)>,
    triplets: Option<Given<'py>>,
    names: Option<Vec<String>>,
    progress: Option<Py<PyAny>>,
    runner: Option<Py<PyAny>>,
    n_threads: usize,
) -> PyResult<(Model, Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let config = settings.config()?;
    let journal = config.journal.clone();
    let x = x.parts()?;
    let labels = classes.map(|c| to_labels(c, x.n_rows())).transpose()?;
    let triplets = triplets.map(|t| to_triplets(t, x.n_rows())).transpose()?;
    let valid = valid.as_ref().map(to_labeled).transpose()?;
    let listeners = Listeners {
        each: None,
        progress,
        snapshots: false,
    };
    let elsewhere = runner.map(Elsewhere::new);
    let (tuned, interrupted) = py.detach(|| {
        listen(&listeners, n_threads, |watch| {
            let watch = watch.of_search();
            let train = by_position(view(x)?, labels.as_ref());
            let valid = match &valid {
                Some((rows, labels)) => Some(by_position(view(*rows)?, Some(labels))),
                None => None,
            };
            let mut telling = Telling {
                watch,
                search: Search::default(),
                started: Instant::now(),
            };
            let mut data = TrainData::new(train);
            data.valid = valid;
            data.triplets = triplets.as_ref();
            data.names = names.as_deref();
            let runner = elsewhere.as_ref().map(|it| it as &dyn TrialRunner);
            let tuned = hdsl::tune::tune_with(&data, &config, runner, &mut telling);
            let mut tuned = tuned.map_err(|error| {
                let raised = elsewhere.as_ref().and_then(Elsewhere::raised);
                raised.unwrap_or_else(|| match watch.asked() {
                    true => PyKeyboardInterrupt::new_err(
                        "Ctrl-C stopped the search before there was a model",
                    ),
                    false => to_python(error),
                })
            })?;
            tuned.trained.model = tuned.trained.model.numbered_by_position();
            Ok(tuned)
        })
    })?;
    // Python has the model now; saving it is up to the caller.
    if let (Some(journal), false) = (&journal, interrupted) {
        hdsl::tune::remove_journal(journal);
    }
    let facts = facts(py, &tuned.trained)?;
    facts.set_item("interrupted", interrupted)?;
    let found = found(py, &tuned)?;
    Ok((Model::new(tuned.trained.model), facts, found))
}

/// Records the progress for Python.
struct Telling<'a> {
    watch: SearchWatch<'a>,
    search: Search,
    started: Instant,
}

impl Observer for Telling<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let search = &mut self.search;
        match *event {
            Event::RungStarted { rows, .. } => {
                // Errors after training on a sample are not comparable with those on all rows.
                if rows > search.rows {
                    (search.best, search.reference) = (None, None);
                }
                search.rows = rows;
            }
            Event::TrialDone {
                configuration,
                is_reference,
                error,
                ..
            } => {
                search.trials += 1;
                if is_reference {
                    let lowest = search.reference.map_or(error, |lowest| lowest.min(error));
                    search.reference = Some(lowest);
                } else if search.best.as_ref().is_none_or(|best| error < best.0) {
                    search.best = Some((error, configuration.to_owned()));
                }
            }
            Event::FinalTraining { n_rows } => search.training = Some(n_rows),
            _ => {}
        }
        search.seconds = self.started.elapsed().as_secs_f64();
        self.watch.tell(search);
        match self.watch.asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        self.watch.cancel()
    }
}

/// The result of the search without the model.
fn found<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    let board: PyResult<Vec<_>> = tuned.leaderboard.iter().map(|c| line(py, c)).collect();
    found.set_item("leaderboard", board?)?;
    let ablations: PyResult<Vec<_>> = tuned.ablations.iter().map(|a| missed(py, a)).collect();
    found.set_item("ablations", ablations?)?;
    found.set_item("params", winner(py, tuned)?)?;
    let (error, deviation) = tuned.expected_error.unzip();
    found.set_item("expected_error", error)?;
    found.set_item("expected_error_deviation", deviation)?;
    found.set_item("reference_error", tuned.reference().map(|c| c.error))?;
    let expected = tuned.expected_reference_error;
    found.set_item("expected_reference_error", expected.map(|e| e.0))?;
    found.set_item("learned", !tuned.leaderboard[0].is_reference)?;
    found.set_item("n_validation", tuned.n_validation)?;
    found.set_item("measure", tuned.measure)?;
    found.set_item("n_models", tuned.n_points)?;
    found.set_item("n_rows", tuned.n_rows)?;
    found.set_item("finished", tuned.finished)?;
    found.set_item("refitted", tuned.refitted)?;
    Ok(found)
}

fn line<'py>(py: Python<'py>, candidate: &Candidate) -> PyResult<Bound<'py, PyDict>> {
    let line = parameters(py, &candidate.config)?;
    line.set_item("reference", candidate.reference_name())?;
    line.set_item("error", candidate.error)?;
    line.set_item("score", candidate.score)?;
    line.set_item("n_features", candidate.features)?;
    line.set_item("n_atoms", candidate.atoms)?;
    Ok(line)
}

fn missed<'py>(py: Python<'py>, ablation: &AblationResult) -> PyResult<Bound<'py, PyDict>> {
    let missed = line(py, &ablation.candidate)?;
    missed.set_item("part", ablation.part.name())?;
    missed.set_item("expected_error", ablation.expected_error.map(|e| e.0))?;
    Ok(missed)
}

/// The parameters of an estimator that makes the same model.
fn winner<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Bound<'py, PyDict>> {
    let config = &tuned.trained.model.parts().config;
    let winner = parameters(py, config)?;
    winner.set_item("last_round_iter", config.last_round_iter)?;
    Ok(winner)
}

fn parameters<'py>(py: Python<'py>, config: &TrainConfig) -> PyResult<Bound<'py, PyDict>> {
    let parameters = PyDict::new(py);
    parameters.set_item("scale", config.lambda.first())?;
    parameters.set_item("base", config.base.value())?;
    parameters.set_item("triplets", config.triplets.to_string())?;
    parameters.set_item("preprocess", config.preprocess.to_string())?;
    parameters.set_item("loss", config.loss.to_string())?;
    parameters.set_item("max_iter", config.max_iter)?;
    parameters.set_item("mining_rounds", config.mining_rounds)?;
    let last = config.last_round_iter.unwrap_or(config.max_iter);
    parameters.set_item("last_round_iter", last)?;
    parameters.set_item("n_estimators", config.n_estimators)?;
    parameters.set_item("subsample", config.subsample)?;
    parameters.set_item("n_neighbors", config.rule.k)?;
    parameters.set_item("vote", config.rule.vote.to_string())?;
    parameters.set_item("normalization", config.rule.normalization.to_string())?;
    Ok(parameters)
}
