//! Arrow's IPC format: files (also called Feather) and streams of messages.
//!
//! A message is a description and a body of buffers. A field has one node in the description and as many buffers as its type
//! has parts, and so do the fields below it; fields that are not read are skipped by that.

use super::super::batch::Batch;
use super::codecs::{Codec, decompress};
use super::column::{Bits, Column, Dictionary, Number, Values};
use super::flatbuffer::{Table, array};
use super::{PER_ROW, Reader, Wrong};
use crate::data::input::reading_limit;
use crate::error::Parsed;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// The first bytes of a file, and its last.
const MAGIC: &[u8] = b"ARROW1";

/// Before the length of a message.
const CONTINUES: [u8; 4] = [0xff; 4];

/// More than any of its codecs compresses: zstd makes 128 KiB of three bytes at best.
const HIGHEST_RATIO: u64 = 1 << 16;

/// Rows that a batch without any bytes may have.
const NULL_ROWS: u64 = 1 << 16;

/// How deep fields may be nested.
const DEEPEST: u32 = 64;

const WRONG: &str = "its parts do not fit together";

/// The kinds of messages.
const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const RECORDS: u8 = 3;

/// Numbers of types that are called by name elsewhere.
pub(super) const DATE: u8 = 8;
pub(super) const TIME: u8 = 9;
pub(super) const TIMESTAMP: u8 = 10;
pub(super) const DURATION: u8 = 18;

/// The type of a field, as far as it matters how it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Null,
    Number(Number),
    Bool,
    Text {
        is_large: bool,
    },
    TextView,
    List {
        is_large: bool,
    },
    FixedSizeList,
    ListView,
    Structure,
    Map,
    Union {
        is_dense: bool,
    },
    Runs,
    Binary,
    BinaryView,
    /// Types with one buffer of values, by their numbers.
    Other(u8),
}

/// A column, or a part of one.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The number of the dictionary, and the type of codes.
    dictionary: Option<(i64, Number)>,
    pub(super) children: Vec<Field>,
}

impl Field {
    /// Reads a field and those below it. Each costs some of `spare`, since damaged metadata may contain one very often.
    fn read(table: Table<'_>, depth: u32, spare: &mut usize) -> Option<Self> {
        let name = table.text(0).unwrap_or("");
        *spare = spare.checked_sub(8 + name.len())?;
        if depth > DEEPEST {
            return None;
        }
        let details = table.table(3);
        let integer = |table: Table<'_>| {
            let is_signed = table.u8(1).unwrap_or(0) != 0;
            Number::integer(i64::from(table.i32(0).unwrap_or(0)), is_signed)
        };
        let kind = match table.u8(2)? {
            0 => return None,
            1 => Kind::Null,
            2 => details
                .and_then(integer)
                .map_or(Kind::Other(2), Kind::Number),
            3 => match details.and_then(|details| details.i16(0)).unwrap_or(0) {
                0 => Kind::Number(Number::F16),
                1 => Kind::Number(Number::F32),
                2 => Kind::Number(Number::F64),
                _ => return None,
            },
            4 | 19 => Kind::Binary,
            5 => Kind::Text { is_large: false },
            20 => Kind::Text { is_large: true },
            6 => Kind::Bool,
            12 => Kind::List { is_large: false },
            21 => Kind::List { is_large: true },
            13 => Kind::Structure,
            14 => Kind::Union {
                is_dense: details.and_then(|details| details.i16(0)).unwrap_or(0) == 1,
            },
            16 => Kind::FixedSizeList,
            17 => Kind::Map,
            22 => Kind::Runs,
            23 => Kind::BinaryView,
            24 => Kind::TextView,
            25 | 26 => Kind::ListView,
            // Decimals, times, durations, intervals and bytes of fixed size.
            other @ (7..=11 | 15 | 18) => Kind::Other(other),
            _ => return None,
        };
        let dictionary = match table.table(4) {
            None => None,
            Some(dictionary) => {
                let codes = match dictionary.table(1) {
                    Some(codes) => integer(codes)?,
                    None => Number::I32,
                };
                Some((dictionary.i64(0).unwrap_or(0), codes))
            }
        };
        let mut children = Vec::new();
        for child in table.tables(5).into_iter().flatten() {
            children.push(Self::read(child?, depth + 1, spare)?);
        }
        let n_children = match kind {
            Kind::List { .. } | Kind::FixedSizeList | Kind::ListView | Kind::Map => Some(1),
            Kind::Runs => Some(2),
            Kind::Structure | Kind::Union { .. } => None,
            _ => Some(0),
        };
        if n_children.is_some_and(|n| n != children.len()) {
            return None;
        }
        Some(Self {
            name: name.to_owned(),
            kind,
            dictionary,
            children,
        })
    }

    /// Whether values, or those of the dictionary, can be written into cells.
    fn has_usable_values(&self) -> bool {
        match self.kind {
            Kind::List { .. } => self.children.first().is_some_and(|item| {
                let is_list = matches!(item.kind, Kind::List { .. });
                item.dictionary.is_some() || !is_list && item.has_usable_values()
            }),
            Kind::Null | Kind::Number(_) | Kind::Bool | Kind::Text { .. } | Kind::TextView => true,
            _ => false,
        }
    }
}

