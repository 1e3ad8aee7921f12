"""DIAG: one weight per feature, with an l1 or l2 penalty."""

from __future__ import annotations

from typing import Any

from experiments.cells import Setting
from experiments.systems.base import Fitted, Problem, System, decades, error
from experiments.systems.recipes import RECIPES, chosen_by
from hdsl import DiagonalSimilarity


def fit(problem: Problem, *, penalty: str, strengths: tuple[float, ...], max_iter: int) -> Fitted:
    """The penalty of the lowest validation error; the strongest in case of ties.

    From strong to weak with warm starts, because weak penalties alone take very long.
    """
    triplets = problem.mined()
    learner = DiagonalSimilarity(penalty=penalty, preprocess="none", max_iter=max_iter, warm_start=True, n_jobs=1)
    tried: list[dict[str, Any]] = []
    best, lowest, chosen = None, 1.0, {}
    for strength in sorted(strengths, reverse=True):
        learner.set_params(strength=strength)
        learner.fit_triplets(problem.train.X, triplets, y=problem.train.y)
        wrong = error(learner.predict(problem.valid.X), problem.valid)
        about = {"strength": strength, "valid_error": round(wrong, 6), "n_features": learner.n_active_features_}
        tried.append({**about, "iterations": learner.n_iter_, "stop": learner.stop_})
        if best is None or wrong < lowest:
            # A copy, because the learner continues from here.
            best, lowest, chosen = learner._with_model(learner._model), wrong, {"strength": strength}
    assert best is not None
    return Fitted(best.predict, best.n_active_features_, lowest, chosen, tried)


def grid(penalty: str) -> Any:
    def of(setting: Setting) -> dict[str, Any]:
        return {
            "penalty": penalty,
            "strengths": setting.choose(full=decades(-9, 8), quick=decades(-6, 2)[::2], tiny=[1e-4, 1e-2]),
            "max_iter": setting.choose(full=1000, quick=200, tiny=100),
        }

    return of


def fit_recipe(
    problem: Problem, *, recipes: Any, scout_strengths: tuple[float, ...], scout_iter: int, **settings: Any
) -> Fitted:
    """`fit` with the triplets and row normalization of the lowest validation error in short runs."""
    scout = {"penalty": settings["penalty"], "strengths": scout_strengths, "max_iter": scout_iter}
    return chosen_by(fit, problem, recipes, scout, settings)


def recipe(penalty: str) -> Any:
    return lambda setting: {
        **grid(penalty)(setting),
        "recipes": RECIPES,
        "scout_strengths": setting.choose(full=decades(-5, 0), quick=[1e-4, 1e-2], tiny=[1e-3]),
        "scout_iter": setting.choose(full=200, quick=100, tiny=50),
    }


CHOSEN = (
    "short runs with penalties of 10^-5, ..., 1 choose between 3 x 5 neighbors and 20 random triplets per row, and between "
    "raw rows and rows of unit norm; then as above"
)
SEARCHED = "penalties of 10^-9, ..., 10^8, each with a warm start from the next stronger one, up to 1,000 iterations"
SYSTEMS = [
    System("diag_l2", "DIAG-l2", 2, fit, grid("l2"), SEARCHED),
    System("diag_l1", "DIAG-l1", 2, fit, grid("l1"), SEARCHED),
    System("diag_l2_recipe", "DIAG-l2, recipe chosen", 1, fit_recipe, recipe("l2"), CHOSEN),
    System("diag_l1_recipe", "DIAG-l1, recipe chosen", 1, fit_recipe, recipe("l1"), CHOSEN),
]
