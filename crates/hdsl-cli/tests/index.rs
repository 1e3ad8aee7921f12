//! `hdsl index`, and the commands that take an index in place of training rows.

mod common;

use common::Scratch;
use serde_json::Value;

/// A model of the planted problem, ids and texts of its training rows, and an index of them.
fn indexed() -> Scratch {
    let scratch = Scratch::planted();
    scratch
        .hdsl("train train.svm --names vocab.txt --lambda 10 --max-iter 60 --base 0.5 -o m.hdsl")
        .ok();
    let lines = |what: &str| {
        (0..160)
            .map(|row| format!("{what}-{row}\n"))
            .collect::<String>()
    };
    scratch.write("ids.txt", lines("doc").as_bytes());
    scratch.write("texts.txt", lines("text of").as_bytes());
    let built =
        scratch.hdsl("index build m.hdsl train.svm --ids ids.txt --texts texts.txt -o m.index");
    assert!(built.ok().starts_with("indexed 160 rows, saved m.index ("));
    scratch
}

#[test]
fn an_index_gives_the_same_as_training_rows() {
    let scratch = indexed();
    for command in [
        "neighbors MODEL test.svm -k 7",
        "predict MODEL test.svm -k 5",
        "predict MODEL test.svm --vote class-mean",
    ] {
        let with = |model: &str| scratch.hdsl(&command.replace("MODEL", model)).ok();
        let wanted = with("m.hdsl --train train.svm");
        assert_eq!(with("m.index"), wanted, "{command}");
        assert_eq!(with("m.hdsl --train m.index"), wanted, "{command}");
        let json = |model: &str| {
            scratch
                .hdsl(&format!("{} --json", command.replace("MODEL", model)))
                .json()
        };
        let (mut a, b) = (json("m.index"), json("m.hdsl --train train.svm"));
        a["model"] = b["model"].clone();
        assert_eq!(a, b, "{command}");
    }
}

#[test]
fn a_search_shows_texts_scores_and_reasons() {
    let scratch = indexed();
    let text = scratch
        .hdsl("index search m.index --rows test.svm -k 2")
        .ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "row 0");
    assert!(
        lines[1].starts_with("  1. ") && lines[1].contains("doc-") && lines[1].contains("text of-"),
        "{text}"
    );
    assert!(
        lines[2].contains("both have") || lines[2].contains("in the query"),
        "{text}"
    );
    let json = scratch
        .hdsl("index search m.index --rows test.svm -k 3 --reasons 100000 --json")
        .json();
    let neighbors = scratch
        .hdsl("neighbors m.index test.svm -k 3 --json")
        .json();
    for (query, row) in json["queries"]
        .as_array()
        .unwrap()
        .iter()
        .zip(neighbors["rows"].as_array().unwrap())
    {
        for (hit, near) in query["hits"]
            .as_array()
            .unwrap()
            .iter()
            .zip(row["neighbors"].as_array().unwrap())
        {
            for field in ["row", "score", "class"] {
                assert_eq!(hit[field], near[field]);
            }
            assert_eq!(hit["id"], format!("doc-{}", hit["row"]));
            let reasons = hit["reasons"].as_array().unwrap().iter();
            let sum: f64 = reasons
                .map(|reason| reason["value"].as_f64().unwrap())
                .sum();
            assert!((sum - hit["score"].as_f64().unwrap()).abs() < 1e-9);
        }
    }
}

#[test]
fn rows_are_added_removed_and_replaced() {
    let scratch = indexed();
    scratch.write("one.svm", b"1 3:1 7:1\n");
    scratch.write("one.txt", b"new\n");
    let added = scratch.hdsl("index add m.index one.svm --ids one.txt").ok();
    assert_eq!(added, "added 1 row, the index has 161 rows\n");
    let again = scratch.hdsl("index add m.index one.svm --ids one.txt");
    assert_eq!(again.status, Some(2));
    assert!(
        again
            .stderr
            .contains("row 160 of the index has the id `new` already"),
        "{}",
        again.stderr
    );
    let info = scratch.hdsl("index info m.index --check --json").json();
    assert_eq!(
        (&info["n_rows"], &info["n_segments"]),
        (&Value::from(161), &Value::from(2))
    );
    scratch
        .hdsl("index add m.index one.svm --ids one.txt --replace")
        .ok();
    let removed = scratch.hdsl("index remove m.index doc-3 new").ok();
    assert_eq!(removed, "removed 2 rows, the index has 159 rows\n");
    let missing = scratch.hdsl("index remove m.index doc-5 doc-3");
    assert_eq!(missing.status, Some(2));
    assert!(
        missing.stderr.contains("has no row with the id `doc-3`"),
        "{}",
        missing.stderr
    );
    let before = scratch.hdsl("neighbors m.index test.svm -k 159").ok();
    assert!(
        scratch
            .hdsl("index compact m.index")
            .ok()
            .contains(" became ")
    );
    assert_eq!(
        scratch.hdsl("neighbors m.index test.svm -k 159").ok(),
        before
    );
    assert_eq!(
        scratch.hdsl("index info m.index --json").json()["n_rows"],
        159
    );
}

