//! Early stopping without labels: some anchors of the supervision are held out, and the error is computed on their triplets
//! or judgments.

use super::data::TrainData;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::measures::{RankingQuality, TripletAccuracy, rank_documents};
use crate::model::{TrainConfig, Validation};
use crate::random::{rng, shuffle};
use crate::similarity::Similarity;
use crate::triplets::{Judgments, TripletFormat, TripletSource, Triplets};
use std::borrow::Cow;
use std::collections::HashSet;

/// The random stream of held-out anchors.
const STREAM: u64 = 44;

/// Supervision that nothing is learned from.
#[derive(Debug)]
pub(crate) enum HeldOut {
    Triplets(Triplets),
    /// Queries with the gains of their judged documents; some document of each is relevant.
    Queries(Vec<(u32, Vec<(u32, f64)>)>),
}

impl HeldOut {
    /// 1 - triplet accuracy, or 1 - nDCG@10 of rankings of the judged documents.
    pub(super) fn error(&self, rows: &Rows, similarity: &impl Similarity) -> f64 {
        match self {
            Self::Triplets(triplets) => {
                1.0 - TripletAccuracy::of(similarity, rows, triplets).accuracy()
            }
            Self::Queries(queries) => {
                let ranked = rank_documents(similarity, rows, queries, None);
                1.0 - RankingQuality::of(&ranked).ndcg
            }
        }
    }
}

/// The triplets to learn from, and what is held out.
pub(super) struct Split {
    pub(super) learn: Triplets,
    pub(super) held_out: HeldOut,
}

/// Holds out a fraction of the anchors, if the configuration says so.
pub(super) fn split(data: &TrainData<'_>, config: &TrainConfig) -> Result<Option<Split>> {
    let Validation::HoldoutAnchors(fraction) = config.validation else {
        return Ok(None);
    };
    if data.valid.is_some() {
        let wanted = "no held-out anchors if there are validation rows";
        return Err(Error::param("holdout", fraction, wanted));
    }
    let (n_rows, seed) = (data.train.rows.n_rows(), config.seed);
    let format = match &config.triplets {
        TripletSource::File { format, path } => Some((*format, path)),
        _ => None,
    };
    let split = match (format, data.triplets) {
        (Some((format, path)), None)
            if matches!(
                format,
                TripletFormat::Judgments | TripletFormat::JudgmentsLow
            ) =>
        {
            of_judgments(&Judgments::read(path, format, n_rows)?, fraction, seed)
        }
        (_, given) => {
            let triplets = match given {
                Some(given) => Cow::Borrowed(given),
                None => Cow::Owned(config.triplets.read(n_rows)?),
            };
            triplets.check(n_rows)?;
            of_triplets(&triplets, fraction, seed)
        }
    };
    split.map(Some)
}

/// The triplets to learn from, and those of a fraction of the anchors, to validate with: the split of
/// [`Validation::HoldoutAnchors`].
pub fn hold_out_anchors(
    triplets: &Triplets,
    fraction: f64,
    seed: u64,
) -> Result<(Triplets, Triplets)> {
    let held = draw(triplets.iter().map(|t| t.0), fraction, seed, "anchors")?;
    let (held_out, learn) = parted(triplets, &held);
    Ok((learn, held_out))
}

fn of_triplets(triplets: &Triplets, fraction: f64, seed: u64) -> Result<Split> {
    let (learn, held_out) = hold_out_anchors(triplets, fraction, seed)?;
    Ok(Split {
        learn,
        held_out: HeldOut::Triplets(held_out),
    })
}

