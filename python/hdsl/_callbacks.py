"""scikit-learn's callbacks, if the installed version has them (1.9 and later), and plain callables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from hdsl import _core
from hdsl._sklearn import CallbackSupportMixin

__all__ = ["HAS_CALLBACKS", "Hooks", "with_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])

try:
    from sklearn.callback import with_callbacks as _managed
except ImportError:  # before scikit-learn 1.9

    def _managed(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)  # as many calls deep as with callbacks, for the places that warnings name
        def plain(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        return plain


HAS_CALLBACKS: bool = hasattr(CallbackSupportMixin, "set_callbacks")


def with_callbacks(method: F) -> F:
    """Decorate a method that fits: scikit-learn's callbacks are told when it ends, however it ends."""
    return cast(F, _managed(method))


class Hooks:
    """Calls the callbacks of an estimator after each iteration.

    Parameters
    ----------
    estimator : HDSL
        The estimator that is being fitted.
    X, y : matrix and labels
        Passed on to scikit-learn's callbacks.
    max_iter : int
        The maximum number of iterations.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, max_iter: int) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.callback: Callable[[dict[str, Any]], Any] | None = estimator.callback
        self.context: Any = None
        if HAS_CALLBACKS:
            self.context = estimator._init_callback_context(max_subtasks=max_iter)
            self.context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @property
    def wants_iterates(self) -> bool:
        """Whether a callback may ask for the model of an iteration."""
        return bool(getattr(self.estimator, "_skl_callbacks", []))

    def each(self) -> Callable[[dict[str, Any], Any], bool] | None:
        """The function that the compiled module calls after each iteration, if there are callbacks."""
        return self if self.callback is not None or self.wants_iterates else None

    def __call__(self, facts: dict[str, Any], atoms: Any) -> bool:
        stop = False
        if self.callback is not None:
            stop |= bool(self.callback(dict(facts)))
        if self.wants_iterates:
            task = self.context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)
            stop |= bool(
                task.call_on_fit_task_end(
                    estimator=self.estimator,
                    X=self.X,
                    y=self.y,
                    reconstruction_attributes=lambda: self._learned_so_far(facts, atoms),
                )
            )
        return stop

    def _learned_so_far(self, facts: dict[str, Any], atoms: Any) -> dict[str, Any]:
        model = _core.Model.snapshot(self.X, facts["preprocess"], facts["scale"], atoms, facts["base"])
        return {"_model": model, "_index": _core.Index()}

    def done(self) -> None:
        """Tell the callbacks that the estimator is fitted."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, X=self.X, y=self.y, reconstruction_attributes=dict
            )
