//! The encodings of Parquet's values, decoded one value at a time.
//!
//! A value is given as its bytes, numbers with the lowest byte first. Memory does not depend on how many values a page claims
//! to have: runs, differences and shared beginnings are expanded as they are read.

use super::flatbuffer::array;
use super::thrift::{varint, zigzag};
use bytes::Bytes;

/// How values are stored, by the types of Parquet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Physical {
    Bool,
    Int32,
    Int64,
    Float,
    Double,
    Bytes,
    Fixed(usize),
}

impl Physical {
    /// The bytes of a value, unless that varies or is less than one.
    fn width(self) -> Option<usize> {
        match self {
            Self::Int32 | Self::Float => Some(4),
            Self::Int64 | Self::Double => Some(8),
            Self::Fixed(n) => (n > 0).then_some(n),
            Self::Bool | Self::Bytes => None,
        }
    }
}

/// `width` bits from a position on, the lowest first; zeros beyond the end.
#[inline]
pub(super) fn bits(data: &[u8], at: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (byte, shift) = (at / 8, (at % 8) as u32);
    let low = match array::<8>(data, byte) {
        Some(chunk) => u64::from_le_bytes(chunk),
        None => {
            let rest = data.get(byte..).unwrap_or_default();
            let mut chunk = [0; 8];
            chunk[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(chunk)
        }
    };
    let mut value = low >> shift;
    if shift + width > 64 {
        let next = data.get(byte + 8).copied().unwrap_or(0);
        value |= u64::from(next) << (64 - shift);
    }
    value & (u64::MAX >> (64 - width))
}

/// Small numbers, as runs of the same or packed into bits.
#[derive(Debug)]
pub(super) struct Rle {
    data: Bytes,
    /// Where the next run begins.
    at: usize,
    width: u32,
    value: u64,
    repeats: u64,
    packed: u64,
    bit: usize,
}

impl Rle {
    pub(super) fn new(data: Bytes, width: u32) -> Option<Self> {
        (width <= 32).then_some(Self {
            data,
            at: 0,
            width,
            value: 0,
            repeats: 0,
            packed: 0,
            bit: 0,
        })
    }

    /// Numbers that are packed into bits, without runs.
    pub(super) fn packed(data: Bytes, width: u32) -> Option<Self> {
        let packed = (data.len() as u64 * 8).checked_div(u64::from(width))?;
        let at = data.len();
        let all = Self::new(data, width)?;
        Some(Self { packed, at, ..all })
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        loop {
            if self.repeats > 0 {
                self.repeats -= 1;
                return Some(self.value);
            }
            if self.packed > 0 {
                self.packed -= 1;
                let value = bits(&self.data, self.bit, self.width);
                self.bit += self.width as usize;
                return Some(value);
            }
            self.begin_run()?;
        }
    }

    fn begin_run(&mut self) -> Option<()> {
        let mut rest = self.data.get(self.at..)?;
        let before = rest.len();
        let header = varint(&mut rest)?;
        self.at += before - rest.len();
        if header & 1 == 0 {
            let n = self.width.div_ceil(8) as usize;
            let mut value = [0; 8];
            value[..n].copy_from_slice(rest.get(..n)?);
            self.value = u64::from_le_bytes(value);
            self.repeats = header >> 1;
            self.at += n;
        } else {
            let groups = header >> 1;
            let n = usize::try_from(groups.checked_mul(u64::from(self.width))?).ok()?;
            // The last group may be cut off after its last value.
            let n = n.min(rest.len());
            let there = (n as u64 * 8).checked_div(u64::from(self.width));
            self.packed = groups.checked_mul(8)?.min(there.unwrap_or(u64::MAX));
            self.bit = self.at * 8;
            self.at += n;
        }
        Some(())
    }
}

/// Whole numbers as differences, in blocks of several parts with as many bits per difference as that part needs.
#[derive(Debug)]
pub(super) struct Delta {
    data: Bytes,
    at: usize,
    per_part: usize,
    parts: usize,
    left: u64,
    is_first: bool,
    last: i64,
    least: i64,
    /// Where the widths of the current block are.
    widths: usize,
    part: usize,
    left_in_part: usize,
    bit: usize,
    width: u32,
}

impl Delta {
    /// The numbers, and what comes after them.
    pub(super) fn new(data: Bytes) -> Option<(Self, Bytes)> {
        let mut rest = &data[..];
        let block = usize::try_from(varint(&mut rest)?).ok()?;
        let parts = usize::try_from(varint(&mut rest)?).ok()?;
        let left = varint(&mut rest)?;
        let last = zigzag(&mut rest)?;
        let per_part = block.checked_div(parts)?;
        if per_part == 0 || per_part % 8 != 0 || per_part > 1 << 24 || per_part * parts != block {
            return None;
        }
        let at = data.len() - rest.len();
        let mut numbers = Self {
            data,
            at,
            per_part,
            parts,
            left,
            is_first: true,
            last,
            least: 0,
            widths: 0,
            part: parts,
            left_in_part: 0,
            bit: 0,
            width: 0,
        };
        // Where they end, by their widths alone.
        let mut left = left.saturating_sub(1);
        while left > 0 {
            numbers.begin_part(left)?;
            left = left.saturating_sub(per_part as u64);
        }
        let after = numbers.data.slice(numbers.at..);
        (numbers.at, numbers.part, numbers.left_in_part) = (at, parts, 0);
        Some((numbers, after))
    }

    /// How many are to come.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Begins a part of which at most `left` numbers are used.
    fn begin_part(&mut self, left: u64) -> Option<()> {
        if self.part == self.parts {
            let mut rest = self.data.get(self.at..)?;
            self.least = zigzag(&mut rest)?;
            self.widths = self.data.len() - rest.len();
            rest.get(..self.parts)?;
            self.at = self.widths + self.parts;
            self.part = 0;
        }
        self.width = u32::from(*self.data.get(self.widths + self.part)?);
        if self.width > 64 {
            return None;
        }
        let size = self.per_part / 8 * self.width as usize;
        let there = self.data.len() - self.at;
        // The last part may be cut off after its last number.
        let used = left.min(self.per_part as u64) * u64::from(self.width);
        if (there as u64) * 8 < used {
            return None;
        }
        self.bit = self.at * 8;
        self.at += size.min(there);
        self.part += 1;
        self.left_in_part = self.per_part;
        Some(())
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<i64> {
        let left = self.left;
        self.left = left.checked_sub(1)?;
        if self.is_first {
            self.is_first = false;
            return Some(self.last);
        }
        if self.left_in_part == 0 {
            self.begin_part(left)?;
        }
        self.left_in_part -= 1;
        let more = bits(&self.data, self.bit, self.width);
        self.bit += self.width as usize;
        self.last = self.last.wrapping_add(self.least).wrapping_add(more as i64);
        Some(self.last)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }
}

/// Floating-point numbers as decimals (ALP): vectors of whole numbers with a common power of ten, and exceptions.
#[derive(Debug)]
pub(super) struct Alp {
    data: Bytes,
    is_double: bool,
    vector_size: usize,
    /// Values in vectors that were not expanded yet.
    left: usize,
    next_vector: usize,
    values: Vec<u64>,
    at: usize,
}

impl Alp {
    fn new(data: Bytes, is_double: bool) -> Option<Self> {
        let [0, 0, log @ 3..=15, a, b, c, d] = array::<7>(&data, 0)? else {
            return None;
        };
        Some(Self {
            data: data.slice(7..),
            is_double,
            vector_size: 1 << log,
            left: usize::try_from(i32::from_le_bytes([a, b, c, d])).ok()?,
            next_vector: 0,
            values: Vec::new(),
            at: 0,
        })
    }

    fn next(&mut self) -> Option<u64> {
        if self.at == self.values.len() {
            self.expand()?;
        }
        self.at += 1;
        self.values.get(self.at - 1).copied()
    }

    /// Expands the next vector.
    fn expand(&mut self) -> Option<()> {
        let n = self.left.min(self.vector_size);
        let start = u32::from_le_bytes(array(&self.data, 4 * self.next_vector)?) as usize;
        let vector = self.data.get(start..)?;
        let [exponent, factor, low, high] = array::<4>(vector, 0)?;
        let n_exceptions = usize::from(u16::from_le_bytes([low, high]));
        let size = if self.is_double { 8 } else { 4 };
        let number = |at: usize| match self.is_double {
            true => array(vector, at).map(u64::from_le_bytes),
            false => array(vector, at).map(|bytes| u64::from(u32::from_le_bytes(bytes))),
        };
        let (reference, width) = (number(4)?, u32::from(*vector.get(4 + size)?));
        let packed = vector.get(5 + size..)?;
        let n_packed = (width as usize * n).div_ceil(8);
        let wrong = factor > exponent || width as usize > 8 * size || n_packed > packed.len();
        if wrong {
            return None;
        }
        let powers = (
            POWERS.get(usize::from(factor))?,
            NEGATIVE_POWERS.get(usize::from(exponent))?,
        );
        let value = |at: usize| {
            let whole = bits(packed, at * width as usize, width).wrapping_add(reference);
            match self.is_double {
                true => (whole as i64 as f64 * powers.0 * powers.1).to_bits(),
                false => {
                    let (up, down) = (*powers.0 as f32, *powers.1 as f32);
                    u64::from((whole as u32 as i32 as f32 * up * down).to_bits())
                }
            }
        };
        let mut values: Vec<u64> = (0..n).map(value).collect();
        let exceptions = 5 + size + n_packed;
        for at in 0..n_exceptions {
            let place = u16::from_le_bytes(array(vector, exceptions + 2 * at)?);
            let exact = number(exceptions + 2 * n_exceptions + size * at)?;
            *values.get_mut(usize::from(place))? = exact;
        }
        self.values = values;
        self.at = 0;
        self.left -= n;
        self.next_vector += 1;
        Some(())
    }
}

const POWERS: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];
const NEGATIVE_POWERS: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14,
    1e-15, 1e-16, 1e-17, 1e-18,
];

