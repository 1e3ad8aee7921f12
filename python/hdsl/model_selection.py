"""Cross-validation over triplets without leakage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state

from hdsl._sklearn import BaseCrossValidator

__all__ = ["AnchorKFold"]


class AnchorKFold(BaseCrossValidator):
    """K folds of triplets, with all triplets of an anchor in one fold.

    Triplets of the same anchor share a row, so a random split of triplets leaks information from the training set into the
    test set.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds.
    shuffle : bool, default=False
        Whether to assign anchors in random order; otherwise the anchors with the most triplets come first. Each is assigned
        to the smallest fold so far, which gives folds of nearly equal size.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> from hdsl.model_selection import AnchorKFold
    >>> triplets = np.array([[0, 1, 2], [0, 1, 3], [1, 0, 2], [2, 3, 0], [2, 3, 1], [3, 2, 1]])
    >>> for train, test in AnchorKFold(n_splits=2).split(triplets):
    ...     print(triplets[test, 0])
    [0 0 1]
    [2 2 3]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        if not isinstance(n_splits, (int, np.integer)) or n_splits < 2:
            raise ValueError(f"n_splits is {n_splits!r}, expected a whole number of at least 2")
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: ArrayLike, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Split triplets into training and test triplets.

        Parameters
        ----------
        X : array-like of int of shape (n_triplets, 3)
            Triplets; the first column is the anchor.
        y : None
            Ignored.
        groups : None
            Ignored: the anchors are the groups.

        Yields
        ------
        train : ndarray
            Indices of the training triplets.
        test : ndarray
            Indices of the test triplets.
        """
        folds = self._folds(X)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def _folds(self, X: ArrayLike) -> NDArray[np.int64]:
        """The fold of each triplet."""
        triplets = check_array(X, dtype=None, input_name="triplets")
        _, anchors, counts = np.unique(triplets[:, 0], return_inverse=True, return_counts=True)
        if len(counts) < self.n_splits:
            raise ValueError(
                f"Cannot have number of splits n_splits={self.n_splits} greater than the number of anchors: "
                f"{len(counts)}."
            )
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(len(counts))
        else:
            order = np.argsort(-counts, kind="stable")
        sizes = np.zeros(self.n_splits, dtype=np.int64)
        fold_of = np.empty(len(counts), dtype=np.int64)
        for anchor in order:
            fold_of[anchor] = np.argmin(sizes)
            sizes[fold_of[anchor]] += counts[anchor]
        return fold_of[anchors]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds.

        Parameters
        ----------
        X, y, groups : None
            Ignored.

        Returns
        -------
        n_splits : int
            As given.
        """
        return self.n_splits
