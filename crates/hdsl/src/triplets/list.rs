//! Triplets given one by one: `anchor near far [weight]`.

use crate::data::input::{Input, quote};
use crate::data::number::{parse_f64, parse_u64};
use crate::data::text::{Parsed, parse_error};
use crate::error::{Error, Result};
use crate::triplets::Triplets;
use std::io::{self, Write};
use std::path::Path;

const WANT: &str = "lines of `anchor near far [weight]`";

/// Reads lines of `anchor near far [weight]`: row numbers counted from 0, a weight above 0 (1 if left out).
///
/// Fields stand between blanks or commas; `#` starts a comment. A triplet given twice counts twice. Compressed
/// files and `-` for standard input are fine.
pub fn read_triplets(path: &Path, n_rows: usize) -> Result<Triplets> {
    read(Input::open(path, WANT)?, n_rows)
}

/// [`read_triplets`] from memory; `name` serves for messages.
///
/// ```
/// use hdsl::triplets::parse_triplets;
/// let triplets = parse_triplets("inline".as_ref(), b"0 1 2\n0,1,3,2.5 # sure\n", 4)?;
/// assert_eq!(triplets.get(1), (0, 1, 3));
/// assert_eq!(triplets.weight(1), 2.5);
/// let error = parse_triplets("inline".as_ref(), b"0 1 9\n", 4).unwrap_err();
/// assert_eq!(error.to_string(), "inline:1: row `9` is missing, there are 4 rows, counted from 0");
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn parse_triplets(name: &Path, bytes: &[u8], n_rows: usize) -> Result<Triplets> {
    read(Input::from_bytes(name, bytes, WANT)?, n_rows)
}

fn read(input: Input<'_>, n_rows: usize) -> Result<Triplets> {
    let mut triplets = Triplets::new();
    let path = input.path().to_owned();
    each_record(input, |_, fields| {
        let (anchor, near, far, weight) = match *fields {
            [anchor, near, far] => (anchor, near, far, None),
            [anchor, near, far, weight] => (anchor, near, far, Some(weight)),
            _ => return Err(wrong_count(fields.len(), "`anchor near far [weight]`")),
        };
        let (anchor, near, far) = parse_rows(anchor, near, far, n_rows)?;
        let weight = match weight {
            None => 1.0,
            Some(token) => match parse_f64(token) {
                Some(weight) if weight.is_finite() && weight > 0.0 => weight,
                _ => {
                    return Err(format!(
                        "weight {}, expected a finite number above 0",
                        quote(token)
                    ));
                }
            },
        };
        triplets.push_weighted(anchor, near, far, weight);
        Ok(())
    })?;
    if triplets.is_empty() {
        return Err(Error::File {
            path,
            reason: "has no triplets, only blank lines and comments".to_owned(),
        });
    }
    Ok(triplets)
}

/// Writes what [`read_triplets`] reads; weights only if there are any.
///
/// ```
/// use hdsl::Triplets;
/// use hdsl::triplets::write_triplets;
/// let mut triplets = Triplets::new();
/// triplets.push(4, 0, 7);
/// let mut out = Vec::new();
/// write_triplets(&mut out, &triplets)?;
/// assert_eq!(out, b"4 0 7\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_triplets(mut out: impl Write, triplets: &Triplets) -> io::Result<()> {
    for (t, (anchor, near, far)) in triplets.iter().enumerate() {
        match triplets.weights() {
            Some(weights) => writeln!(out, "{anchor} {near} {far} {}", weights[t])?,
            None => writeln!(out, "{anchor} {near} {far}")?,
        }
    }
    Ok(())
}

/// Calls `each` with the line number and fields of every line that has any.
pub(crate) fn each_record(
    input: Input<'_>,
    mut each: impl FnMut(u64, &[&[u8]]) -> Parsed<()>,
) -> Result<()> {
    let path = input.path().to_owned();
    input.each_line(|number, line| {
        let line = match memchr::memchr(b'#', line) {
            Some(at) => &line[..at],
            None => line,
        };
        let fields: Vec<&[u8]> = line
            .split(|b| b.is_ascii_whitespace() || *b == b',')
            .filter(|field| !field.is_empty())
            .collect();
        if fields.is_empty() {
            return Ok(());
        }
        each(number, &fields).map_err(|reason| parse_error(&path, number, reason))
    })
}

/// What to say of a line with too few or too many fields.
pub(crate) fn wrong_count(n: usize, want: &str) -> String {
    let fields = if n == 1 { "field" } else { "fields" };
    format!("{n} {fields}, expected {want}")
}

/// Three rows that exist, the last two different.
pub(crate) fn parse_rows(
    anchor: &[u8],
    near: &[u8],
    far: &[u8],
    n_rows: usize,
) -> Parsed<(u32, u32, u32)> {
    let rows = (
        parse_row(anchor, n_rows)?,
        parse_row(near, n_rows)?,
        parse_row(far, n_rows)?,
    );
    if rows.1 == rows.2 {
        return Err(format!(
            "row `{}` is both the nearer and the farther one, expected two different rows",
            rows.1
        ));
    }
    Ok(rows)
}

/// A row that exists.
pub(crate) fn parse_row(token: &[u8], n_rows: usize) -> Parsed<u32> {
    let all_digits = !token.is_empty() && token.iter().all(u8::is_ascii_digit);
    match parse_u64(token) {
        Some(row) if row < n_rows as u64 && row <= u64::from(u32::MAX) => Ok(row as u32),
        _ if all_digits => Err(format!(
            "row {} is missing, there are {n_rows} rows, counted from 0",
            quote(token)
        )),
        _ => Err(format!(
            "row {} is not a whole number, expected one from 0 to {}",
            quote(token),
            n_rows.saturating_sub(1)
        )),
    }
}
