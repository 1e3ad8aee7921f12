//! Files that scipy and numpy wrote, and files made to trip us up.

use hdsl::data::write_npz;
use hdsl::{ReadOptions, Rows, parse_dataset, read_dataset};
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name)
}

fn read(name: &str) -> hdsl::Dataset {
    read_dataset(&testdata(name), &ReadOptions::default()).unwrap()
}

fn the_matrix(factor: f64) -> Rows {
    let values = [1.5, -2.0, 3.0, 0.25].map(|v| v * factor).to_vec();
    Rows::from_parts(4, vec![0, 2, 2, 4], vec![1, 3, 0, 3], values).unwrap()
}

#[test]
fn reads_what_scipy_saves() {
    assert_eq!(read("scipy_csr.npz").rows, the_matrix(1.0));
    assert_eq!(read("scipy_csc_f4.npz").rows, the_matrix(1.0));
    assert_eq!(read("numpy_csc_big_endian.npz").rows, the_matrix(1.0));
    assert_eq!(read("scipy_array_i2.npz").rows, the_matrix(4.0));
    let data = read("scipy_unsorted_bool.npz");
    assert_eq!(data.rows.row(0).indices(), [0, 3]);
    assert_eq!(data.rows.row(0).values(), [1.0, 1.0]);
    assert_eq!((data.rows.n_rows(), data.rows.n_features()), (2, 5));
    assert!(data.notes[0].ends_with("1 row has unsorted indices (sorted)"));
    assert!(read("scipy_csr.npz").notes[0].ends_with("1 row has no features"));
}

#[test]
fn other_layouts_are_named() {
    let error = read_dataset(&testdata("scipy_coo.npz"), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("format `coo`"), "{error}");
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let write = || {
        let mut bytes = Vec::new();
        write_npz(&mut bytes, &the_matrix(1.0)).unwrap();
        bytes
    };
    assert_eq!(write(), write());
}

/// A numpy array with any header.
fn npy(descr: &str, shape: &str, content: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(content);
    bytes
}

fn whole(numbers: &[i64]) -> Vec<u8> {
    let content: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    npy("'<i8'", &format!("({},)", numbers.len()), &content)
}

fn floats(numbers: &[f64]) -> Vec<u8> {
    let content: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    npy("'<f8'", &format!("({},)", numbers.len()), &content)
}

