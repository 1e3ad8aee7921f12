"""Errors of distributed work."""

from __future__ import annotations


class WorkerLost(RuntimeError):
    """A worker did not answer: it was killed, cannot be reached, or took longer than the time limit."""


class DataLost(RuntimeError):
    """Data is gone with a worker, and Dask cannot compute it again."""
