//! What the line-based formats share: one row per line, parsed in parallel, put together in file order.

use super::input::{self, Input, quote};
use super::map::concat_rows;
use super::number::{parse_f64, parse_u64};
use super::row_builder::{RowBuilder, row_notes};
use super::{Dataset, IndexBase, Labels, ReadOptions, Rows};
use crate::error::{Error, Result};
use crate::parallel::{self, prelude::*};
use std::collections::HashMap;
use std::path::Path;

/// How much text one task parses. Fixed, so that the pieces do not depend on the number of threads.
const PIECE: usize = 256 << 10;

/// Something parsed from a line, or what is wrong with it; the caller adds file and line.
pub(crate) type Parsed<T> = std::result::Result<T, String>;

/// What a reader of one format does with a line: add at most one row, or say what is wrong.
pub(super) type ParseLine = fn(&[u8], &mut TextRows) -> Parsed<()>;

/// The rows of one piece of text, indices still as written.
pub(super) struct TextRows {
    rows: RowBuilder,
    labels: Interner,
    label_ids: Vec<u32>,
    queries: Vec<u64>,
    /// The line being parsed, counted from 1 in the whole file.
    line: u64,
    /// The first line with, and the first line without, a query number.
    with_query: Option<u64>,
    without_query: Option<u64>,
    /// The first line with an index 0.
    with_zero: Option<u64>,
    /// The highest index, and the first line it is on.
    highest: Option<(u32, u64)>,
    /// What is wrong with the current line.
    error: Option<String>,
}

impl TextRows {
    fn parse(piece: &[u8], first_line: u64, parse_line: ParseLine) -> Self {
        let mut rows = Self {
            rows: RowBuilder::with_capacity(0),
            labels: Interner::default(),
            label_ids: Vec::new(),
            queries: Vec::new(),
            line: first_line,
            with_query: None,
            without_query: None,
            with_zero: None,
            highest: None,
            error: None,
        };
        for line in input::lines(piece) {
            if let Err(reason) = parse_line(line, &mut rows) {
                rows.error = Some(reason);
                break;
            }
            rows.line += 1;
        }
        rows
    }

    /// Adds one entry to the row of this line.
    #[inline]
    pub(super) fn entry(&mut self, index: u32, value: f64) {
        self.rows.entry(index, value);
    }

    /// Ends the row of this line.
    pub(super) fn end_row(&mut self, label: Option<&[u8]>, query: Option<u64>) -> Parsed<()> {
        let bounds = self.rows.end_row().map_err(|index| {
            format!("index `{index}` is repeated, expected each index once per row")
        })?;
        if let Some((low, high)) = bounds {
            if low == 0 {
                self.with_zero.get_or_insert(self.line);
            }
            if self.highest.is_none_or(|(highest, _)| high > highest) {
                self.highest = Some((high, self.line));
            }
        }
        if let Some(label) = label {
            self.label_ids.push(self.labels.id(label));
        }
        match query {
            Some(query) => {
                self.queries.push(query);
                self.with_query.get_or_insert(self.line);
            }
            None => {
                self.without_query.get_or_insert(self.line);
            }
        }
        Ok(())
    }
}

/// Distinct labels, numbered in order of appearance.
#[derive(Default)]
pub(super) struct Interner {
    names: Vec<Vec<u8>>,
    ids: HashMap<Vec<u8>, u32>,
}

impl Interner {
    pub(super) fn id(&mut self, name: &[u8]) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// The labels of rows given by these numbers. Spellings of one number become one class.
    pub(super) fn labels(&self, ids: &[u32]) -> Labels {
        let distinct = Labels::from_names(self.names.iter().map(|n| String::from_utf8_lossy(n)));
        let code = |&id: &u32| distinct.codes()[id as usize];
        let codes = ids.iter().map(code).collect();
        Labels::from_codes(distinct.names().to_vec(), codes).expect("every id has a name")
    }
}

/// Reads all lines. The next block is read and decompressed while this one is parsed.
pub(super) fn read(
    mut input: Input<'_>,
    parse_line: ParseLine,
    options: &ReadOptions,
) -> Result<Dataset> {
    let path = input.path().to_owned();
    let mut pieces: Vec<TextRows> = Vec::new();
    let mut next_line = 1;
    let mut block = input.next_block()?;
    while let Some(now) = block {
        let (parsed, next) = if input.is_used_up() {
            (parse_block(&now, &mut next_line, parse_line), Ok(None))
        } else {
            let parse = || parse_block(&now, &mut next_line, parse_line);
            parallel::join(parse, || input.next_block())
        };
        for piece in parsed {
            if let Some(reason) = piece.error {
                return Err(Error::parse(&path, piece.line, reason));
            }
            pieces.push(piece);
        }
        block = next?;
    }
    finish(&path, pieces, options)
}

fn parse_block(block: &[u8], next_line: &mut u64, parse_line: ParseLine) -> Vec<TextRows> {
    let mut pieces = Vec::with_capacity(block.len() / PIECE + 1);
    let mut rest = block;
    while !rest.is_empty() {
        let tail = rest.get(PIECE..).unwrap_or_default();
        let end = memchr::memchr(b'\n', tail).map_or(rest.len(), |at| PIECE + at + 1);
        let (piece, after) = rest.split_at(end);
        pieces.push((piece, *next_line));
        *next_line += input::count_lines(piece);
        rest = after;
    }
    let parse = |(piece, first_line)| TextRows::parse(piece, first_line, parse_line);
    match pieces[..] {
        [piece] => vec![parse(piece)], // a small file need not wake other threads
        _ => pieces.into_par_iter().map(parse).collect(),
    }
}

