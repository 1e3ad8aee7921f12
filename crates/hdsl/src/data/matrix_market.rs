//! Matrix Market text: `row column [value]` entries under a header that gives the shape.
//!
//! A row of the matrix is a row of data. Only coordinate (sparse) matrices are read.

use crate::data::input::{Input, quote};
use crate::data::number::{parse_f64, parse_u64};
use crate::data::read::declared_features;
use crate::data::text::{Parsed, parse_error, tokens};
use crate::data::triples::Triples;
use crate::data::{Dataset, IndexBase};
use crate::error::Result;

/// What the header says.
#[derive(Clone, Copy)]
struct Kind {
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
pub(crate) fn read(input: Input<'_>, n_features: Option<usize>) -> Result<Dataset> {
    let path = input.path().to_owned();
    let mut kind = None;
    let mut size: Option<Size> = None;
    let mut triples = Triples::default();
    let mut n_entries = 0u64;
    input.each_line(|number, line| {
        let fail = |reason: String| parse_error(&path, number, reason);
        let Some(kind) = kind else {
            kind = Some(parse_header(line).map_err(fail)?);
            return Ok(());
        };
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'%' {
            return Ok(());
        }
        let Some(size) = size else {
            size = Some(parse_size(line, kind).map_err(fail)?);
            return Ok(());
        };
        if n_entries == size.n_entries {
            return Err(fail(format!(
                "{} is one entry too many, the header says {n_entries}",
                quote(line)
            )));
        }
        n_entries += 1;
        let (row, column, value) = parse_entry(line, kind, size).map_err(fail)?;
        triples.push(row, column, value, number);
        if kind.symmetric && row != column {
            triples.push(column, row, value, number);
        }
        Ok(())
    })?;
    let fail = |reason: String| crate::error::Error::File {
        path: path.clone(),
        reason,
    };
    let Some(size) = size else {
        return Err(fail(
            "ends before the line of rows, columns and entries".to_owned(),
        ));
    };
    if n_entries < size.n_entries {
        return Err(fail(format!(
            "has {n_entries} entries, but its header says {}",
            size.n_entries
        )));
    }
    let n_features = declared_features(&path, size.n_columns, n_features)?;
    let (rows, notes) = triples.into_rows(&path, size.n_rows, n_features, IndexBase::One)?;
    Ok(Dataset {
        rows,
        labels: None,
        queries: None,
        index_base: IndexBase::One,
        notes,
    })
}

fn parse_header(line: &[u8]) -> Parsed<Kind> {
    let header = String::from_utf8_lossy(line).to_ascii_lowercase();
    let words: Vec<&str> = header.split_ascii_whitespace().collect();
    let (format, field, symmetry) = match words[..] {
        ["%%matrixmarket", "matrix", format, field, symmetry] => (format, field, symmetry),
        _ => {
            return Err(format!(
                "{} is not a Matrix Market header, expected \
                 `%%MatrixMarket matrix coordinate real general` or the like",
                quote(line)
            ));
        }
    };
    let refuse = |what: &str, given: &str, want: &str| {
        Err(format!(
            "{what} {}, expected {want}",
            quote(given.as_bytes())
        ))
    };
    if format != "coordinate" {
        return refuse(
            "the matrix is stored as",
            format,
            "`coordinate` (a sparse matrix)",
        );
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
    Ok(Kind { pattern, symmetric })
}

fn parse_size(line: &[u8], kind: Kind) -> Parsed<Size> {
    let numbers: Option<Vec<u64>> = tokens(line).map(parse_u64).collect();
    let Some(&[n_rows, n_columns, n_entries]) = numbers.as_deref() else {
        return Err(format!(
            "{} is not a line of rows, columns and entries",
            quote(line)
        ));
    };
    if n_rows > u64::from(u32::MAX) || n_columns > u64::from(u32::MAX) {
        return Err(format!(
            "{n_rows} rows and {n_columns} columns, expected at most 2^32 - 1 of each"
        ));
    }
    if n_rows == 0 {
        return Err("0 rows, expected at least 1".to_owned());
    }
    if kind.symmetric && n_rows != n_columns {
        return Err(format!(
            "{n_rows} rows and {n_columns} columns, expected as many in a symmetric matrix"
        ));
    }
    Ok(Size {
        n_rows: n_rows as usize,
        n_columns: n_columns as usize,
        n_entries,
    })
}

fn parse_entry(line: &[u8], kind: Kind, size: Size) -> Parsed<(u32, u32, f64)> {
    let mut fields = tokens(line);
    let mut place = |what: &str, n: usize| {
        let token = fields.next().unwrap_or(b"");
        match parse_u64(token) {
            Some(at) if at >= 1 && at <= n as u64 => Ok((at - 1) as u32),
            _ => Err(format!(
                "{what} {}, expected a whole number from 1 to {n}",
                quote(token)
            )),
        }
    };
    let row = place("row", size.n_rows)?;
    let column = place("column", size.n_columns)?;
    let value = if kind.pattern {
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
