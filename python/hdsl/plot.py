"""Plots of a run and of the learned similarity, with matplotlib.

Each function takes a fitted learner (:class:`hdsl.HDSL` and the like), draws into the matplotlib axes `ax`, new ones by
default, and returns them.

>>> from sklearn.datasets import load_iris
>>> from hdsl import HDSL, plot
>>> learner = HDSL(scale=10, max_iter=20).fit(*load_iris(return_X_y=True))
>>> plot.active_features(learner).get_ylabel(), plot.objective(learner).get_yscale()
('in use', 'log')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

__all__ = ["active_features", "error", "matrix", "objective"]

#: Colors of positive and negative entries, distinguishable without red-green vision.
ALIKE, UNLIKE = "#0b6bb8", "#d1491b"


def _axes(ax: Any) -> Any:
    """The given axes, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("hdsl.plot needs matplotlib; install it with `pip install hdsl[plot]`.") from error
    return plt.subplots(layout="constrained")[1]


def _mark_chosen(learner: Any, ax: Any) -> None:
    if learner.chosen_iter_ < len(learner.path_) - 1:
        ax.axvline(learner.chosen_iter_, color="0.5", linestyle=":", label="in use")


def active_features(learner: Any, ax: Any = None) -> Any:
    """Features and pairs of features in use against iterations."""
    check_is_fitted(learner)
    ax, path = _axes(ax), learner.path_
    ax.plot(path["iteration"], path["n_features"], label="features", color=ALIKE)
    ax.plot(path["iteration"], path["n_atoms"], label="pairs of features", color=UNLIKE, linestyle="--")
    _mark_chosen(learner, ax)
    ax.set(xlabel="iteration", ylabel="in use", ylim=(0, None))
    ax.legend()
    return ax


def objective(learner: Any, ax: Any = None) -> Any:
    """Objective and gap against iterations, on a logarithmic axis.

    The gap is an upper bound of the distance to the optimum only if the search is exact; otherwise it is an estimate. Values
    of 0 are left out.
    """
    check_is_fitted(learner)
    ax, path = _axes(ax), learner.path_
    for name, color, style in [("objective", ALIKE, "-"), ("gap", UNLIKE, "--")]:
        values = np.where(path[name] > 0, path[name], np.nan)
        ax.plot(path["iteration"], values, label=name, color=color, linestyle=style)
    _mark_chosen(learner, ax)
    ax.set(xlabel="iteration", ylabel="mean loss", yscale="log")
    ax.legend()
    return ax


def matrix(learner: Any, ax: Any = None, *, zoom: bool = True, names: bool | ArrayLike = False) -> Any:
    """The sparsity pattern of M, the learned part: one dot per entry, its color by sign and its area by size (the paper's Figure 2).

    Parameters
    ----------
    learner, ax
        As for all functions of this module.
    zoom : bool, default=True
        Whether to show only the features in use, next to each other; otherwise all features at their positions.
    names : bool or array-like of str, default=False
        Whether to label the features in use with their names, or the names of all features. Only if `zoom`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hdsl import HDSL, plot
    >>> iris = load_iris(as_frame=True)
    >>> learner = HDSL(scale=10, max_iter=20).fit(iris.data, iris.target)
    >>> [label.get_text() for label in plot.matrix(learner, names=True).get_yticklabels()][0]
    'sepal length (cm)'
    """
    check_is_fitted(learner)
    ax = _axes(ax)
    entries = sp.coo_array(learner.get_bilinear_matrix())
    rows, columns = entries.coords
    used = np.unique(rows)
    limit = learner.n_features_in_
    if zoom:
        rows, columns, limit = np.searchsorted(used, rows), np.searchsorted(used, columns), len(used)
    width = np.abs(entries.data).max(initial=1e-300)
    largest = min(200.0, 40_000.0 / max(1, limit)) if zoom else 12.0
    for sign, color, label in [(1, ALIKE, "more similar"), (-1, UNLIKE, "less similar")]:
        here = np.sign(entries.data) == sign
        sizes = largest * np.clip(np.abs(entries.data[here]) / width, 0.05, 1)
        ax.scatter(columns[here], rows[here], s=sizes, color=color, label=label, linewidths=0)
    ax.set(xlim=(-0.5, limit - 0.5), ylim=(limit - 0.5, -0.5), aspect="equal")
    part = "learned part: " if getattr(learner, "base_", 0.0) else ""
    title = f"{part}{len(used)} of {learner.n_features_in_} features, {len(entries.data)} entries"
    ax.set_title(title, fontsize="medium")
    if zoom and names is not False:
        name = learner._namer(None if names is True else names)
        words = [name(feature) for feature in used]
        ax.set_xticks(range(limit), words, rotation=90, fontsize="small")
        ax.set_yticks(range(limit), words, fontsize="small")
    else:
        axis = "features in use" if zoom else "feature"
        ax.set(xlabel=axis, ylabel=axis)
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    # Otherwise the dot of a sign without entries is too small to see.
    for dot in legend.legend_handles:
        dot.set_sizes([40.0])
    return ax


def error(
    learner: Any,
    X: Any,
    y: ArrayLike,
    ax: Any = None,
    *,
    against: str = "n_atoms",
    points: int = 15,
    others: dict[str, Sequence[tuple[float, float]]] | None = None,
) -> Any:
    """The error on given rows against the dimension, along the path of one run.

    Parameters
    ----------
    learner, ax
        As for all functions of this module; the learner is a classifier.
    X, y : rows and classes
        Raw rows to classify.
    against : {"n_atoms", "n_features", "iteration"}, default="n_atoms"
        The horizontal axis: learned dimensions of the map, features that they use, or iterations.
    points : int, default=15
        The number of iterates that are evaluated, denser at the beginning of the path.
    others : dict of lists of (dimension, error) or None, default=None
        Curves of other methods, by name.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hdsl import HDSLClassifier, plot
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = HDSLClassifier(scale=10, max_iter=20).fit(X, y)
    >>> plot.error(learner, X, y, against="n_features").get_xlabel()
    'features in use'
    """
    check_is_fitted(learner)
    labels = {"n_atoms": "dimensions", "n_features": "features in use", "iteration": "iteration"}
    if against not in labels:
        raise ValueError(f"against is {against!r}, expected one of {sorted(labels)}")
    if not isinstance(points, (int, np.integer)) or points < 1:
        raise ValueError(f"points is {points!r}, expected a whole number of at least 1")
    ax, path = _axes(ax), learner.path_
    tried = np.unique(np.geomspace(1, len(path), points).astype(int) - 1)
    errors = [1 - learner.at(iteration=int(iteration)).score(X, y) for iteration in tried]
    ax.plot(path[against][tried], errors, marker=".", color=ALIKE, label=type(learner).__name__)
    for number, (name, curve) in enumerate((others or {}).items()):
        xs, ys = zip(*curve)
        ax.plot(xs, ys, marker="x", linestyle="--", color=f"C{number + 1}", label=name)
    ax.set(xlabel=labels[against], ylabel="error", ylim=(0, None))
    ax.legend()
    return ax
