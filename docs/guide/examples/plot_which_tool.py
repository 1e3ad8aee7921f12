"""
Comparison of methods
=====================

Three problems, each of which suits another method best. The page :doc:`/which_tool` gives recommendations.
"""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from hdsl import HDSL, HDSLClassifier

rng = np.random.default_rng(4)
tools = {
    "hdsl": HDSLClassifier(scale=[10, 100, 1000], max_iter=300, early_stopping=True, validation_fraction=0.3),
    "linear SVM": LinearSVC(),
    "PCA and k-NN": make_pipeline(TruncatedSVD(40, random_state=0), KNeighborsClassifier(3)),
    "k-NN, cosine": KNeighborsClassifier(3, metric="cosine"),
}


def errors(X, y, X_test, y_test):
    return {name: 1 - clone(tool).fit(X, y).score(X_test, y_test) for name, tool in tools.items()}


def matrix(columns, n_columns):
    """A row for each row of column numbers, with a 1 at each."""
    n, each = columns.shape
    starts = np.arange(0, n * each + 1, each, dtype=np.int32)
    X = sp.csr_matrix((np.ones(n * each), columns.ravel().astype(np.int32), starts), shape=(n, n_columns))
    X.sum_duplicates()
    X.data[:] = 1
    return X


def noise(n, each, low, high):
    """Random columns, few of them frequent, as for words."""
    return np.exp(rng.uniform(np.log(low), np.log(high), (n, each))).astype(int)


results = {}

# %%
# Fixed classes, each with words of its own: linear SVM
# -----------------------------------------------------
# One weight per word and class is sufficient, and a linear SVM estimates it best and fastest.


def sums(n, n_columns=300):
    X = sp.random(n, n_columns, density=0.1, format="csr", random_state=rng)
    weights = np.random.default_rng(0).normal(size=(n_columns, 3))
    return X, np.argmax(X @ weights, axis=1)


results["sums of many words"] = errors(*sums(1500), *sums(800))

# %%
# Dense data of few columns: k-NN on principal components
# -------------------------------------------------------
# Handwritten digits: neighboring pixels are correlated, and no column is noise.

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
results["digits"] = errors(X, y, X_test, y_test)

# %%
# Few relevant columns, in pairs: hdsl
# ------------------------------------
# The class is whether two words of a row agree (both of the first kind or both of the second), so no single word is
# informative.


def agreement(n, n_columns=4000):
    kinds = rng.integers(0, 2, (n, 2))
    columns = noise(n, 32, 16, n_columns)
    columns[:, 0] = 4 * kinds[:, 0] + rng.integers(0, 4, n)
    columns[:, 1] = 8 + 4 * kinds[:, 1] + rng.integers(0, 4, n)
    return matrix(columns, n_columns), (kinds[:, 0] == kinds[:, 1]).astype(int)


results["words that agree"] = errors(*agreement(1500), *agreement(800))

# %%
# The errors
# ----------

(pd.DataFrame(results) * 100).round(1)

# %%

import matplotlib.pyplot as plt

ax = (pd.DataFrame(results).T * 100).plot.bar(rot=0, figsize=(7, 4))
ax.set(ylabel="test error in percent")
ax.figure.set_layout_engine("constrained")

# %%
# Classes that are not in the training data
# -----------------------------------------
# A linear SVM has weights for the classes of the training data only. A similarity compares any two rows. Here a class is a
# combination of three properties, each expressed by one of three interchangeable words. The similarity is learned on six of
# the eight combinations and used to find neighbors among rows of the other two.


def combinations(n, classes):
    y = rng.choice(classes, n)
    columns = noise(n, 40, 18, 3000)
    for bit in range(3):
        columns[:, bit] = 6 * bit + 3 * (y >> bit & 1) + rng.integers(0, 3, n)
    return matrix(columns, 3000), y


X, y = combinations(1000, [0, 1, 4, 5, 6, 7])
learner = HDSL(scale=100, max_iter=200, triplets="random:20").fit(X, y)
shelf, shelf_y = combinations(200, [2, 3])
asked, asked_y = combinations(200, [2, 3])
for name, scores in [("cosine", (asked @ shelf.T).toarray()), ("learned", learner.similarity(asked, shelf))]:
    nearest = np.argmax(scores, axis=1)
    print(f"{name}: the nearest row is of the wrong new class for {np.mean(shelf_y[nearest] != asked_y):.1%}")
