//! The pages of one column of a Parquet file, read value by value.
//!
//! A page is expanded when its first value is needed, to exactly the size in its header, which is compared with the limit on
//! memory first.

use super::super::batch::Batch;
use super::Wrong;
use super::codecs::{Codec, decompress};
use super::column::{Number, end_item, push_bool, push_text};
use super::encodings::{Dictionary, Physical, Rle, Values};
use super::flatbuffer::array;
use super::thrift::{FALSE, I32, STRUCT, Thrift};
use crate::error::Parsed;
use bytes::Bytes;

/// What values are written as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shown {
    Text,
    Number(Number),
    Bool,
    Null,
}

/// How values and lists are nested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Levels {
    /// The level at which there is a value.
    pub(super) value: u8,
    /// The level from which on there is an item of a list, if it is one.
    pub(super) item: Option<u8>,
}

/// The header of a page.
#[derive(Debug, Default, PartialEq)]
struct Header {
    kind: i64,
    expanded: i64,
    stored: i64,
    n_values: i64,
    encoding: i64,
    /// Encodings of levels in pages of the first version.
    definition: i64,
    repetition: i64,
    /// Sizes of levels in pages of the second version.
    definitions: i64,
    repetitions: i64,
    is_plain: bool,
}

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_2: i64 = 3;

const RUNS: i64 = 3;
const PACKED: i64 = 4;

impl Header {
    /// The header, and what comes after it.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut header = Self {
            kind: -1,
            n_values: -1,
            ..Self::default()
        };
        let mut thrift = Thrift::new(bytes);
        thrift.structure(|thrift, number, kind| {
            match (number, kind) {
                (1, I32) => header.kind = thrift.integer()?,
                (2, I32) => header.expanded = thrift.integer()?,
                (3, I32) => header.stored = thrift.integer()?,
                (5 | 7 | 8, STRUCT) => header.of_kind(thrift, number)?,
                _ => thrift.skip(kind)?,
            }
            Some(())
        })?;
        Some((header, thrift.rest()))
    }

    /// The part of the header for one kind of page.
    fn of_kind(&mut self, thrift: &mut Thrift<'_>, part: i64) -> Option<()> {
        thrift.structure(|thrift, number, kind| {
            let field = match (part, number, kind) {
                (8, 7, FALSE) => {
                    self.is_plain = true;
                    return Some(());
                }
                (_, 1, I32) => &mut self.n_values,
                (5 | 7, 2, I32) | (8, 4, I32) => &mut self.encoding,
                (5, 3, I32) => &mut self.definition,
                (5, 4, I32) => &mut self.repetition,
                (8, 5, I32) => &mut self.definitions,
                (8, 6, I32) => &mut self.repetitions,
                _ => return thrift.skip(kind),
            };
            *field = thrift.integer()?;
            Some(())
        })
    }
}

/// Values of a page that are to come.
struct Page {
    left: u64,
    repetitions: Option<Rle>,
    definitions: Option<Rle>,
    values: Values,
}

/// The values of a column in one group of rows.
pub(super) struct Chunk {
    data: Bytes,
    codec: Codec,
    physical: Physical,
    shown: Shown,
    levels: Levels,
    /// Values in pages that were not begun.
    left: u64,
    dictionary: Option<(Dictionary, u64)>,
    page: Option<(Page, u64)>,
    /// The repetition level of the next value, if it was read.
    peeked: Option<u64>,
}

const NO_HEADER: &str = "a page has no valid header";
const OUTSIDE: &str = "a page is not within its column";
const TOO_FEW: &str = "a column has fewer values than rows";
const NO_LEVELS: &str = "the levels of a page are damaged";
const NO_VALUES: &str = "the values of a page are damaged or of an unknown encoding";

impl Chunk {
    pub(super) fn new(
        data: Bytes,
        codec: Codec,
        n_values: u64,
        physical: Physical,
        shown: Shown,
        levels: Levels,
    ) -> Self {
        Self {
            data,
            codec,
            physical,
            shown,
            levels,
            left: n_values,
            dictionary: None,
            page: None,
            peeked: None,
        }
    }

