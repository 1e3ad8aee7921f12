"""What every system gives and gets: one interface for similarities and classifiers alike."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.cells import Context, Setting
from experiments.data import Rows

#: The number of neighbors, for all systems.
K = 3

Predictor = Callable[[sp.csr_matrix], np.ndarray]


@dataclass(frozen=True)
class Problem:
    """The data that a system may use, without the test rows."""

    train: Rows
    valid: Rows
    triplets: str
    seed: int
    context: Context

    def mined(self) -> np.ndarray:
        """The triplets, the same for every system that learns from any."""
        import hdsl

        return hdsl.mine_triplets(
            self.train.X, self.train.y, triplets=self.triplets, preprocess="none", random_state=self.seed, n_jobs=1
        )


@dataclass(frozen=True)
class Point:
    """A system at one number of dimensions."""

    dimension: int
    valid_error: float
    predict: Predictor
    choice: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fitted:
    """The result of a fit: the setting of the lowest validation error, and all settings that were tried."""

    predict: Predictor
    n_features: int
    valid_error: float
    choice: dict[str, Any]
    #: Every setting that was tried, with its validation error.
    tried: list[dict[str, Any]]
    #: The same system at other numbers of dimensions, for Figure 3.
    curve: list[Point] = field(default_factory=list)
    #: Further results for tables and figures, as small JSON values.
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """A row of the tables. `version` goes into the key of its cells: raise it when its results are to change."""

    name: str
    title: str
    version: int
    fit: Callable[..., Fitted]
    #: Keyword arguments of `fit`, the grid; part of the key.
    grid: Callable[[Setting], dict[str, Any]] = lambda setting: {}
    #: A description of the grid.
    searched: str = ""


def error(predicted: np.ndarray, rows: Rows) -> float:
    return float(np.mean(predicted != rows.y))


def decades(first: int, last: int) -> list[float]:
    """10^first, ..., 10^last."""
    return [float(f"1e{exponent}") for exponent in range(first, last + 1)]


def lowest(points: list[Any], key: Callable[[Any], Any]) -> Any:
    """The first of the best: settings are tried in order of preference."""
    return min(points, key=key)


def seed_of(*facts: Any) -> int:
    """A separate seed for each random draw."""
    return int.from_bytes(hashlib.sha256(repr(facts).encode()).digest()[:4], "big")
