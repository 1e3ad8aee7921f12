//! `hdsl report`: what is written, what is refused. How the page looks and behaves is tried in a browser, see
//! crates/hdsl-report/browser.

mod common;
use common::Scratch;
use serde_json::Value;

/// The value of a figure in the first section of a page.
fn figure(html: &str, key: &str) -> f64 {
    let mark = format!("id=\"figure-{key}\" value=\"");
    let start = html.find(&mark).expect("the figure is there") + mark.len();
    let end = start + html[start..].find('"').expect("a value ends");
    html[start..end].parse().expect("a number")
}

fn data(html: &str) -> Value {
    let mark = "id=\"data\">";
    let start = html.find(mark).expect("the page has data") + mark.len();
    let end = start + html[start..].find("</script>").expect("data end");
    serde_json::from_str(&html[start..end]).expect("JSON")
}

#[test]
fn the_page_tells_what_the_commands_tell() {
    let scratch = Scratch::trained();
    let line = "report m.hdsl --train train.svm --test test.svm --names vocab.txt -o r.html --json";
    let told = scratch.hdsl(line).json();
    let html = scratch.text("r.html");
    assert_eq!(told["bytes"], html.len());
    let evaluated = |model: &str| {
        let line = format!("evaluate {model} --train train.svm test.svm --json");
        scratch.hdsl(&line).json()["error"].as_f64()
    };
    assert_eq!(Some(figure(&html, "error")), evaluated("m.hdsl"));
    assert_eq!(Some(figure(&html, "dot_error")), evaluated("identity"));
    for (key, kind) in [("cosine_error", "unit"), ("tfidf_error", "tfidf")] {
        let identity = format!("identity --preprocess {kind}");
        assert_eq!(Some(figure(&html, key)), evaluated(&identity), "{key}");
    }
    let explained = scratch
        .hdsl("explain m.hdsl --names vocab.txt --top 0 --json")
        .json();
    for key in ["n_features", "n_pairs", "n_atoms", "lambda", "iteration"] {
        assert_eq!(Some(figure(&html, key)), explained[key].as_f64(), "{key}");
    }
    let satisfied = scratch.hdsl("triplets train.svm --json").json();
    assert_eq!(
        data(&html)["satisfied"]["dot"],
        satisfied["satisfied_by_dot_product"]
    );
    assert_eq!(data(&html)["satisfied"]["n"], satisfied["n_triplets"]);
    assert!(html.contains(" --names vocab.txt "), "the training line");
}

#[test]
fn training_rows_may_be_in_two_files() {
    let scratch = Scratch::trained();
    let both = scratch.text("train.svm") + &scratch.text("valid.svm");
    scratch.write("both.svm", both);
    let report = |train: &str| {
        let line = format!("report m.hdsl --train {train} --test test.svm -o r.html --json");
        let told = scratch.hdsl(&line).json();
        let html = scratch.text("r.html");
        let figures = ["error", "dot_error"].map(|key| figure(&html, key));
        (
            told["n_train"].clone(),
            figures,
            data(&html)["satisfied"].clone(),
        )
    };
    assert_eq!(report("train.svm --add valid.svm"), report("both.svm"));
    assert_ne!(report("train.svm").0, report("both.svm").0);

    let refused = scratch.hdsl("report m.hdsl --add valid.svm -o r.html");
    assert_eq!(refused.status, Some(2));
    assert!(
        refused.stderr.contains("--train <FILE>"),
        "{}",
        refused.stderr
    );
    scratch
        .hdsl("convert valid.svm -o bare.npz --save-labels theirs.txt")
        .ok();
    let refused = scratch.hdsl("report m.hdsl --train train.svm --add bare.npz -o r.html");
    assert_eq!(refused.status, Some(2));
    assert!(
        refused.stderr.contains("--add-labels"),
        "{}",
        refused.stderr
    );
}

