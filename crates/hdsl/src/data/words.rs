//! From texts to words: lower case, stop words, stems.

use super::input::{Input, quote};
use super::stop_words;
use crate::error::{Error, Result};
use crate::named::named_enum;
use frostem::{Algorithm, Stemmer};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

named_enum! {
    /// What words are reduced to, so that their forms are one feature.
    pub enum Stem as "stem" = "none" | "english", default None {
        /// Words as they are.
        None,
        /// The stem by Snowball's English algorithm (Porter2): `flows`, `flowed` and `flowing` become `flow`.
        English,
    }
}

/// Words that are left out of texts, before stems are taken.
///
/// ```
/// use hdsl::data::StopWords;
/// assert!(StopWords::English.contains("which"));
/// assert!(!StopWords::English.contains("wing"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopWords {
    /// None.
    #[default]
    None,
    /// 316 English function words, the list that scikit-learn calls `english`.
    English,
    /// These words, sorted, as they are in texts (in lower case, where texts are folded to it).
    List(Vec<String>),
}

impl StopWords {
    /// Reads words, separated by blanks or line ends.
    pub fn read(path: &Path) -> Result<Self> {
        let want = "words separated by blanks or line ends";
        let mut words = Vec::new();
        Input::open(path, want)?.each_line(|_, line| {
            let Ok(text) = std::str::from_utf8(line) else {
                return Err(format!("{} is not UTF-8", quote(line)));
            };
            words.extend(text.split_whitespace().map(str::to_owned));
            Ok(())
        })?;
        match words.is_empty() {
            true => Err(Error::file(path, format!("has no words, expected {want}"))),
            false => Ok(Self::list(words)),
        }
    }

    pub(super) fn list(mut words: Vec<String>) -> Self {
        words.sort_unstable();
        words.dedup();
        Self::List(words)
    }

    /// Whether a word is left out.
    #[inline]
    pub fn contains(&self, word: &str) -> bool {
        match self {
            Self::None => false,
            Self::English => stop_words::ENGLISH.binary_search(&word).is_ok(),
            Self::List(list) => list
                .binary_search_by(|other| other.as_str().cmp(word))
                .is_ok(),
        }
    }
}

named_enum! {
    /// What the features of a text are.
    pub enum Analyzer as "analyzer" = "word" | "char" | "char_wb", default Word {
        /// Words: runs of two or more letters, digits or underscores.
        Word,
        /// Sequences of characters, blanks included.
        Char,
        /// Sequences of characters within words, with a blank at both ends of a word.
        CharWb,
    }
}

/// How many words or characters in sequence are one feature: from the first number to the second.
///
/// ```
/// use hdsl::data::NGrams;
/// assert_eq!("1-2".parse(), Ok(NGrams { low: 1, high: 2 }));
/// assert_eq!("3".parse(), Ok(NGrams { low: 3, high: 3 }));
/// assert!("2-1".parse::<NGrams>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NGrams {
    /// The fewest.
    pub low: usize,
    /// The most.
    pub high: usize,
}

impl NGrams {
    /// The longest sequence that makes sense; a longer one is a typing error.
    const MOST: usize = 20;
}

impl Default for NGrams {
    /// Single words or characters.
    fn default() -> Self {
        Self { low: 1, high: 1 }
    }
}

impl FromStr for NGrams {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        match (low.trim().parse(), high.trim().parse()) {
            (Ok(low), Ok(high)) if 0 < low && low <= high && high <= Self::MOST => {
                Ok(Self { low, high })
            }
            _ => Err(format!(
                "{} is neither a number nor a range of numbers from 1 to {}, expected for example 1-2",
                quote(text.as_bytes()),
                Self::MOST
            )),
        }
    }
}

impl TryFrom<String> for NGrams {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<NGrams> for String {
    fn from(n_grams: NGrams) -> Self {
        n_grams.to_string()
    }
}

impl fmt::Display for NGrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low == self.high {
            true => write!(f, "{}", self.low),
            false => write!(f, "{}-{}", self.low, self.high),
        }
    }
}

/// What counts as a word, and which words are the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Words {
    pub(super) lowercase: bool,
    pub(super) stem: Stem,
    pub(super) stop_words: StopWords,
    pub(super) analyzer: Analyzer,
    pub(super) n_grams: NGrams,
}