/// Queries that have triplets and a relevant document may be held out; others have no nDCG that could change.
fn of_judgments(judgments: &Judgments, fraction: f64, seed: u64) -> Result<Split> {
    let triplets = judgments.triplets();
    let anchors: HashSet<u32> = triplets.iter().map(|t| t.0).collect();
    let gains = |query| (query, judgments.gains(query));
    let ranked: Vec<(u32, Vec<(u32, f64)>)> = (judgments.queries().iter().map(gains))
        .filter(|(query, gains)| {
            anchors.contains(&query.query) && gains.iter().any(|judged| judged.1 > 0.0)
        })
        .map(|(query, gains)| (query.query, gains))
        .collect();
    let held = draw(ranked.iter().map(|r| r.0), fraction, seed, "queries")?;
    let (_, learn) = parted(&triplets, &held);
    if learn.is_empty() {
        return Err(too_few(fraction, ranked.len(), "queries"));
    }
    let ranked = ranked.into_iter().filter(|r| held.contains(&r.0));
    Ok(Split {
        learn,
        held_out: HeldOut::Queries(ranked.collect()),
    })
}

/// A random fraction of different rows.
fn draw(
    rows: impl Iterator<Item = u32>,
    fraction: f64,
    seed: u64,
    what: &str,
) -> Result<HashSet<u32>> {
    let mut rows: Vec<u32> = rows.collect();
    rows.sort_unstable();
    rows.dedup();
    let n_held = (fraction * rows.len() as f64).round() as usize;
    if n_held == 0 || n_held >= rows.len() {
        return Err(too_few(fraction, rows.len(), what));
    }
    shuffle(&mut rng(seed, STREAM), &mut rows);
    Ok(rows.into_iter().take(n_held).collect())
}

fn too_few(fraction: f64, n: usize, what: &str) -> Error {
    let wanted = "that leaves some to train on and some to validate with";
    let wanted = format!("a fraction of the {n} {what} {wanted}");
    Error::param("holdout", fraction, wanted)
}

