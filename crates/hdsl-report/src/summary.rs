//! Section 1: the key figures, and the input that would add more.

use crate::format::{count, percent, rough, short, thousands};
use crate::input::{Input, Missing, Part};
use crate::judged::JudgedSection;
use crate::ranking::{Rankings, baseline, rule_name};
use crate::triplets::Satisfied;
use hdsl::knn::Evaluation;
use hdsl::model::{Validation, shell_word};
use hdsl::triplets::TripletFormat;
use hdsl::{Model, TripletSource};
use std::cmp::Ordering;

/// One figure: its exact value for programs, its text for people.
pub(crate) struct Figure {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) text: String,
    pub(crate) note: String,
}

/// The section, as the template shows it.
pub(crate) struct Summary {
    pub(crate) headline: String,
    /// Test errors under both similarities, if they are known.
    pub(crate) errors: Option<Errors>,
    /// Test errors of other similarities without learning.
    pub(crate) references: Vec<Figure>,
    pub(crate) figures: Vec<Figure>,
    /// The command or code that trains the model; none if there is no such command.
    pub(crate) command: Option<String>,
    /// What the command leaves out, or why there is none.
    pub(crate) command_note: Option<&'static str>,
    /// The introduction of the section about the training run.
    pub(crate) run: String,
    /// What is left out, and the input that adds it.
    pub(crate) missing: Vec<String>,
}

/// Test errors as figures and as two horizontal bars.
pub(crate) struct Errors {
    pub(crate) dot: Figure,
    pub(crate) learned: Figure,
    /// Widths of the bars; the larger one is 100.
    pub(crate) dot_width: f64,
    pub(crate) learned_width: f64,
}

impl Summary {
    pub(crate) fn of(
        input: &Input<'_>,
        rankings: Option<&Rankings>,
        satisfied: Option<&Satisfied>,
        judged: Option<&JudgedSection>,
    ) -> Self {
        let evaluations = rankings.and_then(Rankings::evaluations);
        let mut figures = model_figures(input);
        figures.extend(satisfied.map(|s| Figure {
            key: "satisfied",
            label: "triplets satisfied",
            value: s.learned.to_string(),
            text: percent(s.learned),
            note: format!(
                "of {}; {}: {}{}",
                thousands(s.n),
                baseline(input.model),
                percent(s.dot),
                s.references
                    .iter()
                    .map(|(name, share)| format!(", {name}: {}", percent(*share)))
                    .collect::<String>()
            ),
        }));
        figures.extend(judged.map(ranking_figures).unwrap_or_default());
        let (command, command_note) = match input.made_by {
            Some(code) => (Some(code.to_owned()), None),
            None => train_command(input),
        };
        figures.extend(run_figures(input));
        Self {
            headline: headline(input, rankings, judged),
            errors: evaluations.map(|(dot, learned)| Errors::of(input, dot, learned)),
            references: reference_figures(rankings),
            figures,
            command,
            command_note,
            run: run_introduction(input),
            missing: missing(input, rankings, satisfied, judged),
        }
    }
}

impl Errors {
    fn of(input: &Input<'_>, dot: &Evaluation, learned: &Evaluation) -> Self {
        let figure = |key, label, e: &Evaluation| Figure {
            key,
            label,
            value: e.error.to_string(),
            text: percent(e.error),
            note: format!(
                "{} of {}",
                thousands(e.n_wrong),
                count(e.n_test, "test row")
            ),
        };
        let largest = dot.error.max(learned.error).max(1e-12);
        Self {
            dot: figure("dot_error", baseline(input.model), dot),
            learned: figure("error", "learned similarity", learned),
            dot_width: 100.0 * dot.error / largest,
            learned_width: 100.0 * learned.error / largest,
        }
    }
}

/// The errors of the similarities without learning that have no bar.
fn reference_figures(rankings: Option<&Rankings>) -> Vec<Figure> {
    let references = rankings.map_or(&[][..], |r| &r.references);
    let figure = |(name, e): &(&'static str, Evaluation)| Figure {
        key: match *name {
            "cosine" => "cosine_error",
            "tf-idf cosine" => "tfidf_error",
            _ => "product_error",
        },
        label: name,
        value: e.error.to_string(),
        text: percent(e.error),
        note: String::new(),
    };
    references.iter().map(figure).collect()
}

/// The quality of the rankings.
fn ranking_figures(judged: &JudgedSection) -> Vec<Figure> {
    let (Some(learned), Some(best)) = (judged.learned(), judged.best_reference()) else {
        return Vec::new();
    };
    let figure = |key, label, value: f64, other: f64| Figure {
        key,
        label,
        value: value.to_string(),
        text: format!("{value:.4}"),
        note: format!("{}: {other:.4}", best.name),
    };
    vec![
        figure("ndcg", "nDCG@10", learned.ndcg, best.ndcg),
        figure("map", "MAP", learned.map, best.map),
    ]
}

