"""Memory that a task of a search frees is used by the next one, instead of being returned to the system in between.

Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_=65536``, by which glibc returns freed memory at once. The tasks of a search
allocate and free the same megabytes hundreds of times, and every page of them would be cleared by the system each time. While
a worker has the rows of a search, up to `KEPT` bytes of freed memory stay with the process. Elsewhere nothing is changed.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["keep_freed", "return_freed"]

#: Freed memory at the end of a heap is returned from so many bytes on. Blocks from `LARGE` bytes on are always returned: glibc
#: accepts no higher value.
KEPT = 256 << 20
LARGE = 32 << 20

#: The parameters of `mallopt`, and the default of the second.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
SMALL = 128 << 10


def _libc() -> ctypes.CDLL | None:
    """The C library, if it is glibc and returns freed memory at once."""
    if not os.environ.get("MALLOC_TRIM_THRESHOLD_", "").isdigit():
        return None
    try:
        libc = ctypes.CDLL(None)
        _ = libc.mallopt, libc.malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return None
    return libc


def keep_freed() -> None:
    """Keep freed memory."""
    if (libc := _libc()) is not None:
        libc.mallopt(TRIM_THRESHOLD, KEPT)
        libc.mallopt(MMAP_THRESHOLD, LARGE)


def return_freed() -> None:
    """Return freed memory, now and from now on."""
    if (libc := _libc()) is not None:
        libc.mallopt(TRIM_THRESHOLD, int(os.environ["MALLOC_TRIM_THRESHOLD_"]))
        libc.mallopt(MMAP_THRESHOLD, SMALL)
        libc.malloc_trim(0)