/// A small good file with one member replaced, or left out.
fn spoiled(member: &str, content: Option<Vec<u8>>) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, good) in [
        ("format", npy("'|S3'", "()", b"csr")),
        ("shape", whole(&[2, 4])),
        ("indptr", whole(&[0, 1, 2])),
        ("indices", whole(&[3, 0])),
        ("data", floats(&[1.0, 2.0])),
    ] {
        let content = match (name == member, &content) {
            (true, Some(content)) => content.clone(),
            (true, None) => continue,
            (false, _) => good,
        };
        zip.start_file(format!("{name}.npy"), SimpleFileOptions::default())
            .unwrap();
        zip.write_all(&content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn every_lie_is_found_out() {
    let parse = |bytes: &[u8]| parse_dataset("x.npz".as_ref(), bytes, &ReadOptions::default());
    assert_eq!(parse(&spoiled("", None)).unwrap().rows.nnz(), 2);
    for (member, content, want) in [
        ("data", None, "no member `data`"),
        ("format", None, "no member `format`"),
        ("format", Some(npy("'|S3'", "()", b"bsr")), "format `bsr`"),
        ("format", Some(whole(&[1])), "expected a word"),
        ("shape", Some(whole(&[2])), "shape of 1 numbers"),
        ("shape", Some(whole(&[-2, 4])), "has -2 in `shape`"),
        ("shape", Some(whole(&[3, 4])), "does not fit together"),
        (
            "shape",
            Some(whole(&[0, 4])),
            "has 0 rows and 4 columns, expected at least 1 row",
        ),
        (
            "shape",
            Some(whole(&[1 << 40, 4])),
            "expected at most 2^32 - 1 of each",
        ),
        (
            "shape",
            Some(whole(&[2, 1 << 32])),
            "has 2 rows and 4294967296 columns, expected at most 2^32 - 1 of each",
        ),
        ("shape", Some(floats(&[2.0, 4.0])), "expected whole numbers"),
        ("indptr", Some(whole(&[0, 1])), "does not fit together"),
        (
            "indptr",
            Some(whole(&[0, 3, 2])),
            "does not rise from 0 to 2",
        ),
        (
            "indptr",
            Some(whole(&[1, 1, 2])),
            "does not rise from 0 to 2",
        ),
        (
            "indptr",
            Some(whole(&[0, 1, 1])),
            "does not rise from 0 to 2",
        ),
        (
            "indptr",
            Some(whole(&[0, 1, 5])),
            "does not rise from 0 to 2",
        ),
        ("indices", Some(whole(&[4, 0])), "has index 4"),
        ("indices", Some(whole(&[-1, 0])), "has -1 in `indices`"),
        ("indices", Some(whole(&[3])), "does not fit together"),
        ("data", Some(floats(&[1.0, f64::NAN])), "the value NaN"),
        ("data", Some(floats(&[1.0, f64::INFINITY])), "the value inf"),
        (
            "data",
            Some(npy("'<c16'", "(1,)", &[0; 16])),
            "has the type `<c16`",
        ),
        (
            "data",
            Some(npy("[('a', '<f8')]", "(1,)", &[0; 8])),
            "has the type",
        ),
        (
            "data",
            Some(npy("'<f8'", "(1, 2)", &[0; 16])),
            "at most one dimension",
        ),
        (
            "data",
            Some(npy("'<f8'", "(2,)", &[0; 15])),
            "has 15 bytes after its header, expected 2 items of 8 bytes",
        ),
        (
            "data",
            Some(npy("'<f8'", "(2,)", &[0; 17])),
            "has 17 bytes after its header, expected 2 items of 8 bytes",
        ),
        (
            "data",
            Some(npy("'<f8'", "(9999999999999999,)", &[0; 8])),
            "has 8 bytes after its header, expected 9999999999999999 items",
        ),
        (
            "data",
            Some(npy("'<f8'", "(18446744073709551615,)", &[0; 8])),
            "has 8 bytes after its header, expected 18446744073709551615 items",
        ),
        (
            "data",
            Some(b"not numpy at all".to_vec()),
            "is not a numpy array of version 1",
        ),
        (
            "data",
            Some(b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec()),
            "is not a numpy array of version 1",
        ),
        (
            "data",
            Some(b"\x93NUMPY\x01\x00\xff\xff{'descr': '<f8'".to_vec()),
            "has shape ``",
        ),
        (
            "data",
            Some(b"\x93NU".to_vec()),
            "is not a numpy array of version 1",
        ),
    ] {
        let error = parse(&spoiled(member, content)).unwrap_err().to_string();
        assert!(error.contains(want), "{error}\nexpected to contain {want}");
        assert!(error.starts_with("x.npz: "), "{error}");
    }
    let one_row = |columns: &[i64]| {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in [
            ("format", npy("'|S3'", "()", b"csr")),
            ("shape", whole(&[1, 4])),
            ("indptr", whole(&[0, columns.len() as i64])),
            ("indices", whole(columns)),
            ("data", floats(&vec![1.0; columns.len()])),
        ] {
            zip.start_file(format!("{name}.npy"), SimpleFileOptions::default())
                .unwrap();
            zip.write_all(&content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    let error = parse(&one_row(&[2, 1, 2])).unwrap_err().to_string();
    assert!(error.contains("row 0 has column 2 twice"), "{error}");
    assert_eq!(
        parse(&one_row(&[3, 1, 2])).unwrap().rows.row(0).indices(),
        [1, 2, 3]
    );
}

#[test]
fn cut_anywhere_it_is_an_error() {
    let whole = std::fs::read(testdata("scipy_csr.npz")).unwrap();
    for length in 0..whole.len() {
        let cut = parse_dataset("x.npz".as_ref(), &whole[..length], &ReadOptions::default());
        assert!(cut.is_err(), "{length} of {} bytes", whole.len());
    }
}
