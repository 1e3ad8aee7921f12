"""The most similar rows of single queries by scipy's product and numpy's argpartition."""

import json
import statistics
import sys
import time

import numpy as np
import scipy.sparse as sp

K = 10
asked = json.loads(sys.argv[1])
rows = sp.load_npz(f"{asked['folder']}/rows.npz").tocsr()
queries = sp.load_npz(f"{asked['folder']}/queries.npz").tocsr()[:10]


def best(scores):
    top = np.argpartition(-scores, K)[:K]
    return top[np.argsort(-scores[top])]


def median(search):
    times = []
    for at in range(queries.shape[0]):
        started = time.perf_counter()
        search(queries[at])
        times.append(time.perf_counter() - started)
    return statistics.median(times)


print(
    json.dumps(
        {
            "sparse product": median(lambda query: best((rows @ query.T).toarray().ravel())),
            "product with a dense vector": median(lambda query: best(rows @ query.toarray().ravel())),
        }
    )
)
