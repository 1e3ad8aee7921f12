//! The HTML report of a model, and its short form for notebooks.

use crate::errors::to_python;
use crate::matrix::{Csr, view};
use crate::model::Model;
use crate::training::{Classes, to_labels};
use crate::work::detached;
use hdsl::data::OutputFile;
use hdsl::{Labels, Rows, TripletSource};
use hdsl_report::{Input, Interface, JudgedQueries, Part};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

/// Rows, their classes, their texts.
type Given<'py> = (Csr<'py>, Option<Classes<'py>>, Option<Vec<String>>);

/// Judgments: the query, the document and the gain of each. Documents are training rows. Queries are test rows, or training rows
/// if there are no test rows.
type Gains = Vec<(u32, u32, f64)>;

/// Rows copied for the page, to be read without the interpreter.
struct Owned {
    rows: Rows,
    labels: Option<Labels>,
    texts: Option<Vec<String>>,
}

impl Owned {
    fn new((rows, classes, texts): Given<'_>) -> PyResult<Self> {
        let rows = view(rows.parts()?)?.to_rows();
        let labels = classes.map(|c| to_labels(c, rows.n_rows())).transpose()?;
        Ok(Self {
            rows,
            labels,
            texts,
        })
    }

    fn part<'a>(&'a self, source: &'a str) -> Part<'a> {
        Part {
            rows: &self.rows,
            labels: self.labels.as_ref(),
            texts: self.texts.as_deref(),
            source,
        }
    }
}

/// Writes the report of a model atomically. `made_by` is the estimator, `calls` how it is fitted: from
/// labels, and from given triplets.
#[pyfunction]
#[pyo3(signature = (model, path, *, title, made_by, calls, k, names=None, train=None, test=None, judgments=None, train_seconds=None, n_threads=1))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn report(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    path: PathBuf,
    title: String,
    made_by: String,
    calls: (String, String),
    k: usize,
    names: Option<Vec<String>>,
    train: Option<Given<'_>>,
    test: Option<Given<'_>>,
    judgments: Option<Gains>,
    train_seconds: Option<f64>,
    n_threads: usize,
) -> PyResult<()> {
    let model = model.get().get();
    let call = match model.parts().config.triplets {
        TripletSource::Given { .. } => calls.1,
        _ => calls.0,
    };
    let made_by = format!("{made_by}.{call}");
    let train = train.map(Owned::new).transpose()?;
    let test = test.map(Owned::new).transpose()?;
    let mut file = OutputFile::create(&path).map_err(to_python)?;
    detached(py, n_threads, || {
        let mut input = Input::new(model, &title);
        input.names = names.as_deref();
        input.train = train.as_ref().map(|part| part.part("X_train"));
        input.test = test.as_ref().map(|part| part.part("X_test"));
        input.judged = match (&train, &test, judgments) {
            (_, Some(queries), Some(gains)) => Some(JudgedQueries::of_gains(
                &queries.rows,
                gains.into_iter(),
                "judgments",
            )),
            (Some(rows), None, Some(gains)) => Some(JudgedQueries::among(
                &rows.rows,
                gains.into_iter(),
                "judgments",
            )),
            _ => None,
        };
        input.rule.k = k;
        input.train_seconds = train_seconds;
        input.made_by = Some(&made_by);
        input.interface = Interface::Python;
        let page = hdsl_report::page(&input, &mut |_| {}).map_err(to_python)?;
        file.fill(|file| file.write_all(page.as_bytes()))
            .and_then(|()| file.commit())
            .map_err(to_python)
    })
}

/// The model as a small piece of HTML.
#[pyfunction]
pub(crate) fn compact(model: &Bound<'_, Model>, title: &str) -> String {
    let model = model.get().get();
    let known: HashMap<u32, &str> = model
        .parts()
        .names
        .iter()
        .map(|(feature, name)| (*feature, name.as_str()))
        .collect();
    hdsl_report::compact(model, title, |feature| {
        let name = known.get(&feature);
        Some(name.map_or_else(|| format!("x{feature}"), |name| (*name).to_owned()))
    })
}
