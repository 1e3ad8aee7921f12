//! The search index of the fitted rows, built once.

use crate::errors::to_python;
use crate::labels::{class_codes, order_in_a_file};
use crate::matrix::{Csr, Parts, view};
use crate::model::Model;
use crate::work::detached;
use hdsl::knn::ClassMeans;
use hdsl::{Dot, KnnIndex, Labels, Neighbor, Normalization, Rows, Similarity};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use std::sync::OnceLock;

/// Neighbors among fixed rows under a fixed model. Built by the first search, so that an estimator which only transforms
/// never pays for it; not pickled, since it can be rebuilt from rows and model.
#[pyclass(frozen, module = "hdsl._core")]
#[derive(Default)]
pub(crate) struct Index {
    dot: Searched,
    cosine: Searched,
}

/// Rows under one normalization of the similarity.
#[derive(Default)]
struct Searched {
    index: OnceLock<KnnIndex<'static, Dot>>,
    means: OnceLock<ClassMeans>,
}

impl Index {
    fn of(&self, normalization: Normalization) -> &Searched {
        match normalization {
            Normalization::Dot => &self.dot,
            Normalization::Cosine => &self.cosine,
        }
    }
}

/// Raw rows as the model maps them, normalized.
fn mapped(model: &hdsl::Model, normalization: Normalization, rows: Parts<'_>) -> PyResult<Rows> {
    let rows = view(rows)?;
    model.preprocess().check(rows).map_err(to_python)?;
    let rows = model.transform_rows(rows);
    Ok(match normalization {
        Normalization::Dot => rows,
        Normalization::Cosine => normalization.of(&Dot).items(&rows).into_owned(),
    })
}

/// Scores and indices of rows (or classes), query by query; all queries have equally many.
type Found<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>);

fn found<'py>(py: Python<'py>, near: &[Vec<Neighbor>]) -> Found<'py> {
    let (mut scores, mut numbers) = (Vec::new(), Vec::new());
    for list in near {
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
    #[pyo3(signature = (model, normalization, rows, queries, k, n_threads))]
    #[expect(
        clippy::too_many_arguments,
        reason = "Python calls it by position, in one place"
    )]
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        normalization: &str,
        rows: Csr<'py>,
        queries: Option<Csr<'py>>,
        k: usize,
        n_threads: usize,
    ) -> PyResult<Found<'py>> {
        let model = model.get();
        let normalization: Normalization = normalization.parse().map_err(to_python)?;
        let built = &self.of(normalization).index;
        let rows = rows.parts()?;
        let queries = queries.as_ref().map(Csr::parts).transpose()?;
        let near = detached(py, n_threads, || {
            if built.get().is_none() {
                let mapped = mapped(model, normalization, rows)?;
                // Another thread may have been faster; the two are the same.
                let _ = built.set(KnnIndex::new(&Dot, &mapped));
            }
            let index = built.get().expect("it was built just now");
            match queries {
                Some(queries) => index.neighbors(&mapped(model, normalization, queries)?, k),
                None => index.neighbors_of_others(&mapped(model, normalization, rows)?, k),
            }
            .map_err(to_python)
        })?;
        Ok(found(py, &near))
    }

    /// The mean similarity of each query to the rows of each class, query by query; the class of the highest mean; and the
    /// unit of the means: the mean similarity of two rows of one class.
    #[allow(clippy::too_many_arguments)]
    fn class_means<'py>(
        &self,
        py: Python<'py>,
        classes: (Vec<String>, Bound<'py, PyArray1<i64>>),
        rows: Csr<'py>,
        queries: Csr<'py>,
        model: &Model,
        normalization: &str,
        n_threads: usize,
    ) -> PyResult<(Found<'py>, f64)> {
        let normalization: Normalization = normalization.parse().map_err(to_python)?;
        let model = model.get();
        let built = &self.of(normalization).means;
        let (names, codes) = classes;
        let codes = class_codes(&codes)?;
        // Ties between classes are resolved by their order, which has to be the command line's.
        let order = order_in_a_file(&names);
        let (rows, queries) = (rows.parts()?, queries.parts()?);
        let (found, unit) = detached(py, n_threads, || {
            if built.get().is_none() {
                let codes = codes.iter().map(|&c| order[c as usize]).collect();
                let labels = Labels::from_codes(names.clone(), codes).map_err(to_python)?;
                let mapped = mapped(model, normalization, rows)?;
                let _ = built.set(ClassMeans::new(&mapped, &labels).map_err(to_python)?);
            }
            let means = built.get().expect("it was built just now");
            let found = means.scores(&mapped(model, normalization, queries)?);
            Ok((found.map_err(to_python)?, means.within()))
        })?;
        let mut named = vec![0; names.len()];
        for (code, &place) in order.iter().enumerate() {
            named[place as usize] = code;
        }
        let mut scores = vec![0.0; found.len() * names.len()];
        let mut winners = Vec::with_capacity(found.len());
        for (list, scores) in found.iter().zip(scores.chunks_mut(names.len())) {
            winners.push(named[list[0].0 as usize] as i64);
            for &(place, mean) in list {
                scores[named[place as usize]] = mean;
            }
        }
        Ok(((scores.into_pyarray(py), winners.into_pyarray(py)), unit))
    }

    /// The nearest rows for rows and queries that are mapped already, such that scores are dot products.
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
            let built = &self.dot.index;
            if built.get().is_none() {
                let _ = built.set(KnnIndex::new(&Dot, &view(rows)?.to_rows()));
            }
            let index = built.get().expect("it was built just now");
            let queries = view(queries)?.to_rows();
            match among_others {
                true => index.neighbors_of_others(&queries, k),
                false => index.neighbors(&queries, k),
            }
            .map_err(to_python)
        })?;
        Ok(found(py, &near))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, ())> {
        Ok((slf.get_type().into_any().unbind(), ()))
    }
}
