//! Columns of a batch of Arrow data in memory, and how values are written into cells.

use super::super::UNUSABLE;
use super::super::batch::{Batch, MAX_CELL};
use super::Wrong;
use super::encodings::bits;
use super::flatbuffer::array;
use crate::data::vectorize::ITEM_END;
use std::sync::Arc;

/// The types of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Number {
    /// The type of whole numbers of this many bits.
    pub(super) fn integer(n_bits: i64, is_signed: bool) -> Option<Self> {
        Some(match (n_bits, is_signed) {
            (8, true) => Self::I8,
            (16, true) => Self::I16,
            (32, true) => Self::I32,
            (64, true) => Self::I64,
            (8, false) => Self::U8,
            (16, false) => Self::U16,
            (32, false) => Self::U32,
            (64, false) => Self::U64,
            _ => return None,
        })
    }

    /// The bytes of a number.
    pub(super) fn width(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Writes a number as the shortest text that reads back to it. It has its lowest byte first and may have more of them.
    #[inline]
    pub(super) fn push(self, bytes: &[u8], cells: &mut Batch) -> Option<()> {
        match self {
            Self::I8 => cells.write(i8::from_le_bytes(array(bytes, 0)?)),
            Self::I16 => cells.write(i16::from_le_bytes(array(bytes, 0)?)),
            Self::I32 => cells.write(i32::from_le_bytes(array(bytes, 0)?)),
            Self::I64 => cells.write(i64::from_le_bytes(array(bytes, 0)?)),
            Self::U8 => cells.write(u8::from_le_bytes(array(bytes, 0)?)),
            Self::U16 => cells.write(u16::from_le_bytes(array(bytes, 0)?)),
            Self::U32 => cells.write(u32::from_le_bytes(array(bytes, 0)?)),
            Self::U64 => cells.write(u64::from_le_bytes(array(bytes, 0)?)),
            Self::F16 => cells.write(half(u16::from_le_bytes(array(bytes, 0)?))),
            Self::F32 => cells.write(f32::from_le_bytes(array(bytes, 0)?)),
            Self::F64 => cells.write(f64::from_le_bytes(array(bytes, 0)?)),
        }
        Some(())
    }

    /// A whole number that is not negative.
    fn index(self, bytes: &[u8]) -> Option<usize> {
        let value = bits(bytes, 0, 8 * self.width() as u32);
        let is_signed = matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64);
        match is_signed && value >> (8 * self.width() - 1) == 1 {
            true => None,
            false => usize::try_from(value).ok(),
        }
    }
}

/// A number of half precision.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        0x1f if fraction == 0.0 => sign * f32::INFINITY,
        0x1f => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// Writes a text.
#[inline]
pub(super) fn push_text(text: &[u8], cells: &mut Batch) -> Result<(), Wrong> {
    if text.len() > MAX_CELL {
        let reason = format!("the text is longer than {} MB", MAX_CELL >> 20);
        return Err(Wrong::Cell(reason));
    }
    let text = std::str::from_utf8(text).map_err(|_| "a text is not UTF-8")?;
    cells.push(text);
    Ok(())
}

pub(super) fn push_bool(value: bool, cells: &mut Batch) {
    cells.push(if value { "true" } else { "false" });
}

/// Ends an item of a list.
#[inline]
pub(super) fn end_item(cells: &mut Batch) -> Result<(), Wrong> {
    cells.push(ITEM_END.encode_utf8(&mut [0; 4]));
    match cells.cell_size() > MAX_CELL {
        true => {
            let reason = format!("the list is longer than {} MB", MAX_CELL >> 20);
            Err(Wrong::Cell(reason))
        }
        false => Ok(()),
    }
}

/// Bits, one per row.
#[derive(Debug)]
pub(super) struct Bits(pub(super) Vec<u8>);

impl Bits {
    fn get(&self, row: usize) -> bool {
        self.0
            .get(row / 8)
            .is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }
}

/// The values of a column, and which of them are there.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) len: usize,
    /// All are there if none.
    pub(super) valid: Option<Bits>,
    pub(super) values: Values,
}

#[derive(Debug)]
pub(super) enum Values {
    Null,
    Unusable,
    /// Where texts begin, and the end of the last; and the texts.
    Text(Vec<usize>, Vec<u8>),
    /// Sixteen bytes per text, which are the text or say where it is; and buffers of texts.
    View(Vec<u8>, Vec<Vec<u8>>),
    Number(Number, Vec<u8>),
    Bool(Bits),
    /// Where lists begin, and the end of the last; and their items.
    List(Vec<usize>, Box<Column>),
    /// The numbers of values.
    Coded(Number, Vec<u8>, Arc<Dictionary>),
}

/// Values that are called by number. They may come in parts.
#[derive(Debug, Default, Clone)]
pub(super) struct Dictionary {
    parts: Vec<Arc<Column>>,
    /// Where each part ends.
    ends: Vec<usize>,
}

