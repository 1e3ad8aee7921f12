//! `hdsl train`: learn a similarity and save it.

use crate::args::{
    AddedRows, OrNever, TrainingFiles, ValidationFiles, above_zero, at_least_two, base_weight,
    duration, fraction,
    heading::{LIMITS, METHOD, STOP, VALIDATION},
    iterations, memory, models, named, or_never, positive,
};
use crate::failure::Failure;
use crate::files::{self, TrainingData};
use crate::output::{self, Log, count, percent, short, thousands};
use crate::progress::TrainingProgress;
use crate::signals;
use clap::Args;
use hdsl::checkpoint::Checkpoint;
use hdsl::data::limit_reading;
use hdsl::model::{BaseWeight, Validation, ValidationMeasure};
use hdsl::solver::Search;
use hdsl::train::Choice;
use hdsl::{
    Dataset, LossKind, Model, Normalization, PredictionRule, Preprocess, StepRule, Stop,
    TrainConfig, TrainData, Trained, TripletSource, Vote, train,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Learn a similarity from labeled rows or from triplets, and save it
///
/// Learns M of S(x, x') = beta <x, x'> + x^T M x' from triplets (x, y, z), "x is more similar to y than to z":
///
///   minimize    f(M) = (1/T) sum_t loss(m_t),   m_t = S(x_t, y_t) - S(x_t, z_t)
///   subject to  M in the convex hull of the atoms LAMBDA (e_i +- e_j)(e_i +- e_j)^T
///
/// An atom with a plus makes two rows more similar if one has feature i and the other feature j; an
/// atom with a minus makes them less similar. Each iteration adds one atom or changes the weight of
/// one (a Frank-Wolfe method with away steps), so after k iterations at most 2(k+1) features are in
/// use. Early stopping regularizes: with validation rows or held-out triplets (--valid, --holdout),
/// the iterate with the lowest error on them is kept; without, the last one.
///
/// The model file contains the whole path of iterates: other commands can use an earlier, sparser one
/// with --max-features, --max-atoms or --iteration, without training again. It also contains the
/// preprocessing, so that other commands take raw rows.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  hdsl train train.svm.bz2 -o m.hdsl
      chooses preprocessing, base and lambda from the data
  hdsl train train.svm.bz2 --valid valid.svm.bz2 --lambda 1,10,100,1000 -o m.hdsl
      tries four values of lambda and keeps the one with the lowest 3-NN error on the validation rows
  hdsl train train.svm.bz2 --valid valid.svm.bz2 --triplets random:20 --lambda 100 -o m.hdsl --json
      20 random triplets per row (better than neighbors for few rows); results as JSON
  hdsl train train.svm.bz2 --triplets knn:3:5 --lambda 100 --search exact --tol 0.01 -o m.hdsl
      stops when the objective is certified to be within 0.01 of the minimum
  hdsl train rows.svm --triplets clicks:log.txt --lambda 100 -o m.hdsl
      learns from a click log; labels are not needed
  hdsl train rows.svm --triplets judgments:qrels.txt --lambda 10,100 --holdout 0.2 -o m.hdsl
      keeps the lambda and the iterate with the highest nDCG@10 on a fifth of the queries

Ctrl-C stops training and keeps the best model so far; a second Ctrl-C ends the program at once.
SIGTERM and SIGHUP do the same, with status 143 and 129. A training that was killed goes on from its
last checkpoint if the same command is run again (--checkpoint, --resume)."
)]
pub(crate) struct Train {
    /// Size lambda of the domain, above 0: one number, or several to compare by validation error [default: chosen from
    /// the data]
    ///
    /// Without it, everything that is not given is chosen from the data: --preprocess auto, --base auto, and a lambda
    /// relative to the base; and if learning does not lower the error on held-out rows, the base similarity alone is the
    /// result. With it, the defaults are those of the paper: --preprocess max and --base 0. The larger lambda, the further M can move in few steps. Scan 1,10,100,1000 first; the best is often between 10
    /// and 1000 for values in [0, 1], and 10^4 or more with --preprocess unit.
    #[arg(
        long,
        visible_alias = "scale",
        value_name = "LAMBDA,...",
        value_delimiter = ',',
        value_parser = above_zero,
        allow_negative_numbers = true
    )]
    lambda: Vec<f64>,

    #[command(flatten)]
    validation: ValidationFiles,
    /// Hold out this fraction of the rows, or of the anchors of triplets from a file, for validation, drawn with --seed
    ///
    /// With triplets mined from labels, rows are held out, by class, and the validation error is the prediction error on them.
    /// With triplets or clicks from a file, anchors are held out with all their triplets, and the error is 1 - the accuracy on
    /// those triplets, where a tie counts one half. With judgments, queries are held out, and the error is 1 - nDCG@10 of
    /// rankings of the judged documents of each query. Held-out anchors and queries have no triplets to learn from; their rows
    /// may still be near or far rows of other anchors.
    #[arg(long, value_name = "FRACTION", value_parser = fraction, allow_negative_numbers = true, conflicts_with = "valid", help_heading = VALIDATION)]
    holdout: Option<f64>,
    /// Number of neighbors that vote on a validation row; saved in the model
    #[arg(short, value_name = "K", default_value_t = 3, value_parser = positive, allow_negative_numbers = true, help_heading = VALIDATION)]
    k: usize,
    /// How neighbors vote; saved in the model
    #[arg(long, value_name = "HOW", value_parser = named!(Vote), default_value_t, help_heading = VALIDATION)]
    vote: Vote,
    /// Normalization of the similarity when neighbors are ranked; saved in the model
    #[arg(long, value_name = "HOW", value_parser = named!(Normalization), default_value_t, help_heading = VALIDATION)]
    normalization: Normalization,
    /// Iterations between evaluations of the validation error
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = positive, allow_negative_numbers = true, help_heading = VALIDATION)]
    eval_every: usize,
    /// Early stopping: end a run when its validation error has not improved for N iterations [default: never]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = VALIDATION)]
    patience: Option<usize>,

    #[command(flatten)]
    source: TripletArgs,
    /// Rounds of hard-negative mining after the first run
    ///
    /// In each round, 3 target neighbors x 5 impostors per row are mined under the similarity learned so far, added to
    /// the triplets there are, and training continues from the current solution.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = METHOD)]
    mining_rounds: usize,
    /// Average N models that differ in their random triplets and starts
    ///
    /// The first has --seed, the others the numbers after it. The average is again a combination of atoms: its error
    /// varies less than that of one model, and it uses more features. Its path adds the atoms by weight, the largest
    /// first. Cannot be combined with several values of --lambda or with --max-features.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = models, allow_negative_numbers = true, help_heading = METHOD)]
    n_estimators: usize,
    /// Each model of --n-estimators learns from this fraction of the rows, drawn by class
    ///
    /// Of a file of triplets, clicks or judgments, it is the fraction of the anchors.
    #[arg(long, value_name = "FRACTION", default_value_t = 1.0, allow_negative_numbers = true, help_heading = METHOD)]
    subsample: f64,
    /// Preprocessing of feature values; fitted on TRAIN and saved in the model [default: auto; max with --lambda]
    #[arg(long, value_name = "HOW", value_parser = named!(Preprocess), help_heading = METHOD)]
    preprocess: Option<Preprocess>,
    /// Weight beta of the base similarity: a number, or auto [default: auto; 0 with --lambda]
    ///
    /// The similarity is S(x, x') = beta <x, x'> + x^T M x', on preprocessed rows: M is learned on top of the dot product, which
    /// is the cosine if rows have unit length (--preprocess unit, max+unit, tfidf). Use it where the dot product or cosine
    /// is already good: on text with many classes, on judgments, on small dense data. auto chooses beta so that the base
    /// margins beta |<x, y> - <x, z>| of the triplets are 3 on average. 0 is the method of the paper: features that no atom
    /// uses do not count.
    #[arg(long, value_name = "BETA", value_parser = base_weight, allow_negative_numbers = true, help_heading = METHOD)]
    base: Option<BaseWeight>,
    /// Linear minimization oracle: how the next atom is searched
    #[arg(long, value_name = "HOW", value_parser = named!(Search), default_value_t, help_heading = METHOD)]
    search: Search,
    /// How the direction of a step is chosen
    #[arg(long, value_name = "RULE", value_parser = named!(StepRule), default_value_t, help_heading = METHOD)]
    steps: StepRule,
    /// Loss of a triplet, a function of its margin m = S_M(x, y) - S_M(x, z)
    #[arg(long, value_name = "LOSS", value_parser = named!(LossKind), default_value_t, help_heading = METHOD)]
    loss: LossKind,
    /// Mini-batches: random triplets per gradient, drawn in each iteration [default: all triplets]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = METHOD)]
    batch: Option<usize>,
    /// Seed of all random choices: the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = METHOD)]
    seed: u64,

    /// Maximum number of iterations, per lambda and mining round; with a base, 0 is the base alone
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = iterations, allow_negative_numbers = true, help_heading = STOP)]
    max_iter: usize,
    /// Maximum number of iterations of the last mining round [default: --max-iter]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = STOP)]
    last_round_iter: Option<usize>,
    /// Stop when the objective is certified to be within GAP of the minimum
    ///
    /// The Frank-Wolfe gap bounds f(M) - f(M*) only if the search is exact and over all triplets. Therefore an exact
    /// search is run from time to time, whatever --search says. Cannot be combined with --batch.
    #[arg(long = "tol", value_name = "GAP", value_parser = above_zero, allow_negative_numbers = true, help_heading = STOP)]
    tolerance: Option<f64>,
    /// Certify the gap of the last iterate by one exact search at the end
    #[arg(long, help_heading = STOP)]
    certify: bool,
    /// Stop before more than N features are used
    #[arg(long, value_name = "N", value_parser = at_least_two, allow_negative_numbers = true, help_heading = STOP)]
    max_features: Option<usize>,
    /// Time limit of the solver, per lambda: 30s, 5m, 1.5h
    #[arg(long = "time", value_name = "TIME", value_parser = duration, help_heading = STOP)]
    time_limit: Option<Duration>,

    #[command(flatten)]
    memory: MemoryLimit,
    /// Record the steps in MODEL.checkpoint this often: 60s, 10m, or never
    ///
    /// If the program is killed, the same command goes on from there, and the model is the same, byte for byte, as without
    /// the interruption. The file is removed when the model is saved.
    #[arg(long, value_name = "TIME", value_parser = or_never, default_value = "60s", help_heading = LIMITS)]
    checkpoint: OrNever,
    /// Whether to go on from MODEL.checkpoint if there is one; `no` starts again
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"], default_value = "yes", help_heading = LIMITS, hide_possible_values = true)]
    resume: String,
    #[command(flatten)]
    added: AddedRows,
    #[command(flatten)]
    files: TrainingFiles,
}

