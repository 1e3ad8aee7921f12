//! The baselines of the paper: a weight a feature, and OASIS.

use crate::errors::to_python;
use crate::listening::{Facts, Listeners, listen};
use crate::matrix::{Csr, CsrArrays, Parts, row_numbers, to_arrays, view};
use crate::training::{Classes, Given, extended, to_labels, to_triplets};
use crate::work::detached;
use hdsl::baselines::{Diagonal, DiagonalModel, Finish, Oasis, OasisModel, Sampling};
use hdsl::observer::{Event, OasisProgress};
use hdsl::{CancelToken, Labels, Preprocessor, Rows, Similarity, TripletSource, Triplets};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;

/// Where triplets come from, and what happens to rows before.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Source {
    triplets: String,
    preprocess: String,
    seed: u64,
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

/// What a baseline has learned, with the preprocessing of the rows it learned from. Never changes.
#[pyclass(frozen, module = "hdsl._core")]
pub(crate) struct RivalModel {
    preprocess: Preprocessor,
    learned: Learned,
}

/// A preprocessing as plain data: kind, number of features, and its maxima.
type ScalingParts = (String, usize, Vec<(u32, f64)>);

/// A learned similarity as plain data: features with weights, or a whole matrix.
#[derive(FromPyObject, IntoPyObject)]
enum LearnedParts {
    Weights(Vec<(u32, f64)>),
    Matrix(Vec<f64>),
}

#[pymethods]
impl RivalModel {
    /// For pickles.
    #[staticmethod]
    fn from_parts(
        preprocess: ScalingParts,
        learned: LearnedParts,
        is_matrix: bool,
    ) -> PyResult<Self> {
        let (kind, n_features, maxima) = preprocess;
        let make = || {
            let preprocess = Preprocessor::from_parts(kind.parse()?, n_features, maxima)?;
            let learned = match (is_matrix, learned) {
                (true, LearnedParts::Matrix(values)) => {
                    Learned::Oasis(OasisModel::from_matrix(n_features, values)?)
                }
                (false, LearnedParts::Weights(weights)) => {
                    Learned::Diagonal(DiagonalModel::new(n_features, weights)?)
                }
                // An empty list could be either.
                (true, LearnedParts::Weights(_)) => {
                    Learned::Oasis(OasisModel::from_matrix(n_features, Vec::new())?)
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

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (ScalingParts, LearnedParts, bool))> {
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
        let make = slf.get_type().getattr("from_parts")?;
        Ok((make, (preprocess, learned, is_matrix)))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.preprocess.n_features()
    }

    /// Features and their weights; for a baseline that has a weight a feature.
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

    /// W, row after row; for a baseline that has a matrix.
    fn matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.learned {
            Learned::Oasis(model) => Ok(PyArray1::from_slice(py, model.matrix())),
            Learned::Diagonal(_) => Err(PyValueError::new_err("this model has a weight a feature")),
        }
    }

    /// Raw rows as the similarity sees them.
    fn prepare<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        n_threads: usize,
    ) -> PyResult<CsrArrays<'py>> {
        let rows = rows.parts()?;
        let scaled = detached(py, n_threads, || Ok(self.preprocess.apply(view(rows)?)))?;
        Ok(to_arrays(py, &scaled))
    }

    /// Rows mapped so that dot products of queries and items are scores.
    fn map<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        as_queries: bool,
        n_threads: usize,
    ) -> PyResult<(CsrArrays<'py>, usize)> {
        let rows = rows.parts()?;
        let mapped = detached(py, n_threads, || {
            let scaled = self.preprocess.apply(view(rows)?);
            let similarity = self.learned.similarity();
            Ok(match as_queries {
                true => similarity.queries(&scaled).into_owned(),
                false => similarity.items(&scaled).into_owned(),
            })
        })?;
        Ok((to_arrays(py, &mapped), mapped.n_features()))
    }

    /// The scores of rows i with rows j of one matrix.
    fn score_pairs<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        i: &Bound<'py, PyArray1<i64>>,
        j: &Bound<'py, PyArray1<i64>>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = rows.parts()?;
        let i = row_numbers(i, rows.n_rows(), "i")?;
        let j = row_numbers(j, rows.n_rows(), "j")?;
        let scores = detached(py, n_threads, || {
            let scaled = self.preprocess.apply(view(rows)?);
            let similarity = self.learned.similarity();
            let score = |(p, q): (&u32, &u32)| {
                similarity.score(scaled.row(*p as usize), scaled.row(*q as usize))
            };
            Ok(i.iter().zip(&j).map(score).collect::<Vec<f64>>())
        })?;
        Ok(scores.into_pyarray(py))
    }
}

