//! `hdsl explain`: what a model has learned, and why two rows are similar.

use crate::args::{ModelFile, RowOf, named};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, count, short, thousands};
use clap::{Args, ValueHint};
use hdsl::similarity::{Explanation, FeatureWeight, PairWeight};
use hdsl::{Dataset, Model, Normalization, SparseRow};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Show which features and pairs of features a model uses, or why two rows are similar
///
/// M is a weighted sum of atoms LAMBDA (e_i +- e_j)(e_i +- e_j)^T, so
///
///   S(x, x') = BASE <x, x'> + sum over atoms of LAMBDA weight (x_i +- x_j)(x'_i +- x'_j)
///
/// BASE is 0 unless the model was learned on top of the dot product; M is the learned part. Features
/// are listed by M_ii, pairs by |M_ij|. A pair with M_ij > 0 makes two rows more similar if one has
/// feature i and the other feature j; a pair with M_ij < 0 makes them less similar.
///
/// With --pair, the contributions to the score of two given rows are listed: BASE x_i x'_i of the
/// base, and M_ij x_i x'_j of the learned part. Their sum is the score. Under cosine normalization,
/// all are divided by sqrt(S(x, x) S(x', x')).
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  hdsl explain m.hdsl --names vocab.txt --top 20
  hdsl explain m.hdsl --pair test.svm.bz2:3 train.svm.bz2:17        rows are counted from 0
  hdsl explain reviews.hdsl --pair new.csv:3 reviews.csv:17         records of a model of records"
)]
pub(crate) struct Explain {
    #[command(flatten)]
    model: ModelFile,
    /// Number of features, pairs or contributions to list; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Explain the score of two rows: FILE:ROW twice, rows counted from 0
    #[arg(long, value_names = ["FILE:ROW", "FILE:ROW"], num_args = 2)]
    pair: Option<Vec<RowOf>>,
    /// Normalization of the score of --pair [default: as in training]
    #[arg(long, value_name = "HOW", requires = "pair", value_parser = named!(Normalization))]
    normalization: Option<Normalization>,
    /// Feature names, one per line, or a vocabulary file of `vectorize` [default: those saved in the model]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    names: Option<PathBuf>,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Explain, log: &Log) -> Result<(), Failure> {
    let model = files::read_model(&args.model.model, &args.model.point, log)?;
    let read_names = |path| files::read_names(path, model.n_features());
    let names = Names {
        list: args.names.as_deref().map(read_names).transpose()?,
        model: &model,
    };
    match args.pair.as_deref() {
        Some([a, b]) => explain_rows(args, log, &names, a, b),
        _ => explain_model(args, &names),
    }
}

/// The names of features: those of a file, or else those of the model.
struct Names<'a> {
    /// Names by feature, from a file.
    list: Option<Vec<String>>,
    /// The model, which has names or numbers.
    model: &'a Model,
}

