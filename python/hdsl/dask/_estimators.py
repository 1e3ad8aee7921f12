"""The estimators: those of the package, fitted on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import dask
import numpy as np
from distributed import Client
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

import hdsl
from hdsl import _core
from hdsl._fit import given_triplets
from hdsl._learner import HDSLLearner
from hdsl._parameters import Kinds
from hdsl.dask import _worker
from hdsl.dask._blocks import token
from hdsl.dask._inference import VoteInferenceMixin
from hdsl.dask._learner import TIMEOUT, DaskLearner
from hdsl.metrics import triplet_accuracy

if TYPE_CHECKING:
    from typing_extensions import Self

#: Triplets that one task of `decision_function` scores.
TRIPLETS_PER_TASK = 100_000


class HDSL(DaskLearner, hdsl.HDSL):
    """Learn a sparse similarity on the workers of a Dask cluster, with the same result as :class:`hdsl.HDSL`.

    Parameters, attributes and the model are those of :class:`hdsl.HDSL`. Rows are Dask's collections: arrays with sparse or
    dense blocks, bags of blocks, lists of delayed blocks, or files by :func:`hdsl.dask.read_svmlight`. They stay on the
    workers: each worker gets a range of the triplets and the rows that these name, and this process gets sums over triplets,
    the class of each row (four bytes), and the order of the features.

    For a given number of shards the model has the same bytes on any number of workers; the model of another number of shards,
    and of :class:`hdsl.HDSL`, has the same atoms and weights that differ by rounding only.

    Parameters
    ----------
    **params : dict
        The parameters of :class:`hdsl.HDSL`. `n_jobs` is the number of threads of a shard (by default those of a worker), and
        `memory` the bytes of one worker. With ``scale=None``, the choice of the preprocessing, and whether and how far to learn,
        is made on a random sample of at most 12,000 rows, which this process gathers. `scale` is not ``"auto"``: for a search,
        see :func:`hdsl.tune`. ``vote="class-mean"`` cannot be used with validation rows, and `class_weight` is refused.

    Attributes
    ----------
    distributed_ : dict
        Facts about the run: ``n_shards``, ``shard_bytes``, ``rounds``, ``bytes_sent`` and ``bytes_received`` by this process,
        ``seconds_waiting`` for workers, ``seconds_building`` shards, and ``recoveries`` from lost workers.
    best_so_far_ : hdsl.HDSL
        Only if a fit failed because data was lost for good: the ordinary estimator with the model learned until then.

    See Also
    --------
    hdsl.HDSL : All parameters and attributes.

    Examples
    --------
    >>> import dask, numpy as np, scipy.sparse as sp
    >>> import hdsl.dask
    >>> from distributed import Client
    >>> X = sp.csr_array([[1., 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0]])
    >>> y = np.array([0, 0, 1, 1])
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    ...     blocks = [dask.delayed(X[:2]), dask.delayed(X[2:])]
    ...     learner = hdsl.dask.HDSL(scale=2, triplets="knn:1:2").fit(blocks, y, client=client)
    ...     rows = learner.kneighbors(n_neighbors=1, return_similarity=False).compute()
    >>> rows.ravel()
    array([1, 0, 3, 2])
    >>> learner.to_local().score_pairs(X, 0, 2)
    array([-2.])
    """

    _local_class: ClassVar[type[HDSLLearner]] = hdsl.HDSL
    if not TYPE_CHECKING:
        __init__ = hdsl.HDSL.__init__

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        client: Client | None = None,
        n_shards: int | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Learn from labels.

        Parameters
        ----------
        X : dask array, bag, or list of delayed blocks
            Raw rows. Blocks are CSR matrices or arrays, other sparse matrices, or dense arrays, with all columns. A bag has
            blocks as its elements.
        y : dask array, bag, list of delayed blocks, or array-like of shape (n_samples,)
            Classes.
        X_val, y_val : rows and classes, or None, default=None
            Validation rows: collections, or matrices in memory. Each worker gets all of them.
        client : distributed.Client or None, default=None
            The client; by default the current one. It is kept as :attr:`client`.
        n_shards : int or None, default=None
            The number of shards; by default the number of workers. The same number gives the same bytes on any number of
            workers.
        timeout : float, default=300
            Seconds to wait for the answer of a worker before it counts as lost, and for workers to come if there are none.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        MemoryError
            If the shards would not fit on the workers, before anything is built.
        DataLost
            If blocks are gone with a worker and Dask cannot compute them again. `best_so_far_` then has the model learned so
            far.
        """
        return self._fit_labeled(X, y, X_val, y_val, client, n_shards, timeout)


