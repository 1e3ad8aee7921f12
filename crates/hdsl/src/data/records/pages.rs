//! How much memory the pages of a Parquet file take, before any of them is decoded.
//!
//! The decoder allocates what the header of a page says, and expands data of some codecs to their end whatever the header
//! says. A file of a few kilobytes may therefore ask for gigabytes. Headers are structures of Thrift's compact protocol.

use crate::error::Parsed;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use std::io::Read;

/// Bytes that gzip and lz4 make of one byte at most.
const GZIP_RATIO: u64 = 1032;
const LZ4_RATIO: u64 = 255;

/// A page that is a dictionary.
const DICTIONARY: i64 = 2;

/// Upper bounds on the memory of pages.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Pages {
    /// What headers say: the dictionary and the largest page of all columns that are decoded at the same time.
    pub(super) size: u64,
    /// What the data of one page expand to at most. The decoder stops after the first that is not what its header says.
    pub(super) expanded: u64,
    /// The largest dictionary. Any value may be all of it.
    pub(super) dictionary: u64,
}

/// The bounds for a whole file, or an error if headers cannot be read. Bounds above `limit` need not be exact.
pub(super) fn bounds(bytes: &[u8], metadata: &ParquetMetaData, limit: u64) -> Parsed<Pages> {
    let mut all = Pages::default();
    for group in metadata.row_groups() {
        let mut size = 0u64;
        for column in group.columns() {
            let (start, length) = column.byte_range();
            let part = usize::try_from(start).ok().and_then(|start| {
                let end = start.checked_add(usize::try_from(length).ok()?)?;
                bytes.get(start..end)
            });
            let part = part.ok_or("a column is not within the file")?;
            let pages = column_bounds(part, column.compression(), limit)?;
            size = size.saturating_add(pages.size);
            all.expanded = all.expanded.max(pages.expanded);
            all.dictionary = all.dictionary.max(pages.dictionary);
        }
        all.size = all.size.max(size);
    }
    Ok(all)
}

fn column_bounds(mut rest: &[u8], codec: Compression, limit: u64) -> Parsed<Pages> {
    let (mut dictionary, mut largest, mut most) = (0u64, 0u64, 0u64);
    while !rest.is_empty() {
        let mut header = Thrift { rest, depth: 0 };
        let fields = header.page_header().ok_or("a page has no valid header")?;
        let [kind, uncompressed, compressed] = fields;
        let sizes = (u64::try_from(uncompressed), usize::try_from(compressed));
        let (Ok(uncompressed), Ok(compressed)) = sizes else {
            return Err("the header of a page has a negative size".into());
        };
        let data = header.rest.get(..compressed);
        let data = data.ok_or("a page is not within its column")?;
        rest = &header.rest[compressed..];
        most = most.max(expanded(data, codec, limit));
        match kind == DICTIONARY {
            true => dictionary = dictionary.max(uncompressed),
            false => largest = largest.max(uncompressed),
        }
    }
    Ok(Pages {
        size: dictionary.saturating_add(largest),
        expanded: most,
        dictionary,
    })
}

/// An upper bound on what the data of a page expand to. Parts that are not compressed only make it larger.
fn expanded(data: &[u8], codec: Compression, limit: u64) -> u64 {
    let n = data.len() as u64;
    match codec {
        Compression::GZIP(_) if n.saturating_mul(GZIP_RATIO) > limit => {
            // Expanded once to count; in a page of the second version, the compressed part comes after others.
            let start = data.windows(3).position(|w| w == [0x1f, 0x8b, 8]);
            let mut out = flate2::read::MultiGzDecoder::new(&data[start.unwrap_or(0)..]);
            let mut counted = out.by_ref().take(limit.saturating_add(1));
            let mut sink = std::io::sink();
            // Where the data are damaged, the decoder ends as well.
            let _ = std::io::copy(&mut counted, &mut sink);
            n.saturating_add(limit.saturating_add(1) - counted.limit())
        }
        Compression::GZIP(_) => n.saturating_mul(GZIP_RATIO),
        Compression::LZ4 => n.saturating_mul(LZ4_RATIO),
        // These write into as much space as the header says.
        _ => n,
    }
}

