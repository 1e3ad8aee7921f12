//! `hdsl inspect`: what is in a data file or in a model.

use crate::args::{Inspect, PathArgs};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::report::{self, Talk, count, percent, short, thousands};
use hdsl::model::CommandFiles;
use hdsl::{Dataset, Model};
use serde_json::{Value, json};

/// Classes listed by name in the readable form.
const CLASSES_SHOWN: usize = 12;

pub(crate) fn run(args: &Inspect, talk: &Talk) -> Result<(), Failure> {
    if files::is_model(&args.file) {
        let model = files::read_model(&args.file, &PathArgs::default(), talk)?;
        if args.json {
            return report::stdout(&format!("{}\n", model.to_json()));
        }
        return report::stdout(&model_text(args, &model));
    }
    // What readers notice is part of the answer here, so it is not said twice under `-v`.
    let data = Reader::new(&args.read, talk).data(&args.file, args.labels.as_ref())?;
    let facts = Facts::of(&data);
    if args.json {
        return report::json(&data_json(args, &data, &facts));
    }
    report::stdout(&data_text(args, &data, &facts))
}

fn model_text(args: &Inspect, model: &Model) -> String {
    let parts = model.parts();
    let learned = model.similarity();
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12}  {value}\n"));
    line("model", args.file.display().to_string());
    line("lambda", short(parts.scale));
    line(
        "uses",
        format!(
            "{} of {} in {}, {}",
            thousands(learned.n_features_used()),
            count(model.n_features(), "feature"),
            count(learned.atoms().len(), "atom"),
            count(learned.pairs_by_weight().len(), "pair")
        ),
    );
    line("preprocess", parts.preprocess.kind().to_string());
    line(
        "path",
        format!(
            "{}; the model after {} is in use",
            count(model.path().len(), "iteration"),
            thousands(model.chosen())
        ),
    );
    if let Some(point) = parts.trace.get(model.chosen()) {
        line("objective", short(point.objective));
    }
    if let Some(gap) = parts.gap_certified {
        line(
            "gap",
            format!("at most {} above the best possible", short(gap)),
        );
    }
    let best = parts.evaluations.iter().map(|e| e.1);
    if let Some(error) = best.min_by(f64::total_cmp) {
        line(
            "validation",
            format!(
                "error {}, lowest of {}",
                percent(error),
                count(parts.evaluations.len(), "evaluation")
            ),
        );
    }
    if let Some(classes) = &parts.classes {
        let mut names: Vec<&str> = classes.iter().map(String::as_str).collect();
        let more = names.len().saturating_sub(CLASSES_SHOWN);
        names.truncate(CLASSES_SHOWN);
        let more = match more {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        line("classes", format!("{}{more}", names.join(", ")));
    }
    line("names", count(parts.names.len(), "feature name"));
    line(
        "features",
        format!(
            "numbered from {} in files",
            if parts.zero_based { 0 } else { 1 }
        ),
    );
    if let Some(stop) = parts.stop {
        line("stop", stop.to_string());
    }
    if let Some(command) = model.command_line(&CommandFiles::default()) {
        line("trained by", command);
    }
    lines.concat() + "\n--json prints all of it: atoms, weights, preprocess, names, path.\n"
}

/// Plain facts about rows.
struct Facts {
    empty: usize,
    least: usize,
    median: usize,
    most: usize,
    used: usize,
    low: f64,
    high: f64,
    whole: bool,
}

impl Facts {
    fn of(data: &Dataset) -> Self {
        let mut sizes: Vec<usize> = data.rows.iter().map(|r| r.nnz()).collect();
        sizes.sort_unstable();
        let mut columns = data.rows.indices().to_vec();
        columns.sort_unstable();
        columns.dedup();
        let values = data.rows.values().iter().copied();
        let (low, high) = values
            .clone()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        Self {
            empty: sizes.iter().filter(|&&n| n == 0).count(),
            least: sizes.first().copied().unwrap_or(0),
            median: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
            most: sizes.last().copied().unwrap_or(0),
            used: columns.len(),
            low: if low.is_finite() { low } else { 0.0 },
            high: if high.is_finite() { high } else { 0.0 },
            whole: values.into_iter().all(|v| v.fract() == 0.0),
        }
    }

    fn kind(&self) -> &'static str {
        match (self.low, self.high, self.whole) {
            (low, high, _) if low == 1.0 && high == 1.0 => "all 1",
            (_, _, true) => "whole numbers",
            _ => "numbers",
        }
    }
}

fn data_text(args: &Inspect, data: &Dataset, facts: &Facts) -> String {
    let rows = &data.rows;
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12}  {value}\n"));
    line("data", args.file.display().to_string());
    line("rows", {
        let empty = match facts.empty {
            0 => String::new(),
            n => format!(", {n} of them empty"),
        };
        thousands(rows.n_rows()) + &empty
    });
    line(
        "features",
        format!(
            "{}, of which {} occur; numbered from {}",
            thousands(rows.n_features()),
            thousands(facts.used),
            data.index_base.first()
        ),
    );
    let cells = (rows.n_rows() as f64 * rows.n_features() as f64).max(1.0);
    line(
        "non-zeros",
        format!(
            "{} ({:.3}% of all cells); a row has {} to {}, median {}",
            thousands(rows.nnz()),
            100.0 * rows.nnz() as f64 / cells,
            facts.least,
            facts.most,
            facts.median
        ),
    );
    line(
        "values",
        format!(
            "{} to {}, {}",
            short(facts.low),
            short(facts.high),
            facts.kind()
        ),
    );
    match &data.labels {
        None => line("labels", "none".into()),
        Some(labels) => {
            let counts = labels.counts();
            let mut shown: Vec<String> = labels
                .names()
                .iter()
                .zip(&counts)
                .take(CLASSES_SHOWN)
                .map(|(name, n)| format!("{name} ({})", thousands(*n)))
                .collect();
            if counts.len() > CLASSES_SHOWN {
                shown.push(format!("and {} more", counts.len() - CLASSES_SHOWN));
            }
            line(
                "labels",
                format!("{}: {}", count(counts.len(), "class"), shown.join(", ")),
            );
        }
    }
    if let Some(queries) = &data.queries {
        let mut distinct = queries.clone();
        distinct.sort_unstable();
        distinct.dedup();
        line("queries", thousands(distinct.len()));
    }
    for note in &data.notes {
        line("note", note.clone());
    }
    lines.concat()
}

fn data_json(args: &Inspect, data: &Dataset, facts: &Facts) -> Value {
    let classes: Option<Vec<Value>> = data.labels.as_ref().map(|labels| {
        labels
            .names()
            .iter()
            .zip(labels.counts())
            .map(|(name, n)| json!({ "class": name, "rows": n }))
            .collect()
    });
    json!({
        "file": args.file.display().to_string(),
        "n_rows": data.rows.n_rows(),
        "n_empty_rows": facts.empty,
        "n_features": data.rows.n_features(),
        "n_features_occurring": facts.used,
        "first_feature": data.index_base.first(),
        "nnz": data.rows.nnz(),
        "nnz_per_row": { "least": facts.least, "median": facts.median, "most": facts.most },
        "values": { "least": facts.low, "most": facts.high, "whole": facts.whole },
        "classes": classes,
        "has_queries": data.queries.is_some(),
        "notes": data.notes,
    })
}
