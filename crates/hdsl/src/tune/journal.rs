//! The journal: finished jobs in a file beside the output, so that a search that was killed can be resumed.
//!
//! One line that says what is searched, then one of JSON for each segment of a trial on a fold, written when it is done.
//! Each has a checksum. Lines that were damaged or cut short are dropped.

use crate::data::OutputFile;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Which segment of which configuration on which fold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Job {
    /// Whether on a sample of the rows.
    pub(super) sampled: bool,
    pub(super) configuration: String,
    pub(super) fold: usize,
    /// The segments of the path up to this one, in words.
    pub(super) segments: String,
}

/// The result of a segment of one configuration on one fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) checkpoints: Vec<Checkpoint>,
    /// Seconds of training, of this segment alone.
    pub(super) seconds: f64,
    /// Whether no checkpoint is missing because it was cancelled.
    pub(super) is_whole: bool,
    /// Whether more iterations make sense: this segment used all of its own.
    pub(super) may_extend: bool,
    /// Whether a mining round makes sense.
    pub(super) may_mine: bool,
}

/// The losses at one iterate of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Iterations of the mining round that were allowed; the run may have ended before.
    pub(super) iteration: usize,
    pub(super) atoms: usize,
    pub(super) features: usize,
    /// For each prediction rule.
    pub(super) losses: Vec<Losses>,
}

/// The validation rows with a loss above 0, by their number among all folds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Losses {
    rows: Vec<u32>,
    /// The loss of each, from 0 to 1; empty if all are 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<f32>,
}

impl Losses {
    /// A loss of 1 for each of these rows.
    pub(super) fn wrong(rows: Vec<u32>) -> Self {
        Self {
            rows,
            sizes: Vec::new(),
        }
    }

    /// Losses of any size up to 1.
    pub(super) fn sized(losses: impl Iterator<Item = (u32, f64)>) -> Self {
        let above: Vec<(u32, f64)> = losses.filter(|loss| loss.1 > 0.0).collect();
        Self {
            rows: above.iter().map(|loss| loss.0).collect(),
            sizes: above.iter().map(|loss| loss.1 as f32).collect(),
        }
    }

    /// Rows and their losses.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let size = |at: usize| self.sizes.get(at).map_or(1.0, |&size| f64::from(size));
        (0..).zip(&self.rows).map(move |(at, &row)| (row, size(at)))
    }

    /// The sum of all losses.
    pub(super) fn sum(&self) -> f64 {
        // Not `sum`, which is -0.0 without losses.
        self.iter().fold(0.0, |sum, loss| sum + loss.1)
    }

    /// Adds the losses of other rows.
    pub(super) fn append(&mut self, other: &Losses) {
        self.rows.extend_from_slice(&other.rows);
        self.sizes.extend_from_slice(&other.sizes);
    }
}

/// A job with its result, and the seconds of the search so far over all its runs.
type Entry = (Job, Segment, f64);

/// How the first line of a journal begins.
const MAGIC: &str = "hdsl journal 2 ";

/// The limits that results must keep, so that a search can use them: those of the present search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Validation rows of all folds, with repetitions.
    pub(super) n_rows: usize,
    /// Prediction rules.
    pub(super) n_rules: usize,
}

/// Without a file it records nothing.
#[derive(Default)]
pub(super) struct Journal {
    file: Option<(PathBuf, File)>,
    /// All finished jobs, also those of earlier runs.
    pub(super) finished: HashMap<Job, Segment>,
    /// Seconds spent by earlier runs of the search.
    pub(super) spent: f64,
    /// Whether this search has created the file.
    is_new: bool,
    /// A word about the file that the observer is to be told.
    note: Option<String>,
}

