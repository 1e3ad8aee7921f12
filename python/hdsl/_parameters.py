"""What the parameters of estimators may be, checked when a fit begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp


class InvalidParameterError(ValueError, TypeError):
    """A parameter has a value or a type that it does not take."""


@dataclass(frozen=True)
class Number:
    """A finite number of an interval; a whole one if `whole`."""

    low: float | None = None
    high: float | None = None
    has_low: bool = True
    has_high: bool = True
    whole: bool = False

    def accepts(self, value: Any) -> bool:
        """Whether the value is such a number."""
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral if self.whole else Real):
            return False
        number = float(value)
        above = self.low is None or number > self.low or (self.has_low and number == self.low)
        below = self.high is None or number < self.high or (self.has_high and number == self.high)
        return above and below and bool(np.isfinite(number))

    def __str__(self) -> str:
        kind = "an int" if self.whole else "a float"
        if self.low is None and self.high is None:
            return kind
        low = "(-inf" if self.low is None else f"{'[' if self.has_low else '('}{self.low:g}"
        high = "inf)" if self.high is None else f"{self.high:g}{']' if self.has_high else ')'}"
        return f"{kind} in the range {low}, {high}"


@dataclass(frozen=True)
class Names:
    """One of several texts."""

    names: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        """Whether the value is one of them."""
        return isinstance(value, str) and value in self.names

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, sorted(self.names)))}}}"


@dataclass(frozen=True)
class Instance:
    """An object of one of these types."""

    description: str
    types: tuple[type, ...]

    def accepts(self, value: Any) -> bool:
        """Whether the value is an object of them."""
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return self.description


class _Arrays:
    """A sequence or an array; no text and no mapping."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is one."""
        is_other = isinstance(value, (str, bytes, Mapping)) or sp.issparse(value)
        return not is_other and (hasattr(value, "__array__") or isinstance(value, Iterable))

    def __str__(self) -> str:
        return "an array-like"


class _Callables:
    """Anything that can be called."""

    def accepts(self, value: Any) -> bool:
        """Whether the value can be called."""
        return callable(value)

    def __str__(self) -> str:
        return "a callable"


class _Sparse:
    """A sparse matrix or array of scipy."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is one."""
        return sp.issparse(value)

    def __str__(self) -> str:
        return "a sparse matrix"


#: The kinds that a parameter may have; None in such a list is the value None.
Kinds = list[Any]

ABOVE_0 = Number(0, has_low=False)
FROM_0 = Number(0)
FROM_1 = Number(1, whole=True)
WHOLE = Number(whole=True)
WHOLE_FROM_0 = Number(0, whole=True)
BOOLEAN = Instance("a bool", (bool, np.bool_))
TEXT = Instance("a str", (str,))
MAPPING = Instance("a dict", (Mapping,))
SEED = [Number(0, 2**32 - 1, whole=True), Instance("a numpy.random.RandomState", (np.random.RandomState,)), None]
ARRAY = _Arrays()
CALLABLE = _Callables()
SPARSE = _Sparse()


def check_parameters(kinds: Mapping[str, Kinds], values: Mapping[str, Any], owner: str) -> None:
    """Raise an error for the first value that none of the kinds of its parameter accepts.

    >>> check_parameters({"scale": [ABOVE_0, None]}, {"scale": -1}, "HDSL")
    Traceback (most recent call last):
        ...
    hdsl._parameters.InvalidParameterError: The 'scale' parameter of HDSL must be a float in the range (0, inf) or None, got -1.
    """
    for name, value in values.items():
        known = kinds.get(name)
        if known is None or any(value is None if kind is None else kind.accepts(value) for kind in known):
            continue
        texts = [str(kind) for kind in known]
        wanted = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
        raise InvalidParameterError(f"The {name!r} parameter of {owner} must be {wanted}, got {value!r}.")
