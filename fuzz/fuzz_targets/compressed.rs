//! The decoders in front of every reader.
#![no_main]

use hdsl::{Format, ReadOptions, parse_dataset};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions {
        format: Some(Format::Svmlight),
        ..ReadOptions::default()
    };
    let _ = parse_dataset("fuzz".as_ref(), bytes, &options);
});
