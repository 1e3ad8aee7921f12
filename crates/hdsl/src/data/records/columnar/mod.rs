//! Files whose columns have types: Parquet, and Arrow's IPC files (Feather) and streams.
//!
//! | file | job |
//! |---|---|
//! | `column.rs` | values of any type as text; columns in memory |
//! | `ipc.rs`, `flatbuffer.rs` | Arrow, and the format of its descriptions |
//! | `parquet.rs`, `thrift.rs` | Parquet, and the format of its descriptions |
//! | `pages.rs`, `encodings.rs` | columns of Parquet, and how their values are encoded |
//! | `codecs.rs` | decompression |
//!
//! The decoders are ours: see `docs/decisions.md`. Files may be damaged or made to do damage. All that a file says about itself
//! is checked where it is used, nothing is allocated because a file says so, and no value is expanded before it is needed.

mod codecs;
mod column;
mod encodings;
mod flatbuffer;
mod ipc;
mod pages;
mod parquet;
mod thrift;

use super::batch::{Batch, Place, cell_error};
use super::{Dialect, Source, repeated};
use crate::data::input::{Input, check_size, quote};
use crate::data::vectorize::PIECE;
use crate::error::{Error, Result};
use bytes::Bytes;
use ipc::Ipc;
use parquet::Parquet;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How many records of a Parquet file are one piece at most.
const RECORDS: usize = 8192;

/// Bytes that a row takes in memory at least, even if all of it is missing.
const PER_ROW: u64 = 16;

/// What is wrong with a file.
#[derive(Debug)]
enum Wrong {
    /// A value.
    Cell(String),
    /// The file.
    Damaged(String),
    /// Its contents take so many bytes of memory.
    TooLarge(u64),
}

impl From<String> for Wrong {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

impl From<&str> for Wrong {
    fn from(reason: &str) -> Self {
        Self::Damaged(reason.to_owned())
    }
}

/// A file that is read row by row.
trait Reader: Send {
    /// How many rows can be read before the next group or batch; 0 only at the end of the file.
    fn rows_ready(&mut self) -> std::result::Result<usize, Wrong>;

    /// Adds the value of the current row to the current cell. Each selected column has to be read once per row.
    fn push(&mut self, column: usize, cells: &mut Batch) -> std::result::Result<(), Wrong>;

    fn next_row(&mut self);

    /// From now on, only the columns for which this is true.
    fn select(&mut self, is_selected: &[bool]);
}

/// A file whose columns have types.
pub(super) struct Columnar {
    path: PathBuf,
    format: &'static str,
    columns: Vec<String>,
    reader: Box<dyn Reader>,
    /// The columns to read, and which of those before is the same.
    wanted: Vec<(usize, Option<usize>)>,
    n_rows: u64,
}

impl Columnar {
    pub(super) fn open(input: Input<'_>, is_parquet: bool) -> Result<Self> {
        let path = input.path().to_owned();
        let bytes = Bytes::from(input.read_all()?);
        let format = if is_parquet { "Parquet" } else { "Arrow" };
        let opened = match is_parquet {
            true => {
                Parquet::open(bytes).map(|(file, names)| (Box::new(file) as Box<dyn Reader>, names))
            }
            false => {
                Ipc::open(bytes).map(|(file, names)| (Box::new(file) as Box<dyn Reader>, names))
            }
        };
        let (reader, columns) = opened.map_err(|wrong| error(&path, format, wrong, None))?;
        if columns.is_empty() {
            return Err(Error::file(&path, "has no columns"));
        }
        if let Some(name) = repeated(&columns) {
            let name = quote(name.as_bytes());
            let reason = format!("two columns are called {name}, expected distinct names");
            return Err(Error::file(&path, reason));
        }
        Ok(Self {
            wanted: (0..columns.len()).map(|column| (column, None)).collect(),
            path,
            format,
            columns,
            reader,
            n_rows: 0,
        })
    }

    fn error(&self, wrong: Wrong, column: Option<usize>) -> Error {
        let cell = column.map(|column| (self.n_rows, &self.columns[column]));
        error(&self.path, self.format, wrong, cell)
    }