#[test]
fn wrong_use_and_damage_end_with_status_2() {
    let scratch = indexed();
    let index = std::fs::read(scratch.path("m.index")).unwrap();
    scratch.write("cut.index", &index[..index.len() - 1]);
    scratch.write("two.txt", b"a\nb\n");
    scratch.write("same.txt", "a\n".repeat(160).as_bytes());
    scratch
        .hdsl("train train.svm --lambda 10 --max-iter 5 -o other.hdsl")
        .ok();
    for (command, message) in [
        (
            "predict cut.index test.svm",
            "cut.index: truncated or damaged",
        ),
        (
            "predict m.index test.svm --train train.svm",
            "--train is not for it",
        ),
        ("predict m.index test.svm --iteration 3", "is not for it"),
        (
            "neighbors m.index test.svm --normalization cosine",
            "the index was built with dot",
        ),
        (
            "neighbors m.index test.svm -k 161",
            "fewer rows than neighbors to find: 160, but k is 161",
        ),
        (
            "neighbors other.hdsl --train m.index test.svm",
            "an index of another model",
        ),
        ("neighbors m.hdsl test.svm", "--train"),
        (
            "index search m.index soup",
            "does not say how a text becomes a row",
        ),
        ("index info m.hdsl", "m.hdsl: not an hdsl index"),
        (
            "index search no.index --rows test.svm",
            "no.index: cannot read",
        ),
        ("index add no.index test.svm", "no.index: cannot write"),
        (
            "index build m.hdsl train.svm --ids two.txt -o x.index",
            "two.txt: has 2 ids for 160 rows",
        ),
        (
            "index build m.hdsl train.svm --ids same.txt -o x.index",
            "rows 0 and 1 have the same id `a`",
        ),
        (
            "index build m.hdsl train.svm -o no/x.index",
            "no/x.index: cannot write",
        ),
        ("index add m.index test.svm", "have ids, but none are given"),
        ("index remove m.index", "required"),
    ] {
        let ran = scratch.hdsl(command);
        assert_eq!(ran.status, Some(2), "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{command}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{command}");
    }
    assert!(!scratch.path("x.index").exists());
    assert_eq!(
        std::fs::read(scratch.path("m.index")).unwrap(),
        index,
        "nothing was changed"
    );
}

/// Processes that add rows are killed at many moments; the index is always whole.
#[test]
fn a_killed_add_leaves_the_old_or_the_new_state() {
    let scratch = indexed();
    let mut n_rows = 160;
    for round in 0..12u64 {
        let ids: String = (0..80).map(|row| format!("r{round}-{row}\n")).collect();
        scratch.write("more.txt", ids.as_bytes());
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_hdsl"))
            .args("index add m.index test.svm --ids more.txt".split(' '))
            .current_dir(scratch.folder())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3 * round));
        let _ = process.kill();
        process.wait().unwrap();
        let info = scratch.hdsl("index info m.index --check --json").json();
        let now = info["n_rows"].as_u64().unwrap();
        assert!(now == n_rows || now == n_rows + 80, "{now} after {n_rows}");
        n_rows = now;
    }
}

/// From a CSV of texts to answers with reasons.
#[test]
fn texts_are_indexed_and_searched() {
    let scratch = Scratch::empty();
    let words = ["tasty", "delicious", "fresh", "stale", "soggy", "burnt"];
    let mut csv = "key,stars,body\n".to_owned();
    for n in 0..60 {
        let (word, dish) = (words[n % 6], ["soup", "rice"][n / 6 % 2]);
        let stars = if n % 6 < 3 { "good" } else { "bad" };
        csv += &format!("r{n},{stars},\"{word} {dish}, number{n}\"\n");
    }
    scratch.write("reviews.csv", &csv);
    scratch.write(
        "more.csv",
        "key,stars,body\nnew,good,\"delicious, delicious soup\"\n",
    );
    scratch.hdsl("train reviews.csv --label stars --text body --id key --preprocess none --lambda 5 --base 1 --max-iter 30 -o m.hdsl").ok();
    scratch
        .hdsl("index build m.hdsl reviews.csv -o m.index")
        .ok();
    let search = "hdsl index search m.index 'a delicious soup' -k 2";
    let shown = scratch.shell(search).ok();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "a delicious soup");
    assert!(
        lines[1].contains("  r1  [good]  delicious soup, number1"),
        "{shown}"
    );
    assert!(
        shown.contains("both have delicious") || shown.contains("both have body:delicious"),
        "{shown}"
    );
    assert_eq!(
        scratch.hdsl("index add m.index more.csv").ok(),
        "added 1 row, the index has 61 rows\n"
    );
    let shown = scratch.shell(search).ok();
    assert!(
        shown.contains("  1. ") && shown.lines().nth(1).unwrap().contains("new"),
        "{shown}"
    );
    scratch.hdsl("index remove m.index new").ok();
    for reasons in ["", " --reasons 2"] {
        let with = |model: &str| {
            scratch
                .hdsl(&format!("predict {model} more.csv{reasons}"))
                .ok()
        };
        assert_eq!(with("m.index"), with("m.hdsl"));
    }
    let neighbors = |model: &str| {
        scratch
            .hdsl(&format!("neighbors {model} more.csv -k 4 -o n.csv"))
            .ok()
            + &scratch.text("n.csv")
    };
    assert_eq!(neighbors("m.index"), neighbors("m.hdsl"));
    scratch.shell(&format!("{search} -o hits.csv")).ok();
    let hits = scratch.text("hits.csv");
    let lines: Vec<&str> = hits.lines().collect();
    assert_eq!(lines[0], "query,rank,row,id,score,class,text,reasons");
    let first = "a delicious soup,1,1,r1,";
    assert!(lines.len() == 3 && lines[1].starts_with(first), "{hits}");
    let json = scratch.shell(&format!("{search} --json")).json();
    assert_eq!(
        json["queries"][0]["hits"][0]["text"],
        "delicious soup, number1"
    );
}
