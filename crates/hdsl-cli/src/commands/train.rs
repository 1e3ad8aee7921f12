//! `hdsl train`: learn a similarity and save it.

use crate::args::{LossArg, SearchArg, StepsArg, Train};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::progress::{self, Watch};
use crate::report::{self, Talk, count, percent, short, thousands};
use hdsl::model::Validation;
use hdsl::solver::Search;
use hdsl::train::hold_out as split;
use hdsl::{
    Dataset, LossKind, Normalization, PredictionRule, StepRule, Stop, TrainConfig, TrainData,
    Trained, TripletSource, Vote, train,
};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

pub(crate) fn run(args: &Train, talk: &Talk) -> Result<(), Failure> {
    let started = Instant::now();
    let validated = args.valid.is_some() || args.holdout.is_some();
    check(args, validated)?;
    let out = files::create(&args.output)?;

    let mut reader = Reader::new(&args.read, talk);
    let mut data = reader.data(&args.train, args.labels.as_ref())?;
    reader.beside(&args.train, &data);
    reader.add(&mut data, &args.train, "--labels", &args.more)?;
    let by_position = reader.is_numbered_by_position(&args.train);
    let n_features = data.rows.n_features();
    let read_names = |path| files::read_names(path, n_features);
    let names = args.names.as_deref().map(read_names).transpose()?;
    let valid = match (&args.valid, args.holdout) {
        (Some(path), _) => {
            let (valid, _) = reader.labeled(path, args.valid_labels.as_ref(), "--valid-labels")?;
            files::note_unseen(talk, path, &valid.rows, data.rows.n_features());
            Some(valid)
        }
        (None, Some(fraction)) => {
            let (rest, held) = hold_out(&data, fraction, args)?;
            data = rest;
            Some(held)
        }
        (None, None) => None,
    };
    if validated && data.labels.is_none() {
        return Err(Failure::usage(format!(
            "{}: has no labels, which validation needs; give a file of them with --labels",
            args.train.display()
        )));
    }

    let config = config(args);
    progress::stop_on_ctrl_c();
    if config.triplets.is_mined() {
        talk.detail("mining triplets");
    }
    let mut watch = Watch::new(talk, args.max_iter, args.eval_every, validated);
    let mut given = TrainData::new(&data);
    given.valid = valid.as_ref().map(Into::into);
    given.names = names.as_deref();
    let trained = train(&given, &config, &mut watch);
    let mine_seconds = watch.finish();
    let mut trained = trained.map_err(|error| refused(error, args))?;
    if by_position {
        trained.model = trained.model.numbered_by_position();
    }

    let bytes = trained.model.to_bytes();
    files::write(out, |out| out.write_all(&bytes))?;
    if trained.stop == Stop::ObserverAsked {
        talk.note("stopped by Ctrl-C; the best model so far is saved");
    }
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        return report::json(&to_json(
            args,
            &data,
            &trained,
            bytes.len(),
            mine_seconds,
            seconds,
        ));
    }
    if args.output.as_os_str() == "-" {
        return Ok(());
    }
    report::stdout(&to_text(args, &data, &trained, bytes.len(), seconds))
}

/// What can be told to be wrong before any file is opened.
fn check(args: &Train, validated: bool) -> Result<(), Failure> {
    if args.scale.len() > 1 && !validated {
        return Err(Failure::usage(
            "several values of --scale need validation rows to choose by: give --valid FILE or --holdout FRACTION",
        ));
    }
    if args.models > 1 && (args.scale.len() > 1 || args.max_features.is_some()) {
        return Err(Failure::usage(
            "--models takes one --scale and no --max-features: a mean of models has one lambda and the features of them all",
        ));
    }
    if args.patience.is_some() && !validated {
        return Err(Failure::usage(
            "--patience needs validation rows to watch: give --valid FILE or --holdout FRACTION",
        ));
    }
    if args.tol.is_some() && args.batch.is_some() {
        return Err(Failure::usage(
            "--tol cannot be used with --batch: a gap over a batch of triplets certifies nothing",
        ));
    }
    if args.holdout.is_some() && !args.triplets.is_mined() {
        return Err(Failure::usage(
            "--holdout cannot be used with triplets from a file, which name rows of TRAIN: give --valid FILE",
        ));
    }
    files::refuse_stdout_with_json(args.json, Some(&args.output))
}

