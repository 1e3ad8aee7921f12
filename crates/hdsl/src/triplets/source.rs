//! Where the triplets of a training come from: parsed, stored with a model, and turned into triplets.

use super::Triplets;
use super::file::TripletFormat;
use crate::cancel::CancelToken;
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::similarity::Dot;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

const EXPECTED: &str = "knn:TARGETS:IMPOSTORS or random:PER_ROW with whole numbers above 0, clicks:FILE, \
                        judgments:FILE, judgments-low:FILE, pairs:FILE or a file of triplets";

/// Where the triplets of a training come from.
///
/// | text | triplets |
/// |---|---|
/// | `knn:3:5`, `knn` | each row with its 3 nearest rows of the same class x its 5 nearest of other classes |
/// | `random:20`, `random` | 20 per row: a random row of the same class, a random row of another |
/// | `FILE`, `file:FILE` | read from lines `anchor near far [weight]` |
/// | `clicks:FILE` | read from lines `query clicked skipped [count]` |
/// | `judgments:FILE`, `judgments-low:FILE` | read from lines `query document grade`, high or low grades being better |
/// | `pairs:FILE` | read from lines `row row label [weight]`, label 1 for similar rows and -1 for dissimilar ones |
/// | `given:500` | 500 triplets that the caller passed |
/// | `ranking:500` | 500 triplets per model that [`rank`](crate::ranking::rank) made from judgments |
///
/// ```
/// use hdsl::TripletSource;
/// let source: TripletSource = "knn:3:5".parse()?;
/// assert_eq!(source, TripletSource::Neighbors { targets: 3, impostors: 5 });
/// assert_eq!("mine.txt".parse::<TripletSource>()?.to_string(), "file:mine.txt");
/// assert!("random:0".parse::<TripletSource>().is_err());
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum TripletSource {
    /// The nearest rows of the same class x the nearest rows of other classes, by the dot product of preprocessed rows.
    Neighbors {
        /// Same-class neighbors per row.
        targets: usize,
        /// Other-class neighbors per row.
        impostors: usize,
    },
    /// Random rows of the same and of other classes.
    Random {
        /// Triplets per row.
        per_row: usize,
    },
    /// A file that names rows by number. Labels are not needed.
    File {
        /// What its lines contain.
        format: TripletFormat,
        /// The path as it was given.
        path: PathBuf,
    },
    /// Triplets that the caller passed with the data. Labels are not needed.
    Given {
        /// How many there were.
        count: usize,
    },
    /// Triplets that a [ranking](crate::ranking) was learned from.
    Ranking {
        /// How many there were per model.
        count: usize,
    },
}

impl TripletSource {
    /// The texts that are parsed to a source, each with its meaning, for help texts.
    pub const FORMS: [(&'static str, &'static str); 7] = [
        (
            "knn:T:I",
            "each row with its T nearest rows of the same class x its I nearest of other classes",
        ),
        (
            "random:N",
            "N per row: a random row of the same class and a random row of another",
        ),
        ("FILE", "lines `anchor near far [weight]`"),
        ("clicks:FILE", "lines `query clicked skipped [count]`"),
        (
            "judgments:FILE",
            "lines `query document grade`, a higher grade is better",
        ),
        (
            "judgments-low:FILE",
            "the same lines where a lower grade is better",
        ),
        (
            "pairs:FILE",
            "lines `row row label [weight]`: 1 for similar, -1 for dissimilar rows",
        ),
    ];

    /// Whether the triplets are mined from labels.
    pub fn is_mined(&self) -> bool {
        matches!(self, Self::Neighbors { .. } | Self::Random { .. })
    }

    /// Makes or reads the triplets.
    ///
    /// `rows` are preprocessed, and `seed` is that of random triplets. Without labels nothing can be mined; what
    /// [`TripletSource::Given`] stands for is known to the caller only.
    pub fn triplets(
        &self,
        rows: &Rows,
        labels: Option<&Labels>,
        seed: u64,
        cancel: CancelToken<'_>,
    ) -> Result<Triplets> {
        let labeled = || {
            labels.ok_or_else(|| {
                Error::data(format!(
                    "the training rows have no labels, which {self} triplets are made from"
                ))
            })
        };
        match self {
            Self::Neighbors { targets, impostors } => {
                let counts = [*targets, *impostors];
                Triplets::by_neighbors(&Dot, rows, labeled()?, counts, cancel)
            }
            Self::Random { per_row } => Triplets::at_random(rows, labeled()?, *per_row, seed),
            Self::File { .. } | Self::Given { .. } | Self::Ranking { .. } => {
                self.read(rows.n_rows())
            }
        }
    }

