//! The search for the best similarity, as the command line does.

use crate::errors::to_python;
use crate::listening::{Listeners, Search, SearchWatch, listen};
use crate::matrix::{Csr, view};
use crate::model::Model;
use crate::training::{Classes, by_position, facts, to_labels};
use hdsl::tune::{
    Contender, Judges, Part, Preset, TuneEvent, TuneParams, TuneWatcher, Tuned, Without,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
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
    fn params(&self) -> PyResult<TuneParams> {
        let preset = match self.preset.as_str() {
            "best" => Preset::Best,
            "paper" => Preset::Paper,
            other => {
                return Err(PyValueError::new_err(format!(
                    "`preset` is {other:?}, expected 'best' or 'paper'"
                )));
            }
        };
        let time = self.time.map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| to_python(hdsl::Error::param("time", seconds, "seconds, 0 or more")))
        });
        let without: hdsl::Result<Vec<Part>> =
            self.ablate.iter().map(|part| part.parse()).collect();
        Ok(TuneParams {
            preset,
            judges: match (self.cv, self.holdout) {
                (Some(folds), _) => Judges::Folds(folds),
                (None, Some(share)) => Judges::Share(share),
                (None, None) => Judges::Auto,
            },
            refit: self.refit,
            time: time.transpose()?,
            max_features: self.max_features,
            max_atoms: self.max_atoms,
            without: without.map_err(to_python)?,
            round_iter: self.round_iter,
            seed: self.seed,
            memory_limit: self.memory,
            journal: self.journal.clone(),
        })
    }
}

/// Finds the best similarity, as `hdsl tune` does. Returns the model, facts about its training, and what was found.
#[pyfunction]
#[pyo3(signature = (settings, x, classes, *, valid=None, names=None, progress=None, n_threads=1))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn tune<'py>(
    py: Python<'py>,
    settings: TuneSettings,
    x: Csr<'py>,
    classes: Classes<'py>,
    valid: Option<(Csr<'py>, Classes<'py>)>,
    names: Option<Vec<String>>,
    progress: Option<Py<PyAny>>,
    n_threads: usize,
) -> PyResult<(Model, Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let params = settings.params()?;
    let x = x.parts()?;
    let labels = to_labels(classes, x.n_rows())?;
    let valid = valid
        .as_ref()
        .map(|(x, (names, codes))| {
            let x = x.parts()?;
            Ok::<_, PyErr>((x, to_labels((names.clone(), codes.clone()), x.n_rows())?))
        })
        .transpose()?;
    let listeners = Listeners {
        each: None,
        progress,
        snapshots: false,
    };
    let (tuned, interrupted) = py.detach(|| {
        listen(&listeners, n_threads, |watch| {
            let watch = watch.of_search();
            let train = by_position(view(x)?, Some(&labels));
            let valid = match &valid {
                Some((rows, labels)) => Some(by_position(view(*rows)?, Some(labels))),
                None => None,
            };
            let mut telling = Telling {
                watch,
                search: Search::default(),
                started: Instant::now(),
            };
            let cancel = || watch.asked();
            let names = names.as_deref();
            let tuned = hdsl::tune::tune(train, valid, names, &params, &mut telling, &cancel);
            let mut tuned = tuned.map_err(|error| match watch.asked() {
                true => PyKeyboardInterrupt::new_err(
                    "Ctrl-C stopped the search before there was a model",
                ),
                false => to_python(error),
            })?;
            let model = tuned.trained.model.numbered_by_position();
            tuned.trained.model = model.map_err(to_python)?;
            Ok(tuned)
        })
    })?;
    let facts = facts(py, &tuned.trained)?;
    facts.set_item("interrupted", interrupted)?;
    let found = found(py, &tuned)?;
    Ok((Model::new(tuned.trained.model), facts, found))
}

/// Keeps what Python may want to show.
struct Telling<'a> {
    watch: SearchWatch<'a>,
    search: Search,
    started: Instant,
}

