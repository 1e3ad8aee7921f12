//! Parquet, and Arrow's IPC files (Feather) and streams.

use super::batch::{Batch, MAX_CELL, Place, cell_error};
use super::{Dialect, Source, UNUSABLE, ipc, pages, repeated};
use crate::data::input::{Input, quote, reading_limit};
use crate::data::vectorize::{ITEM_END, PIECE};
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use std::cell::Cell;
use std::fmt::Write;
use std::io::Cursor;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// How many records are decoded at a time.
const RECORDS: usize = 8192;

type Batches = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>;

/// A file whose columns have types.
pub(super) struct Columnar {
    path: PathBuf,
    format: &'static str,
    /// The whole file, to start again with fewer columns.
    bytes: Bytes,
    columns: Vec<String>,
    batches: Batches,
    /// The columns of a batch to keep, and their numbers in the file.
    wanted: Vec<(usize, usize)>,
    /// Batches that were read before columns were selected.
    n_read: usize,
    n_rows: u64,
}

impl Columnar {
    pub(super) fn open(input: Input<'_>, parquet: bool) -> Result<Self> {
        let path = input.path().to_owned();
        let bytes = Bytes::from(input.read_all()?);
        let format = if parquet { "Parquet" } else { "Arrow" };
        if !parquet {
            ipc::check(&bytes).map_err(|reason| corrupt(&path, format, &reason))?;
        }
        let (schema, batches) = decoded(&path, format, || open(&bytes, parquet, None))?;
        let columns: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        if columns.is_empty() {
            return Err(Error::file(&path, "has no columns"));
        }
        if let Some(name) = repeated(&columns) {
            let name = quote(name.as_bytes());
            let reason = format!("two columns are called {name}, expected distinct names");
            return Err(Error::file(&path, reason));
        }
        Ok(Self {
            wanted: (0..columns.len()).map(|at| (at, at)).collect(),
            path,
            format,
            bytes,
            columns,
            batches,
            n_read: 0,
            n_rows: 0,
        })
    }

    fn add(&self, batch: &RecordBatch, into: &mut Vec<Batch>) -> Result<()> {
        let columns = self.wanted.iter().map(|&(at, column)| {
            let name = &self.columns[column];
            (Column::of(batch.column(at)), name)
        });
        let columns: Vec<(Column, &String)> = columns.collect();
        let mut cells = Batch::new(columns.len(), self.n_rows);
        for row in 0..batch.num_rows() {
            for (column, name) in &columns {
                if let Err(reason) = column.push(row, &mut cells) {
                    let place = Place::Row(self.n_rows + row as u64);
                    return Err(cell_error(&self.path, place, name, &reason));
                }
                cells.end_cell();
            }
            if cells.size() > PIECE {
                let next = Batch::new(columns.len(), self.n_rows + row as u64 + 1);
                into.push(std::mem::replace(&mut cells, next));
            }
        }
        if cells.n_rows() > 0 {
            into.push(cells);
        }
        Ok(())
    }
}

/// Refuses files whose contents take more memory than the limit, by what they say about themselves and by the headers of
/// their pages. Returns how many records may be decoded at a time.
fn check_parquet(
    bytes: &[u8],
    metadata: &ParquetMetaData,
) -> std::result::Result<usize, ArrowError> {
    let groups = metadata.row_groups().iter();
    let sizes = groups.flat_map(|group| group.columns().iter().map(|c| c.uncompressed_size()));
    let size = sizes.fold(0u64, |sum, size| sum.saturating_add(size.max(0) as u64));
    let rows = metadata.file_metadata().num_rows().max(0) as u64;
    let limit = reading_limit();
    let too_large = || {
        ArrowError::MemoryError(format!(
            "its contents need more than {} of memory, which is the limit (see --memory)",
            crate::format::bytes(limit)
        ))
    };
    if size.max(rows.saturating_mul(16)) > limit {
        return Err(too_large());
    }
    let pages = pages::bounds(bytes, metadata, limit / 2).map_err(ArrowError::ParquetError)?;
    if pages.size > limit || pages.expanded > limit / 2 {
        return Err(too_large());
    }
    // Every record may have the longest value of a dictionary.
    let records = limit / 4 / pages.dictionary.max(1);
    Ok(records.clamp(16, RECORDS as u64) as usize)
}

