"""Public high-dimensional sparse data sets, and files of triplets, clicks and judgments.

Data sets are downloaded once, verified, cached, and read as sparse matrices.
The original files of UCI and LIBSVM are stored in the cache of the command line's `hdsl fetch`: the folder of the
environment variable ``HDSL_DATA``, or ``hdsl`` in the user's cache folder. An interrupted download resumes where it stopped.
Without a network, the error names the address to download from and the place to put the file.

>>> import hdsl.datasets
>>> [name for name in hdsl.datasets.names() if name.startswith("d")]
['dexter', 'dorothea']
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Bunch

from hdsl import _core
from hdsl._progress import columns_of
from hdsl._threads import n_threads

__all__ = [
    "data_home",
    "fetch",
    "fetch_dexter",
    "fetch_dorothea",
    "fetch_farm_ads",
    "fetch_news20",
    "fetch_news20_binary",
    "fetch_rcv1_binary",
    "fetch_rcv1_multiclass",
    "fetch_real_sim",
    "fetch_sector",
    "names",
    "read_clicks",
    "read_judgments",
    "read_pairs",
    "read_triplets",
]

#: Seconds between two lines of progress if standard error is not a terminal.
SECONDS_BETWEEN_LINES = 10.0


def names() -> list[str]:
    """The names of the data sets."""
    return [facts["name"] for facts in _core.list_sets()]


def data_home(data_home: str | os.PathLike[str] | None = None) -> str:
    """The cache folder: `data_home`, or ``HDSL_DATA``, or ``hdsl`` in the user's cache folder."""
    return os.fspath(_core.data_folder() if data_home is None else data_home)


def fetch(
    name: str,
    *,
    subset: str | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    verbose: bool | None = None,
    base_url: str | None = None,
    again: bool = False,
) -> Any:
    """Fetch a data set by name.

    Parameters
    ----------
    name : str
        One of :func:`names`; ``-``, ``_`` and ``.`` are equivalent.
    subset : str, default=None
        A part of the set, as listed by its own function, or ``"all"`` for all parts with public classes, concatenated.
        None is the training part, or the only one.
    data_home : path-like, default=None
        The cache folder; None for ``HDSL_DATA``, or ``hdsl`` in the user's cache folder.
    download_if_missing : bool, default=True
        Whether to download missing files; otherwise they raise an OSError.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    verbose : bool, default=None
        Whether to show rate and time left on standard error. None does so on a terminal.
    base_url : str, default=None
        A mirror: ``https://host/path`` is fetched from ``base_url/host/path``, the layout of ``wget -x``.
        None is the environment variable ``HDSL_FETCH_BASE``, or the source itself.
    again : bool, default=False
        Download existing files again.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        ``data``, a CSR matrix of float64; ``target``, the classes as integers or strings, None if they are not public;
        ``target_names``, the distinct classes; ``filenames``; ``DESCR``.
    """
    facts = _facts(name)
    chosen = _chosen(facts, subset)
    progress = _Downloads() if (sys.stderr.isatty() if verbose is None else verbose) else None
    files = _core.fetch_set(name, chosen, data_home, base_url, download_if_missing, again, progress)
    if progress is not None:
        progress.close()
    parts = [_read(data, labels, facts["n_features"]) for _, data, labels in files]
    n_features = max(rows.shape[1] for rows, _ in parts)
    for rows, _ in parts:
        rows.resize(rows.shape[0], n_features)
    data = parts[0][0] if len(parts) == 1 else sp.vstack([rows for rows, _ in parts], format="csr")
    labels = [classes for _, classes in parts if classes is not None]
    target = _as_numbers(np.concatenate(labels)) if len(labels) == len(parts) else None
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=None if target is None else np.unique(target),
        filenames=[os.fspath(data) for _, data, _ in files],
        DESCR=_describe(facts, [part for part, _, _ in files]),
    )


