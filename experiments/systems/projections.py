"""Random projections and PCA, alone and with a similarity learned by OASIS on top."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.random_projection import GaussianRandomProjection

from experiments.cells import Setting
from experiments.systems.base import Fitted, Point, Problem, System, error
from experiments.systems.neighbors import by_scores
from hdsl import OASIS

#: Rows to coordinates, of which the first r are the projection to r dimensions.
Projection = Callable[[Any], np.ndarray]


def random_projection(problem: Problem, most: int) -> tuple[Projection, int, Callable[[int], float]]:
    """Coordinates are drawn independently, so the first r of them are a random projection to r dimensions."""
    drawn = GaussianRandomProjection(most, random_state=problem.seed).fit(problem.train.X)
    return drawn.transform, most, lambda r: float(np.sqrt(most / r))


def pca(problem: Problem, most: int) -> tuple[Projection, int, Callable[[int], float]]:
    """PCA by the Gram matrix of the rows, which are few: the same coordinates without dense rows."""
    most = min(most, len(problem.train) - 1)
    found = KernelPCA(most, kernel="linear", eigen_solver="dense").fit(problem.train.X)
    kept = len(found.eigenvalues_)
    return found.transform, kept, lambda r: 1.0


PROJECTIONS = {"rp": random_projection, "pca": pca}


def fit_plain(problem: Problem, *, projection: str, dimensions: tuple[int, ...]) -> Fitted:
    """The number of dimensions of the lowest validation error; the smallest in case of ties."""
    project, most, factor = PROJECTIONS[projection](problem, max(dimensions))
    train, valid = project(problem.train.X), project(problem.valid.X)
    points = []
    for r in available(dimensions, most):

        def predict(X: Any, r: int = r) -> np.ndarray:
            return by_scores(project(X)[:, :r] @ train[:, :r].T, problem.train.y)

        wrong = error(by_scores(valid[:, :r] @ train[:, :r].T, problem.train.y), problem.valid)
        points.append(Point(r, wrong, predict, {"dimension": r}))
    return chosen(points, [])


def fit_oasis(
    problem: Problem,
    *,
    projection: str,
    dimensions: tuple[int, ...],
    aggressiveness: tuple[float, ...],
    scout: int,
    narrow: int,
    hopeful: int,
) -> Fitted:
    """The number of dimensions and the aggressiveness of the lowest validation error.

    OASIS needs r^2 operations per step, so the search is coarse to fine: all values of aggressiveness at `scout` dimensions;
    the best of them and its neighbors up to `narrow` dimensions; above that the best of the previous number of dimensions,
    and the lowest of all, which is close to the dot product and so never much worse than the projection alone. More than
    `hopeful` dimensions are tried only if the previous number was the best of all.
    """
    project, most, factor = PROJECTIONS[projection](problem, max(dimensions))
    train, valid = project(problem.train.X), project(problem.valid.X)
    triplets = problem.mined()
    tried: list[dict[str, Any]] = []
    several = available(dimensions, most)
    scout = max((r for r in several if r <= scout), default=several[0])

    def learn(r: int, c: float) -> Point:
        scale = factor(r)
        few = np.ascontiguousarray(scale * train[:, :r])
        learner = OASIS(c, preprocess="none", random_state=problem.seed, n_jobs=1).fit_triplets(few, triplets)
        matrix = scale * learner.matrix_ @ few.T

        def predict(X: Any) -> np.ndarray:
            return by_scores(project(X)[:, :r] @ matrix, problem.train.y)

        wrong = error(by_scores(valid[:, :r] @ matrix, problem.train.y), problem.valid)
        tried.append({"dimension": r, "aggressiveness": c, "valid_error": round(wrong, 6)})
        return Point(r, wrong, predict, {"dimension": r, "aggressiveness": c})

    at_scout = [learn(scout, c) for c in aggressiveness]
    place = min(range(len(at_scout)), key=lambda at: at_scout[at].valid_error)
    points = []
    for r in several:
        if r == scout:
            points.append(at_scout[place])
            continue
        if r > hopeful and points[-1].valid_error > min(point.valid_error for point in points):
            continue
        near = list(aggressiveness[max(0, place - 1) : place + 2])
        values = near if r <= narrow else [points[-1].choice["aggressiveness"], min(aggressiveness)]
        points.append(min((learn(r, c) for c in dict.fromkeys(values)), key=lambda point: point.valid_error))
    return chosen(points, tried)


def available(dimensions: tuple[int, ...], most: int) -> list[int]:
    """Numbers of dimensions up to the available number, which is included."""
    return [r for r in dimensions if r < most] + [most]


def chosen(points: list[Point], tried: list[dict[str, Any]]) -> Fitted:
    best = min(points, key=lambda point: point.valid_error)
    tried = tried or [{"dimension": p.dimension, "valid_error": round(p.valid_error, 6)} for p in points]
    return Fitted(best.predict, best.dimension, best.valid_error, best.choice, tried, points)


def dimensions(setting: Setting) -> list[int]:
    return setting.choose(
        full=[2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000], quick=[5, 20, 50, 100], tiny=[2, 5, 20]
    )


def plain(projection: str) -> Any:
    return lambda setting: {"projection": projection, "dimensions": dimensions(setting)}


def oasis(projection: str) -> Any:
    def of(setting: Setting) -> dict[str, Any]:
        c = [float(f"1e{exponent}") for exponent in range(-9, 3)]
        return {
            "projection": projection,
            "dimensions": dimensions(setting),
            "aggressiveness": setting.choose(full=c, quick=c[5::2], tiny=c[-3:-1]),
            "scout": setting.choose(full=200, quick=50, tiny=5),
            "narrow": setting.choose(full=500, quick=50, tiny=5),
            "hopeful": setting.choose(full=1000, quick=100, tiny=20),
        }

    return of


ALL = "2, 5, 10, 20, 50, 100, 200, 500, 1,000 and 2,000 dimensions (PCA: at most one fewer than training rows)"
COARSE = (
    f"{ALL}; aggressiveness of 10^-9, ..., 10^2 at 200 dimensions, the best of them and its neighbors at up to 500; above, "
    "the best at the number before and 10^-9; 2,000 dimensions only where 1,000 were the best so far"
)
SYSTEMS = [
    System("rp", "RP", 1, fit_plain, plain("rp"), ALL),
    System("rp_oasis", "RP+OASIS", 2, fit_oasis, oasis("rp"), COARSE),
    System("pca", "PCA", 1, fit_plain, plain("pca"), ALL),
    System("pca_oasis", "PCA+OASIS", 2, fit_oasis, oasis("pca"), COARSE),
]
