//! Zips of numpy arrays.
#![no_main]

use hdsl::data::write_npz;
use hdsl::{Format, ReadOptions, parse_dataset};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions {
        format: Some(Format::Npz),
        ..ReadOptions::default()
    };
    let Ok(data) = parse_dataset("fuzz".as_ref(), bytes, &options) else {
        return;
    };
    let mut written = Vec::new();
    write_npz(&mut written, &data.rows).expect("memory takes everything");
    let again =
        parse_dataset("again".as_ref(), &written, &options).expect("what we write, we read");
    assert_eq!(again.rows, data.rows);
});
