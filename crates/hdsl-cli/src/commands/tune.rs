//! `hdsl tune`: the best similarity for a set of data, and the line that makes it again.

use crate::args::{PresetArg, Tune};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::progress::{self, TuneWatch};
use crate::report::{self, Talk, count, percent, short, thousands};
use clap::ValueEnum;
use hdsl::TrainData;
use hdsl::model::{CommandFiles, shell_word};
use hdsl::tune::{AblationResult, Candidate, Preset, TuneConfig, Tuned, ValidationScheme, tune};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Lines of the leaderboard that are shown.
const SHOWN: usize = 10;

pub(crate) fn run(args: &Tune, talk: &Talk) -> Result<(), Failure> {
    let started = Instant::now();
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = files::create(&args.output)?;

    let mut reader = Reader::new(&args.read, talk);
    let (data, _) = reader.labeled(&args.train, args.labels.as_ref(), "--labels")?;
    reader.beside(&args.train, &data);
    let by_position = reader.is_numbered_by_position(&args.train);
    let n_features = data.rows.n_features();
    let read_names = |path| files::read_names(path, n_features);
    let names = args.names.as_deref().map(read_names).transpose()?;
    let valid = match &args.valid {
        Some(path) => {
            let (valid, _) = reader.labeled(path, args.valid_labels.as_ref(), "--valid-labels")?;
            files::note_unseen(talk, path, &valid.rows, n_features);
            Some(valid)
        }
        None => None,
    };

    let config = config(args);
    progress::stop_on_ctrl_c();
    let mut watch = TuneWatch::new(talk, args.time);
    let mut given = TrainData::new(&data);
    given.valid = valid.as_ref().map(Into::into);
    given.names = names.as_deref();
    let tuned = tune(&given, &config, &mut watch);
    watch.finish();
    let mut tuned = tuned.map_err(|error| Failure::from(error.in_file(&args.train)))?;
    if by_position {
        tuned.trained.model = tuned.trained.model.numbered_by_position();
    }

    let bytes = tuned.trained.model.to_bytes();
    files::write(out, |out| out.write_all(&bytes))?;
    if !tuned.finished {
        talk.note("stopped before all that was planned was done; more --time may find better");
    }
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        return report::json(&to_json(args, &tuned, bytes.len(), seconds));
    }
    if args.output.as_os_str() == "-" {
        return Ok(());
    }
    report::stdout(&to_text(args, &tuned, bytes.len(), seconds))
}

fn config(args: &Tune) -> TuneConfig {
    let mut config = TuneConfig::default();
    config.preset = match args.preset {
        PresetArg::Best => Preset::Best,
        PresetArg::Paper => Preset::Paper,
    };
    config.validation = match (args.cv, args.holdout) {
        (Some(folds), _) => ValidationScheme::CrossValidation(folds),
        (None, Some(fraction)) => ValidationScheme::Holdout(fraction),
        (None, None) => ValidationScheme::Auto,
    };
    config.no_refit = args.no_refit;
    config.time = Some(args.time);
    config.max_features = args.max_features;
    config.max_atoms = args.max_atoms;
    config.ablate = args.without.clone();
    config.round_iter = args.round_iter;
    config.seed = args.seed;
    config.memory_limit = args.memory;
    config.journal = journal(&args.output);
    config
}

/// Where what is finished is kept: beside the output, unless that is standard output.
fn journal(output: &Path) -> Option<PathBuf> {
    if output.as_os_str() == "-" {
        return None;
    }
    let mut name = OsString::from(output.as_os_str());
    name.push(".tune");
    Some(PathBuf::from(name))
}

/// The command that trains the winner, as it would be typed.
fn command(args: &Tune, tuned: &Tuned) -> String {
    let mut files = CommandFiles::default();
    files.train = Some(args.train.clone());
    files.labels = args.labels.clone();
    files.add = args.valid.clone();
    files.add_labels = args.valid_labels.clone();
    files.names = args.names.clone();
    files.output = Some(args.output.clone());
    if let Some(format) = format(args) {
        files.reading.extend(["--format".to_owned(), format]);
    }
    for (given, flag) in [
        (args.read.zero_based, "--zero-based"),
        (args.read.one_based, "--one-based"),
    ] {
        if given {
            files.reading.push(flag.to_owned());
        }
    }
    let line = tuned.trained.model.command_line(&files);
    line.expect("a search starts from nothing")
}

