"""Learn which features make two things similar, from very high-dimensional sparse data.

A similarity S(x, z) = x' M z is learned from triplets "x is more similar to y than to z", with M a weighted sum of
matrices of two features each (Liu, Bellet and Sha, AISTATS 2015). Time and memory depend on the non-zeros of the data: a
sparse matrix with a million columns is never made dense.

>>> import hdsl
>>> from sklearn.feature_extraction.text import CountVectorizer
>>> texts = ["tasty soup", "tasty rice", "delicious soup", "delicious rice",
...          "stale soup", "stale rice", "soggy soup", "soggy rice"]
>>> y = ["good"] * 4 + ["bad"] * 4
>>> words = CountVectorizer()
>>> X = words.fit_transform(texts)
>>> learner = hdsl.HDSLClassifier(scale=2, n_neighbors=1).fit(X, y)
>>> learner.predict(words.transform(["a delicious soup", "soggy, stale rice"]))
array(['good', 'bad'], dtype='<U4')
>>> learner.set_feature_names(words.get_feature_names_out())
HDSLClassifier(n_neighbors=1, scale=2)
>>> learner.score_pairs(X, 0, 3) > learner.score_pairs(X, 0, 4)  # no word in common, but of the same class
array([ True])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hdsl._core import __version__

if TYPE_CHECKING:
    from hdsl import datasets, metrics, model_selection, plot
    from hdsl._classifier import HDSLClassifier
    from hdsl._diagonal import DiagonalSimilarity
    from hdsl._hdsl import HDSL
    from hdsl._index import Hit, Index
    from hdsl._mining import mine_triplets
    from hdsl._oasis import OASIS
    from hdsl._pairs import PairHDSL
    from hdsl._triplets import TripletHDSL
    from hdsl._tuning import tune

__all__ = [
    "HDSL",
    "HDSLClassifier",
    "DiagonalSimilarity",
    "Hit",
    "Index",
    "OASIS",
    "PairHDSL",
    "TripletHDSL",
    "__version__",
    "datasets",
    "metrics",
    "mine_triplets",
    "model_selection",
    "plot",
    "tune",
]

#: The module of each public name. A module is imported when one of its names is first used, so that the command `hdsl`
#: starts without importing scikit-learn.
_MODULES = {
    "HDSL": "hdsl._hdsl",
    "HDSLClassifier": "hdsl._classifier",
    "DiagonalSimilarity": "hdsl._diagonal",
    "Hit": "hdsl._index",
    "Index": "hdsl._index",
    "OASIS": "hdsl._oasis",
    "PairHDSL": "hdsl._pairs",
    "TripletHDSL": "hdsl._triplets",
    "mine_triplets": "hdsl._mining",
    "tune": "hdsl._tuning",
}
_SUBMODULES = ("datasets", "metrics", "model_selection", "plot")

if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _SUBMODULES:
            return import_module(f"hdsl.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module 'hdsl' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
