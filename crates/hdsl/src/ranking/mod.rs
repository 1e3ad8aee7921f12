//! Ranking from judgments: learn a similarity of queries and documents, and measure it on queries it was not learned from.
//!
//! The similarity is learned in two steps. First M of xᵀ M x' is learned from triplets (query, answer, wrong answer), as the
//! average of several models with different draws of wrong answers. Then β <x, x'> is added, where x are unit rows of term
//! weights, so that S(x, x') / √(S(x, x) S(x', x')) is between the plain cosine (large β) and the learned one (β = 0). β is
//! given as a share: β / mean S_M(d, d) over the documents d.
//!
//! | file | job |
//! |---|---|
//! | `judgments.rs` | which documents answer which queries |
//! | `measures.rs` | nDCG@10, average precision, the test of a difference |
//! | `supervision.rs` | triplets from judgments, and from pairs of rows that belong together |
//! | `learner.rs` | learning for one setting, and the choice among settings by cross-validation |

mod judgments;
mod learner;
mod measures;
mod supervision;

pub use judgments::{Ids, Judged, Judgments};
pub use measures::{Quality, p_value};

use crate::data::{Preprocess, Preprocessor, Rows};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::observer::{Event, Observer};
use crate::random::{rng, shuffle};
use crate::similarity::Dot;
use learner::Learner;
use measures::{evaluate, mean};
use std::time::{Duration, Instant};

/// Documents, queries and judgments.
#[derive(Clone, Copy, Debug)]
pub struct Collection<'a> {
    /// Raw rows of the documents. Preprocessing is fitted on them.
    pub documents: &'a Rows,
    /// Raw rows of the queries, with the features of the documents.
    pub queries: &'a Rows,
    /// Which documents answer which queries.
    pub judgments: &'a Judgments,
    /// Pairs of raw rows that belong together, such as titles and the texts below them: row i of the one is more similar to
    /// row i of the other than to other rows. They are supervision that does not need any judgment.
    pub pairs: Option<&'a (Rows, Rows)>,
    /// Names of features, by number.
    pub names: Option<&'a [String]>,
}

/// How a ranking is learned and measured. Where a list has several values, one is chosen by cross-validation over the
/// training queries.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RankConfig {
    /// Preprocessing, fitted on the documents; rows have unit length after it.
    pub preprocess: Preprocess,
    /// λ to try; none: a quarter of the number of features that documents have, and half and twice that.
    pub lambda: Vec<f64>,
    /// Weights of the pairs to try, as multiples of the weight of the judgments. Without pairs they have no effect. The first
    /// is the usual one: another is chosen only if it is better by more than a standard error.
    pub pair_weights: Vec<f64>,
    /// Shares of the base similarity to try.
    pub base_shares: Vec<f64>,
    /// Numbers of iterations per model to try. They cost no more than the largest of them. The first is the usual one, as
    /// for the weights of pairs.
    pub max_iter: Vec<usize>,
    /// Models that are averaged.
    pub n_estimators: usize,
    /// Folds over queries that the ranking is measured by; 0: it is not measured.
    pub folds: usize,
    /// Folds over the training queries that settings are chosen by.
    pub inner_folds: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time limit of the whole: what was not tried by then cannot be chosen.
    pub time: Option<Duration>,
}

impl Default for RankConfig {
    fn default() -> Self {
        Self {
            preprocess: Preprocess::Tfidf,
            lambda: Vec::new(),
            pair_weights: vec![3.0],
            base_shares: vec![0.5, 1.0, 2.0, 4.0, 8.0],
            max_iter: vec![1600],
            n_estimators: 4,
            folds: 5,
            inner_folds: 5,
            seed: 0,
            time: None,
        }
    }
}

impl RankConfig {
    /// More settings to choose from than the default has: weights of the pairs, and numbers of iterations.
    pub fn search() -> Self {
        Self {
            pair_weights: vec![3.0, 10.0],
            max_iter: vec![1600, 400, 800, 3200],
            ..Self::default()
        }
    }

