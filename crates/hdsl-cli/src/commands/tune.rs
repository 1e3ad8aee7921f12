//! `hdsl tune`: the best similarity for a set of data, and the line that makes it again.

use crate::args::{PresetArg, Tune};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::progress::{self, TuneWatch};
use crate::report::{self, Talk, count, percent, short, thousands};
use clap::ValueEnum;
use hdsl::tune::{Contender, Judges, Preset, TuneParams, Tuned, Without, tune};
use hdsl::{Labeled, Vote};
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

    let params = params(args);
    progress::stop_on_ctrl_c();
    let mut watch = TuneWatch::new(talk, args.time);
    let tuned = tune(
        Labeled::from(&data),
        valid.as_ref().map(Labeled::from),
        names.as_deref(),
        &params,
        &mut watch,
        &progress::asked_to_stop,
    );
    watch.finish();
    let mut tuned = tuned.map_err(|error| Failure::from(error.in_file(&args.train)))?;
    if by_position {
        tuned.trained.model = tuned.trained.model.numbered_by_position()?;
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

fn params(args: &Tune) -> TuneParams {
    TuneParams {
        preset: match args.preset {
            PresetArg::Best => Preset::Best,
            PresetArg::Paper => Preset::Paper,
        },
        judges: match (args.cv, args.holdout) {
            (Some(folds), _) => Judges::Folds(folds),
            (None, Some(share)) => Judges::Share(share),
            (None, None) => Judges::Auto,
        },
        refit: !args.no_refit,
        time: Some(args.time),
        max_features: args.max_features,
        max_atoms: args.max_atoms,
        without: args.without.clone(),
        round_iter: args.round_iter,
        seed: args.seed,
        memory_limit: args.memory,
        journal: journal(&args.output),
    }
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
    let params = &tuned.params;
    let mut words = vec!["hdsl".to_owned(), "train".to_owned(), path(&args.train)];
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    let mut file = |name: &str, value: Option<&PathBuf>| {
        if let Some(value) = value {
            flag(name, path(value));
        }
    };
    file("--labels", args.labels.as_ref());
    if tuned.refitted {
        file("--add", args.valid.as_ref());
        file("--add-labels", args.valid_labels.as_ref());
    }
    file("--names", args.names.as_ref());
    flag("--preprocess", params.preprocess.to_string());
    flag("--triplets", params.triplets.to_string());
    flag("--scale", params.scales[0].to_string());
    let solver = &params.solver;
    if solver.loss_kind() != hdsl::LossKind::default() {
        flag("--loss", solver.loss_kind().to_string());
    }
    if params.again.rounds > 0 {
        flag("--rounds", params.again.rounds.to_string());
    }
    if params.models > 1 {
        flag("--models", params.models.to_string());
    }
    flag("--max-iter", solver.iterations().to_string());
    if let Some(last) = params.last_iter {
        flag("--last-iter", last.to_string());
    }
    if let Some(most) = args.max_features {
        flag("--max-features", most.to_string());
    }
    if params.rule.vote != Vote::ClassMean {
        flag("-k", params.rule.k.to_string());
    }
    flag("--vote", params.rule.vote.to_string());
    flag("--normalization", params.rule.normalization.to_string());
    flag("--seed", args.seed.to_string());
    if let Some(format) = format(args) {
        flag("--format", format);
    }
    flag("-o", path(&args.output));
    for (given, name) in [
        (args.read.zero_based, "--zero-based"),
        (args.read.one_based, "--one-based"),
    ] {
        if given {
            words.push(name.to_owned());
        }
    }
    words.join(" ")
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
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "._-/+=:,@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
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
    for (place, contender) in tuned.leaderboard.iter().take(SHOWN).enumerate() {
        let setting = &contender.setting;
        board.push(vec![
            format!("{}.", place + 1),
            percent(contender.error),
            thousands(contender.features),
            setting.preprocess.to_string(),
            setting.triplets.to_string(),
            short(setting.scale),
            setting.loss.to_string(),
            contender.rounds.to_string(),
            setting.models.to_string(),
            contender.rule.to_string(),
        ]);
    }
    let mut text = report::table("", &board);
    let more = tuned.leaderboard.len().saturating_sub(SHOWN);
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    text += "\n";
    let learned = tuned.trained.model.similarity();
    let judged = count(tuned.n_judged, "row");
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
            "among {} on {judged} not learned from",
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
    let contender = |c: &Contender| {
        json!({
            "error": c.error,
            "score": c.score,
            "n_features": c.features,
            "n_atoms": c.atoms,
            "preprocess": c.setting.preprocess.to_string(),
            "triplets": c.setting.triplets.to_string(),
            "scale": c.setting.scale,
            "loss": c.setting.loss.to_string(),
            "rounds": c.rounds,
            "models": c.setting.models,
            "last_iter": c.last_iter,
            "k": c.rule.k,
            "vote": c.rule.vote.to_string(),
            "normalization": c.rule.normalization.to_string(),
        })
    };
    let without = |w: &Without| {
        json!({
            "part": w.part.name(),
            "expected_error": w.expected_error.map(|e| e.0),
            "instead": contender(&w.contender),
        })
    };
    json!({
        "model": args.output.display().to_string(),
        "command": command(args, tuned),
        "expected_error": tuned.expected_error.map(|e| e.0),
        "expected_error_deviation": tuned.expected_error.map(|e| e.1),
        "dot_error": tuned.dot_error,
        "n_judged": tuned.n_judged,
        "n_models": tuned.n_points,
        "finished": tuned.finished,
        "refitted": tuned.refitted,
        "n_rows": tuned.n_rows,
        "n_features": learned.n_features_used(),
        "n_features_total": tuned.trained.model.n_features(),
        "n_atoms": learned.atoms().len(),
        "leaderboard": tuned.leaderboard.iter().map(contender).collect::<Vec<_>>(),
        "without": tuned.without.iter().map(without).collect::<Vec<_>>(),
        "seconds": seconds,
        "bytes": n_bytes,
    })
}
