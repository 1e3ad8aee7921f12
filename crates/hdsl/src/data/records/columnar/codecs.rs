//! Decompression into a known number of bytes and never more.

use crate::data::decompress::{Raw, ZstdReader};
use crate::error::Parsed;
use std::io::Read;

/// How some bytes are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Codec {
    None,
    Snappy,
    Gzip,
    /// Parquet's first form of lz4, which three programs wrote in three ways.
    OldLz4,
    Lz4Block,
    Lz4Frame,
    Zstd,
}

/// Bytes that one byte becomes at most, by the definition of the format.
const SNAPPY_RATIO: usize = 64;
const LZ4_RATIO: usize = 255;

const DAMAGED: &str = "its compressed data are damaged";
const WRONG_SIZE: &str = "its data expand to another size than it says";

/// The `size` bytes that were compressed.
pub(super) fn decompress(codec: Codec, data: &[u8], size: usize) -> Parsed<Vec<u8>> {
    let raw = || -> Raw<'_> { Box::new(data) };
    match codec {
        Codec::None if data.len() == size => Ok(data.to_vec()),
        Codec::None => Err(WRONG_SIZE.into()),
        Codec::Snappy => {
            if snap::raw::decompress_len(data).ok() != Some(size) {
                return Err(WRONG_SIZE.into());
            }
            let into = &mut space(data, size, SNAPPY_RATIO)?;
            let n = snap::raw::Decoder::new().decompress(data, into);
            filled(n.ok(), into)
        }
        Codec::Lz4Block => lz4_block(data, size),
        Codec::OldLz4 => lz4_hadoop(data, size)
            .or_else(|_| lz4_frame(data, size))
            .or_else(|_| lz4_block(data, size)),
        Codec::Lz4Frame => lz4_frame(data, size),
        Codec::Gzip => stream(&mut flate2::bufread::MultiGzDecoder::new(raw()), size),
        Codec::Zstd => stream(&mut ZstdReader::new(raw()), size),
    }
}

/// Room for the result, which is set aside only if it can be filled.
fn space(data: &[u8], size: usize, ratio: usize) -> Parsed<Vec<u8>> {
    match size > data.len().saturating_mul(ratio) {
        true => Err(WRONG_SIZE.into()),
        false => Ok(vec![0; size]),
    }
}

fn filled(n: Option<usize>, into: &mut Vec<u8>) -> Parsed<Vec<u8>> {
    match n {
        Some(n) if n == into.len() => Ok(std::mem::take(into)),
        Some(_) => Err(WRONG_SIZE.into()),
        None => Err(DAMAGED.into()),
    }
}

fn lz4_block(data: &[u8], size: usize) -> Parsed<Vec<u8>> {
    let into = &mut space(data, size, LZ4_RATIO)?;
    let n = lz4_flex::block::decompress_into(data, into);
    filled(n.ok(), into)
}

fn lz4_frame(data: &[u8], size: usize) -> Parsed<Vec<u8>> {
    stream(&mut lz4_flex::frame::FrameDecoder::new(data), size)
}

/// Blocks, each after its sizes before and after compression, the most significant byte first.
fn lz4_hadoop(mut data: &[u8], size: usize) -> Parsed<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((sizes, rest)) = data.split_first_chunk::<8>() {
        let [a, b, c, d, e, f, g, h] = sizes.map(usize::from);
        let expanded = a << 24 | b << 16 | c << 8 | d;
        let (block, rest) = rest
            .split_at_checked(e << 24 | f << 16 | g << 8 | h)
            .ok_or(DAMAGED)?;
        if expanded > size - all.len() {
            return Err(WRONG_SIZE.into());
        }
        all.extend(lz4_block(block, expanded)?);
        data = rest;
    }
    match all.len() == size && data.is_empty() {
        true => Ok(all),
        false => Err(WRONG_SIZE.into()),
    }
}

fn stream(decoder: &mut dyn Read, size: usize) -> Parsed<Vec<u8>> {
    let mut all = Vec::with_capacity(size.min(1 << 20));
    let read = (&mut *decoder).take(size as u64).read_to_end(&mut all);
    // One byte more would be too many.
    let more = read.and_then(|_| decoder.read(&mut [0]));
    match more {
        Ok(0) if all.len() == size => Ok(all),
        Ok(_) => Err(WRONG_SIZE.into()),
        Err(_) => Err(DAMAGED.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn compressed(codec: Codec, plain: &[u8]) -> Vec<u8> {
        match codec {
            Codec::None => plain.to_vec(),
            Codec::Snappy => snap::raw::Encoder::new().compress_vec(plain).unwrap(),
            Codec::Lz4Block => lz4_flex::block::compress(plain),
            Codec::OldLz4 => {
                let (first, second) = plain.split_at(plain.len() / 2);
                let block = |part: &[u8]| {
                    let block = lz4_flex::block::compress(part);
                    let sizes = [part.len() as u32, block.len() as u32];
                    [sizes.map(u32::to_be_bytes).concat(), block].concat()
                };
                [block(first), block(second)].concat()
            }
            Codec::Lz4Frame => {
                let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
                out.write_all(plain).unwrap();
                out.finish().unwrap()
            }
            Codec::Gzip => {
                let level = flate2::Compression::default();
                let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
                out.write_all(plain).unwrap();
                out.finish().unwrap()
            }
            Codec::Zstd => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                ruzstd::encoding::compress_to_vec(plain, level)
            }
        }
    }

    #[test]
    fn bytes_come_back_and_never_more() {
        let plain = b"some words, and some words again. ".repeat(500);
        for codec in [
            Codec::None,
            Codec::Snappy,
            Codec::Gzip,
            Codec::OldLz4,
            Codec::Lz4Block,
            Codec::Lz4Frame,
            Codec::Zstd,
        ] {
            let data = compressed(codec, &plain);
            let n = plain.len();
            assert_eq!(decompress(codec, &data, n).unwrap(), plain, "{codec:?}");
            for size in [0, 1, n - 1, n + 1, 2 * n, usize::MAX] {
                assert!(decompress(codec, &data, size).is_err(), "{codec:?} {size}");
            }
            for end in [0, 1, 7, 8, 20, data.len() / 2, data.len() - 5] {
                assert!(
                    decompress(codec, &data[..end], n).is_err(),
                    "{codec:?} {end}"
                );
            }
        }
        // The two other forms of the old lz4.
        for codec in [Codec::Lz4Block, Codec::Lz4Frame] {
            let data = compressed(codec, &plain);
            assert_eq!(
                decompress(Codec::OldLz4, &data, plain.len()).unwrap(),
                plain
            );
        }
    }
}
