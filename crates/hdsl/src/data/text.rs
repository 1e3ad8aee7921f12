//! What the line-based formats share: one row a line, parsed in parallel, put together in file order.

use crate::data::input::{self, Block, Input, quote};
use crate::data::number::{parse_f64, parse_u64};
use crate::data::{IndexBase, Labels, Rows};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use std::collections::HashMap;
use std::path::Path;

/// How much text one task parses. Fixed, so that the pieces do not depend on the number of threads.
const PIECE: usize = 256 << 10;

/// Something parsed from a line, or what is wrong with it; whoever knows the line number adds it.
pub(crate) type Parsed<T> = std::result::Result<T, String>;

/// What a reader of one format does with a line: add at most one row, or say what is wrong.
pub(crate) type ParseLine = fn(&[u8], &mut Rowset) -> Parsed<()>;

/// Rows as they come off the lines of a piece of text, indices still as written.
#[derive(Default)]
pub(crate) struct Rowset {
    ends: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    labels: Interner,
    label_ids: Vec<u32>,
    queries: Vec<u64>,
    /// Line of the first row with, and of the first row without, a query number.
    first_with_query: Option<u64>,
    first_without_query: Option<u64>,
    /// The highest index, and the first line it is on.
    highest: Option<(u32, u64)>,
    /// The first line with an index 0.
    first_zero: Option<u64>,
    n_unsorted: usize,
    n_empty: usize,
    n_lines: u64,
    error: Option<(u64, String)>,
    /// Entries of the pieces put together so far, still apart.
    parts: Vec<(Vec<u32>, Vec<f64>)>,
    n_entries: usize,
    scratch: Vec<(u32, f64)>,
    row_start: usize,
    unsorted: bool,
    has_zeros: bool,
}

impl Rowset {
    fn parse(piece: &[u8], parse_line: ParseLine) -> Self {
        let mut rows = Self::default();
        for line in input::lines(piece) {
            rows.n_lines += 1;
            if let Err(reason) = parse_line(line, &mut rows) {
                rows.error = Some((rows.n_lines, reason));
                break;
            }
        }
        rows
    }

    /// Adds one entry to the row of this line.
    pub(crate) fn entry(&mut self, index: u32, value: f64) {
        if self.indices.len() > self.row_start && self.indices[self.indices.len() - 1] >= index {
            self.unsorted = true;
        }
        self.has_zeros |= value == 0.0;
        self.indices.push(index);
        self.values.push(value);
    }

    /// Ends the row of this line: sorts it, refuses repeated indices, drops zeros.
    pub(crate) fn end_row(&mut self, label: Option<&[u8]>, query: Option<u64>) -> Parsed<()> {
        let start = self.row_start;
        if self.unsorted {
            self.sort_row()?;
            self.n_unsorted += 1;
        }
        if let (Some(&low), Some(&high)) = (self.indices[start..].first(), self.indices.last()) {
            if low == 0 && self.first_zero.is_none() {
                self.first_zero = Some(self.n_lines);
            }
            if self.highest.is_none_or(|(highest, _)| high > highest) {
                self.highest = Some((high, self.n_lines));
            }
        }
        if self.has_zeros {
            let mut to = start;
            for from in start..self.indices.len() {
                if self.values[from] != 0.0 {
                    self.indices[to] = self.indices[from];
                    self.values[to] = self.values[from];
                    to += 1;
                }
            }
            self.indices.truncate(to);
            self.values.truncate(to);
        }
        self.n_empty += usize::from(self.indices.len() == start);
        if let Some(label) = label {
            let id = self.labels.id(label);
            self.label_ids.push(id);
        }
        match query {
            Some(query) => {
                self.queries.push(query);
                self.first_with_query.get_or_insert(self.n_lines);
            }
            None => {
                self.first_without_query.get_or_insert(self.n_lines);
            }
        }
        self.ends.push(self.indices.len());
        self.row_start = self.indices.len();
        (self.unsorted, self.has_zeros) = (false, false);
        Ok(())
    }

