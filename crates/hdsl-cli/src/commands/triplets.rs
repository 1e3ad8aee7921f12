//! `hdsl triplets`: mine triplets and write them, or check a file of them.

use crate::args::TripletsCmd;
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::report::{self, Talk, count, percent, thousands};
use hdsl::{CancelToken, Preprocessor, Rows, Triplets};
use serde_json::json;

pub(crate) fn run(args: &TripletsCmd, talk: &Talk) -> Result<(), Failure> {
    files::refuse_stdout_with_json(args.json, args.output.as_deref())?;
    let out = args.output.as_deref().map(files::create).transpose()?;
    let data = Reader::new(&args.read, talk).data(&args.rows, args.labels.as_ref())?;
    let rows = Preprocessor::fit(args.preprocess.kind(), &data.rows).apply(&data.rows);
    let triplets = args
        .triplets
        .triplets(&rows, data.labels.as_ref(), args.seed, CancelToken::NEVER)
        .map_err(|error| error.in_file(&args.rows))?;
    triplets.check(rows.n_rows())?;
    let facts = Facts::of(&triplets, &rows);
    if let Some(out) = out {
        files::write(out, |out| triplets.write(out))?;
    }
    if args.json {
        return report::json(&json!({
            "n_triplets": triplets.len(),
            "total_weight": facts.weight,
            "weighted": triplets.weights().is_some(),
            "n_anchors": facts.anchors,
            "n_rows": rows.n_rows(),
            "satisfied_by_dot_product": facts.satisfied,
            "output": args.output.as_ref().map(|p| p.display().to_string()),
        }));
    }
    let mut text = format!(
        "{} with {} as anchors, of {}{}\n",
        count(triplets.len(), "triplet"),
        count(facts.anchors, "row"),
        thousands(rows.n_rows()),
        match triplets.weights() {
            Some(_) => format!(", total weight {}", facts.weight),
            None => String::new(),
        }
    );
    text += &format!(
        "the plain dot product satisfies {} of them\n",
        percent(facts.satisfied)
    );
    match &args.output {
        Some(path) if path.as_os_str() == "-" => Ok(()),
        Some(path) => {
            text += &format!("written to {}\n", path.display());
            report::stdout(&text)
        }
        None => report::stdout(&text),
    }
}

struct Facts {
    anchors: usize,
    weight: f64,
    satisfied: f64,
}

impl Facts {
    fn of(triplets: &Triplets, rows: &Rows) -> Self {
        let mut is_anchor = vec![false; rows.n_rows()];
        let mut satisfied = 0usize;
        let row = |r: u32| rows.row(r as usize);
        for (anchor, near, far) in triplets.iter() {
            is_anchor[anchor as usize] = true;
            satisfied += usize::from(row(anchor).dot(row(near)) > row(anchor).dot(row(far)));
        }
        Self {
            anchors: is_anchor.iter().filter(|&&is| is).count(),
            weight: triplets.total_weight(),
            satisfied: satisfied as f64 / triplets.len().max(1) as f64,
        }
    }
}