impl TuneWatcher for Telling<'_> {
    fn event(&mut self, event: &TuneEvent<'_>) -> ControlFlow<()> {
        let search = &mut self.search;
        match *event {
            TuneEvent::Started { dot_error, .. } => search.dot_error = dot_error,
            TuneEvent::Rung {
                rung,
                of,
                settings,
                scouting,
                ..
            } => {
                // What a sample said is not to be compared with what all rows say.
                if search.sampled && !scouting {
                    search.best = None;
                }
                search.rung = (rung, of);
                search.trials = (0, settings);
                search.sampled = scouting;
            }
            TuneEvent::Judged {
                setting,
                error,
                done,
                of,
            } => {
                search.trials = (done, of);
                if search.best.as_ref().is_none_or(|best| error < best.0) {
                    search.best = Some((error, setting.to_string()));
                }
            }
            TuneEvent::Training { n_rows } => search.training = Some(n_rows),
            _ => {}
        }
        search.seconds = self.started.elapsed().as_secs_f64();
        self.watch.tell(search);
        match self.watch.asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Everything but the model.
fn found<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    let board: PyResult<Vec<_>> = tuned.leaderboard.iter().map(|c| line(py, c)).collect();
    found.set_item("leaderboard", board?)?;
    let without: PyResult<Vec<_>> = tuned.without.iter().map(|w| missed(py, w)).collect();
    found.set_item("ablations", without?)?;
    found.set_item("params", winner(py, tuned)?)?;
    found.set_item("expected_error", tuned.expected_error.map(|e| e.0))?;
    found.set_item(
        "expected_error_deviation",
        tuned.expected_error.map(|e| e.1),
    )?;
    found.set_item("dot_error", tuned.dot_error)?;
    found.set_item("n_validation", tuned.n_judged)?;
    found.set_item("n_models", tuned.n_points)?;
    found.set_item("n_rows", tuned.n_rows)?;
    found.set_item("finished", tuned.finished)?;
    found.set_item("refitted", tuned.refitted)?;
    Ok(found)
}

fn line<'py>(py: Python<'py>, contender: &Contender) -> PyResult<Bound<'py, PyDict>> {
    let line = PyDict::new(py);
    let setting = &contender.setting;
    line.set_item("error", contender.error)?;
    line.set_item("score", contender.score)?;
    line.set_item("n_features", contender.features)?;
    line.set_item("n_atoms", contender.atoms)?;
    line.set_item("preprocess", setting.preprocess.to_string())?;
    line.set_item("triplets", setting.triplets.to_string())?;
    line.set_item("scale", setting.scale)?;
    line.set_item("loss", setting.loss.to_string())?;
    line.set_item("mining_rounds", contender.rounds)?;
    line.set_item("last_round_iter", contender.last_iter)?;
    line.set_item("n_estimators", setting.models)?;
    line.set_item("n_neighbors", contender.rule.k)?;
    line.set_item("vote", contender.rule.vote.to_string())?;
    line.set_item("normalization", contender.rule.normalization.to_string())?;
    Ok(line)
}

fn missed<'py>(py: Python<'py>, without: &Without) -> PyResult<Bound<'py, PyDict>> {
    let missed = line(py, &without.contender)?;
    missed.set_item("part", without.part.name())?;
    missed.set_item("expected_error", without.expected_error.map(|e| e.0))?;
    Ok(missed)
}

/// The parameters of an estimator that makes the same model.
fn winner<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Bound<'py, PyDict>> {
    let winner = PyDict::new(py);
    let params = &tuned.params;
    winner.set_item("scale", params.scales.first().copied())?;
    winner.set_item("triplets", params.triplets.to_string())?;
    winner.set_item("preprocess", params.preprocess.to_string())?;
    winner.set_item("loss", params.solver.loss_kind().to_string())?;
    winner.set_item("max_iter", params.solver.iterations())?;
    winner.set_item("mining_rounds", params.again.rounds)?;
    winner.set_item("last_round_iter", params.last_iter)?;
    winner.set_item("n_estimators", params.models)?;
    winner.set_item("n_neighbors", params.rule.k)?;
    winner.set_item("vote", params.rule.vote.to_string())?;
    winner.set_item("normalization", params.rule.normalization.to_string())?;
    Ok(winner)
}