/// Where triplets come from.
#[derive(Args, Debug)]
pub(crate) struct TripletArgs {
    /// Source of the triplets: knn:3:5, random:20, clicks:FILE, judgments:FILE, pairs:FILE, or a FILE
    #[arg(long, value_name = "SOURCE", default_value = "knn:3:5", long_help = source_help(), help_heading = METHOD)]
    pub(crate) triplets: TripletSource,
}

/// The forms of a triplet source, one per line.
fn source_help() -> String {
    let forms = TripletSource::FORMS;
    let width = forms.iter().map(|form| form.0.len()).max().unwrap_or(0);
    let lines = forms.map(|(text, meaning)| format!("{text:<width$}  {meaning}\n"));
    format!(
        "Source of the triplets\n\n{}\nNeighbors are those of the dot product. Files name rows of the \
         data counted from 0, and need no labels.",
        lines.concat()
    )
}

/// How much memory a run may take.
#[derive(Args, Debug)]
pub(crate) struct MemoryLimit {
    /// Refuse runs that would need more memory than this: 500MB, 4GB [default: what is free]
    ///
    /// The need is estimated before a run starts, rather too high than too low. With a limit above the free memory, a
    /// run that was refused can start.
    #[arg(long = "memory", value_name = "SIZE", value_parser = memory, help_heading = LIMITS)]
    pub(crate) memory_limit: Option<u64>,
}

