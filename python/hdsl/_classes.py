"""Classes as the compiled module takes them: sorted, with a code per row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d


def encode(y: Any, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes, and the code of each row's class."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{name} needs rows of at least 2 classes, but y contains only 1 class: {classes[0]!r}"
        )
    return classes, codes.astype(np.int64)
