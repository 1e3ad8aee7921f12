"""Matrices of any kind as the CSR matrices that the compiled module takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: The accepted types. Single precision is converted in the compiled module, which computes in double precision.
DTYPES = [np.float64, np.float32]


def check_parts(X: Any) -> Any:
    """The same matrix, after a look at its arrays.

    scipy trusts them: row starts that decrease or point beyond the end, as in a damaged file, crash the interpreter.
    """
    if not (sp.issparse(X) and X.format in ("csr", "csc") and X.ndim == 2):
        return X
    outer, inner = X.shape if X.format == "csr" else X.shape[::-1]
    starts, indices, values = (np.asarray(part) for part in (X.indptr, X.indices, X.data))
    fits = (
        starts.ndim == indices.ndim == values.ndim == 1
        and len(starts) == outer + 1
        and starts[0] == 0
        and starts[-1] <= min(len(indices), len(values))
        and bool((starts[1:] >= starts[:-1]).all())
    )
    used = indices[: starts[-1]] if fits else indices
    if not fits or (used.size and (int(used.min()) < 0 or int(used.max()) >= inner)):
        raise ValueError(
            f"X is a {X.format} matrix of shape {X.shape} whose arrays indptr, indices and data do not fit together"
        )
    return X


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
