//! `hdsl explain`: what a model has learned, and why two rows are alike.

use crate::args::{Explain, RowOf};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::report::{self, Talk, count, short, thousands};
use hdsl::{Dataset, Model, SparseRow};
use serde_json::{Value, json};

pub(crate) fn run(args: &Explain, talk: &Talk) -> Result<(), Failure> {
    let model = files::read_model(&args.model, &args.path, talk)?;
    let read_names = |path| files::read_names(path, model.n_features());
    let names = Names {
        list: args.names.as_deref().map(read_names).transpose()?,
        model: &model,
    };
    match args.pair.as_deref() {
        Some([a, b]) => pair(args, talk, &names, a, b),
        _ => whole(args, &names),
    }
}

/// What to call features: the file given, or else the names in the model.
pub(crate) struct Names<'a> {
    /// Names by feature, from a file.
    pub(crate) list: Option<Vec<String>>,
    /// The model, which has names or numbers.
    pub(crate) model: &'a Model,
}

impl Names<'_> {
    pub(crate) fn of(&self, feature: u32) -> String {
        match self.list.as_ref().and_then(|l| l.get(feature as usize)) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => self.model.name(feature).into_owned(),
        }
    }
}

/// The first `top` of a list, or all of it.
fn top<T>(list: &[T], top: usize) -> &[T] {
    match top {
        0 => list,
        n => &list[..n.min(list.len())],
    }
}

fn whole(args: &Explain, names: &Names<'_>) -> Result<(), Failure> {
    let model = names.model;
    let learned = model.similarity();
    let features = learned.features_by_weight();
    let pairs = learned.pairs_by_weight();
    if args.json {
        let features: Vec<Value> = top(&features, args.top)
            .iter()
            .map(|f| json!({ "feature": f.feature, "name": names.of(f.feature), "weight": f.weight, "n_pairs": f.n_pairs }))
            .collect();
        let listed: Vec<Value> = top(&pairs, args.top)
            .iter()
            .map(|p| {
                json!({
                    "i": p.i, "j": p.j,
                    "name_i": names.of(p.i), "name_j": names.of(p.j),
                    "sign": if p.weight > 0.0 { "+" } else { "-" },
                    "weight": p.weight,
                })
            })
            .collect();
        return report::json(&json!({
            "model": args.model.display().to_string(),
            "scale": model.parts().scale,
            "iteration": model.chosen(),
            "n_atoms": learned.atoms().len(),
            "n_features": learned.n_features_used(),
            "n_features_total": model.n_features(),
            "n_pairs": pairs.len(),
            "features": features,
            "pairs": listed,
        }));
    }
    let mut text = format!(
        "{} uses {} of {} and {}.\n",
        args.model.display(),
        thousands(learned.n_features_used()),
        count(model.n_features(), "feature"),
        count(pairs.len(), "pair")
    );
    text += "\nFeatures, by what two rows gain by both having it (M_ii):\n";
    let rows: Vec<Vec<String>> = top(&features, args.top)
        .iter()
        .map(|f| {
            vec![
                format!("{:.3}", f.weight),
                names.of(f.feature),
                format!("in {}", count(f.n_pairs, "pair")),
            ]
        })
        .collect();
    text += &report::table("  ", &rows);
    text += &rest(features.len(), rows.len());
    for (alike, title) in [
        (
            true,
            "\nPairs that make rows more alike: one has the first, the other the second (M_ij > 0):\n",
        ),
        (
            false,
            "\nPairs that make rows less alike: one has the first, the other the second (M_ij < 0):\n",
        ),
    ] {
        let chosen: Vec<_> = pairs.iter().filter(|p| (p.weight > 0.0) == alike).collect();
        text += title;
        let rows: Vec<Vec<String>> = top(&chosen, args.top)
            .iter()
            .map(|p| pair_row(p.weight, &names.of(p.i), &names.of(p.j)))
            .collect();
        if rows.is_empty() {
            text += "  none\n";
        }
        text += &report::table("  ", &rows);
        text += &rest(chosen.len(), rows.len());
    }
    report::stdout(&text)
}

/// One line about a pair.
pub(crate) fn pair_row(weight: f64, i: &str, j: &str) -> Vec<String> {
    let sign = if weight > 0.0 { "~" } else { "><" };
    vec![
        format!("{weight:+.3}"),
        i.to_owned(),
        sign.to_owned(),
        j.to_owned(),
    ]
}