impl Words {
    /// Stop words and stems are about words.
    pub(super) fn check(&self) -> Result<()> {
        let of_words = self.stem != Stem::None || self.stop_words != StopWords::None;
        match of_words && self.analyzer != Analyzer::Word {
            true => Err(Error::data(format!(
                "stop words and stems need the analyzer `word`, but it is `{}`",
                self.analyzer
            ))),
            false => Ok(()),
        }
    }

    /// A tokenizer of its own for one thread.
    pub(super) fn tokenizer(&self) -> Tokenizer<'_> {
        let stemmer = match self.stem {
            Stem::None => None,
            Stem::English => Some(Stemmer::new(Algorithm::English)),
        };
        Tokenizer {
            words: self,
            stemmer,
            stems: HashMap::new(),
            folded: String::new(),
            joined: String::new(),
            ends: Vec::new(),
        }
    }
}

/// Gives the terms of texts: words, or sequences of words or characters. The stem of each distinct word is taken once.
pub(super) struct Tokenizer<'a> {
    words: &'a Words,
    stemmer: Option<Stemmer>,
    stems: HashMap<String, String>,
    /// The text in lower case.
    folded: String,
    /// Words of the text with one blank after each, or characters.
    joined: String,
    /// Where each word or character ends in `joined`.
    ends: Vec<usize>,
}

impl Tokenizer<'_> {
    /// Calls `each` with every term of a text, repeated ones included.
    pub(super) fn each(&mut self, text: &str, mut each: impl FnMut(&str)) {
        let words = self.words;
        let folded = match words.lowercase {
            false => text,
            true if text.is_ascii() => {
                self.folded.clear();
                self.folded.push_str(text);
                self.folded.make_ascii_lowercase();
                &self.folded
            }
            // Not letter by letter: what becomes of a capital sigma depends on its place in the word.
            true => {
                self.folded = text.to_lowercase();
                &self.folded
            }
        };
        match words.analyzer {
            Analyzer::Word => {
                let stemmer = self.stemmer.as_ref();
                let (stems, stop_words) = (&mut self.stems, &words.stop_words);
                if words.n_grams == NGrams::default() {
                    each_word(folded, |word| {
                        if !stop_words.contains(word) {
                            each(stem(word, stemmer, stems));
                        }
                    });
                    return;
                }
                self.joined.clear();
                self.ends.clear();
                each_word(folded, |word| {
                    if !stop_words.contains(word) {
                        self.joined.push_str(stem(word, stemmer, stems));
                        self.ends.push(self.joined.len());
                        self.joined.push(' ');
                    }
                });
                each_sequence(&self.joined, &self.ends, 1, words.n_grams, each);
            }
            Analyzer::Char => {
                self.joined.clear();
                self.ends.clear();
                let mut blanks = 0;
                for c in folded.chars() {
                    // Two or more blanks are one space; a single blank stays what it is.
                    blanks = if is_blank(c) { blanks + 1 } else { 0 };
                    if blanks == 2 {
                        self.joined
                            .truncate(self.joined.len() - last_length(&self.joined));
                        self.joined.push(' ');
                        *self.ends.last_mut().expect("the blank before") = self.joined.len();
                    } else if blanks < 2 {
                        self.joined.push(c);
                        self.ends.push(self.joined.len());
                    }
                }
                each_sequence(&self.joined, &self.ends, 0, words.n_grams, each);
            }
            Analyzer::CharWb => {
                for word in folded.split(is_blank).filter(|word| !word.is_empty()) {
                    self.joined.clear();
                    self.ends.clear();
                    for c in std::iter::once(' ').chain(word.chars()).chain([' ']) {
                        self.joined.push(c);
                        self.ends.push(self.joined.len());
                    }
                    each_within(&self.joined, &self.ends, words.n_grams, &mut each);
                }
            }
        }
    }
}

/// The stem of a word, or the word itself.
#[inline(always)]
fn stem<'a>(
    word: &'a str,
    stemmer: Option<&Stemmer>,
    stems: &'a mut HashMap<String, String>,
) -> &'a str {
    let Some(stemmer) = stemmer else {
        return word;
    };
    if !stems.contains_key(word) {
        stems.insert(word.to_owned(), stemmer.stem(word).into_owned());
    }
    &stems[word]
}

/// The length in bytes of the last character.
fn last_length(text: &str) -> usize {
    text.chars().next_back().map_or(0, char::len_utf8)
}

