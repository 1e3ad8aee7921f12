"""Figure 1: active features against iterations, for the runs of Table 3 and for runs without early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.classify import cells_of
from experiments.page import Page, table
from experiments.pictures import DARK, LIGHT, UNLIKE, panels
from hdsl import HDSL

TITLE = "Figure 1: active features against iterations"
VERSION = 2


def cells(setting: Setting) -> list[Cell]:
    long = [
        cell("figure1", name, "hdsl_long", setting.seeds[0], VERSION, scale=scale,
             max_iter=setting.choose(full=10_000, quick=1000, tiny=60))
        for name in setting.datasets
        for scale in setting.choose(full=[10.0, 100.0, 1000.0], quick=[100.0], tiny=[10.0])
    ]  # fmt: skip
    return cells_of(["hdsl"], setting) + long


def run(cell: Cell, context: Context) -> dict[str, Any]:
    """A run without early stopping: the number of features and pairs over the iterations."""
    train = data.load(cell.dataset, context.data, cell.seed).train
    learner = HDSL(
        scale=cell.get("scale"), triplets=data.DATASETS[cell.dataset].triplets, preprocess="none",
        max_iter=cell.get("max_iter"), random_state=cell.seed, n_jobs=1,
    ).fit(train.X, train.y)  # fmt: skip
    path = learner.path_
    sampled = np.unique(np.linspace(0, len(path) - 1, 150).astype(int))
    return {
        "path": {name: path[name][sampled].tolist() for name in ("iteration", "n_features", "n_atoms")},
        "stop": learner.stop_,
        "objective": learner.objective_,
    }


def report(found: Found, page: Page) -> str:
    sets = [name for name in found.setting.datasets if found.of(dataset=name, system="hdsl")]
    figure, axes = panels(len(sets))
    rows = []
    for ax, name in zip(axes, sets):
        for place, (_, result) in enumerate(found.of(dataset=name, system="hdsl")):
            path, first = result["path"], place == 0
            style = {"color": DARK, "linewidth": 1.4, "zorder": 2} if first else {"color": LIGHT, "linewidth": 0.9}
            label = "first seed" if first else "others" if place == 1 else None
            ax.plot(path["iteration"], path["n_features"], label=label, **style)
            if first:
                at = result["choice"]["iteration"]
                ax.plot([at], [result["n_features"]], "o", color=UNLIKE, zorder=3, markersize=5, label="chosen")
                rows.append([
                    data.DATASETS[name].title, f"{result['choice']['scale']:g}", f"{path['iteration'][-1]:,}", f"{at:,}",
                    f"{result['n_features']:,}", f"{path['n_features'][-1]:,}",
                ])  # fmt: skip
        ax.set(title=data.DATASETS[name].title, xlabel="iteration", ylabel="features in use", xlim=(0, None), ylim=(0, None))
        ax.legend(fontsize="small", frameon=False)
    text = page.figure("figure1", figure, "Features in use against iterations, one panel per dataset")
    text += "\nThe runs of Table 3 at the chosen λ, with early stopping; below, the first seed.\n\n"
    text += table(["dataset", "λ", "iterations", "chosen", "features there", "features at the end"], rows)
    return text + endless(found, page, sets)


def endless(found: Found, page: Page, sets: list[str]) -> str:
    """Runs without early stopping."""
    figure, axes = panels(len(sets))
    rows = []
    for ax, name in zip(axes, sets):
        several = sorted(found.of(dataset=name, system="hdsl_long"), key=lambda pair: pair[0].get("scale"))
        for (cell, result), color in zip(several, ["#7fb2d9", DARK, "#123a5c"]):
            path = result["path"]
            ax.plot(path["iteration"], path["n_features"], color=color, linewidth=1.3, label=f"λ = {cell.get('scale'):g}")
            rows.append([
                data.DATASETS[name].title, f"{cell.get('scale'):g}", f"{path['iteration'][-1]:,}", result["stop"],
                f"{max(path['n_features']):,}", f"{path['n_features'][-1]:,}", f"{path['n_atoms'][-1]:,}",
                f"{result['objective']:.2g}",
            ])  # fmt: skip
        ax.set(title=data.DATASETS[name].title, xlabel="iteration", ylabel="features in use", xlim=(0, None), ylim=(0, None))
        if several:
            ax.legend(fontsize="small", frameon=False)
    if not rows:
        return ""
    text = "\n### Runs without early stopping\n\n"
    text += page.figure("figure1-long", figure, "Features in use along long runs, one panel per dataset")
    text += "\nThe first seed.\n\n"
    return text + table(
        ["dataset", "λ", "iterations", "reason of the end", "most features", "features at the end", "pairs at the end", "loss"],
        rows,
    )
