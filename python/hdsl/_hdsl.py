"""HDSL: a similarity learned from labels or triplets, and a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from hdsl._callbacks import Hooks
from hdsl._classes import encode
from hdsl._learner import HDSLLearner, _weights
from hdsl._matrix import DTYPES, as_csr
from hdsl._search import TIME, fit_best
from hdsl._settings import scales


class HDSL(HDSLLearner):
    """Learn a sparse similarity from labels or triplets, and map rows into the space where it is a dot product.

    The similarity is S(x, z) = x' M z, where M is a weighted sum of matrices of two features each. Training adds one of
    them at a time (Frank-Wolfe with away steps); stopping early keeps M sparse and is how the method regularizes. Time
    and memory go by the non-zeros of the rows, not by the number of columns. Same seed, same model, for any number of
    threads; the command line's `hdsl train` makes the same one, byte for byte.

    Parameters
    ----------
    scale : float, array-like of floats or "auto", default=100.0
        λ, the size of the domain: how far the similarity may go. There is no default that is good for all data; scan
        1, 10, 100, 1000 first. Several values are tried in one fit if there are validation rows to choose by. With
        ``"auto"``, :meth:`fit` searches as :func:`hdsl.tune` does, for at most `time` seconds (600 by default): `scale`,
        `triplets`, `preprocess`, `loss`, `max_iter`, `rounds`, `last_iter`, `models`, `n_neighbors`, `vote` and `normalization` are what it
        finds (`tuned_params_`), whatever was given. Only `max_features`, `memory`, `n_components`, `random_state`,
        `n_jobs` and `verbose` have a say besides.
    triplets : str, default="knn:3:5"
        Where :meth:`fit` takes triplets from: ``"knn:T:I"``, each row with its T nearest of the same label times its I
        nearest of another, or ``"random:N"``, N a row at random; often better where rows are few.
    preprocess : {"max", "unit", "max+unit", "none"}, default="max"
        What happens to raw values: each is divided by the largest absolute value of its column and clipped to [-1, 1],
        or by the length of its row, or both, or nothing.
    loss : {"smoothed-hinge", "squared-hinge", "logistic", "exponential"}, default="smoothed-hinge"
        What a triplet costs, by its margin S(x, y) - S(x, z).
    search : {"alternating", "exact"}, default="alternating"
        How the next pair of features is sought: by the paper's heuristic, or exactly, which is slower.
    steps : {"away", "pairwise", "forward"}, default="away"
        Which steps are allowed besides forward ones.
    batch : int or None, default=None
        Triplets each gradient is taken over, drawn anew each iteration; by default all.
    max_iter : int, default=1000
        Iterations at most, for each λ and each round.
    rounds : int, default=0
        How often triplets are mined again, 3 x 5 neighbors a row under the similarity learned so far, and added to those
        there were. Often the largest gain there is. Needs labels, and no `sample_weight`.
    last_iter : int or None, default=None
        Iterations at most of the last round; by default `max_iter`.
    models : int, default=1
        Take the mean of this many models, which differ in their random triplets and starts. It is steadier than one of them
        and uses more features. Its path meets the pairs by weight, the heaviest first.
    tol : float or None, default=None
        Stop when the objective is certainly within this of the best possible.
    certify : bool, default=False
        Prove the gap of the last iterate by one exact search at the end.
    max_features : int or None, default=None
        Never use more than this many features.
    time : float or None, default=None
        Stop after this many seconds, for each λ; with ``scale="auto"``, after the search and the last fit together.
    memory : int or None, default=None
        Refuse to start if training would take more bytes than this; by default, than are free.
    early_stopping : bool, default=False
        Stop when the k-NN error on validation rows has not fallen for `n_iter_no_change` iterations, and keep the
        iterate where it was lowest. Validation rows are a share of the training rows, unless :meth:`fit` is given some.
    validation_fraction : float, default=0.1
        The share of training rows set aside, each class in proportion, if `early_stopping`.
    n_iter_no_change : int or None, default=100
        Iterations to wait for a better validation error; None waits for ever. Only if `early_stopping`.
    eval_every : int, default=10
        Iterations between looks at the validation error.
    n_neighbors : int, default=3
        Neighbors that :meth:`kneighbors` gives, and that vote on validation rows.
    vote : {"majority", "weighted", "class-mean"}, default="majority"
        How classes are decided: by one vote for each of the neighbors; by their similarities, those below 0 as 0; or by
        the mean similarity to all rows of a class, whatever `n_neighbors` is.
    normalization : {"dot", "cosine"}, default="dot"
        How rows are ranked for that, and by :meth:`kneighbors`: by S(x, z), or by S(x, z) / √(S(x, x) S(z, z)).
    n_components : int or None, default=None
        If given, :meth:`transform` maps to this many orthogonal coordinates, which keep the most of the similarity, instead
        of one a pair of features.
    warm_start : bool, default=False
        Whether another fit goes on from the similarity there is.
    callback : callable or None, default=None
        Called after each iteration with a dict of ``iteration``, ``objective``, ``gap``, ``n_atoms``, ``n_features``,
        ``seconds``, ``scale`` and ``valid_error``; a true answer stops the run. With scikit-learn 1.9 and later,
        ``set_callbacks`` takes scikit-learn's own callbacks as well.
    random_state : int, RandomState instance or None, default=0
        Seed of everything random. A whole number is the command line's ``--seed``.
    n_jobs : int or None, default=None
        Threads. None is all processors (what ``OMP_NUM_THREADS`` allows, inside joblib's workers); -1 is all. The result
        does not depend on it.
    verbose : int, default=0
        Whether to show a progress bar, in terminals and notebooks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, if :meth:`fit` was used.
    n_features_in_ : int
        Number of features of the rows that were fitted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if a data frame was fitted.
    path_ : structured ndarray of shape (`n_iter_` + 1,)
        Every iterate of the run: ``iteration``, ``objective``, ``gap``, ``n_atoms``, ``n_features``, ``valid_error``.
    scale_ : float
        λ of the model, the best one if there were several.
    scale_results_ : list of dict
        How each λ fared.
    n_iter_ : int
        Iterations of the run.
    chosen_iter_ : int
        The iteration whose model is in use: the one with the lowest validation error, or the last.
    n_atoms_ : int
        How many pairs of features the similarity is made of.
    n_active_features_ : int
        How many features they use.
    objective_ : float
        The mean loss over the triplets at the end of the run.
    gap_ : float
        How far that is from the best possible at most, if ``gap_certified_``; otherwise an estimate.
    gap_certified_ : bool
        Whether `gap_` is proved.
    valid_error_ : float or None
        The k-NN error on the validation rows of the model in use.
    n_triplets_ : int
        How many triplets were learned from.
    tuned_params_ : dict
        Only after ``scale="auto"`` or :func:`hdsl.tune`: the parameters that make the same model from the same rows.
    leaderboard_ : data frame or list of dict
        Only then: every setting that was judged, at its best, the winner first.
    tuning_ : Tuning
        Only then: both of them, what error to expect, and how the search went.
    stop_ : str
        Why the run ended: ``"max-iter"``, ``"patience"``, ``"feature-budget"``, ``"time-limit"``, ``"tolerance"``,
        ``"satisfied"``, ``"stationary"`` or ``"interrupted"``.

    See Also
    --------
    HDSLClassifier : The same, with a k-NN vote.
    TripletHDSL : The same for triplets in the place of rows, for cross-validation over triplets.

    References
    ----------
    Kuan Liu, Aurélien Bellet, Fei Sha. Similarity Learning for High-Dimensional Sparse Data. AISTATS 2015.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from hdsl import HDSL
    >>> X = sp.csr_array([[1., 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    >>> learner = HDSL(scale=2, triplets="knn:1:2").fit(X, ["a", "a", "b", "b", "c", "c"])
    >>> learner.transform(X).shape
    (6, 2)
    >>> learner.kneighbors(n_neighbors=1, return_similarity=False).ravel()
    array([1, 0, 3, 2, 5, 4])
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Any:
        """Learn from labels, by triplets that are mined from them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows. A CSR matrix of float64 with int32 indices is used where it is; float32 values and int64 indices
            are converted as they are read.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How much the triplets count in which a row is the anchor; with 0 a row is no anchor, but others may still
            be compared with it. Not with `rounds`, nor with ``scale="auto"``.
        X_val, y_val : rows and classes, or None, default=None
            Validation rows: the iterate with the lowest k-NN error on them is kept. With ``scale="auto"`` they judge
            instead of folds of `X`, and once all is chosen they are learned from as well: they are the last of the fitted
            rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        auto = isinstance(self.scale, str)
        again = self._goes_on() and not auto
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=DTYPES, reset=not again, ensure_min_samples=2
        )
        if auto:
            return self._fit_auto(X, y, sample_weight, X_val, y_val)
        rows = self._enough_features(as_csr(X))
        self.classes_, codes = encode(y, type(self).__name__)
        valid = self._validation(X_val, y_val)
        holdout = self.validation_fraction if self.early_stopping and valid is None else None
        weights = None if sample_weight is None else _weights(sample_weight, X)
        self._codes: NDArray[np.int64] = codes
        return self._learn(
            rows,
            y=y,
            classes=([str(c) for c in self.classes_], codes),
            valid=valid,
            holdout=holdout,
            row_weights=weights,
            start=self._model if again else None,
        )

    def _fit_auto(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Any:
        """Searches, and ends as if fitted with what was found."""
        if self.scale != "auto":
            scales(self)
        for name, wrong, why in [
            ("sample_weight", sample_weight is not None, "the search judges all rows alike"),
            ("warm_start", self.warm_start, "the search begins anew each time"),
            ("callback", self.callback is not None, "there is no single run to hear of"),
        ]:
            if wrong:
                raise ValueError(f"{name} cannot be used with scale='auto': {why}.")
        options = {"time": TIME if self.time is None else self.time, "memory": self.memory}
        hooks = Hooks(self, X, y, 0)
        fit_best(self, X, y, self._checked_validation(X_val, y_val), options, depth=4)
        self._found_decision: dict[str, Any] = {
            name: self.tuned_params_[name] for name in ("n_neighbors", "vote", "normalization")
        }
        hooks.done()
        return self

    def _validation(self, X_val: Any, y_val: Any) -> Any:
        checked = self._checked_validation(X_val, y_val)
        if checked is None:
            return None
        names, codes = np.unique(checked[1], return_inverse=True)
        return checked[0], ([str(name) for name in names], codes.astype(np.int64))

    def _checked_validation(self, X_val: Any, y_val: Any) -> Any:
        """Rows in CSR form and their classes, if there are any."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val are given together, or neither.")
        X_val, y_val = validate_data(self, X_val, y_val, accept_sparse="csr", dtype=DTYPES, reset=False)
        check_classification_targets(y_val)
        return as_csr(X_val), y_val
