"""Data frames of the library that the user has chosen."""

from __future__ import annotations

from typing import Any

from sklearn.utils._set_output import _get_output_config


def frame(estimator: Any, columns: dict[str, Any]) -> Any:
    """Columns as a data frame: polars if `set_output` asks for polars, else pandas."""
    wanted = _get_output_config("transform", estimator)["dense"]
    name = "polars" if wanted == "polars" else "pandas"
    try:
        library = __import__(name)
    except ImportError as error:
        raise ImportError(
            f"Explanations are data frames, which need {name}; install it, for instance with `pip install {name}`."
        ) from error
    return library.DataFrame(columns)
