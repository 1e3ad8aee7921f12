"""Methods of a learned similarity: map, scores, neighbors, explanations. All estimators share them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from hdsl import _core
from hdsl._frames import frame
from hdsl._matrix import DTYPES, as_csr, check_parts, from_parts
from hdsl._records import as_rows, is_records
from hdsl._threads import n_threads

if TYPE_CHECKING:
    from typing_extensions import Self


class Explanation(NamedTuple):
    """The components of the learned part M of a similarity, as two data frames; and its base."""

    features: Any
    """The features in use by M: index, name, weight M_ii, and number of pairs; by decreasing weight."""
    pairs: Any
    """Pairs of features: indices, names and weight M_ij; by decreasing absolute weight."""
    base: float = 0.0
    """β of S(x, z) = β <x, z> + x' M z: what two rows gain by each common feature, per unit of each."""


class SimilarityEstimator(TransformerMixin, BaseEstimator):
    """A learned similarity as a scikit-learn transformer.

    Subclasses learn and set ``_model`` (the compiled model), ``_fit_X`` (the rows they learned from) and ``_index`` (the
    search index of those rows).
    """

    _model: _core.Model
    _index: _core.Index
    _fit_X: Any
    triplets: str
    preprocess: str
    n_neighbors: int
    callback: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    n_features_in_: int

    # -- input --------------------------------------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A damaged pickle must not crash the interpreter: scipy trusts the arrays of a matrix.
        super().__setstate__(state)
        check_parts(self.__dict__.get("_fit_X"))

    def _rows(self, X: Any) -> Any:
        """Rows to compare, checked by scikit-learn, in CSR form. A model of records takes texts and data frames as well."""
        check_is_fitted(self)
        if getattr(self._model, "columns", None) is not None and is_records(X):
            return as_rows(self._model, X, self._threads())
        X = validate_data(self, check_parts(X), accept_sparse="csr", dtype=DTYPES, reset=False)
        return as_csr(X)

    def _threads(self) -> int:
        return n_threads(self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def _decides(self, name: str, default: Any) -> Any:
        """`n_neighbors`, `vote` or `normalization`: the result of a search, or else the parameter."""
        found = self.__dict__.get("_found_decision") or {}
        return found.get(name, getattr(self, name, default))

    def _normalization(self) -> str:
        return self._decides("normalization", "dot")

    # -- the space in which the similarity is a dot product -------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Map rows into the space in which the learned similarity is a dot product.

        Search that space by inner product: ranking by Euclidean distance gives other neighbors. The `normalization` of the
        estimator is not applied: under ``"cosine"`` the similarity is the cosine of mapped rows, which is the inner product
        after ``sklearn.preprocessing.normalize``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows; the learned preprocessing is applied first.

        Returns
        -------
        Z : {ndarray, csr_array} of shape (n_samples, n_features_out)
            One coordinate per atom (or `n_components` orthogonal ones). If the model has a base β, the coordinates √β x of
            all features come first, and are not reduced by `n_components`. Sparse if `X` is, unless `set_output` asks for a data
            frame.

        Examples
        --------
        >>> import numpy as np
        >>> from hdsl import HDSL
        >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> learner = HDSL(scale=2).fit_triplets(X, [[0, 1, 2]])
        >>> Z = learner.transform(X)
        >>> np.allclose(Z @ Z.T, learner.similarity(X))
        True
        """
        rows = self._rows(X)
        parts, dim = self._model.transform(rows, self._reduced_to(), self._threads())
        return self._like(X, from_parts(parts, dim))

    def _like(self, X: Any, mapped: sp.csr_array) -> Any:
        """Mapped rows: sparse if `X` is, unless `set_output` asks for a data frame."""
        in_frames = _get_output_config("transform", self)["dense"] != "default"
        return mapped if sp.issparse(X) and not in_frames else mapped.toarray()

    def _reduced_to(self) -> int | None:
        return getattr(self, "n_components", None)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the coordinates of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the input features; by default the known names, else ``x0``, ``x1`` and so on.

        Returns
        -------
        names : ndarray of str objects
            ``a+b`` for an atom of positive sign over the features a and b, ``a-b`` for one of negative sign; the lower-case
            name of the class with a number for orthogonal coordinates. Before them, the names of all input features if the
            model has a base.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2).fit_triplets(X, [[0, 1, 2]]).get_feature_names_out(["left", "right", "both"])
        array(['left-right'], dtype=object)
        """
        check_is_fitted(self)
        name = self._namer(input_features)
        names = [name(feature) for feature in range(self._model.n_features if self._model.base else 0)]
        if self._reduced_to() is not None:
            prefix = type(self).__name__.lower()
            n_learned = self._model.dim(self._reduced_to()) - len(names)
            names += [f"{prefix}{number}" for number in range(n_learned)]
        else:
            (i, j, _), signs = self._model.atoms()
            names += [f"{name(a)}{'+' if sign > 0 else '-'}{name(b)}" for a, b, sign in zip(i, j, signs)]
        return np.array(names, dtype=object)

    @property
    def _n_features_out(self) -> int:
        return self._model.dim(self._reduced_to())

    # -- scores -----------------------------------------------------------------------------------------------------------

    def score_pairs(self, X: Any, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Score pairs of rows of one matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows.
        i, j : int or array-like of int
            The rows of each pair, counted from 0.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            Larger values mean more similar rows. Cosines if the `normalization` of the estimator is ``"cosine"``.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1]).score_pairs(X, [0, 0], [1, 2])
        array([ 2., -2.])
        """
        rows = self._rows(X)
        i, j = np.broadcast_arrays(_whole(i, "i"), _whole(j, "j"))
        return self._pair_scores(rows, np.ascontiguousarray(i), np.ascontiguousarray(j))

    def _pair_scores(self, rows: Any, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._model.score_pairs(rows, None, i, j, self._normalization(), self._threads())

    def pair_score(self, pairs: Any) -> NDArray[np.float64]:
        """Score pairs, under the name and with the arguments of metric-learn.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2) or (n_pairs, 2, n_features)
            Indices of fitted rows, or the rows themselves.

        Returns
        -------
        ndarray of shape (n_pairs,)
            As :meth:`score_pairs` returns them.

        Examples
        --------
        >>> import numpy as np
        >>> from hdsl import HDSL
        >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> learner = HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1])
        >>> learner.pair_score([[0, 1], [0, 2]])
        array([ 2., -2.])
        >>> learner.pair_score(X[[[0, 1], [0, 2]]])
        array([ 2., -2.])
        """
        check_is_fitted(self)
        pairs = check_array(pairs, allow_nd=True, dtype=None, input_name="pairs")
        if pairs.shape[1:2] != (2,) or pairs.ndim > 3:
            raise ValueError(
                f"pairs has the shape {pairs.shape}, expected (n_pairs, 2) or (n_pairs, 2, n_features)"
            )
        if pairs.ndim == 2:
            rows, i, j = self._fitted_rows(), _whole(pairs[:, 0], "pairs"), _whole(pairs[:, 1], "pairs")
        else:
            n = len(pairs)
            rows = self._rows(np.concatenate([pairs[:, 0], pairs[:, 1]]))
            i, j = np.arange(n), np.arange(n, 2 * n)
        return self._pair_scores(rows, i, j)

    def similarity(self, A: Any, B: Any = None, *, dense_output: bool = True) -> Any:
        """Score every row of one matrix against every row of another.

        Parameters
        ----------
        A : {array-like, sparse matrix} of shape (n_a, n_features)
            Raw rows.
        B : {array-like, sparse matrix} of shape (n_b, n_features) or None, default=None
            Raw rows; by default those of `A`.
        dense_output : bool, default=True
            Whether to return a dense array. A sparse one stores the non-zero scores.

        Returns
        -------
        scores : {ndarray, csr_array} of shape (n_a, n_b)
            The scores. Cosines if the `normalization` of the estimator is ``"cosine"``.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1]).similarity(X[:2], X[1:3])
        array([[ 2., -2.],
               [ 2., -2.]])
        """
        left, right = self._mapped(A, left=True), self._mapped(A if B is None else B, left=False)
        if self._normalization() == "cosine":
            left, right = normalize(left), normalize(right)
        scores = left @ right.T
        return scores.toarray() if dense_output else sp.csr_array(scores)

    def _mapped(self, X: Any, left: bool) -> sp.csr_array:
        """Rows mapped such that scores are dot products of left and right rows."""
        parts, dim = self._model.transform(self._rows(X), None, self._threads())
        return from_parts(parts, dim)

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_similarity: bool = True
    ) -> Any:
        """Find the most similar fitted rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features) or None, default=None
            Raw rows; by default the fitted rows, where no row is its own neighbor.
        n_neighbors : int or None, default=None
            The number of neighbors; by default the `n_neighbors` of the estimator, or the result of ``scale="auto"``.
        return_similarity : bool, default=True
            Whether to return the scores as well.

        Returns
        -------
        scores : ndarray of shape (n_queries, n_neighbors)
            In decreasing order: these are similarities, not distances. Cosines if the `normalization` of the estimator is
            ``"cosine"``. Only if `return_similarity`.
        rows : ndarray of shape (n_queries, n_neighbors)
            Indices of fitted rows. Ties are ordered by index.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1]).kneighbors([[1., 0, 3]], n_neighbors=2)
        (array([[2., 2.]]), array([[0, 1]]))
        """
        check_is_fitted(self)
        k = self._decides("n_neighbors", 3) if n_neighbors is None else n_neighbors
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}")
        fitted = self._fitted_rows()
        available = fitted.shape[0] - (X is None)
        if k > available:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {available}"
            )
        queries = None if X is None else self._rows(X)
        scores, rows = self._search(queries, int(k))
        scores, rows = scores.reshape(-1, k), rows.reshape(-1, k)
        return (scores, rows) if return_similarity else rows

    def _search(self, queries: Any, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        rows, normalization = self._fitted_rows(), self._normalization()
        return self._index.neighbors(self._model, normalization, rows, queries, k, self._threads())

    def _fitted_rows(self) -> Any:
        if self._fit_X is None:
            raise ValueError(
                f"This {type(self).__name__} was loaded without the rows it was fitted on; pass them to `load` to search "
                "for neighbors among them."
            )
        return self._fit_X

    # -- explanations ---------------------------------------------------------------------------------------------------------

    def get_bilinear_matrix(self) -> sp.csr_array:
        """The matrix M of S(x, z) = β <x, z> + x' M z, for x and z preprocessed as by :meth:`preprocess_rows`.

        It is the learned part; β is 0 unless the similarity was learned on top of the dot product.

        Returns
        -------
        M : csr_array of shape (n_features, n_features)
            Symmetric for :class:`hdsl.HDSL`, diagonal for :class:`hdsl.DiagonalSimilarity`; not symmetric for
            :class:`hdsl.OASIS`, unless its `finish` makes it so.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2).fit_triplets(X, [[0, 1, 2]]).get_bilinear_matrix().toarray()
        array([[ 2., -2.,  0.],
               [-2.,  2.,  0.],
               [ 0.,  0.,  0.]])
        """
        check_is_fitted(self)
        i, j, values = self._model.matrix()
        d = self._model.n_features
        return sp.csr_array(sp.coo_array((values, (i, j)), shape=(d, d)))

    def preprocess_rows(self, X: Any) -> sp.csr_array:
        """Apply the learned preprocessing.

        Parameters
        ----------
        X
            Raw rows, as for :meth:`transform`.

        Returns
        -------
        rows : csr_array of shape (n_samples, n_features)
            Under ``preprocess="max"`` without the features that no iterate of the path uses, unless the model has a base.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[4., 0, 1], [2, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> learner = HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1])
        >>> learner.preprocess_rows([[2., 0, 0], [9, 0, 0]]).toarray()
        array([[0.5, 0. , 0. ],
               [1. , 0. , 0. ]])
        """
        parts = self._model.prepare(self._rows(X), self._threads())
        return from_parts(parts, self._model.n_features)

    def set_feature_names(self, names: ArrayLike) -> Any:
        """Set the names of the features, for explanations and saved models.

        A fit to a data frame sets them, and so does a fit as the last step of a pipeline whose earlier steps have
        ``get_feature_names_out``. For the sparse matrix of a vectorizer they are ``vectorizer.get_feature_names_out()``.

        Parameters
        ----------
        names : array-like of str of shape (n_features,)
            One per column.

        Returns
        -------
        self : object
            The estimator.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> learner = HDSL(scale=2).fit_triplets(X, [[0, 1, 2]]).set_feature_names(["left", "right", "both"])
        >>> learner.get_feature_names_out()
        array(['left-right'], dtype=object)
        """
        check_is_fitted(self)
        self._store_names(self._checked_names(names, "names"))
        return self

    def _store_names(self, names: list[str]) -> None:
        self._model = self._model.with_names(names)

    def _checked_names(self, names: ArrayLike, argument: str) -> list[str]:
        listed = [str(name) for name in column_or_1d(np.asarray(names, dtype=object))]
        if len(listed) != self.n_features_in_:
            raise ValueError(
                f"{argument} should have length equal to number of features ({self.n_features_in_}), got {len(listed)}"
            )
        return listed

    def _namer(self, names: ArrayLike | None) -> Any:
        """A function from feature indices to names."""
        if names is not None:
            known = getattr(self, "feature_names_in_", None)
            if known is not None and not np.array_equal(np.asarray(names, dtype=object), known):
                raise ValueError("input_features is not equal to feature_names_in_")
            listed = self._checked_names(names, "input_features")
            return lambda feature: listed[feature]
        stored = self._known_names()
        return lambda feature: stored.get(int(feature), f"x{feature}")

    def _known_names(self) -> dict[int, str]:
        return dict(self._model.names)

    def explain(self, feature_names: ArrayLike | None = None) -> Explanation:
        """List the features and pairs of features of the similarity with their weights.

        Parameters
        ----------
        feature_names : array-like of str or None, default=None
            Names of the input features, as for :meth:`get_feature_names_out`.

        Returns
        -------
        explanation : Explanation
            ``explanation.features`` (the diagonal of M) and ``explanation.pairs`` (the entries beside it), two data frames
            of pandas (of polars if ``set_output`` asks for polars). A positive weight of a pair makes two rows more similar
            if one contains the first feature and the other the second; a negative weight makes them less similar.
            ``explanation.base`` is β: the dot product of the rows times β is added to the learned part.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2).fit_triplets(X, [[0, 1, 2]]).explain(["left", "right", "both"]).pairs
           i  j feature_i feature_j  weight
        0  0  1      left     right    -2.0
        """
        check_is_fitted(self)
        name = self._namer(feature_names)
        (features, n_pairs, weights), (i, j, pair_weights) = self._by_weight()
        named = {
            "feature": features,
            "name": [name(f) for f in features],
            "weight": weights,
            "n_pairs": n_pairs,
        }
        pairs = {
            "i": i,
            "j": j,
            "feature_i": [name(f) for f in i],
            "feature_j": [name(f) for f in j],
            "weight": pair_weights,
        }
        return Explanation(frame(self, named), frame(self, pairs), getattr(self, "base_", 0.0))

    def _by_weight(self) -> tuple[Any, Any]:
        """Features with their numbers of pairs and weights, and pairs with their weights; the largest first."""
        return self._model.features_by_weight(), self._model.pairs_by_weight()

    def explain_pair(self, x: Any, z: Any, feature_names: ArrayLike | None = None) -> Any:
        """Split the score of two rows into contributions that sum to it.

        Parameters
        ----------
        x, z : {array-like, sparse matrix} of shape (n_features,) or (1, n_features)
            Two raw rows.
        feature_names : array-like of str or None, default=None
            Names of the input features, as for :meth:`explain`.

        Returns
        -------
        contributions : data frame
            ``feature_x`` of one row, ``feature_z`` of the other, and their ``contribution``, by decreasing absolute value;
            without those of 0. They sum to the score of :meth:`score_pairs`, also under cosine normalization. If the model
            has a base, its contributions come first, and the column ``part`` is ``"base"`` or ``"learned"``.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2).fit_triplets(X, [[0, 1, 2]]).explain_pair(X[0], X[2], ["left", "right", "both"])
          feature_x feature_z  contribution
        0      left     right          -2.0
        """
        check_is_fitted(self)
        name = self._namer(feature_names)
        x, z = self._one_row(x, "x"), self._one_row(z, "z")
        parts = {"base": self._base_contributions(x, z), "learned": self._contributions(x, z)}
        if parts["base"] is None:
            del parts["base"]
        i, j, values = (np.concatenate(column) for column in zip(*parts.values()))
        table = {
            "feature_x": [name(f) for f in i],
            "feature_z": [name(f) for f in j],
            "contribution": values,
        }
        if "base" in parts:
            table["part"] = [part for part, columns in parts.items() for _ in columns[0]]
        return frame(self, table)

    def _contributions(self, x: Any, z: Any) -> Any:
        """Features of two rows and their contribution to the learned part of the score, the largest first."""
        return self._model.explain_pair(x, z, self._normalization())[1]

    def _base_contributions(self, x: Any, z: Any) -> Any:
        """The same of the base; None if there is none."""
        if not getattr(self, "base_", 0.0):
            return None
        return self._model.explain_pair(x, z, self._normalization())[0]

    def _one_row(self, x: Any, argument: str) -> Any:
        if isinstance(x, str):
            return self._rows([x])
        if not sp.issparse(x) and not hasattr(x, "columns"):
            x = np.atleast_2d(np.asarray(x))
        elif x.ndim == 1:
            x = x.reshape(1, -1)
        if x.shape[0] != 1:
            raise ValueError(f"{argument} has {x.shape[0]} rows, expected one")
        return self._rows(x)

    # -- copies -----------------------------------------------------------------------------------------------------------------

    def _set_fitted(self, model: Any, rows: Any) -> None:
        """The result of a fit: a similarity, and the rows to search for neighbors."""
        self._model, self._index, self._fit_X = model, _core.Index(), rows

    def _with_model(self, model: _core.Model) -> Self:
        """A copy of this estimator with another similarity."""
        other = copy.copy(self)
        other._set_fitted(model, self._fit_X)
        return other


def _whole(numbers: ArrayLike, name: str) -> NDArray[np.int64]:
    """Integers of any integer type."""
    array = np.atleast_1d(np.asarray(numbers))
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} has the type {array.dtype}, expected whole numbers")
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions, expected 1")
    return np.ascontiguousarray(array, dtype=np.int64)
