"""TripletHDSL: triplets as samples, as in metric-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from hdsl._callbacks import with_callbacks
from hdsl._fit import checked_weights
from hdsl._tuples import TupleLearner
from hdsl.metrics import triplet_accuracy

if TYPE_CHECKING:
    from typing_extensions import Self


class TripletHDSL(TupleLearner):
    """Learn a sparse similarity from triplets, in the form that `cross_val_score` takes.

    The samples of this estimator are triplets: three indices of rows of `preprocessor`, or the three rows themselves. This is
    metric-learn's convention, so that it replaces ``metric_learn.SCML``, and it lets scikit-learn split triplets into
    folds. Split indices by :class:`hdsl.model_selection.AnchorKFold`; otherwise triplets of one anchor are in both the
    training and the test set.

    Parameters
    ----------
    preprocessor : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
        The raw rows that the triplets refer to, if they are indices.
    scale, base, preprocess, loss, search, step_rule, batch, max_iter, tol, certify, max_features, time, memory, checkpoint
        As for :class:`hdsl.HDSL`.
    early_stopping, validation_fraction, n_iter_no_change, eval_every
        As for `fit_triplets` of :class:`hdsl.HDSL`: the triplets of a fraction of the anchors are held out.
    n_neighbors, normalization, n_components, euclidean, warm_start, callback, random_state, n_jobs, verbose
        As for :class:`hdsl.HDSL`; `scale` is not ``"auto"``, since a search needs labels.

    Attributes
    ----------
    n_features_in_ : int
        The number of features of the rows.
    path_ : structured ndarray of shape (`n_iter_` + 1,)
        Every iterate of the run. All other attributes of :class:`hdsl.HDSL` that need no labels exist as well.

    See Also
    --------
    HDSL : Takes rows, and triplets by `fit_triplets`.
    PairHDSL : Takes pairs of similar and dissimilar rows.

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

    _fit_calls = ("fit(triplets)", "fit(triplets)")

    @with_callbacks
    def fit(self, triplets: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from triplets.

        Parameters
        ----------
        triplets : array-like of shape (n_triplets, 3) or (n_triplets, 3, n_features)
            Rows of `preprocessor`, counted from 0, or rows themselves: an anchor, a row it is more similar to, and a row it
            is less similar to. The fitted rows are those of `preprocessor`, or the distinct given ones; given triplets whose
            second and third row are equal are left out.
        y : None
            Ignored; part of scikit-learn's interface.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            The weight of each triplet. Weight 2 has the effect of giving the triplet twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        again = self._continues()
        rows, indices = self._tuples_to_fit(triplets, 3, "triplets")
        weights = checked_weights(sample_weight, indices)
        if self._of_rows:
            differ = indices[:, 1] != indices[:, 2]
            if not differ.any():
                raise ValueError("In all triplets, the second and the third row are equal.")
            indices, weights = indices[differ], None if weights is None else weights[differ]
        given = [np.ascontiguousarray(indices[:, c]) for c in range(3)], weights
        return self._learn(rows, triplets=given, start=self._model if again else None)

    def decision_function(self, triplets: Any) -> NDArray[np.float64]:
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
        rows, indices = self._tuples_to_score(triplets, 3, "triplets")
        anchor, near, far = indices.T
        scores = self._pair_scores(rows, np.tile(anchor, 2), np.concatenate([near, far]))
        return scores[: len(anchor)] - scores[len(anchor) :]

    def predict(self, triplets: Any) -> NDArray[np.int64]:
        """Whether the similarity agrees with triplets, given as for :meth:`fit`.

        Returns
        -------
        agrees : ndarray of shape (n_triplets,)
            1 where the anchor is more similar to the second row than to the third, else -1, also for equal scores.
        """
        return np.where(self.decision_function(triplets) > 0, 1, -1)

    def score(self, triplets: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
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