def read_triplets(
    path: str | os.PathLike[str], *, n_rows: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Read a file of triplets, as the command line does.

    Lines are ``anchor near far [weight]``: rows counted from 0, separated by blanks or commas. ``#`` starts a comment.
    Compressed files are fine.

    Parameters
    ----------
    path : path-like
        The file.
    n_rows : int or None, default=None
        The number of rows that the triplets are of; a line that names another row is an error. None does not check.

    Returns
    -------
    triplets : ndarray of shape (n_triplets, 3)
        For `fit_triplets` of :class:`hdsl.HDSL`.
    sample_weight : ndarray of shape (n_triplets,) or None
        The weights, if any differs from 1.

    Examples
    --------
    >>> import os, tempfile
    >>> from hdsl.datasets import read_triplets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "triplets.txt")
    ...     with open(file, "w") as out:
    ...         _ = out.write("0 1 2\\n0 3 2 2.5\\n")
    ...     read_triplets(file)
    (array([[0, 1, 2],
           [0, 3, 2]]), array([1. , 2.5]))
    """
    return _given(path, "file", n_rows)


def read_clicks(
    path: str | os.PathLike[str], *, n_rows: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Read a click log of lines ``query clicked skipped [count]``, otherwise as :func:`read_triplets`.

    Equal triplets become one, whose weight is the sum of the counts.

    Parameters
    ----------
    path, n_rows
        As for :func:`read_triplets`.

    Returns
    -------
    triplets, sample_weight
        As from :func:`read_triplets`.
    """
    return _given(path, "clicks", n_rows)


def read_pairs(
    path: str | os.PathLike[str], *, n_rows: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64] | None]:
    """Read a file of similar and dissimilar pairs of lines ``row row label [weight]``, otherwise as :func:`read_triplets`.

    Parameters
    ----------
    path, n_rows
        As for :func:`read_triplets`.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2)
        For :class:`hdsl.PairHDSL`.
    y : ndarray of shape (n_pairs,)
        1 for similar, -1 for dissimilar rows (-1 or 0 in the file).
    sample_weight : ndarray of shape (n_pairs,) or None
        The weights, if any differs from 1.

    Examples
    --------
    >>> import os, tempfile
    >>> from hdsl.datasets import read_pairs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "pairs.txt")
    ...     with open(file, "w") as out:
    ...         _ = out.write("0 1 1\\n0 2 -1\\n")
    ...     read_pairs(file)
    (array([[0, 1],
           [0, 2]]), array([ 1, -1]), None)
    """
    pairs, y, weights = _core.read_pairs(os.fspath(path), n_rows)
    return pairs.reshape(-1, 2), y, None if (weights == 1).all() else weights


def read_judgments(
    path: str | os.PathLike[str], *, n_rows: int | None = None, lower_is_better: bool = False
) -> Any:
    """Read judgments of lines ``query document grade``; queries and documents are rows of the same matrix.

    Parameters
    ----------
    path, n_rows
        As for :func:`read_triplets`.
    lower_is_better : bool, default=False
        Whether lower grades are better.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        One entry per judgment, by query: ``query``, ``document``, ``grade``, and ``gain``, which the functions of
        :mod:`hdsl.metrics` take as `y_true`: the grade, and 0 for grades below 0; or, if lower is better, the highest grade of
        all plus 1 minus the grade. ``triplets`` of shape (n_triplets, 3): every query with two documents of different
        grades, the better one first.

    Examples
    --------
    >>> import os, tempfile
    >>> from hdsl.datasets import read_judgments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "qrels.txt")
    ...     with open(file, "w") as out:
    ...         _ = out.write("0 7 1\\n0 8 3\\n")
    ...     judgments = read_judgments(file)
    >>> judgments.document, judgments.gain
    (array([7, 8]), array([1., 3.]))
    >>> judgments.triplets
    array([[0, 8, 7]])
    """
    format = "judgments-low" if lower_is_better else "judgments"
    query, document, grade, gain, flat = _core.read_judgments(path, format, n_rows)
    return Bunch(query=query, document=document, grade=grade, gain=gain, triplets=flat.reshape(-1, 3))


