"""Table 4: HDSL against support vector machines."""

from __future__ import annotations

from experiments.cells import Cell, Found, Setting
from experiments.classify import cells_of
from experiments.page import Page
from experiments.systems import MACHINES
from experiments.table3 import PAPER as SIMILARITIES
from experiments.table3 import comparison, searched

TITLE = "Table 4: HDSL against support vector machines"

#: Test error in per cent and number of features, as the paper has them.
PAPER: dict[str, dict[str, tuple[float, int | None]]] = {
    "dexter": {
        "svm_poly_2": (9.4, None), "svm_poly_3": (9.2, None), "svm_linear_l2": (8.9, None), "svm_linear_l1": (8.9, 281),
    },
    "dorothea": {
        "svm_poly_2": (7.0, None), "svm_poly_3": (6.6, None), "svm_linear_l2": (8.1, None), "svm_linear_l1": (6.6, 366),
    },
    "farm_ads": {
        "svm_poly_2": (3.4, None), "svm_poly_3": (3.3, None), "svm_linear_l2": (3.5, None), "svm_linear_l1": (4.0, 1915),
    },
    "reuters_top4": {
        "svm_poly_2": (5.7, None), "svm_poly_3": (5.7, None), "svm_linear_l2": (5.1, None), "svm_linear_l1": (5.7, 2770),
    },
}  # fmt: skip
for name, figures in PAPER.items():
    figures["hdsl"] = SIMILARITIES[name]["hdsl"]


def cells(setting: Setting) -> list[Cell]:
    return cells_of([*MACHINES, "hdsl"], setting)


def report(found: Found, page: Page) -> str:
    return comparison(found, [*MACHINES, "hdsl"], PAPER) + searched(MACHINES)
