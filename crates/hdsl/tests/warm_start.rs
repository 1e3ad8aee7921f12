//! Going on from an earlier solution, through the one call that everybody trains through.

use hdsl::data::{PlantedParams, planted};
use hdsl::{Rows, TrainConfig, TrainData, Trained, Triplets, train};

fn run(data: &TrainData<'_>, max_iter: usize) -> Trained {
    let mut config = TrainConfig::new(10.0);
    config.max_iter = max_iter;
    train(data, &config, &mut ()).unwrap()
}

#[test]
fn a_run_begins_where_the_last_one_ended_and_never_gets_worse() {
    let data = planted(1, &PlantedParams::default()).unwrap().train;
    let mut data = TrainData::new(&data);
    let first = run(&data, 30);
    let end = first.model.path().at(30).unwrap();
    data.start = Some(&end);
    let second = run(&data, 1);
    assert_eq!(second.model.path().at(0).unwrap().atoms(), end.atoms());
    let trace = &second.model.parts().trace;
    assert!((trace[0].objective - first.run.objective).abs() < 1e-9 * first.run.objective);
    assert!(trace[1].objective < trace[0].objective);
}

#[test]
fn atoms_of_features_that_no_row_has_are_left_out() {
    let data = planted(1, &PlantedParams::default()).unwrap().train;
    let first = run(&TrainData::new(&data), 30);
    let learned = first.model.path().at(30).unwrap();
    // The same rows without one of the features in use: the last, since the first two that no row has take part.
    let gone = learned.atoms().iter().map(hdsl::Atom::j).max().unwrap();
    let mut rows = Rows::new(data.rows.n_features());
    for row in data.rows.iter() {
        let (indices, values): (Vec<u32>, Vec<f64>) = row.iter().filter(|p| p.0 != gone).unzip();
        rows.push(hdsl::SparseRow::new(&indices, &values));
    }
    let data = hdsl::Dataset { rows, ..data };
    let mut data = TrainData::new(&data);
    data.start = Some(&learned);
    let start = run(&data, 1).model.path().at(0).unwrap();
    let kept = learned
        .iter()
        .filter(|(a, _)| a.i() != gone && a.j() != gone);
    let kept: Vec<_> = kept.collect();
    let total: f64 = kept.iter().map(|k| k.1).sum();
    assert!(kept.len() < learned.len() && !kept.is_empty());
    assert_eq!(start.len(), kept.len());
    for (atom, weight) in kept {
        assert!((start.weight(atom) - weight / total).abs() < 1e-12);
    }
}

#[test]
fn a_known_preprocess_is_taken_as_it_is() {
    let data = planted(1, &PlantedParams::default()).unwrap().train;
    let mut doubled = Rows::new(data.rows.n_features());
    for row in data.rows.iter() {
        let values: Vec<f64> = row.values().iter().map(|v| 2.0 * v).collect();
        doubled.push(hdsl::SparseRow::new(row.indices(), &values));
    }
    let mut triplets = Triplets::new();
    triplets.push(0, 1, 2);
    let preprocessor = hdsl::Preprocessor::fit(hdsl::Preprocess::Max, &doubled);
    let mut given = TrainData::new(&data);
    given.triplets = Some(&triplets);
    given.preprocessor = Some(&preprocessor);
    let half = run(&given, 1).model;
    let (rows, scaled) = (&data.rows, half.prepare(&data.rows));
    // The first atom may pair a feature with one that no row has.
    let used = half.path().features();
    let value = |row: usize| {
        used.iter()
            .map(|&f| (f, rows.row(row).get(f)))
            .find(|v| v.1 != 0.0)
    };
    let (row, (feature, raw)) = (0..rows.n_rows())
        .find_map(|r| Some((r, value(r)?)))
        .unwrap();
    let most = (0..rows.n_rows())
        .map(|r| rows.row(r).get(feature))
        .fold(0.0, f64::max);
    assert_eq!(scaled.row(row).get(feature), raw / (2.0 * most));
}
