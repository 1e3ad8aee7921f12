//! The columns of a segment in one byte per value, for upper bounds of scores.
//!
//! A column has values of one sign; a coordinate with values of both signs is two columns. The byte q of a value v satisfies
//! (q - 1) scale < |v| <= q scale, and 0 stands for no value. A column that many rows have is dense: a byte for each
//! position, after the largest byte of each block of positions. Others list positions and bytes.

use super::Read;
use super::codec::{SEAL, seal, unseal};
use super::source::Slice;
use crate::data::{Columns, Rows, group_starts};

/// Positions per block of a dense column.
pub(super) const BLOCK: usize = 64;

/// A column is dense if at least one in this many rows has it. Adding a dense column is then faster than adding single
/// entries, at up to 8 / 3 of the bytes.
const DENSE_SHARE: usize = 8;

/// The bytes of the scale in front of the values.
const SCALE: usize = 8;

/// The length of a directory entry.
pub(super) const ENTRY: usize = 16;

/// Where a column is: the end of its bytes, where those of the next one start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    /// The coordinate of mapped rows.
    pub(super) coordinate: u32,
    /// Whether the values are below 0.
    pub(super) is_negative: bool,
    pub(super) is_dense: bool,
    pub(super) end: u64,
}

impl Entry {
    fn put(self, bytes: &mut Vec<u8>) {
        let flags = u32::from(self.is_negative) | u32::from(self.is_dense) << 1;
        bytes.extend(self.coordinate.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
    }

    pub(super) fn get(bytes: &[u8; ENTRY]) -> Self {
        let [coordinate, flags] = [0, 4].map(|at| {
            let four = bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(four)
        });
        Self {
            coordinate,
            is_negative: flags & 1 != 0,
            is_dense: flags & 2 != 0,
            end: u64::from_le_bytes(bytes[8..].try_into().expect("eight bytes")),
        }
    }
}

/// The directory and the columns of mapped rows, which are in the order of positions.
pub(super) fn encode(mapped: &Rows) -> (Vec<u8>, Vec<u8>) {
    let columns = Columns::of(mapped);
    // Two groups per coordinate: values above 0 and below.
    let group = |(&feature, value): (&u32, &f64)| {
        let number = columns
            .number(feature)
            .expect("stored columns are numbered");
        2 * number + u32::from(*value < 0.0)
    };
    let groups = || mapped.indices().iter().zip(mapped.values()).map(group);
    let starts = group_starts(2 * columns.len(), groups());
    let mut next = starts.clone();
    let mut entries = vec![(0u16, 0.0f64); mapped.nnz()];
    let mut groups = groups();
    for (position, row) in mapped.iter().enumerate() {
        for &value in row.values() {
            let group = groups.next().expect("one per value") as usize;
            entries[next[group]] = (position as u16, value.abs());
            next[group] += 1;
        }
    }
    let (mut directory, mut bytes) = (Vec::new(), Vec::new());
    for (group, bounds) in starts.windows(2).enumerate() {
        let entries = &entries[bounds[0]..bounds[1]];
        // A stored 0 adds nothing to any score.
        let largest = entries.iter().fold(0.0f64, |max, entry| max.max(entry.1));
        if largest == 0.0 {
            continue;
        }
        let is_dense = entries.len() * DENSE_SHARE >= mapped.n_rows();
        bytes.extend(seal(&encode_column(
            entries,
            largest,
            is_dense,
            mapped.n_rows(),
        )));
        let entry = Entry {
            coordinate: columns.features()[group / 2],
            is_negative: group % 2 == 1,
            is_dense,
            end: bytes.len() as u64,
        };
        entry.put(&mut directory);
    }
    (directory, bytes)
}

fn encode_column(entries: &[(u16, f64)], largest: f64, is_dense: bool, n_rows: usize) -> Vec<u8> {
    // A little more, so that rounding never makes the quotient of the largest value exceed 255.
    let scale = largest / 255.0 * (1.0 + 1e-12);
    // Among the smallest numbers, quotients are rounded too much.
    let scale = match (254.0..=255.0).contains(&(largest / scale)) {
        true => scale,
        false => largest,
    };
    let quantized = |value: f64| (value / scale).ceil() as u8;
    let mut bytes = scale.to_le_bytes().to_vec();
    if is_dense {
        let mut values = vec![0; n_rows];
        for &(position, value) in entries {
            values[usize::from(position)] = quantized(value);
        }
        let maxima = values
            .chunks(BLOCK)
            .map(|block| block.iter().copied().max());
        bytes.extend(maxima.map(Option::unwrap_or_default));
        bytes.extend(values);
    } else {
        entries
            .iter()
            .for_each(|entry| bytes.extend(entry.0.to_le_bytes()));
        bytes.extend(entries.iter().map(|entry| quantized(entry.1)));
    }
    bytes
}

/// A column that was read.
#[derive(Clone, Debug)]
pub(super) struct Column {
    bytes: Slice,
    is_dense: bool,
    n_blocks: usize,
    pub(super) scale: f64,
}

/// The values of a column.
pub(super) enum Values<'a> {
    /// The largest of each block, and one for each position.
    Dense(&'a [u8], &'a [u8]),
    /// Positions, and their values.
    Sparse(&'a [[u8; 2]], &'a [u8]),
}

impl Column {
    /// Checks the bytes of a column in a segment of so many rows.
    pub(super) fn new(bytes: Slice, is_dense: bool, n_rows: usize) -> Read<Self> {
        let block = unseal(&bytes)?;
        let n_blocks = n_rows.div_ceil(BLOCK);
        let n = block.len().saturating_sub(SCALE);
        let fits = match is_dense {
            true => n == n_blocks + n_rows,
            false => n.is_multiple_of(3),
        };
        let scale = block
            .first_chunk()
            .map_or(0.0, |scale| f64::from_le_bytes(*scale));
        if !(fits && scale.is_finite() && scale > 0.0) {
            return Err("damaged: a column does not fit its segment".into());
        }
        Ok(Self {
            bytes,
            is_dense,
            n_blocks,
            scale,
        })
    }

    /// How many bytes it takes in memory.
    pub(super) fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn values(&self) -> Values<'_> {
        let values = &self.bytes[SEAL + SCALE..];
        if self.is_dense {
            let (maxima, values) = values.split_at(self.n_blocks);
            return Values::Dense(maxima, values);
        }
        let (positions, values) = values.split_at(values.len() / 3 * 2);
        Values::Sparse(positions.as_chunks().0, values)
    }
}
