//! `hdsl tune`, and the rounds of `hdsl train` that it prints.

mod common;

use common::Scratch;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Few iterations and folds, for a search of seconds.
const QUICK: &str = "--round-iter 24";

const TUNE: &str =
    "tune train.svm --valid valid.svm --names vocab.txt -o m.hdsl --no-refit --round-iter 24";

#[test]
fn the_line_it_prints_makes_the_same_model_again() {
    let scratch = Scratch::planted();
    let tune = "tune train.svm --valid valid.svm --names vocab.txt -o m.hdsl";
    let told = scratch.hdsl(&format!("{tune} {QUICK} --json")).json();
    let model = scratch.read("m.hdsl");
    std::fs::remove_file(scratch.path("m.hdsl")).expect("the model is there");
    let command = told["command"].as_str().expect("a line");
    let line = command.strip_prefix("hdsl ").expect("our own program");
    scratch.hdsl(line).ok();
    assert!(scratch.read("m.hdsl") == model, "{command}");

    assert_eq!(told["finished"], true);
    assert_eq!(told["refitted"], true);
    assert_eq!(told["n_rows"], 240);
    // Few validation rows say less than folds of all rows.
    assert_eq!(told["n_validation"], 240);
    let board = told["leaderboard"].as_array().expect("a list");
    let scores: Vec<f64> = board[1..]
        .iter()
        .map(|c| c["score"].as_f64().expect("a number"))
        .collect();
    assert!(scores.is_sorted(), "{scores:?}");
    // The planted pairs can be learned; the dot product cannot see them.
    let error = |line: &str| {
        let line = format!("evaluate {line} --train train.svm test.svm --json");
        scratch.hdsl(&line).json()["error"]
            .as_f64()
            .expect("a number")
    };
    let (learned, plain) = (error("m.hdsl"), error("identity"));
    assert!(learned < plain / 2.0, "{learned} against {plain}");
    let expected = told["expected_error"].as_f64().expect("a number");
    assert!(
        (expected - learned).abs() < 0.15,
        "{expected}, and {learned} on test rows"
    );
}

