//! Section 1: the figures somebody wants first.

use crate::format::{count, percent, short, thousands};
use crate::input::{Hint, Input};
use crate::ranking::{Rankings, in_short, plain_preprocess};
use hdsl::model::CommandFiles;
use hdsl::{CancelToken, Result, Triplets};
use serde::Serialize;

/// One figure: its exact value for programs, its text for people.
pub(crate) struct Figure {
    pub(crate) key: &'static str,
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) text: String,
    pub(crate) note: String,
}

/// The section, as the template shows it.
pub(crate) struct Glance {
    pub(crate) headline: String,
    /// Error before and after, if it is known.
    pub(crate) errors: Option<Errors>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) command: String,
    /// What the section on the run shows.
    pub(crate) run: String,
    /// What is left out, and what would add it.
    pub(crate) missing: Vec<String>,
}

pub(crate) struct Errors {
    pub(crate) before: Figure,
    pub(crate) after: Figure,
    /// Widths of two bars, of 100.
    pub(crate) before_width: f64,
    pub(crate) after_width: f64,
}

/// Triplets and how many of them have a margin above 0.
#[derive(Serialize)]
pub(crate) struct Satisfied {
    pub(crate) n: usize,
    pub(crate) dot: f64,
    pub(crate) learned: f64,
}

/// Mines the triplets again as training did, unless they are given, and counts.
pub(crate) fn satisfied(input: &Input<'_>) -> Result<Option<Satisfied>> {
    let Some(train) = input.train else {
        return Ok(None);
    };
    let plain = plain_preprocess(input, train.rows).apply(train.rows);
    let mined: Triplets = match input.triplets {
        Some(triplets) => {
            triplets.check(train.rows.n_rows())?;
            triplets.clone()
        }
        None => {
            let config = &input.model.parts().config;
            if train.labels.is_none() || !config.triplets.is_mined() {
                return Ok(None);
            }
            let seed = config.seed;
            match config
                .triplets
                .triplets(&plain, train.labels, seed, CancelToken::NEVER)
            {
                Ok(triplets) => triplets,
                // One class only, for instance: nothing to count, and the report goes on.
                Err(_) => return Ok(None),
            }
        }
    };
    if mined.is_empty() {
        return Ok(None);
    }
    let (scaled, learned) = (input.model.prepare(train.rows), input.model.similarity());
    let mapped = learned.transform_rows(&scaled);
    let share = |rows: &hdsl::Rows| {
        let row = |r: u32| rows.row(r as usize);
        let kept = mined
            .iter()
            .filter(|&(a, near, far)| row(a).dot(row(near)) > row(a).dot(row(far)));
        kept.count() as f64 / mined.len() as f64
    };
    Ok(Some(Satisfied {
        n: mined.len(),
        dot: share(&plain),
        learned: share(&mapped),
    }))
}

impl Glance {
    pub(crate) fn of(
        input: &Input<'_>,
        rankings: Option<&Rankings>,
        satisfied: Option<&Satisfied>,
    ) -> Self {
        let model = input.model;
        let learned = model.similarity();
        let n_pairs = learned.pairs_by_weight().len();
        let mut figures = Vec::new();
        let mut figure = |key, label: &str, value: String, text: String, note: String| {
            figures.push(Figure {
                key,
                label: label.to_owned(),
                value,
                text,
                note,
            });
        };
        let used = learned.n_features_used();
        let share = used as f64 / model.n_features().max(1) as f64;
        figure(
            "n_features",
            "features used",
            used.to_string(),
            thousands(used),
            match share < 0.0005 {
                true => format!("of {}", thousands(model.n_features())),
                false => format!("of {}, {}", thousands(model.n_features()), percent(share)),
            },
        );
        figure(
            "n_pairs",
            "pairs of features",
            n_pairs.to_string(),
            thousands(n_pairs),
            format!("of {} possible", possible_pairs(model.n_features())),
        );
        figure(
            "n_atoms",
            "dimensions",
            learned.atoms().len().to_string(),
            thousands(learned.atoms().len()),
            "one an atom: what a row becomes when it is mapped".into(),
        );
        figure(
            "lambda",
            "λ",
            model.parts().scale.to_string(),
            short(model.parts().scale),
            "the size of the domain M was sought in".into(),
        );
        if let Some(s) = satisfied {
            figure(
                "satisfied",
                "triplets satisfied",
                s.learned.to_string(),
                percent(s.learned),
                format!("of {}; the dot product: {}", thousands(s.n), percent(s.dot)),
            );
        }
        figure(
            "iteration",
            "iterations kept",
            model.chosen().to_string(),
            thousands(model.chosen()),
            format!("of {}", thousands(model.path().len())),
        );
        if let Some(seconds) = input.train_seconds {
            let text = match seconds {
                s if s < 100.0 => format!("{s:.2} s"),
                s => format!("{} min", short(s / 60.0)),
            };
            figure(
                "train_seconds",
                "training time",
                seconds.to_string(),
                text,
                "in the solver".into(),
            );
        }
        let errors = rankings.and_then(|r| {
            let (dot, after) = (r.dot.evaluation.as_ref()?, r.learned.evaluation.as_ref()?);
            let bar = |key, label: &str, e: &hdsl::knn::Evaluation| Figure {
                key,
                label: label.into(),
                value: e.error.to_string(),
                text: percent(e.error),
                note: format!("{} wrong of {}", thousands(e.n_wrong), thousands(e.n_test)),
            };
            let most = dot.error.max(after.error).max(1e-12);
            Some(Errors {
                before: bar("dot_error", "plain dot product", dot),
                after: bar("error", "learned similarity", after),
                before_width: 100.0 * dot.error / most,
                after_width: 100.0 * after.error / most,
            })
        });
        Self {
            headline: headline(input, rankings, n_pairs),
            errors,
            figures,
            command: input.made_by.map_or_else(|| made_by(input), str::to_owned),
            run: run_in_words(input),
            missing: missing(input, rankings, satisfied),
        }
    }
}

