//! The journal: finished jobs in a file beside the output, so that a search that was killed can be resumed.
//!
//! One line of JSON for what is searched, then one for each round of a trial on a fold, written when it is done. A last
//! line that was cut short is dropped.

use super::trial::Round;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Which round of which configuration on which fold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Job {
    /// Whether on a sample of the rows.
    pub(super) sampled: bool,
    pub(super) configuration: String,
    pub(super) fold: usize,
    pub(super) round: usize,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    /// What is searched.
    search: String,
}

/// Every other line.
#[derive(Serialize, Deserialize)]
struct Entry {
    job: Job,
    result: Round,
    /// Seconds of the search so far, over all its runs.
    spent: f64,
}

pub(super) struct Journal {
    file: Option<(PathBuf, File)>,
    finished: HashMap<Job, Round>,
    /// Seconds spent by earlier runs of the search.
    pub(super) spent: f64,
}

impl Journal {
    /// A journal that records nothing.
    pub(super) fn none() -> Self {
        Self {
            file: None,
            finished: HashMap::new(),
            spent: 0.0,
        }
    }

    /// The journal at `path`: that of an earlier run if there is one, a new one if not. `search` says what is searched; a
    /// journal of another search is an error.
    pub(super) fn open(path: &Path, search: &str) -> Result<Self> {
        Self::resume(path, search)
            .map_err(|error| cannot_write(path, error))?
            .ok_or_else(|| {
                Error::Data(format!(
                    "{} is the journal of another search, with other data or parameters: remove it, or choose another output",
                    path.display()
                ))
            })
    }

    /// None if the journal is that of another search.
    fn resume(path: &Path, search: &str) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path)?;
        let text = std::fs::read(path)?;
        let mut journal = Self::none();
        let mut lines = text.split_inclusive(|&byte| byte == b'\n');
        let mut good = 0;
        if let Some(first) = lines.next().filter(|line| line.ends_with(b"\n")) {
            if parse::<Header>(first).is_none_or(|header| header.search != search) {
                return Ok(None);
            }
            good += first.len();
            for line in lines {
                let Some(entry) = parse::<Entry>(line) else {
                    break;
                };
                good += line.len();
                journal.spent = entry.spent;
                journal.finished.insert(entry.job, entry.result);
            }
        }
        file.set_len(good as u64)?;
        file.seek(SeekFrom::Start(good as u64))?;
        if good == 0 {
            let search = search.to_owned();
            file.write_all(&line(&Header { search }))?;
        }
        file.sync_data()?;
        journal.file = Some((path.to_owned(), file));
        Ok(Some(journal))
    }

    /// The result of a job, if an earlier run did it.
    pub(super) fn finished(&self, job: &Job) -> Option<&Round> {
        self.finished.get(job)
    }

    /// How many jobs earlier runs did.
    pub(super) fn len(&self) -> usize {
        self.finished.len()
    }

    /// Records a finished job.
    pub(super) fn record(&mut self, job: Job, result: &Round, spent: f64) -> Result<()> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let entry = Entry {
            job,
            result: result.clone(),
            spent,
        };
        // One write, so that a kill leaves a whole line or the beginning of one.
        file.write_all(&line(&entry))
            .and_then(|()| file.sync_data())
            .map_err(|error| cannot_write(path, error))
    }

    /// Removes the file: the search is over.
    pub(super) fn remove(self) {
        if let Some((path, _)) = self.file {
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

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("plain data becomes JSON");
    line.push(b'\n');
    line
}

/// A whole line.
fn parse<T: for<'de> Deserialize<'de>>(line: &[u8]) -> Option<T> {
    let line = line.strip_suffix(b"\n")?;
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::trial::Checkpoint;

    fn job(round: usize) -> Job {
        Job {
            sampled: false,
            configuration: "unit random:20 100 smoothed-hinge".into(),
            fold: 2,
            round,
        }
    }

    fn result() -> Round {
        Round {
            checkpoints: vec![Checkpoint {
                iteration: 10,
                atoms: 3,
                features: 5,
                wrong: vec![vec![0, 7], vec![]],
            }],
            seconds: 0.25,
            may_continue: true,
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
        assert_eq!((again.len(), again.spent), (2, 2.5));
        assert_eq!(again.finished(&job(1)), Some(&result()));
        drop(again);
        assert_eq!(std::fs::read(&path).unwrap(), whole);

        // A kill in the middle of the second line, then more work.
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let mut cut = Journal::open(&path, "this").unwrap();
        assert_eq!((cut.len(), cut.spent), (1, 1.5));
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
