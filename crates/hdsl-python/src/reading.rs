//! Files of triplets, judgments and pairs, read as the program reads them; the triplets that follow from pairs.

use crate::errors::to_python;
use crate::matrix::row_numbers;
use hdsl::Triplets;
use hdsl::triplets::{Judgments, Pairs, TripletFormat};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use std::path::PathBuf;

type Ints<'py> = Bound<'py, PyArray1<i64>>;
type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// Rows are numbered by 32 bits.
const MOST_ROWS: usize = u32::MAX as usize;

/// The triplets of a file as one array of three columns, and their weights if any differs from 1.
#[pyfunction]
pub(crate) fn read_triplets<'py>(
    py: Python<'py>,
    path: PathBuf,
    format: &str,
    n_rows: Option<usize>,
) -> PyResult<(Ints<'py>, Option<Floats<'py>>)> {
    let format: TripletFormat = format.parse().map_err(to_python)?;
    let n_rows = n_rows.unwrap_or(MOST_ROWS);
    let triplets = py
        .detach(|| Triplets::read(&path, format, n_rows))
        .map_err(to_python)?;
    let weights = triplets.weights().map(|w| w.to_vec().into_pyarray(py));
    Ok((flat(py, &triplets), weights))
}

/// Queries, documents, grades and gains of a file, by query, and the triplets that follow from them.
type Read<'py> = (Ints<'py>, Ints<'py>, Floats<'py>, Floats<'py>, Ints<'py>);

/// Reads a file of judgments.
#[pyfunction]
pub(crate) fn read_judgments<'py>(
    py: Python<'py>,
    path: PathBuf,
    format: &str,
    n_rows: Option<usize>,
) -> PyResult<Read<'py>> {
    let format: TripletFormat = format.parse().map_err(to_python)?;
    let n_rows = n_rows.unwrap_or(MOST_ROWS);
    let (judgments, triplets) = py
        .detach(|| {
            let judgments = Judgments::read(&path, format, n_rows)?;
            let triplets = judgments.triplets();
            Ok((judgments, triplets))
        })
        .map_err(to_python)?;
    let (mut queries, mut documents) = (Vec::new(), Vec::new());
    let (mut grades, mut gains) = (Vec::new(), Vec::new());
    for judged in judgments.queries() {
        for (&(document, grade), (_, gain)) in judged.grades.iter().zip(judgments.gains(judged)) {
            queries.push(i64::from(judged.query));
            documents.push(i64::from(document));
            grades.push(grade);
            gains.push(gain);
        }
    }
    Ok((
        queries.into_pyarray(py),
        documents.into_pyarray(py),
        grades.into_pyarray(py),
        gains.into_pyarray(py),
        flat(py, &triplets),
    ))
}

/// The pairs of a file: two columns of rows, 1 or -1 for similar or dissimilar, and weights.
#[pyfunction]
pub(crate) fn read_pairs<'py>(
    py: Python<'py>,
    path: PathBuf,
    n_rows: Option<usize>,
) -> PyResult<(Ints<'py>, Ints<'py>, Floats<'py>)> {
    let n_rows = n_rows.unwrap_or(MOST_ROWS);
    let read = py
        .detach(|| Pairs::read(&path, n_rows))
        .map_err(to_python)?;
    let rows = read.pairs().iter().flat_map(|p| [p.rows.0, p.rows.1]);
    let labels = read.pairs().iter().map(|p| if p.similar { 1 } else { -1 });
    let weights = read.pairs().iter().map(|p| p.weight);
    Ok((
        rows.map(i64::from).collect::<Vec<i64>>().into_pyarray(py),
        labels.collect::<Vec<i64>>().into_pyarray(py),
        weights.collect::<Vec<f64>>().into_pyarray(py),
    ))
}

/// The triplets that follow from pairs of rows, as one array of three columns, and their weights if any differs from 1.
#[pyfunction]
pub(crate) fn triplets_of_pairs<'py>(
    py: Python<'py>,
    pairs: [Ints<'py>; 2],
    similar: Bound<'py, PyArray1<bool>>,
    weights: Option<Floats<'py>>,
    n_rows: usize,
) -> PyResult<(Ints<'py>, Option<Floats<'py>>)> {
    let first = row_numbers(&pairs[0], n_rows, "pairs[:, 0]")?;
    let second = row_numbers(&pairs[1], n_rows, "pairs[:, 1]")?;
    let similar = similar.to_vec()?;
    let weights = weights.map(|w| w.to_vec()).transpose()?;
    let mut all = Pairs::new();
    for (p, &is_similar) in similar.iter().enumerate() {
        let weight = weights.as_ref().map_or(1.0, |w| w[p]);
        if weight != 0.0 {
            all.push((first[p], second[p]), is_similar, weight)
                .map_err(to_python)?;
        }
    }
    let triplets = py.detach(|| all.triplets());
    let weights = triplets.weights().map(|w| w.to_vec().into_pyarray(py));
    Ok((flat(py, &triplets), weights))
}

fn flat<'py>(py: Python<'py>, triplets: &Triplets) -> Ints<'py> {
    let rows = triplets.iter().flat_map(|(a, n, f)| [a, n, f]);
    rows.map(i64::from).collect::<Vec<i64>>().into_pyarray(py)
}
