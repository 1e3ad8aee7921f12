"""The memory of a fit on 200,000 x 5,000,000 with 50 values a row, against the matrix's own.

    python python/benchmarks/memory.py [ROWS] [COLUMNS]

Prints one JSON object. The peak is the process's, from before the matrix is there to the end of the fit, so that it
counts the matrix, its copies, triplets, and everything the solver keeps.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import scipy.sparse as sp

from hdsl import HDSL

EACH = 50


def matrix(n_rows: int, n_columns: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of ten classes: five columns of a hundred that mark the class, and columns by chance, few of them popular."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n_rows)
    X = sp.csr_array((n_rows, n_columns))
    columns = np.empty((n_rows, EACH), dtype=np.int32)
    columns[:, :5] = 100 * y[:, None] + rng.integers(0, 100, (n_rows, 5))
    # Zipf's law cut off: column c with chance about 1/c.
    columns[:, 5:] = np.exp(rng.uniform(np.log(1000), np.log(n_columns), (n_rows, EACH - 5)))
    columns.sort(axis=1)
    starts = np.arange(0, n_rows * EACH + 1, EACH, dtype=np.int32)
    X = sp.csr_array((np.ones(n_rows * EACH), columns.ravel(), starts), shape=(n_rows, n_columns))
    X.sum_duplicates()
    return X, y


def peak() -> int:
    """Bytes, the most this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    n_columns = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000_000
    X, y = matrix(n_rows, n_columns)
    own = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    before = peak()
    started = time.perf_counter()
    learned = HDSL(scale=100, max_iter=50, triplets="random:5").fit(X, y)
    print(
        json.dumps(
            {
                "rows": n_rows,
                "columns": n_columns,
                "values": int(X.nnz),
                "triplets": learned.n_triplets_,
                "matrix_bytes": own,
                "peak_before_bytes": before,
                "peak_bytes": peak(),
                "peak_of_matrix": round(peak() / own, 2),
                "seconds": round(time.perf_counter() - started, 2),
                "iterations": learned.n_iter_,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
