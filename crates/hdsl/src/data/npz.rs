//! scipy's sparse matrices: a zip of numpy arrays, as `scipy.sparse.save_npz` writes them.
//!
//! Nothing a header says is believed before the bytes that bear it out have been read: memory follows what is
//! in the file, not what it claims.

use crate::data::input::{Input, quote};
use crate::data::read::declared_features;
use crate::data::triples::{check_row_count, empty_rows_note};
use crate::data::{Dataset, Groups, IndexBase, Rows};
use crate::error::{Error, Result};
use std::io::{self, Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;
/// A piece of the file, or what is wrong with it; [`read`] adds the file's name.
type Checked<T> = std::result::Result<T, String>;

/// Reads a CSR or CSC matrix. Unsorted indices are sorted, repeated ones refused, zeros dropped.
pub(crate) fn read(input: Input<'_>, n_features: Option<usize>) -> Result<Dataset> {
    let path = input.path().to_owned();
    let bytes = input.read_all()?;
    let fail = |reason: String| Error::File {
        path: path.clone(),
        reason,
    };
    let compressed = read_parts(&bytes).map_err(fail)?;
    drop(bytes);
    let n_features = declared_features(&path, compressed.n_columns, n_features)?;
    if !compressed.by_rows {
        check_row_count(&path, compressed.n_rows, compressed.indices.len())?;
    }
    let (rows, n_unsorted) = compressed.into_rows(n_features).map_err(fail)?;
    let n_empty = rows.iter().filter(|row| row.nnz() == 0).count();
    let mut notes = empty_rows_note(&path, n_empty);
    if n_unsorted > 0 {
        let have = if n_unsorted == 1 {
            "row has"
        } else {
            "rows have"
        };
        notes.push(format!(
            "{}: {n_unsorted} {have} unsorted indices (sorted)",
            path.display()
        ));
    }
    Ok(Dataset {
        rows,
        labels: None,
        queries: None,
        index_base: IndexBase::Zero,
        notes,
    })
}

/// The arrays of a CSR or CSC matrix that fit together: starts never decrease, columns and rows exist.
struct Compressed {
    by_rows: bool,
    n_rows: usize,
    n_columns: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

fn read_parts(bytes: &[u8]) -> Checked<Compressed> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|e| format!("truncated or corrupt npz data: {e}"))?;
    let by_rows = match read_array(&mut archive, "format")?.into_text()?.as_str() {
        "csr" => true,
        "csc" => false,
        other => {
            return Err(format!(
                "is a sparse matrix in format {}, expected csr or csc (save `matrix.tocsr()`)",
                quote(other.as_bytes())
            ));
        }
    };
    let shape = read_array(&mut archive, "shape")?.into_whole("shape")?;
    let &[n_rows, n_columns] = shape.as_slice() else {
        return Err(format!(
            "has a shape of {} numbers, expected 2",
            shape.len()
        ));
    };
    if n_rows > u64::from(u32::MAX) || n_columns > 1 << 32 {
        return Err(format!(
            "has {n_rows} rows and {n_columns} columns, expected at most 2^32 - 1 rows and 2^32 columns"
        ));
    }
    if n_rows == 0 {
        return Err("has no rows".to_owned());
    }
    let starts = read_array(&mut archive, "indptr")?.into_whole("indptr")?;
    let indices = read_array(&mut archive, "indices")?.into_whole("indices")?;
    let values = read_array(&mut archive, "data")?.into_floats()?;

    let (outer, inner) = if by_rows {
        (n_rows, n_columns)
    } else {
        (n_columns, n_rows)
    };
    let n = indices.len() as u64;
    if starts.len() as u64 != outer + 1 || values.len() as u64 != n {
        return Err(format!(
            "has shape ({n_rows}, {n_columns}), {} starts, {n} indices and {} values, \
             which does not fit together",
            starts.len(),
            values.len()
        ));
    }
    if starts[0] != 0 || starts.windows(2).any(|w| w[0] > w[1]) || starts[starts.len() - 1] != n {
        return Err(format!("has an indptr that does not rise from 0 to {n}"));
    }
    if let Some(index) = indices.iter().find(|&&index| index >= inner) {
        return Err(format!("has index {index}, expected one below {inner}"));
    }
    if let Some(value) = values.iter().find(|v| !v.is_finite()) {
        return Err(format!("has the value {value}, expected finite numbers"));
    }
    Ok(Compressed {
        by_rows,
        n_rows: n_rows as usize,
        n_columns: n_columns as usize,
        starts: starts.into_iter().map(|s| s as usize).collect(),
        indices: indices.into_iter().map(|i| i as u32).collect(),
        values,
    })
}

