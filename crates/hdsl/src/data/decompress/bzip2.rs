//! The blocks of bzip2 streams.
//!
//! A stream consists of a header, blocks, and an end with a checksum over those of the blocks. Blocks and the end start with a
//! mark of 48 bits, at any bit. No other 48 bits tell where a block ends, so marks are searched for. They occur within a
//! block by chance once in 2⁴⁸ bits, that is, in 35 TB of compressed data; such a file is refused as corrupt.

use super::blocks::{Split, corrupt};
use std::io::{self, Read};

const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
/// Bits of a mark, and of a mark with the checksum that follows it.
const MARK: usize = 48;
const HEAD: usize = MARK + 32;

/// A block has at most 900,000 symbols of at most 20 bits, and code tables of a few kilobytes.
const LONGEST: usize = 3 << 20;

/// Whether a byte can be the one before the byte in which a mark ends. Few can, so that the search rarely compares marks.
const IN_MARK: [bool; 256] = {
    let mut in_mark = [false; 256];
    let mut shift = 0;
    while shift < 8 {
        in_mark[((BLOCK << shift) >> 8 & 0xff) as usize] = true;
        in_mark[((END << shift) >> 8 & 0xff) as usize] = true;
        shift += 1;
    }
    in_mark
};

/// Splits streams, one after the other, into blocks.
pub(super) struct Bzip2Blocks<R> {
    source: R,
    /// What was read of the stream, from the byte in which the next part starts.
    bytes: Vec<u8>,
    /// The bit at which the next part starts.
    at: usize,
    /// The last byte of the header, which is the size of blocks; `None` before a header.
    size: Option<u8>,
    /// The checksum over those of the blocks so far.
    checksum: u32,
}

