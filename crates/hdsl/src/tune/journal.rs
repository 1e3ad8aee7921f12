//! What is finished, kept in a file beside the output, so that a search that was killed goes on where it was.
//!
//! A line of JSON for what is searched, then one for each round of a setting on a fold, written when it is done. A last
//! line that was cut short is dropped.

use super::trial::{Judged, Look};
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Which round of which setting on which fold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    /// Whether on a sample of the rows, for a first impression.
    pub(super) scouting: bool,
    pub(super) setting: String,
    pub(super) fold: usize,
    pub(super) round: usize,
}

pub(super) struct Journal {
    file: Option<(PathBuf, File)>,
    finished: HashMap<Job, Judged>,
    /// Seconds spent before, in all.
    pub(super) spent: f64,
}

impl Journal {
    /// Nothing is kept.
    pub(super) fn none() -> Self {
        Self {
            file: None,
            finished: HashMap::new(),
            spent: 0.0,
        }
    }

    /// The journal of a search at `path`: that of an earlier one if there is one, a new one if not. `search` says what is
    /// searched; a journal of another search is an error.
    pub(super) fn open(path: &Path, search: &str) -> Result<Self> {
        let io = |source| Error::Write {
            path: path.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        let text = std::fs::read(path).map_err(io)?;
        let mut journal = Self::none();
        let mut lines = Lines::of(&text);
        match lines.next() {
            None => {
                file.set_len(0).map_err(io)?;
                let header = json!({ "hdsl-tune": 1, "search": search });
                writeln!(file, "{header}").map_err(io)?;
            }
            Some(header) if header["search"] == search => {
                while let Some(line) = lines.next() {
                    let Some((job, judged, spent)) = parse(&line) else {
                        break;
                    };
                    journal.spent = spent;
                    journal.finished.insert(job, judged);
                    lines.good = lines.at;
                }
                file.set_len(lines.good as u64).map_err(io)?;
                file.seek(SeekFrom::Start(lines.good as u64)).map_err(io)?;
            }
            Some(_) => {
                return Err(Error::Data(format!(
                    "{} is of another search, with other data or other settings: remove it, or choose another output",
                    path.display()
                )));
            }
        }
        file.sync_data().map_err(io)?;
        journal.file = Some((path.to_owned(), file));
        Ok(journal)
    }

    /// How a job went, if it was done before.
    pub(super) fn finished(&self, job: &Job) -> Option<&Judged> {
        self.finished.get(job)
    }

    /// How many jobs were done before.
    pub(super) fn len(&self) -> usize {
        self.finished.len()
    }

    /// Keeps a finished job.
    pub(super) fn keep(&mut self, job: &Job, judged: &Judged, spent: f64) -> Result<()> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let looks: Vec<Value> = judged
            .looks
            .iter()
            .map(|l| json!([l.iteration, l.atoms, l.features, l.wrong]))
            .collect();
        let line = json!({
            "scouting": job.scouting,
            "setting": job.setting,
            "fold": job.fold,
            "round": job.round,
            "seconds": judged.seconds,
            "goes_on": judged.goes_on,
            "spent": spent,
            "looks": looks,
        });
        // One write, so that a kill leaves a whole line or the beginning of one.
        file.write_all(format!("{line}\n").as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|source| Error::Write {
                path: path.clone(),
                source,
            })
    }

    /// The search is over.
    pub(super) fn remove(self) {
        if let Some((path, _)) = self.file {
            // A journal that stays behind does no harm: it is of a search that is done.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whole lines that are JSON.
struct Lines<'a> {
    text: &'a [u8],
    /// Where the next line begins.
    at: usize,
    /// Up to where all is well.
    good: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            good: 0,
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Value;
    fn next(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let end = memchr::memchr(b'\n', rest)?;
        let value = serde_json::from_slice(&rest[..end]).ok()?;
        if self.at == 0 {
            self.good = end + 1;
        }
        self.at += end + 1;
        Some(value)
    }
}

fn parse(line: &Value) -> Option<(Job, Judged, f64)> {
    let number = |value: &Value| value.as_u64().map(|n| n as usize);
    let job = Job {
        scouting: line["scouting"].as_bool()?,
        setting: line["setting"].as_str()?.to_owned(),
        fold: number(&line["fold"])?,
        round: number(&line["round"])?,
    };
    let rows = |list: &Value| -> Option<Vec<u32>> {
        let rows = list.as_array()?.iter();
        rows.map(|row| u32::try_from(row.as_u64()?).ok()).collect()
    };
    let look = |look: &Value| {
        let wrong: Option<Vec<Vec<u32>>> = look[3].as_array()?.iter().map(rows).collect();
        Some(Look {
            iteration: number(&look[0])?,
            atoms: number(&look[1])?,
            features: number(&look[2])?,
            wrong: wrong?,
        })
    };
    let looks: Option<Vec<Look>> = line["looks"].as_array()?.iter().map(look).collect();
    let judged = Judged {
        looks: looks?,
        seconds: line["seconds"].as_f64()?,
        goes_on: line["goes_on"].as_bool()?,
    };
    Some((job, judged, line["spent"].as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(round: usize) -> Job {
        Job {
            scouting: false,
            setting: "unit random:20 100 smoothed-hinge".into(),
            fold: 2,
            round,
        }
    }

    fn judged() -> Judged {
        Judged {
            looks: vec![Look {
                iteration: 10,
                atoms: 3,
                features: 5,
                wrong: vec![vec![0, 7], vec![]],
            }],
            seconds: 0.25,
            goes_on: true,
        }
    }

    #[test]
    fn what_was_kept_is_there_again_but_for_a_line_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.hdsl.tune");
        let mut journal = Journal::open(&path, "this").unwrap();
        journal.keep(&job(0), &judged(), 1.5).unwrap();
        journal.keep(&job(1), &judged(), 2.5).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();

        let again = Journal::open(&path, "this").unwrap();
        assert_eq!((again.len(), again.spent), (2, 2.5));
        assert_eq!(again.finished(&job(1)), Some(&judged()));
        drop(again);
        assert_eq!(std::fs::read(&path).unwrap(), whole);

        // A kill in the middle of the second line, then more work.
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let mut cut = Journal::open(&path, "this").unwrap();
        assert_eq!((cut.len(), cut.spent), (1, 1.5));
        cut.keep(&job(1), &judged(), 2.5).unwrap();
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
