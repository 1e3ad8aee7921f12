//! Journals of a search: lines of any bytes, each with the right checksum, after a valid first line.
#![no_main]

use hdsl::tune::inspect_journal;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

thread_local! {
    static FOLDER: RefCell<tempfile::TempDir> = RefCell::new(tempfile::tempdir().expect("a folder"));
}

fuzz_target!(|bytes: &[u8]| {
    let mut file = Vec::new();
    let lines = std::iter::once(&b"hdsl journal 2 fuzz"[..]).chain(bytes.split(|&b| b == b'\n'));
    for line in lines {
        file.extend_from_slice(format!("{:08x} ", crc32fast::hash(line)).as_bytes());
        file.extend_from_slice(line);
        file.push(b'\n');
    }
    FOLDER.with_borrow(|folder| {
        let path = folder.path().join("m.hdsl.tune");
        std::fs::write(&path, &file).expect("a file");
        let n = inspect_journal(&path, "fuzz").expect("the first line is right");
        // Damaged lines are dropped for good.
        assert_eq!(inspect_journal(&path, "fuzz").expect("as before"), n);
    });
});
