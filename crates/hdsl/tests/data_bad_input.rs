//! Every way we know a data file can be wrong: one clear message that names the place, and never a panic.

use hdsl::Triplets;
use hdsl::data::{Vectorizer, parse_documents, read_names, read_texts};
use hdsl::ranking::{Ids, Judgments};
use hdsl::triplets::TripletFormat;
use hdsl::{Error, Format, IndexBase, ReadOptions, parse_dataset, read_dataset};
use proptest::prelude::*;
use std::io::Write;

fn message(name: &str, bytes: &[u8], options: &ReadOptions) -> String {
    parse_dataset(name.as_ref(), bytes, options)
        .unwrap_err()
        .to_string()
}

#[test]
fn svmlight_errors_name_line_and_token() {
    for (text, want) in [
        (
            "1 1:1\n1 2:x\n",
            "2: value `x` of index 2, expected a finite number",
        ),
        ("1 2:\n", "1: value `` of index 2, expected a finite number"),
        (
            "1 2:nan\n",
            "1: value `nan` of index 2, expected a finite number",
        ),
        (
            "1 2:-inf\n",
            "1: value `-inf` of index 2, expected a finite number",
        ),
        (
            "1 2:1e999\n",
            "1: value `1e999` of index 2, expected a finite number",
        ),
        (
            "1 -2:1\n",
            "1: index `-2`, expected a whole number from 0 to 4294967295",
        ),
        (
            "1 4294967296:1\n",
            "1: index `4294967296`, expected a whole number from 0 to 4294967295",
        ),
        (
            "1 99999999999999999999999:1\n",
            "1: index `99999999999999999999999`, expected a whole number from 0 to 4294967295",
        ),
        (
            "1 1.5:1\n",
            "1: index `1.5`, expected a whole number from 0 to 4294967295",
        ),
        (
            "1 :1\n",
            "1: index ``, expected a whole number from 0 to 4294967295",
        ),
        (
            "# c\n\n1 3:1 2:1 3:0\n",
            "3: index `3` is repeated, expected each index once per row",
        ),
        (
            "1 2:1 2:1\n",
            "1: index `2` is repeated, expected each index once per row",
        ),
        ("1 2:1 word\n", "1: `word` is not of the form index:value"),
        (
            "1 2:1\n3:4 5:6\n",
            "2: the line starts with `3:4`, expected a label before the features",
        ),
        (
            "1 qid:x 2:1\n",
            "1: query `qid:x` is not a whole number from 0",
        ),
        (
            "1 2:1 qid:3\n",
            "1: index `qid`, expected a whole number from 0 to 4294967295",
        ),
        (
            "1 qid:1 2:1\n1 2:1\n",
            "2: has no `qid`, unlike the rows before it",
        ),
        (
            "1 2:1\n\n1 qid:1 2:1\n",
            "3: has a `qid`, unlike the rows before it",
        ),
        (
            "1 2:\u{7}\u{1b}[31m\n",
            "1: value `\\u{7}\\u{1b}[31m` of index 2, expected a finite number",
        ),
    ] {
        assert_eq!(
            message("x", text.as_bytes(), &ReadOptions::default()),
            format!("x:{want}")
        );
    }
    let forced = ReadOptions {
        index_base: Some(IndexBase::One),
        ..Default::default()
    };
    assert_eq!(
        message("x", b"1 1:1\n1 5:1 0:1\n", &forced),
        "x:2: index `0`, expected 1 or above in a file whose indices count from 1"
    );
    let few = ReadOptions {
        n_features: Some(3),
        ..Default::default()
    };
    assert_eq!(
        message("x", b"1 1:1\n1 4:1\n", &few),
        "x:2: index `4` is feature 4 counted from 1, but there are only 3 features"
    );
    assert_eq!(
        message("x", b"1 1:1\n1 0:1 4294967295:1\n", &ReadOptions::default()),
        "x:2: index `4294967295` is feature 4294967296 counted from 1, but there are at most 4294967295 features"
    );
    assert_eq!(
        message("x", b"1 1:1 \xff\xfe\n", &ReadOptions::default()),
        "x:1: `\u{fffd}\u{fffd}` is not of the form index:value"
    );
    assert!(
        message("x", b"1 1:1\n\xff 1:1\n", &ReadOptions::default()).starts_with("x:2: "),
        "labels are UTF-8"
    );
}

