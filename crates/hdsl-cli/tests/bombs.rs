//! Small files that expand to more than the limit on memory are refused with status 2, in little more memory than the limit.
#![cfg(target_os = "linux")]

mod common;

use common::Scratch;
use std::io::Write;

/// What each file expands to.
const EXPANDED: usize = 320 << 20;
const BLOCK: usize = 1 << 20;

/// Rows or zeros, again and again.
fn fill(mut out: impl Write, piece: &[u8]) {
    for _ in 0..EXPANDED / piece.len() {
        out.write_all(piece).expect("memory can be written");
    }
    out.flush().expect("memory can be written");
}

/// One zstd frame of blocks that each repeat one byte 128 KiB times.
fn zstd_of(byte: u8) -> Vec<u8> {
    const SIZE: u32 = 128 << 10;
    // A window of 128 KiB, no checksum.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    let blocks = EXPANDED as u32 / SIZE;
    for block in 0..blocks {
        let header = SIZE << 3 | 1 << 1 | u32::from(block + 1 == blocks);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(byte);
    }
    frame
}

/// An npz file whose rows begin at as many places as fit into the expanded size.
fn npz() -> Vec<u8> {
    let mut out = std::io::Cursor::new(Vec::new());
    let mut zip = zip::ZipWriter::new(&mut out);
    let n = EXPANDED / 8;
    let shape = [(n as u64 - 1).to_le_bytes(), 10u64.to_le_bytes()].concat();
    for (name, descr, dims, data) in [
        ("format", "|S3", "()".to_owned(), Some(b"csr".to_vec())),
        ("shape", "<i8", "(2,)".to_owned(), Some(shape)),
        ("indptr", "<i8", format!("({n},)"), None),
        ("indices", "<i4", "(0,)".to_owned(), Some(Vec::new())),
        ("data", "<f8", "(0,)".to_owned(), Some(Vec::new())),
    ] {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("{name}.npy"), options)
            .expect("a member");
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}");
        let header = format!("{dict:<117}\n");
        zip.write_all(b"\x93NUMPY\x01\x00").expect("a member");
        zip.write_all(&(header.len() as u16).to_le_bytes())
            .expect("a member");
        zip.write_all(header.as_bytes()).expect("a member");
        match data {
            Some(data) => zip.write_all(&data).expect("a member"),
            None => fill(&mut zip, &vec![0; BLOCK]),
        }
    }
    zip.finish().expect("an archive");
    out.into_inner()
}

/// A Parquet file in which the header of a page says that it expands to a megabyte.
fn parquet(scratch: &Scratch) -> Vec<u8> {
    use hdsl::data::{TableColumn, TableFormat, write_table};
    let text = |row: usize| format!("word{} other{}", row % 700, row / 3);
    let texts = TableColumn::texts((0..1500).map(text).collect::<Vec<_>>());
    let labels = TableColumn::texts((0..1500).map(|row| ["a", "b"][row % 2]));
    let mut bytes = Vec::new();
    write_table(
        &mut bytes,
        TableFormat::Parquet,
        &[("text", texts), ("label", labels)],
    )
    .expect("a table");
    scratch.write("whole.parquet", &bytes);
    // The header after the first four bytes: type of page, then the size before compression, as numbers of seven bits per byte.
    assert_eq!((bytes[4], bytes[6]), (0x15, 0x15));
    let size = &mut bytes[7..10];
    assert!(
        size[0] >= 0x80 && size[1] >= 0x80 && size[2] < 0x80,
        "{size:?}"
    );
    size.copy_from_slice(&[0xfe, 0xff, 0x7f]);
    bytes
}

#[track_caller]
fn refused(scratch: &Scratch, name: &str, memory: &str) {
    let line = format!("hdsl train {name} --lambda 1 --memory {memory} --threads 1 -o m.hdsl");
    // Less address space than the file expands to.
    let ran = scratch.shell(&format!("ulimit -v 300000; {line}"));
    assert_eq!(ran.status, Some(2), "{name}: {}", ran.stderr);
    assert!(
        ran.stderr.contains("which is the limit (see --memory)"),
        "{name}: {}",
        ran.stderr
    );
}

#[test]
fn compressed_text() {
    let scratch = Scratch::empty();
    let zeros = vec![0u8; BLOCK];
    let rows = b"a 1:1 2:1\n".repeat(BLOCK / 10);
    for (name, piece) in [("zeros", &zeros), ("rows", &rows)] {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        fill(&mut out, piece);
        scratch.write(&format!("{name}.svm.gz"), out.finish().expect("memory"));
        refused(&scratch, &format!("{name}.svm.gz"), "20MB");
    }
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    fill(&mut out, &zeros);
    scratch.write("zeros.svm.bz2", out.finish().expect("memory"));
    refused(&scratch, "zeros.svm.bz2", "20MB");
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).expect("right options");
    fill(&mut out, &zeros);
    scratch.write("zeros.svm.xz", out.finish().expect("memory"));
    refused(&scratch, "zeros.svm.xz", "20MB");
    scratch.write("zeros.svm.zst", zstd_of(0));
    refused(&scratch, "zeros.svm.zst", "20MB");
    // Blank lines.
    scratch.write("blank.svm.zst", zstd_of(b'\n'));
    refused(&scratch, "blank.svm.zst", "20MB");
}

#[test]
fn arrays() {
    let scratch = Scratch::empty();
    scratch.write("x.npz", npz());
    scratch.write("x.labels", "a\nb\n");
    refused(&scratch, "x.npz", "20MB");
}

#[test]
fn a_page_of_parquet_that_lies_about_its_size() {
    let scratch = Scratch::empty();
    scratch.write("x.parquet", parquet(&scratch));
    let line = "--lambda 1 --label label --text text --max-iter 2 --memory";
    scratch
        .hdsl(&format!("train whole.parquet {line} 100MB -o m.hdsl"))
        .ok();
    let ran = scratch.hdsl(&format!("train x.parquet {line} 1MB -o m.hdsl"));
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("x.parquet: ") && ran.stderr.contains("the limit (see --memory)"),
        "{}",
        ran.stderr
    );
}
