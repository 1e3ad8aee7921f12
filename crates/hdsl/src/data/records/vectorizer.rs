//! From the columns of records to features.

use super::Dialect;
use super::UNUSABLE;
use super::batch::{Batch, cell_error};
use super::roles::{ColumnGuess, Role, is_feature, is_missing};
use crate::data::counts::{Counted, Piece, Placement, TablePool, Tables};
use crate::data::input::quote;
use crate::data::number::parse_f64;
use crate::data::rows::Rows;
use crate::data::vectorize::{
    Frequency, ITEM_END, PIECE, Split, VectorizeOptions, Vectorizer, Weighting,
};
use crate::data::words::{StopWords, Tokenizer};
use crate::error::{Error, Parsed, Result};
use crate::parallel;
use std::path::Path;

/// Turns records into rows: which columns are features, and which features they become.
///
/// A text column `body` gives features such as `body:delicious`, a column of categories or lists `genre=comedy`, a column of
/// numbers one feature of its own name. The features of the first column come first; those of one column are in the order of
/// their names.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordVectorizer {
    pub(super) columns: Vec<Column>,
    pub(super) label: Option<String>,
    pub(super) id: Option<String>,
    pub(super) dialect: Dialect,
}

/// One column of features.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Whether features have the name of the column before them.
    pub(super) named: bool,
    pub(super) features: Features,
    /// In how many records a term had to be at least and at most, where that is known.
    pub(super) bounds: Option<(Frequency, Frequency)>,
}

/// What a column becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Features {
    /// One feature per term.
    Terms(Box<Vectorizer>),
    /// One feature.
    Number,
}

impl Column {
    fn n_features(&self) -> usize {
        match &self.features {
            Features::Terms(vectorizer) => vectorizer.n_features(),
            Features::Number => 1,
        }
    }

    pub(super) fn role(&self) -> Role {
        match &self.features {
            Features::Number => Role::Numeric,
            Features::Terms(vectorizer) => match vectorizer.split {
                Split::Text => Role::Text,
                Split::Cell => Role::Categorical,
                Split::List(_) => Role::List,
            },
        }
    }

    fn feature_name(&self, feature: u32) -> String {
        let Features::Terms(vectorizer) = &self.features else {
            return self.name.clone();
        };
        let term = vectorizer.term(feature);
        match (&vectorizer.split, self.named) {
            (_, false) => term.into_owned(),
            (Split::Text, true) => format!("{}:{term}", self.name),
            (_, true) => format!("{}={term}", self.name),
        }
    }
}

impl RecordVectorizer {
    /// A vectorizer of one text per record, by a vocabulary.
    pub fn of_texts(vectorizer: Vectorizer) -> Self {
        let column = Column {
            name: "text".into(),
            named: false,
            features: Features::Terms(Box::new(vectorizer)),
            bounds: None,
        };
        Self {
            columns: vec![column],
            label: None,
            id: None,
            dialect: Dialect::default(),
        }
    }

    /// The columns of the guess, without a vocabulary.
    pub(super) fn unfitted(
        guess: &[ColumnGuess],
        options: &VectorizeOptions,
        dialect: Dialect,
        has_names: bool,
    ) -> Result<Self> {
        let mut used: Vec<&ColumnGuess> = guess.iter().filter(|c| is_feature(c.role)).collect();
        // One text is what texts without columns are.
        let only = used.len() == 1;
        let columns = used.drain(..).map(|column| {
            let terms = |split: Split, options: VectorizeOptions| {
                Vectorizer::unfitted(options, split).map(|v| Features::Terms(Box::new(v)))
            };
            let counts = |hashing| VectorizeOptions {
                hashing,
                ..VectorizeOptions::default()
            };
            let features = match column.role {
                Role::Numeric => Features::Number,
                Role::Categorical => terms(Split::Cell, counts(None))?,
                Role::List => {
                    let separator = column.separator.clone().unwrap_or_else(|| ",".into());
                    terms(Split::List(separator), counts(options.hashing))?
                }
                _ => terms(Split::Text, options.clone())?,
            };
            Ok(Column {
                name: column.name.clone(),
                named: has_names || !only,
                features,
                bounds: None,
            })
        });
        let columns = columns.collect::<Result<Vec<Column>>>()?;
        let of = |role: Role| {
            guess
                .iter()
                .find(|c| c.role == role)
                .map(|c| c.name.clone())
        };
        Ok(Self {
            columns,
            label: of(Role::Label),
            id: of(Role::Id),
            dialect,
        })
    }

