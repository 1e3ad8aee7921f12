//! Training: the library works in a thread of its own, while the caller's thread looks for signals and talks to Python.

use crate::errors::to_python;
use crate::labels::as_in_a_file;
use crate::matrix::{Csr, Parts, row_numbers, view};
use crate::model::Model;
use crate::settings::Settings;
use crate::work::{detached, our_mistake, pooled};
use hdsl::data::{IndexBase, RowsView, stratified_split};
use hdsl::{
    ActiveSet, Event, Labelled, Labels, Rows, Scaling, Stop, TrainParams, Trained, TripletSource,
    Triplets, train_borrowed,
};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often signals are looked for: a Ctrl-C is heard twice within the tenth of a second we promise.
const HEARTBEAT: Duration = Duration::from_millis(40);

/// Classes as Python has them: sorted names, and a code a row.
type Classes<'py> = (Vec<String>, Bound<'py, PyArray1<i64>>);

/// Three columns of row numbers, and weights.
type Given<'py> = (
    [Bound<'py, PyArray1<i64>>; 3],
    Option<Bound<'py, PyArray1<f64>>>,
);

/// What is known after an iteration.
#[derive(Clone, Copy, Default)]
struct Facts {
    iteration: usize,
    objective: f64,
    gap: f64,
    n_atoms: usize,
    n_features: usize,
    seconds: f64,
    scale: f64,
    valid_error: Option<f64>,
}

impl Facts {
    fn to_python<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facts = PyDict::new(py);
        facts.set_item("iteration", self.iteration)?;
        facts.set_item("objective", self.objective)?;
        facts.set_item("gap", self.gap)?;
        facts.set_item("n_atoms", self.n_atoms)?;
        facts.set_item("n_features", self.n_features)?;
        facts.set_item("seconds", self.seconds)?;
        facts.set_item("scale", self.scale)?;
        facts.set_item("valid_error", self.valid_error)?;
        Ok(facts)
    }
}

/// What the working thread says.
enum Message {
    /// An iteration that Python wants to hear of, and may end the run after; the worker waits for the answer.
    Iteration(Facts, Option<ActiveSet>),
    Done(Box<PyResult<Trained>>),
}

/// Who in Python listens: `each(facts, snapshot)` after every iteration, true to stop; `progress(facts)` now and then.
struct Listeners {
    each: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    /// Whether `each` wants the iterate itself.
    snapshots: bool,
}

/// How the caller's thread saw the run end.
#[derive(Default)]
struct Heard {
    interrupted: bool,
    error: Option<PyErr>,
}

/// Learns a similarity, as `hdsl train` does. Returns the model and facts about the run.
#[pyfunction]
#[pyo3(signature = (
    settings, x, classes=None, *, valid=None, triplets=None, row_weights=None, names=None, start=None,
    keep_scaling=false, each=None, snapshots=false, progress=None, n_threads=1
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train<'py>(
    py: Python<'py>,
    settings: Settings,
    x: Csr<'py>,
    classes: Option<Classes<'py>>,
    valid: Option<(Csr<'py>, Classes<'py>)>,
    triplets: Option<Given<'py>>,
    row_weights: Option<Bound<'py, PyArray1<f64>>>,
    names: Option<Vec<String>>,
    start: Option<&Bound<'py, Model>>,
    keep_scaling: bool,
    each: Option<Py<PyAny>>,
    snapshots: bool,
    progress: Option<Py<PyAny>>,
    n_threads: usize,
) -> PyResult<(Model, Bound<'py, PyDict>)> {
    let mut params = settings.params()?;
    let x = x.parts()?;
    let labels = classes.map(|c| to_labels(c, x.n_rows())).transpose()?;
    let valid = valid
        .as_ref()
        .map(|(x, (names, codes))| {
            let x = x.parts()?;
            Ok::<_, PyErr>((x, to_labels((names.clone(), codes.clone()), x.n_rows())?))
        })
        .transpose()?;
    let weights: Option<Vec<f64>> = row_weights.map(|w| w.to_vec()).transpose()?;
    if let Some(given) = triplets {
        params.triplets = TripletSource::Given(to_triplets(given, x.n_rows())?);
    }
    if let Some(start) = start {
        let model = start.get().get();
        let learned = model.path().at(model.chosen()).map_err(to_python)?;
        params.start = Some(learned);
        if keep_scaling {
            params.fitted = Some(model.scaling().clone());
        }
    }
    let listeners = Listeners {
        each,
        progress,
        snapshots,
    };
    let (trained, heard) = py.detach(|| {
        let problem = Problem {
            x,
            labels,
            valid,
            weights,
            names,
            holdout: settings.holdout,
            seed: settings.seed,
            params,
        };
        listen(problem, &listeners, n_threads)
    })?;
    let facts = PyDict::new(py);
    facts.set_item("stop", trained.stop.to_string())?;
    let asked = trained.stop == Stop::ObserverAsked || heard.interrupted;
    facts.set_item("interrupted", heard.interrupted && asked)?;
    facts.set_item("objective", trained.objective)?;
    facts.set_item("gap", trained.gap.value())?;
    facts.set_item("gap_certified", trained.gap.is_certified())?;
    facts.set_item("iterations", trained.iterations)?;
    facts.set_item("valid_error", trained.valid_error)?;
    facts.set_item("n_triplets", trained.n_triplets)?;
    facts.set_item("train_seconds", trained.train_seconds)?;
    let grid: Vec<(f64, f64, usize, usize, Option<f64>, String)> = trained
        .grid
        .iter()
        .map(|p| {
            let stop = p.stop.to_string();
            (
                p.scale,
                p.objective,
                p.iterations,
                p.chosen,
                p.valid_error,
                stop,
            )
        })
        .collect();
    facts.set_item("grid", grid)?;
    Ok((Model::new(trained.model), facts))
}