impl Compressed {
    /// Rows with increasing columns and no zeros, and how many of them were out of order.
    fn into_rows(self, n_features: usize) -> Checked<(Rows, usize)> {
        let by_rows = self.by_rows;
        let n_rows = self.n_rows;
        let (starts, columns, values) = if by_rows {
            (self.starts, self.indices, self.values)
        } else {
            self.transpose()
        };
        let mut out_starts = Vec::with_capacity(n_rows + 1);
        out_starts.push(0);
        let mut out_indices = Vec::with_capacity(columns.len());
        let mut out_values = Vec::with_capacity(columns.len());
        let mut n_unsorted = 0;
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for row in 0..n_rows {
            let range = starts[row]..starts[row + 1];
            entries.clear();
            entries.extend(
                columns[range.clone()]
                    .iter()
                    .copied()
                    .zip(values[range].iter().copied()),
            );
            if entries.windows(2).any(|w| w[0].0 >= w[1].0) {
                entries.sort_unstable_by_key(|&(column, _)| column);
                if let Some(pair) = entries.windows(2).find(|w| w[0].0 == w[1].0) {
                    return Err(format!(
                        "row {row} has column {} twice (counted from 0; \
                         call `matrix.sum_duplicates()` before saving)",
                        pair[0].0
                    ));
                }
                n_unsorted += 1;
            }
            for &(column, value) in entries.iter().filter(|(_, value)| *value != 0.0) {
                out_indices.push(column);
                out_values.push(value);
            }
            out_starts.push(out_indices.len());
        }
        let rows = Rows::from_parts(n_features, out_starts, out_indices, out_values)
            .map_err(|e| e.to_string())?;
        Ok((rows, n_unsorted))
    }

    /// From columns to rows, by counting.
    fn transpose(self) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
        let columns = self.starts.windows(2).zip(0u32..);
        let columns =
            columns.flat_map(|(bounds, column)| (bounds[0]..bounds[1]).map(move |_| column));
        let entries = columns.zip(self.values.iter().copied());
        let entries = self.indices.iter().copied().zip(entries);
        let (starts, entries) = Groups::new(self.n_rows, entries).into_parts();
        let (columns, values) = entries.into_iter().unzip();
        (starts, columns, values)
    }
}

/// One numpy array: its type and as many bytes as its shape calls for.
struct Array {
    member: &'static str,
    kind: u8,
    width: usize,
    big_endian: bool,
    bytes: Vec<u8>,
}

/// Reads one member of the archive.
fn read_array(archive: &mut Archive<'_>, member: &'static str) -> Checked<Array> {
    let broken =
        |e: &dyn std::fmt::Display| format!("truncated or corrupt npz data in `{member}`: {e}");
    let file = archive
        .by_name(&format!("{member}.npy"))
        .map_err(|e| match e {
            zip::result::ZipError::FileNotFound => {
                format!("has no member `{member}`, expected what scipy.sparse.save_npz writes")
            }
            other => broken(&other),
        })?;
    read_npy(file, member).map_err(|e| match e {
        Npy::Io(e) => broken(&e),
        Npy::Bad(reason) => format!("member `{member}`: {reason}"),
    })
}

enum Npy {
    Io(io::Error),
    Bad(String),
}

impl From<io::Error> for Npy {
    fn from(error: io::Error) -> Self {
        Npy::Io(error)
    }
}

