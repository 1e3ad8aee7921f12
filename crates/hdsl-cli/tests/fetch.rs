//! `hdsl fetch` as a process, against a server on the loopback address.
#![cfg(feature = "fetch")]

mod common;
#[path = "../../hdsl-fetch/tests/server/mod.rs"]
mod server;

use common::Scratch;
use server::{Act, Server, bz2_of, dexter_zip};
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DEXTER: &str = "https://archive.ics.uci.edu/static/public/168/dexter.zip";
const LIBSVM: &str = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets";

#[test]
fn fetched_sets_can_be_trained_on_with_the_commands_it_prints() {
    let (scratch, server) = (Scratch::empty(), Server::start());
    let mut rows = String::new();
    for row in 0..40 {
        let class = row % 2;
        writeln!(rows, "{} {}:1 {}:1", class * 2 - 1, class + 1, row % 7 + 3).unwrap();
    }
    server.serve(
        &format!("{LIBSVM}/binary/rcv1_train.binary.bz2"),
        bz2_of(&rows),
    );
    server.serve(
        &format!("{LIBSVM}/binary/rcv1_test.binary.bz2"),
        bz2_of(&rows),
    );
    let base = server.base();
    let line = format!("fetch rcv1_binary --dir cache --base-url {base}");
    let ran = scratch.hdsl(&line);
    assert!(
        ran.stderr
            .contains("has 40 rows of 9 features, but its source documents 20,242 of 47,236"),
        "{}",
        ran.stderr
    );
    let text = ran.ok();
    assert!(
        text.contains("train 40 rows of 47,236 features, 2 classes\n"),
        "{text}"
    );
    let commands: Vec<&str> = text.lines().filter(|l| l.starts_with("  hdsl ")).collect();
    assert_eq!(commands.len(), 2, "{text}");
    for command in commands {
        scratch.shell(command).ok();
    }
    // From the cache, whatever the network does.
    let ran = scratch
        .hdsl("fetch rcv1.binary --dir cache --part train --paths --base-url http://127.0.0.1:9");
    assert_eq!(
        ran.ok().trim_end(),
        "cache/rcv1.binary/rcv1_train.binary.bz2"
    );
}

#[test]
fn labels_in_files_of_their_own_are_found() {
    let (scratch, server) = (Scratch::empty(), Server::start());
    server.serve(DEXTER, dexter_zip());
    let line = format!(
        "fetch dexter -q --json --dir cache --base-url {}",
        server.base()
    );
    let said = scratch.hdsl(&line).json();
    let parts = said["sets"][0]["parts"].as_array().unwrap();
    assert_eq!(parts[1]["classes"], serde_json::json!(["-1", "1"]));
    assert_eq!(parts[1]["n_rows"], 3);
    assert!(parts[2]["classes"].is_null());
    let text = scratch.hdsl("fetch dexter -q --dir cache").ok();
    assert!(
        text.contains("test  1 row of 20,000 features, no labels (in the cache)"),
        "{text}"
    );
    assert!(
        text.contains("--valid cache/dexter/dexter_valid.data"),
        "{text}"
    );
}

#[test]
fn killed_on_the_way_it_goes_on_in_the_next_call() {
    let (scratch, server) = (Scratch::empty(), Server::start());
    let url = format!("{LIBSVM}/multiclass/sector/sector.bz2");
    let rows: String = (0..20_000)
        .map(|i| format!("{} {}:1 {}:0.5\n", i % 3, i % 991 + 1, i * 7 % 911 + 1000))
        .collect();
    let bytes = bz2_of(&rows);
    assert!(bytes.len() > 20_000);
    server.serve(&url, bytes);
    server.act(&url, &[Act::Hang(9_000)]);
    let base = server.base();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hdsl"))
        .args([
            "fetch",
            "sector",
            "--part",
            "train",
            "--dir",
            "cache",
            "--base-url",
            &base,
        ])
        .current_dir(scratch.folder())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let part = scratch.path("cache/sector/sector.bz2.part");
    let patience = Instant::now();
    while std::fs::metadata(&part).map_or(0, |about| about.len()) < 9_000 {
        assert!(patience.elapsed() < Duration::from_secs(60), "no byte came");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!scratch.path("cache/sector/sector.bz2").exists());
    let line = format!("fetch sector --part train --dir cache --base-url {base}");
    let text = scratch.hdsl(&line).ok();
    assert!(text.contains("20,000 rows"), "{text}");
    assert!(server.log()[1].ends_with(" bytes=9000-"));
}

#[test]
fn what_goes_wrong_is_one_line_with_the_right_status() {
    let (scratch, server) = (Scratch::empty(), Server::start());
    let base = server.base();
    for (line, status, words) in [
        (
            "fetch nonsense",
            2,
            "unknown data set `nonsense`, expected one of dexter, dorothea",
        ),
        (
            "fetch dexter --part all",
            2,
            "dexter has no part `all`, expected one of train, valid, test",
        ),
        (
            "fetch dexter --dir cache --offline",
            2,
            "cache/dexter/dexter.zip is not in the cache, and downloads are disabled",
        ),
        (
            "fetch dexter --dir cache --base-url nowhere",
            2,
            "invalid base URL `nowhere`",
        ),
        (
            "fetch dexter --dir cache --base-url http://127.0.0.1:9",
            1,
            "cannot reach 127.0.0.1:9: ",
        ),
        (
            "fetch dexter --dir cache --base-url BASE",
            1,
            "answered 404 Not Found to ",
        ),
    ] {
        let ran = scratch.hdsl(&line.replace("BASE", &base));
        assert_eq!(ran.status, Some(status), "{line}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with("hdsl: error: ") && ran.stderr.contains(words),
            "{line}: {}",
            ran.stderr
        );
        assert_eq!(
            (ran.stderr.lines().count(), ran.stdout.as_str()),
            (1, ""),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn without_a_name_it_lists_what_there_is() {
    let scratch = Scratch::empty();
    let text = scratch.shell("HDSL_DATA=/data hdsl fetch").ok();
    assert!(
        text.contains("rcv1.binary\n") && text.ends_with("\nCache folder: /data\n"),
        "{text}"
    );
    let said = scratch.hdsl("fetch --json --dir x").json();
    assert_eq!(
        said["sets"].as_array().unwrap().len(),
        hdsl_fetch::SETS.len()
    );
}
