"""Methods of a learned similarity: map, scores, neighbors, explanations. All estimators share them."""

from __future__ import annotations

import copy
import functools
import pickle
import types
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from hdsl import _core
from hdsl._frames import frame, output_library
from hdsl._matrix import DTYPES, as_csr, check_parts, from_parts
from hdsl._parameters import Kinds, check_parameters
from hdsl._records import as_rows, is_records
from hdsl._sklearn import BaseEstimator, TransformerMixin
from hdsl._threads import n_threads

if TYPE_CHECKING:
    from typing_extensions import Self


class Explanation(NamedTuple):
    """The components of the learned part M of a similarity, as two tables; and its base."""

    features: Any
    """The features in use by M: index, name, weight M_ii, and number of pairs; by decreasing weight."""
    pairs: Any
    """Pairs of features: indices, names and weight M_ij; by decreasing absolute weight."""
    base: float = 0.0
    """β of S(x, z) = β <x, z> + x' M z: what two rows gain by each common feature, per unit of each."""


def _is_array(value: Any) -> bool:
    return (isinstance(value, np.ndarray) and not value.dtype.hasobject) or sp.issparse(value)


class SimilarityEstimator(TransformerMixin, BaseEstimator):
    """A learned similarity as a scikit-learn transformer.

    Subclasses learn and set ``_model`` (the compiled model), ``_fit_X`` (the rows they learned from) and ``_index`` (the
    search index of those rows).
    """

    _constraints: ClassVar[dict[str, Kinds]]
    #: Attributes that only this process can use.
    _not_pickled: ClassVar[frozenset[str]] = frozenset()
    _model: _core.Model
    _index: _core.Index
    _fit_X: Any
    triplets: str
    preprocess: str | None
    n_neighbors: int
    euclidean: bool
    callback: Callable[[dict[str, Any]], Any] | None
    random_state: Any
    n_jobs: int | None
    verbose: int
    n_features_in_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        theirs: Any = cls.__init__
        if "__init__" not in cls.__dict__ and isinstance(theirs, types.FunctionType):
            # A copy of the inherited constructor, so that the error about a wrong argument names this class.
            own = types.FunctionType(
                theirs.__code__, theirs.__globals__, "__init__", theirs.__defaults__, theirs.__closure__
            )
            functools.update_wrapper(own, theirs)
            own.__kwdefaults__ = theirs.__kwdefaults__
            own.__qualname__ = f"{cls.__qualname__}.__init__"
            del own.__dict__["__wrapped__"]  # whose signature would be taken for that of the copy
            setattr(cls, "__init__", own)

    def _check_parameters(self) -> None:
        """Raise an error for a parameter of a wrong type or out of its range."""
        check_parameters(self._constraints, self.get_params(deep=False), type(self).__name__)

    # -- input --------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # A damaged pickle must not crash the interpreter: numpy and scipy trust what they unpickle. Arrays are a pickle of their
        # own, with a checksum. All else is left to the pickler, since joblib and Dask use cloudpickle, which also takes functions.
        state: dict[str, Any] = {**super().__getstate__()}  # type: ignore[misc,dict-item]
        state = {name: value for name, value in state.items() if name not in self._not_pickled}
        arrays = {name: state.pop(name) for name, value in sorted(state.items()) if _is_array(value)}
        if arrays:
            sealed = pickle.dumps(arrays, protocol=5)
            state["_arrays"] = (zlib.crc32(sealed), sealed)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_arrays" in state:
            checksum, sealed = state.pop("_arrays")
            if zlib.crc32(sealed) != checksum:
                raise ValueError("the pickle is damaged: its checksum is wrong")
            state |= pickle.loads(sealed)
        super().__setstate__(state)  # type: ignore[misc]
        check_parts(self.__dict__.get("_fit_X"))

    def __copy__(self) -> Self:
        # Shares the arrays; the default would pickle them.
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

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

    def transform(self, X: Any, *, items: bool = False, radius: float | None = None) -> Any:
        """Map rows into the space in which the learned similarity is a dot product.

        Search that space by inner product: ranking by Euclidean distance gives other neighbors. The `normalization` of the
        estimator is not applied: under ``"cosine"`` the similarity is the cosine of mapped rows, which is the inner product
        after ``sklearn.preprocessing.normalize``.

        With ``euclidean=True``, one coordinate is added such that the Euclidean neighbors are the rows of the highest
        similarity (of the highest cosine under ``normalization="cosine"``), for any index or learner that ranks by
        distance. The rows to search are mapped with ``items=True``, or by ``fit_transform``; the rows to search for without
        it. Pipelines do so by themselves.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Raw rows; the learned preprocessing is applied first.
        items : bool, default=False
            With ``euclidean=True``, whether these are rows to search: the added coordinate of a row x is then
            √(R² - S(x, x)), and 0 otherwise. The squared distance of a query q is S(q, q) + R² - 2 S(q, x). No effect
            otherwise.
        radius : float or None, default=None
            R, at least the largest norm √S(x, x) of all items. By default, the largest norm of `X`; to map items in several
            calls, pass the same value to each. Only with ``euclidean=True``.

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

        Neighbors by scikit-learn's default metric:

        >>> from sklearn.neighbors import NearestNeighbors
        >>> learner.set_params(euclidean=True)
        HDSL(euclidean=True, scale=2)
        >>> nearest = NearestNeighbors(n_neighbors=2).fit(learner.transform(X, items=True))
        >>> nearest.kneighbors(learner.transform([[0., 2, 1]]), return_distance=False)
        array([[2, 3]])
        """
        mapped = self._map_for_output(self._rows(X), items)
        if self.euclidean:
            mapped = self._for_distances(mapped, items, radius)
        elif radius is not None:
            raise ValueError("radius is given, but is used only with euclidean=True.")
        return self._like(X, mapped)

    def _map_for_output(self, rows: Any, items: bool) -> sp.csr_array:
        """Rows in the coordinates of :meth:`transform`, without the one that `euclidean` adds."""
        parts, dim = self._model.transform(rows, self._reduced_to(), self._threads())
        return from_parts(parts, dim)

    def _for_distances(self, mapped: sp.csr_array, items: bool, radius: float | None) -> sp.csr_array:
        """Mapped rows with the coordinate that turns the order by inner product into the order by distance."""
        if self._normalization() == "cosine":
            if radius is not None:
                raise ValueError("radius is given, but under normalization='cosine' it is always 1.")
            norms = (_norms(mapped) > 0).astype(float)  # a row of zeros has a cosine of 0 with every row
            mapped, radius = sp.csr_array(normalize(mapped)), 1.0
        else:
            norms = _norms(mapped)
        added = np.zeros(len(norms))
        if items:
            largest = norms.max(initial=0.0)
            if radius is None:
                radius = float(largest)
            elif not np.isfinite(radius) or radius < largest:
                raise ValueError(
                    f"radius is {radius}, but row {int(norms.argmax())} of X has the norm {largest:.6g}; "
                    "expected a number that is at least the largest norm of all items"
                )
            added = np.sqrt(np.clip((radius - norms) * (radius + norms), 0.0, None))
        return sp.csr_array(sp.hstack([mapped, sp.csr_array(added[:, None])], format="csr"))

    def _like(self, X: Any, mapped: sp.csr_array) -> Any:
        """Mapped rows: sparse if `X` is, unless `set_output` asks for a data frame."""
        in_frames = output_library(self) != "default"
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
            model has a base; after them ``euclidean``, the coordinate that ``euclidean=True`` adds.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2).fit_triplets(X, [[0, 1, 2]]).get_feature_names_out(["left", "right", "both"])
        array(['left-right'], dtype=object)
        """
        check_is_fitted(self)
        return self._with_added(self._names_out(self._namer(input_features)))

    def _with_added(self, names: list[str]) -> NDArray[np.object_]:
        return np.array([*names, "euclidean"] if self.euclidean else names, dtype=object)

    def _names_out(self, name: Callable[[int], str]) -> list[str]:
        """Names of the coordinates, without the one that `euclidean` adds."""
        names = [name(feature) for feature in range(self._model.n_features if self._model.base else 0)]
        if self._reduced_to() is not None:
            prefix = type(self).__name__.lower()
            n_learned = self._model.dim(self._reduced_to()) - len(names)
            names += [f"{prefix}{number}" for number in range(n_learned)]
        else:
            (i, j, _), signs = self._model.atoms()
            names += [f"{name(a)}{'+' if sign > 0 else '-'}{name(b)}" for a, b, sign in zip(i, j, signs)]
        return names

    @property
    def _n_features_out(self) -> int:
        return self._model.dim(self._reduced_to()) + bool(self.euclidean)

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
        i, j = np.broadcast_arrays(whole_numbers(i, "i"), whole_numbers(j, "j"))
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
        return self._pair_scores(*self._paired_rows(pairs))

    def _paired_rows(self, pairs: Any) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
        """Rows, and the two of each pair."""
        check_is_fitted(self)
        pairs = check_array(pairs, allow_nd=True, dtype=None, input_name="pairs")
        if pairs.shape[1:2] != (2,) or pairs.ndim > 3:
            raise ValueError(
                f"pairs has the shape {pairs.shape}, expected (n_pairs, 2) or (n_pairs, 2, n_features)"
            )
        if pairs.ndim == 2:
            rows, i, j = self._fitted_rows(), whole_numbers(pairs[:, 0], "pairs"), whole_numbers(pairs[:, 1], "pairs")
            wrong = [row for row in np.r_[i, j] if not 0 <= row < rows.shape[0]]
            if wrong:
                raise ValueError(f"pairs names row {wrong[0]}, but there are {rows.shape[0]} rows")
            return rows, i, j
        n = len(pairs)
        return self._rows(np.concatenate([pairs[:, 0], pairs[:, 1]])), np.arange(n), np.arange(n, 2 * n)

    def pair_distance(self, pairs: Any) -> NDArray[np.float64]:
        """The distance of the two rows of each pair, under the name and with the arguments of metric-learn.

        It is the Euclidean distance of the rows in the space in which the similarity is a dot product:
        √(S(x, x) + S(z, z) - 2 S(x, z)), and of rows of length 1 in that space under ``normalization="cosine"``. Similarity
        and distance rank differently, and the similarity is what was learned.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2) or (n_pairs, 2, n_features)
            Indices of fitted rows, or the rows themselves.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Smaller values mean more similar rows.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> learner = HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1])
        >>> learner.pair_distance([[0, 1], [0, 2]]).round(3)
        array([0.   , 2.828])
        """
        rows, i, j = self._paired_rows(pairs)
        embedded = self._embedded(rows)
        return _norms(sp.csr_array(embedded[i] - embedded[j]))

    def _embedded(self, rows: Any) -> sp.csr_array:
        """Rows in the space in which the similarity is a dot product; of length 1 for cosines."""
        mapped = self._embed(rows)
        return sp.csr_array(normalize(mapped)) if self._normalization() == "cosine" else mapped

    def _embed(self, rows: Any) -> sp.csr_array:
        parts, dim = self._model.transform(rows, None, self._threads())
        return from_parts(parts, dim)

    def get_metric(self) -> Callable[..., float]:
        """The distance of :meth:`pair_distance` as a function of two rows, under the name of metric-learn.

        Returns
        -------
        metric : callable
            ``metric(u, v, squared=False)`` for two raw rows, which are one-dimensional arrays. scikit-learn takes it as
            ``metric=``; that is slow, since it calls it once per pair of rows.

        Examples
        --------
        >>> import numpy as np
        >>> from hdsl import HDSL
        >>> X = np.array([[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> metric = HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1]).get_metric()
        >>> round(metric(X[0], X[2], squared=True), 6)
        8.0
        """
        check_is_fitted(self)

        def metric(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            both = np.stack([np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.float64)])
            if both.shape != (2, self.n_features_in_):
                raise ValueError(f"u and v have the shape {both.shape[1:]}, expected ({self.n_features_in_},)")
            embedded = self._embedded(as_csr(check_array(both, input_name="u and v")))
            distance = float(_norms(sp.csr_array(embedded[[0]] - embedded[[1]]))[0])
            return distance**2 if squared else distance

        return metric

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

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> sp.csr_array:
        """The graph of the most similar fitted rows.

        Parameters
        ----------
        X, n_neighbors
            As for :meth:`kneighbors`.
        mode : {"connectivity", "similarity"}, default="connectivity"
            The values of the edges: 1, or the score of :meth:`kneighbors`.

        Returns
        -------
        graph : csr_array of shape (n_queries, n_samples_fit)
            `n_neighbors` stored values per row, by increasing column; a score may be a stored 0.

        Examples
        --------
        >>> from hdsl import HDSL
        >>> X = [[1., 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]]
        >>> HDSL(scale=2, triplets="knn:1:2").fit(X, [0, 0, 1, 1]).kneighbors_graph(n_neighbors=1).toarray()
        array([[0., 1., 0., 0.],
               [1., 0., 0., 0.],
               [0., 0., 0., 1.],
               [0., 0., 1., 0.]])
        """
        if mode not in ("connectivity", "similarity"):
            raise ValueError(f"mode is {mode!r}, expected 'connectivity' or 'similarity'")
        scores, near = self.kneighbors(X, n_neighbors)
        values = np.ones(near.size) if mode == "connectivity" else scores.ravel()
        starts = np.arange(0, near.size + 1, near.shape[1])
        graph = sp.csr_array((values, near.ravel(), starts), shape=(len(near), self._fitted_rows().shape[0]))
        graph.sort_indices()
        return graph

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

    @property
    def components_(self) -> sp.csr_array:
        """The matrix L with ``transform(X) = preprocess_rows(X) @ L.T``: one row per coordinate, one column per feature.

        The similarity is S(x, z) = x' L' L z of preprocessed rows (approximately with `n_components`). The coordinate that
        ``euclidean=True`` adds is not linear and has no row. Sparse, since there may be millions of features.
        """
        check_is_fitted(self)
        n_features = self._model.n_features
        active = np.sort(self._model.features_by_weight()[0])
        # Each feature alone in a row: preprocessing only changes its value, so that the map of the value is a multiple of a
        # column of L.
        alone = sp.csr_array((np.ones(len(active)), active, np.arange(len(active) + 1)), shape=(len(active), n_features))
        values = from_parts(self._model.prepare(alone, self._threads()), n_features).sum(axis=1)
        parts, dim = self._model.transform(alone, self._reduced_to(), self._threads())
        n_base = n_features if self._model.base else 0
        learned = from_parts(parts, dim)[:, n_base:]
        factors = np.divide(1.0, values, out=np.zeros(len(active)), where=values != 0)
        of_active = sp.coo_array((sp.diags_array(factors) @ learned).T)
        rows, columns = of_active.coords
        L = sp.csr_array((of_active.data, (rows, active[columns])), shape=(dim - n_base, n_features))
        if n_base:
            base = sp.diags_array(np.full(n_features, np.sqrt(self._model.base)), format="csr")
            L = sp.csr_array(sp.vstack([base, L], format="csr"))
        return L

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much of the similarity depends on each feature; they sum to 1, or are all 0 if nothing was learned.

        The importance of feature i is the sum of the absolute values in its row of βI + M, for S(x, z) = x' (βI + M) z of
        preprocessed rows (of row and column, if M is not symmetric), divided by the sum over all features.
        ``sklearn.feature_selection.SelectFromModel`` selects by it.
        """
        M = self.get_bilinear_matrix()
        sums = (abs(M).sum(axis=0) + abs(M).sum(axis=1)) / 2
        own = M.diagonal()
        importances = np.asarray(sums - np.abs(own) + np.abs(own + getattr(self, "base_", 0.0)), dtype=np.float64)
        total = importances.sum()
        return importances / total if total > 0 else importances

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

    def set_feature_names(self, names: ArrayLike) -> Self:
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

    def _namer(self, names: ArrayLike | None) -> Callable[[int], str]:
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
            of pandas (of polars if ``set_output`` asks for polars, or if
            only polars is installed; plain tables without either). A positive weight of a pair makes two rows more similar
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
        library = output_library(self)
        return Explanation(frame(named, library), frame(pairs, library), getattr(self, "base_", 0.0))

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
        return frame(table, output_library(self))

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


def whole_numbers(numbers: ArrayLike, name: str) -> NDArray[np.int64]:
    """Integers of any integer type."""
    array = np.atleast_1d(np.asarray(numbers))
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} has the type {array.dtype}, expected whole numbers")
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions, expected 1")
    return np.ascontiguousarray(array, dtype=np.int64)


def _norms(rows: sp.csr_array) -> NDArray[np.float64]:
    """The Euclidean norm of each row."""
    largest = np.abs(rows.data).max(initial=0.0)
    if largest == 0:
        return np.zeros(rows.shape[0])
    # Squares of very large and very small values stay finite and above 0. A power of two changes no other digit.
    scale = 2.0 ** np.frexp(largest)[1]
    scaled = rows / scale
    norms: NDArray[np.float64] = scale * np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    return norms
