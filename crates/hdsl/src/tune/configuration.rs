//! The configurations that are searched over, and the prediction rules tried on each path.

use super::folds::Folds;
use super::params::{Ablation, Preset, TuneConfig};
use super::search::Search;
use super::trial::Grow;
use crate::data::{Labels, Preprocess, Preprocessor, Rows};
use crate::error::{Error, Result};
use crate::knn::{PredictionRule, Vote};
use crate::model::{BaseWeight, TrainConfig};
use crate::objective::LossKind;
use crate::similarity::Normalization;
use crate::train::base::{base_weight, lambda_alone, lambda_beside};
use crate::triplets::TripletSource;

/// Random triplets in all, but at least 10 and at most 100 per row.
const RANDOM_TRIPLETS: usize = 20_000;

/// Without a base: λ times the mean square of the stored values, for the first configurations. In this unit, good values
/// of λ differ little between data sets.
const RELATIVE_LAMBDAS: [f64; 2] = [100.0, 1000.0];

/// With a base: the mean base margin of the triplets, and trace(M) relative to trace(β I).
const BASES: [(f64, f64); 3] = [(3.0, 0.03), (10.0, 0.03), (3.0, 0.1)];

/// The number of preprocessings of the base: the best plain similarities.
const BASE_KINDS: usize = 2;

/// The factor from the best λ to its neighbors on a finer grid: half a step of the first one.
const FINER: f64 = 3.162;

/// Iterations of the first rung; later rungs double them.
const FIRST_ITER: usize = 128;

/// Models of an ensemble, and the fraction of the rows that each learns from.
const N_ESTIMATORS: usize = 5;
const SUBSAMPLE: f64 = 0.7;

/// The paper's triplets.
const PAPER_TRIPLETS: TripletSource = TripletSource::Neighbors {
    targets: 3,
    impostors: 5,
};

/// The preprocessings whose dot products are the references.
pub(super) fn references(params: &TuneConfig, rows: &Rows) -> Vec<Preprocess> {
    let mut kinds = vec![Preprocess::None, Preprocess::Unit];
    if params.preset == Preset::Best {
        kinds.extend([Preprocess::Tfidf, Preprocess::MaxUnit, Preprocess::Max]);
        kinds.push(Preprocess::Bm25);
    } else {
        kinds.push(Preprocess::Tfidf);
    }
    let is_dense = Preprocess::Auto.resolved(rows) == Preprocess::MaxUnit;
    let is_changed = Preprocessor::fit(Preprocess::Max, rows).apply(rows) != *rows;
    kinds.retain(|&kind| match kind {
        Preprocess::Bm25 if is_dense => false,
        // Where the maxima change nothing, as in rows of zeros and ones, these are other references.
        Preprocess::Max | Preprocess::MaxUnit => is_changed,
        _ => kind.check(rows).is_ok(),
    });
    kinds
}

/// The configuration of a reference.
pub(super) fn reference(params: &TuneConfig, preprocess: Preprocess) -> TrainConfig {
    TrainConfig {
        preprocess,
        base: BaseWeight::Value(1.0),
        lambda: Vec::new(),
        max_iter: 0,
        seed: params.seed,
        ..TrainConfig::new(1.0)
    }
}

/// The first segment of every trial.
pub(super) fn first_segment(params: &TuneConfig, labels: &Labels) -> Grow {
    let default = match params.preset {
        Preset::Best => FIRST_ITER,
        Preset::Paper => iterations(labels),
    };
    Grow::Extend(params.round_iter.unwrap_or(default))
}

/// Iterations of the paper's recipe: more classes take more features to tell apart, and more rows support more features.
fn iterations(labels: &Labels) -> usize {
    let classes = labels.counts().iter().filter(|&&count| count > 0).count();
    (100 * classes).max(labels.len() / 3).clamp(400, 800)
}

