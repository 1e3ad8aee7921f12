"""Measures of rankings and triplets, as the command line's `hdsl evaluate` computes them.

Sparse similarities give many pairs the same score. Every measure is therefore its expected value over all orders of documents
with equal scores, and a tied triplet counts one half.

The measures of rankings take gains and scores in the order of scikit-learn's metrics, so that `make_scorer` makes scorers of
them: ``make_scorer(ndcg_score)`` for regressors, whose predictions rank the samples, and
``make_scorer(average_precision, response_method="decision_function")`` for classes 0 and 1. The score of
:class:`hdsl.TripletHDSL` is :func:`triplet_accuracy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

__all__ = ["average_precision", "ndcg_score", "recall_at_k", "reciprocal_rank", "triplet_accuracy"]


def ndcg_score(y_true: ArrayLike, y_score: ArrayLike, *, k: int = 10, qid: ArrayLike | None = None) -> float:
    """nDCG@k: Σ gain / log₂(rank + 1) over the first k documents, divided by that of the best ranking.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,) or (n_queries, n_documents)
        Gains of 0 or above; a document with a gain above 0 is relevant.
    y_score : array-like of the same shape
        Scores; higher ones are ranked first.
    k : int, default=10
        The number of documents that are looked at.
    qid : array-like of shape (n_documents,) or None, default=None
        The query of each document. By default, all are of one query, or those of a row.

    Returns
    -------
    ndcg : float
        The mean over the queries that have a relevant document.

    Examples
    --------
    >>> from hdsl.metrics import ndcg_score
    >>> round(ndcg_score([2, 0, 1], [0.9, 0.5, 0.1]), 4)
    0.9502
    >>> ndcg_score([1, 0, 1, 0], [3, 2, 4, 1], qid=[0, 0, 1, 1])
    1.0
    """
    at = _checked_k(k)

    def of_query(ranked: _Ties) -> float:
        discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(at) + 2))])
        sums = discounts[np.minimum(ranked.first + ranked.n, at)] - discounts[np.minimum(ranked.first, at)]
        best = ranked.ideal[:at]
        return float((ranked.gain / ranked.n) @ sums / (best @ np.diff(discounts[: len(best) + 1])))

    return _mean(y_true, y_score, qid, of_query)


def average_precision(y_true: ArrayLike, y_score: ArrayLike, *, qid: ArrayLike | None = None) -> float:
    """Average precision: the mean over the relevant documents of the share of relevant documents down to each.

    The mean over queries is MAP.

    Parameters
    ----------
    y_true, y_score, qid
        As for :func:`ndcg_score`.

    Returns
    -------
    average_precision : float
        The mean over the queries that have a relevant document.

    Examples
    --------
    >>> from hdsl.metrics import average_precision
    >>> average_precision([1, 0, 0, 1], [4, 3, 2, 1])
    0.75
    """

    def of_query(ranked: _Ties) -> float:
        group = np.repeat(np.arange(len(ranked.n)), ranked.n)
        place = np.arange(len(group))
        found = np.cumsum(ranked.relevant) - ranked.relevant
        # The expected number of other relevant documents per place before a relevant one of the same ties.
        others = np.where(ranked.n > 1, (ranked.relevant - 1) / np.maximum(ranked.n - 1, 1), 0)
        until = found[group] + (place - ranked.first[group]) * others[group] + 1
        return float(np.sum((ranked.relevant / ranked.n)[group] * until / (place + 1)) / len(ranked.ideal))

    return _mean(y_true, y_score, qid, of_query)


def recall_at_k(y_true: ArrayLike, y_score: ArrayLike, *, k: int = 10, qid: ArrayLike | None = None) -> float:
    """recall@k: the share of the relevant documents that are among the first k.

    Parameters
    ----------
    y_true, y_score, k, qid
        As for :func:`ndcg_score`.

    Returns
    -------
    recall : float
        The mean over the queries that have a relevant document.

    Examples
    --------
    >>> from hdsl.metrics import recall_at_k
    >>> recall_at_k([1, 0, 0, 1], [4, 3, 2, 1], k=2)
    0.5
    """
    at = _checked_k(k)

    def of_query(ranked: _Ties) -> float:
        within = np.clip(at - ranked.first, 0, ranked.n)
        return float(ranked.relevant @ (within / ranked.n) / len(ranked.ideal))

    return _mean(y_true, y_score, qid, of_query)


def reciprocal_rank(y_true: ArrayLike, y_score: ArrayLike, *, qid: ArrayLike | None = None) -> float:
    """1 / rank of the first relevant document. The mean over queries is MRR.

    Parameters
    ----------
    y_true, y_score, qid
        As for :func:`ndcg_score`.

    Returns
    -------
    reciprocal_rank : float
        The mean over the queries that have a relevant document.

    Examples
    --------
    >>> from hdsl.metrics import reciprocal_rank
    >>> reciprocal_rank([0, 1, 1], [3, 2, 1])
    0.5
    >>> reciprocal_rank([0, 1], [1, 1])  # first or second, equally likely
    0.75
    """

    def of_query(ranked: _Ties) -> float:
        group = np.flatnonzero(ranked.relevant)[0]
        first, n, relevant = ranked.first[group], ranked.n[group], ranked.relevant[group]
        place = np.arange(n - relevant + 1)
        hit = relevant / (n - place)  # given that none before it was relevant
        none_before = np.concatenate([[1.0], np.cumprod(1 - hit)[:-1]])
        return float(np.sum(none_before * hit / (first + place + 1)))

    return _mean(y_true, y_score, qid, of_query)


def triplet_accuracy(margins: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """The share of triplets that a similarity agrees with; a tie counts one half.

    Parameters
    ----------
    margins : array-like of shape (n_triplets,)
        S(anchor, near) - S(anchor, far) of each triplet, as from `decision_function` of :class:`hdsl.TripletHDSL`.
    sample_weight : array-like of shape (n_triplets,) or None, default=None
        The weight of each triplet.

    Returns
    -------
    accuracy : float
        1 is perfect; 0.5 is chance.

    Examples
    --------
    >>> from hdsl.metrics import triplet_accuracy
    >>> triplet_accuracy([2.0, 0.1, 0.0, -1.0])
    0.625
    """
    margins = column_or_1d(check_array(margins, ensure_2d=False, dtype=np.float64, input_name="margins"))
    weights = None
    if sample_weight is not None:
        weights = column_or_1d(
            check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
        )
        check_consistent_length(margins, weights)
        if (weights < 0).any() or not (weights > 0).any():
            raise ValueError("sample_weight has negative values or is 0 everywhere.")
    return float(np.average((np.sign(margins) + 1) / 2, weights=weights))


class _Ties(NamedTuple):
    """Groups of documents with equal scores, by decreasing score."""

    #: The number of documents before each group, in it, and of relevant ones in it.
    first: NDArray[np.int64]
    n: NDArray[np.int64]
    relevant: NDArray[np.int64]
    #: The sum of the gains of each group.
    gain: NDArray[np.float64]
    #: The gains above 0 of all documents, the highest first.
    ideal: NDArray[np.float64]


def _ties(gains: NDArray[np.float64], scores: NDArray[np.float64]) -> _Ties:
    _, group, n = np.unique(-scores, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    relevant = np.bincount(group, weights=gains > 0, minlength=len(n)).astype(np.int64)
    gain = np.bincount(group, weights=gains, minlength=len(n)).astype(np.float64)
    return _Ties(np.cumsum(n) - n, n, relevant, gain, -np.sort(-gains[gains > 0]))


def _mean(
    y_true: ArrayLike, y_score: ArrayLike, qid: ArrayLike | None, of_query: Callable[[_Ties], float]
) -> float:
    """The mean of a measure over the queries that have a relevant document."""
    gains = check_array(y_true, ensure_2d=False, dtype=np.float64, input_name="y_true")
    scores = check_array(y_score, ensure_2d=False, dtype=np.float64, input_name="y_score")
    if gains.shape != scores.shape or gains.ndim > 2:
        raise ValueError(
            f"y_true has the shape {gains.shape} and y_score {scores.shape}, expected the same, of one or two dimensions."
        )
    if (gains < 0).any():
        raise ValueError(f"y_true has the gain {gains.min()}, expected gains of 0 or above.")
    parts = zip(np.atleast_2d(gains), np.atleast_2d(scores))
    if qid is not None:
        if gains.ndim != 1:
            raise ValueError("qid is for arrays of one dimension; rows of two-dimensional arrays are queries already.")
        queries = np.unique(column_or_1d(qid), return_inverse=True)[1].reshape(-1)
        check_consistent_length(gains, queries)
        order = np.argsort(queries, kind="stable")
        ends = np.flatnonzero(np.diff(queries[order])) + 1
        parts = zip(np.split(gains[order], ends), np.split(scores[order], ends))
    values = [of_query(_ties(of, by)) for of, by in parts if (of > 0).any()]
    if not values:
        raise ValueError("y_true has no gain above 0, so that no ranking can be measured.")
    return float(np.mean(values))


def _checked_k(k: int) -> int:
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k is {k!r}, expected a whole number from 1.")
    return int(k)
