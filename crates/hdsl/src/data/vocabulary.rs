//! The file of a vocabulary.

use super::input::{Input, quote};
use super::vectorize::{Places, Split, Vectorizer, Weighting};
use super::words::{Analyzer, NGrams, Stem, StopWords, Words};
use crate::error::{Error, Parsed, Result};
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

/// The start of every vocabulary file; the version and how the vocabulary is meant to be used follow.
const MAGIC: &str = "# hdsl vocabulary";
const HEADER: &str = "# hdsl vocabulary 1";
const WANT: &str = "one word per line";

impl Vectorizer {
    /// Reads a vocabulary file, or a plain list of words, one per line: the line's place is the feature's number.
    ///
    /// A plain list has no document frequencies; it stands for counts in lower case.
    pub fn read(path: &Path) -> Result<Self> {
        let mut vocabulary = Self {
            terms: Vec::new(),
            frequencies: Vec::new(),
            n_documents: 0,
            weighting: Weighting::Counts,
            words: Words {
                lowercase: true,
                ..Words::default()
            },
            split: Split::Text,
            buckets: None,
            places: Places::default(),
        };
        let mut with_header = false;
        let mut seen = HashSet::new();
        Input::open(path, WANT)?.each_line(|number, line| {
            let Ok(text) = std::str::from_utf8(line) else {
                return Err(format!("{} is not UTF-8", quote(line)));
            };
            if is_header(number, line) {
                with_header = true;
                return vocabulary.parse_header(text);
            }
            let (term, frequency) = text.split_once('\t').unwrap_or((text, ""));
            if term.trim().is_empty() {
                return Err(format!("no word, expected {WANT}"));
            }
            if !with_header && term.ends_with('\r') {
                // Written again, the line would end one character earlier.
                let word = quote(term.as_bytes());
                return Err(format!(
                    "{word} ends with a carriage return, expected {WANT}"
                ));
            }
            if !seen.insert(term.to_owned()) {
                return Err(format!("{} is repeated", quote(term.as_bytes())));
            }
            if with_header {
                let df = frequency
                    .parse()
                    .ok()
                    .filter(|df| *df <= vocabulary.n_documents);
                vocabulary.frequencies.push(df.ok_or_else(|| {
                    format!(
                        "{} has the frequency {}, expected a number of documents from 0 to {}",
                        quote(term.as_bytes()),
                        quote(frequency.as_bytes()),
                        vocabulary.n_documents
                    )
                })?);
            }
            vocabulary.terms.push(term.to_owned());
            Ok(())
        })?;
        let n = vocabulary.terms.len();
        if n == 0 || n > u32::MAX as usize {
            let reason = format!("has {n} words, expected 1 to 2^32 - 1");
            return Err(Error::file(path, reason));
        }
        Ok(vocabulary)
    }

    /// `# hdsl vocabulary 1<TAB>documents N<TAB>weighting W<TAB>lowercase B`, then `stem S`, `analyzer A`, `ngrams N` and
    /// `stop-words W` where they are not the usual ones.
    fn parse_header(&mut self, line: &str) -> Parsed<()> {
        let mut fields = line.trim_end().split('\t');
        if fields.next() != Some(HEADER) {
            let line = quote(line.as_bytes());
            return Err(format!(
                "{line} is not a vocabulary of version 1, expected `{HEADER}`"
            ));
        }
        for field in fields {
            let known = match field.split_once(' ') {
                Some(("documents", n)) => n.parse().map(|n| self.n_documents = n).is_ok(),
                Some(("weighting", w)) => w.parse().map(|w| self.weighting = w).is_ok(),
                Some(("lowercase", b)) => b.parse().map(|b| self.words.lowercase = b).is_ok(),
                Some(("stem", s)) => s.parse().map(|s| self.words.stem = s).is_ok(),
                Some(("stop-words", w)) => parse_stop_words(w)
                    .map(|w| self.words.stop_words = w)
                    .is_some(),
                Some(("analyzer", a)) => a.parse().map(|a| self.words.analyzer = a).is_ok(),
                Some(("ngrams", n)) => n.parse().map(|n| self.words.n_grams = n).is_ok(),
                _ => false,
            };
            if !known {
                return Err(format!(
                    "{} is not understood, expected `documents N`, `weighting counts|binary|tfidf`, \
                     `lowercase true|false`, `stem english`, `stop-words english`, `stop-words list WORDS`, `analyzer \
                     word|char|char_wb` or `ngrams N-M`",
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
        let words = &self.words;
        write!(
            out,
            "{HEADER}\tdocuments {}\tweighting {}\tlowercase {}",
            self.n_documents, self.weighting, words.lowercase
        )?;
        if words.stem != Stem::None {
            write!(out, "\tstem {}", words.stem)?;
        }
        if words.analyzer != Analyzer::Word {
            write!(out, "\tanalyzer {}", words.analyzer)?;
        }
        if words.n_grams != NGrams::default() {
            write!(out, "\tngrams {}", words.n_grams)?;
        }
        match &words.stop_words {
            StopWords::None => writeln!(out)?,
            StopWords::English => writeln!(out, "\tstop-words english")?,
            StopWords::List(list) => writeln!(out, "\tstop-words list {}", list.join(" "))?,
        }
        for (term, df) in self.terms.iter().zip(&self.frequencies) {
            writeln!(out, "{term}\t{df}")?;
        }
        out.flush()
    }
}

/// `english`, or `list` and the words.
fn parse_stop_words(text: &str) -> Option<StopWords> {
    match text.split_once(' ') {
        None if text == "english" => Some(StopWords::English),
        Some(("list", words)) => {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let is_word = |word: &String| !word.is_empty();
            words.iter().all(is_word).then(|| StopWords::list(words))
        }
        _ => None,
    }
}

/// Whether a line is the header of a vocabulary file.
pub(super) fn is_header(number: u64, line: &[u8]) -> bool {
    number == 1 && line.starts_with(MAGIC.as_bytes())
}
