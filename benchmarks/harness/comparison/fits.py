"""The estimators of the Python package: run by the interpreter of the package compared, with numpy and scikit-learn.

Reads one JSON object from standard input and writes one: the result of each case, as comparison/results.py has it.
"""

import io
import json
import sys
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file


class Package:
    """The package, in the spelling of its first version."""

    def __init__(self, names, n_jobs, seed):
        import hdsl

        self.hdsl, self.names, self.n_jobs, self.seed = hdsl, names, n_jobs, seed

    def find(self, owner, name):
        for spelling in self.names.get(name, [name]):
            if hasattr(owner, spelling):
                return getattr(owner, spelling)
        raise AttributeError(f"{owner} has no {' or '.join(self.names.get(name, [name]))}")

    def make(self, name, n_jobs=1, **params):
        """An estimator with these parameters."""
        kind = self.find(self.hdsl, name)
        known = kind().get_params()
        given = {self.spelled(key, known): value for key, value in params.items()}
        given["n_jobs"] = self.n_jobs or n_jobs
        if self.seed is not None:
            given["random_state"] = self.seed
        return kind(**given)

    def spelled(self, key, known):
        for spelling in self.names.get(key, [key]):
            if spelling in known:
                return spelling
        raise AttributeError(f"no parameter is called {' or '.join(self.names.get(key, [key]))}")

    def result(self, learner, X, errors):
        """What is compared of an estimator; scores are those of test rows."""
        matrix = sp.coo_array(self.find(learner, "get_bilinear_matrix")())
        kept = matrix.data != 0
        rows, columns, data = matrix.row[kept], matrix.col[kept], matrix.data[kept]
        facts = {"n_triplets": int(self.find(learner, "n_triplets_"))}
        values = {"scores": learner.score_pairs(X, np.arange(50), np.arange(50, 100)).tolist()}
        if hasattr(learner, "objective_"):
            values["objective"] = [float(learner.objective_)]
        return {
            "features": sorted(map(str, {*rows.tolist(), *columns.tolist()})),
            "entries": {f"{i},{j}": w for i, j, w in zip(rows.tolist(), columns.tolist(), data.tolist())},
            "iterations": [int(learner.n_iter_)],
            "errors": [float(error) for error in errors],
            "facts": facts,
            "values": values,
        }


class Data:
    def __init__(self, files):
        self.X, self.y = rows(files["train"])
        self.X_val, self.y_val = rows(files["valid"], self.X.shape[1])
        self.X_test, self.y_test = rows(files["test"], self.X.shape[1])
        self.triplets = np.loadtxt(files["weighted"])[:, :3].astype(np.int64)
        self.weights = np.loadtxt(files["weighted"])[:, 3]
        # Few columns, for OASIS: the sum of those of the same number modulo 60.
        fold = sp.csr_array((np.ones(self.X.shape[1]), (np.arange(self.X.shape[1]), np.arange(self.X.shape[1]) % 60)))
        self.few, self.few_test = (sp.csr_array(X @ fold) for X in (self.X, self.X_test))


def rows(path, n_features=None):
    """Rows and classes of an svmlight file whose labels are words."""
    labels, numbered = [], []
    with open(path, "rb") as lines:
        for line in lines:
            label, rest = line.split(b" ", 1)
            labels.append(label.decode())
            numbered.append(b"0 " + rest)
    X, _ = load_svmlight_file(io.BytesIO(b"".join(numbered)), n_features=n_features, zero_based=False)
    return sp.csr_matrix(X), np.array(labels)


def classified(package, data, name, fit=None, **params):
    """Fit on labels; the error on test rows, where the estimator classifies."""
    learner = package.make(name, **params).fit(data.X, data.y, **(fit or {}))
    return package.result(learner, data.X_test, errors(learner, data.X_test, data.y_test))


def errors(learner, X, y):
    return [1 - learner.score(X, y)] if hasattr(learner, "predict") else []


def warm_start(package, data):
    learner = package.make("HDSL", scale=10, max_iter=30, warm_start=True)
    learner.fit(data.X, data.y)
    return package.result(learner.set_params(max_iter=20).fit(data.X, data.y), data.X_test, [])


def given_triplets(package, data):
    learner = package.make("HDSLClassifier", scale=10, max_iter=60)
    learner.fit_triplets(data.X, data.triplets, sample_weight=data.weights, y=data.y)
    return package.result(learner, data.X_test, errors(learner, data.X_test, data.y_test))


def partial_fit(package, data):
    learner = package.make("HDSL", scale=10, max_iter=40)
    learner.fit_triplets(data.X, data.triplets[:2000])
    learner.partial_fit_triplets(data.X, data.triplets[2000:], sample_weight=data.weights[2000:], max_iter=15)
    return package.result(learner, data.X_test, [])


def triplet_learner(package, data, **params):
    learner = package.make("TripletHDSL", preprocessor=data.X, max_iter=60, **params)
    learner.fit(data.triplets[:3000], sample_weight=data.weights[:3000])
    return package.result(learner, data.X_test, [1 - learner.score(data.triplets[3000:])])


def mined(package, data):
    triplets = package.find(package.hdsl, "mine_triplets")(data.X, data.y, triplets="random:5")
    learner = package.make("TripletHDSL", preprocessor=data.X, scale=10, max_iter=40).fit(triplets)
    return package.result(learner, data.X_test, [1 - learner.score(data.triplets)])


