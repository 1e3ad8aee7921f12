"""Finished cells on disk: one line of JSON a cell, one file a task.

A line is written by a single append and synchronised before the next cell is taken up, so that a run that is killed
loses at most the cells in flight; a line that was cut off is passed over when the file is read. Of two lines with one
key the later counts. Cells that failed or were left out are noted in the same way, and tried again by the next run.
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
                    continue  # Cut off by a kill; its cell runs again.
        return records

    def record(self, cell: Cell, fingerprint: str) -> dict[str, Any] | None:
        """What is known of a cell: `result`, or `failed` or `left_out` with a reason; None if nothing is."""
        return self._records(cell.task).get(cell.key(fingerprint))

    def result(self, cell: Cell, fingerprint: str) -> dict[str, Any] | None:
        """The result of a finished cell."""
        return (self.record(cell, fingerprint) or {}).get("result")

    def seconds(self, cell: Cell) -> list[float]:
        """How long cells of the same task, data and system took."""
        like = (cell.dataset, cell.system)
        records = self._records(cell.task).values()
        return [r["seconds"] for r in records if (r["dataset"], r["system"]) == like and "result" in r]

    def add(self, cell: Cell, fingerprint: str, seconds: float, **outcome: Any) -> None:
        """Notes `result=`, `failed=` or `left_out=` of a cell, for good."""
        record = {"key": cell.key(fingerprint), **cell.facts(fingerprint), "seconds": round(seconds, 3), **outcome}
        line = (_line(record) + "\n").encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self._file(cell.task), "ab+") as file:
            # Two runs may share a store.
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.seek(0, os.SEEK_END) > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = b"\n" + line  # The last line was cut off.
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._records(cell.task)[record["key"]] = record

    def tidy(self, wanted: Iterable[tuple[Cell, str]]) -> int:
        """Keeps only these cells, in a fixed order; how many lines went."""
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
    """Writes a file as a whole or not at all."""
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
