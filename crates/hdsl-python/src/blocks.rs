//! Blocks of rows that are not in one place, for `hdsl.dask`: statistics, neighbors and triplets that merge to those of all
//! rows.

use crate::errors::to_python;
use crate::labels::order_in_a_file;
use crate::listening::{Facts, Listeners, listen};
use crate::matrix::{Copied, Csr, CsrArrays, to_arrays, view};
use crate::model::Model;
use crate::settings::Settings;
use crate::training::{
    Classes, Given, Listening, by_position, facts, to_labeled, to_labels, to_triplets,
};
use crate::work::detached;
use hdsl::data::{BlockStatistics, IndexBase, Preprocess, RowsView, TermStatistics};
use hdsl::knn::{Block, class_neighbors_between, merge_neighbors};
use hdsl::train::{RowSample, base_alone_with, choose_by_sample};
use hdsl::{Dot, Format, Labels, Neighbor, ReadOptions, Rows, TrainData, Triplets, read_dataset};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

type Numbers<'py> = Bound<'py, PyArray1<u32>>;
type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// [`BlockStatistics`] for Python: rows and values; features, maxima and document frequencies; three properties of the
/// values; their sum; the first negative one.
type Statistics<'py> = (
    (usize, usize),
    (Numbers<'py>, Floats<'py>, Numbers<'py>),
    (bool, bool, bool),
    f64,
    Option<(usize, u32, f64)>,
);

fn to_statistics<'py>(py: Python<'py>, of: BlockStatistics) -> Statistics<'py> {
    (
        (of.n_rows, of.n_values),
        (
            of.features.into_pyarray(py),
            of.maxima.into_pyarray(py),
            of.document_frequencies.into_pyarray(py),
        ),
        (of.is_counts, of.is_whole, of.above_one),
        of.total,
        of.first_negative,
    )
}

fn from_statistics(given: &Statistics<'_>) -> PyResult<BlockStatistics> {
    let (features, maxima, frequencies) = &given.1;
    Ok(BlockStatistics {
        n_rows: given.0.0,
        n_values: given.0.1,
        features: features.copied()?,
        maxima: maxima.copied()?,
        document_frequencies: frequencies.copied()?,
        is_counts: given.2.0,
        is_whole: given.2.1,
        above_one: given.2.2,
        total: given.3,
        first_negative: given.4,
    })
}

/// The statistics of a block that preprocessings are fitted from.
#[pyfunction]
pub(crate) fn block_statistics<'py>(py: Python<'py>, x: Csr<'py>) -> PyResult<Statistics<'py>> {
    let parts = x.parts()?;
    let found = detached(py, 1, || Ok(BlockStatistics::of(view(parts)?)))?;
    Ok(to_statistics(py, found))
}

/// The statistics of one block followed by another.
#[pyfunction]
pub(crate) fn merge_statistics<'py>(
    py: Python<'py>,
    first: Statistics<'py>,
    next: Statistics<'py>,
) -> PyResult<Statistics<'py>> {
    let (first, next) = (from_statistics(&first)?, from_statistics(&next)?);
    let merged = py.detach(|| first.merge(&next));
    Ok(to_statistics(py, merged))
}

/// A sum of absolute values, continued by those of a block.
#[pyfunction]
pub(crate) fn add_lengths(py: Python<'_>, total: f64, x: Csr<'_>) -> PyResult<f64> {
    let parts = x.parts()?;
    detached(py, 1, || {
        Ok(BlockStatistics::add_lengths(total, view(parts)?))
    })
}

/// The preprocessing of all rows, by their statistics and the sum of their absolute values in the order of rows.
#[pyfunction]
pub(crate) fn fit_preprocessor(
    kind: &str,
    n_features: usize,
    statistics: Statistics<'_>,
    total: f64,
) -> PyResult<Preprocessor> {
    let kind: Preprocess = kind.parse().map_err(to_python)?;
    let statistics = BlockStatistics {
        total,
        ..from_statistics(&statistics)?
    };
    let fitted = statistics.fit(kind, n_features).map_err(to_python)?;
    Ok(Preprocessor { fitted })
}

