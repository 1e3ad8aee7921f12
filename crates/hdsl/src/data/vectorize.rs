//! From words to rows: counts, presence or tf-idf, with a vocabulary that later files share.

use super::counts::{Counted, LEFT_OUT, Piece, Placement, TablePool, Tables, Terms};
use super::input::quote;
use super::interner::Interner;
use super::rows::Rows;
use super::words::{Analyzer, NGrams, Stem, StopWords, Tokenizer, Words};
use crate::error::{Error, Result};
use crate::named::named_enum;
use crate::parallel;
use crate::sort::sort_by;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// How many bytes of text are one piece of work. Fixed, so that the pieces do not depend on the number of threads.
pub(super) const PIECE: usize = 256 << 10;

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
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
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

impl TryFrom<String> for Frequency {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<Frequency> for String {
    fn from(frequency: Frequency) -> Self {
        frequency.to_string()
    }
}

/// A fraction always has a point, so that 1.0 is not 1.
impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frequency::Count(count) => count.fmt(f),
            Frequency::Fraction(fraction) => fmt::Debug::fmt(fraction, f),
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
    /// What the features of a text are.
    pub analyzer: Analyzer,
    /// How many words or characters in sequence are one feature.
    pub n_grams: NGrams,
    /// Instead of a vocabulary, this many features, by the hash of the term: nothing has to be remembered, and terms of the
    /// same hash are one feature.
    pub hashing: Option<u32>,
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
            analyzer: Analyzer::Word,
            n_grams: NGrams::default(),
            hashing: None,
        }
    }
}

/// What the terms of a cell are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Split {
    /// Words, or sequences of words or characters.
    #[default]
    Text,
    /// The cell as a whole.
    Cell,
    /// What stands between separators.
    List(String),
}

/// Between the items of a list that was not text: no separator occurs in its items.
pub(super) const ITEM_END: char = '\x1f';

/// The places of terms, found when they are first needed. Two are equal whether they are there or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(OnceLock<Interner>);

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
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
    pub(super) split: Split,
    /// The number of features, where they are the hashes of terms.
    pub(super) buckets: Option<u32>,
    pub(super) places: Places,
}

impl Vectorizer {
    /// Chooses the vocabulary from documents.
    pub fn fit<S: AsRef<str> + Sync>(documents: &[S], options: VectorizeOptions) -> Result<Self> {
        Ok(Self::fit_transform(documents, options)?.0)
    }

    /// Chooses the vocabulary from documents and turns them into rows.
    ///
    /// ```
    /// use hdsl::data::{VectorizeOptions, Vectorizer};
    /// let texts = ["the cat and the dog", "a dog"];
    /// let (vectorizer, rows) = Vectorizer::fit_transform(&texts, VectorizeOptions::default())?;
    /// assert_eq!(rows, vectorizer.transform(&texts));
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn fit_transform<S: AsRef<str> + Sync>(
        documents: &[S],
        options: VectorizeOptions,
    ) -> Result<(Self, Rows)> {
        let (min_df, max_df) = (options.min_df, options.max_df);
        let mut vectorizer = Self::unfitted(options, Split::Text)?;
        if vectorizer.buckets.is_some() {
            let rows = vectorizer.transform(documents);
            return Ok((vectorizer, rows));
        }
        let pool = TablePool::new(1);
        let counted = counted(documents, |documents| {
            pool.with(|tables| {
                let (mut tokenizer, mut piece) = (vectorizer.words.tokenizer(), Piece::default());
                for document in documents {
                    piece.start_row(tables);
                    vectorizer.learn(document.as_ref(), &mut tokenizer, &mut piece, tables, 0);
                }
                piece
            })
        });
        let terms = pool.into_terms().remove(0);
        let placement = vectorizer.choose(&terms, documents.len(), min_df, max_df, 0)?;
        let rows = counted.into_rows(vectorizer.n_features(), &[placement]);
        Ok((vectorizer, rows))
    }

