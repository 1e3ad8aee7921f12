//! FlatBuffers, in which Arrow describes its messages.
//!
//! A table is a list of fields, each of which may be missing. Every position is checked: a field that is missing and one that
//! is outside the bytes are both `None`, so that damaged metadata never reads elsewhere. A field is called by its number in
//! the definition of the table.

/// A table within some bytes.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where each field is, relative to the table, as 16-bit numbers; 0 is missing.
    fields: &'a [u8],
}

/// Bytes at a position.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The position that the 32-bit number at a position refers to.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(array(bytes, at)?) as usize)
}

impl<'a> Table<'a> {
    /// The table that a message consists of.
    pub(super) fn root(bytes: &'a [u8]) -> Option<Self> {
        Self::at(bytes, follow(bytes, 0)?)
    }

    fn at(bytes: &'a [u8], at: usize) -> Option<Self> {
        let back = i64::from(i32::from_le_bytes(array(bytes, at)?));
        let start = usize::try_from(i64::try_from(at).ok()?.checked_sub(back)?).ok()?;
        let size = usize::from(u16::from_le_bytes(array(bytes, start)?));
        let fields = bytes.get(start..)?.get(4..size)?;
        Some(Self { bytes, at, fields })
    }

    /// Where a field is.
    fn field(&self, number: usize) -> Option<usize> {
        match u16::from_le_bytes(array(self.fields, 2 * number)?) {
            0 => None,
            offset => self.at.checked_add(usize::from(offset)),
        }
    }

    fn scalar<const N: usize>(&self, number: usize) -> Option<[u8; N]> {
        array(self.bytes, self.field(number)?)
    }

    pub(super) fn u8(&self, number: usize) -> Option<u8> {
        self.scalar(number).map(u8::from_le_bytes)
    }

    pub(super) fn i16(&self, number: usize) -> Option<i16> {
        self.scalar(number).map(i16::from_le_bytes)
    }

    pub(super) fn i32(&self, number: usize) -> Option<i32> {
        self.scalar(number).map(i32::from_le_bytes)
    }

    pub(super) fn i64(&self, number: usize) -> Option<i64> {
        self.scalar(number).map(i64::from_le_bytes)
    }

    pub(super) fn table(&self, number: usize) -> Option<Self> {
        Self::at(self.bytes, follow(self.bytes, self.field(number)?)?)
    }

    /// The items of a vector, each of `size` bytes, and where they begin.
    fn vector(&self, number: usize, size: usize) -> Option<(usize, &'a [u8])> {
        let at = follow(self.bytes, self.field(number)?)?;
        let n = u32::from_le_bytes(array(self.bytes, at)?) as usize;
        let start = at.checked_add(4)?;
        let items = self.bytes.get(start..)?.get(..n.checked_mul(size)?)?;
        Some((start, items))
    }

    /// A vector of structures or numbers of `size` bytes, as bytes.
    pub(super) fn items(
        &self,
        number: usize,
        size: usize,
    ) -> Option<std::slice::ChunksExact<'a, u8>> {
        Some(self.vector(number, size)?.1.chunks_exact(size))
    }

    pub(super) fn text(&self, number: usize) -> Option<&'a str> {
        std::str::from_utf8(self.vector(number, 1)?.1).ok()
    }

    /// A vector of tables; each is none if it is outside the bytes.
    pub(super) fn tables(&self, number: usize) -> Option<impl Iterator<Item = Option<Self>>> {
        let (start, items) = self.vector(number, 4)?;
        let bytes = self.bytes;
        let all = (start..start + items.len()).step_by(4);
        Some(all.map(move |at| Self::at(bytes, follow(bytes, at)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of three fields: the byte 7, nothing, and the text "hi".
    const BYTES: [u8; 36] = [
        16, 0, 0, 0, // the table is at 16
        10, 0, 12, 0, 8, 0, 0, 0, 4, 0, 0, 0, // sizes, then where the fields are
        12, 0, 0, 0, // 12 bytes back to the sizes
        8, 0, 0, 0, // 8 further to the text
        7, 0, 0, 0, // the byte
        2, 0, 0, 0, b'h', b'i', 0, 0,
    ];

    #[test]
    fn fields_are_read() {
        let table = Table::root(&BYTES).unwrap();
        assert_eq!(table.u8(0), Some(7));
        assert_eq!(table.u8(1), None);
        assert_eq!(table.text(2), Some("hi"));
        assert_eq!(table.u8(3), None);
    }

    #[test]
    fn positions_outside_are_nothing() {
        for end in 0..BYTES.len() {
            if let Some(table) = Table::root(&BYTES[..end]) {
                assert!(end >= 20);
                assert_eq!(table.text(2).is_some(), end >= 34, "{end}");
            }
        }
        // Any byte may be anything.
        for at in 0..BYTES.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = BYTES;
                bytes[at] = value;
                if let Some(table) = Table::root(&bytes) {
                    for field in 0..4 {
                        let _ = (table.i64(field), table.text(field), table.table(field));
                        let _ = table.tables(field).map(|all| all.flatten().count());
                        let _ = table.items(field, 16).map(|all| all.count());
                    }
                }
            }
        }
    }
}