/// Which preprocessing a kind stands for, by the statistics of all rows.
#[pyfunction]
pub(crate) fn resolved(kind: &str, statistics: Statistics<'_>) -> PyResult<String> {
    let kind: Preprocess = kind.parse().map_err(to_python)?;
    let statistics = from_statistics(&statistics)?;
    Ok(statistics.resolved(kind).to_string())
}

/// A fitted preprocessing; immutable.
#[pyclass(frozen, eq, module = "hdsl._core")]
#[derive(PartialEq)]
pub(crate) struct Preprocessor {
    fitted: hdsl::Preprocessor,
}

/// Rows, whether values are counts, mean length; features and document frequencies.
type Terms<'py> = ((usize, bool, f64), Numbers<'py>, Numbers<'py>);

/// The arguments of [`Preprocessor::from_parts`].
type PreprocessorParts<'py> = (String, usize, Numbers<'py>, Floats<'py>, Option<Terms<'py>>);

impl Preprocessor {
    pub(crate) fn get(&self) -> &hdsl::Preprocessor {
        &self.fitted
    }
}

#[pymethods]
impl Preprocessor {
    #[staticmethod]
    fn from_parts(
        kind: &str,
        n_features: usize,
        features: Numbers<'_>,
        maxima: Floats<'_>,
        terms: Option<Terms<'_>>,
    ) -> PyResult<Self> {
        let kind: Preprocess = kind.parse().map_err(to_python)?;
        let maxima = features.copied()?.into_iter().zip(maxima.copied()?);
        let terms = match terms {
            Some(((n_rows, is_counts, mean_length), features, frequencies)) => {
                let frequencies = features.copied()?.into_iter().zip(frequencies.copied()?);
                Some(TermStatistics {
                    n_rows,
                    is_counts,
                    mean_length,
                    document_frequencies: frequencies.collect(),
                })
            }
            None => None,
        };
        hdsl::Preprocessor::from_parts(kind, n_features, maxima.collect(), terms)
            .map(|fitted| Self { fitted })
            .map_err(to_python)
    }

    #[getter]
    fn kind(&self) -> String {
        self.fitted.kind().to_string()
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.fitted.n_features()
    }

    /// Preprocessed rows.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        x: Csr<'py>,
        n_threads: usize,
    ) -> PyResult<CsrArrays<'py>> {
        let applied = |rows: RowsView<'_>| {
            self.fitted.check(rows)?;
            Ok(self.fitted.apply(rows))
        };
        Ok(x.mapped(py, n_threads, applied)?.0)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, PreprocessorParts<'py>)> {
        let (py, fitted) = (slf.py(), &slf.get().fitted);
        let (features, maxima): (Vec<u32>, Vec<f64>) = fitted.maxima().unzip();
        let terms = fitted.term_statistics().map(|terms| {
            let (features, frequencies): (Vec<u32>, Vec<u32>) =
                terms.document_frequencies.into_iter().unzip();
            (
                (terms.n_rows, terms.is_counts, terms.mean_length),
                features.into_pyarray(py),
                frequencies.into_pyarray(py),
            )
        });
        let make = slf.get_type().getattr("from_parts")?;
        let (kind, n_features) = (fitted.kind().to_string(), fitted.n_features());
        let maxima = maxima.into_pyarray(py);
        Ok((
            make,
            (kind, n_features, features.into_pyarray(py), maxima, terms),
        ))
    }
}

/// Lists of neighbors, query by query: where each list starts, rows and scores.
type Lists<'py> = (Bound<'py, PyArray1<i64>>, Numbers<'py>, Floats<'py>);

fn to_lists<'py>(py: Python<'py>, lists: &[Vec<Neighbor>]) -> Lists<'py> {
    let (mut starts, mut rows, mut scores) = (vec![0], Vec::new(), Vec::new());
    for list in lists {
        rows.extend(list.iter().map(|near| near.row));
        scores.extend(list.iter().map(|near| near.score));
        starts.push(rows.len() as i64);
    }
    (
        starts.into_pyarray(py),
        rows.into_pyarray(py),
        scores.into_pyarray(py),
    )
}

/// A block for Python: preprocessed rows, codes of their classes, number of the first.
type Coded<'py> = (Csr<'py>, Numbers<'py>, u32);

