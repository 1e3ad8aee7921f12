//! Parquet files: what the footer says about columns and groups of rows.

use super::super::UNUSABLE;
use super::super::batch::Batch;
use super::codecs::Codec;
use super::column::Number;
use super::encodings::Physical;
use super::ipc::{self, Field, Kind};
use super::pages::{Chunk, Levels, Shown};
use super::thrift::{BINARY, BYTE, I32, I64, LIST, STRUCT, TRUE, Thrift};
use super::{PER_ROW, Reader, Wrong};
use crate::data::input::reading_limit;
use crate::error::Parsed;
use bytes::Bytes;

const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED: &[u8] = b"PARE";

/// Bytes that a value takes in memory, by and large.
const PER_VALUE: u64 = 8;

const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

/// A column or a group of columns, as the footer has it.
#[derive(Debug, Default)]
struct Element<'a> {
    physical: Option<i64>,
    length: i64,
    repetition: i64,
    name: &'a [u8],
    n_children: usize,
    converted: Option<i64>,
    /// The number of the logical type.
    logical: Option<i64>,
    /// The bits of whole numbers, and whether they have a sign.
    n_bits: i64,
    is_signed: bool,
}

/// Where the values of a column are, in one group of rows.
#[derive(Debug, Default)]
struct Part {
    physical: i64,
    codec: i64,
    n_values: i64,
    expanded: i64,
    stored: i64,
    data: i64,
    dictionary: Option<i64>,
    is_elsewhere: bool,
}

#[derive(Debug, Default)]
struct Group {
    parts: Vec<Part>,
    n_rows: i64,
}

#[derive(Debug, Default)]
struct Footer<'a> {
    elements: Vec<Element<'a>>,
    groups: Vec<Group>,
    /// The schema of Arrow data that were written, in base64.
    arrow: Option<&'a [u8]>,
}

impl<'a> Footer<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut footer = Self::default();
        Thrift::new(bytes).structure(|thrift, number, kind| match (number, kind) {
            (2, LIST) => thrift.list(|thrift, kind| {
                footer.elements.push(Element::read(thrift, kind)?);
                Some(())
            }),
            (4, LIST) => thrift.list(|thrift, kind| {
                footer.groups.push(Group::read(thrift, kind)?);
                Some(())
            }),
            (5, LIST) => thrift.list(|thrift, kind| {
                let [mut key, mut value] = [&b""[..]; 2];
                structure(thrift, kind, |thrift, number, kind| {
                    match (number, kind) {
                        (1, BINARY) => key = thrift.binary()?,
                        (2, BINARY) => value = thrift.binary()?,
                        _ => thrift.skip(kind)?,
                    }
                    Some(())
                })?;
                if key == b"ARROW:schema" {
                    footer.arrow = Some(value);
                }
                Some(())
            }),
            _ => thrift.skip(kind),
        })?;
        Some(footer)
    }
}

/// An item of a list that has to be a structure.
fn structure<'a>(
    thrift: &mut Thrift<'a>,
    kind: u8,
    field: impl FnMut(&mut Thrift<'a>, i64, u8) -> Option<()>,
) -> Option<()> {
    (kind == STRUCT).then_some(())?;
    thrift.structure(field)
}

impl<'a> Element<'a> {
    fn read(thrift: &mut Thrift<'a>, kind: u8) -> Option<Self> {
        let mut element = Self::default();
        structure(thrift, kind, |thrift, number, kind| {
            match (number, kind) {
                (1, I32) => element.physical = Some(thrift.integer()?),
                (2, I32) => element.length = thrift.integer()?,
                (3, I32) => element.repetition = thrift.integer()?,
                (4, BINARY) => element.name = thrift.binary()?,
                (5, I32) => element.n_children = usize::try_from(thrift.integer()?).ok()?,
                (6, I32) => element.converted = Some(thrift.integer()?),
                (10, STRUCT) => element.read_logical(thrift)?,
                _ => thrift.skip(kind)?,
            }
            Some(())
        })?;
        Some(element)
    }

