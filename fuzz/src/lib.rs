//! What the targets share.

use hdsl::{Format, IndexBase, ReadOptions, parse_dataset};

/// Whether these bytes might be taken for compressed data.
///
/// The target `compressed` covers those. Elsewhere they would only draw the fuzzer into the decoders.
pub fn looks_compressed(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0x1f, 0x8b, ..]
            | [b'B', b'Z', b'h', ..]
            | [0xfd, b'7', ..]
            | [0x28, 0xb5, ..]
            | [_, 0x2a, 0x4d, 0x18, ..]
    )
}

/// Reads bytes as a file of one format, with the index base found and given.
pub fn read_as(format: Format, bytes: &[u8]) {
    if looks_compressed(bytes) {
        return;
    }
    for index_base in [None, Some(IndexBase::One)] {
        let options = ReadOptions {
            format: Some(format),
            index_base,
            ..ReadOptions::default()
        };
        let _ = parse_dataset("fuzz".as_ref(), bytes, &options);
    }
}
