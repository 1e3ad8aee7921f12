//! The sets we know, and where their original files lie.
//!
//! Addresses and layouts are those that several public programs use for the same files; sizes are those that the
//! collections' pages give, and the numbers of stored values those of copies at hand. The sources publish no checksums,
//! so no file has a SHA-256 digest here. What was downloaded is remembered with the digest it had, see `cache.rs`.

use crate::error::{FetchError, Result};

/// A data set that can be fetched.
#[derive(Debug)]
pub struct Set {
    /// What to ask for.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The page that describes it.
    pub page: &'static str,
    /// The files to download.
    pub downloads: &'static [Download],
    /// What it consists of, training rows first.
    pub parts: &'static [Part],
    /// How many features there are. A part alone need not have the last of them.
    pub n_features: usize,
    /// How many classes.
    pub n_classes: usize,
}

/// A file at its source. A zip is unpacked, anything else is read as it is.
#[derive(Debug)]
pub struct Download {
    /// Where it lies.
    pub url: &'static str,
    /// Its SHA-256 in hexadecimal, where it is published.
    pub sha256: Option<&'static str>,
}

/// Rows for one purpose.
#[derive(Debug)]
pub struct Part {
    /// `train`, `valid`, `test` or `all`.
    pub name: &'static str,
    /// The file with the rows, in the set's folder.
    pub file: &'static str,
    /// The file with the labels, if they are not in `file`.
    pub labels: Option<&'static str>,
    /// Whether the classes of these rows are public.
    pub labeled: bool,
    /// How many rows.
    pub n_rows: usize,
    /// How many values the rows store, where that is known.
    pub nnz: Option<usize>,
}

impl Part {
    const fn storing(mut self, nnz: usize) -> Self {
        self.nnz = Some(nnz);
        self
    }
}

impl Set {
    /// The part of that name.
    pub fn part(&self, name: &str) -> Option<&'static Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// The download that a part is read from.
    pub fn download_of(&self, part: &Part) -> Option<&'static Download> {
        let mut downloads = self.downloads.iter();
        downloads.find(|file| file.is_zip() || file.file_name() == part.file)
    }
}

impl Download {
    /// The last segment of the address: its name in the cache.
    pub fn file_name(&self) -> &'static str {
        self.url.rsplit('/').next().unwrap_or(self.url)
    }

    pub(crate) fn is_zip(&self) -> bool {
        self.url.ends_with(".zip")
    }
}

/// The set of that name. `-`, `_` and `.` are the same, and so are capitals.
pub fn find(name: &str) -> Result<&'static Set> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], ".");
    SETS.iter()
        .find(|set| plain(set.name) == plain(name))
        .ok_or_else(|| FetchError::UnknownSet {
            name: name.to_owned(),
        })
}

const fn whole(url: &'static str) -> Download {
    Download { url, sha256: None }
}

/// Rows with labels in one file.
const fn svmlight(name: &'static str, file: &'static str, n_rows: usize) -> Part {
    Part {
        labeled: true,
        ..challenge(name, file, None, n_rows)
    }
}

/// Rows and labels in two files of one zip.
const fn challenge(
    name: &'static str,
    file: &'static str,
    labels: Option<&'static str>,
    n_rows: usize,
) -> Part {
    Part {
        name,
        file,
        labels,
        labeled: labels.is_some(),
        n_rows,
        nnz: None,
    }
}

/// A set of LIBSVM's collection: its name, sizes and description, then its page, the folder of its files and, for
/// each part, its file, number of rows and SHA-256 digest.
macro_rules! libsvm {
    (sum) => { None };
    (sum $digest:literal) => { Some($digest) };
    (
        $name:literal, $n_classes:literal classes, $n_features:literal features, $about:literal,
        $page:literal, files $folder:literal: $($part:ident $file:literal $n_rows:literal $(sha256 $digest:literal)?),+
    ) => {
        Set {
            name: $name,
            about: $about,
            page: concat!(libsvm!(), $page),
            downloads: &[$(Download {
                url: concat!(libsvm!(), $folder, $file),
                sha256: libsvm!(sum $($digest)?),
            }),+],
            parts: &[$(svmlight(stringify!($part), $file, $n_rows)),+],
            n_features: $n_features,
            n_classes: $n_classes,
        }
    };
    () => {
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
    };
}