/// For each row of a block: its nearest rows of its class and its nearest rows of other classes, in another block. By the dot
/// product of preprocessed rows, or under a model.
#[pyfunction]
pub(crate) fn class_neighbors<'py>(
    py: Python<'py>,
    queries: Coded<'py>,
    items: Coded<'py>,
    counts: [usize; 2],
    model: Option<&Bound<'py, Model>>,
    n_threads: usize,
) -> PyResult<[Lists<'py>; 2]> {
    let (q, i) = (queries.0.parts()?, items.0.parts()?);
    let (q_codes, i_codes) = (queries.1.copied()?, items.1.copied()?);
    let model = model.map(|model| model.get().get());
    let found = detached(py, n_threads, || {
        let (q, i) = (view(q)?.to_rows(), view(i)?.to_rows());
        let block = |rows, classes, first| Block {
            rows,
            classes,
            first,
        };
        let q = block(&q, &q_codes, queries.2);
        let i = block(&i, &i_codes, items.2);
        match model {
            Some(model) => class_neighbors_between(model.similarity(), q, i, counts),
            None => class_neighbors_between(&Dot, q, i, counts),
        }
        .map_err(to_python)
    })?;
    Ok([0, 1].map(|which| {
        let lists: Vec<Vec<Neighbor>> = found.iter().map(|f| f[which].clone()).collect();
        to_lists(py, &lists)
    }))
}

/// The `k` nearest of several lists of each query.
#[pyfunction]
pub(crate) fn merge_lists<'py>(
    py: Python<'py>,
    parts: Vec<Lists<'py>>,
    k: usize,
) -> PyResult<Lists<'py>> {
    let mut read = Vec::with_capacity(parts.len());
    for (starts, rows, scores) in &parts {
        let near = rows.copied()?.into_iter().zip(scores.copied()?);
        let near: Vec<Neighbor> = near.map(|(row, score)| Neighbor { row, score }).collect();
        read.push((starts.copied()?, near));
    }
    let n = read.first().map_or(0, |first| first.0.len());
    let whole = |(starts, near): &(Vec<i64>, Vec<Neighbor>)| {
        let ends = starts.last().map(|&end| end as usize) == Some(near.len());
        starts.len() == n && ends && starts.is_sorted()
    };
    if !read.iter().all(whole) {
        return Err(PyValueError::new_err(
            "lists to merge are those of the same queries",
        ));
    }
    let merged: Vec<Vec<Neighbor>> = (1..n)
        .map(|query| {
            let list = |(starts, near): &'_ (Vec<i64>, Vec<Neighbor>)| {
                let range = starts[query - 1] as usize..starts[query] as usize;
                near[range].to_vec()
            };
            let lists: Vec<Vec<Neighbor>> = read.iter().map(list).collect();
            merge_neighbors(lists.iter().map(Vec::as_slice), k)
        })
        .collect();
    Ok(to_lists(py, &merged))
}

/// For each class, its position in the order of a file with these names, by which random triplets are drawn.
#[pyfunction]
pub(crate) fn class_order(py: Python<'_>, names: Vec<String>) -> Numbers<'_> {
    order_in_a_file(&names).into_pyarray(py)
}

/// Rows to learn from and held-out rows, every class in proportion.
#[pyfunction]
pub(crate) fn hold_out<'py>(
    py: Python<'py>,
    classes: Classes<'py>,
    fraction: f64,
    seed: u64,
) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
    let labels = labels_of(classes)?;
    let (learn, held) = hdsl::train::hold_out(&labels, fraction, seed).map_err(to_python)?;
    Ok((learn.into_pyarray(py), held.into_pyarray(py)))
}

/// The rows that one model of an ensemble learns from.
#[pyfunction]
pub(crate) fn sampled_rows<'py>(
    py: Python<'py>,
    classes: Classes<'py>,
    fraction: f64,
    seed: u64,
) -> PyResult<Numbers<'py>> {
    let rows = hdsl::train::sampled_rows(&labels_of(classes)?, fraction, seed);
    Ok(rows.map_err(to_python)?.into_pyarray(py))
}

fn labels_of(classes: Classes<'_>) -> PyResult<Labels> {
    let n_rows = classes.1.len()?;
    to_labels(classes, n_rows)
}

/// Three columns of triplets, and their weights if any differs from 1.
type Columns<'py> = ([Bound<'py, PyArray1<i64>>; 3], Option<Floats<'py>>);