    fn read_logical(&mut self, thrift: &mut Thrift<'a>) -> Option<()> {
        thrift.structure(|thrift, number, kind| {
            self.logical = Some(number);
            match (number, kind) {
                (10, STRUCT) => thrift.structure(|thrift, number, kind| {
                    match (number, kind) {
                        (1, BYTE) => self.n_bits = thrift.small()?,
                        (2, TRUE) => self.is_signed = true,
                        _ => thrift.skip(kind)?,
                    }
                    Some(())
                }),
                _ => thrift.skip(kind),
            }
        })
    }

    fn is_group(&self) -> bool {
        self.physical.is_none()
    }

    /// How values are stored, if that is known.
    fn stored(&self) -> Option<Physical> {
        Some(match self.physical? {
            0 => Physical::Bool,
            1 => Physical::Int32,
            2 => Physical::Int64,
            4 => Physical::Float,
            5 => Physical::Double,
            6 => Physical::Bytes,
            7 => Physical::Fixed(usize::try_from(self.length).ok()?),
            _ => return None,
        })
    }

    /// What values are written as, if that is possible. The `hint` is the type that they had in Arrow.
    fn shown(&self, hint: Option<&Field>) -> Option<Shown> {
        if self.logical == Some(UNKNOWN) {
            return Some(Shown::Null);
        }
        let hinted = hint.map(|field| field.kind);
        let is = |types: &[u8]| matches!(hinted, Some(Kind::Other(id)) if types.contains(&id));
        let whole = |n_bits| Number::integer(n_bits, true).map(Shown::Number);
        match (self.stored()?, self.logical, self.converted) {
            (Physical::Bool, ..) => Some(Shown::Bool),
            (Physical::Float, ..) => Some(Shown::Number(Number::F32)),
            (Physical::Double, ..) => Some(Shown::Number(Number::F64)),
            (Physical::Fixed(2), Some(FLOAT16), _) => Some(Shown::Number(Number::F16)),
            (Physical::Fixed(_), ..) => None,
            (Physical::Bytes, Some(STRING | JSON), _) => Some(Shown::Text),
            (Physical::Bytes, None, Some(0 | 19)) => Some(Shown::Text),
            // Texts that another program did not declare as such.
            (Physical::Bytes, _, None | Some(4 | 20)) => {
                matches!(hinted, Some(Kind::Text { .. } | Kind::TextView)).then_some(Shown::Text)
            }
            (Physical::Bytes, ..) => None,
            (_, Some(INTEGER), _) => self.integer(),
            (_, Some(_), _) => None,
            // Times that only Arrow knows.
            (Physical::Int32, None, None | Some(17)) => match is(&[ipc::TIME, ipc::TIMESTAMP]) {
                true => None,
                false => whole(32),
            },
            (Physical::Int64, None, None | Some(18)) => {
                match is(&[ipc::DATE, ipc::TIME, ipc::TIMESTAMP, ipc::DURATION]) {
                    true => None,
                    false => whole(64),
                }
            }
            (_, None, Some(converted @ 11..=16)) => {
                let n_bits = [8, 16, 32, 64, 8, 16][converted as usize - 11];
                Number::integer(n_bits, converted > 14).map(Shown::Number)
            }
            _ => None,
        }
    }

    fn integer(&self) -> Option<Shown> {
        let fits = match self.stored()? {
            Physical::Int32 => self.n_bits <= 32,
            _ => self.n_bits == 64,
        };
        let number = Number::integer(self.n_bits, self.is_signed)?;
        fits.then_some(Shown::Number(number))
    }
}

/// Numbers of logical types.
const STRING: i64 = 1;
const LOGICAL_LIST: i64 = 3;
const INTEGER: i64 = 10;
const UNKNOWN: i64 = 11;
const JSON: i64 = 12;
const FLOAT16: i64 = 15;

impl Group {
    fn read(thrift: &mut Thrift<'_>, kind: u8) -> Option<Self> {
        let mut group = Self::default();
        structure(thrift, kind, |thrift, number, kind| match (number, kind) {
            (1, LIST) => thrift.list(|thrift, kind| {
                group.parts.push(Part::read(thrift, kind)?);
                Some(())
            }),
            (3, I64) => {
                group.n_rows = thrift.integer()?;
                Some(())
            }
            _ => thrift.skip(kind),
        })?;
        Some(group)
    }
}

