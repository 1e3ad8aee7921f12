"""Every kind of matrix gives the same model; what is wrong is named; nothing is changed, nothing is made dense."""

import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from conftest import planted
from hdsl import HDSL, HDSLClassifier, TripletHDSL, mine_triplets


def with_index_type(X, index):
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


FORMS = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "coo_matrix": sp.coo_matrix,
    "int32 indices": lambda X: with_index_type(X, np.int32),
    "int64 indices": lambda X: with_index_type(X, np.int64),
    "ndarray": lambda X: X.toarray(),
    "Fortran order": lambda X: np.asfortranarray(X.toarray()),
    "list": lambda X: X.toarray().tolist(),
    "data frame": lambda X: pd.DataFrame(X.toarray()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_model(form, problem):
    X, y = problem
    expected = HDSL(max_iter=20).fit(X, y)
    learned = HDSL(max_iter=20).fit(FORMS[form](X), y)
    assert learned._model.to_bytes() == expected._model.to_bytes()
    np.testing.assert_array_equal(learned.similarity(FORMS[form](X)), expected.similarity(X))
    assert sp.issparse(learned.transform(FORMS[form](X))) == sp.issparse(FORMS[form](X))


def test_single_precision_is_computed_in_double(problem):
    X, y = problem
    singles = X.astype(np.float32)
    learned = HDSL(max_iter=20).fit(singles, y)
    assert learned._model.to_bytes() == HDSL(max_iter=20).fit(singles.astype(np.float64), y)._model.to_bytes()


def test_unsorted_and_repeated_indices_mean_what_scipy_means(problem):
    X, y = problem
    shuffled = X.copy()
    for row in range(X.shape[0]):
        part = slice(*X.indptr[row : row + 2])
        shuffled.indices[part] = X.indices[part][::-1]
        shuffled.data[part] = X.data[part][::-1]
    shuffled.has_sorted_indices = False
    shuffled.has_canonical_format = False
    before = shuffled.indices.copy()
    expected = HDSL(max_iter=20).fit(X, y)._model.to_bytes()
    assert HDSL(max_iter=20).fit(shuffled, y)._model.to_bytes() == expected
    np.testing.assert_array_equal(shuffled.indices, before)  # the caller's matrix stays as it was
    halves = sp.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    assert HDSL(max_iter=20).fit(halves, y)._model.to_bytes() == expected
    assert halves.nnz == 2 * X.nnz


def test_matrices_that_may_not_be_written_to_will_do(problem):
    X, y = problem
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    HDSLClassifier(max_iter=5).fit(X, y).predict(X)


@pytest.mark.parametrize("base", [0, 1])
def test_a_million_columns_are_never_made_dense(base):
    rng = np.random.default_rng(0)
    n, d, each = 500, 1_000_000, 30
    columns = np.sort(rng.integers(0, d, (n, each)), axis=1).astype(np.int32)
    X = sp.csr_matrix((np.ones(n * each), columns.ravel(), np.arange(n + 1) * each), shape=(n, d))
    X.sum_duplicates()
    y = rng.integers(0, 3, n)
    tracemalloc.start()
    learned = HDSLClassifier(scale=100, base=base, max_iter=20, triplets="random:5", n_neighbors=1).fit(X, y)
    Z = learned.transform(X)
    learned.predict(X), learned.explain(), learned.similarity(X[:10]), learned.explain_pair(X[0], X[1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Z.shape == (n, learned.n_atoms_ + base * d)
    # One dense row would take 8 MB, all of them 4 GB.
    assert peak < 8e6, f"{peak / 1e6:.1f} MB"
    # What the compiled half takes is not traced, but the system knows.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2e6, "kB"


def test_the_memory_of_a_fit_goes_by_the_values_not_the_columns():
    script = """
import resource, sys
import numpy as np, scipy.sparse as sp
from hdsl import HDSLClassifier
n, d, each = 2000, int(sys.argv[1]), 30
rng = np.random.default_rng(0)
X = sp.csr_matrix((np.ones(n * each), rng.integers(0, d, n * each), np.arange(n + 1) * each), shape=(n, d))
HDSLClassifier(max_iter=10, triplets="random:3", n_jobs=1).fit(X, rng.integers(0, 3, n)).predict(X[:50])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

    def kilobytes(d):
        return int(subprocess.check_output([sys.executable, "-c", script, str(d)]))

    few, many = kilobytes(10_000), kilobytes(100_000_000)
    # One number a column would take 100 MB at the least.
    assert many - few < 60_000, f"{few} kB with 10,000 columns, {many} kB with 100,000,000"


def test_values_that_fit_are_not_copied():
    rng = np.random.default_rng(0)
    X = sp.random(2000, 5000, density=0.1, format="csr", random_state=rng)
    assert X.indices.dtype == np.int32
    learned = HDSL(max_iter=1, triplets="random:1").fit(X, rng.integers(0, 2, 2000))
    assert np.shares_memory(learned._fit_X.data, X.data)


BAD = {
    "not a number": (lambda X, y: (np.where(X == 0, np.nan, X), y), "Input X contains NaN"),
    "infinite": (lambda X, y: (np.where(X == 0, np.inf, X), y), "Input X contains infinity"),
    "sparse and not a number": (lambda X, y: (sp.csr_matrix(np.where(X == 0, np.nan, X)), y), "X contains NaN"),
    "strings": (lambda X, y: (np.full(X.shape, "a"), y), "could not convert string to float"),
    "empty": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "no columns": (lambda X, y: (X[:, :0], y), "0 feature"),
    "one column": (lambda X, y: (X[:, :1], y), "n_features=1"),
    "one dimension": (lambda X, y: (X[0], y), "Expected 2D array"),
    "three dimensions": (lambda X, y: (X[None], y), "dim 3"),
    "one class": (lambda X, y: (X, np.zeros(len(y))), "1 class"),
    "labels missing": (lambda X, y: (X, None), "y"),
    "too few labels": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    "a number for each row": (lambda X, y: (X, np.linspace(0, 1, len(y))), "label type"),
    "labels that are no numbers": (lambda X, y: (X, np.where(y == 0, np.nan, y)), "y contains NaN"),
    "complex": (lambda X, y: (X + 1j, y), "Complex data not supported"),
    "nothing in it": (lambda X, y: (np.zeros_like(X), y), "no row holds a feature"),
    "all alone": (lambda X, y: (X, np.arange(len(y))), "no two rows share a label"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("estimator", [HDSL, HDSLClassifier])
def test_bad_data_are_named(what, estimator, problem):
    X, y = problem
    make, message = BAD[what]
    X, y = make(X.toarray(), y)
    with pytest.raises(ValueError, match=message):
        estimator(max_iter=5).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale", -1),
        ("scale", "large"),
        ("scale", [1, -1]),
        ("scale", []),
        ("scale", np.nan),
        ("triplets", "knn:0:1"),
        ("triplets", "nearest"),
        ("preprocess", "minmax"),
        ("loss", "hinge"),
        ("search", "greedy"),
        ("step_rule", "backward"),
        ("euclidean", 1),
        ("class_weight", 3),
        ("batch", 0),
        ("max_iter", -1),
        ("max_iter", 1.5),
        ("tol", 0),
        ("max_features", 1),
        ("time", 0),
        ("memory", -5),
        ("validation_fraction", 1.0),
        ("n_iter_no_change", 0),
        ("eval_every", 0),
        ("n_neighbors", 0),
        ("vote", "loud"),
        ("normalization", "sine"),
        ("n_components", 0),
        ("random_state", "seed"),
        ("n_jobs", 1.5),
        ("n_jobs", 0),
        ("callback", 3),
        ("warm_start", "yes"),
    ],
)
def test_bad_parameters_are_named(name, value, problem):
    estimator = HDSLClassifier(**{name: value})  # kept as given
    with pytest.raises(ValueError, match=name):
        estimator.fit(*problem)


def test_parameters_that_do_not_go_together(problem):
    X, y = problem
    with pytest.raises(ValueError, match="tol cannot be used with batch"):
        HDSL(tol=0.1, batch=10).fit(X, y)
    with pytest.raises(ValueError, match="validation rows"):
        HDSL(scale=[1, 10]).fit(X, y)
    with pytest.raises(ValueError, match="X_val and y_val"):
        HDSL().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="validation_fraction.*1 anchors"):
        HDSL(early_stopping=True).fit_triplets(X, [[0, 1, 2]])
    with pytest.raises(MemoryError, match="memory"):
        HDSL(memory=1000).fit(X, y)


@pytest.mark.parametrize(
    ("triplets", "message"),
    [
        ([[0, 1]], "expected \\(n_triplets, 3\\)"),
        ([[0, 1, 10_000]], "row 10000"),
        ([[0, -1, 2]], "row -1"),
        ([[0.5, 1, 2]], "whole numbers"),
        ([[0, 1, 1]], "row 1"),
        (np.empty((0, 3), dtype=int), "0 sample"),
        ([["a", "b", "c"]], "whole numbers"),
    ],
)
def test_bad_triplets_are_named(triplets, message, problem):
    with pytest.raises(ValueError, match=message):
        HDSL().fit_triplets(problem[0], triplets)
    with pytest.raises(ValueError, match=message):
        TripletHDSL(preprocessor=problem[0]).fit(triplets)


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 1.0], [0.0, 0.0], [np.nan, 1.0], ["a", "b"]])
def test_bad_weights_are_named(weights, problem):
    with pytest.raises(ValueError, match="sample_weight|Sample weights|could not convert"):
        HDSL().fit_triplets(problem[0], [[0, 1, 2], [1, 0, 2]], sample_weight=weights)


def test_bad_questions_are_named(problem):
    X, y = problem
    learned = HDSLClassifier(max_iter=5).fit(X, y)
    with pytest.raises(ValueError, match="expecting 400 features"):
        learned.predict(X[:, :-1])
    with pytest.raises(ValueError, match="names row 200"):
        learned.score_pairs(X, [0], [200])
    with pytest.raises(ValueError, match="whole numbers"):
        learned.score_pairs(X, [0.5], [1])
    with pytest.raises(ValueError, match="n_neighbors"):
        learned.kneighbors(n_neighbors=200)
    with pytest.raises(TypeError, match="n_neighbors"):
        learned.kneighbors(n_neighbors=1.5)
    with pytest.raises(ValueError, match="expected one"):
        learned.explain_pair(X[:2], X[0])
    with pytest.raises(ValueError, match="number of features"):
        learned.explain(["a", "b"])
    with pytest.raises(ValueError, match="one of"):
        learned.at()
    with pytest.raises(ValueError, match="iterate 99"):
        learned.at(iteration=99)
    with pytest.raises(ValueError, match="at most 1 features"):
        learned.at(n_features=1)
    with pytest.raises(ValueError, match="shape"):
        learned.pair_score(np.zeros((3, 4), dtype=int))
    with pytest.raises(NotFittedError):
        HDSL().transform(X)


def test_broken_matrices_are_refused(problem):
    X, y = problem
    broken = X.copy()
    broken.indices[3] = 10_000
    with pytest.raises(ValueError, match="do not fit together"):
        HDSL().fit(broken, y)
    broken = X.copy()
    broken.indices[3] = -1
    with pytest.raises(ValueError, match="do not fit together"):
        HDSL().fit(broken, y)


@pytest.mark.parametrize("make", [list, np.array, pd.Series, lambda y: np.array(y, dtype=object)])
def test_labels_of_any_kind(make):
    X, y = planted()
    words = ["one", "two", "three", "four"]
    classifier = HDSLClassifier(scale=20, max_iter=100).fit(X, make([words[c] for c in y]))
    assert list(classifier.classes_) == sorted(words)
    assert classifier.score(X, [words[c] for c in y]) > 0.9


def test_labels_that_files_would_confuse_are_kept_apart():
    X, y = planted()
    names = np.array(["1", "1.0", "+1", "2"])
    confused = HDSLClassifier(scale=20, max_iter=100).fit(X, names[y])
    plain = HDSLClassifier(scale=20, max_iter=100).fit(X, y)
    assert list(confused.classes_) == sorted(names)
    np.testing.assert_array_equal(confused.predict(X), names[plain.predict(X)])


def test_mining_gives_what_fit_learns_from(problem):
    X, y = problem
    for source in ["knn:2:3", "random:4"]:
        triplets = mine_triplets(X, y, triplets=source, random_state=3)
        anchor, near, far = triplets.T
        assert (y[anchor] == y[near]).all() and (y[anchor] != y[far]).all() and (anchor != near).all()
        mined = HDSL(scale=100, triplets=source, random_state=3, max_iter=20).fit(X, y)
        given = HDSL(scale=100, random_state=3, max_iter=20).fit_triplets(X, triplets)
        np.testing.assert_array_equal(mined.similarity(X), given.similarity(X))
