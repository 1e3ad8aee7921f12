"""Mapping, neighbors and predictions for Dask's collections, by block and lazily evaluated."""

from __future__ import annotations

import copy
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hdsl import _core
from hdsl._matrix import as_csr, from_parts
from hdsl.dask import _worker
from hdsl.dask._blocks import is_collection, lazy_blocks, token


class InferenceMixin:
    """Methods that take Dask's collections and return Dask arrays. Other input is evaluated at once."""

    def transform(self, X: Any, *, items: bool = False, radius: float | None = None) -> Any:
        """Map rows into the space in which the learned similarity is a dot product.

        Parameters
        ----------
        X : dask array, bag, or list of delayed blocks
            Raw rows. A matrix in memory is mapped in this process, as by the local estimator.
        items, radius
            As for `transform` of :class:`hdsl.HDSL`, with ``euclidean=True``. Blocks are mapped one by one, so `radius` is
            needed if `items` is true.

        Returns
        -------
        Z : dask array of shape (n_samples, n_features_out)
            Lazily evaluated; its blocks are CSR arrays.
        """
        check_is_fitted(self)
        if not is_collection(X):
            return super().transform(X, items=items, radius=radius)  # type: ignore[misc]
        if items and radius is None and getattr(self, "euclidean", False):
            raise ValueError("radius is None, expected the largest norm of all items: blocks are mapped one by one.")
        light, name = self._shared(), token()
        width = self._n_features_out  # type: ignore[attr-defined]
        mapped = [
            dask.delayed(_transform, pure=False)(
                light, block, items, radius, dask_key_name=f"hdsl-transform-{name}-{at}"
            )
            for at, block in enumerate(lazy_blocks(X, "X", self.n_features_in_))  # type: ignore[attr-defined]
        ]
        meta = sp.csr_array((0, width), dtype=np.float64)
        return _array(mapped, [(n, width) for n in _sizes(X, len(mapped))], np.float64, meta)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_similarity: bool = True) -> Any:
        """Find the most similar fitted rows, exactly, in all blocks of them.

        Parameters
        ----------
        X : dask array, bag, list of delayed blocks or None, default=None
            Raw rows; by default the fitted rows, where no row is its own neighbor. For a matrix in memory the result is
            evaluated at once.
        n_neighbors : int or None, default=None
            The number of neighbors; by default the `n_neighbors` of the estimator.
        return_similarity : bool, default=True
            Whether to return the scores as well.

        Returns
        -------
        scores : dask array of shape (n_queries, n_neighbors)
            In decreasing order. Only if `return_similarity`.
        rows : dask array of shape (n_queries, n_neighbors)
            Numbers of fitted rows, in the order of the blocks of the fit. Ties are ordered by number.
        """
        check_is_fitted(self)
        k = self._decides("n_neighbors", 3) if n_neighbors is None else n_neighbors  # type: ignore[attr-defined]
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}")
        available = self._fitted_blocks().n_rows - (X is None)  # type: ignore[attr-defined]
        if k > available:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {available}"
            )
        near, sizes = self._neighbors(X, int(k))
        name = token()
        split = dask.delayed(_part, pure=False)
        out = []
        for which, kind in ((0, np.float64), (1, np.int64)):
            parts = [
                split(one, which, dask_key_name=f"hdsl-neighbors-{name}-{which}-{at}") for at, one in enumerate(near)
            ]
            out.append(_array(parts, [(n, int(k)) for n in sizes], kind))
        scores, rows = self._evaluated(X, *out)
        return (scores, rows) if return_similarity else rows

    def _neighbors(self, X: Any, k: int) -> tuple[list[Any], list[float]]:
        """Delayed scores and rows of the neighbors of each block of queries, and the sizes of these."""
        fitted = self._fitted_blocks()  # type: ignore[attr-defined]
        light, name, starts = self._shared(), token(), fitted.starts
        queries: list[Any]
        if X is None:
            queries, sizes = list(fitted.futures), [float(n) for n in fitted.sizes]
        else:
            queries = lazy_blocks(_collection(X), "X", fitted.n_features)
            sizes = _sizes(X, len(queries))
        search, merge = dask.delayed(_search, pure=False), dask.delayed(_merge, pure=False)
        found = []
        for q, block in enumerate(queries):
            parts = [
                search(
                    light, items, int(starts[i]), block, k, X is None and i == q,
                    dask_key_name=f"hdsl-search-{name}-{q}-{i}",
                )  # fmt: skip
                for i, items in enumerate(fitted.futures)
            ]
            found.append(merge(k, parts, dask_key_name=f"hdsl-merge-{name}-{q}"))
        return found, sizes

    def _shared(self) -> Any:
        """The estimator without rows, as one object of the graph that all tasks share."""
        return dask.delayed(self._light(), name=f"hdsl-model-{token()}", traverse=False)  # type: ignore[attr-defined]

    def _evaluated(self, X: Any, *results: Any) -> tuple[Any, ...]:
        """Results for collections as they are; those for rows in memory, computed."""
        if X is None or is_collection(X):
            return results
        client = self.client  # type: ignore[attr-defined]
        return tuple(client.gather(client.compute(list(results))))


