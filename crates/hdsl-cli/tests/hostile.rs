//! Input that is meant to do harm is refused, with the file and the line, within the limit on memory.

mod common;

use common::Scratch;
use std::io::Write;

#[track_caller]
fn refused(scratch: &Scratch, line: &str, wanted: &str) {
    let ran = scratch.hdsl(line);
    assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
    assert!(ran.stderr.contains(wanted), "{line}: {}", ran.stderr);
}

#[test]
fn values_that_overflow_are_refused_by_line() {
    let scratch = Scratch::empty();
    scratch.write("x.svm", "a 1:1 2:1\nb 1:2 3:1e200\na 2:1\nb 3:1\n");
    let want = "x.svm:2: value `1e200` of index 3, expected a number from -1e50 to 1e50";
    for command in [
        "inspect x.svm",
        "train x.svm --preprocess none --lambda 1 -o m.hdsl",
    ] {
        refused(&scratch, command, want);
    }
    scratch.write(
        "x.mtx",
        "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 1 -1e60\n",
    );
    refused(&scratch, "inspect x.mtx", "x.mtx:3: value `-1e60`");
    scratch.write(
        "y.svm",
        "a 1:1 2:1\nb 1:2 3:1e49\na 2:1e49\nb 3:1\n".repeat(4),
    );
    for loss in ["smoothed-hinge", "squared-hinge", "logistic", "exponential"] {
        let train = format!("train y.svm --preprocess none --loss {loss} --max-iter 20 --lambda");
        scratch
            .hdsl(&format!("{train} 1e30 --base 1e30 -o m.hdsl"))
            .ok();
        refused(&scratch, &format!("{train} 1e31 -o m.hdsl"), "1e30");
    }
}

/// Rows whose mini-batches tell the solver to step away from an atom whose weight is 1 up to rounding: the step was
/// infinitely long, and the weights were not numbers.
const ONE_ATOM_WITH_ALL_WEIGHT: &str = "\
c0 1:1e49 3:1e-30 5:1\n\
c1 4:1 6:1e-320 8:1e-30\n\
c0 1:1 4:1e-30 8:1\n\
c1 2:1e-30 5:1e49 6:1e-30\n\
c0 1:1e-30 6:1 8:1e-320\n\
c1 1:1e-320 6:1 7:1\n\
c0 2:1e-320 3:1 4:1e49\n\
c1 1:1e-30 4:1e-320 5:1e49\n\
c0 2:1 3:1e-320 6:1e49\n\
c1 4:1 5:1e-30 8:1\n\
c0 4:1 6:1e-320 8:1e49\n\
c1 1:1e-30 4:1e-320 6:1\n\
c0 4:1e-30 6:1 8:1e-30\n\
c1 5:1 6:1e-320 8:1e-320\n\
c0 1:1e-320 2:1 4:1e49\n\
c1 3:1e-30 4:1 6:1e-320\n\
c0 1:1 4:1e49 8:1e-320\n\
c1 3:1 4:1e49 7:1e-30\n\
c0 4:1e-30 5:1e-320 6:1e-320\n\
c1 1:1e49 3:1e-30 7:1e-30\n\
c0 1:1 2:1e-30 7:1e49\n\
c1 1:1e-320 3:1e49 4:1e49\n\
c0 2:1e49 7:1e-320 8:1e49\n\
c1 4:1e49 5:1 6:1\n";

#[test]
fn no_step_divides_by_a_weight_that_is_lost_in_rounding() {
    let scratch = Scratch::empty();
    scratch.write("x.svm", ONE_ATOM_WITH_ALL_WEIGHT);
    for loss in ["smoothed-hinge", "squared-hinge", "logistic", "exponential"] {
        for seed in 0..4 {
            scratch
                .hdsl(&format!(
                    "train x.svm --valid x.svm --max-iter 8 --eval-every 2 --preprocess max --loss {loss} --search exact \
                     --lambda 1e30 --base 1 --triplets knn:3:5 --batch 10 --normalization dot --seed {seed} -o m.hdsl"
                ))
                .ok();
            // The path can be replayed.
            scratch.hdsl("evaluate m.hdsl --train x.svm x.svm").ok();
        }
    }
}

