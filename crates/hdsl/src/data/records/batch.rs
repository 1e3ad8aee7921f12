//! Some records in memory: cells of text.

use super::super::input::quote;
use crate::error::Error;
use std::path::Path;

/// Where records are in their file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A row, counted from 0.
    Row(u64),
}

/// Some records. Cells are UTF-8; an empty one is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    n_columns: usize,
    text: String,
    /// Where each cell ends, record after record.
    ends: Vec<usize>,
    /// The line of each record, or nothing where records have rows only.
    lines: Vec<u64>,
    /// The number of the first record in the file, counted from 0.
    pub(super) first_row: u64,
}

/// The largest cell: one above it is a mistake, most likely a missing quote.
pub(super) const MAX_CELL: usize = 16 << 20;

impl Batch {
    pub(super) fn new(n_columns: usize, first_row: u64) -> Self {
        Self {
            n_columns,
            first_row,
            ..Self::default()
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.ends.len() / self.n_columns
    }

    /// How many bytes the cells have.
    pub(super) fn size(&self) -> usize {
        self.text.len()
    }

    #[inline]
    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        let at = row * self.n_columns + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    pub(super) fn place(&self, row: usize) -> Place {
        match self.lines.get(row) {
            Some(&line) => Place::Line(line),
            None => Place::Row(self.first_row + row as u64),
        }
    }

    /// Adds a part of the current cell.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a number to the current cell.
    #[cfg(feature = "columnar")]
    pub(super) fn write(&mut self, number: impl std::fmt::Display) {
        use std::fmt::Write;
        write!(self.text, "{number}").expect("text can always be written to");
    }

    /// How many bytes the current cell has so far.
    #[cfg(feature = "columnar")]
    pub(super) fn cell_size(&self) -> usize {
        self.text.len() - self.ends.last().copied().unwrap_or(0)
    }

    pub(super) fn end_cell(&mut self) {
        self.ends.push(self.text.len());
    }

    pub(super) fn end_record(&mut self, line: Option<u64>) {
        self.lines.extend(line);
    }

    /// These columns only, in the given order.
    pub(super) fn select(&self, columns: &[usize]) -> Self {
        let mut some = Self::new(columns.len(), self.first_row);
        some.lines = self.lines.clone();
        for row in 0..self.n_rows() {
            for &column in columns {
                some.push(self.cell(row, column));
                some.end_cell();
            }
        }
        some
    }
}

/// An error about one cell.
pub(super) fn cell_error(path: &Path, place: Place, column: &str, reason: &str) -> Error {
    let column = quote(column.as_bytes());
    match place {
        Place::Line(line) => Error::parse(path, line, format!("column {column}: {reason}")),
        Place::Row(row) => Error::file(path, format!("row {row}, column {column}: {reason}")),
    }
}

/// A place in a sentence.
pub(super) fn in_words(place: Place) -> String {
    match place {
        Place::Line(line) => format!("line {line}"),
        Place::Row(row) => format!("row {row}"),
    }
}

/// Text of another encoding, in words.
pub(super) const NOT_UTF8: &str =
    "is not UTF-8; convert the file, for example with `iconv -f LATIN1 -t UTF-8`";
