//! The input of a report.

use hdsl::{Dataset, Labels, Model, PredictionRule, Rows, Triplets};

/// Training rows or test rows, before preprocessing.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The rows.
    pub rows: &'a Rows,
    /// Their classes, if they have any.
    pub labels: Option<&'a Labels>,
    /// Their texts, one per row, if there are any.
    pub texts: Option<&'a [String]>,
    /// The name of the rows on the page, such as their file name.
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

/// Where the reader of the page calls the library from. Hints on the page name its options or arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// `hdsl report --test FILE`.
    CommandLine,
    /// `model.report(X_test=...)`.
    Python,
}

/// The input of a report. Only the model is required.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The model, at the selected iterate of its path.
    pub model: &'a Model,
    /// The name of the model on the page, such as its file name.
    pub title: &'a str,
    /// Feature names, instead of those in the model.
    pub names: Option<&'a [String]>,
    /// The training rows, among which neighbors are searched.
    pub train: Option<Part<'a>>,
    /// Test rows, which were not used for training.
    pub test: Option<Part<'a>>,
    /// The prediction rule; by default that of the model.
    pub rule: PredictionRule,
    /// The triplets of the training, if they cannot be mined again from labels.
    pub triplets: Option<&'a Triplets>,
    /// The training time. It is not part of a model, because the same seed must give the same bytes.
    pub train_seconds: Option<f64>,
    /// The command that made the page, if there was one.
    pub command: Option<&'a str>,
    /// Code that trains the model, shown instead of the `hdsl train` command derived from its configuration.
    pub made_by: Option<&'a str>,
    /// Which options or arguments the hints on the page name.
    pub interface: Interface,
}

impl<'a> Input<'a> {
    /// The input for a report about the model alone.
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
            interface: Interface::CommandLine,
        }
    }

    /// The training rows and their labels.
    pub(crate) fn labeled_train(&self) -> Option<(&'a Rows, &'a Labels)> {
        let part = self.train?;
        Some((part.rows, part.labels?))
    }

    /// The name of a feature: the given one, the one in the model, or its number.
    pub(crate) fn name(&self, feature: u32) -> String {
        match self.names.and_then(|names| names.get(feature as usize)) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => self.default_name(feature),
        }
    }

    /// The name in the model, or a number in the style of the interface.
    fn default_name(&self, feature: u32) -> String {
        let names = &self.model.parts().names;
        match (
            self.interface,
            names.binary_search_by_key(&feature, |n| n.0),
        ) {
            (Interface::Python, Err(_)) if self.model.vectorizer().is_none() => {
                format!("x{feature}")
            }
            _ => self.model.name(feature).into_owned(),
        }
    }

    /// The option or call that selects an iterate of the model.
    pub(crate) fn select_iterate(&self, iteration: usize) -> String {
        match self.interface {
            Interface::CommandLine => format!("--iteration {iteration}"),
            Interface::Python => format!("model.at(iteration={iteration})"),
        }
    }

    /// The options or arguments that supply a missing input.
    pub(crate) fn hint(&self, missing: Missing) -> &'static str {
        let (command_line, python) = match missing {
            Missing::Train => ("--train FILE", "X_train and y_train"),
            Missing::Test => ("--test FILE", "X_test"),
            Missing::Labels => ("--train-labels and --test-labels", "y_train and y_test"),
            Missing::Texts => ("--text TRAIN TEST", "train_texts and test_texts"),
            Missing::TrainTime => (
                "--run FILE with the output of hdsl train --json",
                "a model that was fitted in this session",
            ),
            Missing::Triplets => ("--triplets FILE", "triplets from labels"),
        };
        match self.interface {
            Interface::CommandLine => command_line,
            Interface::Python => python,
        }
    }
}

/// Optional input that was not given.
#[derive(Clone, Copy)]
pub(crate) enum Missing {
    Train,
    Test,
    Labels,
    Texts,
    TrainTime,
    Triplets,
}
