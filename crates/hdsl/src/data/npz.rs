//! scipy's sparse matrices: a zip of numpy arrays, as `scipy.sparse.save_npz` writes them.
//!
//! No number of a header is trusted before the bytes that it announces have been read: memory follows the content of
//! the file, not its claims. (The crate `npyz` 0.9 allocates the length that a header announces.)

use super::input::{Input, quote};
use super::read::declared_features;
use super::row_builder::{RowBuilder, check_row_count};
use super::text::Parsed;
use super::{Dataset, Groups, IndexBase, Rows};
use crate::error::{Error, Result};
use std::io::{self, Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Reads a CSR or CSC matrix. Unsorted indices are sorted, repeated ones refused, zeros dropped.
pub(super) fn read(input: Input<'_>, n_features: Option<usize>) -> Result<Dataset> {
    let path = input.path().to_owned();
    let fail = |reason: String| Error::file(&path, reason);
    let matrix = Matrix::parse(&input.read_all()?).map_err(fail)?;
    let n_features = declared_features(&path, matrix.n_columns, n_features)?;
    if !matrix.by_rows {
        check_row_count(&path, matrix.n_rows, matrix.indices.len())?;
    }
    let rows = matrix.into_rows().map_err(fail)?;
    let (rows, notes) = rows.finish(&path, n_features)?;
    Ok(Dataset::unlabeled(rows, IndexBase::Zero, notes))
}

/// The arrays of a CSR or CSC matrix that fit together: starts never decrease, columns and rows exist.
struct Matrix {
    by_rows: bool,
    n_rows: usize,
    n_columns: usize,
    starts: Vec<u64>,
    indices: Vec<u64>,
    values: Vec<f64>,
}

impl Matrix {
    fn parse(bytes: &[u8]) -> Parsed<Self> {
        let mut archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|e| format!("truncated or corrupt npz data: {e}"))?;
        let mut array = |member| Array::read(&mut archive, member);
        let by_rows = match array("format")?.text()?.as_str() {
            "csr" => true,
            "csc" => false,
            other => {
                return Err(format!(
                    "is a sparse matrix in format {}, expected csr or csc (save `matrix.tocsr()`)",
                    quote(other.as_bytes())
                ));
            }
        };
        let shape = array("shape")?.whole_numbers()?;
        let &[n_rows, n_columns] = shape.as_slice() else {
            let n = shape.len();
            return Err(format!("has a shape of {n} numbers, expected 2"));
        };
        if n_rows.max(n_columns) > u64::from(u32::MAX) {
            return Err(format!(
                "has {n_rows} rows and {n_columns} columns, expected at most 2^32 - 1 of each"
            ));
        }
        if n_rows == 0 {
            return Err("has no rows".to_owned());
        }
        let matrix = Self {
            by_rows,
            n_rows: n_rows as usize,
            n_columns: n_columns as usize,
            starts: array("indptr")?.whole_numbers()?,
            indices: array("indices")?.whole_numbers()?,
            values: array("data")?.floats()?,
        };
        matrix.check(n_rows, n_columns)?;
        Ok(matrix)
    }

    fn check(&self, n_rows: u64, n_columns: u64) -> Parsed<()> {
        let (outer, inner) = match self.by_rows {
            true => (n_rows, n_columns),
            false => (n_columns, n_rows),
        };
        let Self {
            starts,
            indices,
            values,
            ..
        } = self;
        let n = indices.len() as u64;
        if starts.len() as u64 != outer + 1 || values.len() as u64 != n {
            return Err(format!(
                "has shape ({n_rows}, {n_columns}), {} starts, {n} indices and {} values, \
                 which does not fit together",
                starts.len(),
                values.len()
            ));
        }
        if starts[0] != 0 || !starts.is_sorted() || starts.last() != Some(&n) {
            return Err(format!("has an indptr that does not rise from 0 to {n}"));
        }
        if let Some(index) = indices.iter().find(|&&index| index >= inner) {
            return Err(format!("has index {index}, expected one below {inner}"));
        }
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(format!("has the value {value}, expected finite numbers")),
            None => Ok(()),
        }
    }

    fn into_rows(self) -> Parsed<RowBuilder> {
        let indices = self.indices.iter().map(|&index| index as u32);
        let entries = indices.zip(self.values.iter().copied());
        let starts = self.starts.iter().map(|&start| start as usize);
        let (starts, entries): (Vec<usize>, Vec<(u32, f64)>) = if self.by_rows {
            (starts.collect(), entries.collect())
        } else {
            let bounds = self.starts.windows(2).zip(0u32..);
            let columns = bounds.flat_map(|(b, column)| (b[0]..b[1]).map(move |_| column));
            let by_row = columns
                .zip(entries)
                .map(|(column, (row, value))| (row, (column, value)));
            Groups::new(self.n_rows, by_row).into_parts()
        };
        let mut rows = RowBuilder::with_capacity(entries.len());
        for (row, bounds) in starts.windows(2).enumerate() {
            let entries = entries[bounds[0]..bounds[1]].iter();
            entries.for_each(|&(column, value)| rows.entry(column, value));
            rows.end_row().map_err(|column| {
                format!(
                    "row {row} has column {column} twice (counted from 0; \
                     call `matrix.sum_duplicates()` before saving)"
                )
            })?;
        }
        Ok(rows)
    }
}