    fn sort_row(&mut self) -> Parsed<()> {
        let start = self.row_start;
        self.scratch.clear();
        self.scratch.extend(
            self.indices[start..]
                .iter()
                .copied()
                .zip(self.values[start..].iter().copied()),
        );
        self.scratch.sort_unstable_by_key(|&(index, _)| index);
        if let Some(pair) = self.scratch.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(format!(
                "index `{}` is repeated, expected each index once a row",
                pair[0].0
            ));
        }
        for (at, &(index, value)) in self.scratch.iter().enumerate() {
            self.indices[start + at] = index;
            self.values[start + at] = value;
        }
        Ok(())
    }

    /// Appends the rows of the next piece.
    fn append(&mut self, next: Rowset) {
        let shift = |line: Option<u64>| line.map(|l| l + self.n_lines);
        self.first_with_query = self.first_with_query.or(shift(next.first_with_query));
        self.first_without_query = self.first_without_query.or(shift(next.first_without_query));
        self.first_zero = self.first_zero.or(shift(next.first_zero));
        if let Some((high, line)) = next.highest
            && self.highest.is_none_or(|(highest, _)| high > highest)
        {
            self.highest = Some((high, line + self.n_lines));
        }
        let before = self.n_entries;
        self.ends.extend(next.ends.iter().map(|end| end + before));
        self.n_entries += next.indices.len();
        self.parts.push((next.indices, next.values));
        let ids: Vec<u32> = next
            .labels
            .names
            .iter()
            .map(|n| self.labels.id(n))
            .collect();
        self.label_ids
            .extend(next.label_ids.iter().map(|&id| ids[id as usize]));
        self.queries.extend_from_slice(&next.queries);
        self.n_unsorted += next.n_unsorted;
        self.n_empty += next.n_empty;
        self.n_lines += next.n_lines;
    }
}

/// The entries of all parts in one block each, indices less `base`; a part a task.
fn join_parts(parts: Vec<(Vec<u32>, Vec<f64>)>, n: usize, base: u32) -> (Vec<u32>, Vec<f64>) {
    let (mut indices, mut values) = (vec![0; n], vec![0.0; n]);
    let mut tasks = Vec::with_capacity(parts.len());
    let (mut to_indices, mut to_values) = (&mut indices[..], &mut values[..]);
    for (from_indices, from_values) in parts {
        let (i, more_indices) = to_indices.split_at_mut(from_indices.len());
        let (v, more_values) = to_values.split_at_mut(from_values.len());
        (to_indices, to_values) = (more_indices, more_values);
        tasks.push((i, v, from_indices, from_values));
    }
    tasks.into_par_iter().for_each(|(i, v, indices, values)| {
        for (to, from) in i.iter_mut().zip(indices) {
            *to = from - base;
        }
        v.copy_from_slice(&values);
    });
    (indices, values)
}

/// Distinct labels, numbered as they come.
#[derive(Default)]
pub(crate) struct Interner {
    names: Vec<Vec<u8>>,
    ids: HashMap<Vec<u8>, u32>,
}

impl Interner {
    pub(crate) fn id(&mut self, name: &[u8]) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// The labels of rows given by these numbers. Spellings of one number become one class.
    pub(crate) fn labels(&self, ids: &[u32]) -> Labels {
        let distinct = Labels::from_names(self.names.iter().map(|n| String::from_utf8_lossy(n)));
        let codes = ids
            .iter()
            .map(|&id| distinct.codes()[id as usize])
            .collect();
        Labels::from_codes(distinct.names().to_vec(), codes).expect("every id has a name")
    }
}

/// What a line-based file holds.
pub(crate) struct TextRows {
    pub(crate) rows: Rows,
    pub(crate) labels: Option<Labels>,
    pub(crate) queries: Option<Vec<u64>>,
    pub(crate) index_base: IndexBase,
    pub(crate) notes: Vec<String>,
}

/// Reads all lines. The next block is read and decompressed while this one is parsed.
pub(crate) fn read(
    mut input: Input<'_>,
    parse_line: ParseLine,
    index_base: Option<IndexBase>,
    n_features: Option<usize>,
) -> Result<TextRows> {
    let path = input.path().to_owned();
    let mut all = Rowset::default();
    let mut block = input.next_block()?;
    while let Some(now) = block {
        let (parsed, next) = if input.is_used_up() {
            (parse_block(&now, parse_line), Ok(None))
        } else {
            crate::parallel::join(|| parse_block(&now, parse_line), || input.next_block())
        };
        for piece in parsed {
            if let Some((line, reason)) = piece.error {
                return Err(parse_error(&path, all.n_lines + line, reason));
            }
            all.append(piece);
        }
        block = next?;
    }
    finish(&path, all, index_base, n_features)
}

