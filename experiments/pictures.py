"""Panels and colors of the figures."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from hdsl.plot import ALIKE, UNLIKE  # noqa: E402

__all__ = ["ALIKE", "DARK", "LIGHT", "UNLIKE", "panels"]

DARK, LIGHT = ALIKE, "#a9c9e4"


def panels(count: int, square: bool = False) -> tuple[Any, list[Any]]:
    """A figure with so many panels, two per line."""
    lines = max(1, (count + 1) // 2)
    figure, axes = plt.subplots(
        lines, 2, figsize=(8.4, (4.2 if square else 3.1) * lines), layout="constrained", squeeze=False
    )
    flat = list(axes.ravel())
    for spare in flat[count:]:
        spare.set_axis_off()
    return figure, flat[:count]
