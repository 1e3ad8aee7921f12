"""The memory of a fit on 200,000 x 5,000,000 with 50 values a row, against the matrix's own.

    python python/benchmarks/memory.py [ROWS] [COLUMNS] [VALUES]

VALUES is `counts` (the default: ones, and more where chance hits a column twice), `ones`, or `real` (all different).
Prints one JSON object. What the fit takes is the peak of the process while it runs, less what the process had before: all
copies, triplets, and everything the solver keeps, but neither the matrix, which is there before and after, nor the
interpreter and its packages. Linux only: the peak is set back through `/proc`.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from hdsl import HDSL

EACH = 50


def matrix(n_rows: int, n_columns: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of ten classes: five columns of a hundred that mark the class, and columns by chance, few of them popular."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n_rows)
    columns = np.empty((n_rows, EACH), dtype=np.int32)
    columns[:, :5] = 100 * y[:, None] + rng.integers(0, 100, (n_rows, 5))
    # Zipf's law cut off: column c with chance about 1/c.
    columns[:, 5:] = np.exp(rng.uniform(np.log(1000), np.log(n_columns), (n_rows, EACH - 5)))
    columns.sort(axis=1)
    starts = np.arange(0, n_rows * EACH + 1, EACH, dtype=np.int32)
    X = sp.csr_array((np.ones(n_rows * EACH), columns.ravel(), starts), shape=(n_rows, n_columns))
    X.sum_duplicates()
    return X, y


def status(name: str) -> int:
    """Bytes, as the kernel counts them: `VmRSS` is what this process has now, `VmHWM` the most since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def at_rest() -> int:
    """Gives back what was freed, forgets the peak so far, and tells what this process has."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    n_columns = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000_000
    values = sys.argv[3] if len(sys.argv) > 3 else "counts"
    X, y = matrix(n_rows, n_columns)
    if values == "ones":
        X.data[:] = 1
    elif values == "real":
        X.data[:] = np.random.default_rng(1).uniform(0.1, 1.0, X.nnz)
    own = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    before = at_rest()
    started = time.perf_counter()
    learned = HDSL(scale=100, max_iter=50, triplets="random:5").fit(X, y)
    seconds = time.perf_counter() - started
    peak = status("VmHWM")
    print(
        json.dumps(
            {
                "rows": n_rows,
                "columns": n_columns,
                "values": int(X.nnz),
                "kind_of_values": values,
                "triplets": learned.n_triplets_,
                "iterations": learned.n_iter_,
                "seconds": round(seconds, 2),
                "matrix_bytes": own,
                "process_before_bytes": before,
                "process_peak_bytes": peak,
                "fit_bytes": peak - before,
                "fit_of_matrix": round((peak - before) / own, 2),
                "fit_and_matrix_of_matrix": round((peak - before + own) / own, 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
