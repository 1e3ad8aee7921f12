//! The baselines of the paper: one weight per feature, and OASIS.

use crate::errors::to_python;
use crate::listening::{Facts, Listeners, Watch, listen};
use crate::matrix::{Csr, CsrArrays, Parts, row_numbers, view};
use crate::settings::from_json;
use crate::training::{Classes, Given, extended, to_labels, to_triplets};
use crate::work::detached;
use hdsl::baselines::{Diagonal, DiagonalModel, Oasis, OasisModel};
use hdsl::data::{RowsView, TermStatistics};
use hdsl::observer::{Event, OasisProgress, Observer, Stop};
use hdsl::{CancelToken, Labels, Preprocessor, Rows, Similarity, TripletSource, Triplets};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;

/// The source of the triplets, and the preprocessing of the rows.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Source {
    triplets: String,
    preprocess: String,
    seed: u64,
}

/// A baseline with its settings.
#[derive(serde::Deserialize)]
#[serde(tag = "learner", rename_all = "lowercase")]
enum Learner {
    Diagonal(Diagonal),
    Oasis(Oasis),
}

enum Learned {
    Diagonal(DiagonalModel),
    Oasis(OasisModel),
}

impl Learned {
    fn similarity(&self) -> &dyn Similarity {
        match self {
            Learned::Diagonal(model) => model,
            Learned::Oasis(model) => model,
        }
    }
}

/// The learned similarity of a baseline, with the preprocessing of the rows. Immutable.
#[pyclass(frozen, module = "hdsl._core")]
pub(crate) struct BaselineModel {
    preprocess: Preprocessor,
    learned: Learned,
}

/// A preprocessing as plain data: kind, number of features, and its maxima.
type PreprocessorParts = (String, usize, Vec<(u32, f64)>);

/// Term statistics as plain data: the fields of [`TermStatistics`].
type TermParts = (usize, bool, f64, Vec<(u32, u32)>);

/// What `BaselineModel.from_parts` takes.
type BaselineParts = (PreprocessorParts, LearnedParts, bool, Option<TermParts>);

/// A learned similarity as plain data: features with weights, or a full matrix.
#[derive(FromPyObject, IntoPyObject)]
enum LearnedParts {
    Weights(Vec<(u32, f64)>),
    Matrix(Vec<f64>),
}

impl BaselineModel {
    /// Raw rows, preprocessed after a check of their values.
    fn prepared(&self, rows: RowsView<'_>) -> hdsl::Result<Rows> {
        self.preprocess.check(rows)?;
        Ok(self.preprocess.apply(rows))
    }
}

#[pymethods]
impl BaselineModel {
    /// For unpickling.
    #[staticmethod]
    #[pyo3(signature = (preprocess, learned, is_matrix, terms=None))]
    fn from_parts(
        preprocess: PreprocessorParts,
        learned: LearnedParts,
        is_matrix: bool,
        terms: Option<TermParts>,
    ) -> PyResult<Self> {
        let (kind, n_features, maxima) = preprocess;
        let terms = terms.map(|terms| TermStatistics {
            n_rows: terms.0,
            is_counts: terms.1,
            mean_length: terms.2,
            document_frequencies: terms.3,
        });
        let make = || {
            let preprocess = Preprocessor::from_parts(kind.parse()?, n_features, maxima, terms)?;
            // An empty list could be either.
            let learned = match (is_matrix, learned) {
                (true, LearnedParts::Matrix(values)) => {
                    Learned::Oasis(OasisModel::from_matrix(n_features, values)?)
                }
                (true, LearnedParts::Weights(_)) => {
                    Learned::Oasis(OasisModel::from_matrix(n_features, Vec::new())?)
                }
                (false, LearnedParts::Weights(weights)) => {
                    Learned::Diagonal(DiagonalModel::new(n_features, weights)?)
                }
                (false, LearnedParts::Matrix(_)) => {
                    Learned::Diagonal(DiagonalModel::new(n_features, Vec::new())?)
                }
            };
            Ok::<_, hdsl::Error>(Self {
                preprocess,
                learned,
            })
        };
        make().map_err(to_python)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, BaselineParts)> {
        let this = slf.get();
        let preprocess = (
            this.preprocess.kind().to_string(),
            this.preprocess.n_features(),
            this.preprocess.maxima().collect(),
        );
        let (learned, is_matrix) = match &this.learned {
            Learned::Diagonal(model) => {
                let (features, weights) = (model.features(), model.weights());
                let pairs = features.iter().copied().zip(weights.iter().copied());
                (LearnedParts::Weights(pairs.collect()), false)
            }
            Learned::Oasis(model) => (LearnedParts::Matrix(model.matrix().to_vec()), true),
        };
        let terms = this.preprocess.term_statistics().map(|terms| {
            let frequencies = terms.document_frequencies;
            (
                terms.n_rows,
                terms.is_counts,
                terms.mean_length,
                frequencies,
            )
        });
        let make = slf.get_type().getattr("from_parts")?;
        Ok((make, (preprocess, learned, is_matrix, terms)))
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.preprocess.n_features()
    }

