"""HDSL, with each of the paper's search methods (Table 1)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.cells import Setting
from experiments.systems.base import Fitted, Point, Problem, System, decades
from experiments.systems.recipes import RECIPES, as_given, with_recipe
from hdsl import HDSLClassifier

#: Points of the stored path and curve, for Figures 1 and 3.
PATH_POINTS, CURVE_POINTS = 120, 25


def learn(
    problem: Problem, scale: float, search: str, step_rule: str, batch: int | None, max_iter: int, patience: int, every: int
) -> HDSLClassifier:
    learner = HDSLClassifier(
        scale=scale, triplets=problem.triplets, preprocess="none", search=search, step_rule=step_rule, batch=batch,
        max_iter=max_iter, early_stopping=True, n_iter_no_change=patience, eval_every=every, random_state=problem.seed,
        n_jobs=1,
    )  # fmt: skip
    return learner.fit(problem.train.X, problem.train.y, X_val=problem.valid.X, y_val=problem.valid.y)


def fit(
    problem: Problem,
    *,
    scales: tuple[float, ...],
    max_iter: int,
    patience: int,
    every: int,
    search: str = "alternating",
    step_rule: str = "decrease",
    batch: int | None = None,
    scout: bool = False,
    matrix: bool = False,
) -> Fitted:
    """The λ and the iteration of the lowest validation error; the fewest features in case of ties.

    With `scout`, the heuristic search first tries every λ, and `search` only the best of them and its neighbors.
    """
    tried: list[dict[str, Any]] = []
    if scout:
        runs = [learn(problem, scale, "alternating", step_rule, None, max_iter // 2, patience // 2, every) for scale in scales]
        tried += [about(run) | {"scout": True} for run in runs]
        best = scales.index(min(runs, key=rank).scale_)
        scales = scales[max(0, best - 1) : best + 2]
    chosen = None
    seen: list[tuple[int, float]] = []
    for scale in scales:
        learner = learn(problem, scale, search, step_rule, batch, max_iter, patience, every)
        tried.append(about(learner))
        seen += judged(learner)
        if chosen is None or rank(learner) < rank(chosen):
            chosen = learner
    assert chosen is not None
    extra: dict[str, Any] = {}
    if search == "alternating" and batch is None:
        extra["front"] = front(seen)
    if matrix:
        path = chosen.path_
        sampled = np.unique(np.linspace(0, len(path) - 1, PATH_POINTS).astype(int))
        extra["path"] = {name: path[name][sampled].tolist() for name in ("iteration", "n_features")}
        extra["matrix"] = entries(chosen)
    return Fitted(
        chosen.predict,
        chosen.n_active_features_,
        float(chosen.valid_error_),
        {"scale": chosen.scale_, "iteration": int(chosen.chosen_iter_)},
        tried,
        curve(chosen, problem),
        extra,
    )


def fit_recipe(
    problem: Problem,
    *,
    recipes: tuple[tuple[str, bool], ...],
    scout_scales: tuple[float, ...],
    scout_iter: int,
    **settings: Any,
) -> Fitted:
    """`fit` with the triplets and row normalization of the lowest validation error in short runs."""
    scouts = []
    for triplets, unit in recipes:
        changed = with_recipe(problem, triplets, unit)
        for scale in scout_scales:
            learner = learn(changed, scale, "alternating", "decrease", None, scout_iter, scout_iter, settings["every"])
            scouts.append((rank(learner), (triplets, unit), about(learner)))
    _, (triplets, unit), _ = min(scouts, key=lambda scout: scout[0])
    fitted = fit(with_recipe(problem, triplets, unit), **settings)
    tried = [{**told, "triplets": t, "unit": u, "scout": True} for _, (t, u), told in scouts]
    return as_given(fitted, triplets, unit, tried)


def rank(learner: HDSLClassifier) -> tuple[float, int]:
    return learner.valid_error_, learner.n_active_features_


def about(learner: HDSLClassifier) -> dict[str, Any]:
    return {
        "scale": learner.scale_,
        "valid_error": round(float(learner.valid_error_), 6),
        "iteration": int(learner.chosen_iter_),
        "n_features": learner.n_active_features_,
        "stop": learner.stop_,
    }


def judged(learner: HDSLClassifier) -> list[tuple[int, float]]:
    """Features and validation error of every evaluated iterate."""
    path = learner.path_
    there = ~np.isnan(path["valid_error"])
    return list(zip(path["n_features"][there].tolist(), path["valid_error"][there].tolist()))


def front(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The Pareto front of number of features and validation error."""
    kept: list[tuple[int, float]] = []
    for n_features, wrong in sorted(points):
        if not kept or wrong < kept[-1][1] - 1e-12:
            kept.append((n_features, round(wrong, 6)))
    return kept


def curve(learner: HDSLClassifier, problem: Problem) -> list[Point]:
    """The run at iterations on a log scale: each is a projection with more dimensions."""
    last = len(learner.path_) - 1
    points = []
    for iteration in np.unique(np.geomspace(1, last + 1, CURVE_POINTS).astype(int) - 1):
        there = learner.at(iteration=int(iteration))
        wrong = 1 - float(there.score(problem.valid.X, problem.valid.y))
        points.append(Point(dimension(there), wrong, there.predict, {"iteration": int(iteration)}))
    return points