#[test]
fn weights_of_triplets_that_overflow_are_refused_by_line() {
    let scratch = Scratch::empty();
    scratch.write("x.svm", "a 1:1 2:1\nb 1:2 3:1\na 2:1\nb 3:1\n");
    let train = "train x.svm --lambda 1 --max-iter 5 -o m.hdsl --triplets";
    scratch.write("t.txt", "0 2 1 1\n2 0 3 1.7e308\n");
    scratch.write("p.txt", "0 2 1 1\n0 1 -1 2e30\n");
    let want = "expected at most 1e30: sums of larger ones overflow";
    let of_list = format!("t.txt:2: weight `1.7e308`, {want}");
    refused(&scratch, &format!("{train} t.txt"), &of_list);
    let of_pairs = format!("p.txt:2: weight `2e30`, {want}");
    refused(&scratch, &format!("{train} pairs:p.txt"), &of_pairs);
    scratch.write("t.txt", "0 2 1 1e30\n2 0 3 1e-300\n");
    scratch.hdsl(&format!("{train} t.txt")).ok();
}

#[test]
fn labels_that_are_not_text_are_refused_by_line() {
    let scratch = Scratch::empty();
    scratch.write("x.svm", b"a 1:1\n\xff\xfe 2:1\n");
    refused(&scratch, "inspect x.svm", "x.svm:2: label");
    scratch.write("x.svm", b"a 1:1\nb 2:1\n\0\0\0\n");
    refused(
        &scratch,
        "inspect x.svm",
        "x.svm:3: label `\\0\\0\\0` has a control character",
    );
    scratch.write("x.svm", "é 1:1\n語 2:1\n");
    let facts = scratch.hdsl("inspect x.svm --json").json();
    assert_eq!(
        facts["classes"].as_array().map(Vec::len),
        Some(2),
        "{facts}"
    );
    scratch.write(
        "y.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n",
    );
    scratch.write("y.labels", b"a\n\xff\n");
    refused(&scratch, "inspect y.mtx", "y.labels:2: label");
}

