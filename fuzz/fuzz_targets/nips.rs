//! NIPS 2003 text: index:value entries or bare indices.
#![no_main]

use hdsl::{Format, IndexBase, ReadOptions, parse_dataset};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for index_base in [None, Some(IndexBase::One)] {
        let options = ReadOptions {
            format: Some(Format::Nips),
            index_base,
            ..ReadOptions::default()
        };
        let _ = parse_dataset("fuzz".as_ref(), bytes, &options);
    }
});
