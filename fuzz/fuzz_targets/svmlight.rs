//! svmlight text, and the choice of format and compression in front of it. What was read must survive writing.
#![no_main]

use hdsl::data::write_svmlight;
use hdsl::{Format, IndexBase, ReadOptions, parse_dataset};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_dataset("fuzz".as_ref(), bytes, &ReadOptions::default());
    let options = ReadOptions {
        format: Some(Format::Svmlight),
        ..ReadOptions::default()
    };
    let Ok(data) = parse_dataset("fuzz".as_ref(), bytes, &options) else {
        return;
    };
    let labels = data.labels.as_ref();
    let mut text = Vec::new();
    let queries = data.queries.as_deref();
    if write_svmlight(&mut text, &data.rows, labels, queries, data.index_base).is_err() {
        return; // a label with, say, a byte order mark
    }
    let options = ReadOptions {
        index_base: Some(data.index_base),
        n_features: Some(data.rows.n_features()),
        ..options
    };
    let again = parse_dataset("again".as_ref(), &text, &options).expect("what we write, we read");
    assert_eq!(again.rows, data.rows);
    assert_eq!(again.queries, data.queries);
    assert!(again.index_base == IndexBase::Zero || data.rows.n_features() <= u32::MAX as usize);
});
