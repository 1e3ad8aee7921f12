"""Triplets mined from labels, to inspect or change them before learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_X_y

from hdsl import _core
from hdsl._classes import encode
from hdsl._hdsl import HDSL
from hdsl._matrix import DTYPES, as_csr
from hdsl._settings import compiled, settings
from hdsl._threads import n_threads


def mine_triplets(
    X: Any,
    y: ArrayLike,
    *,
    triplets: str = "knn:3:5",
    preprocess: str = "max",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> NDArray[np.int64]:
    """Mine the triplets that :meth:`hdsl.HDSL.fit` learns from.

    Parameters
    ----------
    X, y
        Raw rows and their classes, as for :meth:`hdsl.HDSL.fit`.
    triplets, preprocess, random_state, n_jobs
        As for :class:`hdsl.HDSL`.

    Returns
    -------
    triplets : ndarray of shape (n_triplets, 3)
        Rows of `X`: an anchor, a row of its class, and a row of another class.

    Examples
    --------
    >>> from hdsl import mine_triplets
    >>> mine_triplets([[1., 0], [1, 1], [0, 1]], ["a", "a", "b"], triplets="knn:1:1")
    array([[0, 1, 2],
           [1, 0, 2]])
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=DTYPES)
    learner = HDSL(triplets=triplets, preprocess=preprocess, random_state=random_state)
    learner._check_parameters()
    classes, codes = encode(y, "mine_triplets")
    chosen = settings(learner, validated=False, holdout=None)
    mined = _core.mine(compiled(learner, chosen), as_csr(X), ([str(c) for c in classes], codes), n_threads(n_jobs))
    return mined.reshape(-1, 3)
