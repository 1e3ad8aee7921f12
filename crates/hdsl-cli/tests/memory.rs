//! Training that would not fit in memory says so before it starts, and what it advises works.

mod common;

use common::Scratch;

/// What a refused run says.
fn refused(scratch: &Scratch, line: &str) -> String {
    let files = scratch.files();
    let ran = scratch.shell(line);
    assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
    assert_eq!(ran.stdout, "", "{line}");
    assert_eq!(scratch.files(), files, "{line} left something behind");
    let message = ran.stderr.lines().last().unwrap_or_default();
    assert!(
        message.starts_with("hdsl: error: training on "),
        "{message}"
    );
    message.to_owned()
}

#[test]
fn a_limit_is_kept_and_the_advice_fits() {
    let scratch = Scratch::planted();
    let line = "hdsl train train.svm --lambda 10 --max-iter 5 --memory 20MB -o m.hdsl";
    let message = refused(&scratch, &format!("{line} --triplets random:20000"));
    for part in [
        "training on 3,200,000 triplets needs about ",
        " MB of memory, and the limit is 20 MB; it would fit with ",
        " triplets (--triplets random:",
        ", --memory SIZE to try all the same)",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    let (_, per_row) = message.split_once("random:").expect("just seen");
    let per_row: usize = per_row
        .split(',')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!((100..20_000).contains(&per_row), "{message}");
    scratch
        .shell(&format!("{line} --triplets random:{per_row}"))
        .ok();
    // Two and a half times as many do not: the advice is not too careful.
    let more = per_row * 5 / 2;
    refused(&scratch, &format!("{line} --triplets random:{more}"));
}

#[test]
fn neighbors_and_files_are_refused_too() {
    let scratch = Scratch::planted();
    let line = "hdsl train train.svm --lambda 10 --memory 1MB -o m.hdsl";
    let message = refused(&scratch, line);
    assert!(message.contains("2,400 triplets"), "{message}");
    scratch.shell("hdsl triplets train.svm -o t.txt").ok();
    let message = refused(&scratch, &format!("{line} --triplets t.txt"));
    assert!(message.contains("2,400 triplets"), "{message}");
    for size in ["0GB", "4", "x", "4XB"] {
        let ran = scratch.hdsl(&format!(
            "train train.svm --lambda 1 --memory {size} -o m.out"
        ));
        assert_eq!(ran.status, Some(2), "{size}");
        assert!(ran.stderr.contains("--memory"), "{}", ran.stderr);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_the_system_leaves_is_the_limit_unless_one_is_given() {
    let scratch = Scratch::planted();
    // 1.6 billion triplets, which are no trouble to name, and an address space of 4 GB.
    let line =
        "ulimit -v 4000000; hdsl train train.svm --lambda 10 --triplets random:10000000 -o m.hdsl";
    let started = std::time::Instant::now();
    let message = refused(&scratch, line);
    assert!(
        message.contains("training on 1,600,000,000 triplets"),
        "{message}"
    );
    assert!(message.contains(" GB are free; "), "{message}");
    assert!(
        started.elapsed().as_secs() < 20,
        "it takes no time to find out"
    );
    let small = "ulimit -v 4000000; hdsl train train.svm --lambda 10 --max-iter 5 -o m.hdsl";
    scratch.shell(small).ok();
}
