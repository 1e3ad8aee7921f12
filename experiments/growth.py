"""Table 1, measured: time and memory of an iteration as T, D and k grow.

Every point is measured in a process of its own, for its memory. The processes are forks of one that has loaded all modules
and fitted nothing, which `python -m experiments.growth '{...}'` is.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, table

TITLE = "Table 1, measured: the cost of an iteration"
VERSION = 1
SCALE = 100.0

#: Title, settings of the learner, the paper's orders of time and of memory.
VARIANTS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "exact": ("exact", {"search": "exact"}, "TD² + Tk", "TD² + k"),
    "batch": ("mini-batch", {"search": "exact", "batch": True}, "MD² + Tk", "T + MD² + k"),
    "batch_heuristic": ("mini-batch + heuristic", {"batch": True}, "MD + Tk", "T + MD + k"),
    "heuristic": ("heuristic on all triplets, our default", {}, "TD + Tk, not in the paper", "TD + k, not in the paper"),
}
#: The exponents of the paper's formulas, of time and of memory; for a sum, the range of its terms.
PAPER = {
    ("exact", "T"): ("1", "1"), ("exact", "D"): ("2", "2"), ("exact", "k"): ("0 to 1", "0 to 1"),
    ("batch", "T"): ("0 to 1", "0 to 1"), ("batch", "D"): ("0 to 2", "0 to 2"), ("batch", "k"): ("0 to 1", "0 to 1"),
    ("batch_heuristic", "T"): ("0 to 1", "0 to 1"), ("batch_heuristic", "D"): ("0 to 1", "0 to 1"),
    ("batch_heuristic", "k"): ("0 to 1", "0 to 1"), ("heuristic", "T"): ("1", "1"), ("heuristic", "D"): ("0 to 1", "0 to 1"),
    ("heuristic", "k"): ("0 to 1", "0 to 1"),
}  # fmt: skip
AXES = {"T": "triplets (T)", "D": "values per row (D)", "k": "iteration (k)"}


def cells(setting: Setting) -> list[Cell]:
    """One per variant and axis; `values` are those of the axis."""
    found = []
    for variant, (_, options, _, _) in VARIANTS.items():
        # The exact search visits pairs of features: smaller data suffices to measure its growth.
        exact = options.get("search") == "exact"
        rows = setting.choose(full=2_000 if exact else 20_000, quick=500 if exact else 3_000, tiny=100)
        base = {
            "rows": rows,
            "per_row": setting.choose(full=20 if exact else 50, quick=15, tiny=8),
            "features": setting.choose(full=5 * rows, quick=3_000, tiny=300),
            "triplets": 10,
            "batch": rows if "batch" in options else 0,
            "iterations": setting.choose(full=40 if exact else 150, quick=25, tiny=12),
            "repeats": setting.choose(full=3, quick=1, tiny=1),
            # Starting an interpreter takes longer than all tiny points together.
            "apart": not setting.tiny or variant == "exact",
        }
        many = setting.choose(full=400 if exact else 3_000, quick=100, tiny=60)
        axes: dict[str, tuple[Any, dict[str, Any]]] = {
            "T": (setting.choose(full=(1, 3, 10, 30, 100), quick=(1, 5, 25), tiny=(2, 4)), {"batch": base["batch"] // 10}),
            "D": (setting.choose(full=(10, 20, 50, 100, 200), quick=(10, 20, 40), tiny=(5, 10)), {}),
            "k": ((many,), {}),
        }
        for axis, (values, other) in axes.items():
            found.append(cell("growth", "synthetic", variant, 0, VERSION, axis=axis, values=values, **base | other))
    return found


#: The setting that an axis changes.
GROWS = {"T": "triplets", "D": "per_row", "k": "iterations"}


def run(cell: Cell, context: Context) -> dict[str, Any]:
    asked = {"variant": cell.system, **dict(cell.parameters)}
    if not asked["apart"]:
        return {"points": [measure(point) for point in points(asked)]}
    root = str(Path(__file__).resolve().parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "experiments.growth", json.dumps(asked)], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    return {"points": json.loads(done.stdout)}


def points(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of each point."""
    return [{**asked, GROWS[asked["axis"]]: value} for value in asked["values"]]