/// The fields of a schema.
fn fields(schema: Table<'_>, size: usize) -> Parsed<Vec<Field>> {
    if schema.i16(0).unwrap_or(0) != 0 {
        return Err(
            "its numbers have the highest byte first (big-endian), expected little-endian".into(),
        );
    }
    let mut spare = size.saturating_mul(16);
    let mut fields = Vec::new();
    for field in schema.tables(1).into_iter().flatten() {
        let field = field.and_then(|field| Field::read(field, 0, &mut spare));
        fields.push(field.ok_or("its schema is damaged or has an unknown type")?);
    }
    Ok(fields)
}

/// The fields of a schema that is a message of its own.
pub(super) fn schema_of(bytes: &[u8]) -> Option<Vec<Field>> {
    let (message, _) = next_message(bytes).ok()??;
    fields(message.header(SCHEMA)?, bytes.len()).ok()
}

/// A message and its body.
struct Message<'a> {
    table: Table<'a>,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    fn kind(&self) -> u8 {
        self.table.u8(1).unwrap_or(0)
    }

    fn header(&self, kind: u8) -> Option<Table<'a>> {
        (self.kind() == kind).then(|| self.table.table(2))?
    }

    /// Since the fifth version of the format, unions have no buffer for missing values.
    fn is_old(&self) -> bool {
        self.table.i16(0).unwrap_or(0) < 4
    }
}

/// The next message of a stream, and how many bytes it takes; nothing at the end.
fn next_message(bytes: &[u8]) -> Parsed<Option<(Message<'_>, usize)>> {
    // Streams before version 0.15 lack this.
    let rest = bytes.strip_prefix(&CONTINUES).unwrap_or(bytes);
    let Some((length, rest)) = rest.split_first_chunk() else {
        return Ok(None);
    };
    let length = i32::from_le_bytes(*length);
    if length == 0 {
        return Ok(None);
    }
    let split =
        |rest: &[u8], length: i64| usize::try_from(length).ok().filter(|&n| n <= rest.len());
    let n = split(rest, i64::from(length)).ok_or(WRONG)?;
    let (head, rest) = rest.split_at(n);
    let table = Table::root(head).ok_or(WRONG)?;
    let n = split(rest, table.i64(3).unwrap_or(0)).ok_or(WRONG)?;
    let (body, rest) = rest.split_at(n);
    Ok(Some((Message { table, body }, bytes.len() - rest.len())))
}

/// Where the messages of a file or stream are.
enum Place {
    /// Positions and sizes of the batches of a file that are to come.
    File(std::vec::IntoIter<Block>),
    /// The position of the next message of a stream.
    Stream(usize),
}

#[derive(Clone, Copy)]
struct Block {
    start: usize,
    body: usize,
    end: usize,
}

