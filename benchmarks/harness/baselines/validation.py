"""What one would try instead: fit, predict validation rows, keep the best of a few settings."""

import json
import sys
import time
import warnings

import numpy as np
from rows import scaled

warnings.filterwarnings("ignore")
asked = json.loads(sys.argv[1])
SEED = 0
COSTS = [0.01, 0.1, 1, 10, 100]
DIMENSIONS = [20] if asked["quick"] else [20, 50, 100]


def linear_svc(penalty, train, labels, valid):
    from sklearn.svm import LinearSVC

    for cost in COSTS:
        # L1 has no dual form; L2 is quicker in it where features outnumber rows.
        model = LinearSVC(C=cost, penalty=penalty, dual=penalty == "l2", random_state=SEED)
        yield f"C {cost:g}", model.fit(train, labels).predict(valid)


def projected(train, valid, dimensions):
    from sklearn.decomposition import TruncatedSVD

    svd = TruncatedSVD(dimensions, random_state=SEED).fit(train)
    return svd.transform(train), svd.transform(valid)


def by_neighbors(train, labels, valid):
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(3).fit(train, labels).predict(valid)


def svd_nca(train, labels, valid):
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    for dimensions in DIMENSIONS:
        few, few_valid = projected(train, valid, dimensions)
        nca = NeighborhoodComponentsAnalysis(random_state=SEED).fit(few, labels)
        yield f"{dimensions} dimensions", by_neighbors(nca.transform(few), labels, nca.transform(few_valid))


def svd_scml(train, labels, valid):
    from metric_learn import SCML_Supervised

    # To metric-learn, a class below 0 is no class.
    numbers = np.unique(labels, return_inverse=True)[1]
    for dimensions in DIMENSIONS:
        few, few_valid = projected(train, valid, dimensions)
        # Triplets as in the paper: 3 x 5.
        scml = SCML_Supervised(k_genuine=3, k_impostor=5, random_state=SEED).fit(few, numbers)
        yield f"{dimensions} dimensions", by_neighbors(scml.transform(few), labels, scml.transform(few_valid))


BASELINES = {
    "linear_svc_l1": (lambda *rows: linear_svc("l1", *rows), f"C of {COSTS}"),
    "linear_svc_l2": (lambda *rows: linear_svc("l2", *rows), f"C of {COSTS}"),
    "svd_nca": (svd_nca, f"dimensions of {DIMENSIONS}"),
    "svd_scml": (svd_scml, f"dimensions of {DIMENSIONS}"),
}

attempts, choice = BASELINES[asked["baseline"]]
# Libraries are loaded and files read before the clock starts.
import sklearn.decomposition, sklearn.neighbors, sklearn.svm  # noqa: E401, E402

if asked["baseline"] == "svd_scml":
    import metric_learn  # noqa: F401

(train, labels), (valid, truth) = scaled(asked["train"], asked["valid"])
tried, last = [], time.perf_counter()
for setting, predicted in attempts(train, labels, valid):
    now = time.perf_counter()
    tried.append({"setting": setting, "error": float(np.mean(predicted != truth)), "seconds": now - last})
    last = now
best = min(tried, key=lambda attempt: attempt["error"])
answer = {
    "error": best["error"],
    "setting": best["setting"],
    "alone": best["seconds"],
    "seconds": sum(attempt["seconds"] for attempt in tried),
    "choice": choice,
    "tried": tried,
}
print(json.dumps(answer))
