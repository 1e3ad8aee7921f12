"""Distances learned after TruncatedSVD: NCA of scikit-learn, LMNN and SCML of metric-learn.

metric-learn does not work with current versions of scikit-learn: it runs in an environment of its own and returns the matrix
of its map.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from experiments.cells import LeftOut, Setting
from experiments.systems.base import K, Fitted, Point, Problem, System, error

SCRIPT = Path(__file__).resolve().with_name("metric_learn_script.py")


def fit(problem: Problem, *, method: str, dimensions: tuple[int, ...], max_iter: int) -> Fitted:
    """The number of dimensions of the lowest validation error; the smallest in case of ties."""
    if method != "nca":
        check_metric_learn(problem.context.metric_learn)
    most = max(dimensions)
    svd = TruncatedSVD(min(most, min(problem.train.X.shape) - 1), random_state=problem.seed).fit(problem.train.X)
    train = svd.transform(problem.train.X)
    numbers = np.unique(problem.train.y, return_inverse=True)[1]
    points = []
    for r in dimensions:
        few = np.ascontiguousarray(train[:, :r])
        if method == "nca":
            nca = NeighborhoodComponentsAnalysis(max_iter=max_iter, random_state=problem.seed).fit(few, numbers)
            components = nca.components_
        else:
            components = by_metric_learn(problem, method, few, numbers, max_iter)
        voters = KNeighborsClassifier(K, algorithm="brute").fit(few @ components.T, problem.train.y)

        def predict(X: Any, r: int = r, components: Any = components, voters: Any = voters) -> np.ndarray:
            return voters.predict(svd.transform(X)[:, :r] @ components.T)

        points.append(Point(r, error(predict(problem.valid.X), problem.valid), predict, {"dimension": r}))
    best = min(points, key=lambda point: point.valid_error)
    tried = [{"dimension": p.dimension, "valid_error": round(p.valid_error, 6)} for p in points]
    return Fitted(best.predict, best.dimension, best.valid_error, best.choice, tried, points)


def check_metric_learn(python: str | None) -> None:
    if python is None:
        raise LeftOut(
            "metric-learn needs a Python environment of its own, since it does not work with current versions of scikit-learn: "
            "use experiments/run, or pass one with --metric-learn"
        )
    try:
        done = subprocess.run([python, "-c", "import metric_learn"], capture_output=True, text=True)
    except OSError as why:
        raise LeftOut(f"{python} cannot be started: {why}") from why
    if done.returncode != 0:
        raise LeftOut(f"{python} has no metric-learn: {done.stderr.strip().splitlines()[-1]}")


def by_metric_learn(problem: Problem, method: str, rows: np.ndarray, y: np.ndarray, max_iter: int) -> np.ndarray:
    """The map that metric-learn learns in a process of its own."""
    asked = {"method": method, "max_iter": max_iter, "seed": problem.seed}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "rows.npz", X=rows, y=y)
        done = subprocess.run(
            [str(problem.context.metric_learn), str(SCRIPT), folder, json.dumps(asked)],
            capture_output=True, text=True, env=environment,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"metric-learn: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
        return np.load(Path(folder) / "components.npy")


def grid(method: str, max_iter: int) -> Any:
    def of(setting: Setting) -> dict[str, Any]:
        return {
            "method": method,
            "dimensions": setting.choose(full=[20, 50, 100], quick=[20], tiny=[5]),
            "max_iter": setting.choose(full=max_iter, quick=max_iter // 5, tiny=max(10, max_iter // 100)),
        }

    return of


SEARCHED = "20, 50 and 100 dimensions of TruncatedSVD"
SYSTEMS = [
    System("svd_nca", "SVD+NCA", 1, fit, grid("nca", 50), f"{SEARCHED}; 50 iterations"),
    System("svd_lmnn", "SVD+LMNN", 1, fit, grid("lmnn", 50), f"{SEARCHED}; 3 targets, up to 50 iterations"),
    System("svd_scml", "SVD+SCML", 1, fit, grid("scml", 10_000), f"{SEARCHED}; 3 x 5 triplets, up to 10,000 iterations"),
]
