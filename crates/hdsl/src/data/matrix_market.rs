//! Matrix Market text: `row column [value]` entries under a header that gives the shape.
//!
//! A row of the matrix is a row of data. Only coordinate (sparse) matrices are read.

use super::input::{Input, quote};
use super::number::{parse_f64, parse_u64};
use super::row_builder::{Shape, read_entries};
use super::rows::LARGEST;
use super::text::tokens;
use super::{Dataset, Groups, IndexBase};
use crate::error::{Error, Parsed, Result};

/// What the first line of the file says.
#[derive(Clone, Copy)]
struct Header {
    pattern: bool,
    symmetric: bool,
}

/// Reads a coordinate matrix: real, integer or pattern, general or symmetric.
pub(super) fn read(input: Input<'_>, n_features: Option<usize>) -> Result<Dataset> {
    let path = input.path().to_owned();
    let mut header = None;
    let mut size = None;
    let mut n_entries = 0;
    let (mut entries, mut lines) = (Vec::new(), Vec::new());
    input.each_line(|number, line| {
        let Some(header) = header else {
            header = Some(parse_header(line)?);
            return Ok(());
        };
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'%' {
            return Ok(());
        }
        let Some((shape, declared)) = size else {
            size = Some(parse_size(line, header)?);
            return Ok(());
        };
        if n_entries == declared {
            let line = quote(line);
            return Err(format!(
                "{line} is one entry too many, the header says {n_entries}"
            ));
        }
        n_entries += 1;
        let (row, column, value) = parse_entry(line, header, shape)?;
        entries.push((row, (column, value)));
        lines.push(number);
        if header.symmetric && row != column {
            entries.push((column, (row, value)));
            lines.push(number);
        }
        Ok(())
    })?;
    let fail = |reason| Error::file(&path, reason);
    let size = size.ok_or_else(|| fail("ends before the line of rows, columns and entries".into()));
    let (shape, declared) = size?;
    if n_entries < declared {
        let reason = format!("has {n_entries} entries, but its header says {declared}");
        return Err(fail(reason));
    }
    shape.check_rows(entries.len()).map_err(fail)?;
    let repeated = |row, column| {
        let same = |entry: &(u32, (u32, f64))| (entry.0, entry.1.0) == (row, column);
        let mut lines = (entries.iter().zip(&lines)).filter(|(entry, _)| same(entry));
        let mut line = || *lines.next().expect("the entry occurs twice").1;
        let (first, second) = (line(), line());
        let (row, column) = (u64::from(row) + 1, u64::from(column) + 1);
        let reason = format!("row {row} has column {column} a second time (first on line {first})");
        Error::parse(&path, second, reason)
    };
    let by_row = Groups::new(shape.n_rows, entries.iter().copied());
    let dataset = read_entries(&path, shape, n_features, &by_row, repeated)?;
    Ok(Dataset {
        index_base: IndexBase::One,
        ..dataset
    })
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

/// The shape, and the number of entries.
fn parse_size(line: &[u8], header: Header) -> Parsed<(Shape, usize)> {
    let whole = |token| usize::try_from(parse_u64(token)?).ok();
    let numbers: Option<Vec<usize>> = tokens(line).map(whole).collect();
    let Some(&[n_rows, n_columns, n_entries]) = numbers.as_deref() else {
        let line = quote(line);
        return Err(format!("{line} is not a line of rows, columns and entries"));
    };
    if header.symmetric && n_rows != n_columns {
        return Err(format!(
            "{n_rows} rows and {n_columns} columns, expected as many in a symmetric matrix"
        ));
    }
    Ok((Shape::new(n_rows, n_columns)?, n_entries))
}

fn parse_entry(line: &[u8], header: Header, shape: Shape) -> Parsed<(u32, u32, f64)> {
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
    let row = place("row", shape.n_rows)?;
    let column = place("column", shape.n_columns)?;
    let value = if header.pattern {
        1.0
    } else {
        let token = fields.next().unwrap_or(b"");
        match parse_f64(token) {
            Some(value) if value.abs() <= LARGEST => value,
            Some(value) if value.is_finite() => {
                let token = quote(token);
                let want = "a number from -1e50 to 1e50: products of larger ones overflow";
                return Err(format!("value {token}, expected {want}"));
            }
            _ => return Err(format!("value {}, expected a finite number", quote(token))),
        }
    };
    match fields.next() {
        Some(extra) => Err(format!("{} is one field too many", quote(extra))),
        None => Ok((row, column, value)),
    }
}