#[test]
fn the_same_bytes_for_any_number_of_threads_and_after_a_kill() {
    let scratch = Scratch::planted();
    scratch.hdsl(&format!("{TUNE} --threads 1")).ok();
    let model = scratch.read("m.hdsl");
    std::fs::remove_file(scratch.path("m.hdsl")).expect("the model is there");

    let mut child = Command::new(env!("CARGO_BIN_EXE_hdsl"))
        .args(TUNE.split(' '))
        .args(["--threads", "3"])
        .current_dir(scratch.folder())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    // Killed as soon as it has kept some of its work.
    let kept = || match std::fs::read_to_string(scratch.path("m.hdsl.tune")) {
        Ok(text) => text.lines().count(),
        Err(_) => 0,
    };
    while kept() < 4 {
        let ended = child.try_wait().expect("its state is known");
        assert!(ended.is_none(), "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert!(!scratch.path("m.hdsl").exists());

    let again = scratch.hdsl(&format!("{TUNE} --threads 3"));
    assert!(
        again.stderr.contains("resuming a search"),
        "{}",
        again.stderr
    );
    again.ok();
    assert!(scratch.read("m.hdsl") == model);
    assert!(!scratch.path("m.hdsl.tune").exists());
}

#[test]
fn a_journal_of_another_search_is_refused() {
    let scratch = Scratch::planted();
    scratch.write("m.hdsl.tune", "{\"hdsl-tune\":1,\"search\":\"of old\"}\n");
    let ran = scratch.hdsl(TUNE);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("m.hdsl.tune"), "{}", ran.stderr);
    assert!(!scratch.path("m.hdsl").exists());
}

#[test]
fn budgets_are_kept_and_the_line_still_fits() {
    let scratch = Scratch::planted();
    for (flag, key, most) in [
        ("--max-features 8", "n_features", 8),
        ("--max-atoms 5", "n_atoms", 5),
    ] {
        let told = scratch
            .hdsl(&format!(
                "tune train.svm --cv 2 {flag} {QUICK} -o m.hdsl --json --seed 3"
            ))
            .json();
        assert!(told[key].as_u64().expect("a number") <= most, "{told}");
        let model = scratch.read("m.hdsl");
        let command = told["command"].as_str().expect("a line");
        let line = command.strip_prefix("hdsl ").expect("our own program");
        scratch.hdsl(line).ok();
        assert!(scratch.read("m.hdsl") == model, "{command}");
    }
}

/// The lines of the leaderboard that are not references.
fn learned(told: &serde_json::Value) -> Vec<&serde_json::Value> {
    let board = told["leaderboard"].as_array().expect("a list");
    let learned: Vec<_> = board.iter().filter(|c| c["reference"].is_null()).collect();
    assert!(!learned.is_empty());
    learned
}

/// Asserts the paper's preprocessing and prediction rule, without mining rounds.
fn is_plain(candidate: &serde_json::Value) {
    for (field, want) in [
        ("preprocess", "max"),
        ("vote", "majority"),
        ("normalization", "dot"),
    ] {
        assert_eq!(candidate[field], want);
    }
    assert_eq!(
        (&candidate["k"], &candidate["mining_rounds"]),
        (&3.into(), &0.into())
    );
}

#[test]
fn the_paper_s_recipe_stays_available() {
    let scratch = Scratch::planted();
    let told = scratch
        .hdsl(&format!("{TUNE} --preset paper --json"))
        .json();
    for candidate in learned(&told) {
        is_plain(candidate);
        assert_eq!(candidate["triplets"], "knn:3:5");
    }
    assert_eq!(told["n_rows"], 160);
}

#[test]
fn parts_that_are_left_out_are_not_searched() {
    let scratch = Scratch::planted();
    let all = "base,term-weights,mining-rounds,ensembles,votes,cosine,neighbors,unit,losses";
    let told = scratch
        .hdsl(&format!("{TUNE} --ablate {all} --json"))
        .json();
    for candidate in learned(&told) {
        is_plain(candidate);
        assert_ne!(candidate["triplets"], "knn:3:5");
        assert_eq!(candidate["loss"], "smoothed-hinge");
        assert_eq!(candidate["n_estimators"], 1);
    }
    let ran = scratch.hdsl(&format!("{TUNE} --ablate random --ablate neighbors"));
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("triplets come from"), "{}", ran.stderr);
    let ran = scratch.hdsl(&format!("{TUNE} --ablate luck"));
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("neighbors"), "{}", ran.stderr);
}

#[test]
fn a_mean_of_models_is_tried_and_its_line_makes_it_again() {
    let scratch = Scratch::planted();
    // With nothing else to choose from, a mean is among the best.
    let told = scratch
        .hdsl(&format!(
            "{TUNE} --ablate base,mining-rounds,votes,cosine,neighbors,losses --seed 2 --json"
        ))
        .json();
    let board = told["leaderboard"].as_array().expect("a list");
    assert!(board.iter().any(|c| c["n_estimators"] == 5), "{board:?}");
    let line = "train train.svm --triplets random:5 --lambda 20 --max-iter 60 --mining-rounds 1 --n-estimators 3 --seed 4";
    let mean = scratch
        .hdsl(&format!("{line} --threads 1 -o a.hdsl --json"))
        .json();
    scratch.hdsl(&format!("{line} --threads 3 -o b.hdsl")).ok();
    assert!(scratch.read("a.hdsl") == scratch.read("b.hdsl"));
    // It is what its members are on average.
    let score = |model: &str| -> Vec<f64> {
        let told = scratch
            .hdsl(&format!("score {model} test.svm valid.svm --json"))
            .json();
        let scores = told["scores"].as_array().expect("a list");
        scores
            .iter()
            .map(|s| s["score"].as_f64().expect("a number"))
            .collect()
    };
    let one = "train train.svm --triplets random:5 --lambda 20 --max-iter 60 --mining-rounds 1";
    let members: Vec<Vec<f64>> = (4..7)
        .map(|seed| {
            scratch
                .hdsl(&format!("{one} --seed {seed} -o one.hdsl"))
                .ok();
            score("one.hdsl")
        })
        .collect();
    for (at, &ours) in score("a.hdsl").iter().enumerate() {
        let theirs = members.iter().map(|m| m[at]).sum::<f64>() / 3.0;
        assert!((ours - theirs).abs() < 1e-9, "{ours} and {theirs}");
    }
    // Its path is of fewer and fewer atoms.
    let atoms = mean["n_atoms"].as_u64().expect("a number");
    let sparser = scratch.hdsl("explain a.hdsl --max-atoms 5 --json").json();
    assert!(atoms > 5 && sparser["n_atoms"] == 5, "{atoms}, {sparser}");
}

