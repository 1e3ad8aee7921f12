"""OASIS: a full matrix, learned by passive-aggressive steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from hdsl._baselines import Baseline
from hdsl._callbacks import with_callbacks
from hdsl._fit import given_triplets
from hdsl._parameters import ABOVE_0, Kinds
from hdsl._settings import COMMON, CONSTRAINTS, keep, named, seed

if TYPE_CHECKING:
    from typing_extensions import Self


class OASIS(Baseline):
    """Learn a full matrix: S(x, z) = x' W z, by online passive-aggressive steps.

    The second baseline of the paper (Section 4.1), by Chechik, Sharma, Shalit and Bengio (JMLR 2010). Starting from the dot
    product, it draws one triplet at a time and makes the smallest change of W that gives the triplet a margin of 1, limited
    by `aggressiveness`. Memory is quadratic in the number of features, so it is meant for few of them, after PCA or random
    projections for example; it refuses more than `memory` allows.

    Parameters
    ----------
    aggressiveness : float, default=0.1
        C, the largest step.
    n_steps : int or None, default=None
        The number of draws; by default the number of triplets.
    sampling : {"anchors", "triplets"}, default="anchors"
        Whether to draw an anchor first and then one of its triplets, or one of all triplets.
    finish : {"as-learned", "symmetric", "psd"}, default="as-learned"
        What is done to W at the end: nothing, its symmetric part, or the nearest positive semi-definite matrix.
    memory : int or None, default=None
        The largest number of bytes that W may need; by default 2 GiB.
    triplets, preprocess, n_neighbors, class_weight, euclidean, n_jobs
        As for :class:`hdsl.HDSL`.
    callback : callable or None, default=None
        Called about a hundred times per run with a dict of ``iteration`` (steps), ``objective`` (the mean loss since the
        last call) and ``seconds``; a true return value stops the run.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws and of random triplets.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    matrix_ : ndarray of shape (`n_features_in_`, `n_features_in_`)
        W.
    trace_ : structured ndarray
        ``step``, ``loss`` (mean since the last point, each triplet before its step) and ``violated`` (the fraction of
        triplets with a loss).
    classes_, n_features_in_, feature_names_in_
        As for :class:`hdsl.HDSL`.
    n_iter_ : int
        The number of steps.
    n_triplets_ : int
        The number of triplets to draw from.
    stop_ : str
        Why the run ended: ``"max-iter"`` or ``"interrupted"``.

    See Also
    --------
    HDSL : Learns few pairs of very many features.
    DiagonalSimilarity : Learns one weight per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from hdsl import OASIS
    >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> learner = OASIS(aggressiveness=1, triplets="knn:1:2").fit(X, [0, 0, 1, 1])
    >>> learner.score_pairs(X, 0, 1) > learner.score_pairs(X, 0, 2)
    array([ True])
    """

    _constraints: ClassVar[dict[str, Kinds]] = {
        **COMMON,
        "triplets": CONSTRAINTS["triplets"],
        "class_weight": CONSTRAINTS["class_weight"],
        "aggressiveness": [ABOVE_0],
        "n_steps": CONSTRAINTS["batch"],
        "sampling": named("sampling"),
        "finish": named("finish"),
        "memory": CONSTRAINTS["memory"],
    }

    aggressiveness: float
    n_steps: int | None
    sampling: str
    finish: str
    memory: int | None

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
        class_weight: Mapping[Any, float] | str | None = None,
        euclidean: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        keep(locals())

    def _max_steps(self) -> int:
        return self.n_steps or 1

    def _settings(self) -> dict[str, Any]:
        return {
            "learner": "oasis",
            "aggressiveness": float(self.aggressiveness),
            "steps": None if self.n_steps is None else int(self.n_steps),
            "sampling": self.sampling,
            "finish": self.finish,
            "memory_limit": None if self.memory is None else int(self.memory),
            "seed": seed(self.random_state),
        }

    @with_callbacks
    def partial_fit_triplets(self, X: Any, triplets: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Continue learning from new triplets, starting from the present matrix.

        OASIS is an online learner: each new triplet changes the matrix as little as possible. The preprocessing of known
        features is kept; that of features without a value so far is learned from `X`. Neighbors are still searched among the
        rows that were fitted first.

        Parameters
        ----------
        X, triplets, sample_weight
            As for :meth:`fit_triplets`; the rows may be old or new.

        Returns
        -------
        self : object
            The fitted estimator; ``n_iter_`` and ``trace_`` are those of the new triplets.

        Examples
        --------
        >>> from hdsl import OASIS
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> learner = OASIS(1, n_steps=5).fit_triplets(X, [[0, 1, 2]]).partial_fit_triplets(X, [[2, 0, 3]])
        >>> bool(learner.score_pairs(X, 2, 0) > learner.score_pairs(X, 2, 3))
        True
        """
        self._check_parameters()
        again = self.__sklearn_is_fitted__()
        rows = self._rows_to_fit(X, reset=not again)
        kept = (self._fit_X, self._names) if again else None
        self._learn(rows, triplets=given_triplets(triplets, sample_weight), start=self._model if again else None)
        if kept is not None:
            self._fit_X, self._names = kept
        return self

    def _take_facts(self, facts: dict[str, Any]) -> None:
        kinds = [("step", np.int64), ("loss", np.float64), ("violated", np.float64)]
        self.trace_: NDArray[np.void] = np.array(facts["trace"], dtype=kinds)

    @property
    def matrix_(self) -> NDArray[np.float64]:
        """W."""
        check_is_fitted(self)
        return self._model.matrix().reshape(self.n_features_in_, self.n_features_in_)

    def get_bilinear_matrix(self) -> sp.csr_array:
        return sp.csr_array(self.matrix_)

    def transform(self, X: Any, *, items: bool = False, radius: float | None = None) -> Any:
        """Map rows into the space in which the positive part of the symmetrized similarity is a dot product.

        Negative eigenvalues of the symmetric part of W are left out. With ``finish="psd"`` there are none, and dot products
        are scores. With ``euclidean=True``, neighbors by distance are those of the similarity x' W z in any case.

        Parameters
        ----------
        X
            Raw rows, as for :meth:`fit`.
        items, radius
            As for :meth:`hdsl.HDSL.transform`.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features)
            One coordinate per eigenvector, by decreasing eigenvalue. With ``euclidean=True``, one per feature and one more.
        """
        return super().transform(X, items=items, radius=radius)

    def _like(self, X: Any, mapped: sp.csr_array) -> NDArray[np.float64]:
        return mapped.toarray()

    @property
    def components_(self) -> sp.csr_array:
        """The matrix L with ``transform(X) = preprocess_rows(X) @ L.T``: one row per eigenvector of the symmetric part of W."""
        values, vectors = np.linalg.eigh((self.matrix_ + self.matrix_.T) / 2)
        return sp.csr_array((vectors[:, ::-1] * np.sqrt(np.clip(values[::-1], 0, None))).T)

    def _names_out(self, name: Callable[[int], str]) -> list[str]:
        return [f"oasis{number}" for number in range(self.n_features_in_)]

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_ + bool(self.euclidean)
