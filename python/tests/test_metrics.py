"""Measures of rankings and triplets against their definitions and scikit-learn."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import average_precision_score, make_scorer
from sklearn.metrics import ndcg_score as sklearn_ndcg
from sklearn.model_selection import cross_val_score

from hdsl import metrics


def problems(n, n_queries=None):
    rng = np.random.default_rng(3)
    for _ in range(40):
        shape = (n,) if n_queries is None else (n_queries, n)
        gains = rng.integers(0, 3, shape).astype(float)
        gains[..., rng.integers(0, n)] = 2
        yield gains, rng.integers(0, 4, shape).astype(float), int(rng.integers(1, n + 3))


def by_definition(ranked, k):
    """nDCG@k, average precision, recall@k and reciprocal rank of gains in the order of a ranking."""
    rank = np.arange(1, len(ranked) + 1)
    dcg = [np.sum((g / np.log2(rank + 1))[:k]) for g in (ranked, np.sort(ranked)[::-1])]
    relevant = ranked > 0
    precision = np.cumsum(relevant) / rank
    return [
        dcg[0] / dcg[1],
        precision[relevant].mean(),
        relevant[:k].sum() / relevant.sum(),
        1 / rank[relevant][0],
    ]


def test_measures_are_means_over_all_orders_of_ties():
    for gains, scores, k in problems(6):
        orders = np.array(list(itertools.permutations(range(6))))
        orders = orders[(np.diff(scores[orders], axis=1) <= 0).all(axis=1)]
        expected = np.mean([by_definition(gains[order], k) for order in orders], axis=0)
        found = [
            metrics.ndcg_score(gains, scores, k=k),
            metrics.average_precision(gains, scores),
            metrics.recall_at_k(gains, scores, k=k),
            metrics.reciprocal_rank(gains, scores),
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_measures_agree_with_scikit_learn():
    for gains, scores, k in problems(30, n_queries=5):
        np.testing.assert_allclose(metrics.ndcg_score(gains, scores, k=k), sklearn_ndcg(gains, scores, k=k))
        distinct = np.argsort(np.argsort(scores, axis=1), axis=1)
        expected = np.mean([average_precision_score(g > 0, s) for g, s in zip(gains, distinct)])
        np.testing.assert_allclose(metrics.average_precision(gains, distinct), expected)


@pytest.mark.parametrize(
    "measure", [metrics.ndcg_score, metrics.average_precision, metrics.recall_at_k, metrics.reciprocal_rank]
)
def test_queries_by_number_are_those_of_rows(measure):
    for gains, scores, _ in problems(9, n_queries=4):
        qid = np.repeat(["d", "a", "c", "b"], 9)
        shuffled = np.random.default_rng(0).permutation(36)
        flat = [a.ravel()[shuffled] for a in (gains, scores)]
        np.testing.assert_allclose(measure(*flat, qid=qid[shuffled]), measure(gains, scores))
    # A query without a relevant document does not count.
    assert measure([1, 0, 0, 0], [2, 1, 2, 1], qid=[0, 0, 1, 1]) == 1
    with pytest.raises(ValueError, match="no gain above 0"):
        measure([0, 0], [1, 2])
    with pytest.raises(ValueError, match="the gain -1"):
        measure([-1, 2], [1, 2])
    with pytest.raises(ValueError, match="the same"):
        measure([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="qid"):
        measure([[1, 2]], [[1, 2]], qid=[0])


def test_measures_as_scorers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    precision = make_scorer(metrics.average_precision, response_method="decision_function")
    found = cross_val_score(LogisticRegression(), X, y, scoring=precision)
    np.testing.assert_allclose(found, cross_val_score(LogisticRegression(), X, y, scoring="average_precision"))
    regressor = LinearRegression().fit(X, y)
    assert make_scorer(metrics.ndcg_score, k=20)(regressor, X, y) == metrics.ndcg_score(y, regressor.predict(X), k=20)


def test_triplet_accuracy_counts_ties_one_half():
    margins = np.array([1.0, 0.0, -2.0, 0.5])
    assert metrics.triplet_accuracy(margins) == 2.5 / 4
    assert metrics.triplet_accuracy(margins, sample_weight=[1, 2, 3, 4]) == (1 + 2 / 2 + 4) / 10
    for wrong in ([1, 2, 3], [-1, 1, 1, 1], [0, 0, 0, 0]):
        with pytest.raises(ValueError):
            metrics.triplet_accuracy(margins, sample_weight=wrong)
    for wrong in (0, 1.5, True):
        with pytest.raises(ValueError, match="k is"):
            metrics.recall_at_k([1, 0], [1, 0], k=wrong)