impl Journal {
    /// The journal at `path`: that of an earlier run if there is one, a new one if not. `search` says in one line what is
    /// searched; a journal of another search is an error, and so is anything that is no journal. Damaged lines are
    /// dropped. The file is locked until the journal is dropped.
    pub(super) fn open(path: &Path, search: &str, limits: Limits) -> Result<Self> {
        let failed = |error| cannot_write(path, error);
        let mut journal = Self::default();
        let first = format!("{MAGIC}{search}");
        if !is_journal(path)? {
            journal.is_new = true;
            replace(path, &format!("{}\n", summed(&first)))?;
        }
        let mut file = open_locked(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let mut lines = text.split_inclusive(|&byte| byte == b'\n');
        match lines.next().and_then(checked) {
            Some(line) if line == first => {}
            Some(_) => {
                return Err(Error::file(
                    path,
                    "is the journal of another search, with other data or parameters: remove it, or choose another output",
                ));
            }
            None => {
                return Err(Error::file(
                    path,
                    "is a journal whose first line is damaged: remove it, or choose another output",
                ));
            }
        }
        let (mut good, mut n_dropped) = (format!("{}\n", summed(&first)), 0);
        for line in lines {
            let entry = checked(line)
                .and_then(|line| serde_json::from_slice::<Entry>(line.as_bytes()).ok());
            match entry.filter(|entry| is_sound(entry, limits)) {
                Some((job, result, spent)) => {
                    good += &String::from_utf8_lossy(line);
                    journal.spent = journal.spent.max(spent);
                    journal.finished.insert(job, result);
                }
                None => n_dropped += 1,
            }
        }
        if n_dropped > 0 {
            // The lock is on the file that is replaced.
            drop(file);
            replace(path, &good)?;
            file = open_locked(path)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
            let lines = if n_dropped == 1 { "line" } else { "lines" };
            let name = path.display();
            journal.note = Some(format!(
                "{name}: {n_dropped} damaged {lines} dropped; their trials are run again"
            ));
        }
        journal.file = Some((path.to_owned(), file));
        Ok(journal)
    }

    /// What is to be told about the file, once.
    pub(super) fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    /// Records a finished job. A journal that cannot be written is given up with a note: the search goes on without.
    pub(super) fn record(&mut self, job: Job, result: &Segment, spent: f64) {
        let line = serde_json::to_string(&(&job, result, spent)).expect("plain data becomes JSON");
        self.finished.insert(job, result.clone());
        let Some((path, file)) = &mut self.file else {
            return;
        };
        // One write, so that a kill leaves a whole line or the beginning of one.
        let line = format!("{}\n", summed(&line));
        let written = file
            .write_all(line.as_bytes())
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            let error = cannot_write(path, error);
            self.note = Some(format!(
                "{error}; the search goes on, but cannot be resumed from here"
            ));
            self.file = None;
        }
    }

    /// Removes a file that this search has created and that contains nothing: the search was refused.
    pub(super) fn remove_if_empty(&mut self) {
        if let Some((path, _)) = self.file.take()
            && self.is_new
            && self.finished.is_empty()
        {
            // A journal that stays behind does no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes the journal of a search whose result is saved. Anything else is left alone.
pub fn remove_journal(path: &Path) {
    if let Ok(true) = is_journal(path) {
        // A journal that stays behind does no harm: its search is done.
        let _ = std::fs::remove_file(path);
    }
}

/// Whether there is a journal at the path: false if there is nothing. Anything else is an error, because it must not be
/// overwritten: a link, a folder, another file.
fn is_journal(path: &Path) -> Result<bool> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::read(path, error)),
    };
    // A checksum of eight digits and a blank stand before it.
    let is_ours = || -> io::Result<bool> {
        let mut first = Vec::new();
        let limit = 9 + MAGIC.len() as u64;
        File::open(path)?.take(limit).read_to_end(&mut first)?;
        Ok(first.get(9..) == Some(MAGIC.as_bytes()))
    };
    if metadata.is_file() && is_ours().map_err(|error| Error::read(path, error))? {
        return Ok(true);
    }
    Err(Error::file(
        path,
        "is in the way of the journal and is none; move it away, or choose another output",
    ))
}

/// A line with its checksum before it.
fn summed(line: &str) -> String {
    format!("{:08x} {line}", crc32fast::hash(line.as_bytes()))
}

/// A line whose checksum is right, without it. A line that was cut short has no end.
fn checked(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (sum, line) = line.split_once(' ')?;
    let right = format!("{:08x}", crc32fast::hash(line.as_bytes()));
    (sum == right).then_some(line)
}

/// Whether the losses are of rows and rules of this search, and possible.
fn is_sound((_, segment, spent): &Entry, limits: Limits) -> bool {
    let is_time = |seconds: f64| (0.0..1e12).contains(&seconds);
    let sound = |losses: &Losses| {
        (losses.sizes.is_empty() || losses.sizes.len() == losses.rows.len())
            && losses
                .rows
                .iter()
                .all(|&row| (row as usize) < limits.n_rows)
            && losses.sizes.iter().all(|size| (0.0..=1.0).contains(size))
    };
    let sound = |checkpoint: &Checkpoint| {
        checkpoint.losses.len() <= limits.n_rules && checkpoint.losses.iter().all(sound)
    };
    is_time(*spent) && is_time(segment.seconds) && segment.checkpoints.iter().all(sound)
}

/// Writes the whole file at once, so that it is never without its first line.
fn replace(path: &Path, text: &str) -> Result<()> {
    let mut out = OutputFile::create(path)?;
    out.fill(|out| out.write_all(text.as_bytes()))?;
    out.commit()
}