    /// A vectorizer without a vocabulary.
    pub(super) fn unfitted(options: VectorizeOptions, split: Split) -> Result<Self> {
        let words = Words {
            lowercase: options.lowercase,
            stem: options.stem,
            stop_words: options.stop_words,
            analyzer: options.analyzer,
            n_grams: options.n_grams,
        };
        words.check()?;
        if let Some(buckets) = options.hashing {
            if options.weighting == Weighting::TfIdf {
                return Err(Error::data(
                    "hashed features have no document frequencies, which the weighting tfidf needs; use counts, and \
                     tfidf as preprocessing",
                ));
            }
            if !(1..=1 << 31).contains(&buckets) {
                return Err(Error::param("hashing", buckets, "1 to 2^31 features"));
            }
        }
        Ok(Self {
            terms: Vec::new(),
            frequencies: Vec::new(),
            n_documents: 0,
            weighting: options.weighting,
            words,
            split,
            buckets: options.hashing,
            places: Places::default(),
        })
    }

    /// Calls `each` with the terms of a cell.
    #[inline]
    pub(super) fn each_term(
        &self,
        cell: &str,
        tokenizer: &mut Tokenizer<'_>,
        mut each: impl FnMut(&str),
    ) {
        match &self.split {
            Split::Text => tokenizer.each(cell, each),
            Split::Cell => {
                let cell = cell.trim();
                if !cell.is_empty() {
                    each(cell);
                }
            }
            Split::List(separator) => {
                let mut all = |items: &mut dyn Iterator<Item = &str>| {
                    let items = items.map(str::trim);
                    items.filter(|item| !item.is_empty()).for_each(&mut each);
                };
                match cell.contains(ITEM_END) {
                    true => all(&mut cell.split(ITEM_END)),
                    false if separator.trim().is_empty() => all(&mut cell.split_whitespace()),
                    false => all(&mut cell.split(separator.as_str())),
                }
            }
        }
    }

    /// Adds a cell of terms that are not known yet.
    pub(super) fn learn(
        &self,
        cell: &str,
        tokenizer: &mut Tokenizer<'_>,
        piece: &mut Piece,
        tables: &mut Tables,
        column: usize,
    ) {
        self.each_term(cell, tokenizer, |term| piece.learn(term));
        piece.end_learned(tables, column);
    }

    /// Adds a cell of terms of the vocabulary.
    pub(super) fn count(&self, cell: &str, tokenizer: &mut Tokenizer<'_>, piece: &mut Piece) {
        match self.buckets {
            Some(n) => self.each_term(cell, tokenizer, |term| piece.add(bucket(term, n))),
            None => {
                let places = self.places();
                self.each_term(cell, tokenizer, |term| {
                    if let Some(place) = places.find(term) {
                        piece.add(place);
                    }
                });
            }
        }
        piece.end_column();
    }

    fn places(&self) -> &Interner {
        self.places.0.get_or_init(|| self.terms.iter().collect())
    }

    /// Chooses the vocabulary among all terms. Terms in fewer or more documents than the bounds are left out.
    pub(super) fn choose(
        &mut self,
        terms: &Terms,
        n: usize,
        min_df: Frequency,
        max_df: Frequency,
        offset: u32,
    ) -> Result<Placement> {
        let (low, high) = (min_df.of(n), max_df.of(n));
        let (interner, frequencies) = (&terms.interner, &terms.frequencies);
        let is_in = |number: &u32| (low..=high).contains(&(frequencies[*number as usize] as f64));
        let n_terms = interner.len();
        let mut chosen: Vec<u32> = (0..n_terms as u32).filter(is_in).collect();
        if chosen.is_empty() {
            return Err(Error::data(format!(
                "none of the {n_terms} words of {n} documents is in {low} to {high} of them, \
                 expected at least one"
            )));
        }
        // By name, so that the order of the documents does not matter.
        sort_by(&mut chosen, |&a, &b| interner.get(a).cmp(interner.get(b)));
        let mut places = vec![LEFT_OUT; n_terms];
        for (place, &number) in (0..).zip(&chosen) {
            places[number as usize] = place;
        }
        let names = chosen.iter().map(|&number| interner.get(number).to_owned());
        self.terms = names.collect();
        let chosen = chosen.iter().map(|&number| frequencies[number as usize]);
        self.frequencies = chosen.collect();
        self.n_documents = n as u64;
        Ok(Placement {
            places: Some(terms.placed(&places)),
            ..self.placement(offset)
        })
    }

