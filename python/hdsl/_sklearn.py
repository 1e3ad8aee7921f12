"""The base classes of scikit-learn, with types: scikit-learn has no type information of its own.

Type checkers see the declarations below, so that they know all methods of the estimators; at run time, these are the classes
of scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["BaseCrossValidator", "BaseEstimator", "CallbackSupportMixin", "ClassifierMixin", "TransformerMixin"]

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    class BaseEstimator:
        """``sklearn.base.BaseEstimator``."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""
        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""
        def get_metadata_routing(self) -> Any:
            """Which metadata the methods take."""
        def set_fit_request(self, **metadata: bool | str | None) -> Self:
            """Set which metadata `fit` takes from pipelines and searches."""
        def set_transform_request(self, **metadata: bool | str | None) -> Self:
            """Set which metadata `transform` takes from pipelines."""
        def set_score_request(self, **metadata: bool | str | None) -> Self:
            """Set which metadata `score` takes from searches."""
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_inner(self) -> str: ...
        def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]: ...

    class TransformerMixin:
        """``sklearn.base.TransformerMixin``."""

        def set_output(self, *, transform: str | None = None) -> Self:
            """Set what `transform` returns: ``"default"``, ``"pandas"`` or ``"polars"``."""

    class ClassifierMixin:
        """``sklearn.base.ClassifierMixin``."""

        def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
            """The accuracy of the predicted classes."""

    class CallbackSupportMixin:
        """``sklearn.callback.CallbackSupportMixin`` of scikit-learn 1.9 and later; empty before."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set callbacks."""

    class BaseCrossValidator:
        """``sklearn.model_selection.BaseCrossValidator``."""

        def split(
            self, X: ArrayLike, y: Any = None, groups: Any = None
        ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
            """Training and test samples of each fold."""
        def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
            """The number of folds."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
    from sklearn.model_selection import BaseCrossValidator

    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError:  # before scikit-learn 1.9

        class CallbackSupportMixin:
            """Empty: this scikit-learn has no callbacks."""