/// The distinct values of a column.
#[derive(Debug)]
pub(super) struct Dictionary {
    data: Bytes,
    width: Option<usize>,
    /// Where values begin and end, if their lengths vary.
    bounds: Vec<(u32, u32)>,
}

impl Dictionary {
    /// The values of a page without any other encoding.
    pub(super) fn new(data: Bytes, physical: Physical) -> Option<Self> {
        let width = physical.width();
        let mut bounds = Vec::new();
        if physical == Physical::Bytes {
            let mut at = 0;
            while let Some(length) = array(&data, at) {
                let start = at + 4;
                at = start.checked_add(u32::from_le_bytes(length) as usize)?;
                data.get(start..at)?;
                bounds.push((u32::try_from(start).ok()?, u32::try_from(at).ok()?));
            }
        }
        Some(Self {
            data,
            width,
            bounds,
        })
    }

    #[inline]
    fn get(&self, code: u64) -> Option<&[u8]> {
        let code = usize::try_from(code).ok()?;
        match self.width {
            Some(width) => self.data.get(code.checked_mul(width)?..)?.get(..width),
            None => {
                let &(start, end) = self.bounds.get(code)?;
                self.data.get(start as usize..end as usize)
            }
        }
    }
}

/// The values of a page that are to come.
#[derive(Debug)]
pub(super) enum Values {
    Plain {
        data: Bytes,
        at: usize,
        width: usize,
    },
    PlainBytes {
        data: Bytes,
        at: usize,
    },
    PlainBits {
        data: Bytes,
        at: usize,
    },
    Runs(Rle),
    Coded(Rle),
    Delta(Delta),
    DeltaLengths {
        lengths: Delta,
        data: Bytes,
        at: usize,
    },
    DeltaBytes {
        shared: Delta,
        lengths: Delta,
        data: Bytes,
        at: usize,
        last: Vec<u8>,
    },
    Split {
        data: Bytes,
        at: usize,
        width: usize,
    },
    Alp(Alp),
}