impl Part {
    fn read(thrift: &mut Thrift<'_>, kind: u8) -> Option<Self> {
        let mut part = Self {
            physical: -1,
            ..Self::default()
        };
        structure(thrift, kind, |thrift, number, kind| match (number, kind) {
            (1, BINARY) => {
                part.is_elsewhere = !thrift.binary()?.is_empty();
                Some(())
            }
            (3, STRUCT) => thrift.structure(|thrift, number, kind| {
                match (number, kind) {
                    (1, I32) => part.physical = thrift.integer()?,
                    (4, I32) => part.codec = thrift.integer()?,
                    (5, I64) => part.n_values = thrift.integer()?,
                    (6, I64) => part.expanded = thrift.integer()?,
                    (7, I64) => part.stored = thrift.integer()?,
                    (9, I64) => part.data = thrift.integer()?,
                    (11, I64) => part.dictionary = Some(thrift.integer()?),
                    _ => thrift.skip(kind)?,
                }
                Some(())
            }),
            _ => thrift.skip(kind),
        })?;
        Some(part)
    }

    fn codec(&self) -> Parsed<Codec> {
        Ok(match self.codec {
            0 => Codec::None,
            1 => Codec::Snappy,
            2 => Codec::Gzip,
            5 => Codec::OldLz4,
            6 => Codec::Zstd,
            7 => Codec::Lz4Block,
            3 => return Err(unsupported("LZO")),
            4 => return Err(unsupported("Brotli")),
            other => return Err(unsupported(&format!("codec {other}"))),
        })
    }
}

fn unsupported(codec: &str) -> String {
    format!("it is compressed with {codec}, expected zstd, Snappy, gzip, lz4 or no compression")
}

/// A column that can be read.
#[derive(Debug)]
struct Leaf {
    /// Its number among all, of which groups have several.
    number: usize,
    physical: Physical,
    type_number: i64,
    shown: Shown,
    levels: Levels,
}

/// The columns of a schema.
struct Columns<'a> {
    elements: &'a [Element<'a>],
    at: usize,
    n_leaves: usize,
}

impl<'a> Columns<'a> {
    fn take(&mut self) -> Parsed<&'a Element<'a>> {
        let element = self.elements.get(self.at).ok_or("its schema is cut off")?;
        self.at += 1;
        self.n_leaves += usize::from(!element.is_group());
        Ok(element)
    }

    /// Leaves out `n` columns with all below them.
    fn skip(&mut self, mut n: usize) -> Parsed<()> {
        while n > 0 {
            let element = self.take()?;
            n = (n - 1)
                .checked_add(element.n_children)
                .ok_or("its schema is cut off")?;
        }
        Ok(())
    }

    /// The next column with its name, if it can be read.
    fn next(&mut self, hints: &[Field], at: usize) -> Parsed<(&'a str, Option<Leaf>)> {
        let number = self.n_leaves;
        let start = self.at;
        let element = self.take()?;
        let name =
            std::str::from_utf8(element.name).map_err(|_| "the name of a column is not UTF-8")?;
        self.at = start;
        self.n_leaves = number;
        self.skip(1)?;
        let hint = hints.get(at).filter(|field| field.name == name);
        let leaf = match element.is_group() {
            false => leaf(element, element.repetition, None, hint),
            true => list(&self.elements[start..self.at], hint),
        };
        Ok((name, leaf.map(|leaf| Leaf { number, ..leaf })))
    }
}

/// A value, or the items of a list whose own repetition is `outer` and whose items' is given.
fn leaf(
    element: &Element<'_>,
    outer: i64,
    item: Option<i64>,
    hint: Option<&Field>,
) -> Option<Leaf> {
    let optional = |repetition: i64| u8::from(repetition == OPTIONAL);
    let (levels, hint) = match (outer, item) {
        (REPEATED, None) => {
            let levels = Levels {
                value: 1,
                item: Some(1),
            };
            (levels, items_of(hint)?)
        }
        (_, None) => {
            let levels = Levels {
                value: optional(outer),
                item: None,
            };
            (levels, hint)
        }
        (_, Some(repetition)) => {
            let item = optional(outer) + 1;
            let value = item + optional(repetition);
            (
                Levels {
                    value,
                    item: Some(item),
                },
                items_of(hint)?,
            )
        }
    };
    Some(Leaf {
        number: 0,
        physical: element.stored()?,
        type_number: element.physical?,
        shown: element.shown(hint)?,
        levels,
    })
}

