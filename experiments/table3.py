"""Table 3: the k-NN test error of every similarity."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import data
from experiments.cells import Cell, Found, Setting
from experiments.classify import cells_of
from experiments.comparison import error_cell, paired, summary
from experiments.page import Page, table
from experiments.systems import SIMILARITIES, SYSTEMS

TITLE = "Table 3: k-NN test error of every similarity"

#: Test error in per cent and number of features, as the paper has them.
PAPER: dict[str, dict[str, tuple[float, int | None]]] = {
    "dexter": {
        "identity": (20.1, None), "rp_oasis": (24.0, 1000), "pca_oasis": (9.3, 50), "diag_l2": (8.4, None),
        "diag_l1": (8.4, 773), "hdsl": (6.5, 183),
    },
    "dorothea": {
        "identity": (9.3, None), "rp_oasis": (11.4, 150), "pca_oasis": (9.9, 800), "diag_l2": (6.8, None),
        "diag_l1": (6.6, 860), "hdsl": (6.5, 731),
    },
    "farm_ads": {
        "identity": (6.9, None), "rp_oasis": (7.0, 2000), "pca_oasis": (4.5, 1500), "diag_l2": (3.5, None),
        "diag_l1": (3.7, 5289), "hdsl": (3.4, 2126),
    },
    "reuters_top4": {
        "identity": (11.2, None), "rp_oasis": (10.6, 1000), "pca_oasis": (6.1, 800), "diag_l2": (6.2, None),
        "diag_l1": (7.2, 3878), "hdsl": (5.7, 1888),
    },
}  # fmt: skip
#: Whose data the paper's figures are of.
STANDS_FOR = {"farm_ads": "rcv1_2", "reuters_top4": "rcv1_4"}


def cells(setting: Setting) -> list[Cell]:
    return cells_of(SIMILARITIES, setting)


def report(found: Found, page: Page) -> str:
    return comparison(found, SIMILARITIES, PAPER) + searched(SIMILARITIES)


def comparison(found: Found, names: list[str], paper: dict[str, dict[str, tuple[float, int | None]]]) -> str:
    """Errors of systems on every dataset, the best in bold, and what speaks for or against HDSL."""
    sets = [name for name in found.setting.datasets if found.of(dataset=name)]
    titles = [data.DATASETS[name].title for name in sets]
    figures = {(d, s): summary(found.of(dataset=d, system=s)) for d in sets for s in names}
    best = {d: min((f.mean for s in names if (f := figures[d, s])), default=None) for d in sets}
    head = ["system"]
    for name, title in zip(sets, titles):
        head += [title, f"paper{': ' + STANDS_FOR[name] if name in STANDS_FOR else ''}"]
    rows = []
    for system in names:
        row: list[Any] = [SYSTEMS[system].title]
        for name in sets:
            row.append(error_cell(figures[name, system], best[name]))
            theirs = paper.get(name, {}).get(system)
            row.append("" if theirs is None else f"{theirs[0]}" + (f" [{theirs[1]:,}]" if theirs[1] else ""))
        rows.append(row)
    seeds = sorted({cell.seed for cell, _ in found.results})
    text = (
        f"Test error in per cent, mean ± standard deviation over {len(seeds)} seeds, and in brackets the mean number of "
        "features (dimensions, for projections). The lowest mean is in bold.\n\n"
    )
    text += table(head, rows)
    text += "\n### HDSL against each of them\n\n"
    text += (
        "Difference of test errors, in points: above 0, HDSL is better. In brackets the seeds on which HDSL was better, "
        "equal and worse, and the p-value of a paired t-test over the seeds, which share training rows and so make it "
        "look surer than it is.\n\n"
    )
    rows = []
    for system in names:
        if system == "hdsl":
            continue
        row = [SYSTEMS[system].title]
        for name in sets:
            row.append(paired(found.of(dataset=name, system="hdsl"), found.of(dataset=name, system=system)))
        rows.append(row)
    return text + table(["system", *titles], rows)


def searched(names: list[str]) -> str:
    """What each system was chosen from."""
    text = "\n<details><summary>What was searched, on validation rows</summary>\n\n"
    for name in names:
        text += f"- {SYSTEMS[name].title}: {SYSTEMS[name].searched}.\n"
    return text + "\n</details>\n"


def verdict(found: Found, names: list[str]) -> dict[str, Any]:
    """For each dataset: is HDSL the best, or within one standard deviation of the best?"""
    told = {}
    for name in found.setting.datasets:
        ours = summary(found.of(dataset=name, system="hdsl"))
        others = {s: f for s in names if s != "hdsl" and (f := summary(found.of(dataset=name, system=s)))}
        if ours and others:
            rival = min(others, key=lambda s: others[s].mean)
            told[name] = {
                "best": ours.mean <= others[rival].mean,
                "within": ours.mean - others[rival].mean <= max(ours.deviation, others[rival].deviation),
                "rival": rival,
                "difference": float(np.round(100 * (ours.mean - others[rival].mean), 2)),
            }
    return told
