//! Checkpoints: the steps of a training in a file, so that a training that was interrupted goes on instead of starting
//! again.
//!
//! A training is a sequence of runs of the solver, in an order that its configuration and its data determine. A
//! checkpoint contains the start and the steps of each run so far, with the exact γ, and the position in the stream of
//! random numbers. The same training takes the recorded steps again, without searching for atoms and step lengths. Its
//! floating-point state is then bitwise that of the interrupted training, and so is its result.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | settings, and the recorder of a training |
//! | `file.rs` | the file |

mod file;

use crate::atoms::{Atom, Path as AtomPath, Step};
use crate::error::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use file::{FIRST_LINE, inspect};

/// Where and how often a training writes a checkpoint.
///
/// The file is removed by whoever saves the model, with [`Checkpoint::remove`]: until then, it is the only copy of the
/// work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The file.
    pub path: PathBuf,
    /// The time between two writes, and before the first.
    pub every: Duration,
    /// Whether the checkpoint of an earlier run of the same training is resumed.
    pub resume: bool,
}

impl Checkpoint {
    /// The default time between two writes.
    pub const EVERY: Duration = Duration::from_secs(60);

    /// A checkpoint at this path, every minute, that is resumed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            every: Self::EVERY,
            resume: true,
        }
    }

    /// Removes the file, if there is one and it is a checkpoint: the model is saved.
    pub fn remove(&self) {
        if let Ok(true) = file::is_checkpoint(&self.path) {
            // A checkpoint that stays behind does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A gap, and whether it is certified.
pub(crate) type RecordedGap = (f64, bool);

/// A step as it was taken, in external feature indices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedStep {
    pub(crate) step: Step,
    /// γ, also of a step that removes an atom and does not contain it.
    pub(crate) gamma: f64,
    /// <D, -∇f> of its direction D; of a pairwise step, the larger one of D_F and D_A.
    pub(crate) rate: f64,
    /// f and the gap of the iterate before, as the trace has them.
    pub(crate) before: (f64, RecordedGap),
    /// The gap that was computed last at that iterate.
    pub(crate) gap: RecordedGap,
    /// f after the step.
    pub(crate) objective: f64,
    /// Seconds of the solver so far.
    pub(crate) seconds: f64,
}

/// The state of the search for atoms after the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SearchState {
    /// The position in the stream of random numbers.
    pub(crate) random_position: u128,
    pub(crate) oracle: OracleState,
}

/// What the linear minimization oracle remembers of earlier iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OracleState {
    /// The first iteration in which the heuristic may call the exact oracle again.
    pub(crate) next_certificate: usize,
    /// A feature from which the last search found no atom that was used, by its internal index, and the first iteration in
    /// which a search may start from it again.
    pub(crate) resting: Option<u32>,
    pub(crate) rests_until: usize,
    /// The running mean of the decrease of f by a step to the atom that a search found, 0 if it was not new. Infinite before the
    /// first search.
    pub(crate) mean_decrease: f64,
    /// Iterations without a search since the last one.
    pub(crate) n_skipped: usize,
    /// Searches in a row that did not start from an active feature and found no new atom along which f decreases, up to the number
    /// from which the oracle starts from active features.
    pub(crate) n_without_new: usize,
}