impl MemoryLimit {
    /// Sets the limit for the files that are read, too.
    pub(crate) fn apply(&self) {
        if let Some(bytes) = self.memory_limit {
            limit_reading(bytes);
        }
    }
}

pub(crate) fn run(args: &Train, log: &Log) -> Result<(), Failure> {
    let started = Instant::now();
    check(args)?;
    args.memory.apply();
    let output = &args.files.output;
    let out = files::create(output)?;
    let mut data = TrainingData::read(&args.files, &args.validation, &args.added, log)?;
    let mut config = args.config();
    config.checkpoint = args.checkpoint_file();
    let checkpoint = config.checkpoint.clone();
    let predicts = config.validation_measure() == Some(ValidationMeasure::PredictionError);
    let mines = config.triplets.is_mined() && data.train.records.is_some();
    if (predicts || mines) && data.train.labels.is_none() {
        return Err(files::no_labels(&args.files.train, &data.train, "--labels"));
    }
    files::check_values(config.preprocess, &args.files.train, &data.train.rows)?;
    if let (Some(path), Some(valid)) = (&args.validation.valid, &data.valid) {
        files::check_values(config.preprocess, path, &valid.rows)?;
    }
    if let Validation::Holdout(fraction) = config.validation {
        hold_out(&mut data, fraction, args.seed)?;
    }

    signals::stop_in_order();
    if config.lambda.is_empty() || config.preprocess == Preprocess::Auto {
        log.detail("choosing settings on held-out rows");
    }
    if config.triplets.is_mined() {
        log.detail("mining triplets");
    }
    let mut progress = TrainingProgress::new(log, &config, args.is_validated());
    let mut given = TrainData::new(&data.train);
    given.valid = data.valid.as_ref().map(Into::into);
    given.names = data.names.as_deref();
    let trained = train(&given, &config, &mut progress);
    let mine_seconds = progress.finish();
    let mut trained = trained.map_err(|error| refused(error, args))?;
    trained.model = data.finish(trained.model.clone(), &args.files, false)?;
    let bytes = trained.model.to_bytes();
    let file = checkpoint
        .as_ref()
        .map(|checkpoint| checkpoint.path.as_path());
    files::write_model(out, &bytes, file)?;
    match (trained.run.stop, file.filter(|file| file.exists())) {
        (Stop::ObserverAsked, None) => log.note(format!(
            "stopped by {}; the best model so far is saved",
            signals::name()
        )),
        (Stop::ObserverAsked, Some(file)) => log.note(format!(
            "stopped by {}; the best model so far is saved, and the same command goes on from {}",
            signals::name(),
            file.display()
        )),
        _ => checkpoint.iter().for_each(Checkpoint::remove),
    }
    let result = TrainResult {
        args,
        data: &data.train,
        trained: &trained,
        n_bytes: bytes.len(),
        mine_seconds,
        seconds: started.elapsed().as_secs_f64(),
    };
    output::result(
        args.files.json,
        Some(output),
        || result.json(),
        || result.text(),
    )
}

