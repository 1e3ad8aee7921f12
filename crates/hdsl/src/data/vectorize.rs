//! From words to rows: counts, presence or tf-idf, with a vocabulary that later files share.

use crate::data::input::{Input, quote};
use crate::data::text::parse_error;
use crate::data::{Rows, SparseRow};
use crate::error::{Error, Result};
use crate::named::named_enum;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

/// The first words of a vocabulary file; what follows says how the vocabulary is meant to be used.
const HEADER: &str = "# hdsl vocabulary 1";

named_enum! {
/// What the value of a word in a row is.
#[derive(Default)]
pub enum Weighting as "weighting" {
    /// How often the word occurs.
    #[default]
    Counts = "counts",
    /// 1 if the word occurs.
    Binary = "binary",
    /// Count times ln((1 + n) / (1 + df)) + 1, for a word in df of n documents, then each row divided by its length.
    TfIdf = "tfidf",
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
    /// So many documents.
    Count(usize),
    /// This part of all documents, from 0 to 1.
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
    /// What a row says about a word.
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

/// The words that are features, in order, and what is needed to treat later documents like the first ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Vocabulary {
    terms: Vec<String>,
    /// In how many of `n_documents` each term occurs; empty if the file did not say.
    frequencies: Vec<u64>,
    n_documents: u64,
    weighting: Weighting,
    lowercase: bool,
}

impl Vocabulary {
    /// The words; the i-th is feature i.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// What a row says about a word.
    pub fn weighting(&self) -> Weighting {
        self.weighting
    }

    /// Reads a vocabulary file, or a plain list of words, one a line: the line's place is the feature's number.
    ///
    /// A plain list knows no document frequencies and stands for counts in lower case.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_input(Input::open(path, "a word a line")?)
    }

    /// [`Vocabulary::read`] from memory; `name` serves for messages.
    pub fn parse(name: &Path, bytes: &[u8]) -> Result<Self> {
        Self::from_input(Input::from_bytes(name, bytes, "a word a line")?)
    }

    fn from_input(input: Input<'_>) -> Result<Self> {
        let path = input.path().to_owned();
        let mut vocabulary = Self {
            terms: Vec::new(),
            frequencies: Vec::new(),
            n_documents: 0,
            weighting: Weighting::Counts,
            lowercase: true,
        };
        let mut with_header = false;
        let mut seen = HashSet::new();
        input.each_line(|number, line| {
            let fail = |reason: String| Err(parse_error(&path, number, reason));
            let Ok(line) = std::str::from_utf8(line) else {
                return fail(format!("{} is not UTF-8", quote(line)));
            };
            if number == 1 && line.starts_with("# hdsl vocabulary") {
                with_header = true;
                return match vocabulary.read_header(line) {
                    Ok(()) => Ok(()),
                    Err(reason) => fail(reason),
                };
            }
            let (term, frequency) = match line.split_once('\t') {
                Some((term, frequency)) => (term, Some(frequency)),
                None => (line, None),
            };
            if term.trim().is_empty() {
                return fail("no word, expected one a line".to_owned());
            }
            if !seen.insert(term.to_owned()) {
                return fail(format!("{} is repeated", quote(term.as_bytes())));
            }
            if with_header {
                let n_documents = vocabulary.n_documents;
                match frequency.map(str::parse::<u64>) {
                    Some(Ok(df)) if df <= n_documents => vocabulary.frequencies.push(df),
                    _ => {
                        return fail(format!(
                            "{} has the frequency {}, expected a number of documents from 0 to {n_documents}",
                            quote(term.as_bytes()),
                            quote(frequency.unwrap_or("").as_bytes())
                        ));
                    }
                }
            }
            vocabulary.terms.push(term.to_owned());
            Ok(())
        })?;
        if vocabulary.terms.is_empty() || vocabulary.terms.len() > u32::MAX as usize {
            return Err(Error::File {
                path,
                reason: format!(
                    "has {} words, expected 1 to 2^32 - 1",
                    vocabulary.terms.len()
                ),
            });
        }
        Ok(vocabulary)
    }

    /// `# hdsl vocabulary 1<TAB>documents N<TAB>weighting W<TAB>lowercase B`
    fn read_header(&mut self, line: &str) -> std::result::Result<(), String> {
        let mut fields = line.trim_end().split('\t');
        if fields.next() != Some(HEADER) {
            return Err(format!(
                "{} is not a vocabulary of version 1, the one known here",
                quote(line.as_bytes())
            ));
        }
        for field in fields {
            let known = match field.split_once(' ') {
                Some(("documents", n)) => n.parse().map(|n| self.n_documents = n).is_ok(),
                Some(("weighting", name)) => name
                    .parse()
                    .map(|weighting| self.weighting = weighting)
                    .is_ok(),
                Some(("lowercase", yes)) => yes.parse().map(|yes| self.lowercase = yes).is_ok(),
                _ => false,
            };
            if !known {
                return Err(format!(
                    "{} is not understood, expected `documents N`, `weighting counts|binary|tfidf` \
                     or `lowercase true|false`",
                    quote(field.as_bytes())
                ));
            }
        }
        Ok(())
    }

    /// Writes a line about the whole, then `word<TAB>documents it occurs in`, in the order of the features.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        if self.frequencies.is_empty() {
            return self
                .terms
                .iter()
                .try_for_each(|term| writeln!(out, "{term}"));
        }
        writeln!(
            out,
            "{HEADER}\tdocuments {}\tweighting {}\tlowercase {}",
            self.n_documents,
            self.weighting.name(),
            self.lowercase
        )?;
        for (term, df) in self.terms.iter().zip(&self.frequencies) {
            writeln!(out, "{term}\t{df}")?;
        }
        out.flush()
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
/// assert_eq!(rows.row(0).indices(), [2, 3]); // nobody has heard of a fox
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

    /// One row a document. Words outside the vocabulary are ignored.
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

