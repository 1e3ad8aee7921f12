"""The page about a model, and what a notebook shows."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import Bunch

from conftest import planted
from hdsl import HDSL, HDSLClassifier, TripletHDSL
from hdsl.metrics import ndcg_score

HOSTILE = "</script><script>alert(1)</script>"


def figures(path):
    """The data of a page, and the figures of its first section."""
    html = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1])
    shown = dict(re.findall(r'id="figure-(\w+)" value="([^"]*)"', html))
    return html, data, {name: float(value) for name, value in shown.items()}


@pytest.fixture
def fitted():
    X, y = planted(300)
    learner = HDSLClassifier(scale=10, max_iter=60).fit(X[:200], y[:200])
    return learner, X, y


def test_a_report_agrees_with_the_estimator(fitted, tmp_path):
    learner, X, y = fitted
    path = tmp_path / "report.html"
    learner.report(path, X[200:], y[200:])
    _, data, shown = figures(path)
    assert shown["error"] == pytest.approx(1 - learner.score(X[200:], y[200:]))
    assert shown["n_features"] == learner.n_active_features_
    assert shown["n_atoms"] == learner.n_atoms_
    assert shown["lambda"] == learner.scale_
    assert shown["train_seconds"] > 0
    pairs = learner.explain().pairs
    told = data["entries"]["pairs"]
    names = data["names"]["name"]
    assert [names[i] for i in told["i"]] == list(pairs["feature_i"])
    assert told["weight"] == list(pairs["weight"])
    near = learner.kneighbors(X[200:], n_neighbors=6)
    for query in data["neighbors"]["rows"]:
        scores, rows = near[0][query["row"]], near[1][query["row"]]
        assert [n["row"] for n in query["learned"]] == list(rows)
        assert [n["score"] for n in query["learned"]] == pytest.approx(list(scores))
        for n in query["learned"] + query["dot"]:
            assert sum(c[3] for c in n["contributions"]) + n["rest"][1] == pytest.approx(n["score"])


def test_same_input_same_bytes_and_a_pickle_reports_alike(fitted, tmp_path):
    learner, X, y = fitted
    learner.report(tmp_path / "a.html", X[200:], y[200:])
    again = pickle.loads(pickle.dumps(learner)).set_params(n_jobs=1)
    again.set_params(n_jobs=learner.n_jobs).report(tmp_path / "b.html", X[200:], y[200:])
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_names_classes_and_texts_are_data(fitted, tmp_path):
    learner, X, y = fitted
    names = [HOSTILE] * X.shape[1]
    classes = np.array([HOSTILE, "b", "c", "d"], dtype=object)
    texts = [HOSTILE] * X.shape[0]
    path = tmp_path / "report.html"
    learner.report(
        path, X[200:], classes[y[200:]], X_train=X[:200], y_train=classes[y[:200]],
        feature_names=names, train_texts=texts[:200], test_texts=texts[200:],
    )
    html, data, _ = figures(path)
    assert "<script>alert" not in html
    assert HOSTILE in data["classes"] and HOSTILE in data["names"]["name"]
    assert data["neighbors"]["texts"]["test"][0][1] == HOSTILE


def test_a_report_needs_no_rows(fitted, tmp_path):
    learner, _, _ = fitted
    learner.save(tmp_path / "m.hdsl")
    HDSL.load(tmp_path / "m.hdsl").report(tmp_path / "report.html")
    html, data, shown = figures(tmp_path / "report.html")
    assert data["neighbors"] is None and "error" not in shown
    assert "give X_train and y_train and X_test" in html


def test_triplets_without_classes_make_a_report_too(tmp_path):
    X, y = planted(120)
    rng = np.random.default_rng(0)
    triplets = [
        (a, rng.choice(np.flatnonzero(y == y[a])), rng.choice(np.flatnonzero(y != y[a]))) for a in range(120)
    ]
    learner = TripletHDSL(preprocessor=X, scale=10, max_iter=20).fit(triplets)
    learner.report(tmp_path / "report.html", X[:30])
    html, data, shown = figures(tmp_path / "report.html")
    assert len(data["neighbors"]["rows"]) == 30 and "error" not in shown
    assert ".fit(triplets)</code>" in html
    HDSL(scale=10, max_iter=20).fit_triplets(X, triplets).report(tmp_path / "report.html")
    assert ".fit_triplets(X_train, triplets)</code>" in figures(tmp_path / "report.html")[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_test": [1]}, "without X_test"),
        ({"y_train": [1]}, "without X_train"),
        ({"n_neighbors": 0}, "expected a whole number of at least 1"),
        ({"feature_names": ["a"]}, "feature_names should have length"),
        ({"train_texts": ["a"]}, "train_texts has 1 texts for 200 rows"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(fitted, tmp_path, arguments, message):
    learner, _, _ = fitted
    with pytest.raises(ValueError, match=message):
        learner.report(tmp_path / "report.html", **arguments)
    assert not any(tmp_path.iterdir())


def test_unfitted_estimators_have_nothing_to_report(tmp_path):
    with pytest.raises(sklearn.exceptions.NotFittedError):
        HDSL().report(tmp_path / "report.html")


def test_notebooks_show_sklearns_picture_and_what_was_learned(fitted):
    learner, X, y = fitted
    unfitted = HDSLClassifier()._repr_mimebundle_()["text/html"]
    assert "sk-container" in unfitted and "Features, by weight" not in unfitted
    learner.set_feature_names([HOSTILE] * X.shape[1])
    for html in (learner._repr_mimebundle_()["text/html"], learner._repr_html_()):
        assert "sk-container" in html
        assert f"{learner.n_active_features_} of {X.shape[1]} features" in html
        assert "<script>alert" not in html and "&#60;script&#62;alert" in html
    pipeline = make_pipeline(MaxAbsScaler(), HDSLClassifier(scale=10, max_iter=5)).fit(X, y)
    assert "HDSLClassifier" in pipeline._repr_mimebundle_()["text/html"]
    with sklearn.config_context(display="text"):
        assert "text/html" not in learner._repr_mimebundle_()
        assert not hasattr(learner, "_repr_html_")


def test_judgments_are_measured(fitted, tmp_path):
    learner, X, _ = fitted
    rng = np.random.default_rng(3)
    pairs = np.unique(rng.integers(0, [20, 200], (300, 2)), axis=0)
    gain = rng.integers(0, 3, len(pairs))
    path = tmp_path / "report.html"
    learner.report(path, X[200:220], judgments=(*pairs.T, gain))
    _, data, _ = figures(path)
    learned = next(found for found in data["judged"]["similarities"] if "learned" in found["name"])
    # Documents that are not judged have gain 0.
    gains = np.zeros((20, 200))
    gains[tuple(pairs.T)] = gain
    scores, rows = learner.kneighbors(X[200:220], n_neighbors=200)
    expected = ndcg_score(np.take_along_axis(gains, rows, 1), scores)
    assert learned["ndcg"] == pytest.approx(expected)
    # Without test rows, queries are training rows, and only judged documents are ranked.
    learner.report(path, judgments=Bunch(query=pairs[:, 0], document=pairs[:, 1], gain=gain))
    _, data, _ = figures(path)
    assert data["judged"]["n_documents"] == len(np.unique(pairs[:, 1]))


def test_wrong_judgments_are_refused(fitted, tmp_path):
    learner, X, _ = fitted
    path = tmp_path / "report.html"
    for judgments, wanted in [
        (([0], [200], [1]), "documents of judgments are rows from 0 to 199, got 200"),
        (([-1], [0], [1]), "queries of judgments are rows from 0 to 9, got -1"),
        (([0.5], [0], [1]), "queries of judgments are rows from 0 to 9, got values of type float64"),
        (([0, 0], [1, 1], [1, 2]), "query 0 and document 1 twice"),
        (([0], [1], [-1]), "at least 0, got -1"),
        (([0], [1]), "expected three"),
        ({"query": [0], "document": [1], "grade": [1]}, "no column 'gain'"),
    ]:
        with pytest.raises(ValueError, match=wanted):
            learner.report(path, X[200:210], X_train=X[:200], judgments=judgments)
    assert not path.exists()