/// Scaled rows and triplets over them.
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
        triplets = crate::training::weigh(&triplets, weights);
    }
    Ok(Prepared {
        preprocess,
        rows,
        triplets,
    })
}

/// How a run ended, for Python.
fn outcome<'py>(
    py: Python<'py>,
    stop: hdsl::Stop,
    interrupted: bool,
    iterations: usize,
    seconds: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("stop", stop.to_string())?;
    facts.set_item("interrupted", interrupted)?;
    facts.set_item("iterations", iterations)?;
    facts.set_item("train_seconds", seconds)?;
    Ok(facts)
}

/// Settings of [`fit_diagonal`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DiagonalSettings {
    penalty: String,
    strength: f64,
    loss: String,
    positive: bool,
    max_iter: usize,
    tol: f64,
}

impl DiagonalSettings {
    fn checked(&self) -> hdsl::Result<Diagonal> {
        Ok(Diagonal::new(self.penalty.parse()?, self.strength)
            .loss(self.loss.parse()?)
            .non_negative(self.positive)
            .max_iter(self.max_iter)
            .tolerance(self.tol))
    }
}

/// Learns a weight a feature by proximal gradient.
#[pyfunction]
#[pyo3(signature = (
    settings, source, x, classes=None, *, triplets=None, row_weights=None, start=None, each=None, progress=None,
    n_threads=1
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_diagonal<'py>(
    py: Python<'py>,
    settings: DiagonalSettings,
    source: Source,
    x: Csr<'py>,
    classes: Option<Classes<'py>>,
    triplets: Option<Given<'py>>,
    row_weights: Option<Bound<'py, PyArray1<f64>>>,
    start: Option<&Bound<'py, RivalModel>>,
    each: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    n_threads: usize,
) -> PyResult<(RivalModel, Bound<'py, PyDict>)> {
    let learner = settings.checked().map_err(to_python)?;
    let x = x.parts()?;
    let labels = classes.map(|c| to_labels(c, x.n_rows())).transpose()?;
    let given = triplets.map(|t| to_triplets(t, x.n_rows())).transpose()?;
    let weights: Option<Vec<f64>> = row_weights.map(|w| w.to_vec()).transpose()?;
    let start = match start.map(|model| &model.get().learned) {
        Some(Learned::Diagonal(model)) => Some(model),
        _ => None,
    };
    let listeners = Listeners {
        each,
        progress,
        snapshots: false,
    };
    let ((preprocess, n_triplets, fit), interrupted) = py.detach(|| {
        listen(&listeners, n_threads, |watch| {
            let ready = prepare(
                &source,
                x,
                labels.as_ref(),
                given,
                weights.as_deref(),
                None,
                watch.cancel(),
            )?;
            let mut observer = |event: &Event<'_>| {
                let Event::DiagonalIteration(now) = event else {
                    return ControlFlow::Continue(());
                };
                let facts = Facts {
                    iteration: now.iter,
                    objective: now.objective,
                    gap: now.gap,
                    n_features: now.n_features,
                    seconds: now.seconds,
                    scale: settings.strength,
                    ..Facts::default()
                };
                watch.tell(facts, None)
            };
            let fit = match start {
                Some(start) => learner.fit_from(start, &ready.rows, &ready.triplets, &mut observer),
                None => learner.fit(&ready.rows, &ready.triplets, &mut observer),
            };
            let fit = fit.map_err(to_python)?;
            Ok((ready.preprocess, ready.triplets.len(), fit))
        })
    })?;
    let facts = outcome(py, fit.stop, interrupted, fit.iterations, fit.seconds)?;
    facts.set_item("objective", fit.objective)?;
    facts.set_item("gap", fit.gap)?;
    facts.set_item("n_triplets", n_triplets)?;
    let preprocess = preprocess.restrict(fit.model.features());
    let learned = Learned::Diagonal(fit.model);
    Ok((
        RivalModel {
            preprocess,
            learned,
        },
        facts,
    ))
}

