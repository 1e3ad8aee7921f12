"""Plots as SVG, the same bytes for the same numbers."""

import math

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

plt.rcParams.update(
    {
        "svg.hashsalt": "hdsl",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "figure.facecolor": "white",
    }
)
COLOURS = ["#0b6e99", "#c4572b", "#5a7d2a", "#7a4b9a", "#8a6d00", "#555555"]
MARKS = ["o", "s", "^", "D", "v", "P"]


def save(figure, path):
    figure.savefig(path, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    plt.close(figure)


def plain_numbers(axis):
    """Ticks of a logarithmic axis without powers of ten; 2 and 5 are told where decades are few."""
    low, high = axis.get_view_interval()
    few = high / low < 50

    def told(value, _=None):
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"

    axis.set_major_formatter(told)
    axis.set_minor_formatter(lambda value, _: told(value) if few and f"{value:e}"[0] in "25" else "")


def fitted(points):
    """The power law through the points: (factor, exponent)."""
    x, y = [math.log(a) for a, _ in points], [math.log(b) for _, b in points]
    n = len(points)
    middle_x, middle_y = sum(x) / n, sum(y) / n
    exponent = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y)) / sum((a - middle_x) ** 2 for a in x)
    return math.exp(middle_y - exponent * middle_x), exponent


def growth(path, title, curves):
    """Measured points with the fitted power law through them; the exponent stands in the legend."""
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    for at, (name, points) in enumerate(curves.items()):
        color = COLOURS[at % len(COLOURS)]
        factor, exponent = fitted(points)
        ends = [points[0][0], points[-1][0]]
        axes.plot(ends, [factor * x**exponent for x in ends], color=color, linewidth=1.2, alpha=0.6)
        axes.plot(*zip(*points), MARKS[at % len(MARKS)], color=color, markersize=5, label=name)
    axes.set(xscale="log", yscale="log", xlabel=title, ylabel="an iteration, ms")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    axes.legend(title="variant (exponent)", loc="center left", bbox_to_anchor=(1.02, 0.5), alignment="left")
    save(figure, path)


def race(path, title, curves, points):
    """Our lowest validation error so far over time, and each baseline where it ended."""
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    for at, (name, curve) in enumerate(curves.items()):
        axes.step(*zip(*curve), where="post", color=COLOURS[at], linewidth=1.6, label=name)
    for at, (name, (x, y)) in enumerate(points.items()):
        mark, color = MARKS[at % len(MARKS)], COLOURS[(at + len(curves)) % len(COLOURS)]
        axes.plot([x], [y], mark, color=color, markersize=7, label=name)
    axes.set(xscale="log", xlabel="seconds", ylabel="validation error, %", title=title)
    axes.set_ylim(bottom=0)
    plain_numbers(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    save(figure, path)
