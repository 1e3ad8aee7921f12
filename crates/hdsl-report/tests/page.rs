//! Pages of small problems: figures, reproducibility, and small or invalid input. `browser/` tests appearance and
//! behavior.

use hdsl::atoms::Path;
use hdsl::data::{Planted, PlantedParams, planted};
use hdsl::knn::evaluate_similarity;
use hdsl::measures::{RankingQuality, rank_documents};
use hdsl::ranking::{Ids, Judgments};
use hdsl::triplets::{self, TripletFormat};
use hdsl::{
    Atom, BilinearModel, Dataset, Dot, Labels, Model, ModelParts, PredictionRule, Preprocess,
    Preprocessor, Rows, Similarity, SparseRow, TrainConfig, TripletSource,
};
use hdsl_report::{Input, JudgedQueries, Part, page};
use serde_json::Value;
use std::sync::LazyLock;

static PROBLEM: LazyLock<(Planted, Model)> = LazyLock::new(|| {
    let params = PlantedParams {
        n_features: 400,
        noise_words: 10,
        n_train: 160,
        n_test: 80,
        ..PlantedParams::default()
    };
    let problem = planted(5, &params).unwrap();
    let mut config = TrainConfig::new(10.0);
    config.max_iter = 60;
    let mut data = hdsl::TrainData::new(&problem.train);
    data.valid = Some((&problem.valid).into());
    data.names = Some(&problem.names);
    let model = hdsl::train(&data, &config, &mut ()).unwrap().model;
    (problem, model)
});

fn complete_input() -> Input<'static> {
    let (problem, model) = &*PROBLEM;
    let mut input = Input::new(model, "model.hdsl");
    input.train = Some(Part::new(&problem.train, "train.svm"));
    input.test = Some(Part::new(&problem.test, "test.svm"));
    input
}

fn write(input: &Input<'_>) -> String {
    page(input, &mut |_| {}).unwrap()
}

/// The data of a page.
fn data(html: &str) -> Value {
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + html[start..].find("</script>").unwrap();
    serde_json::from_str(&html[start..end]).unwrap()
}

#[test]
fn same_input_same_bytes_for_any_number_of_threads() {
    let once = write(&complete_input());
    for n_threads in [1, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        let again = pool.build().unwrap().install(|| write(&complete_input()));
        assert!(once == again, "{n_threads} threads");
    }
}

#[test]
fn errors_agree_with_evaluate_similarity() {
    let (problem, model) = &*PROBLEM;
    let shown = data(&write(&complete_input()));
    let labels = |d: &'static Dataset| d.labels.as_ref().unwrap();
    let (train, test) = (&problem.train, &problem.test);
    let preprocess = Preprocessor::fit(model.preprocess().kind(), &train.rows);
    let (a, b) = (preprocess.apply(&train.rows), preprocess.apply(&test.rows));
    let rule = PredictionRule::nearest(3);
    let evaluation = |similarity: &dyn Similarity, a: &Rows, b: &Rows| {
        evaluate_similarity(similarity, a, labels(train), b, labels(test), &rule).unwrap()
    };
    let dot = evaluation(&Dot, &a, &b);
    let (a, b) = (model.prepare(&train.rows), model.prepare(&test.rows));
    let learned = evaluation(model.similarity(), &a, &b);
    for (name, found) in [("dot", dot), ("learned", learned.clone())] {
        assert_eq!(shown["errors"][name]["error"], found.error);
        assert_eq!(
            shown["errors"][name]["balanced_error"],
            found.balanced_error
        );
        let cells = shown["errors"][name]["cells"].as_array().unwrap();
        assert_eq!(cells.len(), found.cells.len());
    }
    // The last iterate is the model in use, evaluated on all test rows.
    let iterates = shown["dimension"]["test"].as_array().unwrap();
    assert_eq!(iterates.last().unwrap()["error"], learned.error);
    let misclassified = shown["errors"]["misclassified"].as_array().unwrap();
    assert_eq!(misclassified.len(), learned.n_wrong);
    let rows = shown["neighbors"]["rows"].as_array().unwrap();
    for wrong in misclassified {
        assert!(rows.iter().any(|q| q["row"] == wrong["row"]), "{wrong}");
    }
}

