//! Every help text, as a person sees it. `UPDATE_GOLDEN=1 cargo test -p hdsl-cli --test help` writes them anew.

use std::path::Path;
use std::process::{Command, Stdio};

fn output(args: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_hdsl"))
        .args(args)
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (out.status.code(), text(out.stdout), text(out.stderr))
}

const COMMANDS: [&str; 18] = [
    "demo",
    "train",
    "tune",
    "predict",
    "evaluate",
    "neighbors",
    "index",
    "score",
    "transform",
    "explain",
    "report",
    "inspect",
    "triplets",
    "vectorize",
    "convert",
    "fetch",
    "completions",
    "man",
];

#[test]
fn help_texts_are_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    let mut calls: Vec<(String, Vec<&str>)> = vec![
        ("hdsl.txt".into(), vec!["--help"]),
        ("hdsl-short.txt".into(), vec!["-h"]),
    ];
    for command in COMMANDS {
        calls.push((format!("{command}.txt"), vec![command, "--help"]));
        calls.push((format!("{command}-short.txt"), vec![command, "-h"]));
    }
    for (file, args) in calls {
        let (status, stdout, stderr) = output(&args);
        assert_eq!((status, stderr.as_str()), (Some(0), ""), "{args:?}");
        let path = folder.join(&file);
        if update {
            std::fs::write(&path, &stdout).expect("golden files can be written");
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&stdout) {
            wrong.push(file);
        }
    }
    assert!(
        wrong.is_empty(),
        "help texts changed: {wrong:?}; UPDATE_GOLDEN=1 writes them anew"
    );
}

#[test]
fn every_command_teaches_by_example() {
    for command in COMMANDS {
        let (_, stdout, _) = output(&[command, "--help"]);
        let example = format!("  hdsl {command}");
        assert!(
            stdout.contains("Example") && stdout.contains(&example),
            "{command}"
        );
        assert!(
            stdout.lines().all(|l| l.chars().count() <= 102),
            "{command} has a long line"
        );
    }
    let (_, stdout, _) = output(&["--help"]);
    for command in COMMANDS {
        assert!(stdout.contains(&format!("\n  {command} ")), "{command}");
    }
}

#[test]
fn wrong_use_ends_with_status_2_and_one_message() {
    for args in [
        vec!["--nonsense"],
        vec!["no-such-command"],
        vec!["train"],
        vec!["evaluate", "m.hdsl"],
        vec![
            "train",
            "x",
            "-o",
            "y",
            "--lambda",
            "1",
            "--quiet",
            "--verbose",
        ],
    ] {
        let (status, stdout, stderr) = output(&args);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(stderr.starts_with("hdsl: error: "), "{args:?}: {stderr}");
        assert_eq!(stderr.matches("error:").count(), 1, "{stderr}");
    }
}

#[test]
fn completions_and_man_pages_are_made() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (status, stdout, _) = output(&["completions", shell]);
        assert_eq!(status, Some(0));
        assert!(stdout.contains("max-features"), "{shell}");
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let man = folder.path().join("man1");
    let (status, _, stderr) = output(&["man", man.to_str().expect("UTF-8")]);
    assert_eq!(status, Some(0), "{stderr}");
    for command in COMMANDS {
        let page = std::fs::read_to_string(man.join(format!("hdsl-{command}.1")));
        assert!(page.expect("a page a command").contains(".SH SYNOPSIS"));
    }
    assert!(man.join("hdsl.1").is_file());
}
