"""Finished cells on disk: one line of JSON per cell, one file per task.

A line is written by a single append and synchronized before the next cell is started, so that a run that is killed loses at
most the running cells; an incomplete line is ignored when the file is read. Of two lines with one key the later counts.
Cells that failed or were left out are recorded in the same way, and tried again by the next run.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.cells import Cell


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, dict[str, dict[str, Any]]] = {}

    def _file(self, task: str) -> Path:
        return self.folder / f"{task}.jsonl"

    def _records(self, task: str) -> dict[str, dict[str, Any]]:
        if task not in self._known:
            self._known[task] = self._read(task)
        return self._known[task]

    def _read(self, task: str) -> dict[str, dict[str, Any]]:
        records: dict[str, dict[str, Any]] = {}
        path = self._file(task)
        if path.exists():
            for line in path.read_bytes().splitlines():
                try:
                    record = json.loads(line)
                    records[record["key"]] = record
                except (ValueError, KeyError, TypeError):
                    continue  # Incomplete, the run was killed; the cell runs again.
        return records

    def record(self, cell: Cell, fingerprint: str) -> dict[str, Any] | None:
        """The record of a cell: `result`, or `failed` or `left_out` with a reason; None if there is none."""
        return self._records(cell.task).get(cell.key(fingerprint))

    def result(self, cell: Cell, fingerprint: str) -> dict[str, Any] | None:
        """The result of a finished cell."""
        return (self.record(cell, fingerprint) or {}).get("result")

    def seconds(self, cell: Cell) -> list[float]:
        """The times of cells of the same task, data and system."""
        like = (cell.dataset, cell.system)
        records = self._records(cell.task).values()
        return [r["seconds"] for r in records if (r["dataset"], r["system"]) == like and "result" in r]

    def add(self, cell: Cell, fingerprint: str, seconds: float, **outcome: Any) -> None:
        """Record `result=`, `failed=` or `left_out=` of a cell permanently."""
        record = {"key": cell.key(fingerprint), **cell.facts(fingerprint), "seconds": round(seconds, 3), **outcome}
        before = self._records(cell.task).get(record["key"], {})
        reason = {name: outcome[name] for name in ("failed", "left_out") if name in outcome}
        if reason and {name: before.get(name) for name in reason} == reason:
            return  # The same failure as before.
        line = (_line(record) + "\n").encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self._file(cell.task), "ab+") as file:
            # Two runs may share a store.
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.seek(0, os.SEEK_END) > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = b"\n" + line  # The last line is incomplete.
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._records(cell.task)[record["key"]] = record

    def tidy(self, wanted: Iterable[tuple[Cell, str]]) -> int:
        """Keep only these cells, in a fixed order; return the number of deleted lines."""
        keep: dict[str, set[str]] = {}
        for cell, fingerprint in wanted:
            keep.setdefault(cell.task, set()).add(cell.key(fingerprint))
        gone = 0
        for task, keys in keep.items():
            path = self._file(task)
            if not path.exists():
                continue
            before = len(path.read_bytes().splitlines())
            records = [record for key, record in self._read(task).items() if key in keys]
            records.sort(key=lambda r: (r["dataset"], r["system"], r["seed"], r["key"]))
            write(path, "".join(_line(record) + "\n" for record in records))
            gone += before - len(records)
            self._known.pop(task, None)
        return gone


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


def write(path: Path, text: str) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
