"""The search for the best similarity, for an estimator that is being fitted."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from hdsl import _core
from hdsl._classes import encode
from hdsl._matrix import as_csr
from hdsl._progress import WIDTH, Progress
from hdsl._settings import seed

#: Seconds a search may take by default.
TIME = 600.0

#: Iterations of a round; None lets the number of classes and rows decide. Tests make it small.
ROUND_ITER: int | None = None


@dataclass(frozen=True)
class Tuning:
    """What a search has found, and how sure it is."""

    params: dict[str, Any]
    """The parameters that make the same model from the same rows."""
    expected_error: float | None
    """The error to expect on new rows, estimated on rows that did not choose; None if there were too few."""
    expected_error_deviation: float | None
    """Its standard deviation."""
    dot_error: float
    """The 3-NN error of the plain dot product on the judged rows."""
    n_judged: int
    """Rows that judged."""
    n_models: int
    """Models that were judged."""
    n_rows: int
    """Rows the winner learned from."""
    finished: bool
    """Whether all that was planned was done; otherwise more time may find better."""
    refitted: bool
    """Whether the winner learned from the validation rows as well."""
    seconds: float
    """How long all of it took."""
    leaderboard: Any = field(repr=False)
    """Every setting that was judged, at its best, the winner first: a data frame, or without pandas a list of dict."""
    without: Any = field(repr=False)
    """What would have been chosen without each part of the search, and the error to expect of it: what a part is worth."""


def fit_best(
    learner: Any, X: Any, y: Any, valid: tuple[Any, Any] | None, options: dict[str, Any], *, depth: int
) -> None:
    """Searches, and leaves the winner in the learner, whose parameters stay as they are.

    Parameters
    ----------
    learner : HDSL
        To be fitted. Its `max_features`, `random_state`, `n_jobs` and `verbose` are obeyed.
    X, y : matrix and labels
        Checked by scikit-learn.
    valid : pair of CSR matrix and labels, or None
        Rows that judge, instead of folds.
    options : dict
        What `_core.tune` takes and the learner does not say.
    depth : int
        How many calls up the user is, whom a warning shall name.
    """
    started = time.monotonic()
    rows = learner._enough_features(as_csr(X))
    classes, codes = encode(y, type(learner).__name__)
    given = None
    if valid is not None:
        val_classes, val_codes = np.unique(valid[1], return_inverse=True)
        given = (valid[0], ([str(c) for c in val_classes], val_codes.astype(np.int64)))
    names = getattr(learner, "feature_names_in_", None)
    settings = {
        "preset": "best",
        "without": [],
        "cv": None,
        "holdout": None,
        "refit": True,
        "max_atoms": None,
        "round_iter": ROUND_ITER,
        "journal": None,
        "max_features": learner.max_features,
        "seed": seed(learner.random_state),
        **options,
    }
    progress = SearchProgress(settings["time"]) if learner.verbose else None
    model, facts, found = _core.tune(
        settings,
        rows,
        ([str(c) for c in classes], codes),
        valid=given,
        names=None if names is None else list(names),
        progress=progress,
        n_threads=learner._threads(),
    )
    if valid is not None and found["refitted"]:
        rows = as_csr(sp.vstack([rows, valid[0]], format="csr"))
        classes, codes = encode(np.concatenate([y, valid[1]]), type(learner).__name__)
    learner.classes_, learner._codes = classes, codes
    learner._model, learner._index, learner._fit_X = model, _core.Index(), rows
    learner.__dict__.pop("_found_decision", None)
    learner._take_facts(facts)
    found["params"] |= {"max_features": learner.max_features, "random_state": settings["seed"]}
    found |= {name: _frame(found[name]) for name in ("leaderboard", "without")}
    tuning = Tuning(**found, seconds=time.monotonic() - started)
    learner.tuning_, learner.tuned_params_, learner.leaderboard_ = tuning, tuning.params, tuning.leaderboard
    if progress is not None:
        progress.close(_sum_up(tuning, learner))
    if facts["interrupted"]:
        warnings.warn(
            f"Ctrl-C stopped the search after {tuning.n_models} models; the best of them is kept.",
            ConvergenceWarning,
            stacklevel=depth + 1,
        )


def _frame(lines: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return lines
    return pandas.DataFrame(lines)


def _sum_up(tuning: Tuning, learner: Any) -> str:
    line = f"best of {tuning.n_models} models: {learner.n_active_features_} of {learner.n_features_in_} features"
    if tuning.expected_error is not None:
        line += f", expect {tuning.expected_error:.1%} wrong (dot product {tuning.dot_error:.1%})"
    line += f", {tuning.seconds:.1f} s"
    return line if tuning.finished else line + "; stopped early, more time may find better"


def describe(facts: dict[str, Any], left: float | None) -> str:
    """One line: how far, how good, how long yet.

    >>> facts = {"rung": 0, "n_rungs": 4, "done": 9, "n_settings": 18, "scouting": False, "best_error": 0.05,
    ...          "best_setting": "unit random:20 100 smoothed-hinge", "dot_error": 0.2, "training": None}
    >>> describe(facts, 125.0)
    '[############             ] 9/18 settings, stage 1/4  best error 5.0% (dot product 20.0%), at most 2:05 left'
    """
    if facts["training"] is not None:
        return f"training the winner on {facts['training']} rows"
    bar = "#" * round(facts["done"] / max(1, facts["n_settings"]) * WIDTH)
    line = f"[{bar:<{WIDTH}}] {facts['done']}/{facts['n_settings']} settings"
    line += f", stage {facts['rung'] + 1}/{max(1, facts['n_rungs'])}"
    if facts["scouting"]:
        line += " on a sample"
    if facts["best_error"] is not None:
        line += f"  best error {facts['best_error']:.1%} (dot product {facts['dot_error']:.1%})"
    if left is not None:
        whole = round(max(0.0, left))
        line += f", at most {whole // 60}:{whole % 60:02} left"
    return line


class SearchProgress(Progress):
    """Shows how far a search has come."""

    def __init__(self, budget: float | None) -> None:
        super().__init__(0)
        self.ends = None if budget is None else time.monotonic() + budget

    def describe(self, facts: dict[str, Any]) -> str:
        """The line to show now."""
        return describe(facts, None if self.ends is None else self.ends - time.monotonic())
