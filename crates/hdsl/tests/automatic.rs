//! Settings that are left open: what `train` makes of them, checked against their definitions and against a training with
//! the same settings given.

use hdsl::data::{PlantedParams, planted};
use hdsl::model::BaseWeight;
use hdsl::{
    CancelToken, Dataset, Dot, Labels, Preprocess, Preprocessor, Rows, SparseRow, Stop,
    TrainConfig, TrainData, Triplets, knn, train,
};

/// Everything is left open.
fn open() -> TrainConfig {
    let mut config = TrainConfig::new(1.0);
    config.lambda = Vec::new();
    config.preprocess = Preprocess::Auto;
    config.base = BaseWeight::Auto;
    config.max_iter = 100;
    config
}

fn planted_rows() -> hdsl::data::Planted {
    planted(3, &PlantedParams::default()).unwrap()
}

/// Two classes with a feature each, and noise that no class has more of.
fn separable(n: usize) -> Dataset {
    let mut rows = Rows::new(6);
    for row in 0..n {
        let features = [(row % 2) as u32, 2 + (row / 2 % 4) as u32];
        rows.push(SparseRow::new(&features, &[3.0, 1.0]));
    }
    let labels = Labels::from_names((0..n).map(|row| ["a", "b"][row % 2]));
    Dataset {
        rows,
        labels: Some(labels),
        queries: None,
        index_base: hdsl::IndexBase::One,
        notes: Vec::new(),
        records: None,
    }
}

#[test]
fn the_model_is_that_of_a_training_with_the_chosen_settings_given() {
    let data = planted_rows();
    for n_estimators in [1, 2] {
        let mut config = open();
        config.n_estimators = n_estimators;
        let trained = train(&TrainData::new(&data.train), &config, &mut ()).unwrap();
        let choice = trained.choice.as_ref().unwrap();
        assert!(choice.learned_error.unwrap() < choice.base_error);
        let model = &trained.model;
        let given = model.parts().config.clone();
        assert_eq!(given.base, BaseWeight::Value(model.base()));
        assert_eq!(given.lambda, [model.parts().scale]);
        assert_eq!(Some(given.max_iter), choice.iterations);
        assert_eq!(given.preprocess, model.preprocess().kind());
        let again = train(&TrainData::new(&data.train), &given, &mut ()).unwrap();
        assert_eq!(again.choice, None);
        assert_eq!(again.model.to_bytes(), model.to_bytes());
    }
}

#[test]
fn base_margins_are_3_on_average_and_m_is_small_beside_the_base() {
    let params = PlantedParams {
        n_train: 300,
        ..PlantedParams::default()
    };
    let data = planted(3, &params).unwrap().train;
    let mut config = open();
    config.preprocess = Preprocess::MaxUnit;
    let model = train(&TrainData::new(&data), &config, &mut ())
        .unwrap()
        .model;
    let rows = Preprocessor::fit(Preprocess::MaxUnit, &data.rows).apply(&data.rows);
    let labels = data.labels.as_ref().unwrap();
    let triplets = Triplets::by_neighbors(&Dot, &rows, labels, [3, 5], CancelToken::NEVER).unwrap();
    assert!(triplets.len() < 10_000, "all of them are averaged over");
    let margin = |(a, n, f): (u32, u32, u32)| {
        let [a, n, f] = [a, n, f].map(|row| rows.row(row as usize));
        model.base() * (a.dot(n) - a.dot(f)).abs()
    };
    let mean = triplets.iter().map(margin).sum::<f64>() / triplets.len() as f64;
    assert!((mean - 3.0).abs() < 1e-9, "{mean}");
    let occurring: std::collections::BTreeSet<u32> = rows.indices().iter().copied().collect();
    let trace = 2.0 * model.parts().scale;
    let of_base = model.base() * occurring.len() as f64;
    assert!((trace / of_base - 0.03).abs() < 1e-12);
}

#[test]
fn without_errors_of_the_base_nothing_is_learned() {
    let data = separable(60);
    let trained = train(&TrainData::new(&data), &open(), &mut ()).unwrap();
    let choice = trained.choice.unwrap();
    assert!(choice.is_base_alone());
    assert_eq!((choice.base_error, choice.n_held_out), (0.0, 60));
    assert_eq!(trained.run.stop, Stop::BaseAlone);
    let model = trained.model;
    assert_eq!((model.base(), model.similarity().atoms().len()), (1.0, 0));
    let rows = Preprocessor::fit(choice.preprocess, &data.rows).apply(&data.rows);
    for (a, b) in [(0, 0), (0, 1), (3, 57)] {
        let raw = model.score(data.rows.row(a), data.rows.row(b));
        assert!((raw - rows.row(a).dot(rows.row(b))).abs() < 1e-15);
    }
    let again = hdsl::Model::from_bytes("model.hdsl", &model.to_bytes()).unwrap();
    assert_eq!(again, model);
}

