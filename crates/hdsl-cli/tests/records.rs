//! Records as input and tables as output: from a CSV file to predictions with reasons in two commands.

mod common;

use common::Scratch;
use std::fmt::Write;

const TASTY: [&str; 4] = ["delicious", "savoury", "fresh", "crisp"];
const STALE: [&str; 4] = ["stale", "soggy", "bland", "burnt"];

/// Reviews of food: two words that decide the class, and some that do not.
fn reviews(n: usize, from: usize) -> String {
    let mut csv = "id,verdict,review,place\n".to_owned();
    for at in from..from + n {
        let (class, words) = if at % 2 == 0 {
            ("good", TASTY)
        } else {
            ("bad", STALE)
        };
        let (a, b) = (words[at / 2 % 4], words[(at / 2 + at / 8 + 1) % 4]);
        let noise = ["soup", "rice", "bread", "fish", "pasta"][at * 7 % 5];
        let place = ["town", "harbor", "park"][at * 5 % 3];
        writeln!(
            csv,
            "r{at},{class},\"The {noise} was {a}, and it tasted {b}\",{place}"
        )
        .unwrap();
    }
    csv
}

fn scratch() -> Scratch {
    let scratch = Scratch::empty();
    scratch.write("reviews.csv", reviews(80, 0));
    scratch.write("new.csv", reviews(20, 1000));
    scratch
}

const TRAIN: &str =
    "train reviews.csv --label verdict --text review --lambda 10 --max-iter 60 -o reviews.hdsl";

#[test]
fn two_commands_lead_from_texts_to_predictions_with_reasons() {
    let scratch = scratch();
    scratch.hdsl(TRAIN).ok();
    let lines = scratch
        .hdsl("predict reviews.hdsl new.csv --reasons 2")
        .ok();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 20);
    for (at, line) in lines.iter().enumerate() {
        let (class, reasons) = line.split_once('\t').unwrap();
        assert_eq!(class, if at % 2 == 0 { "good" } else { "bad" });
        assert!(
            reasons.contains("review:") && reasons.contains(" +"),
            "{line}"
        );
    }
    // The training rows of the model are those of the file.
    let with = scratch
        .hdsl("predict reviews.hdsl --train reviews.csv new.csv")
        .ok();
    assert_eq!(scratch.hdsl("predict reviews.hdsl new.csv").ok(), with);
    let why = scratch
        .hdsl("explain reviews.hdsl --pair new.csv:3 reviews.csv:17")
        .ok();
    assert!(why.contains("row 3 of new.csv (class bad): The "), "{why}");
    assert!(why.contains("review:"), "{why}");
    let error = scratch.hdsl("evaluate reviews.hdsl new.csv --json").json();
    assert_eq!(
        (error["error"].as_f64(), error["n_train"].as_u64()),
        (Some(0.0), Some(80))
    );
}

#[test]
fn tuned_models_take_records_and_say_how_they_were_made() {
    let scratch = scratch();
    let tuned = scratch
        .hdsl("tune reviews.csv --label verdict --text review --min-df 2 --round-iter 16 --time 20s -o reviews.hdsl --json")
        .json();
    let command = tuned["command"].as_str().unwrap();
    for words in [
        "hdsl train reviews.csv",
        "--label verdict --id id --text review",
        "--min-df 2",
    ] {
        assert!(command.contains(words), "{command}");
    }
    let first = scratch.read("reviews.hdsl");
    scratch.hdsl(command.strip_prefix("hdsl ").unwrap()).ok();
    assert_eq!(scratch.read("reviews.hdsl"), first);
    assert_eq!(
        scratch
            .hdsl("predict reviews.hdsl new.csv")
            .ok()
            .lines()
            .count(),
        20
    );
    let shown = scratch.hdsl("inspect reviews.hdsl").ok();
    assert!(
        shown.contains("review (text)") && shown.contains("80 training rows"),
        "{shown}"
    );
}

#[test]
fn vectorize_and_train_give_the_same_bytes_as_train_on_records() {
    let scratch = scratch();
    scratch.hdsl(TRAIN).ok();
    // The rows of an svmlight file have no ids; everything else is equal.
    scratch.write("anonymous.csv", reviews(80, 0).replace("id,", "ignored,"));
    scratch
        .hdsl("vectorize anonymous.csv --label verdict --text review --save-vocab vocab.json -o reviews.svm")
        .ok();
    scratch
        .hdsl("train reviews.svm --vocab vocab.json --lambda 10 --max-iter 60 -o other.hdsl")
        .ok();
    let (one, other) = (scratch.read("reviews.hdsl"), scratch.read("other.hdsl"));
    let line = TRAIN.replace("train reviews.csv", "train anonymous.csv");
    scratch.hdsl(&line.replace("-o reviews", "-o third")).ok();
    assert_eq!(scratch.read("third.hdsl"), other);
    assert!(one.len() > other.len());
    let plain = scratch.hdsl("predict other.hdsl new.csv").ok();
    assert_eq!(plain, scratch.hdsl("predict reviews.hdsl new.csv").ok());
}