/// The configurations of the first rung, the most promising first. `ranked` are the preprocessings, the best plain
/// similarity first.
pub(super) fn first(
    search: &Search<'_>,
    folds: &Folds,
    ranked: &[Preprocess],
) -> Result<Vec<TrainConfig>> {
    let params = search.params;
    let configuration = |preprocess, triplets: &TripletSource, lambda| TrainConfig {
        preprocess,
        triplets: triplets.clone(),
        seed: params.seed,
        max_features: params.max_features,
        memory_limit: params.memory_limit,
        ..TrainConfig::new(lambda)
    };
    if params.preset == Preset::Paper {
        let paper = |power| configuration(Preprocess::Max, &PAPER_TRIPLETS, 10f64.powi(power));
        return Ok((0..10).map(paper).collect());
    }
    let fold = &folds.folds[0];
    let neighbors = match fold.is_given() {
        true => &params.triplets,
        false => &PAPER_TRIPLETS,
    };
    let mut on_base = Vec::new();
    for kind in base_kinds(params, ranked) {
        let prepared = fold.prepared(kind);
        let config = configuration(kind, neighbors, 1.0);
        let all = fold.member(&prepared, &config)?;
        let triplets = match fold.triplets(&prepared, &config, &all, search.cancel_token()) {
            // There are too few rows for such triplets.
            Err(Error::Data(_)) => continue,
            mined => mined?,
        };
        for (margin, relative_trace) in BASES {
            let base = rounded(base_weight(&prepared.train, &triplets, margin));
            let lambda = rounded(lambda_beside(&prepared.train, base, relative_trace));
            on_base.push(TrainConfig {
                base: BaseWeight::Value(base),
                ..configuration(kind, neighbors, lambda)
            });
        }
    }
    let mut alone = Vec::new();
    for relative in RELATIVE_LAMBDAS {
        let sources = match fold.is_given() {
            true => vec![params.triplets.clone()],
            false => triplet_sources(params, &fold.train),
        };
        for triplets in &sources {
            for kind in kinds_alone(params, ranked) {
                let lambda = rounded(lambda_alone(&fold.prepared(kind).train, relative));
                alone.push(configuration(kind, triplets, lambda));
            }
        }
    }
    Ok(in_turn(on_base, alone))
}

/// One of each in turn: whatever suits the data better is tried early.
fn in_turn(some: Vec<TrainConfig>, others: Vec<TrainConfig>) -> Vec<TrainConfig> {
    let (mut some, mut others) = (some.into_iter(), others.into_iter());
    let mut all = Vec::new();
    loop {
        let pair = [some.next(), others.next()];
        if pair.iter().all(Option::is_none) {
            return all;
        }
        all.extend(pair.into_iter().flatten());
    }
}

fn triplet_sources(params: &TuneConfig, rows: &Rows) -> Vec<TripletSource> {
    let per_row = (RANDOM_TRIPLETS / rows.n_rows().max(1)).clamp(10, 100);
    let sources = [
        (Ablation::Random, TripletSource::Random { per_row }),
        (Ablation::Neighbors, PAPER_TRIPLETS),
    ];
    let used = sources.into_iter().filter(|source| params.uses(source.0));
    used.map(|source| source.1).collect()
}

/// The preprocessings of a base: those of unit length with the lowest errors. None if the size of the model is limited,
/// because a base uses all features.
fn base_kinds(params: &TuneConfig, ranked: &[Preprocess]) -> Vec<Preprocess> {
    if !params.uses(Ablation::Base) || !params.uses(Ablation::Neighbors) || params.is_limited() {
        return Vec::new();
    }
    let mut kinds = kinds(params, ranked);
    // Of the two term weights, those with the better plain similarity: their errors after learning hardly differ.
    let terms = kinds.iter().copied().find(weighs_terms);
    kinds.retain(|kind| match kind {
        Preprocess::Max | Preprocess::None => false,
        kind => !weighs_terms(kind) || Some(*kind) == terms,
    });
    kinds.truncate(BASE_KINDS);
    kinds
}

/// The preprocessings of a similarity that is learned alone.
fn kinds_alone(params: &TuneConfig, ranked: &[Preprocess]) -> Vec<Preprocess> {
    if !params.uses(Ablation::Unit) {
        return vec![Preprocess::Max];
    }
    let mut kinds = kinds(params, ranked);
    // The dot product of raw values says nothing of what is learned from them, and tf-idf is hardly ever worse than BM25.
    kinds.retain(|kind| !matches!(kind, Preprocess::None | Preprocess::Bm25));
    kinds
}

