//! `hdsl tune`: search for the best similarity for a data set, and print the line that trains it again.

use super::rank::{CollectionArgs, Job};
use super::train::MemoryLimit;
use crate::args::{
    AddedRows, TrainingFiles, ValidationFiles, at_least_two, duration, fraction,
    heading::{LIMITS, VALIDATION},
    named, positive,
};
use crate::failure::Failure;
use crate::files::{self, TrainingData};
use crate::output::{self, Log, count, percent, short, thousands};
use crate::progress::TuningProgress;
use crate::signals;
use clap::Args;
use hdsl::model::{CommandFiles, shell_word};
use hdsl::ranking::RankConfig;
use hdsl::tune::{
    Ablation, AblationResult, Candidate, Preset, TuneConfig, Tuned, ValidationScheme,
    remove_journal, tune,
};
use hdsl::{TrainData, TripletSource};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rows of the leaderboard that are printed.
const SHOWN: usize = 10;

/// Search for the best similarity for labeled rows, triplets or judgments, and save it
///
/// First computes the errors of plain similarities, with nothing learned: dot product, cosine, tf-idf
/// cosine and others. Then searches, within a time limit, over: the base similarity; the
/// preprocessing of values; the source of the triplets (neighbors or random) and the number of mining
/// rounds; lambda; the loss; the number of iterations; the prediction rule (number of neighbors, vote,
/// dot product or cosine); one model or an average of several. Configurations with a low error get
/// twice the iterations, again and again, as long as that lowers it (successive halving). Errors are
/// computed on rows that were not trained on: those of --valid, or folds of all rows if there are few.
/// The best configuration is then trained on all rows. If no learned similarity is better than a plain
/// one, that is the result.
///
/// Prints a leaderboard, the expected error on new rows (of the whole selection, estimated on rows
/// that did not take part in it), and the `hdsl train` command that trains the same model again.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  hdsl tune train.svm.bz2 --valid valid.svm.bz2 -o best.hdsl
      selects on the validation rows, then trains on both files
  hdsl tune train.svm.bz2 --cv 5 --time 5m --max-features 200 -o best.hdsl
      five-fold cross-validation, at most five minutes, a model of at most 200 features
  hdsl evaluate best.hdsl --train train.svm.bz2 --add valid.svm.bz2 test.svm.bz2
      the model contains its prediction rule
  hdsl tune corpus.jsonl --queries queries.jsonl --judgments qrels.tsv --stem english -o ranker.hdsl
      a ranking of documents, chosen and measured on held-out queries, as `hdsl rank` with more settings

