//! Classes: Python has codes into sorted classes, the library has its own order of names.

use hdsl::knn::{self, Neighbor};
use hdsl::{Labels, Result, Vote};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The labels as read from a file with these names, so that Python and the command line give the same model.
/// Names that are the same class in a file (`1` and `1.0`) stay different, in the given order.
pub(crate) fn as_in_a_file(names: Vec<String>, codes: &[u32]) -> Result<Labels> {
    let spelled = Labels::from_names(&names);
    if spelled.names().len() < names.len() {
        return Labels::from_codes(names, codes.to_vec());
    }
    let renamed = codes.iter().map(|&code| spelled.codes()[code as usize]);
    Labels::from_codes(spelled.names().to_vec(), renamed.collect())
}

/// For each class, its position in the order of a file with these names.
pub(crate) fn order_in_a_file(names: &[String]) -> Vec<u32> {
    let spelled = Labels::from_names(names);
    match spelled.names().len() < names.len() {
        true => (0..names.len() as u32).collect(),
        false => spelled.codes().to_vec(),
    }
}

/// Codes as the library has them.
pub(crate) fn class_codes(codes: &Bound<'_, PyArray1<i64>>) -> PyResult<Vec<u32>> {
    let codes = codes.try_readonly()?;
    Ok(codes.as_array().iter().map(|&c| c as u32).collect())
}

/// The class of each query by the vote of its neighbors.
///
/// `neighbors` are row numbers, nearest first, and `scores` their similarities; `codes` the class of each row.
#[pyfunction]
pub(crate) fn vote<'py>(
    py: Python<'py>,
    vote: &str,
    neighbors: PyReadonlyArray2<'py, i64>,
    scores: PyReadonlyArray2<'py, f64>,
    codes: &Bound<'py, PyArray1<i64>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let vote: Vote = vote.parse().map_err(crate::errors::to_python)?;
    let codes = class_codes(codes)?;
    let n_classes = codes.iter().max().map_or(0, |&most| most as usize + 1);
    let n_rows = codes.len();
    let labels = Labels::from_codes(vec![String::new(); n_classes], codes)
        .map_err(crate::errors::to_python)?;
    let (neighbors, scores) = (neighbors.as_array(), scores.as_array());
    if neighbors.ncols() == 0
        || neighbors.shape() != scores.shape()
        || neighbors
            .iter()
            .any(|&row| row < 0 || row as usize >= n_rows)
    {
        return Err(PyValueError::new_err("a vote needs neighbors with a class"));
    }
    let votes: Vec<i64> = neighbors
        .rows()
        .into_iter()
        .zip(scores.rows())
        .map(|(rows, scores)| {
            let near: Vec<Neighbor> = rows
                .iter()
                .zip(scores)
                .map(|(&row, &score)| Neighbor {
                    row: row as u32,
                    score,
                })
                .collect();
            i64::from(knn::predict_class(vote, &near, &labels))
        })
        .collect();
    Ok(votes.into_pyarray(py))
}
