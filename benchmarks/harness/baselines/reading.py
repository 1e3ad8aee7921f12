"""scikit-learn's reader of svmlight text."""

import json
import sys
import time

from sklearn.datasets import load_svmlight_file

asked = json.loads(sys.argv[1])
times = []
for _ in range(asked["repeats"]):
    started = time.perf_counter()
    load_svmlight_file(asked["file"])
    times.append(time.perf_counter() - started)
print(json.dumps({"seconds": times}))