A search that was killed continues where it was if the same command is run again: finished trials
are recorded in best.hdsl.tune until the search ends. Ctrl-C ends the search and trains the best
configuration so far."
)]
pub(crate) struct Tune {
    /// What is searched over
    #[arg(long, value_name = "WHAT", value_parser = named!(Preset), default_value_t)]
    preset: Preset,
    /// Learn from and validate with a file instead of labels: clicks:FILE, judgments:FILE, judgments-low:FILE,
    /// pairs:FILE, or a FILE of triplets
    ///
    /// Folds are of anchors (queries), so that none is both learned from and validated with. The error is 1 - the accuracy
    /// on held-out triplets, where a tie counts one half; for judgments, 1 - nDCG@10 of rankings of all documents that the
    /// file names. Without it, triplets are mined from labels, and how is part of the search.
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["preset", "valid"])]
    triplets: Option<TripletSource>,
    #[command(flatten)]
    collection: CollectionArgs,
    /// Leave parts of the search out, to see what they contribute
    #[arg(long, value_name = "PART,...", value_delimiter = ',', value_parser = named!(Ablation), conflicts_with = "preset")]
    ablate: Vec<Ablation>,
    /// Iterations of the first trials; the better ones get twice as many, again and again
    /// [default: 128; 400 to 800 for --preset paper]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    round_iter: Option<usize>,
    /// Seed of all random choices: the same seed gives the same bytes if the time limit allows the whole search
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    validation: ValidationFiles,
    /// Cross-validation with this many folds of the training rows [default: 5, repeated up to 3 times for
    /// fewer than 1,500 rows; for 3,000 rows or more, the first fold, and all 5 for the best trials]
    #[arg(long, value_name = "FOLDS", value_parser = at_least_two, allow_negative_numbers = true, conflicts_with_all = ["valid", "holdout"], help_heading = VALIDATION)]
    cv: Option<usize>,
    /// Hold out this fraction of the training rows as validation rows [default: 0.2 for 20,000 rows or more]
    #[arg(long, value_name = "FRACTION", value_parser = fraction, allow_negative_numbers = true, conflicts_with = "valid", help_heading = VALIDATION)]
    holdout: Option<f64>,
    /// Train the final model on TRAIN alone, without the validation rows
    #[arg(long, requires = "valid", help_heading = VALIDATION)]
    no_refit: bool,

    /// Time limit of the whole search, the final training included: 30s, 5m, 1.5h
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m", help_heading = LIMITS)]
    time: Duration,
    /// Maximum number of features of the model
    #[arg(long, value_name = "N", value_parser = at_least_two, allow_negative_numbers = true, help_heading = LIMITS)]
    max_features: Option<usize>,
    /// Maximum number of atoms of the model (dimensions of `transform`)
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = LIMITS)]
    max_atoms: Option<usize>,
    #[command(flatten)]
    memory: MemoryLimit,
    #[command(flatten)]
    files: TrainingFiles,
}

pub(crate) fn run(args: &Tune, log: &Log) -> Result<(), Failure> {
    if args.collection.queries.is_some() {
        return args.ranking()?.run(log);
    }
    let started = Instant::now();
    args.memory.apply();
    let files = &args.files;
    files::refuse_stdout_with_json(files.json, Some(&files.output))?;
    let out = files::create(&files.output)?;
    let data = TrainingData::read(files, &args.validation, &AddedRows::default(), log)?;
    match &args.triplets {
        Some(source) if source.is_mined() => {
            return Err(Failure::usage(format!(
                "--triplets is {source}, expected a file: the search tries triplets mined from labels by itself"
            )));
        }
        None if data.train.labels.is_none() => {
            let option = "--labels or --triplets";
            return Err(files::no_labels(&files.train, &data.train, option));
        }
        _ => {}
    }

    signals::stop_in_order();
    let mut progress = TuningProgress::new(log, args.time);
    let mut given = TrainData::new(&data.train);
    given.valid = data.valid.as_ref().map(Into::into);
    given.names = data.names.as_deref();
    let tuned = tune(&given, &args.config(), &mut progress);
    progress.finish();
    let mut tuned = tuned.map_err(|error| Failure::from(error.in_file(&files.train)))?;
    let model = tuned.trained.model.clone();
    tuned.trained.model = data.finish(model, files, tuned.refitted)?;
    let bytes = tuned.trained.model.to_bytes();
    let journal = files::beside(&files.output, ".tune");
    files::write_model(out, &bytes, journal.as_deref())?;
    journal.iter().for_each(|path| remove_journal(path));
    if !tuned.finished {
        log.note(
            "stopped before the whole search was done; a longer --time may find a better model",
        );
    }
    let (n_bytes, seconds) = (bytes.len(), started.elapsed().as_secs_f64());
    output::result(
        files.json,
        Some(&files.output),
        || to_json(args, &tuned, n_bytes, seconds),
        || to_text(args, &tuned, n_bytes, seconds),
    )
}

