"""scikit-learn's CountVectorizer."""

import json
import sys
import time

from sklearn.feature_extraction.text import CountVectorizer

asked = json.loads(sys.argv[1])
documents = open(asked["file"]).read().splitlines()
times = []
for _ in range(asked["repeats"]):
    started = time.perf_counter()
    X = CountVectorizer().fit_transform(documents)
    times.append(time.perf_counter() - started)
print(json.dumps({"seconds": times, "shape": [X.shape[1], X.nnz]}))
