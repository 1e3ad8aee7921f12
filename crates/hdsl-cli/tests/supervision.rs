//! Early stopping and measures for whoever brings triplets, clicks or judgments instead of labels.

mod common;

use common::Scratch;
use hdsl::{Model, ReadOptions, Rows, read_dataset};
use serde_json::Value;

/// Rows of a planted problem without labels (bare.data), triplets of them (t.txt) and judgments (grades.txt): a document of
/// the class of its query has grade 2, some others have 0, and one 1.
fn scratch() -> Scratch {
    let scratch = Scratch::planted();
    let rows = scratch.text("train.svm");
    let (mut bare, mut classes) = (String::new(), Vec::new());
    for line in rows.lines() {
        let (class, features) = line.split_once(' ').expect("a label");
        classes.push(class.to_owned());
        bare += &format!("{features}\n");
    }
    scratch.write("bare.data", bare);
    scratch
        .hdsl("triplets train.svm --triplets random:6 --seed 4 -o t.txt")
        .ok();
    let mut grades = String::new();
    for query in 0..40 {
        for document in (0..14).map(|k| 40 + (7 * query + 9 * k) % 120) {
            let grade = match (classes[query] == classes[document], document % 10) {
                (true, _) => 2,
                (false, 3) => 1,
                _ => 0,
            };
            grades += &format!("{query} {document} {grade}\n");
        }
    }
    scratch.write("grades.txt", grades);
    scratch
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// The model and the rows it was learned from, preprocessed.
fn model_and_rows(scratch: &Scratch, file: &str) -> (Model, Rows) {
    let model = Model::read(scratch.path(file)).unwrap();
    let data = read_dataset(&scratch.path("bare.data"), &ReadOptions::default()).unwrap();
    let rows = model.preprocess().apply(&data.rows);
    (model, rows)
}

/// Scores of documents with their gains.
type Scored = Vec<(f64, f64)>;

fn score(model: &Model, rows: &Rows, a: usize, b: usize) -> f64 {
    model.similarity().score(rows.row(a), rows.row(b))
}

/// nDCG@10 by the definition, ties by their mean gain.
fn ndcg(mut scored: Scored) -> f64 {
    let dcg = |gains: Vec<f64>| -> f64 {
        let ranked = gains.iter().take(10).enumerate();
        ranked.map(|(k, g)| g / (k as f64 + 2.0).log2()).sum()
    };
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mean = |of: f64| {
        let tied = scored.iter().filter(|s| s.0 == of);
        tied.clone().map(|s| s.1).sum::<f64>() / tied.count() as f64
    };
    let ranked = scored.iter().map(|s| mean(s.0)).collect();
    let mut best: Vec<f64> = scored.iter().map(|s| s.1).collect();
    best.sort_by(|a, b| b.total_cmp(a));
    dcg(ranked) / dcg(best)
}

fn judgments(scratch: &Scratch) -> Vec<(usize, usize, f64)> {
    let text = scratch.text("grades.txt");
    let fields = text.lines().map(|line| {
        let fields: Vec<f64> = line.split(' ').map(|f| f.parse().unwrap()).collect();
        (fields[0] as usize, fields[1] as usize, fields[2])
    });
    fields.collect()
}

#[test]
fn held_out_triplets_stop_a_run_and_choose_lambda() {
    let scratch = scratch();
    let line = "train bare.data --triplets t.txt --holdout 0.25 --patience 30 --max-iter 400";
    let several = scratch
        .hdsl(&format!("{line} --lambda 0.1,10,100 -o m.hdsl --json"))
        .json();
    assert_eq!(several["valid_measure"], "triplet-error");
    assert_eq!(several["n_triplets"], 160 * 6 * 3 / 4);
    let errors: Vec<f64> = several["grid"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| number(&run["valid_error"]))
        .collect();
    let lowest = errors.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(number(&several["valid_error"]), lowest);
    assert!(lowest < 0.3, "{lowest}");
    let text = scratch.hdsl(&format!("{line} --lambda 100 -o m.hdsl")).ok();
    assert!(text.contains("error on held-out triplets"), "{text}");
    // The model says how it was validated, and how to train it again.
    let shown = scratch.hdsl("inspect m.hdsl").ok();
    assert!(shown.contains("--holdout 0.25"), "{shown}");
    // Other anchors are held out with another seed.
    let other = scratch
        .hdsl(&format!("{line} --lambda 10 --seed 1 -o m.hdsl --json"))
        .json();
    assert_ne!(number(&other["valid_error"]), errors[1]);
}

#[test]
fn settings_are_chosen_where_labeled_rows_have_triplets_of_a_file() {
    let scratch = scratch();
    for holdout in ["", " --holdout 0.3"] {
        let line =
            format!("train train.svm --triplets t.txt --max-iter 30{holdout} -o m.hdsl --json");
        let value = scratch.hdsl(&line).json();
        assert_eq!(value["choice"].is_null(), !holdout.is_empty(), "{value}");
        assert!(number(&value["base"]) > 0.0 && number(&value["lambda"]) > 0.0);
    }
}

#[test]
fn held_out_queries_are_ranked() {
    let scratch = scratch();
    let line =
        "train bare.data --triplets judgments:grades.txt --holdout 0.2 --lambda 100 --max-iter 60";
    let trained = scratch.hdsl(&format!("{line} -o m.hdsl --json")).json();
    assert_eq!(trained["valid_measure"], "ndcg-loss");
    let text = scratch.hdsl(&format!("{line} -o m.hdsl")).ok();
    assert!(text.contains("1 - nDCG@10 of held-out queries"), "{text}");
    // Nothing is held out twice: the error is the mean over some 8 of the 40 queries. With the nDCG of each query under the
    // model, some 8 of them must have that mean; check the bounds of all such sets.
    let (model, rows) = model_and_rows(&scratch, "m.hdsl");
    let all = judgments(&scratch);
    let mut losses: Vec<f64> = (0..40)
        .map(|query| {
            let of = all.iter().filter(|judged| judged.0 == query);
            1.0 - ndcg(of.map(|j| (score(&model, &rows, j.0, j.1), j.2)).collect())
        })
        .collect();
    losses.sort_by(f64::total_cmp);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let error = number(&trained["valid_error"]);
    assert!(mean(&losses[..8]) - 1e-9 <= error && error <= mean(&losses[32..]) + 1e-9);
    // Clicks have weights.
    scratch.write("clicks.txt", "0 1 2 3\n4 5 6\n7 8 9\n10 11 12\n");
    let clicks =
        "train bare.data --triplets clicks:clicks.txt --holdout 0.5 --lambda 10 -o m.hdsl --json";
    assert_eq!(
        scratch.hdsl(clicks).json()["valid_measure"],
        "triplet-error"
    );
}

#[test]
fn evaluate_measures_triplets_and_judgments() {
    let scratch = scratch();
    scratch
        .hdsl("train bare.data --triplets t.txt --lambda 100 --max-iter 8 -o m.hdsl")
        .ok();
    let (model, rows) = model_and_rows(&scratch, "m.hdsl");
    let (mut right, mut tied, mut n) = (0.0, 0.0, 0.0);
    for line in scratch.text("t.txt").lines() {
        let fields: Vec<usize> = line.split(' ').map(|f| f.parse().unwrap()).collect();
        let scores = [1, 2].map(|k| score(&model, &rows, fields[0], fields[k]));
        right += f64::from(scores[0] > scores[1]);
        tied += f64::from(scores[0] == scores[1]);
        n += 1.0;
    }
    let told = scratch
        .hdsl("evaluate m.hdsl bare.data --triplets t.txt --json")
        .json();
    assert!(tied > 0.0 && right > 0.0);
    assert!((number(&told["triplet_accuracy"]) - (right + tied / 2.0) / n).abs() < 1e-12);
    assert!((number(&told["tied"]) - tied / n).abs() < 1e-12);
    assert!(told["rankings"].is_null());

    let told = scratch
        .hdsl("evaluate m.hdsl bare.data --triplets judgments:grades.txt --json")
        .json();
    let all = judgments(&scratch);
    let documents: std::collections::BTreeSet<usize> = all.iter().map(|j| j.1).collect();
    assert_eq!(told["rankings"]["n_documents"], documents.len());
    for (which, everything) in [("judged", false), ("all", true)] {
        let mut sum = 0.0;
        for query in 0..40 {
            let gain = |d: usize| all.iter().find(|j| (j.0, j.1) == (query, d)).map(|j| j.2);
            let ranked = documents
                .iter()
                .filter(|&&d| everything || gain(d).is_some());
            let scored = |&d: &usize| (score(&model, &rows, query, d), gain(d).unwrap_or(0.0));
            sum += ndcg(ranked.map(scored).collect()) / 40.0;
        }
        let quality = &told["rankings"][which];
        assert!(
            (number(&quality["ndcg_at_10"]) - sum).abs() < 1e-9,
            "{quality}"
        );
        assert_eq!(quality["n_queries"], 40);
        for measure in ["map", "recall_at_10", "recall_at_100", "mrr"] {
            assert!(
                (0.0..=1.0).contains(&number(&quality[measure])),
                "{quality}"
            );
        }
    }
    let text = scratch
        .hdsl("evaluate m.hdsl bare.data --triplets judgments:grades.txt --normalization cosine")
        .ok();
    assert!(
        text.contains("triplet accuracy") && text.contains("recall@100"),
        "{text}"
    );
    // The dot product, whose preprocessing is fitted on the rows or on others.
    for train in ["", "--train test.svm"] {
        let line = format!("evaluate identity bare.data --triplets t.txt {train} --json");
        let plain = scratch.hdsl(line.replace("  ", " ").trim()).json();
        assert!(number(&plain["triplet_accuracy"]) > 0.4, "{plain}");
    }
    // Only relevant documents are judged: no triplets, but a ranking of all documents.
    scratch.write("some.txt", "0 50 1\n1 51 1\n");
    let some = scratch
        .hdsl("evaluate m.hdsl bare.data --triplets judgments:some.txt --json")
        .json();
    assert!(some["triplet_accuracy"].is_null() && some["rankings"]["all"]["mrr"].is_f64());
}

#[test]
fn bad_supervision_is_refused() {
    let scratch = scratch();
    scratch.write("one.txt", "0 1 2\n0 3 4\n");
    scratch.write("bad.txt", "0 1 2\n0 1 160\n");
    scratch.write("zero.txt", "0 1 0\n0 2 0\n");
    for (line, says) in [
        (
            "train bare.data --triplets one.txt --holdout 0.5 --lambda 1 -o m.out",
            "--holdout is 0.5, expected a fraction of the 1 anchors",
        ),
        (
            "train bare.data --triplets bad.txt --holdout 0.5 --lambda 1 -o m.out",
            "bad.txt:2: row `160` is missing",
        ),
        (
            "train train.svm --triplets t.txt --holdout 0.5 --mining-rounds 1 --lambda 1 -o m.out",
            "--mining-rounds is 1 with held-out anchors",
        ),
        (
            "train bare.data --triplets t.txt --patience 5 --lambda 1 -o m.out",
            "--holdout",
        ),
        (
            "evaluate identity bare.data --triplets bad.txt",
            "bad.txt:2: row `160` is missing",
        ),
        (
            "evaluate identity bare.data --triplets judgments:zero.txt",
            "zero.txt: has no query with a relevant document",
        ),
        (
            "evaluate identity bare.data --triplets random:3",
            "--triplets is random:3, expected a file",
        ),
        ("evaluate identity bare.data", "--train"),
        (
            "evaluate identity bare.data --triplets t.txt -k 3",
            "cannot be used with",
        ),
    ] {
        let ran = scratch.hdsl(line);
        assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{line}: {}", ran.stderr);
    }
}
