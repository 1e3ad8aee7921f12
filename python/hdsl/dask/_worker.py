"""What runs on workers: the tasks of a fit, and the handler that passes requests on to shards."""

from __future__ import annotations

import asyncio
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof
from distributed import WorkerPlugin
from numpy.typing import NDArray

from hdsl import _core
from hdsl._matrix import as_csr, from_parts

#: Neighbors of a mining round: of the same class, and of other classes. As in the library's `train/rounds.rs`.
MINED = (3, 5)


class ShardPlugin(WorkerPlugin):
    """Lets the client ask the shards of a worker by a direct message, which takes a third of the time of a Dask actor."""

    name = "hdsl-shards"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Register the handler. `request` is what the library's coordinator wrote, and so is the reply."""

        async def hdsl_ask(key: str, request: bytes) -> dict[str, Any]:
            shard = worker.data.get(key)
            if shard is None:
                return {"missing": key}
            loop = asyncio.get_running_loop()
            return {"reply": await loop.run_in_executor(worker.executors["actor"], shard.answer, bytes(request))}

        worker.handlers["hdsl_ask"] = hdsl_ask


@sizeof.register(getattr(_core, "Shard", type("Shard", (), {})))
def _size_of_shard(shard: Any) -> int:
    return int(shard.nbytes)


def aligned(value: Any) -> Any:
    """The value with arrays that the compiled module can read: those that came in a message may start at any byte."""
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if sp.issparse(value) and value.format == "csr":
        parts = (value.data, value.indices, value.indptr)
        if all(part.flags.aligned for part in parts):
            return value
        fixed = type(value)(tuple(aligned(part) for part in parts), shape=value.shape)
        fixed.has_sorted_indices, fixed.has_canonical_format = value.has_sorted_indices, value.has_canonical_format
        return fixed
    if type(value) in (list, tuple):
        return type(value)(aligned(part) for part in value)
    return value


def with_aligned(task: Callable[..., Any]) -> Callable[..., Any]:
    """A task whose arguments are aligned first."""

    @functools.wraps(task)
    def run(*arguments: Any, **named: Any) -> Any:
        return task(*map(aligned, arguments), **{name: aligned(value) for name, value in named.items()})

    return run


# -- blocks ---------------------------------------------------------------------------------------------------------------


def checked_block(block: Any, name: str, n_features: int | None = None) -> Any:
    """A block of rows as a canonical CSR matrix."""
    if isinstance(block, (list, tuple)):  # a partition of a bag
        if not block:
            raise ValueError(f"{name} is empty, expected rows.")
        block = sp.vstack([as_csr(_two_dimensional(part, name)) for part in block], format="csr")
    block = as_csr(_two_dimensional(block, name))
    if block.dtype not in (np.float64, np.float32):
        block = block.astype(np.float64)
    if n_features is not None and block.shape[1] != n_features:
        raise ValueError(f"{name} has {block.shape[1]} columns, expected {n_features}, as the fitted rows.")
    if not np.isfinite(block.data).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return block


def _two_dimensional(block: Any, name: str) -> Any:
    if sp.issparse(block):
        if block.ndim != 2:
            raise ValueError(f"{name} has {block.ndim} dimensions, expected 2.")
        return block
    if hasattr(block, "to_numpy"):  # a data frame
        block = block.to_numpy()
    array = np.asarray(block)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has values of the type {array.dtype}, expected numbers.")
    if array.ndim != 2:
        raise ValueError(f"{name} has the shape {array.shape}, expected rows and columns.")
    return array.astype(np.float64, copy=False) if array.dtype != np.float32 else array


def block_facts(block: Any) -> tuple[int, int, int]:
    """The numbers of rows, of columns and of stored values."""
    return (*block.shape, block.nnz)


def widened(block: Any, n_features: int, shift: int = 0) -> Any:
    """The block with more columns, the first `shift` of them empty."""
    indices = block.indices + shift if shift else block.indices
    wide = type(block)((block.data, indices, block.indptr), shape=(block.shape[0], n_features))
    wide.has_sorted_indices = wide.has_canonical_format = True
    return wide


