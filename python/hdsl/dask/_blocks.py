"""Rows as blocks on the workers of a cluster, from Dask's collections."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from distributed import Client, Future
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from hdsl.dask import _worker
from hdsl.dask._errors import DataLost

#: So many statistics are merged by one task.
FAN_IN = 8


def token() -> str:
    """A short name that no other task has."""
    return uuid.uuid4().hex[:12]


def keep(needed: Iterable[Any], until: Future) -> Future:
    """Keep futures that a task depends on until it is done or released.

    The scheduler reads a submitted graph in the background: a future that is dropped right after the submission of a task that
    depends on it may be released before the scheduler knows of that task, which then waits forever.
    """
    kept = [future for future in needed if isinstance(future, Future)]
    # Not `add_done_callback`, which keeps `until` itself: a task that can never run would stay on the cluster for good.
    until.client.loop.add_callback(_clear_when_done, kept, until._state)
    return until


async def _clear_when_done(kept: list[Future], state: Any) -> None:
    while state.status == "pending":
        await state.wait()
    kept.clear()


@dataclass
class Blocks:
    """Blocks of rows in the memory of workers, in the order of rows. Each is a canonical CSR matrix."""

    client: Client
    futures: list[Future]
    names: list[str]
    sizes: list[int]
    n_features: int
    n_values: int

    @property
    def n_rows(self) -> int:
        """The number of all rows."""
        return int(sum(self.sizes))

    @property
    def starts(self) -> NDArray[np.int64]:
        """The number of the first row of each block, and at the end that of all rows."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def select(self, rows: NDArray[np.int64], what: str) -> Blocks:
        """Some rows, by increasing number, in blocks on the same workers."""
        starts, name = self.starts, token()
        futures, names, sizes = [], [], []
        for at, future in enumerate(self.futures):
            a, b = np.searchsorted(rows, starts[at : at + 2])
            if a == b:
                continue
            futures.append(
                self.client.submit(
                    _worker.selected, future, rows[a:b] - starts[at], key=f"hdsl-{what}-{name}-{at}", pure=False
                )
            )
            names.append(self.names[at])
            sizes.append(int(b - a))
        share = len(rows) / max(self.n_rows, 1)
        return Blocks(self.client, futures, names, sizes, self.n_features, int(self.n_values * share))

    def lost(self) -> list[str]:
        """The names of blocks that are gone and that Dask cannot compute again."""
        return [name for future, name in zip(self.futures, self.names) if future.status == "cancelled"]

    def check_lost(self) -> None:
        """Raise an error that names the blocks that are gone for good."""
        gone = self.lost()
        if gone:
            listed = ", ".join(gone[:10]) + (f" and {len(gone) - 10} more" if len(gone) > 10 else "")
            raise DataLost(
                f"lost with a worker and not to be computed again: {listed}. Data that was scattered has one copy only; "
                "build collections from files or delayed functions, so that Dask can compute lost blocks again."
            )

    def fold(self, function: Callable[..., Any], first: Any, *arguments: Any, what: str) -> Future:
        """A value that goes from block to block, in the order of rows."""
        name, value = token(), first
        for at, future in enumerate(self.futures):
            before = value
            value = self.client.submit(
                function, before, future, *arguments, key=f"hdsl-{what}-{name}-{at}", pure=False
            )
            keep([before], value)
        return value

    def preprocessor(self, kind: str) -> Future:
        """The preprocessing of all rows, by a reduction."""
        client, name = self.client, token()
        whole = self.statistics()
        total = None
        if kind in ("tfidf", "bm25", "auto"):
            # A sum depends on its order: that of rows, as in one process.
            total = self.fold(_add_lengths, 0.0, what="lengths")
        fitted = client.submit(
            _worker.fitted_preprocessor, kind, self.n_features, whole, total, key=f"hdsl-preprocess-{name}", pure=False
        )
        return keep([whole, total], fitted)

    def statistics(self) -> Future:
        """The statistics of all rows."""
        client, name = self.client, token()
        level = [
            client.submit(_worker.statistics, future, key=f"hdsl-statistics-{name}-{at}", pure=False)
            for at, future in enumerate(self.futures)
        ]
        depth = 0
        while len(level) > 1:
            groups = [level[at : at + FAN_IN] for at in range(0, len(level), FAN_IN)]
            level = [
                keep(
                    group,
                    client.submit(
                        _worker.merged_statistics, *group, key=f"hdsl-merge-{name}-{depth}-{at}", pure=False
                    ),
                )
                for at, group in enumerate(groups)
            ]
            depth += 1
        return level[0]

    def gather(self, rows: NDArray[np.int64] | None = None) -> Any:
        """All rows, or some of them by increasing number, as one matrix in the memory of the client."""
        blocks = self if rows is None else self.select(rows, "sample")
        parts = _worker.aligned(list(self.client.gather(blocks.futures)))
        return _worker.stacked(parts)


def _add_lengths(total: float, block: Any) -> float:
    from hdsl import _core

    return _core.add_lengths(total, _worker.aligned(block))


def is_collection(X: Any) -> bool:
    """Whether this is one of Dask's collections, or a list of delayed blocks or futures."""
    if dask.is_dask_collection(X) or isinstance(X, (Blocks, Future)):
        return True
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(part, (Delayed, Future)) for part in X)


