"""RESULTS.md from what is in the store."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

from experiments.cells import Cell, Found, Setting
from experiments.page import Page
from experiments.store import Store, write

BEGINNING = """# Results

Every experiment of the paper's Section 4 and a few more, run by [`experiments/run`](run). Written by
`python -m experiments`; do not edit, except for the remarks in [`remarks.md`](remarks.md), which it takes in.
[README.md](README.md) tells how to run it again.

"""


def found(cells: list[Cell], setting: Setting, store: Store, fingerprints: dict[str, str]) -> Found:
    """What the store has of these cells."""
    result = Found(setting)
    for cell in cells:
        record = store.record(cell, fingerprints[cell.dataset]) if cell.dataset in fingerprints else None
        if record is None:
            result.missing.append(cell)
        elif "result" in record:
            result.results.append((cell, record["result"]))
        elif "left_out" in record:
            result.left_out.append((cell, record["left_out"]))
        else:
            result.failed.append((cell, record["failed"]))
    return result


def write_report(
    modules: dict[str, ModuleType],
    cells: dict[str, list[Cell]],
    setting: Setting,
    store: Store,
    fingerprints: dict[str, str],
    home: Path,
) -> Path:
    """Writes the page and its figures; its path."""
    page = Page(home)
    text = BEGINNING
    if setting.name != "full":
        text += f"**This is a run with `--{setting.name}`: its figures say nothing about the methods.**\n\n"
    text += page.remark("Summary") + "\n" if page.remark("Summary") else ""
    bodies, contents = "", ""
    for name, module in modules.items():
        have = found(cells[name], setting, store, fingerprints)
        body = module.report(have, page) if have.results else "Not run yet.\n"
        bodies += f"\n## {module.TITLE}\n\n{body}"
        if have.results and page.remark(name):
            bodies += f"\n{page.remark(name)}"
        bodies += _gaps(have)
        anchor = "".join(c for c in module.TITLE.lower().replace(" ", "-") if c.isalnum() or c in "-_")
        contents += f"- [{module.TITLE}](#{anchor})\n"
    path = home / "RESULTS.md"
    write(path, text + contents + bodies)
    return path


def _gaps(have: Found) -> str:
    """What is not in an experiment, and why; cells that share a reason in one line."""
    text = ""
    for word, several in [("Left out", have.left_out), ("Failed", have.failed)]:
        reasons: Counter[tuple[str, str, str]] = Counter((c.system, c.dataset, why) for c, why in several)
        for (system, dataset, why), times in reasons.items():
            text += f"- {word}: {system} on {dataset} ({times} {'cell' if times == 1 else 'cells'}): {why}\n"
    if have.missing and have.results:
        text += f"- Not run yet: {len(have.missing)} of {len(have.missing) + len(have.results)} cells.\n"
    return f"\n{text}" if text else ""
