//! Classes: Python has codes into sorted classes, the library has its own order of names.

use hdsl::knn::{self, Neighbor};
use hdsl::{Labels, Result};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The labels as a file with these names would give them, so that Python and the command line make the same model.
/// Names that files would take for the same class (`1` and `1.0`) are kept apart, in the order given.
pub(crate) fn as_in_a_file(names: Vec<String>, codes: &[u32]) -> Result<Labels> {
    let spelled = Labels::from_names(&names);
    if spelled.names().len() < names.len() {
        return Labels::from_codes(names, codes.to_vec());
    }
    let renamed = codes.iter().map(|&code| spelled.codes()[code as usize]);
    Labels::from_codes(spelled.names().to_vec(), renamed.collect())
}

/// The class most of the neighbours have; of classes that tie, the one with the nearest member.
///
/// `neighbors` are row numbers, nearest first; `codes` the class of each row.
#[pyfunction]
pub(crate) fn vote<'py>(
    py: Python<'py>,
    neighbors: PyReadonlyArray2<'py, i64>,
    codes: &Bound<'py, PyArray1<i64>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let codes: Vec<u32> = codes
        .try_readonly()?
        .as_array()
        .iter()
        .map(|&c| c as u32)
        .collect();
    let n_classes = codes.iter().max().map_or(0, |&most| most as usize + 1);
    let n_rows = codes.len();
    let labels = Labels::from_codes(vec![String::new(); n_classes], codes)
        .map_err(crate::errors::to_python)?;
    let neighbors = neighbors.as_array();
    if neighbors.ncols() == 0
        || neighbors
            .iter()
            .any(|&row| row < 0 || row as usize >= n_rows)
    {
        return Err(PyValueError::new_err(
            "a vote needs neighbours that have a class",
        ));
    }
    let votes: Vec<i64> = neighbors
        .rows()
        .into_iter()
        .map(|near| {
            let near: Vec<Neighbor> = near
                .iter()
                .map(|&row| Neighbor {
                    row: row as u32,
                    score: 0.0,
                })
                .collect();
            i64::from(knn::elect(hdsl::Vote::Majority, &near, &labels))
        })
        .collect();
    Ok(votes.into_pyarray(py))
}
