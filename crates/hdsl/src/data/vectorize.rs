//! From words to rows: counts, presence or tf-idf, with a vocabulary that later files share.

use super::input::quote;
use super::rows::{Rows, SparseRow};
use super::vocabulary::{Vocabulary, Weighting};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;

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
        match text.parse::<f64>() {
            Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(Frequency::Fraction(fraction)),
            _ => Err(format!(
                "{} is neither a whole number of documents nor a fraction from 0 to 1",
                quote(text.as_bytes())
            )),
        }
    }
}

/// How to choose a vocabulary and what to make of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorizeOptions {
    /// The value that a row has for a word.
    pub weighting: Weighting,
    /// Words in fewer documents are left out.
    pub min_df: Frequency,
    /// Words in more documents are left out.
    pub max_df: Frequency,
    /// Whether `Word` and `word` are the same.
    pub lowercase: bool,
}

impl Default for VectorizeOptions {
    /// Counts of all words, in lower case.
    fn default() -> Self {
        Self {
            weighting: Weighting::Counts,
            min_df: Frequency::Count(1),
            max_df: Frequency::Fraction(1.0),
            lowercase: true,
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
/// assert_eq!(vectorizer.vocabulary().terms(), ["and", "cat", "dog", "the"]);
/// let rows = vectorizer.transform(&["The DOG, the fox"]);
/// assert_eq!(rows.row(0).indices(), [2, 3]); // `fox` is not in the vocabulary
/// assert_eq!(rows.row(0).values(), [1.0, 2.0]);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Vectorizer {
    vocabulary: Vocabulary,
    places: HashMap<String, u32>,
    /// By feature; empty unless tf-idf.
    idf: Vec<f64>,
}

impl Vectorizer {
    /// Chooses the vocabulary from documents.
    pub fn fit<S: AsRef<str>>(documents: &[S], options: VectorizeOptions) -> Result<Self> {
        let n = documents.len();
        for (name, bound) in [("min_df", options.min_df), ("max_df", options.max_df)] {
            if let Frequency::Fraction(fraction) = bound
                && !(0.0..=1.0).contains(&fraction)
            {
                return Err(Error::param(name, fraction, "a fraction from 0 to 1"));
            }
        }
        let (low, high) = (options.min_df.of(n), options.max_df.of(n));
        // A tree keeps the words sorted by name, which is the order of the features.
        let mut frequencies: BTreeMap<String, u64> = BTreeMap::new();
        for document in documents {
            let words = fold(document.as_ref(), options.lowercase);
            let distinct: HashSet<&str> = tokens(&words).collect();
            for word in distinct {
                match frequencies.get_mut(word) {
                    Some(df) => *df += 1,
                    None => {
                        frequencies.insert(word.to_owned(), 1);
                    }
                }
            }
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
        Self::new(Vocabulary {
            terms,
            frequencies,
            n_documents: n as u64,
            weighting: options.weighting,
            lowercase: options.lowercase,
        })
    }

    /// Takes a vocabulary chosen earlier.
    pub fn new(vocabulary: Vocabulary) -> Result<Self> {
        let idf = match vocabulary.weighting {
            Weighting::TfIdf if vocabulary.frequencies.is_empty() => {
                return Err(Error::data(
                    "a plain list of words has no document frequencies, which tf-idf needs",
                ));
            }
            Weighting::TfIdf => {
                let n = vocabulary.n_documents as f64;
                let idf = |&df: &u64| ((1.0 + n) / (1.0 + df as f64)).ln() + 1.0;
                vocabulary.frequencies.iter().map(idf).collect()
            }
            _ => Vec::new(),
        };
        let places = (0..)
            .zip(&vocabulary.terms)
            .map(|(place, term)| (term.clone(), place))
            .collect();
        Ok(Self {
            vocabulary,
            places,
            idf,
        })
    }

    /// The same words with another weighting, whatever the vocabulary file says.
    pub fn with_weighting(self, weighting: Weighting) -> Result<Self> {
        let mut vocabulary = self.vocabulary;
        vocabulary.weighting = weighting;
        Self::new(vocabulary)
    }

    /// The words, in the order of the features.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// One row per document. Words outside the vocabulary are ignored.
    pub fn transform<S: AsRef<str>>(&self, documents: &[S]) -> Rows {
        let mut rows = Rows::new(self.vocabulary.terms.len());
        let mut found: Vec<u32> = Vec::new();
        let (mut indices, mut values) = (Vec::new(), Vec::<f64>::new());
        for document in documents {
            let words = fold(document.as_ref(), self.vocabulary.lowercase);
            found.clear();
            found.extend(tokens(&words).filter_map(|word| self.places.get(word)));
            found.sort_unstable();
            indices.clear();
            values.clear();
            for same in found.chunk_by(|a, b| a == b) {
                indices.push(same[0]);
                values.push(match self.vocabulary.weighting {
                    Weighting::Counts => same.len() as f64,
                    Weighting::Binary => 1.0,
                    Weighting::TfIdf => same.len() as f64 * self.idf[same[0] as usize],
                });
            }
            if self.vocabulary.weighting == Weighting::TfIdf {
                let norm = SparseRow::new(&indices, &values).norm();
                values.iter_mut().for_each(|value| *value /= norm);
            }
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    }
}

fn fold(text: &str, lowercase: bool) -> std::borrow::Cow<'_, str> {
    if lowercase {
        text.to_lowercase().into()
    } else {
        text.into()
    }
}

/// Runs of two or more word characters.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.chars().nth(1).is_some())
}
