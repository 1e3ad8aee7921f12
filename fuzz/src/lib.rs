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

/// Reads bytes as a file of records, and applies the vectorizer that they give to the same bytes.
pub fn read_records(format: Format, bytes: &[u8]) {
    if looks_compressed(bytes) {
        return;
    }
    let mut options = ReadOptions {
        format: Some(format),
        ..ReadOptions::default()
    };
    options.records.keep_texts = true;
    let Ok(data) = parse_dataset("fuzz".as_ref(), bytes, &options) else {
        return;
    };
    let records = data.records.expect("records have a vectorizer");
    assert_eq!(records.texts.map(|texts| texts.len()), Some(data.rows.n_rows()));
    assert_eq!(records.vectorizer.n_features(), data.rows.n_features());
    options.records.vectorizer = Some(records.vectorizer);
    let again = parse_dataset("fuzz".as_ref(), bytes, &options).expect("the same file");
    assert_eq!(again.rows, data.rows);
    assert_eq!(again.labels, data.labels);
}
