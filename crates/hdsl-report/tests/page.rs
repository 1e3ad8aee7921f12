//! Pages of small problems: figures, reproducibility, and small or invalid input. `browser/` tests appearance and
//! behavior.

use hdsl::atoms::Path;
use hdsl::data::{Planted, PlantedParams, planted};
use hdsl::knn::evaluate_similarity;
use hdsl::{
    Atom, BilinearModel, Dataset, Dot, Labels, Model, ModelParts, PredictionRule, Preprocessor,
    Rows, Similarity, SparseRow, TrainConfig,
};
use hdsl_report::{Input, Part, page};
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