/// Sets some rows aside, every class in proportion.
fn hold_out(data: &Dataset, fraction: f64, args: &Train) -> Result<(Dataset, Dataset), Failure> {
    let labels = data.labels.as_ref().ok_or_else(|| {
        Failure::usage(format!(
            "{}: has no labels, which --holdout needs; give a file of them with --labels",
            args.train.display()
        ))
    })?;
    let (rest, held) = split(labels, fraction, args.seed)?;
    let part = |which: &[u32]| Dataset {
        rows: data.rows.select(which),
        labels: Some(labels.select(which)),
        queries: None,
        index_base: data.index_base,
        notes: Vec::new(),
    };
    Ok((part(&rest), part(&held)))
}

fn config(args: &Train) -> TrainConfig {
    let mut config = TrainConfig::new(1.0);
    config.lambda = args.scale.clone();
    config.preprocess = args.preprocess.kind();
    config.triplets = args.triplets.clone();
    config.loss = match args.loss {
        LossArg::SmoothedHinge => LossKind::SmoothedHinge,
        LossArg::SquaredHinge => LossKind::SquaredHinge,
        LossArg::Logistic => LossKind::Logistic,
        LossArg::Exponential => LossKind::Exponential,
    };
    config.search = match args.search {
        SearchArg::Alternating => Search::Alternating,
        SearchArg::Exact => Search::Exact,
    };
    config.steps = match args.steps {
        StepsArg::Away => StepRule::Away,
        StepsArg::Pairwise => StepRule::Pairwise,
        StepsArg::Forward => StepRule::Forward,
    };
    config.batch = args.batch;
    config.max_iter = args.max_iter;
    config.tolerance = args.tol;
    config.certify = args.certify;
    config.max_features = args.max_features;
    config.time_limit = args.time.map(|limit| limit.as_secs_f64());
    config.memory_limit = args.memory;
    config.seed = args.seed;
    config.mining_rounds = args.rounds;
    config.last_round_iter = args.last_iter;
    config.n_estimators = args.models;
    config.rule = PredictionRule {
        k: args.k,
        vote: args.vote.vote(),
        normalization: args.normalization.normalization(),
    };
    config.eval_every = args.eval_every;
    config.patience = args.patience;
    if let Some(fraction) = args.holdout {
        config.validation = Validation::Holdout(fraction);
    }
    config.added_rows = args.more.add.is_some();
    config
}

/// Why the library would not train: which file it is about, and the flags that would help.
fn refused(error: hdsl::Error, args: &Train) -> Failure {
    let hdsl::Error::Memory {
        triplets,
        batch,
        fewer,
        ..
    } = error
    else {
        return error.in_file(&args.train).into();
    };
    let mut flags: Vec<String> = Vec::new();
    flags.extend(batch.map(|size| format!("--batch {size}")));
    match (fewer, &args.triplets) {
        (Some(fewer), TripletSource::Random { per_row }) => {
            let per_row = (*per_row as u128 * fewer as u128 / triplets as u128).max(1);
            flags.push(format!("--triplets random:{per_row}"));
        }
        (Some(_), TripletSource::Neighbors { .. }) => flags.push("a smaller knn:T:I".to_owned()),
        _ => {}
    }
    flags.push("--memory SIZE to try all the same".to_owned());
    Failure::usage(format!("{error} ({})", flags.join(", ")))
}

/// Why a run ended, in words.
fn why(stop: Stop) -> &'static str {
    match stop {
        Stop::MaxIter => "the iterations allowed were used up",
        Stop::Tolerance => "the objective is proved to be within the tolerance",
        Stop::FeatureBudget => "the features allowed were used up",
        Stop::TimeLimit => "the time allowed was used up",
        Stop::Satisfied => "every triplet is satisfied with margin 1",
        Stop::Stationary => "no step leads further down",
        Stop::Patience => "the validation error stopped falling",
        Stop::ObserverAsked => "Ctrl-C was pressed",
        _ => "the solver ended",
    }
}

/// What the validation error is the error of.
fn error_name(rule: &PredictionRule) -> String {
    let cosine = match rule.normalization {
        Normalization::Dot => "",
        Normalization::Cosine => "cosine ",
    };
    match rule.vote {
        Vote::Majority => format!("{cosine}{}-NN error", rule.k),
        Vote::Weighted => format!("weighted {cosine}{}-NN error", rule.k),
        Vote::ClassMean => format!("{cosine}class-mean error"),
    }
}