fn kinds(params: &TuneConfig, ranked: &[Preprocess]) -> Vec<Preprocess> {
    let allowed = ranked.iter().copied();
    allowed
        .filter(|kind| params.uses(Ablation::TermWeights) || !weighs_terms(kind))
        .collect()
}

fn weighs_terms(kind: &Preprocess) -> bool {
    matches!(kind, Preprocess::Tfidf | Preprocess::Bm25)
}

/// A configuration as an average of several models. Models of the same neighbors are too similar for their average to be
/// better, so each learns from other rows; random triplets differ by themselves.
pub(super) fn ensemble(single: &TrainConfig) -> TrainConfig {
    let is_random = matches!(single.triplets, TripletSource::Random { .. });
    TrainConfig {
        n_estimators: N_ESTIMATORS,
        subsample: if is_random { 1.0 } else { SUBSAMPLE },
        ..single.clone()
    }
}

/// Configurations that differ little from a good one.
pub(super) fn around(params: &TuneConfig, best: &TrainConfig) -> Vec<TrainConfig> {
    let scaled = |factor: f64| TrainConfig {
        lambda: vec![rounded(best.lambda[0] * factor)],
        ..best.clone()
    };
    let mut near = vec![scaled(FINER), scaled(1.0 / FINER)];
    if let Some(base) = best.base.value().filter(|&base| base > 0.0) {
        // trace(M) keeps its share of the sum.
        let both = |factor: f64| TrainConfig {
            base: BaseWeight::Value(rounded(base * factor)),
            ..scaled(factor)
        };
        near.extend([both(FINER), both(1.0 / FINER)]);
    }
    if params.uses(Ablation::Losses) && best.loss == LossKind::SmoothedHinge {
        near.push(TrainConfig {
            loss: LossKind::SquaredHinge,
            ..best.clone()
        });
    }
    near
}

/// Rounded to two digits, so that it is easily typed.
fn rounded(value: f64) -> f64 {
    let unit = 10f64.powi(value.log10().floor() as i32 - 1);
    // Division by a whole number gives the nearest of the decimal fractions, multiplication by a fraction may not.
    let digits = (value / unit).round();
    let rounded = match unit < 1.0 {
        true => digits / (1.0 / unit).round(),
        false => digits * unit,
    };
    rounded.max(f64::MIN_POSITIVE)
}

/// The prediction rules tried at each checkpoint, without those that need more neighbors than there are training rows.
pub(super) fn rules(params: &TuneConfig, folds: &Folds) -> Vec<PredictionRule> {
    let used = |&n: &Normalization| n != Normalization::Cosine || params.uses(Ablation::Cosine);
    if folds.folds[0].is_given() {
        // Nothing is predicted.
        let rule = |normalization| PredictionRule {
            normalization,
            ..PredictionRule::default()
        };
        return Normalization::ALL
            .into_iter()
            .filter(used)
            .map(rule)
            .collect();
    }
    let n_rows = folds.folds.iter().map(|fold| fold.train.n_rows()).min();
    let n_rows = n_rows.unwrap_or(0);
    let mut votes = vec![(3.min(n_rows), Vote::Majority)];
    if params.uses(Ablation::Votes) {
        let each = [1, 3, 5, 9, 15, 31].into_iter().filter(|&k| k <= n_rows);
        votes = each
            .flat_map(|k| [Vote::Majority, Vote::Weighted, Vote::Squared].map(|vote| (k, vote)))
            // The vote of a single neighbor needs no weight.
            .filter(|&(k, vote)| k > 1 || vote == Vote::Majority)
            .collect();
        votes.push((3, Vote::ClassMean));
    }
    let rule = |normalization, (k, vote)| PredictionRule {
        k,
        vote,
        normalization,
    };
    let normalizations = Normalization::ALL.into_iter().filter(used);
    normalizations
        .flat_map(|normalization| votes.iter().map(move |&vote| rule(normalization, vote)))
        .collect()
}
