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
    """Ticks of a logarithmic axis without powers of ten; 2 and 5 are told where decades are few, more within one."""
    low, high = axis.get_view_interval()
    between = "2346" if high / low < 10 else "25" if high / low < 50 else ""

    def told(value, _=None):
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"

    axis.set_major_formatter(told)
    axis.set_minor_formatter(lambda value, _: told(value) if f"{value:e}"[0] in between else "")


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


def over_seconds(axes, curves, label):
    """Steps over a logarithmic axis of seconds."""
    for at, (name, curve) in enumerate(curves.items()):
        axes.step(*zip(*curve), where="post", color=COLOURS[at], linewidth=1.6, label=name)
    axes.set(xscale="log", xlabel="seconds", ylabel=label)


def race(path, title, curves, points):
    """Our lowest validation error so far over time, and each baseline where it ended."""
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    over_seconds(axes, curves, "validation error, %")
    for at, (name, (x, y)) in enumerate(points.items()):
        mark, color = MARKS[at % len(MARKS)], COLOURS[(at + len(curves)) % len(COLOURS)]
        axes.plot([x], [y], mark, color=color, markersize=7, label=name)
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    plain_numbers(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    save(figure, path)


def builds(path, title, panels):
    """Curves of two builds over seconds, in panels: the label of the vertical axis, the curves by name, and the value
    whose time is compared, with the seconds at which each reaches it or None. The first panel is the objective."""
    figure, row = plt.subplots(1, len(panels), figsize=(4.8 * len(panels), 3.6), squeeze=False)
    for axes, (label, curves, target, reached) in zip(row[0], panels):
        over_seconds(axes, curves, label)
        axes.axhline(target, color=COLOURS[-1], linewidth=1.0, linestyle=":")
        for at, seconds in enumerate(reached):
            if seconds is not None:
                axes.plot([seconds], [target], MARKS[at], color=COLOURS[at], markersize=5)
        plain_numbers(axes.xaxis)
    row[0][0].set_yscale("log")
    plain_numbers(row[0][0].yaxis)
    row[0][-1].legend(loc="upper right")
    figure.suptitle(title)
    figure.tight_layout()
    save(figure, path)
