"""How many threads to work with."""

from __future__ import annotations

import os

import joblib


def n_threads(n_jobs: int | None) -> int:
    """What `n_jobs` means for native threads.

    As for scikit-learn's own learners with threads inside: None is every processor, or what ``OMP_NUM_THREADS``
    allows, which joblib sets in its workers so that they do not get in each other's way. Results are the same for any
    number of threads.
    """
    if n_jobs is None:
        allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        processors = int(joblib.cpu_count())
        return min(processors, max(1, int(allowed))) if allowed.isdigit() else processors
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning")
    if n_jobs < 0:
        return int(max(1, joblib.cpu_count() + 1 + n_jobs))
    return int(n_jobs)
