//! Which column is what: as the caller says, or guessed from names and content.

use super::batch::Batch;
use super::{Dialect, UNUSABLE};
use crate::data::input::quote;
use crate::data::number::parse_f64;
use crate::data::read::Format;
use crate::data::vectorize::ITEM_END;
use crate::error::{Error, Result};
use crate::named::named_enum;
use std::collections::HashSet;
use std::path::Path;

named_enum! {
    /// What a column is used as.
    pub enum Role as "role" = "label" | "id" | "text" | "categorical" | "numeric" | "list" | "ignored" {
        /// The class of a record.
        Label,
        /// The name of a record.
        Id,
        /// A text: one feature per word.
        Text,
        /// One of several values: one feature per value.
        Categorical,
        /// A number: one feature.
        Numeric,
        /// Several values in one cell: one feature per value.
        List,
        /// Not used.
        Ignored,
    }
}

/// Columns by name, or by number (counted from 1) in files without names. What is not given is guessed: the label, if there
/// is a column that looks like one, and the features, unless any column is given as a feature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnRoles {
    /// The column of classes.
    pub label: Option<String>,
    /// The column of names.
    pub id: Option<String>,
    /// Columns of texts.
    pub text: Vec<String>,
    /// Columns of one value out of several.
    pub categorical: Vec<String>,
    /// Columns of numbers.
    pub numeric: Vec<String>,
    /// Columns of several values per cell.
    pub list: Vec<String>,
    /// What separates the values of a list; guessed per column if it is not given.
    pub separator: Option<String>,
}

impl ColumnRoles {
    /// Whether any column is given.
    pub fn is_given(&self) -> bool {
        self.given().next().is_some()
    }

    fn given(&self) -> impl Iterator<Item = (&String, Role)> {
        let label = self.label.iter().map(|name| (name, Role::Label));
        let id = self.id.iter().map(|name| (name, Role::Id));
        label.chain(id).chain(self.features())
    }

    fn features(&self) -> impl Iterator<Item = (&String, Role)> {
        let lists = [
            (&self.text, Role::Text),
            (&self.categorical, Role::Categorical),
            (&self.numeric, Role::Numeric),
            (&self.list, Role::List),
        ];
        let lists = lists.into_iter();
        lists.flat_map(|(names, role)| names.iter().map(move |name| (name, role)))
    }
}

/// What a column is used as, and why.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnGuess {
    /// The name of the column.
    pub name: String,
    /// What it is used as.
    pub role: Role,
    /// Whether that was guessed.
    pub guessed: bool,
    /// What separates the values of a list.
    pub separator: Option<String>,
    /// The first value that is not empty.
    pub example: String,
}

/// How many records are looked at.
const SAMPLE: usize = 1000;

/// Names that labels often have, the most telling first.
const LABELS: [&str; 13] = [
    "label",
    "labels",
    "class",
    "target",
    "y",
    "category",
    "sentiment",
    "verdict",
    "stars",
    "rating",
    "topic",
    "genre",
    "species",
];

/// Names that ids often have.
const IDS: [&str; 9] = [
    "id",
    "_id",
    "uid",
    "uuid",
    "guid",
    "docid",
    "doc_id",
    "key",
    "unnamed: 0",
];

/// Names that texts often have.
const TEXTS: [&str; 12] = [
    "text",
    "texts",
    "body",
    "review",
    "sentence",
    "document",
    "content",
    "title",
    "message",
    "comment",
    "description",
    "question",
];

/// Whether columns are often called so.
pub(super) fn is_usual_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let lists = [&LABELS[..], &IDS, &TEXTS];
    lists.iter().any(|list| list.contains(&name.as_str()))
}

/// More classes than this are hardly classes.
const MOST_CLASSES: usize = 100;

/// What the columns of a file are by its format, whatever they contain: those of plain text, and two columns without names,
/// separated by a tab, are a label and a text.
fn by_format(columns: &[String], format: Format, dialect: Dialect) -> Option<ColumnRoles> {
    let is_text = format == Format::Text;
    let is_pairs = dialect.delimiter == Some(b'\t') && dialect.header == Some(false);
    let (label, text) = match columns {
        [text] if is_text => (None, text),
        [label, text] if is_text || is_pairs => (Some(label), text),
        _ => return None,
    };
    Some(ColumnRoles {
        label: label.cloned(),
        text: vec![text.clone()],
        ..ColumnRoles::default()
    })
}

