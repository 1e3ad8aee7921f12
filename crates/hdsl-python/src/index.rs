//! Training rows made ready to be searched, once.

use crate::matrix::{Csr, view};
use crate::model::Model;
use crate::work::detached;
use hdsl::{Dot, KnnIndex, Neighbors};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use std::sync::OnceLock;

/// Neighbours among fixed rows under a fixed model. Built by the first question, so that an estimator which only
/// transforms never pays for it; forgotten by pickling, since rows and model make it again.
#[pyclass(frozen, module = "hdsl._core")]
#[derive(Default)]
pub(crate) struct Index {
    built: OnceLock<KnnIndex<'static, Dot>>,
}

/// Scores and row numbers, one after the other; all queries have as many.
type Found<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>);

fn found<'py>(py: Python<'py>, near: &Neighbors) -> Found<'py> {
    let (mut scores, mut numbers) = (Vec::new(), Vec::new());
    for list in near.iter() {
        scores.extend(list.iter().map(|n| n.score));
        numbers.extend(list.iter().map(|n| i64::from(n.row)));
    }
    (scores.into_pyarray(py), numbers.into_pyarray(py))
}

#[pymethods]
impl Index {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The `k` nearest of `rows` for each query, or for each of `rows` among the others if there are no queries.
    #[pyo3(signature = (model, rows, queries, k, n_threads))]
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        rows: Csr<'py>,
        queries: Option<Csr<'py>>,
        k: usize,
        n_threads: usize,
    ) -> PyResult<Found<'py>> {
        let model = model.get();
        let rows = rows.parts()?;
        let queries = queries.as_ref().map(Csr::parts).transpose()?;
        let near = detached(py, n_threads, || {
            if self.built.get().is_none() {
                let mapped = model.transform_rows(view(rows)?);
                // Somebody else may have been faster; the two are the same.
                let _ = self.built.set(KnnIndex::new(&Dot, &mapped));
            }
            let index = self.built.get().expect("it was built just now");
            match queries {
                Some(queries) => index.neighbors(&model.transform_rows(view(queries)?), k),
                None => index.neighbors_of_others(&model.transform_rows(view(rows)?), k),
            }
            .map_err(crate::errors::to_python)
        })?;
        Ok(found(py, &near))
    }

    /// The same for rows and queries that are mapped already, so that scores are dot products.
    fn search<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        queries: Csr<'py>,
        among_others: bool,
        k: usize,
        n_threads: usize,
    ) -> PyResult<Found<'py>> {
        let (rows, queries) = (rows.parts()?, queries.parts()?);
        let near = detached(py, n_threads, || {
            if self.built.get().is_none() {
                let _ = self.built.set(KnnIndex::new(&Dot, &view(rows)?.to_rows()));
            }
            let index = self.built.get().expect("it was built just now");
            let queries = view(queries)?.to_rows();
            match among_others {
                true => index.neighbors_of_others(&queries, k),
                false => index.neighbors(&queries, k),
            }
            .map_err(crate::errors::to_python)
        })?;
        Ok(found(py, &near))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, ())> {
        Ok((slf.get_type().into_any().unbind(), ()))
    }
}
