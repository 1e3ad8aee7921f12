"""The systems: what they compute is checked by other means."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize

from experiments import data
from experiments.cells import SETTINGS, Context, cell
from experiments.comparison import paired, summary
from experiments.figure3 import curve
from experiments.systems import SYSTEMS, diagonal, pairs, projections
from experiments.systems.base import Problem, error
from experiments.systems.neighbors import by_dot_product, by_scores


def problem(name: str = "planted_4", seed: int = 0) -> tuple[Problem, data.Parts]:
    parts = data.load(name, None, seed)
    return Problem(parts.train, parts.valid, "knn:3:5", seed, Context(None)), parts


def test_votes_by_our_engine_and_by_dense_products_agree():
    asked, parts = problem()
    block = (parts.test.X @ parts.train.X.T).toarray()
    assert (by_scores(block, parts.train.y) == by_dot_product(parts.train)(parts.test.X)).all()


def test_cosine_works_like_sklearn():
    asked, parts = problem()
    # scikit-learn breaks ties in another way: rows without any are compared.
    block = np.sort((normalize(parts.test.X) @ normalize(parts.train.X).T).toarray(), axis=1)
    clear = (np.diff(block[:, -4:], axis=1) > 1e-9).all(axis=1)
    theirs = KNeighborsClassifier(3, metric="cosine").fit(parts.train.X, parts.train.y).predict(parts.test.X)
    ours = SYSTEMS["cosine"].fit(asked).predict(parts.test.X)
    near = KNeighborsClassifier(3, metric="cosine").fit(parts.train.X, parts.train.y).kneighbors(parts.test.X)[1]
    same = np.array([len(set(parts.train.y[row])) < 3 for row in near])  # a three-way tie of votes
    assert clear.sum() > 5
    assert (ours == theirs)[clear & same].all()


def test_projections_by_products_of_rows_are_those_of_pca():
    asked, parts = problem()
    project, most, _ = projections.pca(asked, 30)
    theirs = PCA(30).fit(parts.train.X.toarray())
    ours, expected = project(parts.test.X), theirs.transform(parts.test.X.toarray())
    # Axes may point the other way.
    assert np.abs(np.abs(ours) - np.abs(expected)).max() < 1e-8
    sparse = PCA(10, svd_solver="arpack").fit(parts.train.X).transform(parts.test.X)
    assert np.abs(np.abs(ours[:, :10]) - np.abs(sparse)).max() < 1e-6


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_the_dimension_is_the_rank_of_the_matrix(scale):
    asked, parts = problem()
    learner = pairs.learn(asked, scale, "alternating", "decrease", None, 150, 150, 10)
    for iteration in (0, 1, 5, 20, 80, len(learner.path_) - 1):
        there = learner.at(iteration=min(iteration, len(learner.path_) - 1))
        # By the vectors, whose weights may be too small for a numerical rank of their sum.
        (i, j, _), signs = there._model.atoms()
        vectors = np.zeros((len(signs), parts.train.X.shape[1]))
        vectors[np.arange(len(signs)), i] = 1
        vectors[np.arange(len(signs)), j] = signs
        rank = np.linalg.matrix_rank(vectors)
        assert pairs.dimension(there) == rank


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in ("svd_lmnn", "svd_scml")])
def test_every_system_keeps_its_promises(name):
    asked, parts = problem()
    system = SYSTEMS[name]
    fitted = system.fit(asked, **system.grid(SETTINGS["tiny"]))
    assert error(fitted.predict(parts.valid.X), parts.valid) == pytest.approx(fitted.valid_error)
    assert 0 < fitted.n_features <= parts.train.X.shape[1]
    # The best that was tried is what is kept.
    kept = [one["valid_error"] for one in fitted.tried if not one.get("scout")]
    if kept:
        assert fitted.valid_error == pytest.approx(min(kept), abs=1e-5)
    again = system.fit(asked, **system.grid(SETTINGS["tiny"]))
    assert (again.predict(parts.test.X) == fitted.predict(parts.test.X)).all()
    # Most planted rows can be told apart by whoever learns.
    if name.startswith(("hdsl", "diag", "svm")):
        assert error(fitted.predict(parts.test.X), parts.test) < 0.3


def test_the_front_is_what_no_other_point_beats():
    random = np.random.default_rng(0)
    points = [(int(n), float(e)) for n, e in zip(random.integers(1, 50, 200), random.integers(0, 100, 200) / 100)]
    kept = pairs.front(points)
    for n, e in kept:
        assert not any((a <= n and b < e) or (a < n and b <= e) for a, b in points)
    best = {n: min(e for a, e in points if a <= n) for n, _ in points}
    for n, e in best.items():
        assert [b for a, b in kept if a <= n][-1] == e


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_diagonal_that_is_kept_is_not_the_last_one(penalty):
    asked, parts = problem()
    strengths = [1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1e8]
    fitted = diagonal.fit(asked, penalty=penalty, strengths=strengths, max_iter=2000)
    assert error(fitted.predict(parts.valid.X), parts.valid) == pytest.approx(fitted.valid_error)
    for one in fitted.tried:
        alone = diagonal.fit(asked, penalty=penalty, strengths=[one["strength"]], max_iter=2000)
        assert error(alone.predict(parts.valid.X), parts.valid) == pytest.approx(alone.valid_error)
    assert fitted.choice["strength"] > 1e-9


def test_random_projections_keep_lengths_on_average():
    asked, parts = problem()
    exact = parts.train.X.multiply(parts.train.X).sum(axis=1).A1
    ratios = []
    for seed in range(100):
        project, most, factor = projections.random_projection(Problem(asked.train, asked.valid, "", seed, None), 20)
        ratios.append(((factor(5) * project(parts.train.X)[:, :5]) ** 2).sum(axis=1) / exact)
    # 100 draws of 5 coordinates: a standard error of sqrt(2 / 500) a row.
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


def test_comparisons_of_seeds():
    def results(*errors):
        made = [cell("classify", "dexter", "x", seed, 1) for seed in range(len(errors))]
        return [(one, {"test_error": error, "n_features": 10}) for one, error in zip(made, errors)]

    ours, theirs = results(0.1, 0.2, 0.3), results(0.2, 0.2, 0.2)
    found = summary(ours)
    assert found.mean == pytest.approx(0.2) and found.deviation == pytest.approx(0.1)
    assert paired(ours, theirs).startswith("+0.0 [1/1/1] p 1")
    assert paired(ours, []) == "–"


def test_curves_of_different_dimensions_have_a_mean():
    several = [
        [{"dimension": 1, "test_error": 0.4}, {"dimension": 4, "test_error": 0.2}],
        [{"dimension": 1, "test_error": 0.2}, {"dimension": 2, "test_error": 0.1}],
    ]
    xs, ys = curve(several)
    assert xs[0] == 1 and ys[0] == pytest.approx(0.3)
    assert xs[-1] == 4 and ys[-1] == pytest.approx(0.15)
