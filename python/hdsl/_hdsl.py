"""HDSL: a similarity learned from labels or triplets, as a transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from hdsl._callbacks import Hooks, with_callbacks
from hdsl._learner import HDSLLearner
from hdsl._matrix import DTYPES, as_csr, check_parts
from hdsl._search import TIME, fit_best
from hdsl._settings import scales

if TYPE_CHECKING:
    from typing_extensions import Self


class HDSL(HDSLLearner):
    """Learn a sparse similarity from labels or triplets, and map rows into the space in which it is a dot product.

    The similarity is S(x, z) = β <x, z> + x' M z of preprocessed rows. The base β <x, z> is fixed; M is learned: a weighted
    sum of atoms, matrices of two features each. By default, β, the preprocessing and λ are chosen from the data, and M is 0 if
    learning does not lower the error on held-out rows. With ``base=0`` or a number for `scale`, it is the method of the
    paper. Each iteration adds one atom or changes the weight of one (a Frank-Wolfe method with away steps); early stopping keeps M sparse
    and is how the method regularizes. Time and memory depend on the non-zeros of the rows, not on the number of columns. The same
    seed gives the same model, for any number of threads; the command line's `hdsl train` gives the same one, byte for byte.

    Parameters
    ----------
    scale : float, array-like of floats, "auto" or None, default=None
        λ, the size of the domain that M is learned in. None chooses it from the data, relative to the base: see `choice_`.
        Without a base, try 1, 10, 100, 1000. Several values are tried in one fit if there are validation rows to choose
        by. With ``"auto"``, :meth:`fit` searches as
        :func:`hdsl.tune` does, for at most `time` seconds (600 by default): `scale`, `triplets`, `preprocess`, `loss`,
        `max_iter`, `mining_rounds`, `last_round_iter`, `n_estimators`, `subsample`, `n_neighbors`, `vote` and `normalization` are
        the result of the search (`tuned_params_`), whatever was given. Only `max_features`, `memory`, `n_components`,
        `random_state`, `n_jobs` and `verbose` have an effect besides.
    base : float, "auto" or None, default=None
        β, the weight of the base similarity. ``"auto"`` chooses it so that the base margins β (<x, y> - <x, z>) of the
        triplets are 3 on average, without their signs. 0 is the method of the paper: features that no atom uses do not
        count. None is ``"auto"`` if `scale` is None, otherwise 0.
    triplets : str, default="knn:3:5"
        The source of the triplets of :meth:`fit`: ``"knn:T:I"`` combines the T nearest rows of the same class with the I
        nearest of other classes, for each row; ``"random:N"`` draws N triplets per row, which is often better for few
        rows.
    preprocess : {"max", "unit", "max+unit", "tfidf", "bm25", "none", "auto"} or None, default=None
        Preprocessing of raw values: divide each by the largest absolute value of its column and clip it to [-1, 1], or
        divide rows by their Euclidean norm, or both, or nothing. ``"tfidf"`` and ``"bm25"`` are for word counts and take
        no negative values: ``"tfidf"`` has the numbers of scikit-learn's ``TfidfTransformer(sublinear_tf=True)``
        (``sublinear_tf=False`` if the training values are not all whole numbers), ``"bm25"`` the term weights of Okapi
        BM25 (k1 = 1.5, b = 0.75) in rows of unit norm. ``"auto"`` chooses among them by the error of the plain similarity
        on held-out rows. None is ``"auto"`` if `scale` is None, otherwise ``"max"``.
    loss : {"smoothed-hinge", "squared-hinge", "logistic", "exponential"}, default="smoothed-hinge"
        The loss of a triplet, a function of its margin S(x, y) - S(x, z).
    search : {"alternating", "exact"}, default="alternating"
        How the best next atom is found: by the paper's heuristic, or exactly, which is slower.
    step_rule : {"decrease", "away", "pairwise", "forward"}, default="decrease"
        How the direction of a step is chosen; ``--steps`` on the command line. ``"decrease"``: the direction to a new atom, or
        to or away from an active one, that is predicted to lower the objective most. ``"away"``: the paper's rule, and that of
        ``"decrease"`` with `batch`.
    batch : int or None, default=None
        The number of triplets per gradient, drawn anew each iteration; by default all.
    max_iter : int, default=1000
        The maximum number of iterations, per λ and mining round. With a base, 0 is the base alone.
    mining_rounds : int, default=0
        How many times triplets are mined again, from 3 x 5 neighbors per row under the similarity learned so far, and added
        to the existing ones (hard-negative mining). Often the largest improvement of all. Needs labels.
    last_round_iter : int or None, default=None
        The maximum number of iterations of the last mining round; by default `max_iter`.
    n_estimators : int, default=1
        The number of models in an ensemble average, which differ in their random triplets and starts. The average varies
        less than a single model and uses more features. Its path adds the atoms by decreasing weight.
    subsample : float, default=1.0
        The fraction of the rows, drawn by class, that each of the `n_estimators` models learns from.
    tol : float or None, default=None
        Stop when the objective is certified to be within this distance of the optimum.
    certify : bool, default=False
        Certify the gap of the last iterate by one exact search at the end.
    max_features : int or None, default=None
        The maximum number of features in use.
    time : float or None, default=None
        Stop after this many seconds, per λ; with ``scale="auto"``, in total; with ``scale=None``, including the choice.
    memory : int or None, default=None
        Refuse to start if training needs more bytes than this; by default, than are free.
    checkpoint : path-like, (path-like, float) or None, default=None
        A file in which the steps of a fit are recorded every 60 seconds, or every so many seconds. If the process is killed,
        the same fit goes on from there, and the model is the same. A fit that ends removes the file. Not used with
        ``scale="auto"``.
    early_stopping : bool, default=False
        Stop when the validation error has not decreased for `n_iter_no_change` iterations, and keep the iterate of the
        lowest error. For :meth:`fit`, it is the k-NN error on a fraction of the training rows, or on the validation rows that
        it is given. For `fit_triplets`, it is 1 - :func:`hdsl.metrics.triplet_accuracy` on the triplets of a fraction of the
        anchors, none of which has triplets to learn from.
    validation_fraction : float, default=0.1
        The fraction of the training rows used for validation, stratified by class, if `early_stopping`; for `fit_triplets`,
        the fraction of the anchors.
    n_iter_no_change : int or None, default=100
        Iterations to wait for a lower validation error; None never stops. Only if `early_stopping`.
    eval_every : int, default=10
        Iterations between evaluations of the validation error.
    n_neighbors : int, default=3
        The number of neighbors in :meth:`kneighbors` and for the validation error.
    vote : {"majority", "weighted", "squared", "class-mean"}, default="majority"
        The prediction rule: one vote per neighbor; votes weighted by similarity (negative ones count as 0) or by its square;
        or the highest mean similarity to all rows of a class, which ignores `n_neighbors`.
    normalization : {"dot", "cosine"}, default="dot"
        The ranking of neighbors: by S(x, z), or by S(x, z) / √(S(x, x) S(z, z)).
    class_weight : dict, "balanced" or None, default=None
        The weight of each class; classes that a dict does not contain weigh 1. ``"balanced"`` is n_samples / (n_classes *
        the number of rows of the class). A mined triplet has the weight of its anchor's class. A neighbor that votes has
        the weight of its class, and the neighbors of a row are as many of the most similar rows as have the total weight
        `n_neighbors`, the last one in part; under ``vote="class-mean"`` the exponentials of mean similarities are
        multiplied by the weights. The validation error weighs all rows and neighbors equally, and so does the search of
        ``scale="auto"``, where only votes are weighed.
    n_components : int or None, default=None
        If given, :meth:`transform` maps to this many orthogonal coordinates, the best approximation of the similarity,
        instead of one per atom.
    euclidean : bool, default=False
        Whether :meth:`transform` adds a coordinate such that Euclidean neighbors are those of the similarity. Rows to search
        are mapped by ``fit_transform`` or ``transform(X, items=True)``, and queries by ``transform``, so that
        ``make_pipeline(HDSL(euclidean=True), KNeighborsClassifier())`` finds the neighbors of :meth:`kneighbors`.
    warm_start : bool, default=False
        Whether another fit starts from the present similarity.
    callback : callable or None, default=None
        Called after each iteration with a dict of ``iteration``, ``objective``, ``gap``, ``n_atoms``, ``n_features``,
        ``seconds``, ``scale`` and ``valid_error``; a true return value stops the run. With scikit-learn 1.9 and later,
        ``set_callbacks`` takes scikit-learn's own callbacks as well.
    random_state : int, RandomState instance or None, default=0
        Seed of all random draws. An integer is the command line's ``--seed``.
    n_jobs : int or None, default=None
        The number of threads. None is all processors (or ``OMP_NUM_THREADS``, which joblib sets in its workers); -1 is
        all. The result does not depend on it.
    verbose : int, default=0
        Whether to show a progress bar, in terminals and notebooks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, if there are labels.
    n_features_in_ : int
        The number of features of the fitted rows.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, after a fit to a data frame.
    path_ : structured ndarray of shape (`n_iter_` + 1,), or (0,) if the base alone is used
        Every iterate of the run: ``iteration``, ``objective``, ``gap``, ``n_atoms``, ``n_features``, ``valid_error``.
    base_ : float
        β of the model.
    preprocess_ : str
        The preprocessing of the model.
    choice_ : dict or None
        What was chosen on held-out rows, if something was left open: ``n_held_out``, their number; ``base_error``, the
        error of the base alone; ``learned_error``, the lowest error of a similarity learned on top of it;
        ``max_iter``, the number of iterations of that error, or 0 if the base alone is used.
    scale_ : float
        λ of the model; the best one if several were tried.
    scale_results_ : list of dict
        The result for each λ.
    n_iter_ : int
        The number of iterations of the run; 1 if the base alone is used.
    chosen_iter_ : int
        The iteration whose iterate is in use: that of the lowest validation error, or the last.
    n_atoms_ : int
        The number of atoms (pairs of features) of the similarity.
    n_active_features_ : int
        The number of features that the atoms use.
    components_ : csr_array of shape (n_features_out, `n_features_in_`)
        L with ``transform(X) = preprocess_rows(X) @ L.T``.
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        The share of each feature in the sum of the absolute values of βI + M.
    objective_ : float
        The mean loss over the triplets at the end of the run.
    gap_ : float
        An upper bound of the distance to the optimum if ``gap_certified_``; otherwise an estimate.
    gap_certified_ : bool
        Whether `gap_` is certified.
    valid_error_ : float or None
        The validation error of the iterate in use.
    valid_measure_ : str or None
        What that error is: ``"prediction-error"`` on validation rows, or ``"triplet-error"`` on held-out triplets.
    n_triplets_ : int
        The number of triplets learned from.
    tuned_params_ : dict
        Only after ``scale="auto"`` or :func:`hdsl.tune`: the parameters that give the same model for the same rows.
    leaderboard_ : data frame or table
        Only then: all configurations that were evaluated, each at its best, the winner first.
    tuning_ : Tuning
        Only then: both of these, the expected error, and the course of the search.
    stop_ : str
        Why the run ended: ``"max-iter"``, ``"patience"``, ``"feature-budget"``, ``"time-limit"``, ``"tolerance"``,
        ``"satisfied"``, ``"stationary"`` or ``"interrupted"``.

    See Also
    --------
    HDSLClassifier : Adds a k-NN classifier.
    TripletHDSL : Takes triplets in place of rows, for cross-validation over triplets.
    PairHDSL : Takes pairs of similar and dissimilar rows.

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

    #: Whether there are votes, which `class_weight` weighs.
    _votes_by_class: ClassVar[bool] = False

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Learn from labels, by mining triplets from them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows. A CSR matrix of float64 with int32 indices is used without a copy; float32 values and int64 indices
            are converted.
        y : array-like of shape (n_samples,)
            Classes.
        X_val, y_val : rows and classes, or None, default=None
            Validation rows: the iterate of the lowest k-NN error on them is kept. With ``scale="auto"`` they replace
            cross-validation, and the final model is trained on them as well: they become the last of the fitted rows.

        Returns
        -------
        self : object
            The fitted estimator.

        Notes
        -----
        There is no `sample_weight`: what is learned from are comparisons of rows, and a row that occurs twice is also twice
        a possible neighbor of others. Triplets have weights: ``fit_triplets(X, triplets, sample_weight)``, for triplets
        of :func:`hdsl.mine_triplets` for example. Classes have weights by `class_weight`.
        """
        self._check_parameters()
        auto = isinstance(self.scale, str)
        again = self._continues() and not auto
        rows, y = self._rows_and_labels(X, y, reset=not again)
        if auto:
            return self._fit_auto(rows, y, X_val, y_val)
        self._enough_features(rows)
        self._set_classes(y, rows)
        valid = self._validation(X_val, y_val)
        holdout = self.validation_fraction if self.early_stopping and valid is None else None
        return self._learn(
            rows,
            y=y,
            classes=self._classes(),
            valid=valid,
            holdout=holdout,
            start=self._model if again else None,
        )

    def fit_transform(self, X: Any, y: Any, **fit_params: Any) -> Any:
        """Learn from labels, and map the same rows.

        Parameters
        ----------
        X, y, **fit_params
            As for :meth:`fit`.

        Returns
        -------
        Z : {ndarray, csr_array} of shape (n_samples, n_features_out)
            As :meth:`transform` returns it; with ``euclidean=True``, as it does with ``items=True``.
        """
        return self.fit(X, y, **fit_params).transform(X, items=True)

    def _fit_auto(self, rows: Any, y: Any, X_val: Any, y_val: Any) -> Self:
        """Search, and end as if fitted with the parameters found."""
        if self.scale != "auto":
            scales(self)
        for name, wrong, why in [
            ("class_weight", self.class_weight is not None and not self._votes_by_class, "there are no votes to weigh"),
            ("warm_start", self.warm_start, "every search starts anew"),
            ("callback", self.callback is not None, "a search has many runs"),
        ]:
            if wrong:
                raise ValueError(f"{name} cannot be used with scale='auto': {why}.")
        options = {"time": TIME if self.time is None else self.time, "memory": self.memory}
        hooks = Hooks(self, rows, y, 0)
        try:
            fit_best(self, rows, y, self._checked_validation(X_val, y_val), options, depth=None)
        finally:  # also after Ctrl-C, which keeps the best model so far
            if "tuned_params_" in self.__dict__:
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
            raise ValueError("X_val and y_val must be given together.")
        X_val, y_val = validate_data(self, check_parts(X_val), y_val, accept_sparse="csr", dtype=DTYPES, reset=False)
        check_classification_targets(y_val)
        return as_csr(X_val), y_val