impl Names<'_> {
    fn of(&self, feature: u32) -> String {
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

fn explain_model(args: &Explain, names: &Names<'_>) -> Result<(), Failure> {
    let learned = names.model.similarity();
    let (features, pairs) = (learned.features_by_weight(), learned.pairs_by_weight());
    match args.json {
        true => output::json(&model_json(args, names, &features, &pairs)),
        false => output::stdout(&model_text(args, names, &features, &pairs)),
    }
}

fn model_json(
    args: &Explain,
    names: &Names<'_>,
    features: &[FeatureWeight],
    pairs: &[PairWeight],
) -> Value {
    let (model, learned) = (names.model, names.model.similarity());
    let feature = |f: &FeatureWeight| {
        json!({
            "feature": f.feature,
            "name": names.of(f.feature),
            "weight": f.weight,
            "n_pairs": f.n_pairs,
        })
    };
    let pair = |p: &PairWeight| {
        json!({
            "i": p.i,
            "j": p.j,
            "name_i": names.of(p.i),
            "name_j": names.of(p.j),
            "sign": if p.weight > 0.0 { "+" } else { "-" },
            "weight": p.weight,
        })
    };
    let listed: Vec<Value> = top(features, args.top).iter().map(feature).collect();
    let listed_pairs: Vec<Value> = top(pairs, args.top).iter().map(pair).collect();
    let mut value = json!({
        "model": args.model.model,
        "lambda": model.parts().scale,
        "iteration": model.chosen(),
        "n_atoms": learned.atoms().len(),
        "n_features": learned.n_features_used(),
        "n_features_total": model.n_features(),
        "n_pairs": pairs.len(),
        "features": listed,
        "pairs": listed_pairs,
    });
    if model.base() > 0.0 {
        value["base"] = model.base().into();
    }
    value
}

fn model_text(
    args: &Explain,
    names: &Names<'_>,
    features: &[FeatureWeight],
    pairs: &[PairWeight],
) -> String {
    let model = names.model;
    let uses = format!(
        "uses {} of {} and {}.\n",
        thousands(model.similarity().n_features_used()),
        count(model.n_features(), "feature"),
        count(pairs.len(), "pair")
    );
    let file = args.model.model.display();
    let mut text = match short(model.base()) {
        base if model.base() > 0.0 => format!(
            "{file} scores rows by {base} <x, x'> + x^T M x'.\n\
             The base, {base} <x, x'>, uses all features. The learned part, M, {uses}"
        ),
        _ => format!("{file} {uses}"),
    };
    text += "\nFeatures, by their contribution to the score if both rows have them with value 1 (M_ii):\n";
    let rows: Vec<Vec<String>> = top(features, args.top)
        .iter()
        .map(|f| {
            vec![
                format!("{:.3}", f.weight),
                names.of(f.feature),
                format!("in {}", count(f.n_pairs, "pair")),
            ]
        })
        .collect();
    text += &output::table("  ", &rows);
    text += &rest(features.len(), rows.len());
    for (alike, title) in [(true, "more similar"), (false, "less similar")] {
        let chosen = pairs.iter().filter(|p| (p.weight > 0.0) == alike);
        let chosen: Vec<&PairWeight> = chosen.collect();
        let sign = if alike { ">" } else { "<" };
        text += &format!(
            "\nPairs that make two rows {title} if one has the first and the other the second (M_ij {sign} 0):\n"
        );
        let rows: Vec<Vec<String>> = top(&chosen, args.top)
            .iter()
            .map(|p| pair_row(p.weight, &names.of(p.i), &names.of(p.j)))
            .collect();
        if rows.is_empty() {
            text += "  none\n";
        }
        text += &output::table("  ", &rows);
        text += &rest(chosen.len(), rows.len());
    }
    text
}

/// One row of a table of pairs.
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

/// One of the two rows of `--pair`.
struct Side<'a> {
    wanted: &'a RowOf,
    class: Option<&'a str>,
    text: Option<&'a str>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl<'a> Side<'a> {
    fn of(data: &'a Dataset, wanted: &'a RowOf, model: &Model) -> Result<Self, Failure> {
        let n_rows = data.rows.n_rows();
        if wanted.row >= n_rows {
            let (row, rows) = (wanted.row, count(n_rows, "row"));
            let message = format!("row {row} does not exist, there are {rows}, counted from 0");
            return Err(Failure::file(&wanted.path, message));
        }
        files::check_values(model.preprocess().kind(), &wanted.path, &data.rows)?;
        let (indices, values) = model.preprocess().apply_row(data.rows.row(wanted.row));
        Ok(Self {
            wanted,
            class: data.labels.as_ref().map(|labels| labels.name(wanted.row)),
            text: data
                .records
                .as_ref()
                .and_then(|records| records.texts.as_ref())
                .map(|texts| texts[wanted.row].as_str()),
            indices,
            values,
        })
    }

    fn row(&self) -> SparseRow<'_> {
        SparseRow::new(&self.indices, &self.values)
    }

    fn has(&self, feature: u32) -> bool {
        self.indices.binary_search(&feature).is_ok()
    }

    fn text(&self) -> String {
        let class = self.class.map_or(String::new(), |c| {
            format!(" (class {})", output::short_name(c))
        });
        let RowOf { path, row } = self.wanted;
        let text = self
            .text
            .map_or(String::new(), |t| format!(": {}", beginning(t)));
        format!("row {row} of {}{class}{text}", path.display())
    }

    fn json(&self) -> Value {
        let (path, row) = (&self.wanted.path, self.wanted.row);
        let mut value = json!({ "file": path, "row": row, "class": self.class });
        if let Some(text) = self.text {
            value["text"] = text.into();
        }
        value
    }
}

