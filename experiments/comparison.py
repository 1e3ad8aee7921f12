"""Means over seeds, and comparisons of two systems on the same seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from experiments.cells import Cell

Results = list[tuple[Cell, dict[str, Any]]]


@dataclass(frozen=True)
class Summary:
    """Test errors over seeds, as fractions."""

    mean: float
    deviation: float
    n_features: float
    seeds: int


def summary(results: Results) -> Summary | None:
    if not results:
        return None
    errors = [result["test_error"] for _, result in results]
    features = [result["n_features"] for _, result in results]
    deviation = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
    return Summary(float(np.mean(errors)), deviation, float(np.mean(features)), len(errors))


def plain(figure: Summary) -> str:
    """12.3 ± 0.4; one seed has no deviation."""
    text = f"{100 * figure.mean:.1f}"
    return text if figure.seeds == 1 else f"{text} ± {100 * figure.deviation:.1f}"


def error_cell(figure: Summary | None, best: float | None) -> str:
    """12.3 ± 0.4 [567], in bold if it is the best."""
    if figure is None:
        return "–"
    text = plain(figure)
    if best is not None and figure.mean <= best + 1e-12:
        text = f"**{text}**"
    return f"{text} [{figure.n_features:,.0f}]"


def paired(ours: Results, theirs: Results) -> str:
    """Their error minus ours on the common seeds."""
    a = {cell.seed: result["test_error"] for cell, result in ours}
    b = {cell.seed: result["test_error"] for cell, result in theirs}
    seeds = sorted(set(a) & set(b))
    if not seeds:
        return "–"
    differences = np.array([b[seed] - a[seed] for seed in seeds])
    better, worse = int((differences > 1e-12).sum()), int((differences < -1e-12).sum())
    text = f"{100 * differences.mean():+.1f} [{better}/{len(seeds) - better - worse}/{worse}]"
    if len(seeds) > 2 and np.ptp(differences) > 1e-12:
        text += f" p {stats.ttest_1samp(differences, 0.0).pvalue:.2g}"
    return text