/// Combinations of options that are refused before any file is opened.
fn check(args: &Train) -> Result<(), Failure> {
    let validated = args.is_validated();
    if args.lambda.len() > 1 && !validated {
        return Err(Failure::usage(
            "several values of --lambda need validation: pass --valid FILE or --holdout FRACTION",
        ));
    }
    if args.n_estimators > 1 && (args.lambda.len() > 1 || args.max_features.is_some()) {
        return Err(Failure::usage(
            "--n-estimators takes one --lambda and no --max-features: an average of models has the features of all of \
             them",
        ));
    }
    if args.patience.is_some() && !validated {
        return Err(Failure::usage(
            "--patience needs validation: pass --valid FILE or --holdout FRACTION",
        ));
    }
    if args.tolerance.is_some() && args.batch.is_some() {
        return Err(Failure::usage(
            "--tol cannot be combined with --batch: the gap over a batch of triplets certifies nothing",
        ));
    }
    files::refuse_stdout_with_json(args.files.json, Some(&args.files.output))
}

/// Moves a fraction of the training rows to the validation rows, every class in proportion.
fn hold_out(data: &mut TrainingData, fraction: f64, seed: u64) -> Result<(), Failure> {
    let Some(labels) = &data.train.labels else {
        return Ok(());
    };
    let (rest, held) = hdsl::train::hold_out(labels, fraction, seed)?;
    let part = |which: &[u32]| Dataset {
        rows: data.train.rows.select(which),
        labels: Some(labels.select(which)),
        queries: None,
        index_base: data.train.index_base,
        notes: Vec::new(),
        records: None,
    };
    let (rest, held) = (part(&rest), part(&held));
    let all = std::mem::replace(&mut data.train, rest);
    // Neighbors are searched among all of them.
    data.all = data.vectorizer.is_some().then_some(all);
    data.valid = Some(held);
    Ok(())
}