#[test]
fn results_have_the_format_of_their_names() {
    let scratch = scratch();
    scratch.hdsl(TRAIN).ok();
    scratch
        .hdsl("predict reviews.hdsl new.csv --reasons 1 -o p.csv")
        .ok();
    let csv = scratch.text("p.csv");
    assert!(
        csv.starts_with("row,id,class,reasons\n0,r1000,good,review:"),
        "{csv}"
    );
    scratch
        .hdsl("neighbors reviews.hdsl new.csv -k 2 --rows 1 -o n.jsonl")
        .ok();
    let lines = scratch.text("n.jsonl");
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["row"].as_u64(), first["id"].as_str()),
        (Some(1), Some("r1001"))
    );
    assert_eq!(first["class"].as_str(), Some("bad"));
    assert_eq!(lines.lines().count(), 2);
    scratch.hdsl("score reviews.hdsl new.csv -o s.parquet").ok();
    let inspected = scratch
        .hdsl("inspect s.parquet --numeric score --json")
        .json();
    assert_eq!(inspected["n_rows"].as_u64(), Some(20));
    scratch.hdsl("score reviews.hdsl new.csv -o s.txt").ok();
    assert!(scratch.text("s.txt").starts_with("0\t0\t"));
}

#[test]
fn inspect_shows_the_guess() {
    let scratch = scratch();
    let text = scratch.hdsl("inspect reviews.csv").ok();
    let columns = text.split_once("Columns:").unwrap().1;
    let words: Vec<Vec<&str>> = columns
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(words[2], ["id", "id", "guessed", "r0"]);
    assert_eq!(words[3], ["verdict", "label", "guessed", "good"]);
    assert_eq!(words[4][..5], ["review", "text", "guessed", "The", "soup"]);
    let value = scratch
        .hdsl("inspect reviews.csv --categorical place --json")
        .json();
    assert_eq!(value["columns"][3]["role"], "categorical");
    assert_eq!(value["columns"][3]["guessed"], false);
    assert_eq!(value["columns"][2]["role"], "ignored");
    assert_eq!(value["n_features"].as_u64(), Some(3));
}

#[test]
fn bad_records_are_refused_and_nothing_is_written() {
    let scratch = scratch();
    scratch.hdsl(TRAIN).ok();
    scratch.write("ragged.csv", "a,b\n1,2\n3\n");
    scratch.write("latin.csv", b"label,text\na,caf\xe9 au lait\nb,x y z w\n");
    scratch.write("numbers.svm", "1,2,3\n4,5,6\n");
    scratch.write("half.csv", reviews(80, 0).replacen("r5,bad", "r5,", 1));
    for (line, expected) in [
        (
            "train ragged.csv --lambda 1 -o m.out",
            "ragged.csv:3: has 1 fields, expected 2",
        ),
        (
            "train latin.csv --lambda 1 -o m.out",
            "latin.csv:2: column `text`: `caf",
        ),
        (
            "train numbers.svm --lambda 1 -o m.out",
            "numbers.svm: has no `index:value` in any row",
        ),
        (
            "train half.csv --label verdict --lambda 1 -o m.out",
            "half.csv: the label (column `verdict`) of line 7 is empty",
        ),
        (
            "train reviews.csv --label stars --lambda 1 -o m.out",
            "reviews.csv: has no column `stars`; its columns are `id`",
        ),
        (
            "train reviews.csv --text review --analyzer char --stem english --lambda 1 -o m.out",
            "stop words and stems need the analyzer `word`",
        ),
        (
            "predict reviews.hdsl new.csv --text id",
            "only --label and --id can be given",
        ),
        (
            "predict identity new.csv",
            "`identity` has no training rows; pass the rows",
        ),
        ("vectorize reviews.csv --hashing 0 -o m.out", "0"),
        (
            "predict reviews.hdsl latin.csv -o m.out",
            "latin.csv:2: column `text`: `caf",
        ),
    ] {
        let ran = scratch.hdsl(line);
        assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{line}: {}", ran.stderr);
        assert!(!scratch.path("m.out").exists(), "{line}");
    }
    // A model of numbered features does not know what to do with records.
    scratch
        .hdsl("vectorize reviews.csv --label verdict --text review -o r.svm")
        .ok();
    scratch
        .hdsl("train r.svm --lambda 10 --max-iter 5 -o rows.hdsl")
        .ok();
    let ran = scratch.hdsl("predict rows.hdsl --train r.svm new.csv");
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.stderr
            .contains("new.csv: has records, but the model was trained on rows"),
        "{}",
        ran.stderr
    );
    let ran = scratch.hdsl("predict rows.hdsl r.svm");
    assert!(
        ran.stderr
            .contains("rows.hdsl has no training rows; pass the rows"),
        "{}",
        ran.stderr
    );
    scratch.hdsl(&format!("{TRAIN} --without-rows")).ok();
    let ran = scratch.hdsl("predict reviews.hdsl new.csv");
    assert!(
        ran.stderr.contains("reviews.hdsl has no training rows"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_demo_goes_the_whole_way_on_texts() {
    let scratch = Scratch::empty();
    let demo = scratch.hdsl("demo --text --json").json();
    assert!(demo["error"].as_f64() < demo["dot_product_error"].as_f64());
    assert!(demo["planted_features_found"].as_u64() >= Some(10));
    let predicted = scratch
        .hdsl("predict hdsl-demo/reviews.hdsl hdsl-demo/new.csv --reasons 2")
        .ok();
    assert_eq!(predicted.lines().count(), 1000);
    let error = scratch
        .hdsl("evaluate hdsl-demo/reviews.hdsl hdsl-demo/new.csv --json")
        .json();
    assert_eq!(error["error"], demo["error"]);
}
