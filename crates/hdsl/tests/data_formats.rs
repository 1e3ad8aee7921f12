//! The same data, written in every format and compression, read back the same.

use hdsl::data::{write_npz, write_svmlight};
use hdsl::{Dataset, Format, IndexBase, Labels, ReadOptions, Rows, parse_dataset, read_dataset};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::io::Write as _;

/// Any rows, empty ones and awkward numbers included.
fn any_rows() -> impl Strategy<Value = Rows> {
    let value = prop_oneof![
        4 => (-1000i32..1000).prop_map(f64::from),
        3 => -2.0f64..2.0,
        1 => any::<f64>().prop_filter("files take values up to 1e50", |v| v.abs() <= 1e50),
    ]
    .prop_filter("zeros are not stored", |v| *v != 0.0);
    let row = prop::collection::btree_map(0u32..40, value, 0..12);
    prop::collection::vec(row, 1..20).prop_map(|rows| {
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            indices.extend(row.keys());
            values.extend(row.values());
            starts.push(indices.len());
        }
        Rows::from_parts(40, starts, indices, values).unwrap()
    })
}

fn svmlight(
    rows: &Rows,
    labels: Option<&Labels>,
    queries: Option<&[u64]>,
    base: IndexBase,
) -> Vec<u8> {
    let mut out = Vec::new();
    write_svmlight(&mut out, rows, labels, queries, base).unwrap();
    out
}

fn nips(rows: &Rows) -> Vec<u8> {
    let mut out = String::new();
    for row in rows.iter() {
        for (index, value) in row.iter() {
            write!(out, "{}:{value:e} ", index + 1).unwrap();
        }
        out.push('\n');
    }
    out.into_bytes()
}

fn matrix_market(rows: &Rows) -> Vec<u8> {
    let mut out = format!(
        "%%MatrixMarket matrix coordinate real general\n% made here\n{} {} {}\n",
        rows.n_rows(),
        rows.n_features(),
        rows.nnz()
    );
    let entries: Vec<_> = rows
        .iter()
        .enumerate()
        .flat_map(|(r, row)| row.iter().map(move |(i, v)| (r, i, v)))
        .collect();
    for (row, index, value) in entries.into_iter().rev() {
        writeln!(out, "{} {} {value:e}", row + 1, index + 1).unwrap();
    }
    out.into_bytes()
}

fn npz(rows: &Rows) -> Vec<u8> {
    let mut out = Vec::new();
    write_npz(&mut out, rows).unwrap();
    out
}

type Compress = fn(&[u8]) -> Vec<u8>;

/// Every compression; the text is cut in two streams that are read as one.
fn compressions() -> Vec<(&'static str, Compress)> {
    fn halves(bytes: &[u8], one: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let (a, b) = bytes.split_at(bytes.len() / 2);
        [one(a), one(b)].concat()
    }
    let mut compressions: Vec<(&'static str, Compress)> = vec![
        ("", |bytes| bytes.to_vec()),
        (".gz", |bytes| {
            halves(bytes, |half| {
                let mut out =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                out.write_all(half).unwrap();
                out.finish().unwrap()
            })
        }),
        (".bz2", |bytes| {
            halves(bytes, |half| {
                let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                out.write_all(half).unwrap();
                out.finish().unwrap()
            })
        }),
        (".xz", |bytes| {
            halves(bytes, |half| {
                let options = lzma_rust2::XzOptions::with_preset(0);
                let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
                out.write_all(half).unwrap();
                out.finish().unwrap()
            })
        }),
        (".zst", |bytes| {
            halves(bytes, |half| {
                ruzstd::encoding::compress_to_vec(half, ruzstd::encoding::CompressionLevel::Fastest)
            })
        }),
    ];
    if cfg!(not(feature = "compression")) {
        compressions.truncate(1);
    }
    compressions
}