    fn check(&self, collection: &Collection<'_>) -> Result<()> {
        let above_zero = "finite numbers above 0";
        for (name, list, may_be_empty) in [
            ("lambda", &self.lambda, true),
            ("base_shares", &self.base_shares, false),
        ] {
            let is_good = |x: &f64| x.is_finite() && *x > 0.0;
            if !list.iter().all(is_good) || (list.is_empty() && !may_be_empty) {
                return Err(Error::param(name, format!("{list:?}"), above_zero));
            }
        }
        let is_good = |x: &f64| x.is_finite() && *x >= 0.0;
        if self.pair_weights.is_empty() || !self.pair_weights.iter().all(is_good) {
            let value = format!("{:?}", self.pair_weights);
            return Err(Error::param(
                "pair_weights",
                value,
                "finite numbers from 0 on",
            ));
        }
        let above_zero = "a whole number above 0";
        if self.max_iter.is_empty() || self.max_iter.contains(&0) {
            let value = format!("{:?}", self.max_iter);
            return Err(Error::param("max_iter", value, "whole numbers above 0"));
        }
        if self.n_estimators == 0 {
            return Err(Error::param("n_estimators", 0, above_zero));
        }
        if !matches!(
            self.preprocess,
            Preprocess::Tfidf | Preprocess::Bm25 | Preprocess::Unit | Preprocess::MaxUnit
        ) {
            let want = "tfidf, bm25, unit or max+unit, after which rows have unit length";
            return Err(Error::param("preprocess", self.preprocess, want));
        }
        let n = collection.judgments.queries().len();
        // Inner folds are over the training queries of a fold.
        let fewest = if self.folds > 0 {
            n - n.div_ceil(self.folds.max(1))
        } else {
            n
        };
        if self.folds == 1 || self.folds > n {
            let want = format!("0, or 2 to {n}, the number of queries with answers");
            return Err(Error::param("folds", self.folds, want));
        }
        if self.inner_folds < 2 || self.inner_folds > fewest {
            let want = format!("2 to {fewest}, the number of queries to learn from");
            return Err(Error::param("inner_folds", self.inner_folds, want));
        }
        check_rows(collection)
    }
}

fn check_rows(collection: &Collection<'_>) -> Result<()> {
    let n_queries = collection.queries.n_rows();
    if collection.judgments.n_queries() != n_queries {
        return Err(Error::data(format!(
            "there are judgments of {} queries, but {n_queries} queries",
            collection.judgments.n_queries()
        )));
    }
    match collection.pairs {
        Some((left, right)) if left.n_rows() != right.n_rows() => Err(Error::data(format!(
            "the pairs have {} rows on the left and {} on the right, expected as many",
            left.n_rows(),
            right.n_rows()
        ))),
        _ => Ok(()),
    }
}

/// The settings that a cross-validation has chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RankSetting {
    /// λ.
    pub lambda: f64,
    /// The weight of the pairs, relative to the judgments; 0 without pairs.
    pub pair_weight: f64,
    /// Iterations per model.
    pub max_iter: usize,
    /// The share of the base similarity.
    pub base_share: f64,
    /// nDCG@10 of that cross-validation.
    pub ndcg: f64,
}

/// The rankings of held-out queries: one quality per query, in the order of `queries`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HeldOut {
    /// The queries that have answers.
    pub queries: Vec<u32>,
    /// Of the cosine of tf-idf rows.
    pub tfidf: Vec<Quality>,
    /// Of the cosine of rows with BM25's term weights.
    pub bm25: Vec<Quality>,
    /// Of the similarity learned from the other folds, with settings chosen there.
    pub learned: Vec<Quality>,
    /// The settings of each fold; none where the plain similarity was as good in the cross-validation that chooses.
    pub settings: Vec<Option<RankSetting>>,
}

/// A comparison of the learned similarity with another one, over the same queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Mean nDCG@10 of the learned similarity minus that of the other.
    pub difference: f64,
    /// Two-sided p value of a paired randomization test over the queries.
    pub p_value: f64,
}

impl Comparison {
    /// nDCG@10 of two rankings of the same queries.
    pub fn of(learned: &[Quality], other: &[Quality]) -> Self {
        let pairs = learned.iter().zip(other);
        let differences: Vec<f64> = pairs.map(|(a, b)| a.ndcg - b.ndcg).collect();
        Self {
            difference: differences.iter().sum::<f64>() / differences.len().max(1) as f64,
            p_value: p_value(&differences),
        }
    }

    /// Whether the learned similarity is better, and not by chance at a level of 5%.
    pub fn is_better(&self) -> bool {
        self.difference > 0.0 && self.p_value < 0.05
    }
}

/// What [`rank`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ranked {
    /// The similarity learned from all queries, or the plain similarity of preprocessed rows if learning is not better. Its
    /// prediction rule has cosine normalization.
    pub model: Model,
    /// Its settings; none if nothing was learned.
    pub setting: Option<RankSetting>,
    /// The quality on held-out queries, if there were folds, and the observer did not stop them.
    pub held_out: Option<HeldOut>,
}

