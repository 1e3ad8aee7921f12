//! `hdsl report`: a page that tells the story of a model.

use crate::args::Report;
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::progress::Stages;
use crate::report::{self, Talk, count, thousands};
use hdsl::data::read_texts;
use hdsl::{CancelToken, Dataset, Preprocessor, Triplets};
use hdsl_report::{Input, Part};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(args: &Report, talk: &Talk) -> Result<(), Failure> {
    let started = Instant::now();
    files::refuse_stdout_with_json(args.json, Some(&args.output))?;
    let out = files::create(&args.output)?;
    let model = files::read_model(&args.model, &args.path, talk)?;
    let read_names = |path| files::read_names(path, model.n_features());
    let names = args.names.as_deref().map(read_names).transpose()?;
    let mut reader = Reader::new(&args.read, talk);
    reader.beside_model(&model);
    let mut read = |path: &Option<_>, labels: &Option<_>| -> Result<Option<Dataset>, Failure> {
        let path: Option<&std::path::PathBuf> = path.as_ref();
        path.map(|p| reader.data(p, labels.as_ref())).transpose()
    };
    let train = read(&args.train, &args.train_labels)?;
    let test = read(&args.test, &args.test_labels)?;
    for (path, data) in [(&args.train, &train), (&args.test, &test)] {
        if let (Some(path), Some(data)) = (path, data) {
            files::note_unseen(talk, path, &data.rows, model.n_features());
        }
    }
    let mut texts = [None, None];
    for ((slot, path), data) in texts
        .iter_mut()
        .zip(args.text.iter().flatten())
        .zip([&train, &test])
    {
        *slot = data.as_ref().map(|data| texts_of(path, data)).transpose()?;
    }
    let triplets = given_triplets(args, train.as_ref(), &model)?;
    let train_seconds = args.run.as_deref().map(read_seconds).transpose()?;

    let title = args.model.display().to_string();
    let sources = [&args.train, &args.test].map(|p| p.as_ref().map(|p| p.display().to_string()));
    let command = command_line();
    let [train_texts, test_texts] = &texts;
    let mut input = Input::new(&model, &title);
    input.names = names.as_deref();
    input.train = part(
        train.as_ref(),
        train_texts.as_deref(),
        sources[0].as_deref(),
    );
    input.test = part(test.as_ref(), test_texts.as_deref(), sources[1].as_deref());
    input.rule.k = args.k.unwrap_or(input.rule.k);
    input.triplets = triplets.as_ref();
    input.train_seconds = train_seconds;
    input.command = Some(&command);
    let mut stages = Stages::new(talk);
    let page = hdsl_report::page(&input, &mut |stage| stages.say(stage));
    stages.finish();
    let page = page?;
    files::write(out, |out| out.write_all(page.as_bytes()))?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        return report::json(&json!({
            "model": title,
            "output": args.output.display().to_string(),
            "bytes": page.len(),
            "k": input.rule.k,
            "n_train": train.as_ref().map(|d| d.rows.n_rows()),
            "n_test": test.as_ref().map(|d| d.rows.n_rows()),
            "seconds": seconds,
        }));
    }
    match args.output == Path::new("-") {
        true => Ok(()),
        false => report::stdout(&format!(
            "wrote {} ({} bytes) in {seconds:.1} s: open it in a browser\n",
            args.output.display(),
            thousands(page.len())
        )),
    }
}

fn part<'a>(
    data: Option<&'a Dataset>,
    texts: Option<&'a [String]>,
    source: Option<&'a str>,
) -> Option<Part<'a>> {
    let data = data?;
    Some(Part {
        rows: &data.rows,
        labels: data.labels.as_ref(),
        texts,
        source: source.unwrap_or("-"),
    })
}

/// The texts of rows, after a look at whether they are theirs: as many, and of the same classes.
fn texts_of(path: &Path, data: &Dataset) -> Result<Vec<String>, Failure> {
    let texts = read_texts(path)?;
    let n_rows = data.rows.n_rows();
    if texts.len() != n_rows {
        return Err(Failure::usage(format!(
            "{}: has {}, expected one for each of {}",
            path.display(),
            count(texts.len(), "text"),
            count(n_rows, "row")
        )));
    }
    if let Some(labels) = &data.labels {
        let other = (0..n_rows).find(|&row| labels.name(row) != texts[row].0);
        if let Some(row) = other {
            return Err(Failure::usage(format!(
                "{}: text {row} (counted from 0) is of class {}, but row {row} of the data is of class {}: not the texts of these rows",
                path.display(),
                texts[row].0,
                labels.name(row)
            )));
        }
    }
    Ok(texts.into_iter().map(|t| t.1).collect())
}

/// Triplets that cannot be mined again from labels.
fn given_triplets(
    args: &Report,
    train: Option<&Dataset>,
    model: &hdsl::Model,
) -> Result<Option<Triplets>, Failure> {
    let (Some(source), Some(train)) = (&args.triplets, train) else {
        return Ok(None);
    };
    let rows = Preprocessor::fit(model.preprocess().kind(), &train.rows).apply(&train.rows);
    let seed = model.parts().config.seed;
    let triplets = source.triplets(&rows, train.labels.as_ref(), seed, CancelToken::NEVER)?;
    triplets.check(rows.n_rows())?;
    Ok(Some(triplets))
}

/// The training time in what `hdsl train --json` printed.
fn read_seconds(path: &Path) -> Result<f64, Failure> {
    let bad = |reason: String| Failure::usage(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| bad(format!("cannot read: {e}")))?;
    let want = "expected what `hdsl train --json` printed";
    let value: Value = serde_json::from_str(&text).map_err(|e| bad(format!("{e}; {want}")))?;
    match value["train_seconds"].as_f64() {
        Some(seconds) if seconds >= 0.0 => Ok(seconds),
        _ => Err(bad(format!("has no number `train_seconds`, {want}"))),
    }
}

/// The command as it was typed, less what does not change the page, quoted where a shell would need it.
fn command_line() -> String {
    let quoted = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.to_owned(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    let mut line = "hdsl".to_owned();
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        match &*word.to_string_lossy() {
            // Same bytes for any number of threads.
            "--threads" => drop(words.next()),
            "-v" | "-q" | "--verbose" | "--quiet" => {}
            word if word.starts_with("--threads=") => {}
            word => {
                line.push(' ');
                line += &quoted(word);
            }
        }
    }
    line
}
