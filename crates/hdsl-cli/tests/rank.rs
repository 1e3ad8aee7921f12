//! `hdsl rank` as a person uses it: texts and rows, judgments, a model that other commands take.

mod common;
use common::{Scratch, shared};
use serde_json::Value;

/// Sixty documents and thirty queries about six topics. Queries and documents have different words for a topic, and the
/// queries' word occurs in one text, of another topic, so that only learning finds the answers. Titles have the right one.
struct Planted {
    smart: [String; 2],
    tabbed: [String; 2],
    /// By id, and with positions for queries.
    judgments: [String; 2],
}

const ASKED: [&str; 6] = ["wing", "jet", "shell", "shock", "heat", "gust"];
const TOLD: [&str; 6] = [
    "aerofoil",
    "nozzles",
    "cylinder",
    "wave",
    "temperature",
    "turbulence",
];

fn planted() -> Planted {
    // Three words of no topic, by a multiplicative hash.
    let noise = |k: u64| -> String {
        let word = |at: u64| ((3 * k + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 20;
        [0, 1, 2].map(|at| format!("n{}", word(at))).join(" ")
    };
    let mut planted = Planted {
        smart: Default::default(),
        tabbed: Default::default(),
        judgments: Default::default(),
    };
    for d in 0..60 {
        let decoy = if d < 6 { ASKED[(d + 1) % 6] } else { "" };
        let title = format!("the {} {}", ASKED[d % 6], noise(d as u64));
        let text = format!("{} {decoy} {}", TOLD[d % 6], noise(d as u64 + 100));
        planted.smart[0] += &format!(".I {}\n.T\n{title}\n.A\nsomeone\n.W\n{text} .\n", d + 100);
        planted.tabbed[0] += &format!("{}\t{text}\n", d + 100);
    }
    for q in 0..30 {
        let text = format!("which {}s {}", ASKED[q % 6], noise(q as u64 + 200));
        planted.smart[1] += &format!(".I {:03}\n.W\n{text}\n", 2 * q + 1);
        planted.tabbed[1] += &format!("q{q}\t{text}\n");
        for d in (q % 6..60).step_by(6) {
            let grade = if d < 6 { 1 } else { 3 };
            planted.judgments[0] += &format!("q{q} 0 {} {grade}\n", d + 100);
            planted.judgments[1] += &format!("{} {} {}\n", q + 1, d + 100, 4 - grade);
        }
    }
    planted
}

fn scratch() -> Scratch {
    let (scratch, planted) = (Scratch::empty(), planted());
    scratch.write("docs.smart", &planted.smart[0]);
    scratch.write("queries.smart", &planted.smart[1]);
    scratch.write("docs.tsv", &planted.tabbed[0]);
    scratch.write("queries.tsv", &planted.tabbed[1]);
    scratch.write("qrels", &planted.judgments[0]);
    scratch.write("by-position", &planted.judgments[1]);
    scratch
}

const QUICK: &str =
    "--lambda 30 --max-iter 60 --n-estimators 2 --folds 3 --base-shares 0.1,2 --pair-weights 1";

fn ndcg(value: &Value, of: &str) -> f64 {
    value["held_out"][of]["ndcg_at_10"]
        .as_f64()
        .expect("a number")
}

#[test]
fn tune_takes_queries_and_judgments_within_a_time_limit() {
    let scratch = scratch();
    let tune =
        "tune docs.tsv --queries queries.tsv --judgments qrels --stem english -o t.hdsl --cv 2";
    let value = scratch.hdsl(&format!("{tune} --time 60s --json")).json();
    let [cosine, learned] = ["tfidf", "learned"].map(|of| ndcg(&value, of));
    assert!(cosine < 0.4 && learned > 0.8, "{cosine} {learned}");
    assert!(value["setting"]["max_iter"].is_u64());
    // In no time there is the plain similarity, which is no worse than itself.
    let value = scratch.hdsl(&format!("{tune} --time 1ms --json")).json();
    assert!(value["setting"].is_null() && value["held_out"]["settings"][0].is_null());
    assert_eq!(value["held_out"]["learned"], value["held_out"]["tfidf"]);
    scratch.hdsl("inspect t.hdsl").ok();
    let told = scratch.hdsl(&format!("{tune} --time 1ms")).ok();
    assert!(told.contains("no learned similarity was better"), "{told}");
    for (wrong, message) in [
        (
            "--names vocab.txt",
            "--names cannot be combined with --queries",
        ),
        ("--max-atoms 3", "--max-atoms cannot be combined"),
    ] {
        let ran = scratch.hdsl(&format!("{tune} {wrong}"));
        assert_eq!(ran.status, Some(2));
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let ran = scratch.hdsl("tune docs.tsv --queries queries.tsv -o t.hdsl");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("--judgments"), "{}", ran.stderr);
}

#[test]
fn learning_ranks_texts_and_other_commands_take_the_model() {
    let scratch = scratch();
    let line = format!(
        "rank docs.tsv --queries queries.tsv --judgments qrels --stem english -o m.hdsl {QUICK} --json"
    );
    let value = scratch
        .hdsl(&format!("{line} --save-vocab vocab.txt"))
        .json();
    let [cosine, learned] = ["tfidf", "learned"].map(|of| ndcg(&value, of));
    assert!(cosine < 0.4 && learned > 0.8, "{cosine} {learned}");
    assert_eq!(value["held_out"]["learned_minus_tfidf"]["is_better"], true);
    assert_eq!(
        (&value["n_documents"], &value["n_queries"]),
        (&60.into(), &30.into())
    );
    assert_eq!(value["held_out"]["queries"][3]["query"], "q3");
    let mean: f64 = value["held_out"]["queries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|query| query["learned"]["ndcg_at_10"].as_f64().unwrap())
        .sum::<f64>()
        / 30.0;
    assert!((mean - ndcg(&value, "learned")).abs() < 1e-12);

    // Rows of the same vocabulary give the same numbers, and the model ranks them.
    scratch
        .hdsl("vectorize docs.tsv --vocab vocab.txt -o docs.svm")
        .ok();
    scratch
        .hdsl("vectorize queries.tsv --vocab vocab.txt -o queries.svm")
        .ok();
    assert!(
        scratch
            .text("vocab.txt")
            .lines()
            .next()
            .unwrap()
            .contains("stem english")
    );
    let rows: String = planted().judgments[0]
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let document: u32 = fields[2].parse().unwrap();
            format!("{} {} {}\n", &fields[0][1..], document - 100, fields[3])
        })
        .collect();
    scratch.write("rows", rows);
    let line =
        format!("rank docs.svm --queries queries.svm --judgments rows -o rows.hdsl {QUICK} --json");
    let of_rows = scratch.hdsl(&line).json();
    assert_eq!(of_rows["held_out"]["learned"], value["held_out"]["learned"]);
    assert_eq!(of_rows["held_out"]["tfidf"], value["held_out"]["tfidf"]);
    let neighbors = |model: &str| {
        scratch
            .hdsl(&format!(
                "neighbors {model} --train docs.svm queries.svm -k 10"
            ))
            .ok()
    };
    assert_eq!(neighbors("m.hdsl"), neighbors("rows.hdsl"));
    // Row, rank, neighbor, score, label, which is the id: query 0 is about wings, as documents 100, 106, ... One document of
    // another topic has the query's word.
    let found = neighbors("m.hdsl");
    let id = |line: &str| line.rsplit('\t').next().unwrap().parse::<u32>().unwrap();
    let on_topic = found
        .lines()
        .take(10)
        .filter(|line| (id(line) - 100) % 6 == 0);
    assert!(on_topic.count() >= 8, "{found}");
    let explained = scratch.hdsl("explain m.hdsl --top 5").ok();
    assert!(
        TOLD.iter().any(|word| explained.contains(&word[..4])),
        "{explained}"
    );
    scratch.hdsl("score m.hdsl queries.svm docs.svm --all").ok();
    scratch.hdsl("inspect m.hdsl").ok();
}

/// The measures of a report by similarity.
fn reported(scratch: &Scratch) -> Vec<Value> {
    let html = scratch.text("r.html");
    let start = html.find("id=\"data\">").expect("the page has data") + "id=\"data\">".len();
    let end = start + html[start..].find("</script>").expect("data end");
    let data: Value = serde_json::from_str(&html[start..end]).expect("JSON");
    let found = data["judged"]["similarities"].as_array();
    found.expect("the page has measures").clone()
}

#[test]
fn a_report_measures_the_rankings_of_texts_and_of_rows() {
    let scratch = scratch();
    let line = format!(
        "rank docs.tsv --queries queries.tsv --judgments qrels --stem english -o m.hdsl {QUICK}"
    );
    scratch.hdsl(&format!("{line} --save-vocab vocab.txt")).ok();
    let report = "report m.hdsl --train docs.tsv --queries queries.tsv --judgments qrels -o r.html";
    scratch.hdsl(&format!("{report} --vocab vocab.txt")).ok();
    let of_texts = reported(&scratch);
    let html = scratch.text("r.html");
    assert!(html.contains("hdsl rank docs.tsv --queries QUERIES"));
    // Texts and ids of queries are known.
    assert!(html.contains("which wings") && html.contains("\"name\":\"q3\""));
    let ndcg = |of: &[Value], name: &str| {
        let found = of.iter().find(|similarity| similarity["name"] == name);
        found.expect("the similarity is there")["ndcg"]
            .as_f64()
            .expect("a number")
    };
    let [cosine, learned] =
        ["tf-idf cosine", "learned similarity"].map(|name| ndcg(&of_texts, name));
    assert!(cosine < 0.4 && learned > 0.8, "{cosine} {learned}");

    // The same from rows, with judgments that count the queries, lower grades being better.
    for part in ["docs", "queries"] {
        let line = format!("vectorize {part}.tsv --vocab vocab.txt -o {part}.svm");
        scratch.hdsl(&line).ok();
    }
    let renamed = |line: &str| {
        let fields: Vec<u32> = line.split(' ').map(|f| f.parse().unwrap()).collect();
        format!("{} {} {}\n", fields[0], fields[1] - 100, fields[2])
    };
    let rows: String = planted().judgments[1].lines().map(renamed).collect();
    scratch.write("rows", rows);
    scratch
        .hdsl(
            "report m.hdsl --train docs.svm --queries queries.svm --judgments rows --number-queries \
             --lower-is-better -o r.html",
        )
        .ok();
    let of_rows = reported(&scratch);
    for name in [
        "dot product",
        "cosine",
        "tf-idf cosine",
        "learned similarity",
    ] {
        let [texts, rows] = [&of_texts, &of_rows].map(|of| ndcg(of, name));
        assert!((texts - rows).abs() < 1e-9, "{name}: {texts} {rows}");
    }

    // `evaluate` has the same measures for queries and documents in one file.
    let both = scratch.text("docs.svm") + &scratch.text("queries.svm");
    scratch.write("both.svm", both);
    let moved = |line: &str| {
        let fields: Vec<u32> = line.split(' ').map(|f| f.parse().unwrap()).collect();
        format!("{} {} {}\n", fields[0] + 59, fields[1] - 100, 4 - fields[2])
    };
    let moved: String = planted().judgments[1].lines().map(moved).collect();
    scratch.write("moved", moved);
    let line = "evaluate m.hdsl both.svm --triplets judgments:moved --json";
    let evaluated = scratch.hdsl(line).json();
    let expected = evaluated["rankings"]["all"]["ndcg_at_10"].as_f64().unwrap();
    assert!((ndcg(&of_rows, "learned similarity") - expected).abs() < 1e-9);
    scratch
        .hdsl("report m.hdsl --train both.svm --triplets judgments:moved -o r.html")
        .ok();
    assert!((ndcg(&reported(&scratch), "learned similarity") - expected).abs() < 1e-9);

    scratch.write("other-vocab.txt", "wing\njet\n");
    for (line, says) in [
        (report.to_owned(), "docs.tsv has texts: pass --vocab"),
        (
            format!("{report} --vocab other-vocab.txt"),
            "this is not the vocabulary of the model",
        ),
        (
            "report m.hdsl --train docs.svm --queries queries.svm -o r.html".to_owned(),
            "--judgments",
        ),
        (
            "report m.hdsl --train docs.svm --queries queries.svm --judgments qrels -o r.html"
                .to_owned(),
            "query `q0` is unknown",
        ),
    ] {
        let ran = scratch.hdsl(&line);
        assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{line}: {}", ran.stderr);
    }
}

#[test]
fn smart_files_have_titles_and_judgments_may_count_queries() {
    let scratch = scratch();
    let line = format!(
        "rank docs.smart --queries queries.smart --judgments by-position --number-queries --lower-is-better \
         --stem english --stop-words english --seed 3 -o m.hdsl {QUICK}"
    );
    let value = scratch.hdsl(&format!("{line} --json")).json();
    assert_eq!(value["n_pairs"], 60);
    let learned = ndcg(&value, "learned");
    assert!(learned > 0.8, "{learned}");
    let bytes = scratch.read("m.hdsl");
    let text = scratch.hdsl(&format!("{line} --threads 1")).ok();
    assert_eq!(scratch.read("m.hdsl"), bytes, "another number of threads");
    for words in [
        "held-out queries",
        "nDCG@10",
        "tf-idf cosine",
        "BM25-weighted cosine",
        "learned similarity",
        "(p = ",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let without = scratch.hdsl(&format!("{line} --no-titles --json")).json();
    assert_eq!(without["n_pairs"], 0);
}

#[test]
fn it_says_so_if_learning_does_not_help() {
    let scratch = scratch();
    // Judgments at random.
    let random: String = (0..30usize)
        .flat_map(|q| {
            (1..4).map(move |k| format!("q{q} {}\t1\n", 100 + (q * q * 7 + k * k * 11 + k) % 60))
        })
        .collect();
    scratch.write("random", random);
    let line = format!("rank docs.tsv --queries queries.tsv --judgments random -o m.hdsl {QUICK}");
    let text = scratch.hdsl(&line).ok();
    assert!(text.contains("Learning does not help"), "{text}");
}

#[test]
fn bad_input_has_status_2_and_names_the_place() {
    let scratch = scratch();
    scratch.write("bad-grade", "q0 100 1\nq1 100 good\n");
    scratch.write("bad-document", "q0 99 1\n");
    scratch.write("docs.svm", "0 1:1\n0 2:1\n");
    scratch.write("bad.tsv", "1\tfine\nno tab\n");
    let rank = "rank docs.tsv --queries queries.tsv -o m.out";
    for (line, says) in [
        (
            format!("{rank} --judgments bad-grade"),
            "bad-grade:2: grade `good`, expected a finite number",
        ),
        (
            format!("{rank} --judgments bad-document"),
            "bad-document:1: document `99` is unknown",
        ),
        (
            format!("{rank} --judgments by-position"),
            "pass --number-queries if judgments count the queries",
        ),
        (
            format!("{rank} --judgments qrels --folds 1"),
            "--folds is 1, expected 0, or 2 to 30",
        ),
        (
            format!("{rank} --judgments qrels --pairs docs.svm docs.svm"),
            "--pairs takes rows",
        ),
        (
            format!("{rank} --judgments qrels --stop-words none.txt"),
            "none.txt: cannot read",
        ),
        (
            format!("{rank} --judgments missing"),
            "missing: cannot read",
        ),
        (
            "rank docs.svm --queries docs.svm --judgments qrels --stem english -o m.out".into(),
            "--stem is for texts",
        ),
        (
            "rank bad.tsv --queries queries.tsv --judgments qrels -o m.out".into(),
            "bad.tsv:2: `no tab` has no tab",
        ),
        (
            "rank docs.svm --queries docs.svm --judgments qrels -o m.out".into(),
            "qrels:1: query `q0` is unknown, expected a row from 0 to 1",
        ),
        (
            format!("{rank} --judgments qrels --preprocess max"),
            "invalid value 'max'",
        ),
    ] {
        let ran = scratch.hdsl(&line);
        assert_eq!(ran.status, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{line}: {}", ran.stderr);
        assert!(!scratch.files().contains(&"m.out".to_owned()), "{line}");
    }
}

/// A quick run: one λ, fewer iterations and one model. The full run is in the README.
#[test]
fn cranfield_is_ranked_better_than_by_the_cosine() {
    let Some(documents) = shared("cranfield/cran.all.1400.bz2") else {
        return;
    };
    let folder = documents.parent().unwrap().display();
    let scratch = Scratch::empty();
    let line = format!(
        "rank {folder}/cran.all.1400.bz2 --queries {folder}/cran.qry.bz2 --judgments {folder}/cranqrel.bz2 --number-queries \
         --lower-is-better --stem english --stop-words english --lambda 1000 --pair-weights 3 --base-shares 1,2,4 --max-iter 800 \
         --n-estimators 1 -o m.hdsl --json"
    );
    let value = scratch.hdsl(&line).json();
    assert_eq!(
        (&value["n_documents"], &value["n_queries"]),
        (&1400.into(), &225.into())
    );
    let cosine = ndcg(&value, "tfidf");
    assert!((cosine - 0.418).abs() < 0.01, "{cosine}");
    let versus = &value["held_out"]["learned_minus_tfidf"];
    assert_eq!(versus["is_better"], true, "{versus}");
    assert!(ndcg(&value, "learned") > 0.43, "{versus}");
}
