//! The configurations that are searched over, and the checkpoints and prediction rules tried on each path.

use super::folds::Folds;
use super::params::{Ablation, Preset, TuneConfig};
use crate::data::{Labels, Preprocess, Preprocessor, Rows};
use crate::knn::{PredictionRule, Vote};
use crate::model::TrainConfig;
use crate::objective::LossKind;
use crate::similarity::Normalization;
use crate::triplets::TripletSource;

/// Random triplets in all, but at least 10 and at most 100 per row.
const RANDOM_TRIPLETS: usize = 50_000;

/// λ times the mean square of the stored values, for the first configurations. In this unit, good values of λ differ
/// little between data sets.
const RELATIVE_LAMBDAS: [f64; 3] = [100.0, 1000.0, 10.0];

/// The factor from the best λ to its neighbors on a finer grid: half a step of the first one.
const FINER: f64 = 3.162;

/// The paper's triplets.
const PAPER_TRIPLETS: TripletSource = TripletSource::Neighbors {
    targets: 3,
    impostors: 5,
};

/// The configurations of the first rung, the most promising first. Each round has at most `max_iter` iterations.
pub(super) fn first(params: &TuneConfig, rows: &Rows, max_iter: usize) -> Vec<TrainConfig> {
    let configuration = |preprocess, triplets: &TripletSource, lambda| TrainConfig {
        preprocess,
        triplets: triplets.clone(),
        max_iter,
        seed: params.seed,
        max_features: params.max_features,
        memory_limit: params.memory_limit,
        ..TrainConfig::new(lambda)
    };
    if params.preset == Preset::Paper {
        let paper = |power| configuration(Preprocess::Max, &PAPER_TRIPLETS, 10f64.powi(power));
        return (0..10).map(paper).collect();
    }
    let preprocessings: Vec<(Preprocess, f64)> = preprocessings(params, rows)
        .into_iter()
        .map(|preprocess| (preprocess, mean_square(rows, preprocess)))
        .collect();
    let mut configurations = Vec::new();
    for triplets in &triplet_sources(params, rows) {
        for relative in RELATIVE_LAMBDAS {
            for &(preprocess, mean_square) in &preprocessings {
                let lambda = to_one_digit(relative / mean_square);
                configurations.push(configuration(preprocess, triplets, lambda));
            }
        }
    }
    configurations
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

fn preprocessings(params: &TuneConfig, rows: &Rows) -> Vec<Preprocess> {
    if !params.uses(Ablation::Unit) {
        return vec![Preprocess::Max];
    }
    let mut kinds = vec![Preprocess::Unit, Preprocess::Max];
    // Where the maxima change nothing, as in rows of zeros and ones, `max-unit` is `unit`.
    if Preprocessor::fit(Preprocess::Max, rows).apply(rows) != *rows {
        kinds.push(Preprocess::MaxUnit);
    }
    kinds
}

/// Configurations that differ little from a good one.
pub(super) fn around(params: &TuneConfig, best: &TrainConfig) -> Vec<TrainConfig> {
    let scaled = |factor: f64| TrainConfig {
        lambda: vec![to_one_digit(best.lambda[0] * factor)],
        ..best.clone()
    };
    let mut near = vec![scaled(FINER), scaled(1.0 / FINER)];
    if params.uses(Ablation::Losses) && best.loss == LossKind::SmoothedHinge {
        near.push(TrainConfig {
            loss: LossKind::SquaredHinge,
            ..best.clone()
        });
    }
    near
}

/// The mean square of the values that are stored, after preprocessing.
fn mean_square(rows: &Rows, preprocess: Preprocess) -> f64 {
    let scaled = Preprocessor::fit(preprocess, rows).apply(rows);
    let sum: f64 = scaled.values().iter().map(|v| v * v).sum();
    match sum > 0.0 {
        true => sum / scaled.nnz() as f64,
        false => 1.0,
    }
}

/// Rounded to one digit, so that it is easily typed.
fn to_one_digit(lambda: f64) -> f64 {
    let unit = 10f64.powi(lambda.log10().floor() as i32);
    ((lambda / unit).round() * unit).max(f64::MIN_POSITIVE)
}

/// The prediction rules tried at each checkpoint, without those that need more neighbors than there are training rows.
pub(super) fn rules(params: &TuneConfig, folds: &Folds) -> Vec<PredictionRule> {
    let n_rows = folds.folds.iter().map(|fold| fold.train.n_rows()).min();
    let n_rows = n_rows.unwrap_or(0);
    let mut votes = vec![(3.min(n_rows), Vote::Majority)];
    if params.uses(Ablation::Votes) {
        let each = [1, 3, 5, 9, 15, 31].into_iter().filter(|&k| k <= n_rows);
        votes = each
            .flat_map(|k| [(k, Vote::Majority), (k, Vote::Weighted)])
            // The vote of a single neighbor needs no weight.
            .filter(|&vote| vote != (1, Vote::Weighted))
            .collect();
        votes.push((3, Vote::ClassMean));
    }
    let used = |&n: &Normalization| n != Normalization::Cosine || params.uses(Ablation::Cosine);
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

/// Iterations of a round: more classes take more features to tell apart, and more rows support more features.
fn iterations(labels: &Labels) -> usize {
    let classes = labels.counts().iter().filter(|&&count| count > 0).count();
    (100 * classes).max(labels.len() / 3).clamp(400, 800)
}

/// The iterations of a round after which validation errors are computed: dense at first, where the path changes fastest.
/// With a limit on atoms, also early iterations, since each adds at most one atom.
pub(super) fn checkpoints(params: &TuneConfig, labels: &Labels) -> Vec<usize> {
    let iterations = params.round_iter.unwrap_or_else(|| iterations(labels));
    let parts = [1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40].into_iter();
    let mut at: Vec<usize> = parts.map(|part| (iterations * part).div_ceil(40)).collect();
    if let Some(most) = params.max_atoms {
        let early = [most.saturating_sub(1), most / 2, most / 4];
        at.extend(early.into_iter().filter(|&at| at < iterations));
    }
    at.retain(|&at| at > 0);
    at.sort_unstable();
    at.dedup();
    at
}