impl Train {
    fn is_validated(&self) -> bool {
        self.validation.valid.is_some() || self.holdout.is_some()
    }

    /// Where and how often steps are recorded.
    fn checkpoint_file(&self) -> Option<Checkpoint> {
        let mut checkpoint = Checkpoint::new(files::beside(&self.files.output, ".checkpoint")?);
        checkpoint.every = self.checkpoint.0?;
        checkpoint.resume = self.resume == "yes";
        Some(checkpoint)
    }

    /// The options as the library takes them.
    fn config(&self) -> TrainConfig {
        let mut config = TrainConfig::new(1.0);
        config.lambda = self.lambda.clone();
        let (preprocess, base) = match self.lambda.is_empty() {
            true => (Preprocess::Auto, BaseWeight::Auto),
            false => (config.preprocess, config.base),
        };
        config.preprocess = self.preprocess.unwrap_or(preprocess);
        config.base = self.base.unwrap_or(base);
        config.triplets = self.source.triplets.clone();
        config.loss = self.loss;
        config.search = self.search;
        config.steps = self.steps;
        config.batch = self.batch;
        config.max_iter = self.max_iter;
        config.tolerance = self.tolerance;
        config.certify = self.certify;
        config.max_features = self.max_features;
        config.time_limit = self.time_limit.map(|limit| limit.as_secs_f64());
        config.memory_limit = self.memory.memory_limit;
        config.seed = self.seed;
        config.mining_rounds = self.mining_rounds;
        config.last_round_iter = self.last_round_iter;
        config.n_estimators = self.n_estimators;
        config.subsample = self.subsample;
        config.rule = PredictionRule {
            k: self.k,
            vote: self.vote,
            normalization: self.normalization,
        };
        config.eval_every = self.eval_every;
        config.patience = self.patience;
        config.validation = match (&self.validation.valid, self.holdout) {
            (Some(_), _) => Validation::Rows,
            (None, Some(fraction)) => match self.source.triplets.is_mined() {
                true => Validation::Holdout(fraction),
                false => Validation::HoldoutAnchors(fraction),
            },
            (None, None) => Validation::None,
        };
        config.added_rows = self.added.add.is_some();
        config
    }
}

/// An error of training with the file it is about, and the options that would help.
fn refused(error: hdsl::Error, args: &Train) -> Failure {
    let hdsl::Error::Memory {
        triplets,
        batch,
        fewer,
        ..
    } = error
    else {
        return error.in_file(&args.files.train).into();
    };
    let mut options: Vec<String> = Vec::new();
    options.extend(batch.map(|size| format!("--batch {size}")));
    match (fewer, &args.source.triplets) {
        (Some(fewer), TripletSource::Random { per_row }) => {
            let per_row = (*per_row as u128 * fewer as u128 / triplets as u128).max(1);
            options.push(format!("--triplets random:{per_row}"));
        }
        (Some(_), TripletSource::Neighbors { .. }) => options.push("a smaller knn:T:I".to_owned()),
        _ => {}
    }
    options.push("--memory SIZE to try all the same".to_owned());
    Failure::usage(format!("{error} ({})", options.join(", ")))
}

