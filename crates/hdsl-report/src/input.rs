//! What a report is made from.

use hdsl::{Dataset, Labels, Model, PredictionRule, Rows, Triplets};

/// Rows of one kind: those the model was trained on, or those it is judged by. All raw, as in their files.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The rows.
    pub rows: &'a Rows,
    /// Their classes, if they have any.
    pub labels: Option<&'a Labels>,
    /// Their texts, one a row, if there are any.
    pub texts: Option<&'a [String]>,
    /// What to call them, such as the name of their file.
    pub source: &'a str,
}

impl<'a> Part<'a> {
    /// The rows of a data set, without texts.
    pub fn new(data: &'a Dataset, source: &'a str) -> Self {
        Self {
            rows: &data.rows,
            labels: data.labels.as_ref(),
            texts: None,
            source,
        }
    }
}

/// Whom the page talks to: it names the flag or the argument that would add what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// `hdsl report --test FILE`.
    CommandLine,
    /// `model.report(X_test=...)`.
    Python,
}

/// Everything a report may be made from. Only the model is needed.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The model, at the point of its path that is of interest.
    pub model: &'a Model,
    /// What to call the model, such as the name of its file.
    pub title: &'a str,
    /// Names by feature, instead of those in the model.
    pub names: Option<&'a [String]>,
    /// The rows the model was trained on, neighbors are sought among.
    pub train: Option<Part<'a>>,
    /// Rows the model has not seen.
    pub test: Option<Part<'a>>,
    /// How classes are decided; by default as the model does.
    pub rule: PredictionRule,
    /// The triplets the model was trained on, where they cannot be mined again from labels.
    pub triplets: Option<&'a Triplets>,
    /// How long training took, which models do not keep: same seed, same bytes.
    pub train_seconds: Option<f64>,
    /// The command that made the page, if there was one.
    pub command: Option<&'a str>,
    /// What makes the model, instead of the call of `hdsl train` that a model remembers.
    pub made_by: Option<&'a str>,
    /// Whom the page talks to.
    pub voice: Voice,
}

impl<'a> Input<'a> {
    /// A report of the model alone.
    pub fn new(model: &'a Model, title: &'a str) -> Self {
        Self {
            model,
            title,
            names: None,
            train: None,
            test: None,
            rule: model.rule(),
            triplets: None,
            train_seconds: None,
            command: None,
            made_by: None,
            voice: Voice::CommandLine,
        }
    }

    /// The training rows with their labels.
    pub(crate) fn labeled_train(&self) -> Option<(&'a Rows, &'a Labels)> {
        let part = self.train?;
        Some((part.rows, part.labels?))
    }

    /// What to call a feature.
    pub(crate) fn name(&self, feature: u32) -> String {
        match self.names.and_then(|names| names.get(feature as usize)) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => self.named(feature),
        }
    }

    /// The name in the model, or a number as those who read the page count.
    fn named(&self, feature: u32) -> String {
        let names = &self.model.parts().names;
        match (self.voice, names.binary_search_by_key(&feature, |n| n.0)) {
            (Voice::Python, Err(_)) => format!("x{feature}"),
            _ => self.model.name(feature).into_owned(),
        }
    }

    /// What would add something: a flag, or an argument.
    pub(crate) fn hint(&self, what: Hint) -> &'static str {
        match (self.voice, what) {
            (Voice::CommandLine, Hint::Train) => "--train FILE",
            (Voice::CommandLine, Hint::Test) => "--test FILE",
            (Voice::CommandLine, Hint::Labels) => "labels for them (--train-labels, --test-labels)",
            (Voice::CommandLine, Hint::Text) => "--text TRAIN TEST",
            (Voice::CommandLine, Hint::Run) => "--run FILE, with what hdsl train --json printed",
            (Voice::CommandLine, Hint::Triplets) => "--triplets FILE",
            (Voice::Python, Hint::Train) => "X_train and y_train",
            (Voice::Python, Hint::Test) => "X_test",
            (Voice::Python, Hint::Labels) => "y_train and y_test",
            (Voice::Python, Hint::Text) => "train_texts and test_texts",
            (Voice::Python, Hint::Run) => "a model that was fitted in this session",
            (Voice::Python, Hint::Triplets) => "triplets from labels",
        }
    }
}

/// What may be missing.
#[derive(Clone, Copy)]
pub(crate) enum Hint {
    Train,
    Test,
    Labels,
    Text,
    Run,
    Triplets,
}
