"""The search for the best configuration, for an estimator that is being fitted."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from hdsl import _core
from hdsl._frames import frame
from hdsl._learner import raise_if_interrupted, warn_if_interrupted
from hdsl._matrix import as_csr
from hdsl._pipeline import names_of_features
from hdsl._progress import COLUMNS, Progress, clock, with_bar
from hdsl._remote_trials import remote_trials
from hdsl._settings import seed

#: The width of the bar of a search.
SEARCH_WIDTH = 20

#: The default time limit of a search, in seconds.
TIME = 600.0

#: Iterations of the first trials; None is the library's default. Tests make it small.
ROUND_ITER: int | None = None


@dataclass(frozen=True)
class Tuning:
    """The result of a search."""

    params: dict[str, Any]
    """The parameters that give the same model for the same rows."""
    expected_error: float | None
    """The expected error on new rows, estimated on rows that had no part in the choice; None if there were too few."""
    expected_error_deviation: float | None
    """Its standard deviation on a test set as large as a fold."""
    reference_error: float | None
    """The lowest error of a plain similarity (dot product, cosine, tf-idf cosine and others) on the validation rows."""
    expected_reference_error: float | None
    """The expected error on new rows of the choice among the plain similarities, comparable with `expected_error`."""
    learned: bool
    """Whether the result was learned; otherwise no learned similarity was better than a plain one, which is the result."""
    n_validation: int
    """The number of validation rows; of given triplets, of their anchors."""
    measure: str | None
    """What the errors are, if they are not those of predicted classes: 1 - the accuracy of held-out triplets."""
    n_models: int
    """The number of models that were evaluated."""
    n_rows: int
    """The number of rows of the final training."""
    finished: bool
    """Whether the whole search was done; otherwise more time may give a better result."""
    refitted: bool
    """Whether the final training included the validation rows."""
    seconds: float
    """The total time."""
    leaderboard: Any = field(repr=False)
    """All configurations, each at its best, the winner first: a data frame, or a table of columns without pandas and polars."""
    ablations: Any = field(repr=False)
    """For each part of the search: the best configuration without it, and its expected error."""


def fit_best(
    learner: Any,
    rows: Any,
    y: Any,
    valid: tuple[Any, Any] | None,
    options: dict[str, Any],
    *,
    depth: int | None,
    triplets: Any = None,
    client: Any = None,
) -> None:
    """Search, and fit the learner with the winner. The parameters of the learner are not changed.

    Parameters
    ----------
    learner : HDSL
        To be fitted. Its `max_features`, `random_state`, `n_jobs` and `verbose` are used.
    rows, y : CSR matrix and labels
        Checked by scikit-learn. The labels may be None if there are triplets.
    valid : pair of CSR matrix and labels, or None
        Validation rows, instead of cross-validation.
    options : dict
        Settings of `_core.tune` that are not parameters of the learner.
    depth : int or None
        The number of calls between this one and the user's, for the warning after Ctrl-C; None raises KeyboardInterrupt
        instead, after the learner has been fitted.
    triplets : columns and weights, or None
        Triplets to learn from and to validate with in place of labels.
    client : distributed.Client or None
        Run the trials on the workers of this Dask cluster.
    """
    started = time.monotonic()
    learner._enough_features(rows)
    if y is not None:
        learner._set_classes(y, rows)
    given = None
    if valid is not None:
        val_classes, val_codes = np.unique(valid[1], return_inverse=True)
        given = (valid[0], ([str(c) for c in val_classes], val_codes.astype(np.int64)))
    names = names_of_features(learner)
    settings = {
        "preset": "best",
        "ablate": [],
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
    data = {
        "settings": settings,
        "x": rows,
        "classes": None if y is None or triplets is not None else learner._classes(),
        "valid": given,
        "triplets": triplets,
    }
    with ExitStack() as stack:
        runner = None if client is None else stack.enter_context(remote_trials(client, data))
        model, facts, found = _core.tune(
            **data, names=names, progress=progress, runner=runner, n_threads=learner._threads()
        )
    if valid is not None and found["refitted"]:
        rows = as_csr(sp.vstack([rows, valid[0]], format="csr"))
        learner._set_classes(np.concatenate([y, valid[1]]), rows)
    learner._set_fitted(model, rows)
    learner.__dict__.pop("_found_decision", None)
    learner._take_facts(facts)
    found["params"] |= {"max_features": learner.max_features, "random_state": settings["seed"]}
    if triplets is not None:  # which are not a parameter
        del found["params"]["triplets"]
    found |= {name: _frame(found[name]) for name in ("leaderboard", "ablations")}
    tuning = Tuning(**found, seconds=time.monotonic() - started)
    learner.tuning_, learner.tuned_params_, learner.leaderboard_ = tuning, tuning.params, tuning.leaderboard
    if progress is not None:
        progress.close(_sum_up(tuning, learner))
    kept = f"{tuning.n_models} models; the best of them is kept"
    if depth is None:
        raise_if_interrupted(facts, "the search", kept)
    else:
        warn_if_interrupted(facts, "the search", kept, depth + 1)


def _frame(lines: list[dict[str, Any]]) -> Any:
    names = list(dict.fromkeys(name for line in lines for name in line))
    return frame({name: [line.get(name) for line in lines] for name in names})


def _sum_up(tuning: Tuning, learner: Any) -> str:
    line = f"best of {tuning.n_models} models: {learner.n_active_features_} of {learner.n_features_in_} features"
    if tuning.expected_error is not None:
        line += f", expected error {tuning.expected_error:.1%}"
    if tuning.reference_error is not None:
        line += f" (not learned {tuning.reference_error:.1%})"
    line += f", {tuning.seconds:.1f} s"
    return line if tuning.finished else line + "; stopped early, more time may give a better result"


def describe(facts: dict[str, Any], limit: float | None, columns: int = COLUMNS) -> str:
    """One line of at most so many columns: time used, time left, number of trials, lowest errors.

    >>> facts = {"trials": 19, "rows": 400, "best": (0.05, "unit random:20 100 smoothed-hinge"), "reference": 0.2,
    ...          "training": None, "seconds": 31.0}
    >>> describe(facts, 125.0)
    '[###         ] 0:31 of 2:05, 1:34 left  19 trials, best 5.0%, not learned 20.0%'
    """
    line = clock(facts["seconds"])
    if limit is not None:
        # As shown: the difference of the two times beside it.
        line += f" of {clock(limit)}, {clock(int(limit) - int(facts['seconds']))} left"
    if facts["training"] is not None:
        line += f"  final training on {facts['training']} rows"
    else:
        line += f"  {facts['trials']} trials"
        if facts["best"] is not None:
            line += f", best {facts['best'][0]:.1%}"
        if facts["reference"] is not None:
            line += f", not learned {facts['reference']:.1%}"
    if limit is None:
        return line[: max(0, columns)]
    return with_bar(min(1.0, facts["seconds"] / max(limit, 1e-9)), SEARCH_WIDTH, line, columns)


class SearchProgress(Progress):
    """Shows the progress of a search."""

    def __init__(self, budget: float | None) -> None:
        super().__init__(0)
        self.limit = budget
        self.started = time.monotonic()

    def describe(self, facts: dict[str, Any]) -> str:
        """The line to show now."""
        return describe({**facts, "seconds": time.monotonic() - self.started}, self.limit, self.columns)