/// Reads lines of `label<TAB>text`. Blank lines are skipped; what is not UTF-8 is replaced.
pub fn read_texts(path: &Path) -> Result<Vec<(String, String)>> {
    texts(Input::open(path, "lines of `label<TAB>text`")?)
}

/// [`read_texts`] from memory; `name` serves for messages.
///
/// ```
/// let texts = hdsl::data::parse_texts("inline".as_ref(), b"earn\tprofits rose\n")?;
/// assert_eq!(texts, [("earn".to_owned(), "profits rose".to_owned())]);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn parse_texts(name: &Path, bytes: &[u8]) -> Result<Vec<(String, String)>> {
    texts(Input::from_bytes(name, bytes, "lines of `label<TAB>text`")?)
}

fn texts(input: Input<'_>) -> Result<Vec<(String, String)>> {
    let path = input.path().to_owned();
    let mut texts = Vec::new();
    input.each_line(|number, line| {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let Some(tab) = memchr::memchr(b'\t', line) else {
            let reason = format!("{} has no tab, expected `label<TAB>text`", quote(line));
            return Err(parse_error(&path, number, reason));
        };
        let label = String::from_utf8_lossy(line[..tab].trim_ascii()).into_owned();
        if label.is_empty() {
            let reason = "no label before the tab, expected `label<TAB>text`";
            return Err(parse_error(&path, number, reason));
        }
        let text = String::from_utf8_lossy(&line[tab + 1..]).into_owned();
        texts.push((label, text));
        Ok(())
    })?;
    if texts.is_empty() {
        return Err(Error::File {
            path,
            reason: "has no texts, only blank lines".to_owned(),
        });
    }
    Ok(texts)
}

/// Reads the names of features, one a line in the order of the features: a vocabulary file or any plain list.
///
/// A name ends at a tab. Names may repeat or be empty: they are for showing only.
pub fn read_names(path: &Path) -> Result<Vec<String>> {
    names(Input::open(path, "a name a line")?)
}

/// [`read_names`] from memory; `name` serves for messages.
pub fn parse_names(name: &Path, bytes: &[u8]) -> Result<Vec<String>> {
    names(Input::from_bytes(name, bytes, "a name a line")?)
}

fn names(input: Input<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    input.each_line(|number, line| {
        if number > 1 || !line.starts_with(b"# hdsl vocabulary") {
            let name = line.split(|&b| b == b'\t').next().unwrap_or(line);
            names.push(String::from_utf8_lossy(name.trim_ascii()).into_owned());
        }
        Ok(())
    })?;
    Ok(names)
}