/// Settings of [`fit_oasis`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct OasisSettings {
    aggressiveness: f64,
    n_steps: Option<usize>,
    sampling: String,
    finish: String,
    memory: Option<u64>,
}

impl OasisSettings {
    fn checked(&self, seed: u64) -> PyResult<Oasis> {
        let mut learner = Oasis::new(self.aggressiveness)
            .seed(seed)
            .sampling(match self.sampling.as_str() {
                "anchors" => Sampling::Anchors,
                "triplets" => Sampling::Triplets,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "`sampling` is {other}, expected anchors or triplets"
                    )));
                }
            })
            .finish(match self.finish.as_str() {
                "as-learned" => Finish::AsLearned,
                "symmetric" => Finish::Symmetric,
                "psd" => Finish::PositiveSemidefinite,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "`finish` is {other}, expected as-learned, symmetric or psd"
                    )));
                }
            });
        if let Some(steps) = self.n_steps {
            learner = learner.steps(steps);
        }
        if let Some(bytes) = self.memory {
            learner = learner.memory_limit(bytes);
        }
        Ok(learner)
    }
}

/// Learns a whole matrix by passive-aggressive steps.
#[pyfunction]
#[pyo3(signature = (
    settings, source, x, classes=None, *, triplets=None, row_weights=None, start=None, each=None, progress=None,
    n_threads=1
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_oasis<'py>(
    py: Python<'py>,
    settings: OasisSettings,
    source: Source,
    x: Csr<'py>,
    classes: Option<Classes<'py>>,
    triplets: Option<Given<'py>>,
    row_weights: Option<Bound<'py, PyArray1<f64>>>,
    start: Option<&Bound<'py, RivalModel>>,
    each: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    n_threads: usize,
) -> PyResult<(RivalModel, Bound<'py, PyDict>)> {
    let learner = settings.checked(source.seed)?;
    let x = x.parts()?;
    let labels = classes.map(|c| to_labels(c, x.n_rows())).transpose()?;
    let given = triplets.map(|t| to_triplets(t, x.n_rows())).transpose()?;
    let weights: Option<Vec<f64>> = row_weights.map(|w| w.to_vec()).transpose()?;
    // New feedback is about the same features, scaled alike.
    let start = match start.map(|model| (&model.get().learned, &model.get().preprocess)) {
        Some((Learned::Oasis(model), preprocess)) => Some((model, preprocess)),
        _ => None,
    };
    let listeners = Listeners {
        each,
        progress,
        snapshots: false,
    };
    let ((preprocess, n_triplets, fit), interrupted) = py.detach(|| {
        listen(&listeners, n_threads, |watch| {
            let ready = prepare(
                &source,
                x,
                labels.as_ref(),
                given,
                weights.as_deref(),
                start.map(|(_, preprocess)| preprocess),
                watch.cancel(),
            )?;
            let n_features = ready.rows.n_features();
            let mut observer = |event: &Event<'_>| {
                let Event::OasisProgress(now) = event else {
                    return ControlFlow::Continue(());
                };
                let facts = Facts {
                    iteration: now.step,
                    objective: now.loss,
                    n_features,
                    seconds: now.seconds,
                    scale: settings.aggressiveness,
                    ..Facts::default()
                };
                watch.tell(facts, None)
            };
            let fit = match start {
                Some((start, _)) => {
                    learner.fit_from(start, &ready.rows, &ready.triplets, &mut observer)
                }
                None => learner.fit(&ready.rows, &ready.triplets, &mut observer),
            };
            let fit = fit.map_err(to_python)?;
            Ok((ready.preprocess, ready.triplets.len(), fit))
        })
    })?;
    let steps = fit.trace.last().map_or(0, |point| point.step);
    let facts = outcome(py, fit.stop, interrupted, steps, fit.seconds)?;
    let column = |of: fn(&OasisProgress) -> f64| -> Vec<f64> { fit.trace.iter().map(of).collect() };
    facts.set_item("steps", column(|p| p.step as f64).into_pyarray(py))?;
    facts.set_item("loss", column(|p| p.loss).into_pyarray(py))?;
    facts.set_item("violated", column(|p| p.violated).into_pyarray(py))?;
    facts.set_item("n_triplets", n_triplets)?;
    let learned = Learned::Oasis(fit.model);
    Ok((
        RivalModel {
            preprocess,
            learned,
        },
        facts,
    ))
}
