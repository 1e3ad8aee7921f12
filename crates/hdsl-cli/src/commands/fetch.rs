//! `hdsl fetch`: public data sets, downloaded, read, and ready to train on.

use crate::args::Fetch;
use crate::failure::Failure;
use crate::progress::Download;
use crate::report::{self, Talk, count, thousands};
use hdsl::{Dataset, ReadOptions, read_dataset};
use hdsl_fetch::{FetchOptions, Fetched, FetchedPart, SETS, Set, default_folder, fetch, find};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(args: &Fetch, talk: &Talk) -> Result<(), Failure> {
    if args.names.is_empty() {
        return list(args);
    }
    // A name that is wrong is found out before the first download.
    let names = args.names.iter().map(|name| find(name));
    let sets: Vec<&Set> = names.collect::<Result<_, _>>()?;
    let options = FetchOptions {
        folder: args.dir.clone(),
        base_url: args.base_url.clone(),
        download: !args.offline,
        again: args.again,
        ..FetchOptions::default()
    };
    let parts: Vec<&str> = args.parts.iter().map(String::as_str).collect();
    let mut said = Vec::new();
    for set in sets {
        let mut watch = Download::new(talk, set.name);
        let fetched = fetch(set, &parts, &options, &mut |event| watch.event(event));
        watch.finish();
        let fetched = fetched?;
        if args.paths {
            for part in &fetched.parts {
                report::stdout(&format!("{}\n", part.data.display()))?;
            }
            continue;
        }
        let read = fetched.parts.iter().map(|part| read(&fetched, part, talk));
        let read: Vec<Dataset> = read.collect::<Result<_, _>>()?;
        match args.json {
            true => said.push(to_json(&fetched, &read)),
            false => report::stdout(&to_text(&fetched, &read))?,
        }
    }
    match args.json {
        true => report::json(&json!({ "sets": said })),
        false => Ok(()),
    }
}

/// Reads a part, and mentions what its source says otherwise.
fn read(fetched: &Fetched, part: &FetchedPart, talk: &Talk) -> Result<Dataset, Failure> {
    let options = ReadOptions {
        labels: part.labels.clone(),
        ..ReadOptions::default()
    };
    let data = read_dataset(&part.data, &options)?;
    talk.details(&data.notes);
    let (rows, features) = (data.rows.n_rows(), data.rows.n_features());
    if rows != part.part.n_rows || features > fetched.set.n_features {
        talk.note(format!(
            "{}: has {} of {}, where its source tells of {} of {}",
            part.data.display(),
            count(rows, "row"),
            count(features, "feature"),
            thousands(part.part.n_rows),
            thousands(fetched.set.n_features)
        ));
    }
    Ok(data)
}

fn to_text(fetched: &Fetched, read: &[Dataset]) -> String {
    let set = fetched.set;
    let mut text = format!("{}: {}\n{}\n\n", set.name, set.about, set.page);
    for (part, data) in fetched.parts.iter().zip(read) {
        let classes = match &data.labels {
            Some(labels) => count(labels.names().len(), "class"),
            None => "no labels".to_owned(),
        };
        text += &format!(
            "{:<6}{} of {}, {}{}\n      {}\n",
            part.part.name,
            count(data.rows.n_rows(), "row"),
            count(set.n_features.max(data.rows.n_features()), "feature"),
            classes,
            if part.is_new { "" } else { " (there already)" },
            part.data.display()
        );
    }
    text + &next(fetched) + "\n"
}

/// Commands to go on with.
fn next(fetched: &Fetched) -> String {
    let path = |name: &str| {
        let part = fetched.parts.iter().find(|p| p.part.name == name)?;
        part.part.labeled.then(|| shell_word(&part.data))
    };
    let Some(train) = path("train").or_else(|| path("all")) else {
        return String::new();
    };
    let model = format!("{}.hdsl", fetched.set.name);
    let choose = path("valid").map_or("--holdout 0.3".into(), |valid| format!("--valid {valid}"));
    let mut text = format!(
        "\nTo train on it:\n  hdsl train {train} {choose} --scale 1,10,100,1000 --patience 100 -o {model}\n"
    );
    if let Some(test) = path("test") {
        text += &format!("  hdsl evaluate {model} --train {train} {test}\n");
    }
    text
}

/// A path as a shell takes it.
fn shell_word(path: &Path) -> String {
    let word = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:\\".contains(c);
    match word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn to_json(fetched: &Fetched, read: &[Dataset]) -> Value {
    let parts: Vec<Value> = fetched
        .parts
        .iter()
        .zip(read)
        .map(|(part, data)| {
            json!({
                "part": part.part.name,
                "data": part.data.display().to_string(),
                "labels": part.labels.as_ref().map(|p| p.display().to_string()),
                "n_rows": data.rows.n_rows(),
                "nnz": data.rows.nnz(),
                "classes": data.labels.as_ref().map(|l| l.names()),
                "is_new": part.is_new,
            })
        })
        .collect();
    json!({
        "set": fetched.set.name,
        "page": fetched.set.page,
        "folder": fetched.folder.display().to_string(),
        "n_features": fetched.set.n_features,
        "parts": parts,
    })
}

fn list(args: &Fetch) -> Result<(), Failure> {
    let folder = match &args.dir {
        Some(folder) => folder.clone(),
        None => default_folder()?,
    };
    if args.json {
        let sets: Vec<Value> = SETS.iter().map(describe).collect();
        let folder = folder.display().to_string();
        return report::json(&json!({ "folder": folder, "sets": sets }));
    }
    let mut text = String::new();
    for set in SETS {
        let parts = set.parts.iter();
        let parts = parts.map(|p| format!("{} {}", p.name, thousands(p.n_rows)));
        text += &format!(
            "{}\n    {}\n    {} x {}, {}\n",
            set.name,
            set.about,
            parts.collect::<Vec<_>>().join(", "),
            count(set.n_features, "feature"),
            count(set.n_classes, "class"),
        );
    }
    text += &format!("\nKept in {}.\n", folder.display());
    report::stdout(&text)
}

fn describe(set: &Set) -> Value {
    let parts = set.parts.iter();
    let parts = parts.map(
        |p| json!({ "part": p.name, "n_rows": p.n_rows, "url": set.downloads[p.download].url }),
    );
    json!({
        "set": set.name,
        "about": set.about,
        "page": set.page,
        "n_features": set.n_features,
        "n_classes": set.n_classes,
        "parts": parts.collect::<Vec<_>>(),
    })
}
