"""Figure 1: active features against iterations."""

from __future__ import annotations

from experiments import data
from experiments.cells import Cell, Found, Setting
from experiments.classify import cells_of
from experiments.page import Page, table
from experiments.pictures import DARK, LIGHT, panels

TITLE = "Figure 1: active features against iterations"


def cells(setting: Setting) -> list[Cell]:
    return cells_of(["hdsl"], setting)


def report(found: Found, page: Page) -> str:
    sets = [name for name in found.setting.datasets if found.of(dataset=name)]
    figure, axes = panels(len(sets))
    rows = []
    for ax, name in zip(axes, sets):
        for place, (_, result) in enumerate(found.of(dataset=name)):
            path = result["path"]
            first = place == 0
            ax.plot(path["iteration"], path["n_features"], color=DARK if first else LIGHT, zorder=2 if first else 1,
                    linewidth=1.4 if first else 0.9, label="first seed" if first else "others" if place == 1 else None)  # fmt: skip
            if first:
                at = result["choice"]["iteration"]
                ax.plot([at], [result["n_features"]], "o", color="#d1491b", zorder=3, markersize=5, label="chosen")
                rows.append([
                    data.DATASETS[name].title, f"{result['choice']['scale']:g}", f"{path['iteration'][-1]:,}", f"{at:,}",
                    f"{result['n_features']:,}", f"{path['n_features'][-1]:,}", f"{max(path['n_features']):,}",
                ])  # fmt: skip
        ax.set(title=data.DATASETS[name].title, xlabel="iteration", ylabel="features in use", xlim=(0, None), ylim=(0, None))
        ax.legend(fontsize="small", frameon=False)
    text = page.figure("figure1", figure, "Features in use against iterations, a panel a dataset")
    text += "\nRuns of Table 3, at the λ that was chosen; below, the first seed.\n\n"
    return text + table(
        ["dataset", "λ", "iterations", "chosen", "features there", "features at the end", "most"], rows
    )