/// The given roles, and those by the format where none is given. Of a table without names, either all are given or none.
fn with_format(given: &ColumnRoles, usual: Option<ColumnRoles>, format: Format) -> ColumnRoles {
    let Some(usual) = usual.filter(|_| format == Format::Text || !given.is_given()) else {
        return given.clone();
    };
    let is_free = |name: &String| given.given().all(|(given, _)| given != name);
    let mut roles = given.clone();
    roles.label = given.label.clone().or(usual.label.filter(is_free));
    if given.features().next().is_none() {
        roles.text = usual.text.into_iter().filter(is_free).collect();
    }
    roles
}

/// What every column is used as.
pub(super) fn resolve(
    path: &Path,
    columns: &[String],
    sample: &Batch,
    given: &ColumnRoles,
    format: Format,
    dialect: Dialect,
) -> Result<Vec<ColumnGuess>> {
    let roles = &with_format(given, by_format(columns, format, dialect), format);
    let facts: Vec<Facts> = (0..columns.len()).map(|c| Facts::of(sample, c)).collect();
    let mut found: Vec<Option<Role>> = vec![None; columns.len()];
    for (name, role) in roles.given() {
        let column = position(path, columns, name)?;
        if let Some(other) = found[column].replace(role) {
            let name = quote(name.as_bytes());
            return Err(Error::file(
                path,
                format!("column {name} is given as {other} and as {role}, expected one of them"),
            ));
        }
    }
    let mut all: Vec<ColumnGuess> = columns
        .iter()
        .zip(&facts)
        .zip(&found)
        .map(|((name, facts), role)| ColumnGuess {
            name: name.clone(),
            role: role.unwrap_or(Role::Ignored),
            guessed: given.given().all(|(given, _)| given != name),
            separator: None,
            example: facts.example.clone(),
        })
        .collect();
    if roles.id.is_none()
        && let Some(column) = guess_id(columns, &facts, &found)
    {
        (all[column].role, found[column]) = (Role::Id, Some(Role::Id));
    }
    if roles.label.is_none()
        && let Some(column) = guess_label(columns, &facts, &found)
    {
        (all[column].role, found[column]) = (Role::Label, Some(Role::Label));
    }
    if roles.features().next().is_none() {
        for (column, facts) in facts.iter().enumerate() {
            if found[column].is_none() {
                all[column].role = facts.role();
            }
        }
    }
    for (column, facts) in all.iter_mut().zip(&facts) {
        if column.role == Role::List {
            let guess = || facts.separator().unwrap_or(",").to_owned();
            column.separator = Some(roles.separator.clone().unwrap_or_else(guess));
        }
    }
    if !all.iter().any(|column| is_feature(column.role)) {
        return Err(Error::file(
            path,
            format!(
                "none of the columns {} looks like a feature; pass --text, --categorical, --numeric or --list",
                listed(columns)
            ),
        ));
    }
    Ok(all)
}

/// Whether columns of this role become features.
pub(super) fn is_feature(role: Role) -> bool {
    !matches!(role, Role::Label | Role::Id | Role::Ignored)
}

/// The number of a column.
pub(super) fn position(path: &Path, columns: &[String], name: &str) -> Result<usize> {
    let found = columns.iter().position(|other| other == name);
    found.ok_or_else(|| {
        let name = quote(name.as_bytes());
        let reason = format!("has no column {name}; its columns are {}", listed(columns));
        Error::file(path, reason)
    })
}

fn listed(columns: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = columns.iter().take(SHOWN);
    let mut shown: Vec<String> = shown.map(|name| quote(name.as_bytes())).collect();
    if columns.len() > SHOWN {
        shown.push(format!("and {} more", columns.len() - SHOWN));
    }
    shown.join(", ")
}

fn guess_id(columns: &[String], facts: &[Facts], found: &[Option<Role>]) -> Option<usize> {
    let free = |column: &usize| found[*column].is_none();
    let is_id = |&column: &usize| {
        let facts = &facts[column];
        IDS.contains(&columns[column].to_lowercase().as_str())
            // A few repeated ones are an error, with their lines, and no reason to take them for something else.
            && facts.n_distinct + (facts.n_rows / 10).max(1) >= facts.n_rows
            && facts.n_distinct > 1
    };
    (0..columns.len()).filter(free).find(is_id)
}

fn guess_label(columns: &[String], facts: &[Facts], found: &[Option<Role>]) -> Option<usize> {
    let free = |column: &usize| found[*column].is_none();
    let candidates: Vec<usize> = (0..columns.len())
        .filter(free)
        .filter(|&column| facts[column].could_be_label())
        .collect();
    let rank = |&&column: &&usize| {
        let name = columns[column].to_lowercase();
        LABELS.iter().position(|label| *label == name)
    };
    let named = candidates.iter().filter(|column| rank(column).is_some());
    if let Some(&column) = named.min_by_key(|column| rank(column)) {
        return Some(column);
    }
    // Labels are at one of the ends, and words rather than numbers.
    let ends = [columns.len().checked_sub(1), Some(0)]
        .into_iter()
        .flatten();
    let ends: Vec<usize> = ends.filter(|end| candidates.contains(end)).collect();
    let words = ends.iter().find(|&&column| !facts[column].is_numeric());
    words.or(ends.first()).copied()
}

