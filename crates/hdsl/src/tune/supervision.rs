//! Supervision other than labels: given triplets, clicks or judgments. Their anchors (queries) are divided into folds, so that
//! no anchor is both learned from and validated with.

use super::folds::N_FOLDS;
use super::journal::Losses;
use super::params::ValidationScheme;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::measures::RankedGains;
use crate::parallel;
use crate::random;
use crate::similarity::{Dot, Similarity};
use crate::triplets::{Judgments, TripletFormat, TripletSource, Triplets};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// The random stream of folds of anchors.
const STREAM: u64 = 0x616e_6368;

/// The length of a ranking that nDCG is computed of.
const RANKED: usize = 10;

/// What is given instead of labels.
pub(super) struct Given {
    triplets: Triplets,
    units: Vec<Unit>,
    /// The documents of judgments; empty for triplets.
    documents: Vec<u32>,
}

/// What one loss is computed on: the triplets of an anchor, or the judged documents of a query with their gains.
#[derive(Clone)]
enum Unit {
    Anchor(u32, Triplets),
    Query(u32, Vec<(u32, f64)>),
}

impl Unit {
    fn row(&self) -> u32 {
        match self {
            Self::Anchor(row, _) | Self::Query(row, _) => *row,
        }
    }
}

impl Given {
    /// Triplets, by their anchors.
    pub(super) fn triplets(triplets: &Triplets) -> Self {
        let mut places = HashMap::new();
        let mut units: Vec<(u32, Triplets)> = Vec::new();
        for (t, (anchor, near, far)) in triplets.iter().enumerate() {
            let at = *places.entry(anchor).or_insert_with(|| {
                units.push((anchor, Triplets::new()));
                units.len() - 1
            });
            units[at]
                .1
                .push_weighted(anchor, near, far, triplets.weight(t));
        }
        let units = units.into_iter().map(|(row, of)| Unit::Anchor(row, of));
        Self {
            triplets: triplets.clone(),
            units: units.collect(),
            documents: Vec::new(),
        }
    }

    /// Those of a file, if the source is one.
    pub(super) fn read(source: &TripletSource, n_rows: usize) -> Result<Option<Self>> {
        use TripletFormat::{Judgments as High, JudgmentsLow as Low};
        match source {
            TripletSource::File { format, path } if matches!(format, High | Low) => {
                let judgments = Judgments::read(path, *format, n_rows)?;
                Ok(Some(Self::judgments(&judgments)))
            }
            TripletSource::File { .. } => {
                let triplets = source.read(n_rows)?;
                Ok(Some(Self::triplets(&triplets)))
            }
            _ => Ok(None),
        }
    }

    /// Queries with a relevant document have an nDCG that can change.
    fn judgments(judgments: &Judgments) -> Self {
        let queries = judgments.queries().iter();
        let units = queries.filter_map(|query| {
            let gains = judgments.gains(query);
            let has_relevant = gains.iter().any(|judged| judged.1 > 0.0);
            has_relevant.then_some(Unit::Query(query.query, gains))
        });
        Self {
            units: units.collect(),
            triplets: judgments.triplets(),
            documents: judgments.documents(),
        }
    }

