"""Texts and data frames as rows, by the vectorizer of a model that the program trained on records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from hdsl import _core
from hdsl._matrix import from_parts

#: Between the items of a list in one cell, for the compiled module.
ITEM_END = "\x1f"


def is_records(X: Any) -> bool:
    """Whether `X` is a data frame or a sequence of texts, rather than a matrix of numbers."""
    if sp.issparse(X):
        return False
    if hasattr(X, "columns"):
        return True
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(text, str) or text is None for text in X)
    values = np.asarray(X) if hasattr(X, "__array__") else None
    return values is not None and values.ndim == 1 and values.dtype.kind in "OUT"


def as_rows(model: _core.Model, X: Any, n_threads: int) -> sp.csr_array:
    """Raw rows of records."""
    columns = model.columns or []
    if hasattr(X, "columns"):
        known = [str(name) for name in X.columns]
        missing = [name for name, _ in columns if name not in known]
        if missing:
            raise ValueError(f"X has no column {missing[0]!r}, which the model needs; its columns are {known}")
        table = [[_cell(value) for value in _values(X[name])] for name, _ in columns]
        if not table[0]:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        parts = model.vectorize_table(table, n_threads)
    else:
        if not model.takes_texts:
            raise ValueError(
                f"X is a sequence of texts, but the model needs the columns {[name for name, _ in columns]}: pass a data frame"
            )
        parts = model.vectorize_texts([_text(text, at) for at, text in enumerate(_values(X))], n_threads)
    return from_parts(parts, model.n_features)


def _values(column: Any) -> Iterable[Any]:
    return column.to_list() if hasattr(column, "to_list") else column


def _text(value: Any, at: int) -> str:
    if _is_missing(value):
        return ""
    if not isinstance(value, str):
        raise TypeError(f"X[{at}] is {value!r}, expected a text")
    return value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value)) or type(value).__name__ in ("NAType", "NaTType")


def _cell(value: Any) -> str:
    """A value as the program would read it from a file."""
    if _is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        return "".join(_cell(item) + ITEM_END for item in value)
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)
