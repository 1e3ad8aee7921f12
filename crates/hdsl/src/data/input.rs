//! Opening a file, whatever it is compressed with, and handing out its lines.

use crate::error::{Error, Result};
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// How much text is handed out at a time. Pieces of it are parsed in parallel.
const BLOCK: usize = 8 << 20;

/// How far back an xz or zstd stream may refer. A header asking for more is refused before memory is set aside.
const WINDOW: u32 = 256 << 20;

/// A decompressed byte stream with a name for error messages.
pub(crate) struct Input<'a> {
    path: PathBuf,
    reader: Box<dyn Read + Send + 'a>,
    codec: Option<&'static str>,
    /// Read already, not handed out yet.
    ahead: Vec<u8>,
    ended: bool,
    next_line: u64,
}

/// Some whole lines in a row.
pub(crate) struct Block {
    /// The number of the first, counted from 1.
    pub(crate) first_line: u64,
    /// All of them, line ends included (the last line of a file may lack its own).
    pub(crate) bytes: Vec<u8>,
}

impl<'a> Input<'a> {
    /// Opens a file, or standard input if the path is `-`. `want` completes "is empty, expected …".
    pub(crate) fn open(path: &Path, want: &str) -> Result<Input<'static>> {
        let read = |source| Error::Read {
            path: path.to_owned(),
            source,
        };
        if path == Path::new("-") {
            return Input::new(path, BufReader::with_capacity(1 << 16, io::stdin()), want);
        }
        let file = File::open(path).map_err(read)?;
        if file.metadata().map_err(read)?.is_dir() {
            return Err(read(io::ErrorKind::IsADirectory.into()));
        }
        Input::new(path, BufReader::with_capacity(1 << 18, file), want)
    }

    /// Reads from memory; `path` is only a name.
    pub(crate) fn from_bytes(path: &Path, bytes: &'a [u8], want: &str) -> Result<Self> {
        Self::new(path, bytes, want)
    }

    fn new(path: &Path, mut raw: impl BufRead + Send + 'a, want: &str) -> Result<Self> {
        let mut magic = Vec::new();
        raw.by_ref()
            .take(10)
            .read_to_end(&mut magic)
            .map_err(|source| Error::Read {
                path: path.to_owned(),
                source,
            })?;
        if magic.is_empty() {
            return Err(Error::File {
                path: path.to_owned(),
                reason: format!("is empty, expected {want}"),
            });
        }
        let codec = codec_of(&magic);
        let raw = BufReader::with_capacity(1 << 16, Cursor::new(magic).chain(raw));
        let reader: Box<dyn Read + Send + 'a> = match codec {
            None => Box::new(raw),
            Some("gzip") => Box::new(MultiGzDecoder::new(raw)),
            Some("bzip2") => Box::new(MultiBzDecoder::new(raw)),
            Some("xz") => Box::new(XzReader::new_mem_limit(raw, true, WINDOW >> 10)),
            Some(_) => Box::new(ZstdReader::new(raw)),
        };
        let mut input = Self {
            path: path.to_owned(),
            reader,
            codec,
            ahead: Vec::new(),
            ended: false,
            next_line: 1,
        };
        if input.peek(3)?.is_empty() {
            return Err(input.fail(format!("is empty, expected {want}")));
        }
        if input.ahead.starts_with(b"\xEF\xBB\xBF") {
            input.ahead.drain(..3); // a byte order mark, as some editors put before UTF-8
        }
        Ok(input)
    }

    /// The name given at the start.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The first bytes: at least `n`, unless the file is shorter. They will be handed out again.
    pub(crate) fn peek(&mut self, n: usize) -> Result<&[u8]> {
        self.read_ahead(n)?;
        Ok(&self.ahead)
    }

    /// Everything that is left.
    pub(crate) fn read_all(mut self) -> Result<Vec<u8>> {
        self.read_ahead(usize::MAX)?;
        Ok(self.ahead)
    }

    /// The next lines, or `None` at the end.
    pub(crate) fn next_block(&mut self) -> Result<Option<Block>> {
        let mut wanted = BLOCK;
        let end = loop {
            self.read_ahead(wanted)?;
            if self.ended {
                break self.ahead.len();
            }
            if let Some(at) = memchr::memrchr(b'\n', &self.ahead) {
                break at + 1;
            }
            wanted = self.ahead.len().saturating_mul(2);
        };
        if end == 0 {
            return Ok(None);
        }
        let rest = self.ahead.split_off(end);
        let bytes = std::mem::replace(&mut self.ahead, rest);
        let first_line = self.next_line;
        self.next_line += count_lines(&bytes);
        Ok(Some(Block { first_line, bytes }))
    }

    /// Calls `each` with every line and its number; a line comes without its end.
    pub(crate) fn each_line(
        mut self,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        while let Some(block) = self.next_block()? {
            for (line, number) in lines(&block.bytes).zip(block.first_line..) {
                each(number, line)?;
            }
        }
        Ok(())
    }

    /// An error about the file as a whole.
    pub(crate) fn fail(&self, reason: impl Into<String>) -> Error {
        Error::File {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    fn read_ahead(&mut self, wanted: usize) -> Result<()> {
        while !self.ended && self.ahead.len() < wanted {
            let more = (wanted - self.ahead.len()).min(BLOCK) as u64;
            match self.reader.by_ref().take(more).read_to_end(&mut self.ahead) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(source) => {
                    return Err(match self.codec {
                        Some(codec) => {
                            self.fail(format!("truncated or corrupt {codec} data: {source}"))
                        }
                        None => Error::Read {
                            path: self.path.clone(),
                            source,
                        },
                    });
                }
            }
        }
        Ok(())
    }
}

/// The lines of a block, without their ends (`\n` or `\r\n`).
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = match memchr::memchr(b'\n', rest) {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// How many lines [`lines`] would give.
pub(crate) fn count_lines(block: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', block).count() as u64;
    ends + u64::from(block.last().is_some_and(|&b| b != b'\n'))
}

/// A piece of input as it may be shown in a message: short, and without control characters.
pub(crate) fn quote(token: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(&token[..token.len().min(4 * LONGEST)]);
    let mut shown = String::new();
    for c in text.chars().take(LONGEST) {
        match c {
            '\'' | '"' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    if text.chars().count() > LONGEST {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Which compression the first bytes announce; file names may lie.
fn codec_of(magic: &[u8]) -> Option<&'static str> {
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

/// All frames of a zstd stream, one after the other, with their checksums compared.
struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> ZstdReader<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(u64::from(WINDOW));
        Self {
            source,
            decoder,
            in_frame: false,
        }
    }

    /// Begins the next frame; false at the end of the stream.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
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
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                self.in_frame = self.next_frame()?;
                if !self.in_frame {
                    return Ok(0);
                }
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buf);
            }
            if self.decoder.is_finished() {
                let said = self.decoder.get_checksum_from_data();
                if said.is_some() && said != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::other("the checksum does not match"));
                }
                self.in_frame = false;
                continue;
            }
            self.decoder
                .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(io::Error::other)?;
        }
    }
}
