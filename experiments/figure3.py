"""Figure 3: test error against the dimension of the space."""

from __future__ import annotations

import numpy as np

from experiments import data
from experiments.cells import Cell, Found, Setting
from experiments.classify import CURVES, cells_of
from experiments.page import Page, table
from experiments.pictures import panels
from experiments.systems import SYSTEMS

TITLE = "Figure 3: test error against dimension"

STYLES = dict(
    zip(CURVES, [("#0b6bb8", "-", "o"), ("#c58b1b", ":", "v"), ("#c58b1b", "-", "^"), ("#5b8c3a", ":", "s"), ("#5b8c3a", "-", "D")])
)


def cells(setting: Setting) -> list[Cell]:
    return cells_of([*STYLES, "identity"], setting)


def report(found: Found, page: Page) -> str:
    sets = [name for name in found.setting.datasets if found.of(dataset=name)]
    figure, axes = panels(len(sets))
    rows = []
    for ax, name in zip(axes, sets):
        row = [data.DATASETS[name].title]
        for system, (color, line, marker) in STYLES.items():
            results = found.of(dataset=name, system=system)
            if not results:
                row.append("–")
                continue
            xs, ys = curve([result["curve"] for _, result in results])
            title = SYSTEMS[system].title
            ax.plot(xs, 100 * ys, line, color=color, marker=marker, markersize=3, linewidth=1.2, label=title)
            best = int(np.argmin(ys))
            row.append(f"{100 * ys[best]:.1f} [{xs[best]:,.0f}]")
        plain = [result["test_error"] for _, result in found.of(dataset=name, system="identity")]
        if plain:
            ax.axhline(100 * float(np.mean(plain)), color="0.6", linewidth=0.8, linestyle="--", label="IDENTITY")
        ax.set(title=data.DATASETS[name].title, xlabel="dimensions", ylabel="test error (%)", xscale="log", ylim=(0, None))
        rows.append(row)
    if sets:
        labels = axes[0].get_legend_handles_labels()
        figure.legend(*labels, loc="outside lower center", ncols=6, frameon=False, fontsize="small")
    text = page.figure("figure3", figure, "Test error against dimension on a log axis, one panel per dataset")
    text += (
        "\nMeans over the seeds. HDSL is one run per seed, at iterations on a log scale; its dimension is the rank of M there, and "
        "the error of a seed between two of its dimensions is that at the lower one. Below, the lowest point of each curve and "
        "its dimension: chosen by test rows, it describes the curve and is not a result.\n\n"
    )
    return text + table(["dataset", *(SYSTEMS[name].title for name in STYLES)], rows)


def curve(several: list[list[dict[str, float]]]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of curves that have points at different dimensions: each is a step function from its first point on."""
    places = sorted({point["dimension"] for one in several for point in one})
    if len({tuple(point["dimension"] for point in one) for one in several}) > 1:
        # Runs of HDSL have different dimensions: a common grid keeps the mean smooth.
        first = max(min(point["dimension"] for point in one) for one in several)
        last = max(places)
        places = sorted({int(round(x)) for x in np.geomspace(first, last, 25)})
    xs, ys = [], []
    for place in places:
        errors = []
        for one in several:
            below = [point for point in one if point["dimension"] <= place]
            if below:
                errors.append(max(below, key=lambda point: point["dimension"])["test_error"])
        xs.append(place)
        ys.append(np.mean(errors))
    return np.array(xs), np.array(ys)
