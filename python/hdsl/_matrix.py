"""Matrices of any kind as the CSR matrices that the compiled module takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: The accepted types. Single precision is converted in the compiled module, which computes in double precision.
DTYPES = [np.float64, np.float32]


def as_csr(X: Any) -> Any:
    """A canonical CSR matrix: columns increase within each row, without duplicates.

    A canonical CSR matrix is returned without a copy. The caller's matrix is never changed.
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
    """A CSR array from values, columns and row starts, with 32-bit indices if they suffice."""
    values, columns, starts = parts
    index = np.int32 if max(len(values), n_columns) < 2**31 else np.int64
    matrix = sp.csr_array(
        (values, columns.astype(index, copy=False), starts.astype(index, copy=False)),
        shape=(len(starts) - 1, n_columns),
    )
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
