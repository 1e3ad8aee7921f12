//! Whether the sizes in an Arrow IPC file or stream are within it. The decoder allocates what a damaged file asks for.

use crate::error::Parsed;
use arrow_ipc::{RecordBatch, root_as_footer, root_as_message};

/// The first bytes of a file, and its last.
pub(super) const MAGIC: &[u8] = b"ARROW1";

/// Before the length of a message.
const CONTINUES: [u8; 4] = [0xff; 4];

/// More than any of its codecs compresses: zstd makes 128 KiB of three bytes at best.
const HIGHEST_RATIO: u64 = 1 << 16;

/// The largest buffer, which no sensible file has.
const LARGEST: u64 = 1 << 32;

/// Rows that a batch without any bytes may have.
const NULL_ROWS: u64 = 1 << 16;

fn wrong<T>() -> Parsed<T> {
    Err("its parts do not fit together".into())
}

/// Checks all messages.
pub(super) fn check(bytes: &[u8]) -> Parsed<()> {
    match bytes.strip_prefix(MAGIC) {
        Some(_) => check_file(bytes),
        None => check_stream(bytes),
    }
}

fn check_file(bytes: &[u8]) -> Parsed<()> {
    let Some(before) = bytes.strip_suffix(MAGIC) else {
        return Err("it does not end as such a file does".into());
    };
    let footer = before.split_last_chunk().and_then(|(before, length)| {
        let length = usize::try_from(i32::from_le_bytes(*length)).ok()?;
        before.get(before.len().checked_sub(length)?..)
    });
    let Some(Ok(footer)) = footer.map(root_as_footer) else {
        return wrong();
    };
    let lists = [footer.dictionaries(), footer.recordBatches()];
    for block in lists.iter().flatten().flatten() {
        let part = |start: i64, length: i64| {
            let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
            bytes.get(start..start.checked_add(length)?)
        };
        let (offset, length) = (block.offset(), i64::from(block.metaDataLength()));
        let message = part(offset, length);
        let body = part(offset.saturating_add(length), block.bodyLength());
        let (Some(message), Some(body)) = (message, body) else {
            return wrong();
        };
        let message = message.strip_prefix(&CONTINUES).unwrap_or(message);
        check_message(message.get(4..).unwrap_or_default(), body)?;
    }
    Ok(())
}

fn check_stream(mut rest: &[u8]) -> Parsed<()> {
    loop {
        rest = rest.strip_prefix(&CONTINUES).unwrap_or(rest);
        let Some((length, after)) = rest.split_first_chunk() else {
            return Ok(());
        };
        let length = i32::from_le_bytes(*length);
        if length == 0 {
            return Ok(());
        }
        let split = usize::try_from(length).ok();
        let Some((message, after)) = split.and_then(|n| after.split_at_checked(n)) else {
            return wrong();
        };
        let Ok(head) = root_as_message(message) else {
            return wrong();
        };
        let split = usize::try_from(head.bodyLength()).ok();
        let Some((body, after)) = split.and_then(|n| after.split_at_checked(n)) else {
            return wrong();
        };
        check_message(message, body)?;
        rest = after;
    }
}

fn check_message(message: &[u8], body: &[u8]) -> Parsed<()> {
    let Ok(message) = root_as_message(message) else {
        return wrong();
    };
    let dictionary = message.header_as_dictionary_batch();
    let batch = message
        .header_as_record_batch()
        .or_else(|| dictionary?.data());
    batch.map_or(Ok(()), |batch| check_batch(batch, body))
}

fn check_batch(batch: RecordBatch<'_>, body: &[u8]) -> Parsed<()> {
    let is_compressed = batch.compression().is_some();
    let mut total = 0u64;
    for buffer in batch.buffers().iter().flatten() {
        let start = usize::try_from(buffer.offset()).ok();
        let length = usize::try_from(buffer.length()).ok();
        let range = start.zip(length).and_then(|(start, length)| {
            let end = start.checked_add(length)?;
            body.get(start..end)
        });
        let Some(bytes) = range else {
            return wrong();
        };
        let stored = bytes.len() as u64;
        let size = match bytes.first_chunk() {
            // -1: stored as it is.
            Some(size) if is_compressed => {
                u64::try_from(i64::from_le_bytes(*size)).unwrap_or(stored)
            }
            _ => stored,
        };
        if size > stored.saturating_mul(HIGHEST_RATIO).min(LARGEST) {
            return Err(format!("a buffer of {stored} bytes claims to have {size}"));
        }
        total += size;
    }
    // A value takes a bit at least, unless it is always null.
    match u64::try_from(batch.length()) {
        Ok(n) if n <= total.saturating_mul(8) + NULL_ROWS => Ok(()),
        _ => wrong(),
    }
}
