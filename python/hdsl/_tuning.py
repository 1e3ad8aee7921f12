"""hdsl.tune: search for the best configuration of a training."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from hdsl import _core
from hdsl._classifier import HDSLClassifier
from hdsl._fit import given_triplets
from hdsl._parameters import ARRAY, BOOLEAN, FROM_1, TEXT, Instance, Kinds, Number, check_parameters
from hdsl._search import TIME, fit_best
from hdsl._settings import CONSTRAINTS, named

_CONSTRAINTS: dict[str, Kinds] = {
    "cv": [Number(2, whole=True), None],
    "max_atoms": [FROM_1, None],
    "preset": named("preset"),
    "ablate": [ARRAY],
    "refit": [BOOLEAN],
    "journal": [TEXT, Instance("a path", (os.PathLike,)), None],
    **{name: CONSTRAINTS[name] for name in ("time", "max_features", "random_state", "n_jobs", "verbose")},
}


def tune(
    X: Any,
    y: Any = None,
    *,
    triplets: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    X_val: Any = None,
    y_val: Any = None,
    cv: int | None = None,
    time: float | None = TIME,
    max_features: int | None = None,
    max_atoms: int | None = None,
    preset: str = "best",
    ablate: Iterable[str] = (),
    refit: bool = True,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    journal: str | os.PathLike[str] | None = None,
    client: Any = None,
) -> HDSLClassifier:
    """Search for the best configuration of a training, as the command line's `hdsl tune` does.

    Plain similarities (dot product, cosine, tf-idf cosine and others) are evaluated first. The search then covers the base,
    preprocessing, triplets (neighbors, random, and mining rounds), λ, loss, the iteration to stop at, and the prediction
    rule, by successive halving: weak configurations are dropped early, and the others get twice the iterations as long as
    their errors fall. The choice is made on rows that were not trained on, and the expected error is estimated on rows that
    had no part in the choice. The result is an ordinary fit with the parameters found; if no learned similarity is better
    than a plain one, that is the result (``max_iter=0``, and ``tuning_.learned`` is false). The same seed gives the same
    model, for any number of threads, if `time` suffices for the whole search; the command line program gives the same one,
    byte for byte.

    Parameters
    ----------
    X, y
        Raw rows and their classes, as for :meth:`hdsl.HDSL.fit`. With `triplets`, the classes may be None, and nothing is
        learned from them.
    triplets : array-like of int of shape (n_triplets, 3) or None, default=None
        Learn from these triplets of rows of `X` (an anchor, a row it is more similar to, a row it is less similar to) and
        validate with them, instead of labels. Folds are of anchors, so that no anchor is both learned from and validated
        with. The error is 1 - the accuracy of held-out triplets, where a tie counts one half.
    sample_weight : array-like of shape (n_triplets,) or None, default=None
        The weight of each triplet.
    X_val, y_val : rows and classes, or None, default=None
        Validation rows. Without them, fewer than 20,000 rows are cross-validated, and of more rows a fifth is held out. With
        fewer than 20,000 rows in all, they are cross-validated together with `X`, unless `refit` is false.
    cv : int or None, default=None
        Cross-validate with this many folds of `X`.
    time : float or None, default=600.0
        Time limit in seconds, final training included; None has no limit.
    max_features : int or None, default=None
        The maximum number of features of the model.
    max_atoms : int or None, default=None
        The maximum number of atoms (pairs of features) of the model.
    preset : {"best", "paper"}, default="best"
        The search space: all that was found to help, or λ alone with the paper's settings.
    ablate : list of str, default=()
        Parts of the search to leave out, by the names of the command line's ``--ablate``.
    refit : bool, default=True
        Whether the final training includes `X_val`, whose rows are then the last of the fitted rows.
    random_state, n_jobs, verbose
        As for :class:`hdsl.HDSLClassifier`.
    journal : str, path-like or None, default=None
        A file that records finished trials. A search that was killed resumes from it when called again with the same rows
        and settings. It is removed at the end.
    client : distributed.Client or None, default=None
        Run the trials on the workers of this Dask cluster, one thread for each thread of a worker. The rows are sent once, and
        the result is that of a search in one process. The trials of a worker that is lost run again on others. The search
        itself stays in this process, and so does a final training of one model, on `n_jobs` threads.

    Returns
    -------
    classifier : HDSLClassifier
        Fitted, with the parameters of the winner: a clone that is fitted to the same rows gives the same model (by
        `fit_triplets` if there are `triplets`). Without classes it has neighbors and scores, but cannot predict.
        ``tuning_`` has the expected error and the facts of the search, ``leaderboard_`` the results of all configurations,
        and ``tuned_params_`` the parameters.

    See Also
    --------
    HDSLClassifier : With ``scale="auto"`` does the same in `fit`, for pipelines.

    Notes
    -----
    Ctrl-C ends the search with a warning and trains the best configuration so far. If ``tuning_.finished`` is false, the same
    call may give another model next time.

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
    checked = {
        "cv": cv, "time": time, "max_features": max_features, "max_atoms": max_atoms, "preset": preset, "refit": refit,
        "ablate": ablate,
        "random_state": random_state, "n_jobs": n_jobs, "verbose": verbose, "journal": journal,
    }  # fmt: skip
    check_parameters(_CONSTRAINTS, checked, "tune")
    unknown = sorted(set(ablate) - set(_core.CHOICES["ablate"]))
    if unknown:
        raise ValueError(f"`ablate` contains {unknown[0]!r}, expected names among {', '.join(_core.CHOICES['ablate'])}.")
    if y is None and triplets is None:
        raise ValueError("y is None: pass the classes of the rows, or triplets to learn from.")
    if triplets is not None and X_val is not None:
        raise ValueError("X_val cannot be used with triplets: some of their anchors are held out.")
    if triplets is None and sample_weight is not None:
        raise ValueError("sample_weight is the weight of triplets, and there are none.")
    if cv is not None and X_val is not None:
        raise ValueError("cv and X_val cannot be used together: validation uses either folds of X or X_val.")
    learner = HDSLClassifier(
        max_features=max_features, random_state=random_state, n_jobs=n_jobs, verbose=verbose
    )
    given = None
    if triplets is None:
        rows, y = learner._rows_and_labels(X, y, reset=True)
    else:
        rows, given = learner._rows_to_fit(X, reset=True), given_triplets(triplets, sample_weight)
    options = {
        "preset": preset,
        "ablate": list(ablate),
        "cv": cv,
        "refit": bool(refit),
        "time": time,
        "max_atoms": max_atoms,
        "memory": None,
        "journal": None if journal is None else os.fspath(journal),
    }
    fit_best(learner, rows, y, learner._checked_validation(X_val, y_val), options, depth=2, triplets=given, client=client)
    return learner.set_params(**learner.tuned_params_)