/// Python's white space, of which Rust's lacks four separators.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// All sequences of `n_grams` parts, where `gap` bytes separate two parts.
fn each_sequence(
    joined: &str,
    ends: &[usize],
    gap: usize,
    n_grams: NGrams,
    mut each: impl FnMut(&str),
) {
    for n in n_grams.low..=n_grams.high.min(ends.len()) {
        for last in n - 1..ends.len() {
            let start = match last + 1 - n {
                0 => 0,
                first => ends[first - 1] + gap,
            };
            each(&joined[start..ends[last]]);
        }
    }
}

/// The sequences of one word with its blanks. A word that is not longer than a sequence is one term, once.
fn each_within(joined: &str, ends: &[usize], n_grams: NGrams, each: &mut impl FnMut(&str)) {
    for n in n_grams.low..=n_grams.high {
        if ends.len() <= n {
            each(joined);
            break;
        }
        each_sequence(joined, ends, 0, NGrams { low: n, high: n }, &mut *each);
    }
}

/// ASCII characters that words consist of.
const WORD_BYTES: [bool; 128] = {
    let mut table = [false; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

/// Calls `each` with the runs of two or more word characters.
#[inline]
fn each_word(text: &str, mut each: impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (mut length, is_word) = word_character(text, at);
        if !is_word {
            at += length;
            continue;
        }
        let (start, mut n) = (at, 0);
        loop {
            at += length;
            n += 1;
            if at == bytes.len() {
                break;
            }
            let more;
            (length, more) = word_character(text, at);
            if !more {
                break;
            }
        }
        if n > 1 {
            each(&text[start..at]);
        }
    }
}

/// The length of the character at a place, and whether words consist of such.
#[inline(always)]
fn word_character(text: &str, at: usize) -> (usize, bool) {
    let byte = text.as_bytes()[at];
    match WORD_BYTES.get(byte as usize) {
        Some(&is_word) => (1, is_word),
        None => {
            let c = text[at..].chars().next().expect("a character starts here");
            (c.len_utf8(), c.is_alphanumeric())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_english_list_is_sorted_as_the_search_needs() {
        assert!(stop_words::ENGLISH.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn stop_words_go_before_stems_are_taken() {
        let words = Words {
            lowercase: true,
            stem: Stem::English,
            stop_words: StopWords::English,
            ..Words::default()
        };
        // `being` is a stop word, although its stem `be` is one, too.
        for text in ["The flows were FLOWING", "a flow being flowed"] {
            assert_eq!(terms(&words, text), ["flow", "flow"]);
        }
    }

    fn terms(words: &Words, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words
            .tokenizer()
            .each(text, |term| found.push(term.to_owned()));
        found
    }

    #[test]
    fn sequences_are_those_of_scikit_learn() {
        // CountVectorizer(...).build_analyzer(), scikit-learn 1.9.
        for (analyzer, n_grams, text, expected) in [
            (
                Analyzer::Word,
                "1-2",
                "One two, three",
                "one|two|three|one two|two three",
            ),
            (Analyzer::Word, "2-3", "one", ""),
            (Analyzer::Char, "2", "a \t\nb\tc", "a | b|b\t|\tc"),
            (Analyzer::Char, "1-3", "É x", "é| |x|é | x|é x"),
            (Analyzer::Char, "3", "ab", ""),
            (Analyzer::CharWb, "3-4", "ab c", " ab|ab | ab | c "),
            (Analyzer::CharWb, "5-9", "ab", " ab "),
        ] {
            let words = Words {
                lowercase: true,
                analyzer,
                n_grams: n_grams.parse().unwrap(),
                ..Words::default()
            };
            assert_eq!(
                terms(&words, text).join("|"),
                expected,
                "{analyzer} {n_grams}"
            );
        }
    }

    #[test]
    fn words_may_have_any_letters() {
        let words = Words::default();
        assert_eq!(
            terms(&words, "naïve café a_b x ½½ —日本 語"),
            ["naïve", "café", "a_b", "½½", "日本"]
        );
    }

    #[test]
    fn stems_are_those_of_the_published_algorithm() {
        // From the examples on snowballstem.org for English.
        let stemmer = Stemmer::new(Algorithm::English);
        for (word, stem) in [
            ("consigned", "consign"),
            ("consistency", "consist"),
            ("consolingly", "consol"),
            ("knightly", "knight"),
            ("knots", "knot"),
            ("aerodynamics", "aerodynam"),
            ("boundary", "boundari"),
        ] {
            assert_eq!(stemmer.stem(word), stem);
        }
    }
}