/// Blocks of a file's footer.
fn blocks(footer: Table<'_>, number: usize, size: usize) -> Parsed<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut left = size;
    for item in footer.items(number, 24).into_iter().flatten() {
        let block = || {
            let start = usize::try_from(i64::from_le_bytes(array(item, 0)?)).ok()?;
            let head = usize::try_from(i32::from_le_bytes(array(item, 8)?)).ok()?;
            let length = usize::try_from(i64::from_le_bytes(array(item, 16)?)).ok()?;
            let body = start.checked_add(head)?;
            let end = body.checked_add(length)?;
            (end <= size).then_some(Block { start, body, end })
        };
        let block = block().ok_or(WRONG)?;
        // None is there twice.
        left = left.checked_sub(block.end - block.start).ok_or(WRONG)?;
        blocks.push(block);
    }
    Ok(blocks)
}

impl Block {
    fn message<'a>(&self, bytes: &'a [u8]) -> Parsed<Message<'a>> {
        let head = &bytes[self.start..self.body];
        let head = head.strip_prefix(&CONTINUES).unwrap_or(head);
        let table = head.get(4..).and_then(Table::root).ok_or(WRONG)?;
        let body = &bytes[self.body..self.end];
        Ok(Message { table, body })
    }
}

/// The data of a message that are being read.
struct Data<'a> {
    body: &'a [u8],
    is_old: bool,
    codec: Option<Codec>,
    nodes: std::slice::ChunksExact<'a, u8>,
    buffers: std::slice::ChunksExact<'a, u8>,
    /// How many buffers each view has.
    variadic: std::slice::ChunksExact<'a, u8>,
    /// The most values that any field can have.
    most: u64,
}

impl<'a> Data<'a> {
    fn new(batch: Table<'a>, body: &'a [u8], is_old: bool) -> Result<Self, Wrong> {
        let codec = match batch.table(3) {
            None => None,
            Some(compression) => match compression.u8(0).unwrap_or(0) {
                0 => Some(Codec::Lz4Frame),
                1 => Some(Codec::Zstd),
                _ => return Err("it is compressed with an unknown codec".into()),
            },
        };
        let items = |number, size| batch.items(number, size).unwrap_or([].chunks_exact(size));
        let mut data = Self {
            body,
            is_old,
            codec,
            nodes: items(1, 16),
            buffers: items(2, 16),
            variadic: items(4, 8),
            most: 0,
        };
        let mut total = 0u64;
        let all = data.buffers.clone();
        for buffer in all {
            let stored = data.stored(buffer)?;
            let (size, _) = data.size(stored);
            let n = stored.len() as u64;
            if size > n.saturating_mul(HIGHEST_RATIO) {
                return Err(format!("a buffer of {n} bytes claims to have {size}").into());
            }
            total = total.saturating_add(size);
        }
        if total > reading_limit() {
            return Err(Wrong::TooLarge(total));
        }
        // A value takes a bit at least, unless it is always missing.
        data.most = total.saturating_mul(8).saturating_add(NULL_ROWS);
        Ok(data)
    }

    fn length(&self, length: Option<i64>) -> Parsed<usize> {
        let length = u64::try_from(length.unwrap_or(0)).ok();
        let length = length.filter(|&n| n <= self.most);
        Ok(length.and_then(|n| usize::try_from(n).ok()).ok_or(WRONG)?)
    }

    /// The next node: how many values, and whether some are missing.
    fn node(&mut self) -> Parsed<(usize, bool)> {
        let node = self.nodes.next().ok_or(WRONG)?;
        let n = self.length(array(node, 0).map(i64::from_le_bytes))?;
        let missing = array(node, 8).map(i64::from_le_bytes);
        Ok((n, missing.is_some_and(|n| n > 0)))
    }