fn rest(all: usize, shown: usize) -> String {
    match all - shown {
        0 => String::new(),
        n => format!("  and {} more; --top 0 lists all\n", thousands(n)),
    }
}

fn pair(
    args: &Explain,
    talk: &Talk,
    names: &Names<'_>,
    a: &RowOf,
    b: &RowOf,
) -> Result<(), Failure> {
    let model = names.model;
    let mut reader = Reader::new(&args.read, talk);
    reader.beside_model(model);
    let first = reader.data(&a.path, None)?;
    let second = match a.path == b.path {
        true => None,
        false => Some(reader.data(&b.path, None)?),
    };
    let raw_a = row_of(&first, a)?;
    let raw_b = row_of(second.as_ref().unwrap_or(&first), b)?;
    let (indices_a, values_a) = model.preprocess().apply_row(raw_a);
    let (indices_b, values_b) = model.preprocess().apply_row(raw_b);
    let why = model.similarity().explain_pair(
        SparseRow::new(&indices_a, &values_a),
        SparseRow::new(&indices_b, &values_b),
    );
    let listed = top(&why.pairs, args.top);
    let others: f64 = why.pairs[listed.len()..].iter().map(|p| p.value).sum();
    let label = |data: &Dataset, row: usize| data.labels.as_ref().map(|l| l.name(row).to_owned());
    let class_a = label(&first, a.row);
    let class_b = label(second.as_ref().unwrap_or(&first), b.row);
    if args.json {
        let contributions: Vec<Value> = why
            .pairs
            .iter()
            .map(|p| {
                json!({
                    "i": p.i, "j": p.j,
                    "name_i": names.of(p.i), "name_j": names.of(p.j),
                    "value": p.value,
                })
            })
            .collect();
        return report::json(&json!({
            "model": args.model.display().to_string(),
            "a": { "file": a.path.display().to_string(), "row": a.row, "class": class_a },
            "b": { "file": b.path.display().to_string(), "row": b.row, "class": class_b },
            "score": why.score,
            "contributions": contributions,
        }));
    }
    let described = |row: &RowOf, class: Option<String>| {
        let class = class.map_or(String::new(), |c| format!(" (class {c})"));
        format!("row {} of {}{class}", row.row, row.path.display())
    };
    let mut text = format!(
        "{}\nand {}\nscore {} under {}.\n",
        described(a, class_a),
        described(b, class_b),
        short(why.score),
        args.model.display()
    );
    if why.pairs.is_empty() {
        text += "\nThey share nothing that the model looks at.\n";
        return report::stdout(&text);
    }
    text += "\nWhat the score is made of:\n";
    let mut rows: Vec<Vec<String>> = listed
        .iter()
        .map(|p| {
            let (i, j) = (names.of(p.i), names.of(p.j));
            let found = |in_a: u32, in_b: u32| {
                indices_a.binary_search(&in_a).is_ok() && indices_b.binary_search(&in_b).is_ok()
            };
            // Here is the first row named, there the second.
            let words = match (found(p.i, p.j), found(p.j, p.i)) {
                _ if p.i == p.j => format!("both have {i}"),
                (true, true) => format!("{i} here, {j} there, and the other way round"),
                (false, true) => format!("{j} here, {i} there"),
                _ => format!("{i} here, {j} there"),
            };
            vec![format!("{:+.4}", p.value), words]
        })
        .collect();
    if listed.len() < why.pairs.len() {
        let n = why.pairs.len() - listed.len();
        rows.push(vec![
            format!("{others:+.4}"),
            format!("{} more", thousands(n)),
        ]);
    }
    rows.push(vec![format!("{:+.4}", why.score), "in all".into()]);
    text += &report::table("  ", &rows);
    report::stdout(&text)
}

fn row_of<'a>(data: &'a Dataset, wanted: &RowOf) -> Result<SparseRow<'a>, Failure> {
    match wanted.row < data.rows.n_rows() {
        true => Ok(data.rows.row(wanted.row)),
        false => Err(Failure::usage(format!(
            "{}: row {} is missing, there are {}, counted from 0",
            wanted.path.display(),
            wanted.row,
            count(data.rows.n_rows(), "row")
        ))),
    }
}
