"""Whatever a caller calls a matrix, as the CSR matrix that the compiled half takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: The types that are taken as they are. Single precision is converted inside, since the core computes in double.
DTYPES = [np.float64, np.float32]


def as_csr(X: Any) -> Any:
    """A canonical CSR matrix: columns increase within each row, and no column comes twice.

    A CSR matrix that is canonical already is returned as it is, without a copy. The caller's matrix is never changed.
    """
    if not sp.issparse(X):
        return sp.csr_array(X)
    if X.format != "csr":
        X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def from_parts(
    parts: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], n_columns: int
) -> sp.csr_array:
    """Values, columns and row starts as a CSR array, with 32-bit indices where they fit."""
    values, columns, starts = parts
    index = np.int32 if max(len(values), n_columns) < 2**31 else np.int64
    matrix = sp.csr_array(
        (values, columns.astype(index, copy=False), starts.astype(index, copy=False)),
        shape=(len(starts) - 1, n_columns),
    )
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
