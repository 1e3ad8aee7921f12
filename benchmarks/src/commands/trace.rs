//! A training run with the time of each event: the validation errors over time, or the time per iteration.

use super::{Failure, labeled};
use hdsl::observer::Event;
use hdsl::solver::Search;
use hdsl::{Preprocess, TrainConfig, TrainData, TripletSource, train};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rows to learn from
    train: PathBuf,
    /// Validation rows; without them, every iteration is reported
    valid: Option<PathBuf>,
    /// Values of λ, tried in order
    #[arg(long, value_delimiter = ',', required = true)]
    scale: Vec<f64>,
    /// knn:K:M or random:N
    #[arg(long, default_value = "knn:3:5")]
    triplets: TripletSource,
    /// As of `hdsl train`
    #[arg(long, default_value = "max")]
    preprocess: Preprocess,
    /// As of `hdsl train`
    #[arg(long, default_value = "alternating")]
    search: Search,
    /// As of `hdsl train`
    #[arg(long)]
    batch: Option<usize>,
    /// As of `hdsl train`
    #[arg(long, default_value_t = 1000)]
    max_iter: usize,
    /// As of `hdsl train`
    #[arg(long)]
    patience: Option<usize>,
    /// As of `hdsl train`
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (data, _) = labeled(&args.train, None)?;
    let valid = match &args.valid {
        Some(path) => Some(labeled(path, Some(&data))?.0),
        None => None,
    };
    let mut config = TrainConfig::new(1.0);
    config.lambda = args.scale.clone();
    config.preprocess = args.preprocess;
    config.triplets = args.triplets.clone();
    config.patience = args.patience;
    config.search = args.search;
    config.max_iter = args.max_iter;
    config.seed = args.seed;
    config.batch = args.batch;

    // Time goes on through preprocessing, mining, evaluation and earlier λ: it is what a user waits.
    let started = Instant::now();
    let (mut scale, mut solver_seconds, mut mine_seconds) = (0.0, 0.0, 0.0);
    let (mut evaluations, mut iterations) = (Vec::new(), Vec::new());
    let mut watch = |event: &Event<'_>| {
        match *event {
            Event::Triplets { seconds, .. } => mine_seconds = seconds,
            Event::LambdaStarted { lambda: next, .. } => scale = next,
            Event::Iteration(now, active) => {
                solver_seconds = now.seconds;
                if valid.is_none() {
                    iterations.push(json!([now.seconds, active.len(), now.objective]));
                }
            }
            Event::Evaluated {
                iteration,
                active,
                error,
            } => evaluations.push(json!({
                "scale": scale,
                "iteration": iteration.iter,
                "seconds": started.elapsed().as_secs_f64(),
                "solver_seconds": solver_seconds,
                "error": error,
                "features": active.n_features(),
            })),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let mut given = TrainData::new(&data);
    given.valid = valid.as_ref().map(Into::into);
    let trained = train(&given, &config, &mut watch)?;
    let facts = json!({
        "seconds": started.elapsed().as_secs_f64(),
        "mine_seconds": mine_seconds,
        "triplets": trained.run.n_triplets,
        "error": trained.run.valid_error,
        "scale": trained.model.parts().scale,
        "features": trained.model.similarity().n_features_used(),
        "evaluations": evaluations,
        "iterations": iterations,
    });
    println!("{facts}");
    Ok(())
}