/// Opens a file, all columns or some.
fn open(
    bytes: &Bytes,
    parquet: bool,
    columns: Option<&[usize]>,
) -> std::result::Result<(SchemaRef, Batches), ArrowError> {
    if parquet {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
        let records = check_parquet(bytes, builder.metadata())?;
        let schema = builder.schema().clone();
        let mask = match columns {
            None => ProjectionMask::all(),
            Some(columns) => {
                ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied())
            }
        };
        let reader = builder
            .with_projection(mask)
            .with_batch_size(records)
            .build()?;
        return Ok((schema, Box::new(reader)));
    }
    let columns = columns.map(<[usize]>::to_vec);
    let file = Cursor::new(bytes.clone());
    if bytes.starts_with(ipc::MAGIC) {
        let reader = arrow_ipc::reader::FileReader::try_new(file, columns)?;
        return Ok((reader.schema(), Box::new(reader)));
    }
    let reader = arrow_ipc::reader::StreamReader::try_new(file, columns)?;
    Ok((reader.schema(), Box::new(reader)))
}

/// What the decoder says, as an error about the file.
fn decoded<T>(
    path: &Path,
    format: &str,
    decode: impl FnOnce() -> std::result::Result<T, ArrowError>,
) -> Result<T> {
    let reason = match caught(decode) {
        Some(Ok(done)) => return Ok(done),
        Some(Err(error)) => error.to_string(),
        None => "its parts do not fit together".to_owned(),
    };
    Err(corrupt(path, format, &reason))
}

fn corrupt(path: &Path, format: &str, reason: &str) -> Error {
    Error::file(
        path,
        format!("truncated or corrupt {format} data: {reason}"),
    )
}

thread_local! {
    /// Whether a panic of this thread is an error that is reported otherwise.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The result of some work of the decoders, or none if they panicked, which they do at some damaged files. Nothing is printed
/// then: a hook that leaves out such panics is put before that of the program, once.
fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                others(info);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(before);
    done.ok()
}

impl Source for Columnar {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn dialect(&self) -> Dialect {
        Dialect::default()
    }

    fn select(&mut self, columns: &[usize]) {
        // A reader of some columns gives them in the order of the file, whatever order is asked for.
        let mut sorted = columns.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let parquet = self.format == "Parquet";
        let reopened = caught(|| open(&self.bytes, parquet, Some(&sorted)));
        let place = |column: usize| sorted.binary_search(&column).unwrap_or(column);
        match reopened {
            Some(Ok((_, batches))) => {
                self.batches = Box::new(batches.skip(self.n_read));
                self.wanted = columns.iter().map(|&c| (place(c), c)).collect();
            }
            // All columns are read on, and the error comes where it is.
            _ => self.wanted = columns.iter().map(|&c| (c, c)).collect(),
        }
    }

    fn next(&mut self) -> Result<Vec<Batch>> {
        let mut found = Vec::new();
        let mut size = 0;
        while size < 32 * PIECE {
            let (path, format) = (&self.path, self.format);
            let batches = &mut self.batches;
            let Some(batch) = decoded(path, format, || batches.next().transpose())? else {
                break;
            };
            self.n_read += 1;
            let before = found.len();
            self.add(&batch, &mut found)?;
            size += found[before..].iter().map(Batch::size).sum::<usize>();
            self.n_rows += batch.num_rows() as u64;
        }
        Ok(found)
    }
}