impl Default for OracleState {
    fn default() -> Self {
        Self {
            next_certificate: 0,
            resting: None,
            rests_until: 0,
            mean_decrease: f64::INFINITY,
            n_skipped: 0,
            n_without_new: 0,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunEnd {
    /// f and the gap of the last iterate.
    pub(crate) last: (f64, RecordedGap),
    /// The name of the reason.
    pub(crate) stop: String,
    pub(crate) seconds: f64,
}

/// A run of the solver, as far as it got.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunRecord {
    pub(crate) start: Vec<(Atom, f64)>,
    pub(crate) steps: Vec<RecordedStep>,
    pub(crate) state: SearchState,
    /// Validation errors by iterate of all mining rounds.
    pub(crate) evaluations: Vec<(u32, f64)>,
    /// `None` if it did not end, or was ended by its observer.
    pub(crate) end: Option<RunEnd>,
}

impl RunRecord {
    /// Its path. An error if a step cannot be taken.
    pub(crate) fn path(&self) -> Result<AtomPath> {
        let steps = self.steps.iter().map(|recorded| recorded.step).collect();
        AtomPath::new(self.start.clone(), steps)
    }
}

/// Records the runs of a training and writes them to a file from time to time. An [`Observer`](crate::Observer) may have
/// one.
#[derive(Debug)]
pub struct Recorder {
    settings: Checkpoint,
    /// Configuration and data, in one line.
    training: String,
    /// Runs of the earlier training that were not asked for yet.
    known: VecDeque<RunRecord>,
    /// The steps in the file at the start.
    n_known: usize,
    /// Validation errors that the earlier training has computed, of the present run.
    known_errors: HashMap<u32, f64>,
    /// Whether the present run is taking recorded steps.
    replays: bool,
    runs: Vec<RunRecord>,
    /// The time of the last write, or of the start.
    last: Instant,
    /// Whether this training has written to the file.
    has_written: bool,
    /// A word about the file that the observer is to be told.
    note: Option<String>,
}

impl Recorder {
    /// The recorder of a training, which is described in one line. An error if there is something else at the path, or
    /// the checkpoint of another training.
    pub(crate) fn open(settings: &Checkpoint, training: String) -> Result<Self> {
        let mut recorder = Self {
            settings: settings.clone(),
            known: VecDeque::new(),
            n_known: 0,
            known_errors: HashMap::new(),
            replays: false,
            runs: Vec::new(),
            last: Instant::now(),
            has_written: false,
            note: None,
            training,
        };
        let path = &settings.path;
        if !file::is_checkpoint(path)? || !settings.resume {
            return Ok(recorder);
        }
        match file::read(path)? {
            Err(damage) => {
                let name = path.display();
                let note = format!("{name}: {damage}; the training starts again");
                recorder.note = Some(note);
            }
            Ok((other, _)) if other != recorder.training => {
                return Err(Error::file(
                    path,
                    "is the checkpoint of another training, with other data, options or another version; \
                     remove it, start again without resuming, or choose another output",
                ));
            }
            Ok((_, runs)) => {
                recorder.n_known = runs.iter().map(|run| run.steps.len()).sum();
                recorder.known = runs.into();
                recorder.has_written = true;
                let name = path.display();
                let n = recorder.n_known;
                let note = format!("{name}: going on after {n} recorded iterations");
                recorder.note = (n > 0).then_some(note);
            }
        }
        Ok(recorder)
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.settings.path
    }

    /// What is to be told about the file, once.
    pub(crate) fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    /// The next run of the training begins. Returns what is known of it.
    pub(crate) fn begin_run(&mut self) -> Option<RunRecord> {
        let known = self.known.pop_front();
        self.runs.push(RunRecord::default());
        self.known_errors = (known.iter().flat_map(|run| &run.evaluations))
            .copied()
            .collect();
        self.replays = known.is_some();
        known
    }

    /// The run starts here.
    pub(crate) fn start_run(&mut self, start: &[(Atom, f64)]) {
        if let Some(run) = self.runs.last_mut() {
            run.start = start.to_vec();
        }
    }

    /// All recorded steps of the run have been taken again.
    pub(crate) fn end_replay(&mut self, state: SearchState) {
        self.replays = false;
        if let Some(run) = self.runs.last_mut() {
            run.state = state;
        }
    }

    /// A step was taken. Writes the file if that is due.
    pub(crate) fn record(&mut self, step: RecordedStep, state: SearchState) {
        if let Some(run) = self.runs.last_mut() {
            run.steps.push(step);
            run.state = state;
        }
        if self.last.elapsed() >= self.settings.every {
            self.write();
        }
    }

    /// The run has ended by itself.
    pub(crate) fn end_run(&mut self, end: RunEnd) {
        self.replays = false;
        if let Some(run) = self.runs.last_mut() {
            run.end = Some(end);
        }
    }

    /// The validation error of an iterate, if the earlier training has computed it.
    pub(crate) fn known_error(&self, iterate: u32) -> Option<f64> {
        self.known_errors.get(&iterate).copied()
    }

    /// The validation error of an iterate was computed.
    pub(crate) fn evaluated(&mut self, iterate: u32, error: f64) {
        if let Some(run) = self.runs.last_mut() {
            run.evaluations.push((iterate, error));
        }
    }

    /// Brings the file up to date, if there is one: the training was interrupted.
    pub(crate) fn interrupted(&mut self) {
        if self.has_written {
            self.write();
        }
    }

    fn write(&mut self) {
        // While recorded steps are taken again, the file knows more.
        if self.replays || !self.known.is_empty() {
            return;
        }
        // A disk that is full now may have room at the next time.
        match file::write(&self.settings.path, &self.training, &self.runs) {
            Ok(()) => self.has_written = true,
            Err(error) => self.note = Some(format!("{error}; the training goes on without")),
        }
        self.last = Instant::now();
    }
}
