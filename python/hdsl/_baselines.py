"""What the baselines of the paper have in common: triplets in, a similarity out, and the same questions answered."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from hdsl import _core
from hdsl._base import Explanation, SimilarityEstimator
from hdsl._classes import encode
from hdsl._classifier import VoteMixin
from hdsl._frames import frame
from hdsl._learner import HDSLLearner, _weights
from hdsl._matrix import DTYPES, as_csr, from_parts
from hdsl._progress import Progress
from hdsl._settings import check_source, seed

#: What :meth:`Baseline.save` writes, and the version of it.
FORMAT = "hdsl baseline 1"


class Baseline(VoteMixin, SimilarityEstimator):
    """Fits from labels or triplets; answers everything from the scaled rows and a matrix."""

    _model: Any
    triplets: str
    preprocess: str
    n_neighbors: int
    random_state: Any
    callback: Any
    verbose: int

    # -- learning -----------------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from labels, by triplets that are mined from them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How much the triplets count in which a row is the anchor.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        again = self._goes_on()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=DTYPES, reset=not again, ensure_min_samples=2
        )
        self.classes_, self._codes = encode(y, type(self).__name__)
        weights = None if sample_weight is None else _weights(sample_weight, X)
        classes = ([str(c) for c in self.classes_], self._codes)
        return self._learn(as_csr(X), classes=classes, row_weights=weights)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_triplets(
        self, X: Any, triplets: ArrayLike, sample_weight: ArrayLike | None = None, *, y: Any = None
    ) -> Any:
        """Learn from triplets of rows that somebody gives.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `X`, counted from 0: an anchor, a row it is more like, and a row it is less like.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            How much each triplet counts.
        y : array-like of shape (n_samples,) or None, default=None
            Classes of the rows, for the vote.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        again = self._goes_on()
        X = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, reset=not again, ensure_min_samples=2)
        rows = as_csr(X)
        if y is not None:
            self.classes_, self._codes = encode(y, type(self).__name__)
            if len(self._codes) != rows.shape[0]:
                raise ValueError(f"y has {len(self._codes)} classes for {rows.shape[0]} rows of X")
        given = HDSLLearner._given(triplets, sample_weight, rows.shape[0])
        return self._learn(rows, triplets=given)

    def _goes_on(self) -> bool:
        return bool(getattr(self, "warm_start", False)) and self.__sklearn_is_fitted__()

    def _learn(self, rows: Any, **kwargs: Any) -> Any:
        check_source(self.triplets)
        source = {"triplets": self.triplets, "preprocess": self.preprocess, "seed": seed(self.random_state)}
        progress = Progress(self._most(kwargs)) if self.verbose else None
        each = None
        if self.callback is not None:
            told = {"iteration", "objective", "gap", "n_features", "seconds"}
            each = lambda facts, _: self.callback({name: facts[name] for name in told})  # noqa: E731
        model, facts = self._call(
            source, rows, **kwargs, each=each, progress=progress, n_threads=self._threads()
        )
        self._model, self._index, self._fit_X = model, _core.Index(), rows
        self._names: dict[int, str] = dict(enumerate(map(str, getattr(self, "feature_names_in_", []))))
        self.n_iter_: int = facts["iterations"]
        self.stop_: str = facts["stop"]
        self.n_triplets_: int = facts["n_triplets"]
        self._take_facts(facts)
        if progress is not None:
            progress.close(f"{self.n_iter_} iterations ({self.stop_}), {facts['train_seconds']:.2f} s")
        if facts["interrupted"]:
            warnings.warn(
                f"Ctrl-C stopped the fit after {self.n_iter_} iterations; what was learned so far is kept.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def _most(self, kwargs: dict[str, Any]) -> int:
        """Iterations at most, for the progress bar."""
        raise NotImplementedError

    def _call(self, source: dict[str, Any], rows: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """The compiled half."""
        raise NotImplementedError

    def _take_facts(self, facts: dict[str, Any]) -> None:
        raise NotImplementedError

    # -- files ----------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save what was learned, with the preprocess and the parameters, to load it later.

        The file is a numpy archive of plain arrays; the command line, which knows no baselines, cannot read it. Training
        rows and `callback` are not in it.

        Parameters
        ----------
        path : str or path-like
            The file, by custom ``NAME.npz``. It is written whole or not at all.
        """
        check_is_fitted(self)
        _, ((kind, n_features, maxima), learned, is_matrix) = self._model.__reduce__()
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
        arrays: dict[str, Any] = {
            "about": np.array(json.dumps(about)),
            "maxima_features": np.array([m[0] for m in maxima], dtype=np.int64),
            "maxima": np.array([m[1] for m in maxima], dtype=np.float64),
            "features": np.array([] if is_matrix else [w[0] for w in learned], dtype=np.int64),
            "values": np.array(learned if is_matrix else [w[1] for w in learned], dtype=np.float64),
        }
        path = Path(path)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with open(beside, "wb") as file:
                np.savez_compressed(file, **arrays)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any = None, **params: Any) -> Any:
        """Load what :meth:`save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            Raw rows to look for neighbors among; without them, :meth:`kneighbors` has nothing to search.
        **params : dict
            Parameters of the estimator, over those in the file.

        Returns
        -------
        estimator : object
            Fitted, except for what only a run knows, such as ``n_triplets_``.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays: dict[str, Any] = {name: file[name] for name in ("maxima_features", "maxima", "features", "values")}
                about = json.loads(str(file["about"]))
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"{os.fspath(path)}: not a file that {cls.__name__}.save wrote") from error
        if about.get("format") != FORMAT or about.get("estimator") != cls.__name__:
            raise ValueError(
                f"{os.fspath(path)}: holds {about.get('estimator')} of format {about.get('format')!r}, "
                f"expected {cls.__name__} of format {FORMAT!r}"
            )
        estimator = cls(**{**about["parameters"], **params})
        maxima = list(zip(arrays["maxima_features"].tolist(), arrays["maxima"].tolist(), strict=True))
        values = arrays["values"].tolist()
        is_matrix = not hasattr(cls, "weights_")
        learned = values if is_matrix else list(zip(arrays["features"].tolist(), values, strict=True))
        preprocess = (about["preprocess"], about["n_features"], maxima)
        estimator._model = _core.RivalModel.from_parts(preprocess, learned, is_matrix)
        estimator._index, estimator._fit_X = _core.Index(), None
        estimator._names = {int(feature): name for feature, name in about["names"].items()}
        estimator.n_features_in_ = about["n_features"]
        estimator.n_iter_, estimator.stop_ = about["n_iter"], about["stop"]
        if X is not None:
            estimator._fit_X = estimator._rows(X)
        return estimator

    # -- questions ------------------------------------------------------------------------------------------------------------

    def _mapped(self, X: Any, left: bool) -> sp.csr_array:
        return self._map(self._rows(X), left)

    def _map(self, rows: Any, left: bool) -> sp.csr_array:
        parts, dim = self._model.map(rows, left, self._threads())
        return from_parts(parts, dim)

    def _pair_scores(self, rows: Any, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._model.score_pairs(rows, i, j, self._threads())

    def _search(self, queries: Any, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        fitted = self._fitted_rows()
        asked = self._map(fitted if queries is None else queries, True)
        return self._index.search(self._map(fitted, False), asked, queries is None, k, self._threads())

    def _known_names(self) -> dict[int, str]:
        return self._names

    def set_feature_names(self, names: ArrayLike) -> Any:
        """Give the features names, for explanations.

        Parameters
        ----------
        names : array-like of str of shape (n_features,)
            One a column.

        Returns
        -------
        self : object
            The same estimator.
        """
        check_is_fitted(self)
        self._names = dict(enumerate(self._checked_names(names, "names")))
        return self

    def explain(self, feature_names: ArrayLike | None = None) -> Explanation:
        """List what the similarity is made of.

        Parameters
        ----------
        feature_names : array-like of str or None, default=None
            Names of the input features; by default those that are known, else ``x0``, ``x1`` and so on.

        Returns
        -------
        explanation : Explanation
            ``explanation.features`` (the diagonal of the matrix) and ``explanation.pairs`` (the rest, with feature i of
            the query and feature j of the item), two data frames, the largest absolute weight first.
        """
        name = self._namer(feature_names)
        M = sp.coo_array(self.get_bilinear_matrix())
        i, j = M.coords
        order = np.argsort(-np.abs(M.data), kind="stable")
        own, pairs = order[(i == j)[order]], order[(i != j)[order]]
        counts = np.bincount(np.r_[i[pairs], j[pairs]], minlength=M.shape[0])
        features = {
            "feature": i[own],
            "name": [name(f) for f in i[own]],
            "weight": M.data[own],
            "n_pairs": counts[i[own]],
        }
        joint = {
            "i": i[pairs],
            "j": j[pairs],
            "feature_i": [name(f) for f in i[pairs]],
            "feature_j": [name(f) for f in j[pairs]],
            "weight": M.data[pairs],
        }
        return Explanation(frame(self, features), frame(self, joint))

    def explain_pair(self, x: Any, z: Any, feature_names: ArrayLike | None = None) -> Any:
        """Split the score of two rows into contributions that sum to it.

        Parameters
        ----------
        x, z : {array-like, sparse matrix} of shape (n_features,) or (1, n_features)
            Two raw rows.
        feature_names : array-like of str or None, default=None
            Names of the input features; by default those that are known, else ``x0``, ``x1`` and so on.

        Returns
        -------
        contributions : data frame
            ``feature_x`` of the one row with ``feature_z`` of the other, and their ``contribution``; the largest
            absolute value first, and none that is 0.
        """
        check_is_fitted(self)
        name = self._namer(feature_names)
        x, z = self.scale_rows(self._one_row(x, "x")), self.scale_rows(self._one_row(z, "z"))
        block = sp.coo_array(self.get_bilinear_matrix()[x.indices][:, z.indices])
        i, j = block.coords
        values = x.data[i] * block.data * z.data[j]
        order = np.argsort(-np.abs(values), kind="stable")
        order = order[values[order] != 0]
        return frame(
            self,
            {
                "feature_x": [name(f) for f in x.indices[i[order]]],
                "feature_z": [name(f) for f in z.indices[j[order]]],
                "contribution": values[order],
            },
        )
