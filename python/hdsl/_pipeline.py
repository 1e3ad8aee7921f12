"""Names of features that the earlier steps of a pipeline know."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.pipeline import Pipeline

#: How many calls there may be between `Pipeline.fit` and the place that needs names: those of this package and the wrappers
#: of scikit-learn.
DEPTH = 15


def names_of_features(estimator: Any) -> list[str] | None:
    """The names of the columns that `estimator` is being fitted to, if anything says them.

    A data frame does. A sparse matrix has no place for names; if the fit is that of the last step of a pipeline, its earlier
    steps know them, and the pipeline is the object whose method called ours. Unknown names are no error: features are then
    called by their numbers.
    """
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None:
        return [str(name) for name in known]
    pipeline = _pipeline_of(estimator)
    if pipeline is None or len(pipeline.steps) < 2:
        return None
    try:
        names = [str(name) for name in pipeline[:-1].get_feature_names_out()]
    except Exception:  # a step without names, or one that needs the names of its own input
        return None
    return names if len(names) == getattr(estimator, "n_features_in_", None) else None


def _pipeline_of(estimator: Any) -> Any:
    """The pipeline that is fitting this estimator as its last step."""
    frame = inspect.currentframe()
    try:
        for _ in range(DEPTH):
            if frame is None:
                return None
            caller = frame.f_locals.get("self")
            if isinstance(caller, Pipeline) and caller.steps and caller.steps[-1][1] is estimator:
                return caller
            frame = frame.f_back
        return None
    finally:
        del frame  # frames and their variables refer to each other
