//! The journal: finished jobs in a file beside the output, so that a search that was killed can be resumed.
//!
//! One line that says what is searched, then one of JSON for each segment of a trial on a fold, written when it is done. A
//! last line that was cut short is dropped.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
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

/// Without a file it records nothing.
#[derive(Default)]
pub(super) struct Journal {
    file: Option<(PathBuf, File)>,
    /// All finished jobs, also those of earlier runs.
    pub(super) finished: HashMap<Job, Segment>,
    /// Seconds spent by earlier runs of the search.
    pub(super) spent: f64,
}

impl Journal {
    /// The journal at `path`: that of an earlier run if there is one, a new one if not. `search` says in one line what is
    /// searched; a journal of another search is an error.
    pub(super) fn open(path: &Path, search: &str) -> Result<Self> {
        let mut journal = Self::default();
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path);
        let mut file = file.map_err(|error| cannot_write(path, error))?;
        let mut text = Vec::new();
        let read = file.read_to_end(&mut text);
        read.map_err(|error| cannot_write(path, error))?;
        let mut lines = text.split_inclusive(|&byte| byte == b'\n');
        let mut good = 0;
        match lines.next().and_then(|first| first.strip_suffix(b"\n")) {
            Some(first) if first == search.as_bytes() => {
                good = first.len() + 1;
                for line in lines {
                    let entry = line.strip_suffix(b"\n").map(serde_json::from_slice);
                    let Some(Ok::<Entry, _>((job, result, spent))) = entry else {
                        break;
                    };
                    good += line.len();
                    journal.spent = spent;
                    journal.finished.insert(job, result);
                }
            }
            Some(_) => {
                return Err(Error::data(format!(
                    "{} is the journal of another search, with other data or parameters: remove it, or choose another output",
                    path.display()
                )));
            }
            None => {}
        }
        let cut = file.set_len(good as u64);
        cut.map_err(|error| cannot_write(path, error))?;
        journal.file = Some((path.to_owned(), file));
        if good == 0 {
            journal.write(search.to_owned())?;
        }
        Ok(journal)
    }

    /// Records a finished job.
    pub(super) fn record(&mut self, job: Job, result: &Segment, spent: f64) -> Result<()> {
        let line = serde_json::to_string(&(&job, result, spent)).expect("plain data becomes JSON");
        self.finished.insert(job, result.clone());
        self.write(line)
    }

    /// One write, so that a kill leaves a whole line or the beginning of one.
    fn write(&mut self, mut line: String) -> Result<()> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        line.push('\n');
        file.write_all(line.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|error| cannot_write(path, error))
    }

    /// Removes the file: the search is over.
    pub(super) fn remove(&self) {
        if let Some((path, _)) = &self.file {
            // A journal that stays behind does no harm: its search is done.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn cannot_write(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut journal = Journal::open(&path, "this").unwrap();
        journal.record(job(0), &result(), 1.5).unwrap();
        journal.record(job(1), &result(), 2.5).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();

        let again = Journal::open(&path, "this").unwrap();
        assert_eq!((again.finished.len(), again.spent), (2, 2.5));
        assert_eq!(again.finished.get(&job(1)), Some(&result()));
        drop(again);
        assert_eq!(std::fs::read(&path).unwrap(), whole);

        // A kill in the middle of the second line, then more work.
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let mut cut = Journal::open(&path, "this").unwrap();
        assert_eq!((cut.finished.len(), cut.spent), (1, 1.5));
        cut.record(job(1), &result(), 2.5).unwrap();
        drop(cut);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        Journal::open(&path, "this").unwrap().remove();
        assert!(!path.exists());
    }

    #[test]
    fn another_search_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.hdsl.tune");
        Journal::open(&path, "this").unwrap();
        let refusal = Journal::open(&path, "that").err().unwrap().to_string();
        assert!(refusal.contains("m.hdsl.tune"), "{refusal}");
    }
}
