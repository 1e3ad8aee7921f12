//! The README, run. In blocks marked `console` each line after `$ ` is run and its output compared with what follows;
//! blocks marked `sh` are run; other blocks are only shown. All of it happens in order, in one scratch folder.
//!
//! A line `…` stands for lines left out, of which there may be any number. Times (`0.14 s`) may differ.
//! `UPDATE_GOLDEN=1 cargo test -p hdsl-cli --test readme` writes the outputs anew, shortened as before.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("there is a README")
}

/// Runs a piece of shell as a reader would who has `hdsl` on the path; all that is said, and the status.
fn shell(folder: &Path, script: &str) -> (String, Option<i32>) {
    let program = Path::new(env!("CARGO_BIN_EXE_hdsl"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let script = script.replace("cargo run --release --", "hdsl");
    let out = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{script}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let text = String::from_utf8(out.stdout).expect("output is UTF-8");
    (text, out.status.code())
}

/// The lines with every time replaced by a dash.
fn timeless(lines: &[String]) -> Vec<String> {
    let is_time = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    let line = |line: &String| {
        let mut words: Vec<&str> = line.split(' ').collect();
        for at in 1..words.len() {
            if words[at].trim_end_matches([',', ':']) == "s" && is_time(words[at - 1]) {
                words[at - 1] = "-";
            }
        }
        words.join(" ")
    };
    lines.iter().map(line).collect()
}

/// What to show of an output, given what is shown of it now: as many lines before and after the `…`.
fn shortened(said: &[String], shown: &[String]) -> Vec<String> {
    let Some(gap) = shown.iter().position(|line| line == "…") else {
        return said.to_vec();
    };
    let after = shown.len() - gap - 1;
    let head = said.iter().take(gap).cloned();
    let tail = said.iter().skip(said.len().saturating_sub(after)).cloned();
    head.chain(["…".to_owned()]).chain(tail).collect()
}

#[test]
fn the_tour_says_what_the_program_says() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let text = readme();
    let mut lines = text.lines().map(str::to_owned).peekable();
    let (mut fresh, mut wrong) = (Vec::new(), Vec::new());
    while let Some(line) = lines.next() {
        fresh.push(line.clone());
        let kind = line.strip_prefix("```").unwrap_or_default();
        if kind == "sh" {
            let mut script = String::new();
            for line in lines.by_ref().take_while(|line| line != "```") {
                script += &line;
                script += "\n";
                fresh.push(line);
            }
            fresh.push("```".into());
            let (said, status) = shell(scratch.path(), &script);
            assert_eq!(status, Some(0), "{script}\n{said}");
        }
        while let Some(command) = lines.next_if(|line| kind == "console" && line != "```") {
            fresh.push(command.clone());
            let call = command.strip_prefix("$ ").expect("a command after `$ `");
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| line != "```" && !line.starts_with("$ ")) {
                shown.push(line);
            }
            let (said, status) = shell(scratch.path(), call);
            assert_eq!(status, Some(0), "{call}\n{said}");
            let said: Vec<String> = said.trim_end().lines().map(str::to_owned).collect();
            let said = shortened(&said, &shown);
            if timeless(&said) != timeless(&shown) {
                wrong.push(format!("$ {call}\n{}", said.join("\n")));
                fresh.extend(said);
            } else {
                fresh.extend(shown);
            }
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(root().join("README.md"), fresh.join("\n") + "\n").expect("can be written");
        return;
    }
    assert!(
        wrong.is_empty(),
        "README.md is out of date (UPDATE_GOLDEN=1 writes it anew); now it would say:\n\n{}",
        wrong.join("\n\n")
    );
}

#[test]
fn the_rust_example_is_the_one_that_runs() {
    let example = root().join("crates/hdsl/examples/first_fit.rs");
    let example = std::fs::read_to_string(example).expect("there is an example");
    let (_, code) = example.split_once("\n\n").expect("code after the heading");
    assert!(
        readme().contains(&format!("```rust\n{code}```\n")),
        "the Rust example of the README is not that of crates/hdsl/examples/first_fit.rs"
    );
}

#[test]
fn links_lead_somewhere() {
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "BENCHMARKS.md",
        "docs/decisions.md",
        "docs/format.md",
        "testdata/README.md",
    ] {
        let path = root().join(page);
        let text = std::fs::read_to_string(&path).expect(page);
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("a folder").join(file),
            };
            assert!(target.exists(), "{page}: {link} leads nowhere");
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).expect("a page");
                let anchor = |line: &str| -> String {
                    let line = line.trim_start_matches('#').trim().to_lowercase();
                    let kept = line
                        .chars()
                        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
                };
                let found = text
                    .lines()
                    .any(|l| l.starts_with('#') && anchor(l) == heading);
                assert!(found, "{page}: {link} names no heading");
            }
        }
    }
}
