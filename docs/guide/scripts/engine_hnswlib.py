import hnswlib
from engine_rows import K, items, queries, recall

for space in ["ip", "l2"]:  # inner product; Euclidean distance, which is wrong
    index = hnswlib.Index(space=space, dim=items.shape[1])
    index.init_index(max_elements=len(items), M=32, ef_construction=200, random_seed=0)
    index.add_items(items, num_threads=1)
    index.set_ef(200)
    found, distances = index.knn_query(queries, k=K, num_threads=1)
    print(f"space={space!r}: recall {recall(found):.3f}")
    if space == "ip":
        similarity = 1 - distances  # hnswlib returns 1 - inner product
