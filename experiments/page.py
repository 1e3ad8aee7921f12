"""Tables, figures and the remarks of `remarks.md` for the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


class Page:
    """The figures and remarks of the report."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.remarks = remarks((HERE / "remarks.md").read_text(encoding="utf-8"))

    def figure(self, name: str, figure: Any, alt: str) -> str:
        """Save a matplotlib figure as a small SVG; return the markdown that shows it."""
        import matplotlib
        import matplotlib.pyplot as plt

        # The same figure gives the same bytes.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            path = self.home / "figures" / f"{name}.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)
        return f"![{alt}](figures/{name}.svg)\n"

    def remark(self, name: str) -> str:
        """The section of `remarks.md` with this heading, or nothing."""
        return self.remarks.get(name, "")


def remarks(text: str) -> dict[str, str]:
    """Sections of hand-written markdown by their headings `## name`."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {name.strip(): body.strip() + "\n" for name, body in zip(parts[1::2], parts[2::2]) if body.strip()}


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] | None = None) -> str:
    """A table of markdown; columns after the first are right-aligned, unless `right` names them."""
    aligned = range(1, len(head)) if right is None else right
    rule = ["---:" if column in aligned else "---" for column in range(len(head))]
    lines = [head, rule, *rows]
    return "".join("| " + " | ".join(str(value) for value in line) + " |\n" for line in lines)


def count(number: int, what: str) -> str:
    """1 seed, 5 seeds."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}"
