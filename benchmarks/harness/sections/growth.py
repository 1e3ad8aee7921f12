"""The growth of the time per iteration: fitted exponents, compared with the paper's Table 1."""

import math
import shlex
import statistics

from context import ROOT, relative
from data import synthetic
from text import commands, milliseconds, paragraph, table

TITLE = "Growth"

# Name, flags, and its row of Table 1.
VARIANTS = {
    "default": ("all triplets, heuristic", [], "not in the paper; O(TD + Tk)"),
    "exact": ("all triplets, exact", ["--search", "exact"], "exact: O(TD² + Tk)"),
    "batch_exact": ("mini-batch, exact", ["--search", "exact", "--batch", "{M}"], "mini-batch: O(MD² + Tk)"),
    "batch": ("mini-batch, heuristic", ["--batch", "{M}"], "mini-batch + heuristic: O(MD + Tk)"),
}
# The exponent of the paper's formula if its search term or its triplet term dominates.
PAPER = {
    ("default", "T"): "1", ("default", "D"): "0 to 1", ("default", "k"): "0 to 1", ("default", "d"): "0",
    ("exact", "T"): "1", ("exact", "D"): "2", ("exact", "k"): "0 to 1", ("exact", "d"): "0",
    ("batch_exact", "T"): "0 to 1", ("batch_exact", "M"): "0 to 1", ("batch_exact", "D"): "0 to 2",
    ("batch_exact", "k"): "0 to 1", ("batch_exact", "d"): "0",
    ("batch", "T"): "0 to 1", ("batch", "M"): "0 to 1", ("batch", "D"): "0 to 1", ("batch", "k"): "0 to 1",
    ("batch", "d"): "0",
}  # fmt: skip
AXES = {
    "T": "triplets (T)",
    "M": "triplets in a batch (M)",
    "D": "values per row (D)",
    "k": "iteration (k)",
    "d": "features (d), the same columns in use",
}


FILES = {"T": "triplets", "M": "batch", "D": "values", "k": "iteration", "d": "features"}


