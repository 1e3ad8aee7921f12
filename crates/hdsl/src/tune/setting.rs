//! What is searched over.

use super::{Part, Preset, TuneParams};
use crate::data::{Labels, Preprocess, Preprocessor, Rows};
use crate::knn::{PredictionRule, Vote};
use crate::objective::loss::LossKind;
use crate::similarity::Normalization;
use crate::triplets::TripletSource;
use std::fmt;

/// One way to learn; where to stop on its path and how to decide a class is found along the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// What is done to raw values.
    pub preprocess: Preprocess,
    /// Where the triplets of the first round come from.
    pub triplets: TripletSource,
    /// λ.
    pub scale: f64,
    /// What a margin costs.
    pub loss: LossKind,
    /// Models whose mean is taken.
    pub models: usize,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            preprocess,
            triplets,
            scale,
            loss,
            models,
        } = self;
        write!(f, "{preprocess} {triplets} {scale} {loss}")?;
        match models {
            1 => Ok(()),
            several => write!(f, ", mean of {several}"),
        }
    }
}

/// Triplets of all rows together that random ones are drawn for, at least ten and at most a hundred a row.
const RANDOM_TRIPLETS: usize = 50_000;

/// λ times the mean square of a value, for the first settings: how many pairs that fire it takes to fill a margin of 1,
/// so to speak. What is good moves little from one set of data to the next in this unit.
const RELATIVE_SCALES: [f64; 3] = [100.0, 1000.0, 10.0];

/// A half of the step between two of those, for a closer look around the best.
const CLOSER: f64 = 3.162;

/// The settings of the first rung, the most promising first.
pub(super) fn first(params: &TuneParams, rows: &Rows) -> Vec<Setting> {
    match params.preset {
        Preset::Best => promising(params, rows),
        Preset::Paper => (0..10)
            .map(|power| Setting {
                preprocess: Preprocess::Max,
                triplets: STATIC,
                scale: 10f64.powi(power),
                loss: LossKind::SmoothedHinge,
                models: 1,
            })
            .collect(),
    }
}

/// The paper's triplets.
const STATIC: TripletSource = TripletSource::Neighbors {
    targets: 3,
    impostors: 5,
};

fn promising(params: &TuneParams, rows: &Rows) -> Vec<Setting> {
    let per_row = (RANDOM_TRIPLETS / rows.n_rows().max(1)).clamp(10, 100);
    let mut sources = Vec::new();
    if params.uses(Part::Random) {
        sources.push(TripletSource::Random { per_row });
    }
    if params.uses(Part::Neighbors) {
        sources.push(STATIC);
    }
    let mut scalings = vec![Preprocess::Unit, Preprocess::Max, Preprocess::MaxUnit];
    // Where the maxima change nothing, as in rows of zeros and ones, two of them are one.
    if Preprocessor::fit(Preprocess::Max, rows.view()).apply(rows.view()) == *rows {
        scalings.pop();
    }
    if !params.uses(Part::Unit) {
        scalings.retain(|&preprocess| preprocess == Preprocess::Max);
    }
    let mean_squares: Vec<f64> = scalings
        .iter()
        .map(|&preprocess| mean_square(rows, preprocess))
        .collect();
    let mut settings = Vec::new();
    for triplets in sources {
        for relative in RELATIVE_SCALES {
            for (&preprocess, mean_square) in scalings.iter().zip(&mean_squares) {
                settings.push(Setting {
                    preprocess,
                    triplets: triplets.clone(),
                    scale: round(relative / mean_square),
                    loss: LossKind::SmoothedHinge,
                    models: 1,
                });
            }
        }
    }
    settings
}

/// Settings that differ little from a good one.
pub(super) fn around(params: &TuneParams, best: &Setting) -> Vec<Setting> {
    let scaled = |factor: f64| Setting {
        scale: round(best.scale * factor),
        ..best.clone()
    };
    let mut near = vec![scaled(CLOSER), scaled(1.0 / CLOSER)];
    if params.uses(Part::Losses) && best.loss == LossKind::SmoothedHinge {
        near.push(Setting {
            loss: LossKind::SquaredHinge,
            ..best.clone()
        });
    }
    near
}

/// The mean square of the values that are stored, after preprocessing.
fn mean_square(rows: &Rows, preprocess: Preprocess) -> f64 {
    let scaled = Preprocessor::fit(preprocess, rows.view()).apply(rows.view());
    let sum: f64 = scaled.values().iter().map(|v| v * v).sum();
    match sum > 0.0 {
        true => sum / scaled.nnz() as f64,
        false => 1.0,
    }
}

/// To one digit, so that it can be said and typed.
fn round(scale: f64) -> f64 {
    let unit = 10f64.powi(scale.log10().floor() as i32);
    ((scale / unit).round() * unit).max(f64::MIN_POSITIVE)
}

/// Every way to decide that is tried at each look at a path; those that ask for more neighbors than there are rows of
/// training left out.
pub(super) fn rules(params: &TuneParams, n_rows: usize) -> Vec<PredictionRule> {
    let nearest = PredictionRule::nearest(3.min(n_rows));
    if params.preset == Preset::Paper {
        return vec![nearest];
    }
    let mut rules = Vec::new();
    for normalization in Normalization::ALL {
        if normalization == Normalization::Cosine && !params.uses(Part::Cosine) {
            continue;
        }
        if !params.uses(Part::Votes) {
            rules.push(PredictionRule {
                normalization,
                ..nearest
            });
            continue;
        }
        for k in [1, 3, 5, 9, 15, 31] {
            for vote in [Vote::Majority, Vote::Weighted] {
                // A single neighbor has no one to outvote.
                if k <= n_rows && (k > 1 || vote == Vote::Majority) {
                    rules.push(PredictionRule {
                        k,
                        vote,
                        normalization,
                    });
                }
            }
        }
        let vote = Vote::ClassMean;
        rules.push(PredictionRule {
            k: 3,
            vote,
            normalization,
        });
    }
    rules
}

/// Iterations of a round: more classes take more features to tell apart, and more rows can tell more of them.
pub(super) fn iterations(labels: &Labels) -> usize {
    let classes = labels.counts().iter().filter(|&&count| count > 0).count();
    (100 * classes).max(labels.len() / 3).clamp(400, 800)
}

/// After how many iterations of a round the path is looked at: densely at first, where it changes fastest. Where atoms are
/// few, also while there can be no more of them: each iteration adds one at most.
pub(super) fn looks(iterations: usize, max_atoms: Option<usize>) -> Vec<usize> {
    let parts = [1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40];
    let mut looks: Vec<usize> = parts
        .iter()
        .map(|part| (iterations * part).div_ceil(40))
        .collect();
    if let Some(most) = max_atoms {
        let few = [most.saturating_sub(1), most / 2, most / 4];
        looks.extend(few.into_iter().filter(|&at| at < iterations));
    }
    looks.retain(|&at| at > 0);
    looks.sort_unstable();
    looks.dedup();
    looks
}
