"""Whether the error that `hdsl.tune` expects is the error on new rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, percent, table

TITLE = "Calibration: the expected error of hdsl.tune"
VERSION = 3

#: The number of searches per dataset: other splits into training and test rows.
SEARCHES = 10


def cells(setting: Setting) -> list[Cell]:
    most = setting.choose(full=10.0, quick=5.0, tiny=1.0)
    seeds = range(setting.choose(full=SEARCHES, quick=3, tiny=1))
    return [
        cell("calibration", dataset, "tune", seed, VERSION, time=most) for seed in seeds for dataset in setting.datasets
    ]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    import scipy.sparse as sp

    import hdsl

    cut = data.DATASETS[cell.dataset].cut
    assert cut is not None
    parts = cut(context.data, cell.seed)
    X = sp.vstack([parts.train.X, parts.valid.X]).tocsr()
    y = np.r_[parts.train.y, parts.valid.y]
    best = hdsl.tune(X, y, time=cell.get("time"), random_state=cell.seed, n_jobs=1)
    told = best.tuning_
    return {
        "expected_error": told.expected_error,
        "deviation": told.expected_error_deviation,
        "test_error": float(np.mean(best.predict(parts.test.X) != parts.test.y)),
        "n_test": len(parts.test.y),
        "reference_error": told.reference_error,
        "learned": told.learned,
    }


def report(found: Found, page: Page) -> str:
    text = (
        "Searches on other random splits of the same data, each with a short time limit. The test rows had no part in the search.\n"
        "*Within* counts the searches whose test error is within two standard deviations of the expected error, where the\n"
        "deviation is the one that the search prints.\n\n"
    )
    rows: list[list[Any]] = []
    within: list[bool] = []
    for name in found.setting.datasets:
        results = [result for _, result in found.of(dataset=name) if result["expected_error"] is not None]
        if not results:
            continue
        inside = [abs(r["test_error"] - r["expected_error"]) <= 2 * r["deviation"] for r in results]
        within += inside
        mean = {key: float(np.mean([r[key] for r in results])) for key in ("expected_error", "deviation", "test_error")}
        rows.append([
            data.DATASETS[name].title, len(results), percent(mean["expected_error"]), percent(mean["deviation"]),
            percent(mean["test_error"]), f"{sum(inside)} of {len(inside)}",
        ])  # fmt: skip
    rows.append(["all", len(within), "", "", "", f"{sum(within)} of {len(within)}"])
    head = ["dataset", "searches", "expected error", "its deviation", "test error", "within"]
    return text + table(head, rows, right=[1, 2, 3, 4])
