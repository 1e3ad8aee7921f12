"""k-NN votes: by our search for sparse rows, by dense matrix products for projected ones."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from experiments.data import Rows
from experiments.systems.base import K, Predictor
from hdsl import _core
from hdsl._matrix import as_csr


def by_dot_product(train: Rows) -> Predictor:
    """3-NN under the dot product, by our own search."""
    classes, codes = np.unique(train.y, return_inverse=True)
    fitted, index = as_csr(train.X), _core.Index()

    def predict(X: sp.csr_matrix) -> np.ndarray:
        scores, near = index.search(fitted, as_csr(X), False, K, 1)
        near, scores = near.reshape(-1, K), scores.reshape(-1, K)
        return classes[_core.vote("majority", near, scores, codes.astype(np.int64))]

    return predict


def by_scores(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Classes from a block of scores, one row per query: the vote of the three highest, the first row in case of ties."""
    classes, codes = np.unique(y, return_inverse=True)
    scores = np.array(scores, dtype=np.float64)
    near = np.empty((len(scores), K), dtype=np.int64)
    best = np.empty((len(scores), K))
    rows = np.arange(len(scores))
    for place in range(K):
        near[:, place] = scores.argmax(axis=1)
        best[:, place] = scores[rows, near[:, place]]
        scores[rows, near[:, place]] = -np.inf
    return classes[_core.vote("majority", near, best, codes.astype(np.int64))]
