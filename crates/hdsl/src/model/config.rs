//! The configuration of a training: one typed value for the program, Python, the model file, the report and the search.
//!
//! Fields are named as the command line's flags and the Python parameters. [`TrainConfig::check`] is the one place where
//! raw settings are found to be good or bad.

use super::base_weight::BaseWeight;
use super::validation::Validation;
use crate::checkpoint::Checkpoint;
use crate::data::Preprocess;
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::objective::LossKind;
use crate::solver::{Search, SolverParams, StepRule};
use crate::triplets::TripletSource;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Everything that decides what [`train`](crate::train()) makes of given rows. Nothing is checked until
/// [`TrainConfig::check`], which training calls first.
///
/// A saved model contains its configuration, and [`Model::command_line`](crate::Model::command_line) renders it as a
/// call of the program.
///
/// ```
/// use hdsl::{LossKind, TrainConfig};
/// let mut config = TrainConfig::new(100.0);
/// config.loss = LossKind::Logistic;
/// config.max_iter = 500;
/// config.check()?;
/// config.patience = Some(50);
/// assert!(config.check().is_err()); // early stopping needs validation
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TrainConfig {
    /// The λ to try; more than one needs validation to choose by. If there is none, λ is chosen from the data, and a
    /// base similarity is used alone if learning does not lower the error on held-out rows.
    pub lambda: Vec<f64>,
    /// Preprocessing of the features; [`Preprocess::Auto`] is chosen from the data.
    pub preprocess: Preprocess,
    /// The weight β of the base similarity.
    #[serde(default, skip_serializing_if = "BaseWeight::is_none")]
    pub base: BaseWeight,
    /// Where the triplets come from.
    pub triplets: TripletSource,
    /// The loss of a margin.
    pub loss: LossKind,
    /// The linear minimization oracle.
    pub search: Search,
    /// How the direction of a step is chosen.
    pub steps: StepRule,
    /// Random triplets per iteration that directions are computed from (M in Table 1); none: all triplets.
    pub batch: Option<usize>,
    /// Iterations per mining round at most.
    pub max_iter: usize,
    /// Stop when the certified gap is at most this.
    pub tolerance: Option<f64>,
    /// End with one exact search over all triplets, so that the final gap is certified.
    pub certify: bool,
    /// Stop before more than this many features are used.
    pub max_features: Option<usize>,
    /// Stop when the solver has worked for this many seconds.
    pub time_limit: Option<f64>,
    /// Seed of random triplets, random starts of the search, batches and held-out rows.
    pub seed: u64,
    /// How often hard triplets are mined under the similarity learned so far and added to those there are.
    pub mining_rounds: usize,
    /// Iterations at most of the last round, where they differ from `max_iter`.
    pub last_round_iter: Option<usize>,
    /// Average this many models with consecutive seeds, from `seed` on.
    pub n_estimators: usize,
    /// The fraction of the rows that each of these models learns from, drawn by class; of given triplets, the fraction of the
    /// anchors.
    #[serde(default = "all_rows", skip_serializing_if = "is_all_rows")]
    pub subsample: f64,
    /// How classes are predicted: on validation rows, and by the model.
    pub rule: PredictionRule,
    /// Compute the validation error every so many iterations.
    pub eval_every: usize,
    /// Early stopping: end a run when the validation error has not improved for this many iterations.
    pub patience: Option<usize>,
    /// What the validation error is computed on.
    pub validation: Validation,
    /// Whether the training rows are those of two files (`--add`).
    pub added_rows: bool,
    /// Whether the solver started from an earlier solution.
    pub warm_start: bool,
    /// Bytes a run may take at most; unless set, what the system says is free. It is a limit of the machine, so a model
    /// does not contain it.
    #[serde(skip)]
    pub memory_limit: Option<u64>,
    /// Where the training writes checkpoints, if it does. A model does not contain it.
    #[serde(skip)]
    pub checkpoint: Option<Checkpoint>,
}

/// The most models that are averaged.
const MAX_ESTIMATORS: usize = 10_000;

impl TrainConfig {
    /// The paper's configuration at one λ: features divided by their maxima, 3 x 5 neighbors, 3-NN on validation rows.
    pub fn new(lambda: f64) -> Self {
        Self {
            lambda: vec![lambda],
            preprocess: Preprocess::Max,
            base: BaseWeight::NONE,
            triplets: TripletSource::Neighbors {
                targets: 3,
                impostors: 5,
            },
            loss: LossKind::default(),
            search: Search::default(),
            steps: StepRule::default(),
            batch: None,
            max_iter: 1000,
            tolerance: None,
            certify: false,
            max_features: None,
            time_limit: None,
            seed: 0,
            mining_rounds: 0,
            last_round_iter: None,
            n_estimators: 1,
            subsample: 1.0,
            rule: PredictionRule::default(),
            eval_every: 10,
            patience: None,
            validation: Validation::None,
            added_rows: false,
            warm_start: false,
            memory_limit: None,
            checkpoint: None,
        }
    }