    /// The measure that the losses are of.
    pub(super) fn measure(&self) -> &'static str {
        match self.documents.is_empty() {
            true => "1 - accuracy of triplets",
            false => "1 - nDCG@10",
        }
    }

    pub(super) fn n_units(&self) -> usize {
        self.units.len()
    }

    /// The anchors of each fold, as numbers of units.
    pub(super) fn folds(
        &self,
        scheme: ValidationScheme,
        seed: u64,
        repeats: usize,
    ) -> Result<Vec<Vec<u32>>> {
        let n = self.units.len();
        let (n_folds, repeats) = match scheme {
            ValidationScheme::Holdout(fraction) => {
                let held = (fraction * n as f64).round() as usize;
                if held == 0 || held >= n {
                    return Err(too_few(n));
                }
                return Ok(vec![shuffled(n, seed).into_iter().take(held).collect()]);
            }
            ValidationScheme::CrossValidation(count) => (count, 1),
            ValidationScheme::Auto => (N_FOLDS.min(n), repeats),
        };
        if n_folds < 2 || n_folds > n {
            return Err(too_few(n));
        }
        let mut lists = Vec::new();
        for repeat in 0..repeats as u64 {
            let order = shuffled(n, seed.wrapping_add(repeat));
            for fold in 0..n_folds {
                lists.push(order.iter().copied().skip(fold).step_by(n_folds).collect());
            }
        }
        Ok(lists)
    }

    /// One fold: the triplets of all other anchors to learn from, and the losses of these units.
    pub(super) fn part(&self, held: &[u32]) -> Result<(Triplets, Held)> {
        let units: Vec<Unit> = held
            .iter()
            .map(|&unit| self.units[unit as usize].clone())
            .collect();
        let anchors: HashSet<u32> = units.iter().map(Unit::row).collect();
        let mut learn = Triplets::new();
        for (t, (anchor, near, far)) in self.triplets.iter().enumerate() {
            if !anchors.contains(&anchor) {
                learn.push_weighted(anchor, near, far, self.triplets.weight(t));
            }
        }
        if learn.is_empty() {
            return Err(too_few(self.units.len()));
        }
        Ok((
            learn,
            Held {
                units,
                documents: self.documents.clone(),
            },
        ))
    }
}

fn too_few(n: usize) -> Error {
    Error::data(format!(
        "there are triplets of {n} anchors, too few to learn from some and validate with others"
    ))
}

/// The numbers below n in random order.
fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    random::shuffle(&mut random::rng(seed, STREAM), &mut order);
    order
}

/// Supervision that nothing is learned from.
#[derive(Clone)]
pub(super) struct Held {
    units: Vec<Unit>,
    documents: Vec<u32>,
}

impl Held {
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// The losses of a similarity under the normalization of each rule: the share of an anchor's triplets that it gets wrong,
    /// where a tie counts one half; or 1 - nDCG@10 of a query's ranking of all judged documents.
    pub(super) fn losses(
        &self,
        rows: &Rows,
        similarity: &dyn Similarity,
        rules: &[PredictionRule],
        first: u32,
    ) -> Vec<Losses> {
        // The maps of the similarity are applied once; what is left of it is a dot product.
        let (items, queries) = (similarity.items(rows), similarity.queries(rows));
        let of_rule = |rule: &PredictionRule| {
            let normalized = rule.normalization.of(&Dot);
            let (items, queries) = (normalized.items(&items), normalized.queries(&queries));
            let score = |x: u32, z: u32| queries.row(x as usize).dot(items.row(z as usize));
            let loss = |at: usize| self.loss(&self.units[at], &score);
            let sizes = parallel::map_blocks(self.units.len(), 8, loss);
            Losses::sized((first..).zip(sizes))
        };
        rules.iter().map(of_rule).collect()
    }

