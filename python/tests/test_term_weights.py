"""`preprocess="tfidf"` has the numbers of scikit-learn; `bm25` those of its formula. Neither takes negative values."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from hdsl import HDSL, OASIS, DiagonalSimilarity, HDSLClassifier, mine_triplets

N_FEATURES = 30
TRIPLETS = [[0, 1, 2], [3, 4, 5], [1, 0, 5]]


def counts(rng, n_rows, empty_columns=()):
    X = rng.poisson(rng.uniform(0.05, 1.5, size=N_FEATURES), size=(n_rows, N_FEATURES)).astype(float)
    X[:, list(empty_columns)] = 0
    X[rng.integers(6, n_rows)] = 0
    return sp.csr_array(X)


def fitted(X, kind):
    return HDSL(scale=1, preprocess=kind, max_iter=1).fit_triplets(X, TRIPLETS)


def close(ours, theirs):
    return np.abs(ours.toarray() - theirs.toarray()).max() <= 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_tfidf_has_the_numbers_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    train, later = counts(rng, 40, empty_columns=[3, 17]), counts(rng, 25)
    learner = fitted(train, "tfidf")
    theirs = TfidfTransformer(sublinear_tf=True).fit(train)
    for X in (train, later):
        assert close(learner.preprocess_rows(X), theirs.transform(X))
    # Values that are no counts are taken as they are.
    learner = fitted(train * 0.7, "tfidf")
    theirs = TfidfTransformer(sublinear_tf=False).fit(train * 0.7)
    for X in (train * 0.7, later):
        assert close(learner.preprocess_rows(X), theirs.transform(X))


def test_explicit_zeros_are_zeros():
    X = counts(np.random.default_rng(0), 40)
    with_zeros = X.copy()
    with_zeros.data[::4] = 0
    without = with_zeros.copy()
    without.eliminate_zeros()
    for kind in ("tfidf", "bm25"):
        ours = fitted(with_zeros, kind).preprocess_rows(with_zeros)
        assert close(ours, fitted(without, kind).preprocess_rows(without))
    theirs = TfidfTransformer(sublinear_tf=True).fit_transform(without)
    assert close(fitted(with_zeros, "tfidf").preprocess_rows(with_zeros), theirs)


@pytest.mark.parametrize("seed", range(4))
def test_bm25_has_the_numbers_of_its_formula(seed):
    rng = np.random.default_rng(seed)
    train, later = counts(rng, 40, empty_columns=[3, 17]), counts(rng, 25)
    n, df = train.shape[0], (train.toarray() != 0).sum(axis=0)
    idf = np.log(1 + (n - df + 0.5) / (df + 0.5))
    learner = fitted(train, "bm25")
    for X in (train.toarray(), later.toarray()):
        length = X.sum(axis=1, keepdims=True) / (train.sum() / n)
        weights = X * 2.5 / (X + 1.5 * (0.25 + 0.75 * length)) * idf
        assert np.abs(learner.preprocess_rows(X).toarray() - normalize(weights)).max() <= 1e-12


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_statistics_are_kept_with_the_model(kind, tmp_path):
    rng = np.random.default_rng(0)
    train, later = counts(rng, 40), counts(rng, 25)
    learner = fitted(train, kind)
    want = learner.preprocess_rows(later).toarray()
    learner.save(tmp_path / "m.hdsl")
    for other in (pickle.loads(pickle.dumps(learner)), HDSL.load(tmp_path / "m.hdsl")):
        assert (other.preprocess_rows(later).toarray() == want).all()
    for make in (OASIS(0.1, n_steps=10, preprocess=kind), DiagonalSimilarity(0.1, preprocess=kind)):
        baseline = make.fit_triplets(train, TRIPLETS)
        baseline.save(tmp_path / "b.npz")
        again = pickle.loads(pickle.dumps(baseline))
        for one in (baseline, again, type(make).load(tmp_path / "b.npz")):
            assert (one.preprocess_rows(later).toarray() == want).all()


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_negative_values_are_refused(kind):
    rng = np.random.default_rng(0)
    X, y = counts(rng, 40), np.arange(40) % 2
    bad = X.copy()
    bad.data[bad.indptr[7]] = -2
    message = rf"row 7 has the value -2 for feature {bad.indices[bad.indptr[7]]} .* at least 0.*`{kind}`"
    learner = HDSLClassifier(scale=1, preprocess=kind, triplets="random:2", max_iter=2)
    calls = [
        lambda: learner.fit(bad, y),
        lambda: HDSL(scale=1, preprocess=kind, triplets="random:2", max_iter=2).fit(X, y, X_val=bad, y_val=y),
        lambda: mine_triplets(bad, y, preprocess=kind, triplets="random:2"),
        lambda: OASIS(0.1, n_steps=10, preprocess=kind).fit_triplets(bad, TRIPLETS),
        lambda: DiagonalSimilarity(0.1, preprocess=kind).fit_triplets(bad, TRIPLETS),
    ]
    fit = clone(learner).fit(X, y)
    baseline = OASIS(0.1, n_steps=10, preprocess=kind).fit_triplets(X, TRIPLETS)
    calls += [
        lambda: fit.predict(bad),
        lambda: fit.transform(bad),
        lambda: fit.kneighbors(bad),
        lambda: fit.preprocess_rows(bad),
        lambda: baseline.preprocess_rows(bad),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()