fn finish(path: &Path, pieces: Vec<TextRows>, options: &ReadOptions) -> Result<Dataset> {
    let n_rows: usize = pieces.iter().map(|piece| piece.rows.n_rows()).sum();
    if n_rows == 0 {
        return Err(Error::file(
            path,
            "has no rows, only blank lines and comments",
        ));
    }
    if n_rows > u32::MAX as usize {
        let reason = format!("has {n_rows} rows, expected at most 2^32 - 1");
        return Err(Error::file(path, reason));
    }
    let has_queries = check_queries(path, &pieces)?;
    let index_base = index_base(path, &pieces, options.index_base)?;
    let n_features = count_features(path, &pieces, index_base, options.n_features)?;
    let n_unsorted = pieces.iter().map(|piece| piece.rows.n_unsorted).sum();
    let n_empty = pieces.iter().map(|piece| piece.rows.n_empty).sum();
    let mut notes = row_notes(path, n_unsorted, n_empty);
    if options.index_base.is_none() && index_base == IndexBase::Zero {
        let name = path.display();
        notes.push(format!(
            "{name}: an index 0 occurs, so indices count from 0"
        ));
    }
    let (mut labels, mut label_ids, mut queries) = (Interner::default(), Vec::new(), Vec::new());
    for piece in &pieces {
        let names = piece.labels.names.iter();
        let ids: Vec<u32> = names.map(|name| labels.id(name)).collect();
        label_ids.extend(piece.label_ids.iter().map(|&id| ids[id as usize]));
        queries.extend_from_slice(&piece.queries);
    }
    let parts = pieces.into_iter().map(|piece| piece.rows.into_parts());
    let (starts, indices, values) = concat_rows(parts.collect(), index_base.first() as u32);
    let rows = Rows::from_parts(n_features, starts, indices, values);
    Ok(Dataset {
        rows: rows.map_err(|error| error.in_file(path))?,
        labels: (!label_ids.is_empty()).then(|| labels.labels(&label_ids)),
        queries: has_queries.then_some(queries),
        index_base,
        notes,
    })
}

/// Whether all rows have a query number; some with and some without are an error.
fn check_queries(path: &Path, pieces: &[TextRows]) -> Result<bool> {
    let with = pieces.iter().find_map(|piece| piece.with_query);
    let without = pieces.iter().find_map(|piece| piece.without_query);
    if let (Some(with), Some(without)) = (with, without) {
        let has = if with < without { "has no" } else { "has a" };
        let reason = format!("{has} `qid`, unlike the rows before it");
        return Err(Error::parse(path, with.max(without), reason));
    }
    Ok(with.is_some())
}

fn index_base(path: &Path, pieces: &[TextRows], given: Option<IndexBase>) -> Result<IndexBase> {
    let zero = pieces.iter().find_map(|piece| piece.with_zero);
    match (given, zero) {
        (Some(IndexBase::One), Some(line)) => {
            let reason = "index `0`, expected 1 or above in a file whose indices count from 1";
            Err(Error::parse(path, line, reason))
        }
        (Some(base), _) => Ok(base),
        (None, Some(_)) => Ok(IndexBase::Zero),
        (None, None) => Ok(IndexBase::One),
    }
}

/// How many features there are: as many as given, or else as the highest index says.
fn count_features(
    path: &Path,
    pieces: &[TextRows],
    base: IndexBase,
    given: Option<usize>,
) -> Result<usize> {
    let highest = pieces.iter().filter_map(|piece| piece.highest);
    // Of equal indices the first line counts.
    let Some((high, line)) = highest.max_by_key(|&(index, line)| (index, std::cmp::Reverse(line)))
    else {
        return Ok(given.unwrap_or(0));
    };
    let found = high as usize + 1 - base.first();
    let most = given.unwrap_or(u32::MAX as usize);
    if found > most {
        let reason = format!(
            "index `{high}` is feature {found} counted from 1, but there are {} {most} features",
            if given.is_some() { "only" } else { "at most" }
        );
        return Err(Error::parse(path, line, reason));
    }
    Ok(given.unwrap_or(found))
}

/// The tokens of a line: what stands between blanks.
pub(crate) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| b.is_ascii_whitespace())
        .filter(|t| !t.is_empty())
}

/// Parses `index:value` into the row of this line.
pub(super) fn parse_entry(token: &[u8], rows: &mut TextRows) -> Parsed<()> {
    let Some(colon) = memchr::memchr(b':', token) else {
        return Err(format!("{} is not of the form index:value", quote(token)));
    };
    let index = parse_index(&token[..colon])?;
    let value = &token[colon + 1..];
    let why = match parse_f64(value) {
        Some(number) if number.is_finite() => {
            rows.entry(index, number);
            return Ok(());
        }
        Some(_) => "is not finite, expected a finite number",
        None => "is not a number",
    };
    Err(format!("value {} of index {index} {why}", quote(value)))
}

/// Parses an index as it is written, whatever it counts from.
pub(super) fn parse_index(token: &[u8]) -> Parsed<u32> {
    let is_number = |token: &[u8]| !token.is_empty() && token.iter().all(u8::is_ascii_digit);
    let why = match parse_u64(token).map(u32::try_from) {
        Some(Ok(index)) => return Ok(index),
        _ if is_number(token) => "is above 2^32 - 1",
        _ if token.strip_prefix(b"-").is_some_and(is_number) => "is negative",
        _ => "is not a whole number",
    };
    Err(format!(
        "index {} {why}, expected a whole number from 0 to 4294967295",
        quote(token)
    ))
}