fn parse_block(block: &Block, parse_line: ParseLine) -> Vec<Rowset> {
    let mut pieces = Vec::with_capacity(block.bytes.len() / PIECE + 1);
    let mut rest = block.bytes.as_slice();
    while !rest.is_empty() {
        let end = match rest
            .get(PIECE..)
            .and_then(|tail| memchr::memchr(b'\n', tail))
        {
            Some(at) => PIECE + at + 1,
            None => rest.len(),
        };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    if let [piece] = pieces[..] {
        return vec![Rowset::parse(piece, parse_line)]; // a small file need not wake other threads
    }
    pieces
        .into_par_iter()
        .map(|piece| Rowset::parse(piece, parse_line))
        .collect()
}

fn finish(
    path: &Path,
    all: Rowset,
    index_base: Option<IndexBase>,
    n_features: Option<usize>,
) -> Result<TextRows> {
    let file_error = |reason: String| Error::File {
        path: path.to_owned(),
        reason,
    };
    let n_rows = all.ends.len();
    if n_rows == 0 {
        return Err(file_error(
            "has no rows, only blank lines and comments".to_owned(),
        ));
    }
    if n_rows > u32::MAX as usize {
        return Err(file_error(format!(
            "has {n_rows} rows, expected at most 2^32 - 1"
        )));
    }
    if let (Some(with), Some(without)) = (all.first_with_query, all.first_without_query) {
        return Err(parse_error(
            path,
            with.max(without),
            if with < without {
                "has no `qid`, unlike the rows before it".to_owned()
            } else {
                "has a `qid`, unlike the rows before it".to_owned()
            },
        ));
    }
    let base = match (index_base, all.first_zero) {
        (Some(IndexBase::One), Some(line)) => {
            return Err(parse_error(
                path,
                line,
                "index `0`, expected 1 or above in a file whose indices count from 1".to_owned(),
            ));
        }
        (Some(base), _) => base,
        (None, Some(_)) => IndexBase::Zero,
        (None, None) => IndexBase::One,
    };
    let found = all
        .highest
        .map_or(0, |(high, _)| high as usize + 1 - base.first());
    if let (Some(wanted), Some((high, line))) = (n_features, all.highest)
        && found > wanted
    {
        return Err(parse_error(
            path,
            line,
            format!(
                "index `{high}` is feature {found} counted from 1, but there are {wanted} features"
            ),
        ));
    }

    let name = path.display();
    let mut notes = Vec::new();
    let mut note = |n: usize, what: &str| {
        if n > 0 {
            let rows = if n == 1 { "row has" } else { "rows have" };
            notes.push(format!("{name}: {n} {rows} {what}"));
        }
    };
    note(all.n_unsorted, "unsorted indices (sorted)");
    note(all.n_empty, "no features");
    if index_base.is_none() && base == IndexBase::Zero {
        notes.push(format!(
            "{name}: an index 0 occurs, so indices count from 0"
        ));
    }

    let (indices, values) = join_parts(all.parts, all.n_entries, base.first() as u32);
    let mut starts = Vec::with_capacity(n_rows + 1);
    starts.push(0);
    starts.extend_from_slice(&all.ends);
    let rows = Rows::from_parts(n_features.unwrap_or(found), starts, indices, values)?;
    Ok(TextRows {
        rows,
        labels: (!all.label_ids.is_empty()).then(|| all.labels.labels(&all.label_ids)),
        queries: all.first_with_query.map(|_| all.queries),
        index_base: base,
        notes,
    })
}

/// An error at one line.
pub(crate) fn parse_error(path: &Path, line: u64, reason: impl Into<String>) -> Error {
    Error::parse(path, line, reason)
}

/// The tokens of a line: what stands between blanks.
pub(crate) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| b.is_ascii_whitespace())
        .filter(|t| !t.is_empty())
}

/// Parses `index:value` into the row of this line.
pub(crate) fn parse_entry(token: &[u8], rows: &mut Rowset) -> Parsed<()> {
    let Some(colon) = memchr::memchr(b':', token) else {
        return Err(format!(
            "{} is not of the normalization index:value",
            quote(token)
        ));
    };
    let index = parse_index(&token[..colon])?;
    let value = &token[colon + 1..];
    match parse_f64(value) {
        Some(number) if number.is_finite() => {
            rows.entry(index, number);
            Ok(())
        }
        Some(_) => Err(format!(
            "value {} of index {index} is not finite, expected a finite number",
            quote(value)
        )),
        None => Err(format!(
            "value {} of index {index} is not a number",
            quote(value)
        )),
    }
}

/// Parses an index as it is written, whatever it counts from.
pub(crate) fn parse_index(token: &[u8]) -> Parsed<u32> {
    let why = match parse_u64(token) {
        Some(index) => match u32::try_from(index) {
            Ok(index) => return Ok(index),
            Err(_) => "is above 2^32 - 1",
        },
        None if matches!(token, [b'-', rest @ ..] if !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)) => {
            "is negative"
        }
        None if !token.is_empty() && token.iter().all(u8::is_ascii_digit) => "is above 2^32 - 1",
        None => "is not a whole number",
    };
    Err(format!(
        "index {} {why}, expected a whole number from 0 to 4294967295",
        quote(token)
    ))
}