#[test]
fn nips_errors_name_line_and_token() {
    let nips = ReadOptions {
        format: Some(Format::Nips),
        ..Default::default()
    };
    assert_eq!(
        message("x", b"1:1\n2:1 2:3\n", &nips),
        "x:2: index `2` is repeated, expected each index once per row"
    );
    assert_eq!(
        message("x", b"1 2\n3 4:1\n", &nips),
        "x:2: index `4:1`, expected a whole number from 0 to 4294967295"
    );
    assert_eq!(
        message("x", b"1 2\n3 3\n", &nips),
        "x:2: index `3` is repeated, expected each index once per row"
    );
    assert_eq!(
        message("x", b"1:2\n3\n", &nips),
        "x:2: `3` is not of the form index:value"
    );
}

#[test]
fn matrix_market_errors_name_line_and_value() {
    let head = "%%MatrixMarket matrix coordinate real general\n";
    for (text, want) in [
        (
            "1 1 1\n".to_owned(),
            "x.mtx:1: `1 1 1` is not a Matrix Market header",
        ),
        (
            "%%MatrixMarket matrix array real general\n1 1\n1\n".to_owned(),
            "x.mtx:1: the matrix is stored as `array`, expected `coordinate`",
        ),
        (
            "%%MatrixMarket matrix coordinate complex general\n".to_owned(),
            "x.mtx:1: the entries are `complex`",
        ),
        (
            "%%MatrixMarket matrix coordinate real hermitian\n".to_owned(),
            "x.mtx:1: the matrix is `hermitian`",
        ),
        (
            "%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n".to_owned(),
            "x.mtx:2: 2 rows and 3 columns",
        ),
        (
            head.to_owned(),
            "x.mtx: ends before the line of rows, columns and entries",
        ),
        (
            format!("{head}2 2\n"),
            "x.mtx:2: `2 2` is not a line of rows, columns and entries",
        ),
        (format!("{head}0 2 0\n"), "x.mtx:2: 0 rows"),
        (
            format!("{head}2 2 2\n1 1 1\n"),
            "x.mtx: has 1 entries, but its header says 2",
        ),
        (
            format!("{head}2 2 1\n1 1 1\n2 2 2\n"),
            "x.mtx:4: `2 2 2` is one entry too many, the header says 1",
        ),
        (
            format!("{head}2 2 1\n3 1 1\n"),
            "x.mtx:3: row `3`, expected a whole number from 1 to 2",
        ),
        (
            format!("{head}2 2 1\n1 0 1\n"),
            "x.mtx:3: column `0`, expected a whole number from 1 to 2",
        ),
        (
            format!("{head}2 2 1\n1 1 nan\n"),
            "x.mtx:3: value `nan`, expected a finite number",
        ),
        (
            format!("{head}2 2 1\n1 1\n"),
            "x.mtx:3: value ``, expected a finite number",
        ),
        (
            format!("{head}2 2 1\n1 1 1 1\n"),
            "x.mtx:3: `1` is one field too many",
        ),
        (
            format!("{head}2 2 3\n2 1 1\n% gap\n1 1 1\n2 1 3\n"),
            "x.mtx:6: row 2 has column 1 a second time (first on line 3)",
        ),
        (
            format!("{head}4000000000 2 0\n"),
            "x.mtx: declares 4000000000 rows for 0 entries",
        ),
        (
            format!("{head}5000000000 2 0\n"),
            "x.mtx:2: 5000000000 rows",
        ),
        (
            format!("{head}2 2 99999999999\n"),
            "x.mtx: has 0 entries, but its header says 99999999999",
        ),
    ] {
        let error = message("x.mtx", text.as_bytes(), &ReadOptions::default());
        assert!(error.starts_with(want), "{error}\nexpected {want}");
    }
}

