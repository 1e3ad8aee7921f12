"""Pairs of similar and dissimilar rows as supervision."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from conftest import planted
from hdsl import PairHDSL, TripletHDSL, datasets
from test_command_line import run


def drawn_pairs(y, n=600, seed=0):
    """Random pairs of different rows, and whether they are of one class."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, len(y), n)
    second = (first + rng.integers(1, len(y), n)) % len(y)
    return np.stack([first, second], axis=1), np.where(y[first] == y[second], 1, -1)


def test_similar_pairs_score_higher_than_dissimilar_ones():
    X, y = planted()
    pairs, labels = drawn_pairs(y[:150])
    learner = PairHDSL(preprocessor=X, scale=20, max_iter=100).fit(pairs, labels)
    new, truth = drawn_pairs(y[150:], seed=1)
    new += 150
    dot = (X[new[:, 0]].multiply(X[new[:, 1]])).sum(axis=1)
    plain = roc_auc_score(truth == 1, np.asarray(dot).ravel())
    assert learner.score(new, truth) > max(0.85, plain + 0.1)
    assert learner.score(new, truth) == pytest.approx(roc_auc_score(truth == 1, learner.pair_score(new)))
    assert (learner.predict(new) == truth).mean() > 0.85
    assert set(learner.explain().features["feature"][:8]) <= set(range(12))
    np.testing.assert_array_equal(learner.decision_function(new), learner.pair_score(new))


def test_comparisons_that_follow_from_pairs():
    X, _ = planted(8, 30)
    learner = PairHDSL(X, scale=5, max_iter=10).fit([[0, 1], [0, 2], [3, 4]], [1, -1, -1])
    # Row 0 prefers 1 to 2; rows 2, 3 and 4 are more similar to themselves; row 1 is compared with five drawn rows.
    triplets = [[0, 1, 2], [2, 2, 0], [3, 3, 4], [4, 4, 3]]
    assert learner.n_triplets_ == len(triplets) + 5
    with_dissimilar = PairHDSL(X, scale=5, max_iter=10).fit([[0, 1], [0, 2], [1, 2], [3, 4]], [1, -1, -1, -1])
    triplets = [[0, 1, 2], [1, 0, 2], [2, 2, 0], [2, 2, 1], [3, 3, 4], [4, 4, 3]]
    by_hand = TripletHDSL(X, scale=5, max_iter=10).fit(triplets)
    np.testing.assert_array_equal(with_dissimilar.similarity(X), by_hand.similarity(X))


def test_a_weight_is_a_number_of_times():
    X, y = planted()
    pairs, labels = drawn_pairs(y, 80)
    weights = np.arange(80) % 3  # some 0
    # The problem is the same; its optimum may be reached by several matrices.
    exact = dict(scale=5, search="exact", step_rule="pairwise", tol=1e-4, max_iter=5000)
    twice = PairHDSL(X, **exact).fit(np.repeat(pairs, weights, axis=0), np.repeat(labels, weights))
    weighted = PairHDSL(X, **exact).fit(pairs, labels, sample_weight=weights)
    assert twice.gap_certified_ and weighted.gap_certified_ and twice.objective_ > 0.01
    assert abs(weighted.objective_ - twice.objective_) <= 1e-4
    unweighted = PairHDSL(X, **exact).fit(pairs, labels)
    assert abs(unweighted.objective_ - twice.objective_) > 1e-3
    triplets = np.stack([np.arange(50), np.arange(50, 100), np.arange(100, 150)], axis=1)
    twice = TripletHDSL(X, **exact).fit(np.repeat(triplets, weights[:50], axis=0))
    weighted = TripletHDSL(X, **exact).fit(triplets, sample_weight=weights[:50])
    assert abs(weighted.objective_ - twice.objective_) <= 1e-4