/// The items of a list, by the type that it had in Arrow. Nothing if they are not used.
fn items_of(hint: Option<&Field>) -> Option<Option<&Field>> {
    match hint {
        Some(field) if matches!(field.kind, Kind::FixedSizeList | Kind::ListView) => None,
        Some(field) => Some(field.children.first()),
        None => Some(None),
    }
}

/// A list of values that are neither lists nor structures, in all forms that programs write.
fn list(elements: &[Element<'_>], hint: Option<&Field>) -> Option<Leaf> {
    let (outer, repeated) = (elements.first()?, elements.get(1)?);
    let is_list = |element: &Element<'_>| {
        element.logical == Some(LOGICAL_LIST)
            || element.logical.is_none() && element.converted == Some(3)
    };
    // A map of keys only is a list.
    let is_map = matches!(outer.logical, Some(2)) || matches!(outer.converted, Some(1 | 2));
    let is_nested = outer.n_children == 1 && repeated.repetition == REPEATED;
    if !(is_list(outer) || is_map) || !is_nested || outer.repetition == REPEATED {
        return None;
    }
    if !repeated.is_group() {
        return leaf(repeated, outer.repetition, Some(0), hint);
    }
    let item = elements.get(2)?;
    // Under these names, each item is a structure of one field.
    let tuple = [outer.name, b"_tuple"].concat();
    let is_structure = !is_list(repeated) && (repeated.name == b"array" || repeated.name == tuple);
    if repeated.n_children != 1 || is_structure || item.is_group() || item.repetition == REPEATED {
        return None;
    }
    leaf(item, outer.repetition, Some(item.repetition), hint)
}

/// The bytes of a text in base64.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut value, mut n_bits) = (0u32, 0);
    for &letter in text.iter().take_while(|&&letter| letter != b'=') {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        value = value << 6 | u32::from(digit);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push((value >> n_bits) as u8);
        }
    }
    Some(bytes)
}

/// A Parquet file.
pub(super) struct Parquet {
    bytes: Bytes,
    columns: Vec<Option<Leaf>>,
    is_selected: Vec<bool>,
    groups: std::vec::IntoIter<Group>,
    n_leaves: usize,
    /// The columns of the current group of rows.
    chunks: Vec<Option<Chunk>>,
    rows_left: usize,
    /// The memory of all pages.
    held: u64,
    limit: u64,
}

const NO_FOOTER: &str = "it does not end as such a file does";

impl Parquet {
    /// A file with the names of its columns.
    pub(super) fn open(bytes: Bytes) -> Result<(Self, Vec<String>), Wrong> {
        if bytes.ends_with(ENCRYPTED) {
            return Err("it is encrypted".into());
        }
        let footer = bytes
            .strip_suffix(MAGIC)
            .and_then(|before| before.split_last_chunk())
            .and_then(|(before, length)| {
                let length = u32::from_le_bytes(*length) as usize;
                before.get(before.len().checked_sub(length)?..)
            });
        let footer = footer.ok_or(NO_FOOTER)?;
        let footer = Footer::read(footer).ok_or("its footer is damaged")?;
        let limit = reading_limit();
        check_sizes(&footer.groups, limit)?;
        let root = footer.elements.first().ok_or("it has no schema")?;
        let hints = footer.arrow.and_then(base64);
        let hints = hints.and_then(|schema| ipc::schema_of(&schema));
        let hints = hints
            .filter(|hints| hints.len() == root.n_children)
            .unwrap_or_default();
        let mut columns = Columns {
            elements: &footer.elements,
            at: 1,
            n_leaves: 0,
        };
        let (mut names, mut leaves) = (Vec::new(), Vec::new());
        for at in 0..root.n_children {
            let (name, leaf) = columns.next(&hints, at)?;
            names.push(name.to_owned());
            leaves.push(leaf);
        }
        let n_leaves = columns.n_leaves;
        let file = Self {
            is_selected: vec![true; leaves.len()],
            columns: leaves,
            groups: footer.groups.into_iter(),
            n_leaves,
            chunks: Vec::new(),
            rows_left: 0,
            held: 0,
            limit,
            bytes,
        };
        Ok((file, names))
    }

