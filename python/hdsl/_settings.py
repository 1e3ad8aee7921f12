"""Parameters of the estimators: what each may be, and the settings of the compiled module."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from hdsl import _core
from hdsl._parameters import (
    ABOVE_0, ARRAY, BOOLEAN, CALLABLE, FROM_0, FROM_1, MAPPING, SEED, TEXT, WHOLE, WHOLE_FROM_0, Instance, Kinds, Names,
    Number,
)  # fmt: skip

#: `triplets`, as on the command line.
SOURCES = re.compile(r"knn(:[1-9]\d*:[1-9]\d*)?|random(:[1-9]\d*)?")


def named(parameter: str) -> Kinds:
    """The names that the library knows for a parameter."""
    return [Names(tuple(_core.CHOICES[parameter]))]


CONSTRAINTS: dict[str, Kinds] = {
    "scale": [ABOVE_0, ARRAY, Names(("auto",)), None],
    "base": [FROM_0, Names(("auto",)), None],
    "triplets": [TEXT],
    "step_rule": named("steps"),
    "batch": [FROM_1, None],
    "max_iter": [WHOLE_FROM_0],
    "mining_rounds": [WHOLE_FROM_0],
    "last_round_iter": [FROM_1, None],
    "n_estimators": [FROM_1],
    "subsample": [Number(0, 1, has_low=False)],
    "tol": [ABOVE_0, None],
    "certify": [BOOLEAN],
    "max_features": [Number(2, whole=True), None],
    "time": [ABOVE_0, None],
    "memory": [FROM_1, None],
    "checkpoint": [Instance("a str, a path or a tuple", (str, os.PathLike, tuple)), None],
    "early_stopping": [BOOLEAN],
    "validation_fraction": [Number(0, 1, has_low=False, has_high=False)],
    "n_iter_no_change": [FROM_1, None],
    "eval_every": [FROM_1],
    "n_neighbors": [FROM_1],
    "class_weight": [MAPPING, Names(("balanced",)), None],
    "n_components": [FROM_1, None],
    "euclidean": [BOOLEAN],
    "warm_start": [BOOLEAN],
    "callback": [CALLABLE, None],
    "random_state": SEED,
    "n_jobs": [WHOLE, None],
    "verbose": [WHOLE_FROM_0, BOOLEAN],
    **{name: named(name) for name in ("preprocess", "loss", "search", "vote", "normalization")},
}

#: The constraints of parameters that every estimator has.
COMMON = {
    name: CONSTRAINTS[name]
    for name in ("preprocess", "n_neighbors", "euclidean", "callback", "random_state", "n_jobs", "verbose")
}

#: The constraints of the learners that may choose their preprocessing from the data.
LEARNED = {**CONSTRAINTS, "preprocess": [*CONSTRAINTS["preprocess"], None]}


def keep(arguments: dict[str, Any]) -> None:
    """Store the arguments of an ``__init__`` under their names, unchanged: ``keep(locals())``."""
    estimator = arguments["self"]
    for name, value in arguments.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def scales(estimator: Any) -> list[float]:
    """All values of λ; none if it is chosen from the data."""
    given = estimator.scale
    if given is None:
        return []
    if isinstance(given, str):
        raise ValueError(f"The 'scale' parameter is {given!r}, expected numbers above 0, or 'auto' for a fit to labels.")
    several = [float(s) for s in given] if isinstance(given, Iterable) else [float(given)]
    if not several or not all(np.isfinite(s) and s > 0 for s in several):
        raise ValueError(f"The 'scale' parameter is {given!r}, expected finite numbers above 0.")
    return several


def check_source(triplets: str) -> None:
    """Raise an error unless `triplets` is a triplet source."""
    if not SOURCES.fullmatch(triplets):
        raise ValueError(
            f"The 'triplets' parameter is {triplets!r}, expected 'knn:K:M' or 'random:N' with whole numbers above 0."
        )


def seed(random_state: Any) -> int:
    """The seed of a fit. A whole number is the seed itself, as on the command line."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def settings(
    estimator: Any, *, validated: bool, holdout: float | None, by_anchor: bool = False
) -> dict[str, Any]:
    """The parameters of an estimator as fields of the library's configuration.

    `holdout` is a fraction of the rows, or of the anchors of given triplets if `by_anchor`.
    """
    held_out = {"holdout-anchors" if by_anchor else "holdout": holdout}
    check_source(estimator.triplets)
    several = scales(estimator)
    if len(several) > 1 and not validated:
        raise ValueError(
            "Several values of scale need validation rows to choose by: set early_stopping=True or pass X_val and y_val."
        )
    if estimator.tol is not None and estimator.batch is not None:
        raise ValueError("tol cannot be used with batch: the gap over a mini-batch of triplets is not a certificate.")
    if estimator.n_estimators > 1 and (len(several) > 1 or estimator.max_features is not None):
        raise ValueError(
            "n_estimators > 1 takes one scale and no max_features: an ensemble average has one scale and uses the features "
            "of all its models."
        )
    names = (
        "loss", "search", "batch", "max_iter", "mining_rounds", "last_round_iter", "n_estimators", "subsample",
        "certify", "max_features", "eval_every",
    )  # fmt: skip
    return {
        **{name: getattr(estimator, name) for name in names},
        "steps": estimator.step_rule,
        "lambda": several,
        # Without a scale, everything is chosen from the data; with one, the defaults are those of the paper.
        "preprocess": estimator.preprocess or ("max" if several else "auto"),
        "base": estimator.base if estimator.base is not None else 0.0 if several else "auto",
        "tolerance": estimator.tol,
        "time_limit": estimator.time,
        "rule": {"k": estimator.n_neighbors, "vote": estimator.vote, "normalization": estimator.normalization},
        "patience": estimator.n_iter_no_change if validated and estimator.early_stopping else None,
        "validation": held_out if holdout is not None else "rows" if validated else "none",
        "seed": seed(estimator.random_state),
    }


def as_json(fields: dict[str, Any]) -> str:
    """Settings for the compiled module; numpy's numbers and booleans as Python's."""
    return json.dumps(fields, default=lambda value: value.item())


def compiled(estimator: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """A configuration as the compiled module takes it."""
    return {
        "fields": as_json(fields),
        "triplets": estimator.triplets,
        "memory": estimator.memory,
        "checkpoint": checkpoint(estimator.checkpoint),
    }


def checkpoint(given: Any) -> tuple[str, float] | None:
    """The path of a checkpoint and the seconds between two writes."""
    if given is None:
        return None
    path, seconds = given if isinstance(given, tuple) and len(given) == 2 else (given, 60.0)
    if not isinstance(path, (str, os.PathLike)) or not isinstance(seconds, Real) or not 0 <= float(seconds) < 1e9:
        raise ValueError(
            f"The 'checkpoint' parameter is {given!r}, expected a path, or a path and the seconds between two writes."
        )
    return os.fspath(path), float(seconds)