    /// A buffer as it is stored.
    fn stored(&self, buffer: &[u8]) -> Parsed<&'a [u8]> {
        let number = |at: usize| usize::try_from(i64::from_le_bytes(array(buffer, at)?)).ok();
        let range = || {
            let (start, n) = (number(0)?, number(8)?);
            self.body.get(start..start.checked_add(n)?)
        };
        Ok(range().ok_or(WRONG)?)
    }

    /// What a stored buffer expands to, and the codec if it is compressed.
    fn size(&self, stored: &[u8]) -> (u64, Option<Codec>) {
        match (self.codec, stored.first_chunk()) {
            (Some(codec), Some(size)) => match u64::try_from(i64::from_le_bytes(*size)) {
                Ok(size) => (size, Some(codec)),
                // -1: stored as it is.
                Err(_) => (stored.len() as u64 - 8, Some(Codec::None)),
            },
            _ => (stored.len() as u64, None),
        }
    }

    /// The next buffer.
    fn buffer(&mut self) -> Parsed<Vec<u8>> {
        let buffer = self.buffers.next().ok_or(WRONG)?;
        let stored = self.stored(buffer)?;
        match self.size(stored) {
            (_, None) => Ok(stored.to_vec()),
            (0, _) => Ok(Vec::new()),
            (size, Some(codec)) => decompress(
                codec,
                &stored[8..],
                usize::try_from(size).map_err(|_| WRONG)?,
            ),
        }
    }

    /// The next buffer, which has at least so many bytes.
    fn buffer_of(&mut self, n: usize) -> Parsed<Vec<u8>> {
        let buffer = self.buffer()?;
        match buffer.len() < n {
            true => Err("a buffer is too short for its values".into()),
            false => Ok(buffer),
        }
    }

    /// The next buffer of bits, if it is used.
    fn valid(&mut self, n: usize, has_missing: bool) -> Parsed<Option<Bits>> {
        match has_missing {
            true => Ok(Some(Bits(self.buffer_of(n.div_ceil(8))?))),
            false => {
                self.skip_buffers(1)?;
                Ok(None)
            }
        }
    }

    /// The next buffer: where values begin among `total`.
    fn starts(&mut self, n: usize, is_large: bool) -> Parsed<Vec<usize>> {
        let buffer = self.buffer()?;
        if n == 0 {
            return Ok(vec![0]);
        }
        let mut starts = Vec::with_capacity(n.min(buffer.len() / 4) + 1);
        if is_large {
            let all = buffer.chunks_exact(8).take(n + 1);
            let number = |bytes| Some(i64::from_le_bytes(array(bytes, 0)?));
            starts.extend(all.map_while(|bytes| usize::try_from(number(bytes)?).ok()));
        } else {
            let all = buffer.chunks_exact(4).take(n + 1);
            let number = |bytes| Some(i32::from_le_bytes(array(bytes, 0)?));
            starts.extend(all.map_while(|bytes| usize::try_from(number(bytes)?).ok()));
        }
        match starts.len() == n + 1 && starts.is_sorted() {
            true => Ok(starts),
            false => Err("the places of values are damaged".into()),
        }
    }

    fn skip_buffers(&mut self, n: usize) -> Parsed<()> {
        for _ in 0..n {
            self.buffers.next().ok_or(WRONG)?;
        }
        Ok(())
    }

    fn n_variadic(&mut self) -> Parsed<usize> {
        let n = self.variadic.next().and_then(|item| array(item, 0));
        let n = n.and_then(|n| usize::try_from(i64::from_le_bytes(n)).ok());
        Ok(n.filter(|&n| n <= self.buffers.len()).ok_or(WRONG)?)
    }

    /// Leaves out a field.
    fn skip(&mut self, field: &Field) -> Parsed<()> {
        if field.dictionary.is_some() {
            self.nodes.next().ok_or(WRONG)?;
            return self.skip_buffers(2);
        }
        self.skip_values(field).map(drop)
    }

    /// Leaves out a field, or the values of its dictionary, and says how many there were.
    fn skip_values(&mut self, field: &Field) -> Parsed<usize> {
        let (len, _) = self.node()?;
        let n_buffers = match field.kind {
            Kind::Null | Kind::Runs => 0,
            Kind::FixedSizeList | Kind::Structure => 1,
            Kind::Number(_) | Kind::Bool | Kind::Other(_) | Kind::List { .. } | Kind::Map => 2,
            Kind::Text { .. } | Kind::Binary | Kind::ListView => 3,
            Kind::TextView | Kind::BinaryView => 2 + self.n_variadic()?,
            Kind::Union { is_dense } => 1 + usize::from(is_dense) + usize::from(self.is_old),
        };
        self.skip_buffers(n_buffers)?;
        field
            .children
            .iter()
            .try_for_each(|child| self.skip(child))?;
        Ok(len)
    }

    /// Reads a field.
    fn column(&mut self, field: &Field, dictionaries: &Dictionaries) -> Parsed<Column> {
        let Some((id, number)) = field.dictionary else {
            return self.values(field, dictionaries);
        };
        let (len, has_missing) = self.node()?;
        let valid = self.valid(len, has_missing)?;
        let codes = self.buffer_of(len.saturating_mul(number.width()))?;
        // If all values are missing, the dictionary may be, too.
        let dictionary = dictionaries.get(&id).cloned().unwrap_or_default();
        let n = dictionary.len();
        let values = Values::Coded(number, codes, dictionary);
        let column = Column { len, valid, values };
        match column.codes_are_within(n) {
            true => Ok(column),
            false => Err("a code is not in its dictionary".into()),
        }
    }

    /// Reads a field, or the values of its dictionary.
    fn values(&mut self, field: &Field, dictionaries: &Dictionaries) -> Parsed<Column> {
        if !field.has_usable_values() {
            let len = self.skip_values(field)?;
            let values = Values::Unusable;
            return Ok(Column {
                len,
                valid: None,
                values,
            });
        }
        let (len, has_missing) = self.node()?;
        if field.kind == Kind::Null {
            let values = Values::Null;
            return Ok(Column {
                len,
                valid: None,
                values,
            });
        }
        let n_more = match field.kind {
            Kind::TextView => self.n_variadic()?,
            _ => 0,
        };
        let valid = self.valid(len, has_missing)?;
        let values = match field.kind {
            Kind::Number(number) => {
                Values::Number(number, self.buffer_of(len.saturating_mul(number.width()))?)
            }
            Kind::Bool => Values::Bool(Bits(self.buffer_of(len.div_ceil(8))?)),
            Kind::Text { is_large } => {
                let starts = self.starts(len, is_large)?;
                let end = starts.last().copied().unwrap_or(0);
                Values::Text(starts, self.buffer_of(end)?)
            }
            Kind::TextView => {
                let views = self.buffer_of(len.saturating_mul(16))?;
                let texts: Parsed<Vec<Vec<u8>>> = (0..n_more).map(|_| self.buffer()).collect();
                Values::View(views, texts?)
            }
            _ => {
                let is_large = field.kind == Kind::List { is_large: true };
                let starts = self.starts(len, is_large)?;
                let items = self.column(field.children.first().ok_or(WRONG)?, dictionaries)?;
                if starts.last().is_some_and(|&end| end > items.len) {
                    return Err("a list has more items than there are".into());
                }
                Values::List(starts, Box::new(items))
            }
        };
        Ok(Column { len, valid, values })
    }
}