/// Everything a run needs, for a thread without the interpreter.
struct Problem<'a> {
    x: Parts<'a>,
    labels: Option<Labels>,
    valid: Option<(Parts<'a>, Labels)>,
    weights: Option<Vec<f64>>,
    names: Option<Vec<String>>,
    holdout: Option<f64>,
    seed: u64,
    params: TrainParams,
}

/// Rows and labels of one side of a split.
struct Part {
    rows: Rows,
    labels: Labels,
}

impl Part {
    fn labelled(&self) -> Labelled<'_> {
        by_position(self.rows.view(), Some(&self.labels))
    }
}

/// Columns of a matrix have a place and no other number.
fn by_position<'a>(rows: RowsView<'a>, labels: Option<&'a Labels>) -> Labelled<'a> {
    Labelled {
        rows,
        labels,
        index_base: IndexBase::Zero,
    }
}

impl Problem<'_> {
    fn train(mut self, watcher: &mut dyn hdsl::Watcher) -> PyResult<Trained> {
        let x = view(self.x)?;
        let mut split = None;
        if let (Some(share), Some(labels)) = (self.holdout, &self.labels) {
            let parts =
                stratified_split(labels, &[1.0 - share, share], self.seed).map_err(to_python)?;
            let [learn, held] = &parts[..] else {
                unreachable!("two shares give two parts");
            };
            if learn.is_empty() || held.is_empty() {
                return Err(PyValueError::new_err(format!(
                    "validation_fraction={share} of {} rows leaves nothing to train on or nothing to validate with",
                    x.n_rows()
                )));
            }
            let part = |which: &[u32]| Part {
                rows: x.select(which),
                labels: labels.select(which),
            };
            if let Some(weights) = &mut self.weights {
                *weights = learn.iter().map(|&row| weights[row as usize]).collect();
            }
            split = Some((part(learn), part(held)));
        }
        let (train, valid) = match (&split, &self.valid) {
            (Some((learn, held)), _) => (learn.labelled(), Some(held.labelled())),
            (None, Some((rows, labels))) => (
                by_position(x, self.labels.as_ref()),
                Some(by_position(view(*rows)?, Some(labels))),
            ),
            (None, None) => (by_position(x, self.labels.as_ref()), None),
        };
        if let Some(known) = self.params.fitted.take() {
            self.params.fitted = Some(extended(&known, train.rows)?);
        }
        if let Some(weights) = &self.weights {
            self.params.triplets = weighted(&self.params, train, weights, self.seed)?;
        }
        let mut trained =
            train_borrowed(train, valid, self.names.as_deref(), &self.params, watcher)
                .map_err(to_python)?;
        trained.model = trained.model.numbered_by_position().map_err(to_python)?;
        Ok(trained)
    }
}