/// d (d - 1) / 2 in words short enough for a card.
fn possible_pairs(d: usize) -> String {
    let pairs = d as f64 * (d as f64 - 1.0) / 2.0;
    match pairs {
        p if p >= 1e9 => format!("{} billion", short(p / 1e9)),
        p if p >= 1e6 => format!("{} million", short(p / 1e6)),
        p => thousands(p as usize),
    }
}

fn headline(input: &Input<'_>, rankings: Option<&Rankings>, n_pairs: usize) -> String {
    let model = input.model;
    let uses = format!(
        "It looks at {} of {} and at {} of them.",
        thousands(model.similarity().n_features_used()),
        count(model.n_features(), "feature"),
        count(n_pairs, "pair"),
    );
    let told = rankings.and_then(|r| {
        let (dot, learned) = (r.dot.evaluation.as_ref()?, r.learned.evaluation.as_ref()?);
        let (before, after) = (percent(dot.error), percent(learned.error));
                let rows = count(learned.n_test, "test row");
        let vote = format!("by {}", in_short(r.rule));
        Some(match learned.n_wrong.cmp(&dot.n_wrong) {
            std::cmp::Ordering::Less => {
                format!("Learning took the error on {rows} from {before} to {after}, {vote}. ")
            }
            std::cmp::Ordering::Equal => {
                format!("The error on {rows} is {after}, {vote}, as it is under the plain dot product. ")
            }
            std::cmp::Ordering::Greater => {
                format!("The error on {rows} rose from {before} to {after}, {vote}: here, learning did not help. ")
            }
        })
    });
    told.unwrap_or_default() + &uses
}

/// What a path is: that of a solver, or the way to a mean.
fn run_in_words(input: &Input<'_>) -> String {
    match input.model.parts().config.n_estimators {
        several @ 2.. => format!(
            "This model is the average of {several} models that differ in their seeds. Its path is not that of a solver: it adds \
             the pairs of the average by weight, the largest first. The model in use is the one at the line."
        ),
        _ => "Training starts with one pair of features. Each step adds a pair (forward), takes weight from one (away) or throws \
              one out (drop), always so that the objective, the average cost of a triplet that is out of order, falls. The \
              model in use is the iterate at the line."
            .to_owned(),
    }
}

/// The call of `hdsl train` that makes this model, as far as a model remembers it.
fn made_by(input: &Input<'_>) -> String {
    let mut files = CommandFiles::default();
    files.train = input.train.map(|part| part.source.into());
    files.output = Some(input.title.into());
    let line = input.model.command_line(&files);
    line.unwrap_or_else(|| "an earlier model was trained further in Python".to_owned())
}

fn missing(
    input: &Input<'_>,
    rankings: Option<&Rankings>,
    satisfied: Option<&Satisfied>,
) -> Vec<String> {
    let mut list = Vec::new();
    let mut add = |what: &str, hint: &str| list.push(format!("{what}: give {hint}."));
    match (input.train, input.test) {
        (None, None) => add(
            "Errors, neighbors, the map of the rows and how often pairs fire",
            &format!("{} and {}", input.hint(Hint::Train), input.hint(Hint::Test)),
        ),
        (None, Some(_)) => add(
            "Errors, neighbors, the map of the rows and how often pairs fire",
            input.hint(Hint::Train),
        ),
        (Some(_), None) => add(
            "Errors and neighbors of rows the model has not seen",
            input.hint(Hint::Test),
        ),
        (Some(_), Some(_)) => {
            if rankings.is_none_or(|r| r.learned.evaluation.is_none()) {
                add(
                    "Errors, and right or wrong neighbors",
                    input.hint(Hint::Labels),
                );
            }
        }
    }
    if input.train.is_some() && satisfied.is_none() {
        add("Triplets satisfied", input.hint(Hint::Triplets));
    }
    let has_texts = |part: Option<crate::Part<'_>>| part.is_some_and(|p| p.texts.is_some());
    if rankings.is_some() && !has_texts(input.train) && !has_texts(input.test) {
        add("The texts of the rows", input.hint(Hint::Text));
    }
    if input.train_seconds.is_none() {
        add(
            "The training time, which a model does not keep so that the same seed gives the same bytes",
            input.hint(Hint::Run),
        );
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_in_words() {
        assert_eq!(possible_pairs(5000), "12.5 million");
        assert_eq!(possible_pairs(10), "45");
        assert_eq!(possible_pairs(100_000), "5 billion");
        assert_eq!(possible_pairs(0), "0");
    }
}