#[test]
fn what_cannot_be_tuned_is_said() {
    let scratch = Scratch::planted();
    scratch.write("one.svm", "1 1:1\n1 2:1\n1 1:1 2:1\n1 3:1\n1 2:2\n");
    scratch.write("empty.svm", "");
    for (line, wanted) in [
        ("tune one.svm -o m.hdsl", "one.svm"),
        ("tune empty.svm -o m.hdsl", "empty.svm"),
        ("tune train.svm --cv 1 -o m.hdsl", "--cv"),
        ("tune train.svm --cv 1000 -o m.hdsl", "cv"),
        ("tune train.svm -o nowhere/m.hdsl", "nowhere"),
        (
            "tune train.svm --valid valid.svm --cv 3 -o m.hdsl",
            "cannot be used with",
        ),
    ] {
        let ran = scratch.hdsl(line);
        assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{line}: {}", ran.stderr);
        assert!(!scratch.path("m.hdsl").exists(), "{line}");
    }
}

#[test]
fn rounds_go_on_where_the_run_was() {
    let scratch = Scratch::planted();
    let train = "train train.svm --triplets random:20 --lambda 100 --max-iter 30";
    scratch.hdsl(&format!("{train} -o plain.hdsl")).ok();
    let told = scratch
        .hdsl(&format!(
            "{train} --mining-rounds 2 --last-round-iter 7 -o rounds.hdsl --json"
        ))
        .json();
    assert_eq!(told["iterations"], 67);
    // 160 rows x (20 random, and 3 x 5 neighbors twice).
    assert_eq!(told["n_triplets"], 160 * (20 + 15 + 15));
    // The first round is the plain run.
    let at = |model: &str, iteration: usize| {
        scratch
            .hdsl(&format!("explain {model} --iteration {iteration} --json"))
            .json()["pairs"]
            .clone()
    };
    assert_eq!(at("plain.hdsl", 30), at("rounds.hdsl", 30));
    assert_ne!(at("rounds.hdsl", 30), at("rounds.hdsl", 67));
}