/// The reason why a run ended, in words.
fn stop_in_words(stop: Stop) -> &'static str {
    match stop {
        Stop::MaxIter => "the maximum",
        Stop::Tolerance => "certified to be within --tol of the minimum",
        Stop::FeatureBudget => "more would exceed --max-features",
        Stop::TimeLimit => "the time limit",
        Stop::Satisfied => "every triplet has margin 1",
        Stop::Stationary => "no direction descends",
        Stop::Patience => "the validation error stopped improving",
        Stop::ObserverAsked => "stopped by a signal",
        Stop::BaseAlone => "the base alone has no more errors on held-out rows",
        _ => "the solver ended",
    }
}

/// What was chosen on held-out rows, and the errors that decided it.
fn chosen_in_words(choice: &Choice) -> String {
    let mut text = format!(
        "preprocessing {} (on {}: error of the base alone {}",
        choice.preprocess,
        count(choice.n_held_out, "held-out row"),
        percent(choice.base_error)
    );
    if let Some(error) = choice.learned_error {
        text += &format!("; learned {}", percent(error));
    }
    text + ")"
}

/// What the validation error is the error of.
fn error_name(model: &Model) -> String {
    let rule = model.rule();
    let cosine = match rule.normalization {
        Normalization::Dot => "",
        Normalization::Cosine => "cosine ",
    };
    match (model.parts().config.validation_measure(), rule.vote) {
        (Some(ValidationMeasure::TripletError), _) => {
            format!("{cosine}error on held-out triplets, ties counted one half,")
        }
        (Some(ValidationMeasure::NdcgLoss), _) => {
            format!("{cosine}1 - nDCG@10 of held-out queries")
        }
        (_, Vote::Majority) => format!("{cosine}{}-NN error", rule.k),
        (_, Vote::Weighted) => format!("weighted {cosine}{}-NN error", rule.k),
        (_, Vote::Squared) => format!("squared-weight {cosine}{}-NN error", rule.k),
        (_, Vote::ClassMean) => format!("{cosine}class-mean error"),
    }
}

/// A finished training, as text and as JSON.
struct TrainResult<'a> {
    args: &'a Train,
    data: &'a Dataset,
    trained: &'a Trained,
    n_bytes: usize,
    mine_seconds: f64,
    seconds: f64,
}