/// One numpy array: its type and as many bytes as its shape calls for.
struct Array {
    member: &'static str,
    /// numpy's letter: b, i, u, f, S or U.
    kind: u8,
    /// Bytes per number or per letter.
    width: usize,
    big_endian: bool,
    bytes: Vec<u8>,
}

impl Array {
    /// Reads one member of the archive.
    fn read(archive: &mut Archive<'_>, member: &'static str) -> Parsed<Self> {
        let broken =
            |e: &dyn std::fmt::Display| format!("truncated or corrupt npz data in `{member}`: {e}");
        let mut file = archive
            .by_name(&format!("{member}.npy"))
            .map_err(|e| match e {
                zip::result::ZipError::FileNotFound => {
                    format!("has no member `{member}`, expected what scipy.sparse.save_npz writes")
                }
                other => broken(&other),
            })?;
        let bad = |reason: String| Err(format!("member `{member}`: {reason}"));
        let mut start = [0u8; 8];
        file.read_exact(&mut start).map_err(|e| broken(&e))?;
        let length_bytes = match &start {
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', 1, _] => 2,
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', 2 | 3, _] => 4,
            _ => return bad("is not a numpy array of version 1 to 3".to_owned()),
        };
        let mut length = [0u8; 4];
        file.read_exact(&mut length[..length_bytes])
            .map_err(|e| broken(&e))?;
        let length = u32::from_le_bytes(length);
        if length > 1 << 16 {
            return bad(format!(
                "has a header of {length} bytes, expected a short one"
            ));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(|e| broken(&e))?;
        let header = String::from_utf8_lossy(&header);
        let (descr, shape) = (
            header_value(&header, "descr"),
            header_value(&header, "shape"),
        );
        let Some((big_endian, kind, letters, width)) = parse_descr(descr) else {
            let descr = quote(descr.as_bytes());
            return bad(format!(
                "has the type {descr}, expected plain numbers or text"
            ));
        };
        let Some(n) = parse_shape(shape) else {
            let shape = quote(shape.as_bytes());
            return bad(format!("has shape {shape}, expected at most one dimension"));
        };
        let Some(length) = n.checked_mul(letters * width as u64) else {
            return bad(format!("has shape {}, too large", quote(shape.as_bytes())));
        };
        // Grows as bytes arrive; one byte more than announced would mean that header and content disagree.
        let mut bytes = Vec::new();
        let mut content = file.take(length.saturating_add(1));
        content.read_to_end(&mut bytes).map_err(|e| broken(&e))?;
        let than = match (bytes.len() as u64).cmp(&length) {
            std::cmp::Ordering::Less => "fewer",
            std::cmp::Ordering::Greater => "more",
            std::cmp::Ordering::Equal => {
                return Ok(Self {
                    member,
                    kind,
                    width,
                    big_endian,
                    bytes,
                });
            }
        };
        bad(format!(
            "has {than} bytes than the {length} its header announces"
        ))
    }

    fn refuse<T>(&self, want: &str) -> Parsed<T> {
        let Self {
            member,
            kind,
            width,
            ..
        } = self;
        let kind = *kind as char;
        Err(format!(
            "member `{member}`: has the type `{kind}{width}`, expected {want}"
        ))
    }

    /// Each element as `width` little-endian bytes at the low end of a word.
    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.bytes.chunks_exact(self.width).map(|chunk| {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            if self.big_endian {
                word[..chunk.len()].reverse();
            }
            u64::from_le_bytes(word)
        })
    }

