"""PairHDSL: pairs of similar and dissimilar rows as samples, as in metric-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_array, check_is_fitted

from hdsl import _core
from hdsl._callbacks import with_callbacks
from hdsl._fit import checked_weights
from hdsl._tuples import TupleLearner

if TYPE_CHECKING:
    from typing_extensions import Self

#: What :meth:`PairHDSL.calibrate_threshold` optimizes.
STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


class PairHDSL(TupleLearner):
    """Learn a sparse similarity from pairs of rows that are similar or dissimilar.

    The samples of this estimator are pairs: two indices of rows of `preprocessor`, or the two rows themselves, with a label
    of 1 if they are similar and -1 if they are dissimilar. This is metric-learn's convention, so that it replaces
    ``metric_learn.ITML``. What is learned are comparisons: a row is more similar to the rows it forms similar pairs with than
    to those it forms dissimilar pairs with. A row without dissimilar pairs is compared with five rows per similar pair,
    drawn from the rows of all pairs that it is not known to be similar to; a row without similar pairs with itself, that is,
    it is more similar to itself than to the rows it forms dissimilar pairs with. The command line's
    ``--triplets pairs:FILE`` learns the same from a file.

    Parameters
    ----------
    preprocessor : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
        The raw rows that the pairs refer to, if they are indices.
    scale, base, preprocess, loss, search, step_rule, batch, max_iter, tol, certify, max_features, time, memory, checkpoint
        As for :class:`hdsl.HDSL`.
    early_stopping, validation_fraction, n_iter_no_change, eval_every
        As for `fit_triplets` of :class:`hdsl.HDSL`: the comparisons of a fraction of the rows are held out.
    n_neighbors, normalization, n_components, euclidean, warm_start, callback, random_state, n_jobs, verbose
        As for :class:`hdsl.HDSL`; `scale` is not ``"auto"``, since a search needs labels.

    Attributes
    ----------
    threshold_ : float
        The score from which on :meth:`predict` calls a pair similar: that of the highest accuracy on the training pairs,
        until :meth:`calibrate_threshold` or :meth:`set_threshold` changes it.
    n_features_in_ : int
        The number of features of the rows.
    n_triplets_ : int
        The number of comparisons learned from.
    path_ : structured ndarray of shape (`n_iter_` + 1,)
        Every iterate of the run. All other attributes of :class:`hdsl.HDSL` that need no labels exist as well.

    See Also
    --------
    TripletHDSL : Takes triplets.
    HDSL : Takes rows and their classes.

    Examples
    --------
    >>> import numpy as np
    >>> from hdsl import PairHDSL
    >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> learner = PairHDSL(preprocessor=X, scale=2).fit([[0, 1], [2, 3], [0, 2]], [1, 1, -1])
    >>> learner.predict([[0, 1], [1, 3]])
    array([ 1, -1])
    >>> learner.score([[0, 1], [1, 3]], [1, -1])
    1.0
    """

    _fit_calls = ("fit(pairs, y)", "fit(pairs, y)")
    threshold_: float

    @with_callbacks
    def fit(
        self,
        pairs: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        calibration_params: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from pairs.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2) or (n_pairs, 2, n_features)
            Rows of `preprocessor`, counted from 0, or rows themselves. The fitted rows are those of `preprocessor`, or the
            distinct given ones; given pairs of equal rows are left out, and if two rows are given as both similar and
            dissimilar, the larger weight counts, reduced by the smaller one.
        y : array-like of shape (n_pairs,)
            1 for similar, -1 for dissimilar rows.
        sample_weight : array-like of shape (n_pairs,) or None, default=None
            The weight of each pair. Weight 2 has the effect of giving the pair twice.
        calibration_params : dict or None, default=None
            Arguments of :meth:`calibrate_threshold` for the training pairs, as in metric-learn; by default, the threshold
            is that of the highest accuracy.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        again = self._continues()
        rows, indices = self._tuples_to_fit(pairs, 2, "pairs")
        similar = _similar(y, len(indices))
        weights = checked_weights(sample_weight, indices)
        columns = [np.ascontiguousarray(indices[:, c]) for c in range(2)]
        learned = (columns, similar, weights) if not self._of_rows else _agreed(indices, similar, weights)
        flat, of_triplets = _core.triplets_of_pairs(*learned, rows.shape[0])
        if not len(flat):
            raise ValueError("There is no pair of dissimilar rows, and no other row to compare similar rows with.")
        triplets = flat.reshape(-1, 3)
        given = [np.ascontiguousarray(triplets[:, c]) for c in range(3)], of_triplets
        self._learn(rows, triplets=given, start=self._model if again else None)
        scores = self._pair_scores(rows, *columns)
        chosen = _checked_strategy(**(calibration_params or {}))
        self.threshold_ = _threshold(scores, similar, weights, *chosen)
        return self

    def decision_function(self, pairs: Any) -> NDArray[np.float64]:
        """The similarity of the rows of each pair.

        Parameters
        ----------
        pairs
            As for :meth:`fit`; indices are those of the fitted rows.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            As :meth:`pair_score` returns them.
        """
        check_is_fitted(self)
        rows, indices = self._tuples_to_score(pairs, 2, "pairs")
        return self._pair_scores(rows, np.ascontiguousarray(indices[:, 0]), np.ascontiguousarray(indices[:, 1]))

    def predict(self, pairs: Any) -> NDArray[np.int64]:
        """Whether the rows of pairs, given as for :meth:`fit`, are similar.

        Returns
        -------
        y : ndarray of shape (n_pairs,)
            1 where the score is at least `threshold_`, else -1.
        """
        check_is_fitted(self)
        if "threshold_" not in self.__dict__:
            raise ValueError("There is no threshold_: model files have none. Call calibrate_threshold or set_threshold.")
        return np.where(self.decision_function(pairs) >= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The area under the ROC curve: the probability that a similar pair has a higher score than a dissimilar one.

        Parameters
        ----------
        pairs, y, sample_weight
            As for :meth:`fit`; there must be similar and dissimilar pairs.

        Returns
        -------
        auc : float
            1 is perfect; 0.5 is chance.
        """
        scores = self.decision_function(pairs)
        return float(roc_auc_score(_similar(y, len(scores)), scores, sample_weight=sample_weight))

    def set_threshold(self, threshold: float) -> Self:
        """Set `threshold_`.

        Parameters
        ----------
        threshold : float
            The score from which on a pair is called similar. (A score; in metric-learn it is a distance.)

        Returns
        -------
        self : object
            The estimator.
        """
        check_is_fitted(self)
        self.threshold_ = float(threshold)
        if np.isnan(self.threshold_):
            raise ValueError("threshold is nan, expected a number")
        return self

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: ArrayLike,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose `threshold_` on validation pairs, with the arguments of metric-learn.

        Parameters
        ----------
        pairs_valid, y_valid
            Pairs and labels, as for :meth:`fit`.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}, default="accuracy"
            What the threshold maximizes: the accuracy, the F-measure of similar pairs, the true positive rate among
            thresholds with a true negative rate of at least `min_rate`, or the other way round.
        min_rate : float or None, default=None
            For ``"max_tpr"`` and ``"max_tnr"``: a number from 0 to 1.
        beta : float, default=1.0
            For ``"f_beta"``: how much more recall counts than precision.

        Returns
        -------
        self : object
            The estimator.
        """
        chosen = _checked_strategy(strategy, min_rate, beta)
        scores = self.decision_function(pairs_valid)
        similar = _similar(y_valid, len(scores))
        self.threshold_ = _threshold(scores, similar, None, *chosen)
        return self


def _checked_strategy(
    strategy: str = "accuracy", min_rate: float | None = None, beta: float = 1.0
) -> tuple[str, float, float]:
    """The arguments of a calibration."""
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy is {strategy!r}, expected one of {', '.join(map(repr, STRATEGIES))}")
    if strategy.startswith("max_") and (min_rate is None or not 0 <= min_rate <= 1):
        raise ValueError(f"min_rate is {min_rate!r}, expected a number from 0 to 1 for strategy={strategy!r}")
    if not beta > 0:
        raise ValueError(f"beta is {beta!r}, expected a number above 0")
    return strategy, min_rate or 0.0, beta


def _agreed(
    indices: NDArray[np.int64], similar: NDArray[np.bool_], weights: NDArray[np.float64] | None
) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_], NDArray[np.float64]]:
    """Each pair of different rows once, with its similar weight less its dissimilar one, in the order of the first ones."""
    signed = np.where(similar, 1.0, -1.0) * (1.0 if weights is None else weights)
    pairs, first, which = np.unique(np.sort(indices, axis=1), axis=0, return_index=True, return_inverse=True)
    sums = np.bincount(which.reshape(-1), signed, len(pairs))
    order = np.argsort(first)
    order = order[(pairs[order, 0] != pairs[order, 1]) & (sums[order] != 0)]
    columns = [np.ascontiguousarray(pairs[order, c]) for c in range(2)]
    return columns, sums[order] > 0, np.abs(sums[order])


def _similar(y: ArrayLike, n_pairs: int) -> NDArray[np.bool_]:
    """Whether each pair is similar."""
    labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    if labels.shape != (n_pairs,):
        raise ValueError(f"y has the shape {labels.shape}, expected ({n_pairs},): one label per pair")
    wrong = [label for label in np.unique(labels) if label not in (1, -1)]
    if wrong:
        raise ValueError(f"y contains {wrong[0]!r}, expected 1 for similar and -1 for dissimilar pairs")
    return np.asarray(labels == 1)


def _threshold(
    scores: NDArray[np.float64],
    similar: NDArray[np.bool_],
    weights: NDArray[np.float64] | None,
    strategy: str,
    min_rate: float,
    beta: float,
) -> float:
    """The best threshold; the highest of equals. Thresholds lie midway between scores."""
    weight = np.ones(len(scores)) if weights is None else weights
    values, which = np.unique(scores, return_inverse=True)
    positive = np.bincount(which, weight * similar, len(values))
    negative = np.bincount(which, weight * ~similar, len(values))
    # Threshold t calls the pairs from the t-th distinct score on similar.
    true_positive = np.append(np.cumsum(positive[::-1])[::-1], 0.0)
    true_negative = np.append(0.0, np.cumsum(negative))
    n_positive, n_negative = positive.sum(), negative.sum()
    tpr, tnr = true_positive / max(n_positive, 1e-300), true_negative / max(n_negative, 1e-300)
    if strategy == "accuracy":
        quality = true_positive + true_negative
    elif strategy == "f_beta":
        false_positive = n_negative - true_negative
        quality = (1 + beta**2) * true_positive / (true_positive + false_positive + beta**2 * n_positive)
    elif strategy == "max_tpr":
        quality = np.where(tnr >= min_rate, tpr, -1.0)
    else:
        quality = np.where(tpr >= min_rate, tnr, -1.0)
    at = len(quality) - 1 - int(np.argmax(quality[::-1]))
    if at == 0:
        return float(values[0])
    if at == len(values):
        return float(np.nextafter(values[-1], np.inf))
    return float((values[at - 1] + values[at]) / 2) if values[at - 1] < values[at] else float(values[at])
