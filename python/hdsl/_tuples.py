"""The common part of estimators whose samples are triplets or pairs of rows, as in metric-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from hdsl._base import whole_numbers
from hdsl._learner import HDSLLearner
from hdsl._matrix import DTYPES, as_csr
from hdsl._parameters import ARRAY, SPARSE, Kinds, Names
from hdsl._settings import LEARNED, keep

#: Parameters that need labels, with their values here.
WITHOUT_LABELS: dict[str, Any] = {
    "triplets": "knn:3:5",
    "mining_rounds": 0,
    "last_round_iter": None,
    "n_estimators": 1,
    "subsample": 1.0,
    "vote": "majority",
    "class_weight": None,
}


class TupleLearner(HDSLLearner):
    """Learns from tuples of rows, which are given as indices into `preprocessor` or as the rows themselves."""

    _constraints: ClassVar[dict[str, Kinds]] = {
        **{name: kinds for name, kinds in LEARNED.items() if name not in WITHOUT_LABELS},
        "scale": [kind for kind in LEARNED["scale"] if not isinstance(kind, Names)],
        "preprocessor": [ARRAY, SPARSE, None],
    }

    preprocessor: Any

    def __init__(
        self,
        preprocessor: Any = None,
        scale: float | ArrayLike | None = None,
        *,
        base: float | str | None = None,
        preprocess: str | None = None,
        loss: str = "smoothed-hinge",
        search: str = "alternating",
        step_rule: str = "decrease",
        max_iter: int = 1000,
        batch: int | None = None,
        tol: float | None = None,
        certify: bool = False,
        time: float | None = None,
        memory: int | None = None,
        checkpoint: Any = None,
        max_features: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = 100,
        eval_every: int = 10,
        n_neighbors: int = 3,
        normalization: str = "dot",
        n_components: int | None = None,
        euclidean: bool = False,
        warm_start: bool = False,
        random_state: Any = 0,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    def _tuples_to_fit(self, tuples: Any, size: int, name: str) -> tuple[Any, NDArray[np.int64]]:
        """Rows to learn from, and the indices of the rows of each tuple. Given rows that are equal become one.

        Sets whether the tuples are rows (`_of_rows`), where two indices of a tuple may then be the same.
        """
        array = self._checked_tuples(tuples, size, name)
        self._of_rows: bool = array.ndim == 3
        if self._of_rows:
            flat = check_array(array.reshape(-1, array.shape[2]), dtype=DTYPES, input_name=name)
            _, first, which = np.unique(flat, axis=0, return_index=True, return_inverse=True)
            order = np.argsort(first)
            places = np.empty(len(order), dtype=np.int64)
            places[order] = np.arange(len(order))
            rows, indices = flat[first[order]], places[which.reshape(-1)].reshape(array.shape[:2])
        else:
            if self.preprocessor is None:
                raise ValueError(
                    f"{name} are indices of rows, but preprocessor is None, expected the rows that the {name} refer to; "
                    f"or pass the rows themselves, as an array of the shape (n_{name}, {size}, n_features)."
                )
            rows = check_array(self.preprocessor, accept_sparse="csr", dtype=DTYPES, input_name="preprocessor")
            indices = self._checked_indices(array, rows.shape[0], name)
        if rows.shape[0] < 2:
            raise ValueError(f"Found array with {rows.shape[0]} sample(s) while a minimum of 2 is required: rows of {name}.")
        rows = self._enough_features(as_csr(rows))
        self.n_features_in_: int = rows.shape[1]
        return rows, indices

    def _tuples_to_score(self, tuples: Any, size: int, name: str) -> tuple[Any, NDArray[np.int64]]:
        """Rows to compare, and the indices of the rows of each tuple: of the fitted rows, or of the given ones."""
        array = self._checked_tuples(tuples, size, name)
        if array.ndim == 3:
            rows = self._rows(array.reshape(-1, array.shape[2]))
            return rows, np.arange(rows.shape[0]).reshape(-1, size)
        rows = self._fitted_rows()
        return rows, self._checked_indices(array, rows.shape[0], name)

    @staticmethod
    def _checked_tuples(tuples: Any, size: int, name: str) -> Any:
        array = check_array(tuples, allow_nd=True, dtype=None, input_name=name)
        if array.ndim > 3 or array.shape[1] != size:
            raise ValueError(
                f"{name} has the shape {array.shape}, expected (n_{name}, {size}) or (n_{name}, {size}, n_features)"
            )
        return array

    @staticmethod
    def _checked_indices(array: Any, n_rows: int, name: str) -> NDArray[np.int64]:
        indices = whole_numbers(array.reshape(-1), name).reshape(array.shape)
        wrong = indices[(indices < 0) | (indices >= n_rows)]
        if len(wrong):
            raise ValueError(f"{name} names row {wrong[0]}, but there are {n_rows} rows")
        return indices


for _name, _value in WITHOUT_LABELS.items():
    setattr(TupleLearner, _name, _value)