@pytest.mark.parametrize("cls", [PairHDSL, TripletHDSL])
def test_rows_in_place_of_indices(cls):
    X, y = planted(60, 30)
    X = X.toarray() + np.random.default_rng(0).random((60, 30)) / 100  # no two rows are equal
    pairs, labels = drawn_pairs(y, 120)
    tuples = pairs if cls is PairHDSL else np.c_[pairs, (pairs[:, 1] + 1) % 60][pairs[:, 0] != 0]
    labels = labels if cls is PairHDSL else None
    # The fitted rows are in the order in which they are given first, on which the draws depend.
    _, first = np.unique(tuples, return_index=True)
    order = tuples.reshape(-1)[np.sort(first)]
    place = np.zeros(60, dtype=int)
    place[order] = np.arange(len(order))
    X, tuples = X[order], place[tuples]
    by_index = cls(X, scale=20, max_iter=20, preprocess="unit").fit(tuples, labels)
    by_row = cls(scale=20, max_iter=20, preprocess="unit").fit(X[tuples], labels)
    np.testing.assert_allclose(by_row.similarity(X), by_index.similarity(X), atol=1e-9)
    np.testing.assert_allclose(by_row.decision_function(X[tuples]), by_index.decision_function(tuples), atol=1e-9)
    np.testing.assert_array_equal(by_row.predict(X[tuples]), by_index.predict(tuples))
    assert by_row._fit_X.shape[0] == len(np.unique(X[tuples].reshape(-1, 30), axis=0))
    assert by_row.n_features_in_ == 30 and by_row.transform(X).shape[0] == len(X)
    with pytest.raises(ValueError, match="preprocessor is None"):
        cls().fit(tuples, labels)


def test_equal_rows_say_nothing():
    a, b, c, d = np.eye(4)
    pairs = np.array([[a, a], [a, b], [b, a], [a, b], [c, d], [a, c], [d, d]])
    learner = PairHDSL(scale=2).fit(pairs, [1, 1, -1, 1, -1, -1, -1])
    rows = np.array([a, b, c, d])
    expected = PairHDSL(rows, scale=2).fit([[0, 1], [2, 3], [0, 2]], [1, -1, -1])
    np.testing.assert_allclose(learner.similarity(rows), expected.similarity(rows), atol=1e-9)
    np.testing.assert_array_equal(learner.predict(pairs)[[1, 4, 5]], [1, -1, -1])
    with pytest.raises(ValueError, match="no pair of dissimilar rows"):
        PairHDSL(scale=2).fit(np.array([[a, a], [b, b]]), [1, -1])
    triplets = np.array([[a, b, c], [a, b, b]])
    assert TripletHDSL(scale=2).fit(triplets).n_triplets_ == 1
    with pytest.raises(ValueError, match="the second and the third row are equal"):
        TripletHDSL(scale=2).fit(triplets[1:])


def test_searches_over_pairs():
    X, y = planted()
    pairs, labels = drawn_pairs(y)
    learner = PairHDSL(X, scale=20, max_iter=60)
    assert cross_val_score(learner, pairs, labels, cv=3).min() > 0.75
    search = GridSearchCV(learner, {"scale": [1, 20]}, cv=2).fit(pairs, labels)
    assert search.best_score_ > 0.75 and search.best_estimator_.threshold_ == search.best_estimator_.threshold_
    assert not hasattr(clone(search.best_estimator_), "threshold_")
    stopped = PairHDSL(X, scale=20, early_stopping=True, validation_fraction=0.2).fit(pairs, labels)
    assert stopped.valid_measure_ == "triplet-error" and stopped.valid_error_ < 0.4


