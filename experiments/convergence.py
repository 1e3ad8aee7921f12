"""Lemma 1, measured: how far from the optimum an iterate is, against 16 L λ² / (k + 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import data
from experiments.cells import Cell, Context, Found, Setting, cell
from experiments.page import Page, table

TITLE = "Lemma 1, measured: the way to the optimum"
VERSION = 2

#: Steps of Alg. 1 with the exact search, and what they are called.
STEPS = {
    "away": ("forward and away steps (Alg. 1)", {"step_rule": "away", "search": "exact"}),
    "decrease": ("largest predicted decrease, not in the paper", {"step_rule": "decrease", "search": "exact"}),
    "forward": ("forward steps only", {"step_rule": "forward", "search": "exact"}),
    "pairwise": ("pairwise steps, not in the paper", {"step_rule": "pairwise", "search": "exact"}),
    "heuristic": ("forward and away, heuristic search", {"step_rule": "away", "search": "alternating"}),
}
POINTS = 160


def cells(setting: Setting) -> list[Cell]:
    sets = setting.choose(full=("dexter", "reuters_top4"), quick=("dexter",), tiny=("planted_2",))
    longest = setting.choose(full=20_000, quick=2_000, tiny=300)
    steps = setting.choose(full=1_000, quick=500, tiny=60)
    scales = setting.choose(full=(1.0, 10.0), quick=(10.0,), tiny=(10.0,))
    points = [(name, "optimum", scale, longest) for name in sets for scale in scales]
    points += [(name, system, scale, steps) for name in sets for scale in scales for system in STEPS]
    return [
        cell("convergence", name, system, 0, VERSION, scale=scale, max_iter=most)
        for name, system, scale, most in points
    ]


def run(cell: Cell, context: Context) -> dict[str, Any]:
    from hdsl import HDSL

    parts, triplets = data.load(cell.dataset, context.data, 0), data.DATASETS[cell.dataset].triplets
    # The optimum is looked for by the steps that get there soonest, until it is proved to be near.
    options = {"step_rule": "pairwise", "search": "exact", "tol": 1e-6} if cell.system == "optimum" else STEPS[cell.system][1]
    learner = HDSL(
        scale=cell.get("scale"), triplets=triplets, preprocess="none", max_iter=cell.get("max_iter"), certify=True,
        random_state=0, n_jobs=1, **options,
    )  # fmt: skip
    learner.fit(parts.train.X, parts.train.y)
    path = learner.path_
    kept = np.unique(np.geomspace(1, len(path), POINTS).astype(int)) - 1
    numbers = np.arange(len(path))
    return {
        "smoothness": smoothness(parts.train, triplets),
        "n_triplets": int(learner.n_triplets_),
        "iteration": kept.tolist(),
        "objective": path["objective"][kept].tolist(),
        "best": float(path["objective"].min()),
        "gap": float(learner.gap_) if learner.gap_certified_ else None,
        "n_iter": int(learner.n_iter_),
        "stop": learner.stop_,
        # Lemma 1's counts, over the whole path.
        "counts_hold": bool(
            np.all(path["n_atoms"] <= numbers + 1) and np.all(path["n_features"] <= 2 * (numbers + 1))
        ),
    }


def smoothness(train: data.Rows, triplets: str) -> float:
    """L of Lemma 1: the mean of ||A||² = ||x||² ||y - z||² over triplets."""
    import hdsl

    mined = hdsl.mine_triplets(train.X, train.y, triplets=triplets, preprocess="none", random_state=0, n_jobs=1)
    anchor, near, far = mined.T
    squares = np.asarray(train.X.multiply(train.X).sum(axis=1)).ravel()
    apart = train.X[near] - train.X[far]
    return float(np.mean(squares[anchor] * np.asarray(apart.multiply(apart).sum(axis=1)).ravel()))


def groups(found: Found) -> list[tuple[str, float]]:
    """Datasets with a λ whose optimum is known."""
    return [(cell.dataset, cell.get("scale")) for cell, _ in found.of(system="optimum")]


def optimum(found: Found, name: str, scale: float) -> tuple[float, float | None]:
    """The lowest objective seen by anybody, and how far below it the optimum may be."""
    several = [(c, r) for c, r in found.of(dataset=name) if c.get("scale") == scale]
    best = min(result["best"] for _, result in several)
    bounds = [r["best"] - r["gap"] for _, r in several if r["gap"] is not None]
    return best, (best - max(bounds)) if bounds else None


def report(found: Found, page: Page) -> str:
    from experiments.pictures import panels

    sets = groups(found)
    figure, axes = panels(len(sets))
    rows = []
    for ax, (name, scale) in zip(axes, sets):
        best, unsure = optimum(found, name, scale)
        floor = max(unsure or 0.0, 1e-12)
        for system, (title, _) in STEPS.items():
            several = [r for c, r in found.of(dataset=name, system=system) if c.get("scale") == scale]
            if not several:
                continue
            [result] = several
            k, above = np.array(result["iteration"]), np.array(result["objective"]) - best
            shown = (k >= 1) & (above > floor)
            ax.plot(k[shown], above[shown], label=title, linewidth=1.2)
            bound = 16 * result["smoothness"] * scale**2 / (k + 2)
            late = (k >= 10) & (above > 10 * floor)
            slope = np.polyfit(np.log(k[late]), np.log(above[late]), 1)[0] if late.sum() >= 5 else None
            first = next((int(at) for at, far in zip(k, above) if far <= 0.01), None)
            rows.append([
                data.DATASETS[name].title, f"{scale:g}", title, f"{result['n_iter']:,}",
                "" if slope is None else f"k^{slope:.2f}", "not within the run" if first is None else f"{first:,}",
                f"{np.min(bound[1:] / np.maximum(above[1:], 1e-300)):.3g}" if np.any(above[1:] > 0) else "",
                "yes" if np.all(above <= bound + 1e-12) and result["counts_hold"] else "**no**",
            ])  # fmt: skip
        [known] = [r for c, r in found.of(dataset=name, system="optimum") if c.get("scale") == scale]
        k = np.geomspace(1, max(2, known["n_iter"]), 50)
        ax.plot(k, 16 * known["smoothness"] * scale**2 / (k + 2), "k--", linewidth=1, label="16 L λ² / (k + 2)")
        ax.set(xscale="log", yscale="log", xlabel="iteration k", title=f"{data.DATASETS[name].title}, λ = {scale:g}")
        ax.set_ylabel("objective above the optimum")
        if unsure:
            ax.axhline(unsure, color="0.7", linewidth=0.8)
        if not any(len(line.get_xdata()) for line in ax.lines[:-1]):
            ax.text(0.5, 0.5, "the first step reaches the optimum", transform=ax.transAxes, ha="center")
    if sets:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    text = page.figure("convergence", figure, "Objective above the optimum against iterations, with Lemma 1's bound")
    proofs = []
    for name, scale in sets:
        best, unsure = optimum(found, name, scale)
        told = "nothing is proved of it" if unsure is None else f"proved to be within {unsure:.2g} of the optimum"
        proofs.append(f"{data.DATASETS[name].title}, λ = {scale:g}: {best:.6g}, {told}")
    text += "\nThe optimum is the lowest objective of any run: " + "; ".join(proofs) + ".\n"
    text += "Curves end where that is reached (grey line).\n\n"
    return text + table(
        ["dataset", "λ", "steps", "iterations", "falls as", "within 0.01 after", "bound / measured, least", "Lemma 1 holds"],
        rows, right=[1, 3, 4, 5, 6],
    )  # fmt: skip
