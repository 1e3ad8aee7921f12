//! Training: from rows to a model. Preprocessing, triplets, one run per λ, mining rounds, the choice on validation rows.
//!
//! The command line and the Python package both train through [`train()`], so that they make the same model.
//!
//! | file | job |
//! |---|---|
//! | `base.rs` | the weights of the base similarity and of the learned part, relative to the data |
//! | `checkpoints.rs` | a training that is recorded, and resumed |
//! | `data.rs` | rows, labels and whatever else a training is given |
//! | `held_out.rs` | triplets and judged queries that are held out, and errors on them |
//! | `validation.rs` | validation errors on the way, the iterate to keep, early stopping |
//! | `rounds.rs` | one run with its mining rounds |
//! | `grid.rs` | one run per λ, and the best of them as a model |
//! | `ensemble.rs` | the average of several models |
//! | `subsample.rs` | the rows or anchors that one model of an average learns from |
//! | `automatic.rs` | settings that are left open, chosen by errors on held-out rows |

mod automatic;
pub(crate) mod base;
mod checkpoints;
mod data;
pub(crate) mod ensemble;
mod grid;
mod held_out;
pub(crate) mod rounds;
pub(crate) mod subsample;
mod validation;

/// What a training over shards shares with one over rows.
pub(crate) mod sharded {
    pub(crate) use super::checkpoints::{Sum, recorded};
    pub(crate) use super::ensemble::{averaged, train_members};
    pub(crate) use super::grid::{Backend, Described, run_grid, trained_of};
    pub(crate) use super::validation::Evaluate;
}

pub use automatic::{Choice, RowSample, base_alone_with, choose_by_sample, rows_to_compare};
pub use base::WeightSums;
pub use data::{Labeled, TrainData, hold_out};
pub use held_out::hold_out_anchors;
pub use subsample::{sampled_anchors, sampled_rows};

use crate::data::Preprocessor;
use crate::error::{Error, Result};
use crate::model::{Model, TrainConfig, Validation};
use crate::observer::{Gap, Observer, Stop};
use crate::triplets::TripletSource;
use automatic::base_alone;
use ensemble::train_model;
use serde::{Deserialize, Serialize};

/// A run that has ended: one λ of the grid, or one model of an ensemble.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// λ.
    pub lambda: f64,
    /// Why it ended.
    pub stop: Stop,
    /// Steps taken.
    pub iterations: usize,
    /// f at the last iterate.
    pub objective: f64,
    /// The gap there.
    pub gap: Gap,
    /// The iterate that was kept.
    pub chosen: usize,
    /// f there.
    pub chosen_objective: f64,
    /// The gap there.
    pub chosen_gap: Gap,
    /// The validation error at that iterate, see
    /// [`TrainConfig::validation_measure`](crate::TrainConfig::validation_measure).
    pub valid_error: Option<f64>,
    /// Triplets learned from.
    pub n_triplets: usize,
    /// Seconds the solver worked, without reading, mining and evaluation.
    pub train_seconds: f64,
}

/// What [`train`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trained {
    /// The best model.
    pub model: Model,
    /// The run that made it. Of an ensemble: means of objectives and gaps, sums of everything that is counted.
    pub run: RunSummary,
    /// The number of steps after which each round of that run ended.
    pub round_ends: Vec<usize>,
    /// Every λ tried, in the order given; every model of an ensemble.
    pub grid: Vec<RunSummary>,
    /// What was chosen by errors on held-out rows, if anything was left open.
    pub choice: Option<Choice>,
}

/// Learns a similarity: fits the preprocessing on the training rows, makes triplets, runs the solver for each λ, and
/// keeps the iterate with the lowest validation error (the earliest of equals, which uses the fewest features), or
/// the last one without validation.
///
/// What the configuration leaves open is chosen from the data: [`Preprocess::Auto`](crate::Preprocess::Auto), a base of
/// [`BaseWeight::Auto`](crate::model::BaseWeight::Auto), and no λ. The model contains the configuration with all choices
/// made. Without a λ, a similarity is learned on top of the base only if that makes fewer errors on held-out rows than the
/// base alone.
///
/// With a base and no iterations, the base alone is the result.
///
/// An observer that breaks ends the training, which keeps the best model so far.
///
/// With [`TrainConfig::checkpoint`], the steps are written to a file from time to time. The same training later goes on
/// from there, and has the same result as without an interruption. The caller removes the file when the model is saved.
pub fn train(
    data: &TrainData<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    match &config.checkpoint {
        None => train_unrecorded(data, config, observer),
        Some(checkpoint) => checkpoints::train_recorded(data, config, checkpoint, observer),
    }
}

/// The configuration with what is given beside it, as the model contains it.
pub(crate) fn recorded_config(data: &TrainData<'_>, config: &TrainConfig) -> TrainConfig {
    let mut config = config.clone();
    config.warm_start = data.start.is_some();
    if let Some(given) = data.triplets {
        let count = given.len();
        config.triplets = TripletSource::Given { count };
    }
    if config.validation == Validation::None && data.valid.is_some() {
        config.validation = Validation::Rows;
    }
    config
}

fn train_unrecorded(
    data: &TrainData<'_>,
    config: &TrainConfig,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let config = recorded_config(data, config);
    config.check()?;
    if let (Some(weights), Some(labels)) = (data.class_weights, data.train.labels) {
        data::check_class_weights(weights, labels)?;
    }
    let split = held_out::split(data, &config)?;
    if config.validation != Validation::None && data.valid.is_none() && split.is_none() {
        return Err(Error::data("there are no validation rows"));
    }
    let mut data = *data;
    if let Some(split) = &split {
        data.triplets = Some(&split.learn);
        data.held_out = Some(&split.held_out);
    }
    let data = &data;
    let kind = data
        .preprocessor
        .map_or(config.preprocess, Preprocessor::kind);
    for rows in [Some(data.train), data.valid].into_iter().flatten() {
        kind.check(rows.rows)?;
    }
    if config.max_iter == 0 {
        let kind = config.preprocess.resolved(data.train.rows);
        return base_alone(data, &config, kind);
    }
    let Some(mut choice) = automatic::choose(data, &config, observer)? else {
        return train_model(data, &config, observer);
    };
    let mut learned = None;
    if !choice.is_base_alone() {
        let trained = train_model(data, &choice.applied_to(&config), observer)?;
        choice.consider(&trained.run, &config);
        learned = Some(trained);
    }
    let mut trained = match learned {
        Some(learned) if !choice.is_base_alone() => learned,
        _ => base_alone(data, &config, choice.preprocess)?,
    };
    trained.choice = Some(choice);
    Ok(trained)
}