    /// The next records, at most a piece; none at the end.
    fn next_piece(&mut self) -> Result<Batch> {
        let mut cells = Batch::new(self.wanted.len(), self.n_rows);
        while cells.size() <= PIECE {
            let ready = self.reader.rows_ready();
            let ready = ready.map_err(|wrong| self.error(wrong, None))?;
            if ready == 0 {
                break;
            }
            self.add_row(&mut cells)?;
            let is_full = match self.format {
                "Parquet" => cells.n_rows() == RECORDS,
                _ => ready == 1,
            };
            if is_full {
                break;
            }
        }
        Ok(cells)
    }

    fn add_row(&mut self, cells: &mut Batch) -> Result<()> {
        let row = cells.n_rows();
        for &(column, same) in &self.wanted {
            match same {
                Some(before) => {
                    let again = cells.cell(row, before).to_owned();
                    cells.push(&again);
                }
                None => {
                    let pushed = self.reader.push(column, cells);
                    pushed.map_err(|wrong| self.error(wrong, Some(column)))?;
                }
            }
            cells.end_cell();
        }
        self.reader.next_row();
        self.n_rows += 1;
        Ok(())
    }
}

/// What is wrong, as an error about the file or one of its cells.
fn error(path: &Path, format: &str, wrong: Wrong, cell: Option<(u64, &String)>) -> Error {
    let reason = match (wrong, cell) {
        (Wrong::Cell(reason), Some((row, column))) => {
            return cell_error(path, Place::Row(row), column, &reason);
        }
        (Wrong::TooLarge(needed), _) => match check_size(path, needed) {
            Err(error) => return error,
            Ok(()) => "its pages are larger than it says".to_owned(),
        },
        (Wrong::Cell(reason) | Wrong::Damaged(reason), _) => reason,
    };
    let reason = format!("truncated or corrupt {format} data: {reason}");
    Error::file(path, reason)
}

impl Source for Columnar {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn dialect(&self) -> Dialect {
        Dialect::default()
    }

    fn select(&mut self, columns: &[usize]) {
        // A label may be a feature as well.
        let mut places = HashMap::new();
        let with_same = |(at, &column)| match *places.entry(column).or_insert(at) {
            first if first == at => (column, None),
            first => (column, Some(first)),
        };
        self.wanted = columns.iter().enumerate().map(with_same).collect();
        let is_selected: Vec<bool> = (0..self.columns.len())
            .map(|column| places.contains_key(&column))
            .collect();
        self.reader.select(&is_selected);
    }

    fn next(&mut self) -> Result<Vec<Batch>> {
        let mut found = Vec::new();
        let mut size = 0;
        while size < 32 * PIECE {
            let piece = self.next_piece()?;
            if piece.n_rows() == 0 {
                break;
            }
            size += piece.size();
            found.push(piece);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{Format, ReadOptions, parse_dataset};

    /// Files by pyarrow, see testdata/README.md.
    const FILES: [(Format, &[u8]); 4] = [
        (
            Format::Parquet,
            include_bytes!("../../../../../../testdata/records.parquet"),
        ),
        (
            Format::Parquet,
            include_bytes!("../../../../../../testdata/records_zstd.parquet"),
        ),
        (
            Format::Arrow,
            include_bytes!("../../../../../../testdata/records.feather"),
        ),
        (
            Format::Arrow,
            include_bytes!("../../../../../../testdata/records.arrows"),
        ),
    ];

    fn is_read(format: Format, bytes: &[u8]) -> bool {
        let options = ReadOptions {
            format: Some(format),
            ..ReadOptions::default()
        };
        parse_dataset("x".as_ref(), bytes, &options).is_ok()
    }

    #[test]
    fn no_damage_is_a_panic() {
        for (format, bytes) in FILES {
            assert!(is_read(format, bytes));
            for at in 0..bytes.len() {
                let mut damaged = bytes.to_vec();
                for value in [0, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
                    damaged[at] = value;
                    is_read(format, &damaged);
                }
            }
        }
    }

    #[test]
    fn files_that_end_early_are_refused() {
        for (format, bytes) in FILES {
            let read = (0..bytes.len()).filter(|&end| is_read(format, &bytes[..end]));
            // A stream may end after any message.
            let is_stream = !bytes.starts_with(b"PAR1") && !bytes.starts_with(b"ARROW1");
            assert!(read.count() <= if is_stream { 32 } else { 0 });
        }
    }
}