/// A known scaling, and beside it the maxima of features it says nothing about.
fn extended(known: &Scaling, rows: RowsView<'_>) -> PyResult<Scaling> {
    let mut maxima: std::collections::BTreeMap<u32, f64> =
        Scaling::fit(known.kind(), rows).maxima().collect();
    maxima.extend(known.maxima());
    let n_features = rows.n_features().max(known.n_features());
    Scaling::from_parts(known.kind(), n_features, maxima.into_iter().collect()).map_err(to_python)
}

/// Mined triplets, each as heavy as its anchor; those of anchors without weight are left out.
fn weighted(
    params: &TrainParams,
    train: Labelled<'_>,
    weights: &[f64],
    seed: u64,
) -> PyResult<TripletSource> {
    let scaling = match &params.fitted {
        Some(known) => known.clone(),
        None => Scaling::fit(params.scaling, train.rows),
    };
    let rows = scaling.apply(train.rows);
    let mined =
        hdsl::train::mine(&params.triplets, &rows, train.labels, seed).map_err(to_python)?;
    let mut heavy = Triplets::new();
    for (anchor, near, far) in mined.iter() {
        let weight = weights[anchor as usize];
        if weight > 0.0 {
            heavy.push_weighted(anchor, near, far, weight);
        }
    }
    Ok(TripletSource::Given(heavy))
}

/// Runs the library in a thread of its own and listens to it, to signals and to Python until it is done.
fn listen(
    problem: Problem<'_>,
    listeners: &Listeners,
    n_threads: usize,
) -> PyResult<(Trained, Heard)> {
    let stop = AtomicBool::new(false);
    let latest: Mutex<Option<Facts>> = Mutex::new(None);
    let (say, hear) = channel();
    let (answer, wait) = sync_channel::<bool>(1);
    let (outcome, heard) = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut watch = Watch {
                stop: &stop,
                latest: &latest,
                facts: Facts::default(),
                say: listeners.each.is_some().then(|| (say.clone(), wait)),
                snapshots: listeners.snapshots,
            };
            let outcome = pooled(n_threads, || {
                problem.train(&mut |event: &Event<'_>| watch.event(event))
            });
            // Nobody hears it only if the listener gave up, which it does not.
            let _ = say.send(Message::Done(Box::new(outcome)));
        });
        let mut heard = Heard::default();
        let outcome = hear_out(&hear, &answer, listeners, &stop, &latest, &mut heard);
        let panicked = worker.join().err();
        (outcome.ok_or(panicked), heard)
    });
    match outcome {
        Ok(trained) => match heard.error {
            Some(error) => Err(error),
            None => trained.map(|trained| (trained, heard)),
        },
        Err(panic) => Err(our_mistake(
            &*panic.unwrap_or_else(|| Box::new("no answer")),
        )),
    }
}