    /// Features and their weights, for a diagonal similarity.
    #[allow(clippy::type_complexity)]
    fn weights<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>)> {
        match &self.learned {
            Learned::Diagonal(model) => {
                let features: Vec<i64> = model.features().iter().map(|&f| f.into()).collect();
                let weights = PyArray1::from_slice(py, model.weights());
                Ok((features.into_pyarray(py), weights))
            }
            Learned::Oasis(_) => Err(PyValueError::new_err("this model is a matrix")),
        }
    }

    /// W row by row, for OASIS.
    fn matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.learned {
            Learned::Oasis(model) => Ok(PyArray1::from_slice(py, model.matrix())),
            Learned::Diagonal(_) => Err(PyValueError::new_err(
                "this model has one weight per feature",
            )),
        }
    }

    /// Preprocessed rows.
    fn prepare<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        n_threads: usize,
    ) -> PyResult<CsrArrays<'py>> {
        let preprocessed = rows.mapped(py, n_threads, |rows| self.prepared(rows))?;
        Ok(preprocessed.0)
    }

    /// Rows mapped such that scores are dot products of queries and items.
    fn map<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        as_queries: bool,
        n_threads: usize,
    ) -> PyResult<(CsrArrays<'py>, usize)> {
        rows.mapped(py, n_threads, |rows| {
            let rows = self.prepared(rows)?;
            let similarity = self.learned.similarity();
            Ok(match as_queries {
                true => similarity.queries(&rows).into_owned(),
                false => similarity.items(&rows).into_owned(),
            })
        })
    }

    /// The scores of rows i with rows j of one matrix.
    fn score_pairs<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        pairs: [Bound<'py, PyArray1<i64>>; 2],
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = rows.parts()?;
        let i = row_numbers(&pairs[0], rows.n_rows(), "i")?;
        let j = row_numbers(&pairs[1], rows.n_rows(), "j")?;
        let scores = detached(py, n_threads, || {
            let scaled = self.prepared(view(rows)?).map_err(to_python)?;
            let similarity = self.learned.similarity();
            let score = |(p, q): (&u32, &u32)| {
                similarity.score(scaled.row(*p as usize), scaled.row(*q as usize))
            };
            Ok(i.iter().zip(&j).map(score).collect::<Vec<f64>>())
        })?;
        Ok(scores.into_pyarray(py))
    }
}

/// Preprocessed rows and triplets over them.
struct Prepared {
    preprocess: Preprocessor,
    rows: Rows,
    triplets: Triplets,
}

fn prepare(
    source: &Source,
    x: Parts<'_>,
    labels: Option<&Labels>,
    given: Option<Triplets>,
    weights: Option<&[f64]>,
    known: Option<&Preprocessor>,
    cancel: CancelToken<'_>,
) -> PyResult<Prepared> {
    let x = view(x)?;
    let preprocess = match known {
        Some(known) => extended(known, x)?,
        None => Preprocessor::fit(source.preprocess.parse().map_err(to_python)?, x),
    };
    preprocess.check(x).map_err(to_python)?;
    let rows = preprocess.apply(x);
    let mut triplets = match given {
        Some(triplets) => triplets,
        None => {
            let mined: TripletSource = source.triplets.parse().map_err(to_python)?;
            mined
                .triplets(&rows, labels, source.seed, cancel)
                .map_err(to_python)?
        }
    };
    if let Some(weights) = weights {
        triplets = triplets.weighted_by_anchor(|anchor| weights[anchor as usize]);
    }
    Ok(Prepared {
        preprocess,
        rows,
        triplets,
    })
}

/// A finished fit.
struct Fitted {
    preprocess: Preprocessor,
    learned: Learned,
    n_triplets: usize,
    stop: Stop,
    iterations: usize,
    seconds: f64,
    /// Objective and gap of the diagonal similarity.
    certificate: Option<(f64, f64)>,
    /// Progress of OASIS.
    trace: Vec<OasisProgress>,
}

