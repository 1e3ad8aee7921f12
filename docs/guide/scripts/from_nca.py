import time

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline

from hdsl import HDSLClassifier

rng = np.random.default_rng(0)


def rows(n, n_columns=50_000):
    """Six classes with five columns each, of which a row has one; forty random columns."""
    y = rng.integers(0, 6, n)
    columns = np.exp(rng.uniform(np.log(30), np.log(n_columns), (n, 41))).astype(int)
    columns[:, 0] = 5 * y + rng.integers(0, 5, n)
    X = sp.coo_array((np.ones(columns.size), (np.repeat(np.arange(n), 41), columns.ravel())), (n, n_columns))
    return X.tocsr(), y


X, y = rows(1500)
X_test, y_test = rows(1000)


def measure(name, model):
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    error = 1 - model.score(X_test, y_test)
    print(f"{name}: error {error:.1%}")
    return seconds


# Before: NCA takes dense arrays of few columns, so an SVD comes first.
before = measure(
    "SVD, NCA, 3-NN",
    make_pipeline(
        TruncatedSVD(50, random_state=0),
        NeighborhoodComponentsAnalysis(random_state=0, max_iter=30),
        KNeighborsClassifier(3),
    ),
)
# After: the sparse matrix as it is.
learner = HDSLClassifier(scale=100, triplets="random:20", max_iter=200)
after = measure("HDSL, 3-NN", learner)
print(f"{learner.n_active_features_} of {X.shape[1]:,} columns are in use")
assert after < before
