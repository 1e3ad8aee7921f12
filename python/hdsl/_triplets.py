"""TripletHDSL: triplets as samples, as in metric-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from hdsl._fit import given_triplets
from hdsl._learner import HDSLLearner
from hdsl._matrix import DTYPES, as_csr
from hdsl._settings import LEARNED, keep
from hdsl.metrics import triplet_accuracy

if TYPE_CHECKING:
    from typing_extensions import Self

#: Parameters that need labels, with their values here.
WITHOUT_LABELS: dict[str, Any] = {
    "triplets": "knn:3:5",
    "mining_rounds": 0,
    "last_round_iter": None,
    "n_estimators": 1,
    "subsample": 1.0,
    "vote": "majority",
}


class TripletHDSL(HDSLLearner):
    """Learn a sparse similarity from triplets, in the form that `cross_val_score` takes.

    The samples of this estimator are triplets: three indices of rows of `preprocessor`. This is metric-learn's convention,
    and it lets scikit-learn split triplets into folds. Split them by :class:`hdsl.model_selection.AnchorKFold`; otherwise
    triplets of one anchor are in both the training and the test set.

    Parameters
    ----------
    preprocessor : {array-like, sparse matrix} of shape (n_samples, n_features)
        The raw rows that the triplets refer to.
    scale, base, preprocess, loss, search, steps, batch, max_iter, tol, certify, max_features, time, memory
        As for :class:`hdsl.HDSL`.
    early_stopping, validation_fraction, n_iter_no_change, eval_every
        As for `fit_triplets` of :class:`hdsl.HDSL`: the triplets of a fraction of the anchors are held out.
    n_neighbors, normalization, n_components, warm_start, callback, random_state, n_jobs, verbose
        As for :class:`hdsl.HDSL`; `scale` is not ``"auto"``, since a search needs labels.

    Attributes
    ----------
    n_features_in_ : int
        The number of features of the rows in `preprocessor`.
    path_ : structured ndarray of shape (`n_iter_` + 1,)
        Every iterate of the run. All other attributes of :class:`hdsl.HDSL` that need no labels exist as well.

    See Also
    --------
    HDSL : Takes rows, and triplets by `fit_triplets`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from hdsl import TripletHDSL, mine_triplets
    >>> from hdsl.model_selection import AnchorKFold
    >>> X, y = load_iris(return_X_y=True)
    >>> triplets = mine_triplets(X, y, triplets="random:4")
    >>> learner = TripletHDSL(preprocessor=X, scale=100, preprocess="unit", max_iter=200)
    >>> accuracy = cross_val_score(learner, triplets, cv=AnchorKFold(3))
    >>> bool(accuracy.min() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: kinds for name, kinds in LEARNED.items() if name not in WITHOUT_LABELS},
        "scale": [kind for kind in LEARNED["scale"] if not isinstance(kind, StrOptions)],
        "preprocessor": ["array-like", "sparse matrix", None],
    }

    def __init__(
        self,
        preprocessor: Any = None,
        scale: float | ArrayLike | None = None,
        *,
        base: float | str | None = None,
        preprocess: str | None = None,
        loss: str = "smoothed-hinge",
        search: str = "alternating",
        steps: str = "away",
        max_iter: int = 1000,
        batch: int | None = None,
        tol: float | None = None,
        certify: bool = False,
        time: float | None = None,
        memory: int | None = None,
        max_features: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = 100,
        eval_every: int = 10,
        n_neighbors: int = 3,
        normalization: str = "dot",
        n_components: int | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
        callback: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, triplets: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from triplets.

        Parameters
        ----------
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `preprocessor`, counted from 0: an anchor, a row it is more similar to, and a row it is less similar to.
        y : None
            Ignored; part of scikit-learn's interface.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            The weight of each triplet.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self.preprocessor is None:
            raise ValueError("preprocessor is None, expected the rows that the triplets refer to.")
        again = self._continues()
        rows = check_array(
            self.preprocessor, accept_sparse="csr", dtype=DTYPES, ensure_min_samples=2, input_name="preprocessor"
        )
        rows = self._enough_features(as_csr(rows))
        given = given_triplets(triplets, sample_weight)
        self.n_features_in_ = rows.shape[1]
        return self._learn(rows, triplets=given, start=self._model if again else None)

    def decision_function(self, triplets: ArrayLike) -> NDArray[np.float64]:
        """The margin of each triplet: S(anchor, near) - S(anchor, far).

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
        scores = self._pair_scores(self._fit_X, np.tile(anchor, 2), np.concatenate([near, far]))
        return scores[: len(anchor)] - scores[len(anchor) :]

    def predict(self, triplets: ArrayLike) -> NDArray[np.int64]:
        """Whether the similarity agrees with triplets, given as for :meth:`fit`.

        Returns
        -------
        agrees : ndarray of shape (n_triplets,)
            1 where the anchor is more similar to the second row than to the third, else -1, also for equal scores.
        """
        return np.where(self.decision_function(triplets) > 0, 1, -1)

    def score(self, triplets: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """The fraction of triplets that the similarity agrees with; a tie counts one half.

        Parameters
        ----------
        triplets, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        accuracy : float
            1 is perfect; 0.5 is chance. As :func:`hdsl.metrics.triplet_accuracy` of :meth:`decision_function`.
        """
        return triplet_accuracy(self.decision_function(triplets), sample_weight=sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


for _name, _value in WITHOUT_LABELS.items():
    setattr(TripletHDSL, _name, _value)
