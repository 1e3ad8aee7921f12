//! scipy's CSR matrices as rows, borrowed if their types permit, and rows as numpy arrays.

use crate::errors::to_python;
use crate::work::detached;
use hdsl::Rows;
use hdsl::data::RowsView;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A CSR matrix of scipy, `csr_array` or `csr_matrix`, canonical: columns increase within each row.
///
/// float64 values and int32 columns are borrowed. float32 values and int64 columns are converted, which copies them:
/// the library computes in double precision, with 32-bit column indices. Row starts are always copied; they are few.
pub(crate) struct Csr<'py> {
    n_features: usize,
    starts: Vec<usize>,
    columns: Array<'py, i32, u32>,
    values: Array<'py, f64, f64>,
}

/// An array that is borrowed or converted.
enum Array<'py, B: numpy::Element, C> {
    Borrowed(PyReadonlyArray1<'py, B>),
    Converted(Vec<C>),
}

/// The three arrays of a matrix, for work without the interpreter.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    n_features: usize,
    starts: &'a [usize],
    columns: &'a [u32],
    values: &'a [f64],
}

impl<'a> Parts<'a> {
    /// Checks order, bounds and finite values.
    pub(crate) fn view(self) -> hdsl::Result<RowsView<'a>> {
        RowsView::from_parts(self.n_features, self.starts, self.columns, self.values)
    }

    pub(crate) fn n_rows(self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

impl Csr<'_> {
    pub(crate) fn parts(&self) -> PyResult<Parts<'_>> {
        let columns = match &self.columns {
            Array::Borrowed(array) => bytemuck::cast_slice(array.as_slice()?),
            Array::Converted(columns) => columns,
        };
        let values = match &self.values {
            Array::Borrowed(array) => array.as_slice()?,
            Array::Converted(values) => values,
        };
        Ok(Parts {
            n_features: self.n_features,
            starts: &self.starts,
            columns,
            values,
        })
    }

    /// The rows that `map` makes of these, without the interpreter lock, and their number of columns.
    pub(crate) fn mapped<'py>(
        &self,
        py: Python<'py>,
        n_threads: usize,
        map: impl FnOnce(RowsView<'_>) -> hdsl::Result<Rows> + Send,
    ) -> PyResult<(CsrArrays<'py>, usize)> {
        let parts = self.parts()?;
        let rows = detached(py, n_threads, || map(view(parts)?).map_err(to_python))?;
        Ok((to_arrays(py, &rows), rows.n_features()))
    }
}

impl<'py> FromPyObject<'_, 'py> for Csr<'py> {
    type Error = PyErr;

    fn extract(matrix: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (n_rows, n_features): (usize, usize) = matrix.getattr("shape")?.extract()?;
        if n_features > u32::MAX as usize || n_rows >= u32::MAX as usize {
            return Err(PyValueError::new_err(format!(
                "X has {n_rows} rows and {n_features} columns, expected fewer than 2**32 of each"
            )));
        }
        let part = |name: &str| aligned(matrix.getattr(name)?);
        let starts = whole_numbers(&part("indptr")?, "indptr", |n| usize::try_from(n).ok())?;
        if starts.len() != n_rows + 1 {
            return Err(PyValueError::new_err(format!(
                "X.indptr has {} entries for {n_rows} rows",
                starts.len()
            )));
        }
        let column = |n: i64| u32::try_from(n).ok();
        let indices = part("indices")?;
        let columns = match indices.extract::<PyReadonlyArray1<'py, i32>>() {
            // Negative indices become columns from 2**31 on, which the bounds check refuses.
            Ok(array) if array.is_contiguous() && n_features <= i32::MAX as usize => {
                Array::Borrowed(array)
            }
            _ => Array::Converted(whole_numbers(&indices, "indices", column)?),
        };
        let data = part("data")?;
        let values = match data.extract::<PyReadonlyArray1<'py, f64>>() {
            Ok(array) if array.is_contiguous() => Array::Borrowed(array),
            Ok(array) => Array::Converted(array.as_array().to_vec()),
            Err(_) => Array::Converted(singles(&data)?),
        };
        Ok(Self {
            n_features,
            starts,
            columns,
            values,
        })
    }
}

/// The array, copied if it is not aligned: arrays that arrive in a message of another process begin anywhere in it.
fn aligned(array: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    match array
        .getattr("flags")
        .and_then(|flags| flags.getattr("aligned"))
    {
        Ok(flag) if !flag.extract::<bool>()? => array.call_method0("copy"),
        _ => Ok(array),
    }
}

/// The numbers of an array, aligned or not.
pub(crate) trait Copied<T> {
    fn copied(&self) -> PyResult<Vec<T>>;
}

impl<T: numpy::Element + Clone> Copied<T> for Bound<'_, PyArray1<T>> {
    fn copied(&self) -> PyResult<Vec<T>> {
        let array = aligned(self.as_any().clone())?;
        Ok(array.cast::<PyArray1<T>>()?.to_vec()?)
    }
}

fn singles(data: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let array: PyReadonlyArray1<'_, f32> = data
        .extract()
        .map_err(|_| PyTypeError::new_err("X.data is expected to be of float64 or float32"))?;
    Ok(array.as_array().iter().map(|&x| f64::from(x)).collect())
}

/// int32 or int64, each number converted.
fn whole_numbers<T>(
    array: &Bound<'_, PyAny>,
    name: &str,
    convert: impl Fn(i64) -> Option<T>,
) -> PyResult<Vec<T>> {
    let converted: Option<Vec<T>> = if let Ok(array) = array.extract::<PyReadonlyArray1<'_, i32>>()
    {
        let numbers = array.as_array();
        numbers.iter().map(|&n| convert(i64::from(n))).collect()
    } else if let Ok(array) = array.extract::<PyReadonlyArray1<'_, i64>>() {
        array.as_array().iter().map(|&n| convert(n)).collect()
    } else {
        return Err(PyTypeError::new_err(format!(
            "X.{name} is expected to be of int32 or int64"
        )));
    };
    converted.ok_or_else(|| PyValueError::new_err(format!("X.{name} has a number out of range")))
}

/// The arrays of a CSR matrix: values, columns, row starts.
pub(crate) type CsrArrays<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
);

pub(crate) fn to_arrays<'py>(py: Python<'py>, rows: &Rows) -> CsrArrays<'py> {
    let starts: Vec<i64> = rows.starts().iter().map(|&s| s as i64).collect();
    let columns: Vec<i64> = rows.indices().iter().map(|&c| i64::from(c)).collect();
    (
        PyArray1::from_slice(py, rows.values()),
        columns.into_pyarray(py),
        starts.into_pyarray(py),
    )
}

/// Row indices, checked.
pub(crate) fn row_numbers(
    array: &Bound<'_, PyArray1<i64>>,
    n_rows: usize,
    name: &str,
) -> PyResult<Vec<u32>> {
    let array = array.try_readonly()?;
    array
        .as_array()
        .iter()
        .enumerate()
        .map(|(place, &row)| match u32::try_from(row) {
            Ok(row) if (row as usize) < n_rows => Ok(row),
            _ => Err(PyValueError::new_err(format!(
                "{name}[{place}] names row {row}, but there are {n_rows} rows, counted from 0"
            ))),
        })
        .collect()
}

/// Checks a matrix outside the interpreter.
pub(crate) fn view(parts: Parts<'_>) -> PyResult<RowsView<'_>> {
    parts.view().map_err(to_python)
}
