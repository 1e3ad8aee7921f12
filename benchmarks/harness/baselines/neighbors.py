"""k-NN by scipy, by scikit-learn's brute force, by sparse_dot_topn and by FAISS."""

import json
import sys
import time

import numpy as np
import scipy.sparse as sp
from rows import scaled, unit, vote
from sklearn.preprocessing import normalize

asked = json.loads(sys.argv[1])
K = asked["k"]
read = unit if asked.get("unit") else scaled
(train, labels), (test, truth) = read(asked["train"], asked["test"])
model = json.loads(open(asked["model"]).read()) if asked["model"] else None
if model and model["preprocess"] == "max+unit":
    train, test = normalize(train), normalize(test)


def matrix(n_features):
    """βI + M from the atoms of the model: weight λ (e_i ± e_j)(e_i ± e_j)ᵀ."""
    i, j, value = [], [], []
    for atom in model["atoms"]:
        weight, sign = model["scale"] * atom["weight"], 1 if atom["sign"] == "+" else -1
        a, b = atom["i"], atom["j"]
        i += [a, b, a, b]
        j += [a, b, b, a]
        value += [weight, weight, sign * weight, sign * weight]
    m = sp.coo_matrix((value, (i, j)), shape=(n_features, n_features)).tocsr()
    beta = model.get("base")
    return m + beta * sp.identity(n_features, format="csr") if beta else m


def by_scipy():
    m = matrix(train.shape[1]) if model else None

    def classify():
        left = test if m is None else test @ m
        scores = (left @ train.T).toarray()
        near = np.argpartition(-scores, K, axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(scores, near, axis=1), axis=1, kind="stable")
        return vote(np.take_along_axis(near, order, axis=1), labels)

    return classify


def mapped():
    parts = [sp.load_npz(asked[f"mapped_{part}"]) for part in ["train", "test"]]
    # The coordinates of a base are all features, too many for a dense array.
    return parts if model.get("base") else [part.toarray().astype(np.float32) for part in parts]


def by_sklearn():
    from sklearn.neighbors import KNeighborsClassifier

    known, new = mapped() if model else (train, test)
    return lambda: KNeighborsClassifier(K, algorithm="brute", metric="cosine").fit(known, labels).predict(new)


def by_sparse_dot_topn():
    from sparse_dot_topn import sp_matmul_topn

    known, new = mapped() if model else (train, test)
    columns = known.T.tocsr()

    def search():
        return sp_matmul_topn(new, columns, K, n_threads=1, sort=True)

    return search


def classes_of(found):
    """What the neighbors that sparse_dot_topn found vote for; this is not measured."""
    near = np.zeros((found.shape[0], K), dtype=int)
    for row in range(found.shape[0]):
        some = found.indices[found.indptr[row] : found.indptr[row + 1]]
        # A row that shares features with fewer than K rows has fewer neighbors; the first one fills up.
        near[row, : len(some)] = some
        near[row, len(some) :] = some[0] if len(some) else 0
    return vote(near, labels)


def by_faiss():
    import faiss

    faiss.omp_set_num_threads(1)
    known, new = mapped()

    def classify():
        index = faiss.IndexFlatIP(known.shape[1])
        index.add(known)
        return vote(index.search(new, K)[1], labels)

    return classify


baselines = {"scipy": by_scipy, "sklearn": by_sklearn, "sparse_dot_topn": by_sparse_dot_topn, "faiss": by_faiss}
classify = baselines[asked["baseline"]]()
times = []
for _ in range(asked["repeats"]):
    started = time.perf_counter()
    predicted = classify()
    times.append(time.perf_counter() - started)
if sp.issparse(predicted):
    predicted = classes_of(predicted)
print(json.dumps({"seconds": times, "error": float(np.mean(predicted != truth))}))
