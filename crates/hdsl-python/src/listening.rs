//! Work in a thread of its own, while the caller's thread checks for signals and calls Python.

use crate::work::{our_mistake, pooled};
use hdsl::{ActiveSet, CancelToken};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often signals are checked: more than twice in the tenth of a second within which Ctrl-C takes effect.
const HEARTBEAT: Duration = Duration::from_millis(40);

/// The state of a run after an iteration; a dict in Python.
#[derive(Clone, Copy, Default, IntoPyObject)]
pub(crate) struct Facts {
    pub(crate) iteration: usize,
    pub(crate) objective: f64,
    pub(crate) gap: f64,
    pub(crate) n_atoms: usize,
    pub(crate) n_features: usize,
    pub(crate) seconds: f64,
    pub(crate) scale: f64,
    pub(crate) base: f64,
    pub(crate) preprocess: &'static str,
    pub(crate) valid_error: Option<f64>,
}

/// The progress of a search; a dict in Python.
#[derive(Clone, Default, IntoPyObject)]
pub(crate) struct Search {
    /// Trials done so far.
    pub(crate) trials: usize,
    /// Rows that the trials of the current rung are trained on.
    pub(crate) rows: usize,
    /// The lowest validation error of a learned similarity so far, and its configuration.
    pub(crate) best: Option<(f64, String)>,
    /// The lowest validation error of a plain similarity.
    pub(crate) reference: Option<f64>,
    /// Rows of the final training, once it has begun.
    pub(crate) training: Option<usize>,
    pub(crate) seconds: f64,
}

/// The latest state of a worker.
#[derive(Clone, IntoPyObject)]
enum News {
    #[pyo3(transparent)]
    Fit(Facts),
    #[pyo3(transparent)]
    Search(Search),
}

/// Python callbacks: `each(facts, snapshot)` after every iteration, true to stop; `progress(facts)` at each heartbeat.
pub(crate) struct Listeners {
    pub(crate) each: Option<Py<PyAny>>,
    pub(crate) progress: Option<Py<PyAny>>,
    /// Whether `each` gets the iterate.
    pub(crate) snapshots: bool,
}

/// Messages of the worker.
enum Message<T> {
    /// An iteration for `each`, which may end the run; the worker waits for the answer.
    Iteration(Box<(Facts, Option<ActiveSet>)>),
    Done(Box<PyResult<T>>),
}

/// What happened in the caller's thread.
#[derive(Default)]
struct Heard {
    interrupted: bool,
    error: Option<PyErr>,
}

/// Asks the caller's thread, and thereby Python, whether to stop.
type Ask<'a> = Box<dyn FnMut(Facts, Option<ActiveSet>) -> bool + Send + 'a>;

/// The worker's side: it reports its state and asks whether to stop.
pub(crate) struct Watch<'a> {
    stop: &'a AtomicBool,
    latest: &'a Mutex<Option<News>>,
    ask: Option<Ask<'a>>,
    snapshots: bool,
}

/// The side of a worker that searches: several threads may use it, and none waits for Python.
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

    /// Whether the search is to end.
    pub(crate) fn asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The same, as a token.
    pub(crate) fn cancel(&self) -> CancelToken<'_> {
        CancelToken::when(self.stop)
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

    /// The token to cancel work that reports no iterations.
    pub(crate) fn cancel(&self) -> CancelToken<'_> {
        CancelToken::when(self.stop)
    }

    /// Whether the run is to end.
    pub(crate) fn asked(&self) -> ControlFlow<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Runs `work` in a thread of its own, on so many threads, and serves it, signals and Python callbacks until it is done.
/// To be called without the interpreter lock. Also returns whether Ctrl-C was pressed.
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
            // The receiver lives until this message arrives.
            let _ = say.send(Message::Done(Box::new(outcome)));
        });
        hear_out(&hear, &answer, listeners, stop, latest, &mut heard)
    });
    match heard.error {
        Some(error) => Err(error),
        None => outcome.map(|done| (done, heard.interrupted)),
    }
}

/// Sends an iteration to the caller's thread and waits for the answer.
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
                        progress.call1(py, (news,))?;
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

/// Ctrl-C keeps what was learned; any other exception is raised again.
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
    // Frequent callbacks would otherwise keep signals from being checked at the heartbeat.
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
    each.call1(py, (facts, atoms))?.bind(py).is_truthy()
}
