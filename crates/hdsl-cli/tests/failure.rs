//! Kills, signals, full disks and leftovers: no work is lost, and no file is damaged.
#![cfg(unix)]

mod common;

use common::Scratch;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn start(scratch: &Scratch, line: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hdsl"))
        .args(line.split(' '))
        .current_dir(scratch.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Sends a signal when standard error contains `until`. Returns the exit status, or the negative number of the signal that
/// ended the program, and what it said.
fn signaled(scratch: &Scratch, line: &str, until: &str, signal: &str) -> (i32, String) {
    use std::os::unix::process::ExitStatusExt;
    let mut child = start(scratch, line);
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains(until) {
        let read = stderr.read_line(&mut said).expect("lines");
        assert!(read > 0, "ended too early: {said}");
    }
    let rest = std::thread::spawn(move || {
        stderr.read_to_string(&mut said).expect("UTF-8");
        said
    });
    std::thread::sleep(Duration::from_millis(30));
    let kill = format!("kill -{signal} {}", child.id());
    assert_eq!(scratch.shell(&kill).status, Some(0));
    let status = child.wait_with_output().expect("an end").status;
    let status = status.code().or(status.signal().map(|n| -n));
    (status.expect("a status"), rest.join().expect("lines"))
}

/// Whether this process was started with SIGHUP ignored, as by `nohup`. Its children then ignore it, too, as they should.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}

const LONG: &str = "train train.svm --valid valid.svm --lambda 10 --max-iter 100000000 --steps forward -o m.hdsl -v";

#[test]
fn sigterm_and_sighup_save_the_best_model_so_far() {
    for (signal, status) in [("TERM", 143), ("HUP", 129)] {
        if signal == "HUP" && ignores_hangups() {
            continue;
        }
        let scratch = Scratch::planted();
        let (found, said) = signaled(&scratch, LONG, "iteration ", signal);
        assert_eq!(found, status, "{said}");
        let word = format!("stopped by SIG{signal}; the best model so far is saved");
        assert!(said.contains(&word), "{said}");
        scratch
            .hdsl("evaluate m.hdsl --train train.svm test.svm")
            .ok();
        let hidden = scratch.files().iter().any(|name| name.starts_with('.'));
        assert!(!hidden, "{:?}", scratch.files());
    }
}

/// Other commands end at once, and leave no temporary file.
#[test]
fn signals_leave_no_temporary_file() {
    let scratch = Scratch::planted();
    scratch.shell("mkfifo rows.svm").ok();
    let files = scratch.files();
    for (signal, status) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        if signal == "HUP" && ignores_hangups() {
            continue;
        }
        let child = start(&scratch, "convert rows.svm -o out.npz --to npz");
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while scratch.files() == files && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_ne!(scratch.files(), files, "the output is opened first");
        scratch
            .shell(&format!("kill -{signal} {}", child.id()))
            .ok();
        let out = child.wait_with_output().expect("an end");
        assert_eq!(out.status.code(), Some(status));
        assert_eq!(scratch.files(), files);
    }
}

/// Killed without warning, again and again: the same command ends with the same bytes.
#[test]
fn a_killed_training_goes_on() {
    let scratch = Scratch::planted();
    let line = "train train.svm --valid valid.svm --lambda 10 --loss logistic --search exact --max-iter 300 \
                --checkpoint 20ms -v";
    let whole = scratch.hdsl(&format!("{line} -o whole.hdsl"));
    assert_eq!(whole.status, Some(0), "{}", whole.stderr);
    let line = format!("{line} -o m.hdsl");
    let mut resumed = 0;
    for until in [" 30 ", " 70 ", " 150 "] {
        let until = format!("iteration {until}").replace("iteration  ", "iteration    ");
        let until = until
            .trim()
            .rsplit(' ')
            .next()
            .expect("a number")
            .to_owned();
        let (status, said) = signaled(&scratch, &line, &format!("{until}  objective"), "KILL");
        assert_eq!(status, -9, "{said}");
        resumed += usize::from(said.contains("going on after"));
        assert!(!scratch.path("m.hdsl").exists());
    }
    assert!(resumed >= 2, "checkpoints were resumed {resumed} times");
    let last = scratch.hdsl(&line);
    assert_eq!(last.status, Some(0), "{}", last.stderr);
    assert!(last.stderr.contains("going on after"), "{}", last.stderr);
    assert!(scratch.read("m.hdsl") == scratch.read("whole.hdsl"));
    let left: Vec<_> = scratch
        .files()
        .into_iter()
        .filter(|name| name.starts_with('.') || name.ends_with(".checkpoint"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_checkpoint_is_of_one_training_and_may_be_ignored() {
    let scratch = Scratch::planted();
    let line = LONG.replace(" -o ", " --checkpoint 1ms -o ");
    let (status, said) = signaled(&scratch, &line, "iteration ", "TERM");
    assert_eq!(status, 143, "{said}");
    assert!(said.contains("goes on from m.hdsl.checkpoint"), "{said}");
    let kept = scratch.read("m.hdsl.checkpoint");
    let other = "train train.svm --lambda 11 --max-iter 5 -o m.hdsl";
    let refused = scratch.hdsl(other);
    assert_eq!(refused.status, Some(2));
    assert!(
        refused
            .stderr
            .contains("m.hdsl.checkpoint: is the checkpoint of another training"),
        "{}",
        refused.stderr
    );
    assert!(scratch.read("m.hdsl.checkpoint") == kept);
    scratch.hdsl(&format!("{other} --resume no")).ok();
    assert!(!scratch.path("m.hdsl.checkpoint").exists());
    // A file of the user's is not touched.
    scratch.write("m.hdsl.checkpoint", "my own");
    for more in ["", " --resume no"] {
        let refused = scratch.hdsl(&format!("{other}{more}"));
        assert_eq!(refused.status, Some(2));
    }
    assert_eq!(scratch.text("m.hdsl.checkpoint"), "my own");
    scratch.hdsl(&format!("{other} --checkpoint never")).ok();
    assert_eq!(scratch.text("m.hdsl.checkpoint"), "my own");
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_that_cannot_be_written_is_saved_elsewhere() {
    let scratch = Scratch::planted();
    scratch.shell("mkdir room").ok();
    let place = scratch.path("room").display().to_string();
    let train = "train train.svm --lambda 10 --max-iter 20";
    for line in [train, "tune train.svm --round-iter 4 --time 2s --cv 2"] {
        let ran = scratch.shell(&format!("TMPDIR={place} hdsl {line} -o /dev/full"));
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        let (_, saved) = ran.stderr.rsplit_once("saved as ").expect("where it is");
        let saved = saved.split(' ').next().expect("a path");
        scratch
            .shell(&format!(
                "hdsl evaluate {saved} --train train.svm test.svm && rm {saved}"
            ))
            .ok();
    }
    let ran = scratch.shell(&format!("TMPDIR=/nowhere hdsl {train} -o /dev/full"));
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.contains("/dev/full: cannot write"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("nor can /nowhere/"), "{}", ran.stderr);
}

#[test]
fn a_search_leaves_files_of_the_user_alone() {
    let scratch = Scratch::planted();
    let line = "tune train.svm --round-iter 4 --time 5s --cv 2 -o m.hdsl";
    scratch.write("m.hdsl.tune", "my own");
    let refused = scratch.hdsl(line);
    assert_eq!(refused.status, Some(2));
    assert!(
        refused.stderr.contains("m.hdsl.tune: is in the way"),
        "{}",
        refused.stderr
    );
    assert_eq!(scratch.text("m.hdsl.tune"), "my own");
    scratch
        .shell("rm m.hdsl.tune; ln -s elsewhere m.hdsl.tune")
        .ok();
    assert_eq!(scratch.hdsl(line).status, Some(2));
    assert!(!scratch.path("elsewhere").exists());
    scratch.shell("rm m.hdsl.tune").ok();
    // Refused for bad input: nothing is left.
    scratch.write("one.svm", "a 1:1\na 2:1\na 1:2\n");
    assert_eq!(scratch.hdsl("tune one.svm -o m.hdsl").status, Some(2));
    assert!(!scratch.path("m.hdsl.tune").exists());
}

#[test]
fn bounds_of_numbers() {
    let scratch = Scratch::planted();
    let ran = scratch.hdsl("inspect train.svm --threads 5000");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("from 1 to 256"), "{}", ran.stderr);
    let line = "train train.svm --lambda 10 --n-estimators 100000000000 -o m.hdsl";
    let ran = scratch.hdsl(line);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("from 1 to 10000"), "{}", ran.stderr);
}