class VoteInferenceMixin:
    """Predictions by a vote of the most similar fitted rows."""

    classes_: NDArray[Any]
    _codes: NDArray[np.int64]

    def predict(self, X: Any) -> Any:
        """Classify rows by a vote of the most similar fitted rows.

        Parameters
        ----------
        X : dask array, bag, or list of delayed blocks
            Raw rows. For a matrix in memory the result is evaluated at once.

        Returns
        -------
        y : dask array of shape (n_samples,)
            Lazily evaluated classes.
        """
        parts, sizes = self._voted(X, _predict)
        result = _array(parts, [(n,) for n in sizes], self.classes_.dtype)
        return self._evaluated(X, result)[0]  # type: ignore[attr-defined]

    def predict_proba(self, X: Any) -> Any:
        """The fraction of votes for each class, as `predict_proba` of :class:`hdsl.HDSLClassifier`.

        Parameters
        ----------
        X
            As for :meth:`predict`.

        Returns
        -------
        p : dask array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        parts, sizes = self._voted(X, _probabilities)
        result = _array(parts, [(n, len(self.classes_)) for n in sizes], np.float64)
        return self._evaluated(X, result)[0]  # type: ignore[attr-defined]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted. Evaluated at once.

        Parameters
        ----------
        X : dask array, bag, list of delayed blocks or matrix
            Raw rows.
        y : dask array or array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weight of each row.

        Returns
        -------
        accuracy : float
            1 is perfect.
        """
        from sklearn.metrics import accuracy_score

        client = self.client  # type: ignore[attr-defined]
        predicted = self.predict(X)
        if dask.is_dask_collection(predicted):
            predicted = client.compute(predicted).result()
        if is_collection(y):
            parts = y.to_delayed().ravel().tolist() if hasattr(y, "to_delayed") else list(y)
            y = np.concatenate([_worker.labels_of(part, "y") for part in client.gather(client.compute(parts))])
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _voted(self, X: Any, rule: Any) -> tuple[list[Any], list[float]]:
        check_is_fitted(self)
        if getattr(self, "_codes", None) is None:
            raise ValueError(f"This {type(self).__name__} has no classes of the fitted rows; pass y to `fit_triplets`.")
        light, name = self._shared(), token()  # type: ignore[attr-defined]
        vote = dask.delayed(rule, pure=False)
        codes = dask.delayed(self._codes, name=f"hdsl-classes-{name}", traverse=False)
        if self._decides("vote", "majority") == "class-mean":  # type: ignore[attr-defined]
            blocks = lazy_blocks(_collection(X), "X", self.n_features_in_)  # type: ignore[attr-defined]
            means = self._class_means_of_blocks(light, codes)
            near = [
                dask.delayed(_mean_scores, pure=False)(light, means, block, dask_key_name=f"hdsl-score-{name}-{at}")
                for at, block in enumerate(blocks)
            ]
            sizes = _sizes(X, len(blocks))
        else:
            k = self._decides("n_neighbors", 3)  # type: ignore[attr-defined]
            near, sizes = self._neighbors(X, int(k))  # type: ignore[attr-defined]
        parts = [
            vote(light, codes, one, dask_key_name=f"hdsl-predict-{name}-{at}") for at, one in enumerate(near)
        ]
        return parts, sizes

    def _class_means_of_blocks(self, light: Any, codes: Any) -> Any:
        """The mean of the mapped rows of each class: sums go from block to block, so that they are those of all rows."""
        fitted = self._fitted_blocks()  # type: ignore[attr-defined]
        name, starts = token(), fitted.starts
        sums = None
        for at, block in enumerate(fitted.futures):
            sums = dask.delayed(_class_sums, pure=False)(
                light, sums, codes, int(starts[at]), block, dask_key_name=f"hdsl-class-sums-{name}-{at}"
            )
        return sums


# -- tasks ------------------------------------------------------------------------------------------------------------------


@_worker.with_aligned
def _transform(light: Any, block: Any, items: bool, radius: float | None) -> Any:
    return light.transform(block, items=items, radius=radius)