def dimension(learner: HDSLClassifier) -> int:
    """The rank of M, which is the dimension of the space in which the similarity is a dot product.

    M is a positive sum of (e_i ± e_j)(e_i ± e_j)'. A vector is in its kernel if it is 0 outside the features in use, and
    s_i = ∓ s_j for each atom: one such vector per component of the graph of atoms, unless signs contradict each other.
    """
    (i, j, _), signs = learner._model.atoms()
    parent: dict[int, int] = {}
    flipped: dict[int, int] = {}  # the sign of a feature relative to its parent

    def find(feature: int) -> tuple[int, int]:
        sign = 1
        while parent[feature] != feature:
            sign *= flipped[feature]
            feature = parent[feature]
        return feature, sign

    contradicted: set[int] = set()
    for a, b, sign in zip(i.tolist(), j.tolist(), signs.tolist()):
        for feature in (a, b):
            if feature not in parent:
                parent[feature], flipped[feature] = feature, 1
        (top_a, sign_a), (top_b, sign_b) = find(a), find(b)
        if top_a != top_b:
            # s_a = -sign s_b
            parent[top_a], flipped[top_a] = top_b, -sign * sign_a * sign_b
            if top_a in contradicted:
                contradicted.discard(top_a)
                contradicted.add(top_b)
        elif sign_a != -sign * sign_b:
            contradicted.add(top_a)
    components = sum(1 for feature, above in parent.items() if feature == above)
    return len(parent) - (components - len(contradicted))


def entries(learner: HDSLClassifier) -> dict[str, Any]:
    """Non-zeros of M on and above the diagonal: where, and of which sign."""
    M = learner.get_bilinear_matrix().tocoo()
    i, j = M.coords
    upper = i <= j
    return {
        "i": i[upper].tolist(),
        "j": j[upper].tolist(),
        "sign": np.sign(M.data[upper]).astype(int).tolist(),
        "size": M.shape[0],
    }


def all_scales(setting: Setting) -> dict[str, Any]:
    return setting.choose(
        full={"scales": decades(0, 9), "max_iter": 2000, "patience": 400, "every": 10},
        quick={"scales": decades(0, 6)[::2], "max_iter": 500, "patience": 150, "every": 10},
        tiny={"scales": [1.0, 100.0], "max_iter": 40, "patience": 20, "every": 2},
    )


def scouted(setting: Setting) -> dict[str, Any]:
    return setting.choose(
        full={"scales": decades(0, 9), "max_iter": 600, "patience": 200, "every": 10},
        quick={"scales": decades(0, 6)[::2], "max_iter": 100, "patience": 50, "every": 10},
        tiny={"scales": [1.0, 100.0], "max_iter": 40, "patience": 20, "every": 2},
    )


def recipes(setting: Setting) -> dict[str, Any]:
    return {
        **all_scales(setting),
        "recipes": RECIPES,
        "scout_scales": setting.choose(full=decades(1, 5), quick=[1e2, 1e4], tiny=[100.0]),
        "scout_iter": setting.choose(full=400, quick=200, tiny=20),
    }


fit_by_paper = partial(fit, step_rule="away")
BATCH = {"full": 1000, "quick": 1000, "tiny": 100}
SYSTEMS = [
    System(
        "hdsl",
        "HDSL",
        3,
        fit,
        lambda setting: {**all_scales(setting), "matrix": True},
        "λ of 1, 10, ..., 10^9, each along up to 2,000 iterations; the heuristic search over all triplets",
    ),
    System(
        "hdsl_paper_steps",
        "HDSL, the paper's steps",
        1,
        fit_by_paper,
        all_scales,
        "as HDSL, by the step rule of Alg. 1",
    ),
    System(
        "hdsl_recipe",
        "HDSL, recipe chosen",
        2,
        fit_recipe,
        recipes,
        "short runs with λ of 10, ..., 10^5 choose between 3 x 5 neighbors and 20 random triplets per row, and between raw "
        "rows and rows of unit norm; then as HDSL",
    ),
    System(
        "hdsl_exact",
        "HDSL, exact",
        1,
        fit_by_paper,
        lambda setting: {**scouted(setting), "search": "exact", "scout": True},
        "the heuristic search tries λ of 1, 10, ..., 10^9; the exact one the best of them and its two neighbors, along "
        "up to 600 iterations",
    ),
    System(
        "hdsl_batch",
        "HDSL, mini-batch",
        1,
        fit_by_paper,
        lambda setting: {**scouted(setting), "search": "exact", "scout": True, "batch": BATCH[setting.name]},
        "as the exact one, with gradients over 1,000 triplets drawn anew each iteration",
    ),
    System(
        "hdsl_batch_heuristic",
        "HDSL, mini-batch + heuristic",
        1,
        fit_by_paper,
        lambda setting: {**all_scales(setting), "batch": BATCH[setting.name]},
        "as HDSL, with gradients over 1,000 triplets drawn anew each iteration",
    ),
]