    fn loss(&self, unit: &Unit, score: &impl Fn(u32, u32) -> f64) -> f64 {
        match unit {
            Unit::Anchor(_, triplets) => {
                let lost = triplets.iter().enumerate().map(|(t, (anchor, near, far))| {
                    let lost = match score(anchor, near).partial_cmp(&score(anchor, far)) {
                        Some(Ordering::Greater) => 0.0,
                        Some(Ordering::Equal) => 0.5,
                        _ => 1.0,
                    };
                    lost * triplets.weight(t)
                });
                lost.sum::<f64>() / triplets.total_weight()
            }
            Unit::Query(query, gains) => {
                let is_judged: HashMap<u32, f64> = gains.iter().copied().collect();
                let documents = self.documents.iter().filter(|&row| row != query);
                let judged = documents.map(|&row| {
                    let gain = is_judged.get(&row).copied().unwrap_or(0.0);
                    (score(*query, row), gain)
                });
                let (scores, gains): (Vec<f64>, Vec<f64>) = judged.unzip();
                1.0 - RankedGains::by_scores(&scores, &gains).ndcg(RANKED)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::{TripletAccuracy, rank_documents};
    use crate::similarity::Normalization;

    fn rows() -> Rows {
        let mut random = random::rng(3, 1);
        let n = 24;
        let values = (0..3 * n).map(|_| random::below(&mut random, 4) as f64 + 1.0);
        let indices = (0..n).flat_map(|row| [row % 3, 3 + row % 4, 7 + row % 5]);
        let starts = (0..=n as usize).map(|row| 3 * row).collect();
        Rows::from_parts(12, starts, indices.collect(), values.collect()).unwrap()
    }

    fn rules() -> Vec<PredictionRule> {
        let rule = |normalization| PredictionRule {
            normalization,
            ..PredictionRule::default()
        };
        Normalization::ALL.into_iter().map(rule).collect()
    }

    #[test]
    fn no_anchor_is_in_both_parts_and_losses_are_those_of_the_measures() {
        let rows = rows();
        let mut triplets = Triplets::new();
        for t in 0..60u32 {
            triplets.push_weighted(t % 8, 8 + t % 7, 15 + t % 9, f64::from(1 + t % 3));
        }
        let given = Given::triplets(&triplets);
        let lists = given.folds(ValidationScheme::Auto, 5, 2).unwrap();
        assert_eq!(lists.len(), 10);
        let mut seen = HashSet::new();
        for list in &lists[..5] {
            let (learn, held) = given.part(list).unwrap();
            let held_anchors: HashSet<u32> = held.units.iter().map(Unit::row).collect();
            assert!(learn.iter().all(|t| !held_anchors.contains(&t.0)));
            seen.extend(held_anchors);
            for (losses, rule) in held.losses(&rows, &Dot, &rules(), 0).iter().zip(rules()) {
                let found: HashMap<u32, f64> = losses.iter().collect();
                for (at, unit) in (0..).zip(&held.units) {
                    let Unit::Anchor(_, of) = unit else {
                        panic!("triplets have anchors");
                    };
                    let normalized = rule.normalization.of(&Dot);
                    let wanted = 1.0 - TripletAccuracy::of(&normalized, &rows, of).accuracy();
                    let loss = found.get(&at).copied().unwrap_or(0.0);
                    assert!((loss - wanted).abs() < 1e-6, "{loss} {wanted}");
                }
            }
        }
        assert_eq!(seen.len(), 8);
    }

    #[test]
    fn the_loss_of_a_query_is_that_of_its_ranking_of_all_documents() {
        let rows = rows();
        let text: String = (0..40u32)
            .map(|line| format!("{} {} {}\n", line % 6, 6 + line / 6 * 5 % 18, line % 4))
            .collect();
        let judged = Judgments::parse(
            "inline".as_ref(),
            text.as_bytes(),
            TripletFormat::Judgments,
            24,
        );
        let judgments = judged.unwrap();
        let given = Given::judgments(&judgments);
        let all: Vec<u32> = (0..given.n_units() as u32).take(4).collect();
        let (_, held) = given.part(&all).unwrap();
        let losses = &held.losses(&rows, &Dot, &rules()[..1], 0)[0];
        let found: HashMap<u32, f64> = losses.iter().collect();
        for (at, unit) in (0..).zip(&held.units) {
            let Unit::Query(query, gains) = unit else {
                panic!("judgments have queries");
            };
            let query = [(*query, gains.clone())];
            let documents = judgments.documents();
            let ranked = rank_documents(&Dot, &rows, &query, Some(&documents));
            let wanted = 1.0 - ranked[0].ndcg(10);
            let loss = found.get(&at).copied().unwrap_or(0.0);
            assert!((loss - wanted).abs() < 1e-6, "{loss} {wanted}");
        }
    }
}