fn to_columns<'py>(py: Python<'py>, triplets: &Triplets) -> Columns<'py> {
    let mut columns = [(); 3].map(|()| Vec::with_capacity(triplets.len()));
    for (anchor, near, far) in triplets.iter() {
        for (column, row) in columns.iter_mut().zip([anchor, near, far]) {
            column.push(i64::from(row));
        }
    }
    let weights = triplets.weights().map(|w| w.to_vec().into_pyarray(py));
    (columns.map(|column| column.into_pyarray(py)), weights)
}

/// Checks given triplets as a training does.
#[pyfunction]
pub(crate) fn check_triplets(given: Given<'_>, n_rows: usize) -> PyResult<()> {
    to_triplets(given, n_rows)?.check(n_rows).map_err(to_python)
}

/// The triplets of the anchors that one model of an ensemble learns from.
#[pyfunction]
pub(crate) fn sampled_anchors<'py>(
    py: Python<'py>,
    given: Given<'py>,
    n_rows: usize,
    fraction: f64,
    seed: u64,
) -> PyResult<Columns<'py>> {
    let triplets = to_triplets(given, n_rows)?;
    let sampled = hdsl::train::sampled_anchors(&triplets, fraction, seed).map_err(to_python)?;
    Ok(to_columns(py, &sampled))
}

/// Triplets to learn from, and those of held-out anchors.
#[pyfunction]
pub(crate) fn hold_out_anchors<'py>(
    py: Python<'py>,
    given: Given<'py>,
    n_rows: usize,
    fraction: f64,
    seed: u64,
) -> PyResult<(Columns<'py>, Columns<'py>)> {
    let triplets = to_triplets(given, n_rows)?;
    triplets.check(n_rows).map_err(to_python)?;
    let (learn, held) =
        hdsl::train::hold_out_anchors(&triplets, fraction, seed).map_err(to_python)?;
    Ok((to_columns(py, &learn), to_columns(py, &held)))
}

fn random_triplets(codes: &Numbers<'_>, per_row: usize, seed: u64) -> PyResult<Triplets> {
    let codes = codes.copied()?;
    let n_classes = codes.iter().max().map_or(0, |&most| most as usize + 1);
    let rows = Rows::from_parts(1, vec![0; codes.len() + 1], vec![], vec![]).map_err(to_python)?;
    let labels = Labels::from_codes(vec![String::new(); n_classes], codes).map_err(to_python)?;
    Triplets::at_random(&rows, &labels, per_row, seed).map_err(to_python)
}

/// All rows that the random triplets of a range of anchors name. Codes of classes are in the order of a file.
#[pyfunction]
pub(crate) fn random_rows<'py>(
    py: Python<'py>,
    codes: Numbers<'py>,
    per_row: usize,
    seed: u64,
    anchors: (usize, usize),
) -> PyResult<Numbers<'py>> {
    let n_rows = codes.len()?;
    check_range(anchors, n_rows)?;
    let triplets = random_triplets(&codes, per_row, seed)?;
    let named = py.detach(|| triplets.rows_named(anchors.0..anchors.1, n_rows));
    Ok(named.into_pyarray(py))
}

fn check_range((start, stop): (usize, usize), n_rows: usize) -> PyResult<()> {
    match start <= stop && stop <= n_rows {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "anchors {start}..{stop}, but there are {n_rows} rows"
        ))),
    }
}

/// Rows of a file, their number of features, whether its features count from 0, names and codes of classes.
type Read<'py> = (
    CsrArrays<'py>,
    usize,
    bool,
    Vec<String>,
    Bound<'py, PyArray1<i64>>,
);

/// Reads an svmlight file, compressed or not. Features count from 1 unless a 0 occurs or `zero_based` says otherwise.
#[pyfunction]
pub(crate) fn read_svmlight(
    py: Python<'_>,
    path: PathBuf,
    zero_based: Option<bool>,
    n_features: Option<usize>,
) -> PyResult<Read<'_>> {
    let options = ReadOptions {
        format: Some(Format::Svmlight),
        n_features,
        index_base: zero_based.map(|zero| match zero {
            true => IndexBase::Zero,
            false => IndexBase::One,
        }),
        ..ReadOptions::default()
    };
    let data = detached(py, 1, || read_dataset(&path, &options).map_err(to_python))?;
    let labels = data
        .labels
        .ok_or_else(|| PyValueError::new_err(format!("{}: has no labels", path.display())))?;
    let codes: Vec<i64> = labels.codes().iter().map(|&code| i64::from(code)).collect();
    Ok((
        to_arrays(py, &data.rows),
        data.rows.n_features(),
        data.index_base == IndexBase::Zero,
        labels.names().to_vec(),
        codes.into_pyarray(py),
    ))
}