impl Tune {
    /// The search for a similarity of queries and documents.
    fn ranking(&self) -> Result<Job<'_>, Failure> {
        let for_rows = [
            ("--preset", self.preset != Preset::default()),
            ("--triplets", self.triplets.is_some()),
            ("--ablate", !self.ablate.is_empty()),
            ("--round-iter", self.round_iter.is_some()),
            ("--valid", self.validation.valid.is_some()),
            ("--holdout", self.holdout.is_some()),
            ("--max-features", self.max_features.is_some()),
            ("--max-atoms", self.max_atoms.is_some()),
            ("--memory", self.memory.memory_limit.is_some()),
            ("--labels", self.files.labels.is_some()),
            ("--names", self.files.names.is_some()),
        ];
        if let Some((option, _)) = for_rows.iter().find(|option| option.1) {
            return Err(Failure::usage(format!(
                "{option} cannot be combined with --queries and --judgments"
            )));
        }
        let mut config = RankConfig::search();
        config.folds = self.cv.unwrap_or(config.folds);
        config.seed = self.seed;
        config.time = Some(self.time);
        Ok(Job {
            documents: &self.files.train,
            collection: &self.collection,
            text: &self.files.text,
            read: &self.files.read,
            config,
            output: &self.files.output,
            json: self.files.json,
        })
    }

    /// The options as the library takes them.
    fn config(&self) -> TuneConfig {
        let mut config = TuneConfig::default();
        config.preset = self.preset;
        if let Some(source) = &self.triplets {
            config.triplets = source.clone();
        }
        config.validation = match (self.cv, self.holdout) {
            (Some(folds), _) => ValidationScheme::CrossValidation(folds),
            (None, Some(fraction)) => ValidationScheme::Holdout(fraction),
            (None, None) => ValidationScheme::Auto,
        };
        config.no_refit = self.no_refit;
        config.time = Some(self.time);
        config.max_features = self.max_features;
        config.max_atoms = self.max_atoms;
        config.ablate = self.ablate.clone();
        config.round_iter = self.round_iter;
        config.seed = self.seed;
        config.memory_limit = self.memory.memory_limit;
        config.journal = files::beside(&self.files.output, ".tune");
        config
    }
}

/// The command that trains the same model again, as it would be typed.
fn command(args: &Tune, tuned: &Tuned) -> String {
    let (paths, read) = (&args.files, &args.files.read);
    let mut files = CommandFiles::default();
    files.train = Some(typed(&paths.train, "TRAIN"));
    files.labels = paths.labels.clone();
    let valid = args.validation.valid.as_deref();
    files.add = valid.map(|path| typed(path, "VALID"));
    files.add_labels = args.validation.valid_labels.clone();
    files.names = paths.names.clone();
    files.output = Some(typed(&paths.output, "MODEL"));
    if let Some(format) = read.format {
        let words = ["--format".to_owned(), format.to_string()];
        files.reading.extend(words);
    }
    for (given, flag) in [
        (read.zero_based, "--zero-based"),
        (read.one_based, "--one-based"),
    ] {
        if given {
            files.reading.push(flag.to_owned());
        }
    }
    let line = tuned.trained.model.command_line(&files);
    line.expect("a search has no warm start")
}

/// The command that measures the error of the model, with a placeholder for the test rows.
fn evaluation(args: &Tune, tuned: &Tuned) -> String {
    if tuned.trained.model.training_rows().is_some() {
        let model = path(&typed(&args.files.output, "MODEL"));
        return format!("hdsl evaluate {model} TEST");
    }
    let mut line = format!(
        "hdsl evaluate {} --train {}",
        path(&typed(&args.files.output, "MODEL")),
        path(&typed(&args.files.train, "TRAIN"))
    );
    let valid = args.validation.valid.as_deref();
    let valid = valid.map(|path| typed(path, "VALID"));
    let (labels, valid_labels) = (&args.files.labels, &args.validation.valid_labels);
    let files = [
        ("--train-labels", labels, true),
        ("--add", &valid, tuned.refitted),
        ("--add-labels", valid_labels, tuned.refitted),
    ];
    for (flag, file, used) in files {
        if let (Some(file), true) = (file, used) {
            line += &format!(" {flag} {}", path(file));
        }
    }
    if let Some(format) = args.files.read.format {
        line += &format!(" --format {format}");
    }
    line + " TEST"
}

