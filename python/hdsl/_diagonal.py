"""DiagonalSimilarity: a weight a feature, by proximal gradient."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from hdsl import _core
from hdsl._baselines import Baseline
from hdsl._settings import CONSTRAINTS


class DiagonalSimilarity(Baseline):
    """Learn a weight for each feature: S(x, z) is the sum of w_i x_i z_i.

    The first baseline of the paper (Section 4.1): the mean loss over triplets plus a penalty on the weights, minimized by
    proximal gradient until the objective is proved to be within `tol` of the best. It learns which features count, but
    not which go together. Time and memory go by the non-zeros of the rows.

    Parameters
    ----------
    strength : float, default=1e-3
        How much the penalty counts, λ of the paper's Section 4.1. The larger, the smaller and, under ``"l1"``, the fewer
        the weights.
    penalty : {"l1", "l2"}, default="l1"
        The sum of absolute weights, or of their squares.
    positive : bool, default=False
        Whether to allow no weight below 0, which makes the similarity an inner product. The paper has no such limit.
    triplets : str, default="knn:3:5"
        Where :meth:`fit` takes triplets from, as for :class:`hdsl.HDSL`.
    preprocess : {"max", "unit", "max+unit", "none"}, default="max"
        What happens to raw values, as for :class:`hdsl.HDSL`.
    loss : {"smoothed-hinge", "squared-hinge", "logistic", "exponential"}, default="smoothed-hinge"
        What a triplet costs, by its margin.
    max_iter : int, default=10000
        Iterations at most.
    tol : float, default=1e-4
        Stop when the objective is proved to be within this share of itself above the best possible.
    n_neighbors : int, default=3
        Neighbors that vote.
    warm_start : bool, default=False
        Whether another fit goes on from the weights there are.
    callback : callable or None, default=None
        Called after each iteration with a dict of ``iteration``, ``objective``, ``gap``, ``n_features`` and ``seconds``; a
        true answer stops the run.
    random_state : int, RandomState instance or None, default=0
        Seed of random triplets.
    n_jobs : int or None, default=None
        Threads, as for :class:`hdsl.HDSL`.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    weights_ : ndarray of shape (`n_features_in_`,)
        The weights.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of features of the rows that were fitted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if a data frame was fitted.
    n_active_features_ : int
        How many weights are not 0.
    objective_ : float
        Mean loss plus penalty.
    gap_ : float
        How far that is from the best possible at most.
    n_iter_ : int
        Iterations of the run.
    n_triplets_ : int
        How many triplets were learned from.
    stop_ : str
        Why the run ended: ``"tolerance"``, ``"max-iter"``, ``"stationary"`` or ``"interrupted"``.

    See Also
    --------
    HDSL : Learns pairs of features as well.
    OASIS : Learns a whole matrix, for few features.

    Examples
    --------
    >>> import numpy as np
    >>> from hdsl import DiagonalSimilarity
    >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> learner = DiagonalSimilarity(triplets="knn:1:2").fit(X, [0, 0, 1, 1])
    >>> learner.predict([[1., 0, 0], [0, 1, 1]])
    array([0, 1])
    >>> bool(learner.weights_[2] <= 0 < learner.weights_[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: CONSTRAINTS[name]
            for name in (
                "triplets", "preprocess", "loss", "max_iter", "n_neighbors", "warm_start", "callback", "random_state",
                "n_jobs", "verbose",
            )
        },
        "strength": [Interval(Real, 0, None, closed="neither")],
        "penalty": [StrOptions({"l1", "l2"})],
        "positive": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }  # fmt: skip

    def __init__(
        self,
        strength: float = 1e-3,
        *,
        penalty: str = "l1",
        positive: bool = False,
        triplets: str = "knn:3:5",
        preprocess: str = "max",
        loss: str = "smoothed-hinge",
        max_iter: int = 10_000,
        tol: float = 1e-4,
        n_neighbors: int = 3,
        warm_start: bool = False,
        callback: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.strength = strength
        self.penalty = penalty
        self.positive = positive
        self.triplets = triplets
        self.preprocess = preprocess
        self.loss = loss
        self.max_iter = max_iter
        self.tol = tol
        self.n_neighbors = n_neighbors
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _most(self, kwargs: dict[str, Any]) -> int:
        return self.max_iter

    def _call(self, source: dict[str, Any], rows: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        settings = {
            "penalty": self.penalty,
            "strength": float(self.strength),
            "loss": self.loss,
            "positive": bool(self.positive),
            "max_iter": self.max_iter,
            "tol": float(self.tol),
        }
        start = self._model if self._goes_on() else None
        return _core.fit_diagonal(settings, source, rows, **kwargs, start=start)

    def _take_facts(self, facts: dict[str, Any]) -> None:
        self.objective_: float = facts["objective"]
        self.gap_: float = facts["gap"]

    @property
    def weights_(self) -> NDArray[np.float64]:
        """The weights."""
        check_is_fitted(self)
        features, weights = self._model.weights()
        dense = np.zeros(self.n_features_in_)
        dense[features] = weights
        return dense

    @property
    def n_active_features_(self) -> int:
        """How many weights are not 0."""
        check_is_fitted(self)
        return len(self._model.weights()[0])

    def get_bilinear_matrix(self) -> sp.csr_array:
        """The weights as a diagonal matrix.

        Returns
        -------
        M : csr_array of shape (n_features, n_features)
            For S(x, z) = x' M z with x and z scaled as :meth:`scale_rows` does.
        """
        check_is_fitted(self)
        features, weights = self._model.weights()
        d = self.n_features_in_
        return sp.csr_array(sp.coo_array((weights, (features, features)), shape=(d, d)))

    def transform(self, X: Any) -> Any:
        """Keep the features in use, each times the root of its weight.

        Dot products are scores if no weight is below 0, which ``positive=True`` sees to. Otherwise a feature of weight
        below 0 counts in them as if its weight were above; :meth:`similarity` has the scores themselves.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.

        Returns
        -------
        Z : {ndarray, csr_array} of shape (n_samples, `n_active_features_`)
            Sparse if `X` is, unless `set_output` asks for a data frame.
        """
        items = self._mapped(X, left=False)
        roots = np.sqrt(np.abs(self._model.weights()[1]))
        items.data *= roots[items.indices]
        in_frames = _get_output_config("transform", self)["dense"] != "default"
        return items if sp.issparse(X) and not in_frames else items.toarray()

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the features in use.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the input features; by default those that are known, else ``x0``, ``x1`` and so on.

        Returns
        -------
        names : ndarray of str objects
            In the order of :meth:`transform`.
        """
        check_is_fitted(self)
        name = self._namer(input_features)
        return np.array([name(f) for f in self._model.weights()[0]], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return self.n_active_features_
