//! Models with a base: every command that scores adds up base and learned part.

mod common;

use common::Scratch;
use hdsl::atoms::Path;
use hdsl::data::{Preprocess, Preprocessor};
use hdsl::{Dataset, Model, ModelParts};
use serde_json::Value;

const BASE: f64 = 5.0;

/// The planted problem with three models: `m.hdsl` without a base, `b.hdsl` with one, and `only.hdsl`, a base alone.
fn scratch() -> Scratch {
    let scratch = Scratch::trained();
    let train = data(&scratch, "train.svm");
    let mut parts = Model::read(scratch.path("m.hdsl"))
        .expect("a model")
        .parts()
        .clone();
    parts.preprocess = Preprocessor::fit(Preprocess::MaxUnit, &train.rows);
    scratch.write("m.hdsl", model(parts.clone()).to_bytes());
    parts.base = BASE;
    scratch.write("b.hdsl", model(parts.clone()).to_bytes());
    let path = Path::new(vec![], vec![]).expect("an empty path");
    let mut only = ModelParts::new(parts.n_features, 1.0, path);
    (only.base, only.preprocess) = (BASE, parts.preprocess);
    scratch.write("only.hdsl", model(only).to_bytes());
    scratch
}

fn model(parts: ModelParts) -> Model {
    Model::new(parts).expect("parts that fit together")
}

fn data(scratch: &Scratch, file: &str) -> Dataset {
    let options = hdsl::data::ReadOptions::default();
    hdsl::data::read_dataset(&scratch.path(file), &options).expect("rows")
}

/// The scores of row i of the test part and row i of the training part.
fn scores(scratch: &Scratch, model: &str, flags: &str) -> Vec<f64> {
    let pairs: String = (0..80).map(|i| format!("{i} {i}\n")).collect();
    scratch.write("pairs.txt", pairs);
    let line = format!("score {model} test.svm train.svm --pairs pairs.txt {flags}");
    let last = |line: &str| line.rsplit('\t').next().and_then(|s| s.parse().ok());
    let text = scratch.hdsl(&line).ok();
    text.lines().map(|l| last(l).expect("a score")).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn scores_are_the_base_plus_the_learned_part() {
    let scratch = scratch();
    let learned = scores(&scratch, "m.hdsl", "");
    let base = scores(&scratch, "only.hdsl", "");
    let both = scores(&scratch, "b.hdsl", "");
    for row in 0..80 {
        assert!((learned[row] + base[row] - both[row]).abs() < 1e-12);
    }
    // Rows have unit length, so the base alone is a multiple of the cosine.
    let cosine = scores(&scratch, "only.hdsl", "--normalization cosine");
    for row in 0..80 {
        assert!((BASE * cosine[row] - base[row]).abs() < 1e-12);
    }
}

#[test]
fn explanations_add_up() {
    let scratch = scratch();
    for normalization in ["dot", "cosine"] {
        let flags = format!("--normalization {normalization}");
        let scores = scores(&scratch, "b.hdsl", &flags);
        for row in [0, 17, 79] {
            let line = format!("explain b.hdsl --pair test.svm:{row} train.svm:{row} {flags}");
            let why = scratch.hdsl(&format!("{line} --json")).json();
            let sum = |list: &str| -> f64 {
                let list = why[list].as_array().expect("a list");
                list.iter().map(|c| number(&c["value"])).sum()
            };
            let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-10, "{x} {y}");
            close(sum("base_contributions"), number(&why["base_score"]));
            close(sum("contributions"), number(&why["learned_score"]));
            close(
                sum("contributions") + sum("base_contributions"),
                scores[row],
            );
            close(number(&why["score"]), scores[row]);
            let text = scratch.hdsl(&line).ok();
            for part in [
                "of the base, 5 <x, x'>",
                "from the base",
                "from the learned part",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
            let total = format!("{:+.4}  in total", scores[row]);
            assert!(text.contains(&total), "{total}: {text}");
        }
    }
    let said = scratch
        .hdsl("explain m.hdsl --pair test.svm:0 train.svm:0")
        .ok();
    assert!(!said.contains("base"), "{said}");
}

#[test]
fn mapped_rows_and_neighbors_agree_with_scores() {
    let scratch = scratch();
    let all = scratch.hdsl("score b.hdsl test.svm train.svm --all").ok();
    let of = |line: &str, at: usize| line.split('\t').nth(at).map(str::to_owned);
    let mut best: Vec<f64> = vec![f64::NEG_INFINITY; 80];
    for line in all.lines() {
        let row: usize = of(line, 0).expect("a row").parse().expect("a number");
        let score: f64 = of(line, 2).expect("a score").parse().expect("a number");
        best[row] = best[row].max(score);
    }
    for flags in ["", "--rank 400"] {
        for part in ["test", "train"] {
            let line = format!("transform b.hdsl {part}.svm -o {part}-z.svm {flags}");
            let said = scratch.hdsl(&line).ok();
            assert!(said.contains("of the base, then"), "{said}");
        }
        for line in [
            "neighbors identity --preprocess none --train train-z.svm test-z.svm -k 1",
            "neighbors b.hdsl --train train.svm test.svm -k 1",
        ] {
            let lists = scratch.hdsl(line).ok();
            for (list, want) in lists.lines().zip(&best) {
                let score: f64 = of(list, 3).expect("a score").parse().expect("a number");
                assert!((score - want).abs() < 1e-9, "{line}: {list} and {want}");
            }
        }
    }
}

#[test]
fn a_base_alone_is_the_dot_product() {
    let scratch = scratch();
    let error = |model: &str| {
        let line = format!("evaluate {model} --train train.svm test.svm --json");
        number(&scratch.hdsl(&line).json()["error"])
    };
    assert_eq!(error("only.hdsl"), error("identity --preprocess max+unit"));
    let line = "predict only.hdsl --train train.svm test.svm";
    assert_eq!(scratch.hdsl(line).ok().lines().count(), 80);
}

#[test]
fn the_base_is_shown() {
    let scratch = scratch();
    let said = scratch.hdsl("inspect b.hdsl").ok();
    assert!(said.contains("scores are 5 <x, x'> + x^T M x'"), "{said}");
    assert!(said.contains("of the learned part"), "{said}");
    assert_eq!(
        number(&scratch.hdsl("inspect b.hdsl --json").json()["base"]),
        BASE
    );
    assert!(!scratch.hdsl("inspect m.hdsl").ok().contains("base"));
    for model in ["b.hdsl", "only.hdsl"] {
        let said = scratch.hdsl(&format!("explain {model}")).ok();
        assert!(
            said.contains("The base, 5 <x, x'>, uses all features"),
            "{said}"
        );
        scratch.hdsl(&format!("inspect {model}")).ok();
    }
    let features = scratch.hdsl("inspect b.hdsl --json").json()["n_features_used"].clone();
    let said = scratch
        .hdsl(&format!("score b.hdsl test.svm --max-features {features}"))
        .ok();
    assert_eq!(said.lines().count(), 80);
}
