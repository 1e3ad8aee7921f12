"""How long a fit goes on after Ctrl-C.

    python python/benchmarks/interrupt.py

Prints one JSON object: seconds from the signal to the return of `fit`, ten times, sorted.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import warnings

import numpy as np
import scipy.sparse as sp

from hdsl import HDSL


def main() -> None:
    rng = np.random.default_rng(0)
    X, y = sp.random(500, 5000, density=0.01, format="csr", random_state=rng), rng.integers(0, 2, 500)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started this in the background
    waits = []
    for _ in range(10):
        asked: list[float] = []

        def interrupt(asked: list[float] = asked) -> None:
            asked.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.2, interrupt).start()
        learned = HDSL(max_iter=10**9, loss="exponential").fit(X, y)
        waits.append(round(time.monotonic() - asked[0], 4))
        assert learned.stop_ == "interrupted", learned.stop_
    print(json.dumps({"seconds_after_ctrl_c": sorted(waits)}))


if __name__ == "__main__":
    main()
