"""How long a fit goes on after Ctrl-C.

    python python/benchmarks/interrupt.py

Prints one JSON object: seconds from the signal to the end of `fit`, ten times, sorted; during training, which leaves a
model, and during mining, which ends with a KeyboardInterrupt.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from hdsl import HDSL


def waits(fit: Callable[[], object]) -> list[float]:
    """Ten times: seconds that `fit` goes on after a signal that comes when it has run for a while."""
    found = []
    for _ in range(10):
        asked: list[float] = []

        def interrupt(asked: list[float] = asked) -> None:
            asked.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.3, interrupt).start()
        fit()
        found.append(round(time.monotonic() - asked[0], 4))
    return sorted(found)


def while_training() -> None:
    rng = np.random.default_rng(0)
    X, y = sp.random(500, 5000, density=0.01, format="csr", random_state=rng), rng.integers(0, 2, 500)
    learned = HDSL(max_iter=10**9, loss="exponential").fit(X, y)
    assert learned.stop_ == "interrupted", learned.stop_


def while_mining() -> list[float]:
    rng = np.random.default_rng(0)
    X, y = sp.random(20_000, 5000, density=0.01, format="csr", random_state=rng), rng.integers(0, 2, 20_000)

    def fit() -> None:
        try:
            HDSL().fit(X, y)
        except KeyboardInterrupt:
            return
        raise AssertionError("mining was over too soon")

    return waits(fit)


def main() -> None:
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started this in the background
    print(json.dumps({"while_training": waits(while_training), "while_mining": while_mining()}))


if __name__ == "__main__":
    main()
