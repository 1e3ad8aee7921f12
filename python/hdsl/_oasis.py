"""OASIS: a whole matrix, by passive-aggressive steps."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from hdsl import _core
from hdsl._learner import HDSLLearner
from hdsl._matrix import DTYPES, as_csr
from hdsl._baselines import Baseline
from hdsl._settings import CONSTRAINTS


class OASIS(Baseline):
    """Learn a whole matrix: S(x, z) = x' W z, by online passive-aggressive steps.

    The second baseline of the paper (Section 4.1), by Chechik, Sharma, Shalit and Bengio (JMLR 2010). Starting from the dot
    product, it draws one triplet after the other and changes W by as little as makes its margin 1, but never by more
    than `aggressiveness`. Memory is a number for each two features, so it is meant for few of them, say after PCA or
    random projections; it refuses more than `memory` allows.

    Parameters
    ----------
    aggressiveness : float, default=0.1
        C, the longest step.
    n_steps : int or None, default=None
        How many triplets are drawn; by default as many as there are.
    sampling : {"anchors", "triplets"}, default="anchors"
        Whether an anchor is drawn first and then one of its triplets, or any triplet.
    finish : {"as-learned", "symmetric", "psd"}, default="as-learned"
        What becomes of W at the end: nothing, its symmetric part, or the nearest matrix without eigenvalues below 0.
    memory : int or None, default=None
        Refuse so many features that W would take more bytes than this; by default 2 GiB.
    triplets : str, default="knn:3:5"
        Where :meth:`fit` takes triplets from, as for :class:`hdsl.HDSL`.
    preprocess : {"max", "unit", "max+unit", "none"}, default="max"
        What happens to raw values, as for :class:`hdsl.HDSL`.
    n_neighbors : int, default=3
        Neighbors that vote.
    callback : callable or None, default=None
        Called about a hundred times a run with a dict of ``iteration`` (steps), ``objective`` (the mean loss since the last
        call) and ``seconds``; a true answer stops the run.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws and of random triplets.
    n_jobs : int or None, default=None
        Threads, as for :class:`hdsl.HDSL`.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    matrix_ : ndarray of shape (`n_features_in_`, `n_features_in_`)
        W.
    trace_ : structured ndarray
        ``step``, ``loss`` (mean since the last point, each triplet before its step) and ``violated`` (the share of
        triplets with a loss).
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of features of the rows that were fitted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if a data frame was fitted.
    n_iter_ : int
        Steps taken.
    n_triplets_ : int
        How many triplets there were to draw from.
    stop_ : str
        Why the run ended: ``"max-iter"`` or ``"interrupted"``.

    See Also
    --------
    HDSL : Learns few pairs of very many features.
    DiagonalSimilarity : Learns a weight a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from hdsl import OASIS
    >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> learner = OASIS(aggressiveness=1, triplets="knn:1:2").fit(X, [0, 0, 1, 1])
    >>> learner.score_pairs(X, 0, 1) > learner.score_pairs(X, 0, 2)
    array([ True])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: CONSTRAINTS[name]
            for name in ("triplets", "preprocess", "memory", "n_neighbors", "callback", "random_state", "n_jobs", "verbose")
        },
        "aggressiveness": [Interval(Real, 0, None, closed="neither")],
        "n_steps": CONSTRAINTS["batch"],
        "sampling": [StrOptions({"anchors", "triplets"})],
        "finish": [StrOptions({"as-learned", "symmetric", "psd"})],
    }

    def __init__(
        self,
        aggressiveness: float = 0.1,
        *,
        n_steps: int | None = None,
        sampling: str = "anchors",
        finish: str = "as-learned",
        memory: int | None = None,
        triplets: str = "knn:3:5",
        preprocess: str = "max",
        n_neighbors: int = 3,
        callback: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.aggressiveness = aggressiveness
        self.n_steps = n_steps
        self.sampling = sampling
        self.finish = finish
        self.memory = memory
        self.triplets = triplets
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _most(self, kwargs: dict[str, Any]) -> int:
        return self.n_steps or 1

    def _call(self, source: dict[str, Any], rows: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        settings = {
            "aggressiveness": float(self.aggressiveness),
            "n_steps": self.n_steps,
            "sampling": self.sampling,
            "finish": self.finish,
            "memory": self.memory,
        }
        return _core.fit_oasis(settings, source, rows, **kwargs)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit_triplets(self, X: Any, triplets: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Go on learning from new feedback, starting from the matrix there is.

        OASIS is an online learner: each new triplet changes the matrix no more than it has to. Features keep the preprocess
        they had; those that had no value before get theirs from `X`. Rows to look for neighbors among stay those that
        were fitted first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows, old or new.
        triplets : array-like of int of shape (n_triplets, 3)
            Rows of `X`, counted from 0: an anchor, a row it is more like, and a row it is less like.
        sample_weight : array-like of shape (n_triplets,) or None, default=None
            How much each triplet counts.

        Returns
        -------
        self : object
            The fitted estimator; ``n_iter_`` and ``trace_`` are those of the new feedback.

        Examples
        --------
        >>> import numpy as np
        >>> from hdsl import OASIS
        >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> learner = OASIS(1, n_steps=5).fit_triplets(X, [[0, 1, 2]])
        >>> learner = learner.partial_fit_triplets(X, [[2, 0, 3]])
        >>> bool(learner.score_pairs(X, 2, 0) > learner.score_pairs(X, 2, 3))
        True
        """
        again = self.__sklearn_is_fitted__()
        X = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, reset=not again, ensure_min_samples=2)
        rows = as_csr(X)
        given = HDSLLearner._given(triplets, sample_weight, rows.shape[0])
        if not again:
            return self._learn(rows, triplets=given)
        kept, names = self._fit_X, self._names
        self._learn(rows, triplets=given, start=self._model)
        self._fit_X, self._names = kept, names
        return self

    def _take_facts(self, facts: dict[str, Any]) -> None:
        self.trace_ = np.zeros(
            len(facts["steps"]), dtype=[("step", np.int64), ("loss", np.float64), ("violated", np.float64)]
        )
        self.trace_["step"], self.trace_["loss"] = facts["steps"], facts["loss"]
        self.trace_["violated"] = facts["violated"]

    @property
    def matrix_(self) -> NDArray[np.float64]:
        """W."""
        check_is_fitted(self)
        return self._model.matrix().reshape(self.n_features_in_, self.n_features_in_)

    def get_bilinear_matrix(self) -> sp.csr_array:
        """W, for S(x, z) = x' W z with x and z scaled as :meth:`scale_rows` does.

        Returns
        -------
        W : csr_array of shape (n_features, n_features)
            Not symmetric, unless `finish` says so.
        """
        return sp.csr_array(self.matrix_)

    def transform(self, X: Any) -> Any:
        """Map rows into the space where the symmetric part of the similarity is a dot product.

        Eigenvalues below 0, which no such space can have, are left out. With ``finish="psd"`` there are none, and dot
        products are scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features)
            A coordinate an eigenvector, the largest eigenvalue first.
        """
        rows = self.scale_rows(X)
        values, vectors = np.linalg.eigh((self.matrix_ + self.matrix_.T) / 2)
        return rows @ (vectors[:, ::-1] * np.sqrt(np.clip(values[::-1], 0, None)))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the coordinates of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the input features, which are only checked.

        Returns
        -------
        names : ndarray of str objects
            ``oasis0``, ``oasis1`` and so on.
        """
        check_is_fitted(self)
        self._namer(input_features)
        return np.array([f"oasis{number}" for number in range(self.n_features_in_)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_
