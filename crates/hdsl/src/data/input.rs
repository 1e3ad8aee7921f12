//! Input files: opened, decompressed, and handed out line by line.

use super::decompress::{self, Bytes, Raw};
use crate::error::{Error, Parsed, Result};
use crate::format::bytes;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How much text is handed out at a time. Pieces of it are parsed in parallel.
const BLOCK: usize = 8 << 20;

/// The longest line that is accepted, unless the limit on memory is lower.
const LONGEST_LINE: u64 = 1 << 30;

/// Bytes that reading one file may take.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets how many bytes the contents of one file may take in memory: a file that needs more is refused with an error that
/// names the limit. It holds for the whole process. Without it, only the length of a line is limited.
pub fn limit_reading(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// The limit on the contents of one file.
pub(crate) fn reading_limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Refuses contents that take more memory than the limit.
pub(crate) fn check_size(path: &Path, needed: u64) -> Result<()> {
    let limit = reading_limit();
    match needed > limit {
        true => Err(Error::file(
            path,
            format!(
                "its contents need more than {} of memory, which is the limit (see --memory)",
                bytes(limit)
            ),
        )),
        false => Ok(()),
    }
}

/// A decompressed byte stream with a name for error messages.
pub(crate) struct Input<'a> {
    path: PathBuf,
    reader: Bytes<'a>,
    codec: Option<&'static str>,
    /// Read already, not handed out yet.
    ahead: Vec<u8>,
    ended: bool,
    /// Lines handed out so far.
    n_lines: u64,
    /// Bytes read so far, after decompression.
    n_bytes: u64,
}

impl<'a> Input<'a> {
    /// Opens a file, or standard input if the path is `-`. `want` completes "is empty, expected …".
    pub(crate) fn open(path: &Path, want: &str) -> Result<Input<'static>> {
        if path == Path::new("-") {
            return Input::new(path, BufReader::with_capacity(1 << 16, io::stdin()), want);
        }
        let file = File::open(path).map_err(|source| Error::read(path, source))?;
        Input::new(path, BufReader::with_capacity(1 << 18, file), want)
    }

    /// Reads a stream; `path` is only a name.
    pub(crate) fn new(path: &Path, raw: impl BufRead + Send + 'a, want: &str) -> Result<Self> {
        Self::of(path, Box::new(raw), want)
    }

    fn of(path: &Path, mut raw: Raw<'a>, want: &str) -> Result<Self> {
        let mut magic = Vec::new();
        raw.by_ref()
            .take(10)
            .read_to_end(&mut magic)
            .map_err(|source| Error::read(path, source))?;
        let codec = decompress::codec_of(&magic);
        let raw = BufReader::with_capacity(1 << 16, Cursor::new(magic).chain(raw));
        let reader: Bytes<'a> = match codec {
            None => Box::new(raw),
            Some(codec) => decompress::decoder(codec, Box::new(raw))
                .map_err(|reason| Error::file(path, reason))?,
        };
        let mut input = Self {
            path: path.to_owned(),
            reader,
            codec,
            ahead: Vec::new(),
            ended: false,
            n_lines: 0,
            n_bytes: 0,
        };
        if input.peek(3)?.is_empty() {
            return Err(Error::file(path, format!("is empty, expected {want}")));
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
        while !self.ended {
            self.read_ahead(self.ahead.len() + BLOCK)?;
            // A vector that grows may be copied.
            check_size(&self.path, self.ahead.len() as u64)?;
        }
        Ok(self.ahead)
    }

    /// Refuses a stream that is longer than the limit on memory: one that was compressed, or has no known end.
    pub(crate) fn check_length(&self) -> Result<()> {
        match self.codec.is_some() || self.path == Path::new("-") {
            true => check_size(&self.path, self.n_bytes),
            false => Ok(()),
        }
    }

    /// Some bytes, about `n`; none at the end.
    pub(crate) fn next_chunk(&mut self, n: usize) -> Result<Vec<u8>> {
        self.read_ahead(n)?;
        self.check_length()?;
        Ok(std::mem::take(&mut self.ahead))
    }

    /// Some whole lines, ends included (the last line of a file may lack its own), or `None` at the end.
    pub(crate) fn next_block(&mut self) -> Result<Option<Vec<u8>>> {
        let mut wanted = BLOCK;
        let end = loop {
            self.read_ahead(wanted)?;
            if self.ended {
                break self.ahead.len();
            }
            if let Some(at) = memchr::memrchr(b'\n', &self.ahead) {
                break at + 1;
            }
            let longest = LONGEST_LINE.min(reading_limit() / 4);
            if self.ahead.len() as u64 > longest {
                let reason = format!(
                    "the line is longer than {}, which is the limit (see --memory)",
                    bytes(longest)
                );
                return Err(Error::parse(&self.path, self.n_lines + 1, reason));
            }
            wanted = self.ahead.len().saturating_mul(2);
        };
        if end == 0 {
            return Ok(None);
        }
        let rest = self.ahead.split_off(end);
        let block = std::mem::replace(&mut self.ahead, rest);
        self.n_lines += count_lines(&block);
        Ok(Some(block))
    }

    /// Calls `each` with the number and the content of every line, without its end. What `each` says is wrong becomes
    /// an error with the file's name and the line.
    pub(crate) fn each_line(self, mut each: impl FnMut(u64, &[u8]) -> Parsed<()>) -> Result<()> {
        self.pass_lines(&mut each)
    }

    fn pass_lines(mut self, each: &mut dyn FnMut(u64, &[u8]) -> Parsed<()>) -> Result<()> {
        let mut number = 0;
        while let Some(block) = self.next_block()? {
            check_size(&self.path, self.n_bytes)?;
            for line in lines(&block) {
                number += 1;
                each(number, line).map_err(|reason| Error::parse(&self.path, number, reason))?;
            }
        }
        Ok(())
    }

    fn read_ahead(&mut self, wanted: usize) -> Result<()> {
        while !self.ended && self.ahead.len() < wanted {
            let more = (wanted - self.ahead.len()).min(BLOCK) as u64;
            match self.reader.by_ref().take(more).read_to_end(&mut self.ahead) {
                Ok(0) => self.ended = true,
                Ok(n) => self.n_bytes += n as u64,
                Err(source) => {
                    return Err(match self.codec {
                        Some(codec) => {
                            let reason = format!("truncated or corrupt {codec} data: {source}");
                            Error::file(&self.path, reason)
                        }
                        None => Error::read(&self.path, source),
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
