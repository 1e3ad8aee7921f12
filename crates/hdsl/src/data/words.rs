//! From texts to words: lower case, stop words, stems.

use super::input::{Input, quote};
use super::stop_words;
use crate::error::{Error, Result};
use crate::named::named_enum;
use frostem::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

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

/// What counts as a word, and which words are the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Words {
    pub(super) lowercase: bool,
    pub(super) stem: Stem,
    pub(super) stop_words: StopWords,
}

impl Words {
    /// Calls `each` with the words of every text in turn, and the text's position. A word is a run of two or more letters,
    /// digits or underscores (Unicode). The stem of each distinct word is taken once.
    pub(super) fn each<S: AsRef<str>>(&self, texts: &[S], mut each: impl FnMut(usize, &str)) {
        let stemmer = match self.stem {
            Stem::None => None,
            Stem::English => Some(Stemmer::new(Algorithm::English)),
        };
        let mut stems: HashMap<String, String> = HashMap::new();
        for (at, text) in texts.iter().enumerate() {
            let folded = fold(text.as_ref(), self.lowercase);
            for word in tokens(&folded).filter(|word| !self.stop_words.contains(word)) {
                let Some(stemmer) = &stemmer else {
                    each(at, word);
                    continue;
                };
                match stems.get(word) {
                    Some(stem) => each(at, stem),
                    None => {
                        let stem = stemmer.stem(word).into_owned();
                        each(at, &stem);
                        stems.insert(word.to_owned(), stem);
                    }
                }
            }
        }
    }

    /// The distinct words of each text, in no particular order.
    pub(super) fn distinct<S: AsRef<str>>(&self, texts: &[S]) -> Vec<HashSet<String>> {
        let mut distinct = vec![HashSet::new(); texts.len()];
        self.each(texts, |at, word| {
            if !distinct[at].contains(word) {
                distinct[at].insert(word.to_owned());
            }
        });
        distinct
    }
}

fn fold(text: &str, lowercase: bool) -> Cow<'_, str> {
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
        };
        let mut found = Vec::new();
        words.each(
            &["The flows were FLOWING", "a flow being flowed"],
            |at, word| {
                found.push((at, word.to_owned()));
            },
        );
        let flow = "flow".to_owned();
        // `being` is a stop word, although its stem `be` is one, too.
        let expected = [
            (0, flow.clone()),
            (0, flow.clone()),
            (1, flow.clone()),
            (1, flow),
        ];
        assert_eq!(found, expected);
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
