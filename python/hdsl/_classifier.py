"""HDSLClassifier: the learned similarity with a k-NN prediction rule."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hdsl import _core
from hdsl._hdsl import HDSL
from hdsl._sklearn import ClassifierMixin

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
            parameter `vote` follow that rule, and neighbors count as much as `class_weight` says.
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
            In the order of `classes_`: fractions of the neighbors, times the weights of their classes if there is a
            `class_weight`; under ``vote="weighted"`` of their similarities, under
            ``vote="squared"`` of the squares, or of the neighbors if no similarity is positive. Under ``vote="class-mean"``
            the softmax of the mean similarities, in units of the mean similarity of two fitted rows of one class. The winner
            of a tie gets 10⁻⁹ more.
        """
        votes, winners = self._votes(X)
        # Relative to the largest, so that the sums are finite and above 0.
        largest = votes.max(axis=1, keepdims=True)
        votes = np.divide(votes, largest, out=np.zeros_like(votes), where=largest > 0)
        votes[np.arange(len(votes)), winners] += TIE * np.maximum(votes.sum(axis=1), 1.0)
        return votes / votes.sum(axis=1, keepdims=True)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The fraction of votes for each class, as scores: :meth:`predict` is the class with the highest.

        Parameters
        ----------
        X
            As for :meth:`predict`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) if there are two classes
            As :meth:`predict_proba` returns them. Of two classes, the second minus the first: above 0 where the second is
            predicted.
        """
        p = self.predict_proba(X)
        return p[:, 1] - p[:, 0] if p.shape[1] == 2 else p

    def _votes(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The votes for each class, and the winner."""
        check_is_fitted(self)
        if getattr(self, "_codes", None) is None:
            raise ValueError(f"This {type(self).__name__} has no classes of the fitted rows; pass y to `fit_triplets` or `load`.")
        how = self._decides("vote", "majority")  # type: ignore[attr-defined]
        if how == "class-mean":
            return self._class_means(X)
        class_weights = self.__dict__.get("_weights_of_classes")
        if class_weights is None:
            scores, near = self.kneighbors(X)  # type: ignore[attr-defined]
            counted = np.ones(near.shape)
        else:
            scores, near, counted = self._weighted_neighbors(X, class_weights)
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
        np.add.at(votes, (np.repeat(np.arange(n), k), self._codes[near.ravel()]), (weights * counted).ravel())
        if class_weights is None:
            return votes, _core.vote(how, near, scores, self._codes)
        return votes, self._first_of_most(votes, near)

    def _first_of_most(self, votes: NDArray[np.float64], near: NDArray[np.int64]) -> NDArray[np.int64]:
        """The class of the most votes; of equal ones, that of the most similar row."""
        most = votes == votes.max(axis=1, keepdims=True)
        codes = self._codes[near]
        at = np.arange(len(votes))
        return codes[at, most[at[:, None], codes].argmax(axis=1)]

    def _weighted_neighbors(
        self, X: Any, class_weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """The most similar rows whose weights sum to `n_neighbors`: scores, rows, and how much of each row counts."""
        rows = self._rows(X)  # type: ignore[attr-defined]
        wanted = self._decides("n_neighbors", 3)  # type: ignore[attr-defined]
        n_fitted = self._fitted_rows().shape[0]  # type: ignore[attr-defined]
        if wanted > n_fitted:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {wanted}, n_samples_fit = {n_fitted}"
            )
        k = min(n_fitted, int(2 * wanted))
        while True:
            scores, near = self._search(rows, k)  # type: ignore[attr-defined]
            scores, near = scores.reshape(-1, k), near.reshape(-1, k)
            weights = class_weights[self._codes[near]]
            before = np.cumsum(weights, axis=1) - weights
            if k == n_fitted or (before[:, -1] + weights[:, -1] >= wanted).all():
                counted = np.clip(np.minimum(weights, wanted - before), 0.0, None)
                return scores, near, counted
            k = min(n_fitted, 4 * k)

    def _class_means(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        rows, fitted = self._rows(X), self._fitted_rows()  # type: ignore[attr-defined]
        classes = ([str(c) for c in self.classes_], self._codes)
        normalization = self._normalization()  # type: ignore[attr-defined]
        (means, winners), within = self._index.class_means(  # type: ignore[attr-defined]
            classes, fitted, rows, self._model, normalization, self._threads()  # type: ignore[attr-defined]
        )
        means = means.reshape(-1, len(self.classes_))
        apart = means - means.max(axis=1, keepdims=True)
        votes = np.exp(apart / within if within > 0 else apart)
        class_weights = self.__dict__.get("_weights_of_classes")
        if class_weights is None:
            return votes, winners
        votes = votes * class_weights
        return votes, votes.argmax(axis=1)


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

    _votes_by_class: ClassVar[bool] = True
