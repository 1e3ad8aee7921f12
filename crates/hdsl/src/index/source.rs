//! Bytes of an index, in memory or in a file.
//!
//! A file is read at given positions, and only where a search needs it. Mapping it into memory instead would be unsafe: another
//! process could change or truncate it.

use super::Read;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Where the bytes of a segment are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// In memory.
    Memory(Slice),
    /// In a range of a file, which is within the file.
    File { file: Arc<File>, range: Range<u64> },
}

/// A part of shared bytes.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            range: 0..bytes.len(),
            bytes: Arc::new(bytes),
        }
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

impl Source {
    /// How many bytes there are.
    pub(super) fn len(&self) -> u64 {
        match self {
            Source::Memory(slice) => slice.len() as u64,
            Source::File { range, .. } => range.end - range.start,
        }
    }

    /// All bytes of a file.
    pub(super) fn of(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Source::File {
            file: Arc::new(file),
            range: 0..length,
        })
    }

    /// A part of the bytes.
    pub(super) fn part(&self, wanted: Range<u64>) -> Read<Self> {
        if wanted.start > wanted.end || wanted.end > self.len() {
            return Err("truncated or damaged: a part of the index is outside of the file".into());
        }
        Ok(match self {
            Source::Memory(slice) => {
                let start = slice.range.start;
                Source::Memory(Slice {
                    bytes: slice.bytes.clone(),
                    range: start + wanted.start as usize..start + wanted.end as usize,
                })
            }
            Source::File { file, range } => Source::File {
                file: file.clone(),
                range: range.start + wanted.start..range.start + wanted.end,
            },
        })
    }

    /// Some of the bytes. Memory is allocated only if there are so many.
    pub(super) fn read(&self, wanted: Range<u64>) -> Read<Slice> {
        match self.part(wanted)? {
            Source::Memory(slice) => Ok(slice),
            Source::File { file, range } => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                read_exact_at(&file, &mut bytes, range.start)
                    .map_err(|e| format!("cannot read: {e}"))?;
                Ok(bytes.into())
            }
        }
    }
}

/// Fills a buffer with the bytes of a file from an offset on.
#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills a buffer with the bytes of a file from an offset on.
#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buffer = &mut buffer[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
