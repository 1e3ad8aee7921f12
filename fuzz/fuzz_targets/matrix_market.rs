//! Matrix Market text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hdsl_fuzz::read_as(hdsl::Format::MatrixMarket, bytes));
