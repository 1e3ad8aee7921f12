import duckdb
import numpy as np
import pyarrow as pa
from engine_rows import K, items, queries, recall

n_dims = items.shape[1]


def table(vectors):
    arrays = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), n_dims)
    return pa.table({"row": np.arange(len(vectors)), "vector": arrays})


connection = duckdb.connect()
connection.register("given_items", table(items))
connection.register("given_queries", table(queries))
for name in ["items", "queries"]:
    connection.execute(
        f"CREATE TABLE {name} AS SELECT row, vector::FLOAT[{n_dims}] AS vector FROM given_{name}"
    )

for order in ["array_inner_product({}) DESC", "array_distance({}) ASC"]:  # the second is wrong
    order = order.format("queries.vector, items.vector")
    ranked = connection.execute(f"""
        SELECT queries.row AS query, items.row AS item
        FROM queries CROSS JOIN items
        QUALIFY row_number() OVER (PARTITION BY queries.row ORDER BY {order}, items.row) <= {K}
        ORDER BY query
    """).fetchnumpy()
    found = ranked["item"].reshape(len(queries), K)
    print(f"{order.split('(')[0]}: recall {recall(found):.3f}")
