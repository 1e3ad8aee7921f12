//! Thrift's compact protocol, in which Parquet describes itself. What is outside the bytes is `None`.

/// The deepest nesting. Parquet's own is about ten.
const DEEPEST: u32 = 32;

/// The types of fields that are used.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const BYTE: u8 = 3;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Bytes that are being read.
pub(super) struct Thrift<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest, depth: 0 }
    }

    /// What was not read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Calls `field` with the number and type of each field of a structure, which it has to read or skip.
    pub(super) fn structure(
        &mut self,
        mut field: impl FnMut(&mut Self, i64, u8) -> Option<()>,
    ) -> Option<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut number = 0i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                break;
            }
            number = match byte >> 4 {
                0 => self.integer()?,
                more => number.checked_add(i64::from(more))?,
            };
            field(self, number, byte & 0x0f)?;
        }
        self.depth -= 1;
        Some(())
    }

    /// Calls `item` for each item of a list, with its type, which it has to read or skip.
    pub(super) fn list(&mut self, mut item: impl FnMut(&mut Self, u8) -> Option<()>) -> Option<()> {
        let byte = self.byte()?;
        let n = match byte >> 4 {
            15 => varint(&mut self.rest)?,
            n => u64::from(n),
        };
        for _ in 0..n {
            item(self, byte & 0x0f)?;
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    pub(super) fn integer(&mut self) -> Option<i64> {
        zigzag(&mut self.rest)
    }

    /// A number of one byte.
    pub(super) fn small(&mut self) -> Option<i64> {
        self.byte().map(|byte| i64::from(byte as i8))
    }

    pub(super) fn binary(&mut self) -> Option<&'a [u8]> {
        let n = usize::try_from(varint(&mut self.rest)?).ok()?;
        self.take(n)
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(first)
    }

    /// Leaves out a value.
    pub(super) fn skip(&mut self, kind: u8) -> Option<()> {
        match kind {
            TRUE | FALSE => {}
            BYTE => _ = self.byte()?,
            4..=I64 => _ = varint(&mut self.rest)?,
            7 => _ = self.take(8)?,
            BINARY => _ = self.binary()?,
            // Lists and sets, in which even truth values take a byte each.
            LIST | 10 => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return None;
                }
                self.list(|this, kind| match kind {
                    TRUE | FALSE => this.byte().map(drop),
                    kind => this.skip(kind),
                })?;
                self.depth -= 1;
            }
            STRUCT => self.structure(|this, _, kind| this.skip(kind))?,
            _ => return None,
        }
        Some(())
    }
}

/// A number of seven bits per byte, the lowest first.
pub(super) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A number with its sign in the lowest bit.
pub(super) fn zigzag(rest: &mut &[u8]) -> Option<i64> {
    let value = varint(rest)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_read() {
        // Two numbers, a structure of a number and a truth value, a list of two texts, field 20, and what comes after.
        let bytes = [
            0x15, 0x00, 0x15, 0xd8, 0x04, 0x1c, 0x15, 0x02, 0x11, 0x00, 0x19, 0x28, 1, b'a', 0,
            0x05, 0x28, 0x03, 0,
        ];
        let read = |bytes: &[u8]| {
            let mut found = Vec::new();
            let mut texts = Vec::new();
            let mut thrift = Thrift::new(bytes);
            thrift.structure(|thrift, number, kind| {
                match (number, kind) {
                    (_, I32) => found.push((number, thrift.integer()?)),
                    (_, LIST) => thrift.list(|thrift, _| {
                        texts.push(thrift.binary()?.to_vec());
                        Some(())
                    })?,
                    (_, kind) => thrift.skip(kind)?,
                }
                Some(())
            })?;
            Some((found, texts, thrift.rest().to_vec()))
        };
        let found = vec![(1, 0), (2, 300), (20, -2)];
        let texts = vec![b"a".to_vec(), vec![]];
        let all = [&bytes[..], b"after"].concat();
        assert_eq!(read(&all), Some((found, texts, b"after".to_vec())));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None, "{end}");
        }
    }

    #[test]
    fn nesting_ends() {
        let mut thrift = Thrift::new(&[0x1c; 1000]);
        assert_eq!(thrift.skip(STRUCT), None);
        let mut thrift = Thrift::new(&[0x19; 1000]);
        assert_eq!(thrift.skip(LIST), None);
    }
}
