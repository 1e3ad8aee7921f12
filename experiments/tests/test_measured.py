"""The parts of growth, convergence and text that can be checked by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import convergence, data, growth, text


def test_the_exponent_of_a_power_law_is_found():
    points = [(x, 3.0 * x**1.7) for x in (1.0, 4.0, 10.0, 50.0)]
    assert growth.exponent(points) == pytest.approx(1.7)
    assert growth.exponent(points[:1]) is None


def test_synthetic_rows_are_as_long_as_asked():
    X, y = growth.synthetic(300, 20, 2_000)
    lengths = np.diff(X.indptr)
    assert X.shape == (300, 2_000) and lengths.max() == 20 and lengths.mean() > 19
    assert X.has_sorted_indices and np.array_equal(np.unique(y), [0, 1])
    again, _ = growth.synthetic(300, 20, 2_000)
    assert (X != again).nnz == 0


def test_windows_double_and_tell_their_mean():
    seconds = [float(i) for i in range(200)]
    points = growth.windows(seconds, list(range(201)))
    assert [at for at, _, _ in points] == [37.5, 75.0, 150.0]
    assert points[0][1] == pytest.approx(np.mean(seconds[25:50]))


def test_smoothness_is_the_mean_of_squared_norms():
    import hdsl

    rows = data.planted(2, 0, rows=8, features=60)
    found = convergence.smoothness(rows, "random:3")
    X = rows.X.toarray()
    mined = hdsl.mine_triplets(rows.X, rows.y, triplets="random:3", preprocess="none", random_state=0)
    want = np.mean([np.sum(np.outer(X[a], X[n] - X[f]) ** 2) for a, n, f in mined])
    assert found == pytest.approx(want)


def test_the_strongest_pairs_have_their_sign_and_topics():
    pandas = pytest.importorskip("pandas")
    import scipy.sparse as sp

    X = sp.csr_matrix([[1.0, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1]])
    y = np.array(["a", "a", "b", "b"])
    pairs = pandas.DataFrame({
        "i": [0, 1, 0], "j": [1, 2, 2], "feature_i": ["x", "y", "x"], "feature_j": ["y", "z", "z"], "weight": [-3.0, 2.0, 1.0],
    })  # fmt: skip
    alike = text.strongest(pairs, 1, X, y)
    assert [pair["words"] for pair in alike] == [["y", "z"], ["x", "z"]]
    assert alike[1]["topics"] == ["a 100%", "a 50%, b 50%"]
    assert [pair["weight"] for pair in text.strongest(pairs, -1, X, y)] == [-3.0]


def test_the_plain_error_is_that_of_a_vote_of_three():
    X, y = growth.synthetic(60, 8, 200)
    found = text.plain_error(X[:40], y[:40], X[40:], y[40:])
    most = X[:40].max(axis=0).toarray().ravel()
    scaled = np.minimum(X.toarray() / np.where(most > 0, most, 1.0), 1.0)
    wrong = 0
    for row in range(40, 60):
        near = np.argsort(-(scaled[:40] @ scaled[row]), kind="stable")[:3]
        wrong += (np.mean(y[near]) > 0.5) != y[row]
    assert found == wrong / 20
