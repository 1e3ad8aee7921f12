"""Code as users write it, for mypy --strict and pyright: python/check runs both. It is not executed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import hdsl
from hdsl import OASIS, HDSL, DiagonalSimilarity, HDSLClassifier, PairHDSL, TripletHDSL
from hdsl.model_selection import AnchorKFold


def classify(X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    classifier = HDSLClassifier(scale=10, class_weight="balanced", step_rule="pairwise").fit(X, y)
    assert_type(classifier, HDSLClassifier)
    assert_type(classifier.predict_proba(X), NDArray[np.float64])
    assert_type(classifier.decision_function(X), NDArray[np.float64])
    assert_type(classifier.feature_importances_, NDArray[np.float64])
    assert_type(classifier.at(n_features=20), HDSLClassifier)
    assert_type(classifier.set_params(n_neighbors=5), HDSLClassifier)
    assert_type(classifier.get_params(), dict[str, Any])
    return classifier.score(X, y)


def embed(X: NDArray[np.float64], y: NDArray[np.int64]) -> Any:
    learner = HDSL(euclidean=True, callback=lambda facts: facts["n_features"] > 20).fit(X, y)
    assert_type(learner, HDSL)
    assert_type(learner.set_output(transform="pandas"), HDSL)
    assert_type(learner.pair_distance(np.array([[0, 1]])), NDArray[np.float64])
    assert_type(learner.get_metric()(X[0], X[1]), float)
    assert_type(learner.base_, float)
    print(learner.explain().pairs, learner.components_.shape)
    return learner.transform(X, items=True)


def without_labels(X: NDArray[np.float64]) -> None:
    triplets = np.array([[0, 1, 2]])
    assert_type(TripletHDSL(X).fit(triplets), TripletHDSL)
    assert_type(TripletHDSL(X).fit(triplets).score(triplets), float)
    pairs = PairHDSL(X).fit([[0, 1], [0, 2]], [1, -1])
    assert_type(pairs, PairHDSL)
    assert_type(pairs.calibrate_threshold([[0, 1], [0, 2]], [1, -1]), PairHDSL)
    assert_type(pairs.predict([[0, 1]]), NDArray[np.int64])
    for train, test in AnchorKFold(2).split(triplets):
        print(len(train), len(test))


def baselines(X: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    assert_type(DiagonalSimilarity(penalty="l2").fit(X, y).weights_, NDArray[np.float64])
    assert_type(OASIS(n_steps=100).fit(X, y).matrix_, NDArray[np.float64])
    best = hdsl.tune(X, y, time=10)
    assert_type(best, HDSLClassifier)
    assert_type(best.tuned_params_, dict[str, Any])
    best.save("best.hdsl")
    assert_type(HDSLClassifier.load("best.hdsl"), HDSLClassifier)