def parts_of(X: Any, what: str) -> list[Any]:
    """The blocks of a collection, as delayed objects or futures."""
    if isinstance(X, (Delayed, Future)):
        return [X]
    if isinstance(X, (list, tuple)):
        wrong = [at for at, part in enumerate(X) if not isinstance(part, (Delayed, Future))]
        if wrong or not X:
            found = type(X[wrong[0]]).__name__ if wrong else "nothing"
            raise TypeError(
                f"{what} is a list with {found} in it, expected delayed blocks or futures. For rows in memory, see "
                "hdsl.HDSL, or dask.array.from_array."
            )
        return list(X)
    if not hasattr(X, "to_delayed"):
        raise TypeError(
            f"{what} is of the type {type(X).__name__}, expected a Dask array, a bag or a list of delayed blocks. For rows in "
            "memory, see hdsl.HDSL, or dask.array.from_array."
        )
    if getattr(X, "ndim", 0) > 2:
        raise ValueError(f"{what} has {X.ndim} dimensions, expected rows and columns.")
    numblocks = getattr(X, "numblocks", (1, 1))
    if getattr(X, "ndim", 0) == 2 and numblocks[1] > 1:
        raise ValueError(
            f"{what} has {numblocks[1]} blocks of columns, expected whole rows in each block; use {what}.rechunk({{1: -1}})."
        )
    return list(np.ravel(np.asarray(X.to_delayed(), dtype=object)))


def named(parts: Sequence[Any], what: str, known: Any = None) -> list[str]:
    """Names of blocks, for messages: those that `read_svmlight` gave, or their numbers."""
    files = getattr(known, "hdsl_files", None)
    if files is not None and len(files) == len(parts):
        return list(files)
    return [f"block {at} of {what}" for at in range(len(parts))]


def lazy_blocks(X: Any, what: str, n_features: int | None = None) -> list[Any]:
    """The blocks of a collection as delayed canonical CSR matrices, of so many columns."""
    parts, name = parts_of(X, what), token()
    names = named(parts, what, X)
    return [
        dask.delayed(_worker.checked_block, pure=False)(
            part, label, n_features, dask_key_name=f"hdsl-block-{name}-{at}"
        )
        for at, (part, label) in enumerate(zip(parts, names))
    ]


def as_blocks(client: Client, X: Any, what: str = "X", n_features: int | None = None) -> Blocks:
    """Computes the blocks of a collection and keeps them where they were computed."""
    if isinstance(X, Blocks):
        return X
    names = named(parts_of(X, what), what, X)
    futures = client.compute(lazy_blocks(X, what))
    name = token()
    counted = [
        client.submit(_worker.block_facts, future, key=f"hdsl-count-{name}-{at}", pure=False)
        for at, future in enumerate(futures)
    ]
    try:
        facts = client.gather(counted)
    except CancelledError:
        Blocks(client, futures, names, [], 0, 0).check_lost()
        raise
    widths = [width for _, width, _ in facts]
    wanted = widths[0] if n_features is None else n_features
    for label, width in zip(names, widths):
        if width != wanted:
            there = names[0] if n_features is None else "the fitted rows"
            raise ValueError(f"{label} has {width} columns, expected {wanted}, as {there}.")
    filled = [at for at, (n, _, _) in enumerate(facts) if n > 0]
    return Blocks(
        client,
        [futures[at] for at in filled],
        [names[at] for at in filled],
        [facts[at][0] for at in filled],
        wanted,
        sum(n for _, _, n in facts),
    )


def classes_and_codes(client: Client, y: Any, n_rows: int, what: str = "y") -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes and the code of each row. Codes are gathered: four bytes per row."""
    if not is_collection(y):
        if y is None:
            raise ValueError(f"{what} is None, expected the class of each row.")
        labels = _worker.labels_of(np.asarray(y), what)
        classes, codes = np.unique(labels, return_inverse=True)
        sizes = [len(labels)]
    else:
        name = token()
        parts = [
            dask.delayed(_worker.labels_of, pure=False)(
                part, f"block {at} of {what}", dask_key_name=f"hdsl-labels-{name}-{at}"
            )
            for at, part in enumerate(parts_of(y, what))
        ]
        labels = client.compute(parts)
        found = client.gather(
            [
                client.submit(_worker.distinct, part, key=f"hdsl-classes-{name}-{at}", pure=False)
                for at, part in enumerate(labels)
            ]
        )
        sizes = [n for n, _ in found]
        classes = np.unique(np.concatenate([some for n, some in found if n] or [np.empty(0)]))
        codes = np.concatenate(
            client.gather(
                [
                    client.submit(_worker.codes_of, part, classes, key=f"hdsl-codes-{name}-{at}", pure=False)
                    for at, part in enumerate(labels)
                ]
            )
        )
    if sum(sizes) != n_rows:
        of_blocks = f" in {len(sizes)} blocks" if len(sizes) > 1 else ""
        raise ValueError(f"{what} has {sum(sizes)} labels{of_blocks}, expected {n_rows}, one per row.")
    if len(classes):
        check_classification_targets(classes)
    return classes, codes.astype(np.int64)


def empty_like(X: Any) -> Any:
    """An empty block of the same kind, for the metadata of Dask arrays."""
    meta = getattr(X, "_meta", None)
    return meta if meta is not None else sp.csr_array((0, 0))
