"""A cell: the smallest piece of work that is run, kept and told of on its own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class LeftOut(Exception):
    """Something that cannot be measured here, and why. The report tells the reason; nothing fails."""


@dataclass(frozen=True)
class Cell:
    """What to run. Two cells that are equal are one: experiments may ask for each other's.

    `task` is the module of this package whose `run(cell, context)` does the work. `version` is a number that its author
    raises when the same parameters are to give another result; it is in the key, the source code is not, so that an
    edit that changes no figure throws no result away.
    """

    task: str
    dataset: str
    system: str
    seed: int
    version: int
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.task} {self.dataset} {self.system} seed {self.seed}"

    def get(self, parameter: str) -> Any:
        """The value of a parameter, which must be there."""
        return dict(self.parameters)[parameter]

    def facts(self, fingerprint: str) -> dict[str, Any]:
        """All that a result depends on."""
        return {
            "task": self.task,
            "dataset": self.dataset,
            "data": fingerprint,
            "system": self.system,
            "seed": self.seed,
            "version": self.version,
            "parameters": dict(self.parameters),
        }

    def key(self, fingerprint: str) -> str:
        """A name for those facts: the same facts, the same key."""
        text = json.dumps(self.facts(fingerprint), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def cell(task: str, dataset: str, system: str, seed: int, version: int, **parameters: Any) -> Cell:
    """A cell; lists among the parameters become tuples, so that cells can be compared."""
    fixed = tuple(sorted((name, _fixed(value)) for name, value in parameters.items()))
    return Cell(task, dataset, system, seed, version, fixed)


def _fixed(value: Any) -> Any:
    return tuple(map(_fixed, value)) if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True)
class Setting:
    """How much is run: `full` for the report, `quick` for a look, `tiny` on planted data to see that all of it works."""

    name: str
    seeds: tuple[int, ...]
    datasets: tuple[str, ...]

    @property
    def tiny(self) -> bool:
        return self.name == "tiny"

    @property
    def quick(self) -> bool:
        return self.name == "quick"

    def choose(self, *, full: Any, quick: Any, tiny: Any) -> Any:
        """One of three values."""
        return {"full": full, "quick": quick, "tiny": tiny}[self.name]


REAL = ("dexter", "dorothea", "farm_ads", "reuters_top4")
PLANTED = ("planted_2", "planted_4")
SETTINGS = {
    "full": Setting("full", (0, 1, 2, 3, 4), REAL),
    "quick": Setting("quick", (0, 1), REAL),
    "tiny": Setting("tiny", (0, 1), PLANTED),
}


@dataclass(frozen=True)
class Context:
    """What a cell may need of its surroundings; no result depends on it."""

    data: Path
    metric_learn: str | None = None


@dataclass
class Found:
    """What an experiment's report is made from: its cells that are finished, and those that are not."""

    setting: Setting
    results: list[tuple[Cell, dict[str, Any]]] = field(default_factory=list)
    left_out: list[tuple[Cell, str]] = field(default_factory=list)
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    missing: list[Cell] = field(default_factory=list)

    def of(self, **wanted: Any) -> list[tuple[Cell, dict[str, Any]]]:
        """Finished cells with these attributes (`dataset="dexter", system="hdsl"`), by seed."""
        chosen = [
            (cell, result)
            for cell, result in self.results
            if all(getattr(cell, name) == value for name, value in wanted.items())
        ]
        return sorted(chosen, key=lambda pair: pair[0].seed)
