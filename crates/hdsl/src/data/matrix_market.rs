//! Matrix Market text: `row column [value]` entries under a header that gives the shape.
//!
//! A row of the matrix is a row of data. Only coordinate (sparse) matrices are read.

use super::input::{Input, quote};
use super::number::{parse_f64, parse_u64};
use super::read::declared_features;
use super::row_builder::{RowBuilder, check_row_count};
use super::text::{Parsed, tokens};
use super::{Dataset, Groups, IndexBase};
use crate::error::{Error, Result};
use std::path::Path;

/// What the first line of the file says.
#[derive(Clone, Copy)]
struct Header {
    pattern: bool,
    symmetric: bool,
}

#[derive(Clone, Copy)]
struct Size {
    n_rows: usize,
    n_columns: usize,
    n_entries: u64,
}

/// Reads a coordinate matrix: real, integer or pattern, general or symmetric.
pub(super) fn read(input: Input<'_>, n_features: Option<usize>) -> Result<Dataset> {
    let path = input.path().to_owned();
    let mut header = None;
    let mut size: Option<Size> = None;
    let mut entries = Entries::default();
    let mut n_entries = 0u64;
    input.each_line(|number, line| {
        let Some(header) = header else {
            header = Some(parse_header(line)?);
            return Ok(());
        };
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'%' {
            return Ok(());
        }
        let Some(size) = size else {
            size = Some(parse_size(line, header)?);
            return Ok(());
        };
        if n_entries == size.n_entries {
            let line = quote(line);
            return Err(format!(
                "{line} is one entry too many, the header says {n_entries}"
            ));
        }
        n_entries += 1;
        let (row, column, value) = parse_entry(line, header, size)?;
        entries.push((row, column, value), number);
        if header.symmetric && row != column {
            entries.push((column, row, value), number);
        }
        Ok(())
    })?;
    let Some(size) = size else {
        return Err(Error::file(
            &path,
            "ends before the line of rows, columns and entries",
        ));
    };
    if n_entries < size.n_entries {
        let reason = format!(
            "has {n_entries} entries, but its header says {}",
            size.n_entries
        );
        return Err(Error::file(&path, reason));
    }
    let n_features = declared_features(&path, size.n_columns, n_features)?;
    let (rows, notes) = entries
        .into_rows(&path, size.n_rows)?
        .finish(&path, n_features)?;
    Ok(Dataset::unlabeled(rows, IndexBase::One, notes))
}

/// (row, column, value) entries, counted from 0, with the lines they come from.
#[derive(Default)]
struct Entries {
    entries: Vec<(u32, u32, f64)>,
    /// Entries are mostly on consecutive lines, so only the first of each run is stored: (entry, line).
    runs: Vec<(usize, u64)>,
    last_line: u64,
}

impl Entries {
    fn push(&mut self, entry: (u32, u32, f64), line: u64) {
        if line != self.last_line + 1 || self.entries.is_empty() {
            self.runs.push((self.entries.len(), line));
        }
        self.last_line = line;
        self.entries.push(entry);
    }

    fn into_rows(self, path: &Path, n_rows: usize) -> Result<RowBuilder> {
        check_row_count(path, n_rows, self.entries.len())?;
        let by_row = (self.entries.iter()).map(|&(row, column, value)| (row, (column, value)));
        let (starts, mut by_row) = Groups::new(n_rows, by_row).into_parts();
        let mut rows = RowBuilder::with_capacity(by_row.len());
        for row in 0..n_rows {
            let entries = &mut by_row[starts[row]..starts[row + 1]];
            entries.sort_by_key(|&(column, _)| column);
            entries
                .iter()
                .for_each(|&(column, value)| rows.entry(column, value));
            if let Err(column) = rows.end_row() {
                return Err(self.repeated(path, row as u32, column));
            }
        }
        Ok(rows)
    }

    fn repeated(&self, path: &Path, row: u32, column: u32) -> Error {
        let mut lines = (self.entries.iter().enumerate())
            .filter(|(_, entry)| (entry.0, entry.1) == (row, column))
            .map(|(at, _)| self.line_of(at));
        let mut line = || lines.next().expect("the entry occurs twice");
        let (first, second) = (line(), line());
        let (row, column) = (u64::from(row) + 1, u64::from(column) + 1);
        let reason = format!("row {row} has column {column} a second time (first on line {first})");
        Error::parse(path, second, reason)
    }

    fn line_of(&self, entry: usize) -> u64 {
        let run = self.runs.partition_point(|&(first, _)| first <= entry) - 1;
        let (first, line) = self.runs[run];
        line + (entry - first) as u64
    }
}

fn parse_header(line: &[u8]) -> Parsed<Header> {
    let header = String::from_utf8_lossy(line).to_ascii_lowercase();
    let words: Vec<&str> = header.split_ascii_whitespace().collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = words[..] else {
        return Err(format!(
            "{} is not a Matrix Market header, expected \
             `%%MatrixMarket matrix coordinate real general` or the like",
            quote(line)
        ));
    };
    let refuse = |what: &str, given: &str, want: &str| {
        Err(format!(
            "{what} {}, expected {want}",
            quote(given.as_bytes())
        ))
    };
    if format != "coordinate" {
        let want = "`coordinate` (a sparse matrix)";
        return refuse("the matrix is stored as", format, want);
    }
    let pattern = match field {
        "pattern" => true,
        "real" | "double" | "integer" | "unsigned-integer" => false,
        _ => return refuse("the entries are", field, "`real`, `integer` or `pattern`"),
    };
    let symmetric = match symmetry {
        "general" => false,
        "symmetric" => true,
        _ => return refuse("the matrix is", symmetry, "`general` or `symmetric`"),
    };
    Ok(Header { pattern, symmetric })
}

fn parse_size(line: &[u8], header: Header) -> Parsed<Size> {
    let numbers: Option<Vec<u64>> = tokens(line).map(parse_u64).collect();
    let Some(&[n_rows, n_columns, n_entries]) = numbers.as_deref() else {
        let line = quote(line);
        return Err(format!("{line} is not a line of rows, columns and entries"));
    };
    let want = match () {
        _ if n_rows.max(n_columns) > u64::from(u32::MAX) => "at most 2^32 - 1 of each",
        _ if n_rows == 0 => "at least 1 row",
        _ if header.symmetric && n_rows != n_columns => "as many in a symmetric matrix",
        _ => {
            return Ok(Size {
                n_rows: n_rows as usize,
                n_columns: n_columns as usize,
                n_entries,
            });
        }
    };
    Err(format!(
        "{n_rows} rows and {n_columns} columns, expected {want}"
    ))
}

fn parse_entry(line: &[u8], header: Header, size: Size) -> Parsed<(u32, u32, f64)> {
    let mut fields = tokens(line);
    let mut place = |what: &str, n: usize| {
        let token = fields.next().unwrap_or(b"");
        match parse_u64(token) {
            Some(at) if at >= 1 && at <= n as u64 => Ok((at - 1) as u32),
            _ => {
                let token = quote(token);
                Err(format!(
                    "{what} {token}, expected a whole number from 1 to {n}"
                ))
            }
        }
    };
    let row = place("row", size.n_rows)?;
    let column = place("column", size.n_columns)?;
    let value = if header.pattern {
        1.0
    } else {
        let token = fields.next().unwrap_or(b"");
        match parse_f64(token) {
            Some(value) if value.is_finite() => value,
            _ => return Err(format!("value {}, expected a finite number", quote(token))),
        }
    };
    match fields.next() {
        Some(extra) => Err(format!("{} is one field too many", quote(extra))),
        None => Ok((row, column, value)),
    }
}
