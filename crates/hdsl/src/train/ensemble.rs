//! The average of several models that differ in what is random: again a convex combination of atoms, and of lower
//! variance than each of them.

use super::data::{Labeled, TrainData};
use super::grid::{Described, fitted, parts_of, train_grid};
use super::subsample::{sampled_anchors, sampled_rows};
use super::validation::ValidationSet;
use super::{RunSummary, Trained};
use crate::atoms::{ActiveSet, Path, Step};
use crate::data::Preprocessor;
use crate::error::Result;
use crate::model::{BaseWeight, Model, ModelParts, TrainConfig};
use crate::observer::{Event, Gap, Observer, Stop};
use crate::sort::sort_by;

use std::collections::HashMap;

/// The average of convex combinations of the same λ: weights above 0 that sum to 1, atoms in order of first use.
pub(crate) fn average(of: &[&ActiveSet]) -> Result<ActiveSet> {
    if let [only] = of {
        return Ok((*only).clone());
    }
    let mut weighted: Vec<(_, f64)> = Vec::new();
    let mut places = HashMap::new();
    for (atom, weight) in of.iter().flat_map(|active| active.iter()) {
        let at = *places.entry(atom).or_insert_with(|| {
            weighted.push((atom, 0.0));
            weighted.len() - 1
        });
        weighted[at].1 += weight / of.len() as f64;
    }
    ActiveSet::from_weighted(&weighted)
}

/// A path to a convex combination that adds its atoms by weight, the largest first: earlier iterates are sparser models,
/// as on the path of a run.
pub(crate) fn by_weight(active: &ActiveSet) -> Result<Path> {
    let mut weighted: Vec<_> = active.iter().collect();
    // The sort is stable: of equals, the first used comes first.
    sort_by(&mut weighted, |a, b| b.1.total_cmp(&a.1));
    let mut total = 0.0;
    let mut steps = Vec::new();
    for &(atom, weight) in &weighted {
        total += weight;
        steps.push(Step::Forward {
            atom,
            gamma: weight / total,
        });
    }
    let first = weighted.first().map(|w| (w.0, 1.0));
    Path::new(first.into_iter().collect(), steps.split_off(1))
}

/// Trains one model, or an average of several.
pub(super) fn train_model(
    data: &TrainData<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    match config.is_ensemble() {
        false => train_grid(data, config, observer),
        true => train_ensemble(data, config, observer),
    }
}

/// Trains models with consecutive seeds and averages them; those that are done, if the observer asks to stop.
fn train_ensemble(
    data: &TrainData<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let preprocessor = fitted(data, config);
    let shared = TrainData {
        preprocessor: Some(&preprocessor),
        ..*data
    };
    let train =
        |config: &TrainConfig, observer: &mut dyn Observer| train_member(&shared, config, observer);
    let members = train_members(config, observer, train)?;
    ensemble_of(&shared, config, members)
}

/// The ensemble of models that are trained.
pub(crate) fn ensemble_of(
    data: &TrainData<'_>,
    config: &TrainConfig,
    members: Vec<Member>,
) -> Result<Trained> {
    let preprocessor = fitted(data, config);
    let error = |weights, active: &ActiveSet| {
        let validation = ValidationSet::of(data, &preprocessor, config.rule)?;
        let error = |validation: ValidationSet<'_>| {
            let train = preprocessor.apply(data.train.rows);
            validation.error(&train, weights, active)
        };
        validation.map(error).transpose()
    };
    averaged(&data.described(), config, &preprocessor, members, error)
}

/// One model of an ensemble: the iterate that was kept, β, and its run.
pub(crate) struct Member {
    pub(crate) active: ActiveSet,
    pub(crate) base: f64,
    pub(crate) run: RunSummary,
}

impl Member {
    fn of(trained: Trained) -> Result<Self> {
        Ok(Self {
            active: trained.model.path().at(trained.model.chosen())?,
            base: trained.model.base(),
            run: trained.run,
        })
    }
}