/// The longest value of which beginnings are kept.
const LONGEST: usize = 64 << 20;

impl Values {
    /// The values of a page, by the number of its encoding, or nothing if they are damaged or the encoding is unknown.
    pub(super) fn new(physical: Physical, encoding: i64, data: Bytes) -> Option<Self> {
        use Physical as P;
        let width = physical.width();
        Some(match (encoding, physical) {
            (0, P::Bool) => Self::PlainBits { data, at: 0 },
            (0, P::Bytes) => Self::PlainBytes { data, at: 0 },
            (0, _) => Self::Plain {
                data,
                at: 0,
                width: width?,
            },
            // A column of which all values are missing may lack even the width.
            (2 | 8, _) => match data.first() {
                Some(&width) => Self::Coded(Rle::new(data.slice(1..), width.into())?),
                None => Self::Coded(Rle::new(data, 0)?),
            },
            (3, P::Bool) => {
                let n = u32::from_le_bytes(array(&data, 0)?) as usize;
                data.get(4..)?.get(..n)?;
                Self::Runs(Rle::new(data.slice(4..4 + n), 1)?)
            }
            (5, P::Int32 | P::Int64) => Self::Delta(Delta::new(data)?.0),
            (6, P::Bytes) => {
                let (lengths, data) = Delta::new(data)?;
                Self::DeltaLengths {
                    lengths,
                    data,
                    at: 0,
                }
            }
            (7, P::Bytes | P::Fixed(_)) => {
                let (shared, rest) = Delta::new(data)?;
                let (lengths, data) = Delta::new(rest)?;
                if shared.left() != lengths.left() {
                    return None;
                }
                let last = Vec::new();
                Self::DeltaBytes {
                    shared,
                    lengths,
                    data,
                    at: 0,
                    last,
                }
            }
            (9, _) if data.len().is_multiple_of(width?) => Self::Split {
                data,
                at: 0,
                width: width?,
            },
            (10, P::Float | P::Double) => Self::Alp(Alp::new(data, physical == P::Double)?),
            _ => return None,
        })
    }

