//! NIPS 2003 text: index:value entries or bare indices.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hdsl_fuzz::read_as(hdsl::Format::Nips, bytes));
