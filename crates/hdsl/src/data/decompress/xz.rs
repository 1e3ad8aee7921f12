//! The blocks of xz streams.
//!
//! A stream consists of a header, blocks, an index with the sizes of the blocks, and a footer. `xz` with several threads,
//! its default since version 5.6, also writes the sizes at the start of each block. Such streams are split. Others, which
//! mostly have one block, are decompressed by one thread.

use super::WINDOW;
use super::blocks::{Split, corrupt};
use lzma_rust2::XzReader;
use std::io::{self, Cursor, Read};

const MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// Bits of the second byte of a block, which say that the sizes follow.
const HAS_SIZES: u8 = 0xc0;

/// The decoder. There is one type of it, because it is large.
type Decoder<'a> = XzReader<Box<dyn Read + Send + 'a>>;

fn decoder<'a>(source: impl Read + Send + 'a) -> Decoder<'a> {
    XzReader::new_mem_limit(Box::new(source), true, WINDOW >> 10)
}

/// Splits streams, one after the other, into blocks.
pub(super) struct XzBlocks<'a, R> {
    /// `None` once `rest` reads it.
    source: Option<R>,
    /// The header of the stream, and the sizes of its blocks so far.
    stream: Option<([u8; 12], Vec<Sizes>)>,
    /// Reads a stream that cannot be split, and all that follow.
    rest: Option<Decoder<'a>>,
}

/// What the index says of a block.
#[derive(Clone, Copy)]
struct Sizes {
    /// The block without its padding.
    compressed: u64,
    expanded: u64,
}

impl<'a, R: Read + Send + 'a> XzBlocks<'a, R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source: Some(source),
            stream: None,
            rest: None,
        }
    }

    /// Reads at the start of a stream: its header, or nothing at the end.
    fn read_header(source: &mut R) -> io::Result<Option<[u8; 12]>> {
        let mut header = [0; 12];
        loop {
            let n = source.by_ref().take(4).read(&mut header[..4])?;
            if n == 0 {
                return Ok(None);
            }
            source.read_exact(&mut header[n..4])?;
            // Streams may be followed by padding.
            if header[..4] != [0; 4] {
                break;
            }
        }
        source.read_exact(&mut header[4..])?;
        match header[..6] == MAGIC && header[8..] == checksum(&header[6..8]) {
            true => Ok(Some(header)),
            false => Err(corrupt("no header where a stream starts")),
        }
    }
}

impl<'a, R: Read + Send + 'a> Split for XzBlocks<'a, R> {
    const LARGEST: u64 = 64 << 20;

    fn next_block(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(source) = &mut self.source else {
            return Ok(None);
        };
        loop {
            let (header, blocks) = match &mut self.stream {
                Some(stream) => stream,
                None => match Self::read_header(source)? {
                    None => return Ok(None),
                    Some(header) => self.stream.insert((header, Vec::new())),
                },
            };
            let mut block = vec![0];
            source.read_exact(&mut block)?;
            if block[0] == 0 {
                // The index.
                let expected = end_of_stream(header, blocks);
                let mut end = vec![0; expected.len()];
                source.read_exact(&mut end[1..])?;
                if end != expected {
                    return Err(corrupt("the index does not match the blocks"));
                }
                self.stream = None;
                continue;
            }
            block.resize((usize::from(block[0]) + 1) * 4, 0);
            source.read_exact(&mut block[1..])?;
            let sizes = sizes_of(&block, header[7]);
            let Some(sizes) =
                sizes.filter(|sizes| sizes.compressed.max(sizes.expanded) <= Self::LARGEST)
            else {
                if !blocks.is_empty() {
                    return Err(corrupt(
                        "a block that has no sizes or is larger than 64 MiB, after one that is not",
                    ));
                }
                let start = Cursor::new([&header[..], &block].concat());
                let rest = self.source.take().map(|source| start.chain(source));
                self.rest = rest.map(decoder);
                return Ok(None);
            };
            let start = block.len();
            block.resize(sizes.compressed.next_multiple_of(4) as usize, 0);
            source.read_exact(&mut block[start..])?;
            blocks.push(sizes);
            return Ok(Some(
                [&header[..], &block, &end_of_stream(header, &[sizes])].concat(),
            ));
        }
    }

    fn decode(block: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        decoder(block).read_to_end(&mut decoded)?;
        Ok(decoded)
    }

    fn read_rest(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.rest.as_mut().map_or(Ok(0), |rest| rest.read(buf))
    }
}