fn read_npy(mut file: impl Read, member: &'static str) -> std::result::Result<Array, Npy> {
    let bad = |reason: String| Err(Npy::Bad(reason));
    let mut start = [0u8; 8];
    file.read_exact(&mut start)?;
    if !start.starts_with(b"\x93NUMPY") {
        return bad("is not a numpy array".to_owned());
    }
    let header_length = match start[6] {
        1 => {
            let mut length = [0u8; 2];
            file.read_exact(&mut length)?;
            u64::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0u8; 4];
            file.read_exact(&mut length)?;
            u64::from(u32::from_le_bytes(length))
        }
        version => {
            return bad(format!(
                "has numpy format version {version}, expected 1 to 3"
            ));
        }
    };
    if header_length > 1 << 16 {
        return bad(format!(
            "has a header of {header_length} bytes, expected a short one"
        ));
    }
    let mut header = Vec::new();
    file.by_ref().take(header_length).read_to_end(&mut header)?;
    if (header.len() as u64) < header_length {
        return Err(Npy::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    let header = String::from_utf8_lossy(&header);
    let descr = header_value(&header, "descr").unwrap_or("");
    let Some((order, kind, width)) = parse_descr(descr) else {
        return bad(format!(
            "has the type {}, expected plain numbers or text",
            quote(descr.as_bytes())
        ));
    };
    let shape = header_value(&header, "shape").unwrap_or("");
    let Some(n) = parse_shape(shape) else {
        return bad(format!(
            "has shape {}, expected at most one dimension",
            quote(shape.as_bytes())
        ));
    };
    let Some(length) = n.checked_mul(width as u64) else {
        return bad(format!("has shape {}, too large", quote(shape.as_bytes())));
    };
    // Grows as bytes arrive; one byte more than announced would mean that header and content disagree.
    let mut bytes = Vec::new();
    file.take(length.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        let than = if (bytes.len() as u64) < length {
            "fewer"
        } else {
            "more"
        };
        return bad(format!(
            "has {than} bytes than the {length} its header announces"
        ));
    }
    Ok(Array {
        member,
        kind,
        width,
        big_endian: order == b'>',
        bytes,
    })
}

/// The text of one value in a header such as `{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }`.
fn header_value<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let after = &header[header.find(&format!("'{key}'"))? + key.len() + 2..];
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let end = match value.bytes().next()? {
        b'\'' => value[1..].find('\'')? + 2,
        b'(' => value.find(')')? + 1,
        _ => value.find([',', '}'])?,
    };
    Some(&value[..end])
}

/// Byte order, kind and width in bytes of a type such as `'<f8'`.
fn parse_descr(descr: &str) -> Option<(u8, u8, usize)> {
    let &[order @ (b'<' | b'>' | b'|' | b'='), kind, ref width @ ..] =
        descr.strip_prefix('\'')?.strip_suffix('\'')?.as_bytes()
    else {
        return None;
    };
    let width: usize = std::str::from_utf8(width).ok()?.parse().ok()?;
    let bytes = match (kind, width) {
        (b'b', 1) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'f', 2 | 4 | 8) => width,
        (b'S', 1..=16) => width,
        (b'U', 1..=16) => 4 * width,
        _ => return None,
    };
    Some((order, kind, bytes))
}

/// How many elements `()`, `(n,)` or `(n)` has.
fn parse_shape(shape: &str) -> Option<u64> {
    let inside = shape.strip_prefix('(')?.strip_suffix(')')?.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside).trim_end();
    if inside.is_empty() {
        return Some(1);
    }
    inside.strip_suffix('L').unwrap_or(inside).parse().ok()
}

