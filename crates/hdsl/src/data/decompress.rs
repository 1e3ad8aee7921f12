//! Decoders of compressed files, which the Cargo feature `compression` adds.

#[cfg(feature = "compression")]
mod blocks;
#[cfg(feature = "compression")]
mod bzip2;
#[cfg(feature = "compression")]
mod xz;
#[cfg(any(feature = "compression", feature = "columnar"))]
mod zstd;

use crate::error::Parsed;
use std::io::{BufRead, Read};
#[cfg(feature = "compression")]
use {self::bzip2::Bzip2Blocks, blocks::BlockReader, xz::XzBlocks};

/// A stream of bytes as it is in a file. The decoders are large: they are compiled for this type only.
pub(super) type Raw<'a> = Box<dyn BufRead + Send + 'a>;

/// A stream of bytes, decompressed.
pub(super) type Bytes<'a> = Box<dyn Read + Send + 'a>;

/// Which compression the first bytes announce; file names may lie.
pub(super) fn codec_of(magic: &[u8]) -> Option<&'static str> {
    let bzip2_block = |rest: &[u8]| {
        let n = rest.len().min(6);
        rest[..n] == b"1AY&SY"[..n] || rest[..n] == b"\x17\x72\x45\x38\x50\x90"[..n]
    };
    match magic {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if bzip2_block(rest) => Some("bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some("zstd"),
        _ => None,
    }
}

/// The decoder of a compression that [`codec_of`] recognized, or what is wrong.
#[cfg(feature = "compression")]
pub(super) fn decoder<'a>(codec: &str, raw: Raw<'a>) -> Parsed<Bytes<'a>> {
    Ok(match codec {
        "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
        "bzip2" => Box::new(BlockReader::new(Bzip2Blocks::new(raw))),
        "xz" => Box::new(BlockReader::new(XzBlocks::new(raw))),
        _ => Box::new(zstd::ZstdReader::new(raw)),
    })
}

/// Without decoders, an error that names the missing feature.
#[cfg(not(feature = "compression"))]
pub(super) fn decoder<'a>(codec: &str, _: Raw<'a>) -> Parsed<Bytes<'a>> {
    Err(format!(
        "is compressed ({codec}), which hdsl reads only if built with the Cargo feature `compression`; decompress it first"
    ))
}

/// How far back an xz or zstd stream may refer. A header asking for more is refused before memory is set aside.
#[cfg(any(feature = "compression", feature = "columnar"))]
const WINDOW: u32 = 256 << 20;

#[cfg(feature = "columnar")]
pub(super) use zstd::ZstdReader;
