//! Model files: any bytes, and the same bytes as the arrays of a file with a valid header and checksum.
#![no_main]

use hdsl::Model;
use libfuzzer_sys::fuzz_target;

/// A small valid file, whose arrays are overwritten.
const VALID: &[u8] = include_bytes!("../../testdata/model-v2.hdsl");

fuzz_target!(|bytes: &[u8]| {
    let _ = Model::from_bytes("fuzz", bytes);
    let mut file = VALID.to_vec();
    let length = u64::from_le_bytes(file[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&file[8..8 + length]).expect("valid");
    let data = &mut file[8 + length..];
    let n = bytes.len().min(data.len());
    data[..n].copy_from_slice(&bytes[..n]);
    let place = |name: &str| {
        let offset = |n: usize| header[name]["data_offsets"][n].as_u64().expect("a number") as usize;
        offset(0)..offset(1)
    };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header["__metadata__"]["hdsl"].as_str().expect("text").as_bytes());
    let mut names: Vec<&String> = header.as_object().expect("an object").keys().collect();
    names.sort();
    for name in names.into_iter().filter(|n| !["__metadata__", "crc32"].contains(&n.as_str())) {
        hasher.update(name.as_bytes());
        hasher.update(&data[place(name)]);
    }
    data[place("crc32")].copy_from_slice(&hasher.finalize().to_le_bytes());
    if let Ok(model) = Model::from_bytes("fuzz", &file) {
        assert_eq!(model.to_bytes(), file, "what was read is what is written");
        let _ = model.to_json();
    }
});
