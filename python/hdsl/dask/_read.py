"""Files of rows, each read by the worker that keeps it."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client
from numpy.typing import NDArray

from hdsl import _core
from hdsl._matrix import from_parts
from hdsl.dask import _worker
from hdsl.dask._blocks import token
from hdsl.dask._client import checked_client


def read_svmlight(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    client: Client | None = None,
) -> tuple[Any, Any]:
    """Read svmlight files on the workers of a cluster, one block of rows per file.

    Each file is read by the worker that keeps its rows. The workers must be able to open the files: they are on a shared
    file system, or the workers run on this machine. If a worker is lost, other workers read its files again.

    Parameters
    ----------
    paths : str, path-like, or sequence of them
        A file, a pattern such as ``"part-*.svm.gz"``, or several files. Files may be compressed (gzip, bzip2, xz, zstd).
        The files of a pattern are taken in the order of their names; it is the order of the rows.
    n_features : int or None, default=None
        The number of columns. By default, the largest index in any file gives it.
    zero_based : bool or None, default=None
        Whether indices count from 0. By default they do if an index 0 occurs in any of the files, and otherwise from 1.
    client : distributed.Client or None, default=None
        The cluster; by default that of the current client.

    Returns
    -------
    X : dask array of shape (n_rows, n_features)
        Rows; its blocks are CSR arrays in the memory of the workers.
    y : dask array of shape (n_rows,)
        Classes: integers if all of them are, otherwise strings.
    """
    client = checked_client(client)
    files = expand(paths)
    name = token()
    read = [
        client.submit(_read, os.path.abspath(file), zero_based, n_features, key=f"hdsl-read-{name}-{at}", pure=False)
        for at, file in enumerate(files)
    ]
    facts = client.gather(
        [client.submit(_facts, part, key=f"hdsl-count-{name}-{at}", pure=False) for at, part in enumerate(read)]
    )
    from_0 = any(fact["zero_based"] for fact in facts)
    shifts = [1 if from_0 and not fact["zero_based"] else 0 for fact in facts]
    widths = [fact["n_features"] + shift for fact, shift in zip(facts, shifts)]
    width = max(widths) if n_features is None else n_features
    for file, found in zip(files, widths):
        if found > width:
            raise ValueError(f"{file}: has {found} features, but n_features is {n_features}.")
    classes = np.unique(np.concatenate([fact["names"] for fact in facts]))
    try:
        kind: Any = classes.astype(np.int64).dtype
    except ValueError:
        kind = classes.dtype
    rows = [
        client.submit(_rows, part, width, shift, key=f"hdsl-rows-{name}-{at}", pure=False)
        for at, (part, shift) in enumerate(zip(read, shifts))
    ]
    labels = [
        client.submit(_labels, part, kind, key=f"hdsl-labels-{name}-{at}", pure=False) for at, part in enumerate(read)
    ]
    sizes = [fact["n_rows"] for fact in facts]
    X = da.concatenate(
        [
            da.from_delayed(future, shape=(n, width), dtype=np.float64, meta=sp.csr_array((0, width), dtype=np.float64))
            for future, n in zip(rows, sizes)
        ]
    )
    y = da.concatenate(
        [da.from_delayed(future, shape=(n,), dtype=kind) for future, n in zip(labels, sizes)]
    )
    X.hdsl_files = [str(file) for file in files]
    return X, y


def expand(paths: Any) -> list[str]:
    """The files that a pattern, a path or a list of both stands for."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files: list[str] = []
    for path in given:
        text = os.fspath(path)
        found = sorted(glob.glob(text)) if glob.has_magic(text) else [text]
        if not found:
            raise FileNotFoundError(f"{text}: no file matches this pattern.")
        files += found
    if not files:
        raise ValueError("there are no files to read.")
    return files


# -- tasks ------------------------------------------------------------------------------------------------------------------


def _read(path: str, zero_based: bool | None, n_features: int | None) -> dict[str, Any]:
    parts, width, from_0, names, codes = _core.read_svmlight(path, zero_based, n_features)
    rows = from_parts(parts, width)
    return {"rows": rows, "zero_based": from_0, "names": np.asarray(names), "codes": codes.astype(np.int32)}


def _facts(read: dict[str, Any]) -> dict[str, Any]:
    n_rows, n_features = read["rows"].shape
    return {"n_rows": n_rows, "n_features": n_features, "zero_based": read["zero_based"], "names": read["names"]}


def _rows(read: dict[str, Any], n_features: int, shift: int) -> Any:
    return _worker.widened(read["rows"], n_features, shift)


def _labels(read: dict[str, Any], kind: Any) -> NDArray[Any]:
    return read["names"].astype(kind)[read["codes"]]