/// A text on one line, cut if it is long.
fn beginning(text: &str) -> String {
    const LONGEST: usize = 100;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn explain_rows(
    args: &Explain,
    log: &Log,
    names: &Names<'_>,
    a: &RowOf,
    b: &RowOf,
) -> Result<(), Failure> {
    let model = names.model;
    let mut reader = Reader::new(&args.model.read, log).keep_texts();
    reader.number_as_model(model);
    let first = reader.data(&a.path, None)?;
    let second = match a.path == b.path {
        true => None,
        false => Some(reader.data(&b.path, None)?),
    };
    let a = Side::of(&first, a, model)?;
    let b = Side::of(second.as_ref().unwrap_or(&first), b, model)?;
    let normalization = args.normalization.unwrap_or(model.rule().normalization);
    let similarity = normalization.of(model.similarity());
    let explanation = similarity.explain_pair(a.row(), b.row());
    if !args.json {
        return output::stdout(&rows_text(
            args,
            names,
            normalization,
            [&a, &b],
            &explanation,
        ));
    }
    let contributions = explanation.pairs.iter().map(|p| {
        json!({
            "i": p.i, "j": p.j,
            "name_i": names.of(p.i), "name_j": names.of(p.j),
            "value": p.value,
        })
    });
    let mut value = json!({
        "model": args.model.model,
        "a": a.json(),
        "b": b.json(),
        "normalization": normalization,
        "score": explanation.score,
        "contributions": contributions.collect::<Vec<Value>>(),
    });
    if model.base() > 0.0 {
        let base = explanation.base.iter();
        let base = base.map(
            |c| json!({ "feature": c.feature, "name": names.of(c.feature), "value": c.value }),
        );
        value["base"] = model.base().into();
        value["base_score"] = explanation.base_score.into();
        value["learned_score"] = explanation.learned_score.into();
        value["base_contributions"] = base.collect();
    }
    output::json(&value)
}

fn rows_text(
    args: &Explain,
    names: &Names<'_>,
    normalization: Normalization,
    [a, b]: [&Side<'_>; 2],
    explanation: &Explanation,
) -> String {
    let cosine = match normalization {
        Normalization::Dot => "",
        Normalization::Cosine => ", normalized by the cosine",
    };
    let text = format!(
        "{}\nand {}\nscore {} under {}{cosine}.\n",
        a.text(),
        b.text(),
        short(explanation.score),
        args.model.model.display()
    );
    let learned: Vec<(f64, String)> = explanation
        .pairs
        .iter()
        .map(|p| {
            let (i, j) = (names.of(p.i), names.of(p.j));
            let one_way = a.has(p.i) && b.has(p.j);
            let other_way = a.has(p.j) && b.has(p.i);
            let words = match (one_way, other_way) {
                _ if p.i == p.j => format!("both have {i}"),
                (true, true) => format!("{i} in the first row, {j} in the second, and vice versa"),
                (false, true) => format!("{j} in the first row, {i} in the second"),
                _ => format!("{i} in the first row, {j} in the second"),
            };
            (p.value, words)
        })
        .collect();
    let model = names.model;
    if model.base() == 0.0 {
        return match learned.is_empty() {
            true => text + "\nThey have no features in common that the model uses.\n",
            false => {
                let rows = contributions(args, &learned, explanation.score, "in total");
                text + "\nContributions to the score:\n" + &output::table("  ", &rows)
            }
        };
    }
    let base = explanation.base.iter();
    let base: Vec<(f64, String)> = base
        .map(|c| (c.value, format!("both have {}", names.of(c.feature))))
        .collect();
    let base_rows = contributions(args, &base, explanation.base_score, "from the base");
    let learned_rows = contributions(
        args,
        &learned,
        explanation.learned_score,
        "from the learned part",
    );
    let total = vec![format!("{:+.4}", explanation.score), "in total".into()];
    format!(
        "{text}\nContributions of the base, {} <x, x'>:\n{}\nContributions of the learned part, x^T M x':\n{}\n{}",
        short(model.base()),
        output::table("  ", &base_rows),
        output::table("  ", &learned_rows),
        output::table("  ", &[total])
    )
}

/// A table of the largest contributions, the sum of the others, and the sum of all.
fn contributions(
    args: &Explain,
    list: &[(f64, String)],
    sum: f64,
    sum_of: &str,
) -> Vec<Vec<String>> {
    let row = |value: f64, words: &str| vec![format!("{value:+.4}"), words.to_owned()];
    let listed = top(list, args.top);
    let mut rows: Vec<_> = listed.iter().map(|(v, words)| row(*v, words)).collect();
    let others = &list[listed.len()..];
    if !others.is_empty() {
        let rest: f64 = others.iter().map(|other| other.0).sum();
        rows.push(row(rest, &format!("{} more", thousands(others.len()))));
    }
    rows.push(row(sum, sum_of));
    rows
}