fn to_text(
    args: &Train,
    data: &Dataset,
    trained: &Trained,
    n_bytes: usize,
    seconds: f64,
) -> String {
    let model = &trained.model;
    let learned = model.similarity();
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row(
        "trained on",
        format!(
            "{} of {}, {}",
            count(data.rows.n_rows(), "row"),
            count(data.rows.n_features(), "feature"),
            count(trained.n_triplets, "triplet")
        ),
    );
    row("lambda", short(model.parts().scale));
    let taken = thousands(trained.iterations);
    if args.models > 1 {
        // A mean has no iterations of its own, nor triplets to have an objective on.
        let why = why(trained.stop);
        row("iterations", format!("{taken} ({why})"));
        row("kept", format!("the mean of {} models", trained.grid.len()));
    } else {
        let (why, chosen) = (why(trained.stop), thousands(model.chosen()));
        row(
            "iterations",
            format!("{taken} ({why}); kept the model after {chosen}"),
        );
        row("objective", objective(trained));
    }
    row(
        "uses",
        format!(
            "{} of {} in {}",
            thousands(learned.n_features_used()),
            count(model.n_features(), "feature"),
            count(learned.atoms().len(), "atom")
        ),
    );
    if let Some(error) = trained.valid_error {
        row(
            "validation",
            format!("{} {}", error_name(&model.rule()), percent(error)),
        );
    }
    row(
        "time",
        format!(
            "{:.2} s in the solver, {seconds:.2} s in all",
            trained.train_seconds
        ),
    );
    row(
        "saved",
        format!("{} ({} bytes)", args.output.display(), thousands(n_bytes)),
    );
    let mut text = report::table("", &rows);
    if trained.grid.len() > 1 {
        text += "\n";
        let first = if args.models > 1 { "seed" } else { "lambda" };
        let mut grid = vec![
            [first, "error", "objective", "iterations", "kept"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for (seed, point) in (args.seed..).zip(&trained.grid) {
            grid.push(vec![
                match args.models {
                    1 => short(point.lambda),
                    _ => seed.to_string(),
                },
                point.valid_error.map_or(String::new(), percent),
                short(point.objective),
                thousands(point.iterations),
                thousands(point.chosen),
            ]);
        }
        text += &report::table("  ", &grid);
    }
    text
}

/// The objective and how far it may be from the best possible.
fn objective(trained: &Trained) -> String {
    let gap = short(trained.gap.value().max(0.0));
    let bound = match trained.gap.is_certified() {
        true => format!("proved to be at most {gap} above the best possible"),
        false => format!("gap about {gap}, an estimate (--certify proves one)"),
    };
    let kept = match trained.model.chosen() == trained.iterations {
        true => String::new(),
        false => format!("; {} where kept", short(trained.chosen_objective)),
    };
    format!("{} at the end{kept}; {bound}", short(trained.objective))
}

fn to_json(
    args: &Train,
    data: &Dataset,
    trained: &Trained,
    n_bytes: usize,
    mine_seconds: f64,
    seconds: f64,
) -> Value {
    let model = &trained.model;
    let learned = model.similarity();
    let grid: Vec<Value> = trained
        .grid
        .iter()
        .map(|point| {
            json!({
                "scale": point.lambda,
                "objective": point.objective,
                "iterations": point.iterations,
                "chosen_iteration": point.chosen,
                "valid_error": point.valid_error,
                "stop": point.stop.to_string(),
                "train_seconds": point.train_seconds,
            })
        })
        .collect();
    json!({
        "model": args.output.display().to_string(),
        "objective": trained.objective,
        "gap": trained.gap.value(),
        "gap_certified": trained.gap.is_certified(),
        "iterations": trained.iterations,
        "chosen_iteration": model.chosen(),
        "chosen_objective": trained.chosen_objective,
        "chosen_gap": trained.chosen_gap.value(),
        "stop": trained.stop.to_string(),
        "scale": model.parts().scale,
        "n_atoms": learned.atoms().len(),
        "n_features": learned.n_features_used(),
        "n_features_total": model.n_features(),
        "n_rows": data.rows.n_rows(),
        "n_triplets": trained.n_triplets,
        "k": model.rule().k,
        "vote": model.rule().vote.name(),
        "normalization": model.rule().normalization.name(),
        "valid_error": trained.valid_error,
        "train_seconds": trained.train_seconds,
        "mine_seconds": mine_seconds,
        "seconds": seconds,
        "bytes": n_bytes,
        "grid": grid,
    })
}
