//! The mean of several models, each with its own draw of what is random: once more a convex combination of atoms, and
//! steadier than any of them.

use crate::atoms::Path;
use crate::atoms::{ActiveSet, Step};
use crate::data::Preprocessor;
use crate::error::{Error, Result};
use crate::knn;
use crate::model::{Model, ModelParts};
use crate::observer::{Gap, Stop};
use crate::similarity::BilinearModel;
use crate::train::{Event, Labeled, TrainParams, Trained, Watcher, train_borrowed};
use std::collections::HashMap;

/// The mean of combinations of the same λ: weights above 0 that sum to 1, atoms in order of first use.
///
/// ```
/// use hdsl::{ActiveSet, Atom, mean};
/// let (a, b) = (Atom::plus(0, 1)?, Atom::minus(1, 5)?);
/// let both = ActiveSet::from_weighted(&[(a, 0.5), (b, 0.5)])?;
/// let of = mean(&[ActiveSet::single(a), both])?;
/// assert_eq!((of.weight(a), of.weight(b)), (0.75, 0.25));
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn mean(of: &[ActiveSet]) -> Result<ActiveSet> {
    if let [only] = of {
        return Ok(only.clone());
    }
    let mut weighted = Vec::new();
    let mut places = HashMap::new();
    for (atom, weight) in of.iter().flat_map(ActiveSet::iter) {
        let weight = weight / of.len() as f64;
        match places.get(&atom) {
            Some(&at) => {
                let known: &mut (_, f64) = &mut weighted[at];
                known.1 += weight;
            }
            None => {
                places.insert(atom, weighted.len());
                weighted.push((atom, weight));
            }
        }
    }
    ActiveSet::from_weighted(&weighted)
}

/// A way to a combination that meets its atoms by weight, the heaviest first: so that earlier iterates are sparser models,
/// as on the path of a run.
fn by_weight(active: &ActiveSet) -> Result<Path> {
    let mut weighted: Vec<_> = active.iter().collect();
    // Of equals the first used: the sort is stable.
    weighted.sort_by(|a, b| b.1.total_cmp(&a.1));
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

/// Trains `params.models` models with one seed after the other, and takes their mean. Asked to stop, it is the mean of
/// those there are.
pub(crate) fn train_mean(
    train: Labeled<'_>,
    valid: Option<Labeled<'_>>,
    names: Option<&[String]>,
    params: &TrainParams,
    watcher: &mut dyn Watcher,
) -> Result<Trained> {
    let of = params.models;
    let preprocess = params.preprocess_for(train.rows);
    let mut own = TrainParams {
        models: 1,
        fitted: Some(preprocess.clone()),
        ..params.clone()
    };
    if own.given.is_none() && !own.triplets.is_mined() {
        own.given = Some(own.triplets.read(train.rows.n_rows())?);
    }
    let mut members: Vec<Trained> = Vec::with_capacity(of);
    for index in 0..of {
        let asked = watcher.event(&Event::ModelStarted { index, of }).is_break();
        if asked && index > 0 {
            break;
        }
        own.solver.seed = params.solver.seed.wrapping_add(index as u64);
        let member = train_borrowed(train, valid, names, &own, watcher)?;
        let stopped = member.stop == Stop::ObserverAsked;
        members.push(member);
        if stopped {
            break;
        }
    }
    let iterates: Result<Vec<ActiveSet>> = members
        .iter()
        .map(|member| member.model.path().at(member.model.chosen()))
        .collect();
    let active = mean(&iterates?)?;
    let valid_error = match valid {
        Some(valid) => Some(error(&active, train, valid, &preprocess, params)?),
        None => None,
    };
    let parts = members[0].model.parts().clone();
    let path = by_weight(&active)?;
    let mut settings = parts.settings;
    settings.push(("models".into(), members.len().to_string()));
    if params.again.rounds == 0 {
        settings.extend(params.lengths());
    }
    let model = Model::new(ModelParts {
        preprocess,
        names: all_names(&members),
        chosen: path.len(),
        trace: Vec::new(),
        gap_certified: None,
        evaluations: valid_error
            .map(|e| (path.len() as u32, e))
            .into_iter()
            .collect(),
        path,
        settings,
        ..parts
    })?;
    let count = members.len() as f64;
    let average = |of: fn(&Trained) -> f64| members.iter().map(of).sum::<f64>() / count;
    let last = members.last().expect("there is one model at least");
    Ok(Trained {
        stop: last.stop,
        objective: average(|m| m.objective),
        gap: Gap::Estimate(average(|m| m.gap.value())),
        iterations: members.iter().map(|m| m.iterations).sum(),
        chosen_objective: average(|m| m.chosen_objective),
        chosen_gap: Gap::Estimate(average(|m| m.chosen_gap.value())),
        valid_error,
        n_triplets: members.iter().map(|m| m.n_triplets).sum(),
        train_seconds: members.iter().map(|m| m.train_seconds).sum(),
        round_ends: vec![model.path().len()],
        grid: members.iter().flat_map(|m| m.grid.clone()).collect(),
        model,
    })
}

/// The error of a mean on validation rows; members have seen to it that there are labels.
fn error(
    active: &ActiveSet,
    train: Labeled<'_>,
    valid: Labeled<'_>,
    preprocess: &Preprocessor,
    params: &TrainParams,
) -> Result<f64> {
    let (Some(labels), Some(truth)) = (train.labels, valid.labels) else {
        return Err(Error::data("there are no labels to compute an error with"));
    };
    let similarity = BilinearModel::from_active(train.rows.n_features(), params.scales[0], active)?;
    let (rows, judged) = (preprocess.apply(train.rows), preprocess.apply(valid.rows));
    knn::evaluate_similarity(&similarity, &rows, labels, &judged, truth, &params.rule)
        .map(|evaluation| evaluation.error)
}

/// The names that any member has, by feature.
fn all_names(members: &[Trained]) -> Vec<(u32, String)> {
    let each = members.iter().map(|m| m.model.parts().names.clone());
    let mut names: Vec<(u32, String)> = each.flatten().collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atoms::Atom;

    #[test]
    fn the_path_to_a_mean_meets_its_atoms_by_weight_and_ends_there() {
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

    #[test]
    fn the_mean_of_different_atoms_has_them_all() {
        let (a, b) = (Atom::plus(0, 1).unwrap(), Atom::plus(2, 3).unwrap());
        let of = mean(&[ActiveSet::single(a), ActiveSet::single(b)]).unwrap();
        assert_eq!(of.weights(), [0.5, 0.5]);
        assert!(mean(&[]).is_err());
    }
}
