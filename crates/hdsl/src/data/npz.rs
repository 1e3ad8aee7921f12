//! scipy's sparse matrices: a zip of numpy arrays, as `scipy.sparse.save_npz` writes them.

use crate::data::Dataset;
use crate::data::input::Input;
use crate::error::Result;

/// Reads a CSR or CSC matrix.
pub(crate) fn read(input: Input<'_>, _n_features: Option<usize>) -> Result<Dataset> {
    Err(input.fail("npz files are not read yet"))
}