    /// The memory of its pages.
    pub(super) fn size(&self) -> u64 {
        let dictionary = self.dictionary.as_ref().map_or(0, |(_, size)| *size);
        dictionary + self.page.as_ref().map_or(0, |(_, size)| *size)
    }

    /// Adds the next row to the current cell. Pages may take `limit` bytes of memory.
    #[inline]
    pub(super) fn push(&mut self, limit: u64, cells: &mut Batch) -> Result<(), Wrong> {
        let Some(item) = self.levels.item else {
            let level = self.definition(limit)?;
            return match level == u64::from(self.levels.value) {
                true => self.push_value(cells),
                false => Ok(()),
            };
        };
        if self.repetition(limit)? != Some(0) {
            return Err(TOO_FEW.into());
        }
        loop {
            self.peeked = None;
            let level = self.definition(limit)?;
            if level >= u64::from(item) {
                if level == u64::from(self.levels.value) {
                    self.push_value(cells)?;
                }
                end_item(cells)?;
            }
            if self.repetition(limit)?.unwrap_or(0) == 0 {
                return Ok(());
            }
        }
    }

    fn push_value(&mut self, cells: &mut Batch) -> Result<(), Wrong> {
        let dictionary = self.dictionary.as_ref().map(|(dictionary, _)| dictionary);
        let (page, _) = self.page.as_mut().ok_or(TOO_FEW)?;
        let mut space = [0; 8];
        let value = page.values.next(dictionary, &mut space).ok_or(NO_VALUES)?;
        match self.shown {
            Shown::Text => push_text(value, cells)?,
            Shown::Number(number) => number.push(value, cells).ok_or(NO_VALUES)?,
            Shown::Bool => push_bool(value.first().is_some_and(|&byte| byte != 0), cells),
            Shown::Null => {}
        }
        Ok(())
    }

    /// The definition level of the next value, which is read with it.
    #[inline]
    fn definition(&mut self, limit: u64) -> Result<u64, Wrong> {
        let page = self.current(limit)?.ok_or(TOO_FEW)?;
        page.left -= 1;
        match &mut page.definitions {
            Some(levels) => Ok(levels.next().ok_or(NO_LEVELS)?),
            None => Ok(u64::from(self.levels.value)),
        }
    }

    /// The repetition level of the next value; none at the end.
    fn repetition(&mut self, limit: u64) -> Result<Option<u64>, Wrong> {
        if self.peeked.is_none() {
            let Some(page) = self.current(limit)? else {
                return Ok(None);
            };
            let levels = page.repetitions.as_mut().ok_or(NO_LEVELS)?;
            self.peeked = Some(levels.next().ok_or(NO_LEVELS)?);
        }
        Ok(self.peeked)
    }

    /// The page that has the next value; none at the end.
    #[inline]
    fn current(&mut self, limit: u64) -> Result<Option<&mut Page>, Wrong> {
        while self.page.as_ref().is_none_or(|(page, _)| page.left == 0) {
            if self.left == 0 {
                return Ok(None);
            }
            self.next_page(limit)?;
        }
        Ok(self.page.as_mut().map(|(page, _)| page))
    }

    fn next_page(&mut self, limit: u64) -> Result<(), Wrong> {
        self.page = None;
        let (header, rest) = Header::read(&self.data).ok_or(NO_HEADER)?;
        let stored = usize::try_from(header.stored).map_err(|_| NO_HEADER)?;
        let start = self.data.len() - rest.len();
        if stored > rest.len() {
            return Err(OUTSIDE.into());
        }
        let data = self.data.slice(start..start + stored);
        self.data = self.data.slice(start + stored..);
        let size = u64::try_from(header.expanded).map_err(|_| NO_HEADER)?;
        // The dictionary stays beside the pages that use it.
        let needed = size.saturating_add(self.size());
        if needed > limit {
            return Err(Wrong::TooLarge(needed));
        }
        match header.kind {
            DICTIONARY => {
                let data = self.expanded(data, size)?;
                let dictionary = Dictionary::new(data, self.physical).ok_or(NO_VALUES)?;
                self.dictionary = Some((dictionary, size));
            }
            DATA | DATA_2 => {
                let n = u64::try_from(header.n_values).map_err(|_| NO_HEADER)?;
                self.left = self
                    .left
                    .checked_sub(n)
                    .ok_or("a page has more values than its column")?;
                let page = match header.kind {
                    DATA => self.page_1(&header, data, size)?,
                    _ => self.page_2(&header, data, size)?,
                };
                self.page = Some((page, size));
            }
            // An index.
            _ => {}
        }
        Ok(())
    }

