"""Rows to search, a similarity learned from some of them, and the true neighbors to compare an engine with."""

import numpy as np
import scipy.sparse as sp

from hdsl import HDSL, Index

rng = np.random.default_rng(0)
N_WORDS, K = 20_000, 10


def rows(n):
    """Eight classes with six words each, of which a row has two; thirty random words."""
    y = rng.integers(0, 8, n)
    words = rng.integers(48, N_WORDS, (n, 32))
    words[:, 0] = 6 * y + rng.integers(0, 3, n)
    words[:, 1] = 6 * y + rng.integers(3, 6, n)
    values = rng.uniform(0.2, 1, words.size)
    starts = np.arange(0, words.size + 1, 32)
    return sp.csr_array((values, words.ravel(), starts), shape=(n, N_WORDS)), y


X, y = rows(20_000)
X_query, y_query = rows(200)
learner = HDSL(scale=10, triplets="random:20", max_iter=100).fit(X[:2000], y[:2000])

# The similarity of two rows is the inner product of their images. Engines want dense
# arrays of 32-bit numbers.
items = learner.transform(X).toarray().astype(np.float32)
queries = learner.transform(X_query).toarray().astype(np.float32)

scores = learner.similarity(X_query, X)
tenth = np.sort(scores, axis=1)[:, -K]


def recall(found):
    """The share of the rows found that are among the ten most similar ones."""
    found = np.asarray(found, dtype=int)
    assert found.shape == (len(queries), K)
    # Rounding to 32 bits may exchange rows of almost the same score.
    true = np.take_along_axis(scores, found, axis=1) >= tenth[:, None] * (1 - 1e-6)
    distinct = sum(len(set(row)) for row in found) == found.size
    assert distinct, "an engine has found a row twice"
    return true.mean()


if __name__ == "__main__":
    print(f"{X.shape[0]:,} rows of {X.shape[1]:,} columns, mapped to {items.shape[1]} dimensions")
    exact = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    print(f"similarity: recall {recall(exact):.3f}")
    found = [[hit.row for hit in hits] for hits in Index(learner).add(X).search(X_query, k=K)]
    print(f"hdsl.Index: recall {recall(found):.3f}")