/// The share of its time that a choice of settings may take; the rest is for learning with them.
const CHOICE: f64 = 0.75;

/// Learns a similarity of queries and documents, and measures it by cross-validation over queries: everything, including
/// the choice of settings, is learned from the other folds. Where no setting is better than the plain similarity, that is
/// the result.
///
/// When the observer asks to stop, the result has no quality on held-out queries, and the settings are the best so far.
pub fn rank(
    collection: &Collection<'_>,
    config: &RankConfig,
    observer: &mut dyn Observer,
) -> Result<Ranked> {
    let started = Instant::now();
    config.check(collection)?;
    let learner = Learner::new(collection, config)?;
    let queries = collection.judgments.queries();
    // Every fold and the final choice have the same time.
    let end = |part: usize| {
        let share = (part as f64 + CHOICE) / (config.folds + 1) as f64;
        started.checked_add(config.time?.mul_f64(share))
    };
    let mut held_out = match config.folds {
        0 => None,
        _ => Some(baselines(collection, &queries)?),
    };
    let is_whole = match &mut held_out {
        Some(measured) => measure(&learner, &queries, measured, &end, observer)?,
        None => true,
    };
    let setting = match (is_whole, &held_out) {
        // What was chosen for the last fold is good enough if there is no time to choose by all queries.
        (false, Some(measured)) => measured.settings.last().copied().flatten(),
        _ => learner.choose(&queries, observer.cancel_token().until(end(config.folds)))?,
    };
    Ok(Ranked {
        model: learner.model(&queries, setting.as_ref())?,
        setting,
        held_out: held_out.filter(|_| is_whole),
    })
}

/// The quality of what is learned from the other folds, fold by fold. Returns whether the observer let all of them be done.
fn measure(
    learner: &Learner<'_>,
    queries: &[u32],
    measured: &mut HeldOut,
    end: &dyn Fn(usize) -> Option<Instant>,
    observer: &mut dyn Observer,
) -> Result<bool> {
    let config = learner.config;
    let folds = folds(queries, config.folds, config.seed, OUTER);
    for (at, fold) in folds.iter().enumerate() {
        let rest: Vec<u32> = outside(queries, fold);
        let cancel = observer.cancel_token();
        let setting = learner.choose(&rest, cancel.until(end(at)))?;
        let learned = match learner.quality(&rest, setting.as_ref(), fold, cancel) {
            Err(Error::Stopped) => return Ok(false),
            learned => learned?,
        };
        for (query, quality) in fold.iter().zip(learned) {
            let at = queries.binary_search(query).expect("a query of the folds");
            measured.learned[at] = quality;
        }
        measured.settings.push(setting);
        let done = Event::FoldDone {
            done: at + 1,
            of: config.folds + 1,
        };
        if observer.on_event(&done).is_break() || observer.cancel_token().is_cancelled() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What ranks without learning; nothing is learned yet.
fn baselines(collection: &Collection<'_>, queries: &[u32]) -> Result<HeldOut> {
    let cosine = |kind: Preprocess| {
        let preprocessor = Preprocessor::fit(kind, collection.documents);
        let [documents, asked] =
            [collection.documents, collection.queries].map(|rows| preprocessor.apply(rows));
        evaluate(&Dot, &documents, &asked, queries, collection.judgments)
    };
    Ok(HeldOut {
        queries: queries.to_vec(),
        tfidf: cosine(Preprocess::Tfidf)?,
        bm25: cosine(Preprocess::Bm25)?,
        learned: vec![Quality::default(); queries.len()],
        settings: Vec::new(),
    })
}

/// Random streams of the folds.
const OUTER: u64 = 42;
const INNER: u64 = 43;

/// Queries in random order, dealt to so many folds; each fold by increasing number.
fn folds(queries: &[u32], n: usize, seed: u64, stream: u64) -> Vec<Vec<u32>> {
    let mut shuffled = queries.to_vec();
    shuffle(&mut rng(seed, stream), &mut shuffled);
    let fold = |k: usize| {
        let mut fold: Vec<u32> = shuffled.iter().copied().skip(k).step_by(n).collect();
        fold.sort_unstable();
        fold
    };
    (0..n).map(fold).collect()
}

/// The queries that are not in a fold, both by increasing number.
fn outside(queries: &[u32], fold: &[u32]) -> Vec<u32> {
    let is_outside = |query: &u32| fold.binary_search(query).is_err();
    queries.iter().copied().filter(is_outside).collect()
}

#[cfg(test)]
mod tests;
