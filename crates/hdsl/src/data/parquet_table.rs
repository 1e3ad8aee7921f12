//! Tables of results as Parquet files.
//!
//! Columns are whole numbers, numbers and texts, each value as it is (encoding PLAIN), in pages compressed with Snappy. That is
//! a small part of the format, which every reader knows: <https://parquet.apache.org/docs/file-format/>.

use super::table::TableColumn;
use std::io::{self, Write};

/// Rows and bytes of a page, and rows of a group, at most.
const PAGE_ROWS: usize = 20_000;
const PAGE_BYTES: usize = 1 << 20;
const GROUP_ROWS: usize = 1 << 20;

const MAGIC: &[u8] = b"PAR1";

/// Numbers of Parquet's types, encodings and codecs.
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const UTF8: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const SNAPPY: i64 = 1;

/// A structure in Thrift's compact protocol.
#[derive(Default)]
struct Structure {
    bytes: Vec<u8>,
    last: u8,
}

impl Structure {
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn i32(mut self, number: u8, value: i64) -> Self {
        self.field(number, 5);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    fn i64(mut self, number: u8, value: i64) -> Self {
        self.field(number, 6);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    fn text(mut self, number: u8, text: &str) -> Self {
        self.field(number, 8);
        text_item(&mut self.bytes, text);
        self
    }

    fn structure(mut self, number: u8, value: Self) -> Self {
        self.field(number, 12);
        self.bytes.extend(value.end());
        self
    }

    /// A list of items of one type, each in bytes.
    fn list(mut self, number: u8, kind: u8, items: &[Vec<u8>]) -> Self {
        self.field(number, 9);
        match items.len() {
            n @ 0..=14 => self.bytes.push((n as u8) << 4 | kind),
            n => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, n as u64);
            }
        }
        self.bytes.extend(items.iter().flatten());
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn text_item(bytes: &mut Vec<u8>, text: &str) {
    varint(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn number_item(value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(&mut bytes, zigzag(value));
    bytes
}

/// The number of a column's type.
fn type_of(column: &TableColumn) -> i64 {
    match column {
        TableColumn::Integers(_) => INT64,
        TableColumn::Numbers(_) => DOUBLE,
        TableColumn::Texts(_) => BYTE_ARRAY,
    }
}

fn has_missing(column: &TableColumn) -> bool {
    matches!(column, TableColumn::Texts(texts) if texts.iter().any(Option::is_none))
}

/// The rows from `start` on that make one page, before compression, and where they end.
fn page(column: &TableColumn, start: usize, end: usize, is_optional: bool) -> (Vec<u8>, usize) {
    let mut end = end.min(start + PAGE_ROWS);
    let mut values = Vec::new();
    match column {
        TableColumn::Integers(list) => {
            values.extend(
                list[start..end]
                    .iter()
                    .flat_map(|value| value.to_le_bytes()),
            );
        }
        TableColumn::Numbers(list) => {
            values.extend(
                list[start..end]
                    .iter()
                    .flat_map(|value| value.to_le_bytes()),
            );
        }
        TableColumn::Texts(list) => {
            for (at, text) in list[start..end].iter().enumerate() {
                if let Some(text) = text {
                    values.extend((text.len() as u32).to_le_bytes());
                    values.extend(text.as_bytes());
                }
                if values.len() > PAGE_BYTES {
                    end = start + at + 1;
                    break;
                }
            }
        }
    }
    let TableColumn::Texts(list) = column else {
        return (values, end);
    };
    if !is_optional {
        return (values, end);
    }
    // One bit per row: whether it has a text.
    let mut levels = Vec::new();
    varint(&mut levels, ((end - start).div_ceil(8) as u64) << 1 | 1);
    for rows in list[start..end].chunks(8) {
        let bit = |(at, text): (usize, &Option<String>)| u8::from(text.is_some()) << at;
        levels.push(rows.iter().enumerate().map(bit).sum());
    }
    let mut page = (levels.len() as u32).to_le_bytes().to_vec();
    page.extend(levels);
    page.extend(values);
    (page, end)
}

/// A file that is being written.
struct Out<W> {
    out: W,
    n_bytes: i64,
}

impl<W: Write> Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.n_bytes += bytes.len() as i64;
        self.out.write_all(bytes)
    }

    /// Writes some rows of a column, and describes them.
    fn column(
        &mut self,
        name: &str,
        column: &TableColumn,
        rows: (usize, usize),
    ) -> io::Result<Vec<u8>> {
        let start = self.n_bytes;
        let is_optional = has_missing(column);
        let (mut at, mut expanded) = (rows.0, 0i64);
        while at < rows.1 {
            let (values, end) = page(column, at, rows.1, is_optional);
            let stored = snap::raw::Encoder::new().compress_vec(&values)?;
            let about = Structure::default()
                .i32(1, (end - at) as i64)
                .i32(2, PLAIN)
                .i32(3, RLE)
                .i32(4, RLE);
            let sizes = [&values, &stored].map(|bytes| i32::try_from(bytes.len()));
            let [Ok(size), Ok(stored_size)] = sizes else {
                return Err(io::Error::other("a text is longer than 2 GB"));
            };
            let header = Structure::default()
                .i32(1, 0)
                .i32(2, size.into())
                .i32(3, stored_size.into())
                .structure(5, about)
                .end();
            self.write(&header)?;
            self.write(&stored)?;
            expanded += header.len() as i64 + i64::from(size);
            at = end;
        }
        let mut path = Vec::new();
        text_item(&mut path, name);
        let about = Structure::default()
            .i32(1, type_of(column))
            .list(2, 5, &[number_item(PLAIN), number_item(RLE)])
            .list(3, 8, &[path])
            .i32(4, SNAPPY)
            .i64(5, (rows.1 - rows.0) as i64)
            .i64(6, expanded)
            .i64(7, self.n_bytes - start)
            .i64(9, start);
        let chunk = Structure::default().i64(2, start).structure(3, about);
        Ok(chunk.end())
    }
}

/// Writes named columns of `n_rows` values each.
pub(super) fn write(
    out: impl Write,
    columns: &[(&str, TableColumn)],
    n_rows: usize,
) -> io::Result<()> {
    let mut out = Out { out, n_bytes: 0 };
    out.write(MAGIC)?;
    let mut groups = Vec::new();
    for start in (0..n_rows).step_by(GROUP_ROWS) {
        let rows = (start, n_rows.min(start + GROUP_ROWS));
        let before = out.n_bytes;
        let mut chunks = Vec::new();
        for (name, column) in columns {
            chunks.push(out.column(name, column, rows)?);
        }
        let group = Structure::default()
            .list(1, 12, &chunks)
            .i64(2, out.n_bytes - before)
            .i64(3, (rows.1 - rows.0) as i64);
        groups.push(group.end());
    }
    let root = Structure::default()
        .text(4, "table")
        .i32(5, columns.len() as i64);
    let mut schema = vec![root.end()];
    for (name, column) in columns {
        let element = Structure::default()
            .i32(1, type_of(column))
            .i32(3, has_missing(column).into())
            .text(4, name);
        schema.push(match column {
            // Texts by the first field of the old types and of the new ones.
            TableColumn::Texts(_) => element
                .i32(6, UTF8)
                .structure(10, Structure::default().structure(1, Structure::default()))
                .end(),
            _ => element.end(),
        });
    }
    let footer = Structure::default()
        .i32(1, 1)
        .list(2, 12, &schema)
        .i64(3, n_rows as i64)
        .list(4, 12, &groups)
        .text(6, concat!("hdsl version ", env!("CARGO_PKG_VERSION")))
        .end();
    out.write(&footer)?;
    out.write(&(footer.len() as u32).to_le_bytes())?;
    out.write(MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Format, ReadOptions, parse_dataset};

    #[test]
    fn what_is_written_is_read() {
        for n in [1, 7, 8, PAGE_ROWS, 2 * PAGE_ROWS + 3] {
            let text = |row: usize| (row % 3 != 1).then(|| format!("word{row} ü"));
            let columns = [
                (
                    "id",
                    TableColumn::texts((0..n).map(|row| format!("r{row}"))),
                ),
                ("text", TableColumn::Texts((0..n).map(text).collect())),
                (
                    "x",
                    TableColumn::Numbers((0..n).map(|row| row as f64 / 3.0 + 0.1).collect()),
                ),
                (
                    "k",
                    TableColumn::Integers((0..n).map(|row| row as i64 - 5).collect()),
                ),
            ];
            let mut bytes = Vec::new();
            write(&mut bytes, &columns, n).unwrap();
            let mut options = ReadOptions {
                format: Some(Format::Parquet),
                ..ReadOptions::default()
            };
            options.records.keep_texts = true;
            options.records.roles.id = Some("id".to_owned());
            options.records.roles.text = vec!["text".to_owned()];
            options.records.roles.numeric = vec!["x".to_owned(), "k".to_owned()];
            let data = parse_dataset("x.parquet".as_ref(), &bytes, &options).unwrap();
            let records = data.records.unwrap();
            let ids: Vec<String> = (0..n).map(|row| format!("r{row}")).collect();
            assert_eq!(records.ids, Some(ids));
            let texts: Vec<String> = (0..n).map(|row| text(row).unwrap_or_default()).collect();
            assert_eq!(records.texts, Some(texts));
        }
    }

    #[test]
    fn numbers_of_thrift() {
        let mut bytes = Vec::new();
        varint(&mut bytes, zigzag(-300));
        assert_eq!(bytes, [0xd7, 0x04]);
        let structure = Structure::default().i32(1, 0).i64(4, -1).text(5, "a");
        assert_eq!(structure.end(), [0x15, 0, 0x36, 1, 0x18, 1, b'a', 0]);
    }
}