def plan(context):
    """Variant, axis and its points: the value on the axis and the settings of the run."""
    quick = context.quick
    rows, features = (1_000, 10_000) if quick else (20_000, 100_000)
    triplets = [1, 3, 10] if quick else [1, 3, 10, 30, 100]
    lengths = [10, 20, 40] if quick else [10, 20, 50, 100, 200]
    batches = [100, 300, 1_000] if quick else [1_000, 3_000, 10_000, 30_000, 100_000]
    for variant in VARIANTS:
        # The exact search visits all pairs of features: a tenth of the rows and of the features suffices.
        exact = "exact" in variant
        n, d = (rows // 10, features // 10) if exact else (rows, features)
        base = {
            "rows": n,
            "per_row": 20 if exact else 50,
            "features": d,
            "spread": 1,
            "triplets": 10,
            "batch": n,
            "iterations": (6 if quick else 25) if exact else (40 if quick else 150),
        }
        many = (100 if quick else 400) if exact else (200 if quick else 4_000)
        yield variant, "T", [(n * t, {**base, "triplets": t, "batch": n // 10}) for t in triplets]
        yield variant, "D", [(length, {**base, "per_row": length}) for length in lengths if 40 * length <= d]
        yield variant, "k", [(None, {**base, "iterations": many})]
        yield variant, "d", [(d * spread, {**base, "spread": spread}) for spread in [1, 10, 100]]
        if "batch" in variant:
            yield variant, "M", [(m, {**base, "batch": m}) for m in batches if m <= 10 * n]


def seconds_of(context, variant, point, calls):
    """The time after each iteration of a run."""
    flags = [flag.format(M=point["batch"]) for flag in VARIANTS[variant][1]]
    path = synthetic(context, point["rows"], point["per_row"], point["features"], point["spread"])
    asked = ["trace", relative(path), "--scale", "100", "--triplets", f"random:{point['triplets']}"]
    asked += ["--max-iter", str(point["iterations"]), *flags]
    calls.append(shlex.join([relative(context.tool), *asked]))
    return context.ours(*asked)["iterations"]


def an_iteration(iterations):
    """Mean seconds without the first fifth, which contains the set-up and the cheap first steps."""
    start = len(iterations) // 5
    if len(iterations) - start < 2:
        return None
    return (iterations[-1][0] - iterations[start][0]) / (len(iterations) - 1 - start)


def windows(iterations):
    """Mean seconds per iteration in windows of doubling length, and the active atoms there."""
    points, start = [], 25
    while 2 * start <= len(iterations):
        spent = iterations[2 * start - 1][0] - iterations[start - 1][0]
        points.append((1.5 * start, spent / start, iterations[int(1.5 * start) - 1][1]))
        start *= 2
    return points


def measure(context):
    series, calls = [], []
    for variant, axis, points in plan(context):
        context.step(f"growth: {VARIANTS[variant][0]}, in {axis}")
        found = []
        for value, point in points:
            runs = [seconds_of(context, variant, point, calls) for _ in range(context.repeats)]
            if axis == "k":
                each = [windows(run) for run in runs]
                for at in range(min(map(len, each))):
                    found.append([each[0][at][0], statistics.median(run[at][1] for run in each), each[0][at][2]])
            else:
                times = [seconds for seconds in map(an_iteration, runs) if seconds]
                if times:
                    found.append([value, statistics.median(times)])
        if len(found) >= 2:
            series.append({"variant": variant, "axis": axis, "points": found, "slope": slope(found)})
        else:
            context.leave_out(f"growth of {VARIANTS[variant][0]} in {axis}", "the runs ended too early to be timed")
    return {"series": series, "commands": calls}


def slope(points):
    """The exponent of the best-fitting power law, by least squares in logarithms."""
    x = [math.log(point[0]) for point in points]
    y = [math.log(point[1]) for point in points]
    middle_x, middle_y = statistics.mean(x), statistics.mean(y)
    spread = sum((a - middle_x) ** 2 for a in x)
    return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y)) / spread


def explanations():
    """Hand-written remarks by axis, from benchmarks/explanations.md."""
    path = ROOT / "benchmarks" / "explanations.md"
    found, axis = {}, None
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("## "):
            axis = line[3:].split()[0]
            found[axis] = ""
        elif axis:
            found[axis] += line + "\n"
    return {axis: text.strip() for axis, text in found.items()}


def glance(result):
    return ()


def render(result):
    text = paragraph(
        "The exponent b in *time per iteration ∝ x^b*, fitted to the medians in logarithms, on synthetic data of",
        "Zipf exponent 0.8 with random triplets, λ = 100, one thread. The first fifth of each run and the set-up are",
        "left out. Where the paper's formula is a sum, its exponent lies between those of the terms.",
    )
    rows = [
        [
            VARIANTS[one["variant"]][0],
            f"`{one['axis']}`",
            f"{one['points'][0][0]:,.0f} – {one['points'][-1][0]:,.0f}",
            f"{milliseconds(1000 * one['points'][0][1])} – {milliseconds(1000 * one['points'][-1][1])}",
            f"**{one['slope']:.2f}**",
            PAPER.get((one["variant"], one["axis"]), ""),
            VARIANTS[one["variant"]][2],
        ]
        for one in result["series"]
    ]
    head = ["variant", "in", "from – to", "an iteration", "exponent", "paper's", "paper's Table 1"]
    text += table(head, rows, right={2, 3, 4, 5})
    remarks = explanations()
    for axis, title in AXES.items():
        if any(one["axis"] == axis for one in result["series"]):
            text += f"\n### In {title}\n\n![Time per iteration over {title}]({{plots}}/growth-{FILES[axis]}.svg)\n"
            if axis == "k":
                text += f"\nActive atoms: {atoms(result)}.\n"
            if remarks.get(axis):
                text += f"\n{remarks[axis]}\n"
    return text + "\n" + commands(result["commands"])


def atoms(result):
    """The number of active atoms at the ends of each series in k."""
    ends = [one for one in result["series"] if one["axis"] == "k"]
    told = [f"{one['points'][0][2]} – {one['points'][-1][2]} ({VARIANTS[one['variant']][0]})" for one in ends]
    return ", ".join(told)


def plot(result, folder, plots):
    for axis, title in AXES.items():
        curves = {}
        for one in result["series"]:
            if one["axis"] == axis:
                name = f"{VARIANTS[one['variant']][0]} ({one['slope']:.2f})"
                curves[name] = [(point[0], 1000 * point[1]) for point in one["points"]]
        if curves:
            plots.growth(folder / f"growth-{FILES[axis]}.svg", title, curves)