/// Bytes in Thrift's compact protocol.
struct Thrift<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl Thrift<'_> {
    /// The first three fields of the header of a page: its kind, and its sizes before and after compression.
    fn page_header(&mut self) -> Option<[i64; 3]> {
        let mut found = [None; 3];
        let mut number = 0i64;
        loop {
            let kind = match self.field(&mut number)? {
                None => break,
                Some(kind) => kind,
            };
            match (number, kind) {
                (1..=3, 5) => found[number as usize - 1] = Some(self.integer()?),
                _ => self.skip(kind)?,
            }
        }
        let [kind, uncompressed, compressed] = found;
        Some([kind?, uncompressed?, compressed?])
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number with its sign in the lowest bit.
    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The type of the next field of a structure, whose number is stored in `number`; no type at its end.
    fn field(&mut self, number: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *number = match byte >> 4 {
            0 => self.integer()?,
            more => number.checked_add(i64::from(more))?,
        };
        Some(Some(byte & 0x0f))
    }

    fn skip(&mut self, kind: u8) -> Option<()> {
        self.depth += 1;
        if self.depth > 16 {
            return None;
        }
        match kind {
            1 | 2 => {}
            3 => _ = self.byte()?,
            4..=6 => _ = self.varint()?,
            7 => self.bytes(8)?,
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.bytes(length)?;
            }
            9 | 10 => {
                let byte = self.byte()?;
                let n = match byte >> 4 {
                    15 => self.varint()?,
                    n => u64::from(n),
                };
                for _ in 0..n {
                    match byte & 0x0f {
                        // In a list, even these take a byte each.
                        1 | 2 => _ = self.byte()?,
                        kind => self.skip(kind)?,
                    }
                }
            }
            12 => {
                let mut number = 0;
                while let Some(kind) = self.field(&mut number)? {
                    self.skip(kind)?;
                }
            }
            _ => return None,
        }
        self.depth -= 1;
        Some(())
    }

    fn bytes(&mut self, n: usize) -> Option<()> {
        self.rest = self.rest.get(n..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        // A data page of 300 bytes, 20 compressed, with a nested structure, and what comes after it.
        let header = [
            0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x28, 0x2c, 0x15, 0x02, 0x11, 0x00, 0x00,
        ];
        let mut thrift = Thrift {
            rest: &[&header[..], b"after"].concat(),
            depth: 0,
        };
        assert_eq!(thrift.page_header(), Some([0, 300, 20]));
        assert_eq!(thrift.rest, b"after");
        for end in 0..header.len() {
            let mut thrift = Thrift {
                rest: &header[..end],
                depth: 0,
            };
            assert_eq!(thrift.page_header(), None, "{end}");
        }
    }

    /// A column of one long text, compressed with gzip, and what is known about its pages.
    #[test]
    fn what_gzip_makes_is_counted() {
        use arrow_array::{ArrayRef, RecordBatch, StringArray};
        use parquet::arrow::ArrowWriter;
        use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
        use parquet::file::properties::WriterProperties;
        use std::sync::Arc;
        let text = "a".repeat(1 << 20);
        let column: ArrayRef = Arc::new(StringArray::from(vec![text.as_str()]));
        let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(Default::default()))
            .set_dictionary_enabled(false)
            .build();
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        let file = bytes::Bytes::from(bytes.clone());
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let pages = bounds(&bytes, builder.metadata(), 100_000).unwrap();
        assert!(pages.expanded > 100_000, "{pages:?}");
        assert!((1 << 20..1 << 21).contains(&pages.size), "{pages:?}");
        assert_eq!(pages.dictionary, 0);
        let pages = bounds(&bytes, builder.metadata(), 2 << 20).unwrap();
        assert!((1 << 20..2 << 20).contains(&pages.expanded), "{pages:?}");
        // A file that ends too early.
        assert!(bounds(&bytes[..100], builder.metadata(), 1 << 30).is_err());
    }
}