/// The size of the model.
fn model_figures(input: &Input<'_>) -> Vec<Figure> {
    let model = input.model;
    let learned = model.similarity();
    let figure = |key, label, n: usize, note| Figure {
        key,
        label,
        value: n.to_string(),
        text: thousands(n),
        note,
    };
    let d = model.n_features();
    let used = learned.n_features_used();
    let share = used as f64 / d.max(1) as f64;
    let of_features = match share < 0.0005 {
        true => format!("of {}", thousands(d)),
        false => format!("of {}, {}", thousands(d), percent(share)),
    };
    let possible_pairs = rough(d as f64 * (d as f64 - 1.0) / 2.0);
    let (features, one_per_atom) = match model.base() > 0.0 {
        true => ("features of the learned part", "learned, one per atom"),
        false => ("features used", "of transformed rows, one per atom"),
    };
    let base = Figure {
        key: "base",
        label: "base",
        value: model.base().to_string(),
        text: short(model.base()),
        note: "factor of the dot product, which uses all features".into(),
    };
    let base = Some(base).filter(|_| model.base() > 0.0);
    let mut figures = vec![
        figure("n_features", features, used, of_features),
        figure(
            "n_pairs",
            "feature pairs",
            learned.pairs_by_weight().len(),
            format!("of {possible_pairs} possible"),
        ),
        figure(
            "n_atoms",
            "dimensions",
            learned.atoms().len(),
            one_per_atom.into(),
        ),
        Figure {
            key: "lambda",
            label: "λ",
            value: model.parts().scale.to_string(),
            text: short(model.parts().scale),
            note: "domain size: the trace of M is 2λ".into(),
        },
    ];
    figures.extend(base);
    figures
}

/// The length of the training run.
fn run_figures(input: &Input<'_>) -> Vec<Figure> {
    let (chosen, length) = (input.model.chosen(), input.model.path().len());
    let mut figures = vec![Figure {
        key: "iteration",
        label: "selected iterate",
        value: chosen.to_string(),
        text: thousands(chosen),
        note: format!("of {}", count(length, "iteration")),
    }];
    figures.extend(input.train_seconds.map(|seconds| Figure {
        key: "train_seconds",
        label: "training time",
        value: seconds.to_string(),
        text: match seconds < 100.0 {
            true => format!("{seconds:.2} s"),
            false => format!("{} min", short(seconds / 60.0)),
        },
        note: "in the solver".into(),
    }));
    figures
}

fn headline(
    input: &Input<'_>,
    rankings: Option<&Rankings>,
    judged: Option<&JudgedSection>,
) -> String {
    let learned = input.model.similarity();
    let part = match input.model.base() > 0.0 {
        true => "learned part",
        false => "model",
    };
    let size = format!(
        "The {part} uses {} of {}, in {}.",
        thousands(learned.n_features_used()),
        count(input.model.n_features(), "feature"),
        count(learned.pairs_by_weight().len(), "pair"),
    );
    let Some((rankings, (dot, learned))) = rankings.and_then(|r| Some((r, r.evaluations()?)))
    else {
        let rankings = judged.and_then(ranking_headline);
        return match rankings {
            Some(rankings) => format!("{rankings} {size}"),
            None => size,
        };
    };
    let (before, after) = (percent(dot.error), percent(learned.error));
    let rows = count(learned.n_test, "test row");
    let (rule, baseline) = (rule_name(rankings.rule), baseline(input.model));
    let error = match learned.n_wrong.cmp(&dot.n_wrong) {
        Ordering::Less => {
            format!("Training reduced the error on {rows} from {before} to {after} ({rule}).")
        }
        Ordering::Equal => {
            format!("The error on {rows} is {after} ({rule}), the same as with the {baseline}.")
        }
        Ordering::Greater => format!(
            "Training did not help: the error on {rows} is {after} ({rule}), compared to {before} with the {baseline}."
        ),
    };
    let better = better_reference(rankings, learned.error);
    let changes = rankings.changes(input).map(|(corrected, added)| {
        let (corrected, added) = (count(corrected, "error"), thousands(added));
        format!(" The learned part corrects {corrected} of the base alone and adds {added}.")
    });
    format!("{error}{better}{} {size}", changes.unwrap_or_default())
}

/// A sentence about the best similarity without learning, if the learned one is not better.
fn better_reference(rankings: &Rankings, learned: f64) -> String {
    let lowest = (rankings.references.iter())
        .filter(|(_, reference)| reference.error < learned)
        .min_by(|a, b| a.1.error.total_cmp(&b.1.error));
    lowest.map_or(String::new(), |(name, reference)| {
        let error = percent(reference.error);
        format!(" The {name} has a lower error, {error}, without any learning.")
    })
}

fn ranking_headline(judged: &JudgedSection) -> Option<String> {
    let (learned, best) = (judged.learned()?, judged.best_reference()?);
    let queries = match judged.n_queries {
        1 => "1 query".to_owned(),
        n => format!("{} queries", thousands(n)),
    };
    let compared = match learned.ndcg > best.ndcg {
        true => "compared to",
        false => "not above the",
    };
    Some(format!(
        "The nDCG@10 of the learned similarity on {queries} is {:.4}, {compared} {:.4} of the {}.",
        learned.ndcg, best.ndcg, best.name
    ))
}

