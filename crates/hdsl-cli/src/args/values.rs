//! Values of options, and the parsers that check them.

use hdsl::model::BaseWeight;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A model file, or the plain dot product.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ModelArg {
    /// The word `identity`.
    Identity,
    /// A file; one called `identity` is reached as `./identity`.
    File(PathBuf),
}

impl FromStr for ModelArg {
    type Err = std::convert::Infallible;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(match s {
            "identity" => ModelArg::Identity,
            path => ModelArg::File(path.into()),
        })
    }
}

/// The argument as it was typed.
impl std::fmt::Display for ModelArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModelArg::Identity => f.write_str("identity"),
            ModelArg::File(path) => path.display().fmt(f),
        }
    }
}

/// A row of a file, `FILE:ROW`. The file's name may itself contain a colon: the last one separates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowOf {
    /// The file.
    pub(crate) path: PathBuf,
    /// The row, counted from 0.
    pub(crate) row: usize,
}

impl FromStr for RowOf {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let want = "expected FILE:ROW with a row counted from 0, such as test.svm:3";
        let (path, row) = s.rsplit_once(':').ok_or(want)?;
        let row = row.parse().map_err(|_| want)?;
        if path.is_empty() {
            return Err(want.into());
        }
        Ok(RowOf {
            path: path.into(),
            row,
        })
    }
}

/// Row numbers and ranges of them, both ends included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowList(pub(crate) Vec<(usize, usize)>);

impl FromStr for RowList {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        s.split(',')
            .map(|part| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                match (first.trim().parse(), last.trim().parse()) {
                    (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
                    _ => Err(format!(
                        "`{part}` is neither a row nor a range of rows, expected for example 0,7-9"
                    )),
                }
            })
            .collect::<Result<_, _>>()
            .map(RowList)
    }
}

/// A whole number above 0.
pub(crate) fn positive(s: &str) -> Result<usize, String> {
    match s.parse::<usize>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a whole number above 0".into()),
    }
}

/// More threads than any machine this is for has cores. Starting thousands takes seconds and helps nothing.
const MAX_THREADS: usize = 256;

/// A number of threads.
pub(crate) fn threads(s: &str) -> Result<usize, String> {
    let at_most = |n: &usize| *n <= MAX_THREADS;
    let number = positive(s).ok().filter(at_most);
    number.ok_or_else(|| format!("expected a whole number from 1 to {MAX_THREADS}"))
}

/// The most models that are averaged.
const MAX_MODELS: usize = 10_000;

/// A number of models.
pub(crate) fn models(s: &str) -> Result<usize, String> {
    let at_most = |n: &usize| *n <= MAX_MODELS;
    let number = positive(s).ok().filter(at_most);
    number.ok_or_else(|| format!("expected a whole number from 1 to {MAX_MODELS}"))
}

/// A time, or the word `never`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OrNever(pub(crate) Option<Duration>);

/// A time, or the word `never`.
pub(crate) fn or_never(s: &str) -> Result<OrNever, String> {
    match s {
        "never" => Ok(OrNever(None)),
        _ => duration(s)
            .map(|time| OrNever(Some(time)))
            .map_err(|_| "expected a time above 0, such as 60s or 5m, or never".to_owned()),
    }
}

/// A number of iterations: 0 is for the base similarity alone.
pub(crate) fn iterations(s: &str) -> Result<usize, String> {
    match s {
        "0" => Ok(0),
        _ => positive(s),
    }
}

/// A number of features or of folds.
pub(crate) fn at_least_two(s: &str) -> Result<usize, String> {
    match s.parse::<usize>() {
        Ok(n) if n >= 2 => Ok(n),
        _ => Err("expected a whole number of at least 2".into()),
    }
}

/// A finite number above 0.
pub(crate) fn above_zero(s: &str) -> Result<f64, String> {
    match s.trim().parse::<f64>() {
        Ok(x) if x.is_finite() && x > 0.0 => Ok(x),
        _ => Err("expected a finite number above 0".into()),
    }
}

/// The weight of the base similarity: a number from 0 on, or `auto`.
pub(crate) fn base_weight(s: &str) -> Result<BaseWeight, String> {
    s.trim()
        .parse()
        .map_err(|_| "expected a finite number from 0 on, or auto".into())
}

/// A number between 0 and 1, both excluded.
pub(crate) fn fraction(s: &str) -> Result<f64, String> {
    match s.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1.0 => Ok(x),
        _ => Err("expected a number between 0 and 1, such as 0.3".into()),
    }
}

/// A time with its unit.
pub(crate) fn duration(s: &str) -> Result<Duration, String> {
    let units = [
        ("ms", 1e-3),
        ("", 1.0),
        ("s", 1.0),
        ("m", 60.0),
        ("min", 60.0),
        ("h", 3600.0),
    ];
    with_unit(s, &units)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a time above 0, such as 30s, 5m or 1.5h".to_owned())
}

/// A number of bytes with its unit. A bare number could be bytes or gigabytes, so it is refused.
pub(crate) fn memory(s: &str) -> Result<u64, String> {
    let kib = 1024f64;
    let units = [
        ("b", 1.0),
        ("k", 1e3),
        ("kb", 1e3),
        ("m", 1e6),
        ("mb", 1e6),
        ("g", 1e9),
        ("gb", 1e9),
        ("t", 1e12),
        ("tb", 1e12),
        ("kib", kib),
        ("mib", kib.powi(2)),
        ("gib", kib.powi(3)),
        ("tib", kib.powi(4)),
    ];
    with_unit(&s.to_ascii_lowercase(), &units)
        .filter(|&bytes| bytes >= 1.0)
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "expected a size above 0, such as 500MB, 4GB or 1.5GiB".to_owned())
}

/// A number followed by one of these units, in the smallest of them.
fn with_unit(s: &str, units: &[(&str, f64)]) -> Option<f64> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, unit) = s.split_at(s.find(|c| !is_number(c)).unwrap_or(s.len()));
    let &(_, factor) = units.iter().find(|&&(name, _)| name == unit.trim_start())?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, bytes) in [
            ("4GB", 4_000_000_000),
            ("4 gb", 4_000_000_000),
            ("1.5GiB", 3 << 29),
            ("500M", 500_000_000),
            ("1b", 1),
        ] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        let bad = "GB 4 0GB -1GB 0.1b 1.2.3GB nan 4bytes";
        for text in bad.split(' ').chain(["", "4 bytes of it"]) {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "0s", "-3s", "3 days", "1e400", "nan", "s", "1..5s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_row_of_a_file_may_have_colons_in_its_name() {
        let row = "c:d.svm:17".parse::<RowOf>().expect("a row");
        assert_eq!((row.path, row.row), ("c:d.svm".into(), 17));
        for bad in ["a.svm", "a.svm:", ":3", "a.svm:-1", "a.svm:x"] {
            assert!(bad.parse::<RowOf>().is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_are_listed_by_numbers_and_ranges() {
        assert_eq!("0,7-9".parse(), Ok(RowList(vec![(0, 0), (7, 9)])));
        for bad in ["", "3-1", "x", "1,,2", "-3"] {
            assert!(bad.parse::<RowList>().is_err(), "{bad}");
        }
    }
}
