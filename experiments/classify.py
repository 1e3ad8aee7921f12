"""The cells of Tables 3 and 4 and Figures 1 to 3: a system is trained, validated, and tested once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments import data
from experiments.cells import Cell, Context, Setting, cell
from experiments.systems import SYSTEMS
from experiments.systems.base import Problem, error

#: Systems whose test error at other dimensions is computed and stored, for Figure 3.
CURVES = ("hdsl", "rp", "rp_oasis", "pca", "pca_oasis")


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
        **fitted.extra,
    }
    if cell.system in CURVES:
        # For Figure 3 only: no choice depends on these test errors.
        result["curve"] = [
            {"dimension": point.dimension, "test_error": round(error(point.predict(parts.test.X), parts.test), 6)}
            for point in fitted.curve
        ]
    if cell.seed != 0:
        # Figure 2 shows the first seed.
        result.pop("matrix", None)
    return result
