"""Figure 2: the sparsity of M."""

from __future__ import annotations

import numpy as np

from experiments import data
from experiments.cells import Cell, Found, Setting
from experiments.classify import cells_of
from experiments.page import Page, table
from experiments.pictures import ALIKE, UNLIKE, panels

TITLE = "Figure 2: the sparsity of M"

#: Non-zero entries in the paper.
PAPER = {"dexter": 712, "reuters_top4": 5263}


def cells(setting: Setting) -> list[Cell]:
    return [cell for cell in cells_of(["hdsl"], setting) if cell.seed == 0]


def report(found: Found, page: Page) -> str:
    sets = [name for name in found.setting.datasets if found.of(dataset=name)]
    figure, axes = panels(len(sets), square=True)
    rows = []
    for ax, name in zip(axes, sets):
        [(_, result)] = found.of(dataset=name)
        entries = result["matrix"]
        i, j, sign = (np.array(entries[key]) for key in ("i", "j", "sign"))
        off = i != j
        i, j, sign = np.r_[i, j[off]], np.r_[j, i[off]], np.r_[sign, sign[off]]
        size = entries["size"]
        for which, color, label in [(1, ALIKE, "above 0"), (-1, UNLIKE, "below 0")]:
            here = sign == which
            # Thousands of dots are drawn as pixels inside the SVG.
            ax.plot(j[here], i[here], ".", color=color, markersize=2.2, markeredgewidth=0, label=label, rasterized=True)
        ax.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
        ax.set_title(f"{data.DATASETS[name].title}: {len(i):,} of {size:,}² entries", fontsize="medium")
        ax.ticklabel_format(style="plain")
        ax.tick_params(labelsize="small")
        rows.append([
            data.DATASETS[name].title, f"{size:,}", f"{result['n_features']:,}", f"{len(i):,}",
            f"{PAPER[name]:,}" if name in PAPER else "", f"{(sign > 0).sum():,}", f"{(sign < 0).sum():,}",
            f"{(~off).sum():,}", f"{100 * len(i) / size**2:.1g}%",
        ])  # fmt: skip
    handles = axes[0].get_legend_handles_labels() if len(sets) else ([], [])
    legend = figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False, markerscale=5)
    legend.set_in_layout(True)
    text = page.figure("figure2", figure, "Entries of M: positive in blue, negative in red, one panel per dataset")
    text += "\nThe first seed of Table 3. According to the paper about 0.0001% of the entries are not 0.\n\n"
    return text + table(
        ["dataset", "features", "in use", "entries not 0", "paper", "above 0", "below 0", "on the diagonal", "share"], rows
    )
