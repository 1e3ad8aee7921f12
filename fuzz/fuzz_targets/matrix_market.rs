//! Matrix Market text.
#![no_main]

use hdsl::{Format, IndexBase, ReadOptions, parse_dataset};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for index_base in [None, Some(IndexBase::One)] {
        let options = ReadOptions {
            format: Some(Format::MatrixMarket),
            index_base,
            ..ReadOptions::default()
        };
        let _ = parse_dataset("fuzz".as_ref(), bytes, &options);
    }
});
