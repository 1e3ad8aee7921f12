"""IDENTITY and cosine: nothing is learned."""

from __future__ import annotations

from sklearn.preprocessing import normalize

from experiments.data import Rows
from experiments.systems.base import Fitted, Problem, System, error
from experiments.systems.neighbors import by_dot_product


def identity(problem: Problem) -> Fitted:
    predict = by_dot_product(problem.train)
    return Fitted(predict, problem.train.X.shape[1], error(predict(problem.valid.X), problem.valid), {}, [])


def cosine(problem: Problem) -> Fitted:
    by_angle = by_dot_product(Rows(normalize(problem.train.X), problem.train.y))

    def predict(X):
        return by_angle(normalize(X))

    return Fitted(predict, problem.train.X.shape[1], error(predict(problem.valid.X), problem.valid), {}, [])


SYSTEMS = [
    System("identity", "IDENTITY", 1, identity, searched="nothing"),
    System("cosine", "cosine k-NN", 1, cosine, searched="nothing"),
]
