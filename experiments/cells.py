"""A cell: the unit of work that is run, stored and reported."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class LeftOut(Exception):
    """A measurement that is not possible here, with the reason for the report. It is not a failure."""


@dataclass(frozen=True)
class Cell:
    """The definition of a cell. Equal cells are run once: experiments may share them.

    `task` is the module of this package whose `run(cell, context)` does the work. `version` is a number to
    raise when the same parameters give another result. It is part of the key, unlike the source code, so that an edit which
    changes no result invalidates none.
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
        """Everything that a result depends on."""
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
        """A hash of these facts."""
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
    """The size of a run: `full` for the report, `quick` for a preview, `tiny` on planted data for tests."""

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
    """The environment of a cell; no result depends on it."""

    data: Path
    metric_learn: str | None = None


@dataclass
class Found:
    """The input of an experiment's report: its finished and unfinished cells."""

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
