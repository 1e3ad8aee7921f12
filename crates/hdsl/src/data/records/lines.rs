//! Plain text, one document per line, and JSON lines.

use super::batch::{Batch, MAX_CELL, NOT_UTF8, Place, cell_error};
use super::{Dialect, Source, UNUSABLE};
use crate::data::input::{self, Input, quote};
use crate::data::vectorize::{ITEM_END, PIECE};
use crate::error::{Error, Parsed, Result};
use crate::parallel;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// What a label looks like in a text file of fastText.
const LABEL: &str = "__label__";

/// A block of lines, split into pieces with the number of their first line.
fn pieces_of(block: &[u8], next_line: &mut u64) -> Vec<(usize, usize, u64)> {
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < block.len() {
        let tail = block.get(start + PIECE..).unwrap_or_default();
        let end = memchr::memchr(b'\n', tail).map_or(block.len(), |at| start + PIECE + at + 1);
        pieces.push((start, end, *next_line));
        *next_line += input::count_lines(&block[start..end]);
        start = end;
    }
    pieces
}

/// Files of lines that are being read.
pub(super) struct Lines<'a> {
    input: Input<'a>,
    parser: Parser,
    next_line: u64,
    n_rows: u64,
}

/// What threads share to parse pieces of lines.
struct Parser {
    path: PathBuf,
    kind: Kind,
    columns: Vec<String>,
    /// Columns to keep.
    wanted: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A document per line; labels before it, if so.
    Text { labeled: bool },
    /// A JSON object per line.
    Json,
}

impl<'a> Lines<'a> {
    /// Plain text. If the first line starts with `__label__`, the first word of every line is its label.
    pub(super) fn text(mut input: Input<'a>) -> Result<Self> {
        let start = input.peek(1 << 12)?;
        let labeled = start.trim_ascii_start().starts_with(LABEL.as_bytes());
        let columns: &[&str] = if labeled {
            &["label", "text"]
        } else {
            &["text"]
        };
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Ok(Self::new(input, Kind::Text { labeled }, columns))
    }

    /// JSON lines. Columns are the keys of the objects at the start of the file.
    pub(super) fn json(mut input: Input<'a>) -> Result<Self> {
        let path = input.path().to_owned();
        let mut columns: Vec<String> = Vec::new();
        for (line, number) in input::lines(whole_lines(&mut input)?).zip(1..) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let object = parse_object(line).map_err(|e| Error::parse(&path, number, e))?;
            for key in object.keys() {
                if !columns.contains(key) {
                    columns.push(key.clone());
                }
            }
        }
        if columns.is_empty() {
            return Err(Error::file(&path, "has no JSON objects with any keys"));
        }
        Ok(Self::new(input, Kind::Json, columns))
    }

    fn new(input: Input<'a>, kind: Kind, columns: Vec<String>) -> Self {
        let parser = Parser {
            path: input.path().to_owned(),
            kind,
            wanted: (0..columns.len()).collect(),
            columns,
        };
        Self {
            input,
            parser,
            next_line: 1,
            n_rows: 0,
        }
    }
}

impl Parser {
    fn parse(&self, piece: &[u8], first_line: u64) -> Result<Batch> {
        let mut batch = Batch::new(self.wanted.len(), 0);
        for (line, number) in input::lines(piece).zip(first_line..) {
            match self.kind {
                Kind::Text { labeled } => self.text_line(line, number, labeled, &mut batch)?,
                Kind::Json if line.trim_ascii().is_empty() => continue,
                Kind::Json => self.json_line(line, number, &mut batch)?,
            }
            batch.end_record(Some(number));
        }
        Ok(batch)
    }

