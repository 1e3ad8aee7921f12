//! The file of a checkpoint: a line that names the format, the rest in little-endian binary with a checksum at the end.
//!
//! | part | contents |
//! |---|---|
//! | first line | `hdsl checkpoint 4` |
//! | training | its length in bytes (u32), and one line about configuration and data |
//! | runs | their number (u32), then each: start, steps, state of the search, validation errors, end |
//! | checksum | the CRC-32 of everything before (u32) |

use super::{OracleState, RecordedGap, RecordedStep, RunEnd, RunRecord, SearchState};
use crate::atoms::{Atom, Sign, Step};
use crate::data::OutputFile;
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// How a checkpoint of this version begins.
#[doc(hidden)]
pub const FIRST_LINE: &[u8] = b"hdsl checkpoint 4\n";
/// How a checkpoint of any version begins.
const MAGIC: &[u8] = b"hdsl checkpoint ";

/// Whether there is a checkpoint at the path: false if there is nothing. Anything else is an error, because it must not
/// be overwritten: a link, a folder, another file.
pub(super) fn is_checkpoint(path: &Path) -> Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::read(path, error)),
    };
    let is_ours = || -> io::Result<bool> {
        let mut first = Vec::new();
        let limit = MAGIC.len() as u64;
        File::open(path)?.take(limit).read_to_end(&mut first)?;
        Ok(first == MAGIC)
    };
    if metadata.is_file() && is_ours().map_err(|error| Error::read(path, error))? {
        return Ok(true);
    }
    Err(Error::file(
        path,
        "is in the way of the checkpoint and is none; move it away, or choose another output",
    ))
}

/// What is known of each run, and the training they belong to.
type Contents = (String, Vec<RunRecord>);

/// The contents of a checkpoint, or what is wrong with it.
pub(super) fn read(path: &Path) -> Result<std::result::Result<Contents, String>> {
    let bytes = fs::read(path).map_err(|error| Error::read(path, error))?;
    Ok(parse(&bytes))
}

/// Reads a checkpoint, for tests of the format: the training it belongs to and its number of steps.
#[doc(hidden)]
pub fn inspect(bytes: &[u8]) -> std::result::Result<(String, usize), String> {
    let (training, runs) = parse(bytes)?;
    Ok((training, runs.iter().map(|run| run.steps.len()).sum()))
}

/// Replaces the file at once.
pub(super) fn write(path: &Path, training: &str, runs: &[RunRecord]) -> Result<()> {
    is_checkpoint(path)?;
    let bytes = to_bytes(training, runs);
    let mut out = OutputFile::create(path)?;
    out.fill(|out| out.write_all(&bytes))?;
    out.commit()
}

fn to_bytes(training: &str, runs: &[RunRecord]) -> Vec<u8> {
    let mut out = Out(FIRST_LINE.to_vec());
    out.text(training);
    out.count(runs.len());
    for run in runs {
        out.count(run.start.len());
        for &(atom, weight) in &run.start {
            out.atom(atom);
            out.number(weight);
        }
        out.count(run.steps.len());
        run.steps.iter().for_each(|step| out.step(step));
        out.bytes(&run.state.random_position.to_le_bytes());
        let OracleState {
            next_certificate,
            resting,
            rests_until,
            mean_decrease,
            n_skipped,
            n_without_new,
        } = run.state.oracle;
        out.bytes(&(next_certificate as u64).to_le_bytes());
        out.byte(u8::from(resting.is_some()));
        out.bytes(&resting.unwrap_or_default().to_le_bytes());
        out.bytes(&(rests_until as u64).to_le_bytes());
        out.number(mean_decrease);
        out.bytes(&(n_skipped as u64).to_le_bytes());
        out.bytes(&(n_without_new as u64).to_le_bytes());
        out.count(run.evaluations.len());
        for &(iterate, error) in &run.evaluations {
            out.bytes(&iterate.to_le_bytes());
            out.number(error);
        }
        out.byte(u8::from(run.end.is_some()));
        if let Some(end) = &run.end {
            out.facts(end.last);
            out.text(&end.stop);
            out.number(end.seconds);
        }
    }
    let sum = crc32fast::hash(&out.0);
    out.bytes(&sum.to_le_bytes());
    out.0
}

struct Out(Vec<u8>);

impl Out {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn count(&mut self, n: usize) {
        let n = u32::try_from(n).expect("there are fewer than 2^32 steps");
        self.bytes(&n.to_le_bytes());
    }