/// Opens the file and locks it against other searches.
fn open_locked(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).append(true).open(path);
    let file = file.map_err(|error| cannot_write(path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::file(
            path,
            "is in use by another search: wait for its end, or choose another output",
        )),
        // Where files cannot be locked.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

fn cannot_write(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

/// Reads a journal of any search, for tests of the format: the number of its jobs.
#[doc(hidden)]
pub fn inspect_journal(path: &Path, search: &str) -> Result<usize> {
    let limits = Limits {
        n_rows: 1000,
        n_rules: 100,
    };
    Journal::open(path, search, limits).map(|journal| journal.finished.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        n_rows: 10,
        n_rules: 2,
    };

    fn job(segment: usize) -> Job {
        Job {
            sampled: false,
            configuration: "unit random:20 100 smoothed-hinge".into(),
            fold: 2,
            segments: format!("{segment}"),
        }
    }

    fn result() -> Segment {
        Segment {
            checkpoints: vec![Checkpoint {
                iteration: 10,
                atoms: 3,
                features: 5,
                losses: vec![Losses::wrong(vec![0, 7]), Losses::default()],
            }],
            seconds: 0.25,
            is_whole: true,
            may_extend: true,
            may_mine: false,
        }
    }

    #[test]
    fn a_journal_is_resumed_without_a_line_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.hdsl.tune");
        let mut journal = Journal::open(&path, "this", LIMITS).unwrap();
        journal.record(job(0), &result(), 1.5);
        journal.record(job(1), &result(), 2.5);
        drop(journal);
        let whole = std::fs::read(&path).unwrap();

        let again = Journal::open(&path, "this", LIMITS).unwrap();
        assert_eq!((again.finished.len(), again.spent), (2, 2.5));
        assert_eq!(again.finished.get(&job(1)), Some(&result()));
        drop(again);
        assert_eq!(std::fs::read(&path).unwrap(), whole);

        // A kill in the middle of the second line, then more work.
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let mut cut = Journal::open(&path, "this", LIMITS).unwrap();
        assert_eq!((cut.finished.len(), cut.spent), (1, 1.5));
        cut.record(job(1), &result(), 2.5);
        drop(cut);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        remove_journal(&path);
        assert!(!path.exists());
    }

    /// A line that was changed in the middle is dropped, and no other.
    #[test]
    fn a_damaged_line_is_dropped_with_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.hdsl.tune");
        let mut journal = Journal::open(&path, "this", LIMITS).unwrap();
        (0..3).for_each(|segment| journal.record(job(segment), &result(), 1.5));
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] == b'\n').collect();
        for at in ends[1] + 1..ends[2] {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            let mut journal = Journal::open(&path, "this", LIMITS).unwrap();
            assert_eq!(journal.finished.len(), 2, "byte {at}");
            assert!(!journal.finished.contains_key(&job(1)));
            let note = journal.take_note().unwrap();
            assert!(note.contains("1 damaged line dropped"), "{note}");
            journal.record(job(1), &result(), 1.5);
            drop(journal);
            let again = Journal::open(&path, "this", LIMITS).unwrap();
            assert_eq!(again.finished.len(), 3);
        }
        for at in 0..ends[0] {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            assert!(Journal::open(&path, "this", LIMITS).is_err(), "byte {at}");
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }

    /// What another program wrote, or what a link points to, is not touched.
    #[test]
    fn nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.hdsl.tune");
        for own in ["", "my own notes\n", "hdsl journal 2 "] {
            std::fs::write(&path, own).unwrap();
            let refusal = Journal::open(&path, "this", LIMITS).err().unwrap();
            assert!(refusal.to_string().contains("m.hdsl.tune"), "{refusal}");
            remove_journal(&path);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), own);
        }
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(folder.path().join("absent"), &link).unwrap();
            assert!(Journal::open(&link, "this", LIMITS).is_err());
            assert!(!folder.path().join("absent").exists());
        }
    }

    #[test]
    fn a_second_search_is_locked_out_and_an_empty_journal_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.hdsl.tune");
        let mut journal = Journal::open(&path, "this", LIMITS).unwrap();
        let refusal = Journal::open(&path, "this", LIMITS).err().unwrap();
        assert!(refusal.to_string().contains("in use"), "{refusal}");
        journal.remove_if_empty();
        assert!(!path.exists());
        let mut journal = Journal::open(&path, "this", LIMITS).unwrap();
        journal.record(job(0), &result(), 1.5);
        journal.remove_if_empty();
        assert!(path.exists());
    }

    #[test]
    fn another_search_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.hdsl.tune");
        Journal::open(&path, "this", LIMITS).unwrap();
        let refusal = Journal::open(&path, "that", LIMITS)
            .err()
            .unwrap()
            .to_string();
        assert!(refusal.contains("m.hdsl.tune"), "{refusal}");
    }
}
