//! scipy's sparse matrices: a zip of numpy arrays, as `scipy.sparse.save_npz` writes them.
//!
//! No number of a header is trusted before the bytes that it announces have been read: memory follows the content of
//! the file, not its claims.

use super::input::{Input, quote, reading_limit};
use super::row_builder::{Shape, read_entries};
use super::{Dataset, Groups, Rows};
use crate::error::{Error, Parsed, Result};
use std::io::{self, Cursor, Read, Write};
use zip::result::ZipError;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Reads a CSR or CSC matrix. Unsorted indices are sorted, repeated ones refused, zeros dropped.
pub(super) fn read(input: Input<'_>, n_features: Option<usize>) -> Result<Dataset> {
    let path = input.path().to_owned();
    let fail = |reason: String| Error::file(&path, reason);
    let matrix = Matrix::parse(&input.read_all()?).map_err(fail)?;
    let repeated = |row, column| {
        fail(format!(
            "row {row} has column {column} twice (counted from 0; \
             call `matrix.sum_duplicates()` before saving)"
        ))
    };
    let shape = matrix.shape;
    read_entries(&path, shape, n_features, &matrix.into_rows(), repeated)
}

/// The arrays of a CSR or CSC matrix that fit together: starts never decrease, columns and rows exist.
struct Matrix {
    by_rows: bool,
    shape: Shape,
    starts: Vec<usize>,
    indices: Vec<usize>,
    values: Vec<f64>,
}

impl Matrix {
    fn parse(bytes: &[u8]) -> Parsed<Self> {
        let mut archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|e| format!("truncated or corrupt npz data: {e}"))?;
        let mut array = |member, kinds| Array::read(&mut archive, member, kinds);
        let by_rows = match array("format", WORD)?.text().as_str() {
            "csr" => true,
            "csc" => false,
            other => {
                return Err(format!(
                    "is a sparse matrix in format {}, expected csr or csc (save `matrix.tocsr()`)",
                    quote(other.as_bytes())
                ));
            }
        };
        let shape = array("shape", WHOLE)?.whole_numbers()?;
        let &[n_rows, n_columns] = shape.as_slice() else {
            let n = shape.len();
            return Err(format!("has a shape of {n} numbers, expected 2"));
        };
        let matrix = Self {
            by_rows,
            shape: Shape::new(n_rows, n_columns).map_err(|reason| format!("has {reason}"))?,
            starts: array("indptr", WHOLE)?.whole_numbers()?,
            indices: array("indices", WHOLE)?.whole_numbers()?,
            values: array("data", NUMBERS)?.numbers(),
        };
        matrix.check()?;
        Ok(matrix)
    }

    fn check(&self) -> Parsed<()> {
        let Shape { n_rows, n_columns } = self.shape;
        let (outer, inner) = match self.by_rows {
            true => (n_rows, n_columns),
            false => (n_columns, n_rows),
        };
        let (n_starts, n, n_values) = (self.starts.len(), self.indices.len(), self.values.len());
        if n_starts != outer + 1 || n_values != n {
            return Err(format!(
                "has shape ({n_rows}, {n_columns}), {n_starts} starts, {n} indices and \
                 {n_values} values, which does not fit together"
            ));
        }
        if self.starts[0] != 0 || !self.starts.is_sorted() || self.starts[outer] != n {
            return Err(format!("has an indptr that does not rise from 0 to {n}"));
        }
        if let Some(index) = self.indices.iter().find(|&&index| index >= inner) {
            return Err(format!("has index {index}, expected one below {inner}"));
        }
        match self.by_rows {
            true => Ok(()), // a start is stored for each row
            false => self.shape.check_rows(n),
        }
    }

    /// The (column, value) entries of each row.
    fn into_rows(self) -> Groups<(u32, f64)> {
        let inner = self.indices.iter().map(|&index| index as u32);
        let entries = inner.zip(self.values.iter().copied());
        if self.by_rows {
            return Groups::from_parts(self.starts, entries.collect());
        }
        let columns = self.starts.windows(2).zip(0u32..);
        let columns = columns.flat_map(|(b, column)| (b[0]..b[1]).map(move |_| column));
        let by_column = columns.zip(entries);
        let by_row = by_column.map(|(column, (row, value))| (row, (column, value)));
        Groups::new(self.shape.n_rows, by_row)
    }
}

/// Kinds of items by numpy's letters, and what they are.
type Kinds = (&'static str, &'static str);
const WORD: Kinds = ("SU", "a word");
const WHOLE: Kinds = ("iu", "whole numbers");
const NUMBERS: Kinds = ("biuf", "plain numbers");

/// One numpy array of at most one dimension.
struct Array {
    member: &'static str,
    kind: u8,
    /// Bytes per number or per letter.
    width: usize,
    /// The numbers or letters, in little-endian order.
    content: Vec<u8>,
}

