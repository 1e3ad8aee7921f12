"""Freed memory on the workers of a search."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from hdsl import _malloc, _remote_trials

#: Prints the page faults of allocating and freeing a megabyte a hundred times.
FAULTS = """
import resource
from hdsl._malloc import keep_freed, return_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        b"x" * (1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults())
keep_freed()
print(faults())
return_freed()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_freed_memory_is_kept_and_returned():
    def counted(threshold):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
        environment |= threshold
        done = subprocess.run([sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True)
        return [int(line) for line in done.stdout.split()]

    pages = (1 << 20) // os.sysconf("SC_PAGE_SIZE")
    before, kept, after = counted({"MALLOC_TRIM_THRESHOLD_": "65536"})
    assert before > 90 * pages and kept < 10 * pages and after > 90 * pages
    # Where Dask has not set it, glibc's own rules stay: they keep memory that is freed again and again.
    unchanged = counted({})
    assert max(unchanged) < 10 * pages


def test_memory_is_kept_while_a_worker_has_a_search(monkeypatch):
    calls = []
    monkeypatch.setattr(_remote_trials, "keep_freed", lambda: calls.append("keep"))
    monkeypatch.setattr(_remote_trials, "return_freed", lambda: calls.append("return"))
    monkeypatch.setattr(_remote_trials, "_kept", {})
    monkeypatch.setattr(_remote_trials.TrialRows, "_made", lambda rows: rows.search)
    first, second = (_remote_trials.TrialRows(name, "", {}) for name in ("first", "second"))
    with first.data(), second.data():
        _remote_trials.forget("first")
        assert calls == ["keep"]
    _remote_trials.forget("first")
    assert calls == ["keep"]
    _remote_trials.forget("second")
    assert calls == ["keep", "return"]


def test_other_systems_are_left_alone(monkeypatch):
    def nothing(_):
        raise OSError

    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setattr(_malloc.ctypes, "CDLL", nothing)
    _malloc.keep_freed()
    _malloc.return_freed()