/// The average of trained models. `error` computes its validation error, given λ, β and the average.
pub(crate) fn averaged(
    described: &Described<'_>,
    config: &TrainConfig,
    preprocessor: &Preprocessor,
    members: Vec<Member>,
    error: impl FnOnce((f64, f64), &ActiveSet) -> Result<Option<f64>>,
) -> Result<Trained> {
    let iterates: Vec<&ActiveSet> = members.iter().map(|member| &member.active).collect();
    let active = average(&iterates)?;
    let (lambda, base) = (members[0].run.lambda, members[0].base);
    let valid_error = error((lambda, base), &active)?;
    let path = by_weight(&active)?;
    let last = path.len();
    let config = TrainConfig {
        n_estimators: members.len(),
        preprocess: preprocessor.kind(),
        lambda: vec![lambda],
        base: BaseWeight::Value(base),
        ..config.clone()
    };
    let grid: Vec<RunSummary> = members.into_iter().map(|m| m.run).collect();
    let model = Model::new(ModelParts {
        evaluations: valid_error.map(|e| (last as u32, e)).into_iter().collect(),
        stop: Some(grid[0].stop),
        ..parts_of(
            described,
            &config,
            preprocessor.clone(),
            (lambda, base),
            path,
        )
    })?;
    let mean = |of: fn(&RunSummary) -> f64| grid.iter().map(of).sum::<f64>() / grid.len() as f64;
    Ok(Trained {
        model,
        run: RunSummary {
            lambda,
            stop: grid[grid.len() - 1].stop,
            iterations: grid.iter().map(|m| m.iterations).sum(),
            objective: mean(|m| m.objective),
            gap: Gap::Estimate(mean(|m| m.gap.value())),
            chosen: last,
            chosen_objective: mean(|m| m.chosen_objective),
            chosen_gap: Gap::Estimate(mean(|m| m.chosen_gap.value())),
            valid_error,
            n_triplets: grid.iter().map(|m| m.n_triplets).sum(),
            train_seconds: grid.iter().map(|m| m.train_seconds).sum(),
        },
        round_ends: vec![last],
        grid,
        choice: None,
    })
}

/// At least one model, each with its own seed.
pub(crate) fn train_members(
    config: &TrainConfig,
    observer: &mut dyn Observer,
    mut train: impl FnMut(&TrainConfig, &mut dyn Observer) -> Result<Trained>,
) -> Result<Vec<Member>> {
    let of = config.n_estimators;
    let mut members = Vec::with_capacity(of);
    // All models have the weights of the first, β and λ: an average has one of each.
    let mut config = config.clone();
    for index in 0..of {
        let started = Event::EstimatorStarted { index, of };
        if observer.on_event(&started).is_break() && index > 0 {
            break;
        }
        let member = Member::of(train(&of_member(&config, index), observer)?)?;
        config.base = BaseWeight::Value(member.base);
        config.lambda = vec![member.run.lambda];
        let stopped = member.run.stop == Stop::ObserverAsked;
        members.push(member);
        if stopped {
            break;
        }
    }
    Ok(members)
}

/// The configuration of one model of an ensemble.
fn of_member(config: &TrainConfig, index: usize) -> TrainConfig {
    TrainConfig {
        n_estimators: 1,
        seed: config.seed.wrapping_add(index as u64),
        ..config.clone()
    }
}

/// One model of an ensemble whose λ and β are known, without the others.
pub(crate) fn train_one_member(
    data: &TrainData<'_>,
    config: &TrainConfig,
    index: usize,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let preprocessor = fitted(data, config);
    let shared = TrainData {
        preprocessor: Some(&preprocessor),
        ..*data
    };
    train_member(&shared, &of_member(config, index), observer)
}

