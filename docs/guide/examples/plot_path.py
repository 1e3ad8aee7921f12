"""
The path: choosing λ and the number of features
===============================================

Training adds at most one pair of features per iteration and stores every step. One fit therefore contains a whole family of models,
from two features to hundreds, and choosing among them needs no further training.
"""

# %%
# One fit for each λ
# ------------------
# λ is the size of the domain. Several values are tried in one fit, on validation rows.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

from hdsl import HDSLClassifier, plot

rng = np.random.default_rng(3)


def rows(n, n_columns=3000):
    """Six classes with five marker columns each, of which a row has one, and twenty random columns."""
    y = rng.integers(0, 6, n)
    columns = rng.integers(30, n_columns, (n, 21))
    columns[:, 0] = 5 * y + rng.integers(0, 5, n)
    X = sp.csr_array((rng.uniform(0.5, 1, n * 21), (np.repeat(np.arange(n), 21), columns.ravel())), shape=(n, n_columns))
    return X, y


X, y = rows(600)
X_val, y_val = rows(300)
X_test, y_test = rows(600)
learner = HDSLClassifier(scale=[1, 10, 100, 1000], max_iter=300).fit(X, y, X_val=X_val, y_val=y_val)
pd.DataFrame(learner.scale_results_)

# %%
# The run of the best λ: the objective decreases to the end, the validation error is lowest long before.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.objective(learner, axes[0])
path = pd.DataFrame(learner.path_).dropna()
axes[1].plot(path["iteration"], path["valid_error"], marker=".")
axes[1].axvline(learner.chosen_iter_, color="0.5", linestyle=":", label="in use")
axes[1].set(xlabel="iteration", ylabel="validation error", ylim=(0, None))
axes[1].legend()

# %%
# Fewer features
# --------------
# `at` returns a sparser model of the path, with a higher error.

for n_features in [5, 10, 20, 30, 60]:
    sparse = learner.at(n_features=n_features)
    print(
        f"at most {n_features:3} features: {sparse.n_active_features_:3} used, "
        f"validation error {1 - sparse.score(X_val, y_val):.1%}"
    )

# %%
# The error against the dimension of the map, compared with principal components:

from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

components = []
for dim in [2, 5, 10, 20, 40]:
    pca = make_pipeline(TruncatedSVD(dim, random_state=0), KNeighborsClassifier(3)).fit(X, y)
    components.append((dim, 1 - pca.score(X_test, y_test)))
plot.error(learner, X_test, y_test, others={"principal components": components})

# %%
# Saving the model
# ----------------
# The file contains the whole path, and the command line program `hdsl` reads it: `hdsl explain m.hdsl --max-features 10`.

import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "m.hdsl")
    learner.save(file)
    print(os.path.getsize(file), "bytes")
    again = HDSLClassifier.load(file, X, y)
assert again.at(n_features=10) is not None
np.testing.assert_array_equal(again.predict(X_test), learner.predict(X_test))
