"""HDSLClassifier: the learned similarity, and a vote of the most similar rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from hdsl import _core
from hdsl._classes import encode
from hdsl._hdsl import HDSL

#: What the class that wins a tie gets more than its share of votes, so that `predict` is where `predict_proba` is highest.
TIE = 1e-9


class VoteMixin(ClassifierMixin):
    """Classes by the vote of the most similar fitted rows."""

    classes_: NDArray[Any]
    _codes: NDArray[np.int64]

    def predict(self, X: Any) -> NDArray[Any]:
        """Classify rows by the vote of their most similar fitted rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The class that most of the `n_neighbors` have; of classes that tie, the one with the most similar row. Or as
            the parameter `vote` says, where there is one.
        """
        winners = self._votes(X)[1]
        return self.classes_[winners]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of votes that each class gets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Shares in the order of `classes_`: of neighbors; under ``vote="weighted"`` of their similarities, or of
            neighbors where none is above 0. Under ``vote="class-mean"`` the softmax of the mean similarities, in units
            of the mean similarity of two fitted rows of one class. A class that wins a tie gets a billionth more.
        """
        votes, winners = self._votes(X)
        votes[np.arange(len(votes)), winners] += TIE * votes.sum(axis=1)
        return votes / votes.sum(axis=1, keepdims=True)

    def _votes(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """What each class has of the votes, and which one wins."""
        check_is_fitted(self)
        if getattr(self, "_codes", None) is None:
            raise ValueError(f"This {type(self).__name__} knows no classes of the rows it was fitted on.")
        how = self._decides("vote", "majority")  # type: ignore[attr-defined]
        if how == "class-mean":
            return self._class_means(X)
        scores, near = self.kneighbors(X)  # type: ignore[attr-defined]
        n, k = near.shape
        weights = np.ones((n, k))
        if how == "weighted":
            # In units of the largest, so that sums stay finite. Where nobody has any weight, all have the same.
            known = np.clip(scores, 0.0, np.finfo(float).max)
            largest = known[:, :1]
            np.divide(known, largest, out=weights, where=largest > 0)
        votes = np.zeros((n, len(self.classes_)))
        np.add.at(votes, (np.repeat(np.arange(n), k), self._codes[near.ravel()]), weights.ravel())
        return votes, _core.vote(how, near, scores, self._codes)

    def _class_means(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        rows, fitted = self._rows(X), self._fitted_rows()  # type: ignore[attr-defined]
        classes = ([str(c) for c in self.classes_], self._codes)
        normalization = self._decides("normalization", "dot")  # type: ignore[attr-defined]
        (means, winners), within = self._index.class_means(  # type: ignore[attr-defined]
            self._model, normalization, fitted, classes, rows, self._threads()  # type: ignore[attr-defined]
        )
        means = means.reshape(-1, len(self.classes_))
        apart = means - means.max(axis=1, keepdims=True)
        return np.exp(apart / within if within > 0 else apart), winners


class HDSLClassifier(VoteMixin, HDSL):
    __doc__ = (HDSL.__doc__ or "").replace(
        "Learn a sparse similarity from labels or triplets, and map rows into the space where it is a dot product.",
        "Learn a sparse similarity from labels or triplets, and classify by the vote of the most similar rows.",
    ).replace(
        """    HDSLClassifier : The same, with a k-NN vote.
""",
        """    HDSL : The same without a vote.
""",
    ).replace(
        "Neighbors that :meth:`kneighbors` gives, and that vote on validation rows.",
        "Neighbors that vote, in :meth:`predict` and on validation rows.",
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

    Without knowing what `scale` and the rest should be:

    >>> X = [[1., 0, 1], [2, 0, 0], [0, 1, 1], [0, 2, 0]] * 4
    >>> y = [0, 0, 1, 1] * 4
    >>> found = HDSLClassifier(scale="auto", time=60).fit(X, y)
    >>> found.score(X, y), found.tuning_.finished
    (1.0, True)
    >>> HDSLClassifier(**found.tuned_params_).fit(X, y).scale_ == found.scale_
    True
    """

    def fit_triplets(  # type: ignore[override]
        self, X: Any, triplets: ArrayLike, sample_weight: ArrayLike | None = None, *, y: Any
    ) -> Any:
        """Learn from triplets of rows that somebody gives, and classify by the classes of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `X`, counted from 0: an anchor, a row it is more like, and a row it is less like.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            How much each triplet counts.
        y : array-like of shape (n_samples,)
            Classes of the rows, for the vote.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        y = column_or_1d(y)
        if len(y) != (X.shape[0] if hasattr(X, "shape") else len(X)):
            raise ValueError(f"y has {len(y)} classes for {X.shape[0]} rows of X")
        self.classes_, self._codes = encode(y, type(self).__name__)
        return super().fit_triplets(X, triplets, sample_weight)

    @classmethod
    def load(cls, path: Any, X: Any = None, y: Any = None, **params: Any) -> Any:
        """Load a model file, by whomever it was saved.

        Parameters
        ----------
        path : str or path-like
            The file.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            Raw rows that vote.
        y : array-like of shape (n_samples,) or None, default=None
            Their classes.
        **params : dict
            Parameters of the estimator, over those the file tells of.

        Returns
        -------
        estimator : object
            Fitted, except for what only a run knows, such as ``n_triplets_``.
        """
        estimator = super().load(path, X, **params)
        if (X is None) != (y is None):
            raise ValueError("X and y are given together, or neither.")
        if y is not None:
            estimator.classes_, estimator._codes = encode(y, cls.__name__)
            if len(estimator._codes) != estimator._fit_X.shape[0]:
                raise ValueError(
                    f"y has {len(estimator._codes)} classes for {estimator._fit_X.shape[0]} rows of X"
                )
        return estimator
