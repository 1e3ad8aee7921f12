"""TripletHDSL: triplets in the place of rows, as metric-learn has it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from hdsl._base import _whole
from hdsl._learner import HDSLLearner
from hdsl._matrix import DTYPES, as_csr
from hdsl._settings import CONSTRAINTS


class TripletHDSL(HDSLLearner):
    """Learn a sparse similarity from triplets, in the form that `cross_val_score` takes.

    The samples of this estimator are triplets: rows of three numbers, which name rows of `preprocessor`. That is
    metric-learn's convention, and it lets scikit-learn cut triplets into folds. Cut them by
    :class:`hdsl.model_selection.AnchorKFold`, or triplets of one anchor are learned from and tested on.

    Parameters
    ----------
    preprocessor : {array-like, sparse matrix} of shape (n_samples, n_features)
        The raw rows that triplets name.
    scale, preprocess, loss, search, steps, batch, max_iter, tol, certify, max_features, time, memory
        As for :class:`hdsl.HDSL`.
    n_neighbors, normalization, n_components, warm_start, callback, random_state, n_jobs, verbose
        As for :class:`hdsl.HDSL`; `scale` is a number, since there are no labels to search by.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of the rows in `preprocessor`.
    path_ : structured ndarray of shape (`n_iter_` + 1,)
        Every iterate of the run, and all the other attributes of :class:`hdsl.HDSL` that need no labels.

    See Also
    --------
    HDSL : Takes rows, and triplets through `fit_triplets`.

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
        **{
            name: kinds
            for name, kinds in CONSTRAINTS.items()
            if name
            not in (
                "triplets", "rounds", "last_iter", "models", "early_stopping", "validation_fraction", "n_iter_no_change",
                "eval_every", "vote",
            )
        },
        "scale": [kind for kind in CONSTRAINTS["scale"] if not isinstance(kind, StrOptions)],
        "preprocessor": ["array-like", "sparse matrix", None],
    }

    # What labels are needed for is no parameter here.
    triplets = "knn:3:5"
    rounds = 0
    last_iter = None
    models = 1
    early_stopping = False
    n_iter_no_change = None
    eval_every = 10
    vote = "majority"

    def __init__(
        self,
        preprocessor: Any = None,
        scale: float = 100.0,
        *,
        preprocess: str = "max",
        loss: str = "smoothed-hinge",
        search: str = "alternating",
        steps: str = "away",
        batch: int | None = None,
        max_iter: int = 1000,
        tol: float | None = None,
        certify: bool = False,
        max_features: int | None = None,
        time: float | None = None,
        memory: int | None = None,
        n_neighbors: int = 3,
        normalization: str = "dot",
        n_components: int | None = None,
        warm_start: bool = False,
        callback: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.preprocessor = preprocessor
        self.scale = scale
        self.preprocess = preprocess
        self.loss = loss
        self.search = search
        self.steps = steps
        self.batch = batch
        self.max_iter = max_iter
        self.tol = tol
        self.certify = certify
        self.max_features = max_features
        self.time = time
        self.memory = memory
        self.n_neighbors = n_neighbors
        self.normalization = normalization
        self.n_components = n_components
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, triplets: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from triplets.

        Parameters
        ----------
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `preprocessor`, counted from 0: an anchor, a row it is more like, and a row it is less like.
        y : None
            Not used, there for scikit-learn's sake.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            How much each triplet counts.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self.preprocessor is None:
            raise ValueError("preprocessor is None, expected the rows that triplets name.")
        again = self._goes_on()
        rows = check_array(
            self.preprocessor, accept_sparse="csr", dtype=DTYPES, ensure_min_samples=2, input_name="preprocessor"
        )
        rows = self._enough_features(as_csr(rows))
        given = self._given(triplets, sample_weight, rows.shape[0])
        self.n_features_in_ = rows.shape[1]
        return self._learn(rows, triplets=given, start=self._model if again else None)

    def decision_function(self, triplets: ArrayLike) -> NDArray[np.float64]:
        """The margin of each triplet: S(anchor, near) - S(anchor, far).

        Parameters
        ----------
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `preprocessor`, counted from 0.

        Returns
        -------
        margins : ndarray of shape (n_triplets,)
            Above 0 where the similarity agrees with the triplet.
        """
        check_is_fitted(self)
        (anchor, near, far), _ = self._given(triplets, None, self._fit_X.shape[0])
        scores = self._model.score_pairs(
            self._fit_X,
            None,
            np.concatenate([_whole(anchor, "triplets")] * 2),
            np.concatenate([near, far]),
            self._threads(),
        )
        return scores[: len(anchor)] - scores[len(anchor) :]

    def predict(self, triplets: ArrayLike) -> NDArray[np.int64]:
        """Whether the similarity agrees with triplets.

        Parameters
        ----------
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `preprocessor`, counted from 0.

        Returns
        -------
        agrees : ndarray of shape (n_triplets,)
            1 where the anchor is more like the second row than like the third, else -1.
        """
        return np.where(self.decision_function(triplets) > 0, 1, -1)

    def score(self, triplets: ArrayLike, y: Any = None) -> float:
        """The share of triplets that the similarity agrees with.

        Parameters
        ----------
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `preprocessor`, counted from 0.
        y : None
            Not used, there for scikit-learn's sake.

        Returns
        -------
        accuracy : float
            1 is best; 0.5 is what chance gives.
        """
        return float(np.mean(self.predict(triplets) == 1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags
