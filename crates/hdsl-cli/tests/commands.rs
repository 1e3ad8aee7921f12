//! The commands as a person uses them: real files, a real process.

mod common;
use common::{Scratch, shared};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn the_lines_everyone_is_told_work_as_written() {
    let scratch = Scratch::planted();
    let lines = [
        "hdsl train train.svm.bz2 --valid valid.svm.bz2 --triplets random:20 --lambda 100 --max-iter 1000 --seed 1 -o m.hdsl --json",
        "hdsl train train.svm.bz2 --valid valid.svm.bz2 --lambda 1,10,100,1000 -o m.hdsl           # keeps the best λ on validation",
        "hdsl train train.svm.bz2 --triplets knn:3:5 --lambda 100 --search exact --tol 0.01 -o m.hdsl",
        "hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2 -k 3 --json",
        "hdsl evaluate identity --train train.svm.bz2 test.svm.bz2 --json                            # the plain dot product",
        "hdsl predict m.hdsl --train train.svm.bz2 test.svm.bz2 -o predicted.txt",
        "hdsl transform m.hdsl test.svm.bz2 -o z.npz",
        "hdsl explain m.hdsl --names vocab.txt --top 20",
        "hdsl explain m.hdsl --pair test.svm.bz2:3 train.svm.bz2:17",
        "hdsl report m.hdsl --train train.svm.bz2 --test test.svm.bz2 --names vocab.txt -o report.html",
    ];
    for line in lines {
        let ran = scratch.shell(line);
        assert_eq!(ran.status, Some(0), "{line}: {}", ran.stderr);
        assert_eq!(ran.stderr, "", "{line} should be quiet in a pipe");
        if line.contains("--json") {
            ran.json();
        }
    }
    assert_eq!(scratch.text("predicted.txt").lines().count(), 80);
    let back = scratch.hdsl("inspect z.npz --json").json();
    assert_eq!(back["n_rows"], 80);
}

#[test]
fn added_rows_are_as_if_they_stood_at_the_end_of_the_training_file() {
    let scratch = Scratch::planted();
    scratch
        .hdsl("train train.svm --lambda 10 --max-iter 50 -o m.hdsl")
        .ok();
    let both = scratch.text("train.svm") + &scratch.text("valid.svm");
    scratch.write("both.svm", &both);
    for model in ["m.hdsl", "identity"] {
        for line in [
            "evaluate MODEL --train ROWS test.svm",
            "predict MODEL --train ROWS test.svm",
            "neighbors MODEL --train ROWS test.svm -k 9",
        ] {
            let of = |rows: &str| {
                let line = line.replace("MODEL", model).replace("ROWS", rows);
                scratch.hdsl(&line).ok()
            };
            assert_eq!(of("train.svm --add valid.svm"), of("both.svm"), "{line}");
            if line.starts_with("neighbors") {
                assert_ne!(of("both.svm"), of("train.svm"));
            }
        }
    }
    // Labels are those of all rows or of none.
    scratch
        .hdsl("convert valid.svm -o bare.npz --save-labels theirs.txt")
        .ok();
    let refused = scratch.hdsl("evaluate m.hdsl --train train.svm --add bare.npz test.svm");
    assert_eq!(refused.status, Some(2));
    let told = "bare.npz: has no labels; pass a file with one label per line with --add-labels";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
    let given = "evaluate m.hdsl --train train.svm --add bare.npz --add-labels theirs.txt test.svm";
    assert_eq!(
        scratch.hdsl(given).ok(),
        scratch
            .hdsl("evaluate m.hdsl --train both.svm test.svm")
            .ok()
    );
}

#[test]
fn json_tells_what_it_promises() {
    let scratch = Scratch::planted();
    let train = scratch
        .hdsl("train train.svm --valid valid.svm --lambda 10 --max-iter 50 -o m.hdsl --json")
        .json();
    for field in [
        "objective",
        "iterations",
        "stop",
        "n_atoms",
        "n_features",
        "n_triplets",
        "gap",
        "valid_error",
        "train_seconds",
        "seconds",
    ] {
        assert!(!train[field].is_null(), "{field} is missing from {train}");
    }
    assert!(train["seconds"].as_f64() >= train["train_seconds"].as_f64());
    let evaluate = scratch
        .hdsl("evaluate m.hdsl --train train.svm valid.svm --json")
        .json();
    for field in ["error", "balanced_error", "n_test", "k"] {
        assert!(
            !evaluate[field].is_null(),
            "{field} is missing from {evaluate}"
        );
    }
    // The model saved is the one that was judged.
    assert_eq!(evaluate["error"], train["valid_error"]);
    assert_eq!(evaluate["n_features"], train["n_features"]);
    let whole = scratch.hdsl("inspect m.hdsl --json").json();
    assert!(whole.to_string().contains("atoms"));
    for line in [
        "predict m.hdsl --train train.svm test.svm --json",
        "neighbors m.hdsl --train train.svm test.svm --rows 0,2-3 --json",
        "score m.hdsl test.svm --json",
        "transform m.hdsl test.svm -o z.svm --json",
        "explain m.hdsl --json",
        "explain m.hdsl --pair test.svm:0 test.svm:1 --json",
        "inspect train.svm --json",
        "triplets train.svm --json",
        "convert train.svm -o c.npz --json",
    ] {
        let ran = scratch.hdsl(line);
        assert_eq!(ran.stderr, "", "{line}");
        ran.json();
    }
}

#[test]
fn verbose_lines_go_to_standard_error() {
    let scratch = Scratch::planted();
    let ran = scratch
        .hdsl("train train.svm --valid valid.svm --lambda 10 --max-iter 30 -o m.hdsl -v --json");
    let lines: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|l| l.contains("iteration "))
        .collect();
    assert!(lines.len() >= 3, "{}", ran.stderr);
    for word in ["objective", "gap", "features", "error"] {
        assert!(lines[0].contains(word), "{word}: {}", lines[0]);
    }
    ran.json();
    // Accepted, and said under -v.
    scratch.write("odd.svm", "a 3:1 1:1\nb\nb 2:1 999:4\n");
    let ran = scratch.hdsl("predict m.hdsl --train train.svm odd.svm -v");
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    for word in ["odd.svm", "sorted", "no features", "ignored"] {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
    assert_eq!(
        scratch
            .hdsl("predict m.hdsl --train train.svm odd.svm")
            .stderr,
        ""
    );
    assert_eq!(ran.stdout.lines().count(), 3);
}

#[test]
fn same_bytes_for_any_number_of_threads_and_any_run() {
    let scratch = Scratch::planted();
    for flags in [
        "--triplets random:5",
        "--search exact",
        "--batch 50",
        "--loss logistic",
    ] {
        let mut models = Vec::new();
        for threads in [1, 2, 2] {
            scratch
                .hdsl(&format!(
                    "train train.svm --valid valid.svm --lambda 10,100 --max-iter 40 --seed 3 {flags} --threads {threads} -o m.hdsl"
                ))
                .ok();
            models.push(scratch.read("m.hdsl"));
        }
        assert_eq!(models[0], models[1], "{flags}: 1 and 2 threads");
        assert_eq!(models[1], models[2], "{flags}: two runs");
    }
    let outputs = |threads: usize| {
        let lines = [
            format!("predict m.hdsl --train train.svm test.svm --threads {threads}"),
            format!("neighbors identity --train train.svm test.svm --threads {threads}"),
            format!("score m.hdsl test.svm --all --threads {threads}"),
            format!("triplets train.svm -o - --threads {threads}"),
        ];
        lines.map(|line| scratch.hdsl(&line).ok())
    };
    assert_eq!(outputs(1), outputs(2));
}

#[test]
fn demo_recovers_what_was_planted() {
    let scratch = Scratch::empty();
    let facts = scratch.hdsl("demo --dir d --json").json();
    let number = |name: &str| facts[name].as_f64().expect("a number");
    assert!(number("dot_product_error") > 0.2, "{facts}");
    assert!(number("error") < 0.1, "{facts}");
    assert_eq!(
        facts["planted_features_found"], facts["planted_features"],
        "{facts}"
    );
    assert!(
        number("planted_pairs_found") >= 0.5 * number("planted_pairs"),
        "{facts}"
    );
    assert!(number("n_features") < 100.0, "{facts}");
    // The files are good for the commands it suggests, and tell the same story.
    let again = scratch
        .hdsl("evaluate d/model.hdsl --train d/train.svm d/test.svm --json")
        .json();
    assert_eq!(again["error"], facts["error"]);
    let dot = scratch
        .hdsl("evaluate identity --train d/train.svm d/test.svm --json")
        .json();
    assert_eq!(dot["error"], facts["dot_product_error"]);
    let text = scratch.hdsl("demo --dir d").ok();
    assert!(text.contains("d/report.html  a report about it"), "{text}");
    assert!(scratch.text("d/report.html").starts_with("<!doctype html>"));
    let suggested: Vec<&str> = text.lines().filter(|l| l.starts_with("  hdsl ")).collect();
    assert!(suggested.len() >= 4, "{text}");
    for line in suggested {
        scratch.shell(line).ok();
    }
}

#[test]
fn explanations_add_up_and_transform_agrees_with_score() {
    let scratch = Scratch::trained();
    let scores = scratch.hdsl("score m.hdsl test.svm train.svm --all").ok();
    let score = |i: usize, j: usize| -> f64 {
        let line = scores.lines().nth(i * 160 + j).expect("a line a pair");
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!((fields[0], fields[1]), (&*i.to_string(), &*j.to_string()));
        fields[2].parse().expect("a score")
    };
    for (i, j) in [(0, 0), (3, 17), (79, 159)] {
        let why = scratch
            .hdsl(&format!(
                "explain m.hdsl --pair test.svm:{i} train.svm:{j} --json"
            ))
            .json();
        let parts = why["contributions"].as_array().expect("a list");
        let sum: f64 = parts
            .iter()
            .map(|p| p["value"].as_f64().expect("a number"))
            .sum();
        assert!((sum - score(i, j)).abs() < 1e-9);
        assert!((why["score"].as_f64().expect("a number") - score(i, j)).abs() < 1e-9);
    }
    for flags in ["", "--rank 400"] {
        for part in ["test", "train"] {
            scratch
                .hdsl(&format!(
                    "transform m.hdsl {part}.svm -o {part}-z.svm {flags}"
                ))
                .ok();
        }
        // A plain dot product of mapped rows ranks like the model.
        let mapped = scratch
            .hdsl("neighbors identity --preprocess none --train train-z.svm test-z.svm -k 1")
            .ok();
        let learned = scratch
            .hdsl("neighbors m.hdsl --train train.svm test.svm -k 1")
            .ok();
        for (a, b) in mapped.lines().zip(learned.lines()) {
            let of = |line: &str| -> f64 {
                line.split('\t')
                    .nth(3)
                    .expect("a score")
                    .parse()
                    .expect("a number")
            };
            assert!((of(a) - of(b)).abs() < 1e-9, "{a} and {b}");
        }
    }
}

#[test]
fn here_is_the_first_row_and_there_the_second() {
    let scratch = Scratch::empty();
    scratch.write(
        "rows.svm",
        "a 1:1\na 2:1\na 1:1 2:1\nb 3:1\nb 3:1 4:1\nb 4:1\n",
    );
    scratch.write("names.txt", "sweet\nnice\nsour\nnasty\n");
    scratch
        .hdsl("train rows.svm --triplets random:20 --lambda 10 --names names.txt -o m.hdsl")
        .ok();
    for (pair, says) in [
        (
            "rows.svm:0 rows.svm:1",
            "sweet in the first row, nice in the second\n",
        ),
        (
            "rows.svm:1 rows.svm:0",
            "nice in the first row, sweet in the second\n",
        ),
        (
            "rows.svm:2 rows.svm:2",
            "sweet in the first row, nice in the second, and vice versa\n",
        ),
    ] {
        let said = scratch.hdsl(&format!("explain m.hdsl --pair {pair}")).ok();
        assert!(said.contains(says), "{pair}: {said}");
    }
}

#[test]
fn earlier_models_are_sparser() {
    let scratch = Scratch::trained();
    let facts = |flags: &str| {
        scratch
            .hdsl(&format!(
                "evaluate m.hdsl --train train.svm test.svm --json {flags}"
            ))
            .json()
    };
    assert!(facts("--max-features 6")["n_features"].as_u64() <= Some(6));
    assert!(facts("--max-atoms 4")["n_atoms"].as_u64() <= Some(4));
    assert_eq!(facts("--iteration 2")["iteration"], 2);
    for line in [
        "predict m.hdsl --train train.svm test.svm",
        "neighbors m.hdsl --train train.svm test.svm",
        "score m.hdsl test.svm",
        "transform m.hdsl test.svm -o z.npz",
        "explain m.hdsl",
    ] {
        scratch.hdsl(&format!("{line} --max-features 6")).ok();
    }
}

#[test]
fn formats_say_the_same() {
    let scratch = Scratch::planted();
    scratch.hdsl("convert train.svm -o c.npz").ok();
    scratch
        .hdsl("convert c.npz --labels c.labels -o back.svm")
        .ok();
    assert_eq!(scratch.text("back.svm"), scratch.text("train.svm"));
    let one = scratch
        .hdsl("train train.svm --valid valid.svm --lambda 10 --max-iter 20 -o a.hdsl --json");
    // A file without written numbers does not change how others are numbered.
    let two = scratch.hdsl(
        "train c.npz --labels c.labels --valid valid.svm --lambda 10 --max-iter 20 -o b.hdsl --json",
    );
    let (one, two) = (one.json(), two.json());
    assert_eq!(one["valid_error"], two["valid_error"]);
    assert_eq!(one["objective"], two["objective"]);
    assert_eq!(
        scratch
            .hdsl("predict a.hdsl --train train.svm test.svm")
            .ok(),
        scratch
            .hdsl("predict b.hdsl --train c.npz --train-labels c.labels test.svm")
            .ok()
    );
    let piped = scratch
        .shell("cat train.svm.bz2 | hdsl inspect - --json")
        .json();
    assert_eq!(
        piped["nnz"],
        scratch.hdsl("inspect c.npz --json").json()["nnz"]
    );
}

#[test]
fn the_training_file_decides_how_features_are_numbered() {
    let scratch = Scratch::empty();
    // Counted from 0, which only the training file shows; the other file has no feature 0.
    let train = "a 0:1 2:1\na 0:1 3:1\na 0:1\nb 1:1 2:1\nb 1:1 3:1\nb 1:1\n";
    scratch.write("train.svm", train);
    scratch.write("test.svm", "b 1:1 2:1\nb 1:1 3:1\nb 1:1\n");
    let facts = scratch
        .hdsl("train train.svm --triplets knn:2:2 --valid test.svm --lambda 10 --max-iter 5 -o m.hdsl --json")
        .json();
    assert_eq!(facts["valid_error"], 0.0);
    for model in ["m.hdsl", "identity"] {
        let facts = scratch
            .hdsl(&format!(
                "evaluate {model} --train train.svm test.svm --json"
            ))
            .json();
        assert_eq!(facts["error"], 0.0, "{model}");
    }
    let explained = scratch.hdsl("explain m.hdsl").ok();
    assert!(explained.contains("f0"), "{explained}");
}

#[test]
fn words_from_text_to_explanation() {
    let scratch = Scratch::empty();
    let mut texts = String::new();
    for n in 0..12 {
        texts += &format!("tea\tgreen leaves brewed cup{n} the\n");
        texts += &format!("oil\tcrude barrels drilled well{n} the\n");
    }
    scratch.write("texts.tsv", &texts);
    scratch
        .hdsl("vectorize texts.tsv --min-df 2 --max-df 0.9 --save-vocab vocab.txt -o train.svm")
        .ok();
    let facts = scratch.hdsl("inspect train.svm --json").json();
    assert_eq!(
        (&facts["n_rows"], &facts["n_features"]),
        (&Value::from(24), &Value::from(6))
    );
    scratch.write("later.tsv", "oil\tcrude TEA barrels\n");
    scratch
        .hdsl("vectorize later.tsv --vocab vocab.txt -o later.svm")
        .ok();
    scratch
        .hdsl("train train.svm --lambda 10 --holdout 0.25 --names vocab.txt -o m.hdsl")
        .ok();
    let explained = scratch.hdsl("explain m.hdsl").ok();
    let words = ["green", "leaves", "brewed", "crude", "barrels", "drilled"];
    assert!(words.iter().any(|w| explained.contains(w)), "{explained}");
    let predicted = scratch
        .hdsl("predict m.hdsl --train train.svm later.svm")
        .ok();
    assert_eq!(predicted, "oil\n");
    scratch
        .hdsl("vectorize texts.tsv --weighting tfidf -o tfidf.npz")
        .ok();
    assert_eq!(scratch.text("tfidf.labels").lines().count(), 24);
}

#[test]
fn triplets_clicks_and_judgments_need_no_labels() {
    let scratch = Scratch::planted();
    scratch
        .hdsl("triplets train.svm --triplets knn:2:2 -o t.txt")
        .ok();
    let rows = scratch.text("train.svm");
    let bare: String = rows
        .lines()
        .map(|l| l.split_once(' ').map_or("", |p| p.1).to_owned() + "\n")
        .collect();
    scratch.write("bare.data", bare);
    let given = scratch
        .hdsl("train bare.data --triplets t.txt --lambda 10 --max-iter 20 -o a.hdsl --json")
        .json();
    let mined = scratch
        .hdsl("train train.svm --triplets knn:2:2 --lambda 10 --max-iter 20 -o b.hdsl --json")
        .json();
    assert_eq!(given["objective"], mined["objective"]);
    scratch.write("clicks.txt", "0 1 2\n0 1 2\n3 4 5\n");
    let facts = scratch
        .hdsl("triplets bare.data --triplets clicks:clicks.txt --json")
        .json();
    assert_eq!(
        (&facts["n_triplets"], &facts["total_weight"]),
        (&2.into(), &3.0.into())
    );
    scratch.write("grades.txt", "0 1 3\n0 2 1\n0 3 1\n");
    for (kind, first) in [("judgments", "0 1 2"), ("judgments-low", "0 2 1")] {
        let text = scratch
            .hdsl(&format!(
                "triplets bare.data --triplets {kind}:grades.txt -o -"
            ))
            .ok();
        assert_eq!(text.lines().next(), Some(first), "{text}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let scratch = Scratch::trained();
    for line in [
        "hdsl score m.hdsl train.svm --all",
        "hdsl inspect m.hdsl --json",
        "hdsl neighbors m.hdsl --train train.svm train.svm -k 100",
        "hdsl completions bash",
        "hdsl train --help",
    ] {
        let ran = scratch.shell(&format!("{line} | true; echo ${{PIPESTATUS[0]}}"));
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str()),
            ("0\n", ""),
            "{line}"
        );
    }
}