#[test]
fn contributions_add_up_and_pair_frequencies_agree_with_brute_force() {
    let (problem, model) = &*PROBLEM;
    let shown = data(&write(&complete_input()));
    for query in shown["neighbors"]["rows"].as_array().unwrap() {
        for neighbor in ["dot", "learned"]
            .iter()
            .flat_map(|&k| query[k].as_array().unwrap())
        {
            let contributions = neighbor["contributions"].as_array().unwrap();
            let sum: f64 = contributions.iter().map(|c| c[3].as_f64().unwrap()).sum();
            let score = neighbor["score"].as_f64().unwrap();
            let rest = neighbor["rest"][1].as_f64().unwrap();
            assert!(
                (sum + rest - score).abs() < 1e-9,
                "{sum} and {rest} for {score}"
            );
        }
    }
    // The frequency of the first pair, over all pairs of rows.
    let pair = model.similarity().pairs_by_weight()[0];
    let (rows, labels) = (&problem.train.rows, problem.train.labels.as_ref().unwrap());
    let (mut contributing, mut row_pairs) = ([0.0; 2], [0.0; 2]);
    for a in 0..rows.n_rows() {
        for b in (0..rows.n_rows()).filter(|&b| b != a) {
            let (x, y) = (rows.row(a), rows.row(b));
            let has = |r: SparseRow<'_>, f: u32| r.get(f) != 0.0;
            let contributes =
                (has(x, pair.i) && has(y, pair.j)) || (has(x, pair.j) && has(y, pair.i));
            let kind = usize::from(labels.name(a) != labels.name(b));
            row_pairs[kind] += 1.0;
            contributing[kind] += f64::from(u8::from(contributes));
        }
    }
    for (kind, name) in ["same", "different"].into_iter().enumerate() {
        let found = shown["entries"]["pairs"][name][0].as_f64().unwrap();
        let expected = contributing[kind] / row_pairs[kind];
        assert!(
            (found - expected).abs() <= 1e-3 * expected,
            "{name}: {found}, expected {expected}"
        );
    }
}

/// The model of the problem with all training maxima, on top of a base.
fn on_base(base: f64) -> Model {
    let (problem, model) = &*PROBLEM;
    let mut parts = model.parts().clone();
    parts.preprocess = Preprocessor::fit(model.preprocess().kind(), &problem.train.rows);
    parts.base = base;
    Model::new(parts).unwrap()
}

#[test]
fn with_a_base_the_page_shows_what_learning_changed() {
    let (problem, _) = &*PROBLEM;
    let model = on_base(4.0);
    let mut input = complete_input();
    input.model = &model;
    let html = write(&input);
    assert!(html.contains("4 ⟨x, z⟩ + xᵀMz"));
    let shown = data(&html);
    assert_eq!(shown["baseline"], "base alone");
    let (train, test) = (&problem.train, &problem.test);
    let (a, b) = (model.prepare(&train.rows), model.prepare(&test.rows));
    let truth = test.labels.as_ref().unwrap();
    let predict = |similarity: &BilinearModel| {
        let labels = train.labels.as_ref().unwrap();
        hdsl::knn::classify(similarity, &a, labels, &b, &model.rule()).unwrap()
    };
    let base = BilinearModel::base_only(model.n_features(), 4.0).unwrap();
    let (before, after) = (predict(&base), predict(model.similarity()));
    let right = |labels: &Labels, row: usize| labels.name(row) == truth.name(row);
    let rows = || 0..truth.len();
    let corrected = rows()
        .filter(|&r| !right(&before, r) && right(&after, r))
        .count();
    let added = rows()
        .filter(|&r| right(&before, r) && !right(&after, r))
        .count();
    let n_wrong = rows().filter(|&r| !right(&before, r)).count();
    assert_eq!(shown["errors"]["dot"]["n_wrong"], n_wrong);
    assert_eq!(
        shown["errors"]["changes"],
        serde_json::json!([corrected, added])
    );
    for query in shown["neighbors"]["rows"].as_array().unwrap() {
        for (list, other) in [("dot", "learned"), ("learned", "dot")] {
            for neighbor in query[list].as_array().unwrap() {
                let contributions = neighbor["contributions"].as_array().unwrap();
                let sum: f64 = contributions.iter().map(|c| c[3].as_f64().unwrap()).sum();
                let rest = neighbor["rest"][1].as_f64().unwrap();
                let score = neighbor["score"].as_f64().unwrap();
                assert!((sum + rest - score).abs() < 1e-9);
                let (q, n) = (&query["row"], &neighbor["row"]);
                let row = |rows: &Rows, n: &Value| {
                    let row = rows.row(n.as_u64().unwrap() as usize);
                    (row.indices().to_vec(), row.values().to_vec())
                };
                let (x, z) = (row(&b, q), row(&a, n));
                let (x, z) = (SparseRow::new(&x.0, &x.1), SparseRow::new(&z.0, &z.1));
                let base_score = neighbor["base_score"].as_f64().unwrap();
                assert!((base_score - 4.0 * x.dot(z)).abs() < 1e-9);
                let mut others = query[other].as_array().unwrap().iter();
                assert_eq!(neighbor["only_here"], others.all(|o| o["row"] != *n));
            }
        }
    }
    // Without a base, nothing speaks of one.
    let shown = data(&write(&complete_input()));
    assert!(shown["baseline"].is_null() && shown["errors"]["changes"].is_null());
    assert!(shown["neighbors"]["rows"][0]["dot"][0]["base_score"].is_null());
}