type Dictionaries = HashMap<i64, Arc<Dictionary>>;

/// An Arrow file or stream.
pub(super) struct Ipc {
    bytes: Bytes,
    fields: Vec<Field>,
    is_selected: Vec<bool>,
    place: Place,
    dictionaries: Dictionaries,
    /// The columns of the current batch.
    columns: Vec<Option<Column>>,
    n_rows: usize,
    row: usize,
    /// The rows of all batches so far.
    all_rows: u64,
}

impl Ipc {
    /// A file or stream with the names of its columns.
    pub(super) fn open(bytes: Bytes) -> Result<(Self, Vec<String>), Wrong> {
        let mut dictionaries = Dictionaries::new();
        let (fields, place) = match bytes.starts_with(MAGIC) {
            true => open_file(&bytes, &mut dictionaries)?,
            false => {
                let (message, n) = next_message(&bytes)?.ok_or("it has no schema")?;
                let schema = message.header(SCHEMA).ok_or("it has no schema")?;
                (fields(schema, n)?, Place::Stream(n))
            }
        };
        let names = fields.iter().map(|field| field.name.clone()).collect();
        let file = Self {
            is_selected: vec![true; fields.len()],
            fields,
            place,
            dictionaries,
            columns: Vec::new(),
            n_rows: 0,
            row: 0,
            all_rows: 0,
            bytes,
        };
        Ok((file, names))
    }