    fn number(&mut self, x: f64) {
        self.bytes(&x.to_bits().to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes(text.as_bytes());
    }

    fn atom(&mut self, atom: Atom) {
        self.bytes(&atom.i().to_le_bytes());
        self.bytes(&atom.j().to_le_bytes());
        self.byte(u8::from(atom.sign() == Sign::Minus));
    }

    fn gap(&mut self, (gap, is_certified): RecordedGap) {
        self.number(gap);
        self.byte(u8::from(is_certified));
    }

    fn facts(&mut self, (objective, gap): (f64, RecordedGap)) {
        self.number(objective);
        self.gap(gap);
    }

    fn step(&mut self, recorded: &RecordedStep) {
        let (kind, atoms) = match recorded.step {
            Step::Forward { atom, .. } => (0, [Some(atom), None]),
            Step::Away { atom, .. } => (1, [Some(atom), None]),
            Step::Drop { atom } => (2, [Some(atom), None]),
            Step::Pairwise { to, from, .. } => (3, [Some(to), Some(from)]),
            Step::Swap { to, from } => (4, [Some(to), Some(from)]),
        };
        self.byte(kind);
        atoms.into_iter().flatten().for_each(|atom| self.atom(atom));
        self.number(recorded.gamma);
        self.number(recorded.rate);
        self.facts(recorded.before);
        self.gap(recorded.gap);
        self.number(recorded.objective);
        self.number(recorded.seconds);
    }
}

/// Checks everything that a resumed training relies on: lengths, values, and that every step can be taken.
fn parse(bytes: &[u8]) -> std::result::Result<Contents, String> {
    let damaged = || "is damaged".to_owned();
    let Some(rest) = bytes.strip_prefix(FIRST_LINE) else {
        return Err("is a checkpoint of another version".to_owned());
    };
    let (rest, sum) = rest.split_last_chunk::<4>().ok_or_else(damaged)?;
    let checked = &bytes[..bytes.len() - sum.len()];
    if crc32fast::hash(checked) != u32::from_le_bytes(*sum) {
        return Err(damaged());
    }
    let mut input = In(rest);
    let contents = input.contents().ok_or_else(damaged)?;
    if !input.0.is_empty() || contents.1.iter().any(|run| !is_sound(run)) {
        return Err(damaged());
    }
    Ok(contents)
}

/// Whether every step can be taken, with a length and a rate that are possible.
fn is_sound(run: &RunRecord) -> bool {
    let unstarted = run.start.is_empty() && run.steps.is_empty() && run.end.is_none();
    let numbers = run.steps.iter().flat_map(|step| [step.gamma, step.rate]);
    unstarted
        || (numbers
            .into_iter()
            .all(|number| number > 0.0 && number.is_finite())
            && run.seconds_are_sound()
            && run.path().is_ok())
}

impl RunRecord {
    fn seconds_are_sound(&self) -> bool {
        let of_steps = self.steps.iter().map(|step| step.seconds);
        let mut all = of_steps.chain(self.end.iter().map(|end| end.seconds));
        all.all(|seconds| (0.0..1e12).contains(&seconds))
    }
}

/// The bytes that are left. Every reader returns `None` where they end too early or have no meaning, and allocates no
/// more than they could fill.
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Option<f64> {
        self.take()
            .map(|bits| f64::from_bits(u64::from_le_bytes(bits)))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take::<1>()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let n = self.u32()? as usize;
        // Every entry takes a byte at least.
        if n > self.0.len() {
            return None;
        }
        let mut list = Vec::new();
        for _ in 0..n {
            list.push(one(self)?);
        }
        Some(list)
    }

