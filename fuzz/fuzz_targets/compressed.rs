//! The decoders in front of every reader.
#![no_main]

use hdsl::data::parse_names;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The reader that does least with what comes out.
    let _ = parse_names("fuzz".as_ref(), bytes);
});
