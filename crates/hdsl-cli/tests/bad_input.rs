//! Wrong use and bad input: status 2, one clear message, no panic, and no output file touched.

mod common;
use common::Scratch;

/// Runs a line that must be refused. `m.out` is the output: once missing, once there before.
#[track_caller]
fn refused(scratch: &Scratch, line: &str, says: &[&str]) {
    for before in [None, Some("precious")] {
        match before {
            Some(text) => scratch.write("m.out", text),
            None => drop(std::fs::remove_file(scratch.path("m.out"))),
        }
        let files = scratch.files();
        let ran = scratch.hdsl(line);
        assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{line}");
        assert!(
            ran.stderr.starts_with("hdsl: error: "),
            "{line}: {}",
            ran.stderr
        );
        assert_eq!(ran.stderr.matches("error:").count(), 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{line}: {}", ran.stderr);
        for words in says {
            assert!(
                ran.stderr.contains(words),
                "{line}: {words:?} is not in {}",
                ran.stderr
            );
        }
        assert_eq!(scratch.files(), files, "{line} left something behind");
        if let Some(text) = before {
            assert_eq!(scratch.text("m.out"), text, "{line} touched its output");
        }
    }
}

const GOOD: &str = "a 1:1 2:1\na 1:1 3:1\nb 4:1 2:1\nb 4:1 3:1\na 1:2\nb 4:2\n";

#[test]
fn negative_values_have_no_term_weight() {
    let scratch = Scratch::empty();
    scratch.write("good.svm", GOOD);
    scratch.write("bad.svm", GOOD.replace("b 4:2", "b 4:-2"));
    let trained = scratch.hdsl(
        "train good.svm --preprocess tfidf --triplets knn:1:1 --lambda 1 --max-iter 3 -o m.hdsl",
    );
    assert_eq!(trained.status, Some(0), "{}", trained.stderr);
    let says = ["bad.svm: row 5 has the value -2 for feature 3", "tfidf"];
    for line in [
        "train bad.svm --preprocess tfidf --lambda 1 -o m.out",
        "train good.svm --preprocess tfidf --valid bad.svm --lambda 1 -o m.out",
        "triplets bad.svm --preprocess tfidf -o m.out",
        "evaluate identity --preprocess tfidf --train bad.svm good.svm",
        "evaluate m.hdsl --train good.svm bad.svm",
        "predict m.hdsl --train good.svm bad.svm -o m.out",
        "neighbors m.hdsl --train bad.svm good.svm",
        "transform m.hdsl bad.svm --to svmlight -o m.out",
        "score m.hdsl bad.svm --all -o m.out",
        "explain m.hdsl --pair good.svm:0 bad.svm:0",
        "report m.hdsl --train good.svm --test bad.svm -o m.out",
    ] {
        refused(&scratch, line, &says);
    }
}

#[test]
fn bad_files() {
    let scratch = Scratch::empty();
    scratch.write("good.svm", GOOD);
    let cases: [(&str, &[u8], &[&str]); 16] = [
        ("empty", b"", &["bad.svm"]),
        ("blank lines only", b"\n\n", &["bad.svm"]),
        ("not a number", b"a 1:1\nb 2:nan\n", &["bad.svm:2:", "nan"]),
        ("infinite", b"a 1:1\nb 2:inf\n", &["bad.svm:2:", "inf"]),
        ("too large", b"a 1:1\nb 2:1e999\n", &["bad.svm:2:", "1e999"]),
        ("unparsable value", b"a 1:1\nb 2:x\n", &["bad.svm:2:", "x"]),
        ("unparsable pair", b"a 1:1\nb 2\n", &["bad.svm:2:"]),
        ("negative index", b"a 1:1\nb -2:1\n", &["bad.svm:2:", "-2"]),
        (
            "repeated index",
            b"a 1:1\nb 2:1 2:3\n",
            &["bad.svm:2:", "2"],
        ),
        (
            "index above 2^32 - 1",
            b"a 1:1\nb 4294967297:1\n",
            &["bad.svm:2:", "4294967297"],
        ),
        (
            "huge index",
            b"a 1:1\nb 99999999999999999999999:1\n",
            &["bad.svm:2:"],
        ),
        (
            "truncated gzip",
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
            &["bad.svm"],
        ),
        ("corrupt bzip2", b"BZh91AY&SYgarbage", &["bad.svm"]),
        ("corrupt xz", b"\xfd7zXZ\x00garbage", &["bad.svm"]),
        ("corrupt zstd", b"\x28\xb5\x2f\xfdgarbage", &["bad.svm"]),
        ("corrupt npz", b"PK\x03\x04garbage", &["bad.svm"]),
    ];
    for (what, bytes, says) in cases {
        println!("{what}");
        scratch.write("bad.svm", bytes);
        refused(&scratch, "train bad.svm --lambda 1 -o m.out", says);
        refused(
            &scratch,
            "train good.svm --triplets knn:1:1 --valid bad.svm --lambda 1 -o m.out",
            says,
        );
        refused(&scratch, "convert bad.svm -o m.out --to npz", says);
        refused(&scratch, "evaluate identity --train good.svm bad.svm", says);
    }
    refused(
        &scratch,
        "train none.svm --lambda 1 -o m.out",
        &["none.svm", "cannot read"],
    );
    refused(&scratch, "train . --lambda 1 -o m.out", &["cannot read"]);
    scratch.write("zero.svm", "a 0:1 2:1\nb 1:1\n");
    refused(
        &scratch,
        "train zero.svm --one-based --lambda 1 -o m.out",
        &["zero.svm:1:", "0"],
    );
}

#[test]
fn a_truncated_real_archive() {
    let scratch = Scratch::planted();
    let whole = scratch.read("train.svm.bz2");
    scratch.write("cut.svm.bz2", &whole[..whole.len() / 2]);
    refused(
        &scratch,
        "train cut.svm.bz2 --lambda 1 -o m.out",
        &["cut.svm.bz2"],
    );
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    scratch.write("flipped.svm.bz2", &flipped);
    refused(
        &scratch,
        "train flipped.svm.bz2 --lambda 1 -o m.out",
        &["flipped.svm.bz2"],
    );
}

#[test]
fn labels_that_do_not_fit() {
    let scratch = Scratch::empty();
    scratch.write("good.svm", GOOD);
    scratch.write("good.labels", "1\n2\n1\n");
    refused(
        &scratch,
        "train good.svm --labels good.labels --lambda 1 -o m.out",
        &["good.labels", "3", "6"],
    );
    scratch.write("one.svm", "a 1:1\na 2:1\na 1:1 3:1\na 2:2\n");
    refused(&scratch, "train one.svm --lambda 1 -o m.out", &["class"]);
    refused(
        &scratch,
        "train one.svm --triplets random:3 --lambda 1 -o m.out",
        &["class"],
    );
    scratch.write("bare.data", "1:1 2:3\n2:1\n");
    refused(&scratch, "train bare.data --lambda 1 -o m.out", &["label"]);
    refused(
        &scratch,
        "evaluate identity --train good.svm bare.data",
        &["bare.data", "--labels"],
    );
    refused(
        &scratch,
        "predict identity --train bare.data good.svm -o m.out",
        &["bare.data", "--train-labels"],
    );
}

#[test]
fn fewer_rows_than_neighbors() {
    let scratch = Scratch::empty();
    scratch.write("good.svm", GOOD);
    let triplets = "train good.svm --triplets knn:6:5 --lambda 1 -o m.out";
    refused(&scratch, triplets, &["6"]);
    for line in [
        "train good.svm --triplets knn:1:1 --valid good.svm -k 7 --lambda 1 -o m.out",
        "evaluate identity --train good.svm good.svm -k 7",
        "neighbors identity --train good.svm good.svm -k 7 -o m.out",
    ] {
        refused(&scratch, line, &["7", "6"]);
    }
}

#[test]
fn triplets_that_name_missing_rows() {
    let scratch = Scratch::empty();
    scratch.write("good.svm", GOOD);
    let line = "train good.svm --triplets t.txt --lambda 1 -o m.out";
    refused(&scratch, line, &["t.txt", "no such file"]);
    for (text, says) in [
        ("0 1 2\n0 1 6\n", &["t.txt:2:", "6"][..]),
        ("0 1\n", &["t.txt:1:"]),
        ("0 1 -2\n", &["t.txt:1:", "-2"]),
        ("0 1 1\n", &["t.txt:1:"]),
        ("0 1 2 0\n", &["t.txt:1:", "weight"]),
        ("0 1 2 nan\n", &["t.txt:1:"]),
        ("", &["t.txt"]),
    ] {
        scratch.write("t.txt", text);
        refused(&scratch, line, says);
        refused(
            &scratch,
            "triplets good.svm --triplets t.txt -o m.out",
            says,
        );
    }
    scratch.write("t.txt", "0 1 9\n");
    for kind in ["clicks", "judgments", "judgments-low"] {
        scratch.write(
            "t.txt",
            if kind == "clicks" {
                "0 1 9\n"
            } else {
                "0 9 2\n"
            },
        );
        let line = format!("train good.svm --triplets {kind}:t.txt --lambda 1 -o m.out");
        refused(&scratch, &line, &["t.txt:1:", "9"]);
    }
}

#[test]
fn numbers_out_of_range() {
    let scratch = Scratch::empty();
    scratch.write("good.svm", GOOD);
    for value in ["0", "-1", "nan", "inf", "x", "1,0", "1,,2", "1,x"] {
        let line = format!("train good.svm --valid good.svm --lambda {value} -o m.out");
        refused(&scratch, &line, &["--lambda", "above 0"]);
    }
    for option in ["-k", "--batch", "--max-iter", "--eval-every", "--patience"] {
        for value in ["0", "-1", "nan", "1.5", "x"] {
            let line =
                format!("train good.svm --valid good.svm --lambda 1 {option} {value} -o m.out");
            refused(&scratch, &line, &[option, "above 0"]);
        }
    }
    for value in ["0", "-1", "nan", "1.5", "x", "257"] {
        let line = format!("train good.svm --lambda 1 --threads {value} -o m.out");
        refused(&scratch, &line, &["--threads", "from 1 to 256"]);
    }
    for value in ["0", "-1", "nan", "inf", "x"] {
        let line = format!("train good.svm --lambda 1 --tol {value} -o m.out");
        refused(&scratch, &line, &["--tol", "above 0"]);
    }
    for (flags, says) in [
        ("--lambda 1,10", "--valid"),
        ("--lambda 1 --patience 5", "--valid"),
        ("--lambda 1 --holdout 1", "--holdout"),
        ("--lambda 1 --max-features 1", "--max-features"),
        ("--lambda 1 --time 0s", "--time"),
        ("--lambda 1 --triplets knn:0:5", "above 0"),
        ("--lambda 1 --triplets random:0", "above 0"),
        ("--lambda 1 --search best", "exact"),
        ("--lambda 1 --tol 0.1 --batch 5", "--batch"),
    ] {
        refused(
            &scratch,
            &format!("train good.svm {flags} -o m.out"),
            &[says],
        );
    }
}

#[test]
fn models_that_are_not() {
    let scratch = Scratch::trained();
    let good = scratch.read("m.hdsl");
    let use_it = |says: &[&str]| {
        refused(
            &scratch,
            "evaluate bad.hdsl --train train.svm test.svm",
            says,
        );
        refused(
            &scratch,
            "predict bad.hdsl --train train.svm test.svm -o m.out",
            says,
        );
        refused(
            &scratch,
            "transform bad.hdsl test.svm -o m.out --to npz",
            says,
        );
        refused(&scratch, "explain bad.hdsl", says);
        refused(&scratch, "inspect bad.hdsl", says);
    };
    use_it(&["bad.hdsl", "cannot read"]);
    let mut newer = good.clone();
    newer[5] = 200;
    let mut kind = good.clone();
    kind[4] = b'Q';
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cut = &good[..good.len() - 7];
    for bytes in [&b""[..], b"svm 1:2\n", &newer, &kind, &flipped, cut] {
        scratch.write("bad.hdsl", bytes);
        use_it(&["bad.hdsl"]);
    }
    refused(&scratch, "explain m.hdsl --iteration 9999", &["9999"]);
    refused(
        &scratch,
        "explain m.hdsl --max-features 3 --max-atoms 2",
        &["--max-atoms"],
    );
    refused(
        &scratch,
        "evaluate m.hdsl --preprocess unit --train train.svm test.svm",
        &["identity"],
    );
    refused(
        &scratch,
        "explain m.hdsl --pair test.svm:80 train.svm:0",
        &["test.svm", "80"],
    );
    refused(
        &scratch,
        "explain m.hdsl --pair test.svm train.svm:0",
        &["FILE:ROW"],
    );
    refused(
        &scratch,
        "score m.hdsl test.svm train.svm -o m.out",
        &["--pairs", "80", "160"],
    );
}

#[test]
fn outputs_that_cannot_be_written() {
    let scratch = Scratch::planted();
    // Training would take long: that this ends at once shows that it never starts.
    let started = std::time::Instant::now();
    let train = "train train.svm --valid valid.svm --lambda 1 --max-iter 100000000 -o";
    refused(
        &scratch,
        &format!("{train} none/m.hdsl"),
        &["none/m.hdsl", "cannot write"],
    );
    refused(&scratch, &format!("{train} ."), &["cannot write"]);
    refused(
        &scratch,
        "transform m.hdsl test.svm -o none/z.npz",
        &["cannot write"],
    );
    refused(
        &scratch,
        "convert test.svm -o none/z.npz",
        &["cannot write"],
    );
    refused(&scratch, "convert test.svm -o z.what", &["--to"]);
    scratch.write("file", "");
    refused(&scratch, "demo --dir file/demo", &["cannot write"]);
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
fn standard_streams_used_twice() {
    let scratch = Scratch::planted();
    let ran = scratch.shell("hdsl evaluate identity --train - - < train.svm");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("standard input"), "{}", ran.stderr);
    refused(
        &scratch,
        "train train.svm --lambda 1 --json -o -",
        &["standard output"],
    );
}

#[test]
fn a_full_disk_ends_with_status_1_and_no_partial_file() {
    let scratch = Scratch::trained();
    for line in [
        "hdsl convert train.svm -o big.svm",
        "hdsl convert train.svm -o big.npz",
        "hdsl transform m.hdsl train.svm -o big.svm",
        "hdsl score m.hdsl train.svm --all -o big.txt",
        "hdsl train train.svm --lambda 10 --max-iter 2000 -o big.hdsl",
        "hdsl triplets train.svm -o big.txt",
    ] {
        for before in [false, true] {
            let files = scratch.files();
            let name = line.rsplit(' ').next().expect("a line ends in a name");
            if before {
                scratch.write(name, "precious");
            }
            let ran = scratch.shell(&format!("trap '' XFSZ; ulimit -f 1; {line}"));
            assert_eq!(ran.status, Some(1), "{line}: {}", ran.stderr);
            assert!(
                ran.stderr.starts_with("hdsl: error: big."),
                "{line}: {}",
                ran.stderr
            );
            assert!(
                ran.stderr.contains("cannot write"),
                "{line}: {}",
                ran.stderr
            );
            assert_eq!(
                (ran.stdout.as_str(), ran.stderr.lines().count()),
                ("", 1),
                "{}",
                ran.stderr
            );
            if before {
                assert_eq!(scratch.text(name), "precious", "{line}");
                std::fs::remove_file(scratch.path(name)).expect("a file");
            }
            assert_eq!(scratch.files(), files, "{line} left something behind");
        }
    }
    let full = std::path::Path::new("/dev/full");
    if full.exists() {
        let ran = scratch.shell("hdsl inspect train.svm > /dev/full");
        assert_eq!(ran.status, Some(1));
        assert!(ran.stderr.contains("standard output"), "{}", ran.stderr);
    }
}

/// A label that the format cannot hold is refused, before anything is written; one that it can is read back.
#[test]
fn labels_that_would_not_be_read_back() {
    let scratch = Scratch::empty();
    scratch.write(
        "x.csv",
        "label,text\n#x,one two\ny,two three\n#x,one four\n",
    );
    refused(
        &scratch,
        "vectorize x.csv --label label --text text -o x.svm",
        &["x.svm: cannot write: the label `#x` would not be read back from svmlight"],
    );
    assert!(!scratch.path("x.svm").exists());
    scratch
        .hdsl("vectorize x.csv --label label --text text -o x.npz")
        .ok();
    assert_eq!(scratch.text("x.labels"), "#x\ny\n#x\n");
    let facts = scratch.hdsl("inspect x.npz --json").json();
    assert_eq!(facts["classes"][0]["class"], "#x", "{facts}");
    scratch.write("y.csv", "label,text\n\"a\nb\",one two\ny,two three\n");
    refused(
        &scratch,
        "vectorize y.csv --label label --text text -o y.npz",
        &["y.labels: cannot write: the label `a\\nb` would not be read back"],
    );
    assert!(!scratch.path("y.npz").exists() && !scratch.path("y.labels").exists());
}

#[test]
fn long_labels_are_not_printed_in_full() {
    let scratch = Scratch::empty();
    let long = "x".repeat(5_000_000);
    let row = |label: &str, n: usize| format!("{label} {}:1 {}:2\n", n % 5 + 1, n % 7 + 6);
    let rows: String = (0..40)
        .map(|n| row(if n % 2 == 0 { &long } else { "y" }, n))
        .collect();
    scratch.write("x.svm", rows);
    scratch
        .hdsl("train x.svm --lambda 1 --max-iter 3 -o m.hdsl")
        .ok();
    for line in [
        "inspect x.svm",
        "evaluate m.hdsl --train x.svm x.svm",
        "explain m.hdsl --pair x.svm:0 x.svm:1",
        "inspect m.hdsl",
        "train x.svm --labels x.svm --lambda 1 -o n.hdsl",
    ] {
        let ran = scratch.hdsl(line);
        let n = ran.stdout.len() + ran.stderr.len();
        assert!(n < 20_000, "{line}: {n} bytes");
    }
}

#[test]
fn outputs_in_odd_places() {
    let scratch = Scratch::planted();
    refused(&scratch, "tune train.svm --cv 1 -o m.hdsl", &["--cv", "2"]);
    #[cfg(unix)]
    {
        scratch.hdsl("convert train.svm --to npz -o /dev/null").ok();
        assert!(!std::path::Path::new("/dev/null.labels").exists());
        scratch
            .shell("ln -s none/x.svm dangling; ln -s there.svm second; ln -s second first")
            .ok();
        let ran = scratch.hdsl("convert train.svm --to svmlight -o dangling");
        assert_eq!(ran.status, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr
                .contains("dangling: cannot write: No such file or directory"),
            "{}",
            ran.stderr
        );
        scratch
            .hdsl("convert train.svm --to svmlight -o first")
            .ok();
        assert!(scratch.path("there.svm").is_file() && scratch.path("second").is_symlink());
    }
}

/// All files of a demo, or none.
#[cfg(unix)]
#[test]
fn the_files_of_a_demo_are_replaced_together() {
    let scratch = Scratch::empty();
    scratch.hdsl("demo --dir d").ok();
    let names = [
        "train.svm",
        "valid.svm",
        "test.svm",
        "names.txt",
        "model.hdsl",
        "report.html",
    ];
    for name in names {
        scratch.write(&format!("d/{name}"), "old");
    }
    // Room for the rows, but not for the report.
    let ran = scratch.shell("trap '' XFSZ; ulimit -f 600; hdsl demo --dir d");
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("report.html: cannot write"),
        "{}",
        ran.stderr
    );
    for name in names {
        assert_eq!(scratch.text(&format!("d/{name}")), "old", "{name}");
    }
    scratch.hdsl("demo --dir d").ok();
    assert!(scratch.text("d/train.svm") != "old");
}