/// How the path came about: by the solver, or as the average of several models.
fn run_introduction(input: &Input<'_>) -> String {
    let model = input.model;
    match model.parts().config.n_estimators {
        _ if model.similarity().atoms().is_empty() && model.path().is_empty() => {
            "Nothing was learned: this model is its base alone.".to_owned()
        }
        several @ 2.. => format!(
            "This model is the average of {several} models trained with different seeds. Its path is not that of a solver: it \
             adds the atoms of the average in order of decreasing weight. The dotted line marks the model in use."
        ),
        _ => "Training minimizes the objective, the mean loss over all triplets, with a Frank-Wolfe algorithm. It starts with \
              one atom, that is, one pair of features. A forward step adds an atom or increases its weight, an away step \
              decreases the weight of an atom, and a drop step removes one. The dotted line marks the iterate in use."
            .to_owned(),
    }
}

/// The command that trains this model, as far as its configuration contains it, and a note about the rest.
fn train_command(input: &Input<'_>) -> (Option<String>, Option<&'static str>) {
    let mut files = input.files.clone();
    if files.train.is_none() {
        files.train = input.train.map(|part| part.source.into());
    }
    files.output = Some(input.title.into());
    if let Some(command) = input.model.command_line(&files) {
        return (Some(command), None);
    }
    let config = &input.model.parts().config;
    if matches!(config.triplets, TripletSource::Ranking { .. }) {
        let documents = files.train.map(|path| path.display().to_string());
        let command = rank_command(input.model, documents.as_deref(), input.title);
        let note = "The share of the base and the weight of pairs are chosen by cross-validation, as hdsl rank does by \
                    default.";
        return (Some(command), Some(note));
    }
    let note = match (config.warm_start, config.validation) {
        (true, _) => "This model continues an earlier one: no single command trains it.",
        (_, Validation::Holdout(_)) => {
            "This model was fitted in Python from given triplets, with held-out rows: no single command trains it."
        }
        _ => "No single command trains this model.",
    };
    (None, Some(note))
}

/// The `hdsl rank` command of a model.
fn rank_command(model: &Model, documents: Option<&str>, output: &str) -> String {
    let config = &model.parts().config;
    let documents = documents.map_or("DOCUMENTS".into(), shell_word);
    let lambda: Vec<String> = config.lambda.iter().map(f64::to_string).collect();
    format!(
        "hdsl rank {documents} --queries QUERIES --judgments JUDGMENTS --preprocess {} --lambda {} --max-iter {} \
         --n-estimators {} --seed {} -o {}",
        config.preprocess,
        lambda.join(","),
        config.max_iter,
        config.n_estimators,
        config.seed,
        shell_word(output)
    )
}

/// Whether the model learned from judgments.
fn learned_from_judgments(model: &Model) -> bool {
    matches!(
        model.parts().config.triplets,
        TripletSource::Ranking { .. }
            | TripletSource::File {
                format: TripletFormat::Judgments | TripletFormat::JudgmentsLow,
                ..
            }
    )
}

fn missing(
    input: &Input<'_>,
    rankings: Option<&Rankings>,
    satisfied: Option<&Satisfied>,
    judged: Option<&JudgedSection>,
) -> Vec<String> {
    let mut list = Vec::new();
    let mut add = |what: &str, hint: &str| list.push(format!("{what}: give {hint}."));
    let needs_train = "Errors, nearest neighbors, the map of the rows and pair frequencies";
    let (train, test) = (input.hint(Missing::Train), input.hint(Missing::Test));
    match (input.train, input.test) {
        (None, None) => add(needs_train, &format!("{train} and {test}")),
        (None, Some(_)) => add(needs_train, train),
        (Some(_), None) => add("Errors and nearest neighbors of test rows", test),
        (Some(_), Some(_)) if judged.is_some() => {}
        (Some(_), Some(_)) if rankings.and_then(Rankings::evaluations).is_none() => {
            add(
                "Errors and classes of neighbors",
                input.hint(Missing::Labels),
            );
        }
        _ => {}
    }
    if judged.is_none() && learned_from_judgments(input.model) {
        add("Quality of rankings", input.hint(Missing::Judgments));
    }
    if input.train.is_some() && satisfied.is_none() && judged.is_none() {
        add("Triplets satisfied", input.hint(Missing::Triplets));
    }
    let has_texts = |part: Option<Part<'_>>| part.is_some_and(|p| p.texts.is_some());
    if rankings.is_some() && !has_texts(input.train) && !has_texts(input.test) {
        add("Texts of the rows", input.hint(Missing::Texts));
    }
    if input.train_seconds.is_none() {
        add(
            "Training time, which a model file does not contain",
            input.hint(Missing::TrainTime),
        );
    }
    list
}