#[test]
fn files_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.svm");
    let read = |path| read_dataset(path, &ReadOptions::default()).unwrap_err();
    assert!(matches!(read(&missing), Error::Read { path, .. } if path == missing));
    assert!(matches!(read(folder.path()), Error::Read { .. }));
    assert_eq!(
        message("x", b"", &ReadOptions::default()),
        "x: is empty, expected rows or records"
    );
    assert_eq!(
        message("x", b"\n# nothing\n", &ReadOptions::default()),
        "x: has no rows, only blank lines and comments"
    );
}

/// A few kilobytes that do not compress to nothing, by every compressor.
fn compressed() -> Vec<(&'static str, Vec<u8>)> {
    let text: String = (0..400u64)
        .map(|r| format!("{} {}:{}\n", r % 3, r + 1, r * r * 7919 % 1013))
        .collect();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(text.as_bytes()).unwrap();
    let mut xz =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
    xz.write_all(text.as_bytes()).unwrap();
    let zst = ruzstd::encoding::compress_to_vec(
        text.as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    vec![
        ("gzip", gz.finish().unwrap()),
        ("bzip2", bz2.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("zstd", zst),
    ]
}

#[cfg(not(feature = "compression"))]
#[test]
fn compressed_files_name_the_missing_feature() {
    for (codec, whole) in compressed() {
        let error = message("x", &whole, &ReadOptions::default());
        let expected = format!("x: is compressed ({codec}), which hdsl reads only if built with");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("feature `compression`"), "{error}");
    }
}

#[cfg(feature = "compression")]
#[test]
fn truncated_or_corrupt_streams_are_named() {
    for (codec, whole) in compressed() {
        assert_eq!(
            parse_dataset("x".as_ref(), &whole, &ReadOptions::default())
                .unwrap()
                .rows
                .n_rows(),
            400
        );
        for cut in (12..whole.len())
            .step_by(whole.len() / 60 + 1)
            .chain([whole.len() - 1])
        {
            let error = message("x", &whole[..cut], &ReadOptions::default());
            assert!(
                error.starts_with(&format!("x: truncated or corrupt {codec} data: ")),
                "cut at {cut}: {error}"
            );
        }
        // A flipped bit is a wrong checksum at the latest.
        for at in (whole.len() / 3..whole.len() / 2).step_by(7) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            let error = message("x", &flipped, &ReadOptions::default());
            assert!(error.starts_with("x"), "{codec} flipped at {at}: {error}");
        }
    }
}