    /// The options of the command line that give this vectorizer for the same records.
    pub fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        if let Some(label) = &self.label {
            option("--label", label.clone());
        }
        if let Some(id) = &self.id {
            option("--id", id.clone());
        }
        for role in [Role::Text, Role::Categorical, Role::Numeric, Role::List] {
            let columns = self.columns().filter(|column| column.1 == role);
            let names: Vec<&str> = columns.map(|column| column.0).collect();
            if !names.is_empty() {
                option(&format!("--{role}"), names.join(","));
            }
        }
        let terms = |column: &Column| match &column.features {
            Features::Terms(terms) => Some((terms.clone(), column.bounds)),
            Features::Number => None,
        };
        let all: Vec<_> = self.columns.iter().filter_map(terms).collect();
        let separators = all.iter().filter_map(|(terms, _)| match &terms.split {
            Split::List(separator) => Some(separator),
            _ => None,
        });
        if let Some(separator) = separators.into_iter().next() {
            option("--separator", separator.clone());
        }
        let usual = VectorizeOptions::default();
        let bounds = all.iter().find_map(|(_, bounds)| *bounds);
        let (low, high) = bounds.unwrap_or((usual.min_df, usual.max_df));
        if low != usual.min_df {
            option("--min-df", low.to_string());
        }
        if high != usual.max_df {
            option("--max-df", high.to_string());
        }
        if let Some(n) = all.iter().find_map(|(terms, _)| terms.buckets) {
            option("--hashing", n.to_string());
        }
        let Some((text, _)) = all.iter().find(|(terms, _)| terms.split == Split::Text) else {
            return words;
        };
        if text.weighting != usual.weighting {
            option("--weighting", text.weighting.to_string());
        }
        if text.words.analyzer != usual.analyzer {
            option("--analyzer", text.words.analyzer.to_string());
        }
        if text.words.n_grams != usual.n_grams {
            option("--ngrams", text.words.n_grams.to_string());
        }
        if text.words.stem != usual.stem {
            option("--stem", text.words.stem.to_string());
        }
        match text.words.stop_words {
            StopWords::None => {}
            StopWords::English => option("--stop-words", "english".into()),
            StopWords::List(_) => option("--stop-words", "WORDS".into()),
        }
        if !text.words.lowercase {
            words.push("--keep-case".into());
        }
        words
    }

    /// The number of features.
    pub fn n_features(&self) -> usize {
        self.columns.iter().map(Column::n_features).sum()
    }

    /// The columns that become features, and what each is used as.
    pub fn columns(&self) -> impl Iterator<Item = (&str, Role)> {
        self.columns.iter().map(|c| (c.name.as_str(), c.role()))
    }

    /// The column of classes.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The column of names of records.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The name of a feature, unless there is no such feature.
    pub fn feature_name(&self, feature: u32) -> Option<String> {
        let mut rest = feature as usize;
        for column in &self.columns {
            let n = column.n_features();
            if rest < n {
                return Some(column.feature_name(rest as u32));
            }
            rest -= n;
        }
        None
    }

    /// The names of all features.
    pub fn feature_names(&self) -> Vec<String> {
        let names = |column: &Column| -> Vec<String> {
            let features = 0..column.n_features() as u32;
            features
                .map(|feature| column.feature_name(feature))
                .collect()
        };
        self.columns.iter().flat_map(names).collect()
    }

    /// Whether it is known which columns of a table are features. A vocabulary of texts alone is for any text.
    pub fn is_bound(&self) -> bool {
        let plain = |column: &Column| !column.named && column.name == "text";
        let [column] = &self.columns[..] else {
            return true;
        };
        !(plain(column) && self.label.as_deref().is_none_or(|label| label == "label"))
    }

    /// Whether a CSV file of such records has a header, as that of the fit, or else because columns have names. None if that
    /// is unknown.
    pub(super) fn has_header(&self) -> Option<bool> {
        let is_named = |(name, _): (&str, Role)| name.parse::<u64>().is_err();
        let named = self.columns().any(is_named).then_some(true);
        self.dialect.header.or(named)
    }

    /// Whether records are one text each, so that plain texts can stand for them.
    pub fn takes_texts(&self) -> bool {
        matches!(&self.columns[..], [column] if column.role() == Role::Text)
    }

    /// Rows of texts, if records are one text each.
    ///
    /// ```
    /// use hdsl::data::{RecordVectorizer, VectorizeOptions, Vectorizer};
    /// let words = Vectorizer::fit(&["good food", "bad food"], VectorizeOptions::default())?;
    /// let vectorizer = RecordVectorizer::of_texts(words);
    /// assert_eq!(vectorizer.feature_names(), ["bad", "food", "good"]);
    /// assert_eq!(vectorizer.transform_texts(&["good, good"])?.row(0).get(2), 2.0);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn transform_texts<S: AsRef<str> + Sync>(&self, texts: &[S]) -> Result<Rows> {
        match &self.columns[..] {
            [
                Column {
                    features: Features::Terms(vectorizer),
                    ..
                },
            ] if self.takes_texts() => Ok(vectorizer.transform(texts)),
            columns => {
                let names: Vec<String> = columns.iter().map(|c| quote(c.name.as_bytes())).collect();
                Err(Error::data(format!(
                    "texts alone are given, but the features are those of the columns {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// Rows of a table in memory: for each of [`Self::columns`], one cell per record. The values of a list are separated by
    /// U+001F. `name` stands for a path in errors.
    pub fn transform_table(&self, name: &Path, table: &[Vec<String>]) -> Result<Rows> {
        let n_rows = table.first().map_or(0, Vec::len);
        if table.len() != self.columns.len() || table.iter().any(|c| c.len() != n_rows) {
            return Err(Error::data(format!(
                "a table of {} columns, expected {} of the same length",
                table.len(),
                self.columns.len()
            )));
        }
        let mut batches = vec![Batch::new(table.len(), 0)];
        for row in 0..n_rows {
            let batch = batches.last_mut().expect("there is one");
            for column in table {
                batch.push(&column[row]);
                batch.end_cell();
            }
            if batch.size() > PIECE {
                batches.push(Batch::new(table.len(), row as u64 + 1));
            }
        }
        let all: Vec<usize> = (0..table.len()).collect();
        let pieces =
            parallel::try_map_each(batches, 1, |batch| self.count(name, &batch, &all, None));
        let mut counted = Counted::new(self.columns.len());
        for piece in pieces? {
            counted.append(&piece);
        }
        Ok(counted.into_rows(self.n_features(), &self.placements()))
    }

    pub(super) fn placements(&self) -> Vec<Placement> {
        let mut offset = 0;
        let placement = |column: &Column| {
            let placement = match &column.features {
                Features::Terms(vectorizer) => vectorizer.placement(offset),
                Features::Number => number_placement(offset),
            };
            offset += column.n_features() as u32;
            placement
        };
        self.columns.iter().map(placement).collect()
    }

    /// Counts the terms of a batch whose columns are `places` of the batch: terms that are met for the first time with
    /// tables, and those of a vocabulary without.
    pub(super) fn count(
        &self,
        path: &Path,
        batch: &Batch,
        places: &[usize],
        mut tables: Option<&mut Tables>,
    ) -> Result<Piece> {
        let columns = self.columns.iter();
        let tokenizers = columns.map(|column| match &column.features {
            Features::Terms(vectorizer) => Some(vectorizer.words.tokenizer()),
            Features::Number => None,
        });
        let mut tokenizers: Vec<Option<Tokenizer<'_>>> = tokenizers.collect();
        let mut piece = Piece::default();
        for row in 0..batch.n_rows() {
            if let Some(tables) = &mut tables {
                piece.start_row(tables);
            }
            for (number, (column, &at)) in self.columns.iter().zip(places).enumerate() {
                let counted = match (&column.features, &mut tokenizers[number]) {
                    (Features::Terms(terms), Some(tokenizer)) => {
                        let cell = batch.cell(row, at);
                        check_terms(terms, cell).map(|()| match &mut tables {
                            Some(tables) if terms.buckets.is_none() => {
                                terms.learn(cell, tokenizer, &mut piece, tables, number);
                            }
                            _ => terms.count(cell, tokenizer, &mut piece),
                        })
                    }
                    _ => number_of(batch.cell(row, at)).map(|value| {
                        piece.add_number(value);
                        piece.end_column();
                    }),
                };
                counted
                    .map_err(|reason| cell_error(path, batch.place(row), &column.name, &reason))?;
            }
        }
        Ok(piece)
    }
}

const NOT_A_VALUE: &str = "the value is neither a text, a number nor a list of them";

/// The number in a cell; 0 if there is none, as in other files of sparse rows.
fn number_of(cell: &str) -> Parsed<f64> {
    let cell = cell.trim();
    match parse_f64(cell.as_bytes()) {
        _ if cell.is_empty() || is_missing(cell) => Ok(0.0),
        Some(number) if number.is_finite() => Ok(number),
        _ if cell.contains(UNUSABLE) => Err(NOT_A_VALUE.into()),
        _ => Err(format!(
            "{}, expected a finite number or nothing",
            quote(cell.as_bytes())
        )),
    }
}

/// Refuses a cell that has no terms of this kind.
fn check_terms(terms: &Vectorizer, cell: &str) -> Parsed<()> {
    match () {
        _ if cell.starts_with(UNUSABLE) => Err(NOT_A_VALUE.into()),
        _ if terms.split == Split::Cell && cell.contains(ITEM_END) => {
            Err("the value is a list, expected one value; pass the column with --list".into())
        }
        _ => Ok(()),
    }
}

fn number_placement(offset: u32) -> Placement {
    Placement {
        offset,
        places: None,
        weighting: Weighting::Counts,
        idf: Vec::new(),
    }
}

/// The terms of all columns while records are read for the first time.
pub(super) struct Fitting {
    vectorizer: RecordVectorizer,
    pool: TablePool,
    min_df: Frequency,
    max_df: Frequency,
}

impl Fitting {
    pub(super) fn new(vectorizer: RecordVectorizer, options: &VectorizeOptions) -> Self {
        Self {
            pool: TablePool::new(vectorizer.columns.len()),
            vectorizer,
            min_df: options.min_df,
            max_df: options.max_df,
        }
    }

    pub(super) fn vectorizer(&self) -> &RecordVectorizer {
        &self.vectorizer
    }

    /// Counts the terms of a batch.
    pub(super) fn count(&self, path: &Path, batch: &Batch, places: &[usize]) -> Result<Piece> {
        let count = |tables: &mut Tables| self.vectorizer.count(path, batch, places, Some(tables));
        self.pool.with(count)
    }

    /// Chooses the features, and gives the rows of all batches.
    pub(super) fn finish(self, path: &Path, counted: Counted) -> Result<(RecordVectorizer, Rows)> {
        let (mut vectorizer, n_rows) = (self.vectorizer, counted.n_rows());
        let mut offset = 0usize;
        let mut placements = Vec::new();
        let wrong = |reason: String| Error::file(path, reason);
        for (column, terms) in vectorizer.columns.iter_mut().zip(self.pool.into_terms()) {
            let first =
                u32::try_from(offset).map_err(|_| wrong("has more than 2^32 features".into()))?;
            placements.push(match &mut column.features {
                Features::Number => number_placement(first),
                Features::Terms(vectorizer) if vectorizer.buckets.is_some() => {
                    vectorizer.placement(first)
                }
                Features::Terms(vectorizer) if terms.interner.len() == 0 => Placement {
                    places: Some(Vec::new()),
                    ..vectorizer.placement(first)
                },
                Features::Terms(vectorizer) => {
                    let (low, high) = match vectorizer.split {
                        Split::Cell => (Frequency::Count(1), Frequency::Fraction(1.0)),
                        _ => *column.bounds.insert((self.min_df, self.max_df)),
                    };
                    vectorizer
                        .choose(&terms, n_rows, low, high, first)
                        .map_err(|e| {
                            wrong(format!("column {}: {e}", quote(column.name.as_bytes())))
                        })?
                }
            });
            offset += column.n_features();
        }
        if offset == 0 || offset > u32::MAX as usize {
            return Err(wrong(format!(
                "has {offset} features, expected 1 to 2^32 - 1"
            )));
        }
        let rows = counted.into_rows(offset, &placements);
        Ok((vectorizer, rows))
    }
}
