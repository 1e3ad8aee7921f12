"""Index: rows to search under a model, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hdsl import _core
from hdsl._matrix import DTYPES, as_csr
from hdsl._records import as_rows, is_records
from hdsl._threads import n_threads


class Hit(NamedTuple):
    """A row that :meth:`Index.search` found."""

    #: The number of the row, in the order in which rows were added.
    row: int
    #: Its similarity to the query.
    score: float
    #: Its id, if the index has ids.
    id: str | None
    #: Its class, if it has one.
    label: str | None
    #: The text to show for it.
    text: str | None


class Index:
    """Rows to search under a learned similarity, with labels, ids and texts.

    The index contains the model, so that it is all that a search needs. It is exact: the same rows with the same scores, in
    the same order, as `kneighbors` of an estimator. Files are those of the command line program `hdsl index`.

    Rows are numbered from 0 in the order in which they are added, and keep their numbers when others are removed. Searches
    may run in many threads, also while another thread adds or removes rows: a search works on the state at its start.

    Parameters
    ----------
    model : estimator, str or path-like
        A fitted :class:`HDSL`, :class:`HDSLClassifier` or :class:`TripletHDSL`, or a model file.
    normalization : {"dot", "cosine"} or None, default=None
        Normalization of the scores; None is that of the model.
    n_jobs : int or None, default=None
        The number of threads of a search; None is all processors. Results are the same for any number.

    See Also
    --------
    HDSL.kneighbors : Search among the fitted rows.

    Examples
    --------
    >>> import hdsl
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = ["tasty soup", "tasty rice", "delicious soup", "delicious rice",
    ...          "stale soup", "stale rice", "soggy soup", "soggy rice"]
    >>> y = ["good"] * 4 + ["bad"] * 4
    >>> words = CountVectorizer()
    >>> X = words.fit_transform(texts)
    >>> learner = hdsl.HDSLClassifier(scale=2, n_neighbors=1).fit(X, y)
    >>> index = hdsl.Index(learner).add(X, y, texts=texts)
    >>> query = words.transform(["delicious dumplings"])
    >>> [hit.text for hit in index.search(query, k=2)[0]]
    ['tasty soup', 'tasty rice']
    >>> index.remove([0]).predict(query)
    array(['good'], dtype='<U4')
    """

    _index: _core.StoredIndex
    _model: _core.Model
    _path: str | None = None

    def __init__(
        self, model: Any, *, normalization: str | None = None, n_jobs: int | None = None
    ) -> None:
        if isinstance(model, (str, os.PathLike)):
            learned = _core.Model.read(os.fspath(model))
        else:
            check_is_fitted(model)
            found = getattr(model, "_model", None)
            if not isinstance(found, _core.Model):
                raise TypeError(f"model is a {type(model).__name__}, expected a fitted HDSL estimator or a model file")
            rule = {name: model._decides(name, None) for name in ("vote", "normalization")}
            learned = found.with_rule(model._decides("n_neighbors", 3), rule["vote"], rule["normalization"])
        self._index = _core.StoredIndex(learned, normalization)
        self._model = self._index.model
        self.n_jobs = n_jobs

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Index:
        """Open an index file, saved by :meth:`save` or by ``hdsl index build``.

        Only the model and a list of segments are read. Searches read the rest of the file where they need it, so that an
        index may be larger than the memory.

        Parameters
        ----------
        path : str or path-like
            The file.
        n_jobs : int or None, default=None
            The number of threads of a search.

        Returns
        -------
        index : Index
            The index. Changes of it are in memory until they are saved.
        """
        index = cls.__new__(cls)
        index._index = _core.StoredIndex.load(os.fspath(path))
        index._model = index._index.model
        index._path = os.fspath(path)
        index.n_jobs = n_jobs
        return index

    def save(self, path: str | os.PathLike[str] | None = None) -> Index:
        """Save the index.

        To the file that it was loaded from or saved to, only the changes are written. At any time, also if the process is
        killed, the file is in its old or in its new state.

        Parameters
        ----------
        path : str, path-like or None, default=None
            The file; None is the file of the last :meth:`load` or :meth:`save`.

        Returns
        -------
        self : Index
            The index.
        """
        path = self._path if path is None else os.fspath(path)
        if path is None:
            raise ValueError("The index has no file yet; pass a path to `save`.")
        self._index.save(path)
        self._path = path
        return self

    def add(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: Iterable[Any] | None = None,
        texts: Iterable[str] | None = None,
        replace: bool = False,
    ) -> Index:
        """Add rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), list of str or data frame
            Raw rows; the preprocessing of the model is applied. A model that was trained on records takes texts or a data
            frame with its columns.
        y : array-like of shape (n_samples,) or None, default=None
            Their classes, for :meth:`predict`; they become strings.
        ids : iterable of shape (n_samples,) or None, default=None
            Their ids, all different; they become strings. Either all rows of an index have ids, or none.
        texts : iterable of str of shape (n_samples,) or None, default=None
            Texts to show for them; by default `X` if that is a list of texts.
        replace : bool, default=False
            Whether a row replaces one with the same id. Otherwise this is an error.

        Returns
        -------
        self : Index
            The index.
        """
        if texts is None and is_records(X) and not hasattr(X, "columns"):
            texts = ["" if text is None else text for text in X]
        labels, names, shown = (
            None if column is None else [str(cell) for cell in column] for column in (y, ids, texts)
        )
        self._index.add(self._rows(X), labels, names, shown, replace, n_threads(self.n_jobs))
        return self

    def remove(self, ids: Iterable[Any]) -> Index:
        """Remove rows.

        Parameters
        ----------
        ids : iterable
            Ids of rows, or row numbers if the index has no ids.

        Returns
        -------
        self : Index
            The index.
        """
        self._index.remove(self._numbers(ids))
        return self

    def search(self, X: Any, k: int = 10) -> list[list[Hit]]:
        """Find the most similar rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features), list of str or data frame
            Raw rows to search for, or records as for :meth:`add`.
        k : int, default=10
            How many rows to find for each query; fewer if the index has fewer.

        Returns
        -------
        hits : list of list of Hit
            For each query, the most similar rows, the most similar first. Rows with equal scores are in the order of their
            numbers.
        """
        found = self._index.search(self._rows(X), int(k), n_threads(self.n_jobs))
        hits = []
        for near in found:
            known = self._index.entries([row for row, _ in near])
            hits.append([Hit(row, score, *about) for (row, score), about in zip(near, known)])
        return hits

    def kneighbors(self, X: Any, n_neighbors: int = 10) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The most similar rows as arrays.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features)
            Raw rows to search for.
        n_neighbors : int, default=10
            How many rows to find for each query, at most as many as the index has.

        Returns
        -------
        scores, rows : ndarray of shape (n_queries, n_neighbors)
            Similarities, the largest first, and row numbers.
        """
        if n_neighbors > len(self):
            raise ValueError(f"n_neighbors is {n_neighbors}, but the index has {len(self)} rows")
        found = self._index.search(self._rows(X), int(n_neighbors), n_threads(self.n_jobs))
        flat = np.array([pair for near in found for pair in near], dtype=np.float64).reshape(len(found), n_neighbors, 2)
        return flat[:, :, 1], flat[:, :, 0].astype(np.int64)

    def predict(self, X: Any, *, n_neighbors: int | None = None, vote: str | None = None) -> NDArray[np.str_]:
        """Classify rows by a vote of the most similar rows, which need labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features)
            Raw rows to classify.
        n_neighbors : int or None, default=None
            How many rows vote; None is as in the model.
        vote : {"majority", "weighted", "class-mean"} or None, default=None
            How they vote; None is as in the model.

        Returns
        -------
        y : ndarray of str of shape (n_queries,)
            The predicted classes.
        """
        return np.array(self._index.predict(self._rows(X), n_neighbors, vote, n_threads(self.n_jobs)), dtype=np.str_)

    def explain(self, x: Any, row: Any) -> list[tuple[float, str, str]]:
        """The contributions to the score of a query and a row.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,), or str
            One raw row, or a text if the model was trained on texts.
        row : object
            The id of a row of the index, or its number if the index has no ids.

        Returns
        -------
        contributions : list of (float, str, str)
            What each pair of features adds to the score, and the names of the two. Their sum is the score. The largest in
            absolute value come first.
        """
        if isinstance(x, str):
            x = [x]
        elif not hasattr(x, "indptr") and not is_records(x):
            x = np.atleast_2d(np.asarray(x, dtype=np.float64))
        (number,) = self._numbers([row])
        _, base, pairs = self._index.explain(self._rows(x), number)
        sums: dict[tuple[int, int], float] = {}
        for i, j, value in [(feature, feature, value) for feature, value in base] + pairs:
            sums[i, j] = sums.get((i, j), 0.0) + value
        name = self._index.feature_name
        ordered = sorted(sums.items(), key=lambda item: -abs(item[1]))
        return [(value, name(i), name(j)) for (i, j), value in ordered]

    def _numbers(self, ids: Iterable[Any]) -> list[int]:
        """Row numbers of ids."""
        wanted: Sequence[Any] = list(ids)
        if not self._index.has_ids:
            return [int(row) for row in wanted]
        numbers = self._index.find([str(id) for id in wanted])
        for id, number in zip(wanted, numbers):
            if number is None:
                raise KeyError(f"the index has no row with the id {id!r}")
        return [number for number in numbers if number is not None]

    def _rows(self, X: Any) -> Any:
        if self._model.columns is not None and is_records(X):
            return as_rows(self._model, X, n_threads(self.n_jobs))
        X = check_array(X, accept_sparse="csr", dtype=DTYPES, ensure_min_samples=0)
        if X.shape[1] != self._index.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the model of the index has {self._index.n_features}")
        return as_csr(X)

    @property
    def n_features_in_(self) -> int:
        """The number of features of raw rows."""
        return self._index.n_features

    @property
    def normalization(self) -> str:
        """The normalization of the scores."""
        return self._index.normalization

    @property
    def rows_(self) -> NDArray[np.int64]:
        """The numbers of all rows, in increasing order."""
        return np.array(self._index.rows(), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"<hdsl.Index of {len(self)} rows>"