impl Dictionary {
    pub(super) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, part: Column) {
        self.ends.push(self.len() + part.len);
        self.parts.push(Arc::new(part));
    }

    fn push(&self, at: usize, cells: &mut Batch) -> Result<(), Wrong> {
        let part = self.ends.partition_point(|&end| end <= at);
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        match self.parts.get(part) {
            Some(values) => values.push(at - start, cells),
            None => Err("a code is not in its dictionary".into()),
        }
    }
}

const TOO_SHORT: &str = "a column has fewer values than rows";

impl Column {
    fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.get(row))
    }

    /// Whether all numbers are those of values.
    pub(super) fn codes_are_within(&self, n: usize) -> bool {
        let Values::Coded(number, codes, _) = &self.values else {
            return true;
        };
        let mut codes = codes
            .chunks_exact(number.width())
            .take(self.len)
            .enumerate();
        codes.all(|(row, code)| {
            !self.is_valid(row) || number.index(code).is_some_and(|code| code < n)
        })
    }

    /// Adds the value of one row to the current cell; nothing if it is missing.
    pub(super) fn push(&self, row: usize, cells: &mut Batch) -> Result<(), Wrong> {
        if matches!(self.values, Values::Unusable) {
            cells.push(UNUSABLE);
            return Ok(());
        }
        if !self.is_valid(row) {
            return Ok(());
        }
        match &self.values {
            Values::Null | Values::Unusable => Ok(()),
            Values::Text(starts, texts) => {
                let text = between(starts, row).and_then(|(start, end)| texts.get(start..end));
                push_text(text.ok_or(TOO_SHORT)?, cells)
            }
            Values::View(views, buffers) => push_text(
                viewed(views, buffers, row).ok_or("a text is outside its buffer")?,
                cells,
            ),
            Values::Number(number, values) => {
                let value = values.get(row * number.width()..).ok_or(TOO_SHORT)?;
                Ok(number.push(value, cells).ok_or(TOO_SHORT)?)
            }
            Values::Bool(values) => {
                push_bool(values.get(row), cells);
                Ok(())
            }
            Values::List(starts, items) => {
                let (start, end) = between(starts, row).ok_or(TOO_SHORT)?;
                for item in start..end {
                    items.push(item, cells)?;
                    end_item(cells)?;
                }
                Ok(())
            }
            Values::Coded(number, codes, dictionary) => {
                let code = codes.get(row * number.width()..);
                let code = code.and_then(|code| number.index(code)).ok_or(TOO_SHORT)?;
                dictionary.push(code, cells)
            }
        }
    }
}

fn between(starts: &[usize], row: usize) -> Option<(usize, usize)> {
    Some((*starts.get(row)?, *starts.get(row + 1)?))
}

fn viewed<'a>(views: &'a [u8], buffers: &'a [Vec<u8>], row: usize) -> Option<&'a [u8]> {
    let view = views.get(16 * row..)?.get(..16)?;
    let number = |at: usize| Some(u32::from_le_bytes(array(view, at)?) as usize);
    match number(0)? {
        n @ 0..=12 => view.get(4..4 + n),
        n => buffers.get(number(8)?)?.get(number(12)?..)?.get(..n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0400, 2f32.powi(-14)),
            (0x0001, 2f32.powi(-24)),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
        assert!(half(0x8000).is_sign_negative() && half(0x8000) == 0.0);
    }

    #[test]
    fn values_are_written() {
        let text = Values::Text(vec![0, 1, 1, 3], b"abc".to_vec());
        let texts = Column {
            len: 3,
            valid: Some(Bits(vec![0b101])),
            values: text,
        };
        let mut dictionary = Dictionary::default();
        dictionary.add(texts);
        let codes = Values::Coded(Number::I8, vec![2, 0, 1, 255], Arc::new(dictionary));
        let items = Column {
            len: 4,
            valid: None,
            values: codes,
        };
        assert!(!items.codes_are_within(3));
        let lists = Values::List(vec![0, 3, 3, 4], Box::new(items));
        let lists = Column {
            len: 3,
            valid: None,
            values: lists,
        };
        let mut cells = Batch::new(1, 0);
        lists.push(0, &mut cells).unwrap();
        cells.end_cell();
        lists.push(1, &mut cells).unwrap();
        cells.end_cell();
        assert_eq!(cells.cell(0, 0), "bc\x1fa\x1f\x1f");
        assert_eq!(cells.cell(1, 0), "");
        assert!(lists.push(2, &mut cells).is_err());
        assert!(lists.push(3, &mut cells).is_err());
    }

    #[test]
    fn numbers_are_the_shortest_text() {
        let mut cells = Batch::new(1, 0);
        for (number, bytes) in [
            (Number::U8, &[200, 1, 0, 0][..]),
            (Number::I8, &[200, 255, 255, 255]),
            (Number::F32, &0.1f32.to_le_bytes()),
            (Number::F64, &0.1f64.to_le_bytes()),
            (Number::U64, &u64::MAX.to_le_bytes()),
        ] {
            number.push(bytes, &mut cells).unwrap();
            cells.push(" ");
        }
        cells.end_cell();
        assert_eq!(cells.cell(0, 0), "200 -56 0.1 0.1 18446744073709551615 ");
    }
}