/// The same for triplets or judgments.
fn supervised_evaluation(args: &Tune, source: &TripletSource) -> String {
    let form = match source {
        TripletSource::File { format, .. } => match format.to_string().as_str() {
            "file" => "FILE".to_owned(),
            other => format!("{other}:FILE"),
        },
        _ => "FILE".to_owned(),
    };
    let model = path(&typed(&args.files.output, "MODEL"));
    let rows = path(&typed(&args.files.train, "TRAIN"));
    format!("hdsl evaluate {model} {rows} --triplets {form}")
}

/// A path as it would be typed: a placeholder for a standard stream, which cannot be read again.
fn typed(path: &Path, placeholder: &str) -> PathBuf {
    match path.as_os_str() == "-" {
        true => PathBuf::from(placeholder),
        false => path.to_owned(),
    }
}

fn path(path: &Path) -> String {
    shell_word(&path.display().to_string()).into_owned()
}

fn to_text(args: &Tune, tuned: &Tuned, n_bytes: usize, seconds: f64) -> String {
    let mut text = output::table("", &leaderboard(tuned));
    let more = tuned.leaderboard.iter().skip(SHOWN);
    let more = more.filter(|candidate| !candidate.is_reference).count();
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    let mut lines = Vec::new();
    if let Some((error, deviation)) = tuned.expected_error {
        let expected = format!(
            "{} {}; standard deviation {} on a test set as large as a fold",
            percent(error),
            error_on_new(tuned),
            percent(deviation),
        );
        lines.push(("expect", expected));
    }
    lines.extend(against_reference(tuned).map(|text| ("reference", text)));
    let candidates = count(tuned.n_points, "candidate");
    let unit = match tuned.measure {
        None => "row",
        Some(_) => "anchor",
    };
    let validated = count(tuned.n_validation, unit);
    lines.push((
        "selected",
        format!("among {candidates} (checkpoints x prediction rules) by the error on {validated} not trained on"),
    ));
    lines.push(("uses", output::usage_of(&tuned.trained.model)));
    let both = match tuned.refitted {
        true => ", the validation rows among them",
        false => "",
    };
    let trained_on = format!("{}{both}", count(tuned.n_rows, "row"));
    lines.push(("trained on", trained_on));
    lines.push(("time", format!("{seconds:.1} s")));
    lines.push(("saved", output::saved(&args.files.output, n_bytes)));
    text += &format!("\n{}", output::fields(&lines));
    text += &format!(
        "\nTo train the same model again:\n  {}\n",
        command(args, tuned)
    );
    text += &match &args.triplets {
        None => format!(
            "\nTo measure its error on other rows:\n  {}\n",
            evaluation(args, tuned)
        ),
        Some(source) => format!(
            "\nTo measure it on other anchors or queries of these rows:\n  {}\n",
            supervised_evaluation(args, source)
        ),
    };
    text
}

/// What the errors are the errors of.
fn error_on_new(tuned: &Tuned) -> String {
    match tuned.measure {
        None => "error on new rows".to_owned(),
        Some(measure) => format!("error ({measure}) on new anchors or queries"),
    }
}

/// What learning brings against the best plain similarity.
fn against_reference(tuned: &Tuned) -> Option<String> {
    let reference = tuned.reference()?;
    let name = reference.reference_name()?;
    let error = percent(reference.error);
    let best = &tuned.leaderboard[0];
    if tuned.leaderboard.iter().all(|c| c.is_reference) {
        return Some(format!(
            "the {name} has {error} error in validation; there was no time to learn"
        ));
    }
    Some(match best.is_reference {
        true => format!(
            "no learned similarity is better than the {name}: {error} error in validation; it is the result"
        ),
        false => {
            let expected = tuned.expected_reference_error;
            let expected =
                expected.map_or(String::new(), |e| format!("{} expected, ", percent(e.0)));
            format!(
                "{name}: {expected}{error} error in validation, where the learned similarity has {}",
                percent(best.error)
            )
        }
    })
}

