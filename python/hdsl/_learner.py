"""Learning with HDSL from checked rows and triplets; the path of the run; model files."""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hdsl import _core
from hdsl._callbacks import Hooks, with_callbacks
from hdsl._fit import TripletLearner, given_triplets
from hdsl._matrix import from_parts
from hdsl._pipeline import names_of_features
from hdsl._parameters import Kinds
from hdsl._progress import Progress
from hdsl._report import ReportMixin
from hdsl._sklearn import CallbackSupportMixin
from hdsl._settings import LEARNED, compiled, keep, settings

if TYPE_CHECKING:
    from typing_extensions import Self

    from hdsl._search import Tuning

#: Attributes that a search sets and any other fit deletes.
FOUND = ("tuning_", "tuned_params_", "leaderboard_", "_found_decision")


class HDSLLearner(ReportMixin, CallbackSupportMixin, TripletLearner):
    """The common part of :class:`HDSL`, :class:`HDSLClassifier` and :class:`TripletHDSL`."""

    _constraints: ClassVar[dict[str, Kinds]] = LEARNED

    scale: float | ArrayLike | str | None
    base: float | str | None
    loss: str
    search: str
    step_rule: str
    batch: int | None
    max_iter: int
    mining_rounds: int
    last_round_iter: int | None
    n_estimators: int
    subsample: float
    tol: float | None
    certify: bool
    max_features: int | None
    time: float | None
    memory: int | None
    checkpoint: Any
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int | None
    eval_every: int
    vote: str
    normalization: str
    n_components: int | None
    warm_start: bool
    tuning_: Tuning
    tuned_params_: dict[str, Any]
    leaderboard_: Any

    def __init__(
        self,
        scale: float | ArrayLike | str | None = None,
        *,
        base: float | str | None = None,
        triplets: str = "knn:3:5",
        preprocess: str | None = None,
        loss: str = "smoothed-hinge",
        search: str = "alternating",
        step_rule: str = "decrease",
        batch: int | None = None,
        max_iter: int = 1000,
        mining_rounds: int = 0,
        last_round_iter: int | None = None,
        n_estimators: int = 1,
        subsample: float = 1.0,
        tol: float | None = None,
        certify: bool = False,
        max_features: int | None = None,
        time: float | None = None,
        memory: int | None = None,
        checkpoint: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = 100,
        eval_every: int = 10,
        n_neighbors: int = 3,
        vote: str = "majority",
        normalization: str = "dot",
        class_weight: Mapping[Any, float] | str | None = None,
        n_components: int | None = None,
        euclidean: bool = False,
        warm_start: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    # -- learning -----------------------------------------------------------------------------------------------------------

    def _check_without_labels(self) -> None:
        if self.mining_rounds:
            raise ValueError("mining_rounds needs labels to mine triplets from; use `fit`, or set mining_rounds=0.")
        if isinstance(self.scale, str):
            raise ValueError("scale='auto' needs labels to validate with; use `fit`, or set scale to a number.")

    @with_callbacks
    def partial_fit_triplets(
        self,
        X: Any,
        triplets: ArrayLike,
        sample_weight: ArrayLike | None = None,
        max_iter: int | None = None,
    ) -> Self:
        """Continue learning from new triplets, starting from the present similarity.

        Only the new triplets are learned from. The more iterations, the more of the earlier triplets' effect is lost where
        the new ones disagree; to keep both, pass both to :meth:`fit_triplets` with ``warm_start=True``. The preprocessing of
        known features is kept; that of new ones is learned from `X`. Neighbors are still searched among the rows that were
        fitted first. There is no early stopping.

        Parameters
        ----------
        X, triplets, sample_weight
            As for :meth:`fit_triplets`; the rows may be old or new.
        max_iter : int or None, default=None
            The maximum number of iterations; by default the `max_iter` of the estimator.

        Returns
        -------
        self : object
            The fitted estimator. Its path begins with the previous similarity.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> learner = HDSL(scale=2).fit_triplets(X, [[0, 1, 2]])
        >>> learner = learner.partial_fit_triplets(X, [[2, 0, 3]], max_iter=5)  # the third column matters after all
        >>> bool(learner.score_pairs(X, 2, 0) > learner.score_pairs(X, 2, 3))
        True
        """
        self._check_parameters()
        again = self.__sklearn_is_fitted__()
        rows = self._rows_to_fit(X, reset=not again)
        given = given_triplets(triplets, sample_weight)
        kept = self._fit_X if again else rows
        # The results of a search remain valid for the fits that continue from it.
        found = {name: self.__dict__[name] for name in FOUND if again and name in self.__dict__}
        try:
            self._learn(
                rows, triplets=given, start=self._model if again else None, keep_preprocess=True, max_iter=max_iter
            )
        finally:  # also after Ctrl-C, which keeps the model learned so far
            self.__dict__.update(found)
            self._fit_X = kept
        return self

    def _rows_to_fit(self, X: Any, *, reset: bool) -> Any:
        return self._enough_features(super()._rows_to_fit(X, reset=reset))

    def _enough_features(self, rows: Any) -> Any:
        if rows.shape[1] < 2:
            raise ValueError(
                f"Found array with n_features={rows.shape[1]} (shape={rows.shape}) while a minimum of 2 is required "
                f"by {type(self).__name__}: it learns pairs of features."
            )
        return rows

    def _learn(
        self,
        rows: Any,
        *,
        y: Any = None,
        classes: tuple[list[str], NDArray[np.int64]] | None = None,
        valid: Any = None,
        holdout: float | None = None,
        triplets: Any = None,
        start: _core.Model | None = None,
        keep_preprocess: bool = False,
        max_iter: int | None = None,
    ) -> Self:
        learner: Any = self
        if keep_preprocess:
            found = self.__dict__.get("tuned_params_") if isinstance(self.scale, str) else None
            learner = copy.copy(self).set_params(**(found or {}))
            # Given triplets are not mined again, and a fit that continues from a model gives one model.
            learner.mining_rounds, learner.last_round_iter, learner.n_estimators, learner.subsample = 0, None, 1, 1.0
        if triplets is not None and self.early_stopping and not keep_preprocess:
            holdout = self.validation_fraction
        validated = valid is not None or holdout is not None
        chosen = settings(learner, validated=validated, holdout=holdout, by_anchor=triplets is not None)
        if max_iter is not None:
            chosen["max_iter"] = max_iter
        if start is not None:
            chosen |= continued(self, start)
        per_model = chosen["max_iter"] * chosen["mining_rounds"] + (chosen["last_round_iter"] or chosen["max_iter"])
        hooks = Hooks(self, rows, y, per_model * max(len(chosen["lambda"]), 1) * chosen["n_estimators"])
        progress = Progress(per_model) if self.verbose else None
        names = names_of_features(self)
        model, facts = _core.train(
            compiled(self, chosen),
            rows,
            classes,
            valid=valid,
            triplets=triplets,
            class_weights=self._class_weights_of_fit(classes),
            names=names,
            start=start,
            keep_preprocess=keep_preprocess and start is not None,
            each=hooks.each(),
            snapshots=hooks.wants_iterates,
            progress=progress,
            n_threads=self._threads(),
        )
        for name in FOUND:
            self.__dict__.pop(name, None)
        self._set_fitted(model, rows)
        self._take_facts(facts)
        if progress is not None:
            progress.close(
                f"{self.n_iter_} iterations ({self.stop_}), objective {self.objective_:.4g}, "
                f"{self.n_active_features_} of {self.n_features_in_} features in {self.n_atoms_} pairs, "
                f"{facts['train_seconds']:.2f} s"
            )
        raise_if_interrupted(facts, "the fit", f"{self.n_iter_} iterations; the model learned so far is kept")
        hooks.done()
        return self

    def _class_weights_of_fit(self, classes: Any) -> list[float] | None:
        weights = self.__dict__.get("_weights_of_classes")
        return None if classes is None or weights is None else weights.tolist()

    def _take_facts(self, facts: dict[str, Any]) -> None:
        # scikit-learn expects at least 1, also where there was nothing to learn.
        self.n_iter_: int = max(facts["iterations"], 1)
        self.stop_: str = facts["stop"]
        self.objective_: float = facts["objective"]
        self.gap_: float = facts["gap"]
        self.gap_certified_: bool = facts["gap_certified"]
        self.valid_error_: float | None = facts["valid_error"]
        self.valid_measure_: str | None = facts["valid_measure"]
        self.n_triplets_: int = facts["n_triplets"]
        self._train_seconds: float = facts["train_seconds"]
        self.choice_: dict[str, Any] | None = facts["choice"]
        fields = ["scale", "objective", "n_iter", "chosen_iter", "valid_error", "stop"]
        self.scale_results_: list[dict[str, Any]] = [dict(zip(fields, point)) for point in facts["grid"]]

    # -- what was learned ---------------------------------------------------------------------------------------------------

    @property
    def scale_(self) -> float:
        """λ of the model; the best one if several were tried."""
        check_is_fitted(self)
        return self._model.scale

    @property
    def base_(self) -> float:
        """β of the similarity S(x, z) = β <x, z> + x' M z of preprocessed rows; 0 if it is learned alone."""
        check_is_fitted(self)
        return self._model.base

    @property
    def preprocess_(self) -> str:
        """The preprocessing of the model."""
        check_is_fitted(self)
        return self._model.preprocess

    @property
    def n_atoms_(self) -> int:
        """The number of atoms (pairs of features) of the similarity."""
        check_is_fitted(self)
        return self._model.n_atoms

    @property
    def n_active_features_(self) -> int:
        """The number of features that the atoms use: those of the learned part. (A base uses all features.)"""
        check_is_fitted(self)
        return len(self._model.features_by_weight()[0])

    @property
    def chosen_iter_(self) -> int:
        """The iteration whose iterate is in use."""
        check_is_fitted(self)
        return self._model.chosen

    @property
    def path_(self) -> NDArray[np.void]:
        """Every iterate of the run, as a structured array.

        Fields are ``iteration``, ``objective``, ``gap``, ``n_atoms``, ``n_features`` and ``valid_error`` (nan where it
        was not computed). ``pandas.DataFrame(learner.path_)`` is a data frame of it.
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

    def get_mahalanobis_matrix(self) -> sp.csr_array:
        """The matrix βI + M of the similarity S(x, z) = x' (βI + M) z of preprocessed rows, under the name of metric-learn.

        Returns
        -------
        matrix : csr_array of shape (n_features, n_features)
            Symmetric and positive semi-definite: the matrix of the squared distances of :meth:`pair_distance`. Sparse, since
            there may be millions of features.
        """
        M = self.get_bilinear_matrix()
        return sp.csr_array(M + self.base_ * sp.eye_array(M.shape[0], format="csr")) if self.base_ else M

    def at(
        self,
        *,
        n_features: int | None = None,
        iteration: int | None = None,
        n_atoms: int | None = None,
    ) -> Self:
        """The estimator with another iterate of the path, without fitting again.

        Parameters
        ----------
        n_features : int or None, default=None
            The latest iterate, not after the one in use, whose atoms use at most this many features.
        iteration : int or None, default=None
            The iterate after this many iterations.
        n_atoms : int or None, default=None
            The latest iterate, not after the one in use, with at most this many atoms, which are the learned coordinates
            of :meth:`transform`.

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
        """Save the similarity as a model file, which the command line program `hdsl` reads as well.

        The file contains the configuration of the training, the preprocessing, feature names, the whole path and the
        prediction rule (`n_neighbors`, `vote`, `normalization`), but neither rows nor labels. To save those as well, pickle
        the estimator.

        Parameters
        ----------
        path : str or path-like
            The file. It is replaced atomically.

        Examples
        --------
        >>> import os, tempfile
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "model.hdsl")
        ...     HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1]).save(file)
        ...     again = HDSL.load(file, X)
        >>> again.pair_score([[0, 1], [0, 2]])
        array([ 2., -2.])
        """
        check_is_fitted(self)
        ours = {name: self._decides(name, None) for name in ("vote", "normalization") if name in self._get_param_names()}
        model = self._model.with_rule(self._decides("n_neighbors", 3), ours.get("vote"), ours.get("normalization"))
        model.write(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any = None, y: Any = None, **params: Any) -> Self:
        """Load a model file, saved by Python or by the command line program.

        A model that the program trained on records (CSV, JSON lines, Parquet) contains its training rows and its
        vectorizer: it needs no `X` and `y`, and its methods take sequences of texts and data frames.

        Parameters
        ----------
        path : str or path-like
            The file.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            Raw rows to search for neighbors; :meth:`kneighbors` and `predict` need them.
        y : array-like of shape (n_samples,) or None, default=None
            Classes of those rows, for `predict`.
        **params : dict
            Parameters of the estimator, instead of those in the file.

        Returns
        -------
        estimator : object
            Fitted, without the attributes that only a run has, such as ``n_triplets_``.
        """
        if X is None and y is not None:
            raise ValueError("y is given without X.")
        model = _core.Model.read(os.fspath(path))
        config = json.loads(model.config)
        known: dict[str, Any] = {"scale": model.scale, "preprocess": model.preprocess, "base": model.base}
        known |= {name: config[name] for name in ("loss", "search", "batch", "mining_rounds", "n_estimators")}
        known["step_rule"] = config["steps"]
        known["subsample"] = config.get("subsample", 1.0)
        known |= {name: config["rule"][name] for name in ("vote", "normalization")}
        known |= {"n_neighbors": config["rule"]["k"], "random_state": config["seed"]}
        if model.triplets is not None:
            known["triplets"] = model.triplets
        if config["max_iter"] == 0:  # the base alone: a fit with these parameters learns nothing either
            known |= {"scale": None, "max_iter": 0}
        known = {name: value for name, value in known.items() if name in cls._get_param_names()}
        estimator = cls(**{**known, **params})
        estimator.n_features_in_ = model.n_features
        estimator._set_fitted(model, None)
        estimator.stop_ = model.stop or "unknown"
        path_ = estimator.path_
        estimator.n_iter_ = len(path_) - 1
        estimator.objective_, estimator.gap_ = float(path_["objective"][-1]), float(path_["gap"][-1])
        stored = model.training_rows() if X is None else None
        if stored is not None:
            parts, classes = stored
            estimator._fit_X = from_parts(parts, model.n_features)
            if classes is not None:
                y = np.asarray(classes[0])[classes[1]]
        if X is not None:
            estimator._fit_X = estimator._rows(X)
        if y is not None:
            estimator._set_classes(y, estimator._fit_X)
        return estimator


def continued(learner: Any, start: _core.Model) -> dict[str, Any]:
    """Settings that are left open and are known from the model that a fit continues from."""
    known: dict[str, Any] = {"lambda": [start.scale], "base": start.base, "preprocess": start.preprocess}
    if learner.scale is not None:
        return {}
    learned = len(start.features_by_weight()[0]) > 0
    is_open = {"lambda": learned, "base": learner.base is None, "preprocess": learner.preprocess is None}
    return {name: value for name, value in known.items() if is_open[name]}


def raise_if_interrupted(facts: dict[str, Any], what: str, kept: str) -> None:
    """Raise KeyboardInterrupt if Ctrl-C ended a run early: whoever called `fit` must not go on as if it were complete."""
    if facts["interrupted"]:
        raise KeyboardInterrupt(f"Ctrl-C stopped {what} after {kept} on the estimator")


def warn_if_interrupted(facts: dict[str, Any], what: str, kept: str, depth: int = 4) -> None:
    """Warn that Ctrl-C ended a run early. `depth` is the number of calls between this one and the user's."""
    if facts["interrupted"]:
        warnings.warn(f"Ctrl-C stopped {what} after {kept}.", ConvergenceWarning, stacklevel=depth + 1)
