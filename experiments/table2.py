"""Table 2: the datasets as loaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, percent, table

TITLE = "Table 2: the datasets as loaded"
VERSION = 1

#: Dimension, sparsity in per cent, sizes of training, validation and test, as the paper has them.
PAPER = {
    "dexter": ("dexter", 20_000, 0.48, 300, 300, 2_000),
    "dorothea": ("dorothea", 100_000, 0.91, 800, 350, 800),
    "farm_ads": ("rcv1_2", 47_236, 0.16, 12_145, 4_048, 4_049),
    "reuters_top4": ("rcv1_4", 29_992, 0.26, 3_850, 2_888, 2_887),
}


def cells(setting: Setting) -> list[Cell]:
    return [cell("table2", name, "data", setting.seeds[0], VERSION) for name in setting.datasets]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    parts = data.load(cell.dataset, context.data, cell.seed)
    return {
        "dimension": parts.train.X.shape[1],
        "occurring": int(len(np.unique(parts.train.X.indices))),
        "sparsity": parts.train.X.nnz / (parts.train.X.shape[0] * parts.train.X.shape[1]),
        "classes": np.unique(parts.train.y, return_counts=True)[1].tolist(),
        "sizes": [len(parts.train), len(parts.valid), len(parts.test)],
    }


def report(found: Found, page: Page) -> str:
    rows = []
    for cell, result in found.results:
        train, valid, test = result["sizes"]
        rows.append([
            f"**{data.DATASETS[cell.dataset].title}**", f"{result['dimension']:,}", f"{result['occurring']:,}",
            percent(result["sparsity"], 2) + "%", f"{train:,}", f"{valid:,}", f"{test:,}",
            " / ".join(f"{count:,}" for count in result["classes"]),
        ])  # fmt: skip
        if cell.dataset in PAPER:
            name, dimension, sparsity, *sizes = PAPER[cell.dataset]
            rows.append([f"paper: {name}", f"{dimension:,}", "", f"{sparsity}%", *(f"{n:,}" for n in sizes), ""])
    text = table(
        ["dataset", "dimension", "in training rows", "sparsity", "training", "validation", "test", "training rows per class"],
        rows,
    )
    text += "\nSparsity is the share of values that are not 0 in the training part; the sizes are those of the first seed.\n\n"
    about = [(data.DATASETS[cell.dataset].title, data.DATASETS[cell.dataset].about) for cell, _ in found.results]
    return text + "".join(f"- {title}: {what}.\n" for title, what in about)
