//! Files of triplets and judgments, read as the program reads them.

use crate::errors::to_python;
use hdsl::Triplets;
use hdsl::triplets::{Judgments, TripletFormat};
use numpy::{IntoPyArray, PyArray1};
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

fn flat<'py>(py: Python<'py>, triplets: &Triplets) -> Ints<'py> {
    let rows = triplets.iter().flat_map(|(a, n, f)| [a, n, f]);
    rows.map(i64::from).collect::<Vec<i64>>().into_pyarray(py)
}