#[test]
fn every_search_has_references_and_ends_in_time() {
    let scratch = Scratch::planted();
    // Of nothing but noise, nothing can be learned: the best reference is the result.
    let noise: String = (0..120u64)
        .map(|row| {
            let word =
                |at: u64| 1 + ((4 * row + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 30;
            let mut words: Vec<u64> = (0..4).map(word).collect();
            words.sort_unstable();
            words.dedup();
            let words: Vec<String> = words.iter().map(|w| format!("{w}:1")).collect();
            format!("{} {}\n", row % 2, words.join(" "))
        })
        .collect();
    scratch.write("noise.svm", &noise);
    for file in ["train.svm", "noise.svm"] {
        let line = format!("tune {file} --time 1s -o m.hdsl --json");
        let told = scratch.hdsl(&line).json();
        let board = told["leaderboard"].as_array().expect("a list");
        let names: Vec<&str> = board
            .iter()
            .filter_map(|c| c["reference"].as_str())
            .collect();
        for name in ["dot product", "cosine", "tf-idf cosine"] {
            assert!(names.contains(&name), "{names:?}");
        }
        // Whatever was chosen is a model that other commands take, and that its line makes again.
        let model = scratch.read("m.hdsl");
        scratch
            .hdsl(&format!("evaluate m.hdsl --train {file} {file} --json"))
            .ok();
        let command = told["command"].as_str().expect("a line");
        if told["finished"] == true {
            scratch
                .hdsl(command.strip_prefix("hdsl ").expect("our own program"))
                .ok();
            assert!(scratch.read("m.hdsl") == model, "{command}");
        }
    }
}

#[test]
fn a_reference_is_made_again_by_its_line() {
    let scratch = Scratch::planted();
    let line =
        "train train.svm --preprocess tfidf --base 1 --max-iter 0 -k 5 --vote weighted -o m.hdsl";
    let told = scratch.hdsl(&format!("{line} --json")).json();
    assert_eq!((&told["n_atoms"], &told["base"]), (&0.into(), &1.0.into()));
    let evaluate = |line: &str| {
        scratch.hdsl(line).json()["error"]
            .as_f64()
            .expect("a number")
    };
    let error = evaluate("evaluate m.hdsl --train train.svm test.svm --json");
    assert!((0.0..=1.0).contains(&error));
    let ran = scratch.hdsl("train train.svm --lambda 1 --max-iter 0 -o n.hdsl");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("max-iter"), "{}", ran.stderr);
}

#[test]
fn triplets_and_judgments_are_tuned_by_held_out_anchors() {
    let scratch = Scratch::planted();
    // Anchors 0 to 79 of the planted rows: nearer to a row of their own class than to one of another.
    let text = scratch.text("train.svm");
    let class: Vec<&str> = text
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let (mut triplets, mut judgments) = (String::new(), String::new());
    for anchor in 0..80 {
        let class = &class;
        let others = |same: bool| {
            let rows = (80..160).filter(move |&row| (class[row] == class[anchor]) == same);
            rows.skip(anchor % 7).step_by(5).take(4)
        };
        for (near, far) in others(true).zip(others(false)) {
            triplets += &format!("{anchor} {near} {far}\n");
            judgments += &format!("{anchor} {near} 1\n{anchor} {far} 0\n");
        }
    }
    scratch.write("triplets.txt", &triplets);
    scratch.write("judgments.txt", &judgments);
    for (source, measure) in [
        ("triplets.txt", "1 - accuracy of triplets"),
        ("judgments:judgments.txt", "1 - nDCG@10"),
    ] {
        let told = scratch
            .hdsl(&format!(
                "tune train.svm --triplets {source} --cv 4 {QUICK} -o m.hdsl --json"
            ))
            .json();
        assert_eq!(
            (&told["measure"], &told["n_validation"]),
            (&measure.into(), &80.into())
        );
        let model = scratch.read("m.hdsl");
        let command = told["command"].as_str().expect("a line");
        scratch
            .hdsl(command.strip_prefix("hdsl ").expect("our own program"))
            .ok();
        assert!(scratch.read("m.hdsl") == model, "{command}");
        let measured = scratch
            .hdsl(&format!(
                "evaluate m.hdsl train.svm --triplets {source} --json"
            ))
            .json();
        assert!(
            measured["triplet_accuracy"].as_f64().expect("a number") > 0.5,
            "{measured}"
        );
    }
    // Standard input cannot be read again, so the lines have a placeholder.
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{} tune - --cv 2 --round-iter 8 --time 2s -o n.hdsl < train.svm",
            env!("CARGO_BIN_EXE_hdsl")
        ))
        .current_dir(scratch.folder())
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("hdsl train TRAIN "), "{text}");
    assert!(text.contains("--train TRAIN TEST"), "{text}");
    let ran = scratch.hdsl("tune train.svm --triplets knn:3:5 -o n.hdsl");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("expected a file"), "{}", ran.stderr);
}