class HDSLClassifier(VoteInferenceMixin, HDSL, hdsl.HDSLClassifier):
    """:class:`hdsl.dask.HDSL` with a k-NN classifier, as :class:`hdsl.HDSLClassifier`.

    Parameters
    ----------
    **params : dict
        The parameters of :class:`hdsl.HDSLClassifier`, as for :class:`hdsl.dask.HDSL`.

    See Also
    --------
    hdsl.HDSLClassifier : All parameters and attributes.
    """

    _local_class: ClassVar[type[HDSLLearner]] = hdsl.HDSLClassifier
    if not TYPE_CHECKING:
        __init__ = hdsl.HDSLClassifier.__init__


class TripletHDSL(DaskLearner, hdsl.TripletHDSL):
    """Learn from triplets of rows on the workers of a Dask cluster, as :class:`hdsl.TripletHDSL`.

    Parameters
    ----------
    preprocessor : dask array, bag, or list of delayed blocks
        The raw rows that the triplets refer to.
    **params : dict
        The other parameters of :class:`hdsl.TripletHDSL`.

    See Also
    --------
    hdsl.TripletHDSL : All parameters and attributes.
    """

    _local_class: ClassVar[type[HDSLLearner]] = hdsl.TripletHDSL
    if not TYPE_CHECKING:
        __init__ = hdsl.TripletHDSL.__init__
    # The rows are checked by `fit`.
    _constraints: ClassVar[dict[str, Kinds]] = {
        name: kinds for name, kinds in hdsl.TripletHDSL._constraints.items() if name != "preprocessor"
    }

    def fit(  # type: ignore[override]
        self,
        triplets: ArrayLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        client: Client | None = None,
        n_shards: int | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Learn from triplets.

        Parameters
        ----------
        triplets, y, sample_weight
            As for `fit` of :class:`hdsl.TripletHDSL`.
        client, n_shards, timeout
            As for `fit` of :class:`hdsl.dask.HDSL`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        if self.preprocessor is None:
            raise ValueError("preprocessor is None, expected the rows that the triplets refer to.")
        given = given_triplets(triplets, sample_weight)
        rows = self._begin(client, self.preprocessor, "preprocessor", again=self._continues())
        return self._fit_on_cluster(rows, triplets=given, n_shards=n_shards, timeout=timeout)

    def decision_function(self, triplets: ArrayLike) -> NDArray[np.float64]:
        """The margin of each triplet of fitted rows: S(anchor, near) - S(anchor, far). Evaluated at once.

        Parameters
        ----------
        triplets
            As for :meth:`fit`.

        Returns
        -------
        margins : ndarray of shape (n_triplets,)
            Positive where the similarity agrees with the triplet.
        """
        check_is_fitted(self)
        (anchor, near, far), _ = given_triplets(triplets, None)
        fitted, light, name = self._fitted_blocks(), self._shared(), token()
        _core.check_triplets(([anchor, near, far], None), fitted.n_rows)
        parts = []
        for at, first in enumerate(range(0, len(anchor), TRIPLETS_PER_TASK)):
            part = [column[first : first + TRIPLETS_PER_TASK] for column in (anchor, near, far)]
            rows = np.unique(np.concatenate(part))
            pieces = []
            for p, (block, start) in enumerate(zip(fitted.futures, fitted.starts)):
                a, b = np.searchsorted(rows, [start, start + fitted.sizes[p]])
                if a < b:
                    pieces.append(
                        dask.delayed(_worker.selected, pure=False)(
                            block, rows[a:b] - start, dask_key_name=f"hdsl-exchange-{name}-{at}-{p}"
                        )
                    )
            columns = [np.searchsorted(rows, column) for column in part]
            parts.append(
                dask.delayed(_margins, pure=False)(light, pieces, columns, dask_key_name=f"hdsl-score-{name}-{at}")
            )
        return np.concatenate(self.client.gather(self.client.compute(parts)))

    def score(self, triplets: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """The fraction of triplets that the similarity agrees with; a tie counts one half."""
        return triplet_accuracy(self.decision_function(triplets), sample_weight=sample_weight)


@_worker.with_aligned
def _margins(light: Any, pieces: list[Any], columns: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    rows = _worker.stacked(pieces)
    anchor, near, far = columns
    scores = light._pair_scores(rows, np.tile(anchor, 2), np.concatenate([near, far]))
    return scores[: len(anchor)] - scores[len(anchor) :]