/// The triplets of these anchors, and those of the others, in their order.
pub(super) fn parted(triplets: &Triplets, anchors: &HashSet<u32>) -> (Triplets, Triplets) {
    let (mut inside, mut outside) = (Triplets::new(), Triplets::new());
    for (t, (anchor, near, far)) in triplets.iter().enumerate() {
        let part = match anchors.contains(&anchor) {
            true => &mut inside,
            false => &mut outside,
        };
        part.push_weighted(anchor, near, far, triplets.weight(t));
    }
    (inside, outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SparseRow;
    use crate::model::ValidationMeasure;
    use crate::random::below;
    use crate::train::{Labeled, train};
    use proptest::prelude::*;

    fn weighted(triplets: &Triplets) -> Vec<((u32, u32, u32), f64)> {
        let weights = (0..triplets.len()).map(|t| triplets.weight(t));
        triplets.iter().zip(weights).collect()
    }

    /// Random rows of small whole numbers, and triplets by the dot product of their first three features, which learning
    /// can find, with some noise.
    fn planted() -> (Rows, Triplets) {
        let mut random = rng(7, 0);
        let mut rows = Rows::new(12);
        for _ in 0..60 {
            let values: Vec<f64> = (0..12).map(|_| below(&mut random, 3) as f64).collect();
            let filled: Vec<u32> = (0..12).filter(|&j| values[j as usize] > 0.0).collect();
            let values: Vec<f64> = filled.iter().map(|&j| values[j as usize]).collect();
            rows.push(crate::SparseRow::new(&filled, &values));
        }
        let mut triplets = Triplets::new();
        while triplets.len() < 400 {
            let [anchor, near, far] = [0; 3].map(|_| below(&mut random, 60));
            let score = |row: usize| -> f64 {
                (0..3)
                    .map(|j| rows.row(anchor).get(j) * rows.row(row).get(j))
                    .sum()
            };
            // One in ten is wrong, so that learning does not end by itself.
            if score(near) > score(far) || below(&mut random, 10) == 0 && near != far {
                let weight = 1.0 + below(&mut random, 3) as f64;
                triplets.push_weighted(anchor as u32, near as u32, far as u32, weight);
            }
        }
        (rows, triplets)
    }

    fn labeled(rows: &Rows) -> Labeled<'_> {
        Labeled {
            rows: rows.view(),
            labels: None,
            index_base: crate::IndexBase::Zero,
        }
    }

    fn config(lambda: &[f64]) -> TrainConfig {
        let mut config = TrainConfig::new(1.0);
        config.lambda = lambda.to_vec();
        config.validation = Validation::HoldoutAnchors(0.3);
        config.max_iter = 60;
        config.eval_every = 5;
        config
    }

    /// x' M z of the matrix as it is stored, over all pairs of features.
    fn dense_score(model: &crate::Model, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        let learned = model.similarity();
        let entries = learned.matrix();
        let mut sum = learned.base() * (0..12).map(|j| a.get(j) * b.get(j)).sum::<f64>();
        for (i, j, value) in entries {
            sum += value * a.get(i) * b.get(j);
        }
        sum
    }

    #[test]
    fn the_error_is_that_of_the_held_out_triplets_and_the_best_iterate_is_kept() {
        let (rows, triplets) = planted();
        let mut data = TrainData::new(labeled(&rows));
        data.triplets = Some(&triplets);
        let config = config(&[1.0, 30.0]);
        let trained = train(&data, &config, &mut ()).unwrap();
        let HeldOut::Triplets(held) = split(&data, &config).unwrap().unwrap().held_out else {
            panic!("triplets");
        };
        assert_eq!(trained.run.n_triplets + held.len(), triplets.len());
        let evaluations = &trained.model.parts().evaluations;
        assert!(evaluations.len() > 3);
        for &(iteration, error) in evaluations {
            let model = trained.model.at(iteration as usize).unwrap();
            let rows = model.preprocess().apply(&rows);
            let (mut right, mut total) = (0.0, 0.0);
            for (t, (a, near, far)) in held.iter().enumerate() {
                let row = |row: u32| rows.row(row as usize);
                let margin =
                    dense_score(&model, row(a), row(near)) - dense_score(&model, row(a), row(far));
                let weight = held.weight(t);
                total += weight;
                if margin.abs() < 1e-9 {
                    right += 0.5 * weight;
                } else if margin > 0.0 {
                    right += weight;
                }
            }
            assert!(
                (error - (1.0 - right / total)).abs() < 1e-9,
                "{iteration}: {error}"
            );
        }
        let lowest = evaluations
            .iter()
            .map(|e| e.1)
            .fold(f64::INFINITY, f64::min);
        assert_eq!(trained.run.valid_error, Some(lowest));
        let first = evaluations.iter().find(|e| e.1 == lowest).unwrap().0;
        assert_eq!(trained.model.chosen(), first as usize);
        let best = trained.grid.iter().filter_map(|run| run.valid_error);
        assert_eq!(best.fold(f64::INFINITY, f64::min), lowest);
        assert!(lowest < 0.3, "{lowest}");
        let config = &trained.model.parts().config;
        assert_eq!(config.validation, Validation::HoldoutAnchors(0.3));
        assert_eq!(
            config.validation_measure(),
            Some(ValidationMeasure::TripletError)
        );
    }

    #[test]
    fn patience_ends_a_run_and_an_ensemble_has_an_error() {
        let (rows, triplets) = planted();
        let mut data = TrainData::new(labeled(&rows));
        data.triplets = Some(&triplets);
        let mut config = config(&[30.0]);
        config.max_iter = 5_000;
        config.patience = Some(20);
        let trained = train(&data, &config, &mut ()).unwrap();
        assert_eq!(trained.run.stop, crate::Stop::Patience);
        assert_eq!(trained.run.iterations, trained.model.chosen() + 20);
        config.n_estimators = 2;
        assert!(
            train(&data, &config, &mut ())
                .unwrap()
                .run
                .valid_error
                .is_some()
        );
        config.mining_rounds = 1;
        let error = train(&data, &config, &mut ()).unwrap_err().to_string();
        assert_eq!(
            error,
            "`mining_rounds` is 1 with held-out anchors, expected 0"
        );
    }

    #[test]
    fn the_error_of_queries_is_one_minus_their_mean_ndcg() {
        let rows =
            Rows::from_parts(1, vec![0, 1, 2, 3, 4], vec![0; 4], vec![1.0, 3.0, 2.0, 1.0]).unwrap();
        // Ranked by value: rows 1, 2, 3. The second query has its documents in the best order.
        let held = HeldOut::Queries(vec![
            (0, vec![(1, 0.0), (2, 1.0), (3, 2.0)]),
            (0, vec![(1, 1.0), (2, 0.0)]),
        ]);
        let first = (1.0 / 3f64.log2() + 2.0 / 4f64.log2()) / (2.0 + 1.0 / 3f64.log2());
        let error = held.error(&rows, &crate::Dot);
        assert!((error - (1.0 - (first + 1.0) / 2.0)).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn no_anchor_is_in_both_parts_and_no_triplet_is_lost(
            list in prop::collection::vec((0u32..12, 0u32..12, 1u32..12, 1u8..4), 1..80),
            fraction in 0.05f64..0.95,
            seed in 0u64..1000,
        ) {
            let mut triplets = Triplets::new();
            for (anchor, near, step, weight) in list {
                triplets.push_weighted(anchor, near, (near + step) % 12, f64::from(weight));
            }
            let anchors: HashSet<u32> = triplets.iter().map(|t| t.0).collect();
            let n_held = (fraction * anchors.len() as f64).round() as usize;
            match of_triplets(&triplets, fraction, seed) {
                Err(_) => prop_assert!(n_held == 0 || n_held == anchors.len()),
                Ok(Split { learn, held_out: HeldOut::Triplets(held) }) => {
                    let of = |part: &Triplets| part.iter().map(|t| t.0).collect::<HashSet<u32>>();
                    prop_assert!(of(&learn).is_disjoint(&of(&held)));
                    prop_assert_eq!(of(&held).len(), n_held);
                    let mut all = [weighted(&learn), weighted(&held)].concat();
                    let mut given = weighted(&triplets);
                    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
                    given.sort_by(|a, b| a.partial_cmp(b).unwrap());
                    prop_assert_eq!(all, given);
                }
                Ok(_) => prop_assert!(false, "triplets became queries"),
            }
        }

        #[test]
        fn judgments_of_held_out_queries_are_not_learned_from(
            list in prop::collection::btree_map((0u32..8, 8u32..14), -1i8..4, 1..60),
            fraction in 0.2f64..0.8,
            low in any::<bool>(),
        ) {
            let text: String = list
                .iter()
                .map(|((query, document), grade)| format!("{query} {document} {grade}\n"))
                .collect();
            let format = if low { TripletFormat::JudgmentsLow } else { TripletFormat::Judgments };
            let judgments = Judgments::parse("q".as_ref(), text.as_bytes(), format, 14).unwrap();
            if let Ok(split) = of_judgments(&judgments, fraction, 3) {
                let HeldOut::Queries(held) = split.held_out else { panic!("queries") };
                let queries: HashSet<u32> = held.iter().map(|q| q.0).collect();
                prop_assert!(!held.is_empty() && !split.learn.is_empty());
                prop_assert!(split.learn.iter().all(|t| !queries.contains(&t.0)));
                let kept = judgments.triplets().iter().filter(|t| !queries.contains(&t.0)).count();
                prop_assert_eq!(split.learn.len(), kept);
                for (query, gains) in held {
                    let judged = list.keys().filter(|key| key.0 == query).count();
                    prop_assert_eq!(gains.len(), judged);
                    prop_assert!(gains.iter().any(|judged| judged.1 > 0.0));
                }
            }
        }
    }

    #[test]
    fn the_same_seed_holds_out_the_same_anchors_and_another_others() {
        let mut triplets = Triplets::new();
        (0..40).for_each(|anchor| triplets.push(anchor, 41, 42));
        let held = |seed| draw(triplets.iter().map(|t| t.0), 0.5, seed, "anchors").unwrap();
        assert_eq!(held(1), held(1));
        assert_ne!(held(1), held(2));
    }

    #[test]
    fn one_anchor_cannot_be_parted() {
        let mut triplets = Triplets::new();
        triplets.push(0, 1, 2);
        let error = of_triplets(&triplets, 0.5, 0).err().unwrap().to_string();
        assert_eq!(
            error,
            "`holdout` is 0.5, expected a fraction of the 1 anchors that leaves some to train on and some to validate with"
        );
    }
}
