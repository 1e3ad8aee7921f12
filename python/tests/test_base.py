"""Similarities on top of the dot product: β <x, z> + x' M z."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import planted

from hdsl import HDSL, HDSLClassifier, plot

BASE = 7.0


@pytest.fixture(params=["dot", "cosine"])
def learned(request):
    X, y = planted()
    learner = HDSLClassifier(scale=10, preprocess="unit", max_iter=40, normalization=request.param).fit(X, y)
    assert learner.base_ == 0
    return learner._with_model(learner._model.with_base(BASE)), X, y


def expected(learner, X):
    rows = learner.preprocess_rows(X).toarray()
    S = BASE * rows @ rows.T + rows @ learner.get_bilinear_matrix().toarray() @ rows.T
    if learner.normalization == "cosine":
        lengths = np.sqrt(np.diag(S))
        S /= np.where(lengths, lengths, 1)[:, None] * np.where(lengths, lengths, 1)[None]
    return S


def test_all_scores_are_base_plus_learned_part_normalized(learned):
    learner, X, _ = learned
    assert learner.base_ == BASE and learner.explain().base == BASE
    S = expected(learner, X)
    np.testing.assert_allclose(learner.similarity(X), S, atol=1e-12)
    np.testing.assert_allclose(learner.similarity(X, dense_output=False).toarray(), S, atol=1e-12)
    i, j = np.arange(200), np.arange(200)[::-1]
    np.testing.assert_allclose(learner.score_pairs(X, i, j), S[i, j], atol=1e-12)
    np.testing.assert_allclose(learner.pair_score(np.c_[i, j]), S[i, j], atol=1e-12)
    scores, rows = learner.kneighbors(X, 5)
    np.testing.assert_allclose(scores, -np.sort(-S, axis=1)[:, :5], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(S, rows, axis=1), scores, atol=1e-12)


@pytest.mark.parametrize("n_components", [None, 3])
def test_transform_has_the_features_first(learned, n_components):
    learner, X, _ = learned
    learner.set_params(n_components=n_components)
    Z, names = learner.transform(X), learner.get_feature_names_out()
    n_learned = learner.n_atoms_ if n_components is None else 3
    assert Z.shape[1] == len(names) == learner._n_features_out == 400 + n_learned
    np.testing.assert_allclose(Z.toarray()[:, :400], np.sqrt(BASE) * learner.preprocess_rows(X).toarray())
    words = [f"w{f}" for f in range(400)]
    names = learner.get_feature_names_out(words)
    assert list(names[:400]) == words
    assert names[400] == "hdslclassifier0" if n_components else set(names[400]) & set("+-")
    if n_components is None:
        learner.set_params(normalization="dot")
        np.testing.assert_allclose((Z @ Z.T).toarray(), expected(learner, X), atol=1e-12)


def test_contributions_sum_to_the_score(learned):
    learner, X, _ = learned
    for x, z in [(0, 1), (5, 90), (7, 7)]:
        why = learner.explain_pair(X[x], X[z])
        assert set(why["part"]) <= {"base", "learned"}
        assert why["contribution"].sum() == pytest.approx(learner.score_pairs(X, x, z)[0], abs=1e-12)
        base = why[why["part"] == "base"]
        assert (base["feature_x"] == base["feature_z"]).all()
    assert "part" not in learner._with_model(learner._model.with_base(0.0)).explain_pair(X[0], X[1])


def test_base_is_saved_pickled_and_kept_along_the_path(learned, tmp_path):
    learner, X, y = learned
    S = learner.similarity(X)
    assert np.array_equal(pickle.loads(pickle.dumps(learner)).similarity(X), S)
    learner.save(tmp_path / "m.hdsl")
    loaded = HDSLClassifier.load(tmp_path / "m.hdsl", X, y)
    assert loaded.base_ == BASE and np.array_equal(loaded.similarity(X), S)
    assert np.array_equal(loaded.predict(X), learner.predict(X))
    assert learner.at(iteration=3).base_ == BASE
    assert "base of 7" in repr(learner._model)
    named = learner.set_feature_names([f"w{f}" for f in range(400)])
    assert len(named._model.names) == 400


def test_plots_say_that_they_show_the_learned_part(learned):
    pytest.importorskip("matplotlib").use("Agg")
    assert plot.matrix(learned[0]).get_title().startswith("learned part")


def test_similarity_without_a_base_is_normalized_as_well():
    X, y = planted()
    dot = HDSL(scale=10, max_iter=20).fit(X, y)
    cosine = HDSL(scale=10, max_iter=20, normalization="cosine").fit(X, y)
    S = dot.similarity(X)
    lengths = np.sqrt(np.diag(S))
    lengths[lengths == 0] = 1
    np.testing.assert_allclose(cosine.similarity(X), S / np.outer(lengths, lengths), atol=1e-12)
    np.testing.assert_allclose(cosine.kneighbors(X, 1)[0][:, 0], cosine.similarity(X).max(axis=1), atol=1e-12)


@pytest.mark.parametrize("base", [-1.0, np.nan, np.inf])
def test_bad_bases_are_refused(base):
    X, y = planted()
    model = HDSL(scale=10, max_iter=5).fit(X, y)._model
    with pytest.raises(ValueError, match="base"):
        model.with_base(base)