/// The program with this command line, and its standard error, after Ctrl-C when standard error contains `until`.
#[cfg(unix)]
fn interrupted(scratch: &Scratch, line: &str, until: &str) -> (std::process::Output, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hdsl"))
        .args(line.split(' '))
        .current_dir(scratch.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stderr = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains(until) {
        let read = std::io::BufRead::read_line(&mut stderr, &mut said).expect("lines");
        assert!(read > 0, "ended too early: {said}");
    }
    let rest = std::thread::spawn(move || {
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("UTF-8");
        said
    });
    std::thread::sleep(Duration::from_millis(50));
    let kill = format!("kill -INT {}", child.id());
    assert_eq!(scratch.shell(&kill).status, Some(0));
    let out = child.wait_with_output().expect("an end");
    (out, rest.join().expect("lines"))
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_best_model_so_far() {
    let scratch = Scratch::planted();
    let line = "train train.svm --valid valid.svm --lambda 10 --max-iter 100000000 --steps forward -o m.hdsl --json -v";
    let (out, said) = interrupted(&scratch, line, "iteration ");
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("best model so far"), "{said}");
    let facts: Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
    assert_eq!(facts["stop"], "interrupted");
    scratch
        .hdsl("evaluate m.hdsl --train train.svm test.svm")
        .ok();
}

#[cfg(unix)]
#[test]
fn ctrl_c_while_mining_leaves_nothing_behind() {
    // Rows that take a minute to find the neighbors of, so that a signal surely comes before that is done.
    let scratch = Scratch::empty();
    let mut text = String::new();
    for row in 0..60_000u32 {
        text += &(row % 2).to_string();
        for k in 0..60u32 {
            text += &format!(
                " {}:{}",
                1 + 50 * k + (row * (2 * k + 1)) % 50,
                1 + (row + k) % 97
            );
        }
        text.push('\n');
    }
    std::fs::write(scratch.folder().join("many.svm"), text).expect("a file");
    let files = scratch.files();
    let line = "train many.svm --lambda 10 -o m.hdsl -v";
    let (out, said) = interrupted(&scratch, line, "mining triplets");
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert_eq!(out.stdout, b"");
    assert!(
        said.ends_with(
            "hdsl: error: stopped by Ctrl-C before there was a model; nothing was written\n"
        ),
        "{said}"
    );
    assert_eq!(scratch.files(), files);
}

#[test]
fn dexter_from_end_to_end() {
    let (Some(train), Some(valid)) = (
        shared("dexter/train.svm.bz2"),
        shared("dexter/valid.svm.bz2"),
    ) else {
        return;
    };
    let (train, valid) = (train.display(), valid.display());
    let scratch = Scratch::empty();
    let facts = scratch
        .hdsl(&format!(
            "train {train} --valid {valid} --triplets random:20 --lambda 100 --max-iter 1000 --seed 1 -o m.hdsl --json"
        ))
        .json();
    assert_eq!(facts["n_triplets"], 6000);
    assert!(facts["valid_error"].as_f64() < Some(0.12), "{facts}");
    assert!(facts["bytes"].as_u64() < Some(64 * 1024), "{facts}");
    let dot = scratch
        .hdsl(&format!("evaluate identity --train {train} {valid} --json"))
        .json();
    assert!(dot["error"].as_f64() > facts["valid_error"].as_f64());
}

#[test]
fn training_with_settings_left_open_names_the_search() {
    let scratch = Scratch::planted();
    let is_named = |flags: &str| {
        let line = format!("train train.svm --max-iter 5 -o m.hdsl {flags}");
        scratch.hdsl(&line).ok().contains("`hdsl tune`")
    };
    assert!(is_named(""));
    assert!(is_named("--preprocess unit"));
    // Neither where λ is given, nor in JSON, nor where there is nothing for the search to learn from.
    assert!(!is_named("--lambda 10"));
    assert!(!is_named("--json"));
    scratch.write("triplets.txt", "0 1 2\n");
    assert!(!is_named("--triplets triplets.txt"));
}
