//! CONTRIBUTING.md's walk-through for a loss, followed: its changes are applied to a copy of the library, whose tests
//! of losses must then pass with the new loss among them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A change of one file: lines that must be there, in this order and next to each other, and the lines in their place.
struct Change {
    file: String,
    before: Vec<String>,
    after: Vec<String>,
}

/// The `diff` blocks of a page.
fn changes(page: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    for block in page.split("```diff\n").skip(1) {
        let block = block.split("```").next().expect("split gives a first part");
        let mut lines = block.lines();
        let file = lines.next().and_then(|line| line.strip_prefix("+++ b/"));
        let mut change = Change {
            file: file.expect("a block begins with its file").to_owned(),
            before: Vec::new(),
            after: Vec::new(),
        };
        for line in lines {
            match line.split_at_checked(1) {
                Some(("+", added)) => change.after.push(added.to_owned()),
                Some(("-", removed)) => change.before.push(removed.to_owned()),
                Some((" ", kept)) => {
                    change.before.push(kept.to_owned());
                    change.after.push(kept.to_owned());
                }
                _ => panic!("neither an added, a removed nor a kept line: {line:?}"),
            }
        }
        changes.push(change);
    }
    changes
}

/// The text with a change made at the one place that has its lines.
fn apply(text: &str, change: &Change) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let places: Vec<usize> = (0..lines.len())
        .filter(|&at| {
            lines[at..]
                .iter()
                .take(change.before.len())
                .eq(change.before.iter())
        })
        .collect();
    assert_eq!(
        places.len(),
        1,
        "{} has {:?} at {places:?}",
        change.file,
        change.before
    );
    let mut changed: Vec<&str> = lines[..places[0]].to_vec();
    changed.extend(change.after.iter().map(String::as_str));
    changed.extend(&lines[places[0] + change.before.len()..]);
    changed.join("\n") + "\n"
}

/// Writes a file unless it says that already, so that cargo compiles only what changed.
fn write(path: &Path, bytes: &[u8]) {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file has a folder")).unwrap();
    fs::write(path, bytes).unwrap();
}

fn copy(from: &Path, to: &Path, changes: &[Change]) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&source, &target, changes);
            continue;
        }
        let mine = changes
            .iter()
            .filter(|c| source.ends_with(c.file.trim_start_matches("crates/hdsl/")));
        let mut mine = mine.peekable();
        if mine.peek().is_none() {
            write(&target, &fs::read(&source).unwrap());
        } else {
            let text = fs::read_to_string(&source).unwrap();
            write(
                &target,
                mine.fold(text, |text, change| apply(&text, change))
                    .as_bytes(),
            );
        }
    }
}

#[test]
fn the_walkthrough_for_a_loss_works() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let changes = changes(&page);
    let mut files: Vec<&str> = changes.iter().map(|change| change.file.as_str()).collect();
    files.dedup();
    assert!(
        (1..=4).contains(&files.len()),
        "a loss touches at most four files: {files:?}"
    );

    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walkthrough");
    for part in ["src", "examples"] {
        let part = Path::new("crates/hdsl").join(part);
        copy(&root().join(&part), &place.join(&part), &changes);
    }
    let manifest = fs::read(root().join("crates/hdsl/Cargo.toml")).unwrap();
    write(&place.join("crates/hdsl/Cargo.toml"), &manifest);
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let alone = workspace.lines().map(|line| match line.split_once(" = ") {
        Some(("members" | "default-members", _)) => "members = [\"crates/hdsl\"]".to_owned(),
        _ => line.to_owned(),
    });
    let mut alone: Vec<String> = alone.collect();
    alone.dedup();
    // These tests are quick; to compile them is not.
    alone.push("\n[profile.test.package.hdsl]\nopt-level = 0\n".to_owned());
    write(&place.join("Cargo.toml"), alone.join("\n").as_bytes());
    write(
        &place.join("Cargo.lock"),
        &fs::read(root().join("Cargo.lock")).unwrap(),
    );

    // The target directory of this test, so that dependencies are not compiled again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("target/tmp");
    let done = Command::new(env!("CARGO"))
        .args([
            "test",
            "--offline",
            "-p",
            "hdsl",
            "--lib",
            "objective::loss",
        ])
        .current_dir(&place)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{out}{err}");
    assert!(
        out.contains("test result: ok.") && !out.contains(" 0 passed"),
        "{out}"
    );
}
