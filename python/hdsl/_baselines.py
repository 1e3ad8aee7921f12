"""The common part of the paper's baselines: triplets in, a similarity out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hdsl import _core
from hdsl._callbacks import with_callbacks
from hdsl._classifier import VoteMixin
from hdsl._fit import TripletLearner
from hdsl._learner import raise_if_interrupted
from hdsl._matrix import from_parts
from hdsl._pipeline import names_of_features
from hdsl._progress import Progress
from hdsl._settings import as_json, check_source, seed

if TYPE_CHECKING:
    from typing_extensions import Self

#: The format of :meth:`Baseline.save`, with its version.
FORMAT = "hdsl baseline 2"


class Baseline(VoteMixin, TripletLearner):
    """Fits to labels or triplets; all methods work on the preprocessed rows and the learned matrix."""

    _model: Any

    # -- learning -----------------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labels, by mining triplets from them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.
        y : array-like of shape (n_samples,)
            Classes.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        again = self._continues()
        rows, y = self._rows_and_labels(X, y, reset=not again)
        self._set_classes(y, rows)
        weights = self._weights_of_classes
        start = self._model if again else None
        row_weights = None if weights is None else weights[self._codes]
        return self._learn(rows, classes=self._classes(), row_weights=row_weights, start=start)

    def fit_transform(self, X: Any, y: Any) -> Any:
        """Learn from labels, and map the same rows.

        Parameters
        ----------
        X, y
            As for :meth:`fit`.

        Returns
        -------
        Z : {ndarray, csr_array} of shape (n_samples, n_features_out)
            As :meth:`transform` returns it; with ``euclidean=True``, as it does with ``items=True``.
        """
        return self.fit(X, y).transform(X, items=True)

    def _learn(self, rows: Any, **kwargs: Any) -> Self:
        check_source(self.triplets)
        source = {"triplets": self.triplets, "preprocess": self.preprocess, "seed": seed(self.random_state)}
        progress = Progress(self._max_steps()) if self.verbose else None
        each = None
        callback = self.callback
        if callback is not None:
            told = {"iteration", "objective", "gap", "n_features", "seconds"}
            each = lambda facts, _: bool(callback({name: facts[name] for name in told}))  # noqa: E731
        model, facts = _core.fit_baseline(
            as_json(self._settings()), source, rows, **kwargs, each=each, progress=progress, n_threads=self._threads()
        )
        self._set_fitted(model, rows)
        self._names: dict[int, str] = dict(enumerate(names_of_features(self) or []))
        self.n_iter_: int = facts["iterations"]
        self.stop_: str = facts["stop"]
        self.n_triplets_: int = facts["n_triplets"]
        self._take_facts(facts)
        if progress is not None:
            progress.close(f"{self.n_iter_} iterations ({self.stop_}), {facts['train_seconds']:.2f} s")
        raise_if_interrupted(facts, "the fit", f"{self.n_iter_} iterations; the similarity learned so far is kept")
        return self

    def _max_steps(self) -> int:
        """The maximum number of iterations, for the progress bar."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """The settings of the compiled learner."""
        raise NotImplementedError

    def _take_facts(self, facts: dict[str, Any]) -> None:
        raise NotImplementedError

    # -- files ----------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the similarity, its preprocessing and the parameters, to load them later.

        The file is a numpy archive of plain arrays; the command line program does not read it. Training rows and `callback`
        are not saved.

        Parameters
        ----------
        path : str or path-like
            The file, by convention ``NAME.npz``. It is replaced atomically.
        """
        check_is_fitted(self)
        _, ((kind, n_features, maxima), learned, is_matrix, terms) = self._model.__reduce__()
        told = {name: value for name, value in self.get_params(deep=False).items() if name != "callback"}
        if not isinstance(told["random_state"], int | None):
            del told["random_state"]
        about = {
            "format": FORMAT,
            "estimator": type(self).__name__,
            "parameters": told,
            "preprocess": kind,
            "n_features": n_features,
            "stop": self.stop_,
            "n_iter": self.n_iter_,
            "names": {str(feature): name for feature, name in self._names.items()},
        }
        if terms is not None:
            about["terms"] = terms[:-1]
        arrays: dict[str, Any] = {
            "about": np.array(json.dumps(about)),
            "maxima_features": np.array([m[0] for m in maxima], dtype=np.int64),
            "maxima": np.array([m[1] for m in maxima], dtype=np.float64),
            "features": np.array([] if is_matrix else [w[0] for w in learned], dtype=np.int64),
            "values": np.array(learned if is_matrix else [w[1] for w in learned], dtype=np.float64),
        }
        if terms is not None:
            arrays["document_frequencies"] = np.array(terms[-1], dtype=np.int64).reshape(-1, 2)
        path = Path(path)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with open(beside, "wb") as file:
                np.savez_compressed(file, **arrays)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any = None, **params: Any) -> Self:
        """Load a file that :meth:`save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            Raw rows to search for neighbors; :meth:`kneighbors` needs them.
        **params : dict
            Parameters of the estimator, instead of those in the file.

        Returns
        -------
        estimator : object
            Fitted, without the attributes that only a run has, such as ``n_triplets_``.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays: dict[str, Any] = {name: file[name] for name in ("maxima_features", "maxima", "features", "values")}
                about = json.loads(str(file["about"]))
                terms = None
                if "terms" in about:
                    terms = (*about["terms"], list(map(tuple, file["document_frequencies"].tolist())))
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"{os.fspath(path)}: not a file of {cls.__name__}.save") from error
        if about.get("format") != FORMAT or about.get("estimator") != cls.__name__:
            raise ValueError(
                f"{os.fspath(path)}: contains {about.get('estimator')} of format {about.get('format')!r}, "
                f"expected {cls.__name__} of format {FORMAT!r}"
            )
        estimator = cls(**{**about["parameters"], **params})
        maxima = list(zip(arrays["maxima_features"].tolist(), arrays["maxima"].tolist(), strict=True))
        values = arrays["values"].tolist()
        is_matrix = not hasattr(cls, "weights_")
        learned = values if is_matrix else list(zip(arrays["features"].tolist(), values, strict=True))
        preprocess = (about["preprocess"], about["n_features"], maxima)
        estimator._set_fitted(_core.BaselineModel.from_parts(preprocess, learned, is_matrix, terms), None)
        estimator._names = {int(feature): name for feature, name in about["names"].items()}
        estimator.n_features_in_ = about["n_features"]
        estimator.n_iter_, estimator.stop_ = about["n_iter"], about["stop"]
        if X is not None:
            estimator._fit_X = estimator._rows(X)
        return estimator

    # -- scores and explanations ------------------------------------------------------------------------------------------------

    def _mapped(self, X: Any, left: bool) -> sp.csr_array:
        return self._map(self._rows(X), left)

    def _map(self, rows: Any, left: bool) -> sp.csr_array:
        parts, dim = self._model.map(rows, left, self._threads())
        return from_parts(parts, dim)

    def _pair_scores(self, rows: Any, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._model.score_pairs(rows, [i, j], self._threads())

    def _search(self, queries: Any, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        fitted = self._fitted_rows()
        asked = self._map(fitted if queries is None else queries, True)
        return self._index.search(self._map(fitted, False), asked, queries is None, k, self._threads())

    def _map_for_output(self, rows: Any, items: bool) -> sp.csr_array:
        # With the added coordinate, inner products of queries and items are scores, also where the similarity is not
        # symmetric or not positive semi-definite.
        return self._map(rows, left=not items) if self.euclidean else self._embed(rows)

    def _embed(self, rows: Any) -> sp.csr_array:
        return sp.csr_array(self._prepared(rows) @ self.components_.T)

    def _prepared(self, rows: Any) -> sp.csr_array:
        return from_parts(self._model.prepare(rows, self._threads()), self._model.n_features)

    def _known_names(self) -> dict[int, str]:
        return self._names

    def _store_names(self, names: list[str]) -> None:
        self._names = dict(enumerate(names))

    def _by_weight(self) -> tuple[Any, Any]:
        M = sp.coo_array(self.get_bilinear_matrix())
        i, j = M.coords
        order = np.argsort(-np.abs(M.data), kind="stable")
        own, pairs = order[(i == j)[order]], order[(i != j)[order]]
        counts = np.bincount(np.r_[i[pairs], j[pairs]], minlength=M.shape[0])
        return (i[own], counts[i[own]], M.data[own]), (i[pairs], j[pairs], M.data[pairs])

    def _contributions(self, x: Any, z: Any) -> Any:
        x, z = self.preprocess_rows(x), self.preprocess_rows(z)
        block = sp.coo_array(self.get_bilinear_matrix()[x.indices][:, z.indices])
        i, j = block.coords
        values = x.data[i] * block.data * z.data[j]
        order = np.argsort(-np.abs(values), kind="stable")
        order = order[values[order] != 0]
        return x.indices[i[order]], z.indices[j[order]], values[order]
