"""Learning with HDSL, from rows and triplets that are checked already; the path of the run; model files."""

from __future__ import annotations

import copy
import os
import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from hdsl import _core
from hdsl._base import SimilarityEstimator
from hdsl._callbacks import CallbackSupportMixin, Hooks
from hdsl._matrix import DTYPES, as_csr
from hdsl._progress import Progress
from hdsl._report import ReportMixin
from hdsl._settings import CONSTRAINTS, settings


#: What a search leaves behind, and any other fit takes away.
FOUND = ("tuning_", "tuned_params_", "leaderboard_", "_found_decision")


class HDSLLearner(ReportMixin, CallbackSupportMixin, SimilarityEstimator):
    """What :class:`HDSL`, :class:`HDSLClassifier` and :class:`TripletHDSL` have in common."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    def __init__(
        self,
        scale: float | ArrayLike | str = 100.0,
        *,
        triplets: str = "knn:3:5",
        preprocess: str = "max",
        loss: str = "smoothed-hinge",
        search: str = "alternating",
        steps: str = "away",
        batch: int | None = None,
        max_iter: int = 1000,
        rounds: int = 0,
        last_iter: int | None = None,
        models: int = 1,
        tol: float | None = None,
        certify: bool = False,
        max_features: int | None = None,
        time: float | None = None,
        memory: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = 100,
        eval_every: int = 10,
        n_neighbors: int = 3,
        vote: str = "majority",
        normalization: str = "dot",
        n_components: int | None = None,
        warm_start: bool = False,
        callback: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.scale = scale
        self.triplets = triplets
        self.preprocess = preprocess
        self.loss = loss
        self.search = search
        self.steps = steps
        self.batch = batch
        self.max_iter = max_iter
        self.rounds = rounds
        self.last_iter = last_iter
        self.models = models
        self.tol = tol
        self.certify = certify
        self.max_features = max_features
        self.time = time
        self.memory = memory
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.eval_every = eval_every
        self.n_neighbors = n_neighbors
        self.vote = vote
        self.normalization = normalization
        self.n_components = n_components
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning -----------------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_triplets(self, X: Any, triplets: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from triplets of rows that somebody gives: experts, clicks, judgments. No labels are needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `X`, counted from 0: an anchor, a row it is more like, and a row it is less like.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            How much each triplet counts. A triplet of weight 2 counts as one that is given twice.

        Returns
        -------
        self : object
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from hdsl import HDSL
        >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> learner = HDSL(scale=2).fit_triplets(X, [[0, 1, 2], [2, 3, 1]])
        >>> learner.pair_score([[0, 1], [0, 2]])
        array([ 2., -2.])
        """
        if self.early_stopping:
            raise ValueError("early_stopping needs labels to compute an error with; use `fit`, or stop by max_iter.")
        if self.rounds:
            raise ValueError("rounds needs labels to mine triplets again from; use `fit`, or set rounds=0.")
        if isinstance(self.scale, str):
            raise ValueError("scale='auto' needs labels to judge by; use `fit`, or set scale to a number.")
        again = self._goes_on()
        X = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, reset=not again, ensure_min_samples=2)
        rows = self._enough_features(as_csr(X))
        given = self._given(triplets, sample_weight, rows.shape[0])
        return self._learn(rows, triplets=given, start=self._model if again else None)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit_triplets(
        self,
        X: Any,
        triplets: ArrayLike,
        sample_weight: ArrayLike | None = None,
        max_iter: int | None = None,
    ) -> Any:
        """Go on learning from new feedback, starting from the similarity there is.

        Only the new triplets are learned from. The more iterations, the more of what earlier triplets taught is given
        up where the new ones disagree; to keep both, give both to :meth:`fit_triplets` with ``warm_start=True``.
        Features keep the preprocess they had; those that are new get theirs from `X`. Rows to look for neighbors among
        stay those that were fitted first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows, old or new.
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `X`, counted from 0: an anchor, a row it is more like, and a row it is less like.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            How much each triplet counts.
        max_iter : int or None, default=None
            How many iterations at most; by default the `max_iter` of the estimator.

        Returns
        -------
        self : object
            The fitted estimator. Its path begins with the similarity there was.

        Examples
        --------
        >>> import numpy as np
        >>> from hdsl import HDSL
        >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> learner = HDSL(scale=2).fit_triplets(X, [[0, 1, 2]])
        >>> learner = learner.partial_fit_triplets(X, [[2, 0, 3]], max_iter=5)  # the third column matters after all
        >>> bool(learner.score_pairs(X, 2, 0) > learner.score_pairs(X, 2, 3))
        True
        """
        again = self.__sklearn_is_fitted__()
        X = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, reset=not again, ensure_min_samples=2)
        rows = self._enough_features(as_csr(X))
        given = self._given(triplets, sample_weight, rows.shape[0])
        kept = self._fit_X if again else rows
        # What a search has found holds for what comes after it, too.
        found = {name: self.__dict__[name] for name in FOUND if again and name in self.__dict__}
        self._learn(
            rows, triplets=given, start=self._model if again else None, keep_preprocess=True, max_iter=max_iter
        )
        self.__dict__.update(found)
        self._fit_X = kept
        return self

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and self.__sklearn_is_fitted__()

    def _enough_features(self, rows: Any) -> Any:
        if rows.shape[1] < 2:
            raise ValueError(
                f"Found array with n_features={rows.shape[1]} (shape={rows.shape}) while a minimum of 2 is required "
                f"by {type(self).__name__}: it learns pairs of features."
            )
        return rows

    @staticmethod
    def _given(triplets: ArrayLike, sample_weight: ArrayLike | None, n_rows: int) -> Any:
        """Triplets as three columns, and their weights."""
        array = check_array(triplets, dtype=None, input_name="triplets")
        if array.shape[1] != 3:
            raise ValueError(f"triplets has the shape {array.shape}, expected (n_triplets, 3)")
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"triplets has the type {array.dtype}, expected whole numbers: rows of X")
        columns = [np.ascontiguousarray(array[:, c], dtype=np.int64) for c in range(3)]
        weights = None
        if sample_weight is not None:
            weights = _weights(sample_weight, array)
        return columns, weights

    def _learn(
        self,
        rows: Any,
        *,
        y: Any = None,
        classes: tuple[list[str], NDArray[np.int64]] | None = None,
        valid: Any = None,
        holdout: float | None = None,
        triplets: Any = None,
        row_weights: NDArray[np.float64] | None = None,
        start: _core.Model | None = None,
        keep_preprocess: bool = False,
        max_iter: int | None = None,
    ) -> Any:
        """Calls the compiled half and keeps what it learned."""
        learner: Any = self
        if keep_preprocess:
            found = self.__dict__.get("tuned_params_") if isinstance(self.scale, str) else None
            learner = copy.copy(self).set_params(**(found or {}))
            # Of triplets that are given there is one round, and what goes on from a model is one.
            learner.rounds, learner.last_iter, learner.models = 0, None, 1
        chosen = settings(learner, validated=valid is not None or holdout is not None, holdout=holdout)
        if row_weights is not None and self.rounds:
            raise ValueError("sample_weight cannot be used with rounds: triplets that are mined again have no weights.")
        if max_iter is not None:
            chosen["max_iter"] = max_iter
        most = chosen["max_iter"] * len(chosen["scale"]) * (1 + chosen["rounds"]) * chosen["models"]
        hooks = Hooks(self, rows, y, most)
        progress = Progress(chosen["max_iter"] * (1 + chosen["rounds"])) if self.verbose else None
        names = getattr(self, "feature_names_in_", None)
        model, facts = _core.train(
            chosen,
            rows,
            classes,
            valid=valid,
            triplets=triplets,
            row_weights=row_weights,
            names=None if names is None else list(names),
            start=start,
            keep_preprocess=keep_preprocess and start is not None,
            each=hooks.each(),
            snapshots=hooks.wants_iterates,
            progress=progress,
            n_threads=self._threads(),
        )
        for name in FOUND:
            self.__dict__.pop(name, None)
        self._model, self._index, self._fit_X = model, _core.Index(), rows
        self._take_facts(facts)
        if progress is not None:
            progress.close(
                f"{self.n_iter_} iterations ({self.stop_}), objective {self.objective_:.4g}, "
                f"{self.n_active_features_} of {self.n_features_in_} features in {self.n_atoms_} pairs, "
                f"{facts['train_seconds']:.2f} s"
            )
        if facts["interrupted"]:
            warnings.warn(
                f"Ctrl-C stopped the fit after {self.n_iter_} iterations; the model learned so far is kept.",
                ConvergenceWarning,
                stacklevel=4,
            )
        hooks.done()
        return self

    def _take_facts(self, facts: dict[str, Any]) -> None:
        self.n_iter_: int = facts["iterations"]
        self.stop_: str = facts["stop"]
        self.objective_: float = facts["objective"]
        self.gap_: float = facts["gap"]
        self.gap_certified_: bool = facts["gap_certified"]
        self.valid_error_: float | None = facts["valid_error"]
        self.n_triplets_: int = facts["n_triplets"]
        self._train_seconds: float = facts["train_seconds"]
        fields = ["scale", "objective", "n_iter", "chosen_iter", "valid_error", "stop"]
        self.scale_results_: list[dict[str, Any]] = [dict(zip(fields, point)) for point in facts["grid"]]

    # -- what was learned ---------------------------------------------------------------------------------------------------

    @property
    def scale_(self) -> float:
        """λ of the model, the best one if there were several."""
        check_is_fitted(self)
        return self._model.scale

    @property
    def n_atoms_(self) -> int:
        """How many pairs of features the similarity is made of."""
        check_is_fitted(self)
        return self._model.dim(None)

    @property
    def n_active_features_(self) -> int:
        """How many features they use."""
        check_is_fitted(self)
        return len(self._model.features_by_weight()[0])

    @property
    def chosen_iter_(self) -> int:
        """The iteration whose model is in use."""
        check_is_fitted(self)
        return self._model.chosen

    @property
    def path_(self) -> NDArray[np.void]:
        """Every iterate of the run, as a structured array.

        Fields are ``iteration``, ``objective``, ``gap``, ``n_atoms``, ``n_features`` and ``valid_error`` (nan where it
        was not computed). ``pandas.DataFrame(learner.path_)`` makes a data frame of it.
        """
        check_is_fitted(self)
        path = self._model.path()
        columns = {"iteration": np.arange(len(path["objective"])), **path}
        table = np.empty(
            len(columns["iteration"]), dtype=[(name, column.dtype) for name, column in columns.items()]
        )
        for name, column in columns.items():
            table[name] = column
        return table

    def at(
        self,
        *,
        n_features: int | None = None,
        iteration: int | None = None,
        n_atoms: int | None = None,
    ) -> Any:
        """The estimator as it was at another point of the run, without fitting again.

        Parameters
        ----------
        n_features : int or None, default=None
            The latest point, not after the one in use, with at most this many features.
        iteration : int or None, default=None
            The point after this many iterations.
        n_atoms : int or None, default=None
            The latest point, not after the one in use, with at most this many pairs of features, which are the
            coordinates of :meth:`transform`.

        Returns
        -------
        estimator : object
            A fitted copy that shares the rows with this one.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hdsl import HDSL
        >>> X, y = load_iris(return_X_y=True)
        >>> learner = HDSL(scale=10, max_iter=50).fit(X, y)
        >>> learner.at(n_features=2).n_active_features_
        2
        >>> learner.at(iteration=7).chosen_iter_
        7
        """
        check_is_fitted(self)
        wanted = {"n_features": n_features, "iteration": iteration, "n_atoms": n_atoms}
        given = {name: value for name, value in wanted.items() if value is not None}
        if len(given) != 1:
            raise ValueError("at takes one of n_features, iteration and n_atoms")
        name, value = given.popitem()
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"{name} is {value!r}, expected a whole number from 0")
        find = {
            "n_features": self._model.with_max_features,
            "iteration": self._model.at_iteration,
            "n_atoms": self._model.with_max_atoms,
        }[name]
        return self._with_model(find(int(value)))

    # -- model files ----------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the similarity as a model file, which the command line's `hdsl` reads too.

        The file holds preprocess, names, the whole path, and how classes are decided (`n_neighbors`, `vote`, `normalization`), but
        neither rows nor labels, nor the parameters of this estimator that say how to learn. For those, pickle the
        estimator.

        Parameters
        ----------
        path : str or path-like
            The file; it is replaced whole or not at all.

        Examples
        --------
        >>> import numpy as np, os, tempfile
        >>> from hdsl import HDSL
        >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> learner = HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "model.hdsl")
        ...     learner.save(file)
        ...     again = HDSL.load(file, X)
        >>> again.pair_score([[0, 1], [0, 2]])
        array([ 2., -2.])
        """
        check_is_fitted(self)
        ours = {name: self._decides(name, None) for name in ("vote", "normalization") if name in self._get_param_names()}
        model = self._model.with_rule(self._decides("n_neighbors", 3), ours.get("vote"), ours.get("normalization"))
        model.write(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any = None, **params: Any) -> Any:
        """Load a model file, by whomever it was saved.

        Parameters
        ----------
        path : str or path-like
            The file.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            Raw rows to look for neighbors among; without them, :meth:`kneighbors` has nothing to search.
        **params : dict
            Parameters of the estimator, over those the file tells of.

        Returns
        -------
        estimator : object
            Fitted, except for what only a run knows, such as ``n_triplets_``.
        """
        model = _core.Model.read(os.fspath(path))
        told = dict(model.settings)
        known: dict[str, Any] = {"scale": model.scale, "preprocess": model.preprocess}
        known |= {name: told[name] for name in ("loss", "search", "steps", "vote", "normalization") if name in told}
        numbers = {"k": "n_neighbors", "seed": "random_state", "batch": "batch", "rounds": "rounds", "models": "models"}
        known |= {ours: int(told[theirs]) for theirs, ours in numbers.items() if theirs in told}
        if not told.get("triplets", "given:").startswith("given:"):
            known["triplets"] = told["triplets"]
        known = {name: value for name, value in known.items() if name in cls._get_param_names()}
        estimator = cls(**{**known, **params})
        estimator.n_features_in_ = model.n_features
        estimator._model, estimator._index, estimator._fit_X = model, _core.Index(), None
        estimator.stop_ = told.get("stop", "unknown")
        path_ = estimator.path_
        estimator.n_iter_ = len(path_) - 1
        estimator.objective_, estimator.gap_ = float(path_["objective"][-1]), float(path_["gap"][-1])
        if X is not None:
            estimator._fit_X = estimator._rows(X)
        return estimator


def _weights(sample_weight: ArrayLike, X: Any) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.ascontiguousarray(
        _check_sample_weight(sample_weight, X, dtype=np.float64)
    )
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not (weights > 0).any():
        raise ValueError("sample_weight is 0 everywhere, which leaves nothing to learn from.")
    return weights