#[test]
fn triplet_lists_clicks_and_judgments() {
    let parse = |text: &str, format| {
        Triplets::parse("t".as_ref(), text.as_bytes(), format, 5).map_err(|e| e.to_string())
    };
    let list = |text: &str| parse(text, TripletFormat::List);
    let clicks = |text: &str| parse(text, TripletFormat::Clicks);
    let judged = |text: &str| parse(text, TripletFormat::Judgments);
    let pairs = |text: &str| parse(text, TripletFormat::Pairs);
    for (result, want) in [
        (
            pairs("0 1\n"),
            "t:1: 2 fields, expected `row row label [weight]`",
        ),
        (
            pairs("0 1 1\n0 2 similar\n"),
            "t:2: label `similar`, expected 1 for similar or -1 for dissimilar rows",
        ),
        (
            pairs("0 5 1\n"),
            "t:1: row `5` is missing, there are 5 rows, counted from 0",
        ),
        (
            pairs("3 3 -1\n"),
            "t:1: row `3` is paired with itself, expected two different rows",
        ),
        (
            pairs("0 1 1\n# again\n1 0 -1\n"),
            "t:3: rows `1` and `0` are dissimilar here, but similar in an earlier pair",
        ),
        (
            pairs("0 1 1 -2\n"),
            "t:1: weight `-2`, expected a finite number above 0",
        ),
        (
            pairs("# none\n"),
            "t: has no pairs, only blank lines and comments",
        ),
        (
            pairs("0 1 1\n"),
            "t: has no pair of dissimilar rows, and no other row to compare similar rows with",
        ),
        (
            list("0 1 2\n0 1 5\n"),
            "t:2: row `5` is missing, there are 5 rows, counted from 0",
        ),
        (
            list("99999999999999999999 1 2\n"),
            "t:1: row `99999999999999999999` is missing, there are 5 rows, counted from 0",
        ),
        (
            list("0 -1 2\n"),
            "t:1: row `-1` is not a whole number, expected one from 0 to 4",
        ),
        (
            list("0 1\n"),
            "t:1: 2 fields, expected `anchor near far [weight]`",
        ),
        (
            list("0 1 2 3 4\n"),
            "t:1: 5 fields, expected `anchor near far [weight]`",
        ),
        (
            list("0 1 1\n"),
            "t:1: row `1` is both the nearer and the farther one, expected two different rows",
        ),
        (
            list("0 1 2 0\n"),
            "t:1: weight `0`, expected a finite number above 0",
        ),
        (
            list("0 1 2 -1\n"),
            "t:1: weight `-1`, expected a finite number above 0",
        ),
        (
            list("0 1 2 nan\n"),
            "t:1: weight `nan`, expected a finite number above 0",
        ),
        (
            list("0 1 2 inf\n"),
            "t:1: weight `inf`, expected a finite number above 0",
        ),
        (
            list("# none\n"),
            "t: has no triplets, only blank lines and comments",
        ),
        (
            list(""),
            "t: is empty, expected lines of `anchor near far [weight]`",
        ),
        (
            clicks("0 1 2 0\n"),
            "t:1: count `0`, expected a whole number above 0",
        ),
        (
            clicks("0 1 2 1.5\n"),
            "t:1: count `1.5`, expected a whole number above 0",
        ),
        (
            clicks("0 2 2\n"),
            "t:1: row `2` is both the nearer and the farther one, expected two different rows",
        ),
        (
            clicks("0\n"),
            "t:1: 1 field, expected `query clicked skipped [count]`",
        ),
        (
            judged("0 1 3\n1 1 2\n\n0 1 2\n"),
            "t:4: document 1 has grade 2 for query 0, but grade 3 on line 1",
        ),
        (
            judged("0 1 x\n"),
            "t:1: grade `x`, expected a finite number",
        ),
        (
            judged("0 9 1\n"),
            "t:1: row `9` is missing, there are 5 rows, counted from 0",
        ),
        (
            judged("0 0 1 1\n"),
            "t:1: 4 fields, expected `query document grade`",
        ),
        (
            judged("0 1 1\n0 2 1\n1 2 3\n"),
            "t: has no query with two documents of different grades",
        ),
    ] {
        assert_eq!(result.unwrap_err(), want);
    }
    assert_eq!(
        list("0 1 2\n0,1,2\n0, 1, 2, 1 # thrice\n").unwrap().len(),
        3
    );
    assert_eq!(clicks("0 1 2\n0 1 3\n").unwrap().weights(), None);
    assert_eq!(judged("0 1 1\n0 2 3\n0 2 3\n").unwrap().get(0), (0, 2, 1));
}

