//! Model files: any bytes at all, and the same bytes with header and checksum put right so that the body is read.
#![no_main]

use hdsl::Model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Model::from_bytes("fuzz", bytes);
    // Take the bytes as a body: magic, kind, version 1, length, body, checksum.
    let mut file = b"HDSLM\x01\x00".to_vec();
    file.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    file.extend_from_slice(bytes);
    file.extend_from_slice(&crc32fast::hash(&file).to_le_bytes());
    if let Ok(model) = Model::from_bytes("fuzz", &file) {
        assert_eq!(model.to_bytes(), file, "what was read is what is written");
        let _ = model.to_json();
    }
});
