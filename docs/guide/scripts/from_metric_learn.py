import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

from hdsl import HDSL, TripletHDSL
from hdsl.model_selection import AnchorKFold

rng = np.random.default_rng(0)
n, n_columns = 600, 5_000
y = rng.integers(0, 6, n)
columns = rng.integers(30, n_columns, (n, 21))
columns[:, 0] = 5 * y + rng.integers(0, 5, n)
X = sp.csr_array((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 21)), (n, n_columns))
X.sum_duplicates()

# Triplets of rows, as metric-learn has them: anchor, near, far.
anchor = rng.integers(0, n, 6000)
near, far = rng.integers(0, n, (2, 6000))
keep = (y[anchor] == y[near]) & (y[anchor] != y[far]) & (anchor != near)
triplets = np.column_stack([anchor, near, far])[keep]

# metric-learn: SCML(preprocessor=X.toarray()).fit(triplets)
learner = TripletHDSL(preprocessor=X, scale=100, max_iter=200).fit(triplets)
print(f"{learner.score(triplets):.1%} of the training triplets are in order")

# All triplets of an anchor belong in the same fold.
scores = cross_val_score(learner, triplets, cv=AnchorKFold(3), groups=None)
print(f"{scores.mean():.1%} of those of new anchors")

# metric-learn: LMNN().fit(X, y).transform(X)
Z = HDSL(scale=100, triplets="random:20", max_iter=200).fit(X, y).transform(X)
print(f"rows mapped from {X.shape[1]:,} to {Z.shape[1]} dimensions; search them by inner product")

# metric-learn: get_mahalanobis_matrix(), dense
M = learner.get_bilinear_matrix()
print(f"M has {M.nnz:,} of {M.shape[0] * M.shape[1]:,} entries")

# metric-learn: pair_score(pairs); both are larger for more similar rows
first = learner.pair_score(triplets[:3, :2])
second = learner.pair_score(triplets[:3, ::2])
print("near", first.round(2), "far", second.round(2))