impl<R: Read> Bzip2Blocks<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            at: 0,
            size: None,
            checksum: 0,
        }
    }

    /// Reads until there are `n_bits` bits after `at`; false if the stream ends before.
    fn fill(&mut self, n_bits: usize) -> io::Result<bool> {
        while self.bytes.len() * 8 < self.at + n_bits {
            if !self.read_more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read_more(&mut self) -> io::Result<bool> {
        let more = self.source.by_ref().take(1 << 16);
        Ok({ more }.read_to_end(&mut self.bytes)? > 0)
    }

    /// The `n` bits from bit `from` on, at most 48.
    fn bits(&self, from: usize, n: usize) -> u64 {
        let bytes = &self.bytes[from / 8..];
        let bytes = &bytes[..bytes.len().min(8)];
        let window = (bytes.iter()).fold(0, |bits: u128, &byte| bits << 8 | u128::from(byte));
        (window >> (bytes.len() * 8 - from % 8 - n)) as u64 & ((1 << n) - 1)
    }

    /// The bit of the next mark after the head of the block at `at`.
    fn next_mark(&mut self) -> io::Result<usize> {
        let first = self.at + HEAD;
        let mut scanned = first / 8;
        let mut window = 0;
        loop {
            for (byte, at) in self.bytes[scanned..].iter().zip(scanned..) {
                window = window << 8 | u64::from(*byte);
                if !IN_MARK[(window >> 8 & 0xff) as usize] {
                    continue;
                }
                for after in 0..8 {
                    let mark = window >> after & ((1 << MARK) - 1);
                    let end = (at + 1) * 8 - after;
                    if (mark == BLOCK || mark == END) && end >= first + MARK {
                        return Ok(end - MARK);
                    }
                }
            }
            scanned = self.bytes.len();
            if scanned > LONGEST {
                return Err(corrupt("a block without an end"));
            }
            if !self.read_more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// A stream of one block, whose bits are given.
    fn stream(&self, size: u8, from: usize, to: usize) -> Vec<u8> {
        let (whole, shift) = ((to - from) / 8, from % 8);
        let bytes = &self.bytes[from / 8..];
        let mut stream = Vec::with_capacity(whole + 16);
        stream.extend([b'B', b'Z', b'h', size]);
        stream.extend((0..whole).map(|i| {
            let next = bytes.get(i + 1).copied().unwrap_or_default();
            (u16::from_be_bytes([bytes[i], next]) << shift >> 8) as u8
        }));
        // The bits that are left, the end, and the checksum, which is the block's.
        let n_left = (to - from) % 8;
        let left = u128::from(self.bits(from + whole * 8, n_left));
        let checksum = self.bits(from + MARK, 32);
        let end = left << HEAD | u128::from(END) << 32 | u128::from(checksum);
        let end = end << (128 - n_left - HEAD);
        stream.extend(&end.to_be_bytes()[..(n_left + HEAD).div_ceil(8)]);
        stream
    }
}

impl<R: Read> Split for Bzip2Blocks<R> {
    /// Runs of 4 to 259 equal bytes are 5 bytes of a block.
    const LARGEST: u64 = 900_000 / 5 * 259;

    fn next_block(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            self.bytes.drain(..self.at / 8);
            self.at %= 8;
            let Some(size) = self.size else {
                if !self.fill(32)? && self.bytes.is_empty() {
                    return Ok(None);
                }
                match self.bytes[..] {
                    [b'B', b'Z', b'h', size @ b'1'..=b'9', ..] => self.size = Some(size),
                    _ => return Err(corrupt("no header where a stream starts")),
                }
                (self.at, self.checksum) = (32, 0);
                continue;
            };
            if !self.fill(HEAD)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let checksum = self.bits(self.at + MARK, 32) as u32;
            match self.bits(self.at, MARK) {
                BLOCK => {
                    let (start, end) = (self.at, self.next_mark()?);
                    self.checksum = self.checksum.rotate_left(1) ^ checksum;
                    self.at = end;
                    return Ok(Some(self.stream(size, start, end)));
                }
                END if checksum == self.checksum => {
                    self.at = (self.at + HEAD).next_multiple_of(8);
                    self.size = None;
                }
                END => return Err(corrupt("the checksum does not match")),
                _ => return Err(corrupt("no block where one starts")),
            }
        }
    }

    fn decode(block: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::with_capacity(1 << 20);
        bzip2::bufread::BzDecoder::new(block).read_to_end(&mut decoded)?;
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::BlockReader;
    use super::*;
    use bzip2::write::BzEncoder;
    use std::io::Write;

    /// Numbers that compress to about half.
    fn digits(n: usize) -> Vec<u8> {
        let mut state = 1u64;
        let digit = |_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            b'0' + (state >> 60) as u8 % 10
        };
        (0..n).map(digit).collect()
    }

    fn compress(bytes: &[u8], size: u32) -> Vec<u8> {
        let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::new(size));
        encoder.write_all(bytes).expect("memory can be written");
        encoder.finish().expect("memory can be written")
    }

    fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        let mut reader = BlockReader::new(Bzip2Blocks::new(bytes));
        reader.read_to_end(&mut decoded)?;
        Ok(decoded)
    }

    #[test]
    fn blocks_are_found_at_every_bit() {
        // Enough blocks that some end at each of the eight bits of a byte.
        let bytes = digits(4_000_000);
        let compressed = compress(&bytes, 1);
        let mut blocks = Bzip2Blocks::new(&compressed[..]);
        let (mut n_blocks, mut bits, mut decoded) = (0, [false; 8], Vec::new());
        while let Some(block) = blocks.next_block().unwrap() {
            decoded.extend(Bzip2Blocks::<&[u8]>::decode(&block).unwrap());
            bits[blocks.at % 8] = true;
            n_blocks += 1;
        }
        assert!(decoded == bytes);
        assert_eq!((n_blocks, bits), (41, [true; 8]));
    }

    #[test]
    fn streams_follow_one_another() {
        let bytes = digits(250_000);
        let streams = [
            compress(&bytes[..120_000], 1),
            compress(b"", 9),
            compress(&bytes[120_000..120_001], 5),
            compress(&bytes[120_001..], 1),
        ];
        assert!(decompress(&streams.concat()).unwrap() == bytes);
    }

    #[test]
    fn damage_is_an_error() {
        let whole = compress(&digits(220_000), 1);
        for cut in [5, 9, 13, 14, 20, whole.len() / 2, whole.len() - 1] {
            let error = decompress(&whole[..cut]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}: {error}");
        }
        // The last bytes are the checksum over those of the blocks.
        for at in [4, 10, 100, whole.len() / 2, whole.len() - 3] {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            assert!(decompress(&damaged).is_err(), "{at}");
        }
        let error = decompress(&[&whole[..], b"more"].concat()).unwrap_err();
        assert_eq!(error.to_string(), "no header where a stream starts");
    }
}