/// The command that tests the winner, as it would be typed but for the rows to test on.
fn evaluation(args: &Tune, tuned: &Tuned) -> String {
    let mut line = format!(
        "hdsl evaluate {} --train {}",
        path(&args.output),
        path(&args.train)
    );
    let files = [
        ("--train-labels", &args.labels, true),
        ("--add", &args.valid, tuned.refitted),
        ("--add-labels", &args.valid_labels, tuned.refitted),
    ];
    for (flag, file, used) in files {
        if let (Some(file), true) = (file, used) {
            line += &format!(" {flag} {}", path(file));
        }
    }
    if let Some(format) = format(args) {
        line += &format!(" --format {format}");
    }
    line + " TEST"
}

/// The format of the files, if it was given.
fn format(args: &Tune) -> Option<String> {
    let format = args.read.format.as_ref()?.to_possible_value()?;
    Some(format.get_name().to_owned())
}

/// A path as one word of a shell.
fn path(path: &Path) -> String {
    shell_word(&path.display().to_string()).into_owned()
}

fn to_text(args: &Tune, tuned: &Tuned, n_bytes: usize, seconds: f64) -> String {
    let mut board = vec![
        [
            "",
            "error",
            "features",
            "preprocess",
            "triplets",
            "lambda",
            "loss",
            "rounds",
            "models",
            "decides",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for (place, candidate) in tuned.leaderboard.iter().take(SHOWN).enumerate() {
        let config = &candidate.config;
        board.push(vec![
            format!("{}.", place + 1),
            percent(candidate.error),
            thousands(candidate.features),
            config.preprocess.to_string(),
            config.triplets.to_string(),
            short(config.lambda[0]),
            config.loss.to_string(),
            config.mining_rounds.to_string(),
            config.n_estimators.to_string(),
            config.rule.to_string(),
        ]);
    }
    let mut text = report::table("", &board);
    let more = tuned.leaderboard.len().saturating_sub(SHOWN);
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    text += "\n";
    let learned = tuned.trained.model.similarity();
    let validation = count(tuned.n_validation, "row");
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    if let Some((error, deviation)) = tuned.expected_error {
        row(
            "expect",
            format!(
                "{} wrong on new rows, give or take {}; the dot product has {}",
                percent(error),
                percent(deviation),
                percent(tuned.dot_error)
            ),
        );
    }
    row(
        "chosen",
        format!(
            "among {} on {validation} not trained on",
            count(tuned.n_points, "model")
        ),
    );
    row(
        "uses",
        format!(
            "{} of {} in {}",
            thousands(learned.n_features_used()),
            count(tuned.trained.model.n_features(), "feature"),
            count(learned.atoms().len(), "atom")
        ),
    );
    let both = if tuned.refitted {
        ", the validation rows among them"
    } else {
        ""
    };
    row(
        "trained on",
        format!("{}{both}", count(tuned.n_rows, "row")),
    );
    row("time", format!("{seconds:.1} s"));
    row(
        "saved",
        format!("{} ({} bytes)", args.output.display(), thousands(n_bytes)),
    );
    text += &report::table("", &rows);
    text += &format!("\nThe same model again:\n  {}\n", command(args, tuned));
    text += &format!(
        "\nIts error on other rows, decided by all it was trained on:\n  {}\n",
        evaluation(args, tuned)
    );
    text
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
            "preprocess": config.preprocess.to_string(),
            "triplets": config.triplets.to_string(),
            "scale": config.lambda[0],
            "loss": config.loss.to_string(),
            "rounds": config.mining_rounds,
            "models": config.n_estimators,
            "last_iter": config.last_round_iter.unwrap_or(config.max_iter),
            "k": config.rule.k,
            "vote": config.rule.vote.to_string(),
            "normalization": config.rule.normalization.to_string(),
        })
    };
    let ablation = |w: &AblationResult| {
        json!({
            "part": w.part.name(),
            "expected_error": w.expected_error.map(|e| e.0),
            "instead": candidate(&w.candidate),
        })
    };
    json!({
        "model": args.output.display().to_string(),
        "command": command(args, tuned),
        "expected_error": tuned.expected_error.map(|e| e.0),
        "expected_error_deviation": tuned.expected_error.map(|e| e.1),
        "dot_error": tuned.dot_error,
        "n_validation": tuned.n_validation,
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