/// One model, on its part of the rows or of the given triplets.
fn train_member(
    data: &TrainData<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let (fraction, seed) = (config.subsample, config.seed);
    if fraction == 1.0 {
        return train_grid(data, config, observer);
    }
    let read = match data.triplets {
        None if !config.triplets.is_mined() => {
            Some(config.triplets.read(data.train.rows.n_rows())?)
        }
        _ => None,
    };
    if let Some(given) = data.triplets.or(read.as_ref()) {
        let sampled = sampled_anchors(given, fraction, seed)?;
        let part = TrainData {
            triplets: Some(&sampled),
            ..*data
        };
        return train_grid(&part, config, observer);
    }
    let labels = data.train.labels_for("training", "to mine triplets from")?;
    let sampled = sampled_rows(labels, fraction, seed)?;
    let (rows, labels) = (data.train.rows.select(&sampled), labels.select(&sampled));
    let train = Labeled {
        rows: rows.view(),
        labels: Some(&labels),
        ..data.train
    };
    train_grid(&TrainData { train, ..*data }, config, observer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atoms::Atom;

    #[test]
    fn the_path_to_an_average_adds_its_atoms_by_weight_and_ends_there() {
        let atom = |i| Atom::minus(i, i + 1).unwrap();
        let weights = [0.125, 0.5, 0.25, 0.125];
        let weighted: Vec<_> = (0..4).map(|i| (atom(i), weights[i as usize])).collect();
        let active = ActiveSet::from_weighted(&weighted).unwrap();
        let path = by_weight(&active).unwrap();
        assert_eq!(path.at(0).unwrap().atoms(), [atom(1)]);
        assert_eq!(path.at(1).unwrap().atoms(), [atom(1), atom(2)]);
        let half = path.at(1).unwrap();
        assert!((half.weight(atom(1)) - 2.0 / 3.0).abs() < 1e-15);
        let last = path.at(3).unwrap();
        for (atom, weight) in weighted {
            assert!((last.weight(atom) - weight).abs() < 1e-15);
        }
    }

    /// Forty rows of two classes that share some features.
    fn rows() -> (crate::data::Rows, crate::data::Labels) {
        let mut rows = crate::data::Rows::new(12);
        let class = |row: u32| row % 2;
        for row in 0..40 {
            let indices = [class(row) * 2 + row % 3, 6 + row % 4, 10 + row % 2];
            let values = [1.0, 2.0, f64::from(1 + row % 5)];
            rows.push(crate::data::SparseRow::new(&indices, &values));
        }
        let names = (0..40).map(|row| ["a", "b"][class(row) as usize]);
        (rows, crate::data::Labels::from_names(names))
    }

    #[test]
    fn each_model_of_an_average_learns_from_its_own_rows() {
        let (rows, labels) = rows();
        let labeled = Labeled {
            rows: rows.view(),
            labels: Some(&labels),
            index_base: crate::data::IndexBase::Zero,
        };
        let mut config = TrainConfig::new(20.0);
        config.max_iter = 30;
        config.seed = 7;
        config.n_estimators = 2;
        config.subsample = 0.6;
        config.check().unwrap();
        let whole = train_model(&TrainData::new(labeled), &config, &mut ()).unwrap();
        let preprocessor = crate::data::Preprocessor::fit(config.preprocess, rows.view());
        let member = |seed: u64| {
            let sampled = sampled_rows(&labels, 0.6, seed).unwrap();
            let (rows, labels) = (rows.select(&sampled), labels.select(&sampled));
            let mut data = TrainData::new(Labeled {
                rows: rows.view(),
                labels: Some(&labels),
                ..labeled
            });
            data.preprocessor = Some(&preprocessor);
            let mut alone = TrainConfig::new(20.0);
            (alone.max_iter, alone.seed) = (30, seed);
            let trained = train_grid(&data, &alone, &mut ()).unwrap();
            let path = trained.model.path();
            path.at(path.len()).unwrap()
        };
        let expected = average(&[&member(7), &member(8)]).unwrap();
        let path = whole.model.path();
        let found = path.at(path.len()).unwrap();
        assert_eq!(found.len(), expected.len());
        for (atom, weight) in expected.iter() {
            assert!((found.weight(atom) - weight).abs() < 1e-12);
        }
        assert_eq!(whole.model.parts().config.subsample, 0.6);
        config.subsample = 0.0;
        assert!(config.check().is_err());
        config.subsample = f64::NAN;
        assert!(config.check().is_err());
    }

    #[test]
    fn the_average_of_different_atoms_has_them_all() {
        let (a, b) = (Atom::plus(0, 1).unwrap(), Atom::plus(2, 3).unwrap());
        let both = average(&[&ActiveSet::single(a), &ActiveSet::single(b)]).unwrap();
        assert!(both.weights().eq([0.5, 0.5]));
        assert!(average(&[]).is_err());
        let shared = ActiveSet::from_weighted(&[(a, 0.5), (b, 0.5)]).unwrap();
        let of = average(&[&ActiveSet::single(a), &shared]).unwrap();
        assert_eq!((of.weight(a), of.weight(b)), (0.75, 0.25));
    }
}