/// The rows that settings are compared on: to be gathered for [`choose`].
#[pyfunction]
pub(crate) fn rows_to_compare<'py>(
    py: Python<'py>,
    classes: Classes<'py>,
    seed: u64,
) -> PyResult<Numbers<'py>> {
    let rows = hdsl::train::rows_to_compare(&labels_of(classes)?, seed);
    Ok(rows.map_err(to_python)?.into_pyarray(py))
}

/// Preprocessing; iterations, if they were left open; time limit of the training; held-out rows, error of the base alone, and
/// lowest error of a learned similarity.
type Chosen = (
    String,
    Option<usize>,
    Option<f64>,
    (usize, f64, Option<f64>),
);

/// Chooses what settings leave open by a sample of the rows: their numbers, the classes of all rows, and the statistics of
/// all rows.
#[pyfunction]
#[pyo3(signature = (settings, x, numbers, classes, statistics, *, valid=None, n_threads=1))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn choose<'py>(
    py: Python<'py>,
    settings: Settings,
    x: Csr<'py>,
    numbers: Numbers<'py>,
    classes: Classes<'py>,
    statistics: Statistics<'py>,
    valid: Option<(Csr<'py>, Classes<'py>)>,
    n_threads: usize,
) -> PyResult<Option<Chosen>> {
    let config = settings.config()?;
    config.check().map_err(to_python)?;
    let (x, numbers, labels) = (x.parts()?, numbers.copied()?, labels_of(classes)?);
    let known = numbers.iter().all(|&row| (row as usize) < labels.len());
    if numbers.len() != x.n_rows() || !known || !numbers.is_sorted() {
        return Err(PyValueError::new_err(
            "a sample has the number of each row, increasing",
        ));
    }
    let statistics = from_statistics(&statistics)?;
    let valid = valid.as_ref().map(to_labeled).transpose()?;
    let listeners = Listeners {
        each: None,
        progress: None,
        snapshots: false,
    };
    let (choice, interrupted) = py.detach(|| {
        listen(&listeners, n_threads, |watch| {
            let valid = match &valid {
                Some((rows, labels)) => Some(by_position(view(*rows)?, Some(labels))),
                None => None,
            };
            let sample = RowSample {
                rows: view(x)?,
                numbers: &numbers,
                labels: &labels,
                statistics: &statistics,
                valid,
            };
            let facts = Facts::default();
            choose_by_sample(&sample, &config, &mut Listening { watch, facts }).map_err(to_python)
        })
    })?;
    if interrupted {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    Ok(choice.map(|choice| {
        (
            choice.preprocess.to_string(),
            choice.iterations,
            choice.time_limit,
            (choice.n_held_out, choice.base_error, choice.learned_error),
        )
    }))
}

/// The base similarity alone as a model, and facts as those of a training.
#[pyfunction]
#[pyo3(signature = (settings, preprocessor, *, classes=None, names=None))]
pub(crate) fn base_alone<'py>(
    py: Python<'py>,
    settings: Settings,
    preprocessor: &Bound<'py, Preprocessor>,
    classes: Option<Classes<'py>>,
    names: Option<Vec<String>>,
) -> PyResult<(Model, Bound<'py, PyDict>)> {
    let config = settings.config()?;
    config.check().map_err(to_python)?;
    let labels = classes.map(labels_of).transpose()?;
    let preprocessor = preprocessor.get().get().clone();
    let rows = Rows::new(preprocessor.n_features());
    let mut data = TrainData::new(by_position(rows.view(), labels.as_ref()));
    data.names = names.as_deref();
    let mut trained = base_alone_with(&data, &config, preprocessor).map_err(to_python)?;
    trained.model = trained.model.numbered_by_position();
    let facts = facts(py, &trained)?;
    facts.set_item("interrupted", false)?;
    Ok((Model::new(trained.model), facts))
}
