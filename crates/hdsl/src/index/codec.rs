//! Numbers and texts as bytes, and back with checks.

use super::Read;
use crate::data::{Rows, SparseRow};

/// Appends a whole number in groups of seven bits, the lowest first.
pub(super) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a text, or that there is none.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => put_number(bytes, 0),
        Some(text) => {
            put_number(bytes, text.len() as u64 + 1);
            bytes.extend_from_slice(text.as_bytes());
        }
    }
}

/// How the values of a row are stored.
const DISTINCT: u8 = 0;
const EACH: u8 = 1;

/// Appends a row: the features as differences, and then either the distinct values and one byte per feature, or all values,
/// whichever is shorter. Values keep all their bits.
pub(super) fn put_row(bytes: &mut Vec<u8>, row: SparseRow<'_>) {
    put_number(bytes, row.nnz() as u64);
    let mut next = 0;
    for &feature in row.indices() {
        put_number(bytes, u64::from(feature - next));
        next = feature.saturating_add(1);
    }
    let mut distinct: Vec<u64> = row.values().iter().map(|value| value.to_bits()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() <= 255 && 1 + 8 * distinct.len() + row.nnz() < 8 * row.nnz() {
        bytes.extend([DISTINCT, distinct.len() as u8]);
        distinct
            .iter()
            .for_each(|bits| bytes.extend(bits.to_le_bytes()));
        let code = |value: &f64| {
            distinct
                .binary_search(&value.to_bits())
                .expect("it is one of them")
        };
        bytes.extend(row.values().iter().map(|value| code(value) as u8));
    } else {
        bytes.push(EACH);
        row.values()
            .iter()
            .for_each(|value| bytes.extend(value.to_le_bytes()));
    }
}

/// Reads what the functions above wrote.
pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(super) fn take(&mut self, n: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or("damaged: a record ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("so many bytes were taken"))
    }

    pub(super) fn u32(&mut self) -> Read<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Read<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn number(&mut self) -> Read<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err("damaged: a number is too large".into())
    }

    pub(super) fn text(&mut self) -> Read<Option<&'a str>> {
        let Some(n) = self.number()?.checked_sub(1) else {
            return Ok(None);
        };
        let bytes = self.take(usize::try_from(n).unwrap_or(usize::MAX))?;
        let text = std::str::from_utf8(bytes).map_err(|_| "damaged: a text is not UTF-8")?;
        Ok(Some(text))
    }

    /// Appends a row to others with as many features.
    pub(super) fn row(&mut self, rows: &mut Rows) -> Read<()> {
        let n = self.number()?;
        // A feature takes at least one byte, so no more is allocated than the record is long.
        if n > self.0.len() as u64 {
            return Err("damaged: a row is longer than its record".into());
        }
        let (mut features, mut next) = (Vec::with_capacity(n as usize), 0u64);
        for _ in 0..n {
            let feature = next.saturating_add(self.number()?);
            if feature >= rows.n_features() as u64 {
                return Err(format!(
                    "damaged: a row has feature {feature}, but there are {}",
                    rows.n_features()
                ));
            }
            features.push(feature as u32);
            next = feature + 1;
        }
        let values = self.values(features.len())?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err("damaged: a row has a value that is not finite".into());
        }
        rows.push(SparseRow::new(&features, &values));
        Ok(())
    }

    fn values(&mut self, n: usize) -> Read<Vec<f64>> {
        let [kind] = self.array()?;
        match kind {
            DISTINCT => {
                let [n_distinct] = self.array()?;
                let distinct = self.take(8 * usize::from(n_distinct))?.as_chunks::<8>().0;
                let value = |&code: &u8| {
                    let bytes = distinct.get(usize::from(code));
                    let bytes = bytes.ok_or("damaged: a value has no code")?;
                    Ok(f64::from_le_bytes(*bytes))
                };
                self.take(n)?.iter().map(value).collect()
            }
            EACH => {
                let bytes = self.take(n.saturating_mul(8))?;
                let values = bytes.as_chunks::<8>().0.iter();
                Ok(values.map(|bytes| f64::from_le_bytes(*bytes)).collect())
            }
            _ => Err(format!("damaged: values of kind {kind}")),
        }
    }
}

/// A block of bytes with its CRC-32 in front of it.
pub(super) fn seal(block: &[u8]) -> Vec<u8> {
    let mut bytes = crc32fast::hash(block).to_le_bytes().to_vec();
    bytes.extend_from_slice(block);
    bytes
}

/// The length of a checksum.
pub(super) const SEAL: usize = 4;

/// The block behind its checksum. A fuzzer would hardly ever find a right one, so it is not compared there.
pub(super) fn unseal(bytes: &[u8]) -> Read<&[u8]> {
    let (sum, block) = bytes
        .split_first_chunk::<SEAL>()
        .ok_or("damaged: no checksum")?;
    match u32::from_le_bytes(*sum) == crc32fast::hash(block) || cfg!(fuzzing) {
        true => Ok(block),
        false => Err("checksum mismatch: the file is damaged".into()),
    }
}

/// A hash of an id that is the same on every machine: FNV-1a with 64 bits.
pub(super) fn hash(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
