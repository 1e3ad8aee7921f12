//! The input of a report.

use hdsl::model::CommandFiles;
use hdsl::ranking::{Judged, Judgments};
use hdsl::{Dataset, Labels, Model, PredictionRule, Rows, Triplets, triplets};
use std::collections::{BTreeMap, BTreeSet};

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

/// Queries with judgments of training rows, which are the documents then.
#[derive(Clone, Debug)]
pub struct JudgedQueries<'a> {
    /// The rows of the queries, before preprocessing.
    pub queries: &'a Rows,
    /// Queries by row number, with their judged documents.
    pub judged: Vec<(u32, Judged)>,
    /// The documents of a ranking, by increasing row number; all training rows if there is no list.
    pub documents: Option<Vec<u32>>,
    /// The names of the queries, one per row, if they have any.
    pub names: Option<&'a [String]>,
    /// The name of the judgments on the page, such as their file name.
    pub source: &'a str,
}

impl<'a> JudgedQueries<'a> {
    /// Queries that are rows of their own, and judgments of the training rows.
    ///
    /// ```
    /// use hdsl::Rows;
    /// use hdsl::ranking::{Ids, Judgments};
    /// use hdsl_report::JudgedQueries;
    /// let queries = Rows::from_parts(2, vec![0, 1, 2], vec![0, 1], vec![1.0; 2])?;
    /// let judgments = Judgments::parse("qrels".as_ref(), b"1 0 2\n1 3 0\n", &Ids::Rows(2), &Ids::Rows(4), false)?;
    /// let judged = JudgedQueries::new(&queries, &judgments, "qrels");
    /// assert_eq!(judged.judged[0].1.gains, [(0, 2.0), (3, 0.0)]);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn new(queries: &'a Rows, judgments: &Judgments, source: &'a str) -> Self {
        let answered = judgments.queries().into_iter();
        Self {
            queries,
            judged: answered.map(|q| (q, judgments.of(q).clone())).collect(),
            documents: None,
            names: None,
            source,
        }
    }

    /// Queries and documents that are rows of the same data, as for training with `judgments:FILE`. The documents of a
    /// ranking are those that the judgments name, without the query itself unless it is judged.
    pub fn of_rows(rows: &'a Rows, judgments: &triplets::Judgments, source: &'a str) -> Self {
        let of_query = |query| {
            let gains = judgments.gains(query).into_iter();
            gains.map(|(document, gain)| (query.query, document, gain))
        };
        Self::among(rows, judgments.queries().iter().flat_map(of_query), source)
    }

    /// [`JudgedQueries::of_rows`], given (query, document, gain), each pair of a query and a document once.
    pub fn among(
        rows: &'a Rows,
        gains: impl Iterator<Item = (u32, u32, f64)>,
        source: &'a str,
    ) -> Self {
        let mut given = Self::of_gains(rows, gains, source);
        let all = given.judged.iter().flat_map(|(_, of)| &of.gains);
        let documents: BTreeSet<u32> = all.map(|judged| judged.0).collect();
        given.documents = Some(documents.into_iter().collect());
        for (query, of) in &mut given.judged {
            if of.gain(*query).is_none() {
                of.left_out.push(*query);
            }
        }
        given
    }

    /// Queries that are rows of their own, and the gains of documents: (query, document, gain), each pair of a query and a
    /// document once.
    pub fn of_gains(
        queries: &'a Rows,
        gains: impl Iterator<Item = (u32, u32, f64)>,
        source: &'a str,
    ) -> Self {
        let mut judged: BTreeMap<u32, Judged> = BTreeMap::new();
        for (query, document, gain) in gains {
            let of_query = judged.entry(query).or_default();
            of_query.gains.push((document, gain));
        }
        for of_query in judged.values_mut() {
            of_query.gains.sort_unstable_by_key(|judged| judged.0);
        }
        Self {
            queries,
            judged: judged.into_iter().collect(),
            documents: None,
            names: None,
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
    /// Queries with judgments, to measure rankings of the training rows.
    pub judged: Option<JudgedQueries<'a>>,
    /// The training time. It is not part of a model, because the same seed must give the same bytes.
    pub train_seconds: Option<f64>,
    /// The command that made the page, if there was one.
    pub command: Option<&'a str>,
    /// The files of the training, as far as they are known, for the `hdsl train` command of the page.
    pub files: CommandFiles,
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
            judged: None,
            train_seconds: None,
            command: None,
            files: CommandFiles::default(),
            made_by: None,
            interface: Interface::CommandLine,
        }
    }

    /// The training rows and their labels.
    pub(crate) fn labeled_train(&self) -> Option<(&'a Rows, &'a Labels)> {
        let part = self.train?;
        Some((part.rows, part.labels?))
    }

    /// The judgments, if their queries are the test rows: the same object, not only equal rows.
    pub(crate) fn judged_test_rows(&self) -> Option<&JudgedQueries<'a>> {
        let (judged, test) = (self.judged.as_ref()?, self.test?);
        std::ptr::eq(judged.queries, test.rows).then_some(judged)
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
            Missing::Judgments => (
                "--train DOCUMENTS, --queries FILE and --judgments FILE",
                "X_train and judgments",
            ),
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
    Judgments,
}
