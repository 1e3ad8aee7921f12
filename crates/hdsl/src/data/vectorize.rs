//! From words to rows: counts, presence or tf-idf, with a vocabulary that later files share.

use super::input::quote;
use super::rows::{Rows, SparseRow};
use super::words::{Stem, StopWords, Words};
use crate::error::{Error, Result};
use crate::named::named_enum;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

named_enum! {
    /// The value that a row has for a word.
    pub enum Weighting as "weighting" = "counts" | "binary" | "tfidf", default Counts {
        /// How often the word occurs.
        Counts,
        /// 1 if the word occurs.
        Binary,
        /// Count times ln((1 + n) / (1 + df)) + 1, for a word in df of n documents, then each row divided by its length.
        TfIdf,
    }
}

/// A bound on the number of documents a word occurs in.
///
/// ```
/// use hdsl::data::Frequency;
/// assert_eq!("5".parse(), Ok(Frequency::Count(5)));
/// assert_eq!("0.5".parse(), Ok(Frequency::Fraction(0.5)));
/// assert!("1.5".parse::<Frequency>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frequency {
    /// A number of documents.
    Count(usize),
    /// A fraction of all documents, from 0 to 1.
    Fraction(f64),
}

impl Frequency {
    fn of(self, n_documents: usize) -> f64 {
        match self {
            Frequency::Count(count) => count as f64,
            Frequency::Fraction(fraction) => fraction * n_documents as f64,
        }
    }
}

impl FromStr for Frequency {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Ok(count) = text.parse() {
            return Ok(Frequency::Count(count));
        }
        match text.parse() {
            Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(Frequency::Fraction(fraction)),
            _ => Err(format!(
                "{} is neither a whole number of documents nor a fraction from 0 to 1",
                quote(text.as_bytes())
            )),
        }
    }
}

/// How to choose a vocabulary and what to make of it.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorizeOptions {
    /// The value that a row has for a word.
    pub weighting: Weighting,
    /// Words in fewer documents are left out.
    pub min_df: Frequency,
    /// Words in more documents are left out.
    pub max_df: Frequency,
    /// Whether `Word` and `word` are the same.
    pub lowercase: bool,
    /// What words are reduced to.
    pub stem: Stem,
    /// Words that are left out.
    pub stop_words: StopWords,
}

impl Default for VectorizeOptions {
    /// Counts of all words, in lower case.
    fn default() -> Self {
        Self {
            weighting: Weighting::Counts,
            min_df: Frequency::Count(1),
            max_df: Frequency::Fraction(1.0),
            lowercase: true,
            stem: Stem::None,
            stop_words: StopWords::None,
        }
    }
}

/// Turns texts into rows by a fixed vocabulary.
///
/// Words are runs of two or more letters, digits or underscores (Unicode); the vocabulary is sorted by name.
///
/// ```
/// use hdsl::data::{VectorizeOptions, Vectorizer};
/// let vectorizer = Vectorizer::fit(&["the cat and the dog", "a dog"], VectorizeOptions::default())?;
/// assert_eq!(vectorizer.terms(), ["and", "cat", "dog", "the"]);
/// let rows = vectorizer.transform(&["The DOG, the fox"]);
/// assert_eq!(rows.row(0).indices(), [2, 3]); // `fox` is not in the vocabulary
/// assert_eq!(rows.row(0).values(), [1.0, 2.0]);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Vectorizer {
    pub(super) terms: Vec<String>,
    /// In how many of `n_documents` each term occurs; empty if a file did not say.
    pub(super) frequencies: Vec<u64>,
    pub(super) n_documents: u64,
    pub(super) weighting: Weighting,
    pub(super) words: Words,
}

impl Vectorizer {
    /// Chooses the vocabulary from documents.
    pub fn fit<S: AsRef<str>>(documents: &[S], options: VectorizeOptions) -> Result<Self> {
        let n = documents.len();
        let (low, high) = (options.min_df.of(n), options.max_df.of(n));
        let words = Words {
            lowercase: options.lowercase,
            stem: options.stem,
            stop_words: options.stop_words,
        };
        // A tree keeps the words sorted by name, which is the order of the features.
        let mut frequencies: BTreeMap<String, u64> = BTreeMap::new();
        for word in words.distinct(documents).into_iter().flatten() {
            *frequencies.entry(word).or_default() += 1;
        }
        let n_words = frequencies.len();
        frequencies.retain(|_, df| (low..=high).contains(&(*df as f64)));
        if frequencies.is_empty() {
            return Err(Error::data(format!(
                "none of the {n_words} words of {n} documents is in {low} to {high} of them, \
                 expected at least one"
            )));
        }
        let (terms, frequencies) = frequencies.into_iter().unzip();
        Ok(Self {
            terms,
            frequencies,
            n_documents: n as u64,
            weighting: options.weighting,
            words,
        })
    }

    /// The same words with another weighting, whatever the vocabulary file says.
    pub fn with_weighting(self, weighting: Weighting) -> Result<Self> {
        if weighting == Weighting::TfIdf && self.frequencies.is_empty() {
            return Err(Error::data(
                "a plain list of words has no document frequencies, which tf-idf needs",
            ));
        }
        Ok(Self { weighting, ..self })
    }

    /// The words; the i-th is feature i.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// One row per document. Words outside the vocabulary are ignored.
    pub fn transform<S: AsRef<str>>(&self, documents: &[S]) -> Rows {
        let features: HashMap<&str, u32> = self.terms.iter().map(String::as_str).zip(0..).collect();
        let idf = |feature: u32| {
            let df = self.frequencies[feature as usize] as f64;
            ((1.0 + self.n_documents as f64) / (1.0 + df)).ln() + 1.0
        };
        let mut by_document = vec![Vec::new(); documents.len()];
        self.words.each(documents, |at, word| {
            by_document[at].extend(features.get(word).copied());
        });
        let mut rows = Rows::new(self.terms.len());
        for mut found in by_document {
            found.sort_unstable();
            let (mut indices, mut values) = (Vec::new(), Vec::<f64>::new());
            for same in found.chunk_by(|a, b| a == b) {
                indices.push(same[0]);
                values.push(match self.weighting {
                    Weighting::Counts => same.len() as f64,
                    Weighting::Binary => 1.0,
                    Weighting::TfIdf => same.len() as f64 * idf(same[0]),
                });
            }
            if self.weighting == Weighting::TfIdf {
                let norm = SparseRow::new(&indices, &values).norm();
                values.iter_mut().for_each(|value| *value /= norm);
            }
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    }
}