    fn text(&mut self) -> Option<String> {
        let n = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn atom(&mut self) -> Option<Atom> {
        let (i, j, is_minus) = (self.u32()?, self.u32()?, self.flag()?);
        let sign = if is_minus { Sign::Minus } else { Sign::Plus };
        Atom::new(i, j, sign).ok().filter(|atom| atom.i() == i)
    }

    fn gap(&mut self) -> Option<RecordedGap> {
        Some((self.number()?, self.flag()?))
    }

    fn facts(&mut self) -> Option<(f64, RecordedGap)> {
        Some((self.number()?, self.gap()?))
    }

    fn step(&mut self) -> Option<RecordedStep> {
        let [kind] = self.take()?;
        let atom = self.atom()?;
        let other = if kind > 2 { Some(self.atom()?) } else { None };
        let gamma = self.number()?;
        let step = match (kind, other) {
            (0, None) => Step::Forward { atom, gamma },
            (1, None) => Step::Away { atom, gamma },
            (2, None) => Step::Drop { atom },
            (3, Some(from)) => Step::Pairwise {
                to: atom,
                from,
                gamma,
            },
            (4, Some(from)) => Step::Swap { to: atom, from },
            _ => return None,
        };
        Some(RecordedStep {
            step,
            gamma,
            rate: self.number()?,
            before: self.facts()?,
            gap: self.gap()?,
            objective: self.number()?,
            seconds: self.number()?,
        })
    }

    fn run(&mut self) -> Option<RunRecord> {
        Some(RunRecord {
            start: self.list(|input| Some((input.atom()?, input.number()?)))?,
            steps: self.list(Self::step)?,
            state: SearchState {
                random_position: self.take().map(u128::from_le_bytes)?,
                oracle: OracleState {
                    next_certificate: self.take().map(u64::from_le_bytes)?.try_into().ok()?,
                    resting: match (self.flag()?, self.u32()?) {
                        (true, feature) => Some(feature),
                        (false, _) => None,
                    },
                    rests_until: self.take().map(u64::from_le_bytes)?.try_into().ok()?,
                    mean_decrease: self.number()?,
                    n_skipped: self.take().map(u64::from_le_bytes)?.try_into().ok()?,
                    n_without_new: self.take().map(u64::from_le_bytes)?.try_into().ok()?,
                },
            },
            evaluations: self.list(|input| Some((input.u32()?, input.number()?)))?,
            end: match self.flag()? {
                false => None,
                true => Some(RunEnd {
                    last: self.facts()?,
                    stop: self.text()?,
                    seconds: self.number()?,
                }),
            },
        })
    }

    fn contents(&mut self) -> Option<Contents> {
        Some((self.text()?, self.list(Self::run)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunRecord {
        let [a, b] = [
            Atom::plus(0, 7).unwrap(),
            Atom::minus(3, 4_000_000_000).unwrap(),
        ];
        let recorded = |step, gamma| RecordedStep {
            step,
            gamma,
            rate: 0.7,
            before: (0.5, (0.25, false)),
            gap: (0.125, true),
            objective: 0.375,
            seconds: 1.5,
        };
        let forward = Step::Forward {
            atom: b,
            gamma: 0.1 + 0.2,
        };
        RunRecord {
            start: vec![(a, 1.0)],
            steps: vec![
                recorded(forward, 0.1 + 0.2),
                recorded(Step::Drop { atom: a }, 2.5),
            ],
            state: SearchState {
                random_position: u128::from(u64::MAX) + 17,
                oracle: OracleState {
                    next_certificate: 12,
                    resting: Some(4_000_000_000),
                    rests_until: 77,
                    mean_decrease: 0.3,
                    n_skipped: 3,
                    n_without_new: 40,
                },
            },
            evaluations: vec![(1, 0.75)],
            end: Some(RunEnd {
                last: (f64::INFINITY, (0.0, true)),
                stop: "max-iter".into(),
                seconds: 2.0,
            }),
        }
    }

    #[test]
    fn a_checkpoint_is_read_as_it_was_written() {
        let runs = vec![
            run(),
            RunRecord { end: None, ..run() },
            RunRecord::default(),
        ];
        let bytes = to_bytes("this training", &runs);
        assert_eq!(parse(&bytes), Ok(("this training".to_owned(), runs)));
    }

    /// Every flipped bit and every cut is noticed, with the checksum and, where that was mended, without a panic.
    #[test]
    fn damage_is_noticed() {
        let bytes = to_bytes("t", &[run()]);
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err());
        }
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                assert!(parse(&changed).is_err(), "byte {place}");
                let end = changed.len() - 4;
                let sum = crc32fast::hash(&changed[..end]);
                changed[end..].copy_from_slice(&sum.to_le_bytes());
                // With the right checksum anything may come out, but no panic.
                let _ = parse(&changed);
            }
        }
    }

    #[test]
    fn nothing_else_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.checkpoint");
        assert!(!is_checkpoint(&path).unwrap());
        fs::write(&path, "my own notes").unwrap();
        assert!(is_checkpoint(&path).is_err() && write(&path, "t", &[]).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"my own notes");
        fs::write(&path, "").unwrap();
        assert!(is_checkpoint(&path).is_err());
        fs::remove_file(&path).unwrap();
        write(&path, "t", &[]).unwrap();
        assert!(is_checkpoint(&path).unwrap());
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            assert!(is_checkpoint(&link).is_err() && write(&link, "t", &[]).is_err());
        }
    }

    /// The fuzzer begins with a whole checkpoint, which is within its limit of 256 bytes. `HDSL_BLESS=1` writes it anew.
    #[test]
    fn the_seed_of_the_fuzzer_is_a_checkpoint_of_this_version() {
        let seed =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/checkpoint/one_step");
        let mut run = run();
        run.steps.truncate(1);
        let bytes = to_bytes("a training", &[run]);
        let payload = &bytes[FIRST_LINE.len()..bytes.len() - 4];
        assert!(payload.len() < 256);
        if std::env::var_os("HDSL_BLESS").is_some() {
            fs::write(&seed, payload).unwrap();
        }
        assert!(fs::read(seed).unwrap() == payload);
    }
}
