//! Plain text.
#![no_main]

use hdsl::Format;
use hdsl_fuzz::read_records;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| read_records(Format::Text, bytes));
