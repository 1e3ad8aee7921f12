import faiss
from engine_rows import K, items, queries, recall

faiss.omp_set_num_threads(1)
n_dims = items.shape[1]

# Exact: all inner products.
flat = faiss.IndexFlatIP(n_dims)
flat.add(items)
_, found = flat.search(queries, K)
print(f"IndexFlatIP: recall {recall(found):.3f}")

# Approximate: a graph. The metric has to be given, since the default is Euclidean distance.
graph = faiss.IndexHNSWFlat(n_dims, 32, faiss.METRIC_INNER_PRODUCT)
graph.hnsw.efConstruction = 200
graph.add(items)
graph.hnsw.efSearch = 200
_, found = graph.search(queries, K)
print(f"IndexHNSWFlat, inner product: recall {recall(found):.3f}")

# Wrong: Euclidean distance between mapped rows is another ranking.
wrong = faiss.IndexFlatL2(n_dims)
wrong.add(items)
_, found = wrong.search(queries, K)
print(f"IndexFlatL2: recall {recall(found):.3f}")