    /// Reads the triplets of a file, which name rows below `n_rows`.
    pub(crate) fn read(&self, n_rows: usize) -> Result<Triplets> {
        let Self::File { format, path } = self else {
            return Err(Error::param("triplets", self, EXPECTED));
        };
        Triplets::read(path, *format, n_rows).map_err(|error| match error {
            // A misspelled `knn:3:5` is taken for the name of a file.
            Error::Read { path, source }
                if *format == TripletFormat::List && source.kind() == ErrorKind::NotFound =>
            {
                Error::File {
                    path,
                    reason: format!("no such file; triplets are {EXPECTED}"),
                }
            }
            error => error,
        })
    }
}

impl FromStr for TripletSource {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let count = |word: &str| word.parse::<usize>().ok().filter(|&n| n > 0);
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        let source = match (kind, rest) {
            ("knn", rest) => {
                let (targets, impostors) =
                    rest.unwrap_or("3:5").split_once(':').unwrap_or_default();
                let counts = count(targets).zip(count(impostors));
                counts.map(|(targets, impostors)| Self::Neighbors { targets, impostors })
            }
            ("random", rest) => count(rest.unwrap_or("20")).map(|per_row| Self::Random { per_row }),
            ("given", Some(n)) => count(n).map(|count| Self::Given { count }),
            ("ranking", Some(n)) => count(n).map(|count| Self::Ranking { count }),
            _ => {
                let named = rest.and_then(|path| Some((kind.parse().ok()?, path)));
                let (format, path) = named.unwrap_or((TripletFormat::List, text));
                let path = PathBuf::from(path);
                (!path.as_os_str().is_empty()).then_some(Self::File { format, path })
            }
        };
        source.ok_or_else(|| Error::param("triplets", format!("`{text}`"), EXPECTED))
    }
}

/// The text that is parsed to the same source.
impl fmt::Display for TripletSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Neighbors { targets, impostors } => write!(f, "knn:{targets}:{impostors}"),
            Self::Random { per_row } => write!(f, "random:{per_row}"),
            Self::File { format, path } => write!(f, "{format}:{}", path.display()),
            Self::Given { count } => write!(f, "given:{count}"),
            Self::Ranking { count } => write!(f, "ranking:{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(format: TripletFormat, path: &str) -> TripletSource {
        TripletSource::File {
            format,
            path: path.into(),
        }
    }

    #[test]
    fn text_and_json_give_the_source_back() {
        let neighbors = |targets, impostors| TripletSource::Neighbors { targets, impostors };
        for (text, source) in [
            ("knn:3:5", neighbors(3, 5)),
            ("knn", neighbors(3, 5)),
            ("knn:1:20", neighbors(1, 20)),
            ("random", TripletSource::Random { per_row: 20 }),
            ("random:7", TripletSource::Random { per_row: 7 }),
            ("knn.txt", file(TripletFormat::List, "knn.txt")),
            ("a:b.txt", file(TripletFormat::List, "a:b.txt")),
            ("-", file(TripletFormat::List, "-")),
            ("file:random", file(TripletFormat::List, "random")),
            ("clicks:a:b.txt", file(TripletFormat::Clicks, "a:b.txt")),
            ("judgments:q", file(TripletFormat::Judgments, "q")),
            ("judgments-low:q", file(TripletFormat::JudgmentsLow, "q")),
            ("pairs:p.txt", file(TripletFormat::Pairs, "p.txt")),
            ("given:4", TripletSource::Given { count: 4 }),
            ("ranking:4", TripletSource::Ranking { count: 4 }),
        ] {
            assert_eq!(text.parse::<TripletSource>().unwrap(), source);
            assert_eq!(source.to_string().parse::<TripletSource>().unwrap(), source);
            let json = serde_json::to_string(&source).unwrap();
            assert_eq!(
                serde_json::from_str::<TripletSource>(&json).unwrap(),
                source
            );
        }
    }

    #[test]
    fn what_names_no_source_is_refused() {
        for text in [
            "",
            "knn:3",
            "knn:0:5",
            "knn:3:x",
            "knn:3:5:7",
            "knn:",
            "random:",
            "random:-1",
            "random:1.5",
            "file:",
            "clicks:",
            "judgments:",
            "given:0",
        ] {
            let error = text.parse::<TripletSource>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`triplets` is `{text}`")),
                "{error}"
            );
        }
    }

    #[test]
    fn only_mined_triplets_need_labels() {
        let rows = Rows::new(1);
        let make = |text: &str| {
            let source: TripletSource = text.parse().unwrap();
            source
                .triplets(&rows, None, 0, CancelToken::NEVER)
                .unwrap_err()
                .to_string()
        };
        assert!(make("random:2").contains("no labels, which random:2 triplets are made from"));
        assert!(
            make("knn3:5").contains("knn3:5: no such file; triplets are knn:TARGETS:IMPOSTORS")
        );
        assert!(make("given:3").contains("`triplets` is given:3"));
    }
}