    fn text_line(&self, line: &[u8], number: u64, labeled: bool, batch: &mut Batch) -> Result<()> {
        let wrong = |reason: &str| Err(Error::parse(&self.path, number, reason));
        let Ok(mut text) = std::str::from_utf8(line) else {
            return wrong(&format!("{} {NOT_UTF8}", quote(line)));
        };
        if text.len() > MAX_CELL {
            return wrong(&format!("the line is longer than {} MB", MAX_CELL >> 20));
        }
        if text.contains(ITEM_END) {
            return wrong("the line has the control character U+001F, expected text");
        }
        let mut label = "";
        if labeled {
            let (first, rest) = text
                .trim_start()
                .split_once(char::is_whitespace)
                .unwrap_or((text.trim(), ""));
            let Some(name) = first.strip_prefix(LABEL) else {
                return wrong(&format!(
                    "{} is not a label, expected `{LABEL}` and a name at the start of each line, as in the first",
                    quote(first.as_bytes())
                ));
            };
            (label, text) = (name, rest);
        }
        for &column in &self.wanted {
            let is_label = labeled && column == 0;
            batch.push(if is_label { label } else { text });
            batch.end_cell();
        }
        Ok(())
    }

    fn json_line(&self, line: &[u8], number: u64, batch: &mut Batch) -> Result<()> {
        let object = parse_object(line).map_err(|e| Error::parse(&self.path, number, e))?;
        for &column in &self.wanted {
            let name = &self.columns[column];
            let bad = |reason: String| cell_error(&self.path, Place::Line(number), name, &reason);
            if let Some(value) = object.get(name) {
                push_value(value, batch).map_err(bad)?;
            }
            batch.end_cell();
        }
        Ok(())
    }
}

/// Some lines at the start, without one that is cut: the first, however long it is, or all that fit into a sample.
fn whole_lines<'i>(input: &'i mut Input<'_>) -> Result<&'i [u8]> {
    let mut wanted = 1 << 20;
    loop {
        let sample = input.peek(wanted)?;
        if sample.len() < wanted || sample.contains(&b'\n') {
            break;
        }
        let read = sample.len() as u64;
        input::check_size(input.path(), read)?;
        wanted *= 4;
    }
    let sample = input.peek(wanted)?;
    let end = match sample.len() < wanted {
        true => sample.len(),
        false => memchr::memrchr(b'\n', sample).map_or(sample.len(), |at| at + 1),
    };
    Ok(&sample[..end])
}

fn parse_object(line: &[u8]) -> Parsed<Map<String, Value>> {
    let line = line.trim_ascii();
    if line.first() == Some(&b'[') {
        return Err("a JSON array, expected JSON lines: one object per line".into());
    }
    serde_json::from_slice(line).map_err(|error| match error.is_syntax() || error.is_eof() {
        true => format!("{} is not a JSON object: {error}", quote(line)),
        false => format!("{} is not a JSON object", quote(line)),
    })
}

fn push_value(value: &Value, batch: &mut Batch) -> Parsed<()> {
    match value {
        Value::Null => {}
        Value::Bool(value) => batch.push(if *value { "true" } else { "false" }),
        Value::Number(number) => batch.push(&number.to_string()),
        Value::String(text) if text.len() > MAX_CELL => {
            return Err(format!("the text is longer than {} MB", MAX_CELL >> 20));
        }
        Value::String(text) => batch.push(text),
        Value::Array(items) => {
            for item in items {
                if matches!(item, Value::Array(_) | Value::Object(_)) {
                    batch.push(UNUSABLE);
                    return Ok(());
                }
                push_value(item, batch)?;
                batch.push(ITEM_END.encode_utf8(&mut [0; 4]));
            }
        }
        Value::Object(_) => batch.push(UNUSABLE),
    }
    Ok(())
}

impl Source for Lines<'_> {
    fn columns(&self) -> &[String] {
        &self.parser.columns
    }

    fn dialect(&self) -> Dialect {
        Dialect::default()
    }

    fn select(&mut self, columns: &[usize]) {
        self.parser.wanted = columns.to_vec();
    }

    fn next(&mut self) -> Result<Vec<Batch>> {
        loop {
            self.input.check_length()?;
            let Some(block) = self.input.next_block()? else {
                return Ok(Vec::new());
            };
            let pieces = pieces_of(&block, &mut self.next_line);
            let parser = &self.parser;
            let mut batches = parallel::try_map_each(pieces, 1, |(start, end, line)| {
                parser.parse(&block[start..end], line)
            })?;
            batches.retain(|batch| batch.n_rows() > 0);
            for batch in &mut batches {
                batch.first_row = self.n_rows;
                self.n_rows += batch.n_rows() as u64;
            }
            if !batches.is_empty() {
                return Ok(batches);
            }
        }
    }
}