/// Every set that can be fetched.
pub const SETS: &[Set] = &[
    Set {
        name: "dexter",
        about: "news, bags of words with irrelevant features planted; NIPS 2003 challenge, in the paper",
        page: "https://archive.ics.uci.edu/dataset/168/dexter",
        downloads: &[whole(
            "https://archive.ics.uci.edu/static/public/168/dexter.zip",
        )],
        parts: &[
            challenge(
                "train",
                "dexter_train.data",
                Some("dexter_train.labels"),
                300,
            )
            .storing(28_218),
            challenge(
                "valid",
                "dexter_valid.data",
                Some("dexter_valid.labels"),
                300,
            ),
            challenge("test", "dexter_test.data", None, 2_000),
        ],
        n_features: 20_000,
        n_classes: 2,
    },
    Set {
        name: "dorothea",
        about: "molecules that bind or do not, half of the features planted; NIPS 2003 challenge, in the paper",
        page: "https://archive.ics.uci.edu/dataset/169/dorothea",
        downloads: &[whole(
            "https://archive.ics.uci.edu/static/public/169/dorothea.zip",
        )],
        parts: &[
            challenge(
                "train",
                "dorothea_train.data",
                Some("dorothea_train.labels"),
                800,
            )
            .storing(727_760),
            challenge(
                "valid",
                "dorothea_valid.data",
                Some("dorothea_valid.labels"),
                350,
            )
            .storing(317_752),
            challenge("test", "dorothea_test.data", None, 800),
        ],
        n_features: 100_000,
        n_classes: 2,
    },
    Set {
        name: "farm-ads",
        about: "text of farm advertisements, accepted or not",
        page: "https://archive.ics.uci.edu/dataset/218/farm+ads",
        downloads: &[whole(
            "https://archive.ics.uci.edu/static/public/218/farm+ads.zip",
        )],
        parts: &[svmlight("all", "farm-ads-vect", 4_143).storing(817_141)],
        n_features: 54_877,
        n_classes: 2,
    },
    libsvm! {
        "rcv1.binary", 2 classes, 47_236 features,
        "Reuters news, two groups of topics, unit-length tf-idf; the paper's rcv1_2 is drawn from it",
        "binary.html", files "binary/": train "rcv1_train.binary.bz2" 20_242, test "rcv1_test.binary.bz2" 677_399
    },
    libsvm! {
        "rcv1.multiclass", 53 classes, 47_236 features,
        "Reuters news, 53 topics; the paper's rcv1_4 is of this kind",
        "multiclass.html", files "multiclass/":
        train "rcv1_train.multiclass.bz2" 15_564,
        test "rcv1_test.multiclass.bz2" 518_571
    },
    libsvm! {
        "news20.binary", 2 classes, 1_355_191 features,
        "20 newsgroups in two halves, with over a million features",
        "binary.html", files "binary/": all "news20.binary.bz2" 19_996
    },
    libsvm! {
        "news20", 20 classes, 62_061 features, "20 newsgroups, counts of words",
        "multiclass.html", files "multiclass/":
        train "news20.bz2" 15_935,
        test "news20.t.bz2" 3_993
    },
    libsvm! {
        "real-sim", 2 classes, 20_958 features, "newsgroups on simulated and on real cars and planes",
        "binary.html", files "binary/":
        all "real-sim.bz2" 72_309
    },
    libsvm! {
        "sector", 105 classes, 55_197 features, "web pages of companies in 105 sectors",
        "multiclass.html", files "multiclass/sector/": train "sector.bz2" 6_412, test "sector.t.bz2" 3_207
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_part_lies_in_a_download_of_its_set() {
        let mut names = BTreeSet::new();
        for set in SETS {
            assert!(
                names.insert(set.name.replace('.', "-")),
                "{} twice",
                set.name
            );
            let mut files = BTreeSet::new();
            for part in set.parts {
                assert!(set.download_of(part).is_some());
                assert!(files.insert(part.file) && set.part(part.name).is_some());
                assert!(part.labels.is_none_or(|labels| files.insert(labels)));
            }
            for download in set.downloads {
                let is_digest = |sum: &str| {
                    sum.len() == 64 && sum.bytes().all(|b| b"0123456789abcdef".contains(&b))
                };
                assert!(download.sha256.is_none_or(is_digest), "{}", download.url);
                assert!(download.url.starts_with("https://"), "{}", download.url);
                assert!(
                    set.parts
                        .iter()
                        .any(|part| set.download_of(part).is_some_and(|d| d.url == download.url)),
                    "{}",
                    download.url
                );
                assert!(download.url.starts_with("https://"));
                assert!(download.sha256.is_none_or(|sum| sum.len() == 64));
            }
        }
    }

    #[test]
    fn names_are_found_as_people_type_them() {
        for name in [
            "rcv1.binary",
            "rcv1_binary",
            "RCV1-binary",
            "farm_ads",
            "Dexter",
        ] {
            assert!(find(name).is_ok(), "{name}");
        }
        let error = find("dextr").unwrap_err().to_string();
        assert!(
            error.contains("`dextr`") && error.contains("dexter, dorothea"),
            "{error}"
        );
    }
}
