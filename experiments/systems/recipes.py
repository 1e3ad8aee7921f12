"""The choice of triplets and of row normalization on validation rows.

The paper makes this choice by hand, with random triplets for dexter because they do better there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn.preprocessing import normalize

from experiments.data import Rows
from experiments.systems.base import Fitted, Predictor, Problem

#: Triplets, and whether rows are normalized to unit length.
RECIPES = [(triplets, unit) for triplets in ("knn:3:5", "random:20") for unit in (False, True)]


def with_recipe(problem: Problem, triplets: str, unit: bool) -> Problem:
    if unit:
        train, valid = (Rows(normalize(rows.X), rows.y) for rows in (problem.train, problem.valid))
        problem = replace(problem, train=train, valid=valid)
    return replace(problem, triplets=triplets)


def as_given(fitted: Fitted, triplets: str, unit: bool, tried: list[dict[str, Any]]) -> Fitted:
    """A fit to preprocessed rows as a fit to the original ones."""

    def adapted(predict: Predictor) -> Predictor:
        return (lambda X: predict(normalize(X))) if unit else predict

    return replace(
        fitted,
        predict=adapted(fitted.predict),
        choice={"triplets": triplets, "unit": unit, **fitted.choice},
        tried=tried + fitted.tried,
        curve=[replace(point, predict=adapted(point.predict)) for point in fitted.curve],
    )


def chosen_by(
    fit: Callable[..., Fitted], problem: Problem, recipes: Any, scout: dict[str, Any], settings: dict[str, Any]
) -> Fitted:
    """`fit` with the recipe of the lowest validation error under the settings of `scout`; the first in case of ties."""
    tried, best = [], None
    for triplets, unit in recipes:
        fitted = fit(with_recipe(problem, triplets, unit), **scout)
        tried.append({"triplets": triplets, "unit": unit, "valid_error": round(fitted.valid_error, 6), "scout": True})
        if best is None or fitted.valid_error < best[0]:
            best = (fitted.valid_error, triplets, unit)
    assert best is not None
    _, triplets, unit = best
    return as_given(fit(with_recipe(problem, triplets, unit), **settings), triplets, unit, tried)