#[test]
fn a_base_alone_has_a_page() {
    let (problem, _) = &*PROBLEM;
    let path = Path::new(vec![], vec![]).unwrap();
    let mut parts = ModelParts::new(problem.train.rows.n_features(), 1.0, path);
    parts.base = 2.0;
    let model = Model::new(parts).unwrap();
    let mut input = complete_input();
    input.model = &model;
    let shown = data(&write(&input));
    assert_eq!(shown["errors"]["changes"], serde_json::json!([0, 0]));
    hdsl_report::compact(&model, "m", |_| None);
}

#[test]
fn incomplete_input_is_enough_for_a_page() {
    let path = Path::new(vec![(Atom::minus(0, 2).unwrap(), 1.0)], vec![]).unwrap();
    let model = Model::new(ModelParts::new(3, 2.0, path)).unwrap();
    let shown = data(&write(&Input::new(&model, "m.hdsl")));
    assert!(shown["errors"].is_null() && shown["map"].is_null() && shown["dimension"].is_null());

    let mut rows = Rows::new(3);
    rows.push(SparseRow::new(&[0], &[1.0]));
    rows.push(SparseRow::new(&[], &[]));
    let one_class = Labels::from_names(["a", "a"]);
    let other = Labels::from_names(["new", "a"]);
    let empty = Rows::new(3);
    let part = |rows, labels| {
        Some(Part {
            rows,
            labels,
            texts: None,
            source: "rows",
        })
    };
    let mut input = Input::new(&model, "m.hdsl");
    // k above the number of rows, one class, and a class that training rows do not have.
    input.rule.k = 9;
    input.train = part(&rows, Some(&one_class));
    input.test = part(&rows, Some(&other));
    let shown = data(&write(&input));
    assert_eq!(shown["errors"]["learned"]["n_wrong"], 1);
    assert!(shown["errors"]["misclassified"][0]["margin"].is_null());
    // No classes.
    input.train = part(&rows, None);
    input.test = part(&rows, None);
    let shown = data(&write(&input));
    assert_eq!(shown["neighbors"]["rows"].as_array().unwrap().len(), 2);
    // No rows.
    input.train = part(&empty, None);
    input.test = part(&empty, None);
    assert!(data(&write(&input))["neighbors"].is_null());
}