/// Until the worker is done; none if it vanished without a word.
fn hear_out(
    hear: &Receiver<Message>,
    answer: &SyncSender<bool>,
    listeners: &Listeners,
    stop: &AtomicBool,
    latest: &Mutex<Option<Facts>>,
    heard: &mut Heard,
) -> Option<PyResult<Trained>> {
    loop {
        match hear.recv_timeout(HEARTBEAT) {
            Ok(Message::Done(outcome)) => return Some(*outcome),
            Ok(Message::Iteration(facts, snapshot)) => {
                let wish = Python::attach(|py| call_each(py, listeners, facts, snapshot));
                let ends = wish.unwrap_or_else(|error| {
                    note(error, heard);
                    true
                });
                if ends {
                    stop.store(true, Ordering::Relaxed);
                }
                // The worker waits for this, or is gone.
                let _ = answer.send(ends);
            }
            Err(RecvTimeoutError::Timeout) => {
                let pulse = Python::attach(|py| {
                    py.check_signals()?;
                    let facts = *latest.lock().unwrap_or_else(PoisonError::into_inner);
                    if let (Some(progress), Some(facts)) = (&listeners.progress, facts) {
                        progress.call1(py, (facts.to_python(py)?,))?;
                    }
                    Ok(())
                });
                if let Err(error) = pulse {
                    note(error, heard);
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Ctrl-C keeps what was learned; any other exception is passed on.
fn note(error: PyErr, heard: &mut Heard) {
    Python::attach(|py| {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            heard.interrupted = true;
        } else {
            heard.error.get_or_insert(error);
        }
    });
}

fn call_each(
    py: Python<'_>,
    listeners: &Listeners,
    facts: Facts,
    snapshot: Option<ActiveSet>,
) -> PyResult<bool> {
    // Whoever is called often may keep the signals from being looked for above.
    py.check_signals()?;
    let Some(each) = &listeners.each else {
        return Ok(false);
    };
    let atoms = snapshot.map(|active| {
        active
            .iter()
            .map(|(atom, weight)| (atom.i(), atom.j(), atom.sign().value(), weight))
            .collect::<Vec<_>>()
    });
    each.call1(py, (facts.to_python(py)?, atoms))?
        .bind(py)
        .is_truthy()
}

/// The worker's side.
struct Watch<'a> {
    stop: &'a AtomicBool,
    latest: &'a Mutex<Option<Facts>>,
    facts: Facts,
    say: Option<(std::sync::mpsc::Sender<Message>, Receiver<bool>)>,
    snapshots: bool,
}

impl Watch<'_> {
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::ScaleStarted { scale, .. } => {
                self.facts = Facts {
                    scale,
                    ..Facts::default()
                };
            }
            Event::Evaluated { error, .. } => self.facts.valid_error = Some(error),
            Event::Iteration(now, active) => {
                self.facts = Facts {
                    iteration: now.iter,
                    objective: now.objective,
                    gap: now.gap.value(),
                    n_atoms: now.n_atoms,
                    n_features: now.n_active_features,
                    seconds: now.seconds,
                    ..self.facts
                };
                *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.facts);
                if let Some((say, wait)) = &self.say {
                    let snapshot = self.snapshots.then(|| active.clone());
                    let said = say.send(Message::Iteration(self.facts, snapshot));
                    if said.is_err() || wait.recv().unwrap_or(true) {
                        return ControlFlow::Break(());
                    }
                }
            }
            _ => {}
        }
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn to_labels((names, codes): Classes<'_>, n_rows: usize) -> PyResult<Labels> {
    let codes: Vec<u32> = codes
        .try_readonly()?
        .as_array()
        .iter()
        .map(|&code| code as u32)
        .collect();
    if codes.len() != n_rows {
        return Err(PyValueError::new_err(format!(
            "there are {} labels for {n_rows} rows",
            codes.len()
        )));
    }
    if codes.iter().any(|&code| code as usize >= names.len()) {
        return Err(PyValueError::new_err("a label has no class"));
    }
    as_in_a_file(names, &codes).map_err(to_python)
}

fn to_triplets((columns, weights): Given<'_>, n_rows: usize) -> PyResult<Triplets> {
    let [anchor, near, far] = [
        row_numbers(&columns[0], n_rows, "triplets[:, 0]")?,
        row_numbers(&columns[1], n_rows, "triplets[:, 1]")?,
        row_numbers(&columns[2], n_rows, "triplets[:, 2]")?,
    ];
    let weights = weights.map(|w| w.to_vec()).transpose()?;
    let mut triplets = Triplets::new();
    for (t, &anchor) in anchor.iter().enumerate() {
        let weight = weights.as_ref().map_or(1.0, |w| w[t]);
        if weight > 0.0 {
            triplets.push_weighted(anchor, near[t], far[t], weight);
        }
    }
    Ok(triplets)
}

/// The triplets that training with these settings mines from labels, as one array of three columns.
#[pyfunction]
#[pyo3(signature = (settings, x, classes, n_threads))]
pub(crate) fn mine<'py>(
    py: Python<'py>,
    settings: Settings,
    x: Csr<'py>,
    classes: Classes<'py>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let params = settings.params()?;
    let x = x.parts()?;
    let labels = to_labels(classes, x.n_rows())?;
    let flat = detached(py, n_threads, || {
        let rows = view(x)?;
        let rows = Scaling::fit(params.scaling, rows).apply(rows);
        let mined = hdsl::train::mine(&params.triplets, &rows, Some(&labels), settings.seed)
            .map_err(to_python)?;
        Ok(mined
            .iter()
            .flat_map(|(a, n, f)| [a, n, f].map(i64::from))
            .collect::<Vec<i64>>())
    })?;
    Ok(flat.into_pyarray(py))
}
