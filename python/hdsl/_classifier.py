"""HDSLClassifier: the learned similarity with a k-NN prediction rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hdsl import _core
from hdsl._hdsl import HDSL

#: Added to the votes of the class that wins a tie, so that `predict` is the argmax of `predict_proba`.
TIE = 1e-9


class VoteMixin(ClassifierMixin):
    """Classification by a vote of the most similar fitted rows."""

    classes_: NDArray[Any]
    _codes: NDArray[np.int64]

    def predict(self, X: Any) -> NDArray[Any]:
        """Classify rows by a vote of the most similar fitted rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows to classify.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The class of most of the `n_neighbors`; ties go to the class of the most similar row. Estimators with the
            parameter `vote` follow that rule.
        """
        winners = self._votes(X)[1]
        return self.classes_[winners]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The fraction of votes for each class.

        Parameters
        ----------
        X
            As for :meth:`predict`.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`: fractions of the neighbors; under ``vote="weighted"`` of their similarities, under
            ``vote="squared"`` of the squares, or of the neighbors if no similarity is positive. Under ``vote="class-mean"``
            the softmax of the mean similarities, in units of the mean similarity of two fitted rows of one class. The winner
            of a tie gets 10⁻⁹ more.
        """
        votes, winners = self._votes(X)
        votes[np.arange(len(votes)), winners] += TIE * votes.sum(axis=1)
        return votes / votes.sum(axis=1, keepdims=True)

    def _votes(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The votes for each class, and the winner."""
        check_is_fitted(self)
        if getattr(self, "_codes", None) is None:
            raise ValueError(f"This {type(self).__name__} has no classes of the fitted rows; pass y to `fit_triplets` or `load`.")
        how = self._decides("vote", "majority")  # type: ignore[attr-defined]
        if how == "class-mean":
            return self._class_means(X)
        scores, near = self.kneighbors(X)  # type: ignore[attr-defined]
        n, k = near.shape
        weights = np.ones((n, k))
        if how in ("weighted", "squared"):
            # Relative to the largest, so that sums stay finite. If no similarity is positive, all weights are equal.
            known = np.clip(scores, 0.0, np.finfo(float).max)
            largest = known[:, :1]
            np.divide(known, largest, out=weights, where=largest > 0)
            if how == "squared":
                weights **= 2
        votes = np.zeros((n, len(self.classes_)))
        np.add.at(votes, (np.repeat(np.arange(n), k), self._codes[near.ravel()]), weights.ravel())
        return votes, _core.vote(how, near, scores, self._codes)

    def _class_means(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        rows, fitted = self._rows(X), self._fitted_rows()  # type: ignore[attr-defined]
        classes = ([str(c) for c in self.classes_], self._codes)
        normalization = self._normalization()  # type: ignore[attr-defined]
        (means, winners), within = self._index.class_means(  # type: ignore[attr-defined]
            classes, fitted, rows, self._model, normalization, self._threads()  # type: ignore[attr-defined]
        )
        means = means.reshape(-1, len(self.classes_))
        apart = means - means.max(axis=1, keepdims=True)
        return np.exp(apart / within if within > 0 else apart), winners


class HDSLClassifier(VoteMixin, HDSL):
    __doc__ = (HDSL.__doc__ or "").replace(
        "and map rows into the space in which it is a dot product.", "and classify by a vote of the most similar rows."
    ).replace(
        "HDSLClassifier : Adds a k-NN classifier.", "HDSL : Without a classifier."
    ).replace(
        "The number of neighbors in :meth:`kneighbors` and for the validation error.",
        "The number of neighbors that vote, in :meth:`predict` and for the validation error.",
    ).split("    Examples\n")[0] + """    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from hdsl import HDSLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    >>> classifier = HDSLClassifier(scale=1000, preprocess="unit", max_iter=300).fit(X, y)
    >>> bool(classifier.score(X_test, y_test) > 0.95)
    True

    With a search for `scale` and the other parameters:

    >>> X = [[1., 0, 1], [2, 0, 0], [0, 1, 1], [0, 2, 0]] * 4
    >>> y = [0, 0, 1, 1] * 4
    >>> found = HDSLClassifier(scale="auto", time=60).fit(X, y)
    >>> found.score(X, y), found.tuning_.finished
    (1.0, True)
    >>> HDSLClassifier(**found.tuned_params_).fit(X, y).scale_ == found.scale_
    True
    """
