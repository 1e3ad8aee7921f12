//! Options about records: what their columns are, and what becomes of texts.

use super::heading::{COLUMNS, TEXT};
use super::named;
use crate::failure::Failure;
use clap::{Args, ValueHint};
use hdsl::data::{
    Analyzer, ColumnRoles, Dialect, Frequency, NGrams, Stem, StopWords, VectorizeOptions, Weighting,
};
use std::path::PathBuf;
use std::str::FromStr;

/// What the columns of records are.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ColumnArgs {
    /// Column of classes [default: guessed from names and content; `hdsl inspect FILE` shows the guess]
    ///
    /// Columns are given by name, or by number, counted from 1, in files without a header.
    #[arg(long, value_name = "COLUMN", help_heading = COLUMNS)]
    pub(crate) label: Option<String>,
    /// Columns of texts: a feature per word, such as body:delicious
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = COLUMNS)]
    pub(crate) text: Vec<String>,
    /// Columns of categories: a feature per value, such as genre=comedy
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = COLUMNS)]
    pub(crate) categorical: Vec<String>,
    /// Columns of numbers: a feature per column
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = COLUMNS)]
    pub(crate) numeric: Vec<String>,
    /// Columns of lists: a feature per value, such as tags=rock
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = COLUMNS)]
    pub(crate) list: Vec<String>,
    /// What separates the values of a list [default: guessed]
    #[arg(long, value_name = "TEXT", help_heading = COLUMNS)]
    pub(crate) separator: Option<String>,
    /// Column of names of records, which must be distinct [default: guessed]
    #[arg(long, value_name = "COLUMN", help_heading = COLUMNS)]
    pub(crate) id: Option<String>,
    /// What separates the fields of a CSV file: one character, or `tab` [default: guessed]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, help_heading = COLUMNS)]
    pub(crate) delimiter: Option<u8>,
    /// The first line of a CSV file has the names of columns [default: guessed]
    #[arg(long, help_heading = COLUMNS)]
    pub(crate) header: bool,
    /// The first line of a CSV file has no names of columns
    #[arg(long, conflicts_with = "header", help_heading = COLUMNS)]
    pub(crate) no_header: bool,
}

impl ColumnArgs {
    /// The columns as the library takes them.
    pub(crate) fn roles(&self) -> ColumnRoles {
        ColumnRoles {
            label: self.label.clone(),
            id: self.id.clone(),
            text: self.text.clone(),
            categorical: self.categorical.clone(),
            numeric: self.numeric.clone(),
            list: self.list.clone(),
            separator: self.separator.clone(),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        Dialect {
            delimiter: self.delimiter,
            header: match (self.header, self.no_header) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
        }
    }

    /// Whether columns of features are given.
    pub(crate) fn has_features(&self) -> bool {
        let lists = [&self.text, &self.categorical, &self.numeric, &self.list];
        lists.iter().any(|list| !list.is_empty())
    }
}

/// What the features of texts are.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct TextArgs {
    /// Value of a word in a row [default: counts]
    #[arg(long, value_name = "HOW", value_parser = named!(Weighting), conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) weighting: Option<Weighting>,
    /// Leave out words found in fewer documents: 5 is a number of documents, 0.01 a fraction [default: 1]
    #[arg(long, value_name = "DF", value_parser = Frequency::from_str, conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) min_df: Option<Frequency>,
    /// Leave out words found in more documents: 500 is a number of documents, 0.5 a fraction [default: 1.0]
    #[arg(long, value_name = "DF", value_parser = Frequency::from_str, conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) max_df: Option<Frequency>,
    /// Treat `Word` and `word` as different words
    #[arg(long, conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) keep_case: bool,
    /// Reduce words to their stems, so that `flows` and `flowing` are one feature
    #[arg(long, value_name = "LANGUAGE", value_parser = named!(Stem), default_value_t, conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) stem: Stem,
    /// Leave out these words: english (a list of 316 function words), or a file of words
    #[arg(long, value_name = "WORDS", conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) stop_words: Option<String>,
    /// What the features of texts are
    #[arg(long, value_name = "UNIT", value_parser = named!(Analyzer), default_value_t, conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) analyzer: Analyzer,
    /// Sequences of this many words or characters: 2, or 1-3 [default: 1]
    #[arg(long, value_name = "N-M", value_parser = NGrams::from_str, conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) ngrams: Option<NGrams>,
    /// Instead of a vocabulary, this many features by the hash of the word; words have no names then
    #[arg(long, value_name = "FEATURES", value_parser = clap::value_parser!(u32).range(1..=1 << 31), conflicts_with = "vocab", help_heading = TEXT)]
    pub(crate) hashing: Option<u32>,
    /// Apply this vocabulary of `vectorize --save-vocab` instead of building one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = TEXT)]
    pub(crate) vocab: Option<PathBuf>,
}

impl TextArgs {
    /// The options as the library takes them. Reads the file of stop words.
    pub(crate) fn options(&self) -> Result<VectorizeOptions, Failure> {
        let usual = VectorizeOptions::default();
        Ok(VectorizeOptions {
            weighting: self.weighting.unwrap_or_default(),
            min_df: self.min_df.unwrap_or(usual.min_df),
            max_df: self.max_df.unwrap_or(usual.max_df),
            lowercase: !self.keep_case,
            stem: self.stem,
            stop_words: stop_words(self.stop_words.as_deref())?,
            analyzer: self.analyzer,
            n_grams: self.ngrams.unwrap_or_default(),
            hashing: self.hashing,
        })
    }
}

/// The words that `--stop-words` names: a language, or a file.
fn stop_words(named: Option<&str>) -> Result<StopWords, Failure> {
    Ok(match named {
        None => StopWords::None,
        Some("english") => StopWords::English,
        Some(path) => StopWords::read(path.as_ref())?,
    })
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err("expected one ASCII character, or the word tab".into()),
    }
}