/// What a sample says about a column.
#[derive(Default)]
struct Facts {
    n_rows: usize,
    /// Distinct values that are not empty.
    n_distinct: usize,
    n_filled: usize,
    n_numbers: usize,
    n_whole: usize,
    n_words: usize,
    n_lists: usize,
    n_unusable: usize,
    /// Cells that contain each of [`SEPARATORS`], and the words between them.
    separated: [(usize, usize, usize); SEPARATORS.len()],
    example: String,
}

/// Separators of lists, the most telling first.
const SEPARATORS: [&str; 3] = ["|", ";", ","];

impl Facts {
    fn of(sample: &Batch, column: usize) -> Self {
        let mut facts = Self::default();
        let mut distinct = HashSet::new();
        for row in 0..sample.n_rows().min(SAMPLE) {
            let cell = sample.cell(row, column).trim();
            facts.n_rows += 1;
            if cell.is_empty() {
                continue;
            }
            distinct.insert(cell);
            if facts.example.is_empty() {
                facts.example = cell.trim_end_matches(ITEM_END).replace(ITEM_END, " | ");
            }
            facts.n_filled += 1;
            facts.n_unusable += usize::from(cell.contains(UNUSABLE));
            facts.n_lists += usize::from(cell.contains(ITEM_END));
            if is_missing(cell) {
                facts.n_numbers += 1;
                facts.n_whole += 1;
            } else if let Some(number) = parse_f64(cell.as_bytes()).filter(|n| n.is_finite()) {
                facts.n_numbers += 1;
                facts.n_whole += usize::from(number.fract() == 0.0);
            }
            facts.n_words += cell.split_whitespace().count();
            for (separator, (cells, items, words)) in SEPARATORS.iter().zip(&mut facts.separated) {
                if cell.contains(separator) {
                    *cells += 1;
                    for item in cell.split(separator) {
                        *items += 1;
                        *words += item.split_whitespace().count();
                    }
                }
            }
        }
        facts.n_distinct = distinct.len();
        facts
    }

    fn is_numeric(&self) -> bool {
        self.n_filled > 0 && self.n_numbers == self.n_filled
    }

    /// The separator of lists of short items, if most cells are such lists.
    fn separator(&self) -> Option<&'static str> {
        let is_separator =
            |(separator, (cells, items, words)): &(&&str, &(usize, usize, usize))| {
                // Commas occur in sentences, too.
                let longest = if **separator == "," { 1.5 } else { 3.0 };
                2 * cells > self.n_filled && *words as f64 <= longest * *items as f64
            };
        let mut separators = SEPARATORS.iter().zip(&self.separated);
        separators
            .find(is_separator)
            .map(|(separator, _)| *separator)
    }

    fn is_text(&self) -> bool {
        self.n_words > 3 * self.n_filled
    }

    /// Few classes, each of them more than once, and no sentences.
    fn could_be_label(&self) -> bool {
        let few = self.n_distinct <= MOST_CLASSES && 2 * self.n_distinct <= self.n_filled.max(4);
        let whole = !self.is_numeric() || (self.n_whole == self.n_filled && self.n_distinct <= 20);
        self.n_unusable + self.n_lists == 0
            && self.n_distinct > 1
            && few
            && whole
            && !self.is_text()
    }

    fn role(&self) -> Role {
        let all_distinct = self.n_distinct == self.n_filled && self.n_filled > 20;
        match () {
            _ if self.n_unusable > 0 || self.n_filled == 0 => Role::Ignored,
            _ if self.n_lists > 0 => Role::List,
            _ if self.is_numeric() => Role::Numeric,
            _ if self.separator().is_some() => Role::List,
            _ if self.is_text() => Role::Text,
            // Names and keys: a value that no other record has says nothing.
            _ if all_distinct && self.n_words <= self.n_filled => Role::Ignored,
            _ if all_distinct => Role::Text,
            _ => Role::Categorical,
        }
    }
}

/// Texts that stand for a missing number.
pub(super) fn is_missing(cell: &str) -> bool {
    ["na", "nan", "null", "none", "n/a"].contains(&cell.to_ascii_lowercase().as_str())
}
