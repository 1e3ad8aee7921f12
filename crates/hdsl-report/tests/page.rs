//! Pages of small problems: the figures, the bytes, and inputs that have little to show. How pages look and behave is
//! tried in a browser, see `browser/`.

use hdsl::atoms::Path;
use hdsl::data::{Planted, PlantedParams, planted};
use hdsl::knn::evaluate_similarity;
use hdsl::{
    Atom, Dataset, Dot, Labels, Model, ModelParts, PredictionRule, Preprocessor, Rows, Similarity,
    SparseRow, TrainConfig,
};
use hdsl_report::{Input, Part, page};
use serde_json::Value;
use std::sync::LazyLock;

static PROBLEM: LazyLock<(Planted, Model)> = LazyLock::new(|| {
    let params = PlantedParams {
        n_train: 160,
        n_valid: 80,
        n_test: 80,
        n_features: 400,
        noise_words: 10,
        ..PlantedParams::default()
    };
    let problem = planted(5, &params).unwrap();
    let mut config = TrainConfig::new(10.0);
    config.max_iter = 60;
    let (train, valid) = (&problem.train, &problem.valid);
    let mut given = hdsl::TrainData::new(train);
    given.valid = Some(valid.into());
    given.names = Some(&problem.names);
    let trained = hdsl::train(&given, &config, &mut ());
    let model = trained.unwrap().model;
    (problem, model)
});

fn whole() -> Input<'static> {
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
    let once = write(&whole());
    for n_threads in [1, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        let again = pool.build().unwrap().install(|| write(&whole()));
        assert!(once == again, "{n_threads} threads");
    }
}

#[test]
fn errors_are_those_of_an_evaluation() {
    let (problem, model) = &*PROBLEM;
    let told = data(&write(&whole()));
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
        assert_eq!(told["errors"][name]["error"], found.error);
        assert_eq!(told["errors"][name]["balanced_error"], found.balanced_error);
        let cells = told["errors"][name]["cells"].as_array().unwrap();
        assert_eq!(cells.len(), found.cells.len());
    }
    // The path ends at the model in use, and all test rows are judged there.
    let along = told["dimension"]["test"].as_array().unwrap();
    assert_eq!(along.last().unwrap()["error"], learned.error);
    let mistakes = told["errors"]["mistakes"].as_array().unwrap();
    assert_eq!(mistakes.len(), learned.n_wrong);
    let shown = told["neighbors"]["rows"].as_array().unwrap();
    for mistake in mistakes {
        assert!(
            shown.iter().any(|q| q["row"] == mistake["row"]),
            "every mistake can be looked at"
        );
    }
}

#[test]
fn contributions_add_up_and_firing_is_counted() {
    let (problem, model) = &*PROBLEM;
    let told = data(&write(&whole()));
    for query in told["neighbors"]["rows"].as_array().unwrap() {
        for near in ["dot", "learned"]
            .iter()
            .flat_map(|&k| query[k].as_array().unwrap())
        {
            let why = near["why"].as_array().unwrap();
            let sum: f64 = why.iter().map(|w| w[3].as_f64().unwrap()).sum();
            let score = near["score"].as_f64().unwrap();
            let rest = near["rest"][1].as_f64().unwrap();
            assert!(
                (sum + rest - score).abs() < 1e-9,
                "{sum} and {rest} for {score}"
            );
        }
    }
    // The first pair, by going through all couples of rows.
    let pair = model.similarity().pairs_by_weight()[0];
    let (rows, labels) = (&problem.train.rows, problem.train.labels.as_ref().unwrap());
    let (mut fired, mut couples) = ([0.0; 2], [0.0; 2]);
    for a in 0..rows.n_rows() {
        for b in (0..rows.n_rows()).filter(|&b| b != a) {
            let (x, y) = (rows.row(a), rows.row(b));
            let has = |r: SparseRow<'_>, f: u32| r.get(f) != 0.0;
            let fires = (has(x, pair.i) && has(y, pair.j)) || (has(x, pair.j) && has(y, pair.i));
            let kind = usize::from(labels.name(a) != labels.name(b));
            couples[kind] += 1.0;
            fired[kind] += f64::from(u8::from(fires));
        }
    }
    for (kind, name) in ["same", "different"].into_iter().enumerate() {
        let shown = told["entries"]["pairs"][name][0].as_f64().unwrap();
        let counted = fired[kind] / couples[kind];
        assert!(
            (shown - counted).abs() <= 1e-3 * counted,
            "{name}: {shown} for {counted}"
        );
    }
}

#[test]
fn little_input_makes_a_page_too() {
    let path = Path::new(vec![(Atom::minus(0, 2).unwrap(), 1.0)], vec![]).unwrap();
    let model = Model::new(ModelParts::new(3, 2.0, path)).unwrap();
    let told = data(&write(&Input::new(&model, "m.hdsl")));
    assert!(told["errors"].is_null() && told["map"].is_null() && told["dimension"].is_null());

    let mut rows = Rows::new(3);
    rows.push(SparseRow::new(&[0], &[1.0]));
    rows.push(SparseRow::new(&[], &[]));
    let one_class = Labels::from_names(["a", "a"]);
    let other = Labels::from_names(["new", "a"]);
    let empty = Rows::new(3);
    let given = |rows, labels| {
        Some(Part {
            rows,
            labels,
            texts: None,
            source: "rows",
        })
    };
    let mut input = Input::new(&model, "m.hdsl");
    // More voters than rows, one class, and a class that training never saw.
    input.rule.k = 9;
    input.train = given(&rows, Some(&one_class));
    input.test = given(&rows, Some(&other));
    let told = data(&write(&input));
    assert_eq!(told["errors"]["learned"]["n_wrong"], 1);
    assert!(told["errors"]["mistakes"][0]["margin"].is_null());
    // No classes at all.
    input.train = given(&rows, None);
    input.test = given(&rows, None);
    let told = data(&write(&input));
    assert_eq!(told["neighbors"]["rows"].as_array().unwrap().len(), 2);
    // No rows at all.
    input.train = given(&empty, None);
    input.test = given(&empty, None);
    assert!(data(&write(&input))["neighbors"].is_null());
}

#[test]
fn what_does_not_fit_is_refused() {
    let (problem, _) = &*PROBLEM;
    let texts = vec![String::new(); 3];
    let mut input = whole();
    input.test = input.test.map(|part| Part {
        texts: Some(&texts),
        ..part
    });
    let refusal = page(&input, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(refusal, "there are 3 texts for 80 test rows");
    let mut input = whole();
    input.train = input.train.map(|part| Part {
        labels: problem.test.labels.as_ref(),
        ..part
    });
    let refusal = page(&input, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(refusal, "there are 80 labels for 160 training rows");
    let mut input = whole();
    input.rule.k = 0;
    assert!(page(&input, &mut |_| {}).is_err());
}

#[test]
fn nothing_on_the_page_points_elsewhere() {
    let html = write(&whole());
    assert!(html.contains("content=\"default-src &#39;none&#39;; script-src &#39;sha256-"));
    // Up to the charting library, which names addresses that it never asks for here.
    let ours = &html[..html.find("plotly.js v").unwrap()];
    let allowed = "http://www.w3.org/2000/svg";
    assert!(!ours.replace(allowed, "").contains("://"));
    assert_eq!(ours.matches("<script").count(), 3);
}
