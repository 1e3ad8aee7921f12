"""3 x 5 neighbors by scipy: all dot products, then argpartition by class."""

import json
import sys
import time

import numpy as np
from rows import scaled


def mine(x, y):
    scores = (x @ x.T).toarray()
    np.fill_diagonal(scores, -np.inf)
    same = y[:, None] == y[None, :]
    targets = np.argpartition(-np.where(same, scores, -np.inf), 3, axis=1)[:, :3]
    impostors = np.argpartition(-np.where(same, -np.inf, scores), 5, axis=1)[:, :5]
    return targets, impostors


asked = json.loads(sys.argv[1])
[(x, y)] = scaled(asked["file"])
times = []
for _ in range(asked["repeats"]):
    started = time.perf_counter()
    mine(x, y)
    times.append(time.perf_counter() - started)
print(json.dumps({"seconds": times}))
