"""Support vector machines: linear ones by liblinear, polynomial ones by libsvm, one against one for several classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from experiments.cells import Setting
from experiments.systems.base import Fitted, Problem, System, decades, error


def fit_linear(problem: Problem, *, penalty: str, costs: tuple[float, ...], max_iter: int) -> Fitted:
    """The C of the lowest validation error; in case of ties the smallest, which regularizes most."""
    train, valid = problem.train, problem.valid
    tried: list[dict[str, Any]] = []
    best = None
    for cost in sorted(costs):
        # l1 has no dual form; for l2 the dual is faster if features outnumber rows.
        svc = LinearSVC(C=cost, penalty=penalty, dual=penalty == "l2", max_iter=max_iter, random_state=problem.seed)
        model = OneVsOneClassifier(svc) if len(np.unique(train.y)) > 2 else svc
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(train.X, train.y)
        wrong = error(model.predict(valid.X), valid)
        used = n_features(model)
        settled = not any(issubclass(one.category, ConvergenceWarning) for one in told)
        tried.append({"C": cost, "valid_error": round(wrong, 6), "n_features": used, "converged": settled})
        if best is None or wrong < best[1]:
            best = (model, wrong, used, cost)
    assert best is not None
    model, wrong, used, cost = best
    return Fitted(model.predict, used, wrong, {"C": cost}, tried)


def n_features(model: Any) -> int:
    """Features of non-zero weight in any of the binary machines."""
    machines = model.estimators_ if isinstance(model, OneVsOneClassifier) else [model]
    used = np.zeros(machines[0].coef_.shape[1], dtype=bool)
    for machine in machines:
        used |= (machine.coef_ != 0).any(axis=0)
    return int(used.sum())


def fit_polynomial(
    problem: Problem, *, degree: int, costs: tuple[float, ...], gammas: tuple[float, ...], offsets: tuple[float, ...]
) -> Fitted:
    """(γ x·z + r)^degree with the γ, r and C of the lowest validation error.

    γ is relative to one over the mean squared norm of the training rows, which makes grids comparable. The products x·z are
    computed once, and libsvm gets the kernel.
    """
    train, valid = problem.train, problem.valid
    products = (train.X @ train.X.T).toarray()
    across = (valid.X @ train.X.T).toarray()
    unit = 1.0 / max(float(np.mean(np.diag(products))), 1e-300)
    tried: list[dict[str, Any]] = []
    best = None
    for offset in offsets:
        for gamma in gammas:
            kernel = (gamma * unit * products + offset) ** degree
            kernel_across = (gamma * unit * across + offset) ** degree
            for cost in costs:
                # Bad settings take the longest; a limit of iterations bounds their time.
                machine = SVC(C=cost, kernel="precomputed", cache_size=500, max_iter=200_000)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    machine.fit(kernel, train.y)
                wrong = error(machine.predict(kernel_across), valid)
                choice = {"C": cost, "gamma": gamma, "coef0": offset}
                tried.append({**choice, "valid_error": round(wrong, 6)})
                if best is None or wrong < best[1]:
                    best = (machine, wrong, choice)
    assert best is not None
    machine, wrong, choice = best

    def predict(X: Any) -> np.ndarray:
        return machine.predict((choice["gamma"] * unit * (X @ train.X.T).toarray() + choice["coef0"]) ** degree)

    return Fitted(predict, train.X.shape[1], wrong, choice, tried)


def linear(penalty: str) -> Any:
    def of(setting: Setting) -> dict[str, Any]:
        return {
            "penalty": penalty,
            "costs": setting.choose(full=decades(-9, 8), quick=decades(-3, 3)[::2], tiny=[0.1, 1.0]),
            "max_iter": setting.choose(full=1000, quick=200, tiny=200),
        }

    return of


def polynomial(degree: int) -> Any:
    def of(setting: Setting) -> dict[str, Any]:
        return {
            "degree": degree,
            "costs": setting.choose(full=decades(-3, 5), quick=[0.1, 10.0], tiny=[1.0]),
            "gammas": setting.choose(full=[0.1, 1.0, 10.0], quick=[1.0], tiny=[1.0]),
            "offsets": setting.choose(full=[0.0, 1.0], quick=[1.0], tiny=[1.0]),
        }

    return of


LINEAR = "C of 10^-9, ..., 10^8, up to 1,000 passes of liblinear each"
POLYNOMIAL = (
    "C of 10^-3, ..., 10^5, γ of 0.1, 1 and 10 over the mean squared length of training rows, coef0 of 0 and 1, up to "
    "200,000 steps of libsvm each"
)
SYSTEMS = [
    System("svm_poly_2", "SVM-poly-2", 1, fit_polynomial, polynomial(2), POLYNOMIAL),
    System("svm_poly_3", "SVM-poly-3", 1, fit_polynomial, polynomial(3), POLYNOMIAL),
    System("svm_linear_l2", "SVM-linear-l2", 1, fit_linear, linear("l2"), LINEAR),
    System("svm_linear_l1", "SVM-linear-l1", 1, fit_linear, linear("l1"), LINEAR),
]
