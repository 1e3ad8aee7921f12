"""The cells behind Tables 3 and 4 and Figures 1 to 3: a system learns, chooses by validation rows, and is tested once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments import data
from experiments.cells import Cell, Context, Setting, cell
from experiments.systems import SYSTEMS
from experiments.systems.base import Problem, error


def cells_of(names: Iterable[str], setting: Setting) -> list[Cell]:
    """Cells of these systems on every dataset and seed of a setting."""
    return [
        cell("classify", dataset, name, seed, SYSTEMS[name].version, **SYSTEMS[name].grid(setting))
        for seed in setting.seeds
        for dataset in setting.datasets
        for name in names
    ]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    parts = data.load(cell.dataset, context.data, cell.seed)
    problem = Problem(parts.train, parts.valid, data.DATASETS[cell.dataset].triplets, cell.seed, context)
    fitted = SYSTEMS[cell.system].fit(problem, **dict(cell.parameters))
    result = {
        "test_error": error(fitted.predict(parts.test.X), parts.test),
        "valid_error": fitted.valid_error,
        "n_features": fitted.n_features,
        "choice": fitted.choice,
        "tried": fitted.tried,
        **fitted.extra,
    }
    if fitted.curve:
        # Nothing is chosen by these; they are what Figure 3 shows.
        result["curve"] = [
            {
                "dimension": point.dimension,
                "valid_error": round(point.valid_error, 6),
                "test_error": round(error(point.predict(parts.test.X), parts.test), 6),
            }
            for point in fitted.curve
        ]
    if cell.seed != 0:
        # One picture is enough.
        result.pop("matrix", None)
    return result