    /// How counts of terms of the vocabulary become values of features.
    pub(super) fn placement(&self, offset: u32) -> Placement {
        let idf = |&df: &u64| ((1.0 + self.n_documents as f64) / (1.0 + df as f64)).ln() + 1.0;
        Placement {
            offset,
            places: None,
            weighting: self.weighting,
            idf: match self.weighting {
                Weighting::TfIdf => self.frequencies.iter().map(idf).collect(),
                _ => Vec::new(),
            },
        }
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

    /// The words; the i-th is feature i. Hashed features have none.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// The number of features.
    pub fn n_features(&self) -> usize {
        self.buckets.map_or(self.terms.len(), |n| n as usize)
    }

    /// What a feature is called: its term, or its number after a `#` where features are hashes.
    pub(super) fn term(&self, feature: u32) -> Cow<'_, str> {
        match self.terms.get(feature as usize) {
            Some(term) => Cow::Borrowed(term),
            None => Cow::Owned(format!("#{feature}")),
        }
    }

    /// One row per document. Words outside the vocabulary are ignored.
    pub fn transform<S: AsRef<str> + Sync>(&self, documents: &[S]) -> Rows {
        let counted = counted(documents, |documents| {
            let (mut tokenizer, mut piece) = (self.words.tokenizer(), Piece::default());
            for document in documents {
                self.count(document.as_ref(), &mut tokenizer, &mut piece);
            }
            piece
        });
        counted.into_rows(self.n_features(), &[self.placement(0)])
    }
}

/// Counts the terms of documents, some pieces at a time, so that few are in memory twice.
fn counted<S: AsRef<str> + Sync>(documents: &[S], count: impl Fn(&[S]) -> Piece + Sync) -> Counted {
    let mut counted = Counted::new(1);
    for some in pieces_of(documents).chunks(64) {
        let pieces: Vec<Piece> = parallel::map(some.len(), |at| count(some[at]));
        pieces.iter().for_each(|piece| counted.append(piece));
    }
    counted
}

/// Documents in pieces of about [`PIECE`] bytes.
fn pieces_of<S: AsRef<str>>(documents: &[S]) -> Vec<&[S]> {
    let mut pieces = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (at, document) in documents.iter().enumerate() {
        size += document.as_ref().len() + 1;
        if size >= PIECE {
            pieces.push(&documents[start..=at]);
            (start, size) = (at + 1, 0);
        }
    }
    if start < documents.len() {
        pieces.push(&documents[start..]);
    }
    pieces
}

/// The feature of a term among `n`: that of scikit-learn's `HashingVectorizer(alternate_sign=False)`, by MurmurHash3.
fn bucket(term: &str, n: u32) -> u32 {
    (murmur3(term.as_bytes()) as i32).unsigned_abs() % n
}

/// The 32-bit MurmurHash3 of Austin Appleby, seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let scramble = |k: u32| {
        k.wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    };
    let mut hash = 0u32;
    let mut blocks = bytes.chunks_exact(4);
    for block in &mut blocks {
        let k = u32::from_le_bytes(block.try_into().expect("four bytes"));
        hash = (hash ^ scramble(k)).rotate_left(13).wrapping_mul(5);
        hash = hash.wrapping_add(0xe654_6b64);
    }
    let rest = blocks.remainder().iter().rev();
    let rest = rest.fold(0, |k, &byte| k << 8 | u32::from(byte));
    hash ^= scramble(rest) ^ bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_scikit_learn() {
        // sklearn.utils.murmurhash3_32(term, seed=0)
        for (term, hash) in [
            ("", 0),
            ("a", 1009084850),
            ("abc", -1277324294),
            ("hello", 613153351),
            ("hello, world", 345750399),
        ] {
            assert_eq!(murmur3(term.as_bytes()) as i32, hash, "{term}");
        }
        assert_eq!(bucket("abc", 1000), 294);
    }
}