    fn expanded(&self, data: Bytes, size: u64) -> Parsed<Bytes> {
        let size = usize::try_from(size).map_err(|_| OUTSIDE)?;
        match self.codec {
            Codec::None if data.len() == size => Ok(data),
            _ if size == 0 => Ok(Bytes::new()),
            codec => decompress(codec, &data, size).map(Bytes::from),
        }
    }

    /// A page of the first version: levels, after their sizes, are compressed with the values.
    fn page_1(&self, header: &Header, data: Bytes, size: u64) -> Parsed<Page> {
        let mut data = self.expanded(data, size)?;
        let n = header.n_values as u64;
        let mut levels = |most: u8, encoding: i64| -> Parsed<Option<Rle>> {
            let width = u32::from(8 - most.leading_zeros() as u8);
            if width == 0 {
                return Ok(None);
            }
            let (start, length) = match encoding {
                RUNS => (4, array(&data, 0).map(|n| u64::from(u32::from_le_bytes(n)))),
                PACKED => (0, Some((n * u64::from(width)).div_ceil(8))),
                _ => return Err(NO_LEVELS.into()),
            };
            let length = length.and_then(|n| usize::try_from(n).ok());
            let end = length.and_then(|n| n.checked_add(start));
            let end = end.filter(|&end| end <= data.len()).ok_or(NO_LEVELS)?;
            let levels = data.slice(start..end);
            data = data.slice(end..);
            Ok(match encoding {
                RUNS => Rle::new(levels, width),
                _ => Rle::packed(levels, width),
            })
        };
        let repetitions = levels(u8::from(self.levels.item.is_some()), header.repetition)?;
        let definitions = levels(self.levels.value, header.definition)?;
        Ok(Page {
            left: n,
            repetitions,
            definitions,
            values: Values::new(self.physical, header.encoding, data).ok_or(NO_VALUES)?,
        })
    }

