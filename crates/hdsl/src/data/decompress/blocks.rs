//! Streams of blocks that are decompressed independently, several at a time.

use crate::data::input::reading_limit;
use crate::parallel;
use std::collections::VecDeque;
use std::io::{self, Cursor, Read};

/// Splits a compressed stream into blocks.
pub(super) trait Split {
    /// How many bytes a block expands to at most.
    const LARGEST: u64;

    /// The next block as a compressed stream of its own. `None` at the end, and if the rest cannot be split.
    fn next_block(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Decompresses a block.
    fn decode(block: &[u8]) -> io::Result<Vec<u8>>;

    /// After the last block: decompresses what cannot be split.
    fn read_rest(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

/// Decompresses as many blocks at a time as there are threads, or as the limit on memory allows.
pub(super) struct BlockReader<S> {
    source: S,
    decoded: VecDeque<Cursor<Vec<u8>>>,
}

impl<S: Split> BlockReader<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            decoded: VecDeque::new(),
        }
    }

    /// Decompresses the next blocks; false if there are none.
    fn advance(&mut self) -> io::Result<bool> {
        let fit = usize::try_from(reading_limit() / S::LARGEST).unwrap_or(usize::MAX);
        let mut blocks = Vec::new();
        while blocks.len() < parallel::current_num_threads().min(fit).max(1) {
            match self.source.next_block()? {
                Some(block) => blocks.push(block),
                None => break,
            }
        }
        let decoded = parallel::map(blocks.len(), |at| S::decode(&blocks[at]));
        for block in decoded {
            self.decoded.push_back(Cursor::new(block?));
        }
        Ok(!blocks.is_empty())
    }
}

impl<S: Split> Read for BlockReader<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            while let Some(block) = self.decoded.front_mut() {
                match block.read(buf)? {
                    0 if !buf.is_empty() => self.decoded.pop_front(),
                    n => return Ok(n),
                };
            }
            if !self.advance()? {
                return self.source.read_rest(buf);
            }
        }
    }
}

/// The error of a stream that breaks the rules of its format.
pub(super) fn corrupt(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