#[test]
fn with_validation_rows_the_better_of_the_base_and_the_best_iterate_is_kept() {
    let data = planted_rows();
    let mut given = TrainData::new(&data.train);
    given.valid = Some((&data.valid).into());
    let mut config = open();
    config.validation = hdsl::model::Validation::Rows;
    let trained = train(&given, &config, &mut ()).unwrap();
    let choice = trained.choice.unwrap();
    let error = |preprocess| {
        let fitted = Preprocessor::fit(preprocess, &data.train.rows);
        let (train, valid) = (
            fitted.apply(&data.train.rows),
            fitted.apply(&data.valid.rows),
        );
        let labels = |data: &Dataset| data.labels.clone().unwrap();
        let (known, truth) = (labels(&data.train), labels(&data.valid));
        knn::evaluate_similarity(&Dot, &train, &known, &valid, &truth, &config.rule).unwrap()
    };
    assert_eq!(choice.base_error, error(choice.preprocess).error);
    assert_eq!(trained.run.valid_error, choice.learned_error);
    let kinds = [
        Preprocess::None,
        Preprocess::Unit,
        Preprocess::MaxUnit,
        Preprocess::Tfidf,
    ];
    for kind in kinds {
        assert!(
            trained.run.valid_error.unwrap() < error(kind).error,
            "{kind}"
        );
    }
}

#[test]
fn what_is_given_is_not_chosen() {
    let data = planted_rows().train;
    let given = |change: &dyn Fn(&mut TrainConfig)| {
        let mut config = open();
        change(&mut config);
        train(&TrainData::new(&data), &config, &mut ()).unwrap()
    };
    let trained = given(&|config| config.preprocess = Preprocess::Max);
    assert_eq!(trained.model.preprocess().kind(), Preprocess::Max);
    let trained = given(&|config| config.lambda = vec![10.0]);
    assert_eq!(trained.model.parts().scale, 10.0);
    assert!(trained.model.base() > 0.0 && trained.choice.unwrap().iterations.is_none());
    let trained = given(&|config| config.base = BaseWeight::Value(2.0));
    assert_eq!(trained.model.base(), 2.0);
    // Without a base, λ follows the size of the values.
    let trained = given(&|config| config.base = BaseWeight::NONE);
    assert_eq!(trained.model.base(), 0.0);
    let rows = trained.model.preprocess().apply(&data.rows);
    let squares: f64 = trained
        .model
        .prepare(&data.rows)
        .values()
        .iter()
        .map(|x| x * x)
        .sum();
    assert!(squares <= rows.values().iter().map(|x| x * x).sum::<f64>() + 1e-9);
    assert!(trained.model.parts().scale > 0.0);
}

#[test]
fn given_triplets_need_no_labels() {
    let labeled = planted_rows().train;
    let rows = Preprocessor::fit(Preprocess::Unit, &labeled.rows).apply(&labeled.rows);
    let labels = labeled.labels.as_ref().unwrap();
    let triplets = Triplets::by_neighbors(&Dot, &rows, labels, [3, 5], CancelToken::NEVER).unwrap();
    let data = Dataset {
        labels: None,
        ..labeled
    };
    let mut given = TrainData::new(&data);
    given.triplets = Some(&triplets);
    let trained = train(&given, &open(), &mut ()).unwrap();
    assert_eq!(trained.choice, None);
    let kind = Preprocess::Auto.resolved(&data.rows);
    assert_eq!(trained.model.preprocess().kind(), kind);
    assert!(trained.model.base() > 0.0 && trained.run.iterations > 0);
}

#[test]
fn auto_preprocessing_follows_the_values() {
    let sparse = |values: &[f64]| {
        let mut rows = Rows::new(1000);
        for (row, &value) in values.iter().cycle().take(300).enumerate() {
            rows.push(SparseRow::new(&[row as u32], &[value]));
        }
        rows
    };
    for (values, kind) in [
        (&[1.0, 4.0, 2.0][..], Preprocess::Tfidf),
        (&[1.0], Preprocess::Unit),
        (&[0.3, 4.0], Preprocess::Unit),
        (&[-1.0, 4.0], Preprocess::Unit),
    ] {
        assert_eq!(
            Preprocess::Auto.resolved(&sparse(values)),
            kind,
            "{values:?}"
        );
        assert_eq!(
            Preprocessor::fit(Preprocess::Auto, &sparse(values)).kind(),
            kind
        );
    }
    assert!(Preprocessor::from_parts(Preprocess::Auto, 3, Vec::new(), None).is_err());
}
