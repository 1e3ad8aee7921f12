//! `--vote`, `--form` and `-k`: what they decide, that a model remembers them, and what is said of wrong ones.

mod common;

use common::Scratch;
use std::collections::BTreeMap;

/// The first word of each line of an svmlight file.
fn labels(scratch: &Scratch, file: &str) -> Vec<String> {
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    scratch.text(file).lines().filter_map(first).collect()
}

/// Scores of all pairs, as the program prints them.
fn scores(scratch: &Scratch, a: &str, b: &str) -> BTreeMap<(usize, usize), f64> {
    let text = scratch.hdsl(&format!("score m.hdsl {a} {b} --all")).ok();
    let one = |line: &str| {
        let fields: Vec<f64> = line
            .split('\t')
            .map(|f| f.parse().expect("a number"))
            .collect();
        ((fields[0] as usize, fields[1] as usize), fields[2])
    };
    text.lines().map(one).collect()
}

/// Lists of (row, score, class), nearest first.
fn neighbors(scratch: &Scratch, flags: &str) -> Vec<Vec<(usize, f64, String)>> {
    let line = format!("neighbors m.hdsl --train train.svm test.svm {flags}");
    let mut lists: Vec<Vec<(usize, f64, String)>> = Vec::new();
    for line in scratch.hdsl(&line).ok().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let query: usize = fields[0].parse().expect("a row");
        lists.resize(lists.len().max(query + 1), Vec::new());
        let score = fields[3].parse().expect("a score");
        lists[query].push((
            fields[2].parse().expect("a row"),
            score,
            fields[4].to_owned(),
        ));
    }
    lists
}

