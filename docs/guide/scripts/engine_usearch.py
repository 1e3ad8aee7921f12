import numpy as np
from engine_rows import K, items, queries, recall
from usearch.index import Index

for metric in ["ip", "l2sq"]:  # inner product; Euclidean distance, which is wrong
    index = Index(
        ndim=items.shape[1], metric=metric, dtype="f32",
        connectivity=32, expansion_add=200, expansion_search=200,
    )  # fmt: skip
    index.add(np.arange(len(items)), items, threads=1)
    found = index.search(queries, K, threads=1).keys
    print(f"metric={metric!r}: recall {recall(found):.3f}")
    if metric == "ip":
        found = index.search(queries, K, exact=True).keys
        print(f"metric={metric!r}, exact=True: recall {recall(found):.3f}")