    /// Checks every field by itself and with the others.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [
            (
                "max_iter",
                Some(self.max_iter).filter(|_| self.base.is_none()),
            ),
            ("k", Some(self.rule.k)),
            ("eval_every", Some(self.eval_every)),
            ("patience", self.patience),
            ("last_round_iter", self.last_round_iter),
            ("n_estimators", Some(self.n_estimators)),
        ] {
            if value == Some(0) {
                return Err(Error::param(name, 0, "a whole number above 0"));
            }
        }
        if self.n_estimators > MAX_ESTIMATORS {
            let wanted = format!("at most {MAX_ESTIMATORS}");
            return Err(Error::param("n_estimators", self.n_estimators, wanted));
        }
        for &lambda in &self.lambda {
            self.solver(lambda, 0)?.build()?;
        }
        let refused = |name, given: String, wanted| Err(Error::param(name, given, wanted));
        let (n_lambda, several) = (self.lambda.len(), self.is_ensemble());
        // An average has one λ, and the features of all its models.
        let average = |with: String| match self.n_estimators {
            1 => refused("subsample", format!("{} with {with}", self.subsample), "1"),
            n => refused("n_estimators", format!("{n} with {with}"), "1"),
        };
        match (self.validation, self.patience, self.max_features) {
            (Validation::Holdout(fraction) | Validation::HoldoutAnchors(fraction), ..)
                if !(fraction > 0.0 && fraction < 1.0) =>
            {
                let wanted = "a fraction above 0 and below 1";
                refused("holdout", fraction.to_string(), wanted)
            }
            // Mined triplets have all rows as anchors.
            (Validation::HoldoutAnchors(_), ..) if self.mining_rounds > 0 => {
                let given = format!("{} with held-out anchors", self.mining_rounds);
                refused("mining_rounds", given, "0")
            }
            (Validation::None, ..) if n_lambda > 1 => {
                let wanted = "one number, or validation rows or held-out triplets to choose by";
                refused("lambda", format!("a list of {n_lambda}"), wanted)
            }
            (Validation::None, Some(patience), _) => {
                let wanted = "validation rows or held-out triplets, or no patience";
                refused("patience", patience.to_string(), wanted)
            }
            _ if !(self.subsample > 0.0 && self.subsample <= 1.0) => {
                let wanted = "a fraction above 0 and up to 1";
                refused("subsample", self.subsample.to_string(), wanted)
            }
            _ if several && n_lambda > 1 => average(format!("{n_lambda} values of lambda")),
            (_, _, Some(most)) if several => average(format!("max_features {most}")),
            _ => Ok(()),
        }
    }

    /// Whether the model is an average, of one model at least, rather than the solution of one run on all rows.
    pub(crate) fn is_ensemble(&self) -> bool {
        self.n_estimators > 1 || self.subsample < 1.0
    }

    /// The solver's parameters at one λ, in one of the mining rounds (the first run is round 0).
    pub(crate) fn solver(&self, lambda: f64, round: usize) -> Result<SolverParams> {
        let last = self.last_round_iter.filter(|_| round == self.mining_rounds);
        let time_limit = self.time_limit.map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| Error::param("time_limit", seconds, "seconds, 0 or more"))
        });
        Ok(SolverParams {
            lambda,
            // `auto` is replaced by a number before the first run.
            base: self.base.value().unwrap_or(0.0),
            loss: self.loss,
            search: self.search,
            steps: self.steps,
            batch: self.batch,
            max_iter: last.unwrap_or(self.max_iter),
            tolerance: self.tolerance,
            max_features: self.max_features,
            time_limit: time_limit.transpose()?,
            seed: self.seed,
            certify: self.certify,
            memory_limit: self.memory_limit,
        })
    }
}

fn all_rows() -> f64 {
    1.0
}

fn is_all_rows(subsample: &f64) -> bool {
    *subsample == all_rows()
}

/// What a search varies, in a line: preprocessing, triplets, λ, loss, and the size of an ensemble.
impl fmt::Display for TrainConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lambda: Vec<String> = self.lambda.iter().map(f64::to_string).collect();
        let (preprocess, triplets, loss) = (self.preprocess, &self.triplets, self.loss);
        write!(f, "{preprocess} {triplets} {} {loss}", lambda.join(","))?;
        if !self.base.is_none() {
            write!(f, ", base {}", self.base)?;
        }
        match (self.n_estimators, self.subsample) {
            (1, _) => Ok(()),
            (several, 1.0) => write!(f, ", average of {several}"),
            (several, part) => write!(f, ", average of {several} on {part} of the rows"),
        }
    }
}