fn predicted(scratch: &Scratch, flags: &str) -> Vec<String> {
    let line = format!("predict m.hdsl --train train.svm test.svm {flags}");
    scratch
        .hdsl(&line)
        .ok()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn votes_can_be_counted_from_the_lists_of_neighbors() {
    let scratch = Scratch::trained();
    for normalization in ["dot", "cosine"] {
        let lists = neighbors(&scratch, &format!("-k 7 --normalization {normalization}"));
        for vote in ["majority", "weighted", "squared"] {
            let found = predicted(
                &scratch,
                &format!("-k 7 --vote {vote} --normalization {normalization}"),
            );
            assert_eq!(found.len(), lists.len());
            for (class, list) in found.iter().zip(&lists) {
                let sum = |class: &str| -> f64 {
                    let mine = list.iter().filter(|n| n.2 == class);
                    mine.map(|n| match vote {
                        "weighted" => n.1.max(0.0),
                        "squared" => n.1.max(0.0).powi(2),
                        _ => 1.0,
                    })
                    .sum()
                };
                let most = list.iter().map(|n| sum(&n.2)).fold(0.0, f64::max);
                assert!(
                    sum(class) >= most * (1.0 - 1e-12),
                    "{vote} {normalization}: {class} of {list:?}"
                );
            }
        }
    }
}

#[test]
fn cosine_and_class_means_agree_with_the_scores_of_pairs() {
    let scratch = Scratch::trained();
    let (pairs, classes) = (
        scores(&scratch, "test.svm", "train.svm"),
        labels(&scratch, "train.svm"),
    );
    let (asked, items) = (
        scores(&scratch, "test.svm", "test.svm"),
        scores(&scratch, "train.svm", "train.svm"),
    );
    let cosine = |q: usize, r: usize| {
        let lengths = (asked[&(q, q)] * items[&(r, r)]).sqrt();
        if lengths > 0.0 {
            pairs[&(q, r)] / lengths
        } else {
            0.0
        }
    };
    for (query, list) in neighbors(&scratch, "-k 160 --normalization cosine")
        .iter()
        .enumerate()
    {
        assert_eq!(list.len(), 160);
        assert!(list.windows(2).all(|w| w[0].1 >= w[1].1));
        for (row, score, _) in list {
            assert!((score - cosine(query, *row)).abs() < 1e-9, "{query} {row}");
        }
    }
    for normalization in ["dot", "cosine"] {
        let found = predicted(
            &scratch,
            &format!("--vote class-mean --normalization {normalization}"),
        );
        for (query, class) in found.iter().enumerate() {
            let mean = |class: &String| {
                let mine = || (0..160).filter(|&r| classes[r] == *class);
                let score = |r| {
                    if normalization == "dot" {
                        pairs[&(query, r)]
                    } else {
                        cosine(query, r)
                    }
                };
                mine().map(score).sum::<f64>() / mine().count() as f64
            };
            let best = classes.iter().map(mean).fold(f64::NEG_INFINITY, f64::max);
            assert!(mean(class) >= best - 1e-9, "{normalization}, row {query}");
        }
    }
}

fn has_rule(json: &serde_json::Value, k: usize, vote: &str, normalization: &str) {
    assert_eq!(json["k"], k);
    assert_eq!(json["vote"], vote);
    assert_eq!(json["normalization"], normalization);
}

#[test]
fn models_remember_their_prediction_rule() {
    let scratch = Scratch::planted();
    let flags = "-k 7 --vote weighted --normalization cosine";
    let line = "train train.svm --valid valid.svm --lambda 10 --max-iter 60 -o m.hdsl --json";
    let told = scratch.hdsl(&format!("{line} {flags}")).json();
    has_rule(&told, 7, "weighted", "cosine");
    // What training called the validation error is what evaluation finds without being told how.
    let line = "evaluate m.hdsl --train train.svm valid.svm --json";
    let own = scratch.hdsl(line).json();
    assert_eq!(own["error"], told["valid_error"]);
    has_rule(&own, 7, "weighted", "cosine");
    assert_eq!(predicted(&scratch, ""), predicted(&scratch, flags));
    assert_eq!(
        neighbors(&scratch, "-k 3"),
        neighbors(&scratch, "-k 3 --normalization cosine")
    );
    assert_ne!(
        neighbors(&scratch, "-k 3"),
        neighbors(&scratch, "-k 3 --normalization dot")
    );
    let json = scratch
        .hdsl("predict m.hdsl --train train.svm test.svm --vote majority --json")
        .json();
    has_rule(&json, 7, "majority", "cosine");
    let json = scratch
        .hdsl("neighbors m.hdsl --train train.svm test.svm --rows 0 --json")
        .json();
    assert_eq!(
        (&json["k"], &json["normalization"]),
        (&10.into(), &"cosine".into())
    );
    // The dot product knows nothing of it.
    let plain = scratch
        .hdsl("evaluate identity --train train.svm valid.svm --json")
        .json();
    has_rule(&plain, 3, "majority", "dot");
    let text = scratch
        .hdsl("evaluate m.hdsl --train train.svm valid.svm")
        .ok();
    assert!(
        text.contains("weighted 7-NN over 160 training rows, cosine"),
        "{text}"
    );
    let text = scratch
        .hdsl("evaluate m.hdsl --train train.svm valid.svm --vote class-mean --normalization dot")
        .ok();
    assert!(text.contains("class means of 160 training rows)"), "{text}");
}

#[test]
fn class_means_need_no_neighbors() {
    let scratch = Scratch::trained();
    let few = "1 1:1\n2 2:1\n";
    scratch.write("few.svm", few);
    let ran = scratch.hdsl("predict m.hdsl --train few.svm test.svm -k 3");
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("fewer rows than neighbors"),
        "{}",
        ran.stderr
    );
    let found = scratch
        .hdsl("predict m.hdsl --train few.svm test.svm -k 3 --vote class-mean")
        .ok();
    assert_eq!(found.lines().count(), 80);
}

#[test]
fn unknown_words_are_refused() {
    let scratch = Scratch::trained();
    for (flag, wanted) in [
        ("--vote loud", "class-mean"),
        ("--normalization sine", "cosine"),
    ] {
        let ran = scratch.hdsl(&format!(
            "evaluate m.hdsl --train train.svm test.svm {flag}"
        ));
        assert_eq!(ran.status, Some(2));
        assert!(
            ran.stderr.contains(wanted) && ran.stdout.is_empty(),
            "{}",
            ran.stderr
        );
    }
}