def test_thresholds():
    X, y = planted()
    pairs, labels = drawn_pairs(y)
    learner = PairHDSL(X, scale=20, max_iter=60).fit(pairs, labels)
    scores = learner.decision_function(pairs)
    similar = labels == 1

    def rates(threshold):
        called = scores >= threshold
        return called[similar].mean(), (~called[~similar]).mean(), (called == similar).mean()

    every = [*np.unique(scores), np.inf]
    assert rates(learner.threshold_)[2] == pytest.approx(max(rates(t)[2] for t in every))
    learner.calibrate_threshold(pairs, labels, strategy="max_tpr", min_rate=0.9)
    tpr, tnr, _ = rates(learner.threshold_)
    assert tnr >= 0.9 and tpr == pytest.approx(max(rates(t)[0] for t in every if rates(t)[1] >= 0.9))
    learner.calibrate_threshold(pairs, labels, strategy="max_tnr", min_rate=0.8)
    tpr, tnr, _ = rates(learner.threshold_)
    assert tpr >= 0.8 and tnr == pytest.approx(max(rates(t)[1] for t in every if rates(t)[0] >= 0.8))
    given = dict(strategy="max_tnr", min_rate=0.8)
    again = PairHDSL(X, scale=20, max_iter=60).fit(pairs, labels, calibration_params=given)
    assert again.threshold_ == learner.threshold_
    from sklearn.metrics import fbeta_score

    learner.calibrate_threshold(pairs, labels, strategy="f_beta", beta=2.0)
    best = max(fbeta_score(similar, scores >= t, beta=2.0, zero_division=0) for t in every)
    assert fbeta_score(similar, learner.predict(pairs) == 1, beta=2.0) == pytest.approx(best)
    assert learner.set_threshold(np.inf).predict(pairs).max() == -1
    for wrong, message in [
        (dict(strategy="best"), "strategy is 'best'"),
        (dict(strategy="max_tpr"), "min_rate is None"),
        (dict(strategy="f_beta", beta=0), "beta is 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.calibrate_threshold(pairs, labels, **wrong)
    with pytest.raises(ValueError, match="threshold is nan"):
        learner.set_threshold(np.nan)


def test_model_files_have_no_threshold(tmp_path):
    X, y = planted()
    pairs, labels = drawn_pairs(y)
    learner = PairHDSL(X, scale=20, max_iter=20).fit(pairs, labels)
    learner.save(tmp_path / "m.hdsl")
    loaded = PairHDSL.load(tmp_path / "m.hdsl", X)
    np.testing.assert_array_equal(loaded.decision_function(pairs), learner.decision_function(pairs))
    with pytest.raises(ValueError, match="no threshold_"):
        loaded.predict(pairs)
    np.testing.assert_array_equal(loaded.calibrate_threshold(pairs, labels).predict(pairs), learner.predict(pairs))


@pytest.mark.parametrize(
    ("pairs", "y", "message"),
    [
        ([[0, 1, 2]], [1], "expected \\(n_pairs, 2\\)"),
        ([[0, 1]], [1, -1], "one label per pair"),
        ([[0, 1]], [0], "expected 1 for similar and -1"),
        ([[0, 1]], [2], "expected 1 for similar and -1"),
        ([[0, 1]], [1], "no other row to compare"),
        ([[0, 1], [1, 0]], [1, -1], "pair 1: rows `1` and `0` are dissimilar here, but similar in an earlier pair"),
        ([[0, 0], [0, 1]], [1, -1], "pair 0: row `0` is paired with itself"),
        ([[0, 1], [0, 500]], [1, -1], "row 500"),
        ([[0, -1]], [1], "row -1"),
        ([[0.5, 1]], [1], "whole numbers"),
        (np.empty((0, 2), dtype=int), [], "0 sample"),
    ],
)
def test_bad_pairs_are_named(pairs, y, message, problem):
    with pytest.raises(ValueError, match=message):
        PairHDSL(problem[0]).fit(pairs, y)


def test_the_program_learns_the_same_from_a_file(program, tmp_path):
    X, y = planted()
    pairs, labels = drawn_pairs(y, 300)
    sp.save_npz(tmp_path / "rows.npz", X)
    np.savetxt(tmp_path / "pairs.txt", np.c_[pairs, labels], fmt="%d")
    read, y_read, weight = datasets.read_pairs(tmp_path / "pairs.txt", n_rows=200)
    np.testing.assert_array_equal(read, pairs)
    np.testing.assert_array_equal(y_read, labels)
    assert weight is None
    learner = PairHDSL(X, scale=20, max_iter=40).fit(pairs, labels)
    supervision = ["--triplets", f"pairs:{tmp_path / 'pairs.txt'}"]
    model = tmp_path / "m.hdsl"
    run(program, "train", tmp_path / "rows.npz", *supervision, "--lambda", 20, "--max-iter", 40, "-o", model)
    np.testing.assert_array_equal(PairHDSL.load(model, X).similarity(X), learner.similarity(X))
    told = json.loads(run(program, "evaluate", model, tmp_path / "rows.npz", *supervision, "--json"))
    assert told["pair_auc"] == pytest.approx(learner.score(pairs, labels))
    assert told["n_triplets"] == learner.n_triplets_
    assert "AUC of pairs" in run(program, "evaluate", model, tmp_path / "rows.npz", *supervision)
    (tmp_path / "bad.txt").write_text("0 1 1\n0 1 5\n")
    with pytest.raises(ValueError, match="bad.txt:2: label `5`, expected 1 for similar or -1 for dissimilar rows"):
        datasets.read_pairs(tmp_path / "bad.txt")