fn parse(name: &str, bytes: &[u8]) -> Dataset {
    let options = ReadOptions {
        n_features: Some(40),
        ..ReadOptions::default()
    };
    parse_dataset(name.as_ref(), bytes, &options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_formats_and_compressions_agree(rows in any_rows()) {
        for (extension, compress) in compressions() {
            for (name, bytes) in [
                ("x.svm", svmlight(&rows, None, None, IndexBase::One)),
                ("x.data", nips(&rows)),
                ("x.mtx", matrix_market(&rows)),
                ("x.npz", npz(&rows)),
            ] {
                let name = format!("{name}{extension}");
                let data = parse(&name, &compress(&bytes));
                prop_assert_eq!(&data.rows, &rows, "{}", name);
            }
        }
    }

    #[test]
    fn svmlight_keeps_labels_queries_and_bases(
        rows in any_rows(),
        words in prop::collection::vec("[a-zA-Z0-9+,_é.-]{1,6}", 20),
        queries in prop::collection::vec(any::<u64>(), 20),
        base in prop::sample::select(vec![IndexBase::Zero, IndexBase::One]),
    ) {
        let n = rows.n_rows();
        let labels = Labels::from_names(&words[..n]);
        let bytes = svmlight(&rows, Some(&labels), Some(&queries[..n]), base);
        let options = ReadOptions { index_base: Some(base), n_features: Some(40), format: Some(Format::Svmlight), ..Default::default() };
        let data = parse_dataset("x".as_ref(), &bytes, &options).unwrap();
        prop_assert_eq!(&data.rows, &rows);
        prop_assert_eq!(data.labels.unwrap(), labels);
        prop_assert_eq!(data.queries.unwrap(), &queries[..n]);
        prop_assert_eq!(data.index_base, base);
        let windows = String::from_utf8(bytes).unwrap().replace('\n', "\r\n");
        prop_assert_eq!(parse_dataset("x".as_ref(), windows.as_bytes(), &options).unwrap().rows, rows);
    }
}

#[test]
fn any_number_of_threads_reads_the_same() {
    // Several blocks and pieces, with the one bad line far from the start.
    let mut text = String::new();
    for row in 0..60_000 {
        writeln!(
            text,
            "{} {}:1.25 {}:{} 70000:0.1 # row {row}",
            row % 7,
            3 + row % 50,
            60 + row % 1000,
            row + 1
        )
        .unwrap();
    }
    while text.len() < 20 << 20 {
        text.push_str(&text.clone());
    }
    let n_lines = text.lines().count();
    let in_pool = |threads: usize, bytes: &[u8]| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| parse_dataset("big".as_ref(), bytes, &ReadOptions::default()))
    };
    let (one, three) = (
        in_pool(1, text.as_bytes()).unwrap(),
        in_pool(3, text.as_bytes()).unwrap(),
    );
    assert_eq!(one.rows.n_rows(), n_lines);
    assert_eq!(one.rows, three.rows);
    assert_eq!(one.labels, three.labels);
    let bad = text.clone() + "1 2:x\n1 3:y\n" + &text + "1 4:z\n";
    for threads in [1, 3] {
        let error = in_pool(threads, bad.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "big:{}: value `x` of index 2, expected a finite number",
                n_lines + 1
            )
        );
    }
}

#[test]
fn formats_are_told_apart_by_content_and_name() {
    let shape = |name: &str, text: &str| {
        let data = parse_dataset(name.as_ref(), text.as_bytes(), &ReadOptions::default()).unwrap();
        (
            data.rows.n_rows(),
            data.rows.n_features(),
            data.labels.is_some(),
        )
    };
    assert_eq!(shape("-", "1 2:3\n"), (1, 2, true));
    assert_eq!(
        shape("-", "\n# note\n+1 qid:3 2:3 # end\n\n-1 qid:4\n"),
        (2, 2, true)
    );
    assert_eq!(shape("-", "1:2 2:3\n4:5\n"), (2, 4, false));
    assert_eq!(shape("-", "1 5 9\n2\n"), (2, 9, false));
    assert_eq!(shape("x.data.bz2", "7\n2\n"), (2, 7, false));
    assert_eq!(shape("x.data", "7 1:1\n"), (1, 1, true));
    assert_eq!(shape("x.data", "\n1:1\n\n"), (3, 1, false));
    let marked = "\u{feff}a 1:1\n";
    assert_eq!(shape("-", marked), (1, 1, true));
    // Lines of one word are labels without features, or anything else.
    for text in ["7\n2\n", "word\n"] {
        let refused = parse_dataset("-".as_ref(), text.as_bytes(), &ReadOptions::default());
        let reason = refused.unwrap_err().to_string();
        assert!(reason.starts_with("-: is of no known format"), "{reason}");
    }
}

