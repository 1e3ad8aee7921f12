//! Work in a thread of its own, while the caller's thread looks for signals and talks to Python.

use crate::work::{our_mistake, pooled};
use hdsl::{ActiveSet, CancelToken};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often signals are looked for: a Ctrl-C is heard twice within the tenth of a second we promise.
const HEARTBEAT: Duration = Duration::from_millis(40);

/// What is known after an iteration.
#[derive(Clone, Copy, Default)]
pub(crate) struct Facts {
    pub(crate) iteration: usize,
    pub(crate) objective: f64,
    pub(crate) gap: f64,
    pub(crate) n_atoms: usize,
    pub(crate) n_features: usize,
    pub(crate) seconds: f64,
    pub(crate) scale: f64,
    pub(crate) valid_error: Option<f64>,
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

/// How far a search has come.
#[derive(Clone, Default)]
pub(crate) struct Search {
    pub(crate) rung: usize,
    pub(crate) n_rungs: usize,
    pub(crate) done: usize,
    pub(crate) n_settings: usize,
    pub(crate) scouting: bool,
    /// The lowest error on the judged rows so far, and whose it is.
    pub(crate) best: Option<(f64, String)>,
    pub(crate) dot_error: f64,
    /// Rows of the final training, once that has begun.
    pub(crate) training: Option<usize>,
    pub(crate) seconds: f64,
}

impl Search {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facts = PyDict::new(py);
        facts.set_item("rung", self.rung)?;
        facts.set_item("n_rungs", self.n_rungs)?;
        facts.set_item("done", self.done)?;
        facts.set_item("n_settings", self.n_settings)?;
        facts.set_item("scouting", self.scouting)?;
        facts.set_item("best_error", self.best.as_ref().map(|best| best.0))?;
        facts.set_item("best_setting", self.best.as_ref().map(|best| &best.1))?;
        facts.set_item("dot_error", self.dot_error)?;
        facts.set_item("training", self.training)?;
        facts.set_item("seconds", self.seconds)?;
        Ok(facts)
    }
}

/// The latest there is to tell.
#[derive(Clone)]
enum News {
    Fit(Facts),
    Search(Search),
}

impl News {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self {
            News::Fit(facts) => facts.to_python(py),
            News::Search(search) => search.to_python(py),
        }
    }
}

/// Who in Python listens: `each(facts, snapshot)` after every iteration, true to stop; `progress(facts)` now and then.
pub(crate) struct Listeners {
    pub(crate) each: Option<Py<PyAny>>,
    pub(crate) progress: Option<Py<PyAny>>,
    /// Whether `each` wants the iterate itself.
    pub(crate) snapshots: bool,
}

/// What the working thread says.
enum Message<T> {
    /// An iteration that Python wants to hear of, and may end the run after; the worker waits for the answer.
    Iteration(Box<(Facts, Option<ActiveSet>)>),
    Done(Box<PyResult<T>>),
}

/// How the caller's thread saw the run end.
#[derive(Default)]
struct Heard {
    interrupted: bool,
    error: Option<PyErr>,
}

/// Asks the caller's thread, and thereby Python, whether to stop.
type Ask<'a> = Box<dyn FnMut(Facts, Option<ActiveSet>) -> bool + Send + 'a>;

/// The worker's side: what it tells, and whether it shall stop.
pub(crate) struct Watch<'a> {
    stop: &'a AtomicBool,
    latest: &'a Mutex<Option<News>>,
    ask: Option<Ask<'a>>,
    snapshots: bool,
}

/// The side of a worker that searches: several threads may look at it, and nobody in Python is waited for.
#[derive(Clone, Copy)]
pub(crate) struct SearchWatch<'a> {
    stop: &'a AtomicBool,
    latest: &'a Mutex<Option<News>>,
}

impl SearchWatch<'_> {
    pub(crate) fn tell(&self, search: &Search) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(News::Search(search.clone()));
    }

    /// Whether somebody wants the search to end.
    pub(crate) fn asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn of_search(&self) -> SearchWatch<'a> {
        SearchWatch {
            stop: self.stop,
            latest: self.latest,
        }
    }
}

impl Watch<'_> {
    /// After an iteration.
    pub(crate) fn tell(&mut self, facts: Facts, active: Option<&ActiveSet>) -> ControlFlow<()> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(News::Fit(facts));
        if let Some(ask) = &mut self.ask {
            let snapshot = active.filter(|_| self.snapshots).cloned();
            if ask(facts, snapshot) {
                return ControlFlow::Break(());
            }
        }
        self.asked()
    }

    /// The same wish, for work that has nothing to tell yet.
    pub(crate) fn cancel(&self) -> CancelToken<'_> {
        CancelToken::when(self.stop)
    }

    /// Whether somebody wants the run to end.
    pub(crate) fn asked(&self) -> ControlFlow<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Runs `work` in a thread of its own, on so many threads, and listens to it, to signals and to Python until it is done.
/// To be called without the interpreter lock. Also tells whether Ctrl-C was pressed.
pub(crate) fn listen<T: Send>(
    listeners: &Listeners,
    n_threads: usize,
    work: impl FnOnce(&mut Watch<'_>) -> PyResult<T> + Send,
) -> PyResult<(T, bool)> {
    let stop = AtomicBool::new(false);
    let latest: Mutex<Option<News>> = Mutex::new(None);
    let (say, hear) = channel::<Message<T>>();
    let (answer, wait) = sync_channel::<bool>(1);
    let mut heard = Heard::default();
    let outcome = thread::scope(|scope| {
        let (stop, latest, wanted) = (&stop, &latest, listeners.each.is_some());
        let snapshots = listeners.snapshots;
        scope.spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let mut watch = Watch {
                    stop,
                    latest,
                    ask: wanted.then(|| asker(say.clone(), wait)),
                    snapshots,
                };
                pooled(n_threads, || work(&mut watch))
            }));
            let outcome = outcome.unwrap_or_else(|panic| Err(our_mistake(&*panic)));
            // Nobody hears it only if the listener gave up, which it does not.
            let _ = say.send(Message::Done(Box::new(outcome)));
        });
        hear_out(&hear, &answer, listeners, stop, latest, &mut heard)
    });
    match heard.error {
        Some(error) => Err(error),
        None => outcome.map(|done| (done, heard.interrupted)),
    }
}

/// Tells the caller's thread of an iteration and waits for its wish.
fn asker<'a, T: Send + 'a>(say: Sender<Message<T>>, wait: Receiver<bool>) -> Ask<'a> {
    Box::new(move |facts, snapshot| {
        let said = say.send(Message::Iteration(Box::new((facts, snapshot))));
        said.is_err() || wait.recv().unwrap_or(true)
    })
}

/// Until the worker is done.
fn hear_out<T>(
    hear: &Receiver<Message<T>>,
    answer: &SyncSender<bool>,
    listeners: &Listeners,
    stop: &AtomicBool,
    latest: &Mutex<Option<News>>,
    heard: &mut Heard,
) -> PyResult<T> {
    loop {
        match hear.recv_timeout(HEARTBEAT) {
            Ok(Message::Done(outcome)) => return *outcome,
            Ok(Message::Iteration(told)) => {
                let (facts, snapshot) = *told;
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
                    let news = latest
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone();
                    if let (Some(progress), Some(news)) = (&listeners.progress, news) {
                        progress.call1(py, (news.to_python(py)?,))?;
                    }
                    Ok(())
                });
                if let Err(error) = pulse {
                    note(error, heard);
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(our_mistake(&"no answer")),
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
