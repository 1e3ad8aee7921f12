//! The vectorizer in model files, and in files of its own.

use super::vectorizer::{Column, Features, RecordVectorizer};
use super::{Dialect, Role};
use crate::data::input::Input;
use crate::data::vectorize::{Frequency, Places, Split, Vectorizer, Weighting};
use crate::data::words::{Analyzer, NGrams, Stem, StopWords, Words};
use crate::error::{Error, Parsed, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

const VERSION: u32 = 1;

/// The start of a file of a vectorizer.
const START: &str = "{\"hdsl_vectorizer\":";

/// A vectorizer as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    hdsl_vectorizer: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    dialect: Dialect,
    columns: Vec<StoredColumn>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredColumn {
    name: String,
    named: bool,
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bounds: Option<(Frequency, Frequency)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    terms: Option<StoredTerms>,
}

/// The terms of a column and how they are found.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTerms {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    separator: Option<String>,
    weighting: Weighting,
    lowercase: bool,
    stem: Stem,
    /// `none`, `english`, or the words.
    stop_words: StoredStopWords,
    analyzer: Analyzer,
    n_grams: NGrams,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hashing: Option<u32>,
    n_documents: u64,
    terms: Vec<String>,
    frequencies: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredStopWords {
    Named(String),
    List(Vec<String>),
}

impl From<&RecordVectorizer> for Stored {
    fn from(vectorizer: &RecordVectorizer) -> Self {
        let column = |column: &Column| StoredColumn {
            name: column.name.clone(),
            named: column.named,
            role: column.role(),
            bounds: column.bounds,
            terms: match &column.features {
                Features::Number => None,
                Features::Terms(terms) => Some(StoredTerms::from(terms.as_ref())),
            },
        };
        Self {
            hdsl_vectorizer: VERSION,
            label: vectorizer.label.clone(),
            id: vectorizer.id.clone(),
            dialect: vectorizer.dialect,
            columns: vectorizer.columns.iter().map(column).collect(),
        }
    }
}

impl From<&Vectorizer> for StoredTerms {
    fn from(terms: &Vectorizer) -> Self {
        let words = &terms.words;
        Self {
            separator: match &terms.split {
                Split::List(separator) => Some(separator.clone()),
                _ => None,
            },
            weighting: terms.weighting,
            lowercase: words.lowercase,
            stem: words.stem,
            stop_words: match &words.stop_words {
                StopWords::None => StoredStopWords::Named("none".into()),
                StopWords::English => StoredStopWords::Named("english".into()),
                StopWords::List(list) => StoredStopWords::List(list.clone()),
            },
            analyzer: words.analyzer,
            n_grams: words.n_grams,
            hashing: terms.buckets,
            n_documents: terms.n_documents,
            terms: terms.terms.clone(),
            frequencies: terms.frequencies.clone(),
        }
    }
}

impl Stored {
    fn checked(self) -> Parsed<RecordVectorizer> {
        if self.hdsl_vectorizer != VERSION {
            return Err(format!(
                "a vectorizer of version {}, but this version of hdsl reads {VERSION}",
                self.hdsl_vectorizer
            ));
        }
        let columns = self.columns.into_iter().map(StoredColumn::checked);
        let vectorizer = RecordVectorizer {
            columns: columns.collect::<Parsed<_>>()?,
            label: self.label,
            id: self.id,
            dialect: self.dialect,
        };
        let n = vectorizer.n_features();
        if n == 0 || n > u32::MAX as usize {
            return Err(format!(
                "a vectorizer of {n} features, expected 1 to 2^32 - 1"
            ));
        }
        let mut names = HashSet::new();
        match vectorizer
            .columns
            .iter()
            .find(|column| !names.insert(&column.name))
        {
            Some(column) => Err(format!("the column `{}` is there twice", column.name)),
            None => Ok(vectorizer),
        }
    }
}

impl StoredColumn {
    fn checked(self) -> Parsed<Column> {
        let features = match (self.role, self.terms) {
            (Role::Numeric, None) => Features::Number,
            (Role::Text | Role::Categorical | Role::List, Some(terms)) => {
                Features::Terms(Box::new(terms.checked(self.role)?))
            }
            (role, _) => {
                return Err(format!(
                    "the column `{}` is {role} without its terms",
                    self.name
                ));
            }
        };
        Ok(Column {
            name: self.name,
            named: self.named,
            features,
            bounds: self.bounds,
        })
    }
}

impl StoredTerms {
    fn checked(self, role: Role) -> Parsed<Vectorizer> {
        let split = match (role, self.separator) {
            (Role::Text, None) => Split::Text,
            (Role::Categorical, None) => Split::Cell,
            (Role::List, Some(separator)) if !separator.is_empty() => Split::List(separator),
            (role, separator) => return Err(format!("{role} with the separator {separator:?}")),
        };
        let words = Words {
            lowercase: self.lowercase,
            stem: self.stem,
            stop_words: match self.stop_words {
                StoredStopWords::Named(name) if name == "none" => StopWords::None,
                StoredStopWords::Named(name) if name == "english" => StopWords::English,
                StoredStopWords::Named(name) => return Err(format!("stop words `{name}`")),
                StoredStopWords::List(list) => StopWords::list(list),
            },
            analyzer: self.analyzer,
            n_grams: self.n_grams,
        };
        words.check().map_err(|e| e.to_string())?;
        let (n_terms, n) = (self.terms.len(), self.n_documents);
        let fits = match self.hashing {
            Some(buckets) => {
                (1..=1 << 31).contains(&buckets)
                    && n_terms == 0
                    && self.weighting != Weighting::TfIdf
            }
            None => true,
        };
        let distinct: HashSet<&String> = self.terms.iter().collect();
        let counted =
            self.frequencies.len() == n_terms && self.frequencies.iter().all(|&df| df <= n);
        let plain = self.frequencies.is_empty() && self.weighting != Weighting::TfIdf;
        if !fits || distinct.len() != n_terms || !(counted || plain) {
            return Err(format!(
                "{n_terms} terms with {} frequencies do not fit together",
                self.frequencies.len()
            ));
        }
        Ok(Vectorizer {
            terms: self.terms,
            frequencies: self.frequencies,
            n_documents: n,
            weighting: self.weighting,
            words,
            split,
            buckets: self.hashing,
            places: Places::default(),
        })
    }
}

/// The JSON of a model file.
impl Serialize for RecordVectorizer {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        Stored::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RecordVectorizer {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        stored.checked().map_err(serde::de::Error::custom)
    }
}

impl RecordVectorizer {
    /// Writes the vectorizer as a line of JSON, or as a vocabulary if it is one of texts without columns.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        if let [column] = &self.columns[..]
            && let Features::Terms(terms) = &column.features
            && !column.named
            && terms.split == Split::Text
            && terms.buckets.is_none()
        {
            return terms.write(out);
        }
        serde_json::to_writer(&mut out, self)?;
        writeln!(out)?;
        out.flush()
    }

    /// Reads a file that [`Self::write`] wrote, or a vocabulary of texts.
    pub fn read(path: &Path) -> Result<Self> {
        let mut input = Input::open(path, "a vectorizer or a vocabulary")?;
        if !is_stored(&mut input)? {
            return Ok(Self::of_texts(Vectorizer::read(path)?));
        }
        let bytes = input.read_all()?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::file(path, format!("not a vectorizer: {error}")))
    }
}

/// Whether a file is a vectorizer rather than a plain vocabulary.
pub(in crate::data) fn is_stored(input: &mut Input<'_>) -> Result<bool> {
    Ok(input.peek(START.len())?.starts_with(START.as_bytes()))
}