/// A column of a batch, by what its values are written as.
enum Column {
    Text(ArrayRef),
    Float(ArrayRef),
    Integer(ArrayRef),
    Bool(ArrayRef),
    List(Vec<Option<(usize, usize)>>, Box<Column>),
    /// Values by number: dictionaries.
    Coded(Vec<Option<usize>>, Box<Column>),
    Null,
    Unusable,
}

impl Column {
    fn of(array: &ArrayRef) -> Self {
        use DataType as T;
        match array.data_type() {
            T::Null => Self::Null,
            T::Utf8 | T::LargeUtf8 | T::Utf8View => Self::Text(array.clone()),
            T::Boolean => Self::Bool(array.clone()),
            T::Float16 | T::Float32 | T::Float64 => Self::Float(array.clone()),
            T::Int8 | T::Int16 | T::Int32 | T::Int64 => Self::Integer(array.clone()),
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => Self::Integer(array.clone()),
            T::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                let bounds = |row: usize| (offsets[row] as usize, offsets[row + 1] as usize);
                let items = Self::of(list.values());
                Self::list(array, bounds, items)
            }
            T::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                let bounds = |row: usize| (offsets[row] as usize, offsets[row + 1] as usize);
                let items = Self::of(list.values());
                Self::list(array, bounds, items)
            }
            T::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.normalized_keys().into_iter().enumerate();
                let code = |(row, key)| (!array.is_null(row)).then_some(key);
                Self::Coded(
                    keys.map(code).collect(),
                    Box::new(Self::of(dictionary.values())),
                )
            }
            _ => Self::Unusable,
        }
    }

    fn list(array: &ArrayRef, bounds: impl Fn(usize) -> (usize, usize), items: Self) -> Self {
        if matches!(items, Self::List(..) | Self::Unusable) {
            return Self::Unusable;
        }
        let rows = 0..array.len();
        let bounds = rows.map(|row| (!array.is_null(row)).then(|| bounds(row)));
        Self::List(bounds.collect(), Box::new(items))
    }

    /// Adds the value of one row to the current cell; nothing if it is null.
    fn push(&self, row: usize, cells: &mut Batch) -> std::result::Result<(), String> {
        match self {
            Self::Null => {}
            Self::Unusable => cells.push(UNUSABLE),
            Self::Text(array) => {
                if let Some(text) = text_at(array, row) {
                    if text.len() > MAX_CELL {
                        return Err(format!("the text is longer than {} MB", MAX_CELL >> 20));
                    }
                    cells.push(text);
                }
            }
            Self::Float(array) | Self::Integer(array) => {
                if !array.is_null(row) {
                    cells.push(&number_at(array, row));
                }
            }
            Self::Bool(array) => {
                if !array.is_null(row) {
                    let value = array.as_boolean().value(row);
                    cells.push(if value { "true" } else { "false" });
                }
            }
            Self::List(bounds, items) => {
                let (start, end) = bounds[row].unwrap_or((0, 0));
                for item in start..end {
                    items.push(item, cells)?;
                    cells.push(ITEM_END.encode_utf8(&mut [0; 4]));
                }
            }
            Self::Coded(keys, values) => {
                if let Some(key) = keys[row] {
                    values.push(key, cells)?;
                }
            }
        }
        Ok(())
    }
}

fn text_at(array: &ArrayRef, row: usize) -> Option<&str> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row),
        _ => array.as_string_view().value(row),
    })
}

/// A number as the shortest text that reads back to it.
fn number_at(array: &ArrayRef, row: usize) -> String {
    let mut text = String::new();
    macro_rules! written {
        ($($type:ident => $kind:ident),+) => {
            match array.data_type() {
                $(DataType::$type => write!(text, "{}", array.as_primitive::<$kind>().value(row)),)+
                _ => Ok(()),
            }
        };
    }
    let written = written!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type,
        Float16 => Float16Type, Float32 => Float32Type, Float64 => Float64Type
    );
    written.expect("text can always be written to");
    text
}
