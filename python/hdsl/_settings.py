"""The parameters of HDSL: what scikit-learn checks of them, and what the compiled half takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

#: `triplets`, as on the command line.
SOURCES = re.compile(r"knn(:[1-9]\d*:[1-9]\d*)?|random(:[1-9]\d*)?")

_above_0 = Interval(Real, 0, None, closed="neither")
_from_1 = Interval(Integral, 1, None, closed="left")

#: In scikit-learn's form; messages are scikit-learn's own.
CONSTRAINTS: dict[str, list[Any]] = {
    "scale": [_above_0, "array-like", StrOptions({"auto"})],
    "triplets": [str],
    "preprocess": [StrOptions({"none", "max", "unit", "max+unit"})],
    "loss": [StrOptions({"smoothed-hinge", "squared-hinge", "logistic", "exponential"})],
    "search": [StrOptions({"alternating", "exact"})],
    "steps": [StrOptions({"away", "pairwise", "forward"})],
    "batch": [_from_1, None],
    "max_iter": [_from_1],
    "rounds": [Interval(Integral, 0, None, closed="left")],
    "last_iter": [_from_1, None],
    "models": [_from_1],
    "tol": [_above_0, None],
    "certify": ["boolean"],
    "max_features": [Interval(Integral, 2, None, closed="left"), None],
    "time": [_above_0, None],
    "memory": [_from_1, None],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [_from_1, None],
    "eval_every": [_from_1],
    "n_neighbors": [_from_1],
    "vote": [StrOptions({"majority", "weighted", "class-mean"})],
    "normalization": [StrOptions({"dot", "cosine"})],
    "n_components": [_from_1, None],
    "warm_start": ["boolean"],
    "callback": [callable, None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


def scales(estimator: Any) -> list[float]:
    """λ, or all of them."""
    given = estimator.scale
    if isinstance(given, str):
        raise ValueError(f"The 'scale' parameter is {given!r}, expected numbers above 0, or 'auto' where there are labels.")
    several = [float(s) for s in given] if isinstance(given, Iterable) else [float(given)]
    if not several or not all(np.isfinite(s) and s > 0 for s in several):
        raise ValueError(f"The 'scale' parameter holds {given!r}, expected finite numbers above 0.")
    return several


def check_source(triplets: str) -> None:
    """Whether `triplets` names a source."""
    if not SOURCES.fullmatch(triplets):
        raise ValueError(
            f"The 'triplets' parameter is {triplets!r}, expected 'knn:K:M' or 'random:N' with whole numbers above 0."
        )


def seed(random_state: Any) -> int:
    """The seed of a fit. A whole number is the seed itself, as on the command line."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def settings(estimator: Any, *, validated: bool, holdout: float | None) -> dict[str, Any]:
    """The parameters of an estimator as the compiled half takes them."""
    check_source(estimator.triplets)
    several = scales(estimator)
    if len(several) > 1 and not validated:
        raise ValueError(
            "Several values of scale need validation rows to choose by: set early_stopping=True or give X_val and y_val."
        )
    if estimator.tol is not None and estimator.batch is not None:
        raise ValueError("tol cannot be used with batch: a gap over a batch of triplets certifies nothing.")
    if estimator.models > 1 and (len(several) > 1 or estimator.max_features is not None):
        raise ValueError(
            "models takes one scale and no max_features: a mean of models has one scale and the features of them all."
        )
    return {
        "scale": several,
        "triplets": estimator.triplets,
        "preprocess": estimator.preprocess,
        "loss": estimator.loss,
        "search": estimator.search,
        "steps": estimator.steps,
        "batch": estimator.batch,
        "max_iter": estimator.max_iter,
        "rounds": estimator.rounds,
        "last_iter": estimator.last_iter,
        "models": estimator.models,
        "tol": estimator.tol,
        "certify": bool(estimator.certify),
        "max_features": estimator.max_features,
        "time": estimator.time,
        "memory": estimator.memory,
        "n_neighbors": estimator.n_neighbors,
        "vote": estimator.vote,
        "normalization": estimator.normalization,
        "eval_every": estimator.eval_every,
        "patience": estimator.n_iter_no_change if validated and estimator.early_stopping else None,
        "holdout": holdout,
        "seed": seed(estimator.random_state),
    }