#[test]
fn matrix_market_dialects() {
    let read = |text: &str| {
        parse_dataset("x.mtx".as_ref(), text.as_bytes(), &ReadOptions::default())
            .unwrap()
            .rows
    };
    let pattern =
        read("%%matrixmarket MATRIX Coordinate Pattern general\n%\n\n2 3 2\n2 1\n\n1 3\n");
    assert_eq!(
        pattern,
        Rows::from_parts(3, vec![0, 1, 2], vec![2, 0], vec![1.0, 1.0]).unwrap()
    );
    let symmetric =
        read("%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 5\n2 1 7\n");
    assert_eq!(
        symmetric,
        Rows::from_parts(2, vec![0, 2, 3], vec![0, 1, 0], vec![5.0, 7.0, 7.0]).unwrap()
    );
}

#[test]
fn labels_come_from_their_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("d_valid.data"), "1 2\n3\n").unwrap();
    let alone = read_dataset(&at("d_valid.data"), &ReadOptions::default()).unwrap();
    assert!(alone.labels.is_none());
    let (extension, compress) = compressions().into_iter().take(2).next_back().unwrap();
    let labels = at(&format!("d_valid.labels{extension}"));
    std::fs::write(labels, compress(b"-1\n+1\n")).unwrap();
    let beside = read_dataset(&at("d_valid.data"), &ReadOptions::default()).unwrap();
    assert_eq!(beside.labels.unwrap().names(), ["-1", "1"]);
    assert!(
        beside.notes[0].contains("labels taken from"),
        "{:?}",
        beside.notes
    );
    std::fs::write(at("words"), "cat\r\ndog\r\n").unwrap();
    let options = ReadOptions {
        labels: Some(at("words")),
        ..Default::default()
    };
    let given = read_dataset(&at("d_valid.data"), &options).unwrap();
    assert_eq!(given.labels.unwrap().names(), ["cat", "dog"]);
    std::fs::write(
        at("x.mtx"),
        "%%MatrixMarket matrix coordinate real general\n2 2 0\n",
    )
    .unwrap();
    std::fs::write(at("x.labels"), "1\n2\n").unwrap();
    let beside = read_dataset(&at("x.mtx"), &ReadOptions::default()).unwrap();
    assert_eq!(beside.labels.unwrap().names(), ["1", "2"]);
    assert!(
        read_dataset(&at("x.mtx"), &options)
            .unwrap()
            .labels
            .is_some()
    );
    std::fs::write(at("words"), "cat\n").unwrap();
    let error = read_dataset(&at("d_valid.data"), &options)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("words: has 1 labels, but the data have 2 rows"),
        "{error}"
    );
}

#[test]
fn what_is_accepted_is_said() {
    let data = parse_dataset(
        "x".as_ref(),
        b"a 3:1 1:2\nb\nc 2:0\nd 0:1 4:0\n",
        &ReadOptions::default(),
    )
    .unwrap();
    assert_eq!(
        data.notes,
        [
            "x: 1 row has unsorted indices (sorted)",
            "x: 2 rows have no features",
            "x: an index 0 occurs, so indices count from 0",
        ]
    );
    assert_eq!(data.index_base, IndexBase::Zero);
    assert_eq!(data.rows.row(0).indices(), [1, 3]);
    assert_eq!((data.rows.nnz(), data.rows.n_features()), (3, 5));
}

#[test]
fn labels_that_would_not_read_back_are_refused() {
    let rows = Rows::from_parts(1, vec![0, 0], vec![], vec![]).unwrap();
    for bad in ["two words", "", "a:b", "#x", "\u{feff}x", "BZh91AY&SYi"] {
        let labels = Labels::from_names([bad]);
        assert!(
            write_svmlight(Vec::new(), &rows, Some(&labels), None, IndexBase::One).is_err(),
            "{bad:?}"
        );
    }
}
