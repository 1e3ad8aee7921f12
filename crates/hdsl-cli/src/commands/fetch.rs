//! `hdsl fetch`: public data sets, downloaded, read, and ready to train on.

use crate::failure::Failure;
use crate::output::{self, Log, count, thousands};
use crate::progress::Download;
use clap::{Args, ValueHint};
use hdsl::model::shell_word;
use hdsl::{Dataset, ReadOptions, read_dataset};
use hdsl_fetch::{FetchOptions, Fetched, FetchedPart, SETS, Set, default_folder, fetch, find};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Download public data sets, and show how to train on them
///
/// Without a name, lists the data sets. With one or more names, downloads the original files from
/// UCI or LIBSVM into a cache, unpacks archives, reads every part once to check that it is complete,
/// and prints its path. A second call finds everything in the cache and needs no network.
///
/// An interrupted download is resumed, in the same call or in the next one; a file gets its name only
/// when it is complete, and has the right SHA-256 digest where one is published. The digest of each
/// file is kept in SHA256SUMS beside it, so that damage is noticed; --again repairs it. Without a
/// network, the error message names the address to download from elsewhere and the path to put the
/// file at.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
The cache: --dir, or the environment variable HDSL_DATA, or hdsl in the user's cache folder.
Proxies are taken from HTTPS_PROXY, ALL_PROXY and NO_PROXY, other certificates from SSL_CERT_FILE.

Examples:
  hdsl fetch                                     list the data sets
  hdsl fetch dexter                              all parts of dexter
  hdsl train \"$(hdsl fetch dexter --part train --paths)\" --holdout 0.3 --lambda 1,10,100 -o m.hdsl
  hdsl fetch rcv1.binary --base-url http://localhost:8000    from a mirror made with `wget -x`"
)]
pub(crate) struct Fetch {
    /// Names of data sets; none to list them
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only these parts: train, valid, test or all, as in the list
    #[arg(
        long = "part",
        value_name = "PART,...",
        value_delimiter = ',',
        requires = "names"
    )]
    parts: Vec<String>,
    /// Print only the paths of the parts, one per line; the files are not read
    #[arg(long, requires = "names", conflicts_with = "json")]
    paths: bool,
    /// Cache folder [default: $HDSL_DATA, or hdsl in the user's cache folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// Download again, and replace the files in the cache
    #[arg(long, requires = "names")]
    again: bool,
    /// Use only files in the cache, and fail if one is missing
    #[arg(long, conflicts_with = "again")]
    offline: bool,
    /// Fetch https://HOST/PATH from URL/HOST/PATH instead [default: $HDSL_FETCH_BASE, or the source itself]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    base_url: Option<String>,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Fetch, log: &Log) -> Result<(), Failure> {
    if args.names.is_empty() {
        return list(args);
    }
    // A wrong name is reported before the first download.
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
    let mut results = Vec::new();
    for set in sets {
        let mut progress = Download::new(log, set.name);
        let fetched = fetch(set, &parts, &options, &mut |event| progress.event(event));
        progress.finish();
        let fetched = fetched?;
        if args.paths {
            for part in &fetched.parts {
                output::stdout(&format!("{}\n", part.data.display()))?;
            }
            continue;
        }
        let read = fetched.parts.iter().map(|part| read(&fetched, part, log));
        let read: Vec<Dataset> = read.collect::<Result<_, _>>()?;
        match args.json {
            true => results.push(to_json(&fetched, &read)),
            false => output::stdout(&to_text(&fetched, &read))?,
        }
    }
    match args.json {
        true => output::json(&json!({ "sets": results })),
        false => Ok(()),
    }
}

/// Reads a part, and notes where it differs from what its source documents.
fn read(fetched: &Fetched, part: &FetchedPart, log: &Log) -> Result<Dataset, Failure> {
    let options = ReadOptions {
        labels: part.labels.clone(),
        ..ReadOptions::default()
    };
    let data = read_dataset(&part.data, &options)?;
    data.notes.iter().for_each(|note| log.detail(note));
    let (rows, features) = (data.rows.n_rows(), data.rows.n_features());
    if let Some(nnz) = part.part.nnz.filter(|&nnz| nnz != data.rows.nnz()) {
        log.note(format!(
            "{}: stores {} values, but the copy that the catalogue was made from {}",
            part.data.display(),
            thousands(data.rows.nnz()),
            thousands(nnz)
        ));
    }
    if rows != part.part.n_rows || features > fetched.set.n_features {
        log.note(format!(
            "{}: has {} of {}, but its source documents {} of {}",
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
            if part.is_new { "" } else { " (in the cache)" },
            part.data.display()
        );
    }
    text + &next(fetched) + "\n"
}

/// Commands to continue with.
fn next(fetched: &Fetched) -> String {
    let path = |name: &str| {
        let part = fetched.parts.iter().find(|p| p.part.name == name)?;
        part.part
            .labeled
            .then(|| shell_word(&part.data.display().to_string()).into_owned())
    };
    let Some(train) = path("train").or_else(|| path("all")) else {
        return String::new();
    };
    let model = format!("{}.hdsl", fetched.set.name);
    let choose = path("valid").map_or("--holdout 0.3".into(), |valid| format!("--valid {valid}"));
    let mut text = format!(
        "\nTo train on it:\n  hdsl train {train} {choose} --lambda 1,10,100,1000 --patience 100 -o {model}\n"
    );
    if let Some(test) = path("test") {
        text += &format!("  hdsl evaluate {model} --train {train} {test}\n");
    }
    text
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
        return output::json(&json!({ "folder": folder, "sets": sets }));
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
    text += &format!("\nCache folder: {}\n", folder.display());
    output::stdout(&text)
}

fn describe(set: &Set) -> Value {
    let parts = set.parts.iter();
    let parts = parts.map(|part| {
        let url = set.download_of(part).map(|file| file.url);
        json!({ "part": part.name, "n_rows": part.n_rows, "url": url })
    });
    json!({
        "set": set.name,
        "about": set.about,
        "page": set.page,
        "n_features": set.n_features,
        "n_classes": set.n_classes,
        "parts": parts.collect::<Vec<_>>(),
    })
}
