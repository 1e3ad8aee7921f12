"""Learning on top of a base similarity: its preprocessing, splits and units, by other means."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MaxAbsScaler, normalize

from experiments import base, data, ranking
from experiments.cells import SETTINGS


def test_preprocessing_is_that_of_sklearn():
    rows = data.planted(3, 0)
    train, other = rows.X[::2], rows.X[1::2]
    by_maximum = MaxAbsScaler(clip=False).fit(train)
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train)
    known = {
        "none": other,
        "unit": normalize(other),
        "max": by_maximum.transform(other).minimum(1.0),
        "max+unit": normalize(by_maximum.transform(other).minimum(1.0)),
        "tfidf": tfidf.transform(other),
    }
    for how, want in known.items():
        found = data.preprocessing(how, train)(other)
        assert found.toarray() == pytest.approx(want.toarray()), how
    with pytest.raises(ValueError, match="'log'"):
        data.preprocessing("log", train)


def test_preprocessing_leaves_its_input_alone():
    rows = data.planted(2, 0)
    before = rows.X.toarray()
    for how in ("none", "unit", "max", "max+unit", "tfidf", "bm25"):
        data.preprocessing(how, rows.X)(rows.X)
    assert (rows.X.toarray() == before).all()


def test_the_only_row_of_a_class_is_trained_on():
    rows = data.planted(2, 0)
    y = rows.y.copy()
    y[7] = 9
    first, second = data.stratified(data.Rows(rows.X, y), 0.8, 0)
    assert 9 in first.y and 9 not in second.y
    assert len(first) + len(second) == len(rows)


def test_the_mean_margin_is_a_mean_over_triplets():
    rows = data.planted(2, 0, rows=8, features=60)
    X = rows.X.toarray()
    mined = np.array([[0, 1, 9], [3, 2, 12], [10, 11, 4]])
    weights = np.array([1.0, 2.0, 5.0])
    margins = [abs(X[a] @ X[n] - X[a] @ X[f]) for a, n, f in mined]
    assert ranking.mean_margin(rows.X, mined, weights) == pytest.approx(np.average(margins, weights=weights))


def test_validation_rows_are_trained_on_only_if_the_test_part_is_official():
    official = {one.dataset for one in base.cells(SETTINGS["full"]) if one.dataset in base.OFFICIAL}
    assert official == set(base.OFFICIAL)
    assert not official & set(SETTINGS["full"].datasets)


def test_a_prediction_rule_is_that_of_the_vote():
    scores, near = np.array([[3.0, 1.0, 1.0]]), np.array([[0, 1, 2]])
    y = np.array(["a", "b", "b"])
    assert base.elected(scores, near, y, "majority") == ["b"]
    assert base.elected(scores, near, y, "weighted") == ["a"]