@_worker.with_aligned
def _search(light: Any, items: Any, start: int, queries: Any, k: int, same: bool) -> Any:
    """The nearest rows in one block of the fitted ones: scores and rows, padded with the lowest score."""
    n = queries.shape[0]
    found = min(k, items.shape[0] - same)
    if found == 0 or n == 0:
        return np.empty((n, 0)), np.empty((n, 0), dtype=np.int64)
    asked = None if same else queries
    scores, rows = _core.Index().neighbors(light._model, light._normalization(), items, asked, found, 1)
    return scores.reshape(n, found), rows.reshape(n, found) + start


def _merge(k: int, parts: list[Any]) -> Any:
    """The nearest of several lists, by decreasing score and then by increasing row number."""
    scores = np.concatenate([part[0] for part in parts], axis=1)
    rows = np.concatenate([part[1] for part in parts], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _part(pair: Any, which: int) -> Any:
    return pair[which]


def _voter(light: Any, codes: Any, near: Any) -> Any:
    """A local estimator that votes with neighbors that were found already."""
    light = copy.copy(light)
    light._codes = codes
    light.kneighbors = lambda X: near
    light._class_means = lambda X: near
    return light


@_worker.with_aligned
def _predict(light: Any, codes: Any, near: Any) -> Any:
    return _voter(light, codes, near).predict(None)


@_worker.with_aligned
def _probabilities(light: Any, codes: Any, near: Any) -> Any:
    return _voter(light, codes, near).predict_proba(None)


@_worker.with_aligned
def _mapped(light: Any, block: Any) -> Any:
    parts, width = light._model.transform(block, None, 1)
    rows = from_parts(parts, width)
    if light._normalization() == "cosine":
        norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        norms[norms == 0] = 1.0
        rows = as_csr(sp.diags_array(1.0 / norms) @ rows)
    return rows


def _class_sums(light: Any, before: Any, codes: Any, start: int, block: Any) -> Any:
    """Sums of mapped rows and numbers of rows by class, continued by a block, in the order of rows."""
    mapped = _mapped(light, block)
    n_classes, n = len(light.classes_), block.shape[0]
    own = codes[start : start + n]
    if before is None:
        before = (sp.csr_array((n_classes, mapped.shape[1])), np.zeros(n_classes, dtype=np.int64))
    rows = sp.vstack([before[0], mapped], format="csr")
    # A product adds the rows of a class one by one: first the sum of the blocks before, then the rows of this one.
    members = np.concatenate([np.arange(n_classes), own])
    order = np.argsort(members, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=n_classes))])
    picks = sp.csr_array((np.ones(len(order)), order, starts), shape=(n_classes, len(order)))
    return as_csr(picks @ rows), before[1] + np.bincount(own, minlength=n_classes)


def _mean_scores(light: Any, sums: Any, block: Any) -> Any:
    """Exponentials of the mean similarities to each class, as the local estimator has them, and the winners."""
    totals, numbers = sums
    means = as_csr(sp.diags_array(1.0 / np.maximum(numbers, 1)) @ totals)
    scores = np.asarray((_mapped(light, block) @ means.T).todense())
    within = float(np.asarray(means.multiply(means).sum(axis=1)).ravel().sum()) / max(int((numbers > 0).sum()), 1)
    # Ties go to the first class in the order of a file.
    order = np.argsort(_core.class_order([str(c) for c in light.classes_]))
    winners = order[np.argmax(scores[:, order], axis=1)].astype(np.int64)
    apart = scores - scores.max(axis=1, keepdims=True)
    return np.exp(apart / within if within > 0 else apart), winners


# -- Dask arrays --------------------------------------------------------------------------------------------------------------


def _collection(X: Any) -> Any:
    """A collection, or one block of rows in memory."""
    if is_collection(X):
        return X
    return [dask.delayed(as_csr(_worker.checked_block(X, "X")), pure=False, traverse=False)]


def _sizes(X: Any, n_blocks: int) -> list[float]:
    """The numbers of rows of blocks, where they are known."""
    chunks = getattr(X, "chunks", None)
    if chunks is not None:
        return list(chunks[0])
    if n_blocks == 1 and hasattr(X, "shape"):
        return [X.shape[0]]
    return [float("nan")] * n_blocks


def _array(parts: list[Any], shapes: list[Any], kind: Any, meta: Any = None) -> Any:
    blocks = [da.from_delayed(part, shape=shape, dtype=kind, meta=meta) for part, shape in zip(parts, shapes)]
    return blocks[0] if len(blocks) == 1 else da.concatenate(blocks, allow_unknown_chunksizes=True)