    /// A page of the second version: levels come before the compressed values.
    fn page_2(&self, header: &Header, data: Bytes, size: u64) -> Parsed<Page> {
        let part = |size: i64| usize::try_from(size).map_err(|_| NO_HEADER);
        let repetitions = part(header.repetitions)?;
        let both = repetitions
            .checked_add(part(header.definitions)?)
            .filter(|&both| both <= data.len() && both as u64 <= size)
            .ok_or(NO_LEVELS)?;
        let levels = |most: u8, start: usize, end: usize| {
            let width = u32::from(8 - most.leading_zeros() as u8);
            match width {
                0 => None,
                width => Rle::new(data.slice(start..end), width),
            }
        };
        let of_lists = u8::from(self.levels.item.is_some());
        let (of_lists, of_values) = (
            levels(of_lists, 0, repetitions),
            levels(self.levels.value, repetitions, both),
        );
        let values = data.slice(both..);
        let values = match header.is_plain {
            true => values,
            false => self.expanded(values, size - both as u64)?,
        };
        Ok(Page {
            left: header.n_values as u64,
            repetitions: of_lists,
            definitions: of_values,
            values: Values::new(self.physical, header.encoding, values).ok_or(NO_VALUES)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of a page of the first version: sizes, number of values, encoding.
    fn header(kind: u8, expanded: usize, stored: usize, n: usize, encoding: u8) -> Vec<u8> {
        let number = |n: usize| {
            let n = 2 * n;
            assert!(n < 1 << 14);
            [n as u8 | 0x80, (n >> 7) as u8]
        };
        let (sizes, n) = ([number(expanded), number(stored)], number(n));
        let part = if kind == 2 { 0x4c } else { 0x2c };
        let mut bytes = vec![0x15, 2 * kind, 0x15];
        bytes.extend(sizes[0]);
        bytes.push(0x15);
        bytes.extend(sizes[1]);
        bytes.extend([part, 0x15]);
        bytes.extend(n);
        bytes.extend([0x15, 2 * encoding, 0x15, 6, 0x15, 6, 0, 0]);
        bytes
    }

    fn cells(mut chunk: Chunk, n: usize, limit: u64) -> Result<Vec<String>, Wrong> {
        let mut cells = Batch::new(1, 0);
        for _ in 0..n {
            chunk.push(limit, &mut cells)?;
            cells.end_cell();
        }
        Ok((0..n).map(|row| cells.cell(row, 0).to_owned()).collect())
    }

    fn chunk(data: Vec<u8>, codec: Codec, n: u64, item: Option<u8>) -> Chunk {
        let levels = Levels {
            value: if item.is_some() { 3 } else { 1 },
            item,
        };
        Chunk::new(data.into(), codec, n, Physical::Bytes, Shown::Text, levels)
    }

    #[test]
    fn texts_with_a_dictionary_and_without() {
        let dictionary = b"\x02\0\0\0ab\x01\0\0\0c";
        let coded = [2, 0, 0, 0, 3, 0b1101, 1, 3, 0b010]; // "ab", nothing, "c", "ab"
        let plain = [&[2, 0, 0, 0, 4, 1][..], b"\x01\0\0\0d\0\0\0\0"].concat();
        let pages = |codec: Codec| {
            let stored = |bytes: &[u8]| match codec {
                Codec::None => bytes.to_vec(),
                _ => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            };
            let (words, first, last) = (stored(dictionary), stored(&coded), stored(&plain));
            [
                header(2, dictionary.len(), words.len(), 2, 0),
                words,
                header(0, coded.len(), first.len(), 4, 8),
                first,
                header(0, plain.len(), last.len(), 2, 0),
                last,
            ]
            .concat()
        };
        for codec in [Codec::None, Codec::Snappy] {
            let all = chunk(pages(codec), codec, 6, None);
            let found = cells(all, 6, 1000).unwrap();
            assert_eq!(found, ["ab", "", "c", "ab", "d", ""], "{codec:?}");
            let all = chunk(pages(codec), codec, 6, None);
            assert!(matches!(cells(all, 7, 1000), Err(Wrong::Damaged(_))));
            // Neither the dictionary nor the pages are larger than the limit, but the two together.
            let all = chunk(pages(codec), codec, 6, None);
            assert!(matches!(cells(all, 6, 15), Err(Wrong::TooLarge(20))));
            for end in 0..pages(codec).len() {
                let all = chunk(pages(codec)[..end].to_vec(), codec, 6, None);
                assert!(
                    matches!(cells(all, 6, 1000), Err(Wrong::Damaged(_))),
                    "{end}"
                );
            }
        }
    }

    #[test]
    fn lists_over_two_pages() {
        // [a, nothing], no list; an empty list, [b and, in the next page, c].
        let page = |repetitions: u8, definitions: [u8; 2], texts: &[u8]| {
            let levels = [
                &[2, 0, 0, 0, 3, repetitions, 3, 0, 0, 0, 3][..],
                &definitions,
            ]
            .concat();
            [levels, texts.to_vec()].concat()
        };
        // Levels of definition 3, 2, 0, 1, 3 in two bits each.
        let first = page(0b0010, [3 | 2 << 2 | 1 << 6, 3], b"\x01\0\0\0a\x01\0\0\0b");
        let second = page(0b1, [3, 0], b"\x01\0\0\0c");
        let all = [
            header(0, first.len(), first.len(), 5, 0),
            first,
            header(0, second.len(), second.len(), 1, 0),
            second,
        ]
        .concat();
        let found = cells(chunk(all, Codec::None, 6, Some(2)), 4, 1000).unwrap();
        assert_eq!(found, ["a\x1f\x1f", "", "", "b\x1fc\x1f"]);
    }
}
