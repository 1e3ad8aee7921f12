"""Tables of results: data frames of the library that the user has, or plain columns."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from sklearn import get_config

#: Rows that are shown of a long table: so many of its beginning and of its end.
SHOWN = 20


class Table(Mapping[str, list[Any]]):
    """Columns by name, for installations without pandas and polars.

    ``table["weight"]`` is a column, as a list; ``len(table.rows())`` the number of rows. ``pandas.DataFrame(dict(table))`` makes a
    data frame of it.

    >>> Table({"name": ["tasty", "soup"], "weight": [0.5, 12.25]})
        name  weight
    0  tasty     0.5
    1   soup   12.25
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: [_plain(value) for value in values] for name, values in columns.items()}

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def rows(self) -> list[dict[str, Any]]:
        """One dict per row."""
        return [dict(zip(self._columns, row)) for row in zip(*self._columns.values())]

    def __repr__(self) -> str:
        rows = list(zip(*self._columns.values()))
        if not rows:
            return f"Empty table of the columns {', '.join(self._columns)}"
        numbers = list(range(len(rows)))
        if len(rows) > 2 * SHOWN:
            numbers = numbers[:SHOWN] + numbers[-SHOWN:]
        lines = [["", *self._columns]] + [[str(number), *map(_cell, rows[number])] for number in numbers]
        widths = [max(map(len, column)) for column in zip(*lines)]
        shown = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines]
        if len(rows) > 2 * SHOWN:
            shown.insert(1 + SHOWN, f"... {len(rows) - 2 * SHOWN} more rows")
        return "\n".join(line.rstrip() for line in shown)


def _plain(value: Any) -> Any:
    """A Python number for one of numpy."""
    return value.item() if hasattr(value, "item") else value


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def output_library(estimator: Any) -> str:
    """What `set_output` asks for: ``"default"``, ``"pandas"`` or ``"polars"``."""
    # scikit-learn has no public way to ask one estimator; it stores the answer in this attribute, which clones share.
    own = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return str(own or get_config()["transform_output"])


def frame(columns: Mapping[str, Any], library: str = "default") -> Any:
    """Columns as a data frame of this library; by default of pandas, or of polars, or else as a :class:`Table`."""
    for name in ["pandas", "polars"] if library == "default" else [library]:
        try:
            return importlib.import_module(name).DataFrame(dict(columns))
        except ImportError as error:
            if library != "default":
                raise ImportError(f"set_output asks for {name}, which is not installed.") from error
    return Table(columns)