    /// Begins a group of rows.
    fn begin(&mut self, group: &Group) -> Result<(), Wrong> {
        if group.parts.len() != self.n_leaves {
            return Err("a group of rows does not have all columns".into());
        }
        self.held = 0;
        self.chunks.clear();
        for (column, is_selected) in self.columns.iter().zip(&self.is_selected) {
            let chunk = match column {
                Some(leaf) if *is_selected => {
                    Some(chunk(&self.bytes, leaf, &group.parts[leaf.number])?)
                }
                _ => None,
            };
            self.chunks.push(chunk);
        }
        self.rows_left =
            usize::try_from(group.n_rows).map_err(|_| "a number of rows is negative")?;
        Ok(())
    }
}

fn chunk(bytes: &Bytes, leaf: &Leaf, part: &Part) -> Parsed<Chunk> {
    if part.is_elsewhere {
        return Err("a column is in another file".into());
    }
    if part.physical != leaf.type_number {
        return Err("a column has two types".into());
    }
    let start = part
        .dictionary
        .filter(|&start| start > 0)
        .unwrap_or(part.data);
    let range = usize::try_from(start).ok().and_then(|start| {
        let end = start.checked_add(usize::try_from(part.stored).ok()?)?;
        (end <= bytes.len()).then_some(start..end)
    });
    let range = range.ok_or("a column is not within the file")?;
    let n_values = u64::try_from(part.n_values).map_err(|_| "a number of values is negative")?;
    let (physical, shown, levels) = (leaf.physical, leaf.shown, leaf.levels);
    let data = bytes.slice(range);
    Ok(Chunk::new(
        data,
        part.codec()?,
        n_values,
        physical,
        shown,
        levels,
    ))
}

/// Refuses files whose contents take more memory than the limit, by what they say about themselves.
fn check_sizes(groups: &[Group], limit: u64) -> Result<(), Wrong> {
    let (mut size, mut rows, mut most) = (0u64, 0u64, 0u64);
    for group in groups {
        rows = rows.saturating_add(group.n_rows.max(0) as u64);
        let values = group.parts.iter().map(|part| part.n_values).max();
        most = most.saturating_add(values.unwrap_or(0).max(0) as u64);
        for part in &group.parts {
            size = size.saturating_add(part.expanded.max(0) as u64);
        }
    }
    let needed = size
        .max(rows.saturating_mul(PER_ROW))
        .max(most.saturating_mul(PER_VALUE));
    match needed > limit {
        true => Err(Wrong::TooLarge(needed)),
        false => Ok(()),
    }
}

impl Reader for Parquet {
    fn rows_ready(&mut self) -> Result<usize, Wrong> {
        while self.rows_left == 0 {
            let Some(group) = self.groups.next() else {
                return Ok(0);
            };
            self.begin(&group)?;
        }
        Ok(self.rows_left)
    }

    #[inline]
    fn push(&mut self, column: usize, cells: &mut Batch) -> Result<(), Wrong> {
        let Some(chunk) = self.chunks[column].as_mut() else {
            cells.push(UNUSABLE);
            return Ok(());
        };
        let before = chunk.size();
        self.held -= before;
        let pushed = chunk.push(self.limit.saturating_sub(self.held), cells);
        self.held += chunk.size();
        pushed
    }

    fn next_row(&mut self) {
        self.rows_left -= 1;
    }

