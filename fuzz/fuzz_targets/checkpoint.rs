//! Checkpoints: any bytes, and the same bytes behind a valid first line and with the right checksum.
#![no_main]

use hdsl::checkpoint::{FIRST_LINE, inspect};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = inspect(bytes);
    let mut file = FIRST_LINE.to_vec();
    file.extend_from_slice(bytes);
    let sum = crc32fast::hash(&file);
    file.extend_from_slice(&sum.to_le_bytes());
    let _ = inspect(&file);
});
