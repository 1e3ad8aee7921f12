"""Fits on a cluster: what the estimators of `hdsl.dask` have in common."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from distributed import Client
from numpy.typing import ArrayLike, NDArray

from hdsl import _core
from hdsl._callbacks import Hooks
from hdsl._fit import given_triplets
from hdsl._learner import FOUND, HDSLLearner, continued, raise_if_interrupted
from hdsl._pipeline import names_of_features
from hdsl._settings import compiled, settings
from hdsl.dask._blocks import Blocks, as_blocks, classes_and_codes, is_collection
from hdsl.dask._choice import Choice, choose
from hdsl.dask._client import checked_client
from hdsl.dask._cluster import Cluster, Source
from hdsl.dask._inference import InferenceMixin
from hdsl.dask._progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Self

#: Attributes that belong to a cluster: neither pickled nor part of the local estimator.
ON_CLUSTER = frozenset({"_client", "_blocks", "best_so_far_"})

#: Seconds to wait for the answer of a worker.
TIMEOUT = 300.0


class DaskLearner(InferenceMixin, HDSLLearner):
    """A learner whose rows are on the workers of a cluster."""

    #: The class of `to_local`.
    _local_class: ClassVar[type[HDSLLearner]]
    # A copy in this process shares the rows, unlike one in another process.
    _not_pickled = ON_CLUSTER

    _client: Client | None
    _blocks: Blocks | None

    # -- the cluster ----------------------------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client of the cluster: the one that was set or passed to a fit, or else the current one."""
        return checked_client(self.__dict__.get("_client"))

    @client.setter
    def client(self, client: Client | None) -> None:
        self._client = client

    def _fitted_blocks(self) -> Blocks:
        blocks = self.__dict__.get("_blocks")
        if blocks is None:
            raise ValueError(
                f"This {type(self).__name__} has no fitted rows on a cluster, since it was loaded or pickled; fit it again to "
                "search for neighbors among them."
            )
        return blocks

    # -- learning -------------------------------------------------------------------------------------------------------------

    def _begin(self, client: Client | None, X: Any, what: str = "X", *, again: bool = False) -> Blocks:
        """The rows of a fit on their workers."""
        if client is not None:
            self._client = client
        self.__dict__.pop("best_so_far_", None)
        rows = as_blocks(self.client, X, what, self.n_features_in_ if again else None)
        if rows.n_rows < 2:
            raise ValueError(f"{what} has {rows.n_rows} rows, expected at least 2.")
        if rows.n_features < 2:
            raise ValueError(
                f"{what} has {rows.n_features} columns, expected at least 2: {type(self).__name__} learns pairs of features."
            )
        self.n_features_in_: int = rows.n_features
        return rows

    def _fit_on_cluster(
        self,
        rows: Blocks,
        *,
        labels: tuple[NDArray[Any], NDArray[np.int64]] | None = None,
        valid: tuple[Blocks, tuple[list[str], NDArray[np.int64]]] | None = None,
        triplets: Any = None,
        n_shards: int | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Learn, and store the result."""
        if self.batch is not None:
            raise ValueError("batch cannot be used on a cluster, expected None; hdsl.HDSL takes it.")
        again = self._continues()
        start = self._model if again else None
        holdout = self.validation_fraction if self.early_stopping and valid is None else None
        validated = valid is not None or holdout is not None
        chosen = settings(self, validated=validated, holdout=holdout, by_anchor=triplets is not None)
        if start is not None:
            chosen |= continued(self, start)
        if validated and labels is not None and triplets is None and self.vote == "class-mean":
            raise ValueError("vote='class-mean' cannot be used with validation rows on a cluster, expected a vote of neighbors.")
        classes = None if labels is None else ([str(c) for c in labels[0]], labels[1])
        learn, learn_classes = rows, classes
        if holdout is not None and triplets is None:
            assert classes is not None
            kept, held = (part.astype(np.int64) for part in _core.hold_out(classes, holdout, chosen["seed"]))
            learn, learn_classes = rows.select(kept, "learn"), (classes[0], classes[1][kept])
            valid = rows.select(held, "hold-out"), (classes[0], classes[1][held])
        source, held_out = self._source(triplets, rows.n_rows, chosen)
        choice = None
        if triplets is None and start is None:
            choice = choose(self, chosen, learn, learn_classes, valid)
        if choice is not None:
            choice.apply(chosen)
        preprocessor = learn.preprocessor(chosen["preprocess"])
        options = {
            "loss": self.loss,
            "n_threads": self._threads_of_workers(),
            "memory": self.memory,
            "n_neighbors": self.n_neighbors,
            "normalization": self.normalization,
        }
        per_model = chosen["max_iter"] * chosen["mining_rounds"] + (chosen["last_round_iter"] or chosen["max_iter"])
        progress = Progress(per_model) if self.verbose else None
        cluster = Cluster(
            self.client, learn, preprocessor, source,
            classes=learn_classes if triplets is None else None,
            options=options,
            valid=None if valid is None else valid[0],
            held_out=held_out,
            n_shards=n_shards,
            timeout=timeout,
            on_progress=None if progress is None else progress.cluster.update,
        )  # fmt: skip
        hooks = Hooks(self, None, None, per_model * max(len(chosen["lambda"]), 1) * chosen["n_estimators"])
        try:
            # Bad values show here, with the number of their row.
            fitted = cluster._gather([preprocessor])[0].preprocessor
            if choice is not None and choice.is_base_alone:
                model, facts = choice.base_alone(self, fitted, learn_classes)
            else:
                model, facts = _core.train_sharded(
                    compiled(self, chosen),
                    cluster,
                    n_rows=learn.n_rows,
                    n_features=learn.n_features,
                    classes=learn_classes,
                    valid_classes=None if valid is None else valid[1],
                    preprocessor=fitted,
                    names=names_of_features(self),
                    start=start,
                    each=hooks.each(),
                    snapshots=False,
                    progress=progress,
                )
                if choice is not None and choice.is_beaten_by_base(facts):
                    model, facts = choice.base_alone(self, fitted, learn_classes)
        finally:
            distributed = dict(cluster.facts)
            cluster.close()
        if choice is not None:
            facts["choice"] = choice.facts
        for name in FOUND:
            self.__dict__.pop(name, None)
        error = facts.get("error")
        if error is not None:
            self._keep_best(model, facts)
            raise error
        self._set_fitted(model, None)
        self._blocks = rows
        self._take_facts(facts)
        self.distributed_: dict[str, Any] = distributed
        if progress is not None:
            progress.close(
                f"{self.n_iter_} iterations ({self.stop_}), objective {self.objective_:.4g}, "
                f"{self.n_active_features_} of {self.n_features_in_} features in {self.n_atoms_} pairs, "
                f"{distributed['rounds']} rounds, {facts['train_seconds']:.2f} s"
            )
        raise_if_interrupted(facts, "the fit", f"{self.n_iter_} iterations; the model learned so far is kept")
        hooks.done()
        return self

    def _keep_best(self, model: _core.Model, facts: dict[str, Any]) -> None:
        """The model learned before data was lost, as a fitted local estimator."""
        best = self._local_class(**self.get_params(deep=False))
        best.n_features_in_ = self.n_features_in_
        if "classes_" in self.__dict__:
            best.classes_ = self.classes_
        best._set_fitted(model, None)
        best._take_facts(facts)
        self.best_so_far_: HDSLLearner = best

    def _source(self, triplets: Any, n_rows: int, chosen: dict[str, Any]) -> tuple[Source, Any]:
        """The source of the triplets, and the triplets of held-out anchors."""
        if triplets is None:
            return Source.parse(self.triplets), None
        columns, weights = triplets
        _core.check_triplets((columns, weights), n_rows)
        held_out = None
        if self.early_stopping:
            (columns, weights), held_out = _core.hold_out_anchors(
                (columns, weights), n_rows, self.validation_fraction, chosen["seed"]
            )
        return Source("list", triplets=list(columns), weights=weights), held_out

    def _threads_of_workers(self) -> int:
        """The threads of a shard: those of a worker, unless `n_jobs` says otherwise."""
        if self.n_jobs is not None:
            return self._threads()
        info = self.client.scheduler_info(n_workers=-1)["workers"]
        return min((facts["nthreads"] for facts in info.values()), default=1)

    def fit_triplets(  # type: ignore[override]
        self,
        X: Any,
        triplets: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        y: Any = None,
        client: Client | None = None,
        n_shards: int | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Learn from given triplets of rows on the workers of a cluster.

        Parameters
        ----------
        X : dask array, bag, or list of delayed blocks
            Raw rows, as for `fit` of :class:`hdsl.dask.HDSL`.
        triplets, sample_weight
            As for `fit_triplets` of :class:`hdsl.HDSL`, in the memory of the client. Clicks and judgments of files are read by
            :func:`hdsl.datasets.read_clicks` and :func:`hdsl.datasets.read_judgments`.
        y : dask array, bag, list of delayed blocks, array-like or None, default=None
            Classes of the rows, for `predict`. Nothing is learned from them.
        client, n_shards, timeout
            As for `fit` of :class:`hdsl.dask.HDSL`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        self._check_without_labels()
        given = given_triplets(triplets, sample_weight)
        again = self._continues()
        rows = self._begin(client, X, again=again)
        for name in ("classes_", "_codes"):
            self.__dict__.pop(name, None)
        if y is not None:
            self._store_classes(classes_and_codes(self.client, y, rows.n_rows))
        return self._fit_on_cluster(rows, triplets=given, n_shards=n_shards, timeout=timeout)

    def partial_fit_triplets(self, *arguments: Any, **named: Any) -> Self:
        """Not on a cluster: use :meth:`to_local`, or `fit_triplets` with ``warm_start=True``."""
        raise NotImplementedError(
            "partial_fit_triplets does not run on a cluster; use to_local(), or fit_triplets with warm_start=True."
        )

    def _store_classes(self, labels: tuple[NDArray[Any], NDArray[np.int64]]) -> None:
        classes, codes = labels
        if getattr(self, "class_weight", None) is not None:
            raise ValueError("class_weight cannot be used on a cluster, expected None; hdsl.HDSL takes it.")
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes, but y contains only {len(classes)} class"
            )
        self.classes_: NDArray[Any] = classes
        self._codes: NDArray[np.int64] = codes

    # -- the ordinary estimator -----------------------------------------------------------------------------------------------

    def to_local(self, *, rows: bool = False) -> HDSLLearner:
        """The ordinary estimator with the same model, which needs no cluster.

        Parameters
        ----------
        rows : bool, default=False
            Whether to gather the fitted rows in the memory of this process. `kneighbors` and `predict` need them;
            `transform`, `score_pairs`, `explain`, `path_`, `at` and `save` do not.

        Returns
        -------
        estimator : hdsl.HDSL, hdsl.HDSLClassifier or hdsl.TripletHDSL
            A fitted estimator.
        """
        best = self.__dict__.get("best_so_far_")
        if best is not None and not self.__sklearn_is_fitted__():
            return best
        model = self._model_or_error()
        local = self._local_class(**self.get_params(deep=False))
        for name, value in self.__dict__.items():
            if name not in ON_CLUSTER and name not in local.__dict__:
                setattr(local, name, value)
        local._set_fitted(model, self._fitted_blocks().gather() if rows else None)
        return local

    def _model_or_error(self) -> _core.Model:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return self._model

    def _light(self) -> Any:
        """A local estimator without rows, for tasks."""
        light = copy.copy(self.to_local())
        light.__dict__.pop("distributed_", None)
        light.callback = None
        light.n_jobs = 1
        light.verbose = 0
        return light

    # -- labels of a fit ------------------------------------------------------------------------------------------------------

    def _fit_labeled(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        client: Client | None,
        n_shards: int | None,
        timeout: float,
    ) -> Self:
        self._check_parameters()
        if isinstance(self.scale, str):
            raise ValueError(
                "scale='auto' cannot be used on a cluster, expected numbers or None; hdsl.tune(..., client=client) searches with "
                "the workers of a cluster."
            )
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together.")
        rows = self._begin(client, X, again=self._continues())
        labels = classes_and_codes(self.client, y, rows.n_rows)
        self._store_classes(labels)
        valid = None
        if X_val is not None:
            if not is_collection(X_val):
                X_val = _one_block(X_val)
            held = as_blocks(self.client, X_val, "X_val", rows.n_features)
            names, codes = classes_and_codes(self.client, y_val, held.n_rows, "y_val")
            valid = held, ([str(name) for name in names], codes)
        return self._fit_on_cluster(
            rows, labels=labels, valid=valid, n_shards=n_shards, timeout=timeout
        )


def _one_block(X: Any) -> list[Any]:
    import dask

    return [dask.delayed(X, name=None, pure=False)]


__all__ = ["Choice", "DaskLearner"]