    /// The next value.
    #[inline]
    pub(super) fn next<'a>(
        &'a mut self,
        dictionary: Option<&'a Dictionary>,
        space: &'a mut [u8; 8],
    ) -> Option<&'a [u8]> {
        match self {
            Self::Plain { data, at, width } => {
                let value = data.get(*at..)?.get(..*width)?;
                *at += *width;
                Some(value)
            }
            Self::PlainBytes { data, at } => {
                let rest = data.get(*at..)?;
                let (length, rest) = rest.split_first_chunk()?;
                let value = rest.get(..u32::from_le_bytes(*length) as usize)?;
                *at += 4 + value.len();
                Some(value)
            }
            Self::PlainBits { data, at } => {
                data.get(*at / 8)?;
                space[0] = bits(data, *at, 1) as u8;
                *at += 1;
                Some(&space[..1])
            }
            Self::Runs(runs) => {
                space[0] = runs.next()? as u8;
                Some(&space[..1])
            }
            Self::Coded(codes) => dictionary?.get(codes.next()?),
            Self::Delta(numbers) => {
                *space = numbers.next()?.to_le_bytes();
                Some(space)
            }
            Self::DeltaLengths { lengths, data, at } => {
                let value = data.get(*at..)?.get(..lengths.length()?)?;
                *at += value.len();
                Some(value)
            }
            Self::DeltaBytes {
                shared,
                lengths,
                data,
                at,
                last,
            } => {
                let (shared, length) = (shared.length()?, lengths.length()?);
                let more = data.get(*at..)?.get(..length)?;
                *at += length;
                if shared > last.len() || shared + length > LONGEST {
                    return None;
                }
                last.truncate(shared);
                last.extend_from_slice(more);
                Some(last)
            }
            Self::Split { data, at, width } => Self::split(data, at, *width, space),
            Self::Alp(values) => {
                *space = values.next()?.to_le_bytes();
                Some(space)
            }
        }
    }

    /// The first bytes of all values come first, then their second bytes, and so on.
    fn split<'a>(
        data: &Bytes,
        at: &mut usize,
        width: usize,
        space: &'a mut [u8; 8],
    ) -> Option<&'a [u8]> {
        let n = data.len() / width;
        if *at >= n {
            return None;
        }
        let value = space.get_mut(..width)?;
        for (byte, out) in value.iter_mut().enumerate() {
            *out = data[byte * n + *at];
        }
        *at += 1;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut values: Values, dictionary: Option<&Dictionary>) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut space = [0; 8];
        while let Some(value) = values.next(dictionary, &mut space) {
            found.push(value.to_vec());
            assert!(found.len() < 1000);
        }
        found
    }

    #[test]
    fn bits_at_any_place() {
        let data: Vec<u8> = (0..20).map(|k| (k * 37 + 11) as u8).collect();
        let bit = |at: usize| u64::from(data.get(at / 8).map_or(0, |byte| byte >> (at % 8) & 1));
        for width in 0..=64 {
            for at in 0..160 {
                let expected = (0..width).fold(0, |sum, k| sum | bit(at + k as usize) << k);
                assert_eq!(bits(&data, at, width), expected, "{width} at {at}");
            }
        }
    }

    #[test]
    fn runs_and_packed_numbers() {
        // Four fives, then the numbers 0 to 7 in three bits each, as in the description of the format.
        let data = Bytes::from_static(&[4 << 1, 5, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        let mut runs = Rle::new(data, 3).unwrap();
        let found: Vec<u64> = std::iter::from_fn(|| runs.next()).collect();
        assert_eq!(found, [5, 5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7]);
        let mut packed = Rle::packed(Bytes::from_static(&[0b1101_1000]), 2).unwrap();
        let found: Vec<u64> = std::iter::from_fn(|| packed.next()).collect();
        assert_eq!(found, [0, 2, 1, 3]);
        // A run of 2^62 takes no memory.
        let data = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1];
        let mut runs = Rle::new(Bytes::from(data.to_vec()), 1).unwrap();
        assert_eq!(runs.next(), Some(1));
        assert!(Rle::new(Bytes::new(), 33).is_none());
    }

    #[test]
    fn differences() {
        // The example of the format's description: 7, 5, 3, 1, 2, 3, 4, 5 as differences of at least -2, two bits each.
        let mut data = vec![
            0x80,
            0x01,
            4,
            8,
            14,
            3,
            2,
            0,
            0,
            0,
            0b1100_0000,
            0b0011_1111,
        ];
        data.extend([0; 6]);
        data.extend(b"after");
        let (mut numbers, after) = Delta::new(Bytes::from(data)).unwrap();
        let found: Vec<i64> = std::iter::from_fn(|| numbers.next()).collect();
        assert_eq!(found, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert_eq!(&after[..], b"after");
    }

    #[test]
    fn shared_beginnings() {
        let lengths = |numbers: [u8; 3]| {
            let [first, second, third] = numbers.map(i16::from);
            let least = (second - first).min(third - second);
            let zigzag = |value: i16| if value < 0 { -2 * value - 1 } else { 2 * value } as u8;
            let more = (second - first - least) as u8 | ((third - second - least) as u8) << 4;
            let mut data = vec![
                0x80,
                0x01,
                4,
                3,
                zigzag(first),
                zigzag(least),
                4,
                0,
                0,
                0,
                more,
            ];
            data.extend([0; 15]);
            data
        };
        let shared = [lengths([0, 3, 2]), lengths([4, 1, 2]), b"axisleot".to_vec()].concat();
        // "axis", "axi" + "l", "ax" + "eo"
        let values = Values::new(Physical::Bytes, 7, Bytes::from(shared)).unwrap();
        let found = all(values, None);
        assert_eq!(found, [&b"axis"[..], b"axil", b"axeo"]);
        let texts = [lengths([2, 0, 3]), b"abcde".to_vec()].concat();
        let values = Values::new(Physical::Bytes, 6, Bytes::from(texts)).unwrap();
        assert_eq!(all(values, None), [&b"ab"[..], b"", b"cde"]);
    }

    #[test]
    fn plain_split_and_coded() {
        let data = Bytes::from_static(&[1, 0, 0, 0, b'a', 0, 0, 0, 0, 2, 0, 0, 0, b'b', b'c']);
        let values = Values::new(Physical::Bytes, 0, data.clone()).unwrap();
        assert_eq!(all(values, None), [&b"a"[..], b"", b"bc"]);
        let dictionary = Dictionary::new(data, Physical::Bytes).unwrap();
        let codes = Bytes::from_static(&[2, 3, 0b0001_0010, 0]);
        let values = Values::new(Physical::Bytes, 8, codes).unwrap();
        let found = all(values, Some(&dictionary));
        assert_eq!(
            found[..4],
            [&b"bc"[..], b"a", b"", b"a"].map(<[u8]>::to_vec)[..4].to_vec()[..]
        );
        let data = Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let values = Values::new(Physical::Float, 9, data.clone()).unwrap();
        assert_eq!(all(values, None), [[1, 3, 5, 7], [2, 4, 6, 8]]);
        let values = Values::new(Physical::Int32, 0, data).unwrap();
        assert_eq!(all(values, None), [[1, 2, 3, 4], [5, 6, 7, 8]]);
        let values = Values::new(Physical::Bool, 0, Bytes::from_static(&[0b101])).unwrap();
        assert_eq!(all(values, None)[..4], [[1], [0], [1], [0]]);
    }

    #[test]
    fn decimals() {
        // One vector of three doubles: 1.5, 1.6, and an exception.
        let mut data = vec![0, 0, 10, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 1, 0];
        data.extend(15u64.to_le_bytes());
        data.extend([2, 0b00_01_00, 2, 0]);
        data.extend(f64::NAN.to_le_bytes());
        let values = Values::new(Physical::Double, 10, Bytes::from(data)).unwrap();
        let expected = [1.5, 1.6, f64::NAN].map(|x| x.to_le_bytes().to_vec());
        let mut values = values;
        let mut space = [0; 8];
        for value in expected {
            assert_eq!(values.next(None, &mut space), Some(&value[..]));
        }
    }
}
