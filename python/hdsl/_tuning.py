"""hdsl.tune: the best similarity for a set of data, without anybody knowing what λ is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.validation import validate_data

from hdsl._classifier import HDSLClassifier
from hdsl._matrix import DTYPES
from hdsl._search import TIME, fit_best
from hdsl._settings import CONSTRAINTS

_CONSTRAINTS: dict[str, list[Any]] = {
    "cv": [Interval(Integral, 2, None, closed="left"), None],
    "time": [Interval(Real, 0, None, closed="neither"), None],
    "max_atoms": [Interval(Integral, 1, None, closed="left"), None],
    "preset": [StrOptions({"best", "paper"})],
    "without": ["array-like"],
    "refit": ["boolean"],
    "journal": [str, os.PathLike, None],
    **{name: CONSTRAINTS[name] for name in ("max_features", "random_state", "n_jobs", "verbose")},
}


def tune(
    X: Any,
    y: Any,
    *,
    X_val: Any = None,
    y_val: Any = None,
    cv: int | None = None,
    time: float | None = TIME,
    max_features: int | None = None,
    max_atoms: int | None = None,
    preset: str = "best",
    without: Iterable[str] = (),
    refit: bool = True,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    journal: str | os.PathLike[str] | None = None,
) -> HDSLClassifier:
    """Find the best similarity for rows with classes, as the command line's `hdsl tune` does.

    Searches λ, triplets (neighbors, at random, and mined again under what was learned), preprocess, loss, where to stop, and
    how neighbors decide a class. Weak settings are given up early. What is chosen is chosen on rows that were not learned
    from, and the error to expect is estimated on rows that did not choose. The winner is one ordinary fit with the
    parameters found. Same seed, same model, for any number of threads, as long as `time` allows all that is planned; the
    program makes the same one, byte for byte.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Raw rows.
    y : array-like of shape (n_samples,)
        Their classes.
    X_val, y_val : rows and classes, or None, default=None
        Rows that judge. By default folds of `X` do where rows are few, and a fifth of the rows where they are many.
    cv : int or None, default=None
        Judge by this many folds of `X` in any case.
    time : float or None, default=600.0
        Seconds all of it may take, the last fit included; None waits until all that is planned is done.
    max_features : int or None, default=None
        Features the model may use at most.
    max_atoms : int or None, default=None
        Pairs of features the model may have at most.
    preset : {"best", "paper"}, default="best"
        What is searched over: all that was found to help, or λ alone with the paper's recipe.
    without : list of str, default=()
        Parts of the search to leave out: "rounds" (triplets mined again under what was learned), "means" (of several
        models), "votes" (other ways to decide than the majority of 3), "cosine", "random" (triplets), "neighbors" (as
        triplets), "unit" (rows of length 1), "losses" (other than the smoothed hinge).
    refit : bool, default=True
        Whether the winner learns from `X_val` as well, once all is chosen. Its rows are then the last of the fitted rows.
    random_state : int, RandomState instance or None, default=0
        Seed of everything random. A whole number is the command line's ``--seed``.
    n_jobs : int or None, default=None
        Threads, see :class:`hdsl.HDSLClassifier`.
    verbose : int, default=0
        Whether to show progress, in terminals and notebooks.
    journal : str, path-like or None, default=None
        A file that keeps what is finished. A search that was killed goes on from it when called again with the same rows
        and settings. It is removed at the end.

    Returns
    -------
    classifier : HDSLClassifier
        Fitted, with the parameters of the winner: a clone that is fitted on the same rows gives the same model. Its
        ``tuning_`` tells what error to expect and how the search went, ``leaderboard_`` how all settings fared, and
        ``tuned_params_`` the parameters.

    See Also
    --------
    HDSLClassifier : With ``scale="auto"`` does the same in `fit`, for pipelines.

    Notes
    -----
    Ctrl-C ends the search with a warning and trains the best so far. ``tuning_.finished`` tells whether all that was
    planned was done; where it was not, the same call may find another model next time.

    Examples
    --------
    >>> import hdsl
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = ["tasty soup", "tasty rice", "delicious soup", "delicious rice",
    ...          "stale soup", "stale rice", "soggy soup", "soggy rice"] * 2
    >>> y = (["good"] * 4 + ["bad"] * 4) * 2
    >>> X = CountVectorizer().fit_transform(texts)
    >>> best = hdsl.tune(X, y, cv=2, max_features=6)
    >>> best.score(X, y)
    1.0
    >>> best.tuning_.finished
    True
    >>> bool(best.n_active_features_ <= 6)
    True
    """
    given = {
        "cv": cv, "time": time, "max_features": max_features, "max_atoms": max_atoms, "preset": preset, "refit": refit,
        "without": without,
        "random_state": random_state, "n_jobs": n_jobs, "verbose": verbose, "journal": journal,
    }  # fmt: skip
    validate_parameter_constraints(_CONSTRAINTS, given, caller_name="tune")
    if cv is not None and X_val is not None:
        raise ValueError("cv and X_val cannot be used together: either folds of X judge, or X_val does.")
    learner = HDSLClassifier(
        max_features=max_features, random_state=random_state, n_jobs=n_jobs, verbose=verbose
    )
    X, y = validate_data(learner, X, y, accept_sparse="csr", dtype=DTYPES, ensure_min_samples=2)
    options = {
        "preset": preset,
        "without": list(without),
        "cv": cv,
        "refit": bool(refit),
        "time": time,
        "max_atoms": max_atoms,
        "memory": None,
        "journal": None if journal is None else os.fspath(journal),
    }
    fit_best(learner, X, y, learner._checked_validation(X_val, y_val), options, depth=2)
    return learner.set_params(**learner.tuned_params_)
