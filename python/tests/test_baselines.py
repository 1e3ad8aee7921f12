"""The baselines: their objectives and steps by definition, and the same questions answered."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline

from conftest import planted
from hdsl import OASIS, DiagonalSimilarity, mine_triplets


def smoothed_hinge(m):
    return np.where(m >= 1, 0, np.where(m <= 0, 0.5 - m, 0.5 * (1 - m) ** 2))


def diagonal_objective(w, rows, triplets, strength, penalty):
    a, n, f = triplets.T
    products = rows[a] * (rows[n] - rows[f])
    omega = np.abs(w).sum() if penalty == "l1" else (w**2).sum()
    return smoothed_hinge(products @ w).mean() + strength * omega


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("positive", [False, True])
def test_the_weights_minimise_the_objective(penalty, positive):
    X, y = planted(100, 60)
    learner = DiagonalSimilarity(1e-3, penalty=penalty, positive=positive, tol=1e-8).fit(X, y)
    rows, triplets = learner.preprocess_rows(X).toarray(), mine_triplets(X, y)
    if penalty == "l1":
        rows = X.toarray() / np.maximum(abs(X).max(axis=0).toarray(), 1e-300)  # unused features are not kept
    best = diagonal_objective(learner.weights_, rows, triplets, 1e-3, penalty)
    np.testing.assert_allclose(learner.objective_, best, rtol=1e-6)
    assert learner.stop_ == "tolerance" and 0 <= learner.gap_ < 1e-6
    rng = np.random.default_rng(0)
    for size in [1e-3, 1e-2, 1e-1, 1]:
        for _ in range(20):
            other = learner.weights_ + size * rng.normal(size=60) * (rng.random(60) < 0.3)
            other = np.clip(other, 0, None) if positive else other
            assert diagonal_objective(other, rows, triplets, 1e-3, penalty) >= best - 1e-8
    assert not positive or learner.weights_.min() >= 0


def smoothed_hinge_slope(m):
    return np.clip(m - 1, -1, 0)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("strength", [1e-1, 1e-2, 1e-3])
def test_the_weights_are_those_of_l_bfgs(penalty, strength):
    X, y = planted(80, 40)
    rows, triplets = X.toarray(), mine_triplets(X, y, preprocess="none")
    a, n, f = triplets.T
    products = rows[a] * (rows[n] - rows[f])

    # Under l1 a weight is the difference of two that are not below 0, which makes the objective smooth.
    signs = np.array([1, -1]) if penalty == "l1" else np.array([1])

    def objective(parts):
        w = signs @ parts.reshape(len(signs), -1)
        margins = products @ w
        slope = products.T @ smoothed_hinge_slope(margins) / len(margins)
        if penalty == "l1":
            value, gradient = parts.sum(), np.concatenate([slope, -slope]) + strength
        else:
            value, gradient = (w**2).sum(), slope + 2 * strength * w
        return smoothed_hinge(margins).mean() + strength * value, gradient

    bounds = [(0, None)] * 80 if penalty == "l1" else None
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    start = np.zeros(40 * len(signs))
    theirs = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    ours = DiagonalSimilarity(strength, penalty=penalty, preprocess="none", tol=1e-9).fit_triplets(X, triplets)
    assert ours.objective_ == pytest.approx(theirs.fun, rel=1e-6)
    if penalty == "l2":
        # Strictly convex: one solution.
        np.testing.assert_allclose(ours.weights_, theirs.x, atol=1e-3 * np.abs(theirs.x).max())


def test_a_step_of_oasis_solves_its_problem_like_slsqp():
    """Chechik et al., Eq. 5: the nearest W to the one before, plus C times what is left of the loss."""
    rng = np.random.default_rng(1)
    for C in [0.01, 0.05, 10.0]:
        X = rng.normal(size=(3, 3))
        V = np.outer(X[0], X[1] - X[2]).ravel()
        if V @ np.eye(3).ravel() > 1:
            V, X = -V, X[[0, 2, 1]]
        start = np.append(np.eye(3).ravel(), 10.0)
        theirs = minimize(
            lambda v: 0.5 * ((v[:-1] - np.eye(3).ravel()) ** 2).sum() + C * v[-1],
            start,
            jac=lambda v: np.append(v[:-1] - np.eye(3).ravel(), C),
            method="SLSQP",
            bounds=[(None, None)] * 9 + [(0, None)],
            constraints={"type": "ineq", "fun": lambda v: V @ v[:-1] - 1 + v[-1], "jac": lambda v: np.append(V, 1.0)},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        ours = OASIS(C, n_steps=1, preprocess="none").fit_triplets(X, [[0, 1, 2]])
        np.testing.assert_allclose(ours.matrix_.ravel(), theirs.x[:-1], atol=1e-6)


def test_the_l1_penalty_leaves_features_out():
    X, y = planted(300, 1000)
    few, many = DiagonalSimilarity(0.01).fit(X, y), DiagonalSimilarity(1e-4).fit(X, y)
    assert few.n_active_features_ < many.n_active_features_ < 1000
    assert set(few.explain().features["feature"][:5]) <= set(range(12))
    assert len(few.explain().pairs) == 0


def test_oasis_takes_the_steps_of_the_paper():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    # All triplets are the same, so that it does not matter which is drawn.
    x, y, z = X[0], X[1], X[2]
    W, C = np.eye(4), 0.07
    for _ in range(5):
        V = np.outer(x, y - z)
        loss = max(0, 1 - x @ W @ (y - z))
        W = W + min(C, loss / (V**2).sum()) * V
    learner = OASIS(C, n_steps=5, preprocess="none").fit_triplets(X, [[0, 1, 2]])
    np.testing.assert_allclose(learner.matrix_, W, rtol=1e-12)
    assert learner.n_iter_ == 5
    symmetric = OASIS(C, n_steps=5, preprocess="none", finish="symmetric").fit_triplets(X, [[0, 1, 2]])
    np.testing.assert_allclose(symmetric.matrix_, (W + W.T) / 2, rtol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiagonalSimilarity(1e-4),
        lambda: DiagonalSimilarity(1e-4, penalty="l2", positive=True, preprocess="unit"),
        lambda: OASIS(0.1),
        lambda: OASIS(0.1, finish="psd", preprocess="unit"),
    ],
)
class TestTheSameInterface:
    def test_scores_neighbors_and_reasons_agree(self, make):
        X, y = planted(120, 50)
        learner = make().fit(X, y)
        M, rows = learner.get_bilinear_matrix(), learner.preprocess_rows(X)
        S = (rows @ M @ rows.T).toarray()
        np.testing.assert_allclose(learner.similarity(X), S, atol=1e-9)
        np.testing.assert_allclose(learner.score_pairs(X, [3, 7], [9, 1]), S[[3, 7], [9, 1]], atol=1e-9)
        np.testing.assert_allclose(learner.pair_score([[3, 9]]), S[[3], [9]], atol=1e-9)
        np.testing.assert_allclose(learner.kneighbors(X, 4)[0], -np.sort(-S, axis=1)[:, :4], atol=1e-9)
        np.fill_diagonal(S, -np.inf)
        scores, near = learner.kneighbors(n_neighbors=4)
        np.testing.assert_allclose(scores, -np.sort(-S, axis=1)[:, :4], atol=1e-9)
        assert (near != np.arange(120)[:, None]).all()
        why = learner.explain_pair(X[3], X[9])
        np.testing.assert_allclose(why["contribution"].sum(), S[3, 9], atol=1e-9)
        assert learner.predict(X).shape == y.shape
        assert sp.issparse(learner.get_bilinear_matrix())

    def test_it_learns(self, make):
        X, y = planted(300, 100)
        X_test, y_test = planted(200, 100, seed=1)
        learner = make().fit(X, y)
        assert learner.score(X_test, y_test) > 0.4  # chance is a quarter

    def test_copies_and_threads(self, make):
        X, y = planted(120, 50)
        learner = make().fit(X, y)
        for other in [pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner), make().set_params(n_jobs=1).fit(X, y)]:
            np.testing.assert_array_equal(other.similarity(X), learner.similarity(X))
            np.testing.assert_array_equal(other.predict(X), learner.predict(X))

    def test_triplets_weights_and_listeners(self, make):
        X, y = planted(120, 50)
        triplets = mine_triplets(X, y, preprocess=make().preprocess)
        heard = []
        given = make().set_params(callback=heard.append).fit_triplets(X, triplets, y=y)
        np.testing.assert_allclose(given.similarity(X), make().fit(X, y).similarity(X), atol=1e-9)
        assert heard and heard[-1]["iteration"] == given.n_iter_
        stopped = make().set_params(callback=lambda facts: True).fit(X, y)
        assert stopped.stop_ == "interrupted" and stopped.n_iter_ == heard[0]["iteration"]
        with pytest.raises(ValueError, match="triplets"):
            make().fit_triplets(X, [[0, 1]])


def test_a_map_that_is_an_inner_product_gives_scores():
    X, y = planted(120, 50)
    for learner in [DiagonalSimilarity(1e-4, positive=True), OASIS(0.1, finish="psd")]:
        Z = learner.fit(X, y).transform(X)
        Z = Z.toarray() if sp.issparse(Z) else Z
        np.testing.assert_allclose(Z @ Z.T, learner.similarity(X), atol=1e-8)
        assert Z.shape[1] == len(learner.get_feature_names_out())


def test_warm_start_of_the_weights():
    X, y = planted(200, 100)
    learner = DiagonalSimilarity(1e-4, tol=1e-6, warm_start=True).fit(X, y)
    first = learner.n_iter_
    assert learner.fit(X, y).n_iter_ < first


def test_too_many_features_for_a_matrix_are_refused():
    X = sp.csr_matrix((np.ones(20), (np.arange(20), np.arange(20))), shape=(20, 1_000_000))
    with pytest.raises(ValueError, match="PCA or random projections"):
        OASIS(triplets="random:2").fit(X, np.arange(20) % 2)
    few = make_pipeline(TruncatedSVD(5), OASIS(triplets="random:2")).fit(X[:, :50], np.arange(20) % 2)
    assert few.predict(X[:, :50]).shape == (20,)


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (DiagonalSimilarity, "strength", 0),
        (DiagonalSimilarity, "penalty", "l3"),
        (DiagonalSimilarity, "tol", -1),
        (DiagonalSimilarity, "triplets", "none"),
        (OASIS, "aggressiveness", np.inf),
        (OASIS, "n_steps", 0),
        (OASIS, "sampling", "rows"),
        (OASIS, "finish", "round"),
    ],
)
def test_bad_parameters_are_named(estimator, name, value):
    with pytest.raises(ValueError, match=name):
        estimator(**{name: value}).fit(*planted(40, 20))


@pytest.mark.parametrize("learner", [DiagonalSimilarity(strength=1e-3, random_state=3), OASIS(0.2, n_steps=200)])
def test_a_saved_rival_comes_back(tmp_path, learner):
    X, y = planted(100, 60)
    learned = learner.fit(X, y)
    file = tmp_path / "baseline.npz"
    learned.save(file)
    again = type(learned).load(file, X)
    np.testing.assert_array_equal(again.similarity(X), learned.similarity(X))
    np.testing.assert_array_equal(again.kneighbors(X)[1], learned.kneighbors(X)[1])
    assert again.get_params() == learned.get_params() and again.stop_ == learned.stop_
    assert [path.name for path in tmp_path.iterdir()] == ["baseline.npz"]
    assert type(learned).load(file, n_neighbors=9).n_neighbors == 9


def test_other_files_are_refused(tmp_path):
    X, y = planted(100, 60)
    file = tmp_path / "baseline.npz"
    OASIS(n_steps=5).fit(X, y).save(file)
    with pytest.raises(ValueError, match=r"baseline\.npz: contains OASIS .* expected DiagonalSimilarity"):
        DiagonalSimilarity.load(file)
    file.write_text("nothing of the kind")
    with pytest.raises(ValueError, match=r"baseline\.npz: not a file of OASIS\.save"):
        OASIS.load(file)
    with pytest.raises(FileNotFoundError):
        OASIS.load(tmp_path / "absent.npz")


def test_oasis_goes_on_from_where_it_was():
    X, y = planted(100, 60)
    scaled = OASIS(n_steps=1).fit(X, y).preprocess_rows(X).toarray()
    triplets = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    learned = OASIS(0.3, n_steps=1, sampling="triplets").fit_triplets(X, triplets[:1])
    learned.partial_fit_triplets(X, triplets[1:2]).partial_fit_triplets(X, triplets[2:])
    W = np.eye(X.shape[1])
    for a, n, f in triplets:  # the update of the paper, one triplet after the other
        V = np.outer(scaled[a], scaled[n] - scaled[f])
        loss = max(0.0, 1 - (W * V).sum())
        if loss > 0 and (V * V).sum() > 0:
            W += min(0.3, loss / (V * V).sum()) * V
    np.testing.assert_allclose(learned.matrix_, W, atol=1e-12)
    with pytest.raises(ValueError, match="features"):
        learned.partial_fit_triplets(X[:, :3], triplets)
    fresh = OASIS(0.3, n_steps=1, sampling="triplets").partial_fit_triplets(X, triplets[:1])
    assert fresh.n_triplets_ == 1