/// 8 MB of zeros, or of rows, in a few kilobytes.
#[test]
fn bombs_stop_at_the_limit_on_memory() {
    let scratch = Scratch::empty();
    let many = "a 1:1 2:1\n".repeat(8 * 100_000).into_bytes();
    for (name, text) in [("zeros", vec![0; 8 << 20]), ("rows", many)] {
        let file = std::fs::File::create(scratch.path(&format!("{name}.svm.bz2"))).expect("a file");
        let mut out = bzip2::write::BzEncoder::new(file, bzip2::Compression::fast());
        out.write_all(&text).expect("a file can be written");
        out.finish().expect("a file can be written");
        let line = format!("train {name}.svm.bz2 --lambda 1 --memory 2MB -o m.hdsl");
        refused(&scratch, &line, "which is the limit (see --memory)");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_endless_line_is_refused() {
    let scratch = Scratch::empty();
    let line = "train /dev/zero --format svmlight --lambda 1 --memory 64MB -o m.hdsl";
    refused(&scratch, line, "/dev/zero:1: the line is longer than");
}

/// Nothing is allocated per column: 60 rows with an index near 2^32, in 4 GB of address space.
#[cfg(target_os = "linux")]
#[test]
fn columns_that_do_not_occur_take_no_memory() {
    let scratch = Scratch::empty();
    let row = |r: u32| format!("c{} {}:1 {}:2\n", r % 2, r + 1, 4_294_900_000 - r);
    scratch.write("x.svm", (0..60).map(row).collect::<String>());
    for line in [
        "train x.svm --lambda 1 --max-iter 20 -o m.hdsl",
        "train x.svm --max-iter 20 -o auto.hdsl",
        "evaluate m.hdsl --train x.svm x.svm",
        "evaluate identity --train x.svm x.svm",
        "report m.hdsl --train x.svm --test x.svm -o r.html",
        "neighbors m.hdsl --train x.svm x.svm -o n.txt",
        "transform m.hdsl x.svm -o t.npz",
        "index build m.hdsl x.svm -o x.index",
        "index search x.index --rows x.svm -k 2",
        "inspect x.svm",
    ] {
        let ran = scratch.shell(&format!("ulimit -v 4000000; hdsl {line} --threads 2"));
        assert_eq!(ran.status, Some(0), "{line}: {}", ran.stderr);
    }
}

/// With a base, one coordinate per feature and one per atom have to be numbered.
#[test]
fn features_and_atoms_that_cannot_be_numbered_together_are_refused() {
    let scratch = Scratch::empty();
    let row = |r: u32| format!("c{} {}:1 {}:2\n", r % 2, r + 1, u32::MAX - r);
    scratch.write("x.svm", (0..60).map(row).collect::<String>());
    let line = "train x.svm --lambda 1 --base 1 --max-iter 20 -o m.hdsl";
    refused(&scratch, line, "expected fewer than 2^32 together");
}

#[test]
fn pairs_of_judged_documents_are_counted_before_they_are_made() {
    let scratch = Scratch::empty();
    let n = 4000;
    let rows: String = (0..=n)
        .map(|row| format!("a {}:1 {}:1\n", 1 + row % 50, 60 + row % 7))
        .collect();
    scratch.write("x.svm", rows);
    let judgments: String = (1..=n).map(|d| format!("0 {d} {d}\n")).collect();
    scratch.write("j.txt", judgments);
    let line =
        "train x.svm --triplets judgments:j.txt --lambda 1 --max-iter 2 --memory 100MB -o m.hdsl";
    refused(
        &scratch,
        line,
        "j.txt: has 7,998,000 pairs of documents with different grades",
    );
}

/// A name with escapes neither clears the terminal nor forges a line of a table.
#[test]
fn control_characters_are_not_printed_in_tables_and_messages() {
    let scratch = Scratch::planted();
    let mut names = scratch.text("vocab.txt");
    names = names
        .lines()
        .map(|name| format!("{name}\u{1b}[2J\n"))
        .collect();
    scratch.write("evil.txt", names);
    scratch
        .hdsl("train train.svm --lambda 10 --max-iter 20 --names evil.txt -o m.hdsl")
        .ok();
    let shown = scratch.hdsl("explain m.hdsl").ok();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let ran = scratch.shell("hdsl inspect $'no\\e[2J\\nfile'");
    assert_eq!(ran.status, Some(2));
    assert!(!ran.stderr.contains('\u{1b}') && ran.stderr.lines().count() == 1);
}

#[test]
fn outputs_in_odd_places() {
    let scratch = Scratch::planted();
    // A link to a file that does not exist yet stays a link.
    scratch
        .shell("mkdir there; ln -s there/m.hdsl link.hdsl")
        .ok();
    scratch
        .hdsl("train train.svm --lambda 10 --max-iter 5 -o link.hdsl")
        .ok();
    assert!(scratch.path("there/m.hdsl").exists());
    assert!(scratch.path("link.hdsl").is_symlink());
    scratch.hdsl("convert train.svm -o /dev/null --to npz").ok();
    let long = "x".repeat(100_000);
    scratch.write("long.csv", format!("label,text\n\"{long} y\",a b\nb,c d\n"));
    let ran = scratch.hdsl("vectorize long.csv --label label -o out.svm");
    assert!(
        ran.status != Some(0) && ran.stderr.len() < 1000,
        "{}",
        ran.stderr.len()
    );
}