impl Array {
    /// Reads one member of the archive.
    fn read(
        archive: &mut ZipArchive<Cursor<&[u8]>>,
        member: &'static str,
        kinds: Kinds,
    ) -> Parsed<Self> {
        let broken =
            |e: &dyn std::fmt::Display| format!("truncated or corrupt npz data in `{member}`: {e}");
        let file = archive.by_name(&format!("{member}.npy"));
        let mut file = file.map_err(|e| match e {
            ZipError::FileNotFound => {
                format!("has no member `{member}`, expected what scipy.sparse.save_npz writes")
            }
            other => broken(&other),
        })?;
        // Grows as bytes arrive.
        let mut bytes = Vec::new();
        let limit = reading_limit();
        let read = file.by_ref().take(limit).read_to_end(&mut bytes);
        let n = read.map_err(|e| broken(&e))?;
        if n as u64 == limit {
            return Err(format!(
                "member `{member}` needs more than {} of memory, which is the limit (see --memory)",
                crate::format::bytes(limit)
            ));
        }
        Self::parse(member, bytes, kinds).map_err(|reason| format!("member `{member}`: {reason}"))
    }

    fn parse(member: &'static str, mut bytes: Vec<u8>, kinds: Kinds) -> Parsed<Self> {
        // Later versions are for structured types.
        let [
            b'\x93',
            b'N',
            b'U',
            b'M',
            b'P',
            b'Y',
            1,
            0,
            low,
            high,
            rest @ ..,
        ] = &bytes[..]
        else {
            return Err("is not a numpy array of version 1".to_owned());
        };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let header = String::from_utf8_lossy(&rest[..length]).into_owned();
        bytes.drain(..10 + length);
        let descr = between(&header, "'descr': '", '\'').unwrap_or_default();
        let found = parse_type(descr).filter(|found| kinds.0.contains(char::from(found.0)));
        let Some((kind, width, size)) = found else {
            let (descr, want) = (quote(descr.as_bytes()), kinds.1);
            return Err(format!("has the type {descr}, expected {want}"));
        };
        let shape = between(&header, "'shape': (", ')');
        let n = shape.and_then(|inside| match inside.trim_end_matches([',', ' ']) {
            "" => Some(1),
            n => n.parse::<usize>().ok(),
        });
        let Some(n) = n else {
            let shape = quote(shape.unwrap_or_default().as_bytes());
            return Err(format!("has shape {shape}, expected at most one dimension"));
        };
        let length = bytes.len();
        if n.checked_mul(size) != Some(length) {
            return Err(format!(
                "has {length} bytes after its header, expected {n} items of {size} bytes"
            ));
        }
        if descr.starts_with('>') {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        Ok(Self {
            member,
            kind,
            width,
            content: bytes,
        })
    }

    /// The numbers. Whole ones are exact up to 2^53.
    fn numbers(&self) -> Vec<f64> {
        match (self.kind, self.width) {
            (b'f', 8) => self.each(f64::from_le_bytes),
            (b'f', 4) => self.each(|item| f32::from_le_bytes(item).into()),
            (b'f', _) => self.each(|item| half(u16::from_le_bytes(item))),
            (b'i', 8) => self.each(|item| i64::from_le_bytes(item) as f64),
            (b'i', 4) => self.each(|item| i32::from_le_bytes(item).into()),
            (b'i', 2) => self.each(|item| i16::from_le_bytes(item).into()),
            (b'i', _) => self.each(|item| i8::from_le_bytes(item).into()),
            (b'u', 8) => self.each(|item| u64::from_le_bytes(item) as f64),
            (b'u', 4) => self.each(|item| u32::from_le_bytes(item).into()),
            (b'u', 2) => self.each(|item| u16::from_le_bytes(item).into()),
            _ => self.each(|item| u8::from_le_bytes(item).into()),
        }
    }

    fn each<const N: usize>(&self, number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        let (items, _) = self.content.as_chunks();
        items.iter().map(|&item| number(item)).collect()
    }

    /// Numbers of rows, columns and entries: all are far below 2^53.
    fn whole_numbers(&self) -> Parsed<Vec<usize>> {
        let member = self.member;
        let whole = |number: f64| match number >= 0.0 {
            true => Ok(number as usize),
            false => Err(format!(
                "has {number} in `{member}`, expected numbers from 0"
            )),
        };
        self.numbers().into_iter().map(whole).collect()
    }

    /// A word in ASCII.
    fn text(&self) -> String {
        let letters = self.content.chunks_exact(self.width);
        let letters = letters.map(|letter| char::from(letter[0]));
        letters.take_while(|&letter| letter != '\0').collect()
    }
}

/// What stands between two marks in a header such as `{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }`.
fn between<'h>(header: &'h str, start: &str, end: char) -> Option<&'h str> {
    Some(header.split_once(start)?.1.split_once(end)?.0)
}