#[test]
fn same_input_same_bytes_for_any_number_of_threads() {
    let scratch = Scratch::trained();
    let line = "report m.hdsl --train train.svm --test test.svm -o r.html";
    scratch.hdsl(line).ok();
    let once = scratch.read("r.html");
    for threads in ["--threads 1", "--threads=5 -q"] {
        scratch.hdsl(&format!("{line} {threads}")).ok();
        assert!(once == scratch.read("r.html"), "{threads}");
    }
}

#[test]
fn texts_times_and_earlier_models_are_shown() {
    let scratch = Scratch::empty();
    let texts = |n: usize| -> String {
        (0..n)
            .map(|row| match row % 2 {
                0 => format!("tea\tgreen leaf number{row} cup\n"),
                _ => format!("oil\tcrude barrel number{row} pipe\n"),
            })
            .collect()
    };
    scratch.write("train.tsv", texts(40));
    scratch.write("test.tsv", texts(10));
    scratch
        .hdsl("vectorize train.tsv --save-vocab vocab.txt -o train.svm")
        .ok();
    scratch
        .hdsl("vectorize test.tsv --vocab vocab.txt -o test.svm")
        .ok();
    let run = scratch
        .hdsl("train train.svm --lambda 10 --max-iter 20 --names vocab.txt -o m.hdsl --json")
        .ok();
    scratch.write("run.json", &run);
    scratch
        .hdsl("report m.hdsl --train train.svm --test test.svm --text train.tsv test.tsv --run run.json --iteration 1 -o r.html")
        .ok();
    let html = scratch.text("r.html");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    assert_eq!(
        Some(figure(&html, "train_seconds")),
        run["train_seconds"].as_f64()
    );
    assert_eq!(figure(&html, "iteration"), 1.0);
    assert_eq!(
        data(&html)["neighbors"]["texts"]["test"][3][1],
        "crude barrel number3 pipe"
    );
    let page = scratch.hdsl("report m.hdsl -o -").ok();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
}

#[test]
fn what_does_not_fit_is_refused() {
    let scratch = Scratch::trained();
    scratch.write("short.tsv", "a\tone text\n");
    let classes = scratch.text("test.svm");
    let other: String = classes.lines().map(|_| "wrong\ttext\n").collect();
    scratch.write("other.tsv", &other);
    let rows: String = scratch
        .text("train.svm")
        .lines()
        .map(|line| format!("{}\ttext\n", line.split(' ').next().unwrap_or_default()))
        .collect();
    scratch.write("train.tsv", &rows);
    scratch.write("run.json", "{}");
    scratch.write("names.txt", "one\ntwo\n");
    let both = "--train train.svm --test test.svm";
    let cases = [
        ("--test test.svm".to_owned(), "--train"),
        (
            format!("{both} --text short.tsv short.tsv"),
            "short.tsv: has 1 text, expected one for each of 160 rows",
        ),
        (
            format!("{both} --text train.tsv other.tsv"),
            "text 0 (counted from 0) is of class wrong",
        ),
        (
            format!("{both} --names names.txt"),
            "names.txt: has 2 names",
        ),
        (
            "--run run.json".to_owned(),
            "run.json: has no number `train_seconds`",
        ),
        ("--run missing.json".to_owned(), "missing.json: cannot read"),
        ("--iteration 9999".to_owned(), "there is no iterate 9999"),
        ("-k 0".to_owned(), "above 0"),
        ("--train missing.svm".to_owned(), "missing.svm"),
    ];
    let files = scratch.files();
    for (flags, says) in cases {
        let ran = scratch.hdsl(&format!("report m.hdsl {flags} -o r.html"));
        assert_eq!(ran.status, Some(2), "{flags}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{flags}: {}", ran.stderr);
        assert_eq!(scratch.files(), files, "{flags} left something behind");
    }
    let ran = scratch.hdsl("report m.hdsl -o no/such/folder/r.html");
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
}