#[test]
fn labels_and_texts_must_be_as_many_as_rows() {
    let (problem, _) = &*PROBLEM;
    let texts = vec![String::new(); 3];
    let mut input = complete_input();
    input.test = input.test.map(|part| Part {
        texts: Some(&texts),
        ..part
    });
    let error = page(&input, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(error, "there are 3 texts for 80 test rows");
    let mut input = complete_input();
    input.train = input.train.map(|part| Part {
        labels: problem.test.labels.as_ref(),
        ..part
    });
    let error = page(&input, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(error, "there are 80 labels for 160 training rows");
    let mut input = complete_input();
    input.rule.k = 0;
    assert!(page(&input, &mut |_| {}).is_err());
}

#[test]
fn the_page_has_no_links_to_other_sites() {
    let html = write(&complete_input());
    assert!(html.contains("content=\"default-src &#39;none&#39;; script-src &#39;sha256-"));
    // Everything before plotly.js, which contains addresses that it does not request here.
    let own = &html[..html.find("plotly.js v").unwrap()];
    let allowed = "http://www.w3.org/2000/svg";
    assert!(!own.replace(allowed, "").contains("://"));
    assert_eq!(own.matches("<script").count(), 3);
}

#[test]
fn errors_of_other_similarities_agree_with_evaluate_similarity() {
    let (problem, model) = &*PROBLEM;
    let labels = |d: &'static Dataset| d.labels.as_ref().unwrap();
    let (train, test) = (&problem.train, &problem.test);
    let error = |kind: Preprocess| {
        let fitted = Preprocessor::fit(kind, &train.rows);
        let (a, b) = (fitted.apply(&train.rows), fitted.apply(&test.rows));
        let rule = PredictionRule::nearest(3);
        evaluate_similarity(&Dot, &a, labels(train), &b, labels(test), &rule).unwrap()
    };
    let with_base = on_base(4.0);
    let own = model.preprocess().kind();
    let cosines = [
        ("cosine", Preprocess::Unit),
        ("tf-idf cosine", Preprocess::Tfidf),
    ];
    let product = [("dot product", own)];
    for (model, expected) in [
        (model, cosines.to_vec()),
        // The base alone takes the place of the dot product, which is another row of the table then.
        (&with_base, [&product[..], &cosines[..]].concat()),
    ] {
        let mut input = complete_input();
        input.model = model;
        let html = write(&input);
        let found = data(&html)["errors"]["references"].clone();
        assert_eq!(found.as_array().unwrap().len(), expected.len());
        for (found, (name, kind)) in found.as_array().unwrap().iter().zip(expected) {
            let expected = error(kind);
            assert_eq!(found["name"], name);
            assert_eq!(found["error"], expected.error);
            assert_eq!(found["balanced_error"], expected.balanced_error);
            assert_eq!(found["n_wrong"], expected.n_wrong);
            assert!(html.contains(&format!("value=\"{}\"", expected.error)));
        }
    }
}

#[test]
fn tfidf_is_left_out_where_values_are_below_0() {
    let mut rows = Rows::new(3);
    for value in [1.0, -1.0, 2.0] {
        rows.push(SparseRow::new(&[0, 1], &[value, 1.0]));
    }
    let labels = Labels::from_names(["a", "b", "a"]);
    let path = Path::new(vec![(Atom::plus(0, 1).unwrap(), 1.0)], vec![]).unwrap();
    let model = Model::new(ModelParts::new(3, 2.0, path)).unwrap();
    let mut input = Input::new(&model, "m.hdsl");
    let part = Part {
        rows: &rows,
        labels: Some(&labels),
        texts: None,
        source: "rows",
    };
    (input.train, input.test) = (Some(part), Some(part));
    let shown = data(&write(&input));
    let references = shown["errors"]["references"].as_array().unwrap();
    assert_eq!(references.len(), 1);
    assert_eq!(references[0]["name"], "cosine");
}

#[test]
fn base_and_learned_part_add_up_to_the_scores() {
    let (problem, _) = &*PROBLEM;
    let model = on_base(4.0);
    let mut input = complete_input();
    input.model = &model;
    let shown = data(&write(&input));
    let groups = shown["base_parts"]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    let (train, test) = (&problem.train, &problem.test);
    let (a, b) = (model.prepare(&train.rows), model.prepare(&test.rows));
    let labels = |d: &'static Dataset| d.labels.as_ref().unwrap();
    // All pairs are in the sample: there are 80 x 160.
    for (group, same) in groups[1..].iter().zip([true, false]) {
        let (mut n, mut base, mut score, mut sizes) = (0, 0.0, 0.0, (0.0, 0.0));
        for q in 0..b.n_rows() {
            for t in 0..a.n_rows() {
                if (labels(test).name(q) == labels(train).name(t)) != same {
                    continue;
                }
                let (x, z) = (b.row(q), a.row(t));
                let (of_base, whole) = (4.0 * x.dot(z), model.similarity().score(x, z));
                n += 1;
                base += of_base;
                score += whole;
                sizes.0 += of_base.abs();
                sizes.1 += (whole - of_base).abs();
            }
        }
        let close = |key: &str, expected: f64| {
            let found = group[key].as_f64().unwrap();
            assert!(
                (found - expected).abs() < 1e-9,
                "{key}: {found}, expected {expected}"
            );
        };
        assert_eq!(group["n_pairs"], n);
        close("base", base / f64::from(n));
        close("learned", (score - base) / f64::from(n));
        close("share", sizes.1 / (sizes.0 + sizes.1));
    }
    // Without a base, there are no parts.
    assert!(data(&write(&complete_input()))["base_parts"].is_null());
}

/// Test rows as queries whose answers are the first ten training rows of their class, the first of them with gain 2.
fn judgments() -> String {
    let (problem, _) = &*PROBLEM;
    let labels = |d: &'static Dataset| d.labels.as_ref().unwrap();
    let (train, test) = (labels(&problem.train), labels(&problem.test));
    let mut lines = String::new();
    for query in 0..test.len() {
        let same = (0..train.len()).filter(|&row| train.name(row) == test.name(query));
        for (at, row) in same.take(10).enumerate() {
            lines += &format!("{query} {row} {}\n", if at == 0 { 2 } else { 1 });
        }
    }
    lines
}

#[test]
fn rankings_are_measured_by_judgments() {
    let (problem, _) = &*PROBLEM;
    let model = on_base(4.0);
    let lines = judgments();
    let (n_test, n_train) = (problem.test.rows.n_rows(), problem.train.rows.n_rows());
    let ids = [n_test, n_train].map(Ids::Rows);
    let parsed = Judgments::parse("qrels".as_ref(), lines.as_bytes(), &ids[0], &ids[1], false);
    let parsed = parsed.unwrap();
    let mut input = complete_input();
    input.model = &model;
    input.judged = Some(JudgedQueries::new(&problem.test.rows, &parsed, "qrels"));
    let html = write(&input);
    let shown = data(&html);
    assert!(html.contains("href=\"#judged\""));
    let found = shown["judged"]["similarities"].as_array().unwrap();
    let names: Vec<_> = found.iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "dot product",
            "cosine",
            "tf-idf cosine",
            "BM25-weighted cosine",
            "base alone",
            "learned similarity"
        ]
    );
    // Documents first, then queries, as rows of one matrix.
    let quality = |similarity: &dyn Similarity, prepare: &dyn Fn(&Rows) -> Rows| {
        let mut rows = prepare(&problem.train.rows);
        rows.append(prepare(&problem.test.rows).view());
        let queries: Vec<_> = (0..n_test as u32)
            .map(|q| (n_train as u32 + q, parsed.of(q).gains.clone()))
            .collect();
        let documents: Vec<u32> = (0..n_train as u32).collect();
        RankingQuality::of(&rank_documents(
            similarity,
            &rows,
            &queries,
            Some(&documents),
        ))
    };
    let tfidf = Preprocessor::fit(Preprocess::Tfidf, &problem.train.rows);
    for (at, expected) in [
        (2, quality(&Dot, &|rows| tfidf.apply(rows))),
        (5, quality(model.similarity(), &|rows| model.prepare(rows))),
    ] {
        for (key, expected) in [
            ("ndcg", expected.ndcg),
            ("map", expected.average_precision),
            ("recall_at_10", expected.recall_at_10),
            ("recall_at_100", expected.recall_at_100),
            ("mrr", expected.reciprocal_rank),
        ] {
            let found = found[at][key].as_f64().unwrap();
            assert!(
                (found - expected).abs() < 1e-9,
                "{at} {key}: {found}, expected {expected}"
            );
        }
    }
    // Neighbors of queries have their gains.
    let cards = shown["neighbors"]["rows"][0]["learned"].as_array().unwrap();
    for card in cards {
        let row = card["row"].as_u64().unwrap() as u32;
        assert_eq!(card["gain"].as_f64(), parsed.of(0).gain(row));
    }
    assert_eq!(
        shown["base_parts"]["groups"][1]["name"],
        "queries and relevant documents"
    );
}

