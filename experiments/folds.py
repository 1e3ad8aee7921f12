"""What `hdsl.tune` gains from repeated folds of few rows, against the validation rows as one part."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, percent, table
from experiments.tuning import spread, wrong

TITLE = "Repeated folds: few rows in hdsl.tune"
VERSION = 2

#: Sets with few rows.
SMALL = ("dexter", "dorothea", "planted_2", "planted_4")

SCHEMES = {"part": "one part", "folds": "repeated folds"}


def cells(setting: Setting) -> list[Cell]:
    most = setting.choose(full=20.0, quick=10.0, tiny=1.0)
    small = [name for name in setting.datasets if name in SMALL]
    return [
        cell("folds", dataset, scheme, seed, VERSION, time=most) for seed in setting.seeds for dataset in small for scheme in SCHEMES
    ]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    import hdsl

    cut = data.DATASETS[cell.dataset].cut
    assert cut is not None
    parts = cut(context.data, cell.seed)
    train, valid = parts.train, parts.valid
    in_folds = cell.system == "folds"
    best = hdsl.tune(
        train.X, train.y, X_val=valid.X, y_val=valid.y, refit=in_folds, time=cell.get("time"), random_state=cell.seed, n_jobs=1
    )
    told = best.tuning_
    if not in_folds:  # the same final training, so that only the choice differs
        best = hdsl.HDSLClassifier(**best.tuned_params_, n_jobs=1)
        best.fit(sp.vstack([train.X, valid.X]).tocsr(), np.r_[train.y, valid.y])
    return {"test_error": wrong(best, parts.test), "expected_error": told.expected_error, "deviation": told.expected_error_deviation}


def report(found: Found, page: Page) -> str:
    text = (
        "A search of 20 seconds on one thread chooses on the validation rows, predicted by models of the training rows, or on repeated\n"
        "folds of all rows, each predicted by models of the others. The winner is then trained on all rows in both cases, so that only the\n"
        "choice differs. Test error over the splits, and the mean of |expected - test|.\n\n"
    )
    rows = []
    for name in dict.fromkeys(cell.dataset for cell, _ in found.results):
        for scheme, words in SCHEMES.items():
            results = [result for _, result in found.of(dataset=name, system=scheme)]
            if not results:
                continue
            off = [abs(r["expected_error"] - r["test_error"]) for r in results if r["expected_error"] is not None]
            rows.append([
                data.DATASETS[name].title, words, len(results), spread([r["test_error"] for r in results]),
                percent(float(np.mean(off))) if off else "–",
            ])  # fmt: skip
    return text + table(["dataset", "choice on", "splits", "test error", "expected is off by"], rows, right=[2])
