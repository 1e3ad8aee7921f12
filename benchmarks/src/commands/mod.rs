//! One file per command.

pub(crate) mod count;
pub(crate) mod index;
pub(crate) mod knn;
pub(crate) mod limits;
pub(crate) mod read;
pub(crate) mod split;
pub(crate) mod synthesize;
pub(crate) mod trace;

use hdsl::data::{OutputFile, write_svmlight};
use hdsl::{Dataset, Labels, ReadOptions, read_dataset};
use std::path::Path;
use std::time::Instant;

pub(crate) type Failure = Box<dyn std::error::Error>;

/// Reads labeled rows whose feature indices start at the same base as those of `like`.
fn labeled(path: &Path, like: Option<&Dataset>) -> Result<(Dataset, Labels), Failure> {
    let options = ReadOptions {
        index_base: like.map(|data| data.index_base),
        ..ReadOptions::default()
    };
    let data = read_dataset(path, &options)?;
    let labels = data.labels.clone();
    Ok((data, labels.ok_or("the rows have no labels")?))
}

fn write(path: &Path, data: &Dataset) -> Result<(), Failure> {
    let mut out = OutputFile::create(path)?;
    let labels = data.labels.as_ref();
    out.fill(|out| write_svmlight(out, &data.rows, labels, None, data.index_base))?;
    Ok(out.commit()?)
}

/// The seconds of each repetition.
fn times<T>(repeats: usize, mut work: impl FnMut() -> T) -> (Vec<f64>, Option<T>) {
    let mut last = None;
    let seconds = (0..repeats).map(|_| {
        // What the last one made is freed outside the measured time.
        last = None;
        let started = Instant::now();
        let made = work();
        let seconds = started.elapsed().as_secs_f64();
        last = Some(made);
        seconds
    });
    (seconds.collect(), last)
}