/// The kind of a type such as `<f8`, the bytes per number or letter, and the bytes per item.
fn parse_type(descr: &str) -> Option<(u8, usize, usize)> {
    let &[b'<' | b'>' | b'|' | b'=', kind, ref size @ ..] = descr.as_bytes() else {
        return None;
    };
    let size: usize = std::str::from_utf8(size).ok()?.parse().ok()?;
    match (kind, size) {
        (b'b', 1) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'f', 2 | 4 | 8) => Some((kind, size, size)),
        (b'S', _) => Some((kind, 1, size)),
        (b'U', _) => Some((kind, 4, size.checked_mul(4)?)),
        _ => None,
    }
}

/// A half-precision number. Infinity becomes NaN, which is refused as well.
fn half(bits: u16) -> f64 {
    if bits & 0x7c00 == 0x7c00 {
        return f64::NAN;
    }
    // With its bits in the places of an f32 the number is 2^112 times too small.
    let magnitude = f64::from(f32::from_bits(u32::from(bits & 0x7fff) << 13)) * 2f64.powi(112);
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// Writes rows as `scipy.sparse.load_npz` reads them: CSR, `float64` values.
///
/// The same rows give the same bytes. Indices are `int32` where they fit, as scipy prefers, `int64` otherwise. The output
/// need not be seekable: pipes work.
///
/// ```
/// use hdsl::data::write_npz;
/// use hdsl::{ReadOptions, Rows, parse_dataset};
/// let rows = Rows::from_parts(4, vec![0, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 5.0])?;
/// let mut bytes = Vec::new();
/// write_npz(&mut bytes, &rows)?;
/// assert_eq!(parse_dataset("x.npz".as_ref(), &bytes, &ReadOptions::default())?.rows, rows);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_npz(out: impl Write, rows: &Rows) -> io::Result<()> {
    let mut out = FirstError { out, error: None };
    let written = write_members(&mut out, rows);
    match out.error {
        Some(error) => Err(error),
        None => written,
    }
}

/// A writer that keeps its first error to itself and then takes everything for written. A `ZipWriter` that is told of an
/// error tries to complete the archive when it is dropped, and prints on standard error that it cannot.
struct FirstError<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: Write> Write for FirstError<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.error.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.error = Some(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.error.is_none()
            && let Err(error) = self.out.flush()
        {
            self.error = Some(error);
        }
        Ok(())
    }
}

fn write_members(out: impl Write, rows: &Rows) -> io::Result<()> {
    let mut zip = ZipWriter::new_stream(out);
    let index = match rows.n_features().max(rows.nnz()) <= i32::MAX as usize {
        true => "<i4",
        false => "<i8",
    };
    let indices = rows.indices().iter().map(|&index| u64::from(index));
    write_array(&mut zip, "indices", index, indices)?;
    let starts = rows.starts().iter().map(|&start| start as u64);
    write_array(&mut zip, "indptr", index, starts)?;
    let format = u64::from_le_bytes(*b"csr\0\0\0\0\0");
    write_array(&mut zip, "format", "|S3", std::iter::once(format))?;
    let shape = [rows.n_rows() as u64, rows.n_features() as u64];
    write_array(&mut zip, "shape", "<i8", shape.into_iter())?;
    let values = rows.values().iter().map(|value| value.to_bits());
    write_array(&mut zip, "data", "<f8", values)?;
    zip.finish()?.into_inner().flush()
}

/// Writes one member: numbers as an array of one dimension, text as a scalar. The digit of `descr` says how many of the
/// eight bytes of each item are written.
fn write_array(
    zip: &mut ZipWriter<StreamWriter<impl Write>>,
    name: &str,
    descr: &str,
    items: impl ExactSizeIterator<Item = u64>,
) -> io::Result<()> {
    let width = usize::from(descr.as_bytes()[2] - b'0');
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .large_file(items.len() * width > 1 << 31);
    zip.start_file(format!("{name}.npy"), options)?;
    let shape = match descr.starts_with("|S") {
        true => "()".to_owned(),
        false => format!("({},)", items.len()),
    };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Version 1.0, padded with blanks so that the content starts at a multiple of 64 bytes.
    let padded = (10 + dict.len() + 1).next_multiple_of(64) - 10;
    let mut out = io::BufWriter::with_capacity(1 << 16, zip);
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(padded as u16).to_le_bytes())?;
    writeln!(out, "{dict:<width$}", width = padded - 1)?;
    for item in items {
        out.write_all(&item.to_le_bytes()[..width])?;
    }
    out.flush()
}