/// The first rows of the leaderboard, and all references.
fn leaderboard(tuned: &Tuned) -> Vec<Vec<String>> {
    let mut table = vec![output::head([
        "",
        "error",
        "features",
        "preprocess",
        "base",
        "triplets",
        "lambda",
        "loss",
        "iterations",
        "models",
        "prediction",
    ])];
    for (place, candidate) in (1..).zip(&tuned.leaderboard) {
        if place > SHOWN && !candidate.is_reference {
            continue;
        }
        let config = &candidate.config;
        let mut line = vec![format!("{place}."), percent(candidate.error)];
        if let Some(name) = candidate.reference_name() {
            // In place of what is learned.
            line.extend(["", &name, "", "", "", "", "", ""].map(str::to_owned));
        } else {
            let base = config.base.value().filter(|&base| base > 0.0);
            let rounds = config.mining_rounds;
            let iterations = match rounds {
                0 => thousands(config.max_iter),
                _ => format!("{} x {}", rounds + 1, thousands(config.max_iter)),
            };
            line.extend([
                thousands(candidate.features),
                config.preprocess.to_string(),
                base.map_or(String::new(), short),
                config.triplets.to_string(),
                short(config.lambda[0]),
                config.loss.to_string(),
                iterations,
                config.n_estimators.to_string(),
            ]);
        }
        line.push(config.rule.to_string());
        table.push(line);
    }
    table
}

fn to_json(args: &Tune, tuned: &Tuned, n_bytes: usize, seconds: f64) -> Value {
    let learned = tuned.trained.model.similarity();
    let candidate = |c: &Candidate| {
        let config = &c.config;
        json!({
            "error": c.error,
            "score": c.score,
            "n_features": c.features,
            "n_atoms": c.atoms,
            "reference": c.reference_name(),
            "preprocess": config.preprocess,
            "base": config.base.value(),
            "triplets": config.triplets.to_string(),
            "lambda": config.lambda.first(),
            "loss": config.loss,
            "mining_rounds": config.mining_rounds,
            "n_estimators": config.n_estimators,
            "subsample": config.subsample,
            "max_iter": config.max_iter,
            "last_round_iter": config.last_round_iter.unwrap_or(config.max_iter),
            "k": config.rule.k,
            "vote": config.rule.vote,
            "normalization": config.rule.normalization,
        })
    };
    let ablation = |a: &AblationResult| {
        json!({
            "part": a.part,
            "expected_error": a.expected_error.map(|e| e.0),
            "instead": candidate(&a.candidate),
        })
    };
    json!({
        "model": args.files.output,
        "command": command(args, tuned),
        "expected_error": tuned.expected_error.map(|e| e.0),
        "expected_error_deviation": tuned.expected_error.map(|e| e.1),
        "reference_error": tuned.reference().map(|c| c.error),
        "expected_reference_error": tuned.expected_reference_error.map(|e| e.0),
        "learned": !tuned.leaderboard[0].is_reference,
        "n_validation": tuned.n_validation,
        "measure": tuned.measure.unwrap_or("prediction error"),
        "n_models": tuned.n_points,
        "finished": tuned.finished,
        "refitted": tuned.refitted,
        "n_rows": tuned.n_rows,
        "n_features": learned.n_features_used(),
        "n_features_total": tuned.trained.model.n_features(),
        "n_atoms": learned.atoms().len(),
        "leaderboard": tuned.leaderboard.iter().map(candidate).collect::<Vec<_>>(),
        "ablations": tuned.ablations.iter().map(ablation).collect::<Vec<_>>(),
        "seconds": seconds,
        "bytes": n_bytes,
    })
}