    /// Signed whole numbers.
    fn signed(&self) -> impl Iterator<Item = i64> + '_ {
        let unused = 64 - 8 * self.width as u32;
        self.words()
            .map(move |word| (word << unused) as i64 >> unused)
    }

    fn whole_numbers(&self) -> Parsed<Vec<u64>> {
        let member = self.member;
        let positive = |n| {
            u64::try_from(n).map_err(|_| format!("has {n} in `{member}`, expected numbers from 0"))
        };
        match self.kind {
            b'i' => self.signed().map(positive).collect(),
            b'u' => Ok(self.words().collect()),
            _ => self.refuse("whole numbers"),
        }
    }

    fn floats(&self) -> Parsed<Vec<f64>> {
        let words = self.words();
        Ok(match (self.kind, self.width) {
            (b'f', 8) => words.map(f64::from_bits).collect(),
            (b'f', 4) => words
                .map(|word| f32::from_bits(word as u32).into())
                .collect(),
            (b'f', _) => words.map(|word| half(word as u16)).collect(),
            (b'i', _) => self.signed().map(|n| n as f64).collect(),
            (b'u', _) => words.map(|n| n as f64).collect(),
            (b'b', _) => words.map(|n| f64::from(u8::from(n != 0))).collect(),
            _ => return self.refuse("numbers"),
        })
    }

    /// A short word, from bytes or from UTF-32.
    fn text(&self) -> Parsed<String> {
        if !matches!(self.kind, b'S' | b'U') {
            return self.refuse("a word");
        }
        let letters = self.words().take(16).take_while(|&letter| letter != 0);
        let letter = |letter| char::from_u32(letter as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        Ok(letters.map(letter).collect())
    }
}

/// The text of one value in a header such as `{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }`; empty if there
/// is none.
fn header_value<'h>(header: &'h str, key: &str) -> &'h str {
    let value = || {
        let after = &header[header.find(&format!("'{key}'"))? + key.len() + 2..];
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let end = match value.bytes().next()? {
            b'\'' => value[1..].find('\'')? + 2,
            b'(' => value.find(')')? + 1,
            _ => value.find([',', '}'])?,
        };
        Some(&value[..end])
    };
    value().unwrap_or_default()
}

/// Whether a type such as `'<f8'` is big-endian, its kind, its number of letters (1 for numbers) and their width.
fn parse_descr(descr: &str) -> Option<(bool, u8, u64, usize)> {
    let descr = descr.strip_prefix('\'')?.strip_suffix('\'')?;
    let &[order @ (b'<' | b'>' | b'|' | b'='), kind, ref size @ ..] = descr.as_bytes() else {
        return None;
    };
    let size: u64 = std::str::from_utf8(size).ok()?.parse().ok()?;
    let (letters, width) = match (kind, size) {
        (b'b', 1) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'f', 2 | 4 | 8) => (1, size as usize),
        (b'S', 1..=16) => (size, 1),
        (b'U', 1..=16) => (size, 4),
        _ => return None,
    };
    Some((order == b'>', kind, letters, width))
}

/// How many elements `()`, `(n,)` or `(n)` has.
fn parse_shape(shape: &str) -> Option<u64> {
    let inside = shape.strip_prefix('(')?.strip_suffix(')')?.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside).trim_end();
    if inside.is_empty() {
        return Some(1);
    }
    inside.parse().ok()
}

/// A half-precision number, which `f64` holds exactly.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
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
    let mut zip = ZipWriter::new_stream(out);
    let (indices, starts) = (rows.indices().iter(), rows.starts().iter());
    if rows.n_features().max(rows.nnz()) <= i32::MAX as usize {
        write_array(
            &mut zip,
            "indices",
            "<i4",
            indices.map(|&i| i.to_le_bytes()),
        )?;
        write_array(
            &mut zip,
            "indptr",
            "<i4",
            starts.map(|&s| (s as u32).to_le_bytes()),
        )?;
    } else {
        write_array(
            &mut zip,
            "indices",
            "<i8",
            indices.map(|&i| u64::from(i).to_le_bytes()),
        )?;
        write_array(
            &mut zip,
            "indptr",
            "<i8",
            starts.map(|&s| (s as u64).to_le_bytes()),
        )?;
    }
    write_array(&mut zip, "format", "|S3", std::iter::once(*b"csr"))?;
    let shape = [rows.n_rows(), rows.n_features()].into_iter();
    write_array(
        &mut zip,
        "shape",
        "<i8",
        shape.map(|n| (n as u64).to_le_bytes()),
    )?;
    write_array(
        &mut zip,
        "data",
        "<f8",
        rows.values().iter().map(|v| v.to_le_bytes()),
    )?;
    zip.finish()?.into_inner().flush()
}

/// Writes one member: numbers as an array of one dimension, text as a scalar.
fn write_array<const WIDTH: usize>(
    zip: &mut ZipWriter<zip::write::StreamWriter<impl Write>>,
    name: &str,
    descr: &str,
    items: impl ExactSizeIterator<Item = [u8; WIDTH]>,
) -> io::Result<()> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .large_file(items.len() * WIDTH > 1 << 31);
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
        out.write_all(&item)?;
    }
    out.flush()
}