#[test]
fn judgments_of_training_rows_rank_the_judged_documents() {
    let (problem, model) = &*PROBLEM;
    let lines = b"0 1 1\n0 2 0\n0 3 2\n5 3 1\n5 0 0\n";
    let n_rows = problem.train.rows.n_rows();
    let format = TripletFormat::Judgments;
    let parsed = triplets::Judgments::parse("qrels".as_ref(), lines, format, n_rows).unwrap();
    let mut input = complete_input();
    let judged = JudgedQueries::of_rows(&problem.train.rows, &parsed, "qrels");
    // Document 0 is a query as well.
    assert_eq!(judged.documents, Some(vec![0, 1, 2, 3]));
    assert_eq!(judged.judged[0].1.left_out, [0]);
    input.judged = Some(judged);
    let shown = data(&write(&input));
    let queries: Vec<_> = (parsed.queries().iter())
        .map(|query| (query.query, parsed.gains(query)))
        .collect();
    let rows = model.prepare(&problem.train.rows);
    let documents = parsed.documents();
    let ranked = rank_documents(model.similarity(), &rows, &queries, Some(&documents));
    let learned = shown["judged"]["similarities"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    let expected = RankingQuality::of(&ranked).ndcg;
    assert!((learned["ndcg"].as_f64().unwrap() - expected).abs() < 1e-12);
    assert_eq!(shown["judged"]["n_queries"], 2);
    assert!(shown["neighbors"]["rows"][0]["dot"][0]["gain"].is_null());
}

#[test]
fn judgments_of_rows_that_do_not_exist_are_refused() {
    let (problem, _) = &*PROBLEM;
    let judgments = Judgments::parse(
        "qrels".as_ref(),
        b"0 500 1\n",
        &Ids::Rows(80),
        &Ids::Rows(1000),
        false,
    );
    let mut input = complete_input();
    let judged = JudgedQueries::new(&problem.test.rows, &judgments.unwrap(), "qrels");
    input.judged = Some(judged.clone());
    let error = page(&input, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(
        error,
        "document 500 is judged, but there are 160 training rows"
    );
    let mut input = Input::new(input.model, "m.hdsl");
    input.judged = Some(judged);
    let error = page(&input, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("judgments need training rows"), "{error}");
}

/// The training line of a page.
fn made_by(html: &str) -> Option<String> {
    let start = html.find("id=\"made-by\">")? + "id=\"made-by\">".len();
    Some(html[start..start + html[start..].find("</code>")?].replace("&#39;", "'"))
}

#[test]
fn the_training_line_names_the_files_of_the_training() {
    let (_, model) = &*PROBLEM;
    let mut input = complete_input();
    let line = made_by(&write(&input)).unwrap();
    assert_eq!(
        line,
        "hdsl train train.svm --valid VALID --names NAMES --lambda 10 --max-iter 60 -o model.hdsl"
    );
    let mut parts = model.parts().clone();
    parts.config.added_rows = true;
    let added = Model::new(parts.clone()).unwrap();
    input.model = &added;
    input.train = input.train.map(|part| Part {
        source: "train.svm and more.svm",
        ..part
    });
    input.files.train = Some("train.svm".into());
    input.files.add = Some("more.svm".into());
    input.files.valid = Some("valid rows.svm".into());
    input.files.names = Some("names.txt".into());
    assert_eq!(
        made_by(&write(&input)).unwrap(),
        "hdsl train train.svm --add more.svm --valid 'valid rows.svm' --names names.txt --lambda 10 --max-iter 60 \
         -o model.hdsl"
    );
    // A model of `hdsl rank` is not made by `hdsl train`.
    parts.config.triplets = TripletSource::Ranking { count: 7 };
    parts.config.n_estimators = 4;
    let ranked = Model::new(parts.clone()).unwrap();
    input.model = &ranked;
    let html = write(&input);
    assert_eq!(
        made_by(&html).unwrap(),
        "hdsl rank train.svm --queries QUERIES --judgments JUDGMENTS --preprocess max --lambda 10 --max-iter 60 \
         --n-estimators 4 --seed 0 -o model.hdsl"
    );
    assert!(html.contains("Quality of rankings: give --train DOCUMENTS"));
    // No command continues an earlier model.
    parts.config.warm_start = true;
    parts.config.triplets = TrainConfig::new(1.0).triplets;
    let continued = Model::new(parts).unwrap();
    input.model = &continued;
    let html = write(&input);
    assert_eq!(made_by(&html), None);
    assert!(html.contains("This model continues an earlier one"));
}