def apart(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Each point in a process of its own."""
    import hdsl  # noqa: F401, so that it is loaded once

    context = multiprocessing.get_context("fork")
    found = []
    for point in points(asked):
        with context.Pool(1) as pool:
            found.append(pool.apply(measure, (point,)))
    return found


def synthetic(rows: int, per_row: int, features: int, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of this many values over features of Zipf frequencies (exponent 0.8); some features depend on the class."""
    random = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    shares = np.cumsum(np.arange(1, features + 1) ** -0.8)
    # 50% more than needed: duplicates are removed, and rows are cut to their length.
    drawn = np.searchsorted(shares, random.random((rows, 3 * per_row // 2 + 8)) * shares[-1])
    drawn[:, :3] = random.integers(0, 20, (rows, 3)) + 20 * y[:, None] + features // 20
    indices = [np.sort(list(dict.fromkeys(row))[:per_row]) for row in drawn.tolist()]
    starts = np.r_[0, np.cumsum([len(row) for row in indices])]
    columns = np.concatenate(indices)
    return sp.csr_matrix((random.random(len(columns)) + 0.01, columns, starts), shape=(rows, features)), y


def peak() -> int:
    """The peak memory of this process since `reset_peak`, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    # macOS counts in bytes, the others in kilobytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> None:
    """Reset the peak after making the data; if that is not possible, small measurements are 0."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    from hdsl import HDSL

    X, y = synthetic(asked["rows"], asked["per_row"], asked["features"])
    options = dict(VARIANTS[asked["variant"]][1])
    if options.pop("batch", False):
        options["batch"] = max(1, asked["batch"])
    # A first call, so that starting threads and loading code are not measured.
    HDSL(scale=SCALE, triplets="random:2", preprocess="none", max_iter=5, n_jobs=1).fit(X[:50], y[:50])
    runs, atoms, memory = [], [], 0
    # Processor time of one thread, independent of other load. The callback takes about 50 µs per iteration.
    for repeat in range(asked["repeats"]):
        clock: list[float] = []
        atoms = []

        def hear(facts: dict[str, Any], clock: list[float] = clock, atoms: list[int] = atoms) -> None:
            clock.append(time.process_time())
            atoms.append(facts["n_atoms"])

        learner = HDSL(
            scale=SCALE, triplets=f"random:{asked['triplets']}", preprocess="none", max_iter=asked["iterations"],
            callback=hear, random_state=0, n_jobs=1, **options,
        )  # fmt: skip
        reset_peak()
        before = peak()
        learner.fit(X, y)
        if repeat == 0:
            # Later runs reuse memory of the first.
            memory = max(0, peak() - before)
        runs.append(clock)
    length = min(map(len, runs))
    seconds = [statistics.median(column) for column in zip(*(np.diff(run[:length]).tolist() for run in runs))]
    found = {"n_triplets": int(learner.n_triplets_), "memory": memory, "per_row": X.nnz / X.shape[0]}
    if asked["axis"] == "k":
        return found | {"windows": windows(seconds, atoms)}
    # Without the first steps, which are cheap; set-up is not included.
    return found | {"seconds": statistics.mean(seconds[len(seconds) // 5 :])}


def windows(seconds: list[float], atoms: list[int]) -> list[tuple[float, float, int]]:
    """Iteration, mean seconds and active atoms, within windows that double."""
    points, start = [], min(25, max(1, len(seconds) // 4))
    while 2 * start <= len(seconds):
        points.append((1.5 * start, statistics.mean(seconds[start : 2 * start]), atoms[int(1.5 * start)]))
        start *= 2
    return points


def exponent(points: list[tuple[float, float]]) -> float | None:
    """b of the best-fitting power law x^b in logarithms, if there are two points."""
    if len(points) < 2 or min(y for _, y in points) <= 0:
        return None
    x, y = np.log([p[0] for p in points]), np.log([p[1] for p in points])
    return float(np.polyfit(x, y, 1)[0])


def series(found: Found, variant: str, axis: str) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Points (x, seconds) and (x, bytes); memory of k is the whole run's, and has no points."""
    times, bytes_ = [], []
    for cell, result in found.of(system=variant):
        if cell.get("axis") != axis:
            continue
        for point in result["points"]:
            if axis == "k":
                return [(at, seconds) for at, seconds, _ in point["windows"]], []
            x = point["n_triplets"] if axis == "T" else point["per_row"]
            times.append((x, point["seconds"]))
            # Below a megabyte, the allocator dominates.
            if point["memory"] >= 1_000_000:
                bytes_.append((x, point["memory"]))
    return sorted(times), sorted(bytes_)


def report(found: Found, page: Page) -> str:
    from experiments.pictures import plt

    figure, axes = plt.subplots(2, 3, figsize=(10.5, 5.8), layout="constrained")
    rows = []
    for variant, (title, _, time_order, memory_order) in VARIANTS.items():
        for place, axis in enumerate(AXES):
            times, memory = series(found, variant, axis)
            if not times:
                continue
            paper = PAPER[variant, axis]
            slopes = [exponent(times), exponent(memory)]
            told = ["" if slope is None else f"**{slope:.2f}**" for slope in slopes]
            rows.append([
                title, f"`{axis}`", ends([x for x, _ in times], "{:,.0f}"), ends([1000 * y for _, y in times], "{:.3g}"),
                told[0], paper[0], ends([y / 1e6 for _, y in memory], "{:.3g}"), told[1], paper[1] if memory else "",
            ])  # fmt: skip
            axes[0, place].plot(*zip(*[(x, 1000 * y) for x, y in times]), "o-", markersize=3, label=title)
            if memory:
                axes[1, place].plot(*zip(*[(x, y / 1e6) for x, y in memory]), "o-", markersize=3, label=title)
    for place, axis in enumerate(AXES):
        axes[0, place].set(xscale="log", yscale="log", xlabel=AXES[axis], ylabel="ms per iteration" if place == 0 else "")
        if axis == "k":
            axes[1, place].set_axis_off()
            handles, labels = axes[0, 0].get_legend_handles_labels()
            axes[1, place].legend(handles, labels, loc="center", frameon=False, fontsize="small")
        else:
            axes[1, place].set(xscale="log", yscale="log", xlabel=AXES[axis], ylabel="MB of a run" if place == 0 else "")
    text = page.figure("growth", figure, "Time per iteration and memory of a run, over T, D and k")
    text += (
        "\nFitted exponents b of *x^b*, in bold, and those of the paper's Table 1; for a sum of terms, the range between\n"
        "them. Synthetic rows of Zipf frequencies, random triplets, λ = 100, one thread; batches as large as the number of rows (a\n"
        "tenth of it over T). Time is processor time per iteration, the mean without the first fifth, by the median of three\n"
        "runs; memory is the peak of a run beyond the rows, and is left out below 1 MB.\n\n"
    )
    text += table(
        ["variant", "in", "from – to", "ms per iteration", "exponent", "paper", "MB", "exponent", "paper"], rows,
        right=[2, 3, 4, 5, 6, 7, 8],
    )  # fmt: skip
    text += "\nThe paper's orders, of time and of memory: "
    return text + "; ".join(f"{title}: {times}, {memory}" for title, _, times, memory in VARIANTS.values()) + ".\n"


def ends(values: list[float], form: str) -> str:
    if not values:
        return ""
    return " – ".join(form.format(value) for value in (values[0], values[-1]))


if __name__ == "__main__":
    print(json.dumps(apart(json.loads(sys.argv[1]))))