impl TrainResult<'_> {
    fn text(&self) -> String {
        let (trained, model) = (self.trained, &self.trained.model);
        let trained_on = format!(
            "{} of {}, {}",
            count(self.data.rows.n_rows(), "row"),
            count(self.data.rows.n_features(), "feature"),
            count(trained.run.n_triplets, "triplet")
        );
        let mut lines = vec![("trained on", trained_on)];
        if let Some(choice) = &trained.choice {
            lines.push(("chosen", chosen_in_words(choice)));
        }
        if model.base() > 0.0 {
            lines.push(("base", short(model.base())));
        }
        if trained.run.stop != Stop::BaseAlone {
            lines.push(("lambda", short(model.parts().scale)));
        }
        let stop = stop_in_words(trained.run.stop);
        let iterations = format!("{} ({stop})", thousands(trained.run.iterations));
        if trained.run.stop == Stop::BaseAlone {
            lines.push(("iterations", iterations));
        } else if self.args.n_estimators > 1 {
            // An average has neither iterations of its own nor triplets to have an objective on.
            lines.push(("iterations", iterations));
            lines.push((
                "kept",
                format!("the average of {} models", trained.grid.len()),
            ));
        } else {
            let chosen = thousands(model.chosen());
            let iterations = format!("{iterations}; selected the iterate after {chosen}");
            lines.push(("iterations", iterations));
            lines.push(("objective", self.objective()));
        }
        lines.push(("uses", output::usage_of(model)));
        if let Some(error) = trained.run.valid_error {
            let error = format!("{} {}", error_name(model), percent(error));
            lines.push(("validation", error));
        }
        let solver = trained.run.train_seconds;
        let time = format!(
            "{solver:.2} s in the solver, {:.2} s in total",
            self.seconds
        );
        lines.push(("time", time));
        lines.push((
            "saved",
            output::saved(&self.args.files.output, self.n_bytes),
        ));
        output::fields(&lines) + &self.grid() + self.advice()
    }

    /// Where settings were left open: the command that searches for them.
    fn advice(&self) -> &'static str {
        let args = self.args;
        match args.lambda.is_empty()
            && args.source.triplets.is_mined()
            && self.data.labels.is_some()
        {
            true => "\n`hdsl tune` searches over more settings, and may find a better model.\n",
            false => "",
        }
    }

    /// The objective and how far it may be from the minimum.
    fn objective(&self) -> String {
        let trained = self.trained;
        let gap = short(trained.run.gap.value().max(0.0));
        let bound = match trained.run.gap.is_certified() {
            true => format!("certified to be at most {gap} above the minimum"),
            false => format!("estimated gap {gap} (--certify gives a bound)"),
        };
        let kept = match trained.model.chosen() == trained.run.iterations {
            true => String::new(),
            false => format!(
                "; {} at the selected iterate",
                short(trained.run.chosen_objective)
            ),
        };
        format!("{} at the end{kept}; {bound}", short(trained.run.objective))
    }

    /// A table of the runs, if there are several.
    fn grid(&self) -> String {
        if self.trained.grid.len() < 2 {
            return String::new();
        }
        let is_ensemble = self.args.n_estimators > 1;
        let first = if is_ensemble { "seed" } else { "lambda" };
        let mut table = vec![output::head([
            first,
            "error",
            "objective",
            "iterations",
            "selected",
        ])];
        for (seed, point) in (self.args.seed..).zip(&self.trained.grid) {
            table.push(vec![
                match is_ensemble {
                    true => seed.to_string(),
                    false => short(point.lambda),
                },
                point.valid_error.map_or(String::new(), percent),
                short(point.objective),
                thousands(point.iterations),
                thousands(point.chosen),
            ]);
        }
        format!("\n{}", output::table("  ", &table))
    }

    fn json(&self) -> Value {
        let (trained, model) = (self.trained, &self.trained.model);
        let (learned, rule) = (model.similarity(), model.rule());
        let grid = trained.grid.iter().map(|point| {
            json!({
                "lambda": point.lambda,
                "objective": point.objective,
                "iterations": point.iterations,
                "chosen_iteration": point.chosen,
                "valid_error": point.valid_error,
                "stop": point.stop.to_string(),
                "train_seconds": point.train_seconds,
            })
        });
        json!({
            "model": self.args.files.output,
            "objective": trained.run.objective,
            "gap": trained.run.gap.value(),
            "gap_certified": trained.run.gap.is_certified(),
            "iterations": trained.run.iterations,
            "chosen_iteration": model.chosen(),
            "chosen_objective": trained.run.chosen_objective,
            "chosen_gap": trained.run.chosen_gap.value(),
            "stop": trained.run.stop.to_string(),
            "preprocess": model.preprocess().kind(),
            "base": model.base(),
            "lambda": model.parts().scale,
            "n_atoms": learned.atoms().len(),
            "n_features": learned.n_features_used(),
            "n_features_total": model.n_features(),
            "n_rows": self.data.rows.n_rows(),
            "n_triplets": trained.run.n_triplets,
            "k": rule.k,
            "vote": rule.vote,
            "normalization": rule.normalization,
            "valid_error": trained.run.valid_error,
            "valid_measure": model.parts().config.validation_measure(),
            "choice": trained.choice.as_ref().map(|choice| json!({
                "n_held_out": choice.n_held_out,
                "base_error": choice.base_error,
                "learned_error": choice.learned_error,
                "iterations": choice.iterations,
            })),
            "train_seconds": trained.run.train_seconds,
            "mine_seconds": self.mine_seconds,
            "seconds": self.seconds,
            "bytes": self.n_bytes,
            "grid": grid.collect::<Vec<Value>>(),
        })
    }
}
