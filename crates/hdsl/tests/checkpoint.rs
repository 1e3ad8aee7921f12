//! A training that was interrupted and resumed gives the same bytes as one that was not.

use hdsl::checkpoint::Checkpoint;
use hdsl::data::{PlantedParams, planted};
use hdsl::model::{BaseWeight, Validation};
use hdsl::observer::Event;
use hdsl::solver::Search;
use hdsl::{
    Dataset, Error, LossKind, Preprocess, StepRule, TrainConfig, TrainData, TripletSource, train,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

fn problem() -> (Dataset, Dataset) {
    let params = PlantedParams {
        n_train: 120,
        n_valid: 60,
        n_test: 1,
        n_features: 300,
        noise_words: 10,
    };
    let problem = planted(5, &params).unwrap();
    (problem.train, problem.valid)
}

/// Trains with a checkpoint after every step, and stops after so many iterations. Returns the model, the iterations that
/// the observer saw, and the notes.
fn trained(
    config: &TrainConfig,
    (rows, valid): (&Dataset, &Dataset),
    checkpoint: Option<&Path>,
    stop_after: usize,
) -> Result<(Vec<u8>, usize, Vec<String>), Error> {
    let mut config = config.clone();
    config.checkpoint = checkpoint.map(|path| {
        let mut checkpoint = Checkpoint::new(path);
        checkpoint.every = Duration::ZERO;
        checkpoint
    });
    let (mut seen, mut notes) = (0, Vec::new());
    let mut observer = |event: &Event<'_>| {
        match event {
            Event::Iteration(..) => seen += 1,
            Event::Note(note) => notes.push((*note).to_owned()),
            _ => {}
        }
        match seen >= stop_after {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let mut data = TrainData::new(rows);
    if config.validation != Validation::None {
        data.valid = Some(valid.into());
    }
    let trained = train(&data, &config, &mut observer)?;
    Ok((trained.model.to_bytes(), seen, notes))
}

/// Interrupted after 1, 2, ... iterations, again and again, until it ends by itself.
#[track_caller]
fn resumes(config: &TrainConfig) {
    let (rows, valid) = problem();
    let data = (&rows, &valid);
    let (whole, n, _) = trained(config, data, None, usize::MAX).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.checkpoint");
    // Interrupted once, at several places.
    for after in [1, 2, n / 3, n / 2, n - 1] {
        if after == 0 || after >= n {
            continue;
        }
        let (_, seen, _) = trained(config, data, Some(&path), after).unwrap();
        assert!(seen >= after && seen < n, "{seen} of {n}");
        let (resumed, seen, notes) = trained(config, data, Some(&path), usize::MAX).unwrap();
        assert!(resumed == whole, "interrupted after {after} of {n}");
        assert_eq!(seen, n, "every iteration is reported again");
        let [note] = &notes[..] else {
            panic!("{notes:?}")
        };
        assert!(note.contains("going on after"), "{note}");
        std::fs::remove_file(&path).unwrap();
    }
    // Interrupted many times.
    let every = (n / 7).max(1);
    let mut limit = every;
    while limit < n {
        trained(config, data, Some(&path), limit).unwrap();
        limit += every;
    }
    let (resumed, ..) = trained(config, data, Some(&path), usize::MAX).unwrap();
    assert!(resumed == whole);
}

fn config() -> TrainConfig {
    let mut config = TrainConfig::new(20.0);
    config.max_iter = 60;
    config.triplets = TripletSource::Random { per_row: 5 };
    config
}

#[test]
fn every_loss_step_rule_and_search() {
    for loss in LossKind::ALL {
        for steps in StepRule::ALL {
            for search in Search::ALL {
                let mut config = config();
                (config.loss, config.steps, config.search) = (loss, steps, search);
                config.max_iter = 40;
                resumes(&config);
            }
        }
    }
}

#[test]
fn batches() {
    for loss in [LossKind::SmoothedHinge, LossKind::Logistic] {
        let mut config = config();
        (config.loss, config.batch) = (loss, Some(70));
        resumes(&config);
    }
}

#[test]
fn certificates_tolerance_and_a_base() {
    let mut config = config();
    (config.tolerance, config.certify) = (Some(0.05), true);
    resumes(&config);
    config.base = BaseWeight::Auto;
    config.preprocess = Preprocess::Unit;
    resumes(&config);
}

/// More steps than the incremental state takes before it recomputes its sums.
#[test]
fn a_long_run() {
    let mut config = config();
    config.lambda = vec![1000.0];
    config.max_iter = 4500;
    config.steps = StepRule::Forward;
    resumes(&config);
}

/// Interrupted once, at each of the places that `places` returns for a run of n iterations.
#[track_caller]
fn resumes_at(config: &TrainConfig, places: impl Fn(usize) -> Vec<usize>) {
    let (rows, valid) = problem();
    let data = (&rows, &valid);
    let (whole, n, _) = trained(config, data, None, usize::MAX).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.checkpoint");
    for after in places(n) {
        trained(config, data, Some(&path), after).unwrap();
        let (resumed, ..) = trained(config, data, Some(&path), usize::MAX).unwrap();
        assert!(resumed == whole, "interrupted after {after} of {n}");
        std::fs::remove_file(&path).unwrap();
    }
}

/// The step rule `decrease` skips searches, depending on what the last ones found.
#[test]
fn a_run_that_skips_searches() {
    let mut config = config();
    // Two of five iterations make no search.
    config.lambda = vec![5.0];
    config.max_iter = 150;
    resumes_at(&config, |n| (1..n).step_by(7).collect());
}

/// Close to the minimum, no search finds a new atom for long, and searches start from active features.
#[test]
fn a_run_whose_searches_find_nothing() {
    let mut config = config();
    config.lambda = vec![5.0];
    config.max_iter = 3000;
    resumes_at(&config, |n| {
        assert!(n > 200, "{n} iterations");
        (n / 2..n).step_by(10).collect()
    });
}

#[test]
fn grids_mining_rounds_and_patience() {
    let mut config = config();
    config.validation = Validation::Rows;
    config.lambda = vec![3.0, 30.0, 300.0];
    config.eval_every = 4;
    resumes(&config);
    config.patience = Some(12);
    resumes(&config);
    config.lambda = vec![30.0];
    config.patience = None;
    config.mining_rounds = 2;
    config.last_round_iter = Some(17);
    resumes(&config);
}

#[test]
fn ensembles() {
    let mut config = config();
    config.n_estimators = 3;
    config.max_iter = 20;
    resumes(&config);
    config.subsample = 0.5;
    resumes(&config);
}

/// Runs on held-out rows are recorded, too.
#[test]
fn settings_left_open() {
    let (rows, valid) = problem();
    let mut config = config();
    config.lambda = Vec::new();
    config.base = BaseWeight::Auto;
    config.preprocess = Preprocess::Auto;
    let data = (&rows, &valid);
    let (whole, n, _) = trained(&config, data, None, usize::MAX).unwrap();
    if n > 1 {
        resumes(&config);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.checkpoint");
    let (first, ..) = trained(&config, data, Some(&path), usize::MAX).unwrap();
    assert!(first == whole && path.exists());
    let (again, _, notes) = trained(&config, data, Some(&path), usize::MAX).unwrap();
    assert!(again == whole && notes.len() == 1, "{notes:?}");
}

#[test]
fn a_checkpoint_of_anything_else_is_refused_and_a_damaged_one_is_not_used() {
    let (rows, valid) = problem();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.checkpoint");
    let config = config();
    let data = (&rows, &valid);
    let (whole, ..) = trained(&config, data, None, usize::MAX).unwrap();
    trained(&config, data, Some(&path), 10).unwrap();
    let kept = std::fs::read(&path).unwrap();

    let mut other = config.clone();
    other.lambda = vec![21.0];
    let refusal = trained(&other, data, Some(&path), 10).unwrap_err();
    assert!(
        refusal.to_string().contains("another training"),
        "{refusal}"
    );
    let refusal = trained(&config, (&valid, &valid), Some(&path), 10).unwrap_err();
    assert!(
        refusal.to_string().contains("another training"),
        "{refusal}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), kept);

    for at in [20, kept.len() / 2, kept.len() - 1] {
        let mut damaged = kept.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let (model, _, notes) = trained(&config, data, Some(&path), usize::MAX).unwrap();
        assert!(model == whole);
        assert!(notes[0].contains("is damaged"), "{notes:?}");
    }
    std::fs::write(&path, "my own file").unwrap();
    let refusal = trained(&config, data, Some(&path), 10).unwrap_err();
    assert!(refusal.to_string().contains("in the way"), "{refusal}");
    assert_eq!(std::fs::read(&path).unwrap(), b"my own file");
}

/// Triplets in a file are not part of what is compared at first; the objective notices.
#[test]
fn changed_triplets_are_noticed() {
    let (rows, valid) = problem();
    let folder = tempfile::tempdir().unwrap();
    let (path, list) = (
        folder.path().join("m.checkpoint"),
        folder.path().join("triplets.txt"),
    );
    std::fs::write(&list, "0 1 2\n3 4 5\n6 7 8\n9 10 11\n12 13 14\n").unwrap();
    let mut config = config();
    config.triplets = list.to_str().unwrap().parse().unwrap();
    trained(&config, (&rows, &valid), Some(&path), 3).unwrap();
    std::fs::write(&list, "0 2 1\n3 5 4\n6 8 7\n9 11 10\n12 14 13\n").unwrap();
    let refusal = trained(&config, (&rows, &valid), Some(&path), 3).unwrap_err();
    let refusal = refusal.to_string();
    assert!(refusal.contains("does not belong"), "{refusal}");
}
