//! Tables of results: CSV, JSON lines and Parquet.

use crate::error::{Error, Result};
use crate::named::named_enum;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;

named_enum! {
    /// The formats in which tables are written.
    pub enum TableFormat as "table format" = "csv" | "tsv" | "jsonl" | "parquet" {
        /// Values separated by commas, with a header.
        Csv,
        /// Values separated by tabs, with a header.
        Tsv,
        /// One JSON object per line.
        JsonLines,
        /// A Parquet file.
        Parquet,
    }
}

impl TableFormat {
    /// The format that a file's name ends in, if it is one of them.
    ///
    /// ```
    /// use hdsl::data::TableFormat;
    /// assert_eq!(TableFormat::of_name("a/scores.CSV".as_ref()), Some(TableFormat::Csv));
    /// assert_eq!(TableFormat::of_name("scores.txt".as_ref()), None);
    /// ```
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "parquet" | "pq" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum TableColumn {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Numbers.
    Numbers(Vec<f64>),
    /// Texts, or nothing.
    Texts(Vec<Option<String>>),
}

impl TableColumn {
    /// Texts that are all there.
    pub fn texts<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self::Texts(texts.into_iter().map(|text| Some(text.into())).collect())
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(list) => list.len(),
            Self::Numbers(list) => list.len(),
            Self::Texts(list) => list.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn json(&self, row: usize) -> Value {
        match self {
            Self::Integers(list) => list[row].into(),
            Self::Numbers(list) => list[row].into(),
            Self::Texts(list) => list[row].as_deref().into(),
        }
    }

    fn write(&self, row: usize, out: &mut impl Write, delimiter: u8) -> io::Result<()> {
        match self {
            Self::Integers(list) => write!(out, "{}", list[row]),
            Self::Numbers(list) => write!(out, "{}", list[row]),
            Self::Texts(list) => write_field(out, list[row].as_deref().unwrap_or(""), delimiter),
        }
    }
}

/// A text, in quotes where it would be read as something else.
fn write_field(out: &mut impl Write, text: &str, delimiter: u8) -> io::Result<()> {
    let quoted = |byte: u8| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r');
    match text.bytes().any(quoted) {
        false => out.write_all(text.as_bytes()),
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
    }
}

/// Writes named columns of equal length.
///
/// ```
/// use hdsl::data::{TableColumn, TableFormat, write_table};
/// let table = [("row", TableColumn::Integers(vec![0, 1])), ("class", TableColumn::texts(["a", "b, c"]))];
/// let mut out = Vec::new();
/// write_table(&mut out, TableFormat::Csv, &table)?;
/// assert_eq!(out, b"row,class\n0,a\n1,\"b, c\"\n");
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn write_table(
    mut out: impl Write + Send,
    format: TableFormat,
    columns: &[(&str, TableColumn)],
) -> Result<()> {
    let n_rows = columns.first().map_or(0, |column| column.1.len());
    if let Some((name, column)) = columns.iter().find(|column| column.1.len() != n_rows) {
        let n = column.len();
        return Err(Error::data(format!(
            "column `{name}` has {n} values, expected {n_rows}, as in the first"
        )));
    }
    let written = match format {
        TableFormat::Csv => write_separated(&mut out, columns, n_rows, b','),
        TableFormat::Tsv => write_separated(&mut out, columns, n_rows, b'\t'),
        TableFormat::JsonLines => write_json_lines(&mut out, columns, n_rows),
        #[cfg(feature = "columnar")]
        TableFormat::Parquet => super::parquet_table::write(&mut out, columns, n_rows),
        #[cfg(not(feature = "columnar"))]
        TableFormat::Parquet => {
            let reason = "Parquet is not supported: hdsl was built without `columnar`";
            return Err(Error::data(reason));
        }
    };
    written
        .and_then(|()| out.flush())
        .map_err(|e| Error::data(format!("cannot write: {e}")))
}

fn write_separated(
    out: &mut impl Write,
    columns: &[(&str, TableColumn)],
    n_rows: usize,
    delimiter: u8,
) -> io::Result<()> {
    for (at, (name, _)) in columns.iter().enumerate() {
        if at > 0 {
            out.write_all(&[delimiter])?;
        }
        write_field(out, name, delimiter)?;
    }
    writeln!(out)?;
    for row in 0..n_rows {
        for (at, (_, column)) in columns.iter().enumerate() {
            if at > 0 {
                out.write_all(&[delimiter])?;
            }
            column.write(row, out, delimiter)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_json_lines(
    out: &mut impl Write,
    columns: &[(&str, TableColumn)],
    n_rows: usize,
) -> io::Result<()> {
    for row in 0..n_rows {
        let fields = columns
            .iter()
            .map(|(name, column)| ((*name).to_owned(), column.json(row)));
        serde_json::to_writer(&mut *out, &fields.collect::<Map<_, _>>())?;
        writeln!(out)?;
    }
    Ok(())
}
