//! Decoders of compressed files, which the Cargo feature `compression` adds.

use crate::error::Parsed;
use std::io::{BufRead, Read};

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
pub(super) fn decoder<'a>(codec: &str, raw: impl BufRead + Send + 'a) -> Parsed<Bytes<'a>> {
    Ok(match codec {
        "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
        "bzip2" => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
        "xz" => Box::new(lzma_rust2::XzReader::new_mem_limit(raw, true, WINDOW >> 10)),
        _ => Box::new(zstd::ZstdReader::new(raw)),
    })
}

/// Without decoders, an error that names the missing feature.
#[cfg(not(feature = "compression"))]
pub(super) fn decoder<'a>(codec: &str, _: impl BufRead + Send + 'a) -> Parsed<Bytes<'a>> {
    Err(format!(
        "is compressed ({codec}), which hdsl reads only if built with the Cargo feature `compression`; decompress it first"
    ))
}

/// How far back an xz or zstd stream may refer. A header asking for more is refused before memory is set aside.
#[cfg(any(feature = "compression", feature = "columnar"))]
const WINDOW: u32 = 256 << 20;

#[cfg(feature = "columnar")]
pub(super) use zstd::ZstdReader;

#[cfg(any(feature = "compression", feature = "columnar"))]
mod zstd {
    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
    use std::io::{self, BufRead, Read};

    /// All frames of a zstd stream, one after the other, with their checksums compared.
    pub(in crate::data) struct ZstdReader<R> {
        source: R,
        decoder: FrameDecoder,
    }

    impl<R: BufRead> ZstdReader<R> {
        pub(in crate::data) fn new(source: R) -> Self {
            let mut decoder = FrameDecoder::new();
            decoder.set_max_window_size(u64::from(super::WINDOW));
            Self { source, decoder }
        }

        /// Begins the next frame; false at the end of the stream.
        fn next_frame(&mut self) -> io::Result<bool> {
            while !self.source.fill_buf()?.is_empty() {
                match self.decoder.reset(&mut self.source) {
                    Ok(()) => return Ok(true),
                    Err(FrameDecoderError::ReadFrameHeaderError(
                        ReadFrameHeaderError::SkipFrame { length, .. },
                    )) => {
                        let length = u64::from(length);
                        let skipped =
                            io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                        if skipped < length {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                    }
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
            Ok(false)
        }
    }

    impl<R: BufRead> Read for ZstdReader<R> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            while self.decoder.can_collect() == 0 {
                if !self.decoder.is_finished() {
                    self.decoder
                        .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                        .map_err(io::Error::other)?;
                    continue;
                }
                let said = self.decoder.get_checksum_from_data();
                if said.is_some() && said != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::other("the checksum does not match"));
                }
                if !self.next_frame()? {
                    return Ok(0);
                }
            }
            self.decoder.read(buf)
        }
    }
}
