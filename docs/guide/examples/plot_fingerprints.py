"""
Molecular fingerprints: interchangeable fragments
=================================================

Molecules are often described by the fragments they contain: a hundred thousand binary columns, of which a molecule has some
dozens. Some fragments can replace each other without changing the activity of a molecule (bioisosteres). The similarity
learns them from activities alone.
"""

# %%
# Molecules
# ---------
# Simulated data: a molecule binds to one of three targets. Each target needs one fragment of a group of four
# interchangeable ones; the other fragments have no effect.

import numpy as np
import scipy.sparse as sp

from hdsl import HDSL, HDSLClassifier, plot

rng = np.random.default_rng(1)
n_fragments, each = 100_000, 40
groups = np.arange(12).reshape(3, 4)  # fragments 0 to 3 for the first target, and so on
names = np.array([f"fragment {number}" for number in range(n_fragments)], dtype=object)
names[:12] = [
    "tetrazole", "carboxylate", "sulfonamide acid", "hydroxamate",
    "thiophene", "benzene", "pyridine", "furan",
    "ester", "amide", "oxadiazole", "ketone",
]  # fmt: skip


def molecules(n):
    target = rng.integers(0, 3, n)
    # Random fragments, few of them frequent, as in real collections.
    columns = np.exp(rng.uniform(np.log(12), np.log(n_fragments), (n, each))).astype(int)
    columns[:, 0] = groups[target, rng.integers(0, 4, n)]
    rows = np.repeat(np.arange(n), each)
    X = sp.csr_array((np.ones(n * each), (rows, columns.ravel())), shape=(n, n_fragments))
    X.data[:] = 1
    return X, target


X, y = molecules(800)
X_test, y_test = molecules(400)
print(X.shape, f"{X.nnz / np.prod(X.shape):.4%} of it is not zero")

# %%
# Training with early stopping
# ----------------------------
# Some rows are held out to find the iteration of the lowest error.

learner = HDSLClassifier(
    scale=[1, 10, 100], triplets="random:20", max_iter=200, early_stopping=True, validation_fraction=0.25, n_iter_no_change=50
).fit(X, y)
learner.set_feature_names(names)
print(f"lambda {learner.scale_:g}, {learner.chosen_iter_} iterations, {learner.n_active_features_} fragments")
print(f"error {1 - learner.score(X_test, y_test):.1%}")

# %%
# Interchangeable fragments
# -------------------------

pairs = learner.explain().pairs
pairs[pairs["weight"] > 0].head(10)

# %%
# A low-dimensional map
# ---------------------
# `transform` maps each molecule into a space in which the similarity is a dot product. Two orthogonal coordinates can be
# plotted.

import matplotlib.pyplot as plt

Z = HDSL(scale=10, triplets="random:20", max_iter=60, n_components=2).fit(X, y).transform(X_test).toarray()
fig, ax = plt.subplots(layout="constrained")
for target in range(3):
    ax.scatter(*Z[y_test == target].T, s=12, alpha=0.6, label=f"target {target}")
ax.set(xlabel="first coordinate", ylabel="second coordinate")
ax.legend()

# %%
# The number of fragments in use grows with the iterations, one pair at a time:

plot.active_features(learner)
