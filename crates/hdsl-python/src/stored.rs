//! An index with labels, ids and texts, which can be saved.

use crate::errors::to_python;
use crate::matrix::{Csr, view};
use crate::model::Model;
use crate::work::detached;
use hdsl::index::{Index, NewRows};
use hdsl::{CancelToken, Labels};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, RwLock};

/// The library's index. A search works on the state of the moment at which it starts, so that searches and changes in
/// several threads do not wait for each other.
#[pyclass(frozen, module = "hdsl._core")]
pub(crate) struct StoredIndex {
    state: RwLock<Index>,
    /// Held during a change.
    change: Mutex<()>,
}

/// Id, label and text of a row.
type Known = (Option<String>, Option<String>, Option<String>);

/// Score; contributions of features through the base; contributions of pairs of features.
type Reasons = (f64, Vec<(u32, f64)>, Vec<(u32, u32, f64)>);

impl StoredIndex {
    fn of(index: Index) -> Self {
        Self {
            state: RwLock::new(index),
            change: Mutex::new(()),
        }
    }

    /// The index as it is now. Its parts are shared, so this copies little.
    fn now(&self) -> Index {
        let state = self.state.read();
        state.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes a copy, which then takes the place of the index.
    fn changed(
        &self,
        py: Python<'_>,
        n_threads: usize,
        change: impl FnOnce(&mut Index) -> hdsl::Result<()> + Send,
    ) -> PyResult<()> {
        detached(py, n_threads, || {
            let _alone = self.change.lock().unwrap_or_else(PoisonError::into_inner);
            let mut index = self.now();
            change(&mut index).map_err(to_python)?;
            *self.state.write().unwrap_or_else(PoisonError::into_inner) = index;
            Ok(())
        })
    }
}

#[pymethods]
impl StoredIndex {
    #[new]
    fn new(model: &Model, normalization: Option<&str>) -> PyResult<Self> {
        let normalization = normalization.map(str::parse).transpose();
        let normalization = normalization.map_err(to_python)?;
        Ok(Self::of(Index::new(model.get().clone(), normalization)))
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Index::open(path).map(Self::of).map_err(to_python))
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.changed(py, 1, |index| index.save(path))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "Python calls it by position, in one place"
    )]
    fn add(
        &self,
        py: Python<'_>,
        rows: Csr<'_>,
        labels: Option<Vec<String>>,
        ids: Option<Vec<String>>,
        texts: Option<Vec<String>>,
        replace: bool,
        n_threads: usize,
    ) -> PyResult<()> {
        let rows = view(rows.parts()?)?;
        let labels = labels.map(Labels::from_names);
        self.changed(py, n_threads, |index| {
            index.add(&NewRows {
                labels: labels.as_ref(),
                ids: ids.as_deref(),
                texts: texts.as_deref(),
                replace,
                ..NewRows::new(rows)
            })
        })
    }

    fn remove(&self, py: Python<'_>, rows: Vec<u32>) -> PyResult<()> {
        self.changed(py, 1, |index| index.remove(&rows))
    }

    /// The row numbers of ids.
    fn find(&self, ids: Vec<String>) -> PyResult<Vec<Option<u32>>> {
        let index = self.now();
        let rows = ids.iter().map(|id| index.find(id).map_err(to_python));
        rows.collect()
    }

    /// Row numbers and scores of the nearest rows, query by query.
    fn search(
        &self,
        py: Python<'_>,
        rows: Csr<'_>,
        k: usize,
        n_threads: usize,
    ) -> PyResult<Vec<Vec<(u32, f64)>>> {
        let (index, parts) = (self.now(), rows.parts()?);
        let near = detached(py, n_threads, || {
            index.search(view(parts)?, k).map_err(to_python)
        })?;
        let pairs = |list: Vec<hdsl::Neighbor>| list.iter().map(|n| (n.row, n.score)).collect();
        Ok(near.into_iter().map(pairs).collect())
    }

    fn predict(
        &self,
        py: Python<'_>,
        rows: Csr<'_>,
        k: Option<usize>,
        vote: Option<&str>,
        n_threads: usize,
    ) -> PyResult<Vec<String>> {
        let (index, parts) = (self.now(), rows.parts()?);
        let mut rule = index.model().rule();
        rule.normalization = index.normalization();
        rule.k = k.unwrap_or(rule.k);
        let vote = vote.map_or(Ok(rule.vote), str::parse);
        rule.vote = vote.map_err(to_python)?;
        detached(py, n_threads, || {
            let predicted = index.predict(view(parts)?, &rule, CancelToken::NEVER);
            predicted.map_err(to_python)
        })
    }

    /// Ids, labels and texts of rows.
    fn entries(&self, py: Python<'_>, rows: Vec<u32>) -> PyResult<Vec<Known>> {
        let index = self.now();
        py.detach(|| {
            let known = |&row: &u32| {
                let entry = index.entry(row).map_err(to_python)?;
                Ok((entry.id, entry.label, entry.text))
            };
            rows.iter().map(known).collect()
        })
    }

    /// Why a row has its score with a query, a matrix of one row.
    fn explain(&self, query: Csr<'_>, row: u32) -> PyResult<Reasons> {
        let index = self.now();
        let why = index
            .explain(view(query.parts()?)?, row)
            .map_err(to_python)?;
        let base = why.base.iter().map(|c| (c.feature, c.value)).collect();
        let pairs = why.pairs.iter().map(|c| (c.i, c.j, c.value)).collect();
        Ok((why.score, base, pairs))
    }

    /// All row numbers.
    fn rows(&self) -> PyResult<Vec<u32>> {
        self.now().rows().map_err(to_python)
    }

    #[getter]
    fn model(&self) -> Model {
        Model::new(self.now().model().clone())
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.now().model().n_features()
    }

    #[getter]
    fn normalization(&self) -> &'static str {
        self.now().normalization().name()
    }

    #[getter]
    fn has_ids(&self) -> bool {
        self.now().has_ids()
    }

    fn feature_name(&self, feature: u32) -> String {
        self.now().model().name(feature).into_owned()
    }

    fn __len__(&self) -> usize {
        self.now().n_rows()
    }
}