@with_aligned
def selected(block: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a block."""
    return as_csr(block[rows])


def labels_of(part: Any, name: str) -> NDArray[Any]:
    """One block of labels as an array."""
    if isinstance(part, (list, tuple)):
        part = np.concatenate([np.atleast_1d(np.asarray(label)) for label in part]) if part else np.empty(0)
    labels = np.asarray(part)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"{name} has the shape {labels.shape}, expected one label per row.")
    return labels


def distinct(labels: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """The number of labels, and the sorted classes among them."""
    return len(labels), np.unique(labels)


def codes_of(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    """The position of each label among the classes."""
    return np.searchsorted(classes, labels).astype(np.int32)


# -- preprocessing --------------------------------------------------------------------------------------------------------


@with_aligned
def statistics(block: Any) -> Any:
    """What the preprocessing is fitted from, for one block."""
    return _core.block_statistics(block)


@with_aligned
def merged_statistics(*parts: Any) -> Any:
    """The statistics of blocks that follow each other."""
    whole = parts[0]
    for part in parts[1:]:
        whole = _core.merge_statistics(whole, part)
    return whole


class Fitted:
    """A fitted preprocessing, pickled as bytes: its arrays would be sent apart from it, and arrive unaligned."""

    def __init__(self, preprocessor: _core.Preprocessor) -> None:
        self.preprocessor = preprocessor

    def __reduce__(self) -> Any:
        return _unpacked, (pickle.dumps(self.preprocessor, protocol=4),)


def _unpacked(packed: bytes) -> Fitted:
    return Fitted(pickle.loads(packed))


@with_aligned
def fitted_preprocessor(kind: str, n_features: int, whole: Any, total: float | None) -> Fitted:
    """The preprocessing of all rows."""
    return Fitted(_core.fit_preprocessor(kind, n_features, whole, whole[3] if total is None else total))


@with_aligned
def prepared(block: Any, preprocessor: Any, n_threads: int = 1) -> Any:
    """Preprocessed rows."""
    fitted = preprocessor.preprocessor
    return from_parts(fitted.apply(block, n_threads), fitted.n_features)


@with_aligned
def column_sums(before: Any, block: Any, preprocessor: Any) -> Any:
    """Sums of absolute values by feature, the sum of all squares and the number of values, continued by a block."""
    rows = prepared(block, preprocessor)
    features, sums, squares, n_values = before
    features, sums = _core.add_column_sums(features, sums, rows)
    return features, sums, squares + float(np.square(rows.data).sum()), n_values + rows.nnz


# -- mining ---------------------------------------------------------------------------------------------------------------


@with_aligned
def neighbors_between(
    queries: tuple[Any, int],
    items: tuple[Any, int],
    codes: NDArray[np.uint32],
    counts: tuple[int, int],
    preprocessor: Any,
    model: Any,
    n_threads: int,
) -> Any:
    """The nearest rows of the same and of other classes in one block, for each row of another; see `merged_neighbors`."""

    def coded(block: Any, start: int) -> Any:
        return prepared(block, preprocessor, n_threads), codes[start : start + block.shape[0]], start

    return _core.class_neighbors(coded(*queries), coded(*items), list(counts), model, n_threads)


@with_aligned
def merged_neighbors(counts: tuple[int, int], *parts: Any) -> Any:
    """The nearest rows in all blocks: for both kinds, where the list of each query starts, and rows."""
    merged = []
    for which in (0, 1):
        starts, rows, _ = _core.merge_lists([part[which] for part in parts], counts[which])
        merged.append((starts, rows))
    return merged


def numbers_of_triplets(lists: Any) -> NDArray[np.int64]:
    """How many triplets each query is the anchor of."""
    (near, _), (far, _) = lists
    return np.diff(near) * np.diff(far)


# -- shards ---------------------------------------------------------------------------------------------------------------
# A source of triplets is ("random", codes, per_row, seed), ("neighbors", parts) with the lists of blocks as (first row,
# lists), or ("list", anchors, nears, fars, weights) with the triplets of a shard.


def own_lists(parts: list[tuple[int, Any]], own: tuple[int, int]) -> Any:
    """The lists of the rows of a range, from those of blocks."""
    out: list[Any] = []
    for which in (0, 1):
        lengths, rows = [], []
        for first, lists in parts:
            starts, numbers = lists[which]
            a, b = max(own[0] - first, 0), min(own[1] - first, len(starts) - 1)
            if a < b:
                lengths.append(np.diff(starts[a : b + 1]))
                rows.append(numbers[starts[a] : starts[b]])
        length = np.concatenate(lengths) if lengths else np.empty(0, dtype=np.int64)
        out.append(np.concatenate([[0], np.cumsum(length)]).astype(np.int64))
        out.append(np.concatenate(rows) if rows else np.empty(0, dtype=np.uint32))
    return tuple(out)


def of_shard(source: Any, own: tuple[int, int]) -> Any:
    """The triplets of a shard as the compiled module takes them."""
    if source[0] == "neighbors":
        return ("neighbors", *own_lists(source[1], own))
    if source[0] == "list":
        return ("list", *as_columns(source[1:4]), source[4])
    return source


@with_aligned
def rows_of_shard(sources: list[Any], own: tuple[int, int], held_out: Any = None) -> NDArray[np.int64]:
    """The own rows of a shard and all others that its triplets name, increasing."""
    named = [np.arange(*own, dtype=np.int64)]
    for source in sources:
        if source[0] == "random":
            codes, per_row, seed = source[1:]
            named.append(_core.random_rows(codes, per_row, seed, own).astype(np.int64))
        elif source[0] == "neighbors":
            _, near, _, far = own_lists(source[1], own)
            named += [near.astype(np.int64), far.astype(np.int64)]
        else:
            named += [np.asarray(column, dtype=np.int64) for column in source[1:4]]
    if held_out is not None:
        named += [np.asarray(column, dtype=np.int64) for column in held_out[:3]]
    return np.unique(np.concatenate(named))


@with_aligned
def pick(block: Any, start: int, rows: NDArray[np.int64], preprocessor: Any) -> Any:
    """Those of the rows that are in a block, preprocessed."""
    a, b = np.searchsorted(rows, [start, start + block.shape[0]])
    return prepared(as_csr(block[rows[a:b] - start]), preprocessor)


def stacked(pieces: list[Any]) -> Any:
    """Pieces of rows as one matrix."""
    if len(pieces) == 1:
        return pieces[0]
    return as_csr(sp.vstack(pieces, format="csr"))


@with_aligned
def make_shard(
    pieces: list[Any],
    rows: NDArray[np.int64],
    own: tuple[int, int],
    n_rows: int,
    features: NDArray[np.uint32],
    sources: list[Any],
    options: dict[str, Any],
    valid: list[Any] | None,
    held_out: Any,
) -> Any:
    """A shard: its rows, its triplets, and the state of the run for them."""
    matrix = stacked(pieces)
    triplets = [of_shard(source, own) for source in sources]
    shard = _core.Shard(
        matrix,
        rows.astype(np.uint32),
        own,
        n_rows,
        features,
        triplets,
        options["loss"],
        options["n_threads"],
        options["memory"],
    )
    if valid is not None:
        a, b = np.searchsorted(rows, own)
        shard.set_validation(stacked(valid), as_csr(matrix[a:b]), options["n_neighbors"], options["normalization"])
    if held_out is not None:
        anchors, nears, fars = as_columns(held_out[:3])
        shard.set_held_out(matrix, anchors, nears, fars, held_out[3], options["normalization"])
    return shard


def as_columns(columns: Any) -> list[NDArray[np.uint32]]:
    """Anchors, nears and fars with row numbers of 32 bits."""
    return [np.ascontiguousarray(column, dtype=np.uint32) for column in columns]


def shard_facts(shard: Any) -> tuple[int, float, int]:
    """The number of triplets, the sum of their weights, and the bytes of the shard."""
    return shard.n_triplets, shard.total_weight, shard.nbytes


def base_margins(shard: Any, every: int, offset: int) -> tuple[float, int]:
    """The sum of the base margins of a sample of mined triplets, without their signs, and their number."""
    return shard.base_margins(every, offset)


def listed_margins(pieces: list[Any], rows: NDArray[np.int64], triplets: list[NDArray[np.int64]]) -> float:
    """The sum of the base margins of listed triplets, without their signs."""
    matrix = stacked(pieces)
    anchor, near, far = (matrix[np.searchsorted(rows, column)] for column in triplets)
    scores = [np.asarray(anchor.multiply(other).sum(axis=1)).ravel() for other in (near, far)]
    return float(np.abs(scores[0] - scores[1]).sum())
