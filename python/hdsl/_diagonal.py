"""DiagonalSimilarity: one weight per feature, learned by proximal gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hdsl._baselines import Baseline
from hdsl._parameters import ABOVE_0, BOOLEAN, Kinds
from hdsl._settings import COMMON, CONSTRAINTS, keep, named


class DiagonalSimilarity(Baseline):
    """Learn one weight per feature: S(x, z) is the sum of w_i x_i z_i.

    The first baseline of the paper (Section 4.1): the mean loss over triplets plus a penalty on the weights, minimized by
    proximal gradient descent until the relative gap is certified to be at most `tol`. It learns which features matter, but
    no pairs of features. Time and memory depend on the non-zeros of the rows.

    Parameters
    ----------
    strength : float, default=1e-3
        The weight of the penalty, λ of the paper's Section 4.1. Larger values give smaller and, under ``"l1"``, fewer
        weights.
    penalty : {"l1", "l2"}, default="l1"
        The sum of the absolute weights, or of their squares.
    positive : bool, default=False
        Whether to allow no negative weights, which makes the similarity an inner product. The paper has no such constraint.
    triplets, preprocess, loss, n_neighbors, class_weight, euclidean, n_jobs
        As for :class:`hdsl.HDSL`.
    max_iter : int, default=10000
        The maximum number of iterations.
    tol : float, default=1e-4
        Stop when the objective is certified to exceed the optimum by at most this fraction of itself.
    warm_start : bool, default=False
        Whether another fit starts from the present weights.
    callback : callable or None, default=None
        Called after each iteration with a dict of ``iteration``, ``objective``, ``gap``, ``n_features`` and ``seconds``; a
        true return value stops the run.
    random_state : int, RandomState instance or None, default=0
        Seed of random triplets.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    weights_ : ndarray of shape (`n_features_in_`,)
        The weights.
    n_active_features_ : int
        The number of non-zero weights.
    objective_ : float
        Mean loss plus penalty.
    gap_ : float
        A certified bound of the distance of the objective to the optimum.
    classes_, n_features_in_, feature_names_in_, n_iter_, n_triplets_
        As for :class:`hdsl.HDSL`.
    stop_ : str
        Why the run ended: ``"tolerance"``, ``"max-iter"``, ``"stationary"`` or ``"interrupted"``.

    See Also
    --------
    HDSL : Learns pairs of features as well.
    OASIS : Learns a full matrix, for few features.

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

    _constraints: ClassVar[dict[str, Kinds]] = {
        **COMMON,
        **{name: CONSTRAINTS[name] for name in ("triplets", "loss", "max_iter", "warm_start", "class_weight")},
        "strength": [ABOVE_0],
        "penalty": named("penalty"),
        "positive": [BOOLEAN],
        "tol": [ABOVE_0],
    }

    strength: float
    penalty: str
    positive: bool
    loss: str
    max_iter: int
    tol: float
    warm_start: bool

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
        warm_start: bool = False,
        n_neighbors: int = 3,
        class_weight: Mapping[Any, float] | str | None = None,
        euclidean: bool = False,
        verbose: int = 0,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        keep(locals())

    def _max_steps(self) -> int:
        return self.max_iter

    def _settings(self) -> dict[str, Any]:
        return {
            "learner": "diagonal",
            "penalty": self.penalty,
            "strength": float(self.strength),
            "loss": self.loss,
            "non_negative": bool(self.positive),
            "max_iter": int(self.max_iter),
            "tolerance": float(self.tol),
        }

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
        """The number of non-zero weights."""
        check_is_fitted(self)
        return len(self._model.weights()[0])

    def get_bilinear_matrix(self) -> sp.csr_array:
        check_is_fitted(self)
        features, weights = self._model.weights()
        d = self.n_features_in_
        return sp.csr_array(sp.coo_array((weights, (features, features)), shape=(d, d)))

    def transform(self, X: Any, *, items: bool = False, radius: float | None = None) -> Any:
        """Select the features in use and multiply each by the square root of its weight.

        Dot products are scores if no weight is negative, which ``positive=True`` ensures. Otherwise the absolute weights
        are used; :meth:`similarity` computes the scores themselves. With ``euclidean=True``, neighbors by distance are
        those of the similarity in any case.

        Parameters
        ----------
        X
            Raw rows, as for :meth:`fit`.
        items, radius
            As for :meth:`hdsl.HDSL.transform`.

        Returns
        -------
        Z : {ndarray, csr_array} of shape (n_samples, `n_active_features_`)
            Sparse if `X` is, unless `set_output` asks for a data frame. One more column with ``euclidean=True``.
        """
        return super().transform(X, items=items, radius=radius)

    @property
    def components_(self) -> sp.csr_array:
        """The matrix L with ``transform(X) = preprocess_rows(X) @ L.T``: one row per feature in use."""
        check_is_fitted(self)
        features, weights = self._model.weights()
        starts = np.arange(len(features) + 1)
        return sp.csr_array((np.sqrt(np.abs(weights)), features, starts), shape=(len(features), self.n_features_in_))

    def _names_out(self, name: Callable[[int], str]) -> list[str]:
        return [name(f) for f in self._model.weights()[0]]

    @property
    def _n_features_out(self) -> int:
        return self.n_active_features_ + bool(self.euclidean)
