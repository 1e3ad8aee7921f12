"""The progress of a distributed fit."""

from __future__ import annotations

from typing import Any

from hdsl import _progress
from hdsl._progress import with_bar


def describe(facts: dict[str, Any], max_iter: int, cluster: dict[str, Any]) -> str:
    """One line: progress, objective, error, what was sent per iteration, and the time waiting for workers.

    >>> facts = {"iteration": 40, "objective": 0.25, "n_features": 12, "scale": 10.0, "valid_error": 0.05}
    >>> describe(facts, 100, {"bytes_sent": 400_000, "bytes_received": 400_000, "seconds_waiting": 3.21})
    '[####      ] 40/100  objective 0.25, error 5.0%, 20 kB/iter, waited 3.2 s'
    """
    done = facts["iteration"]
    line = f"{done}/{max_iter}  objective {facts['objective']:.4g}"
    if facts["valid_error"] is not None:
        line += f", error {facts['valid_error']:.1%}"
    sent = (cluster["bytes_sent"] + cluster["bytes_received"]) / max(done, 1)
    line += f", {sent / 1e3:.3g} kB/iter, waited {cluster['seconds_waiting']:.1f} s"
    return with_bar(min(1.0, done / max(1, max_iter)), 10, line)


class Progress(_progress.Progress):
    """Shows the state of a distributed run, in a terminal or a notebook."""

    def __init__(self, max_iter: int) -> None:
        super().__init__(max_iter)
        self.cluster: dict[str, Any] = {"bytes_sent": 0, "bytes_received": 0, "seconds_waiting": 0.0}

    def describe(self, facts: dict[str, Any]) -> str:
        """The line to show now."""
        return describe(facts, self.max_iter, self.cluster)