impl Array {
    fn refuse<T>(&self, want: &str) -> Checked<T> {
        Err(format!(
            "member `{}`: has the type `{}{}`, expected {want}",
            self.member, self.kind as char, self.width
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

    /// Sign-extended, for signed whole numbers.
    fn signed(&self) -> impl Iterator<Item = i64> + '_ {
        let unused = 64 - 8 * self.width as u32;
        self.words()
            .map(move |word| (word << unused) as i64 >> unused)
    }

    fn into_whole(self, what: &str) -> Checked<Vec<u64>> {
        match self.kind {
            b'i' => self
                .signed()
                .map(|n| {
                    u64::try_from(n)
                        .map_err(|_| format!("has {n} in `{what}`, expected numbers from 0"))
                })
                .collect(),
            b'u' => Ok(self.words().collect()),
            _ => self.refuse("whole numbers"),
        }
    }

    fn into_floats(self) -> Checked<Vec<f64>> {
        Ok(match (self.kind, self.width) {
            (b'f', 8) => self.words().map(f64::from_bits).collect(),
            (b'f', 4) => self
                .words()
                .map(|word| f64::from(f32::from_bits(word as u32)))
                .collect(),
            (b'f', _) => self.words().map(|word| half(word as u16)).collect(),
            (b'i', _) => self.signed().map(|n| n as f64).collect(),
            (b'u', _) => self.words().map(|n| n as f64).collect(),
            (b'b', _) => self.words().map(|n| f64::from(u8::from(n != 0))).collect(),
            _ => return self.refuse("numbers"),
        })
    }

    /// A short ASCII word, from bytes or from UTF-32.
    fn into_text(self) -> Checked<String> {
        let letters: Vec<u32> = match self.kind {
            b'S' => self.bytes.iter().map(|&b| u32::from(b)).collect(),
            b'U' => self
                .bytes
                .chunks_exact(4)
                .map(|c| {
                    let c = [c[0], c[1], c[2], c[3]];
                    if self.big_endian {
                        u32::from_be_bytes(c)
                    } else {
                        u32::from_le_bytes(c)
                    }
                })
                .collect(),
            _ => return self.refuse("a word"),
        };
        Ok(letters
            .into_iter()
            .take(16)
            .take_while(|&letter| letter != 0)
            .map(|letter| char::from_u32(letter).unwrap_or('\u{fffd}'))
            .collect())
    }
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
/// The same rows give the same bytes. Indices are `int32` where they fit, as scipy prefers, `int64` otherwise.
/// Needs no seeking, so that pipes will do.
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
    let narrow = rows.n_features().max(rows.nnz()) <= i32::MAX as usize;
    let mut member = |name: &str, descr: &str, shape: &str, n_bytes: u64, fill: &mut Fill<'_>| {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .large_file(n_bytes > 1 << 31);
        zip.start_file(format!("{name}.npy"), options)?;
        let mut buffered = io::BufWriter::with_capacity(1 << 16, &mut zip);
        buffered.write_all(&npy_header(descr, shape))?;
        fill(&mut buffered)?;
        buffered.flush()
    };
    let whole = if narrow { ("<i4", 4) } else { ("<i8", 8) };
    let write_whole = |out: &mut dyn Write, n: u64| {
        if narrow {
            out.write_all(&(n as i32).to_le_bytes())
        } else {
            out.write_all(&(n as i64).to_le_bytes())
        }
    };
    let (nnz, n_starts) = (rows.nnz(), rows.starts().len());
    member(
        "indices",
        whole.0,
        &format!("({nnz},)"),
        whole.1 * nnz as u64,
        &mut |out| {
            rows.indices()
                .iter()
                .try_for_each(|&i| write_whole(out, i.into()))
        },
    )?;
    member(
        "indptr",
        whole.0,
        &format!("({n_starts},)"),
        whole.1 * n_starts as u64,
        &mut |out| {
            rows.starts()
                .iter()
                .try_for_each(|&s| write_whole(out, s as u64))
        },
    )?;
    member("format", "|S3", "()", 3, &mut |out| out.write_all(b"csr"))?;
    member("shape", "<i8", "(2,)", 16, &mut |out| {
        out.write_all(&(rows.n_rows() as i64).to_le_bytes())?;
        out.write_all(&(rows.n_features() as i64).to_le_bytes())
    })?;
    member(
        "data",
        "<f8",
        &format!("({nnz},)"),
        8 * nnz as u64,
        &mut |out| {
            rows.values()
                .iter()
                .try_for_each(|v| out.write_all(&v.to_le_bytes()))
        },
    )?;
    zip.finish()?.into_inner().flush()
}

/// Writes the content of one member.
type Fill<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// Version 1.0, padded with blanks so that the content starts at a multiple of 64 bytes.
fn npy_header(descr: &str, shape: &str) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (10 + dict.len() + 1).next_multiple_of(64) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&(padded as u16).to_le_bytes());
    header.extend_from_slice(dict.as_bytes());
    header.resize(10 + padded - 1, b' ');
    header.push(b'\n');
    header
}
