import tempfile

import lancedb
import numpy as np
import pyarrow as pa
from engine_rows import K, items, queries, recall

n_dims = items.shape[1]
vectors = pa.FixedSizeListArray.from_arrays(pa.array(items.ravel()), n_dims)
table = pa.table({"row": np.arange(len(items)), "vector": vectors})

with tempfile.TemporaryDirectory() as folder:
    rows = lancedb.connect(folder).create_table("rows", table)
    for distance in ["dot", "l2"]:  # inner product; Euclidean distance, which is wrong
        found = []
        for query in queries:
            search = rows.search(query).distance_type(distance).limit(K)
            found.append(search.to_arrow()["row"].to_numpy())
        print(f"distance_type({distance!r}): recall {recall(found):.3f}")
