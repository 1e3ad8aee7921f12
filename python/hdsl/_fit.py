"""Learning from given triplets, for every estimator that is fitted to rows; checks of triplets, classes and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from hdsl._base import SimilarityEstimator
from hdsl._callbacks import with_callbacks
from hdsl._classes import encode
from hdsl._matrix import DTYPES, as_csr, check_parts

if TYPE_CHECKING:
    from typing_extensions import Self


class TripletLearner(SimilarityEstimator):
    """An estimator whose subclasses learn by ``_learn(rows, triplets=..., start=...)``."""

    classes_: NDArray[Any]
    class_weight: Mapping[Any, float] | str | None
    _codes: NDArray[np.int64]

    @with_callbacks
    def fit_triplets(
        self, X: Any, triplets: ArrayLike, sample_weight: ArrayLike | None = None, *, y: Any = None
    ) -> Self:
        """Learn from given triplets of rows: judgments of experts or clicks, for example. No labels are needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `X`, counted from 0: an anchor, a row it is more similar to, and a row it is less similar to.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            The weight of each triplet. Weight 2 has the effect of giving the triplet twice.
        y : array-like of shape (n_samples,) or None, default=None
            Classes of the rows, for `predict`. Nothing is learned from them.

        Returns
        -------
        self : object
            The fitted estimator.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2).fit_triplets(X, [[0, 1, 2], [2, 3, 1]]).pair_score([[0, 1], [0, 2]])
        array([ 2., -2.])
        """
        self._check_parameters()
        self._check_without_labels()
        again = self._continues()
        rows = self._rows_to_fit(X, reset=not again)
        for name in ("classes_", "_codes", "_weights_of_classes"):
            self.__dict__.pop(name, None)
        if y is not None:
            self._set_classes(y, rows)
        given = given_triplets(triplets, sample_weight)
        return self._learn(rows, triplets=given, start=self._model if again else None)

    def _learn(self, rows: Any, *, triplets: Any = None, start: Any = None) -> Self:
        """Call the compiled module and store the result."""
        raise NotImplementedError

    def _check_without_labels(self) -> None:
        """Raise an error for parameters that need labels."""

    def _continues(self) -> bool:
        """Whether a fit starts from the present similarity."""
        return bool(getattr(self, "warm_start", False)) and self.__sklearn_is_fitted__()

    def _rows_to_fit(self, X: Any, *, reset: bool) -> Any:
        """Rows to learn from, checked by scikit-learn, in CSR form."""
        X = validate_data(self, check_parts(X), accept_sparse="csr", dtype=DTYPES, reset=reset, ensure_min_samples=2)
        return as_csr(X)

    def _rows_and_labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        """Rows to learn from, as `_rows_to_fit` returns them, and their labels."""
        X, y = validate_data(self, check_parts(X), y, accept_sparse="csr", dtype=DTYPES, reset=reset, ensure_min_samples=2)
        return as_csr(X), y

    def _set_classes(self, y: Any, rows: Any) -> None:
        """Store the class of each fitted row."""
        self.classes_, self._codes = encode(y, type(self).__name__)
        if len(self._codes) != rows.shape[0]:
            raise ValueError(f"y has {len(self._codes)} classes for {rows.shape[0]} rows of X")

        self._weights_of_classes: NDArray[np.float64] | None = None
        if getattr(self, "class_weight", None) is not None:
            self._weights_of_classes = weights_of_classes(self.class_weight, self.classes_, self._codes)

    def _classes(self) -> tuple[list[str], NDArray[np.int64]]:
        """The classes of the fitted rows as the compiled module takes them."""
        return [str(c) for c in self.classes_], self._codes


def given_triplets(triplets: ArrayLike, sample_weight: ArrayLike | None) -> Any:
    """Triplets as three columns, and their weights."""
    array = check_array(triplets, dtype=None, input_name="triplets")
    if array.shape[1] != 3:
        raise ValueError(f"triplets has the shape {array.shape}, expected (n_triplets, 3)")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"triplets has the type {array.dtype}, expected whole numbers: rows of X")
    columns = [np.ascontiguousarray(array[:, c], dtype=np.int64) for c in range(3)]
    return columns, checked_weights(sample_weight, array)


def checked_weights(sample_weight: ArrayLike | None, X: Any) -> NDArray[np.float64] | None:
    """Weights, none of them negative and not all of them 0."""
    if sample_weight is None:
        return None
    weights: NDArray[np.float64] = np.ascontiguousarray(
        check_array(sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    )
    if weights.ndim != 1 or len(weights) != len(X):
        raise ValueError(f"sample_weight has the shape {weights.shape}, expected ({len(X)},)")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not (weights > 0).any():
        raise ValueError("sample_weight is 0 everywhere, which leaves nothing to learn from.")
    return weights


def weights_of_classes(
    given: Mapping[Any, float] | str | None, classes: NDArray[Any], codes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The weight of each class; none of them negative and not all of them 0."""
    if isinstance(given, Mapping):
        names = classes.tolist()
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"class_weight contains {unknown[0]!r}, which is not among the classes {names}")
        weights = np.array([given.get(name, 1.0) for name in names], dtype=np.float64)
    else:  # balanced
        weights = len(codes) / (len(classes) * np.bincount(codes, minlength=len(classes)))
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError(f"class_weight is {given!r}, expected finite numbers from 0, not all of them 0")
    return weights