    /// Reads the next batch, if there is one.
    fn next_batch(&mut self) -> Result<bool, Wrong> {
        let bytes = self.bytes.clone();
        loop {
            let message = match &mut self.place {
                Place::File(blocks) => match blocks.next() {
                    Some(block) => block.message(&bytes)?,
                    None => return Ok(false),
                },
                Place::Stream(at) => match next_message(&bytes[*at..])? {
                    Some((message, n)) => {
                        *at += n;
                        message
                    }
                    None => return Ok(false),
                },
            };
            if message.kind() == DICTIONARY {
                add_dictionary(&message, &self.fields, &mut self.dictionaries)?;
                continue;
            }
            let batch = message.header(RECORDS).ok_or(WRONG)?;
            let mut data = Data::new(batch, message.body, message.is_old())?;
            self.n_rows = data.length(batch.i64(0))?;
            self.row = 0;
            self.all_rows = self.all_rows.saturating_add(self.n_rows as u64);
            let needed = self.all_rows.saturating_mul(PER_ROW);
            if needed > reading_limit() {
                return Err(Wrong::TooLarge(needed));
            }
            self.columns.clear();
            for (field, &is_selected) in self.fields.iter().zip(&self.is_selected) {
                self.columns.push(match is_selected {
                    true => Some(data.column(field, &self.dictionaries)?),
                    false => {
                        data.skip(field)?;
                        None
                    }
                });
            }
            let mut columns = self.columns.iter().flatten();
            return match columns.all(|column| column.len == self.n_rows) {
                true => Ok(true),
                false => Err("a column has fewer values than rows".into()),
            };
        }
    }
}

fn open_file(bytes: &[u8], dictionaries: &mut Dictionaries) -> Result<(Vec<Field>, Place), Wrong> {
    let Some(before) = bytes.strip_suffix(MAGIC) else {
        return Err("it does not end as such a file does".into());
    };
    let footer = before.split_last_chunk().and_then(|(before, length)| {
        let length = usize::try_from(i32::from_le_bytes(*length)).ok()?;
        before.get(before.len().checked_sub(length)?..)
    });
    let footer = footer.ok_or(WRONG)?;
    let table = Table::root(footer).ok_or(WRONG)?;
    let fields = fields(table.table(1).ok_or("it has no schema")?, footer.len())?;
    for block in blocks(table, 2, bytes.len())? {
        add_dictionary(&block.message(bytes)?, &fields, dictionaries)?;
    }
    let blocks = blocks(table, 3, bytes.len())?;
    Ok((fields, Place::File(blocks.into_iter())))
}

/// The field that has a dictionary of this number.
fn field_of(fields: &[Field], id: i64) -> Option<&Field> {
    fields.iter().find_map(|field| match field.dictionary {
        Some((other, _)) if other == id => Some(field),
        _ => field_of(&field.children, id),
    })
}

/// Adds the values of a dictionary to those before, or replaces them.
fn add_dictionary(
    message: &Message<'_>,
    fields: &[Field],
    dictionaries: &mut Dictionaries,
) -> Result<(), Wrong> {
    let header = message.header(DICTIONARY).ok_or(WRONG)?;
    let id = header.i64(0).unwrap_or(0);
    let field = field_of(fields, id).ok_or("a dictionary belongs to no column")?;
    let batch = header.table(1).ok_or(WRONG)?;
    let mut data = Data::new(batch, message.body, message.is_old())?;
    let values = data.values(field, dictionaries)?;
    let is_more = header.u8(2).unwrap_or(0) != 0;
    let mut dictionary = match dictionaries.remove(&id) {
        Some(before) if is_more => Arc::unwrap_or_clone(before),
        _ => Dictionary::default(),
    };
    dictionary.add(values);
    dictionaries.insert(id, Arc::new(dictionary));
    Ok(())
}

impl Reader for Ipc {
    fn rows_ready(&mut self) -> Result<usize, Wrong> {
        while self.row == self.n_rows {
            if !self.next_batch()? {
                return Ok(0);
            }
        }
        Ok(self.n_rows - self.row)
    }

    fn push(&mut self, column: usize, cells: &mut Batch) -> Result<(), Wrong> {
        match &self.columns[column] {
            Some(column) => column.push(self.row, cells),
            None => Ok(()),
        }
    }

    fn next_row(&mut self) {
        self.row += 1;
    }

    fn select(&mut self, is_selected: &[bool]) {
        self.is_selected = is_selected.to_vec();
    }
}
