"""The HTML report of a model, and its short form for notebooks."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from hdsl import _core


class ReportMixin:
    """Reports of estimators with a compiled model."""

    # How the estimator is fitted from labels, and from given triplets; shown on the page.
    _fit_calls = ("fit(X_train, y_train)", "fit_triplets(X_train, triplets)")

    def report(
        self,
        path: str | os.PathLike[str],
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        X_train: Any = None,
        y_train: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
        train_texts: Any = None,
        test_texts: Any = None,
        judgments: Any = None,
        n_neighbors: int | None = None,
    ) -> None:
        """Write a report of the similarity: one HTML file.

        The page opens offline in any browser. It shows the errors before and after learning, beside those of the cosine
        and the tf-idf cosine, the run, the matrix, features and pairs in tables and as a graph, the error with fewer
        dimensions, a map of the rows, the neighbors of single test rows with explanations, and the misclassified rows.
        Sections that need more input are left out, and the page says which input they need. Large data are sampled, with a
        note.

        Parameters
        ----------
        path : str or path-like
            The file. It is replaced atomically.
        X_test : {array-like, sparse matrix} of shape (n_test, n_features) or None, default=None
            Raw rows that were not used for training.
        y_test : array-like of shape (n_test,) or None, default=None
            Their classes.
        X_train : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            Raw rows to search for neighbors; by default the fitted rows, if they are known.
        y_train : array-like of shape (n_samples,) or None, default=None
            Their classes; by default those of the fitted rows, if they are known.
        feature_names : array-like of str or None, default=None
            Names of the input features, as for :meth:`explain`.
        train_texts, test_texts : sequence of str or None, default=None
            Texts of the rows, shown with the words in use highlighted.
        judgments : (query, document, gain) or None, default=None
            Three arrays with an entry for each judgment, or a table of these columns. Documents are training rows, and queries
            are test rows. Without `X_test`, queries are training rows, too, as :func:`hdsl.datasets.read_judgments` reads
            them, and the documents are those that are judged. The page then has nDCG@10, MAP, recall and MRR of the rankings.
        n_neighbors : int or None, default=None
            The number of neighbors that vote; by default the `n_neighbors` of the estimator.

        Examples
        --------
        >>> import os, tempfile
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> learner = HDSL(scale=2, triplets="knn:1:2", n_neighbors=1).fit(X, [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "report.html")
        ...     learner.report(file, X_test=[[1., 0, 3]], y_test=[0])
        ...     os.path.getsize(file) > 1_000_000
        True
        """
        check_is_fitted(self)
        if X_train is None and y_train is not None:
            raise ValueError("y_train is given without X_train.")
        if X_test is None and (y_test is not None or test_texts is not None):
            raise ValueError("y_test and test_texts are given without X_test.")
        train = self._training_part(X_train, y_train, train_texts)
        if X_test is not None and train is None:
            raise ValueError("X_test is given, but there are no rows to search for neighbors: pass X_train as well.")
        test = None
        if X_test is not None:
            rows = self._rows(X_test)  # type: ignore[attr-defined]
            test = (rows, _classes(y_test, rows, "y_test"), _texts(test_texts, rows, "test_texts"))
        if judgments is not None:
            if train is None:
                raise ValueError("judgments are given, but there are no documents: pass X_train as well.")
            judgments = _gains(judgments, test if test is not None else train, train)
        found = self._decides("n_neighbors", 3)  # type: ignore[attr-defined]
        k = found if n_neighbors is None else n_neighbors
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
            raise ValueError(f"n_neighbors is {k!r}, expected a whole number of at least 1")
        names = None
        if feature_names is not None:
            names = self._checked_names(feature_names, "feature_names")  # type: ignore[attr-defined]
        _core.report(
            self._model,  # type: ignore[attr-defined]
            os.fspath(path),
            title=type(self).__name__,
            made_by=repr(self),
            calls=self._fit_calls,
            k=int(k),
            names=names,
            train=train,
            test=test,
            judgments=judgments,
            train_seconds=getattr(self, "_train_seconds", None),
            n_threads=self._threads(),  # type: ignore[attr-defined]
        )

    def _training_part(self, X: Any, y: ArrayLike | None, texts: Any) -> Any:
        """Rows to search for neighbors: the given ones, or the fitted ones."""
        if X is not None:
            rows = self._rows(X)  # type: ignore[attr-defined]
            return rows, _classes(y, rows, "y_train"), _texts(texts, rows, "train_texts")
        rows = getattr(self, "_fit_X", None)
        if rows is None:
            if texts is not None:
                raise ValueError("train_texts are given, but there are no training rows: pass X_train as well.")
            return None
        codes = getattr(self, "_codes", None)
        classes = None
        if codes is not None and len(codes) == rows.shape[0]:
            classes = ([str(c) for c in self.classes_], np.ascontiguousarray(codes, dtype=np.int64))  # type: ignore[attr-defined]
        return rows, classes, _texts(texts, rows, "train_texts")

    def _compact(self) -> str:
        """The similarity in a few lines of HTML, or an empty string before the fit."""
        if not self.__sklearn_is_fitted__():  # type: ignore[attr-defined]
            return ""
        return _core.compact(self._model, type(self).__name__)  # type: ignore[attr-defined]

    # scikit-learn's own diagram of the estimator comes first, then the similarity.

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._compact()  # type: ignore[misc, no-any-return]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._compact()
        return bundle


def _classes(y: ArrayLike | None, rows: Any, name: str) -> Any:
    if y is None:
        return None
    column = column_or_1d(y)
    if len(column) != rows.shape[0]:
        raise ValueError(f"{name} has {len(column)} classes for {rows.shape[0]} rows")
    classes, codes = np.unique(column, return_inverse=True)
    return [str(c) for c in classes], np.ascontiguousarray(codes, dtype=np.int64)


def _gains(judgments: Any, queries: Any, documents: Any) -> list[tuple[int, int, float]]:
    """Judgments as (query, document, gain), checked."""
    names = ("query", "document", "gain")
    if hasattr(judgments, "keys"):
        for name in names:
            if name not in judgments:
                raise ValueError(f"judgments have no column {name!r}, expected query, document and gain")
        judgments = [judgments[name] for name in names]
    if len(judgments) != 3:
        raise ValueError(f"judgments are {len(judgments)} arrays, expected three: query, document and gain")
    query, document, gain = (column_or_1d(part) for part in judgments)
    check_consistent_length(query, document, gain)
    for name, numbers, n_rows in [
        ("queries", query, queries[0].shape[0]),
        ("documents", document, documents[0].shape[0]),
    ]:
        if numbers.dtype.kind not in "iu" or (numbers < 0).any() or (numbers >= n_rows).any():
            raise ValueError(f"the {name} of judgments are rows from 0 to {n_rows - 1}, got {_first_wrong(numbers, n_rows)}")
    gain = gain.astype(float)
    wrong = gain[~(np.isfinite(gain) & (gain >= 0))]
    if len(wrong):
        raise ValueError(f"the gains of judgments are numbers of at least 0, got {wrong[0]}")
    pairs = list(zip(query.tolist(), document.tolist()))
    for (q, d), n in Counter(pairs).items():
        if n > 1:
            raise ValueError(f"judgments name query {q} and document {d} twice")
    return [(q, d, g) for (q, d), g in zip(pairs, gain.tolist())]


def _first_wrong(numbers: Any, n_rows: int) -> Any:
    if numbers.dtype.kind not in "iu":
        return f"values of type {numbers.dtype}"
    return numbers[(numbers < 0) | (numbers >= n_rows)][0]


def _texts(texts: Any, rows: Any, name: str) -> list[str] | None:
    if texts is None:
        return None
    listed = [str(text) for text in texts]
    if len(listed) != rows.shape[0]:
        raise ValueError(f"{name} has {len(listed)} texts for {rows.shape[0]} rows")
    return listed