/// The sizes that the header of a block states, if it does. `check` is the kind of checksum after the block.
fn sizes_of(header: &[u8], check: u8) -> Option<Sizes> {
    if header[1] & HAS_SIZES != HAS_SIZES {
        return None;
    }
    let mut rest = &header[2..];
    let (data, expanded) = (take_number(&mut rest)?, take_number(&mut rest)?);
    let check = [0, 4, 8, 16, 32, 64][usize::from(check & 15).div_ceil(3)];
    Some(Sizes {
        compressed: data.checked_add(header.len() as u64 + check)?,
        expanded,
    })
}

/// The index and the footer of a stream with these blocks.
fn end_of_stream(header: &[u8; 12], blocks: &[Sizes]) -> Vec<u8> {
    let mut end = vec![0];
    push_number(&mut end, blocks.len() as u64);
    for block in blocks {
        push_number(&mut end, block.compressed);
        push_number(&mut end, block.expanded);
    }
    end.resize(end.len().next_multiple_of(4), 0);
    end.extend(checksum(&end));
    let size = (end.len() / 4 - 1) as u32;
    let flags = [&size.to_le_bytes()[..], &header[6..8]].concat();
    end.extend(checksum(&flags));
    end.extend(flags);
    end.extend(b"YZ");
    end
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}

/// Takes a number of seven bits per byte, of which the last byte has no eighth bit.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::super::blocks::BlockReader;
    use super::*;
    use lzma_rust2::{XzOptions, XzWriter};
    use std::io::Write;

    const TEXT: &[u8] = b"a 1:1 3:2\nb 2:1 4:1\na 1:2 3:1\nb 2:3 5:1\n";

    /// The text as `xz -T2 --block-size=20 -0` of XZ Utils 5.4.1 compresses it: two blocks with sizes.
    const BLOCKS: &str = "fd377a585a000004e6d6b446\
        02c0181421010c004b1b06240100136120313a3120333a320a6220323a3120343a310a00cd5e1bb6f315a0d6\
        02c0181421010c004b1b06240100136120313a3220333a310a6220323a3320353a310a0036487c4aa618f61c\
        00022c142c140000652178e6b1c467fb020000000004595a";

    fn blocks() -> Vec<u8> {
        let byte = |i| u8::from_str_radix(&BLOCKS[i..i + 2], 16).expect("two digits");
        (0..BLOCKS.len()).step_by(2).map(byte).collect()
    }

    /// One block without sizes.
    fn plain(text: &[u8]) -> Vec<u8> {
        let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).expect("an encoder");
        writer.write_all(text).expect("memory can be written");
        writer.finish().expect("memory can be written")
    }

    fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        BlockReader::new(XzBlocks::new(bytes)).read_to_end(&mut decoded)?;
        Ok(decoded)
    }

    #[test]
    fn blocks_with_sizes_are_split() {
        let compressed = blocks();
        let mut source = XzBlocks::new(&compressed[..]);
        for half in TEXT.chunks(20) {
            let block = source.next_block().unwrap().expect("two blocks");
            assert_eq!(XzBlocks::<'_, &[u8]>::decode(&block).unwrap(), half);
        }
        assert!(source.next_block().unwrap().is_none());
        assert_eq!(decompress(&compressed).unwrap(), TEXT);
    }

    #[test]
    fn streams_follow_one_another() {
        let (blocks, plain, padding) = (blocks(), plain(b"more\n"), [0; 8]);
        let both = [TEXT, b"more\n", TEXT].concat();
        let streams = [&blocks[..], &padding, &plain, &padding, &blocks, &padding].concat();
        assert_eq!(decompress(&streams).unwrap(), both);
        assert_eq!(
            decompress(&[&plain[..], &blocks].concat()).unwrap(),
            both[40..].to_vec()
        );
    }

    #[test]
    fn damage_is_an_error() {
        let whole = blocks();
        for cut in 1..whole.len() {
            let error = decompress(&whole[..cut]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}: {error}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(decompress(&damaged).is_err(), "{at}");
        }
        let cut = [&whole[..12], &whole[56..]].concat();
        let error = decompress(&cut).unwrap_err();
        assert_eq!(error.to_string(), "the index does not match the blocks");
    }

    #[test]
    fn numbers_of_seven_bits() {
        for number in [0, 1, 127, 128, 16_383, 16_384, (1 << 63) - 1] {
            let mut bytes = Vec::new();
            push_number(&mut bytes, number);
            assert_eq!(take_number(&mut &bytes[..]), Some(number));
            assert_eq!(take_number(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(take_number(&mut &[0x80; 20][..]), None);
    }
}