def tuned(package, data):
    # A bound on features keeps the search short enough to have no limit of time.
    tune = package.find(package.hdsl, "tune")
    seed = 0 if package.seed is None else package.seed
    learner = tune(data.X[:200], data.y[:200], cv=2, time=None, max_features=10, random_state=seed, n_jobs=package.n_jobs)
    result = package.result(learner, data.X_test, errors(learner, data.X_test, data.y_test))
    result["facts"]["n_models"] = int(learner.tuning_.n_models)
    result["values"]["expected_error"] = [float(learner.tuning_.expected_error)]
    return result


def diagonal_triplets(package, data):
    learner = package.make("DiagonalSimilarity", strength=1e-3, max_iter=200)
    learner.fit_triplets(data.X, data.triplets, sample_weight=data.weights, y=data.y)
    return package.result(learner, data.X_test, errors(learner, data.X_test, data.y_test))


def oasis(package, data, **params):
    learner = package.make("OASIS", **params).fit(data.few, data.y)
    return package.result(learner, data.few_test, errors(learner, data.few_test, data.y_test))


def oasis_partial(package, data):
    learner = package.make("OASIS", aggressiveness=0.1, n_steps=500)
    learner.fit_triplets(data.few, data.triplets[:2000], y=data.y)
    learner.partial_fit_triplets(data.few, data.triplets[2000:])
    return package.result(learner, data.few_test, errors(learner, data.few_test, data.y_test))


def with_weights(package, data):
    weights = 1 + np.arange(len(data.y)) % 3 / 2
    triplets = package.find(package.hdsl, "mine_triplets")(data.X, data.y)
    learner = package.make("HDSL", scale=10, max_iter=60)
    learner.fit_triplets(data.X, triplets, sample_weight=weights[triplets[:, 0]])
    return package.result(learner, data.X_test, [])


def with_validation(package, data):
    valid = dict(X_val=data.X_val, y_val=data.y_val)
    return classified(package, data, "HDSLClassifier", valid, scale=[1, 10, 100], max_iter=80, n_jobs=2)


def case(name, **params):
    return lambda package, data: classified(package, data, name, **params)


CASES = {
    "python-hdsl": case("HDSL", scale=10, max_iter=100),
    "python-hdsl-random-squared": case(
        "HDSL", scale=10, triplets="random:10", loss="squared-hinge", steps="pairwise", max_iter=100, random_state=3
    ),
    "python-hdsl-batch-logistic": case("HDSL", scale=10, batch=200, loss="logistic", max_iter=100, n_jobs=2),
    "python-hdsl-exact-tol": case("HDSL", scale=2, search="exact", tol=0.02, certify=True, max_iter=500),
    "python-hdsl-max-features": case("HDSL", scale=10, max_features=15, max_iter=200),
    "python-hdsl-sample-weight": with_weights,
    "python-hdsl-warm-start": warm_start,
    "python-hdsl-partial-fit": partial_fit,
    "python-classifier": case("HDSLClassifier", scale=10, max_iter=100, n_neighbors=7, vote="weighted", form="cosine"),
    "python-classifier-class-mean": case("HDSLClassifier", scale=10, max_iter=80, vote="class-mean"),
    "python-classifier-early-stopping": case(
        "HDSLClassifier", scale=10, max_iter=300, early_stopping=True, validation_fraction=0.3, n_iter_no_change=50
    ),
    "python-classifier-validation": with_validation,
    "python-classifier-models-rounds": case(
        "HDSLClassifier", scale=10, triplets="random:8", models=3, rounds=1, max_iter=40, last_iter=15, n_jobs=2
    ),
    "python-classifier-unit": case("HDSLClassifier", scale=1000, scaling="unit", max_iter=80),
    "python-classifier-triplets": given_triplets,
    "python-triplets": lambda package, data: triplet_learner(package, data, scale=10),
    "python-triplets-exponential": lambda package, data: triplet_learner(package, data, scale=3, loss="exponential"),
    "python-mined": mined,
    "python-tune": tuned,
    "python-diagonal-l1": case("DiagonalSimilarity", strength=1e-3),
    "python-diagonal-l2-positive": case(
        "DiagonalSimilarity", strength=1e-4, penalty="l2", positive=True, scaling="unit", n_jobs=2
    ),
    "python-diagonal-logistic": case("DiagonalSimilarity", strength=1e-3, loss="logistic", triplets="random:10"),
    "python-diagonal-triplets": diagonal_triplets,
    "python-oasis": lambda package, data: oasis(package, data),
    "python-oasis-psd": lambda package, data: oasis(
        package, data, aggressiveness=0.05, finish="psd", sampling="triplets", n_steps=3000, scaling="unit"
    ),
    "python-oasis-symmetric": lambda package, data: oasis(
        package, data, finish="symmetric", triplets="random:5", random_state=2, n_jobs=2
    ),
    "python-oasis-partial-fit": oasis_partial,
}


def main():
    asked = json.load(sys.stdin)
    if asked.get("list"):
        print(json.dumps(list(CASES)))
        return
    package, data = Package(asked["names"], asked["n_jobs"], asked["seed"]), Data(asked["files"])
    results = {}
    for name in asked["cases"]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results[name] = CASES[name](package, data)
        except Exception as error:  # a case that fails is reported as a difference, and the others go on
            results[name] = {"failed": f"{type(error).__name__}: {error}"[:200]}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