    fn select(&mut self, is_selected: &[bool]) {
        self.is_selected = is_selected.to_vec();
        for (chunk, _) in self
            .chunks
            .iter_mut()
            .zip(is_selected)
            .filter(|(_, is)| !**is)
        {
            self.held -= chunk.take().map_or(0, |chunk| chunk.size());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(base64(b"QXJyb3c=").unwrap(), b"Arrow");
        assert_eq!(base64(b"/+8A").unwrap(), [0xff, 0xef, 0]);
        assert_eq!(base64(b"A B"), None);
    }

    fn element(name: &'static str, repetition: i64, physical: Option<i64>) -> Element<'static> {
        Element {
            name: name.as_bytes(),
            repetition,
            physical,
            ..Element::default()
        }
    }

    fn group(name: &'static str, repetition: i64, converted: Option<i64>) -> Element<'static> {
        Element {
            n_children: 1,
            converted,
            ..element(name, repetition, None)
        }
    }

    fn only(elements: &[Element<'_>]) -> Option<Levels> {
        let mut columns = Columns {
            elements,
            at: 0,
            n_leaves: 0,
        };
        let (_, leaf) = columns.next(&[], 0).unwrap();
        assert_eq!(columns.at, elements.len());
        leaf.map(|leaf| leaf.levels)
    }

    #[test]
    fn forms_of_lists() {
        let levels = |value, item| Some(Levels { value, item });
        assert_eq!(only(&[element("x", 0, Some(1))]), levels(0, None));
        assert_eq!(only(&[element("x", 1, Some(1))]), levels(1, None));
        assert_eq!(only(&[element("x", 2, Some(1))]), levels(1, Some(1)));
        let list = |outer, middle, inner| {
            let items = Element {
                ..element("element", inner, Some(1))
            };
            only(&[group("x", outer, Some(3)), group(middle, 2, None), items])
        };
        assert_eq!(list(1, "list", 1), levels(3, Some(2)));
        assert_eq!(list(0, "bag", 0), levels(1, Some(1)));
        // Structures of one field, and a list of lists.
        assert_eq!(list(1, "array", 1), None);
        assert_eq!(list(1, "x_tuple", 1), None);
        assert_eq!(list(1, "list", 2), None);
        // Two levels only.
        let two = [group("x", 1, Some(3)), element("item", 2, Some(1))];
        assert_eq!(only(&two), levels(2, Some(2)));
        // A structure.
        assert_eq!(only(&[group("x", 1, None), element("y", 1, Some(1))]), None);
    }

    #[test]
    fn types_of_values() {
        let shown = |physical, converted, logical| {
            let element = Element {
                converted,
                logical,
                length: 2,
                ..element("x", 0, Some(physical))
            };
            element.shown(None)
        };
        let number = |number| Some(Shown::Number(number));
        assert_eq!(shown(0, None, None), Some(Shown::Bool));
        assert_eq!(shown(1, None, None), number(Number::I32));
        assert_eq!(shown(1, Some(11), None), number(Number::U8));
        assert_eq!(shown(2, Some(14), None), number(Number::U64));
        assert_eq!(shown(1, Some(6), None), None); // a date
        assert_eq!(shown(2, Some(9), Some(8)), None); // a time
        assert_eq!(shown(3, None, None), None);
        assert_eq!(shown(4, None, None), number(Number::F32));
        assert_eq!(shown(6, Some(0), Some(STRING)), Some(Shown::Text));
        assert_eq!(shown(6, Some(0), None), Some(Shown::Text));
        assert_eq!(shown(6, None, None), None);
        assert_eq!(shown(7, None, Some(FLOAT16)), number(Number::F16));
        assert_eq!(shown(7, None, None), None);
        assert_eq!(shown(1, None, Some(UNKNOWN)), Some(Shown::Null));
    }

    #[test]
    fn claims_are_compared_with_the_limit() {
        let group = |n_rows, n_values, expanded| Group {
            n_rows,
            parts: vec![Part {
                n_values,
                expanded,
                ..Part::default()
            }],
        };
        assert!(check_sizes(&[group(10, 10, 100)], 160).is_ok());
        assert!(matches!(
            check_sizes(&[group(10, 10, 100)], 159),
            Err(Wrong::TooLarge(160))
        ));
        assert!(check_sizes(&[group(1, 10, 100), group(1, 11, 100)], 167).is_err());
        assert!(check_sizes(&[group(0, 0, i64::MAX), group(0, 0, i64::MAX)], 1 << 40).is_err());
    }
}
