//! What the line-based formats share: one row per line, parsed in parallel, put together in file order.

use super::input::{self, Input, quote};
use super::number::{parse_f64, parse_u64};
use super::row_builder::RowBuilder;
use super::rows::LARGEST;
use super::{Dataset, IndexBase, Labels};
use crate::error::{Error, Parsed, Result};
use crate::parallel;
use std::cmp::Reverse;
use std::path::Path;

/// How much text one task parses. Fixed, so that the pieces do not depend on the number of threads.
const PIECE: usize = 256 << 10;

/// What a reader of one format does with a line: add at most one row, or say what is wrong.
pub(super) type ParseLine = fn(&[u8], &mut TextRows) -> Parsed<()>;

/// The rows of one piece of text, indices still as written.
#[derive(Default)]
pub(super) struct TextRows {
    rows: RowBuilder,
    /// One label per line of text, for formats that have labels.
    labels: Vec<u8>,
    lines: Vec<RowLine>,
    /// The line being parsed, counted from 1 in the whole file.
    line: u64,
    /// What is wrong with the current line.
    error: Option<String>,
}

/// The line that a row comes from, counted from 1, and what else it says.
struct RowLine {
    line: u64,
    query: Option<u64>,
    /// The lowest and the highest index.
    bounds: Option<(u32, u32)>,
}

impl TextRows {
    fn parse(piece: &[u8], first_line: u64, parse_line: ParseLine) -> Self {
        let mut rows = Self {
            line: first_line,
            ..Self::default()
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

    /// Bytes of memory.
    fn size(&self) -> u64 {
        let (rows, line) = (self.rows.size(), size_of::<RowLine>());
        (rows + self.labels.len() + self.lines.len() * line) as u64
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
        let line = self.line;
        self.lines.push(RowLine {
            line,
            query,
            bounds,
        });
        if let Some(label) = label {
            self.labels.extend_from_slice(label);
            self.labels.push(b'\n');
        }
        Ok(())
    }
}

/// Reads all lines. The next block is read and decompressed while this one is parsed.
pub(super) fn read(
    mut input: Input<'_>,
    parse_line: ParseLine,
    base: Option<IndexBase>,
    n_features: Option<usize>,
) -> Result<Dataset> {
    let path = input.path().to_owned();
    let mut pieces: Vec<TextRows> = Vec::new();
    let mut next_line = 1;
    let mut block = input.next_block()?;
    let mut size = 0;
    while let Some(now) = block {
        let parse = || parse_block(&now, &mut next_line, parse_line);
        let (parsed, next) = parallel::join(parse, || input.next_block());
        for piece in parsed {
            if let Some(reason) = piece.error {
                return Err(Error::parse(&path, piece.line, reason));
            }
            size += piece.size();
            pieces.push(piece);
        }
        // At the end the pieces are copied to one list.
        input::check_size(&path, 2 * size)?;
        block = next?;
    }
    finish(&path, pieces, base, n_features)
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
    parallel::map_each(pieces, parse)
}

fn finish(
    path: &Path,
    mut pieces: Vec<TextRows>,
    base: Option<IndexBase>,
    n_features: Option<usize>,
) -> Result<Dataset> {
    let lines = pieces.iter_mut().flat_map(|piece| piece.lines.drain(..));
    let lines: Vec<RowLine> = lines.collect();
    if lines.is_empty() {
        return Err(Error::file(
            path,
            "has no rows, only blank lines and comments",
        ));
    }
    let queries = queries(path, &lines)?;
    let index_base = index_base(path, &lines, base)?;
    let n_features = count_features(path, &lines, index_base, n_features)?;
    let text = |piece: &TextRows| String::from_utf8_lossy(&piece.labels).into_owned();
    let labels: Vec<String> = pieces.iter().map(text).collect();
    let labels = Labels::from_names(labels.iter().flat_map(|text| text.lines()));
    let parts = pieces.into_iter().map(|piece| piece.rows).collect();
    let mut dataset = RowBuilder::concat(parts).finish(path, index_base, n_features)?;
    if base.is_none() && index_base == IndexBase::Zero {
        let name = path.display();
        dataset.notes.push(format!(
            "{name}: an index 0 occurs, so indices count from 0"
        ));
    }
    dataset.labels = (!labels.is_empty()).then_some(labels);
    dataset.queries = queries;
    Ok(dataset)
}

/// The query numbers if all rows have one; some with and some without are an error.
fn queries(path: &Path, lines: &[RowLine]) -> Result<Option<Vec<u64>>> {
    let has_query = lines[0].query.is_some();
    if let Some(other) = lines.iter().find(|l| l.query.is_some() != has_query) {
        let has = if has_query { "has no" } else { "has a" };
        let reason = format!("{has} `qid`, unlike the rows before it");
        return Err(Error::parse(path, other.line, reason));
    }
    Ok(lines.iter().map(|line| line.query).collect())
}

fn index_base(path: &Path, lines: &[RowLine], given: Option<IndexBase>) -> Result<IndexBase> {
    let mut lines = lines.iter();
    let zero = lines.find(|line| line.bounds.is_some_and(|(low, _)| low == 0));
    match (given, zero) {
        (Some(IndexBase::One), Some(zero)) => {
            let reason = "index `0`, expected 1 or above in a file whose indices count from 1";
            Err(Error::parse(path, zero.line, reason))
        }
        (Some(base), _) => Ok(base),
        (None, Some(_)) => Ok(IndexBase::Zero),
        (None, None) => Ok(IndexBase::One),
    }
}

/// How many features there are: as many as given, or else as the highest index says.
fn count_features(
    path: &Path,
    lines: &[RowLine],
    base: IndexBase,
    given: Option<usize>,
) -> Result<usize> {
    let highest = lines.iter();
    let highest = highest.filter_map(|line| Some((line.bounds?.1, Reverse(line.line))));
    // Of equal indices the first line counts.
    let Some((high, Reverse(line))) = highest.max() else {
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
    let number = match parse_f64(value).filter(|number| number.is_finite()) {
        Some(number) if number.abs() <= LARGEST => number,
        Some(_) => {
            let value = quote(value);
            let want = "expected a number from -1e50 to 1e50: products of larger ones overflow";
            return Err(format!("value {value} of index {index}, {want}"));
        }
        None => {
            let value = quote(value);
            return Err(format!(
                "value {value} of index {index}, expected a finite number"
            ));
        }
    };
    rows.entry(index, number);
    Ok(())
}

/// Parses an index as it is written, whatever it counts from.
pub(super) fn parse_index(token: &[u8]) -> Parsed<u32> {
    let index = parse_u64(token).and_then(|index| u32::try_from(index).ok());
    index.ok_or_else(|| {
        let token = quote(token);
        format!("index {token}, expected a whole number from 0 to 4294967295")
    })
}