#[test]
fn texts_and_vocabularies() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let named = |error: Error, name| {
        let path = file.path().display().to_string();
        error.to_string().replace(&path, name)
    };
    let texts = |text: &str| {
        std::fs::write(&file, text).unwrap();
        named(read_texts(file.path()).unwrap_err(), "t")
    };
    assert_eq!(
        texts("a\tb\nno tab\n"),
        "t:2: `no tab` has no tab, expected `label<TAB>text`"
    );
    assert_eq!(
        texts(" \tb\n"),
        "t:1: no label before the tab, expected `label<TAB>text`"
    );
    assert_eq!(texts("\n"), "t: has no texts, only blank lines");
    let vocabulary = |text: &str| {
        std::fs::write(&file, text).unwrap();
        named(Vectorizer::read(file.path()).unwrap_err(), "v")
    };
    assert_eq!(vocabulary("a\nb\na\n"), "v:3: `a` is repeated");
    assert_eq!(
        vocabulary("a\r\na\r\r\n"),
        "v:2: `a\\r` ends with a carriage return, expected one word per line"
    );
    assert_eq!(
        vocabulary("a\r\tb\n"),
        "v:1: `a\\r` ends with a carriage return, expected one word per line"
    );
    assert_eq!(
        vocabulary("a\n\nb\n"),
        "v:2: no word, expected one word per line"
    );
    assert!(
        vocabulary("# hdsl vocabulary 2\na\t1\n")
            .starts_with("v:1: `# hdsl vocabulary 2` is not a vocabulary of version 1")
    );
    assert!(
        vocabulary("# hdsl vocabulary 1\tdocuments x\na\t1\n")
            .starts_with("v:1: `documents x` is not understood")
    );
    for field in ["stem latin", "stop-words dutch", "stop-words list a  b"] {
        let error = vocabulary(&format!("# hdsl vocabulary 1\t{field}\na\t1\n"));
        assert!(
            error.starts_with(&format!("v:1: `{field}` is not understood")),
            "{error}"
        );
    }
    assert!(
        vocabulary("# hdsl vocabulary 1\tdocuments 3\na\t4\n")
            .starts_with("v:2: `a` has the frequency `4`")
    );
    assert!(
        vocabulary("# hdsl vocabulary 1\tdocuments 3\na\n")
            .starts_with("v:2: `a` has the frequency ``")
    );
    assert!(vocabulary("# hdsl vocabulary 1\tdocuments 3\n").starts_with("v: has 0 words"));
}

/// Bytes that get past the first check more often than noise does.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        "[0-9:#., \t\n+-]{0,30}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            &b"%%MatrixMarket matrix coordinate real general\n3 3 2\n"[..],
            b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n",
            b"1 qid:2 3:4\n",
            b"\x1f\x8b\x08",
            b"BZh9",
            b"\xfd7zXZ\0",
            b"\x28\xb5\x2f\xfd",
            b"PK\x03\x04",
            b"# hdsl vocabulary 1\tdocuments 3\n",
            b"word\t2\n",
            b"0 1 2\n",
            b"nan",
            b".I 1\n.T\n",
            b"{\"_id\": 1, \"text\": \"x\"}\n",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_parser_panics_on_any_bytes(bytes in any_bytes()) {
        for format in [None, Some(Format::Svmlight), Some(Format::Nips), Some(Format::MatrixMarket), Some(Format::Npz)] {
            for index_base in [None, Some(IndexBase::Zero), Some(IndexBase::One)] {
                let options = ReadOptions { format, index_base, n_features: None, labels: None, ..Default::default() };
                let _ = parse_dataset("x".as_ref(), &bytes, &options);
            }
        }
        for format in TripletFormat::ALL {
            let _ = Triplets::parse("x".as_ref(), &bytes, format, 5);
        }
        let _ = parse_documents("x".as_ref(), &bytes);
        for low in [false, true] {
            let _ = Judgments::parse("x".as_ref(), &bytes, &Ids::Rows(5), &Ids::Positions(5), low);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, &bytes).unwrap();
        let _ = read_texts(file.path());
        let _ = read_names(file.path());
        let _ = Vectorizer::read(file.path());
    }

    #[test]
    fn no_decoder_panics_on_spoiled_streams(which in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let (_, mut bytes) = compressed().swap_remove(which);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = parse_dataset("x".as_ref(), &bytes, &ReadOptions::default());
    }
}
