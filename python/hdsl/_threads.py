"""The number of threads."""

from __future__ import annotations

import os

import joblib

#: As on the command line. Starting thousands of threads takes seconds and helps nothing.
MAX_THREADS = 256


def n_threads(n_jobs: int | None) -> int:
    """The number of native threads for a value of `n_jobs`.

    As for scikit-learn's own learners that use threads: None is all processors, or ``OMP_NUM_THREADS``, which joblib sets
    in its workers to avoid oversubscription. Results are the same for any number of threads.
    """
    if n_jobs is None:
        allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        processors = int(joblib.cpu_count())
        return min(processors, max(1, int(allowed))) if allowed.isdigit() else processors
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning")
    if n_jobs < 0:
        return int(max(1, joblib.cpu_count() + 1 + n_jobs))
    if n_jobs > MAX_THREADS:
        raise ValueError(f"n_jobs is {n_jobs}, expected at most {MAX_THREADS}")
    return int(n_jobs)