def _given(
    path: str | os.PathLike[str], format: str, n_rows: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    flat, weights = _core.read_triplets(path, format, n_rows)
    return flat.reshape(-1, 3), weights


def _facts(name: str) -> dict[str, Any]:
    plain = name.lower().replace("-", ".").replace("_", ".")
    for facts in _core.list_sets():
        if facts["name"].replace("-", ".") == plain:
            return facts
    raise ValueError(f"unknown data set {name!r}, expected one of {', '.join(names())}")


def _chosen(facts: dict[str, Any], subset: str | None) -> list[str]:
    """The parts of a subset."""
    parts = [part for part, _, _ in facts["parts"]]
    if subset is None:
        return parts[:1]
    if subset in parts:
        return [subset]
    if subset == "all":
        return [part for part, _, labeled in facts["parts"] if labeled]
    known = ", ".join(repr(part) for part in dict.fromkeys([*parts, "all"]))
    raise ValueError(f"`subset` is {subset!r}, expected one of {known}")


def _read(data: os.PathLike[str], labels: os.PathLike[str] | None, n_features: int) -> tuple[Any, Any]:
    values, columns, starts, width, names, codes = _core.read_file(data, labels, n_features, n_threads(None))
    rows = sp.csr_matrix((values, columns, starts), shape=(len(starts) - 1, width))
    return rows, None if names is None else np.asarray(names, dtype=object)[codes]


def _as_numbers(labels: Any) -> Any:
    """Classes as integers if all of them are, else as strings.

    >>> _as_numbers(np.array(["-1", "1"], dtype=object))
    array([-1,  1])
    >>> _as_numbers(np.array(["ham", "1"], dtype=object))
    array(['ham', '1'], dtype='<U3')
    """
    try:
        return labels.astype(np.int64)
    except ValueError:
        return labels.astype(str)


def _describe(facts: dict[str, Any], parts: list[str]) -> str:
    sizes = ", ".join(f"{part} {rows:,} rows" for part, rows, _ in facts["parts"])
    lines = [
        f"{facts['name']}: {facts['about']}",
        f"{sizes}; {facts['n_features']:,} features, {facts['n_classes']} classes.",
        f"Here: {', '.join(parts)}. Source: {facts['page']}",
    ]
    return "\n".join(lines)


class _Downloads:
    """Shows the progress of a download: in place on a terminal, otherwise a line every few seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.in_place = self.stream.isatty()
        self.file = ""
        self.since = (0.0, 0)
        self.last_line = time.monotonic()
        self.shown = False

    def __call__(self, facts: dict[str, Any]) -> None:
        now = time.monotonic()
        if facts["file"] != self.file or facts["done"] < self.since[1]:
            # Bytes of an earlier download do not count for the rate.
            self.file, self.since = facts["file"], (now, facts["done"])
        line = describe_download(facts, now - self.since[0], facts["done"] - self.since[1])
        if self.in_place:
            self.stream.write(f"\r\x1b[2K{line[: columns_of(self.stream)]}")
            self.stream.flush()
            self.shown = True
        elif now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = now
            print(line, file=self.stream)

    def close(self) -> None:
        """Clear the line."""
        if self.shown:
            self.stream.write("\r\x1b[2K")
            self.stream.flush()


def describe_download(facts: dict[str, Any], seconds: float, received: int) -> str:
    """One line: size, rate, time left.

    >>> describe_download({"file": "a.bz2", "done": 3_000_000, "total": 9_000_000}, 2.0, 2_000_000)
    'a.bz2: 3.0 of 9.0 MB, 1.0 MB/s, 6 s left'
    >>> describe_download({"file": "a.bz2", "done": 3_000_000, "total": None}, 0.0, 0)
    'a.bz2: 3.0 MB'
    """
    line = f"{facts['file']}: {facts['done'] / 1e6:.1f}"
    total = facts["total"]
    line += " MB" if total is None else f" of {total / 1e6:.1f} MB"
    if seconds > 0 and received > 0:
        rate = received / seconds
        line += f", {rate / 1e6:.1f} MB/s"
        if total is not None:
            line += f", {(total - facts['done']) / rate:.0f} s left"
    return line


def _fetcher(name: str) -> Callable[..., Any]:
    """A function that fetches one data set, with a docstring from the catalogue."""
    facts = _facts(name)

    def fetcher(*, subset: str | None = None, **options: Any) -> Any:
        return fetch(name, subset=subset, **options)

    parts = ", ".join(
        f'``"{part}"`` ({rows:,} rows{"" if labeled else ", classes not public"})' for part, rows, labeled in facts["parts"]
    )
    fetcher.__name__ = fetcher.__qualname__ = "fetch_" + name.replace("-", "_").replace(".", "_")
    fetcher.__doc__ = f"""Fetch {name}: {facts["about"]}

    {facts["n_features"]:,} features, {facts["n_classes"]} classes. Source: {facts["page"]}

    Parameters
    ----------
    subset : str or None, default=None
        A part of the set: {parts}; or ``"all"``. None is the first part.
    **options
        As for :func:`fetch`.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        As from :func:`fetch`.
    """
    return fetcher


fetch_dexter: Callable[..., Any] = _fetcher("dexter")
fetch_dorothea: Callable[..., Any] = _fetcher("dorothea")
fetch_farm_ads: Callable[..., Any] = _fetcher("farm-ads")
fetch_news20: Callable[..., Any] = _fetcher("news20")
fetch_news20_binary: Callable[..., Any] = _fetcher("news20.binary")
fetch_rcv1_binary: Callable[..., Any] = _fetcher("rcv1.binary")
fetch_rcv1_multiclass: Callable[..., Any] = _fetcher("rcv1.multiclass")
fetch_real_sim: Callable[..., Any] = _fetcher("real-sim")
fetch_sector: Callable[..., Any] = _fetcher("sector")