impl Learner {
    fn fit(
        &self,
        start: Option<&Learned>,
        ready: Prepared,
        observer: &mut dyn Observer,
    ) -> hdsl::Result<Fitted> {
        let Prepared {
            preprocess,
            rows,
            triplets,
        } = ready;
        let n_triplets = triplets.len();
        Ok(match self {
            Learner::Diagonal(learner) => {
                let start = match start {
                    Some(Learned::Diagonal(model)) => Some(model),
                    _ => None,
                };
                let fit = learner.fit(start, &rows, &triplets, observer)?;
                Fitted {
                    preprocess: preprocess.restrict(fit.model.features()),
                    certificate: Some((fit.last.objective, fit.last.gap)),
                    iterations: fit.last.iter,
                    seconds: fit.last.seconds,
                    stop: fit.stop,
                    learned: Learned::Diagonal(fit.model),
                    trace: Vec::new(),
                    n_triplets,
                }
            }
            Learner::Oasis(learner) => {
                let start = match start {
                    Some(Learned::Oasis(model)) => Some(model),
                    _ => None,
                };
                let fit = learner.fit(start, &rows, &triplets, observer)?;
                let iterations = fit.trace.last().map_or(0, |point| point.step);
                Fitted {
                    preprocess,
                    learned: Learned::Oasis(fit.model),
                    n_triplets,
                    stop: fit.stop,
                    iterations,
                    seconds: fit.seconds,
                    certificate: None,
                    trace: fit.trace,
                }
            }
        })
    }
}

/// Passes progress on to Python.
struct Progress<'a, 'w> {
    watch: &'a mut Watch<'w>,
    n_features: usize,
}

impl Observer for Progress<'_, '_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let facts = match event {
            Event::DiagonalIteration(now) => Facts {
                iteration: now.iter,
                objective: now.objective,
                gap: now.gap,
                n_features: now.n_features,
                seconds: now.seconds,
                ..Facts::default()
            },
            Event::OasisProgress(now) => Facts {
                iteration: now.step,
                objective: now.loss,
                n_features: self.n_features,
                seconds: now.seconds,
                ..Facts::default()
            },
            _ => return self.watch.asked(),
        };
        self.watch.tell(facts, None)
    }
}

/// Learns the similarity of a baseline. `settings` are JSON; `start` is the model of a fit to continue from.
#[pyfunction]
#[pyo3(signature = (
    settings, source, x, classes=None, *, triplets=None, row_weights=None, start=None, each=None, progress=None,
    n_threads=1
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_baseline<'py>(
    py: Python<'py>,
    settings: &str,
    source: Source,
    x: Csr<'py>,
    classes: Option<Classes<'py>>,
    triplets: Option<Given<'py>>,
    row_weights: Option<Bound<'py, PyArray1<f64>>>,
    start: Option<&Bound<'py, BaselineModel>>,
    each: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    n_threads: usize,
) -> PyResult<(BaselineModel, Bound<'py, PyDict>)> {
    let learner: Learner = from_json(settings)?;
    let x = x.parts()?;
    let labels = classes.map(|c| to_labels(c, x.n_rows())).transpose()?;
    let given = triplets.map(|t| to_triplets(t, x.n_rows())).transpose()?;
    let weights: Option<Vec<f64>> = row_weights.map(|w| w.to_vec()).transpose()?;
    let start = start.map(|model| model.get());
    // New triplets for OASIS are about the same features, preprocessed alike.
    let known = start.filter(|start| matches!(start.learned, Learned::Oasis(_)));
    let listeners = Listeners {
        each,
        progress,
        snapshots: false,
    };
    let (fitted, interrupted) = py.detach(|| {
        listen(&listeners, n_threads, |watch| {
            let ready = prepare(
                &source,
                x,
                labels.as_ref(),
                given,
                weights.as_deref(),
                known.map(|model| &model.preprocess),
                watch.cancel(),
            )?;
            let n_features = ready.rows.n_features();
            let mut observer = Progress { watch, n_features };
            let learned = start.map(|model| &model.learned);
            learner
                .fit(learned, ready, &mut observer)
                .map_err(to_python)
        })
    })?;
    let facts = PyDict::new(py);
    facts.set_item("stop", fitted.stop.to_string())?;
    facts.set_item("interrupted", interrupted)?;
    facts.set_item("iterations", fitted.iterations)?;
    facts.set_item("train_seconds", fitted.seconds)?;
    facts.set_item("n_triplets", fitted.n_triplets)?;
    facts.set_item("objective", fitted.certificate.map(|c| c.0))?;
    facts.set_item("gap", fitted.certificate.map(|c| c.1))?;
    let points = fitted.trace.iter();
    let trace: Vec<(usize, f64, f64)> = points.map(|p| (p.step, p.loss, p.violated)).collect();
    facts.set_item("trace", trace)?;
    let model = BaselineModel {
        preprocess: fitted.preprocess,
        learned: fitted.learned,
    };
    Ok((model, facts))
}
